"""The state of objects in Kopf's form, through the storages of the operator's settings.

So an operator can go from Kopf to fnop and back at any time. The author may have
subclassed the storages: they decide about places, texts, and the essence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from fnop.adapters.kopf.arguments.bodies import Body as KopfBody
from fnop.adapters.kopf.arguments.patches import Patch
from fnop.adapters.kopf.arguments.types import Diff
from fnop.adapters.kopf.declaring.settings import PersistenceSettings
from fnop.adapters.kopf.declaring.storages import (
    ProgressRecord,
    is_ours,
    members_of,
    put_at,
)
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import CHANGES
from fnop.core.memory.observation import (
    Essence,
    FormerValues,
    Observation,
    digest_of,
    see,
)
from fnop.core.memory.progress import Progress
from fnop.core.memory.stored_state import Stored, Unreadable
from fnop.core.memory.takeover import last_handled_places
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.diff import Path, diff, resolve
from fnop.core.values.merge import applied, leaves
from fnop.core.values.now import parse_time, wall_text
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json

__all__ = ["KopfStates", "children_in", "progress_in", "record_of", "wall_of"]

Json = dict[str, Any]

# The scope of a whole object.
_WHOLE = ""
_ESSENCES_MAX = 128
# It shows where a storage keeps records.
_RECORD = ProgressRecord(started="now", purpose="create", retries=0)


class _Known(Struct, frozen=True):
    """A handler of changes: its id, and the field that it observes."""

    id: str
    scope: Path


class KopfStates:
    """Reads and writes states by Kopf's storages (`StateFormat`).

    `persistence` is the part of the settings with the storages. A startup handler may
    replace them before the first use. `find_fields` returns the fields that handlers of
    a kind name, by its apiVersion and kind; None if the kind is not known yet.
    """

    def __init__(
        self,
        persistence: PersistenceSettings,
        find_fields: Callable[[str, str], tuple[Path, ...] | None] = lambda *_: None,
        handlers: Iterable[Handler] = (),
    ) -> None:
        self._persistence = persistence
        self._known: tuple[_Known, ...] = ()
        self._fields: dict[tuple[str, str], tuple[Path, ...]] = {}
        self._find_fields = find_fields
        # The object that was asked for last, and as storages get it.
        self._thawed: tuple[Mapping[str, Any], KopfBody] | None = None
        # The essence of the object that was asked for last, and what it was made of.
        self._newest: tuple[Mapping[str, Any], tuple[Path, ...], Json] | None = None
        # The newest essences by their digests: what was handled is written soon.
        self._essences: dict[str, Json] = {}
        self.know(handlers)

    def know(self, handlers: Iterable[Handler]) -> None:
        """Note the handlers: it keeps the progress of those of changes."""
        found = tuple(handlers)
        self._known = tuple(
            dict.fromkeys(_Known(e.id, e.scope) for e in found if e.role in CHANGES)
        )

    def _fields_of(self, body: Mapping[str, Any]) -> tuple[Path, ...]:
        """The fields that handlers of an object's kind name: parts of its essence.

        So with Kopf a handler of a field of the status makes its changes updates.
        """
        kind = str(body.get("apiVersion")), str(body.get("kind"))
        if kind not in self._fields:
            found = self._find_fields(*kind)
            if found is None:
                return ()
            self._fields[kind] = found
        return self._fields[kind]

    def essence(self, body: Mapping[str, Any]) -> Json:
        """The essence by the author's storage, which may ignore fields."""
        fields = self._fields_of(body)
        known = self._newest
        # One pass over an object asks for it several times.
        if known is None or known[0] is not body or known[1] != fields:
            found = self._persistence.diffbase_storage.build(
                body=self._given(body), extra_fields=fields
            )
            essence = dict(self._persistence.progress_storage.clear(essence=found))
            self._newest = known = (body, fields, essence)
            if len(self._essences) >= _ESSENCES_MAX:
                del self._essences[next(iter(self._essences))]
            self._essences[digest_of(essence)] = essence
        return known[2]

    def change_of(self, body: Mapping[str, Any], field: Path, before: Any) -> Json:
        """The arguments about the change of a whole object, of which `field` is known.

        An object that no handler was for has no stored configuration. Then the change
        is that of the field.
        """
        new = self.essence(body)
        old = self._persistence.diffbase_storage.fetch(body=self._given(body))
        if old is None and before is not None:
            old = thaw_json(new)
            put_at(old, field, before)
        return {"old": old, "new": new, "diff": Diff.of(diff(old, new))}

    def _given(self, data: Mapping[str, Any]) -> KopfBody:
        """An object as storages get it. One pass over an object asks several times."""
        if self._thawed is None or self._thawed[0] is not data:
            self._thawed = data, KopfBody(self._lent(data))
        return self._thawed[1]

    @cached_property
    def _are_ours(self) -> bool:
        """Whether the storages have no code of an author."""
        storages = self._persistence
        return is_ours(storages.progress_storage) and is_ours(storages.diffbase_storage)

    def _lent(self, value: Any) -> Any:
        """A value for the storages: an author's may change what it gets."""
        return value if self._are_ours else thaw_json(value)

    # --------------------------------------------------------------------- reading

    def holds(self, body: Body) -> bool:
        """Whether `read` finds something."""
        given, persistence = self._given(body.data), self._persistence
        progress = persistence.progress_storage
        return (
            persistence.finalizer in body.finalizers
            or persistence.diffbase_storage.fetch(body=given) is not None
            or any(progress.fetch(key=e.id, body=given) for e in self._known)
        )

    def read(self, body: Body, observation: Observation) -> Stored | Unreadable | None:
        """The state on an object, written by this operator or by Kopf."""
        given = self._given(body.data)
        storage = self._persistence.progress_storage
        progress = {}
        for each in self._known:
            record = storage.fetch(key=each.id, body=given)
            if record is not None:
                progress[each.id] = _progress_of(record)
        essence = self._persistence.diffbase_storage.fetch(body=given)
        if essence is not None:
            stored = dict(essence)
            # It is an essence already: an author's storage may not build it of itself.
            as_it_is = replace(observation, hidden=Essence(lambda _: stored))
            return Stored(see(Body(stored), as_it_is), progress=progress)
        if progress:
            return Stored(see(body, observation), creating=True, progress=progress)
        if self._persistence.finalizer in body.finalizers:
            return _left_elsewhere(body)
        return None

    # --------------------------------------------------------------------- writing

    def write(self, stored: Stored, body: Body) -> Json:
        """The merge patch that stores a state."""
        given, patch = self._given(body.data), Patch()
        storage = self._persistence.progress_storage
        if stored.seen is not None and not stored.creating:
            essence = self._essence_of(stored, body)
            # Members in the status, and others, are written by two requests. At the
            # second one, some have the essence already.
            for member in members_of(self._persistence.diffbase_storage):
                if member.fetch(body=given) != essence:
                    lent = self._lent(essence)
                    member.store(body=given, patch=patch, essence=lent)
        for each in self._known:
            progress = stored.progress.get(each.id)
            if progress is None or not progress.aim:
                self._purge(each.id, given, patch)
                continue
            known = storage.fetch(key=each.id, body=given)
            record = record_of(progress, children_in(known))
            for member in members_of(storage):
                found = member.fetch(key=each.id, body=given)
                if _known_fields(found) != _known_fields(record):
                    member.store(key=each.id, record=record, body=given, patch=patch)
        storage.touch(body=given, patch=patch, value=None)
        storage.flush()
        return thaw_json(dict(patch))  # type: ignore[no-any-return]

    def remove(self, body: Body) -> Json:
        """The merge patch that removes the records, but not the last-handled object.

        Kopf leaves that, too. Mappings that are empty without records go as well.
        """
        given, patch = self._given(body.data), Patch()
        for each in self._known:
            self._purge(each.id, given, patch)
        found: Json = thaw_json(dict(patch))
        return self._with_emptied(found, body, leaves(found))

    def _purge(self, id: str, given: KopfBody, patch: Patch) -> None:
        """Remove the record of a handler, and those of its sub-handlers."""
        storage = self._persistence.progress_storage
        for child in children_in(storage.fetch(key=id, body=given)):
            if child.startswith(f"{id}/"):  # the object's users may write anything
                self._purge(child, given, patch)
        storage.purge(key=id, body=given, patch=patch)

    def clears(self, body: Body) -> Json:
        """The merge patch that removes everything that storages keep on an object.

        A storage shows where it writes by writing, for the object without any state.
        """
        given, essence = self._given(body.data), self._lent(self.essence(body.data))
        progress, patch = self._persistence.progress_storage, Patch()
        diffbase, bare = self._persistence.diffbase_storage, self._blank(body)
        diffbase.store(body=bare, patch=patch, essence=essence)
        progress.touch(body=bare, patch=patch, value="now")
        for each in self._known:
            self._purge(each.id, given, patch)
        progress.flush()
        found: Json = {}
        paths = [*leaves(thaw_json(dict(patch)))]
        for path in paths:
            if body.at(path) is not None:
                put_at(found, path, None)
        return self._with_emptied(found, body, paths)

    def _blank(self, body: Body) -> KopfBody:
        """An object as it would be without any state."""
        metadata = {k: v for k, v in body.meta.items() if k != "annotations"}
        kept = {k: v for k, v in body.data.items() if k != "status"}
        return KopfBody(self._lent({**kept, "metadata": metadata}))

    def _with_emptied(self, patch: Json, body: Body, paths: Iterable[Path]) -> Json:
        """A patch that removes `paths`, and the mappings of storages without content.

        So an object on which a handler was retried is as one on which none was.
        """
        progress, records = self._persistence.progress_storage, Patch()
        for each in self._known:
            progress.store(
                key=each.id, record=_RECORD, body=self._blank(body), patch=records
            )
        progress.flush()
        places = (*paths, *leaves(thaw_json(dict(records))))
        parents = {path[:end] for path in places for end in range(2, len(path))}
        found: Json = thaw_json(patch)
        for parent in sorted(parents, key=len, reverse=True):
            if resolve(applied(found, body.data), parent) == {}:
                put_at(found, parent, None)
        return found

    def parts(self, body: Body, handler: str) -> tuple[str, ...]:
        """The sub-handlers of a handler that have begun, and have not ended."""
        given, storage = self._given(body.data), self._persistence.progress_storage
        records = (
            (name, storage.fetch(key=name, body=given))
            for name in children_in(storage.fetch(key=handler, body=given))
        )
        return tuple(
            name
            for name, record in records
            if record and not (record.get("success") or record.get("failure"))
        )

    def _essence_of(self, stored: Stored, body: Body) -> Json:
        """The essence that was handled; it is not known if no handler observes it."""
        assert stored.seen is not None, "its caller has asked"
        handled = self._essences.get(stored.seen.digest(_WHOLE, ""))
        if handled is not None:
            return handled
        values = _values_of(stored.seen.values)
        if _WHOLE not in values:
            return self.essence(body.data)
        essence: Json = thaw_json(values[_WHOLE])
        return essence


def _values_of(values: FormerValues | None) -> Mapping[str, Any]:
    return {} if values is None else values.parsed


def _known_fields(record: Mapping[str, Any] | None) -> Json | None:
    """A record without its empty fields, which storages may leave out."""
    if record is None:
        return None
    return {key: value for key, value in record.items() if value is not None}


def children_in(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The ids of the sub-handlers in a record of their parent.

    >>> children_in({"subrefs": ["made/a"]}), children_in({"subrefs": None})
    (('made/a',), ())
    """
    found = None if record is None else record.get("subrefs")
    given = found if isinstance(found, list | tuple) else ()
    return tuple(each for each in given if isinstance(each, str))


def record_of(progress: Progress, children: tuple[str, ...] = ()) -> ProgressRecord:
    """The progress of a handler, with its sub-handlers, as Kopf stores it."""
    finished = progress.finished
    started = _text(progress.started)
    return ProgressRecord(
        started=started,
        stopped=started if finished else None,
        delayed=_text(progress.until),
        purpose=progress.aim.partition(":")[0],
        retries=progress.retries,
        success=finished == "success",
        failure=finished == "failure",
        message=progress.message,
        subrefs=[*children] or None,
    )


def _text(wall: float | None) -> str | None:
    """
    >>> _text(0.5)
    '1970-01-01T00:00:00.500000+00:00'
    """
    return None if wall is None else wall_text(wall).replace("Z", "+00:00")


def _progress_of(record: Mapping[str, Any]) -> Progress:
    """The progress that a record of Kopf means."""
    purpose = record.get("purpose") or Reason.CREATE.value
    return progress_in(record, f"{purpose}:")


def progress_in(record: Mapping[str, Any], aim: str) -> Progress:
    """The progress in a record of Kopf, with this aim."""
    finished = None
    if record.get("success"):
        finished = "success"
    elif record.get("failure"):
        finished = "failure"
    return Progress(
        aim,
        int(record.get("retries") or 0),
        wall_of(record.get("started")),
        None if finished else wall_of(record.get("delayed")),
        finished=finished,
        message=record.get("message"),
    )


def wall_of(text: Any) -> float | None:
    """The Unix time of a stored time; None without one."""
    return parse_time(text) if isinstance(text, str) else None


def _left_elsewhere(body: Body) -> Unreadable | None:
    """The refusal for an object that a Kopf operator with other storages has handled.

    Without a trace of any storage, the object is new: Kopf adds its finalizer before
    its first record.
    """
    for place in last_handled_places(body):
        return Unreadable(
            f"{place} has its last-handled configuration, but "
            "settings.persistence.diffbase_storage does not read it"
        )
    return None
