"""`fnop rbac`: printed roles grant what is needed, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hypothesis import given, settings, strategies as st

from fnop.adapters.generate.rights import Account
from fnop.adapters.generate.roles import compared, granted_by, manifests_for
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.program.rights import Need, Right, Who, least
from fnop.interpreters.cluster import Cluster, empty_cluster
from fnop.interpreters.cluster.access.rbac import decide
from fnop.interpreters.cluster.requests.request import Attributes
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import User
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.thorough import examples

ACCOUNT = Account("default", "operator")
USER = User("system:serviceaccount:default:operator")
VERBS, GROUPS = ("get", "list", "patch"), ("", "apps")
KINDS, SUBS = ("pods", "jobs"), ("", "status")
NAMES, SPACES = ("", "a", "b"), ("default", "kube-system")

RIGHTS = st.builds(
    Right, *(st.sampled_from(each) for each in (VERBS, GROUPS, KINDS, SUBS, NAMES))
)
NEEDS = st.lists(
    st.builds(
        Need,
        RIGHTS,
        st.sampled_from((None, *SPACES)),
        st.sampled_from((Who("f"), Who("g"), Who("the operator", is_handler=False))),
    ),
    max_size=12,
)


def cluster_with(needs: Iterable[Need]) -> Cluster:
    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH, rbac=True))
    apply_manifests(run, manifests_for(needs, ACCOUNT))
    return run.cluster


@settings(max_examples=examples(25))
@given(NEEDS)
def test_what_is_printed_allows_what_is_needed_and_nothing_else(
    needs: list[Need],
) -> None:
    cluster = cluster_with(least(needs))
    for verb, group, kind, sub, name, space in product(
        VERBS, GROUPS, KINDS, SUBS, ("x", "a", "b"), SPACES
    ):
        asked = Right(verb, group, kind, sub, name)
        needed = any(
            each.right.covers(asked) and each.namespace in (None, space)
            for each in needs
        )
        wanted = Attributes(verb, group, kind, sub, space, name)
        assert decide(cluster, USER, wanted).allowed == needed, asked


@given(NEEDS)
def test_what_is_printed_is_verified(needs: list[Need]) -> None:
    found = least(needs)
    grants = granted_by(manifests_for(found, ACCOUNT), ACCOUNT)
    assert grants.notes == ()
    assert compared(found, grants.granted) == ((), ())


@given(NEEDS.filter(bool), st.data())
def test_any_right_that_is_left_out_is_missing(
    needs: list[Need], data: st.DataObject
) -> None:
    found = least(needs)
    left_out = data.draw(st.sampled_from(found))
    rest = [each for each in found if each[:2] != left_out[:2]]
    grants = granted_by(manifests_for(rest, ACCOUNT), ACCOUNT)
    (line,) = compared(found, grants.granted).missing
    assert line.startswith(str(left_out.right))
    assert compared(found, grants.granted).superfluous == ()
    # And the other way: it is superfluous if nothing needs it.
    every = granted_by(manifests_for(found, ACCOUNT), ACCOUNT)
    extra = compared(rest, every.granted)
    assert extra.missing == ()
    assert any(line.startswith(str(left_out.right)) for line in extra.superfluous)
