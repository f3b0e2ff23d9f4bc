"""Refusals by which Kubernetes says that a field cannot be changed."""

from __future__ import annotations

import pytest

from fnop.core.children.applying import is_immutable

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
