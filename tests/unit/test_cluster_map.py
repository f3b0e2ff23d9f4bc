"""The map of the simulated cluster (docs/simulated-cluster.md) shows the real way."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.protocol import ApiRequest, User
from tests.unit.test_architecture import WINGS

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ROOT / "interpreters/cluster"
PAGE = (ROOT / "docs/simulated-cluster.md").read_text()

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

Step = tuple[str, str]  # wing/module.py, function


@contextmanager
def traced(steps: list[Step]) -> Iterator[None]:
    """Note which functions of the house are called."""
    before: Callable[..., Any] | None = sys.getprofile()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename.replace("\\", "/")
        if event == "call" and "/interpreters/cluster/" in file:
            place = file.rpartition("/interpreters/cluster/")[2]
            steps.append((place, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def pictured() -> list[Step]:
    return re.findall(r"^(\w+/\w+\.py) +(\w+) ", PAGE, re.MULTILINE)


def test_a_request_takes_the_way_in_the_picture() -> None:
    path = "/api/v1/namespaces/default/pods"
    user = User("anna", ("system:masters",))
    request = ApiRequest("POST", path, (), POD, accept=TABLE, user=user)
    cluster, called = empty_cluster(rbac=True), list[Step]()
    with traced(called):
        _, response, _ = answer(cluster, request, 1e9)
    assert response.status == 201
    at = 0
    for step in pictured():
        assert step in called[at:], f"{step} is not called, or earlier"
        at = called.index(step, at)


def test_the_picture_leaves_no_wing_on_the_way_out() -> None:
    wings = {file.partition("/")[0] for file, _ in pictured()}
    # Controllers have no part in an answer; schemas have their own paragraph.
    assert wings == {*WINGS["interpreters/cluster"]} - {"controllers", "schema"}


def test_the_table_has_the_wings_in_their_order() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]", PAGE, re.MULTILINE)
    assert tuple(rows) == WINGS["interpreters/cluster"]


@pytest.mark.parametrize("file", sorted({*re.findall(r"\b(\w+/\w+\.py)\b", PAGE)}))
def test_files_in_the_text_exist(file: str) -> None:
    assert any((base / file).is_file() for base in (HOUSE, ROOT, ROOT / "tests"))


def test_tables_in_the_text_exist() -> None:
    house = "\n".join(source.read_text() for source in HOUSE.rglob("*.py"))
    tables = {*re.findall(r"`([A-Z]{4,})`", PAGE)} - {"ADDED", "DELETED"}
    assert len(tables) >= 12
    assert {name for name in tables if f"\n{name}: " not in house} == set()
