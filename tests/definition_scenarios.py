"""Definitions that change under an operator: in simulation and on a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tests.simulations import ROOT

__all__ = [
    "CRDS",
    "GROUP",
    "KIND_SCENARIOS",
    "MERGE",
    "OPERATOR",
    "PLURAL",
    "SCENARIOS",
    "World",
    "create",
    "define",
    "edit",
    "path_to",
    "remove",
]

OPERATOR = ROOT / "tests/cluster/operators/versions.py"
GROUP, PLURAL, KIND = "versions.fnop.dev", "probes", "Probe"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
Json = dict[str, Any]


class Place(Protocol):
    """A cluster with an operator, and a user in one namespace."""

    namespace: str

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = ...
    ) -> tuple[int, Any]: ...

    @property
    def lines(self) -> list[str]: ...

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until it is so, for a minute at the most."""
        ...

    def calm(self) -> None:
        """Wait until the operator has seen all, and is done."""
        ...


class World(Place, Protocol):
    """A cluster whose operator begins when it is asked to."""

    def begin(self, *names: str, calls: str = "changes") -> None:
        """Start the operator with handlers for kinds of these names."""
        ...


# ------------------------------------------------------------------ the user's words


def define(
    world: Place,
    *served: str,
    unserved: tuple[str, ...] = (),
    storage: str = "",
    scope: str = "Namespaced",
    plural: str = PLURAL,
    kind: str = KIND,
    fields: Json | None = None,
) -> None:
    """Have a kind served in these versions, and wait until it is."""
    schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if fields is not None:
        schema["properties"] = {"spec": {"type": "object", "properties": fields}}
    spec = {
        "group": GROUP,
        "scope": scope,
        "names": {
            "plural": plural,
            "singular": kind.lower(),
            "kind": kind,
            "listKind": f"{kind}List",
        },
        "versions": [
            {
                "name": version,
                "served": version in served,
                "storage": version == (storage or served[0]),
                "schema": {"openAPIV3Schema": schema},
            }
            for version in (*served, *unserved)
        ],
    }
    name = f"{plural}.{GROUP}"
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": spec,
    }
    status, answer = world.raw("POST", CRDS, body)
    if status == 409:
        status, answer = world.raw("PATCH", f"{CRDS}/{name}", {"spec": spec}, MERGE)
    assert status in (200, 201), answer

    def is_done() -> bool:
        statuses = [
            world.raw("GET", f"/apis/{GROUP}/{version}/{plural}")[0]
            for version in (*served, *unserved)
        ]
        return statuses == [*[200 for _ in served], *[404 for _ in unserved]]

    world.until(is_done)


def remove(world: Place, plural: str = PLURAL) -> None:
    """Delete the definition, and wait until it is gone."""
    path = f"{CRDS}/{plural}.{GROUP}"
    world.raw("DELETE", path)
    world.until(lambda: world.raw("GET", path)[0] == 404)


def path_to(world: Place, version: str, name: str = "", *, inside: bool = True) -> str:
    place = f"/namespaces/{world.namespace}" if inside else ""
    tail = f"/{name}" if name else ""
    return f"/apis/{GROUP}/{version}{place}/{PLURAL}{tail}"


def create(world: Place, version: str, name: str, *, inside: bool = True) -> None:
    body = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"size": 1},
    }
    path = path_to(world, version, inside=inside)

    def is_created() -> bool:
        status, _ = world.raw("POST", path, body)
        return status in (201, 409)

    # A definition that has just come may refuse for a moment.
    world.until(is_created)


def edit(
    world: Place, version: str, name: str, size: int, *, inside: bool = True
) -> None:
    path = path_to(world, version, name, inside=inside)
    status, answer = world.raw("PATCH", path, {"spec": {"size": size}}, MERGE)
    assert status == 200, answer


def calls(world: Place) -> list[str]:
    """The calls of handlers so far, such as `create a v1`."""
    found = [each.partition("call ")[2] for each in world.lines if "call " in each]
    return [each.strip() for each in found]


def changes(world: Place) -> list[str]:
    """The calls of handlers of changes."""
    return [each for each in calls(world) if len(each.split()) == 3]


def called(world: Place, call: str, times: int = 1) -> Callable[[], bool]:
    return lambda: calls(world).count(call) == times


def called_with(world: Place, call: str, times: int) -> Callable[[], bool]:
    """Whether there was this number of calls, in any version."""
    return lambda: sum(each.startswith(f"{call} ") for each in calls(world)) == times


def is_seen_in(world: Place, version: str) -> bool:
    """Whether the objects have been listed in a version."""
    return any(each.endswith(f" None a {version}") for each in calls(world))


def assert_calm(world: Place) -> None:
    """Nothing has failed, and no object has been taken for a deleted one."""
    world.calm()
    assert not [each for each in world.lines if "Traceback" in each]
    assert not [each for each in calls(world) if "DELETED" in each]


# -------------------------------------------------------------------------- scenarios


def a_version_comes_and_another_goes(world: World) -> None:
    define(world, "v1alpha1")
    world.begin(f"{PLURAL}.{GROUP}")
    create(world, "v1alpha1", "a")
    world.until(called(world, "create a v1alpha1"))
    define(world, "v1", "v1alpha1", storage="v1alpha1")
    define(world, "v1", "v1alpha1", storage="v1")
    create(world, "v1", "b")
    world.until(called_with(world, "create b", 1))
    world.calm()
    define(world, "v1", unserved=("v1alpha1",))
    # A watch that is open shows the old version for a moment: the call counts.
    edit(world, "v1", "a", 2)
    world.until(lambda: is_seen_in(world, "v1"))
    world.until(called_with(world, "update a", 1))
    world.calm()
    before = len(calls(world))
    edit(world, "v1", "a", 3)
    world.until(called_with(world, "update a", 2))
    assert_calm(world)
    assert all(each.endswith(" v1") for each in calls(world)[before:])
    assert sorted(each.rpartition(" ")[0] for each in changes(world)) == [
        "create a",
        "create b",
        "update a",
        "update a",
    ]


def the_preferred_version_goes(world: World) -> None:
    define(world, "v1", "v1beta1")
    define(world, "v1", plural="others", kind="Other")
    world.begin(PLURAL)
    create(world, "v1beta1", "a")
    world.until(called(world, "create a v1"))
    define(world, "v1beta1", unserved=("v1",))
    world.until(lambda: is_seen_in(world, "v1beta1"))
    edit(world, "v1beta1", "a", 2)
    world.until(called(world, "update a v1beta1"))
    assert_calm(world)
    assert changes(world) == ["create a v1", "update a v1beta1"]
    world.raw("DELETE", path_to(world, "v1beta1", "a"))
    world.until(called(world, "delete a v1beta1"))
    world.until(lambda: world.raw("GET", path_to(world, "v1beta1", "a"))[0] == 404)


def the_scope_changes(world: World) -> None:
    define(world, "v1")
    world.begin(PLURAL)
    create(world, "v1", "a")
    world.until(called(world, "create a v1"))
    remove(world)
    assert called(world, "delete a v1")()
    define(world, "v1", scope="Cluster")
    create(world, "v1", "a", inside=False)
    world.until(called(world, "create a v1", 2))
    world.calm()
    edit(world, "v1", "a", 2, inside=False)
    world.until(called(world, "update a v1"))
    world.calm()
    assert not [each for each in world.lines if "Traceback" in each]
    assert changes(world) == [
        "create a v1",
        "delete a v1",
        "create a v1",
        "update a v1",
    ]
    remove(world)
    assert called(world, "delete a v1", 2)()


def a_definition_is_made_anew_in_another_version(world: World) -> None:
    define(world, "v1")
    world.begin(PLURAL)
    create(world, "v1", "a")
    world.until(called(world, "create a v1"))
    remove(world)
    define(world, "v2beta1")
    create(world, "v2beta1", "a")
    world.until(called(world, "create a v2beta1"))
    world.calm()
    edit(world, "v2beta1", "a", 2)
    world.until(called(world, "update a v2beta1"))
    world.calm()
    assert not [each for each in world.lines if "Traceback" in each]


def versions_are_next_to_each_other(world: World) -> None:
    define(world, "v1", "v1beta1")
    names = [f"{PLURAL}.{version}.{GROUP}" for version in ("v1", "v1beta1")]
    world.begin(*names, calls="events")
    create(world, "v1", "a")
    for name, version in zip(names, ("v1", "v1beta1"), strict=True):
        world.until(called(world, f"{name} ADDED a {version}"))
    define(world, "v1", "v1beta1", storage="v1beta1")
    world.calm()
    edit(world, "v1beta1", "a", 2)
    for name, version in zip(names, ("v1", "v1beta1"), strict=True):
        world.until(called(world, f"{name} MODIFIED a {version}"))
    assert_calm(world)
    for each in calls(world):
        name, _, _, version = each.split()
        assert f".{version}." in name


def a_kind_that_the_preferred_version_lacks(world: World) -> None:
    define(world, "v1", plural="others", kind="Other")
    define(world, "v1alpha1")
    names = [
        PLURAL,
        KIND,
        KIND.upper(),
        f"{PLURAL}.{GROUP}",
        f"{PLURAL}.v1alpha1.{GROUP}",
        f"*.{GROUP}",
        PLURAL.upper(),
        "probes.versions",
    ]
    create(world, "v1alpha1", "a")
    world.begin(*names, calls="events")
    for each in names:
        world.until(called(world, f"{each} None a v1alpha1"))
    assert_calm(world)


def kinds_are_told(world: World) -> None:
    """The kind itself comes, changes and goes, without an object of it."""
    world.begin(calls="kinds")
    world.calm()
    define(world, "v1")
    world.until(called(world, "kind_added None v1"))
    define(world, "v1", "v2")
    world.until(called(world, "kind_changed v1 v2+v1"))
    define(world, "v1", "v2", fields={"size": {"type": "integer"}})
    world.until(called(world, "kind_changed v2+v1 v2+v1"))
    remove(world)
    world.until(called(world, "kind_removed v2+v1 None"))
    assert len(calls(world)) == 4


KIND_SCENARIOS = (kinds_are_told,)
SCENARIOS = (
    a_version_comes_and_another_goes,
    the_preferred_version_goes,
    the_scope_changes,
    a_definition_is_made_anew_in_another_version,
    versions_are_next_to_each_other,
    a_kind_that_the_preferred_version_lacks,
)
