"""Why a field of an object has its value: who wrote it, for what, having seen what.

The chain is read from the recording alone: the version in which the value appears, the
request that made this version, the attempt behind the request with the versions that it
was shown, and the input that had shown these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.api.resources import Resource
from fnop.core.children.fields import managers_at
from fnop.core.history.attempts import Attempt, Attempts
from fnop.core.history.versions import objects_in
from fnop.core.seam.traces import Version
from fnop.core.values.body import Body
from fnop.core.values.diff import Path, path_at, resolve
from fnop.effects.values import same_json

__all__ = ["Provenance", "Shown", "Sight", "Why", "Write", "covers", "way"]

Json = Mapping[str, Any]

# Effects that change an object.
_WRITES = frozenset(("Apply", "Create", "Adopt", "Patch", "Delete"))
# Fields under such a name, and finalizers, are what fnop keeps for itself.
_OWN = "fnop.dev/"


class Shown(NamedTuple):
    """A version of the object that is asked about, and the step that showed it first.

    `by` is how: listed, watched, or as the answer to a request.
    """

    step: int
    wall: float
    by: str
    body: Body


@dataclass(slots=True)
class Write:
    """A request of the operator that changes the object.

    `authors` are the handlers whose changes it carries, with their fields where these
    are known; `version` is the one that it made, and `answered` how it ended.
    """

    step: int
    wall: float
    effect: Json
    handler: str
    subject: str
    fields: tuple[tuple[str, tuple[str, ...]], ...] = ()
    version: str = ""
    answered: str = ""
    attempts: tuple[Attempt, ...] = ()


class Sight(NamedTuple):
    """An object that an attempt was shown, and how old that version was by then.

    `revisions` counts the newer versions that the recording has shown or answered until
    the attempt began, `seconds` is the time since the version was first shown.
    """

    version: Version
    step: int | None
    revisions: int
    seconds: float


class Why(NamedTuple):
    """The answer: the value, since when it is so, and what made it.

    `former` is the value before, None where there was none.  `write` is None where
    somebody else has written it; `managers` are those who manage the field then, by
    `metadata.managedFields`.  `author` is the handler whose change it is; "" where it
    is fnop's own (`is_own`), or the API server's.
    """

    value: Any
    former: Any
    shown: Shown
    before: Shown | None
    write: Write | None
    author: str
    is_own: bool
    managers: tuple[str, ...]
    attempt: Attempt | None
    sights: tuple[Sight, ...]


@dataclass
class Provenance:
    """The fold of a recording about one object, given by its kind and its names."""

    resource: Resource
    namespace: str
    name: str
    attempts: Attempts = field(default_factory=Attempts)
    shown: list[Shown] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    _asked: dict[int, Write] = field(default_factory=dict)
    _ended: list[Attempt] = field(default_factory=list)
    # When each version of any object was first shown: step and time, by uid.
    _first: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)

    def add(self, record: Json) -> None:
        """Take one record in. Raises as `Attempts.add`."""
        step, input, wall = self.attempts.steps + 1, record["input"], record["wall"]
        self._ended += self.attempts.add(record)
        for each in objects_in(input):
            self._see(each, step, wall, way(input))
        if input["in"] == "Answered":
            self._answer(input)
        for command in record["commands"]:
            self._send(command, step, wall)

    def _see(self, found: dict[str, Any], step: int, wall: float, by: str) -> None:
        body = Body(found)
        known = self._first.setdefault(body.uid, {})
        if body.version in known:
            return
        known[body.version] = step, wall
        if self._is_meant(found, body):
            self.shown.append(Shown(step, wall, by, body))

    def _is_meant(self, found: dict[str, Any], body: Body) -> bool:
        kind = found.get("apiVersion"), found.get("kind")
        names = body.namespace or "", body.name
        wanted = self.resource.api_version, self.resource.kind
        return names == (self.namespace, self.name) and kind == wanted

    def _send(self, command: Json, step: int, wall: float) -> None:
        match command:
            case {"do": "Perform", "effect": {"is": kind} as effect, "id": number}:
                place = command.get("namespace") or "", command.get("name")
                is_ours = kind in _WRITES and place == (self.namespace, self.name)
                if is_ours and command.get("resource") == self.resource.key:
                    handler = command.get("handler") or ""
                    subject = command.get("subject") or ""
                    write = Write(step, wall, effect, handler, subject)
                    write.attempts = tuple(self._behind(write))
                    self.writes.append(write)
                    self._asked[number] = write
            case {"do": "Wrote", "id": number, "fields": fields}:
                if number in self._asked:
                    told = ((name, tuple(paths)) for name, paths in fields)
                    self._asked[number].fields = tuple(told)
            case _:
                pass

    def _answer(self, input: Json) -> None:
        write = self._asked.pop(input["id"], None)
        if write is None:
            return
        outcome = input["outcome"]
        write.answered = outcome["is"]
        made = outcome.get("object")
        if isinstance(made, dict):
            write.version = Body(made).version

    def _behind(self, write: Write) -> Iterator[Attempt]:
        """The last attempt of each handler whose changes a write may carry."""
        names = {each.strip() for each in write.handler.split(",")}
        for attempt in (*self.attempts.open.values(), *reversed(self._ended)):
            if attempt.handler in names and attempt.where == write.subject:
                names.discard(attempt.handler)
                yield attempt

    # ------------------------------------------------------------- the question

    def why(self, path: Path) -> Why | None:
        """The provenance of the field's present value; None where it has none."""
        versions = self._versions()
        if not versions:
            return None
        value = resolve(versions[-1].body.data, path)
        if value is None:
            return None
        since = len(versions) - 1
        while since and same_json(resolve(versions[since - 1].body.data, path), value):
            since -= 1
        shown, before = versions[since], versions[since - 1] if since else None
        write = self._written_by(shown, path, value)
        author = "" if write is None else _author(write, path)
        attempt = None if write is None else _of(write.attempts, author)
        managers = tuple(managers_at(shown.body.data, path))
        sights = () if attempt is None else tuple(self._sights(attempt))
        is_own = write is not None and not author and covers(write.effect, path)
        made = write, author, is_own
        former = None if before is None else resolve(before.body.data, path)
        return Why(value, former, shown, before, *made, managers, attempt, sights)

    def _versions(self) -> list[Shown]:
        """The versions of the last object of this name, in their order."""
        if not self.shown:
            return []
        uid = self.shown[-1].body.uid
        found = [each for each in self.shown if each.body.uid == uid]
        if all(each.body.version.isdecimal() for each in found):
            found.sort(key=lambda each: int(each.body.version))
        return found

    def _written_by(self, shown: Shown, path: Path, value: Any) -> Write | None:
        """The operator's request that made a version; also where its reply was lost."""
        for write in self.writes:
            if write.version == shown.body.version:
                return write
        for write in reversed(self.writes):
            lost = write.answered not in ("Applied", "Conflict", "Refused", "Missing")
            if lost and write.step < shown.step and _sets(write.effect, path, value):
                return write
        return None

    def _sights(self, attempt: Attempt) -> Iterator[Sight]:
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


def way(input: Json) -> str:
    """How an input shows an object: listed, as the answer, or by a watch."""
    match input:
        case {"in": "ListItem"}:
            return "listed"
        case {"in": "WatchEvent", "type": str(kind)}:
            return kind.lower()
        case _:
            return "answered"


def _is_newer(one: str, other: str) -> bool:
    both = one.isdecimal() and other.isdecimal()
    return int(one) > int(other) if both else False


def _of(attempts: Sequence[Attempt], author: str) -> Attempt | None:
    return next((each for each in attempts if each.handler == author), None)


def _author(write: Write, path: Path) -> str:
    """The handler whose change it is; "" where it is fnop's, or the server's."""
    for name, pointers in reversed(write.fields):
        if any(_is_within(path, path_at(each)) for each in pointers):
            return name
    if _is_own(path) or not covers(write.effect, path):
        return ""
    return write.handler.rpartition(",")[2].strip()


def _is_own(path: Path) -> bool:
    """Whether fnop keeps its own there: its state, its marks, finalizers."""
    if path[:2] == ("metadata", "finalizers"):
        return True
    return any(each.startswith(_OWN) for each in path[1:3])


# They say which object, and which version of it, is to be changed.
_PRECONDITIONS = (("metadata", "resourceVersion"), ("metadata", "uid"))


def covers(effect: Json, path: Path) -> bool:
    """Whether an effect sets a field, or something within it.

    >>> covers({"is": "Patch", "merge": {"status": {"a": 1}}}, ("status", "a"))
    True
    """
    if path in _PRECONDITIONS:
        return False
    if any(_meet(path, path_at(each["path"])) for each in effect.get("json") or ()):
        return True
    given = effect.get("merge") or effect.get("manifest") or effect.get("child") or {}
    for key in path:
        if not isinstance(given, Mapping):
            return True  # a list, or a value, in which it is
        if key not in given:
            return False
        given = given[key]
    return True


def _sets(effect: Json, path: Path, value: Any) -> bool:
    """Whether an effect gives a field this value."""
    given = effect.get("merge") or effect.get("manifest") or effect.get("child") or {}
    return same_json(resolve(given, path), value) or any(
        path_at(each["path"]) == path and same_json(each.get("value"), value)
        for each in effect.get("json") or ()
    )


def _meet(one: Path, other: Path) -> bool:
    return _is_within(one, other) or _is_within(other, one)


def _is_within(path: Path, whole: Path) -> bool:
    return path[: len(whole)] == whole
