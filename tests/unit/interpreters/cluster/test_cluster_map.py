"""The way of a request is as docs/contributing/simulated-cluster.md shows it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from fnop.interpreters.cluster.api.discovery import GROUPS
from fnop.interpreters.cluster.controllers.rounds import ACTORS
from fnop.interpreters.cluster.kinds.kinds import BUILTINS
from fnop.interpreters.cluster.storage.waking import PRIMARY
from tests.simulations import ROOT
from tests.source_tree import WINGS

HOUSE = ROOT / "interpreters/cluster"
PAGE = (ROOT / "docs/contributing/simulated-cluster.md").read_text()

# In a process of its own: what was asked before is remembered, and not called again.
STORY = """
import json, sys
from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.runtime.protocol import ApiRequest, User

pod = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
path, user = "/api/v1/namespaces/default/pods", User("anna", ("system:masters",))
table = "application/json;as=Table;v=v1;g=meta.k8s.io"
request = ApiRequest("POST", path, (), pod, accept=table, user=user)
cluster, called = empty_cluster(rbac=True), []

def note(frame, event, argument):
    _, inside, place = frame.f_code.co_filename.rpartition("/interpreters/cluster/")
    if event == "call" and inside:
        called.append((place, frame.f_code.co_name))

sys.setprofile(note)
_, response, _ = answer(cluster, request, 1e9)
sys.setprofile(None)
assert response.status == 201, response
print(json.dumps(called))
"""

Step = tuple[str, str]  # wing/module.py, function


def traced() -> list[Step]:
    """The functions of the house that the request in the picture calls."""
    done = subprocess.run(
        [sys.executable, "-c", STORY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [(place, name) for place, name in json.loads(done.stdout)]


def pictured() -> list[Step]:
    return re.findall(r"^(\w+/\w+\.py) +(\w+) ", PAGE, re.MULTILINE)


def test_a_request_takes_the_way_in_the_picture() -> None:
    called, at = traced(), 0
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


@pytest.mark.parametrize("file", sorted({*re.findall(r"\b((?:\w+/)+\w+\.py)\b", PAGE)}))
def test_files_in_the_text_exist(file: str) -> None:
    assert any((base / file).is_file() for base in (HOUSE, ROOT))


def test_tables_in_the_text_exist() -> None:
    house = "\n".join(source.read_text() for source in HOUSE.rglob("*.py"))
    tables = {*re.findall(r"`([A-Z]{4,})`", PAGE)} - {"ADDED", "DELETED"}
    assert len(tables) >= 12
    assert {
        name
        for name in tables
        if f"\n{name}: " not in house and f"\n{name} = " not in house
    } == set()


def test_docstrings_begin_with_a_subject_or_a_verb() -> None:
    riddle = re.compile(r'"""(What|Who|Whom|Whose|Whoever|Whatever|Nobody|So often)\b')
    found = [
        f"{source.relative_to(HOUSE)}:{number}"
        for source in sorted(HOUSE.rglob("*.py"))
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if riddle.search(line)
    ]
    assert found == []


def test_each_controller_is_reminded_and_each_reminder_has_a_controller() -> None:
    # Deletions remind the controllers of all kinds, and of namespaces (commit.py).
    of_deletions = {"garbage", "foreground", "orphan", "namespace", "crd"}
    assert set(ACTORS) - of_deletions == set(PRIMARY)
    source = (HOUSE / "storage/waking.py").read_text()
    named = re.findall(r'(?:Task|_wake_itself|_wake_namespace)\(\s*"([\w-]+)"', source)
    assert named
    assert {*named} <= set(ACTORS)


def test_each_group_of_built_in_kinds_has_its_place_in_discovery() -> None:
    assert {group for group, _ in BUILTINS} - {""} == set(GROUPS)
