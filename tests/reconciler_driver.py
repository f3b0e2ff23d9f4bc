"""A random user of the level-based examples, and a judge of the end state.

The user creates, edits and deletes owners. The user also edits fields of children that
the operator has, adds others, and deletes children, as no user should. The operator is
restarted and killed in between. In the end the cluster has exactly the children that
the owners desire; additions by others are unchanged; foreign objects are not touched.

A `World` is a simulated cluster or a real one. `Subject.desired` states the desired
objects again, without the operator's code.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from tests.simulations import manifests_of

__all__ = ["ELSEWHERE", "GARDENS", "SUBJECTS", "Driver", "Subject", "World"]

Manifest = dict[str, Any]
MERGE = "application/merge-patch+json"
OTHERS = "others.example.com/note"
NAMES = ("ash", "birch", "cedar")

# The namespaces of kinds; cluster-scoped kinds have none.
ROOTS = {
    **dict.fromkeys(("databases", "tenants", "records"), "/apis/fnop.dev/v1"),
    **dict.fromkeys(("gardens", "beds"), "/apis/fnop.dev/v1"),
    **dict.fromkeys(
        ("configmaps", "secrets", "services", "resourcequotas", "namespaces"), "/api/v1"
    ),
    "statefulsets": "/apis/apps/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}


class World(Protocol):
    """A cluster and an operator, as the driver wants them."""

    namespace: str

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = ...
    ) -> tuple[int, Any]: ...

    def restart(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self, chance: random.Random) -> None: ...

    @property
    def outside(self) -> dict[str, Any]:
        """The records of the name server, by owner."""
        ...


class Where(NamedTuple):
    """The place of an object."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def path(self) -> str:
        place = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{ROOTS[self.kind]}{place}/{self.kind}/{self.name}"


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}


def has_label(meta: Manifest) -> bool:
    return "fnop.dev/set" in (meta.get("labels") or {})


@dataclass
class Subject:
    """An example: its owners, what the user may do, and what is desired."""

    example: str
    kind: str
    spec: Callable[[random.Random], Manifest]
    # The desired children of an owner: the fields that the operator has, by place.
    desired: Callable[[Manifest, Driver], dict[Where, Manifest]]
    # Merge patches of fields that the operator has, by kind of child.
    hands: dict[str, list[Manifest]]
    # Merge patches of fields that it does not have; they are to stay.
    notes: dict[str, list[Manifest]]
    more: list[Callable[[Driver], None]] = field(default_factory=list)
    given: list[Manifest] = field(default_factory=list)
    everywhere: bool = False
    # What looks like a child.
    bare: Manifest = field(default_factory=lambda: CONFIG_MAP)
    # The operator, if it is not an example, and the definitions of its kinds.
    operator: str = ""
    definitions: list[Manifest] = field(default_factory=list)
    # What runs it, and whether it has made the object with these metadata.
    program: str = "fnop"
    is_made: Callable[[Manifest], bool] = has_label

    @property
    def owner(self) -> Manifest:
        """The kind of an owner."""
        found = (self.definitions or manifests_of(self.example))[0]["spec"]
        version = found["versions"][0]["name"]
        kind = found["names"]["kind"]
        return {"apiVersion": f"{found['group']}/{version}", "kind": kind}


class Driver:
    """A run: the user's actions one after the other, and the judgement."""

    def __init__(self, subject: Subject, world: World, seed: int) -> None:
        self.subject, self.world = subject, world
        self.chance = random.Random(seed)
        self.story: list[str] = []
        self.may_restart = True
        # What others have put onto objects, by place and uid.
        self.noted: dict[tuple[Where, str], list[Manifest]] = {}
        # What they have put into fields that the operator has, or had, or will have.
        self.handed: dict[tuple[Where, str], list[Manifest]] = {}
        self.foreign: dict[Where, Manifest] = {}

    # -------------------------------------------------------------- requests

    def get(self, where: Where) -> Manifest | None:
        status, found = self.world.raw("GET", where.path)
        assert status in (200, 404), found
        return found if status == 200 else None

    def listed(self, kind: str, namespace: str = "") -> list[Manifest]:
        place = f"/namespaces/{namespace}" if namespace else ""
        status, found = self.world.raw("GET", f"{ROOTS[kind]}{place}/{kind}")
        assert status == 200, found
        items: list[Manifest] = found["items"]
        return items

    def create(self, where: Where, manifest: Manifest) -> Manifest | None:
        meta = {**manifest.get("metadata", {}), "name": where.name}
        if where.namespace:
            meta["namespace"] = where.namespace
        path = where.path.rpartition("/")[0]
        status, found = self.world.raw("POST", path, {**manifest, "metadata": meta})
        assert status in (201, 403, 409), found
        return found if status == 201 else None

    def edit(self, where: Where, change: Manifest) -> Manifest | None:
        status, found = self.world.raw("PATCH", where.path, change, MERGE)
        assert status in (200, 404, 409, 403), (where, change, found)
        return found if status == 200 else None

    def delete(self, where: Where) -> None:
        status, found = self.world.raw("DELETE", where.path)
        assert status in (200, 202, 404, 409), found

    # --------------------------------------------------------------- the user

    def begin(self) -> None:
        for manifest in self.subject.given:
            kind = manifest["kind"].lower() + "s"
            where = Where(kind, manifest["metadata"]["name"], self.world.namespace)
            self.create(where, manifest)
        self._make_foreign()
        self.make_owner(NAMES[0])

    def _make_foreign(self) -> None:
        """Create objects that only look like children."""
        bare = self.subject.bare
        kind = bare["kind"].lower() + "s"
        where = Where(kind, "foreign", self.world.namespace)
        made = self.create(where, bare)
        assert made is not None
        names = {key: bare[key] for key in ("apiVersion", "kind")}
        reference = {**names, "name": "foreign"}
        owned = {"ownerReferences": [{**reference, "uid": made["metadata"]["uid"]}]}
        other = Where(kind, "foreign-too", self.world.namespace)
        found = self.create(other, {**bare, "metadata": owned})
        assert found is not None
        self.foreign = {where: made, other: found}

    def owner(self, name: str) -> Where:
        return Where(self.subject.kind, name, self.world.namespace)

    def make_owner(self, name: str) -> None:
        spec = self.subject.spec(self.chance)
        self.tell(f"create {name} {spec}")
        self.create(self.owner(name), {**self.subject.owner, "spec": spec})

    def end(self) -> None:
        """Delete all owners: nothing of theirs is to be left."""
        for name in NAMES:
            self.delete(self.owner(name))

    def tell(self, line: str) -> None:
        self.story.append(line)

    def act(self) -> None:
        """One action of the user, or of the cluster's admin."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (3, lambda: self.make_owner(self.chance.choice(NAMES))),
            (6, self._edit_owner),
            (2, self._delete_owner),
            (6, self._lay_hands_on),
            (4, self._note),
            (4, self._delete_child),
            *(((2, self._restart), (2, self._kill)) if self.may_restart else ()),
            *((2, lambda each=each: each(self)) for each in self.subject.more),
        ]
        weights = [weight for weight, _ in actions]
        (chosen,) = self.chance.choices([each for _, each in actions], weights)
        chosen()

    def _owners(self) -> list[Manifest]:
        found = self.listed(self.subject.kind, self.world.namespace)
        return sorted(found, key=lambda each: str(each["metadata"]["name"]))

    def _edit_owner(self) -> None:
        for found in self.chance.sample(self._owners(), k=min(1, len(self._owners()))):
            name, spec = found["metadata"]["name"], self.subject.spec(self.chance)
            key = self.chance.choice(sorted(spec))
            self.tell(f"edit {name} {key}={spec[key]}")
            self.edit(self.owner(name), {"spec": {key: spec[key]}})

    def _delete_owner(self) -> None:
        name = self.chance.choice(NAMES)
        self.tell(f"delete {name}")
        self.delete(self.owner(name))

    def _child(self) -> Where | None:
        """A child that should be there, of any owner."""
        found = [place for each in self._owners() for place in self._places(each)]
        return self.chance.choice(found) if found else None

    def _places(self, owner: Manifest) -> list[Where]:
        return sorted(self.subject.desired(owner, self))

    def _lay_hands_on(self) -> None:
        where = self._child()
        if where is not None and self.subject.hands.get(where.kind):
            change = self.chance.choice(self.subject.hands[where.kind])
            self.tell(f"hands on {where.kind}/{where.name} {change}")
            found = self.edit(where, change)
            if found is not None:
                key = where, found["metadata"]["uid"]
                self.handed.setdefault(key, []).append(change)

    def _note(self) -> None:
        where = self._child()
        if where is None:
            return
        label = {"metadata": {"labels": {OTHERS: str(self.chance.randrange(99))}}}
        change = self.chance.choice([label, *self.subject.notes.get(where.kind, ())])
        found = self.edit(where, change)
        if found is not None:
            self.tell(f"note on {where.kind}/{where.name} {change}")
            self.noted.setdefault((where, found["metadata"]["uid"]), []).append(change)

    def _delete_child(self) -> None:
        where = self._child()
        if where is not None:
            self.tell(f"delete {where.kind}/{where.name}")
            self.delete(where)

    def _restart(self) -> None:
        self.tell("restart")
        self.world.restart()

    def _kill(self) -> None:
        self.tell("kill")
        self.world.kill()

    # -------------------------------------------------------------- the judge

    def wrong(self) -> list[str]:
        """The deviations at the end."""
        return [*self._wrong_owners(), *self._wrong_children(), *self._wrong_others()]

    def _wrong_owners(self) -> Iterator[str]:
        for each in self._owners():
            name, status = each["metadata"]["name"], each.get("status") or {}
            if "deletionTimestamp" in each["metadata"]:
                yield f"{name} is still being deleted"
                continue
            told = {e["type"]: e for e in status.get("conditions") or ()}
            synced = told.get("Synced", {})
            if synced.get("status") != "True":
                yield f"{name} is not synced: {synced.get('message')}"
            if synced.get("observedGeneration") != each["metadata"]["generation"]:
                yield f"the conditions of {name} are about an older generation"

    def _wrong_children(self) -> Iterator[str]:
        wanted: dict[Where, Manifest] = {}
        for each in self._owners():
            wanted |= self.subject.desired(each, self)
        for where, fields in wanted.items():
            found = self.get(where)
            if found is None:
                yield f"{where} is missing"
                continue
            notes = self.noted.get((where, found["metadata"]["uid"]), [])
            for change in notes:
                fields = merged(fields, change)
            for change in self.handed.get((where, found["metadata"]["uid"]), ()):
                found = without(found, change, fields)
            yield from (f"{where}: {text}" for text in differing(fields, found))
        for place in self._all_owned():
            if place not in wanted:
                yield f"{place} should not be there"

    def _all_owned(self) -> Iterator[Where]:
        """All objects in the cluster that bear the operator's mark."""
        scope = "" if self.subject.everywhere else self.world.namespace
        for kind in sorted(self.subject.hands):
            for each in self.listed(kind, scope):
                meta = each["metadata"]
                place = meta.get("namespace") or meta["name"]
                is_here = place.startswith(self.world.namespace)
                if is_here and self.subject.is_made(meta):
                    yield Where(kind, meta["name"], meta.get("namespace", ""))

    def _wrong_others(self) -> Iterator[str]:
        for where, before in self.foreign.items():
            found = self.get(where)
            meta = before["metadata"]
            if found is None or found["metadata"]["uid"] != meta["uid"]:
                yield f"{where} was foreign, and is gone"
            elif found["metadata"]["resourceVersion"] != meta["resourceVersion"]:
                yield f"{where} was foreign, and is changed"
        if self.subject.kind == "records":
            wanted = {e["metadata"]["uid"]: addresses(e) for e in self._owners()}
            if self.world.outside != wanted:
                yield f"outside there is {self.world.outside}, and not {wanted}"


def merged(value: Any, change: Any) -> Any:
    """The value after a merge patch without nulls."""
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    rest = {k: merged(value.get(k), v) for k, v in change.items()}
    return {**value, **rest}


def without(found: Any, change: Any, wanted: Any) -> Any:
    """An object without values that a change has put into undesired fields.

    A client that sets a field has it: if it is not desired, it stays.
    """
    if not isinstance(found, dict) or not isinstance(change, dict):
        return found
    known = wanted if isinstance(wanted, dict) else {}
    rest = {
        key: without(value, change.get(key), known.get(key))
        for key, value in found.items()
        if key in known or isinstance(value, dict) or value != change.get(key)
    }
    return rest


# Mappings in which only desired entries may be, and entries noted by others.
CLOSED = (("data",), ("spec", "hard"), ("spec", "selector"))


def differing(wanted: Any, found: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The fields that are not as wanted; more may be there but in CLOSED mappings."""
    if isinstance(wanted, dict) and isinstance(found or {}, dict):
        found = found or {}
        for key, value in wanted.items():
            yield from differing(value, found.get(key), (*path, key))
        more = found.keys() - wanted.keys()
        if path in CLOSED and more:
            yield f"{'.'.join(path)} has {sorted(more)}, too"
    elif callable(wanted):
        if not wanted(found):
            yield f"{'.'.join(path)} is {found!r}"
    elif wanted != found:
        yield f"{'.'.join(path)} is {found!r} and not {wanted!r}"


# ---------------------------------------------------------------- the databases


def database_spec(chance: random.Random) -> Manifest:
    letters = chance.sample("ABCDEF", k=chance.randrange(4))
    return {
        "size": chance.randrange(1, 5),
        "disk": chance.choice(["1Gi", "1Gi", "2Gi"]),
        "settings": {each: str(chance.randrange(9)) for each in letters},
    }


def is_password(value: Any) -> bool:
    return isinstance(value, str) and len(base64.b64decode(value)) == 32


def database_children(owner: Manifest, driver: Driver) -> dict[Where, Manifest]:
    name, namespace = owner["metadata"]["name"], driver.world.namespace
    spec = owner["spec"]
    by = {"metadata": {"ownerReferences": is_of(owner)}}
    claims: Callable[[Any], bool] = lambda found: (  # noqa: E731
        [e["spec"]["resources"]["requests"]["storage"] for e in found] == [spec["disk"]]
    )
    return {
        Where("configmaps", name, namespace): {**by, "data": spec.get("settings", {})},
        Where("secrets", name, namespace): {**by, "data": {"password": is_password}},
        Where("services", name, namespace): {
            **by,
            "spec": {"clusterIP": "None", "selector": {"database": name}},
        },
        Where("statefulsets", name, namespace): {
            **by,
            "spec": {"replicas": spec["size"], "volumeClaimTemplates": claims},
        },
    }


def is_of(owner: Manifest) -> Callable[[Any], bool]:
    uid = owner["metadata"]["uid"]
    return lambda found: [each["uid"] for each in found or ()] == [uid]


DATABASES = Subject(
    "19-database",
    "databases",
    database_spec,
    database_children,
    hands={
        "configmaps": [{"data": {each: "hands"}} for each in "ABC"],
        "secrets": [
            {"metadata": {"annotations": {"databases.fnop.dev/made": "garbage"}}},
            {"data": {"password": None}},
            {"metadata": {"annotations": {"fnop.dev/applied": "x"}}},
        ],
        "services": [
            {"spec": {"selector": {"database": "hands"}}},
            {"spec": {"selector": None}},
            {"metadata": {"labels": {"fnop.dev/set": None}}},
        ],
        "statefulsets": [
            {"spec": {"replicas": 7}},
            {"spec": {"replicas": 0}},
        ],
    },
    notes={
        "configmaps": [{"data": {"others": "1"}}],
        "secrets": [{"data": {"others": "MQ=="}}],
        "services": [{"spec": {"sessionAffinity": "ClientIP"}}],
        "statefulsets": [{"spec": {"template": {"metadata": {"labels": {"o": "1"}}}}}],
    },
)


# ------------------------------------------------------------------ the tenants


def tenant_spec(chance: random.Random) -> Manifest:
    return {
        "template": chance.choice(["small", "large", "missing"]),
        "role": chance.choice(["view", "edit"]),
        "members": chance.sample(["anna", "ben", "carl"], k=chance.randrange(4)),
    }


def template(name: str, pods: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"tenant-template": "quota"}},
        "data": {"pods": pods},
    }


def tenant_children(owner: Manifest, driver: Driver) -> dict[Where, Manifest]:
    spec, meta = owner["spec"], owner["metadata"]
    place = f"{driver.world.namespace}-{meta['name']}"
    found = driver.get(Where("configmaps", spec["template"], driver.world.namespace))
    labels = found["metadata"].get("labels") or {} if found else {}
    hard = (found or {}).get("data", {}) if "tenant-template" in labels else None
    mark = f"Tenant.fnop.dev/{driver.world.namespace}/{meta['name']}/{meta['uid']}"
    by = {"metadata": {"annotations": {"fnop.dev/owner": mark}}}
    names: Callable[[Any], bool] = lambda found: (  # noqa: E731
        [each["name"] for each in found or ()] == (spec.get("members") or [])
    )
    return {
        Where("namespaces", place): by,
        Where("resourcequotas", "tenant", place): {
            **by,
            "spec": {"hard": {"pods": "0"} if hard is None else hard},
        },
        Where("networkpolicies", "tenant", place): {
            **by,
            "spec": {"policyTypes": ["Ingress"]},
        },
        Where("rolebindings", "tenant", place): {
            **by,
            "roleRef": {"name": spec["role"]},
            "subjects": names,
        },
    }


def change_template(driver: Driver) -> None:
    name = driver.chance.choice(["small", "large"])
    where = Where("configmaps", name, driver.world.namespace)
    value = str(driver.chance.randrange(1, 99))
    change: Manifest = driver.chance.choice(
        [
            {"data": {"pods": value}},
            {"data": {"requests.cpu": value}},
            {"data": {"requests.cpu": None}},
            {"metadata": {"labels": {"tenant-template": None}}},
            {"metadata": {"labels": {"tenant-template": "quota"}}},
        ]
    )
    driver.tell(f"template {name} {change}")
    driver.edit(where, change)


def replace_template(driver: Driver) -> None:
    name = driver.chance.choice(["small", "large"])
    where = Where("configmaps", name, driver.world.namespace)
    if driver.get(where) is None:
        driver.tell(f"create template {name}")
        driver.create(where, template(name, "7"))
    else:
        driver.tell(f"delete template {name}")
        driver.delete(where)


TENANTS = Subject(
    "20-tenants",
    "tenants",
    tenant_spec,
    tenant_children,
    hands={
        "namespaces": [{"metadata": {"annotations": {"fnop.dev/applied": "x"}}}],
        "resourcequotas": [{"spec": {"hard": {"pods": "1000"}}}],
        "networkpolicies": [{"spec": {"policyTypes": ["Egress", "Ingress"]}}],
        "rolebindings": [{"subjects": []}],
    },
    notes={"resourcequotas": [{"spec": {"hard": {"services": "5"}}}]},
    more=[change_template, replace_template],
    given=[template("small", "5"), template("large", "50")],
    everywhere=True,
)


# ------------------------------------------------------------------ the records


def record_spec(chance: random.Random) -> Manifest:
    return {
        "zone": chance.choice(["example.org", "example.net"]),
        "address": f"192.0.2.{chance.randrange(1, 9)}",
        "hosts": chance.sample(["www", "api", "mail"], k=chance.randrange(1, 4)),
    }


def addresses(owner: Manifest) -> dict[str, str]:
    spec = owner["spec"]
    return {f"{host}.{spec['zone']}": spec["address"] for host in spec["hosts"]}


def record_children(owner: Manifest, driver: Driver) -> dict[Where, Manifest]:
    by = {"metadata": {"ownerReferences": is_of(owner)}}
    where = Where("configmaps", owner["metadata"]["name"], driver.world.namespace)
    return {where: {**by, "data": addresses(owner)}}


RECORDS = Subject(
    "21-records",
    "records",
    record_spec,
    record_children,
    hands={
        "configmaps": [
            {"data": {"www.example.org": "203.0.113.9"}},
            {"metadata": {"annotations": {"records.fnop.dev/noted": "x"}}},
            {"metadata": {"labels": {"fnop.dev/set": None}}},
        ]
    },
    notes={"configmaps": [{"data": {"others": "1"}}]},
)

# ------------------------------------------------------------------ the gardens


def definition(kind: str, spec: Manifest) -> Manifest:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    plural = kind.lower() + "s"
    version = {
        **{
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
        },
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.fnop.dev"},
        "spec": {
            "group": "fnop.dev",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
FLOWER = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "count": NUMBER, "colour": TEXT},
}
IMMUTABLE = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
GARDEN = definition(
    "Garden",
    {
        "type": "object",
        "properties": {
            "soil": TEXT,
            "beds": {"type": "object", "additionalProperties": NUMBER},
        },
    },
)
BED = definition(
    "Bed",
    {
        "type": "object",
        "properties": {
            "soil": {**TEXT, "x-kubernetes-validations": IMMUTABLE},
            "flowers": {
                "type": "array",
                "items": FLOWER,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "tags": {"type": "object", "additionalProperties": TEXT},
        },
    },
)


def garden_spec(chance: random.Random) -> Manifest:
    names = chance.sample(["rose", "tulip", "lily", "iris"], k=chance.randrange(4))
    return {
        "soil": chance.choice(["clay", "clay", "sand"]),
        "beds": {each: chance.randrange(9) for each in names},
    }


def garden_children(owner: Manifest, driver: Driver) -> dict[Where, Manifest]:
    meta, spec = owner["metadata"], owner["spec"]
    mark = f"Garden.fnop.dev/{driver.world.namespace}/{meta['name']}/{meta['uid']}"
    place = f"{driver.world.namespace}-beds"
    found: dict[Where, Manifest] = {}
    for bed, count in spec.get("beds", {}).items():

        def flowers(given: Any, bed: str = bed, count: int = count) -> bool:
            known = {each["name"]: each for each in given or ()}
            return bool(known.get(bed, {}).get("count") == count)

        found[Where("beds", f"{meta['name']}-{bed}", place)] = {
            "metadata": {"annotations": {"fnop.dev/owner": mark}},
            "spec": {
                "soil": spec["soil"],
                "flowers": flowers,
                "tags": {"by": meta["name"]},
            },
        }
    return found


GARDENS = Subject(
    "",
    "gardens",
    garden_spec,
    garden_children,
    hands={
        "beds": [
            {"spec": {"tags": {"by": "hands"}}},
            {"spec": {"tags": None}},
            {"spec": {"flowers": []}},
            {"spec": {"flowers": [{"name": "weed", "count": 7}]}},
            {"metadata": {"annotations": {"fnop.dev/applied": "x"}}},
            {"metadata": {"annotations": {"fnop.dev/owner": None}}},
        ]
    },
    notes={},
    everywhere=True,
    bare={"apiVersion": "fnop.dev/v1", "kind": "Bed", "spec": {"soil": "x"}},
    operator="tests/cluster/operators/gardening.py",
    definitions=[GARDEN, BED],
)

SUBJECTS = {each.kind: each for each in (DATABASES, TENANTS, RECORDS)}

# ------------------------------------------------- the databases, with others


def has_database(meta: Manifest) -> bool:
    owners = meta.get("ownerReferences") or ()
    return any(each["kind"] == "Database" for each in owners)


def spoiling(mark: str) -> dict[str, list[Manifest]]:
    """The hands on databases, with another framework's mark in the place of ours."""
    spoiled: Manifest = {"metadata": {"annotations": {mark: "x"}}}
    lost: Manifest = {"metadata": {"annotations": {mark: None}}}
    secrets, services = (DATABASES.hands[each][:-1] for each in ("secrets", "services"))
    changed = {"secrets": [*secrets, spoiled], "services": [*services, lost]}
    return DATABASES.hands | changed


def with_kopf(name: str) -> Subject:
    return replace(
        DATABASES,
        hands=spoiling("databases.fnop.dev/applied"),
        operator=f"bench/elsewhere/{name}.py",
        program="kopf",
        is_made=has_database,
    )


ELSEWHERE = {
    "kopf-databases": with_kopf("kopf_database"),
    "kopf-databases-by-causes": with_kopf("kopf_causes"),
}
