"""Values that objects got in another order: as good as in the usual one.

An operator may give each object a port, a slot, or a number of its own: the first free
one to the first object. If a fault changes the order, the worlds differ by a
permutation of such values over the objects of a kind, and by its consequences. A value
that two objects have is not a permutation. A value that belongs to an object by its
spec, or by its name, is not given by turns.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import orjson

from fnop.interpreters.check.state.worlds import World, is_builtin
from fnop.interpreters.check.trials.differences import Difference, leaves
from fnop.interpreters.simulation.actions import Action, Apply, Edit

__all__ = ["given_by", "in_turn"]

_OWNER = re.compile(r"<uid of (.*)>")
_WORD = re.compile(r"[A-Za-z0-9]+")
_HEAD = ("apiVersion", "kind", "metadata", "status")


# The place of a value: the alias of an object, and the path in it.
_Place = tuple[str, str]


class _Change(NamedTuple):
    """The usual value at a place, and the present one, as texts."""

    usual: str
    now: str


_Changes = Mapping[_Place, _Change]
_Given = Mapping[str, Collection[str]]


def given_by(script: Sequence[Action]) -> _Given:
    """The values that a user gives to objects, as texts, by the objects' names.

    >>> given_by([Apply({"metadata": {"name": "a"}, "spec": {"size": 1}})])["a"]
    {'1'}
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in script:
        match each:
            case Apply(manifest):
                name, given = str(manifest["metadata"].get("name")), manifest
            case Edit(where, changes):
                name, given = where.partition("/")[2], changes
            case _:
                continue
        plain = {key: value for key, value in given.items() if key not in _HEAD}
        found[name] |= {str(value) for _, value in leaves("", plain)}
    return found


def in_turn(
    usual: World,
    now: World,
    found: Sequence[Difference],
    handled: Collection[str],
    given: _Given,
) -> list[Difference]:
    """The differences of two worlds that another order of arrival does not explain.

    Values are given by turns to objects of the `handled` kinds, and of custom ones,
    unless a user has `given` them.
    """
    owners = _Owners(usual, now, handled)
    if len(owners.names) < 2 or len(found) < 2:
        return [*found]
    swapped: dict[_Place, _Change] = {}
    for several in (
        *_changes_by_object(found),
        *filter(owners.are_named, _changes_by_entry(found)),
        *_changes_by_name(found, owners),
    ):
        if _is_permutation(several) and not _is_fixed(several, now, owners, given):
            swapped |= several
    words: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
    for (alias, _), change in swapped.items():
        words[owners.of(alias)][change.now] = change.usual
    words.pop(None, None)

    def usually(text: str, alias: str) -> str:
        """The text with the values that its owner usually has."""
        mine = words.get(owners.of(alias), {})
        return _WORD.sub(lambda each: mine.get(each[0], each[0]), text)

    following = {*_renamed_objects(found, usual, now, usually)}
    return [
        each
        for each in found
        if (each.alias, each.path) not in swapped
        and each.alias not in following
        and not (each.path and _follows(each, usually))
    ]


_Usually = Callable[[str, str], str]


def _follows(each: Difference, usually: _Usually) -> bool:
    is_text = isinstance(each.found, str)
    return is_text and usually(each.found, each.alias) == each.expected


def _renamed_objects(
    found: Sequence[Difference], usual: World, now: World, usually: _Usually
) -> Iterator[str]:
    """The aliases of objects with another name now, and their usual aliases."""
    gone = {*_whole_objects(found, is_there=False)}
    for alias in _whole_objects(found, is_there=True):
        other = usually(alias, alias)
        text = usually(now[alias].decode(), alias)
        if other in gone and text == usual[other].decode():
            yield from (alias, other)


def _is_fixed(several: _Changes, now: World, owners: _Owners, given: _Given) -> bool:
    """Whether values belong to their usual places, or also occur in other objects."""
    if any(owners.is_own(*each, given) for each in several.items()):
        return True
    return not {*_values_elsewhere(several, now)}.isdisjoint(
        e.now for e in several.values()
    )


def _is_permutation(several: _Changes) -> bool:
    usual = Counter(each.usual for each in several.values())
    is_unique = len(several) > 1 and max(usual.values()) == 1
    return is_unique and usual == Counter(each.now for each in several.values())


def _changes_by_object(found: Sequence[Difference]) -> Iterator[dict[_Place, _Change]]:
    """The changes at a path in several objects of a kind."""
    places: defaultdict[_Place, dict[_Place, _Change]] = defaultdict(dict)
    for each, change in _changes(found):
        places[_kind_of(each.alias), each.path][each.alias, each.path] = change
    yield from places.values()


def _changes_by_entry(found: Sequence[Difference]) -> Iterator[dict[_Place, _Change]]:
    """The changes in several entries of a list, or of a mapping, of one object."""
    places: defaultdict[_Place, dict[_Place, _Change]] = defaultdict(dict)
    for each, change in _changes(found):
        entries = _NUMBER.sub("[]", each.path)
        if entries == each.path:
            entries = each.path.rpartition(".")[0]
        places[each.alias, entries][each.alias, each.path] = change
    yield from places.values()


_NUMBER = re.compile(r"\[\d+\]")


def _changes(found: Sequence[Difference]) -> Iterator[tuple[Difference, _Change]]:
    for each in found:
        if each.path and _is_plain(each.expected) and _is_plain(each.found):
            yield each, _Change(str(each.expected), str(each.found))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _changes_by_name(
    found: Sequence[Difference], owners: _Owners
) -> Iterator[dict[_Place, _Change]]:
    """The changes of a word in the names of children, by the objects that own them."""
    gone, made = ([*_whole_objects(found, is_there=each)] for each in (False, True))
    kinds: defaultdict[str, dict[_Place, _Change]] = defaultdict(dict)
    for one, other in product(gone, made):
        owner = owners.of(one)
        if owner is None or owners.of(other) != owner:
            continue
        pairs = [*zip(_WORD.findall(one), _WORD.findall(other), strict=False)]
        differing = [_Change(*each) for each in pairs if each[0] != each[1]]
        if _kind_of(one) == _kind_of(other) and len(differing) == 1:
            kinds[_kind_of(one)][owner, ""] = differing[0]
    yield from kinds.values()


def _whole_objects(found: Sequence[Difference], *, is_there: bool) -> Iterator[str]:
    """The aliases of objects that exist, but usually do not; or the other way round."""
    for each in found:
        if not each.path and (each.expected is None) is is_there:
            yield each.alias


def _values_elsewhere(several: _Changes, now: World) -> Iterator[str]:
    """The values at these paths in the other objects of the kind."""
    kinds, paths = {_kind_of(alias) for alias, _ in several}, {e for _, e in several}
    aliases = {alias for alias, _ in several}
    for alias, text in now.items():
        if _kind_of(alias) in kinds and alias not in aliases:
            values = leaves("", orjson.loads(text))
            yield from (str(value) for path, value in values if path in paths)


class _Owners:
    """The handled and the custom objects of a world, by their `names`.

    All other objects may belong to one of them.
    """

    def __init__(self, usual: World, now: World, handled: Collection[str]) -> None:
        self._texts = {**usual, **now}
        known = [
            each
            for each in self._texts
            if _kind_of(each) in handled or _is_custom(_kind_of(each))
        ]
        self.names = {_name_of(each): each for each in known}
        self._known: dict[str, str | None] = {each: each for each in known}

    def of(self, alias: str) -> str | None:
        """The one of them that an object belongs to, by owners or by its name."""
        if alias not in self._known:
            self._known[alias] = self._found(alias)
        return self._known[alias]

    def _found(self, alias: str) -> str | None:
        meta = orjson.loads(self._texts.get(alias, b"{}")).get("metadata") or {}
        for each in meta.get("ownerReferences") or ():
            owner = _OWNER.fullmatch(str(each.get("uid")))
            if owner is not None and owner[1] in self._texts and owner[1] != alias:
                return self.of(owner[1])
        found = [each for each in self.names if _has_name(_name_of(alias), each)]
        return self.names[found[0]] if len(found) == 1 else None

    def are_named(self, several: _Changes) -> bool:
        """Whether the entries of a register belong to objects, by their names."""
        return all(
            any(
                _has_name(text, each) for each in self.names for text in (path, *change)
            )
            for (_, path), change in several.items()
        )

    def is_own(self, place: _Place, change: _Change, given: _Given) -> bool:
        """Whether the usual value belongs there by a name, or by a user's input."""
        alias, path = place
        where = f"{_name_of(alias)} {path}"
        names = [each for each in self.names if _has_name(where, each)]
        if any(_has_name(text, each) for each in names for text in change):
            return True
        owner = self.of(alias)
        whose = names if owner is None else [_name_of(owner)]
        mine = {value for each in whose for value in given.get(each, ())}
        return change.usual in mine and change.now not in mine


def _has_name(text: str, name: str) -> bool:
    """Whether a text contains a name, between other words.

    >>> _has_name("x-1-config", "x-1"), _has_name("x-10", "x-1")
    (True, False)
    """
    return (
        re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text)
        is not None
    )


def _is_custom(kind: str) -> bool:
    return "." in kind and not is_builtin(kind.partition(".")[2])


def _kind_of(alias: str) -> str:
    return alias.partition("/")[0]


def _name_of(alias: str) -> str:
    """The name in an alias.

    >>> _name_of("xs.example.com/a in there")
    'a'
    """
    return alias.partition("/")[2].partition(" ")[0]
