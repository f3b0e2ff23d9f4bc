"""Rules for adding and removing the operator's finalizer.

A finalizer holds a deleted object until its deletion handlers are done
(Kubernetes: "Using Finalizers to Control Deletion"). Only the operator's own finalizer,
and that of an operator that it takes over from, is ever added or removed; all others
stay, in their order.

Guarantees: it is never added to an object that is being deleted (the API server
would refuse it), and never removed while a deletion handler is still needed.
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
# taken its owner references away (Kubernetes: garbage collection).
ORPHAN_FINALIZER = "orphan"


class Duty(Enum):
    """The change of the finalizer that is needed before any handler runs."""

    ADD = "add"
    REMOVE = "remove"
    NONE = "none"


#  (needed, present, deleting)
TABLE: dict[tuple[bool, bool, bool], Duty] = {
    (True, False, False): Duty.ADD,
    (True, False, True): Duty.NONE,  # too late: the server takes no new ones
    (True, True, False): Duty.NONE,
    (True, True, True): Duty.NONE,  # the deletion handlers run, then it goes
    (False, True, False): Duty.REMOVE,
    (False, True, True): Duty.REMOVE,
    (False, False, False): Duty.NONE,
    (False, False, True): Duty.NONE,
}


def finalizer_duty(*, needed: bool, present: bool, deleting: bool) -> Duty:
    """The change of the finalizer that these facts need.

    >>> finalizer_duty(needed=True, present=False, deleting=False)
    <Duty.ADD: 'add'>
    """
    return TABLE[needed, present, deleting]


def with_finalizer(finalizers: Iterable[str], own: str, *taken: str) -> list[str]:
    """The list with `own` once, at its end, and without those in `taken`.

    >>> with_finalizer(("a", "old"), "b", "old")
    ['a', 'b']
    """
    return [*without_finalizer(finalizers, own, *taken), own]


def without_finalizer(finalizers: Iterable[str], *own: str) -> list[str]:
    """The list without any of `own`; the others keep their order."""
    return [each for each in finalizers if each not in own]
