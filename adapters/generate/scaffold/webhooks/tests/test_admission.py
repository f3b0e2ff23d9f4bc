"""Admission: one decision at a time, without a cluster."""

from pathlib import Path
from typing import Any

import pytest
from fnop.testing import review

from __package__ import admission

CRD = Path(__file__).parents[1] / "deploy/crd.yaml"


def thing(image: str) -> dict[str, Any]:
    return {
        "apiVersion": "__group__/v1",
        "kind": "__Kind__",
        "metadata": {"name": "example"},
        "spec": {"image": image},
    }


@pytest.mark.parametrize(
    ("image", "allowed", "warnings"),
    [
        ("nginx:1.27", True, 0),
        ("localhost:5000/nginx:1.27", True, 0),
        ("localhost:5000/nginx", True, 1),
        ("nginx:latest", False, 0),
    ],
)
def test_an_image_has_a_version(image: str, allowed: bool, warnings: int) -> None:
    found = review(admission, new=thing(image), crds=CRD)
    assert found.allowed is allowed
    assert len(found.warnings) == warnings


def test_an_object_that_was_stored_before_stays_updatable() -> None:
    found = review(admission, thing("nginx:latest"), thing("nginx:latest"), crds=CRD)
    assert found.allowed
    assert len(found.warnings) == 1
