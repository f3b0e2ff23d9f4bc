"""Names with a moment in them, such as the Job of each slot of a schedule.

Two runs with other clocks have other numbers there. A moment is the alias of such an
object with `#` for these numbers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection

from fnop.interpreters.check.state.worlds import World

__all__ = ["counted", "moment_in", "moments_of", "timeless"]

_NUMBER = re.compile(r"\d+")


# A moment is recognized by this number of characters, in any place.
_TELLING = 4


def moments_of(one: World, other: World) -> frozenset[str]:
    """The aliases of two runs that are alike except for numbers, without these.

    If several are alike, an alias has most in common with the one of the same meaning.
    """
    mine, yours = sorted(one.keys() - other.keys()), other.keys() - one.keys()
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for each in sorted(yours):
        alike[_NUMBER.sub("#", each)].append(each)
    return frozenset(
        min(
            (_without_numbers(each, fork) for fork in alike[_NUMBER.sub("#", each)]),
            key=lambda found: (found.count("#"), found),
        )
        for each in mine
        if "#" not in each and alike.get(_NUMBER.sub("#", each))
    )


def _without_numbers(one: str, other: str) -> str:
    """The first text with `#` for the numbers that differ in the second one.

    >>> _without_numbers("jobs/x-1-100", "jobs/x-1-101")
    'jobs/x-1-#'
    """
    theirs = iter(_NUMBER.findall(other))
    return _NUMBER.sub(lambda each: each[0] if each[0] == next(theirs) else "#", one)


def moment_in(alias: str, moments: Collection[str]) -> str | None:
    """The one of some moments that an alias belongs to, if any.

    >>> moment_in("jobs/x-99001", {"jobs/x-#"})
    'jobs/x-#'
    """
    if not moments or not any(each.isdigit() for each in alias):
        return None
    found = (each for each in moments if _numbers(each, alias) is not None)
    return min(found, default=None)


def _numbers(moment: str, alias: str) -> tuple[str, ...] | None:
    """The numbers of an alias at the places of `#`; None if it differs.

    >>> _numbers("jobs/x-1-#", "jobs/x-1-100"), _numbers("jobs/x-1-#", "jobs/x-2-100")
    (('100',), None)
    """
    pattern = re.escape(moment).replace(re.escape("#"), r"(\d+)")
    found = re.fullmatch(pattern, alias)
    return found.groups() if found else None


def timeless(world: World, moments: Collection[str]) -> World:
    """The world with only the newest object of each moment.

    The number of such objects, and their moments, depend on the elapsed time.
    """
    newest: dict[str, tuple[list[int], str]] = {}
    result = dict(world)
    for alias in world if moments else ():
        moment = moment_in(alias, moments)
        if moment is not None:
            order = [int(each) for each in _numbers(moment, alias) or ()]
            newest[moment] = max(newest.get(moment, ([], "")), (order, alias))
            del result[alias]
    for moment, (_, alias) in newest.items():
        result[moment.replace("#", "*")] = _without_moment(world[alias], moment, alias)
    return result


def _without_moment(text: bytes, moment: str, alias: str) -> bytes:
    """The text of an object without the moment in its name.

    >>> _without_moment(b'{"of": "x-99001", "at": 99001}', "jobs/x-#", "jobs/x-99001")
    b'{"of": "x-0", "at": 0}'
    """
    begin = moment.index("#")
    end = len(alias) - (len(moment) - moment.rindex("#") - 1)
    span = alias[begin:end]
    if len(span) < _TELLING:  # too many texts contain it
        name, bare = alias.partition("/")[2], f"{alias[:begin]}0{alias[end:]}"
        return text.replace(name.encode(), bare.partition("/")[2].encode())
    return re.sub(rf"(?<!\d){re.escape(span)}(?!\d)", "0", text.decode()).encode()


def counted(world: World, moments: Collection[str]) -> Counter[str]:
    """The numbers of objects by the moments in their names."""
    found = (moment_in(alias, moments) for alias in (world if moments else ()))
    return Counter(each for each in found if each is not None)
