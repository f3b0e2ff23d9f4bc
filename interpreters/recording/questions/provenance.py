"""Find why a field has its value: who wrote it, for what, having seen what.

The chain is read from the recording alone. It leads from the version in which the value
appears to the request that made this version. From there it leads to the attempt behind
the request with the versions that it was shown, and to the input that had shown these.
A field that no longer exists was removed in a version, too.

A request cannot have made a version that had been shown before it was sent, nor a field
that others manage.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.children.fields import managers_at
from fnop.core.seam.traces import Version
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import Path, path_at
from fnop.core.values.paths import FieldPath, element_of, find, names_of
from fnop.effects import Apply, Delete
from fnop.effects.structs import replace
from fnop.effects.values import same_json
from fnop.interpreters.recording.identities.metadata import DELETION, OWN, SERVER
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import (
    covers,
    given_fields,
    is_overlapping,
    is_within,
)
from fnop.interpreters.recording.model.history import (
    History,
    Question,
    Request,
    Step,
)
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.records import Gap, Indexed
from fnop.interpreters.recording.model.sources import (
    IndexEntry,
    Reply,
    Source,
    equal_to,
    replies,
)

__all__ = ["Gone", "Provenance", "Shown", "Sight", "Why"]


class Shown(Struct, frozen=True):
    """A version of the object in question, and the step that showed it first.

    `by` says how: listed, watched, or as the answer to a request.
    """

    step: int
    wall: float
    by: str
    body: Body


class Sight(Struct, frozen=True):
    """An object that an attempt was shown, and how old that version was by then.

    `revisions` counts the newer versions that the recording has shown or answered
    before the attempt began. `seconds` is the time since the version was first shown.
    """

    version: Version
    step: int | None
    revisions: int
    seconds: float


class Gone(Struct, frozen=True):
    """The end of an object: the step that showed it, and how (`Departure.listed`)."""

    step: int
    wall: float
    listed: bool


class Why(Struct, frozen=True):
    """The answer: the value, since when it is so, and what made it.

    - `value` is None if the field existed before and does not any longer. Then `shown`
      is the first version without it.
    - `former` is the value before, or None if there was no value.
    - `write` is None if another client has written it.
    - `managers` are the managers of the field by `metadata.managedFields`, now or
      before its removal.
    - `author` is the handler whose change it is. It is "" if the change is fnop's own
      (`is_own`), or the API server's (`is_servers`, if only the API server can set it).
    - `sources` are the inputs of the attempt with an equal value, with the step since
      which they have it.
    - `answers` are the answers that the attempt was given.
    - `indices` are the indices that it could read, each with the number of its keys.
    - `gone` is the end of the object.
    - `missing` are the steps that the recording lacks between the version before and
      this one, and after the last.
    - `is_managers` means that no known request has written it, and yet the operator
      manages it: an answer was lost.
    """

    value: Any
    former: Any
    shown: Shown
    before: Shown | None
    write: Request | None
    author: str
    is_own: bool
    managers: tuple[str, ...]
    attempt: Attempt | None
    sights: tuple[Sight, ...]
    is_servers: bool = False
    sources: tuple[tuple[Source, int], ...] = ()
    answers: tuple[Reply, ...] = ()
    indices: tuple[tuple[str, int], ...] = ()
    gone: Gone | None = None
    missing: tuple[Gap, ...] = ()
    is_managers: bool = False

    @property
    def is_uncertain(self) -> bool:
        """Whether a request that the recording lacks may have made the version."""
        return any(each.first <= self.shown.step for each in self.missing)


@dataclass
class Provenance(Question):
    """The versions of one object, given by its kind and its names, and their authors.

    `manager` is the operator's name in managed fields. Without it, managed fields do
    not decide whether a field is the operator's.
    """

    resource: Resource
    namespace: str
    name: str
    manager: str = ""
    history: History = field(default_factory=History)
    shown: list[Shown] = field(default_factory=list)
    writes: list[Request] = field(default_factory=list)
    # The step and the time at which each version of an object was first shown, by uid.
    _first: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)
    _gone: dict[str, Gone] = field(default_factory=dict)
    # The steps in which an index was given values of an object.
    _indexed: dict[tuple[str, Key], list[int]] = field(default_factory=dict)
    _missing: list[Gap] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Note the presence of objects in the same history."""
        self._presence = Presence(self.history)

    def miss(self, gap: Gap) -> None:
        """Take note of missing steps, and of a listing that may have ended there."""
        self._missing.append(gap)
        self._presence.miss(gap)

    def see(self, step: Step) -> None:
        """Take one step in."""
        for body in step.shown:
            self._note_version(body, step)
        for departure in self._presence.see(step):
            self._gone[departure.uid] = Gone(step.number, step.wall, departure.listed)
        self.writes += filter(self._changes_object, step.requests.values())
        for command in step.commands:
            if isinstance(command, Indexed):
                steps = self._indexed.setdefault((command.name, command.object), [])
                steps.append(step.number)

    def _note_version(self, body: Body, step: Step) -> None:
        known = self._first.setdefault(body.uid, {})
        if body.version in known:
            return
        known[body.version] = step.number, step.wall
        if self._is_meant(body):
            self.shown.append(Shown(step.number, step.wall, step.way, body))

    def _is_meant(self, body: Body) -> bool:
        kind = body.data.get("apiVersion"), body.data.get("kind")
        names = body.namespace or "", body.name
        wanted = self.resource.api_version, self.resource.kind
        return names == (self.namespace, self.name) and kind == wanted

    def _changes_object(self, request: Request) -> bool:
        """Whether a request is a write of the object in question."""
        names = request.resource, request.namespace, request.name
        wanted = self.resource.key, self.namespace, self.name
        return request.is_write and names == wanted

    # ------------------------------------------------------------- the question

    def why(self, path: FieldPath, at: int | None = None) -> Why | None:
        """The provenance of a field's present value, or of its removal.

        With `at` it is the value that was shown by that step; later answers to requests
        still count. None if no version of the object has had the field.
        """
        return next(self._changes_of_field(path, at), None)

    def changes(self, path: FieldPath) -> list[Why]:
        """Each change of a field in the objects of this name, the first change first.

        Empty if no version of an object has had the field.
        """
        lives = dict.fromkeys(each.body.uid for each in self.shown)
        found = ([*self._changes_of_field(path, None, uid)][::-1] for uid in lives)
        return [why for each in found for why in each]

    def _changes_of_field(
        self, path: FieldPath, at: int | None, uid: str | None = None
    ) -> Iterator[Why]:
        """Each change of one object, by default the last one, in reverse order."""
        versions = self._versions(at, uid)
        values = [find(each.body.data, path) for each in versions]
        had = [number for number, value in enumerate(values) if value is not None]
        if not had:
            return
        path = _path_with_names(versions[had[-1]].body.data, path)
        since = len(versions) - 1
        while since >= had[0]:
            value = values[since]
            while since and same_json(values[since - 1], value):
                since -= 1
            before = versions[since - 1] if since else None
            found = _Field(path, value, versions[since], before, versions[0].step)
            yield self._explain_change(
                found, None if before is None else values[since - 1], at
            )
            since -= 1

    def _explain_change(self, found: _Field, former: Any, at: int | None) -> Why:
        path, value, shown, before, _ = found
        is_servers, is_deletion = _is_meta(path, SERVER), _is_meta(path, DELETION)
        write = (self._deleting_request if is_deletion else self._writing_request)(
            found
        )
        managed = shown if value is not None or before is None else before
        managers = tuple(managers_at(managed.body.data, path))
        author, is_own, attempt = "", False, None
        if write is not None and not is_servers:
            author = self._author_of(write, found)
            is_own = not author and covers(write.effect, names_of(path))
            attempt = _attempt_of(write.attempts, author)
        made = write, author, is_own, managers
        given = () if attempt is None else tuple(self._versions_seen(attempt))
        why = Why(value, former, shown, before, *made, attempt, given, is_servers)
        if attempt is not None and write is not None:
            why = self._add_sources(why, attempt, write)
        gone = self._gone.get(shown.body.uid)
        is_gone = gone is not None and (at is None or gone.step <= at)
        missing = (*self._missing_between(before, shown, at),)
        by_manager = write is None and value is not None and self.manager in managers
        return replace(
            why, gone=gone if is_gone else None, missing=missing, is_managers=by_manager
        )

    def _missing_between(
        self, before: Shown | None, shown: Shown, at: int | None
    ) -> Iterator[Gap]:
        """The missing steps in which the value may have appeared or changed."""
        since = 0 if before is None else before.step
        last = max(each.step for each in self._versions(at))
        for each in self._missing:
            is_later = last < each.first and (at is None or each.first <= at)
            if since < each.first <= shown.step or is_later:
                yield each

    def _add_sources(self, why: Why, attempt: Attempt, write: Request) -> Why:
        until = write.step
        sources = (
            (each, self._step_of_source(each.of, attempt))
            for each in equal_to(why.value, attempt, until)
        )
        known = ((name, len(index)) for name, index in attempt.indices.items())
        return replace(
            why,
            sources=tuple(sources),
            answers=tuple(reply for reply, _ in replies(attempt, until)),
            indices=tuple(sorted(each for each in known if each[1])),
        )

    def _step_of_source(self, of: Reply | IndexEntry, attempt: Attempt) -> int:
        """The step that has brought an answer, or the values of an object."""
        if isinstance(of, Reply):
            return of.step
        steps = self._indexed.get((of.name, of.object), ())
        return max((each for each in steps if each <= attempt.step), default=0)

    def _versions(self, at: int | None, uid: str | None = None) -> list[Shown]:
        """The versions of an object by a step, in order; by default of the last one."""
        shown = [each for each in self.shown if at is None or each.step <= at]
        if not shown:
            return []
        uid = uid or shown[-1].body.uid
        found = [each for each in shown if each.body.uid == uid]
        if all(each.body.version.isdecimal() for each in found):
            found.sort(key=lambda each: int(each.body.version))
        return found

    def _writing_request(self, found: _Field) -> Request | None:
        """The operator's request that made a version, even if its reply was lost."""
        path, value, shown, *_ = found
        managers = managers_at(shown.body.data, path) if value is not None else ()
        if self.manager and managers and self.manager not in managers:
            return None
        sent = [each for each in self.writes if each.step < shown.step]
        made = [each for each in sent if each.version == shown.body.version]
        if made:
            ours = (each for each in made if self._changes(each, found))
            first = made[0] if value is not None else None
            return next(ours, first)
        lost = (each for each in reversed(sent) if not each.is_settled)
        return next((each for each in lost if self._sets(each, path, value)), None)

    def _deleting_request(self, found: _Field) -> Request | None:
        """The operator's request that has asked for the deletion."""
        for write in self.writes:
            is_in_time = found.born <= write.step < found.shown.step
            is_made = write.version in ("", found.shown.body.version)
            is_deletion = write.verb == Delete.__name__ and not write.is_denied
            if is_deletion and is_in_time and is_made:
                return write
        return None

    def _changes(self, write: Request, found: _Field) -> bool:
        """Whether a request gives a field a value, or removes the field.

        A field that is no longer applied is removed if it has no other manager.
        """
        if any(covers(write.effect, each) for each in self._settable_paths(found.path)):
            return True
        if found.value is not None or found.before is None:
            return False
        owners = managers_at(found.before.body.data, found.path)
        is_ours = not self.manager or self.manager in owners
        return write.verb == Apply.__name__ and is_ours

    def _author_of(self, write: Request, found: _Field) -> str:
        """The handler whose change it is; "" for fnop, or the API server."""
        ways = [*self._settable_paths(found.path)]
        if self._is_own_condition(found):
            return ""
        # A field that contains this one counts before a field within this one.
        into_list = names_of(found.path) != found.path
        for reaches in (is_overlapping,) if into_list else (is_within, is_overlapping):
            for name, pointers in reversed(write.fields):
                places = [path_at(each) for each in pointers]
                if any(reaches(way, each) for each in places for way in ways):
                    return name
        if _is_own(ways[0]) or not self._changes(write, found):
            return ""
        return _unknown_author(write)

    def _is_own_condition(self, found: _Field) -> bool:
        """Whether it is the operator's own condition, or a part of that condition."""
        if not self.manager or found.path[:2] != ("status", "conditions"):
            return False
        shown = found.shown if found.value is not None else found.before
        one = None if shown is None else find(shown.body.data, found.path[:3])
        return isinstance(one, Mapping) and one.get("type") == self.manager

    def _settable_paths(self, path: FieldPath) -> Iterator[Path]:
        """The fields that a request may set for this one, up to the first list.

        The API server derives the `data` of a Secret from its `stringData`.
        """
        names = names_of(path)
        yield names
        if self.resource.kind == "Secret" and names[:1] == ("data",):
            yield ("stringData", *names[1:])

    def _sets(self, write: Request, path: FieldPath, value: Any) -> bool:
        """Whether a request gives a field this value; None: it removes the field."""
        if value is None:
            return any(
                covers(write.effect, each) for each in self._settable_paths(path)
            )
        given, patch = given_fields(write.effect), write.effect.get("json") or ()
        if self.resource.kind == "Secret" and "stringData" in given:
            text = find(given, ("stringData", *path[1:]))
            if isinstance(text, str) and b64encode(text.encode()).decode() == value:
                return True
        return same_json(find(given, path), value) or any(
            path_at(each["path"]) == path and same_json(each.get("value"), value)
            for each in patch
        )

    def _versions_seen(self, attempt: Attempt) -> Iterator[Sight]:
        children = (
            Version(key.resource, key.namespace, key.name, body.uid, body.version)
            for key, body in attempt.children.items()
        )
        first = () if attempt.object is None else (attempt.object,)
        for version in (*first, *children):
            known = self._first.get(version.uid, {})
            step, wall = known.get(version.version, (None, attempt.now.wall))
            newer = [
                each
                for each, (at, _) in known.items()
                if at <= attempt.step and _is_newer(each, version.version)
            ]
            yield Sight(version, step, len(newer), attempt.now.wall - wall)


class _Field(NamedTuple):
    """The field in question, with the version since which it has its value.

    `born` is the step that first showed the object.
    """

    path: FieldPath
    value: Any
    shown: Shown
    before: Shown | None
    born: int


def _is_meta(path: FieldPath, names: Container[object]) -> bool:
    return len(path) > 1 and path[0] == "metadata" and path[1] in names


def _path_with_names(value: Any, path: FieldPath) -> FieldPath:
    """The path with names instead of numbers in all mappings.

    >>> _path_with_names({"data": {"1": "a"}, "items": [5]}, ("data", 1))
    ('data', '1')
    """
    found: FieldPath = ()
    for part in path:
        is_number = isinstance(part, int) and isinstance(value, Mapping)
        found = (*found, str(part) if is_number else part)
        value = element_of(value, part)
    return found


def _is_newer(one: str, other: str) -> bool:
    both = one.isdecimal() and other.isdecimal()
    return int(one) > int(other) if both else False


def _unknown_author(write: Request) -> str:
    """The last handler behind a request whose fields are not known; or "".

    It has changed the object by a function.
    """
    told = {name for name, _ in write.fields}
    authors = [each.strip() for each in write.handler.split(",")]
    return next((each for each in reversed(authors) if each not in told), "")


def _attempt_of(attempts: Sequence[Attempt], author: str) -> Attempt | None:
    return next((each for each in attempts if each.handler == author), None)


def _is_own(path: Path) -> bool:
    """Whether fnop keeps its own data there: its state, its marks, finalizers."""
    if path[:2] == ("metadata", "finalizers"):
        return True
    return any(each.startswith(OWN) for each in path[1:3])
