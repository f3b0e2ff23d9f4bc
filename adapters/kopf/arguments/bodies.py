"""Objects as handlers of Kopf see them: mappings that are dicts for other libraries.

The views of a daemon or a timer are live: each access shows the newest object that the
watch has seen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, NoReturn

from fnop.adapters.common.yaml_values import show_in_yaml

__all__ = ["Body", "Cell", "MappingView", "Meta", "Spec", "Status", "view_at"]

Json = dict[str, Any]


class Cell:
    """The object behind a group of views; `look` may replace its data with newer.

    >>> cell = Cell({"spec": {"size": 1}})
    >>> Body(cell).spec["size"]
    1
    """

    def __init__(self, data: Json, look: Callable[[], None] | None = None) -> None:
        self.data = data
        self.look = look

    def newest(self) -> Json:
        """The newest data."""
        if self.look is not None:
            self.look()
        return self.data


class MappingView(dict[str, Any]):
    """A part of an object, read-only; its nested values are ordinary dicts and lists.

    It is a `dict`, so that `json.dumps`, `yaml.dump` and client libraries take it. A
    copy of it is an ordinary `dict`.
    """

    __slots__ = ("_cell", "_path", "_shown")

    def __init__(self, cell: Cell | Mapping[str, Any], path: tuple[str, ...] = ()):
        super().__init__()
        self._cell = cell if isinstance(cell, Cell) else Cell(dict(cell))
        self._path = path
        self._shown: Any = None
        self._renew()

    def _renew(self) -> None:
        """Show the newest data, in the thread that reads them."""
        data = self._cell.newest()
        if data is self._shown:
            return
        dict.clear(self)
        dict.update(self, self._part_of(data))
        self._shown = data

    def _part_of(self, data: Json) -> Mapping[str, Any]:
        """The values at the path of this view; none if there is no mapping."""
        found: Any = data
        for key in self._path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    def __getitem__(self, key: str) -> Any:
        self._renew()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._renew()
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._renew()
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._renew()
        return super().__iter__()

    def __len__(self) -> int:
        self._renew()
        return super().__len__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        self._renew()
        return super().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._renew()
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._renew()
        return super().items()

    def __eq__(self, other: object) -> bool:
        self._renew()
        return dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        self._renew()
        return dict.__repr__(self)

    def plain(self) -> Mapping[str, Any]:
        """The present values themselves, for reading: not a copy, and not a view.

        >>> Body({"metadata": {"name": "a"}}).metadata.plain()
        {'name': 'a'}
        """
        return self._part_of(self._cell.newest())

    def copy(self) -> Json:
        """An ordinary `dict` with the same values."""
        self._renew()
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Json:
        self._renew()
        return copy.deepcopy(dict(self), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def _refuse(self, *_given: Any, **_more: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is read-only; change the object through patch, or "
            "a copy of it by dict(...)"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


show_in_yaml(MappingView, dict)


def view_at(cell: Cell, *path: str) -> MappingView:
    """A view of one stanza; empty if the object has none."""
    return MappingView(cell, path)


class Meta(MappingView):
    """The metadata of an object, with its usual fields as attributes."""

    __slots__ = ()

    def __init__(self, source: Body | Cell | Mapping[str, Any]) -> None:
        super().__init__(*_source(source, "metadata"))

    def _text(self, key: str) -> str | None:
        found: str | None = self.get(key)
        return found

    @property
    def labels(self) -> MappingView:
        return view_at(self._cell, *self._path, "labels")

    @property
    def annotations(self) -> MappingView:
        return view_at(self._cell, *self._path, "annotations")

    @property
    def uid(self) -> str | None:
        return self._text("uid")

    @property
    def name(self) -> str | None:
        return self._text("name")

    @property
    def namespace(self) -> str | None:
        return self._text("namespace")

    @property
    def creation_timestamp(self) -> str | None:
        return self._text("creationTimestamp")

    @property
    def deletion_timestamp(self) -> str | None:
        return self._text("deletionTimestamp")


class Spec(MappingView):
    """The `spec` of an object."""

    __slots__ = ()

    def __init__(self, source: Body | Cell | Mapping[str, Any]) -> None:
        super().__init__(*_source(source, "spec"))


class Status(MappingView):
    """The `status` of an object."""

    __slots__ = ()

    def __init__(self, source: Body | Cell | Mapping[str, Any]) -> None:
        super().__init__(*_source(source, "status"))


class Body(MappingView):
    """A whole object: `body["spec"]` and `body.spec` alike.

    >>> body = Body({"metadata": {"name": "a", "labels": {"app": "db"}}})
    >>> body.meta.name, body.metadata.labels["app"], dict(body.spec)
    ('a', 'db', {})
    """

    __slots__ = ()

    @property
    def metadata(self) -> Meta:
        return Meta(self)

    meta = metadata

    @property
    def spec(self) -> Spec:
        return Spec(self)

    @property
    def status(self) -> Status:
        return Status(self)


def _source(
    source: Body | Cell | Mapping[str, Any], stanza: str
) -> tuple[Cell, tuple[str, ...]]:
    """The cell and the path of a stanza; a plain mapping is taken as an object."""
    if isinstance(source, MappingView):
        return source._cell, (*source._path, stanza)
    cell = source if isinstance(source, Cell) else Cell(dict(source))
    return cell, (stanza,)
