"""The properties by which fnop judges each trial.

Each is a function of the benign run and of a trial, and returns the violations that it
finds; the benign run is judged as well. They never look at the operator's code.
Properties that need no input from an author are always on.
"""

from __future__ import annotations

from collections.abc import Collection

from fnop.interpreters.check.properties.admission import (
    accepted,
    admits_itself,
    deletable,
    idempotent,
    steady,
    traceless,
    updatable,
)
from fnop.interpreters.check.properties.ends import history, same_end
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Judge,
    Seen,
    Violation,
    has_struck,
)
from fnop.interpreters.check.properties.expected import matches
from fnop.interpreters.check.properties.handlers import heeds, idle, pure, serves, total
from fnop.interpreters.check.properties.lives import (
    creates_once,
    deletes,
    keeps_data,
    no_orphans,
)
from fnop.interpreters.check.properties.neighbours import apart, refers
from fnop.interpreters.check.properties.rest import (
    bounded_work,
    no_more_writes,
    quiet,
    settles,
)
from fnop.interpreters.check.properties.secrets import keeps_secrets
from fnop.interpreters.check.properties.writes import (
    honest_status,
    no_clobber,
    no_refused_writes,
    right_object,
)
from fnop.interpreters.check.state.kinds import Trait

__all__ = ["OF_ADMISSION", "PROPERTIES", "judged"]

PROPERTIES: dict[str, Judge] = {
    "matches": matches,
    "total": total,  # an error is often why it does not settle
    "settles": settles,
    "keeps_data": keeps_data,
    "creates_once": creates_once,
    "no_clobber": no_clobber,
    "right_object": right_object,
    "deletes": deletes,
    "no_orphans": no_orphans,
    "honest_status": honest_status,
    "same_end": same_end,
    "history": history,
    "no_more_writes": no_more_writes,
    "no_refused_writes": no_refused_writes,
    "bounded_work": bounded_work,
    "quiet": quiet,
    "pure": pure,
    "idle": idle,
    "heeds": heeds,
    "serves": serves,
    "apart": apart,
    "refers": refers,
    "keeps_secrets": keeps_secrets,
    "deletable": deletable,
    "updatable": updatable,
    "admits_itself": admits_itself,
    "idempotent": idempotent,
    "accepted": accepted,
    "traceless": traceless,
    "steady": steady,
}
# Properties of operators with admission handlers; others have nothing to judge.
OF_ADMISSION = frozenset(
    (
        *("deletable", "updatable", "admits_itself", "idempotent", "accepted"),
        *("traceless", "steady"),
    )
)


# The properties that only look at the end, and not at earlier states.
_OF_THE_END = frozenset(
    ("matches", "settles", "total", "deletes", "same_end", "no_more_writes")
)

# A user who makes a mistake has to expect these violations, until it is corrected.
_OF_MISTAKES = frozenset(("total", "no_refused_writes", "serves"))


def judged(
    benign: Benign, seen: Seen, only: Collection[str] | None = None
) -> list[Violation]:
    """The violations of all properties, or of some."""
    names = set(PROPERTIES if only is None else only)
    if has_struck(seen.trial, Trait.REWINDS):
        names &= _OF_THE_END  # versions count again from the backup on
    if benign.mistake:
        names -= _OF_MISTAKES
    return [
        found
        for name, judge in PROPERTIES.items()
        if name in names
        for found in judge(benign, seen)
    ]
