"""`fnop plan`: the changes that an operator would make to a cluster now."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.cli.options import cluster_of, files, of_cluster, shared
from fnop.adapters.common.endings import EXIT_ERROR, fail, warn
from fnop.adapters.common.operator_settings import signing
from fnop.adapters.common.plain import echo, one_line
from fnop.adapters.common.programs import program_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.plan.audited import Audit
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Api, Unreachable
from fnop.interpreters.simulation.admission import has_admission

if TYPE_CHECKING:
    from fnop.interpreters.plan.facts import Plan
    from fnop.interpreters.plan.masking import Masking

__all__ = ["audited", "plan", "planned"]

EXIT_CHANGES, EXIT_FAIL_ON = 2, 3
_ROUNDS_MAX = 100
# The words of --fail-on.
FAIL_ON = ("create", "change", "delete", "raise", "call", "unread", "refused")


class WrongCall(click.UsageError):
    """A wrong call of a command whose status 2 means changes: an ordinary error."""

    exit_code = EXIT_ERROR


class PlanCommand(click.Command):
    """A command that ends with 1 for a wrong call."""

    wrong_call = WrongCall

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _convert_usage_error():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _convert_usage_error():
            return super().invoke(ctx)


@contextmanager
def _convert_usage_error() -> Iterator[None]:
    try:
        yield
    except click.UsageError as problem:
        raise WrongCall(problem.format_message(), problem.ctx) from problem


def _words(
    ctx: click.Context, param: click.Parameter, given: Sequence[str]
) -> tuple[str, ...]:
    """The words of an option that may be given several times, or with commas."""
    found = tuple(word for each in given for word in each.split(",") if word)
    for word in found:
        if word not in FAIL_ON:
            raise click.BadParameter(f"{word!r} is none of {', '.join(FAIL_ON)}")
    return found


@click.command(cls=PlanCommand)
@files
@shared("module")
@shared("namespace", ", or those of a pattern; repeat it for several")
@shared("all_namespaces", " (as without -n)")
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    help="Serve only objects with these labels, as in kubectl: app=db,tier!=test.",
)
@shared("name")
@shared("state_key_file")
@of_cluster
@click.option(
    "--rounds",
    type=click.IntRange(1, _ROUNDS_MAX),
    default=1,
    show_default=True,
    metavar="N",
    help="Go on after the first round, which is certain: before each further one the "
    "simulated controllers settle.",
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="End with 2 if something would change, or is not known, as terraform does.",
)
@click.option(
    "--fail-on",
    multiple=True,
    callback=_words,
    metavar="WORDS",
    help="End with 3 if the plan has one of these: create, change, delete, raise (a "
    "handler fails), call (a call is not made), unread (something may not be read), "
    "refused (the server refuses a request of --server-dry-run). Repeat it, or "
    "separate by commas.",
)
@click.option(
    "--takeover",
    is_flag=True,
    help="Tell which handlers would be called again on objects that a Kopf operator "
    "has handled, and end with 3 if there are any.",
)
@click.option(
    "--server-dry-run",
    is_flag=True,
    help="Also send the first round's requests with dryRun=All, and tell what the "
    "server refuses, or would store otherwise. That takes the right to write, and "
    "nothing is kept.",
)
@click.option(
    "--admission",
    is_flag=True,
    help="Audit instead: ask the admission handlers about each live object, as if a "
    "user wrote it now, and end with 2 if any would be refused or changed.",
)
@click.option(
    "--bookkeeping",
    is_flag=True,
    help="Show in full what fnop notes for itself: finalizer, state, condition, marks.",
)
@shared("redact", "; it is masked, as secrets are")
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Print the values of Secrets, and of fields such as passwords, in clear text.",
)
@shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
def plan(
    paths: Sequence[str],
    module: Sequence[str],
    namespace: Sequence[str],
    all_namespaces: bool,
    **options: Any,
) -> None:
    """Show what an operator would do to a cluster now, without doing it.

    The cluster is read, and never written: the right to get and list is enough.  From
    what was read the operator goes on in a simulated cluster.  Calls and impure
    handlers are not run, but listed.

    \b
      fnop plan operator.py -n prod
      fnop plan operator.py --rounds 3 -o json
      fnop plan operator.py --detailed-exitcode --fail-on delete,raise
      fnop plan operator.py --admission

    Exit status: 0 when there is a plan; 1 when there is none, as for an operator that
    would not serve, or a wrong call; 2 with --detailed-exitcode when something would
    change, or is not known, and with --admission when an object would be refused or
    changed; 3 when --fail-on or --takeover say so.
    """
    if options["admission"]:
        _check_audit(options)
    if "refused" in options["fail_on"] and not options["server_dry_run"]:
        raise click.UsageError("--fail-on refused needs --server-dry-run")
    if namespace and all_namespaces:
        raise click.UsageError("use either -n/--namespace or -A/--all-namespaces")
    try:
        settings = Settings(
            options["name"], tuple(namespace) or None, options["selector"]
        )
        settings = signing(settings, options["state_key_file"])
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    program = program_of(paths, module, settings, "fnop plan", wrong=EXIT_ERROR)
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.interpreters.plan.planner import PlanProblem
    from fnop.interpreters.runtime.reading import ReadProblem

    if options["admission"] and not has_admission(program):
        fail(f"{', '.join((*paths, *module))} declares no admission handlers")
    masking = _masking_of(program, options)
    found: Plan | Audit
    try:
        if options["admission"]:
            found = asyncio.run(_audit_cluster(program, masking, options))
        else:
            found = asyncio.run(_connected(program, masking, options))
    except Unreachable as problem:
        fail(f"the API server cannot be reached: {problem}")
    except (ConfigurationProblem, PlanProblem, ReadProblem) as problem:
        fail(str(problem))
    if isinstance(found, Audit):
        _print_audit(found, options)
        sys.exit(0 if found.is_clean else EXIT_CHANGES)
    _print(found, options)
    sys.exit(_status(found, options))


def _check_audit(options: dict[str, Any]) -> None:
    """Refuse the options of a plan for an audit, which plans nothing."""
    for name in ("detailed_exitcode", "fail_on", "takeover", "server_dry_run"):
        if options[name]:
            word = name.replace("_", "-")
            raise click.UsageError(f"--admission plans nothing: leave out --{word}")
    if options["rounds"] > 1:
        raise click.UsageError("--admission plans nothing: leave out --rounds")


async def _audit_cluster(
    program: Program, masking: Masking, options: dict[str, Any]
) -> Audit:
    from fnop.adapters.kubernetes.client import connect

    api = await connect(**cluster_of(options))
    try:
        return await audited(program, api, masking)
    finally:
        await api.close()


async def audited(program: Program, api: Api, masking: Masking | None = None) -> Audit:
    """The answers of admission handlers about a cluster's present objects."""
    import random

    from fnop.interpreters.plan.audit import Auditor

    auditor = Auditor(
        program,
        api,
        wall=SystemClock().now().wall,
        seed=secrets.token_hex(4),
        jitter=random.random,
        masking=masking,
    )
    return await auditor.audit()


def _print_audit(found: Audit, options: dict[str, Any]) -> None:
    from fnop.adapters.reports.audit_report import as_json, as_lines

    if options["output"].lower() == "json":
        echo(json.dumps(as_json(found)))
        return
    for line in as_lines(found):
        echo(one_line(line))


def _masking_of(program: Program, options: dict[str, Any]) -> Masking:
    from fnop.interpreters.plan.masking import Masking
    from fnop.interpreters.recording.redaction import Redaction

    try:
        redaction = Redaction(secrets.token_bytes(16), program, options["redact"])
    except ValueError as problem:
        fail(f"--redact: {problem}")
    return Masking(None if options["show_secrets"] else redaction)


async def _connected(
    program: Program, masking: Masking, options: dict[str, Any]
) -> Plan:
    from fnop.adapters.kubernetes.client import connect

    api = await connect(**cluster_of(options))
    try:
        return await planned(
            program,
            api,
            masking,
            rounds=options["rounds"],
            takeover=options["takeover"],
            dry_run=options["server_dry_run"],
        )
    finally:
        await api.close()


async def planned(
    program: Program,
    api: Api,
    masking: Masking | None = None,
    *,
    rounds: int = 1,
    takeover: bool = False,
    dry_run: bool = False,
) -> Plan:
    """The plan of a program for a cluster in its present state."""
    import random

    from fnop.interpreters.plan.planner import Planner

    planner = Planner(
        program,
        api,
        wall=SystemClock().now().wall,
        seed=secrets.token_hex(4),
        jitter=random.random,
        masking=masking,
    )
    return await planner.plan(rounds, takeover=takeover, dry_run=dry_run)


def _print(found: Plan, options: dict[str, Any]) -> None:
    from fnop.adapters.reports.plan_report import as_json, as_lines

    if options["output"].lower() == "json":
        # Escapes of JSON keep a terminal safe from foreign text.
        echo(json.dumps(as_json(found)))
        return
    for line in as_lines(found, own=options["bookkeeping"]):
        echo(one_line(line))


def _status(found: Plan, options: dict[str, Any]) -> int:
    reasons = [*_reasons(found, options["fail_on"])]
    if found.again:
        reasons.append(f"handlers would be called again: {len(found.again)}")
    for reason in reasons:
        warn(reason)
    if reasons:
        return EXIT_FAIL_ON
    if options["detailed_exitcode"] and not found.is_empty:
        return EXIT_CHANGES
    return 0


def _reasons(found: Plan, words: Sequence[str]) -> list[str]:
    """The reasons to reject the plan, a sentence for each matching word."""
    counts = {
        "create": (found.count("create"), "objects would be created"),
        "change": (found.count("change"), "objects would be changed"),
        "delete": (found.count("delete"), "objects would be deleted"),
        "raise": (found.failing, "handlers would fail"),
        "call": (len(found.calls), "calls were not made"),
        "unread": (len(found.unread), "kinds or objects may not be read"),
        "refused": (found.refused, "objects whose requests the server refuses"),
    }
    return [
        f"--fail-on {word}: {what}: {count}"
        for word, (count, what) in counts.items()
        if word in words and count
    ]
