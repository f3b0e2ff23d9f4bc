"""The examples' behaviour as one table: for the simulated cluster and for a real one.

A story consists of steps: a user does something to the cluster, and then some
expectations hold, at once or after a while. A `World` is the place of a story, and
decides the length of "a while".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulations import condition_of, manifests_of

__all__ = [
    "PHASE",
    "STORIES",
    "Expectation",
    "Picture",
    "Step",
    "Story",
    "World",
    "annotation",
    "told",
    "unmet",
]

Manifest = dict[str, Any]
MARKER = "fnop.dev/default"


class Picture(Protocol):
    """The visible state of a cluster and an operator; kinds go by their plural."""

    def get(
        self, kind: str, name: str, namespace: str | None = None
    ) -> Manifest | None: ...

    def objects(self, kind: str) -> list[Manifest]: ...

    @property
    def lines(self) -> list[str]:
        """The lines that the operator has logged."""
        ...


class World(Picture, Protocol):
    """A cluster with an operator in it."""

    def create(self, manifest: Manifest) -> None: ...

    def edit(self, kind: str, name: str, change: Manifest) -> None: ...

    def delete(self, kind: str, name: str) -> None: ...

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = ...
    ) -> tuple[int, Any]:
        """Any request: the status, and the answer."""
        ...

    def restart(self) -> None:
        """Stop the operator in order, and start it again."""
        ...

    def until(self, what: Callable[[], bool]) -> None:
        """Wait until it is so; it is asked again and again."""
        ...

    def expect(self, expectations: tuple[Expectation, ...]) -> None:
        """Wait until all hold; fails if they do not."""
        ...


@dataclass(frozen=True)
class Expectation:
    """A sentence, and whether it is true."""

    sentence: str
    holds: Callable[[Picture], bool]


@dataclass(frozen=True)
class Step:
    """An action, and the expectations after it."""

    does: Callable[[World], None]
    expected: tuple[Expectation, ...]


@dataclass(frozen=True)
class Story:
    """One example; `failing` if a handler of it is meant to fail for good.

    One that is `everywhere` serves all namespaces.
    """

    example: str
    steps: tuple[Step, ...]
    failing: bool = False
    everywhere: bool = False


def unmet(expectations: tuple[Expectation, ...], picture: Picture) -> list[str]:
    """The sentences that are not true."""
    return [each.sentence for each in expectations if not each.holds(picture)]


# -------------------------------------------------------------- what is done


def create(example: str) -> Callable[[World], None]:
    """Create the example's objects; its definition is there already."""

    def does(world: World) -> None:
        for manifest in manifests_of(example):
            if manifest["kind"] != "CustomResourceDefinition":
                world.create(manifest)

    return does


def edit(change: Manifest, kind: str = "fnopexamples") -> Callable[[World], None]:
    return lambda world: world.edit(kind, "example-1", change)


def again_until(does: Callable[[World], None], expected: Expectation) -> Step:
    """A step that goes on to edit the example until it is as expected.

    Kinds are watched on connections of their own: the operator may see an edit of one
    kind before an older one of another (no order is promised between resources).
    """

    def again(world: World) -> None:
        does(world)
        edits = itertools.count(1)

        def is_so() -> bool:
            if expected.holds(world):
                return True
            edit({"spec": {"edits": next(edits)}})(world)
            return False

        world.until(is_so)

    return Step(again, (expected,))


def delete(kind: str, name: str) -> Callable[[World], None]:
    return lambda world: world.delete(kind, name)


def restart(world: World) -> None:
    world.restart()


def restart_and_add(example: str) -> Callable[[World], None]:
    """A second object shows when the new process is at work, and what it repeats."""

    def does(world: World) -> None:
        world.restart()
        manifest = manifests_of(example)[-1]
        metadata = {**manifest["metadata"], "name": "example-2"}
        world.create({**manifest, "metadata": metadata})

    return does


# ------------------------------------------------------------ what is expected


def own_status(found: Manifest | None) -> Mapping[str, Any] | None:
    """The status that handlers have written, without fnop's own field and condition."""
    if found is None:
        return None
    status = {k: v for k, v in (found.get("status") or {}).items() if k != MARKER}
    others = [each for each in status.pop("conditions", ()) if each["type"] != MARKER]
    return {**status, "conditions": others} if others else status


def status(expected: Mapping[str, Any], name: str = "example-1") -> Expectation:
    return Expectation(
        f"the status of {name} is {dict(expected)}",
        lambda seen: own_status(seen.get("fnopexamples", name)) == expected,
    )


def annotation(kind: str, name: str, key: str, value: str | None) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get(kind, name)
        if found is None:
            return False
        return (found["metadata"].get("annotations") or {}).get(key) == value

    return Expectation(f"{name} has the annotation {key}={value}", holds)


def finalizers(*expected: str) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get("fnopexamples", "example-1")
        return found is not None and (
            found["metadata"].get("finalizers") or []
        ) == list(expected)

    return Expectation(f"the finalizers are {list(expected)}", holds)


def gone(kind: str, name: str = "example-1") -> Expectation:
    return Expectation(
        f"{name} of {kind} is gone", lambda seen: seen.get(kind, name) is None
    )


def owned_pod(count: int) -> Expectation:
    """This number of pods, each owned by the example and labelled after it."""

    def is_owned(pod: Manifest, parent: Manifest) -> bool:
        meta = pod["metadata"]
        (owner,) = meta.get("ownerReferences") or [{}]
        return (
            owner.get("uid") == parent["metadata"]["uid"]
            and owner.get("kind") == "FnopExample"
            and owner.get("controller") is True
            and meta["labels"].get("somelabel") == "somevalue"
        )

    def holds(seen: Picture) -> bool:
        pods = [
            each
            for each in seen.objects("pods")
            if each["metadata"]["name"].startswith("example-1-")
        ]
        parent = seen.get("fnopexamples", "example-1")
        if parent is None or not pods:
            return len(pods) == count
        named = (own_status(parent) or {}).get("create_pod")
        return (
            len(pods) == count
            and all(is_owned(pod, parent) for pod in pods)
            and named == {"pod": pods[0]["metadata"]["name"]}
        )

    return Expectation(f"there are {count} pods of the example", holds)


def events(*expected: tuple[str, str]) -> Expectation:
    """The Kubernetes Events about the example, as type and reason."""

    def holds(seen: Picture) -> bool:
        about = [
            (each["type"], each["reason"])
            for each in seen.objects("events")
            if each["involvedObject"]["kind"] == "FnopExample"
            and each["involvedObject"].get("uid")
        ]
        return sorted(about) == sorted(expected)

    return Expectation(f"the Kubernetes Events are {expected}", holds)


def data(kind: str, name: str, expected: Mapping[str, str]) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get(kind, name)
        return found is not None and found.get("data") == expected

    return Expectation(f"{name} of {kind} holds {dict(expected)}", holds)


def held(kind: str, name: str, yes: bool = True) -> Expectation:
    """The object is there, with fnop's finalizer on it or without."""

    def holds(seen: Picture) -> bool:
        found = seen.get(kind, name)
        return found is not None and yes == (
            MARKER in (found["metadata"].get("finalizers") or ())
        )

    return Expectation(f"{name} of {kind} has {'a' if yes else 'no'} finalizer", holds)


def remembered(kind: str, name: str, yes: bool = True) -> Expectation:
    """fnop keeps its state in an annotation of the object, or has none about it."""

    def holds(seen: Picture) -> bool:
        found = seen.get(kind, name)
        return found is not None and yes == (
            MARKER in (found["metadata"].get("annotations") or {})
        )

    return Expectation(f"{name} has {'a' if yes else 'no'} state annotation", holds)


def said(text: str, times: int | None = None) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = sum(text in line for line in seen.lines)
        return found > 0 if times is None else found == times

    often = "" if times is None else f" {times} times"
    return Expectation(f"the log says {text!r}{often}", holds)


# ------------------------------------------------------------------ the table

MINIMAL = Story(
    "01-minimal",
    (
        Step(
            create("01-minimal"),
            (
                status({"create_fn": {"message": "example-1 shall run for 1m"}}),
                finalizers(),
                said("create handler create_fn succeeded", times=1),
            ),
        ),
        Step(
            edit({"spec": {"duration": "2m"}}),
            (status({"create_fn": {"message": "example-1 shall run for 1m"}}),),
        ),
        Step(
            restart_and_add("01-minimal"),
            (
                status(
                    {"create_fn": {"message": "example-2 shall run for 1m"}},
                    name="example-2",
                ),
                said("create handler create_fn succeeded", times=2),
            ),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

CHILDREN = Story(
    "02-children",
    (
        Step(
            create("02-children"),
            (owned_pod(1), finalizers(), said("was seen")),
        ),
        Step(
            restart_and_add("02-children"),
            (owned_pod(1), said("handler create_pod succeeded", times=2)),
        ),
        # The cluster's garbage collector ends what the parent owned.
        Step(
            delete("fnopexamples", "example-1"),
            (gone("fnopexamples"), owned_pod(0)),
        ),
    ),
)

EXCEPTIONS = Story(
    "03-exceptions",
    (
        Step(
            create("03-exceptions"),
            (
                status({"works_at_last": {"attempts": 4}}),
                said("never_again failed for good: PermanentError", times=1),
                said("works_at_last failed, again in 1 s", times=3),
                said("gives_up failed, again in 1 s: RuntimeError", times=2),
                said("gives_up failed for good after 3 attempts", times=1),
                said("not_even_once failed for good: KeyError", times=1),
            ),
        ),
        # What has failed for good is not tried again by the next process.
        Step(
            restart_and_add("03-exceptions"),
            (
                status({"works_at_last": {"attempts": 4}}, name="example-2"),
                said("never_again failed for good", times=2),
                said("gives_up failed for good", times=2),
            ),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
    failing=True,
)

EVENTS = Story(
    "04-events",
    (
        Step(
            create("04-events"),
            (
                events(
                    ("Normal", "Creating"),
                    ("Warning", "OutOfPaper"),
                    ("Normal", "Created"),
                ),
                status({}),
            ),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

HANDLERS = Story(
    "05-handlers",
    (
        Step(
            create("05-handlers"),
            (
                status(
                    {
                        "seen": "create",
                        "create_fn": {"field": "value"},
                        # A null in a merge patch means "no such key".
                        "field_fn/spec.field": {"new": "value"},
                    }
                ),
                finalizers(MARKER),
                said("the operator starts", times=1),
            ),
        ),
        Step(
            edit({"spec": {"field": "changed"}}),
            (
                status(
                    {
                        "seen": "create",
                        "changed": ["spec.field"],
                        "create_fn": {"field": "value"},
                        "field_fn/spec.field": {"old": "value", "new": "changed"},
                    }
                ),
                said("changed: spec.field", times=1),
            ),
        ),
        Step(
            restart,
            (
                status(
                    {
                        "seen": "resume",
                        "changed": ["spec.field"],
                        "create_fn": {"field": "value"},
                        "field_fn/spec.field": {"old": "value", "new": "changed"},
                    }
                ),
                said("the operator ends", times=1),
                said("the operator starts", times=2),
            ),
        ),
        Step(
            delete("fnopexamples", "example-1"),
            (gone("fnopexamples"), said("example-1 is cleaned up", times=1)),
        ),
    ),
)

PHASE = "example.fnop.dev/phase"

SPIES = Story(
    "08-event-spies",
    (
        Step(
            create("08-event-spies"),
            (
                annotation("pods", "watched", PHASE, "Pending"),
                annotation("pods", "ignored", PHASE, None),
                said("always_fails failed, which is ignored: RuntimeError"),
            ),
        ),
        Step(delete("pods", "watched"), (gone("pods", "watched"), said("DELETED: "))),
    ),
)


def create_late(world: World) -> None:
    """An object whose secret comes after it."""
    (example,) = manifests_of("09-testing")[1:]
    spec = {**example["spec"], "secret": "key"}
    world.create({**example, "metadata": {"name": "example-2"}, "spec": spec})
    world.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})


TESTING = Story(
    "09-testing",
    (
        Step(
            create("09-testing"),
            (
                status({"claim": {"volume": "example-1-data"}}),
                finalizers(),
                events(("Normal", "Claimed")),
                Expectation(
                    "the volume has the size",
                    lambda seen: (
                        (seen.get("persistentvolumeclaims", "example-1-data") or {})
                        .get("spec", {})
                        .get("resources")
                        == {"requests": {"storage": "2Gi"}}
                    ),
                ),
            ),
        ),
        Step(
            create_late,
            (status({"claim": {"volume": "example-2-data"}}, name="example-2"),),
        ),
        Step(
            edit({"spec": {"size": "1Gi"}}),
            (said("resize/spec.size failed for good: PermanentError", times=1),),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)


def restart_and_recolour(world: World) -> None:
    world.restart()
    world.edit("configmaps", "original", {"data": {"colour": "green"}})


BUILTINS = Story(
    "10-builtins",
    (
        Step(
            create("10-builtins"),
            (
                data("configmaps", "twin", {"colour": "blue"}),
                remembered("configmaps", "original"),
                remembered("configmaps", "plain", False),
                remembered("configmaps", "twin", False),
                held("configmaps", "original", False),
                held("pods", "server"),
                held("services", "front", False),
                annotation("pods", "server", "example.fnop.dev/known-as", "front"),
                said("configmaps/original: "),
                said("pods/server: "),
            ),
        ),
        # The next process finds in the annotation what was handled.
        Step(
            restart_and_recolour,
            (
                data("configmaps", "twin", {"colour": "green"}),
                said("create handler copied succeeded", times=1),
                said("update handler copied succeeded", times=1),
            ),
        ),
        Step(
            delete("pods", "server"),
            (
                gone("pods", "server"),
                gone("services", "front"),
                said("pods/server: DELETED"),
            ),
        ),
        Step(
            delete("configmaps", "original"),
            (gone("configmaps", "original"), gone("configmaps", "twin")),
        ),
    ),
)

PARTS = Story(
    "07-subhandlers",
    (
        Step(
            create("07-subhandlers"),
            (
                status(
                    {
                        "build/first": {"attempts": 1},
                        "build/second": {"attempts": 3},
                        "checked": {"good": "success", "bad": "failure"},
                    }
                ),
                said("build/second failed, again in 1 s", times=2),
            ),
        ),
        Step(
            edit({"spec": {"items": [{"name": "third"}]}}),
            (said("update handler build/third succeeded", times=1),),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
    failing=True,
)


def shows(name: str, value: Any) -> Expectation:
    """A field of the example's status."""

    def holds(seen: Picture) -> bool:
        shown = own_status(seen.get("fnopexamples", "example-1")) or {}
        return bool(shown.get(name) == value)

    return Expectation(f"status.{name} is {value!r}", holds)


FILTERING = Story(
    "11-filtering",
    (
        Step(
            create("11-filtering"),
            (
                shows("by_label", True),
                shows("by_absence", None),
                shows("by_annotation", True),
                shows("by_function", True),
                shows("by_change", None),
                Expectation(
                    "the child is known by its owner",
                    lambda seen: str(
                        (own_status(seen.get("fnopexamples", "example-1")) or {}).get(
                            "child"
                        )
                    ).startswith("example-1-"),
                ),
            ),
        ),
        Step(edit({"spec": {"field": "changed"}}), (shows("by_change", True),)),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

EMBEDDED = Story(
    "12-embedded",
    (
        Step(
            create("12-embedded"),
            (status({"greet": {"message": "hello, example-1"}}), finalizers(MARKER)),
        ),
        Step(
            delete("fnopexamples", "example-1"),
            (gone("fnopexamples"), said("goodbye, example-1", times=1)),
        ),
    ),
)

HOOKS = Story(
    "13-hooks",
    (
        Step(
            create("13-hooks"),
            (
                status({"greet": {"message": "hello, example-1, after 2 attempts"}}),
                said("prepare failed, again in 1 s", times=1),
                said("startup handler prepare succeeded", times=1),
            ),
        ),
        Step(
            restart_and_add("13-hooks"),
            (
                status(
                    {"greet": {"message": "hello, example-2, after 2 attempts"}},
                    name="example-2",
                ),
                said("the operator leaves", times=1),
                said("startup handler prepare succeeded", times=2),
            ),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

DAEMONS = Story(
    "14-daemons",
    (
        Step(
            create("14-daemons"),
            (
                finalizers(MARKER),
                shows("followed", "value"),
                shows("once", {"said": "goodbye, example-1"}),
                said("listening", times=1),
            ),
        ),
        Step(edit({"spec": {"field": "changed"}}), (shows("followed", "changed"),)),
        Step(
            edit({"metadata": {"labels": {"somelabel": None}}}),
            (said("done listening: filters_mismatch", times=1),),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

TIMERS = Story(
    "15-timers",
    (
        Step(
            create("15-timers"),
            (
                finalizers(),
                shows("ticks", 3),
                shows("called", None),
                shows("quiet", "value"),
                said("until_it_is_done failed for good", times=1),
            ),
        ),
        Step(edit({"spec": {"field": "changed"}}), (shows("quiet", "changed"),)),
        Step(
            edit({"metadata": {"labels": {"somelabel": None}}}),
            (shows("called", True),),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
    failing=True,
)

PEERING = Story(
    "06-peering",
    (
        Step(create("06-peering"), (shows("handle", {"field": "value"}),)),
        Step(
            edit({"spec": {"field": "changed"}}),
            (shows("handle", {"field": "changed"}),),
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)

INDEXING = Story(
    "16-indexing",
    (
        again_until(create("16-indexing"), shows("maps", {"blue": ["sea", "sky"]})),
        Step(
            delete("configmaps", "sea"),
            (gone("configmaps", "sea"),),
        ),
        again_until(
            edit({"spec": {"field": "changed"}}), shows("maps", {"blue": ["sky"]})
        ),
        Step(delete("fnopexamples", "example-1"), (gone("fnopexamples"),)),
    ),
)


def told(kind: str, condition: str, value: str, reason: str) -> Expectation:
    """A condition of the example; the object that it is of has been seen as it is."""

    def holds(seen: Picture) -> bool:
        found = seen.get(kind, "example-1") or {}
        told = condition_of(found, condition)
        return bool(told) and (
            (told["status"], told["reason"]) == (value, reason)
            and told["observedGeneration"] == found["metadata"]["generation"]
        )

    return Expectation(f"{condition} of {kind} is {value} for {reason}", holds)


def synced(kind: str) -> Expectation:
    return told(kind, "Synced", "True", "AsDesired")


def spec_of(kind: str, name: str, field: str, value: Any) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get(kind, name)
        return found is not None and bool(found["spec"].get(field) == value)

    return Expectation(f"spec.{field} of {name} of {kind} is {value!r}", holds)


def of_tenant(
    kind: str, expected: Callable[[Manifest | None], bool], what: str
) -> Expectation:
    """Something that is so of a child of a tenant, in the tenant's namespace."""

    def holds(seen: Picture) -> bool:
        tenant = seen.get("tenants", "example-1") or {}
        place = (tenant.get("status") or {}).get("namespace")
        return place is not None and expected(seen.get(kind, "tenant", place))

    return Expectation(f"{kind} of the tenant: {what}", holds)


def quota(**hard: str) -> Expectation:
    wanted = {name.replace("_", "."): value for name, value in hard.items()}
    return of_tenant(
        "resourcequotas",
        lambda found: found is not None and found["spec"]["hard"] == wanted,
        f"{wanted}",
    )


def members(*names: str, role: str) -> Expectation:
    def expected(found: Manifest | None) -> bool:
        return (
            found is not None
            and found["roleRef"]["name"] == role
            and [each["name"] for each in found.get("subjects", ())] == [*names]
        )

    return of_tenant("rolebindings", expected, f"{names} are {role}")


def hands_off_children(world: World) -> None:
    """A user who changes objects that the database owns."""
    world.edit("statefulsets", "example-1", {"spec": {"replicas": 5}})
    world.edit("services", "example-1", {"spec": {"selector": {"database": "x"}}})


def secret_without_owner(world: World) -> None:
    """The owner reference is lost, as with some backups; the password is noted."""
    secret = world.get("secrets", "example-1")
    assert secret is not None
    notes = {"example.com/was": secret["data"]["password"]}
    meta = {"ownerReferences": None, "annotations": notes}
    world.edit("secrets", "example-1", {"metadata": meta})


def same_password() -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get("secrets", "example-1")
        if found is None or len(found["metadata"].get("ownerReferences") or ()) != 1:
            return False
        was = found["metadata"]["annotations"]["example.com/was"]
        return bool(found["data"]["password"] == was)

    return Expectation("the Secret has its owner again, and the same password", holds)


def scaled_by_hand(world: World) -> None:
    world.edit("statefulsets", "example-1/scale", {"spec": {"replicas": 1}})


DATABASE = Story(
    "19-database",
    (
        Step(
            create("19-database"),
            (
                synced("databases"),
                told("databases", "Ready", "False", "Replicas"),
                data("configmaps", "example-1", {"LOG_LEVEL": "info"}),
                spec_of("statefulsets", "example-1", "replicas", 3),
                spec_of("services", "example-1", "clusterIP", "None"),
            ),
        ),
        # Only the database determines their number, and the content of the map.
        Step(
            hands_off_children,
            (
                spec_of("statefulsets", "example-1", "replicas", 3),
                spec_of("services", "example-1", "selector", {"database": "example-1"}),
                said("repaired service/example-1: spec.selector.database"),
                synced("databases"),
            ),
        ),
        Step(secret_without_owner, (same_password(), synced("databases"))),
        # As kubectl scale does: older servers then record no manager of the field.
        Step(
            scaled_by_hand,
            (
                said("repaired statefulset/example-1: spec.replicas"),
                spec_of("statefulsets", "example-1", "replicas", 3),
                synced("databases"),
            ),
        ),
        Step(
            delete("configmaps", "example-1"),
            (data("configmaps", "example-1", {"LOG_LEVEL": "info"}),),
        ),
        Step(
            edit(
                {"spec": {"size": 1, "settings": {"LOG_LEVEL": "debug"}}}, "databases"
            ),
            (
                data("configmaps", "example-1", {"LOG_LEVEL": "debug"}),
                spec_of("statefulsets", "example-1", "replicas", 1),
                synced("databases"),
            ),
        ),
        Step(
            delete("databases", "example-1"),
            (
                gone("databases"),
                gone("statefulsets"),
                gone("services"),
                gone("configmaps"),
                gone("secrets"),
            ),
        ),
    ),
)


def retemplate(change: Manifest) -> Callable[[World], None]:
    return lambda world: world.edit("configmaps", "small", change)


def restart_and_retemplate(world: World) -> None:
    world.restart()
    world.edit("configmaps", "small", {"data": {"pods": "30"}})


TENANTS = Story(
    "20-tenants",
    (
        Step(
            create("20-tenants"),
            (
                synced("tenants"),
                told("tenants", "Ready", "True", "Served"),
                quota(pods="10", requests_cpu="4"),
                members("anna", "ben", role="edit"),
            ),
        ),
        Step(
            retemplate({"data": {"pods": "20"}}),
            (quota(pods="20", requests_cpu="4"),),
        ),
        Step(
            restart_and_retemplate,
            (quota(pods="30", requests_cpu="4"), synced("tenants")),
        ),
        # The role of a binding is immutable: it is recreated.
        Step(
            edit({"spec": {"role": "view", "members": ["carl"]}}, "tenants"),
            (members("carl", role="view"), synced("tenants")),
        ),
        Step(
            delete("configmaps", "small"),
            (told("tenants", "Ready", "False", "NoTemplate"), quota(pods="0")),
        ),
        Step(delete("tenants", "example-1"), (gone("tenants"),)),
    ),
    everywhere=True,
)

RECORDS = Story(
    "21-records",
    (
        Step(
            create("21-records"),
            (
                told("records", "Ready", "True", "Published"),
                data(
                    "configmaps",
                    "example-1",
                    {"www.example.org": "192.0.2.1", "api.example.org": "192.0.2.1"},
                ),
            ),
        ),
        Step(
            edit({"spec": {"hosts": ["www"], "address": "192.0.2.2"}}, "records"),
            (
                data("configmaps", "example-1", {"www.example.org": "192.0.2.2"}),
                told("records", "Ready", "True", "Published"),
            ),
        ),
        Step(
            delete("configmaps", "example-1"),
            (told("records", "Ready", "True", "Published"),),
        ),
        Step(
            delete("records", "example-1"),
            (gone("records"), gone("configmaps"), said("handler forget succeeded")),
        ),
    ),
)

# No server calls the operator if it is not registered with it: this holds with its
# webhooks and without.
ADMISSION = Story(
    "22-admission",
    (
        Step(
            create("22-admission"),
            (
                synced("sites"),
                data(
                    "configmaps", "example-1", {"host": "www.example.org", "size": "1"}
                ),
            ),
        ),
        Step(
            edit({"spec": {"size": 2}}, "sites"),
            (
                data(
                    "configmaps", "example-1", {"host": "www.example.org", "size": "2"}
                ),
                synced("sites"),
            ),
        ),
        Step(delete("sites", "example-1"), (gone("sites"), gone("configmaps"))),
    ),
)


def job_of_training(image: str) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get("jobs", "example-1")
        if found is None:
            return False
        template = found["spec"]["template"]
        (container,) = template["spec"]["containers"]
        label = template["metadata"]["labels"].get("trainings.fnop.dev/name")
        return (container["image"], label) == (image, "example-1")

    return Expectation(f"a Job trains {image}, with pods of the training", holds)


def accuracy(value: str) -> Expectation:
    def holds(seen: Picture) -> bool:
        found = seen.get("trainings", "example-1") or {}
        return bool((found.get("status") or {}).get("accuracy") == value)

    return Expectation(f"the training has the accuracy {value}", holds)


TOLD = accuracy("0.93")


def pods_note_accuracy(world: World) -> None:
    """Note the accuracy on the Job's pods, as the log handler does.

    It makes one pod if no controller makes them.
    """
    key = "trainings.fnop.dev/name"
    job = world.get("jobs", "example-1")
    assert job is not None
    owner = {
        **{"apiVersion": "batch/v1", "kind": "Job", "controller": True},
        **{each: job["metadata"][each] for each in ("name", "uid")},
    }
    notes = {
        "trainings.fnop.dev/accuracy": "0.93",
        "trainings.fnop.dev/read": "2999-01-01T00:00:00+00:00",
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "example-1-by-hand",
            "labels": {key: "example-1"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }

    def is_told() -> bool:
        """The Job's controller may be late."""
        metas = [each["metadata"] for each in world.objects("pods")]
        of_job = [each for each in metas if (each.get("labels") or {}).get(key)]
        if not of_job:
            world.create(pod)
        for each in of_job:
            if not notes.items() <= (each.get("annotations") or {}).items():
                world.edit("pods", each["name"], {"metadata": {"annotations": notes}})
        return TOLD.holds(world)

    world.until(is_told)


# Nothing runs on a server without a kubelet: lines of logs are in the example's tests.
LOGS = Story(
    "23-logs",
    (
        Step(
            create("23-logs"),
            (
                synced("trainings"),
                job_of_training("training.example.org/digits"),
            ),
        ),
        Step(pods_note_accuracy, (TOLD,)),
        Step(
            edit({"spec": {"image": "training.example.org/letters"}}, "trainings"),
            (synced("trainings"), job_of_training("training.example.org/letters")),
        ),
        Step(delete("trainings", "example-1"), (gone("trainings"), gone("jobs"))),
    ),
)

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_monitors(world: World) -> None:
    """The kind may be there: in simulation it is from the start."""
    definition = manifests_of("24-cluster")[1]
    assert world.raw("POST", DEFINITIONS, definition)[0] in (201, 409)


def install_and_create(world: World) -> None:
    install_monitors(world)
    create("24-cluster")(world)


def remove_monitors(world: World) -> None:
    """A kind is removed when it has been missed for a while."""
    path = f"{DEFINITIONS}/monitors.fnop.dev"
    assert world.raw("DELETE", path)[0] == 200
    world.until(lambda: UNMONITORED.holds(world))


UNMONITORED = told("shops", "Monitored", "False", "NotInstalled")


def monitored(host: str) -> tuple[Expectation, ...]:
    return (
        told("shops", "Monitored", "True", "Applied"),
        spec_of("monitors", "example-1", "host", host),
    )


CLUSTER = Story(
    "24-cluster",
    (
        Step(install_and_create, monitored("shop.example.org")),
        Step(remove_monitors, (UNMONITORED, said("no shop is monitored any more"))),
        Step(
            install_monitors,
            (
                *monitored("shop.example.org"),
                said("kind_added handler look_again succeeded"),
            ),
        ),
        Step(
            edit({"spec": {"host": "www.example.org"}}, "shops"),
            (*monitored("www.example.org"), synced("shops")),
        ),
        Step(delete("shops", "example-1"), (gone("shops"), gone("monitors"))),
    ),
    everywhere=True,
)

STORIES = (
    MINIMAL,
    CHILDREN,
    EXCEPTIONS,
    EVENTS,
    HANDLERS,
    PEERING,
    PARTS,
    SPIES,
    TESTING,
    BUILTINS,
    FILTERING,
    EMBEDDED,
    HOOKS,
    DAEMONS,
    TIMERS,
    INDEXING,
    DATABASE,
    TENANTS,
    RECORDS,
    ADMISSION,
    LOGS,
    CLUSTER,
)
