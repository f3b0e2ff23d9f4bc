"""`fnop plan`: the changes that an operator would make to a cluster now."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import (
    ClusterOptions,
    SelectionOptions,
    files,
    shared,
)
from fnop.adapters.common.endings import EXIT_ERROR, fail, warn
from fnop.adapters.common.operator_settings import signing
from fnop.adapters.common.plain import echo, one_line
from fnop.adapters.common.programs import program_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.plan.audited import Audit
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import Api, Unreachable

if TYPE_CHECKING:
    from fnop.interpreters.plan.facts import Plan
    from fnop.interpreters.plan.masking import Masking
    from fnop.interpreters.runtime.machine import Machine

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


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of `fnop plan`."""

    paths: tuple[str, ...] = declared(files)
    module: tuple[str, ...] = declared(shared("module"))
    kopf: bool = declared(
        shared(
            "kopf",
            ". Its startup handlers run, as they choose the storages; no other handler "
            "runs",
        )
    )
    selection: SelectionOptions
    name: str = declared(shared("name"))
    state_key_file: str | None = declared(shared("state_key_file"))
    cluster: ClusterOptions
    rounds: int = option(
        "--rounds",
        type=click.IntRange(1, _ROUNDS_MAX),
        default=1,
        show_default=True,
        metavar="N",
        help="Plan N rounds. Round 1 is certain. Before each further round, fnop lets "
        "the simulated controllers settle, and real ones may act differently.",
    )
    detailed_exitcode: bool = option(
        "--detailed-exitcode",
        is_flag=True,
        help="End with 2 if the plan has a change, or a part of the plan is not known "
        "(terraform has the same option).",
    )
    fail_on: tuple[str, ...] = option(
        "--fail-on",
        multiple=True,
        callback=_words,
        metavar="WORDS",
        help="End with 3 if the plan has one of these: create, change, delete, raise "
        "(a handler fails), call (fnop plan did not make a call), unread (fnop has no "
        "right to read an object), refused (the server refuses a request of "
        "--server-dry-run). Repeat it, or separate by commas.",
    )
    takeover: bool = option(
        "--takeover",
        is_flag=True,
        help="Report which handlers fnop would call when it takes over from Kopf, and "
        "end with 3 if one has succeeded with its object's change before.",
    )
    server_dry_run: bool = option(
        "--server-dry-run",
        is_flag=True,
        help="Also send the first round's requests with dryRun=All, and report what "
        "the server refuses, or would store differently. These requests need the right "
        "to write, and the server stores nothing.",
    )
    admission: bool = option(
        "--admission",
        is_flag=True,
        help="Audit instead: ask the admission handlers about each live object, as if "
        "a user wrote it now, and end with 2 if they would refuse or change any.",
    )
    bookkeeping: bool = option(
        "--bookkeeping",
        is_flag=True,
        help="Show changes of fnop's own fields in full: finalizer, state, condition, "
        "marks.",
    )
    redact: tuple[str, ...] = declared(
        shared("redact", "; it is masked, as secrets are")
    )
    show_secrets: bool = option(
        "--show-secrets",
        is_flag=True,
        help="Print the values of Secrets, and of fields such as passwords, in clear "
        "text.",
    )
    output: str = declared(
        shared("output", type=click.Choice(["text", "json"], case_sensitive=False))
    )

    def __post_init__(self) -> None:
        if self.kopf and (self.state_key_file or self.selection.selector):
            raise click.UsageError(
                "a Kopf operator has no --selector and no --state-key-file"
            )
        if self.admission:
            self._check_audit()
        if "refused" in self.fail_on and not self.server_dry_run:
            raise click.UsageError("--fail-on refused needs --server-dry-run")

    def _check_audit(self) -> None:
        """Refuse the options of a plan for an audit, which plans nothing."""
        of_plans = {
            "detailed-exitcode": self.detailed_exitcode,
            "fail-on": self.fail_on,
            "takeover": self.takeover,
            "server-dry-run": self.server_dry_run,
            "rounds": self.rounds > 1,
        }
        for word, value in of_plans.items():
            if value:
                raise click.UsageError(f"--admission plans nothing: leave out --{word}")

    @property
    def is_json(self) -> bool:
        return self.output.lower() == "json"

    def settings(self) -> Settings:
        """The operator's settings. Raises `click.UsageError`."""
        try:
            return signing(self.selection.settings(self.name), self.state_key_file)
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem

    def masking(self, program: Program) -> Masking:
        """The fields that are masked. The command ends if one cannot be."""
        from fnop.interpreters.plan.masking import Masking
        from fnop.interpreters.recording.redaction import Redaction

        try:
            redaction = Redaction(secrets.token_bytes(16), program, self.redact)
        except ValueError as problem:
            fail(f"--redact: {problem}")
        return Masking(None if self.show_secrets else redaction)


@click.command(cls=PlanCommand)
@takes(PlanOptions)
def plan(given: PlanOptions) -> None:
    """Show what an operator would do to a cluster now, without doing it.

    fnop only reads the cluster: the right to get and list is enough.  Then fnop runs
    the operator in a simulated cluster that has the same objects.  fnop does not run
    called functions and impure handlers, but lists them.

    \b
      fnop plan operator.py -n prod
      fnop plan operator.py --rounds 3 -o json
      fnop plan operator.py --detailed-exitcode --fail-on delete,raise
      fnop plan operator.py --admission
      fnop plan --kopf operator.py --takeover

    Exit status: 0 when there is a plan; 1 when there is no plan, for example because
    the operator would not serve, or for a wrong call; 2 with --detailed-exitcode when
    something would change, or is not known, and with --admission when an object would
    be refused or changed; 3 when the plan has what --fail-on names, or --takeover finds
    handlers that would be called again, changes that would not be handled, or
    objects that it may not read, or cannot find.
    """
    with _program(given) as (program, begins):
        found = _planned(program, begins, given)
    if isinstance(found, Audit):
        _print_audit(found, given)
        sys.exit(0 if found.is_clean else EXIT_CHANGES)
    _print(found, given)
    sys.exit(_status(found, given))


Begins: TypeAlias = "Callable[[Machine], None]"


def _does_nothing(machine: Machine) -> None:
    pass


@contextmanager
def _program(given: PlanOptions) -> Iterator[tuple[Program, Begins]]:
    """The operator, and what it does when a rehearsal begins.

    One of Kopf lives as long as the block.
    """
    if not given.kopf:
        paths, settings = given.paths, given.settings()
        words = (paths, given.module, settings, "fnop plan")
        yield program_of(*words, wrong=EXIT_ERROR), _does_nothing
        return
    from fnop.adapters.kopf.commands.planning import planned_operator

    namespaces = given.selection.namespaces or ()
    with planned_operator(given.paths, given.module, namespaces) as found:
        yield found


def _planned(program: Program, begins: Begins, given: PlanOptions) -> Plan | Audit:
    """The plan or the audit; the command ends if there can be none."""
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.interpreters.plan.planner import PlanProblem
    from fnop.interpreters.runtime.reading import ReadProblem
    from fnop.interpreters.simulation.admission import has_admission

    if given.admission and not has_admission(program):
        fail(
            f"{', '.join((*given.paths, *given.module))} declares no admission handlers"
        )
    masking = given.masking(program)
    try:
        if given.admission:
            return asyncio.run(_audit_cluster(program, masking, given))
        return asyncio.run(_connected(program, begins, masking, given))
    except Unreachable as problem:
        fail(f"the API server cannot be reached: {problem}")
    except (ConfigurationProblem, PlanProblem, ReadProblem) as problem:
        fail(str(problem))


async def _audit_cluster(
    program: Program, masking: Masking, given: PlanOptions
) -> Audit:
    async with given.cluster.connected() as api:
        return await audited(program, api, masking)


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


def _print_audit(found: Audit, given: PlanOptions) -> None:
    from fnop.adapters.reports.audit_report import as_json, as_lines

    if given.is_json:
        echo(json.dumps(as_json(found)))
        return
    for line in as_lines(found):
        echo(one_line(line))


async def _connected(
    program: Program, begins: Begins, masking: Masking, given: PlanOptions
) -> Plan:
    async with given.cluster.connected() as api:
        return await planned(
            program,
            api,
            masking,
            rounds=given.rounds,
            takeover=given.takeover,
            dry_run=given.server_dry_run,
            begins=begins,
        )


async def planned(
    program: Program,
    api: Api,
    masking: Masking | None = None,
    *,
    rounds: int = 1,
    takeover: bool = False,
    dry_run: bool = False,
    begins: Begins = _does_nothing,
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
        begins=begins,
    )
    return await planner.plan(rounds, takeover=takeover, dry_run=dry_run)


def _print(found: Plan, given: PlanOptions) -> None:
    from fnop.adapters.reports.plan_report import as_json, as_lines

    if given.is_json:
        # Escapes of JSON keep a terminal safe from foreign text.
        echo(json.dumps(as_json(found)))
        return
    for line in as_lines(found, own=given.bookkeeping):
        echo(one_line(line))


def _status(found: Plan, given: PlanOptions) -> int:
    reasons = [*_reasons(found, given.fail_on)]
    if found.again:
        names = ", ".join(dict.fromkeys(each.source.handler for each in found.again))
        reasons.append(
            f"--takeover: handlers would be called again: {names}; do the settings "
            "name the places where Kopf has stored the state of their objects?"
        )
    if found.unfound:
        reasons.append(
            f"--takeover: objects whose state is not found: {len(found.unfound)}; let "
            "the settings name the places where Kopf has stored it"
        )
    if found.due is not None and found.unlisted:
        names = ", ".join(each.label for each in found.unlisted)
        reasons.append(
            f"--takeover: not known for {names}: grant the right to list them"
        )
    if found.due is not None:
        reasons += [f"--takeover: {each}" for each in found.absent]
    for reason in reasons:
        warn(reason)
    if reasons:
        return EXIT_FAIL_ON
    if given.detailed_exitcode and not found.is_empty:
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
