"""Match two runs' names for the same things: rename values that differ in any two runs.

Uids, versions, times, generated names, fresh randomness and tokens for secrets differ
in each run. `Names` holds the names of one run. A `Renaming` is their one-to-one
correspondence in two runs, which grows while their values are compared.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.streams.containers import container_ids
from fnop.core.values.body import Body
from fnop.core.values.diff import DiffItem, Path
from fnop.effects.values import same_json
from fnop.interpreters.recording.identities.metadata import OWN
from fnop.interpreters.recording.identities.tokens import MARK, TOKEN, plain

__all__ = [
    "CHOSEN",
    "MADE",
    "UID",
    "Names",
    "Renaming",
    "Spelled",
    "has_token",
    "is_time",
]

_UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_WORD = r"[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*"
_PARTS = re.compile(
    rf"(?P<token>{TOKEN.pattern})|(?P<uid>{_UID})|(?P<time>{_TIME})|(?P<word>{_WORD})"
)
UID = re.compile(_UID)
# The end of a name that is derived from a uid, within a text.
MADE = re.compile(r"-[0-9a-f]{10}(?![0-9a-z])")
_WHOLE_TIME = re.compile(_TIME)
_JOINTS = re.compile(r"([-.])")
# The end of a name that is derived from a uid (`stable_name`), or from fresh
# randomness.
_RANDOM_END = re.compile(r"[0-9a-f]{10}")
_RANDOM_LENGTH_MIN = 5
# Volumes that Kubernetes itself adds to a pod: tokens of service accounts.
_VOLUME = re.compile(r"((?:.+-token|kube-api-access)-)([a-z0-9]{5})")
# A digest as a whole text, such as a checksum.
_DIGEST = re.compile(r"[0-9a-f]{16,128}")
# Enough tokens to see whether two recordings used the same key.
_TOKENS_KEPT = 64
# An ignored field: the record of who has written which fields and when.
_ASIDE = frozenset(("managedFields",))
_VERSION = "resourceVersion"
# Numbers that the API server chooses, and the fields with the addresses that it chose.
_PORTS = frozenset(("nodePort", "healthCheckNodePort"))
_ADDRESSED = frozenset(("Pod", "Service"))
_ADDRESSES = ("clusterIP", "clusterIPs", "hostIP", "hostIPs", "podIP", "podIPs")
CHOSEN = _PORTS.union(_ADDRESSES, ("containerID",))
"""The fields of services and pods of which a cluster chooses the values."""
_DAY_SECONDS = 86_400.0
# A smaller number is not a time of these years.
_TIME_MIN = 1e9


class Spelled(Struct, frozen=True):
    """A text without the parts that differ in each run, and these parts in order."""

    text: str
    parts: tuple[str, ...]


class Names:
    """The names of one run, learned from all the objects that it shows."""

    def __init__(self) -> None:
        self.versions: dict[str, Body] = {}
        self.tokens: set[str] = set()
        self._uids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._ends: set[str] = set()
        self._random: set[str] = set()
        self._addresses: set[str] = set()
        self._counts: dict[str, int] = {}
        self._since, self._until = float("inf"), float("-inf")

    def tick(self, wall: float) -> None:
        """Take note of the time of a step (Unix seconds)."""
        self._since, self._until = min(self._since, wall), max(self._until, wall)

    def is_time(self, number: float) -> bool:
        """Whether a number may be a time of this run, in Unix seconds."""
        since = max(_TIME_MIN, self._since - _DAY_SECONDS)
        return since <= number <= self._until + _DAY_SECONDS

    def learn(self, found: dict[str, Any]) -> Body:
        """Take note of an object that is shown."""
        body = Body(found)
        if body.uid not in self._uids:
            name = self._learn_name(body)
            place = f"{body.data.get('kind')} {body.namespace or ''}/{name}"
            self._uids[body.uid] = f"<uid of {place}{self._number_suffix(place)}>"
        self.versions.setdefault(body.version, body)
        if body.data.get("kind") in _ADDRESSED:
            for stanza in ("spec", "status"):
                self._addresses.update(_addresses(body.stanza(stanza)))
        return body

    def _learn_name(self, body: Body) -> str:
        """The name of an object, the same in each run."""
        name, prefix = body.name, body.meta.get("generateName")
        if name in self._names:
            return self._names[name]
        if isinstance(prefix, str) and prefix and name.startswith(prefix):
            pattern = f"{prefix}*"
        else:
            pattern = self.spelled(name).text
            if pattern == name:
                return name
        self._names[name] = f"{pattern}{self._number_suffix(pattern)}"
        self._ends.add(_JOINTS.split(name)[-1])
        return self._names[name]

    def _number_suffix(self, what: str) -> str:
        """A number if the name is already used: `*`, `*2`, `*3`."""
        self._counts[what] = number = self._counts.get(what, 0) + 1
        return "" if number == 1 else str(number)

    def draw(self, value: str) -> None:
        """Take note of fresh randomness in hexadecimal; names may contain it."""
        for length in range(_RANDOM_LENGTH_MIN, len(value) + 1):
            self._random.add(value[:length])

    def conceal(self, text: str) -> None:
        """Take note of the first tokens of a text."""
        if len(self.tokens) < _TOKENS_KEPT:
            self.tokens.update(plain(each[0]) for each in TOKEN.finditer(text))

    def name(self, name: str) -> str:
        """A name in the form that is the same in each run."""
        return self._names.get(name) or self.spelled(name).text

    def spelled(self, text: str) -> Spelled:
        """The text without the parts that differ in each run."""
        parts: list[str] = []

        def replaced(found: re.Match[str]) -> str:
            match found.lastgroup:
                case "token":
                    parts.append(plain(found[0]))
                    return "<token>"
                case "uid":
                    known = self._uids.get(found[0])
                    if known is None:
                        parts.append(found[0])
                    return known or "<uid>"
                case "time":
                    return "<time>"
                case _:
                    return self._stable_word(found[0], parts)

        return Spelled(_PARTS.sub(replaced, text), tuple(parts))

    def _stable_word(self, word: str, parts: list[str]) -> str:
        if word in self._names:
            return self._names[word]
        if word in self._addresses:
            parts.append(word)
            return "<address>"
        volume = _VOLUME.fullmatch(word)
        if volume is not None:
            parts.append(volume[2])
            return f"{volume[1]}*"
        pieces = _JOINTS.split(word)
        if not self._ends.isdisjoint(pieces):
            pieces = [*self._replaced_names(pieces)]
        for place, piece in enumerate(pieces):
            made = place and _RANDOM_END.fullmatch(piece)
            if piece in self._random or made:
                parts.append(piece)
                pieces[place] = "*"
        return "".join(pieces)

    def _replaced_names(self, pieces: Sequence[str]) -> Iterator[str]:
        """The pieces of a word with its names replaced, the longest first."""
        place = 0
        while place < len(pieces):
            for end in range(len(pieces), place, -1):
                known = self._names.get("".join(pieces[place:end]))
                if known is not None:
                    yield known
                    place = end
                    break
            else:
                yield pieces[place]
                place += 1


def _addresses(stanza: Mapping[str, Any]) -> Iterator[str]:
    """The addresses, and ids of containers, that a cluster has chosen."""
    for container in container_ids(stanza):
        yield container.rpartition("/")[2]  # as in containerd://0123
    for name in _ADDRESSES:
        found = stanza.get(name)
        for each in found if isinstance(found, list) else (found,):
            address = each.get("ip") if isinstance(each, dict) else each
            if isinstance(address, str):
                yield address


def has_token(value: Any) -> bool:
    """Whether a value contains a token for a secret, at any depth.

    >>> has_token({"a": ["redacted-0123456789abcdef01234567"]}), has_token("redacted-")
    (True, False)
    """
    text = orjson.dumps(value, default=dict).decode()
    return TOKEN.search(text) is not None


def is_time(text: Any) -> bool:
    """Whether a value is a timestamp.

    >>> is_time("2026-01-01T00:00:00Z"), is_time("12")
    (True, False)
    """
    return isinstance(text, str) and _WHOLE_TIME.fullmatch(text) is not None


class Renaming:
    """A one-to-one correspondence between the names of two runs.

    All times correspond to each other: two runs do not share a clock. An object's
    version corresponds to all versions with the same content, because they may differ
    by changes that no client sees. A handler that knows a secret may decide on a digest
    of it, which differs as the secret does. `knows_secrets` is asked in that case.
    """

    def __init__(self, ours: Names, theirs: Names) -> None:
        self._ours, self._theirs = ours, theirs
        self.knows_secrets: Callable[[], bool] = lambda: False
        # Tokens made with the same key are comparable. Then a token corresponds only to
        # itself.
        self._has_one_key = not ours.tokens.isdisjoint(theirs.tokens)
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._versions: set[tuple[str, str]] = set()

    def differences(
        self, one: Any, other: Any, path: Path = (), *, decided: bool = False
    ) -> Iterator[DiffItem]:
        """The differences of two values except for names, in the order of the fields.

        In `decided` values the versions count: both must be of the same state.
        """
        if one is None or other is None:
            if one is not other:
                operation = "add" if one is None else "remove"
                yield DiffItem(operation, path, one, other)
        elif isinstance(one, dict) and isinstance(other, dict):
            if not _is_alike(one, other):
                yield from self._compare_mappings(one, other, path, decided)
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if not _is_alike(one, other):
                yield from self._compare_lists(one, other, path, decided)
        elif isinstance(one, str) and isinstance(other, str):
            if one != other and not self._is_same(one, other, path, decided):
                yield DiffItem("change", path, one, other)
        elif not same_json(one, other) and not self._are_chosen(one, other, path):
            yield DiffItem("change", path, one, other)

    def is_same(self, one: Any, other: Any) -> bool:
        """Whether two values are equal except for names; if not, bind none."""
        bound = len(self._forth)
        if next(self.differences(one, other), None) is None:
            return True
        while len(self._forth) > bound:
            _, name = self._forth.popitem()
            del self._back[name]
        return False

    # ---------------------------------------------------------------- mappings, lists

    def _compare_mappings(
        self,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        path: Path,
        decided: bool,
    ) -> Iterator[DiffItem]:
        renamed = self._renamed_keys(one, other)
        for key in sorted({*one, *other}.difference(renamed.values())):
            if key in _ASIDE or key.startswith(OWN):
                continue
            mine, yours = one.get(key), other.get(renamed.get(key, key))
            if mine is not yours and (type(mine) is not str or mine != yours):
                yield from self.differences(mine, yours, (*path, key), decided=decided)

    def _renamed_keys(
        self, one: Mapping[str, Any], other: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """The keys that have another name in the other run."""
        if one.keys() == other.keys():
            return {}
        ours = [each for each in one if each not in other]
        theirs = {
            self._theirs.spelled(each).text: each for each in other if each not in one
        }
        found = ((each, theirs.get(self._ours.spelled(each).text)) for each in ours)
        return {key: name for key, name in found if name is not None and name != key}

    def _compare_lists(
        self, one: Sequence[Any], other: Sequence[Any], path: Path, decided: bool
    ) -> Iterator[DiffItem]:
        ours, theirs = (
            _items_by_key(one, self._ours),
            _items_by_key(other, self._theirs),
        )
        for key in ours | theirs:
            values = ours.get(key), theirs.get(key)
            yield from self.differences(*values, (*path, f"[{key}]"), decided=decided)
        both = [[e for e in ours if e in theirs], [e for e in theirs if e in ours]]
        if both[0] != both[1] and not _are_objects(one):
            yield DiffItem("change", path, [*one], [*other])

    def _are_chosen(self, one: Any, other: Any, path: Path) -> bool:
        """Whether the values are times, or ports that each run chose."""
        if not (_is_number(one) and _is_number(other)):
            return False
        if path and path[-1] in _PORTS:
            return self._bind(f"port {one}", f"port {other}")
        return self._ours.is_time(one) and self._theirs.is_time(other)

    # ----------------------------------------------------------------------- texts

    def _is_same(self, one: str, other: str, path: Path, decided: bool) -> bool:
        if path and path[-1] == _VERSION:
            return self._is_same_version(one, other, decided)
        if self._is_same_text(one, other):
            return True
        mine, yours = _decoded_base64(one), _decoded_base64(other)
        if mine and yours and self._is_same_text(mine, yours):
            return True
        return self._are_digests(one, other, decided)

    def _are_digests(self, one: str, other: str, decided: bool) -> bool:
        """Whether they may be digests of secrets: decided so, or known before."""
        if len(one) != len(other) or not all(map(_DIGEST.fullmatch, (one, other))):
            return False
        if one in self._forth or (decided and self.knows_secrets()):
            return self._bind(one, other)
        return False

    def _is_same_text(self, one: str, other: str) -> bool:
        ours, theirs = self._ours.spelled(one), self._theirs.spelled(other)
        if ours.text != theirs.text or len(ours.parts) != len(theirs.parts):
            return False
        pairs = [*zip(ours.parts, theirs.parts, strict=True)]
        return all(map(self._may_be, pairs)) and all(self._bind(*e) for e in pairs)

    def _may_be(self, pair: tuple[str, str]) -> bool:
        """Whether two names may denote the same thing; this does not bind them."""
        one, other = pair
        if one in self._forth or other in self._back:
            return self._forth.get(one) == other
        is_token = one.startswith(MARK) or other.startswith(MARK)
        return one == other or not (is_token and self._has_one_key)

    def _bind(self, one: str, other: str) -> bool:
        if not self._may_be((one, other)):
            return False
        if one not in self._forth:
            self._forth[one], self._back[other] = other, one
        return True

    def _is_same_version(self, one: str, other: str, decided: bool) -> bool:
        pair = one, other
        if not decided:
            self._versions.add(pair)
        if pair in self._versions:
            return True
        ours, theirs = self._ours.versions.get(one), self._theirs.versions.get(other)
        if ours is None or theirs is None:
            return ours is theirs
        if not self.is_same(ours.data, theirs.data):
            return False
        self._versions.add(pair)
        return True


def _is_alike(one: Any, other: Any) -> bool:
    """Whether two values are identical: True is not 1, although `==` says so."""
    if one != other:
        return False
    options = orjson.OPT_SORT_KEYS
    return orjson.dumps(one, option=options) == orjson.dumps(other, option=options)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decoded_base64(text: str) -> str:
    """The text encoded in base64, as in the data of a Secret; or ""."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""


def _are_objects(items: Iterable[Any]) -> bool:
    return all(
        isinstance(each, dict) and isinstance(each.get("metadata"), dict)
        for each in items
    )


def _items_by_key(items: Sequence[Any], names: Names) -> dict[str, Any]:
    """Items by their names if they have unique names, else by their places.

    >>> [*_items_by_key([{"name": "a"}, {"name": "b"}], Names())]
    ['a', 'b']
    >>> [*_items_by_key([5, 5], Names())]
    ['0', '1']
    """
    keys = [_key_of(each, names) for each in items]
    if None in keys or len({*keys}) < len(keys):
        keys = [str(place) for place, _ in enumerate(items)]
    return dict(zip([str(each) for each in keys], items, strict=True))


def _key_of(item: Any, names: Names) -> str | None:
    if not isinstance(item, dict):
        return None
    meta = item.get("metadata")
    if isinstance(meta, dict):
        name, place = meta.get("name"), meta.get("namespace")
        where = names.name(name) if isinstance(name, str) else None
        return f"{place}/{where}" if place and where else where
    for key in ("name", "type"):
        if isinstance(item.get(key), str):
            return names.name(item[key])
    return None
