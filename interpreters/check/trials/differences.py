"""The differences of two worlds, without those that two equal runs also have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.check.state.worlds import World
from fnop.interpreters.check.trials.moments import (
    counted,
    moment_in,
    moments_of,
    timeless,
)

__all__ = ["Difference", "Volatile", "differences", "learned", "leaves"]


class Volatile(Struct, frozen=True):
    """The differences of two benign runs, with another seed and another clock.

    `paths` are pairs of an alias and a dotted path, `objects` aliases that only one of
    the runs has. `moments` are aliases with a `#` for each number that differs between
    the runs, such as a slot of the clock. `steady` has the number of objects of those
    moments whose number does not depend on the elapsed time.
    """

    paths: frozenset[tuple[str, str]] = frozenset()
    objects: frozenset[str] = frozenset()
    moments: frozenset[str] = frozenset()
    steady: frozenset[tuple[str, int]] = frozenset()

    def moment_in(self, alias: str) -> str | None:
        """The one of `moments` that an alias belongs to, if any."""
        return moment_in(alias, self.moments)


class Difference(Struct, frozen=True):
    """One difference of two worlds; None stands for a missing value."""

    alias: str
    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        where = f"{self.alias} {self.path.strip('.')}".strip()
        if self._is_whole and self.found is None:
            return f"{where} is missing"
        if self._is_whole and self.expected is None:
            return f"{where} is there, and should not be"
        plain = self.concealed
        found, expected = _text(plain.found), _text(plain.expected)
        if found == expected:
            return f"{where} is another one"
        pairs = enumerate(zip(found, expected, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), 0)
        shown, usual = _excerpt_around(found, same), _excerpt_around(expected, same)
        return f"{where} is {shown} instead of {usual}"

    @property
    def _is_whole(self) -> bool:
        """Whether it concerns an object, or an external system's thing, as a whole."""
        values = (self.expected, self.found)
        things = (each["id"] for each in values if _is_thing(each))
        return self.path == "" or any(self.path.startswith(each) for each in things)

    @property
    def concealed(self) -> Difference:
        """The difference without the contents of Secrets.

        >>> str(Difference("secrets/x", "data.password", "YQ==", "Yg=="))
        'secrets/x data.password is another one'
        """
        if not self.alias.startswith("secrets/"):
            return self
        inside = self.path.partition(".")[0] in _CONTENTS
        values = (
            _redacted_value(each, inside=inside) for each in (self.expected, self.found)
        )
        return Difference(self.alias, self.path, *values)


_CONTENTS = ("data", "stringData")


_SECRET = "(secret)"


def _redacted_value(value: Any, *, inside: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _redacted_value(each, inside=inside or name in _CONTENTS)
            for name, each in value.items()
        }
    return _SECRET if inside and value is not None else value


def _text(value: Any) -> str:
    return "absent" if value is None else orjson.dumps(value).decode()


def _excerpt_around(text: str, same: int) -> str:
    """The part of a long text around the place of its difference.

    >>> _excerpt_around("a" * 100 + "b" + "c" * 100, 100)[:30]
    '...aaaaaaaaaaaaaaaaaaaabcccccc'
    """
    if len(text) <= _SHOWN:
        return text
    begin = max(0, same - 20)
    end = begin + _SHOWN
    return (
        ("..." if begin else "") + text[begin:end] + ("..." if end < len(text) else "")
    )


_SHOWN = 120


def differences(
    expected: World,
    found: World,
    volatile: Volatile = Volatile(),  # noqa: B008 (an immutable value)
    *,
    without_status: Collection[str] = (),
) -> list[Difference]:
    """The differences of two worlds.

    Objects of kinds in `without_status`, such as `claims.example.com`, may differ in
    status. Things of an external system are identified by their ids, unless part of the
    system is volatile.
    """
    plain = _differences(expected, found, volatile, without_status)
    known = {alias for alias, _ in volatile.paths}
    result: list[Difference] = []
    for alias, several in groupby(plain, key=lambda each: each.alias):
        things = (
            [*_differences_by_id(alias, expected, found)] if alias not in known else []
        )
        result += things or several
    return result


def _differences(
    expected: World,
    found: World,
    volatile: Volatile,
    without_status: Collection[str] = (),
) -> list[Difference]:
    """The differences of two worlds, with list elements identified by their places.

    Places are volatile as well if things outside have other ids in each run.
    """
    result = [*_excess_moments(found, volatile)]
    expected, found = (timeless(each, volatile.moments) for each in (expected, found))
    for alias in sorted({*expected, *found}):
        if alias in volatile.objects:
            continue
        one, other = expected.get(alias), found.get(alias)
        if one == other:
            continue
        if one is None or other is None:
            whole = orjson.loads(one or other or b"null")
            result.append(
                Difference(alias, "", whole, None)
                if other is None
                else Difference(alias, "", None, whole)
            )
            continue
        bare = alias.partition("/")[0] in without_status
        result += [
            each
            for each in _differences_within(
                alias, "", orjson.loads(one), orjson.loads(other)
            )
            if (alias, each.path) not in volatile.paths
            and not (bare and each.path.partition(".")[0] in ("status", "metadata"))
        ]
    return result


def _excess_moments(world: World, volatile: Volatile) -> Iterator[Difference]:
    """The moments in names that occur more often than they always do."""
    usual = dict(volatile.steady)
    for moment, number in sorted(counted(world, volatile.moments).items()):
        if number > usual.get(moment, number):
            alias = moment.replace("#", "*")
            yield Difference(alias, "(how many)", usual[moment], number)


def _differences_by_id(
    alias: str, expected: World, found: World
) -> Iterator[Difference]:
    """The differences of the things of an external system, each by its id.

    A missing thing is the whole difference; the things after it do not count.
    """
    mine, yours = (_things_in(each.get(alias)) for each in (expected, found))
    if mine is None or yours is None:
        return
    for id in sorted({*mine, *yours}):
        if id in mine and id in yours:
            yield from _differences_within(alias, id, mine[id], yours[id])
        else:
            yield Difference(alias, id, mine.get(id), yours.get(id))


def _things_in(text: bytes | None) -> dict[str, Any] | None:
    """The things that a model shows, by their ids; None if it is not a list of them."""
    things = orjson.loads(text or b"{}").get("")
    if not isinstance(things, list) or not all(map(_is_thing, things)):
        return None
    seen: Counter[str] = Counter()
    result = {}
    for each in things:
        seen[each["id"]] += 1
        number = seen[each["id"]]
        result[each["id"] if number == 1 else f"{each['id']} ({number})"] = each
    return result


def _is_thing(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("id"), str)


def _differences_within(
    alias: str, path: str, one: Any, other: Any
) -> Iterator[Difference]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            where = f"{path}.{key}" if path else key
            yield from _differences_within(alias, where, one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, yours) in enumerate(zip(one, other, strict=True)):
            yield from _differences_within(alias, f"{path}[{number}]", mine, yours)
    elif one != other or type(one) is not type(other):
        yield Difference(alias, path or ".", one, other)


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The plain values in a JSON value, each with its path.

    >>> [*leaves("", {"a": [1, {"b": None}]})]
    [('a[0]', 1), ('a[1].b', None)]
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(f"{path}.{key}" if path else key, each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(f"{path}[{number}]", each)
    else:
        yield path, value


def learned(one: World, other: World, *later: World) -> Volatile:
    """The differences between two benign runs, which are volatile.

    Worlds of the first run at other times show which parts of it are steady.
    """
    moments = moments_of(one, other)
    found = _differences(one, other, Volatile(moments=moments))
    paths = {(each.alias, each.path) for each in found if each.path}
    objects = {each.alias for each in found if not each.path}
    known = Volatile(frozenset(paths), frozenset(objects), moments)
    numbers = [set(counted(each, moments).items()) for each in (one, other, *later)]
    return replace(known, steady=frozenset(set.intersection(*numbers)))
