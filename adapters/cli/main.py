"""The command `fnop`.

Each command is short: read the options, assemble the parts, report the result. Modules
that take long to import are imported by the command that needs them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

import fnop
from fnop.adapters.cli.check import check
from fnop.adapters.cli.cluster import cluster
from fnop.adapters.cli.crd import crd
from fnop.adapters.cli.diff import diff
from fnop.adapters.cli.dump_signal import Asked, AskedInSimulation, harmless
from fnop.adapters.cli.explain import explain
from fnop.adapters.cli.freeze import freeze, resume
from fnop.adapters.cli.new import new
from fnop.adapters.cli.olm import olm
from fnop.adapters.cli.options import (
    OF_CLUSTER,
    cluster_of,
    files,
    flag_of,
    of_cluster,
    shared,
)
from fnop.adapters.cli.plan import plan
from fnop.adapters.cli.rbac import rbac
from fnop.adapters.cli.replay import replay
from fnop.adapters.cli.uninstall import uninstall
from fnop.adapters.cli.webhook_options import OF_WEBHOOKS, of_webhooks, with_webhooks
from fnop.adapters.cli.webhooks import webhooks
from fnop.adapters.common.collector import calm_collector
from fnop.adapters.common.endings import EXIT_ERROR, EXIT_USAGE, fail, warn
from fnop.adapters.common.loading import LoadProblem, load
from fnop.adapters.common.logs import Console, configure
from fnop.adapters.common.operator_settings import signing
from fnop.adapters.common.plain import echo
from fnop.adapters.common.programs import guarded, interrupted, program_of
from fnop.adapters.common.streams import prepared, status_after
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.core.values.errors import nearest, number_of
from fnop.effects.values import thaw_json
from fnop.interpreters.runtime.clock import SystemClock, VirtualClock

if TYPE_CHECKING:
    from fnop.adapters.recordings.recording_files import Background, RingFiles
    from fnop.adapters.testing.models import Models
    from fnop.interpreters.recording.format.recorder import Recorder

__all__ = ["main"]

EXIT_UNSETTLED = 3

_PREFIX = "FNOP"
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(text: str) -> float:
    """Seconds, or numbers with units.

    >>> duration("90"), duration("1h30m")
    (90.0, 5400.0)
    """
    if not re.fullmatch(r"(\d+(\.\d+)?[smhd]?)+", text.strip()):
        raise click.BadParameter(
            f"{text!r} is not a duration; write 90, 90s, 15m or 1h30m"
        )
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


class SpreadingCommand(click.Command):
    """A command whose `--simulate` takes all the files that follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        spreading = False
        for arg, following in zip(args, [*args, "--"][1:], strict=True):
            if arg == "--simulate":
                spreading = True
                if _is_option(following):
                    raise click.UsageError("--simulate needs a manifest", ctx)
                continue
            spreading = spreading and not _is_option(arg)
            spread += ["--simulate", arg] if spreading else [arg]
        return super().parse_args(ctx, spread)


def _is_option(arg: str) -> bool:
    return arg.startswith("-") and arg != "-"


class Commands(click.Group):
    """The commands; Ctrl-C ends any of them with a sentence."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command as a process does, with streams that take any text."""
        with prepared():
            return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which may end itself differently when it is interrupted."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            sys.exit(interrupted(interrupt))


@click.group(cls=Commands, context_settings={"auto_envvar_prefix": _PREFIX})
@click.version_option(fnop.__version__, prog_name="fnop")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Kubernetes operators as pure functions.

    An operator is a Python file with handlers.  `fnop run` executes it, on a real
    cluster or in a simulated one; `fnop replay` decides a recorded run again.
    """
    calm_collector()
    name = ctx.invoked_subcommand
    command = None if name is None else main.commands.get(name)
    if command is not None:
        _check_variables(command)


def _check_variables(command: click.Command) -> None:
    """Refuse mistyped variables, which would have no effect."""
    prefix = f"{_PREFIX}_{command.name}_".upper()
    known = {f"{prefix}{each.name}".upper() for each in command.params}
    for name in sorted(os.environ):
        if not name.startswith(prefix) or name in known or _OF_SERVICE.search(name):
            continue
        near = nearest(name, known)
        hint = f"; did you mean {near}?" if near else ""
        wrong = getattr(command, "wrong_call", click.UsageError)
        raise wrong(
            f"the variable {name} belongs to no option of fnop {command.name}{hint}"
        )


# Kubernetes sets such variables for a Service, including one called fnop-run.
_OF_SERVICE = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_\d+_|$)")


main.add_command(check)
main.add_command(cluster)
main.add_command(crd)
main.add_command(diff)
main.add_command(explain)
main.add_command(freeze)
main.add_command(new)
main.add_command(olm)
main.add_command(plan)
main.add_command(rbac)
main.add_command(replay)
main.add_command(resume)
main.add_command(uninstall)
main.add_command(webhooks)


@main.command(cls=SpreadingCommand)
@files
@shared("module")
@click.option(
    "--simulate",
    multiple=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="MANIFEST...",
    help="Run in a simulated cluster with the objects of these files and folders "
    "(- for standard input), on virtual time, and print the final objects.",
)
@click.option(
    "--for",
    type=duration,
    help="Stop a simulated run after so much virtual time (90s, 15m, 1h30m).",
)
@shared("calls", ", in a simulated run")
@click.option(
    "--real-calls", is_flag=True, help="Let a simulated run execute fnop.call."
)
@shared("namespace", ", or those of a pattern; repeat it for several")
@shared("all_namespaces", " (as without -n)")
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    help="Serve only objects with these labels, as in kubectl: app=db,tier!=test.",
)
@click.option(
    "--wait-for-kinds",
    is_flag=True,
    help="Wait for kinds that are ambiguous or like a served one, which else end the "
    "start as typing errors.",
)
@of_cluster
@shared(
    "peering",
    ', which is waited for; without this option "default" is used, if it exists',
)
@shared("priority", default=0)
@click.option("--dev", is_flag=True, help="The same as --priority=666.")
@click.option(
    "--peering-lifetime",
    type=click.IntRange(min=5),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long peers take this operator for alive without a sign of life.",
)
@click.option("--standalone", is_flag=True, help="Do not look for other operators.")
@click.option(
    "-L",
    "--liveness",
    metavar="URL",
    help="Serve the liveness endpoint here, and the readiness endpoint at /readyz: "
    "http://0.0.0.0:8080/healthz.",
)
@click.option(
    "--metrics",
    metavar="URL",
    help="Serve metrics for Prometheus here: http://0.0.0.0:9090/metrics.",
)
@of_webhooks
@shared("leader_elect")
@shared("lease_namespace")
@shared("name")
@shared("state_key_file", ". No state is believed without a signature")
@click.option(
    "--record",
    type=click.Path(),
    metavar="PATH",
    help="Write a recording of the run: to this file, or with --record-mode=ring to "
    "files in this folder.",
)
@click.option(
    "--record-mode",
    type=click.Choice(["full", "ring"], case_sensitive=False),
    default="full",
    show_default=True,
    help="full: all of the run. ring: the last 64 MiB, or hour, written when a handler "
    "fails for good, when the operator ends with an error, and at SIGUSR1.",
)
@guarded
@shared("redact", "; in a recording it is a token")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Log the details of fnop and of your modules, too.",
)
@click.option("-d", "--debug", is_flag=True, help="Log everything, of all libraries.")
@shared("quiet", ": warnings and errors only")
@click.option(
    "--log-format",
    type=click.Choice(["text", "plain", "full", "json"], case_sensitive=False),
    default="text",
    show_default=True,
    help="How log lines look.",
)
@click.option(
    "--log-prefix/--no-log-prefix",
    default=None,
    help="Begin lines with the object they are about.",
)
@harmless()
def run(
    paths: Sequence[str],
    module: Sequence[str],
    simulate: Sequence[str],
    namespace: Sequence[str],
    all_namespaces: bool,
    selector: str,
    name: str,
    record: str | None,
    redact: Sequence[str],
    **options: Any,
) -> None:
    """Run the operator of some files until it is stopped.

    With --simulate it runs in a simulated cluster until nothing is left to do.

    \b
      fnop run operator.py -n default
      fnop run operator.py --simulate crd.yaml object.yaml

    Without its CRD a kind has the definition of its class, if there is one.

    Each option has a variable: FNOP_RUN_NAMESPACE for --namespace.

    Exit status: 0 when stopped or settled; 1 when the operator cannot run, or in a
    simulated run a handler failed for good, or is for a kind that is not there; 2 for
    a wrong call, or for kinds that are ambiguous or mistyped; 3 when a simulated run
    has not settled.
    """
    if namespace and all_namespaces:
        raise click.UsageError("use either -n/--namespace or -A/--all-namespaces")
    if simulate:
        _check_simulate(paths, module, simulate)
        _refuse_of_clusters()
    else:
        _refuse_of_simulations(options)
    console, clock = _console(options), VirtualClock()
    if simulate:
        console.simulate(lambda: clock.now().wall)
    settings = _settings(name, tuple(namespace) or None, selector)
    explain = options["verbose"] or options["debug"]
    settings = settings.replace(
        guard=options["guard"],
        explain=explain,
        traces=record is not None,
        wait_for_kinds=options["wait_for_kinds"],
    )
    settings = _settings_for_signing(settings, options["state_key_file"])
    settings = _add_peering(settings, simulated=bool(simulate), options=options)
    if not simulate:
        settings = with_webhooks(settings, options)
    program = program_of(paths, module, settings)
    if options["webhooks"] and not any(e.role in ADMISSION for e in program.handlers):
        warn(
            "--webhooks serves nothing, as there are no admission handlers; declare "
            "one with @fnop.on.validate or @fnop.on.mutate"
        )
    given = click.get_current_context().get_parameter_source("record_mode")
    if record is None and given is ParameterSource.COMMANDLINE:
        raise click.UsageError("--record-mode needs --record")
    if redact and record is None:
        raise click.UsageError("--redact needs --record")
    recorder = None
    if record is not None:
        mode, is_simulated = options["record_mode"], bool(simulate)
        recorder = _recorder(record, mode, program, redact, simulated=is_simulated)
    observers = () if recorder is None else (recorder,)
    asked = Asked(recorder, record, warn)
    try:
        if simulate:
            own = load(paths, module)  # they are loaded already
            status = _simulate(
                program, own, simulate, console, clock, observers, asked, options
            )
        else:
            status = _serve(program, console, observers, asked, options)
    finally:
        if recorder is not None:
            _close_recording(recorder)
    _leave(status)


def _refuse_of_simulations(options: dict[str, Any]) -> None:
    for name in ("for", "calls", "real_calls"):
        if options[name]:
            option = name.replace("_", "-")
            raise click.UsageError(f"--{option} needs --simulate")


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


def _refuse_of_clusters() -> None:
    """Refuse options of clusters in a simulation; their variables are ignored."""
    source = click.get_current_context().get_parameter_source
    for name in ("liveness", "metrics", *OF_WEBHOOKS, *OF_CLUSTER):
        if source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag_of(name)} cannot be used with --simulate")


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


def _console(options: dict[str, Any]) -> Console:
    level = "info"
    if options["debug"]:
        level = "debug"
    elif options["verbose"]:
        level = "verbose"
    elif options["quiet"]:
        level = "warning"
    return configure(
        level=level, format=options["log_format"].lower(), prefix=options["log_prefix"]
    )


def _settings(
    operator: str, namespaces: tuple[str, ...] | None, selector: str
) -> Settings:
    try:
        return Settings(operator, namespaces, selector)
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)


def _settings_for_signing(settings: Settings, path: str | None) -> Settings:
    try:
        return signing(settings, path)
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)


def _add_peering(
    settings: Settings, *, simulated: bool, options: dict[str, Any]
) -> Settings:
    """Add peering and candidacy to the settings; neither in a simulation."""
    from fnop.adapters.kubernetes.identity import candidate_of, member_of

    peering, alone = options["peering"], options["standalone"]
    if alone and (peering or options["dev"]):
        raise click.UsageError("use either --standalone, or --peering and --dev")
    identity = "simulated" if simulated else None
    member = member_of(
        peering=peering,
        priority=options["priority"],
        dev=options["dev"],
        lifetime=options["peering_lifetime"],
        standalone=alone or (simulated and peering is None),
        identity=identity,
        wall=SystemClock().now().wall,
    )
    candidate = None
    where = options["lease_namespace"]
    if where and not options["leader_elect"]:
        raise click.UsageError("--lease-namespace needs --leader-elect")
    if options["leader_elect"]:
        candidate = candidate_of(settings.operator, settings.namespaces, where)
        if simulated:
            candidate = replace(candidate, identity="simulated")
    return settings.replace(peering=member, election=candidate)


def _recorder(
    path: str, mode: str, program: Program, fields: Sequence[str], *, simulated: bool
) -> Recorder | RingFiles | Background:
    from fnop.adapters.recordings.recording_files import (
        Background,
        RingFiles,
        recorder_to,
    )
    from fnop.interpreters.recording.redaction import Redaction

    try:
        redaction = Redaction(secrets.token_bytes(16), program, fields)
    except ValueError as problem:
        fail(f"--redact: {problem}", EXIT_USAGE)
    try:
        if mode == "ring":
            return RingFiles(Path(path), program, fields, warn)
        recorder = recorder_to(Path(path), program, redaction, warn)
        # Simulated time does not wait for a disk: no step may be dropped for that
        # reason.
        return recorder if simulated else Background(recorder, warn)
    except OSError as problem:
        fail(f"cannot write the recording: {problem}", EXIT_USAGE)


# ------------------------------------------------------------ simulated run


def _simulate(
    program: Program,
    operator: Sequence[ModuleType],
    manifests: Sequence[str],
    console: Console,
    clock: VirtualClock,
    observers: tuple[Any, ...],
    asked: Asked,
    options: dict[str, Any],
) -> int:
    from fnop.adapters.common.manifests import (
        ManifestProblem,
        dump_yaml,
        echo_yaml,
        read_manifests,
    )
    from fnop.adapters.common.repeats import Repeats
    from fnop.adapters.definitions.class_kinds import definitions_for
    from fnop.adapters.definitions.problems import DefinitionProblem
    from fnop.interpreters.cluster import Off, empty_cluster, paced
    from fnop.interpreters.runtime.clock import EPOCH
    from fnop.interpreters.runtime.watchdog import Watchdog
    from fnop.interpreters.simulation.scenario import (
        ApplyProblem,
        apply_manifests,
        final_objects,
    )
    from fnop.interpreters.simulation.simulation import SimulatedRun

    show: Callable[[Say, float], None] = partial(_show_line, console)
    repeats = None
    if not options["verbose"] and not options["debug"]:
        repeats = Repeats(show)
        show = repeats.say
    models = _models(options)

    def stands_still(text: str) -> None:  # in the watchdog's own thread
        console.say(Say("warning", text), at=clock.now().wall)

    watchdog, between = Watchdog(stands_still), AskedInSimulation(asked)
    # Pods stay as the operator and its manifests make them, unless they must write
    # logs.
    reads_logs = any(each.log is not None for each in program.handlers)
    paces = {} if reads_logs else {"kubelet": Off()}
    sim = SimulatedRun(
        program,
        paced(empty_cluster(now=EPOCH), paces),
        clock=clock,
        observers=(*observers, between),
        calls=models,
        on_say=show,
        watchdog=watchdog,
    )
    try:
        objects = read_manifests(manifests, warn)
        if not objects:
            fail(f"there is no object in {', '.join(manifests)}")
        objects += definitions_for(program.handlers, objects, operator)
        for warning in apply_manifests(sim, objects, begins=True):
            warn(warning)
    except (ManifestProblem, ApplyProblem) as problem:
        fail(str(problem))
    except DefinitionProblem as problem:
        fail(str(problem), EXIT_USAGE)
    try:
        with between.listening():
            settled = sim.settle(seconds=options["for"])
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


def _show_line(console: Console, say: Say, at: float) -> None:
    console.say(say, at=at)


def _models(options: dict[str, Any]) -> Models:
    from fnop.adapters.testing.models import models_of

    try:
        return models_of(load(options["calls"]), real=options["real_calls"])
    except LoadProblem as problem:
        fail(str(problem))


def _verdict(sim: Any, settled: bool) -> int:
    failures = sim.machine.state.notes.failures + sim.failures
    for sentence in () if failures else sim.unmodelled.values():
        failures += 1  # its handler has caught the error
        warn(sentence)
    if sim.exit is not None and sim.exit.status:
        warn(sim.exit.reason)
        return int(sim.exit.status)
    is_mistaken = False
    for found in sim.unserved():
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


# ------------------------------------------------------------- real cluster


def _serve(
    program: Program,
    console: Console,
    observers: tuple[Any, ...],
    asked: Asked,
    options: dict[str, Any],
) -> int:
    from fnop.adapters.kubernetes.client import ConfigurationProblem

    gc.collect()
    gc.freeze()  # all present objects stay anyway
    try:
        runner = _loop_runner()
        serves = _serve_cluster(program, console, observers, asked, options)
        status: int = runner(serves)
    except ConfigurationProblem as problem:
        fail(str(problem))
    return status


def _loop_runner() -> Any:
    """uvloop if it is installed, as in Kopf; else asyncio's own loop."""
    try:
        return import_module("uvloop").run
    except ImportError:
        return asyncio.run


async def _serve_cluster(
    program: Program,
    console: Console,
    observers: tuple[Any, ...],
    asked: Asked,
    options: dict[str, Any],
) -> int:
    from fnop.adapters.running.embedding import (
        OperatorFailed,
        serving,
        stopped_by_signals,
    )

    try:
        async with serving(
            program,
            **cluster_of(options),
            liveness=options["liveness"],
            metrics=options["metrics"],
            observers=observers,
            say=console.say,
        ) as running:
            with stopped_by_signals(running), asked.in_loop():
                await running.ended()
    except OperatorFailed as problem:
        warn(str(problem))
        return problem.status
    return 0
