"""Rules for adding and removing the operator's finalizer.

A finalizer holds a deleted object until its deletion handlers are done (Kubernetes:
"Using Finalizers to Control Deletion"). fnop only ever adds or removes the operator's
own finalizer, and the finalizer of an operator that it takes over from. All others
stay, in their order.

Guarantees: fnop never adds it to an object that is being deleted (the API server would
refuse it). It never removes it while a deletion handler is still needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

__all__ = [
    "ORPHAN_FINALIZER",
    "TABLE",
    "Duty",
    "finalizer_duty",
    "with_finalizer",
    "without_finalizer",
]


# On an object that is deleted with `--cascade=orphan`, until the garbage collector has
# removed its owner references (Kubernetes: garbage collection).
ORPHAN_FINALIZER = "orphan"


class Duty(Enum):
    """The change of the finalizer that is needed before any handler runs."""

    ADD = "add"
    REMOVE = "remove"
    NONE = "none"


#  (needed, present, deleting)
TABLE: dict[tuple[bool, bool, bool], Duty] = {
    (True, False, False): Duty.ADD,
    (True, False, True): Duty.NONE,  # too late: the server accepts no new ones
    (True, True, False): Duty.NONE,
    (True, True, True): Duty.NONE,  # after the deletion handlers it is removed
    (False, True, False): Duty.REMOVE,
    (False, True, True): Duty.REMOVE,
    (False, False, False): Duty.NONE,
    (False, False, True): Duty.NONE,
}


def finalizer_duty(*, needed: bool, present: bool, deleting: bool) -> Duty:
    """The change of the finalizer that these facts require.

    >>> finalizer_duty(needed=True, present=False, deleting=False)
    <Duty.ADD: 'add'>
    """
    return TABLE[needed, present, deleting]


def with_finalizer(finalizers: Iterable[str], own: str, *taken: str) -> list[str]:
    """The list with `own` once, at its end, and without the names in `taken`.

    >>> with_finalizer(("a", "old"), "b", "old")
    ['a', 'b']
    """
    return [*without_finalizer(finalizers, own, *taken), own]


def without_finalizer(finalizers: Iterable[str], *own: str) -> list[str]:
    """The list without any of `own`; the others keep their order."""
    return [each for each in finalizers if each not in own]
