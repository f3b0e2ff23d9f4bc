"""Changes of an object in each form, with parts that go to two endpoints.

The same changes are made in the simulated cluster and on a real API server.
"""

from __future__ import annotations

from typing import Any

import fnop
from tests.simulations import example

__all__ = ["FORMS", "an_example", "assert_changed_once"]


def moves(found: dict[str, Any]) -> None:
    found.setdefault("status", {})["done"] = found["spec"].pop("todo")


def renames(found: dict[str, Any]) -> None:
    found["spec"]["kept"] = found["spec"].pop("todo")
    found.setdefault("status", {})["renamed"] = True


def takes_out(found: dict[str, Any]) -> None:
    found["spec"]["items"].remove("b")
    found.setdefault("status", {})["items"] = len(found["spec"]["items"])


def unlabels(found: dict[str, Any]) -> None:
    del found["metadata"]["labels"]["gone"]
    found.setdefault("status", {})["labels"] = len(found["metadata"]["labels"])


def releases(found: dict[str, Any]) -> None:
    found["metadata"]["finalizers"].remove("example.com/held")
    found.setdefault("status", {})["released"] = True


def counts(found: dict[str, Any]) -> None:
    found["spec"]["n"] += 1
    found.setdefault("status", {})["n"] = found["spec"]["n"]


SPEC: dict[str, Any] = {"todo": 5, "items": ["a", "b"], "n": 1}
JSON: list[dict[str, Any]] = [
    {"op": "test", "path": "/spec/n", "value": 1},
    {"op": "replace", "path": "/spec/n", "value": 2},
    {"op": "add", "path": "/spec/items/-", "value": "c"},
    {"op": "add", "path": "/status/json", "value": 1},
]
# Each form of a change, with what it makes of the spec and of the status.
FORMS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "moves": (moves, {"todo": None}, {"done": 5}),
    "renames": (renames, {"todo": None, "kept": 5}, {"renamed": True}),
    "takes": (takes_out, {"items": ["a"]}, {"items": 1}),
    "unlabels": (unlabels, {}, {"labels": 1}),
    "releases": (releases, {}, {"released": True}),
    "counts": (counts, {"n": 2}, {"n": 2}),
    "json": (
        fnop.patch(json=JSON),
        {"n": 2, "items": ["a", "b", "c"]},
        {"json": 1},
    ),
    "merge": (
        fnop.patch(spec={"n": 7, "todo": None}, status={"merged": True}),
        {"n": 7, "todo": None},
        {"merged": True},
    ),
}


def an_example(name: str = "example-1") -> dict[str, Any]:
    """The object before its change."""
    found = example(name, **SPEC)
    found["metadata"]["labels"] = {"gone": "1", "kept": "1"}
    found["metadata"]["finalizers"] = ["example.com/held"]
    return found


def assert_changed_once(form: str, found: dict[str, Any]) -> None:
    """Check an object whose change has been made, whatever others have set in it."""
    _, spec, status = FORMS[form]
    expected = {k: v for k, v in {**SPEC, **spec}.items() if v is not None}
    assert {k: v for k, v in found["spec"].items() if k != "theirs"} == expected
    there = found.get("status") or {}
    for name, value in status.items():
        if name != "labels":
            assert there.get(name) == value, there
    if form == "unlabels":
        assert "gone" not in found["metadata"]["labels"]
    if form == "releases":
        assert "example.com/held" not in found["metadata"].get("finalizers", ())
