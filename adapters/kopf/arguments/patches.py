"""The argument `patch` of Kopf: a mutable merge patch, with functions in `fns`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

import jsonpatch

from fnop.core.values.merge import applied

__all__ = ["Patch", "PatchFn", "changed_by"]

Json = dict[str, Any]
PatchFn: TypeAlias = Callable[[Any], None]


class Stanza(MutableMapping[str, Any]):
    """A part of a patch, which is created in it by the first write."""

    def __init__(self, patch: Json, *path: str) -> None:
        self._patch, self._path = patch, path

    def _found(self) -> Json:
        found: Any = self._patch
        for key in self._path:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def __getitem__(self, key: str) -> Any:
        return self._found()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        place: Json = self._patch
        for part in self._path:
            place = place.setdefault(part, {})
        place[key] = value

    def __delitem__(self, key: str) -> None:
        del self._found()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def __repr__(self) -> str:
        return repr(self._found())


class MetaPatch(Stanza):
    """The metadata of a patch, with `labels` and `annotations`."""

    @property
    def labels(self) -> Stanza:
        return Stanza(self._patch, *self._path, "labels")

    @property
    def annotations(self) -> Stanza:
        return Stanza(self._patch, *self._path, "annotations")


class Patch(dict[str, Any]):
    """A merge patch of the handled object, and functions that change a copy of it.

    >>> patch = Patch()
    >>> patch.status["phase"] = "Ready"
    >>> patch.fns.append(lambda body: body["spec"].pop("old"))
    >>> patch, len(patch.fns), bool(Patch())  # doctest: +ELLIPSIS
    (Patch({'status': {'phase': 'Ready'}}, fns=[...]), 1, False)
    """

    def __init__(
        self,
        src: Mapping[str, Any] | None = None,
        /,
        body: Mapping[str, Any] | None = None,
        fns: Iterable[PatchFn] = (),
    ) -> None:
        super().__init__(src or {})
        given = src.fns if isinstance(src, Patch) else ()
        self.fns: list[PatchFn] = [*given, *fns]
        self._body = body

    @property
    def metadata(self) -> MetaPatch:
        return MetaPatch(self, "metadata")

    meta = metadata

    @property
    def spec(self) -> Stanza:
        return Stanza(self, "spec")

    @property
    def status(self) -> Stanza:
        return Stanza(self, "status")

    def __repr__(self) -> str:
        parts = [dict.__repr__(self)] if len(self) else []
        parts += [f"fns={self.fns!r}"] if self.fns else []
        return f"{type(self).__name__}({', '.join(parts)})"

    def __bool__(self) -> bool:
        return bool(len(self) or self.fns)

    def clear(self) -> None:
        """Take all changes back."""
        super().clear()
        self.fns.clear()

    def as_json_patch(self, body: Mapping[str, Any] | None = None) -> list[Any]:
        """The changes as operations of RFC 6902, on `body`.

        Raises `ValueError` without a body if there is a change.
        """
        base = self._body if body is None else body
        if base is None:
            if self:
                raise ValueError("a JSON patch needs the body that it changes")
            return []
        operations: list[Any] = jsonpatch.make_patch(
            copy.deepcopy(dict(base)), changed_by(self, base)
        ).patch
        return operations


def changed_by(patch: Patch, body: Mapping[str, Any]) -> Json:
    """The object after a patch: first its merge part, then its functions."""
    target: Json = copy.deepcopy(dict(applied(dict(patch), dict(body))))
    for change in patch.fns:
        change(target)
    return target
