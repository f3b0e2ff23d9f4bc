"""One call of `fnop check`: what is tried, the trials, and the report of them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Protocol, TextIO

import click

from fnop.adapters.check.findings import Findings
from fnop.adapters.check.folder import Folder
from fnop.adapters.check.limits import Limits, Steps
from fnop.adapters.check.options import CheckOptions
from fnop.adapters.check.outlook import Outlook
from fnop.adapters.check.places import must_be_writable
from fnop.adapters.check.shards import identity_of, keep
from fnop.adapters.check.telling import Source, cannot_write, status_of, tell
from fnop.adapters.check.trials import OtherOrder, in_processes, onlooker
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.loading import (
    LoadProblem,
    handlers_of_file,
    load,
    module_of_file,
)
from fnop.adapters.common.manifests import ManifestProblem
from fnop.adapters.kubernetes.identity import replicated
from fnop.adapters.reports.check_report import Places, Shown, places_of
from fnop.adapters.testing.cases import CheckProblem, cases_of, sound, subjects_for
from fnop.adapters.testing.models import models_of
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import as_unicode, number_of
from fnop.interpreters.check.campaign.campaign import Campaign, Options
from fnop.interpreters.check.campaign.explore import Case
from fnop.interpreters.check.campaign.reports import Report, Result, Task, unprepared
from fnop.interpreters.check.properties import (
    OF_ADMISSION,
    OF_DECISIONS,
    PROPERTIES,
)
from fnop.interpreters.check.state.scripts import ScriptProblem
from fnop.interpreters.simulation.actions import ActionRefused
from fnop.interpreters.simulation.lives import Life
from fnop.interpreters.simulation.scenario import ApplyProblem
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Checking", "ended_by_sigterm", "prints_aside"]

# The time of a check in an author's inner development loop.
FAST_SECONDS = 10.0


class Processes(Protocol):
    """An operator that lives in this process of Python, as one of Kopf.

    `declared` is its program before it starts, and `begin` begins each of its lives.
    """

    has_webhooks: bool

    def declared(self) -> Program: ...
    def begin(self, run: SimulatedRun) -> Life: ...


class Checking:
    """One call of the command with its `options`, with generated or given cases.

    It ends the process with status 2 and a sentence if an operator cannot be checked.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: CheckOptions,
        cases: Sequence[Case] | None = None,
        *,
        processes: Processes | None = None,
    ) -> None:
        self.paths, self.options, self._processes = paths, options, processes
        seconds = options.seconds
        if options.fast:
            seconds = min(seconds or FAST_SECONDS, FAST_SECONDS)
        self.limits = Limits(
            budget=options.budget,
            seconds=seconds,
            quiet=options.quiet,
        )
        self._extent = self._options()
        must_be_writable(options)
        call, shard = self._call(), options.shard
        self._folder = Folder(Path(options.save), call, self.limits, shard)
        self._results: list[Result] = []
        self._beside: list[Result] = []
        self._is_own = cases is None
        self.cases: Sequence[Case] = ()
        self.campaign: Campaign | None = None
        """The schedules that can be tried; None where the time is over already."""
        with self.limits.ceiling(), prints_aside(), onlooker():
            # A recorded user has also done things that the cluster refused.
            recorded = [each._replace(made_up=True) for each in cases or ()]
            self.cases = self._cases() if cases is None else recorded
            if not options.digests:  # digests are those of the cases alone
                self.campaign = self._campaign()

    def run(self) -> int:
        """Try everything, and report; return the exit status."""
        with ended_by_sigterm():
            report, shown = unprepared(self._extent.properties), list[Shown]()
            if self.campaign is not None:
                with prints_aside():
                    report, shown = self._run(self.campaign)
            self._write(report, shown)
            if report.struck:
                self._folder.remember(self._handlers)
        return status_of(report)

    @property
    def _handlers(self) -> tuple[Handler, ...]:
        return self.cases[0].program.handlers if self.cases else ()

    def _run(self, campaign: Campaign) -> tuple[Report, list[Shown]]:
        """Try everything; return the report, and the failures that are shown."""
        campaign.remember(self._folder.known(self.cases))
        with onlooker():
            tasks = campaign.tasks(self._folder.changed(self._handlers))
        with ExitStack() as stack, self.limits.interruptible():
            other = self._start_other_order(stack)
            # While the processes are being ended, a signal must not interrupt that.
            with self.limits.ceiling(again=self.options.jobs == 1):
                self._try(campaign, tasks, other)
            if other is not None and not self.limits.has_failed:
                self._compare(campaign, other)
        cut = self.limits.cut
        report = campaign.report(self._results, tasks, self._beside, cut)
        findings = Findings(campaign, self.limits, self._folder)
        with onlooker():
            return report, [*findings.shown(report)]

    # ------------------------------------------------------------------- preparing

    def _cases(self) -> list[Case]:
        options = self.options
        try:
            program = self._program()
            modules = load([options.script]) if options.script else []
            calls = models_of(load(options.calls), modules)
            paths = [*options.crds, *options.objects]
            own = [] if self._processes else [*map(module_of_file, self.paths)]
            subjects = subjects_for(program, self.paths[0], paths, modules, own)
            for note in subjects.notes:
                self.limits.say(note)
            module = modules[0] if modules else None
            cases = cases_of(
                *(program, subjects),
                calls=calls,
                module=module,
                tell=self.limits.say,
                begin=None if self._processes is None else self._processes.begin,
            )
            if options.former:
                former = Program(handlers_of_file(options.former), program.settings)
                cases = [each._replace(former=former) for each in cases]
            return cases
        except (CheckProblem, LoadProblem, ManifestProblem) as problem:
            fail(str(problem), EXIT_USAGE)
        except (ActionRefused, ApplyProblem) as problem:
            fail(f"{problem} (as --crd or --object)", EXIT_USAGE)

    def _program(self) -> Program:
        """The operator's program; that of a Kopf operator is made for each process."""
        if self._processes is not None:
            program = self._processes.declared()
            if self._processes.has_webhooks:
                self.limits.say(
                    "admission handlers of a Kopf operator are not called in a check"
                )
            return program
        handlers = [h for path in self.paths for h in handlers_of_file(path)]
        if not handlers:
            fail(f"{', '.join(self.paths)} declares no handlers", EXIT_USAGE)
        settings = self._settings()
        if self.options.leader_elect:
            settings = replicated(settings)
        return Program(tuple(handlers), settings)

    def _settings(self) -> Settings:
        try:
            return Settings(operator=self.options.name)
        except ValueError as problem:
            fail(str(problem), EXIT_USAGE)

    def _options(self) -> Options:
        options = self.options
        for name in (*options.only, *options.without):
            if name not in PROPERTIES:
                raise click.UsageError(
                    f"there is no property {name}; choose from {', '.join(PROPERTIES)}"
                )
        for name in options.only if self._processes else ():
            if name in OF_DECISIONS | OF_ADMISSION:
                raise click.UsageError(
                    f"{name} is not judged for a Kopf operator, whose handlers act by "
                    "themselves"
                )
        wanted = Options(
            depth=options.depth,
            budget=options.budget,
            randoms=options.randoms,
            seed=options.seed,
            shard=options.shard,
            only=frozenset(options.only),
            without=frozenset(options.without),
        )
        if not wanted.properties:
            raise click.UsageError("no property is left: --property and --without")
        return wanted

    def _campaign(self) -> Campaign:
        try:
            # Scripts of other operators are prepared soon.
            limits = self.limits.may_prepare if self._processes else lambda: True
            campaign = Campaign(self.cases, self._extent, limits)
            left = [*self.cases[len(campaign.explorers) :]]
            if left:
                self.limits.say(
                    f"left out {number_of(len(left), 'script')}, from {left[0].name!r} "
                    "on: without any fault the others take half of the time already"
                )
            kept, notes = sound(campaign.explorers)
        except (CheckProblem, ScriptProblem) as problem:
            fail(str(problem), EXIT_USAGE)
        except (ActionRefused, ApplyProblem) as problem:
            fail(f"{problem} (as GIVEN, --crd or --object)", EXIT_USAGE)
        if self._is_own:
            campaign.explorers = kept
            self.cases = [each.case for each in kept]
            for note in notes:
                self.limits.say(note)
        return campaign

    def _call(self) -> dict[str, Any]:
        """The call as recordings of failures have it, so that it can be repeated."""
        name = self.options.name
        return {
            "operator": [*map(as_unicode, self.paths)],
            "models": [*self.options.calls],
            "models of": self.options.script,
            "former": self.options.former,
            "name": None if name == Settings().operator else name,
            "answers": self.options.answers,
            "leader_elect": self.options.leader_elect or None,
            "kopf": self.options.kopf or None,
        }

    # ---------------------------------------------------------------------- trying

    def _try(
        self, campaign: Campaign, tasks: Sequence[Task], other: OtherOrder | None
    ) -> None:
        steps = Steps.of(self._extent, len(tasks))
        outlook = Outlook(campaign, tasks, self.limits, self.options.jobs)
        with self.limits.progress(steps.length, steps.label) as bar:

            def goes_on(result: Result, *_: Any) -> bool:
                self._results.append(result)
                bar.update(steps.taken(result), result)
                outlook.take(result)
                if other is not None:
                    other.go_on()
                if result.fails and self.options.fail_fast:
                    self.limits.fails()
                return self.limits.has_time() and not self.limits.has_failed

            try:
                if self.options.jobs == 1:
                    with onlooker():
                        campaign.run(tasks, goes_on)
                else:
                    in_processes(campaign, tasks, self.options.jobs, goes_on)
            except ScriptProblem as problem:
                fail(str(problem), EXIT_USAGE)

    def _compare(self, campaign: Campaign, other: OtherOrder) -> None:
        """Compare the runs under another hash seed: these are not schedules."""
        if other.is_done:
            self._beside += other.differing(campaign)
            return
        if self.limits.has_time():
            with self.limits.ceiling():
                self._beside += other.differing(campaign)
                return
        self.limits.say("the run under another hash seed has taken too long")

    def _start_other_order(self, stack: ExitStack) -> OtherOrder | None:
        """The benign runs under another hash seed, if they are to be judged."""
        is_wanted = "pure" in self._extent.properties and self._is_own
        is_wanted = is_wanted and not self.options.fast and not self._processes
        if self.options.shard[0] != 1 or not is_wanted:
            return None
        # One more process than needed: a small check alone is soon done.
        at_once = self.options.jobs + 1
        try:
            return stack.enter_context(OtherOrder.begun(sys.argv[1:], at_once))
        except OSError as problem:
            warn(f"there are no runs under other hash seeds: {problem.strerror}")
            return None

    # ------------------------------------------------------------------- reporting

    def _write(self, report: Report, shown: Sequence[Shown]) -> None:
        options, source = self.options, Source(self.paths, self._places())
        tell(report, shown, source, options)
        if not options.results or self.campaign is None:
            return
        try:
            identity = identity_of(self.campaign, self.paths, options)
            keep(options, identity, report, shown, source)
        except OSError as problem:
            cannot_write(problem)

    def _places(self) -> Places:
        """The files and lines of the operator's handlers."""
        return places_of(self._handlers)


def prints_aside() -> redirect_stdout[TextIO]:
    """Send the output of the author's code to stderr, apart from the report."""
    return redirect_stdout(sys.stderr)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
