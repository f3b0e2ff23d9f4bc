"""Kubernetes objects inside the core: compact to keep, read-only for handlers.

The store keeps a `Body`: the exact bytes if the transport had them (a fifth of the
parsed size). It is parsed when needed, and packed if there are many. A handler sees a
`View`: a dict that cannot be changed, with the usual stanzas as attributes.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import orjson

from fnop.core.values.packing import PACKED_MAX, Packing
from fnop.effects.values import ReadOnlyDict, read_only

__all__ = ["Body", "Key", "Memo", "Meta", "View", "compact", "is_behind"]


class Key(NamedTuple):
    """The identity under which the operator keeps an object."""

    resource: str
    namespace: str
    name: str


def is_behind(version: str, known: str | None) -> bool:
    """Whether a resourceVersion is older than a known one.

    Versions are decimal numbers that grow (KEP-5504, comparable resource versions).
    False if one of them is not such a number.

    >>> is_behind("9", "10"), is_behind("10", "10"), is_behind("a", "b")
    (True, False, False)
    """
    if known is None or not (version.isdecimal() and known.isdecimal()):
        return False
    return int(version) < int(known)


_PARSED = frozenset(("data", "meta"))
_HEAD = frozenset(("finalizers", "is_deleting", "uid", "version"))


class Body:
    """One observed state of an object; never changed, parsed at most once.

    Malformed metadata reads as absent, so that a bad object causes no error elsewhere.
    """

    # Slots without a value cost a call; with one they cost nothing. The core reads some
    # of them dozens of times in a step.
    __slots__ = (
        "_packing",
        "_raw",
        "data",
        "finalizers",
        "is_deleting",
        "meta",
        "owners",
        "seen",
        "uid",
        "version",
    )

    data: dict[str, Any]
    """The parsed object; it must not be changed."""
    meta: dict[str, Any]
    # The metadata that is read all the time; the first access reads all of it.
    uid: str
    is_deleting: bool
    finalizers: tuple[str, ...]
    version: str
    """resourceVersion: compared for equality, or by `is_behind`."""

    def __init__(self, data: dict[str, Any] | None, raw: bytes | None = None) -> None:
        if data is not None:
            self._take_data(data)
        self._raw = raw
        self._packing: Packing | None = None
        # The cached result of `observation.see`; not part of the value.
        self.seen: tuple[Any, Any] | None = None
        # The result of `owned.owners_of`, for comparison with the next version.
        self.owners: tuple[Any, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        """Compute an attribute that has no value yet: parse the text, read the head."""
        if name in _PARSED:
            text = self.raw
            data, meta = self._take_data(orjson.loads(text))
            keep_parsed(self, len(text))  # which may drop both at once
            return data if name == "data" else meta
        if name not in _HEAD:
            raise AttributeError(f"a body has no attribute {name!r}")
        self._read_head(self.meta)
        return getattr(self, name)

    def _take_data(self, data: Any) -> tuple[Any, dict[str, Any]]:
        # A patch may have replaced the whole object by another value.
        found = data.get("metadata") if isinstance(data, dict) else None
        meta = found if isinstance(found, dict) else {}
        self.data, self.meta = data, meta
        return data, meta

    def _read_head(self, meta: dict[str, Any]) -> None:
        self.uid = str(meta.get("uid") or "")
        self.version = str(meta.get("resourceVersion") or "")
        self.is_deleting = bool(meta.get("deletionTimestamp"))
        found = meta.get("finalizers")
        self.finalizers = tuple(found) if isinstance(found, list) else ()

    @property
    def raw(self) -> bytes:
        """The JSON text."""
        if self._raw is None:
            return orjson.dumps(self.data)
        packing = self._packing
        return self._raw if packing is None else packing.text_of(self._raw)

    @property
    def has_text(self) -> bool:
        """Whether `raw` is the original text, and not written by `orjson`."""
        return self._raw is not None

    @property
    def text_length(self) -> int:
        """The bytes of the original text, as it is kept; 0 without one."""
        return 0 if self._raw is None else len(self._raw)

    def forget(self) -> None:
        """Drop what was read from the text: it is only a cache."""
        if self._raw is None:
            return
        self.seen = None
        with suppress(AttributeError):  # both are set, or none
            del self.data, self.meta
        if self._packing is not None:
            # Its strings take more memory than the body without its text.
            with suppress(AttributeError):  # all are set at once, or none
                del self.uid, self.version, self.is_deleting, self.finalizers

    @property
    def can_be_packed(self) -> bool:
        """Whether it has a text that is short enough; a packed body has."""
        return self._raw is not None and len(self._raw) <= PACKED_MAX

    def pack(self, packing: Packing) -> None:
        """Keep the packed text, and nothing else, if it can be packed."""
        raw = self._raw
        if raw is not None and self._packing is None and self.can_be_packed:
            self._raw, self._packing = packing.packed(raw), packing
        self.forget()

    @property
    def generation(self) -> int | None:
        """metadata.generation: the number of changes of the desired state."""
        found = self.meta.get("generation")
        return found if isinstance(found, int) else None

    @property
    def name(self) -> str:
        return str(self.meta.get("name") or "")

    @property
    def namespace(self) -> str | None:
        found = self.meta.get("namespace")
        return found if isinstance(found, str) else None

    def stanza(self, name: str) -> dict[str, Any]:
        """A top-level mapping such as spec; empty when absent or malformed."""
        found = self.data.get(name)
        return found if isinstance(found, dict) else {}

    def mapping(self, name: str) -> dict[str, Any]:
        """A mapping in metadata such as labels; empty when absent."""
        found = self.meta.get(name)
        return found if isinstance(found, dict) else {}

    def at(self, path: tuple[str, ...]) -> Any:
        """The value at a field path; None when it, or a parent, is absent."""
        value: Any = self.data
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Body({self.namespace}/{self.name}@{self.version})"


# The most recently parsed bodies, with the lengths of their texts; and their sum.
_PARSED_MAX = 2**20
_recent: deque[tuple[Body, int]] = deque()
_recent_length = 0


def keep_parsed(body: Body, length: int) -> None:
    """Keep the parsed form of a body for a while; the oldest ones drop theirs.

    `length` is that of its text, in bytes.

    A pass over an object parses it, and may parse its owner and its children. fnop
    keeps the parsed form of some hundred objects, and the text of all others.
    """
    global _recent_length
    _recent.append((body, length))
    _recent_length += length
    while _recent_length > _PARSED_MAX and len(_recent) > 1:
        oldest, its_length = _recent.popleft()
        _recent_length -= its_length
        oldest.forget()


def compact(body: Body, same: Body) -> Body:
    """Return a body, or an equal one of the same version that takes less memory.

    An answer has no text of its object, but the watch event of the same version has.
    Two bodies of one version need not be equal: removing the last finalizer of an
    object that is being deleted does not change its version.

    >>> parsed, text = Body({"a": 1}), Body(None, b'{"a":1}')
    >>> compact(parsed, text) is text, compact(parsed, Body(None, b"{}")) is parsed
    (True, True)
    """
    return same if same.has_text and not body.has_text and same == body else body


class Meta(ReadOnlyDict):
    """An object's metadata: a read-only dict, with the usual fields as attributes.

    Every object from the API server has a `name` and a `uid`. In an object that a test
    creates without them, they are empty.

    >>> Meta({"name": "web", "labels": {"app": "web"}}).labels["app"]
    'web'
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.get("name") or ""

    @property
    def namespace(self) -> str | None:
        return self.get("namespace")

    @property
    def uid(self) -> str:
        return self.get("uid") or ""

    @property
    def labels(self) -> ReadOnlyDict:
        return self.get("labels") or ReadOnlyDict()

    @property
    def annotations(self) -> ReadOnlyDict:
        return self.get("annotations") or ReadOnlyDict()

    @property
    def creation_timestamp(self) -> str | None:
        return self.get("creationTimestamp")

    @property
    def deletion_timestamp(self) -> str | None:
        return self.get("deletionTimestamp")


class MetaBefore(Meta):
    """The metadata of an object that may not be stored yet.

    Without a name, or a uid, these are None, as in Kopf.
    """

    __slots__ = ()

    @property
    def name(self) -> Any:
        return self.get("name")

    @property
    def uid(self) -> Any:
        return self.get("uid")


def _refuse_memo(memo: object, *given: object, **named: object) -> NoReturn:
    names = [str(each) for each in (*given[:1], *named) if isinstance(each, str)]
    name = names[0] if names else "key"
    change = f"{name}=..." if name.isidentifier() else f"**{{{name!r}: ...}}"
    raise TypeError(
        f"a memo is read-only; return fnop.remember({change}), or None to forget it"
    )


class Memo(ReadOnlyDict):
    """The argument `memo`: the values kept by `fnop.remember`, also as attributes.

    >>> Memo({"address": "db"}).address
    'db'
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the memo has no {name!r}") from None

    __setattr__ = __delattr__ = __setitem__ = __delitem__ = __ior__ = _refuse_memo
    clear = pop = popitem = setdefault = update = _refuse_memo


class View(ReadOnlyDict):
    """An object as a handler sees it: a dict that is read-only at every depth.

    The usual stanzas are attributes, too. `now` is the wall-clock time (Unix seconds)
    of the observation.

    >>> View.of({"spec": {"size": 1}}, now=0.0).spec["size"]
    1
    """

    __slots__ = ("now",)

    now: float

    @classmethod
    def of(cls, data: dict[str, Any], now: float) -> View:
        view = cls(read_only(data))
        object.__setattr__(view, "now", now)  # it is read-only from here on
        return view

    def __reduce__(self) -> tuple[Any, ...]:
        return View.of, (dict(self), self.now)

    @property
    def metadata(self) -> Meta:
        return Meta(self.get("metadata") or {})

    @property
    def meta(self) -> Meta:
        return self.metadata

    @property
    def spec(self) -> ReadOnlyDict:
        return self.get("spec") or ReadOnlyDict()

    @property
    def status(self) -> ReadOnlyDict:
        return self.get("status") or ReadOnlyDict()

    @property
    def labels(self) -> ReadOnlyDict:
        return self.metadata.labels

    @property
    def annotations(self) -> ReadOnlyDict:
        return self.metadata.annotations

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str | None:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid
