"""The command `fnop rbac`: the least rights of an operator, printed or verified."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fnop.adapters.cli.option_fields import declared, names_in, option, takes
from fnop.adapters.cli.options import (
    ClusterOptions,
    ElectionOptions,
    ScopeOptions,
    files,
    flag_of,
    shared,
)
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.core.handlers.program.rights import by_right

if TYPE_CHECKING:
    from fnop.adapters.generate.rights import Account, Study, Wishes
    from fnop.adapters.generate.roles import Difference, Grants

__all__ = ["StudyOptions", "rbac", "study_with"]

EXIT_DIFFERENT = 1


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The options of commands that need the rights of an operator."""

    paths: tuple[str, ...] = declared(files)
    name: str = declared(shared("name"))
    service_account: str | None = option(
        "--service-account",
        metavar="[NAMESPACE/]NAME",
        help="The account of the operator's pod. By default the account and its "
        "namespace have the operator's --name, or fnop-operator without --name.",
    )
    election: ElectionOptions
    peering: bool = option(
        "--peering", is_flag=True, help="Add the rights for peering objects."
    )
    webhook_name: str | None = declared(shared("webhook_name"))
    webhook_events: bool = declared(shared("webhook_events"))
    crds: tuple[str, ...] = declared(shared("crds"))
    objects: tuple[str, ...] = declared(shared("objects"))
    script: str | None = declared(shared("script"))
    calls: tuple[str, ...] = declared(shared("calls"))
    seen: tuple[str, ...] = option(
        "--seen",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False),
        metavar="RECORDING",
        help="A recording of a real run: add the rights for its requests.",
    )
    budget: int | None = declared(
        shared(
            "budget",
            "; 0 for the runs without faults alone",
            type=click.IntRange(min=0),
        )
    )
    quiet: bool = declared(
        shared("quiet", ": without notes about generated objects and unseen requests")
    )

    def account(self) -> Account:
        """The account that the operator's pod runs under."""
        from fnop.adapters.generate.rights import account_of

        return account_of(self.service_account, self.name)

    def wishes(
        self, command: str, account: Account, namespaces: tuple[str, ...] | None
    ) -> Wishes:
        """The operator, and how it is going to run in these namespaces."""
        from fnop.adapters.generate.rights import Wishes

        if not self.paths:
            raise click.UsageError(f"name the operator's file: {command} operator.py")
        return Wishes(
            self.paths,
            account,
            self.name,
            namespaces,
            self.election.leader_elect,
            self.election.lease_namespace,
            self.peering,
            self.crds,
            self.objects,
            self.script,
            self.calls,
            self.budget,
            self.seen,
            self.webhook_name,
            self.webhook_events,
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


@dataclass(frozen=True, kw_only=True)
class RbacOptions:
    """The options of `fnop rbac`."""

    study: StudyOptions
    scope: ScopeOptions
    verify: bool = option(
        "--verify", is_flag=True, help="Compare with the present rights."
    )
    against: tuple[str, ...] = option(
        "--against",
        multiple=True,
        type=click.Path(exists=True, allow_dash=True),
        metavar="PATH",
        help="With --verify: manifests with the roles and bindings. By default fnop "
        "asks the cluster for the rights of the present user.",
    )
    cluster: ClusterOptions

    def __post_init__(self) -> None:
        if self.verify:
            return
        of_cluster = {e: getattr(self.cluster, e) for e in names_in(ClusterOptions)}
        for name, value in {"against": self.against, **of_cluster}.items():
            if value:
                raise click.UsageError(f"{flag_of(name)} needs --verify")


@click.command()
@takes(RbacOptions)
def rbac(given: RbacOptions) -> None:
    """Print the least rights that an operator needs, as YAML; or verify them.

    fnop also prints the account's namespace, unless --service-account names it.

    To find the rights, fnop runs the operator's scripts in a simulated cluster, as
    `fnop check` does, and each script with one fault of every sort. For each request
    the operator needs a right. fnop names the parts of the operator that did not run.

    \b
      fnop rbac operator.py | kubectl apply -f -
      fnop rbac operator.py -n team-a --service-account team-a/operator
      fnop rbac operator.py --verify --against deploy.yaml

    With --verify, fnop prints a line for each missing right, and for each superfluous
    one.

    Each option has a variable: FNOP_RBAC_NAMESPACE for --namespace.

    Exit status: 0 when printed, or when nothing is missing or superfluous; 1 when
    something is, or could not be found out; 2 for a wrong call, or an operator that
    cannot be run.
    """
    study, namespaces = given.study, given.scope.namespaces
    grants = None
    if given.against:
        grants, account = _read_grants(given)
    else:
        account = study.account()
    # Some rights are in the namespace of the account.
    wishes = study.wishes("fnop rbac", account, namespaces)
    found = study_with(wishes, quiet=study.quiet)
    if not given.verify:
        from fnop.adapters.common.manifests import namespace_for
        from fnop.adapters.generate.roles import shown

        # A namespace that the user names exists, or comes with other manifests.
        named = study.service_account is not None
        spaces = () if named else (namespace_for(wishes.account.namespace),)
        # Line by line: further lines of one text would be indented.
        for line in shown(found.needs, wishes.account, spaces).splitlines():
            echo(line)
        return
    if grants is None:
        difference = _compare_with_cluster(found, given.cluster)
    else:
        difference = _compare_with_grants(found, grants)
    sys.exit(_verdict(difference, found))


def _read_grants(given: RbacOptions) -> tuple[Grants, Account]:
    """The rights in the manifests, and the account that has them."""
    from fnop.adapters.common.manifests import ManifestProblem, read_manifests
    from fnop.adapters.generate.roles import NoAccount, granted_by, only_account

    account = given.study.account() if given.study.service_account else None
    try:
        manifests = read_manifests(given.against, warn)
        account = account or only_account(manifests)
        return granted_by(manifests, account), account
    except (ManifestProblem, NoAccount) as problem:
        fail(str(problem), EXIT_USAGE)


def _compare_with_grants(study: Study, grants: Grants) -> Difference:
    from fnop.adapters.generate.roles import compared

    for note in grants.notes:
        warn(note)
    return compared(study.needs, grants.granted)


def _compare_with_cluster(study: Study, cluster: ClusterOptions) -> Difference:
    from fnop.adapters.generate.reviews import ReviewProblem, reviewed_by
    from fnop.adapters.kubernetes.client import ConfigurationProblem
    from fnop.interpreters.runtime.protocol import Unreachable

    try:
        return asyncio.run(
            reviewed_by(
                study.needs,
                **cluster.connection(),
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
