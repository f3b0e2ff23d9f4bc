"""The command `fnop check`: an operator meets faults before production does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.check.options import CheckOptions
from fnop.adapters.check.places import SAVE
from fnop.adapters.cli.options import files, shared
from fnop.adapters.common.endings import EXIT_UNKNOWN, EXIT_USAGE, fail
from fnop.adapters.common.plain import echo

if TYPE_CHECKING:
    from fnop.adapters.kopf.checking.processes import Processes

__all__ = ["check", "options_of_check"]


def a_shard(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    """The numbers of `K/N`.

    >>> a_shard(None, None, "3/10")
    (3, 10)
    """
    first, slash, second = value.partition("/")
    if slash and first.isdecimal() and second.isdecimal():
        found = int(first), int(second)
        if 1 <= found[0] <= found[1]:
            return found
    raise click.BadParameter(
        f"{value!r} is not a shard; write 3/10 for the third of ten", ctx, param
    )


@click.command()
@files
@shared("kopf", ": its handlers run, and act in the simulated cluster")
@shared("module", "; with --kopf")
@shared("crds")
@shared("objects")
@shared("script")
@shared("calls")
@click.option(
    "--former",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The former code of the operator: also try upgrades from it.",
)
@shared("leader_elect", "; in faults the leader dies or pauses, and another one leads")
@click.option(
    "--depth",
    type=click.IntRange(1, 2),
    default=None,
    help="1: single faults alone; 2: also all pairs that are near each other. By "
    "default all single faults, and then a few likely pairs.",
)
@click.option(
    "--random",
    "randoms",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also try N random schedules of two to six faults for each script.",
)
@shared("budget", "; the first of each script has no fault, and counts")
@shared("seconds")
@click.option(
    "--fast",
    is_flag=True,
    help="Stop after 10 seconds, and leave out the runs under other hash seeds: for "
    "the inner loop.",
)
@click.option(
    "--fail-fast",
    is_flag=True,
    help="Stop at the first failure that is confirmed: for CI, and the inner loop.",
)
@shared("jobs", default=1, show_default=True)
@click.option(
    "--shard",
    callback=a_shard,
    default="1/1",
    metavar="K/N",
    help="Try the K-th of N parts: for CI matrices, and indexed Jobs.",
)
@click.option("--seed", default=0, metavar="N", help="The seed of random schedules.")
@click.option(
    "--property",
    "only",
    multiple=True,
    metavar="NAME",
    help="Judge by this property alone.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="Do not judge by this property: ignore findings that you accept.",
)
@shared("name")
@shared(
    "save",
    "; fnop first tries the failures that are there",
    default=SAVE,
    show_default=True,
)
@shared("output", type=click.Choice(["text", "json", "github"]))
@click.option(
    "--junit",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write the report as JUnit XML.",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also write the results of this shard into DIR, for --merge.",
)
@click.option(
    "--merge",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Report the results of all shards in DIR, and try nothing.",
)
@click.option(
    "--as-test",
    "as_test",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FAILURE",
    help="Print the recording of a failure as a test for pytest.",
)
@click.option("--digests", is_flag=True, hidden=True)
@shared("quiet", ": show no progress")
def check(paths: Sequence[str], as_test: str | None, **options: Any) -> None:
    """Try an operator with every fault, one by one, and judge each run.

    The operator runs in a simulated cluster. The faults are crashes before and after
    each write, lost replies, conflicts, refused writes, late watches, gaps in watches,
    and a user who does not wait. After the faults everything settles, and the operator
    restarts twice. Then fnop compares all objects with those of the run without faults.

    \b
      fnop check operator.py
      fnop check operator.py --crd crd.yaml --object object.yaml --jobs 2
      fnop check operator.py --depth 2 --budget 5000 --shard 3/10

    Each option has a variable: FNOP_CHECK_SHARD for --shard.

    Exit status: 0 if no property is violated, or this shard has no schedules; 1 if a
    property is violated; 2 for a wrong call, a place that cannot be written to, or an
    operator that cannot be checked; 3 if nothing is known: no fault occurred, the time
    was over before the first fault, or shards are missing.
    """
    if as_test is not None:
        _print_test(as_test, paths)
        return
    given = CheckOptions(**options)
    if given.merge is not None:
        from fnop.adapters.check.shards import merged

        sys.exit(merged(given))
    if not paths and not given.module:
        raise click.UsageError("name the operator's file: fnop check operator.py")
    if not given.kopf:
        if given.module:
            raise click.UsageError("-m needs --kopf")
        _check(paths, given)
        return
    _refuse_for_kopf(given)
    from fnop.adapters.kopf.checking.processes import checked_operator

    with checked_operator(paths, given.module) as processes:
        _check(paths or given.module, given, processes)


def _refuse_for_kopf(given: CheckOptions) -> None:
    """End the command for an option that a Kopf operator has no use for."""
    for flag, value in (
        ("--calls", given.calls),
        ("--former", given.former),
        ("--leader-elect", given.leader_elect),
    ):
        if value:
            raise click.UsageError(f"a check of a Kopf operator has no {flag}")
    if given.jobs > 1:
        raise click.UsageError(
            "the handlers of a Kopf operator run in one process; in place of --jobs "
            "start several commands with --shard 1/N to N/N"
        )


def _check(
    paths: Sequence[str], given: CheckOptions, processes: Processes | None = None
) -> None:
    """Check an operator; with `processes` it is one of Kopf."""
    from fnop.adapters.check.run import Checking, ended_by_sigterm, prints_aside
    from fnop.adapters.check.trials import digests_of

    with ended_by_sigterm():
        try:
            checking = Checking(paths, given, processes=processes)
        except KeyboardInterrupt:
            fail("interrupted before anything was tried", EXIT_UNKNOWN)
    if not given.digests:
        sys.exit(checking.run())
    if not checking.cases:
        fail("the time was over before anything was tried", EXIT_UNKNOWN)
    with prints_aside():
        digests = digests_of(checking.cases)
    echo(json.dumps(digests))


def options_of_check(**given: Any) -> CheckOptions:
    """The options of a call of the command with only these."""
    context = check.make_context("check", ["operator.py"], resilient_parsing=True)
    aside = ("as_test", "paths")
    usual = {key: each for key, each in context.params.items() if key not in aside}
    return CheckOptions(**{**usual, "shard": (1, 1), **given})


def _print_test(file: str, paths: Sequence[str]) -> None:
    from fnop.adapters.check.recordings import failure_in
    from fnop.adapters.check.tests import test_of

    found = failure_in(Path(file))
    if found is None:
        fail(
            f"{file} is not a recording of a failure: fnop check writes those",
            EXIT_USAGE,
        )
    if found.get("kopf"):
        fail(
            "a failure of a Kopf operator has no test: the next fnop check --kopf "
            f"tries it first, as long as {file} exists",
            EXIT_USAGE,
        )
    # Line by line: further lines of one text would be indented, and this is Python.
    for line in test_of(found, paths).removesuffix("\n").split("\n"):
        echo(line)
