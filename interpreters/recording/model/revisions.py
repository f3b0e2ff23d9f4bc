"""The versions of all objects of a recording: since when each existed, and was shown.

A version that the operator was shown late existed before. If the recording knows the
cluster (`fnop.interpreters.recording.model.account`), it says since when. Otherwise the
versions themselves show it, because the versions of one kind are counted together
(KEP-5504). So a version existed by the time when a later version of its kind was shown.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.children.fields import managers_at
from fnop.core.values.body import Body
from fnop.core.values.diff import Diff
from fnop.core.values.paths import path_text
from fnop.interpreters.recording.model.fields import changes_of
from fnop.interpreters.recording.model.refs import Ref

__all__ = [
    "VERSIONS_MAX",
    "Revision",
    "Revisions",
    "leaves_of",
    "packed",
    "told",
]

Json = Mapping[str, Any]

# Beyond this number the oldest versions are forgotten, except the last one of each
# object.
VERSIONS_MAX = 20_000


@dataclass(slots=True, eq=False)
class Revision:
    """One version of an object.

    - `since` is the step from which on it exists. It is concluded from later input,
      unless it is `dated`.
    - `shown` is the step that showed it to the operator.
    - `made` is the step that sent the operator's request for it.
    - `wall` is the time of the earliest of these steps that is known (Unix seconds).
    - `by` is its author: managers, or a word of the account.
    - `changed` are the fields that differ from the version that was known before.
    - `body` is its compressed JSON. If the object is `gone`, it is its last one.

    A step is 0 if there is no such step.
    """

    ref: Ref
    uid: str
    version: str
    wall: float
    since: int = 0
    shown: int = 0
    made: int = 0
    by: str = ""
    changed: str = ""
    gone: bool = False
    body: bytes = b""
    dated: int = 0

    def __post_init__(self) -> None:
        """Keep `since` as `dated` if it was given."""
        self.dated = self.since

    @property
    def leaves(self) -> dict[str, Any]:
        """The fields that are not mappings or lists, by their paths."""
        return {} if self.gone else dict(leaves_of(self.data))

    @property
    def data(self) -> dict[str, Any]:
        """The object as it is kept (`told`), parsed again."""
        found: dict[str, Any] = orjson.loads(zlib.decompress(self.body))
        return found


_FAST = 1


def packed(data: Json) -> bytes:
    """An object in the form that a revision keeps.

    >>> Revision(Ref("pods", "", "p"), "u", "7", 0.0, body=packed({"a": 1})).data
    {'a': 1}
    """
    return zlib.compress(orjson.dumps(told(data)), _FAST)


class Revisions:
    """The fold of versions, in the order in which they become known.

    Beyond `most` versions the oldest are forgotten.
    """

    def __init__(self, most: int = VERSIONS_MAX) -> None:
        self.forgotten = 0
        self._most = most
        self._known: dict[tuple[str, str], Revision] = {}
        self._last: dict[Ref, Revision] = {}
        self._newest: dict[str, Revision] = {}
        self._order: deque[Revision] = deque()
        # Per kind: the versions that were shown, of objects and of listings, with their
        # steps.
        self._seen: dict[str, list[tuple[int, int]]] = {}

    def tell(self, found: Revision) -> None:
        """Take note of a version from the account."""
        before = self._last.get(found.ref)
        if before is not None and not (before.gone or found.gone):
            found.changed = _field_names(_differences_to(before, found.data))
        self._keep(found)

    def show(
        self, ref: Ref, data: dict[str, Any], step: int, wall: float, *, gone: bool
    ) -> Revision:
        """Take note of an object that an input shows."""
        body = Body(data)
        known = self._known.get((body.uid, body.version))
        if known is not None and gone and not known.gone:
            return self._end_revision(known, step, wall)
        if known is None:
            known = Revision(ref, body.uid, body.version, wall, gone=gone)
            known.body = packed(data)
            before = self._last.get(ref)
            if before is not None and not (before.gone or gone):
                items = _differences_to(before, told(data))
                known.changed = _field_names(items)
                known.by = _managers_of(data, items)
            self._keep(known)
        known.shown = known.shown or step
        self.reach(ref.kind, body.version, step)
        return known

    def _end_revision(self, last: Revision, step: int, wall: float) -> Revision:
        """The end of an object that is shown with a version in which it existed.

        A watch with a selector reports in this way that the object is no longer
        selected. Some aggregated APIs report every deletion in this way. The version
        itself existed all the same.
        """
        newest = self._newest.get(last.uid)
        if newest is not None and newest.gone:
            return newest  # another watch has reported it
        found = Revision(last.ref, last.uid, last.version, wall, step, step, gone=True)
        found.body = last.body
        self._keep(found)
        self._known[last.uid, last.version] = last
        return found

    def lose(self, uid: str, version: str, step: int, wall: float) -> Revision | None:
        """Take note that a listing of a version lacks an object; None if it was gone.

        The object was deleted in between, at an unknown time.
        """
        last = self._newest.get(uid)
        if last is None or last.gone or self._last.get(last.ref) is not last:
            return None
        found = Revision(last.ref, uid, version, wall, shown=step, gone=True)
        found.body = last.body
        self._keep(found)
        return found

    def reach(self, kind: str, version: str, step: int) -> None:
        """Take note that a kind has reached a version: by an object, or a listing."""
        if version.isdecimal():
            self._seen.setdefault(kind, []).append((int(version), step))

    def find(self, uid: str, version: str) -> Revision | None:
        """This version of the object; None if it was never shown, or is forgotten."""
        return self._known.get((uid, version))

    def _keep(self, found: Revision) -> None:
        self._known[found.uid, found.version] = found
        self._last[found.ref] = self._newest[found.uid] = found
        self._order.append(found)
        while len(self._order) > self._most and len(self._last) < self._most:
            oldest = self._order.popleft()
            if self._last.get(oldest.ref) is oldest:
                self._order.append(oldest)
                continue
            self.forgotten += 1
            self._known.pop((oldest.uid, oldest.version), None)
            if self._newest.get(oldest.uid) is oldest:
                del self._newest[oldest.uid]

    def of_objects(self) -> dict[Ref, list[Revision]]:
        """The versions of each object in their order, with `since` as known by now."""
        found: dict[Ref, list[Revision]] = {}
        for each in self._order:
            found.setdefault(each.ref, []).append(each)
        reached = {kind: _Reached.of(seen) for kind, seen in self._seen.items()}
        for ref, versions in found.items():
            known = reached.get(ref.kind, _Reached((), ()))
            for each in versions:
                each.since = each.dated or known.at(each.version) or each.shown
            if all(each.version.isdecimal() for each in versions):
                versions.sort(key=lambda each: int(each.version))
            last = 0
            for each in versions:
                each.since = last = max(each.since, last)
        return found


class _Reached(Struct, frozen=True):
    """The steps by which a kind had reached its versions, both in order."""

    versions: Sequence[int]
    steps: Sequence[int]

    @classmethod
    def of(cls, seen: list[tuple[int, int]]) -> _Reached:
        """Build it from the versions that were shown, and the steps with them."""
        found = sorted(seen)
        newest_first = accumulate((step for _, step in reversed(found)), min)
        steps = [*newest_first][::-1]
        return cls([version for version, _ in found], steps)

    def at(self, version: str) -> int:
        """The first step that showed an equal or later version of the kind; else 0."""
        if not version.isdecimal():
            return 0
        place = bisect_left(self.versions, int(version))
        return self.steps[place] if place < len(self.steps) else 0


# ------------------------------------------------------------------------- contents

# The manager of each field is a question of its own (`--why`).
_ASIDE = frozenset(("managedFields", "resourceVersion"))
_FIELDS_ASKED = 50
_NAMES_SHOWN, _FIELDS_NAMED = 3, 4


def told(data: Json) -> dict[str, Any]:
    """An object without the fields that differ in every version.

    >>> told({"metadata": {"name": "x", "resourceVersion": "7"}})
    {'metadata': {'name': 'x'}}
    """
    meta = data.get("metadata")
    if not isinstance(meta, dict):
        return dict(data)
    kept = {name: value for name, value in meta.items() if name not in _ASIDE}
    return {**data, "metadata": kept}


def _differences_to(before: Revision, now: Json) -> Diff:
    return changes_of(before.data, now)


def _field_names(items: Diff) -> str:
    """The fields that differ; only the first are named.

    >>> _field_names(changes_of({"a": 1}, {"a": 2, "b": {"c": 3}}))
    'a, b'
    """
    names = [path_text(each.field) or "all of it" for each in items]
    more = len(names) - _FIELDS_NAMED
    text = ", ".join(names[:_FIELDS_NAMED])
    return f"{text} and {more} more" if more > 0 else text


def _managers_of(data: Json, items: Diff) -> str:
    """The managers of the fields that differ, if they are known."""
    found = (managers_at(data, each.field) for each in items[:_FIELDS_ASKED])
    return ", ".join([*dict.fromkeys(chain.from_iterable(found))][:_NAMES_SHOWN])


def leaves_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a JSON value that are not mappings or lists, or that are empty.

    >>> dict(leaves_of({"spec": {"a": [{"b": 1}], "c": {}}}))
    {'spec.a[0].b': 1, 'spec.c': {}}
    >>> dict(leaves_of({"metadata": {"labels": {"a.b/c": "x"}}}))
    {'metadata.labels[a.b/c]': 'x'}
    """
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves_of(each, path + _path_part(name) if path else name)
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from leaves_of(each, f"{path}[{number}]")
    else:
        yield path, value


@lru_cache(maxsize=4096)
def _path_part(name: str) -> str:
    """A name behind others on a path: `.name`, or in brackets."""
    return path_text(("x", name))[1:]
