"""The command `fnop run`: an operator on a cluster, or in a simulated one."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from fnop.adapters.cli.dump_signal import Asked, AskedInSimulation, harmless
from fnop.adapters.cli.option_fields import (
    declared,
    names_in,
    option,
    takes,
)
from fnop.adapters.cli.options import (
    ClusterOptions,
    ElectionOptions,
    SelectionOptions,
    files,
    flag_of,
    shared,
)
from fnop.adapters.cli.webhook_options import WebhookOptions
from fnop.adapters.common.durations import duration
from fnop.adapters.common.endings import EXIT_ERROR, EXIT_USAGE, fail, warn
from fnop.adapters.common.loading import LoadProblem, load
from fnop.adapters.common.logs import Console, configure
from fnop.adapters.common.operator_settings import signing
from fnop.adapters.common.plain import echo
from fnop.adapters.common.programs import guarded, interrupted, program_of
from fnop.adapters.common.spreading import SpreadingCommand
from fnop.adapters.common.streams import status_after
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.peers.peers import Member
from fnop.core.seam.commands import Say
from fnop.core.values.errors import number_of
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.runtime.clock import SystemClock, VirtualClock

if TYPE_CHECKING:
    from fnop.adapters.recordings.recording_files import Background, RingFiles
    from fnop.adapters.running.otel import Otel
    from fnop.adapters.serving.live_cluster import Live
    from fnop.adapters.testing.models import Models
    from fnop.interpreters.recording.format.recorder import Recorder
    from fnop.interpreters.runtime.watchdog import Watchdog
    from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["run"]

EXIT_UNSETTLED = 3

_TIME_IS_OVER = "the time of --for is over"


class RunCommand(SpreadingCommand):
    """`fnop run`; with `--kopf` it is another command."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """The context of the command; with --kopf, of Kopf's own command."""
        given = args[: args.index("--")] if "--" in args else args
        if "--kopf" not in given:
            return super().make_context(info_name, args, parent, **extra)
        from fnop.adapters.kopf.commands.cli import run as kopf_run

        rest = [*args]
        rest.remove("--kopf")
        extra["auto_envvar_prefix"] = "KOPF_RUN"
        return kopf_run.make_context(f"{info_name} --kopf", rest, parent, **extra)


@dataclass(frozen=True, kw_only=True)
class PeerOptions:
    """The operator's place among its peers."""

    peering: str | None = declared(
        shared(
            "peering",
            ". fnop waits until this object exists. Without this option, fnop uses the "
            'object "default" if it exists, and else has no peers',
        )
    )
    priority: int = declared(shared("priority", default=0))
    dev: bool = option("--dev", is_flag=True, help="The same as --priority=666.")
    peering_lifetime: int = option(
        "--peering-lifetime",
        type=duration(least=5, is_whole=True),
        default="60s",
        show_default=True,
        help="The time after which peers consider this operator dead, if it has not "
        "renewed its record (90s, 15m, 1h30m).",
    )
    standalone: bool = option(
        "--standalone", is_flag=True, help="Do not look for other operators."
    )

    def __post_init__(self) -> None:
        if self.standalone and (self.peering or self.dev):
            raise click.UsageError("use either --standalone, or --peering and --dev")

    def member(self, *, simulated: bool) -> Member | None:
        """The operator as a peer; a simulated one has peers only if it is asked to."""
        from fnop.adapters.kubernetes.identity import member_of

        return member_of(
            peering=self.peering,
            priority=self.priority,
            dev=self.dev,
            lifetime=self.peering_lifetime,
            standalone=self.standalone or (simulated and self.peering is None),
            identity="simulated" if simulated else None,
            wall=SystemClock().now().wall,
        )


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """Whether the run is recorded, and how."""

    record: str | None = option(
        "--record",
        type=click.Path(),
        metavar="PATH",
        help="Write a recording of the run: to this file, or with --record-mode=ring "
        "to files in this folder.",
    )
    record_mode: str = option(
        "--record-mode",
        type=click.Choice(["full", "ring"], case_sensitive=False),
        default="full",
        show_default=True,
        help="full: all of the run. ring: the last 64 MiB, or hour, written when a "
        "handler fails for good, when the operator ends with an error, and at SIGUSR1.",
    )
    redact: tuple[str, ...] = declared(
        shared("redact", "; in a recording it is a token")
    )

    def recorder(
        self, program: Program, *, simulated: bool
    ) -> Recorder | RingFiles | Background | None:
        """The writer of the recording; None if the run is not recorded."""
        given = click.get_current_context().get_parameter_source("record_mode")
        if self.record is None and given is ParameterSource.COMMANDLINE:
            raise click.UsageError("--record-mode needs --record")
        if self.redact and self.record is None:
            raise click.UsageError("--redact needs --record")
        if self.record is None:
            return None
        from fnop.adapters.recordings.recording_files import (
            Background,
            RingFiles,
            recorder_to,
        )
        from fnop.interpreters.recording.redaction import Redaction

        try:
            redaction = Redaction(secrets.token_bytes(16), program, self.redact)
        except ValueError as problem:
            fail(f"--redact: {problem}", EXIT_USAGE)
        try:
            if self.record_mode == "ring":
                return RingFiles(Path(self.record), program, self.redact, warn)
            recorder = recorder_to(Path(self.record), program, redaction, warn)
            # Simulated time does not wait for a disk: no step may be dropped for that
            # reason.
            return recorder if simulated else Background(recorder, warn)
        except OSError as problem:
            fail(f"cannot write the recording: {problem}", EXIT_USAGE)


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The lines of the log, and their looks."""

    verbose: bool = option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Log the details of fnop and of your modules, too.",
    )
    debug: bool = option(
        "-d", "--debug", is_flag=True, help="Log everything, of all libraries."
    )
    quiet: bool = declared(shared("quiet", ": warnings and errors only"))
    log_format: str = option(
        "--log-format",
        type=click.Choice(["text", "plain", "full", "json"], case_sensitive=False),
        default="text",
        show_default=True,
        help="How log lines look.",
    )
    log_prefix: bool | None = option(
        "--log-prefix/--no-log-prefix",
        default=None,
        help="Begin lines with the object they are about.",
    )

    @property
    def is_detailed(self) -> bool:
        return self.verbose or self.debug

    def console(self) -> Console:
        """The log, as these options want it."""
        level = "info"
        if self.debug:
            level = "debug"
        elif self.verbose:
            level = "verbose"
        elif self.quiet:
            level = "warning"
        return configure(
            level=level, format=self.log_format.lower(), prefix=self.log_prefix
        )


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `fnop run`; `seconds` is of virtual time."""

    paths: tuple[str, ...] = declared(files)
    module: tuple[str, ...] = declared(shared("module"))
    kopf: bool = declared(
        shared(
            "kopf",
            ". Its other options are those of `kopf run`: see fnop run --kopf --help",
        )
    )
    simulate: tuple[str, ...] = option(
        "--simulate",
        multiple=True,
        type=click.Path(exists=True, allow_dash=True),
        metavar="MANIFEST...",
        help="Run in a simulated cluster with the objects of these files and folders "
        "(- for standard input), on virtual time, and print the final objects.",
    )
    served: bool = option(
        "--served",
        is_flag=True,
        help="With --simulate: serve the simulated cluster on this machine, for the "
        "clients in the operator's own code, and run in real time until Ctrl-C.",
    )
    seconds: float | None = option(
        "--for",
        parameter="for",
        type=duration(),
        help="Stop a simulated run after this virtual time (90s, 15m, 1h30m); with "
        "--served, after this real time.",
    )
    calls: tuple[str, ...] = declared(shared("calls", ", in a simulated run"))
    real_calls: bool = option(
        "--real-calls", is_flag=True, help="Let a simulated run execute fnop.call."
    )
    selection: SelectionOptions
    wait_for_kinds: bool = option(
        "--wait-for-kinds",
        is_flag=True,
        help="If a handler's kind is ambiguous, or looks like a mistyped served kind, "
        "wait until the kind is clear. Without this option, fnop reports an error and "
        "ends.",
    )
    cluster: ClusterOptions
    peers: PeerOptions
    liveness: str | None = option(
        "-L",
        "--liveness",
        metavar="URL",
        help="Serve the liveness endpoint here, and the readiness endpoint at /readyz: "
        "http://0.0.0.0:8080/healthz.",
    )
    metrics: str | None = option(
        "--metrics",
        metavar="URL",
        help="Serve metrics for Prometheus here: http://0.0.0.0:9090/metrics. They "
        "need the extra fnop[metrics].",
    )
    otel: bool = option(
        "--otel",
        is_flag=True,
        help="Send traces by OpenTelemetry; the variables OTEL_* say where to. They "
        "need the extra fnop[otel].",
    )
    webhooks: WebhookOptions
    election: ElectionOptions
    name: str = declared(shared("name"))
    state_key_file: str | None = declared(
        shared(
            "state_key_file", ". Without a valid signature, fnop does not use a state"
        )
    )
    guard: bool = declared(guarded)
    recording: RecordOptions
    log: LogOptions

    def __post_init__(self) -> None:
        if self.simulate:
            _check_simulate(self.paths, self.module, self.simulate)
            _refuse_of_clusters(served=self.served)
            if self.served and (self.calls or self.real_calls):
                raise click.UsageError(
                    "with --served the operator calls its functions themselves; leave "
                    "out --calls and --real-calls"
                )
            return
        of_simulations = {
            "for": self.seconds,
            "served": self.served,
            "calls": self.calls,
            "real-calls": self.real_calls,
        }
        for flag, value in of_simulations.items():
            if value:
                raise click.UsageError(f"--{flag} needs --simulate")

    @property
    def is_simulated(self) -> bool:
        """Whether the run is on virtual time, within this process."""
        return bool(self.simulate) and not self.served

    def settings(self) -> Settings:
        """The operator's settings. The command ends for those that cannot be."""
        try:
            found = signing(self.selection.settings(self.name), self.state_key_file)
        except ValueError as problem:
            fail(str(problem), EXIT_USAGE)
        found = found.replace(
            guard=self.guard,
            explain=self.log.is_detailed,
            traces=self.otel or self.recording.record is not None,
            wait_for_kinds=self.wait_for_kinds,
            peering=self.peers.member(simulated=self.is_simulated),
        )
        candidate = self.election.candidate(found)
        if candidate is not None and self.is_simulated:
            candidate = replace(candidate, identity="simulated")
        found = found.replace(election=candidate)
        return found if self.is_simulated else self.webhooks.add_to(found)


def _check_simulate(
    paths: Sequence[str], modules: Sequence[str], manifests: Sequence[str]
) -> None:
    """Refuse a Python file among the manifests: it comes before `--simulate`."""
    found = [each for each in manifests if each.endswith(".py")]
    if found:
        given = [f"-m {each}" for each in modules]
        rest = [each for each in manifests if each not in found]
        operator = " ".join([*given, *paths, *found])
        raise click.UsageError(
            f"--simulate takes all the files that follow it, and {found[0]} is not a "
            f"manifest; write: fnop run {operator} --simulate {' '.join(rest) or '...'}"
        )


def _refuse_of_clusters(*, served: bool) -> None:
    """Refuse options of clusters in a simulation; their variables are ignored."""
    source = click.get_current_context().get_parameter_source
    of_servers = ("liveness", "metrics", "otel", *names_in(WebhookOptions))
    for name in (*(() if served else of_servers), *names_in(ClusterOptions)):
        if source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag_of(name)} cannot be used with --simulate")


@click.command(cls=RunCommand)
@takes(RunOptions)
@harmless()
def run(given: RunOptions) -> None:
    """Run the operator of some files until it is stopped.

    With --simulate it runs in a simulated cluster until nothing is left to do.

    \b
      fnop run operator.py -n default
      fnop run operator.py --simulate crd.yaml object.yaml
      fnop run operator.py --simulate crd.yaml object.yaml --served

    If no manifest defines a kind, fnop makes the definition from the kind's class.

    Each option has a variable: FNOP_RUN_NAMESPACE for --namespace.

    Exit status: 0 when stopped or settled; 1 when the operator cannot run; 2 for a
    wrong call, or when a handler's kind is ambiguous, or looks like a mistyped served
    kind; 3 when a simulated run has not settled. A simulated run also ends with 1 when
    a handler has failed for good, or when the cluster lacks a handler's kind.
    """
    if given.served:
        _run_served(given)
    _run(given)


def _run(given: RunOptions, live: Live | None = None) -> NoReturn:
    """Run the operator, and end the process; `live` is its served simulation."""
    console, clock = given.log.console(), VirtualClock()
    if given.is_simulated:
        console.simulate(lambda: clock.now().wall)
    program = program_of(given.paths, given.module, given.settings())
    has_admission = any(each.role in ADMISSION for each in program.handlers)
    if given.webhooks.webhooks and not has_admission:
        warn(
            "--webhooks serves nothing, as there are no admission handlers; declare "
            "one with @fnop.on.validate or @fnop.on.mutate"
        )
    recorder = given.recording.recorder(program, simulated=given.is_simulated)
    observers = () if recorder is None else (recorder,)
    asked = Asked(recorder, given.recording.record, warn)
    running = _Running(given, program, console, observers, asked)
    try:
        if given.is_simulated:
            status = _simulate(running, clock)
        elif live is not None:
            status = _serve_beside(running, live)
        else:
            status = _serve(running)
    finally:
        if recorder is not None:
            _close_recording(recorder)
    _leave(status)


@dataclass(frozen=True)
class _Running:
    """The parts of a run, on a cluster or in a simulation."""

    given: RunOptions
    program: Program
    console: Console
    observers: tuple[Any, ...]
    asked: Asked


def _close_recording(recorder: Any) -> None:
    recorder.close()
    if recorder.problem is not None:
        text = f"fnop: the recording is not complete: {recorder.problem}"
        echo(text, err=True)


def _leave(status: int) -> NoReturn:
    """End the process, even if a called function still blocks its thread."""
    if any(thread.name.startswith("fnop-call") for thread in threading.enumerate()):
        os._exit(status_after(status))
    sys.exit(status)


# ------------------------------------------------------------ simulated run


def _simulate(running: _Running, clock: VirtualClock) -> int:
    from fnop.adapters.common.manifests import dump_yaml, echo_yaml
    from fnop.adapters.common.repeats import Repeats
    from fnop.interpreters.runtime.watchdog import Watchdog
    from fnop.interpreters.simulation.scenario import final_objects

    given, console = running.given, running.console
    show: Callable[[Say, float], None] = partial(_show_line, console)
    repeats = None
    if not given.log.is_detailed:
        repeats = Repeats(show)
        show = repeats.say
    models = _models(given)

    def stands_still(text: str) -> None:  # in the watchdog's own thread
        console.say(Say("warning", text), at=clock.now().wall)

    watchdog, between = Watchdog(stands_still), AskedInSimulation(running.asked)
    observers = (*running.observers, between)
    sim = _simulated(running.program, clock, observers, models, show, watchdog)
    _apply_manifests(sim, running)
    try:
        with between.listening():
            settled = sim.settle(seconds=given.seconds)
    except KeyboardInterrupt as interrupt:
        after = f" after {sim.clock.elapsed:g} s of virtual time"
        return interrupted(interrupt, after)
    finally:
        watchdog.close()
        if repeats is not None:
            repeats.close(sim.clock.now().wall)
    echo_yaml(dump_yaml(thaw_json(final_objects(sim))))
    sim.machine.close()
    if models.unused:
        warn(models.unused)
    return _verdict(sim, settled)


def _simulated(
    program: Program,
    clock: VirtualClock,
    observers: tuple[Any, ...],
    models: Models,
    show: Callable[[Say, float], None],
    watchdog: Watchdog,
) -> SimulatedRun:
    """The operator in an empty cluster."""
    from fnop.interpreters.cluster import empty_cluster
    from fnop.interpreters.runtime.clock import EPOCH
    from fnop.interpreters.simulation.simulation import SimulatedRun

    return SimulatedRun(
        program,
        empty_cluster(now=EPOCH),
        clock=clock,
        observers=observers,
        calls=models,
        on_say=show,
        watchdog=watchdog,
    )


def _apply_manifests(sim: SimulatedRun, running: _Running) -> None:
    """Create the objects of the simulation."""
    from fnop.interpreters.simulation.scenario import ApplyProblem, apply_manifests

    try:
        for warning in apply_manifests(sim, _objects(running), begins=True):
            warn(warning)
    except ApplyProblem as problem:
        fail(str(problem))


def _objects(running: _Running) -> list[dict[str, Any]]:
    """The objects of --simulate, and the definitions of the operator's classes."""
    from fnop.adapters.common.manifests import ManifestProblem, read_manifests
    from fnop.adapters.definitions.class_kinds import definitions_for
    from fnop.adapters.definitions.problems import DefinitionProblem

    given = running.given
    operator = load(given.paths, given.module)  # they are loaded already
    try:
        objects = read_manifests(given.simulate, warn)
        if not objects:
            fail(f"there is no object in {', '.join(given.simulate)}")
        return objects + definitions_for(running.program.handlers, objects, operator)
    except ManifestProblem as problem:
        fail(str(problem))
    except DefinitionProblem as problem:
        fail(str(problem), EXIT_USAGE)


def _show_line(console: Console, say: Say, at: float) -> None:
    console.say(say, at=at)


def _models(given: RunOptions) -> Models:
    from fnop.adapters.testing.models import models_of

    try:
        return models_of(load(given.calls), real=given.real_calls)
    except LoadProblem as problem:
        fail(str(problem))


def _verdict(sim: SimulatedRun, settled: bool) -> int:
    from fnop.interpreters.simulation.simulation import unserved_selectors

    failures = sim.machine.state.notes.failures + sim.failures
    for sentence in () if failures else sim.calls.unmodelled.values():
        failures += 1  # its handler has caught the error
        warn(sentence)
    if sim.exit is not None and sim.exit.status:
        warn(sim.exit.reason)
        return int(sim.exit.status)
    is_mistaken = False
    for found in unserved_selectors(sim):
        is_mistaken |= found.is_mistake
        warn(found.sentence)
    if not settled:
        after = f"after {sim.clock.elapsed:g} s of virtual time"
        warn(f"not settled {after}: {sim.unsettled}")
    if failures:
        handlers = number_of(failures, "handler")
        warn(f"{handlers} failed for good; see the log above")
        return EXIT_ERROR
    if is_mistaken:
        return EXIT_ERROR
    return 0 if settled else EXIT_UNSETTLED


# -------------------------------------------------------- served simulation


def _run_served(given: RunOptions) -> NoReturn:
    """Run the operator next to a simulated cluster, which its own clients find.

    The cluster is there before the operator's modules, which may look for it.
    """
    from fnop.adapters.serving.live_cluster import served_here

    with served_here() as live:
        _run(given, live)


def _serve_beside(running: _Running, live: Live) -> int:
    """Serve until the end, and print the objects."""
    from fnop.adapters.common.manifests import dump_yaml, echo_yaml
    from fnop.adapters.serving.cluster_client import ObjectProblem

    try:
        live.populate(_objects(running))
    except ObjectProblem as problem:
        fail(str(problem))
    status = _serve(running)
    echo_yaml(dump_yaml(live.objects()))
    return status


# ------------------------------------------------------------- real cluster


def _serve(running: _Running) -> int:
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    gc.freeze()  # all present objects stay anyway
    try:
        runner = _loop_runner()
        status: int = runner(_serve_cluster(running))
    except ConfigurationProblem as problem:
        fail(str(problem))
    return status


def _loop_runner() -> Any:
    """uvloop if it is installed, as in Kopf; else asyncio's own loop."""
    try:
        return import_module("uvloop").run
    except ImportError:
        return asyncio.run


async def _serve_cluster(run: _Running) -> int:
    from fnop.adapters.running.embedding import (
        OperatorFailed,
        Place,
        serving,
        stopped_by_signals,
    )

    with _tracer_provider(run) as otel:
        place = Place(
            **run.given.cluster.connection(),
            liveness=run.given.liveness,
            metrics=run.given.metrics,
            otel=otel,
        )
        try:
            async with serving(
                run.program, place, observers=run.observers, say=run.console.say
            ) as running:
                with stopped_by_signals(running), run.asked.in_loop():
                    if run.given.seconds is not None:
                        loop = asyncio.get_running_loop()
                        loop.call_later(run.given.seconds, running.stop, _TIME_IS_OVER)
                    await running.ended()
        except OperatorFailed as problem:
            warn(str(problem))
            return problem.status
    return 0


@contextmanager
def _tracer_provider(run: _Running) -> Iterator[Otel | None]:
    """The receiver of spans, which sends the last ones at the end of the block."""
    if not run.given.otel:
        yield None
        return
    from fnop.adapters.running.otel import Otel, provider_of

    recording = run.given.recording
    # The files of a ring begin in the middle of the run, with steps of their own.
    is_whole = recording.record is not None and recording.record_mode == "full"
    provider = provider_of(run.program.settings.operator, os.environ)
    try:
        yield Otel(provider, str(recording.record) if is_whole else "")
    finally:
        provider.shutdown()
