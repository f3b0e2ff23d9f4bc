"""One call of `fnop check`: what is tried, the trials, and the report of them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import orjson

from fnop.adapters import check_report
from fnop.adapters.check_findings import Findings
from fnop.adapters.check_folder import Folder
from fnop.adapters.check_limits import Limits
from fnop.adapters.check_report import PRETTY, Shown
from fnop.adapters.check_shards import keep
from fnop.adapters.check_trials import OtherOrder, in_processes
from fnop.adapters.checking import CheckProblem, cases_of, subjects_for
from fnop.adapters.endings import EXIT_ERROR, EXIT_UNKNOWN, EXIT_USAGE, fail
from fnop.adapters.loading import LoadProblem, handlers_of_file, load
from fnop.adapters.manifests import ManifestProblem
from fnop.adapters.models import models_of
from fnop.adapters.plain import echo
from fnop.core.handlers.program import Program
from fnop.core.handlers.settings import Settings
from fnop.interpreters.actions import ActionRefused
from fnop.interpreters.check.campaign import Campaign, Options, Report, Result, Task
from fnop.interpreters.check.explore import Case
from fnop.interpreters.check.properties import PROPERTIES
from fnop.interpreters.scenario import ApplyProblem, catalogue_of

__all__ = ["Checking"]


class Checking:
    """One call of the command with its `options`, of its own cases or of others.

    It ends the process with status 2, and a sentence, for an operator that cannot be
    checked.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: Mapping[str, Any],
        cases: Sequence[Case] | None = None,
    ) -> None:
        self.paths, self.options = paths, options
        self.limits = Limits(
            budget=options["budget"],
            seconds=options["seconds"],
            quiet=options["quiet"],
        )
        self._results: list[Result] = []
        self._is_own = cases is None
        self.cases = self._cases() if cases is None else cases
        self.campaign = self._campaign()
        self._folder = Folder(Path(options["save"]), self._call(), self.limits)

    def run(self) -> int:
        """Try all, and report; the exit status."""
        tasks = self.campaign.tasks(self._folder.known(self.cases))
        with _ended_by_sigterm():
            with ExitStack() as stack, self.limits.interruptible():
                other = self._in_another_order(stack)
                self._try(tasks)
                if other is not None:
                    self._results += other.differing(self.campaign)
            report = self.campaign.report(self._results, tasks)
            findings = Findings(self.campaign, self.limits, self._folder)
            self._write(report, [*findings.shown(report)])
        return _status(report)

    # ------------------------------------------------------------------- preparing

    def _cases(self) -> list[Case]:
        options = self.options
        try:
            handlers = [h for path in self.paths for h in handlers_of_file(path)]
            if not handlers:
                fail(f"{', '.join(self.paths)} declares no handlers", EXIT_USAGE)
            settings = Settings(operator=options["name"])
            program = Program(tuple(handlers), settings)
            modules = load([options["script"]]) if options["script"] else []
            calls = models_of(load(options["calls"]), modules)
            paths = [*options["crds"], *options["objects"]]
            subjects = subjects_for(program, self.paths[0], paths, modules)
            for note in subjects.notes:
                self.limits.say(note)
            module = modules[0] if modules else None
            cases = cases_of(program, subjects, calls=calls, module=module)
            if options["former"]:
                former = Program(handlers_of_file(options["former"]), settings)
                cases = [each._replace(former=former) for each in cases]
            return cases
        except (CheckProblem, LoadProblem, ManifestProblem) as problem:
            fail(str(problem), EXIT_USAGE)
        except (ActionRefused, ApplyProblem) as problem:
            fail(f"{problem} (as --crd or --object)", EXIT_USAGE)

    def _campaign(self) -> Campaign:
        options = self.options
        for name in (*options["only"], *options["without"]):
            if name not in PROPERTIES:
                raise click.UsageError(
                    f"there is no property {name}; choose from {', '.join(PROPERTIES)}"
                )
        found = Options(
            depth=options["depth"],
            budget=options["budget"],
            randoms=options["randoms"],
            seed=options["seed"],
            shard=options["shard"],
            only=frozenset(options["only"]),
            without=frozenset(options["without"]),
        )
        campaign = Campaign(self.cases, found)
        for explorer in campaign.explorers:
            for sentence in explorer.unmodelled:
                fail(sentence, EXIT_USAGE)
            catalogue = catalogue_of(explorer.reference.benign.seen.trial.run)
            for kind, _ in explorer.case.expectations:
                if catalogue.lookup(kind) is None:
                    fail(
                        f"@expect({kind!r}): the cluster serves no such kind; correct "
                        "it, or give its definition with --crd",
                        EXIT_USAGE,
                    )
        return campaign

    def _call(self) -> dict[str, Any]:
        """The call as the recording of a failure tells it: so it can be run again."""
        name = self.options["name"]
        return {
            "operator": [*self.paths],
            "models": [*self.options["calls"]],
            "models of": self.options["script"],
            "former": self.options["former"],
            "name": None if name == Settings().operator else name,
            "answers": self.options.get("answers"),
        }

    # ---------------------------------------------------------------------- trying

    def _try(self, tasks: Sequence[Task]) -> None:
        with self.limits.progress(len(tasks), "schedules") as bar:

            def goes_on(result: Result, *_: Any) -> bool:
                self._results.append(result)
                bar.update(1)
                return self.limits.has_time()

            if self.options["jobs"] == 1:
                self.campaign.run(tasks, goes_on)
            else:
                in_processes(self.campaign, tasks, self.options["jobs"], goes_on)

    def _in_another_order(self, stack: ExitStack) -> OtherOrder | None:
        """The benign runs under another hash seed, where they are to be judged."""
        is_wanted = "pure" in self.campaign.properties and self._is_own
        if self.options["shard"][0] != 1 or not is_wanted:
            return None
        return stack.enter_context(OtherOrder.begun(sys.argv[1:]))

    # ------------------------------------------------------------------- reporting

    def _write(self, report: Report, shown: Sequence[Shown]) -> None:
        options = self.options
        match options["output"]:
            case "json":
                whole = check_report.as_json(report)
                echo(orjson.dumps(whole, option=PRETTY).decode())
            case "github":
                for line in check_report.for_github(report, self.paths[0]):
                    echo(line)
            case _:
                for line in check_report.as_lines(report, shown):
                    echo(line)
        try:
            if options["junit"]:
                text = check_report.as_junit(report, Path(self.paths[0]).name)
                Path(options["junit"]).write_text(text, "utf-8")
            if options["results"]:
                keep(Path(options["results"]), report)
        except OSError as problem:
            fail(f"{problem.filename} cannot be written: {problem.strerror}")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM interrupts what is done within, as Ctrl-C does."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _status(report: Report) -> int:
    if not report.is_clean:
        return EXIT_ERROR
    known = report.tried - report.unknown
    return 0 if known > 0 else EXIT_UNKNOWN
