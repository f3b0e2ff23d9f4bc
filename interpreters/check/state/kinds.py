"""Faults, the sites at which they strike, and schedules of them.

The event at a site names it. It is a handler's request for an effect on an object, with
a count. Or it is the arrival of an object's event, or a user's action that has settled.
A number in a run would change its meaning with the next change of the operator's code.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import NamedTuple

from msgspec import Struct

__all__ = [
    "ASKED",
    "CALL",
    "CLIENT",
    "EVENT",
    "LOG",
    "OTHERS",
    "REQUEST",
    "REST",
    "RIVAL",
    "RUN",
    "SENT",
    "WRITE",
    "Fault",
    "FaultKind",
    "Place",
    "Schedule",
    "Site",
    "Trait",
    "in_words",
]

# The mark that rivals and webhooks set on objects: a label, an annotation, a finalizer.
RIVAL = "rival.example.com/mark"


class Place(Enum):
    """The kinds of sites."""

    WRITE = "write"  # an effect that changes another object
    OWN = "own"  # a write of the handled object: by effects, or by the operator itself
    READ = "read"  # an effect that reads
    CALL = "call"  # a call outside of the API server
    CLIENT = "client"  # a request that a client of the author's sends during a call
    EVENT = "event"  # a watch event on its way
    LOG = "log"  # lines of a log on their way
    REST = "rest"  # an action of the user, after which everything has settled
    RUN = "run"  # the run as a whole


class Site(NamedTuple):
    """A place in a run: `nth` counts equal ones, from 1.

    `handler` is "" for the operator's own writes. `verb` is the effect, or the event's
    type. `target` is kind/name, the called function, or the number of a user's action.
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
            case Place.CLIENT:
                who = f"a client of {self.handler}"
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
    """A number as an ordinal.

    >>> _ordinal(1), _ordinal(2), _ordinal(11), _ordinal(23)
    ('1st', '2nd', '11th', '23rd')
    """
    ends = {1: "st", 2: "nd", 3: "rd"}
    end = "th" if number % 100 in (11, 12, 13) else ends.get(number % 10, "th")
    return f"{number}{end}"


class Trait(Flag):
    """Properties of a fault that decide what may be expected after it."""

    NONE = 0
    # The operator may legitimately see fewer changes than the user has made. State
    # about the past, which it keeps in the object's status, may then differ.
    MERGES = auto()
    # It changes the operator's own objects: not every operator has to repair them.
    TAMPERS = auto()
    # It happens only with several API servers, or with a restored backup.
    SPECIAL = auto()
    # The process of the operator ends there, before the request or after it.
    CRASHES_BEFORE = auto()
    CRASHES_AFTER = auto()
    # Only the process ends, and another begins at once: no time passes, no log breaks.
    ONLY_CRASHES = auto()
    # A request lands after its sender has given up, or is gone.
    LANDS_LATE = auto()
    # A right is missing for a while.
    DENIES = auto()
    # Objects are deleted that the operator or the user has created.
    DELETES = auto()
    # The cluster goes back to an earlier state.
    REWINDS = auto()
    # A child loses its owner reference.
    DISOWNS = auto()
    # A controller of the cluster does nothing until the faults end.
    STOPS_CONTROLLER = auto()
    # The operator starts when the whole script is over.
    STARTS_LATE = auto()
    # It makes a difference from the beginning of the script on.
    FROM_THE_START = auto()
    # The former code runs first, and is replaced.
    UPGRADES = auto()
    # Another client interferes.
    RIVALS = auto()
    # It answers several equal requests.
    REPEATS = auto()


class FaultKind(Struct, frozen=True):
    """A kind of fault: a row of a file in `fnop.interpreters.check.faults`.

    `code` is its number in docs/reference/faults.md, `mode` distinguishes it from
    others of that number, and `words` describes it with `{site}`. Kinds are tried in
    the order of their `rank`: cheap and productive ones first. After this fault the
    faults of `likely_next` are likely, by name and place.
    """

    code: str
    mode: str
    places: frozenset[Place]
    words: str
    rank: int
    traits: Trait = Trait.NONE
    likely_next: tuple[tuple[str, Place], ...] = ()

    @property
    def name(self) -> str:
        """The name in schedules, such as `F1:after`."""
        return f"{self.code}:{self.mode}"

    def has(self, traits: Trait) -> bool:
        """Whether it has at least one of these traits."""
        return bool(self.traits & traits)


# Sites at which several kinds of faults strike.
ASKED = frozenset((Place.WRITE, Place.OWN, Place.READ, Place.CALL))
SENT = frozenset((Place.WRITE, Place.OWN, Place.CALL))
REQUEST = frozenset((Place.WRITE, Place.OWN, Place.READ))
WRITE = frozenset((Place.WRITE, Place.OWN))
OTHERS = frozenset((Place.WRITE,))
CALL = frozenset((Place.CALL,))
CLIENT = frozenset((Place.CLIENT,))
EVENT = frozenset((Place.EVENT,))
LOG = frozenset((Place.LOG,))
REST = frozenset((Place.REST,))
RUN = frozenset((Place.RUN,))


class Fault(Struct, frozen=True):
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
    >>> after = FaultKind("F1", "after", SENT, "crash after {site}", 1)
    >>> in_words((Fault(after, site),))
    'benign, except: crash after `create configmaps/x-a` (1st, handler c)'
    >>> in_words(())
    'benign'
    """
    if not schedule:
        return "benign"
    return f"benign, except: {'; then '.join(map(str, schedule))}"
