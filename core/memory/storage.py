"""The places of an operator's state on objects (decision 0001).

The state is one JSON text. A storage is a value in the settings that defines only the
place. The time of the writes, and the content, are decided elsewhere. For an operator
with a given name, a storage becomes `Places`: the place for the text, the place for
kinds that do not keep it there, and former places.

Annotations are copied. The deployment controller copies a Deployment's annotations to
its ReplicaSets, and a rollback copies them back
(`copyDeploymentAnnotationsToReplicaSet` in kubernetes/pkg/controller/deployment/util).
Others restore the contents of a manifest. So fnop believes a text only on the object
whose uid is in it. If another text has taken the place, the object's own text is in an
annotation whose name contains the uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from fnop.core.api.resources import Resource
from fnop.core.api.statuses import UNDESCRIBED, StatusSchema
from fnop.core.kubernetes.names import SUBDOMAIN
from fnop.core.memory.observation import ANNOTATIONS, is_state
from fnop.core.memory.seals import Seal
from fnop.core.values.body import Body
from fnop.core.values.diff import Path, parse_field
from fnop.core.values.errors import described
from fnop.core.values.merge import applied, difference, leaves
from fnop.effects.regexes import regex
from fnop.effects.values import digest, freeze_json, read_only, shown, type_name

__all__ = [
    "AnnotationStorage",
    "AnyStorage",
    "AutoStorage",
    "FormattedStorage",
    "Place",
    "Places",
    "StateFormat",
    "StatusStorage",
    "Storage",
    "StorageFailed",
    "Unreadable",
    "is_copied_to",
    "places_of",
]

PREFIX = "fnop.dev"
# Kubernetes: the prefix of an annotation is a DNS subdomain of up to 253 characters.
_PREFIX_LENGTH_MAX = 253
_RESERVED = regex(r"(.*\.)?(kubernetes|k8s)\.io")


# ------------------------------------------------------- storages, for settings


class AutoStorage(Struct, frozen=True):
    """Keep the state in `status`, under `fnop.dev/<operator>`, or in an annotation.

    The annotation has the same name. It is used for built-in kinds, for kinds without a
    status subresource, and if the schema has no room in the status.

    >>> AutoStorage()
    AutoStorage()
    """


class AnnotationStorage(Struct, frozen=True):
    """Keep the state in the annotation `<prefix>/<operator>`, on all kinds.

    `prefix` is a domain in lower case, "fnop.dev" by default.

    >>> AnnotationStorage("Example.com")
    Traceback (most recent call last):
        ...
    ValueError: the prefix 'Example.com' must be a domain in lower case, such as ...

    Raises `ValueError` for a prefix that is impossible for annotations, and for one
    that Kubernetes reserves.
    """

    prefix: str = PREFIX

    def __post_init__(self) -> None:
        prefix = self.prefix
        if not SUBDOMAIN.fullmatch(prefix):
            raise ValueError(
                f"the prefix {prefix!r} must be a domain in lower case, such as "
                "'example.com'; the name behind it is the operator's"
            )
        if len(prefix) > _PREFIX_LENGTH_MAX:
            raise ValueError(
                f"the prefix {prefix[:20]}... has {len(prefix)} characters, and an "
                f"annotation's has at most {_PREFIX_LENGTH_MAX}; take a shorter one"
            )
        if _RESERVED.fullmatch(prefix):
            raise ValueError(
                f"the prefix {prefix!r} is kept for Kubernetes itself; take a domain "
                "of your own"
            )


class StatusStorage(Struct, frozen=True):
    """Keep the state in a field of the status, such as `status.example.state`.

    `field` is a dotted path, or a list of its keys. Kinds that do not keep it, such as
    built-in kinds, get the annotation `fnop.dev/<operator>`. Operators that serve the
    same kind need one field each.

    >>> StatusStorage("spec.state")
    Traceback (most recent call last):
        ...
    ValueError: the field 'spec.state' must be one of the status, such as ...

    Raises `ValueError` for a field that is not below the status.
    """

    field: str | tuple[str, ...]

    def __post_init__(self) -> None:
        path = parse_field(self.field)
        if len(path) < 2 or path[0] != "status":
            raise ValueError(
                f"the field {self.field!r} must be one of the status, such as "
                "'status.example.state'"
            )
        if path[1] == "conditions":
            raise ValueError(
                f"the field {self.field!r} is where conditions are; take another one"
            )
        if not isinstance(self.field, str):
            force_setattr(self, "field", path)


class Storage(Struct, frozen=True):
    """Keep the state in a custom place, by two pure functions.

    `read` gets an object, and returns the text or None. `write` gets the text, or None
    to remove it. It returns a merge patch: of the status alone, or without the status.

    >>> state = Storage(
    ...     read=lambda body: body.get("state"), write=lambda text: {"state": text}
    ... )
    """

    read: Callable[[Mapping[str, Any]], str | None]
    write: Callable[[str | None], Mapping[str, Any]]


class StateFormat(Protocol):
    """Keeps the state in the form of another framework, in places of its own.

    Pure, like all storages. A `Stored` and an `Observation` are those of
    `fnop.core.memory`. What it raises is about this object.
    """

    def read(self, body: Body, observation: Any) -> Any:
        """The `Stored` state of an object, `Unreadable`, or None without one."""
        ...

    def holds(self, body: Body) -> bool:
        """Whether `read` finds something on an object; it is asked often."""
        ...

    def write(self, stored: Any, body: Body) -> Mapping[str, Any]:
        """The merge patch that makes an object hold a `Stored` state."""
        ...

    def remove(self, body: Body) -> Mapping[str, Any]:
        """The merge patch that removes the state from an object."""
        ...

    def clears(self, body: Body) -> Mapping[str, Any]:
        """The merge patch that removes all that `write` may leave on an object."""
        ...

    def parts(self, body: Body, handler: str) -> tuple[str, ...]:
        """The ids of sub-handlers that have begun, and have not ended."""
        ...

    def essence(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The part of an object whose changes are updates."""
        ...


class FormattedStorage(Struct, frozen=True):
    """Keep the state in the form of another framework (`StateFormat`)."""

    format: StateFormat


AnyStorage: TypeAlias = (
    AutoStorage | AnnotationStorage | StatusStorage | Storage | FormattedStorage
)


# ------------------------------------------------------------ places on objects


class Unreadable(Struct, frozen=True):
    """A stored state that cannot be read, and the problem."""

    problem: str


class StorageFailed(Exception):
    """An author's storage has failed to write; the text has the reason."""


class Place(Protocol):
    """One place on an object; `paths` are all fields that it writes."""

    @property
    def paths(self) -> tuple[Path, ...]: ...

    @property
    def in_status(self) -> bool:
        """Whether it is written by the status endpoint, if there is one."""
        ...

    def read(self, body: Body) -> Any:
        """Return the text, or any other value in its place; None without one."""
        ...

    def write(self, text: str | None) -> dict[str, Any]:
        """Return the merge patch that writes the text, or with None removes it.

        Raises `StorageFailed`.
        """
        ...


class _Field(Struct, frozen=True):
    """The text, unchanged, in one field of the object."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def in_status(self) -> bool:
        return self.path[0] == "status"

    def read(self, body: Body) -> Any:
        return body.at(self.path)

    def write(self, text: str | None) -> dict[str, Any]:
        found: Any = text
        for key in reversed(self.path):
            found = {key: found}
        patch: dict[str, Any] = found
        return patch


def _place_of_object_alone(place: Place, uid: str) -> Place | None:
    """The annotation next to another one that belongs to one object alone."""
    if not isinstance(place, _Field) or place.path[:2] != ANNOTATIONS:
        return None
    return _Field((*ANNOTATIONS, f"{place.path[2]}.{digest(uid)[:_UID_DIGITS]}"))


_UID_DIGITS = 8


def _is_of_another(text: Any, uid: str) -> bool:
    """Whether a text is the state of an object with another uid."""
    if not isinstance(text, str) or f'"uid":"{uid}"' in text:
        return False
    return is_state(text)


def is_copied_to(body: Mapping[str, Any]) -> bool:
    """Whether the annotations of an object's owner are copied to it.

    >>> owner = {"kind": "Deployment", "name": "web", "uid": "u"}
    >>> is_copied_to(
    ...     {"kind": "ReplicaSet", "metadata": {"ownerReferences": [owner]}}
    ... )
    True
    """
    if body.get("kind") != "ReplicaSet":
        return False
    meta = body.get("metadata")
    owners = meta.get("ownerReferences") if isinstance(meta, Mapping) else None
    return any(
        isinstance(each, Mapping) and each.get("kind") == "Deployment"
        for each in owners or ()
    )


class _Own(Struct, frozen=True):
    """A place that an author's functions read and write."""

    storage: Storage
    paths: tuple[Path, ...]
    in_status: bool

    def read(self, body: Body) -> Any:
        try:
            return self.storage.read(read_only(body.data))
        except BaseException as problem:  # from the author's code, about this object
            return Unreadable(described(problem))

    def write(self, text: str | None) -> dict[str, Any]:
        try:
            found = self.storage.write(text)
            if not isinstance(found, Mapping):
                raise TypeError(f"a merge patch is a mapping, not {type_name(found)}")
            frozen: dict[str, Any] = freeze_json(dict(found), "the merge patch")
        except BaseException as problem:
            raise StorageFailed(described(problem)) from problem
        return frozen


class _Elsewhere(Struct, frozen=True):
    """The place of a state that has a form of its own: no text is there."""

    paths: tuple[Path, ...] = ()
    in_status: bool = False

    def read(self, _body: Body) -> Any:
        return None

    def write(self, _text: str | None) -> dict[str, Any]:
        return {}


def _is_kept(place: Place, status: StatusSchema) -> bool:
    names = (path[1] for path in place.paths if len(path) > 1)
    return not status.required and all(map(status.keeps, names))


class Places(Struct, frozen=True):
    """The places of one operator's state.

    It is written to the `first` place, or to the `fallback` on kinds that do not keep
    it there. It is read from these and the `former` places; `paths` are the fields of
    them all. With `quietly`, fnop does not log the use of the fallback. With a `seal`,
    fnop signs the text, and does not accept it without a signature. With a `format` the
    state is not a text.
    """

    first: Place
    fallback: Place | None
    former: tuple[Place, ...]
    quietly: bool
    paths: tuple[Path, ...]
    seal: Seal | None = None
    format: StateFormat | None = None

    @property
    def present(self) -> tuple[Place, ...]:
        """The places that it is written to now."""
        return (self.first,) if self.fallback is None else (self.first, self.fallback)

    def on(
        self, resource: Resource, *, status: StatusSchema = UNDESCRIBED, refused: bool
    ) -> Place:
        """The place that it is written to on objects of a kind (R25).

        `refused` means that the kind did not keep it before. Built-in kinds have closed
        schemas, and others may have, as far as their `status` is known. The server then
        answers 200, and drops the fields that it does not know. An object whose status
        lacks a required field could not be written at all.
        """
        if self.fallback is None:
            return self.first
        closed = self.first.in_status and (
            resource.is_built_in
            or (self.quietly and not resource.has_status)
            or (self.quietly and not _is_kept(self.first, status))
        )
        return self.fallback if refused or closed else self.first

    def for_object(self, place: Place, body: Body) -> Place:
        """The place on one object: its own place, if others write into `place`."""
        own = _place_of_object_alone(place, body.uid)
        if own is None:
            return place
        is_taken = _is_of_another(place.read(body), body.uid)
        if is_taken or is_copied_to(body.data) or own.read(body) is not None:
            return own
        return place

    def text(self, body: Body) -> Any:
        """The stored state of an object; None without one."""
        found = self._found(body)
        if self.seal is None or found is None or isinstance(found, Unreadable):
            return found
        if not self.seal.opens(found):
            return Unreadable("no key of this operator has signed it for this object")
        return found

    def of_object(self, body: Body) -> Iterator[Place]:
        """Yield all possible places of this very object's state, the best first."""
        if body.meta.get("annotations"):
            for each in self.present:
                own = _place_of_object_alone(each, body.uid)
                if own is not None:
                    yield own
        yield from self.present
        yield from self.former

    def read_formatted(self, body: Body, observation: Any) -> Any:
        """The state in its format: `Stored`, `Unreadable`, or None without one."""
        assert self.format is not None, "its caller has asked"
        try:
            return self.format.read(body, observation)
        except Exception as problem:  # of the author's code, about this object
            return Unreadable(described(problem))

    def lacks(self, body: Body) -> bool:
        """Whether an object has no state of this operator."""
        if self.format is None:
            return self.text(body) is None
        try:
            return not self.format.holds(body)
        except Exception:  # of the author's code: then it reads as `Unreadable`
            return False

    def patches(
        self,
        stored: Any,
        body: Body,
        made: Body,
        to: Place,
        text: Callable[[], str],
        split: bool,
    ) -> Iterator[dict[str, Any]]:
        """Yield merge patches that write a state: in its format, or as its `text`.

        `made` is the object as the rest of the write makes it. Raises `StorageFailed`.
        """
        if self.format is None:
            yield from self.written(text(), body, to, split=split)
            return
        try:
            found: dict[str, Any] = freeze_json(
                dict(self.format.write(stored, made)), "the merge patch"
            )
        except Exception as problem:
            raise StorageFailed(described(problem)) from problem
        yield found

    def _found(self, body: Body) -> Any:
        for each in self.of_object(body):
            found = each.read(body)
            if found is not None and not _is_of_another(found, body.uid):
                return found
        return None

    def written(
        self, text: str, body: Body, to: Place, *, split: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield merge patches that write the text to a place, and remove it elsewhere.

        It is removed in the same request, or after the new place has it. So nothing is
        lost if only one of two requests succeeds. `split` means that the status has an
        endpoint of its own.
        """
        moved = () if to in self.present else self.present
        for each in (*moved, *self.former):
            if _is_of_another(each.read(body), body.uid):
                continue  # the client that copied it there would copy it again
            together = not split or each.in_status == to.in_status
            if together or to.read(body) is not None:
                yield _removal_patch(each, body)
        yield to.write(text if self.seal is None else self.seal.sealed(text))

    def lingers(self, body: Body) -> bool:
        """Whether the state must be written again though its content is the same.

        It is still in a former place, or is signed with a former key.
        """
        if self.seal is not None:
            found = self._found(body)
            if found is not None and self.seal.is_due(found):
                return True
        return any(_removal_patch(each, body) for each in self.former) and any(
            each.read(body) is not None for each in self.present
        )

    def parts(self, body: Body, handler: str) -> tuple[str, ...]:
        """The sub-handlers under way that the state names, by their ids."""
        if self.format is None:
            return ()
        with suppress(Exception):  # of the author's code, about this object
            return self.format.parts(body, handler)
        return ()

    def noted(self, body: Body) -> Any:
        """The state as it is on an object, to be compared with that of a later one."""
        if self.format is None:
            return self.text(body)
        paths = (path for each in self.clearings(body) for path in leaves(each))
        return {path: body.at(path) for path in paths}

    def clearings(self, body: Body) -> Iterator[dict[str, Any]]:
        """Yield merge patches after which an object shows no state at all.

        `removals` leave what another framework leaves of its own state.
        """
        if self.format is None:
            yield from self.removals(body)
            return
        with suppress(Exception):  # of the author's code, about this object
            yield dict(self.format.clears(body))

    def removals(self, body: Body) -> Iterator[dict[str, Any]]:
        """Yield merge patches that remove the text, and its copies, from all places."""
        if self.format is not None:
            if found := dict(self.format.remove(body)):
                yield found
            return
        for each in (*self.present, *self.former):
            yield _removal_patch(each, body)
            if isinstance(each, _Field) and each.path[:2] == ANNOTATIONS:
                for name in body.mapping("annotations"):
                    if _COPY.fullmatch(name.removeprefix(each.path[2])):
                        yield _removal_patch(_Field((*ANNOTATIONS, name)), body)


_COPY = regex(rf"\.[0-9a-f]{{{_UID_DIGITS}}}")


def _removal_patch(place: Place, body: Body) -> dict[str, Any]:
    """The merge patch that removes the text; empty if it would change nothing."""
    if place.read(body) is None:
        return {}
    try:
        return difference(body.data, applied(place.write(None), body.data))
    except StorageFailed:
        return {}


def places_of(
    storage: AnyStorage,
    operator: str,
    former: tuple[AnyStorage, ...] = (),
    seal: Seal | None = None,
) -> Places:
    """The places of an operator's state, from the present storage and former ones.

    Raises `TypeError` for values that are not a storage. Raises `ValueError` for an
    author's storage that does not read the text that it writes.
    """
    first, fallback = _places_of(storage, operator)
    before = dict.fromkeys(
        place
        for each in former
        for place in _places_of(each, operator)
        if place is not None and place not in (first, fallback)
    )
    every = [each for each in (first, fallback, *before) if each is not None]
    paths = tuple(dict.fromkeys(path for each in every for path in each.paths))
    quietly = isinstance(storage, AutoStorage)
    format = storage.format if isinstance(storage, FormattedStorage) else None
    return Places(first, fallback, tuple(before), quietly, paths, seal, format)


def _places_of(storage: AnyStorage, operator: str) -> tuple[Place, Place | None]:
    """The place of the text, and the place for kinds that do not keep it there."""
    match storage:
        case AutoStorage():
            name = f"{PREFIX}/{operator}"
            return _Field(("status", name)), _annotation_place(PREFIX, operator)
        case AnnotationStorage(prefix):
            return _annotation_place(prefix, operator), None
        case StatusStorage(field):
            return _Field(parse_field(field)), _annotation_place(PREFIX, operator)
        case FormattedStorage():
            return _Elsewhere(), None
        case Storage():
            return _author_place(storage), _annotation_place(PREFIX, operator)
        case _:
            raise TypeError(
                f"{shown(storage)} is not a storage; give fnop.AutoStorage(), "
                "fnop.AnnotationStorage(...), fnop.StatusStorage(...) or "
                "fnop.Storage(...)"
            )


def _annotation_place(prefix: str, operator: str) -> Place:
    return _Field((*ANNOTATIONS, f"{prefix}/{operator}"))


_SAMPLE = '{"uid":"0","v":1}'
_OBJECT = {"metadata": {"name": "x", "namespace": "x", "uid": "0"}, "spec": {}}


def _author_place(storage: Storage) -> Place:
    """The place of an author's own storage, after a trial of its two functions."""
    draft = _Own(storage, (), False)
    try:
        wrote, removes = draft.write(_SAMPLE), draft.write(None)
    except StorageFailed as problem:
        raise ValueError(
            f"the storage's write has failed for a text or for None: {problem}"
        ) from problem
    paths = tuple(_removed_paths(removes, ()))
    roots = {path[0] for path in paths} | wrote.keys()
    if not paths:
        raise ValueError(
            "the storage's write removes nothing when it is given None; let it answer "
            "a merge patch with None in the place of the text"
        )
    if "status" in roots and len(roots) > 1:
        raise ValueError(
            "the storage's write changes the status and something else; a state is "
            "written in one request, so take one of them"
        )
    if not all(map(_is_place, paths)):
        raise ValueError(
            "the storage's write removes more than a place of its own; take an "
            "annotation, or a field of the status"
        )
    there = applied(wrote, _OBJECT)
    found = draft.read(Body(there))
    if isinstance(found, Unreadable):
        raise ValueError(f"the storage's read has failed: {found.problem}")
    if found != _SAMPLE:
        raise ValueError(
            "the storage's read does not find the text that its write has written"
        )
    if draft.read(Body(applied(removes, there))) is not None:
        raise ValueError(
            "the storage's read still finds a text after its write was given None"
        )
    return _Own(storage, paths, "status" in roots)


def _is_place(path: Path) -> bool:
    if path[0] == "metadata":
        return path[1:2] == ("annotations",) and len(path) == 3
    return len(path) > 1 or path[0] not in ("status", "spec", "apiVersion", "kind")


def _removed_paths(patch: Any, at: Path) -> Iterator[Path]:
    """The paths that a merge patch removes."""
    if patch is None:
        yield at
    elif isinstance(patch, Mapping):
        for key, value in patch.items():
            yield from _removed_paths(value, (*at, key))
