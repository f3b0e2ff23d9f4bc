"""Lanes: the calls of one handler for one object, and the requests of one sort.

Two runs are aligned by their lanes. They are not aligned by time: two runs interleave
differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import orjson
from msgspec import Struct

from fnop.interpreters.recording.comparison.runs import Call, Item, Run
from fnop.interpreters.recording.identities.volatile import Names

__all__ = ["Eras", "Lane", "Lanes", "common_length", "decided", "lanes_of"]


class Lane(Struct, frozen=True):
    """The calls of a handler for an object; with an `effect`, requests of one sort.

    `era` distinguishes processes, from 1. For a request, `subject` is the object that
    it is made for, and the other fields are the object that it is about. Names are the
    ones that both runs have.
    """

    era: int
    handler: str
    resource: str
    namespace: str
    name: str
    effect: str = ""
    subject: str = ""

    @property
    def where(self) -> str:
        """The object as people name it: `default/web`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# A delay may end at the same moment. So another delay alone does not count as another
# decision.
_DELAY = re.compile(r'"(?:after|again|delay|seconds)":[0-9.e+-]+')
Lanes = Mapping[Lane, tuple[list[Item], list[Item]]]
# For each process of a run: its era, and its number in that era, from 0.
_Places = Sequence[tuple[int, int]]
# Calls and requests by their lanes, finished or not.
_Contents = Counter[tuple[Lane, bool]]


class Eras(Struct, frozen=True):
    """The processes of two runs that belong together.

    As a rule these are the processes of equal numbers. If one run has more processes,
    the surplus belongs to the era of the first difference: there a process ended too
    early.
    """

    places: tuple[_Places, _Places]

    @classmethod
    def of(cls, ours: Run, theirs: Run) -> Eras:
        """The eras of two runs."""
        numbers = len(ours.started), len(theirs.started)
        fewer, surplus = min(numbers), abs(numbers[0] - numbers[1])
        plain = [(each, 0) for each in range(1, max(numbers) + 1)]
        if not surplus:
            return cls((plain, plain))
        differs = _differing_processes(ours, theirs)
        less = ours if numbers[0] < numbers[1] else theirs
        if less.is_open and not differs:  # more processes may have followed
            return cls((plain[: numbers[0]], plain[: numbers[1]]))
        plain = plain[:fewer]
        first = (differs or [fewer - 1])[0] + 1
        more = [(first, life) for life in range(1, surplus + 1)]
        many = [*plain[:first], *more, *plain[first:]]
        return cls((plain, many) if numbers[0] < numbers[1] else (many, plain))

    def era(self, side: int, process: int) -> int:
        """The era of a process."""
        return self.places[side][process - 1][0]

    def life(self, side: int, process: int) -> int:
        """The number of a process in its era, from 0."""
        return self.places[side][process - 1][1]

    def is_cut_short(self, side: int, process: int) -> bool:
        """Whether another process of the run follows in the same era."""
        era, life = self.places[side][process - 1]
        return (era, life + 1) in self.places[side]


def _differing_processes(ours: Run, theirs: Run) -> list[int]:
    """The processes, from 0, in which one run did something that the other lacks.

    A process that may go on does not lack anything.
    """
    pairs = enumerate(zip(_contents(ours), _contents(theirs), strict=False))
    return [
        number
        for number, (mine, yours) in pairs
        if (not theirs.may_go_on(number + 1) and _known(ours, number, mine) - yours)
        or (not ours.may_go_on(number + 1) and _known(theirs, number, yours) - mine)
    ]


def _known(run: Run, number: int, contents: _Contents) -> _Contents:
    """The items of a process, without those that it may still finish."""
    if not run.may_go_on(number + 1):
        return contents
    return Counter({key: each for key, each in contents.items() if key[1]})


def _contents(run: Run) -> Sequence[_Contents]:
    """The calls and requests of each process by their lanes, finished or not."""
    found: list[_Contents] = [Counter() for _ in run.started]
    for item in run.items:
        lane = _lane_of(item, run.names, 0)
        found[item.process - 1][lane, item.is_finished] += 1
    return found


def lanes_of(ours: Run, theirs: Run, eras: Eras) -> Lanes:
    """The calls and requests of two runs by their lanes, in their order."""
    found: dict[Lane, tuple[list[Item], list[Item]]] = {}
    for side, run in enumerate((ours, theirs)):
        for item in run.items:
            lane = _lane_of(item, run.names, eras.era(side, item.process))
            found.setdefault(lane, ([], []))[side].append(item)
    return found


def _lane_of(item: Item, names: Names, era: int) -> Lane:
    if isinstance(item, Call):
        shown = item.attempt.object
        if shown is None:
            return Lane(era, item.attempt.handler, "", "", "")
        name = names.name(shown.name)
        return Lane(era, item.attempt.handler, shown.resource, shown.namespace, name)
    effect = item.effect
    function = str(effect.get("function") or "").rpartition(":")[2]
    name = function or names.name(item.name)
    where = item.resource, names.name(item.namespace), name
    subject = names.spelled(item.subject).text
    return Lane(era, item.handler, *where, effect["is"], subject)


def decided(call: Call, names: Names) -> str:
    """The decisions of a call as a text that is the same in each run."""
    found = [each.what for each in call.moments if each.kind != "given"]
    text = orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()
    return _DELAY.sub("", names.spelled(text).text)


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, by Hyyrö's bit-parallel algorithm.

    >>> common_length("abcbdab", "bdcaba")
    4
    """
    places: dict[str, int] = {}
    for place, each in enumerate(other):
        places[each] = places.get(each, 0) | 1 << place
    whole = rest = (1 << len(other)) - 1
    for each in one:
        met = rest & places.get(each, 0)
        rest = ((rest + met) | (rest - met)) & whole
    return len(other) - rest.bit_count()
