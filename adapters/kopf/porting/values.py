"""The values that an operator's source computes, as far as a verdict needs them.

An expression has a set of possible values. Data is known by its shape alone. Functions,
classes and names of libraries are known exactly, so that their calls can be followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct, field

__all__ = [
    "ANYTHING",
    "NOTHING",
    "Blocked",
    "Class",
    "Data",
    "Declarer",
    "Function",
    "Given",
    "Instance",
    "Known",
    "Module",
    "Partial",
    "Scope",
    "Shape",
    "Unknown",
    "Value",
    "Values",
    "bounded",
    "contents",
    "data",
    "inner_items",
    "mapping",
    "pairs",
]


class Shape(Enum):
    """The shapes of data."""

    MAPPING = "mapping"
    LIST = "list"
    SCALAR = "scalar"
    BOOL = "bool"
    NONE = "none"
    ANY = "any"


class Data(Struct, frozen=True):
    """Plain data. `items` are what it holds, as far as it is more than data.

    Data of a module is `shared`: its name. It is `changed` if functions change it.
    `entries` are those of a mapping that is written out; None if they are not known.
    """

    shape: Shape = Shape.ANY
    items: frozenset[Any] = frozenset()
    shared: str = ""
    changed: bool = False
    entries: frozenset[tuple[str, Values]] | None = None

    def at(self, key: str) -> Values:
        """The values under a key, as far as they are known."""
        for name, values in self.entries or ():
            if name == key:
                return frozenset(self._lasting(each) for each in values)
        return contents(frozenset((self,)))

    def extended(self, values: Values, key: str = "") -> Data:
        """This data with more items, under a key if it is known."""
        items = bounded((*self.items, *values))
        entries = None
        if key and self.entries is not None:
            known = dict(self.entries)
            known[key] = known.get(key, frozenset()) | values
            entries = frozenset(known.items())
        return Data(self.shape, items, self.shared, self.changed, entries)

    def _lasting(self, value: Value) -> Value:
        """A part of this data, which outlives a call if the data does."""
        if not isinstance(value, Data) or not self.shared:
            return value
        return Data(value.shape, value.items, self.shared, self.changed, value.entries)


class Given(Struct, frozen=True):
    """An argument of the handler; a `part` of it is something within it.

    The name `**` stands for all arguments that the handler does not name.
    """

    name: str
    part: bool = False


class Known(Struct, frozen=True):
    """A name of an imported library or of Python, by its path.

    An object that was `made` by a call of the name has the path as well. It is `shared`
    if it was made at the top of a module, and `changed` if functions change it.
    """

    path: str
    made: bool = False
    shared: bool = False
    changed: bool = False
    shown: Any = None


class Unknown(Struct, frozen=True):
    """Something whose source was not found."""

    what: str


class Module(Struct, frozen=True):
    """A module of the operator."""

    name: str


class Scope:
    """The names of a function or of a module, with those around it.

    A scope `lasts` if it exists before a handler is called. A class has a scope that
    its methods do not see.
    """

    def __init__(
        self,
        module: str,
        outer: Scope | None = None,
        *,
        lasts: bool = True,
        is_class: bool = False,
    ) -> None:
        self.module = module
        self.outer = outer
        self.lasts = lasts
        self.is_class = is_class
        self.names: dict[str, Values] = {}
        self.outside: set[str] = set()  # declared by `global` or `nonlocal`

    @property
    def is_module(self) -> bool:
        return self.outer is None


class Class(Struct, frozen=True, eq=False):
    """A class of the operator; `fields` are the values that its methods assign."""

    name: str
    node: ast.ClassDef
    scope: Scope
    bases: tuple[Value, ...]
    fields: dict[str, Values] = field(default_factory=dict)


class Instance(Struct, frozen=True):
    """An object of such a class; one that outlives the call is `shared`."""

    of: Class
    shared: bool = False


class Function(Struct, frozen=True, eq=False):
    """A function of the operator, with its surroundings.

    `bound` is the object of a method. `shown` is the function that it wraps by
    `functools.wraps`. `defaults` are the values of its parameters' defaults.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    file: str
    kind: str = ""
    owner: Class | None = None
    bound: Value | None = None
    shown: Function | None = None
    defaults: Mapping[str, Values] = field(default_factory=dict)

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def innermost(self) -> Function:
        """The author's function below all wrappers."""
        return self if self.shown is None else self.shown.innermost


class Partial(Struct, frozen=True, eq=False):
    """A function with some of its arguments."""

    fn: Value
    args: tuple[Values, ...]
    kwargs: Mapping[str, Values]


class Blocked(Struct, frozen=True, eq=False):
    """A function within a decorator of a library; `path` is the decorator's."""

    path: str
    fn: Value


class Declarer(Struct, frozen=True, eq=False):
    """A decorator of Kopf with its options: it declares the function it is called with.

    `name` is the decorator's, such as `on.create`. `options` are the values of its
    named arguments, and `is_complete` says whether all are known.
    """

    name: str
    call: ast.Call
    file: str
    options: Mapping[str, Values]
    is_complete: bool


Value: TypeAlias = (
    Data
    | Given
    | Known
    | Unknown
    | Module
    | Class
    | Instance
    | Function
    | Partial
    | Blocked
    | Declarer
)
Values: TypeAlias = frozenset[Value]

NOTHING: Values = frozenset()
ANYTHING: Values = frozenset((Data(),))
_ITEMS_MAX = 24
_DEPTH_MAX = 10


def data(shape: Shape, items: Iterable[Value] = ()) -> Values:
    """Data of a shape, with these items.

    >>> [found] = data(Shape.LIST, [Known("json")])
    >>> found.items == {Known("json")}
    True
    """
    return frozenset((Data(shape, bounded(items)),))


def pairs(items: Iterable[Value]) -> Values:
    """A list of tuples with these items, as `items()` of a mapping makes it."""
    return data(Shape.LIST, data(Shape.LIST, (*items, Data(Shape.SCALAR))))


def bounded(items: Iterable[Value]) -> frozenset[Value]:
    """Items as they are; those that are nested deeply count by what they hold."""
    found: set[Value] = set()
    for each in items:
        found |= inner_items((each,)) if _depth(each) >= _DEPTH_MAX else {each}
    if len(found) > _ITEMS_MAX:
        found = {*inner_items(found)}
    return frozenset(found) if len(found) <= _ITEMS_MAX else frozenset((Unknown("…"),))


def inner_items(items: Iterable[Value]) -> frozenset[Value]:
    """Items without data: data counts by what it holds, at any depth."""
    found: set[Value] = set()
    for each in items:
        if isinstance(each, Data):
            found |= inner_items(each.items) | {Data()}
        else:
            found.add(each)
    return frozenset(found)


def mapping(entries: Mapping[str, Values]) -> Values:
    """A mapping with these entries."""
    items = bounded(each for values in entries.values() for each in values)
    return frozenset((Data(Shape.MAPPING, items, entries=frozenset(entries.items())),))


def _depth(value: Value) -> int:
    if not isinstance(value, Data):
        return 0
    return 1 + max(map(_depth, value.items), default=0)


def contents(values: Values) -> Values:
    """The items of these values, or the parts of an argument."""
    found: set[Value] = set()
    for each in values:
        match each:
            case Data():
                found |= {*_items_of(each)}
            case Given():
                found.add(Given(each.name, part=True))
            case Known():
                found.add(each)
            case _:
                found.add(Unknown("an item"))
    return frozenset(found)


def _items_of(value: Data) -> Iterator[Value]:
    """The items of data; they outlive a call if the data does."""
    if not value.items:
        yield Data(shared=value.shared, changed=value.changed)
    for each in value.items:
        yield value._lasting(each)
