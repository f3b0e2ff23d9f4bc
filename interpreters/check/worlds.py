"""Worlds compared: everything in a cluster, up to what differs between equal runs.

Uids, versions, timestamps and generated names differ between two runs of the same
script, and so does what fnop keeps on objects for itself. All of that is renamed or
left out; nothing else is, so there is no mask for an author to set.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from fnop.interpreters.check.sites import target_of
from fnop.interpreters.check.strikes import RIVAL
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.externals import External, externals_of

__all__ = [
    "ASIDE",
    "UID",
    "Difference",
    "Volatile",
    "World",
    "differences",
    "digests_of",
    "is_builtin",
    "learned",
    "records_in",
    "world_of",
]

# Alias of an object -> its normalised JSON text.
World = Mapping[str, bytes]

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_STABLE = re.compile(r"-[0-9a-f]{10}(?![0-9a-z])")
# The end of a name that looks like a hash, and is the time in seconds.
_UNIX = re.compile(r"-(1[5-9]|2\d)\d{8}$")
_OWN = "fnop.dev/"
# Kinds that say nothing about the end: what was told, who leads, and what the cluster's
# own controllers keep about the past.
ASIDE = frozenset(
    (
        *(("", "events"), ("events.k8s.io", "events"), ("", "nodes")),
        *(("coordination.k8s.io", "leases"), ("apps", "controllerrevisions")),
        *(("", "endpoints"), ("discovery.k8s.io", "endpointslices")),
        ("apps", "replicasets"),
    )
)
# Annotations of the cluster's own controllers.
_THEIRS = ("deployment.kubernetes.io/", "pv.kubernetes.io/", "batch.kubernetes.io/")


class Volatile(NamedTuple):
    """The differences of two benign runs, with another seed and another clock.

    `paths` are pairs of an alias and a dotted path, `objects` aliases that only one of
    the runs has. `moments` are aliases with a `#` for each number that the runs have
    otherwise, such as a slot of the clock, and `steady` says of how many of those
    there are however much time passes.
    """

    paths: frozenset[tuple[str, str]] = frozenset()
    objects: frozenset[str] = frozenset()
    moments: frozenset[str] = frozenset()
    steady: frozenset[tuple[str, int]] = frozenset()

    def moment_in(self, alias: str) -> str | None:
        """The one of `moments` that an alias is of, if it is of any."""
        if not self.moments or not any(each.isdigit() for each in alias):
            return None
        found = (each for each in self.moments if _numbers(each, alias) is not None)
        return min(found, default=None)


class Difference(NamedTuple):
    """One difference of two worlds; None stands for what is not there."""

    alias: str
    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        where = f"{self.alias} {self.path.strip('.')}".strip()
        if self._is_whole and self.found is None:
            return f"{where} is missing"
        if self._is_whole and self.expected is None:
            return f"{where} is there, and should not be"
        plain = self.concealed
        found, expected = _text(plain.found), _text(plain.expected)
        if found == expected:
            return f"{where} is another one"
        pairs = enumerate(zip(found, expected, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), 0)
        return f"{where} is {_cut(found, same)} instead of {_cut(expected, same)}"

    @property
    def _is_whole(self) -> bool:
        """Whether it is of an object, or of a thing of an external system, as such."""
        values = (self.expected, self.found)
        things = (each["id"] for each in values if _is_thing(each))
        return self.path == "" or any(self.path.startswith(each) for each in things)

    @property
    def concealed(self) -> Difference:
        """The difference without the contents of Secrets.

        >>> str(Difference("secrets/x", "data.password", "YQ==", "Yg=="))
        'secrets/x data.password is another one'
        """
        if not self.alias.startswith("secrets/"):
            return self
        inside = self.path.partition(".")[0] in _CONTENTS
        values = (_hidden(each, inside=inside) for each in (self.expected, self.found))
        return Difference(self.alias, self.path, *values)


_CONTENTS = ("data", "stringData")
_SECRET = "(secret)"


def _hidden(value: Any, *, inside: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _hidden(each, inside=inside or name in _CONTENTS)
            for name, each in value.items()
        }
    return _SECRET if inside and value is not None else value


def _text(value: Any) -> str:
    return "absent" if value is None else orjson.dumps(value).decode()


def _cut(text: str, same: int) -> str:
    """A long text around the place where it differs from the other.

    >>> _cut("a" * 100 + "b" + "c" * 100, 100)[:30]
    '...aaaaaaaaaaaaaaaaaaaabcccccc'
    """
    if len(text) <= _SHOWN:
        return text
    begin = max(0, same - 20)
    end = begin + _SHOWN
    return (
        ("..." if begin else "") + text[begin:end] + ("..." if end < len(text) else "")
    )


_SHOWN = 120


def objects_in(
    cluster: Cluster, base: Cluster
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The objects that are not as they were in the `base`, by kind and key."""
    for resource, shelf in sorted(cluster.shelves.items()):
        before = base.shelves.get(resource)
        if shelf is before or resource in ASIDE:
            continue
        for key, found in sorted(shelf.items()):
            if before is None or before.get(key) is not found:
                yield resource, found


def rolling_in(cluster: Cluster) -> frozenset[str]:
    """The aliases of what belongs to sets whose rollout has not come to its end.

    One that waits for a pod keeps pods of the version before, in the cluster's own way.
    """
    found = [
        (alias_of(resource, each), each["metadata"])
        for resource, shelf in cluster.shelves.items()
        if resource in _OF_ROLLOUTS
        for each in shelf.values()
    ]
    uids = {
        each["metadata"]["uid"]
        for resource in _SETS
        for each in cluster.shelves.get(resource, {}).values()
        if _is_rolling(each)
    }
    aliases: set[str] = set()
    for _ in _OF_ROLLOUTS:  # pods belong to a Deployment by way of a ReplicaSet
        for alias, meta in found:
            owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
            if owners & uids:
                aliases.add(alias)
                uids.add(meta["uid"])
    return frozenset(aliases)


_SETS = (("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"))
_OF_ROLLOUTS = (("apps", "replicasets"), ("", "pods"))


def _is_rolling(found: Mapping[str, Any]) -> bool:
    """Whether a set has pods of several versions, as its status tells."""
    status = found.get("status") or {}
    if "updateRevision" in status:
        return bool(status.get("currentRevision") != status["updateRevision"])
    every = status.get("replicas", status.get("desiredNumberScheduled", 0))
    now = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    return bool(now < every)


def world_of(
    cluster: Cluster, base: Cluster, calls: Mapping[str, Any] | None = None
) -> World:
    """The world of a cluster, without what was there in the `base` already.

    `calls` are the models of external systems, which belong to it.
    """
    found = [*objects_in(cluster, base)]
    names = {
        each["metadata"]["uid"]: alias_of(resource, each) for resource, each in found
    }
    generated = {
        each["metadata"]["name"]: target_of("", each)[1:]
        for _, each in found
        if target_of("", each)[1:] != each["metadata"]["name"]
    }
    # Models by bare names alone are a mapping that is empty, and not nothing.
    systems = externals_of({} if calls is None else calls)
    for system in systems:
        generated |= system.aliases()
    groups: defaultdict[str, list[bytes]] = defaultdict(list)
    for resource, each in found:
        shown = _stripped(each)
        if is_builtin(resource[0]):
            shown.pop("status", None)  # the cluster's own controllers write it
        text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
        groups[alias_of(resource, each)].append(_masked(text, names, generated))
    for number, system in enumerate(systems):
        alias = _named(number, system)
        text = orjson.dumps(
            {"": system.at_rest().visible()}, option=orjson.OPT_SORT_KEYS
        )
        groups[alias].append(_masked(text, names, generated))
    return {
        alias if len(texts) == 1 else f"{alias} ({number + 1})": text
        for alias, texts in groups.items()
        for number, text in enumerate(sorted(texts))
    }


def is_builtin(group: str) -> bool:
    """Whether Kubernetes itself has kinds of that group.

    >>> [is_builtin(each) for each in ("", "apps", "networking.k8s.io", "example.com")]
    [True, True, True, False]
    """
    return "." not in group or group.endswith(".k8s.io")


def digests_of(calls: Mapping[str, Any]) -> dict[str, bytes]:
    """The states of external systems, as JSON texts by their aliases in a world.

    Those that keep records have nothing that is to be taken away.
    """
    return {
        _named(number, each): orjson.dumps(each.visible(), option=orjson.OPT_SORT_KEYS)
        for number, each in enumerate(externals_of(calls))
        if not each.keeps_records
    }


def records_in(calls: Mapping[str, Any]) -> list[str]:
    """The aliases of external systems that keep records."""
    return [
        _named(number, each)
        for number, each in enumerate(externals_of(calls))
        if each.keeps_records
    ]


def _named(number: int, system: External) -> str:
    return f"{type(system).__name__} ({number + 1})"


def alias_of(resource: tuple[str, str], found: Mapping[str, Any]) -> str:
    """The name of an object that is the same in each run."""
    group, plural = resource
    where = found["metadata"].get("namespace")
    kind = f"{plural}.{group}" if group else plural
    name = target_of(kind, found)
    if _UNIX.search(str(found["metadata"].get("name"))):  # and nothing generated
        name = f"{kind}/{found['metadata']['name']}"
    return name if where in (None, "default") else f"{name} in {where}"


def _masked(
    text: bytes, names: Mapping[str, str], generated: Mapping[str, str]
) -> bytes:
    plain = _TIME.sub("<time>", text.decode())
    plain = UID.sub(lambda uid: f"<uid of {names.get(uid[0], 'the dead')}>", plain)
    for name in sorted(generated, key=len, reverse=True):
        plain = plain.replace(name, generated[name])
    return _STABLE.sub("-*", plain).encode()


def _stripped(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what differs in each run, and without fnop's own notes."""
    meta = found["metadata"]
    kept: dict[str, Any] = {}
    for stanza in ("labels", "annotations"):
        values = {
            key: value
            for key, value in (meta.get(stanza) or {}).items()
            if not key.startswith((_OWN, *_THEIRS)) and key != RIVAL
        }
        if values:
            kept[stanza] = values
    for key in ("ownerReferences", "finalizers"):
        if meta.get(key):
            kept[key] = meta[key]
    if "deletionTimestamp" in meta:
        kept["deletionTimestamp"] = True
    rest = {
        key: value
        for key, value in found.items()
        if key not in ("metadata", "apiVersion", "kind")
    }
    status = rest.get("status")
    if isinstance(status, dict):
        rest["status"] = _status(status, meta.get("generation"))
        if not rest["status"]:
            del rest["status"]
    return {"metadata": kept, **rest}


def _status(status: Mapping[str, Any], generation: Any) -> dict[str, Any]:
    kept = {k: v for k, v in status.items() if not k.startswith(_OWN)}
    if "observedGeneration" in kept:
        kept["observedGeneration"] = kept["observedGeneration"] == generation
    conditions = kept.get("conditions")
    if isinstance(conditions, list):
        found = [_condition(each, generation) for each in conditions]
        # A list by type (metav1.Condition): its order means nothing.
        kept["conditions"] = sorted((each for each in found if each), key=_type_of)
        if not kept["conditions"]:
            del kept["conditions"]
    return kept


def _type_of(condition: Any) -> str:
    return str(condition.get("type")) if isinstance(condition, dict) else ""


def _condition(found: Any, generation: Any) -> Any:
    """A condition; of the operator's own, only that it has failed for good."""
    if not isinstance(found, dict):
        return found
    if str(found.get("type")).startswith(_OWN):
        failed = str(found.get("reason")).endswith("Failed")
        return {"type": found["type"], "reason": found["reason"]} if failed else None
    if "observedGeneration" in found:
        current = found["observedGeneration"] == generation
        return {**found, "observedGeneration": current}
    return found


# ------------------------------------------------------------------ differences


def differences(
    expected: World,
    found: World,
    volatile: Volatile = Volatile(),  # noqa: B008 (an immutable value)
    *,
    without_status: Collection[str] = (),
) -> list[Difference]:
    """The differences of two worlds.

    Those of kinds in `without_status`, as `claims.example.com`, may differ in status.
    Things of an external system are told by their ids, where none of it is volatile.
    """
    plain = _differences(expected, found, volatile, without_status)
    known = {alias for alias, _ in volatile.paths}
    result: list[Difference] = []
    for alias, several in groupby(plain, key=lambda each: each.alias):
        things = [*_by_id(alias, expected, found)] if alias not in known else []
        result += things or several
    return result


def _differences(
    expected: World,
    found: World,
    volatile: Volatile,
    without_status: Collection[str] = (),
) -> list[Difference]:
    """The differences of two worlds, where elements of lists are told by their places.

    Places are volatile as well where things outside have another id in each run.
    """
    result = [*_more_of(found, volatile)]
    expected, found = _timeless(expected, volatile), _timeless(found, volatile)
    for alias in sorted({*expected, *found}):
        if alias in volatile.objects:
            continue
        one, other = expected.get(alias), found.get(alias)
        if one == other:
            continue
        if one is None or other is None:
            whole = orjson.loads(one or other or b"null")
            result.append(
                Difference(alias, "", whole, None)
                if other is None
                else Difference(alias, "", None, whole)
            )
            continue
        bare = alias.partition("/")[0] in without_status
        result += [
            each
            for each in _within(alias, "", orjson.loads(one), orjson.loads(other))
            if (alias, each.path) not in volatile.paths
            and not (bare and each.path.partition(".")[0] in ("status", "metadata"))
        ]
    return result


def _by_id(alias: str, expected: World, found: World) -> Iterator[Difference]:
    """The differences of the things of an external system, each by its id.

    Where one is missing, that is the whole difference, and not all that come after it.
    """
    mine, yours = (_things_in(each.get(alias)) for each in (expected, found))
    if mine is None or yours is None:
        return
    for id in sorted({*mine, *yours}):
        if id in mine and id in yours:
            yield from _within(alias, id, mine[id], yours[id])
        else:
            yield Difference(alias, id, mine.get(id), yours.get(id))


def _things_in(text: bytes | None) -> dict[str, Any] | None:
    """The things that a model shows, by their ids; None for what is no list of them."""
    things = orjson.loads(text or b"{}").get("")
    if not isinstance(things, list) or not all(map(_is_thing, things)):
        return None
    seen: Counter[str] = Counter()
    result = {}
    for each in things:
        seen[each["id"]] += 1
        number = seen[each["id"]]
        result[each["id"] if number == 1 else f"{each['id']} ({number})"] = each
    return result


def _is_thing(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("id"), str)


def _within(alias: str, path: str, one: Any, other: Any) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            where = f"{path}.{key}" if path else key
            yield from _within(alias, where, one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, yours) in enumerate(zip(one, other, strict=True)):
            yield from _within(alias, f"{path}[{number}]", mine, yours)
    elif one != other or type(one) is not type(other):
        yield Difference(alias, path or ".", one, other)


def learned(one: World, other: World, *later: World) -> Volatile:
    """The differences between two benign runs, which are volatile.

    Worlds of the first one at other times tell what of it is steady.
    """
    moments = _moments(one, other)
    found = _differences(one, other, Volatile(moments=moments))
    paths = {(each.alias, each.path) for each in found if each.path}
    objects = {each.alias for each in found if not each.path}
    known = Volatile(frozenset(paths), frozenset(objects), moments)
    numbers = [set(_counted(each, known).items()) for each in (one, other, *later)]
    return known._replace(steady=frozenset(set.intersection(*numbers)))


# ------------------------------------------------------- names that hold a moment

_NUMBER = re.compile(r"\d+")


def _moments(one: World, other: World) -> frozenset[str]:
    """The aliases of two runs that are alike up to numbers, without these.

    Of several like it, an alias has most in common with the one that has its meaning.
    """
    mine, yours = sorted(one.keys() - other.keys()), other.keys() - one.keys()
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for each in sorted(yours):
        alike[_NUMBER.sub("#", each)].append(each)
    return frozenset(
        min(
            (_without_numbers(each, twin) for twin in alike[_NUMBER.sub("#", each)]),
            key=lambda found: (found.count("#"), found),
        )
        for each in mine
        if "#" not in each and alike.get(_NUMBER.sub("#", each))
    )


def _without_numbers(one: str, other: str) -> str:
    """The first text with `#` for the numbers that the second one has otherwise.

    >>> _without_numbers("jobs/x-1-100", "jobs/x-1-101")
    'jobs/x-1-#'
    """
    theirs = iter(_NUMBER.findall(other))
    return _NUMBER.sub(lambda each: each[0] if each[0] == next(theirs) else "#", one)


def _numbers(moment: str, alias: str) -> tuple[str, ...] | None:
    """The numbers of an alias at the places of `#`; None where it is another one.

    >>> _numbers("jobs/x-1-#", "jobs/x-1-100"), _numbers("jobs/x-1-#", "jobs/x-2-100")
    (('100',), None)
    """
    pattern = re.escape(moment).replace(re.escape("#"), r"(\d+)")
    found = re.fullmatch(pattern, alias)
    return found.groups() if found else None


def _timeless(world: World, volatile: Volatile) -> World:
    """The world with the newest of those objects that moments are in the names of.

    How many there are, and of which moments, is a question of how much time has passed.
    """
    newest: dict[str, tuple[list[int], str]] = {}
    result = dict(world)
    for alias in world if volatile.moments else ():
        moment = volatile.moment_in(alias)
        if moment is not None:
            order = [int(each) for each in _numbers(moment, alias) or ()]
            newest[moment] = max(newest.get(moment, ([], "")), (order, alias))
            del result[alias]
    for moment, (_, alias) in newest.items():
        result[moment.replace("#", "*")] = _at_no_moment(world[alias], moment, alias)
    return result


def _at_no_moment(text: bytes, moment: str, alias: str) -> bytes:
    """The text of an object without the moment that is in its name.

    >>> _at_no_moment(b'{"of": "x-99001", "at": 99001}', "jobs/x-#", "jobs/x-99001")
    b'{"of": "x-0", "at": 0}'
    """
    begin = moment.index("#")
    end = len(alias) - (len(moment) - moment.rindex("#") - 1)
    span = alias[begin:end]
    if len(span) < _TELLING:  # too many texts have it
        name, bare = alias.partition("/")[2], f"{alias[:begin]}0{alias[end:]}"
        return text.replace(name.encode(), bare.partition("/")[2].encode())
    return re.sub(rf"(?<!\d){re.escape(span)}(?!\d)", "0", text.decode()).encode()


# A moment is known by so many characters, wherever it stands.
_TELLING = 4


def _more_of(world: World, volatile: Volatile) -> Iterator[Difference]:
    """The moments in names of which there are more than there always are."""
    usual = dict(volatile.steady)
    for moment, number in sorted(_counted(world, volatile).items()):
        if number > usual.get(moment, number):
            alias = moment.replace("#", "*")
            yield Difference(alias, "(how many)", usual[moment], number)


def _counted(world: World, volatile: Volatile) -> Counter[str]:
    """The numbers of objects by the moments in their names."""
    found = map(volatile.moment_in, world) if volatile.moments else ()
    return Counter(each for each in found if each is not None)
