"""The kinds that were served, by the discovery in a recording."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.recording.model.history import History

ROOT = "/apis/example.com"
PATH = f"{ROOT}/v1"


def listing(*names: str) -> dict[str, Any]:
    """The document of a group that has these kinds."""
    kinds = [
        {"name": each, "kind": each.title(), "namespaced": True, "verbs": ["get"]}
        for each in names
    ]
    return {"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds}


def hear(history: History, number: int, path: str, document: dict[str, Any]) -> None:
    """Let it take in a request and its answer."""
    fetch = {"do": "Fetch", "id": number, "path": path}
    at = {"wall": 0.0, "mono": 0.0}
    history.read({**at, "input": {"in": "AlarmRang"}, "commands": [fetch]})
    outcome = {"is": "Applied", "object": document}
    answer = {"in": "Answered", "id": number, "outcome": outcome}
    history.read({**at, "input": answer, "commands": []})


def names_of(served: History) -> list[str]:
    return [each.plural for each in served.catalogue.resources]


def test_what_is_heard_again_changes_nothing() -> None:
    served = History()
    hear(served, 1, PATH, listing("apples"))
    before = served.catalogue
    for number in range(2, 5):
        hear(served, number, PATH, listing("apples"))
    assert served.catalogue is before, "it is not sorted again"
    assert names_of(served) == ["apples"]


def test_a_kind_that_comes_later_is_known() -> None:
    served = History()
    hear(served, 1, PATH, listing("apples"))
    hear(served, 2, PATH, listing("apples", "pears"))
    assert names_of(served) == ["apples", "pears"]
    hear(served, 3, PATH, listing("pears"))
    assert names_of(served) == ["apples", "pears"], "it has been served"


def test_equal_documents_of_two_paths_are_two() -> None:
    served = History()
    for number, version in enumerate(("v1", "v2"), start=1):
        hear(served, number, f"/api/{version}", listing("apples"))
    # What the list of versions says of a document counts as a part of it.
    versions = {"kind": "APIVersions", "versions": ["v1", "v2"]}
    hear(served, 3, "/api", versions)
    hear(served, 4, "/api/v1", listing("apples"))
    hear(served, 5, "/api/v2", listing("apples"))
    keys = [each.key for each in served.catalogue.resources]
    assert keys == ["apples..", "apples.v1.", "apples.v2."]
