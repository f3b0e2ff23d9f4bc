"""The command `fnop rbac`: the least rights of an operator, printed or verified."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.cli.options import (
    OF_CLUSTER,
    cluster_of,
    files,
    flag_of,
    of_cluster,
    shared,
)
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.core.handlers.program.rights import by_right

if TYPE_CHECKING:
    from fnop.adapters.generate.rights import Account, Study, Wishes
    from fnop.adapters.generate.roles import Difference, Grants

__all__ = ["rbac", "study_options", "study_with", "wishes_of"]

EXIT_DIFFERENT = 1


def study_options(
    *, without: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of commands that need the rights of an operator."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, option in reversed(_OPTIONS.items()):
            if name not in without:
                command = option(command)
        return command

    return decorate


_OPTIONS: dict[str, Callable[..., Any]] = {
    "paths": files,
    "name": shared("name"),
    "namespace": shared("namespace", ", or those of a pattern; repeat it for several"),
    "all_namespaces": shared("all_namespaces", " (as without -n)"),
    "service_account": click.option(
        "--service-account",
        metavar="[NAMESPACE/]NAME",
        help="The account that its pod runs under; by default fnop-operator, in the "
        "namespace of that name, or the operator's --name.",
    ),
    "leader_elect": shared("leader_elect"),
    "lease_namespace": shared("lease_namespace"),
    "peering": click.option(
        "--peering", is_flag=True, help="It meets other operators in peering objects."
    ),
    "webhook_name": shared("webhook_name"),
    "webhook_events": shared("webhook_events"),
    "crds": shared("crds"),
    "objects": shared("objects"),
    "script": shared("script"),
    "calls": shared("calls"),
    "seen": click.option(
        "--seen",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False),
        metavar="RECORDING",
        help="A recording of a real run, which may have asked for more.",
    ),
    "budget": shared(
        "budget",
        "; 0 for the runs without faults alone",
        type=click.IntRange(min=0),
    ),
    "quiet": shared("quiet", ": not what was made up or unseen"),
}


def wishes_of(paths: Sequence[str], options: dict[str, Any], command: str) -> Wishes:
    """The wishes in the options."""
    from fnop.adapters.generate.rights import Wishes, account_of

    if not paths:
        raise click.UsageError(f"name the operator's file: {command} operator.py")
    if options["namespace"] and options["all_namespaces"]:
        raise click.UsageError("use either -n/--namespace or -A/--all-namespaces")
    if options["lease_namespace"] and not options["leader_elect"]:
        raise click.UsageError("--lease-namespace needs --leader-elect")
    return Wishes(
        tuple(paths),
        account_of(options["service_account"], options["name"]),
        options["name"],
        tuple(options["namespace"]) or None,
        options["leader_elect"],
        options["lease_namespace"],
        options["peering"],
        options["crds"],
        options["objects"],
        options["script"],
        options["calls"],
        options["budget"],
        options["seen"],
        options["webhook_name"],
        options["webhook_events"],
    )


def study_with(wishes: Wishes, *, quiet: bool) -> Study:
    """Study the operator; report unknown parts, or the reason of a failure."""
    from fnop.adapters.common.loading import LoadProblem
    from fnop.adapters.common.manifests import ManifestProblem
    from fnop.adapters.generate.rights import RightsProblem, studied
    from fnop.adapters.testing.cases import CheckProblem
    from fnop.interpreters.check.state.scripts import ScriptProblem
    from fnop.interpreters.simulation.actions import ActionRefused
    from fnop.interpreters.simulation.scenario import ApplyProblem

    try:
        with _progress(quiet) as step:
            found = studied(wishes, step)
    except (RightsProblem, CheckProblem, LoadProblem) as problem:
        fail(str(problem), EXIT_USAGE)
    except (ManifestProblem, ScriptProblem) as problem:
        fail(str(problem), EXIT_USAGE)
    except (ActionRefused, ApplyProblem) as problem:
        fail(f"{problem} (as --crd or --object)", EXIT_USAGE)
    except ValueError as problem:  # of a name, or of a namespace
        fail(str(problem), EXIT_USAGE)
    if not quiet:
        for note in (*found.notes, *found.unknown):
            warn(note)
    return found


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(
        length=1, label="schedules", file=sys.stderr, hidden=hidden
    ) as bar:

        def step(done: int, of: int) -> None:
            bar.length = of
            bar.update(1)

        yield step


@click.command()
@study_options()
@click.option("--verify", is_flag=True, help="Compare with the rights that there are.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="PATH",
    help="With --verify: manifests with the roles and bindings; without it the cluster "
    "is asked what its present user may do.",
)
@of_cluster
def rbac(paths: Sequence[str], verify: bool, **options: Any) -> None:
    """Print the least rights that an operator needs, as YAML; or verify them.

    Its scripts are run in a simulated cluster, as `fnop check` does, and each with one
    fault of every sort: a request that is made is a right that is needed. Parts of the
    operator that did not run are named.

    \b
      fnop rbac operator.py | kubectl apply -f -
      fnop rbac operator.py -n team-a --service-account team-a/operator
      fnop rbac operator.py --verify --against deploy.yaml

    With --verify each missing right, and each superfluous one, is one line.

    Each option has a variable: FNOP_RBAC_NAMESPACE for --namespace.

    Exit status: 0 when printed, or when nothing is missing or superfluous; 1 when
    something is, or could not be found out; 2 for a wrong call, or an operator that
    cannot be run.
    """
    if not verify:
        for name in ("against", *OF_CLUSTER):
            if options[name]:
                raise click.UsageError(f"{flag_of(name)} needs --verify")
    grants = None
    if options["against"]:
        grants, account = _read_grants(options)
        # Some rights are in the namespace of the account.
        options["service_account"] = str(account)
    wishes = wishes_of(paths, options, "fnop rbac")
    found = study_with(wishes, quiet=options["quiet"])
    if not verify:
        from fnop.adapters.generate.roles import shown

        # Line by line: further lines of one text would be indented.
        for line in shown(found.needs, wishes.account).splitlines():
            echo(line)
        return
    if grants is None:
        difference = _compare_with_cluster(found, options)
    else:
        difference = _compare_with_grants(found, grants)
    sys.exit(_verdict(difference, found))


def _read_grants(options: dict[str, Any]) -> tuple[Grants, Account]:
    """The rights in the manifests, and the account that has them."""
    from fnop.adapters.common.manifests import ManifestProblem, read_manifests
    from fnop.adapters.generate.rights import account_of
    from fnop.adapters.generate.roles import NoAccount, granted_by, only_account

    given = options["service_account"]
    account = account_of(given, options["name"]) if given else None
    try:
        manifests = read_manifests(options["against"], warn)
        account = account or only_account(manifests)
        return granted_by(manifests, account), account
    except (ManifestProblem, NoAccount) as problem:
        fail(str(problem), EXIT_USAGE)


def _compare_with_grants(study: Study, grants: Grants) -> Difference:
    from fnop.adapters.generate.roles import compared

    for note in grants.notes:
        warn(note)
    return compared(study.needs, grants.granted)


def _compare_with_cluster(study: Study, options: dict[str, Any]) -> Difference:
    from fnop.adapters.generate.reviews import ReviewProblem, reviewed_by
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.interpreters.runtime.protocol import Unreachable

    try:
        return asyncio.run(
            reviewed_by(
                study.needs,
                **cluster_of(options),
                tell=warn,
            )
        )
    except (ConfigurationProblem, ReviewProblem, Unreachable) as problem:
        fail(str(problem), EXIT_DIFFERENT)


def _verdict(difference: Difference, study: Study) -> int:
    for line in difference.missing:
        echo(f"missing: {line}")
    for line in difference.superfluous:
        echo(f"superfluous: {line}")
    if difference.missing or difference.superfluous:
        return EXIT_DIFFERENT
    seen = ", as far as was seen" if study.unknown else ""
    number = len(by_right(study.needs))
    echo(f"the rights are enough, and none too many{seen}: {number} are needed")
    return 0
