"""Things that others have made, and that an operator must not take away.

A user has made an object without any connection to the operator, or keys of one. Or
several objects share an object, and its keys were written for another living one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.check.properties.evidence import Followed, Seen
from fnop.interpreters.check.state.records import Phase, Write
from fnop.interpreters.check.state.worlds import ASIDE
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["taken_from_living", "taken_from_users"]

Manifest = Mapping[str, Any]
# Kinds whose objects operators may delete although others made them: they are created
# again.
_CATTLE = frozenset((("", "pods"), ("batch", "jobs"), ("apps", "replicasets")))
# Texts of one letter occur in any other text by chance.
TEXT_MIN = 2
_MERGE = "; change the keys that are the operator's own, and leave others as they are"


class _Change(Struct, frozen=True):
    """A write of the operator to an existing object: the object before and after.

    `now` is None for an object that is deleted, or is to be.
    """

    write: Write
    resource: tuple[str, str]
    alias: str
    was: Manifest
    now: Manifest | None


def taken_from_users(seen: Seen) -> Iterator[str]:
    """The objects of users that the operator deletes, or empties of their keys.

    An object with a label, an annotation or an owner may be marked for deletion. An
    object that a handled object names is meant for it.
    """
    theirs, (words, names) = _made_by_users(seen), _words(seen)
    own: set[tuple[str, str]] = set()
    for change in _changes(seen):
        uid, before = change.was["metadata"]["uid"], _data(change.was)
        if uid not in theirs:
            continue
        if change.now is None:
            if not (change.resource in _CATTLE or _is_marked(change.was, words, names)):
                yield (
                    f"{change.write.site} deletes {change.alias}, which the user has "
                    "made: no label, no owner and no field of a handled object gives "
                    "it to the operator; delete what the operator has made"
                )
            continue
        after = _data(change.now)
        foreign = {key for key in before if (uid, key) not in own}
        named = any(key in words for key in foreign)
        if foreign and after and foreign.isdisjoint(after) and not named:
            keys = ", ".join(sorted(foreign))
            yield (
                f"{change.write.site} takes {keys} out of {change.alias}, which the "
                f"user has written there{_MERGE}"
            )
        own |= {(uid, key) for key in after if key not in before}


def taken_from_living(followed: Followed) -> Iterator[str]:
    """The objects and keys that the handling of another object has removed for good.

    They were made, or written, for an object that lives.
    """
    yield from _deleted_of_living(followed)
    seen, owners = followed.seen, frozenset(followed.follow_up.owners)
    end = _keys_in(seen.trial.journal.ends[Phase.RESTARTED].cluster)
    writers: dict[tuple[str, str], str] = {}
    for change in _changes(seen, made=True):
        alias, subject = change.alias, change.write.subject
        if (change.now or change.was)["metadata"].get("ownerReferences"):
            continue  # children of others are examined as a whole
        before, after = _data(change.was), _data(change.now or {})
        lost = [
            key
            for key in sorted(before.keys() - after.keys())
            if (writer := writers.get((alias, key))) in owners
            and subject not in ("", writer)
            and (change.write.path, key) not in end
        ]
        if lost:
            keys = ", ".join(lost)
            yield (
                f"{change.write.site} takes {keys} out of {alias}, which was written "
                f"there for another object{_MERGE}"
            )
        for key in after:
            if before.get(key) != after[key]:
                writers[alias, key] = subject


def _deleted_of_living(followed: Followed) -> Iterator[str]:
    """The objects without an owner that were made for one object, and go with another.

    Children of others, which have an owner, are examined as a whole.
    """
    seen, owners = followed.seen, frozenset(followed.follow_up.owners)
    end = seen.trial.journal.ends[Phase.RESTARTED].cluster
    makers: dict[str, str] = {}
    for change in _changes(seen, made=True):
        meta, subject = (change.now or change.was)["metadata"], change.write.subject
        maker = makers.setdefault(change.alias, subject)
        shelf = end.shelves.get(change.resource)
        is_there = shelf and shelf.get((meta.get("namespace") or "", meta["name"]))
        if change.now is not None or is_there or meta.get("ownerReferences"):
            continue
        if maker in owners and subject not in ("", maker):
            yield (
                f"{change.write.site} deletes {change.alias}, which was made for "
                "another object; let its name tell whose it is, with the namespace"
            )


def _changes(seen: Seen, *, made: bool = False) -> Iterator[_Change]:
    """The writes of the operator to objects; with `made` also the creations."""
    for event in seen.events:
        write = seen.writes.get(event.version)
        meta = event.object["metadata"]
        where = f"{'/'.join(event.resource)}/{meta.get('namespace') or ''}"
        if write is None or event.resource in ASIDE:
            continue
        is_new = event.type == "ADDED"
        if (is_new and not made) or (
            not is_new and write.path != f"{where}/{meta['name']}"
        ):
            continue
        alias = seen.alias_of(event.resource, event.object)
        was = event.previous or (event.object if not is_new else {})
        yield _Change(
            write,
            event.resource,
            alias,
            was,
            None if _is_removal(event) else event.object,
        )


def _is_removal(event: StoredEvent) -> bool:
    before = (event.previous or {}).get("metadata") or {}
    is_marked = "deletionTimestamp" in event.object["metadata"]
    return event.type == "DELETED" or (is_marked and "deletionTimestamp" not in before)


def _made_by_users(seen: Seen) -> frozenset[str]:
    """The uids of objects that are not a handler's affair: existing or a user's."""
    trial = seen.trial
    catalogue = catalogue_of(trial.run)
    selectors = [e.selector for e in trial.scene.program.handlers if e.selector]

    def is_handled(resource: tuple[str, str]) -> bool:
        kind = catalogue.lookup(".".join(filter(None, reversed(resource))))
        return kind is None or any(each.matches(kind) for each in selectors)

    made = {
        each.object["metadata"]["uid"]
        for each in seen.events
        if each.type == "ADDED" and trial.journal.maker_of(each.version) == "user"
        if not is_handled(each.resource)
    }
    bare = trial.scene.bare.shelves
    given = {
        each["metadata"]["uid"]
        for resource, shelf in trial.scene.base.cluster.shelves.items()
        if shelf is not bare.get(resource) and not is_handled(resource)
        for key, each in shelf.items()
        if key not in (bare.get(resource) or ())
    }
    return frozenset(made | given)


def _words(seen: Seen) -> tuple[str, frozenset[str]]:
    """Everything that handled objects have ever said, as one text, and their names."""
    kinds = seen.trial.run.machine.state.survey.kinds.values()
    handled = {(each.resource.group, each.resource.plural) for each in kinds}
    found = [e.object for e in seen.events if e.resource in handled]
    for resource in handled:
        shelf = seen.trial.scene.base.cluster.shelves.get(resource)
        found += [*shelf.values()] if shelf else []
    texts = [
        orjson.dumps([each.get("spec"), each["metadata"].get("annotations")]).decode()
        for each in found
    ]
    return "\n".join(texts), frozenset(each["metadata"]["name"] for each in found)


def _is_marked(found: Manifest, words: str, names: frozenset[str]) -> bool:
    """Whether an object may have been given to the operator, as far as it shows."""
    meta = found["metadata"]
    marks = ("labels", "annotations", "ownerReferences")
    is_alike = any(each in meta["name"] for each in names)
    is_named = any(each in words for each in (meta["name"], *_texts(found.get("spec"))))
    return any(meta.get(each) for each in marks) or is_named or is_alike


def _texts(value: Any) -> Iterator[str]:
    """The texts in a spec, without the shortest."""
    if isinstance(value, str) and len(value) >= TEXT_MIN:
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _data(found: Manifest) -> Mapping[str, Any]:
    """The keys and values of a ConfigMap or a Secret; empty for other kinds."""
    return {**(found.get("binaryData") or {}), **(found.get("data") or {})}


def _keys_in(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """The keys of all ConfigMaps and Secrets, each with the path of its object."""
    return frozenset(
        (f"/{plural}/{space}/{name}", key)
        for plural in ("configmaps", "secrets")
        if (shelf := cluster.shelves.get(("", plural))) is not None
        for (space, name), found in shelf.items()
        for key in _data(found)
    )
