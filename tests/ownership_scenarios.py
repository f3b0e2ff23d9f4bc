"""The owners of children: the same scenarios in simulation and on a real server."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

from tests.simulations import ROOT, condition_of, example

__all__ = ["OPERATOR", "SCENARIOS", "World"]

OPERATOR = ROOT / "tests/cluster/operators/children.py"
MERGE = "application/merge-patch+json"
Json = dict[str, Any]


class World(Protocol):
    """A cluster; `far` is another namespace than the owners'."""

    namespace: str
    far: str

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = ...
    ) -> tuple[int, Any]: ...

    def begin(self, *, handler: str = "keep", name: str = "default") -> None:
        """Start the operator with this id of its handler, and this name."""
        ...

    def stop(self) -> None: ...

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until it is so, for a minute at the most."""
        ...

    def calm(self) -> None:
        """Wait until the operator has seen all, and is done."""
        ...


# ------------------------------------------------------------------ the user's words


def owner_path(world: World, name: str = "") -> str:
    tail = f"/{name}" if name else ""
    return f"/apis/fnop.dev/v1/namespaces/{world.namespace}/fnopexamples{tail}"


def child_path(world: World, name: str, place: str = "") -> str:
    return f"/api/v1/namespaces/{place or world.namespace}/configmaps/{name}"


def child(name: str, namespace: str | None = None, **data: str) -> Json:
    return {"name": name, "namespace": namespace, "data": data}


def create(world: World, name: str, *children: Json) -> None:
    body = example(name, children=[*children])
    body["metadata"]["namespace"] = world.namespace
    assert world.raw("POST", owner_path(world), body)[0] == 201


def desire(world: World, name: str, *children: Json) -> None:
    change = {"spec": {"children": [*children]}}
    assert world.raw("PATCH", owner_path(world, name), change, MERGE)[0] == 200


def owner(world: World, name: str) -> Json | None:
    status, found = world.raw("GET", owner_path(world, name))
    return found if status == 200 else None


def found(world: World, name: str, place: str = "") -> Json | None:
    status, answer = world.raw("GET", child_path(world, name, place))
    return deepcopy(answer) if status == 200 else None


def data(world: World, name: str, place: str = "") -> Any:
    return (found(world, name, place) or {}).get("data")


def synced(world: World, name: str) -> tuple[str, str]:
    found = condition_of(owner(world, name), "Synced")
    return found.get("status", ""), found.get("message", "")


def is_synced(world: World, name: str) -> Callable[[], bool]:
    def holds() -> bool:
        found = owner(world, name)
        assert found is not None
        told = condition_of(found, "Synced")
        generation = found["metadata"]["generation"]
        seen = told.get("status"), told.get("observedGeneration")
        return seen == ("True", generation)

    return holds


def collect_garbage(world: World, name: str, *children: str) -> None:
    """Do the garbage collector's work for `--cascade=orphan`, if none runs."""
    body = owner(world, name)
    if body is None or "orphan" not in body["metadata"].get("finalizers", ()):
        return
    change: Json = {"metadata": {"ownerReferences": None}}
    for each in children:
        assert world.raw("PATCH", child_path(world, each), change, MERGE)[0] == 200
    left = [each for each in body["metadata"]["finalizers"] if each != "orphan"]
    change = {"metadata": {"finalizers": left}}
    assert world.raw("PATCH", owner_path(world, name), change, MERGE)[0] == 200


# -------------------------------------------------------------------------- scenarios


def a_copy_is_nobody_s(world: World) -> None:
    world.begin()
    create(world, "a", child("one", a="1"))
    world.until(is_synced(world, "a"))
    copy = found(world, "one")
    assert copy is not None
    for field in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        copy["metadata"].pop(field, None)
    copy["metadata"]["name"] = "one-backup"
    path = child_path(world, "").rstrip("/")
    assert world.raw("POST", path, copy)[0] == 201
    desire(world, "a", child("two"))
    world.until(lambda: found(world, "one") is None)
    world.until(is_synced(world, "a"))
    assert data(world, "one-backup") == {"a": "1"}


def orphans_stay_and_are_nobody_s(world: World) -> None:
    world.begin()
    create(world, "a", child("near", a="1"), child("away", world.far, a="1"))
    world.until(is_synced(world, "a"))
    policy = {"propagationPolicy": "Orphan"}
    assert world.raw("DELETE", owner_path(world, "a"), policy)[0] == 200
    world.calm()
    collect_garbage(world, "a", "near")
    world.until(lambda: owner(world, "a") is None)
    change = {"data": {"a": "precious"}}
    for path in (child_path(world, "near"), child_path(world, "away", world.far)):
        assert world.raw("PATCH", path, change, MERGE)[0] == 200
    create(world, "b", child("near", a="2"), child("away", world.far, a="2"))
    world.until(lambda: synced(world, "b")[1].count("nobody owns it") == 2)
    assert data(world, "near") == {"a": "precious"}
    assert data(world, "away", world.far) == {"a": "precious"}


def a_lost_owner_reference_comes_back(world: World) -> None:
    world.begin()
    create(world, "a", child("one", a="1"))
    world.until(is_synced(world, "a"))
    change: Json = {"metadata": {"ownerReferences": None}}
    assert world.raw("PATCH", child_path(world, "one"), change, MERGE)[0] == 200
    world.until(
        lambda: bool((found(world, "one") or {})["metadata"].get("ownerReferences"))
    )


def a_child_elsewhere_has_one_owner(world: World) -> None:
    create(world, "a", child("one", world.far, a="1"))
    create(world, "b", child("one", world.far, a="1"))
    world.begin()
    world.until(
        lambda: sorted(synced(world, each)[0] for each in "ab") == ["False", "True"]
    )
    world.calm()
    (first,) = (each for each in "ab" if synced(world, each)[0] == "True")
    (other,) = {*"ab"} - {first}
    assert "belongs to FnopExample" in synced(world, other)[1]
    assert world.raw("DELETE", owner_path(world, first))[0] == 200
    world.until(is_synced(world, other))
    assert owner(world, first) is None
    assert data(world, "one", world.far) == {"a": "1"}


def a_renamed_handler_clears_what_it_has_made(world: World) -> None:
    world.begin()
    create(world, "a", child("one", world.far), child("two", world.far))
    world.until(is_synced(world, "a"))
    desire(world, "a", child("one", world.far))
    world.stop()
    assert world.raw("DELETE", owner_path(world, "a"))[0] == 200
    world.begin(handler="latter")
    world.until(lambda: owner(world, "a") is None)
    assert found(world, "one", world.far) is None
    assert found(world, "two", world.far) is None


def a_renamed_operator_removes_former_fields(world: World) -> None:
    world.begin()
    create(world, "a", child("one", a="1", b="2"))
    world.until(is_synced(world, "a"))
    world.stop()
    desire(world, "a", child("one", a="1"))
    world.begin(name="latter")
    world.until(lambda: data(world, "one") == {"a": "1"})


def a_hand_on_the_annotation_does_not_hide_a_child(world: World) -> None:
    world.begin()
    create(world, "a", child("one"), child("two"))
    world.until(is_synced(world, "a"))
    world.stop()
    change = {"metadata": {"annotations": {"fnop.dev/applied": None}}}
    assert world.raw("PATCH", child_path(world, "one"), change, MERGE)[0] == 200
    desire(world, "a", child("two"))
    world.begin()
    world.until(lambda: found(world, "one") is None)


def what_is_desired_no_more_goes_whoever_made_the_mapping(world: World) -> None:
    """API servers before 1.21 give keys to a client that set one in an empty map."""
    world.begin()
    create(world, "a", child("one"))
    world.until(is_synced(world, "a"))
    change = {"data": {"b": "by hand"}}
    assert world.raw("PATCH", child_path(world, "one"), change, MERGE)[0] == 200
    world.calm()
    desire(world, "a", child("one", a="1", b="1"))
    world.until(is_synced(world, "a"))
    desire(world, "a", child("one"))
    world.until(is_synced(world, "a"))
    assert not data(world, "one")
    desire(world, "a", child("one", c="1"))
    world.until(is_synced(world, "a"))
    assert data(world, "one") == {"c": "1"}


def what_was_repaired_goes_whoever_made_the_mapping(world: World) -> None:
    """The other one, whose only key was taken back, writes once more, of anything."""
    world.begin()
    create(world, "a", child("one"))
    world.until(is_synced(world, "a"))
    change = {"data": {"b": "by hand"}}
    assert world.raw("PATCH", child_path(world, "one"), change, MERGE)[0] == 200
    desire(world, "a", child("one", a="1", b="1"))
    world.until(lambda: data(world, "one") == {"a": "1", "b": "1"})
    world.until(is_synced(world, "a"))
    note = {"metadata": {"labels": {"by": "hand"}}}
    assert world.raw("PATCH", child_path(world, "one"), note, MERGE)[0] == 200
    world.calm()
    desire(world, "a", child("one", c="1"))
    world.until(is_synced(world, "a"))
    assert data(world, "one") == {"c": "1"}


def lose_owner(world: World, name: str) -> None:
    """Take off by hand what names the owner of a child elsewhere."""
    change = {"metadata": {"annotations": {"fnop.dev/owner": None}}}
    path = child_path(world, name, world.far)
    assert world.raw("PATCH", path, change, MERGE)[0] == 200


def a_child_elsewhere_that_names_no_owner_is_known(world: World) -> None:
    world.begin()
    create(world, "a", *(child(each, world.far) for each in ("one", "two", "three")))
    create(world, "b", child("other", world.far, b="1"))
    world.until(is_synced(world, "a"))
    world.until(is_synced(world, "b"))
    world.stop()
    for name in ("one", "two", "other"):
        lose_owner(world, name)
    copy = found(world, "one", world.far)
    assert copy is not None
    for field in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        copy["metadata"].pop(field, None)
    copy["metadata"]["name"] = "one-backup"
    path = child_path(world, "", world.far).rstrip("/")
    assert world.raw("POST", path, copy)[0] == 201
    desire(world, "a", child("two", world.far), child("three", world.far))
    world.begin()
    world.until(lambda: found(world, "one", world.far) is None)
    world.until(is_synced(world, "a"))
    back = found(world, "two", world.far)
    assert back is not None
    assert "fnop.dev/owner" in back["metadata"]["annotations"]
    assert found(world, "one-backup", world.far) is not None
    assert data(world, "other", world.far) == {"b": "1"}


def a_child_elsewhere_that_names_no_owner_goes_with_it(world: World) -> None:
    world.begin()
    create(world, "a", child("one", world.far), child("two", world.far))
    world.until(is_synced(world, "a"))
    world.stop()
    lose_owner(world, "one")
    assert world.raw("DELETE", owner_path(world, "a"))[0] == 200
    world.begin()
    world.until(lambda: owner(world, "a") is None)
    assert found(world, "one", world.far) is None
    assert found(world, "two", world.far) is None


def a_child_that_is_handled_keeps_its_finalizer_and_its_state(world: World) -> None:
    def handled() -> Json:
        one = found(world, "handled-one")
        meta = {} if one is None else one["metadata"]
        states = [e for e in meta.get("annotations", {}) if e == "fnop.dev/default"]
        return {"finalizers": meta.get("finalizers"), "states": states}

    world.begin()
    create(world, "a", child("handled-one", a="1"))
    here = {"finalizers": ["fnop.dev/default"], "states": ["fnop.dev/default"]}
    world.until(lambda: handled() == here)
    world.until(is_synced(world, "a"))
    world.calm()
    assert handled() == here
    desire(world, "a", child("handled-one", a="2"))
    world.until(lambda: data(world, "handled-one") == {"a": "2"})
    world.until(is_synced(world, "a"))
    world.calm()
    assert handled() == here
    desire(world, "a")
    world.until(lambda: found(world, "handled-one") is None)


SCENARIOS = (
    a_child_that_is_handled_keeps_its_finalizer_and_its_state,
    a_child_elsewhere_that_names_no_owner_is_known,
    a_child_elsewhere_that_names_no_owner_goes_with_it,
    what_was_repaired_goes_whoever_made_the_mapping,
    what_is_desired_no_more_goes_whoever_made_the_mapping,
    a_copy_is_nobody_s,
    orphans_stay_and_are_nobody_s,
    a_lost_owner_reference_comes_back,
    a_child_elsewhere_has_one_owner,
    a_renamed_handler_clears_what_it_has_made,
    a_renamed_operator_removes_former_fields,
    a_hand_on_the_annotation_does_not_hide_a_child,
)
