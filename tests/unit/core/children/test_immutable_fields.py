"""Immutable fields: the refusals that mean one, and children that are replaced."""

from __future__ import annotations

import pytest

import fnop
from fnop.core.children.applying import is_immutable
from tests.reconcilers import NAME, Desiring, config_map, data_of

# As kube-apiserver words them, by the file of its validation.
SAID = {
    "apimachinery": 'type: Invalid value: "b": field is immutable',
    "rbac": 'roleRef: Invalid value: {"kind":"ClusterRole"}: cannot change roleRef',
    "apps": "spec: Forbidden: updates to statefulset spec for fields other than "
    "'replicas', 'template' and 'updateStrategy' are forbidden",
    "core: claims": "spec: Forbidden: spec is immutable after creation except "
    "resources.requests for bound claims",
    "core: services": 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change '
    "once set",
    "core: pods": "spec: Forbidden: pod updates may not change fields other than "
    "`spec.containers[*].image`",
    "scheduling": "value: Forbidden: may not be changed in an update.",
    "storage": "parameters: Forbidden: updates to parameters are forbidden.",
}
OTHERS = (
    'spec.ports[1].name: Duplicate value: "sql"',
    "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
)


@pytest.mark.parametrize("message", SAID.values(), ids=SAID)
def test_what_cannot_be_changed_is_known(message: str) -> None:
    assert is_immutable(message)


@pytest.mark.parametrize("message", OTHERS)
def test_what_is_wrong_is_another_matter(message: str) -> None:
    assert not is_immutable(message)


@pytest.mark.parametrize(
    "message",
    [
        'ConfigMap "one" is invalid: data[immutable key]: Invalid value: "immutable '
        "key\": a valid config key must consist of alphanumeric characters, '-', '_'",
        'Service "immutable" is invalid: spec.ports[0].port: Invalid value: 0: must be '
        "between 1 and 65535, inclusive",
    ],
)
def test_a_word_in_a_refused_value_is_no_immutability(message: str) -> None:
    assert not is_immutable(message)


def test_an_address_that_cannot_be_unset_is_immutable() -> None:
    """In the words of Kubernetes 1.20 when `clusterIP: None` is no longer named."""
    assert is_immutable(
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: []string(nil): '
        "primary clusterIP can not be unset"
    )


def test_a_wrong_manifest_does_not_delete_a_child_that_may_be_replaced() -> None:
    good = config_map("one", a="1")
    op = Desiring(fnop.child(good, on_immutable="replace")).begin()
    op.wanted = [
        fnop.child(
            config_map("one", **{"a": "1", "immutable key": "x"}),
            on_immutable="replace",
        )
    ]
    op.sim.edit(NAME, spec={"round": 2}).wait(30)
    assert data_of(op.sim, "one") == {"a": "1"}
