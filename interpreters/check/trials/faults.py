"""Faults, the sites at which they strike, and schedules of them.

A site is named by what happens there: which handler asks for which effect of which
object, for the how many-th time; which event of which object arrives; which action of
the user has come to rest. A number in a run would mean something else with the next
change of the operator's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

__all__ = [
    "BY_NAME",
    "FAULTS",
    "RIVAL",
    "Fault",
    "FaultKind",
    "Place",
    "Schedule",
    "Severity",
    "Site",
    "in_words",
    "schedule_from_json",
    "schedule_to_json",
]

# The mark of rivals and webhooks on objects: a label, an annotation, a finalizer.
RIVAL = "rival.example.com/mark"


class Place(Enum):
    """The kinds of sites."""

    WRITE = "write"  # an effect that changes another object
    OWN = "own"  # a write of the handled object: by effects, or by the operator itself
    READ = "read"  # an effect that reads
    CALL = "call"  # a call outside of the API server
    EVENT = "event"  # a watch event on its way
    LOG = "log"  # lines of a log on their way
    REST = "rest"  # an action of the user, after which all has come to rest
    RUN = "run"  # the run as a whole


class Severity(Enum):
    """The circumstances that it takes for a fault to happen."""

    REALISTIC = "R"  # on any cluster
    SPECIAL = "S"  # with several API servers, or a restored backup


class Site(NamedTuple):
    """A place in a run: `nth` counts equal ones, from 1.

    `handler` is "" for the operator's own writes; `verb` is the effect, or the event's
    type; `target` is kind/name, the called function, or the number of a user's action.
    """

    place: Place
    handler: str
    verb: str
    target: str
    nth: int = 1

    def __str__(self) -> str:
        number = _ordinal(self.nth)
        match self.place:
            case Place.WRITE | Place.OWN | Place.READ | Place.CALL:
                who = f"handler {self.handler}" if self.handler else "the operator"
                return f"`{self.verb} {self.target}` ({number}, {who})"
            case Place.EVENT:
                return f"the event `{self.verb} {self.target}` ({number})"
            case Place.LOG:
                return f"lines of the log of `{self.target}` ({number})"
            case Place.REST:
                return f"`{self.verb}` of the user" if self.verb else "the start"
            case Place.RUN:
                return self.target


def _ordinal(number: int) -> str:
    """A number in an order.

    >>> _ordinal(1), _ordinal(2), _ordinal(11), _ordinal(23)
    ('1st', '2nd', '11th', '23rd')
    """
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"


class FaultKind(NamedTuple):
    """A row of the table of faults.

    `code` is its number in the catalogue of faults, `mode` what distinguishes it from
    others of that number. `words` tells it with `{site}`. `merges` says that the
    operator may legitimately see fewer changes than the user has made: what it keeps
    about the past in the object's status may differ then. After one that `tampers`
    with the operator's objects, not every operator has to repair them.
    """

    code: str
    mode: str
    places: frozenset[Place]
    words: str
    merges: bool = False
    severity: Severity = Severity.REALISTIC
    tampers: bool = False

    @property
    def name(self) -> str:
        """The name in schedules, such as `F1:after`."""
        return f"{self.code}:{self.mode}"


_ASKED = frozenset((Place.WRITE, Place.OWN, Place.READ, Place.CALL))
_SENT = frozenset((Place.WRITE, Place.OWN, Place.CALL))
_REQUEST = frozenset((Place.WRITE, Place.OWN, Place.READ))
_WRITE = frozenset((Place.WRITE, Place.OWN))
_OTHERS = frozenset((Place.WRITE,))
_CALL = frozenset((Place.CALL,))
_EVENT = frozenset((Place.EVENT,))
_LOG = frozenset((Place.LOG,))
_REST = frozenset((Place.REST,))
_RUN = frozenset((Place.RUN,))

# In the order in which they are tried: cheap and productive first.
FAULTS: tuple[FaultKind, ...] = (
    FaultKind("F1", "after", _SENT, "crash after {site}"),
    FaultKind("F1", "before", _ASKED, "crash before {site}"),
    FaultKind("F10", "applied", _SENT, "{site} is applied, and its reply is lost"),
    FaultKind("F10", "lost", _SENT, "{site} is lost on its way, without a reply"),
    FaultKind(
        "F11", "crash", _WRITE, "crash at {site}, which lands after the next one's work"
    ),
    FaultKind(
        "F11", "late", _WRITE, "{site} times out, and lands when all has come to rest"
    ),
    FaultKind(
        "F11",
        "zombie",
        _WRITE,
        "crash at {site}, which lands after the user's next action",
        merges=True,
    ),
    FaultKind("F9", "forbidden", _REQUEST, "{site} is refused with 403"),
    FaultKind("F9", "invalid", _OTHERS, "{site} is refused with 422"),
    FaultKind("F9", "busy", _REQUEST, "{site} is answered with 429, three times"),
    FaultKind("F9", "failing", _WRITE, "{site} is answered with 500, three times"),
    FaultKind(
        "F8",
        "touched",
        _WRITE,
        "a rival annotates the target before {site}",
        merges=True,
    ),
    FaultKind(
        "F8", "held", _WRITE, "a rival adds a finalizer before {site}", merges=True
    ),
    FaultKind(
        "F8",
        "remade",
        _WRITE,
        "a rival deletes the target and makes another of its name before {site}",
        merges=True,
        tampers=True,
    ),
    FaultKind("F13", "before", _ASKED, "the user goes on before {site}", merges=True),
    FaultKind("F13", "after", _SENT, "the user goes on after {site}", merges=True),
    FaultKind("F13", "event", _EVENT, "the user goes on before {site}", merges=True),
    FaultKind(
        "F3",
        "crash",
        _SENT,
        "crash after {site}, and down while the user goes on",
        merges=True,
    ),
    FaultKind("F2", "rest", _EVENT, "the watch is late from {site} on, until rest"),
    FaultKind(
        "F2",
        "action",
        _EVENT,
        "the watch is late from {site} on, until the user's next action has settled",
        merges=True,
    ),
    FaultKind(
        "F3",
        "gap",
        _EVENT,
        "the watch is late from {site} on, until the user's next action has settled; "
        "then it is answered with 410, and what it had not shown stays unseen",
        merges=True,
    ),
    FaultKind("F6", "break", _EVENT, "the watch breaks before {site}"),
    FaultKind("F6", "gone", _EVENT, "the watch is answered with 410 before {site}"),
    FaultKind("F1", "event", _EVENT, "crash before {site}"),
    FaultKind("F24", "break", _LOG, "the log breaks behind {site}"),
    FaultKind("F24", "cut", _LOG, "the log behind {site} is cut off within a line"),
    FaultKind("F24", "late", _LOG, "{site} are late, until rest"),
    FaultKind("F24", "crash", _LOG, "crash before {site}"),
    FaultKind(
        "F15",
        "failover",
        _SENT,
        "the leader dies after {site}, and the replica that stood by leads",
    ),
    FaultKind(
        "F15",
        "paused",
        _SENT,
        "the leader stands still after {site}, until the replica that stood by works "
        "in its place",
    ),
    FaultKind("F1", "rest", _REST, "crash when all has come to rest after {site}"),
    FaultKind(
        "F3",
        "down",
        _REST,
        "the operator is down from the rest after {site} on, while the user goes on",
        merges=True,
    ),
    FaultKind(
        "F3",
        "down twice",
        _REST,
        "the operator is down from the rest after {site} on, for two actions of the "
        "user",
        merges=True,
    ),
    FaultKind("F7", "again", _REST, "every kind is listed anew after {site}"),
    FaultKind("F16", "webhook", _RUN, "a webhook labels and annotates what is created"),
    FaultKind("F12", "slow", _RUN, "each step takes a second"),
    FaultKind("F12", "ahead", _RUN, "the operator's clock is 30 s ahead"),
    FaultKind("F12", "behind", _RUN, "the operator's clock is 30 s behind"),
    FaultKind("F17", "error", _CALL, "{site} fails, and does nothing"),
    FaultKind("F17", "three errors", _CALL, "{site} fails three times"),
    FaultKind("F14", "stuck", _RUN, "the controller {site} is stuck until the end"),
    FaultKind("F14", "slow", _RUN, "the controller {site} takes 20 s for each turn"),
    FaultKind(
        "F19", "labels", _REST, "a child loses its labels after {site}", tampers=True
    ),
    FaultKind(
        "F19", "owner", _REST, "a child loses its owner after {site}", tampers=True
    ),
    FaultKind(
        "F19", "deleted", _REST, "a child is deleted by hand after {site}", tampers=True
    ),
    FaultKind(
        "F18", "backlog", _RUN, "the operator starts after all of it", merges=True
    ),
    FaultKind(
        "F23",
        "down",
        _REST,
        "the operator's webhooks are not reached after {site}, until the user's next "
        "action has been tried",
    ),
    FaultKind(
        "F23",
        "slow",
        _REST,
        "the operator's webhooks answer too late after {site}, until the user's next "
        "action has been tried",
    ),
    FaultKind(
        "F22", "forbidden", _REQUEST, "{site} and its like are refused ten times"
    ),
    FaultKind(
        "F20",
        "upgrade",
        _REST,
        "the former code runs up to {site}, and is replaced there",
        merges=True,
    ),
    FaultKind(
        "F15",
        "former",
        _RUN,
        "the former code runs beside this one",
        merges=True,
        severity=Severity.SPECIAL,
    ),
    FaultKind(
        "F23",
        "former",
        _RUN,
        "the former code answers every other review of a write",
        merges=True,
        severity=Severity.SPECIAL,
    ),
    FaultKind(
        "F15",
        "two",
        _RUN,
        "a second process of the operator runs beside the first",
        merges=True,
        severity=Severity.SPECIAL,
    ),
    FaultKind(
        "F21",
        "backup",
        _REST,
        "the cluster is restored from a backup made before {site}, which is done again",
        merges=True,
        severity=Severity.SPECIAL,
    ),
)
BY_NAME: Mapping[str, FaultKind] = {each.name: each for each in FAULTS}


class Fault(NamedTuple):
    """One fault at one site; `detail` chooses among several targets at it."""

    kind: FaultKind
    site: Site
    detail: str = ""

    def __str__(self) -> str:
        text = self.kind.words.format(site=self.site)
        return f"{text} ({self.detail})" if self.detail else text


Schedule = tuple[Fault, ...]


def in_words(schedule: Schedule) -> str:
    """A schedule in a sentence.

    >>> site = Site(Place.WRITE, "c", "create", "configmaps/x-a")
    >>> in_words((Fault(BY_NAME["F1:after"], site),))
    'benign, except: crash after `create configmaps/x-a` (1st, handler c)'
    >>> in_words(())
    'benign'
    """
    if not schedule:
        return "benign"
    return f"benign, except: {'; then '.join(map(str, schedule))}"


def schedule_to_json(schedule: Schedule) -> list[dict[str, Any]]:
    """A schedule as plain JSON.

    >>> site = Site(Place.CALL, "c", "call", "create_vpc", 2)
    >>> (found,) = schedule_to_json((Fault(BY_NAME["F17:error"], site),))
    >>> found["fault"], found["site"]["nth"]
    ('F17:error', 2)
    """
    return [
        {
            "fault": each.kind.name,
            "site": {**each.site._asdict(), "place": each.site.place.value},
            **({"detail": each.detail} if each.detail else {}),
        }
        for each in schedule
    ]


def schedule_from_json(found: Iterable[Mapping[str, Any]]) -> Schedule:
    """The schedule of `schedule_to_json`.

    Raises `ValueError` for what is none, in a sentence.
    """
    try:
        return tuple(_fault_from_json(each) for each in found)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"this is no schedule of faults: {problem!r}") from None


def _fault_from_json(found: Mapping[str, Any]) -> Fault:
    name, site = found["fault"], found["site"]
    if name not in BY_NAME:
        raise ValueError(
            f"there is no fault {name!r}; choose from {', '.join(BY_NAME)}"
        )
    place, number = Place(site["place"]), int(site.get("nth", 1))
    handler, verb, target = (str(site[key]) for key in ("handler", "verb", "target"))
    where = Site(place, handler, verb, target, number)
    return Fault(BY_NAME[name], where, str(found.get("detail", "")))
