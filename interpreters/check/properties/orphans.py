"""Orphans: objects that stay when their owner is gone, and the object they serve.

Not everything that a handler makes for an object belongs to that object alone. Others
may use it as well, or it may belong to an object of another kind. Outside of the
cluster, only things that were made for the object must be removed with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fnop.core.values.cause import Reason
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.worlds import digests_of, is_builtin
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.simulation.actions import ActionRefused, Delete, address_of

__all__ = [
    "Sort",
    "is_shared",
    "kind_of",
    "kinds_made_for",
    "left_by_fault",
    "left_outside",
    "uids_in",
]

# The group and the kind, or the plural, of objects.
Sort = tuple[str, str]


def uids_in(cluster: Cluster) -> frozenset[str]:
    """The uids of all objects, of any kind and age."""
    return frozenset(
        each["metadata"]["uid"]
        for shelf in cluster.shelves.values()
        for each in shelf.values()
    )


def is_shared(
    trial: Trial,
    events: Sequence[StoredEvent],
    subject: str,
    child: str,
    living: frozenset[str],
) -> bool:
    """Whether a living object shares a child of a `subject` that is gone.

    The living object's handler has read the child by its name, has written it, or has
    requested it as it is. Or the living object is an owner of another kind than the
    subject's. A child with an owner of the same kind was given to the wrong object.
    """
    users = {
        user for each, user in trial.journal.users if each == child and user != child
    }
    if users & living:
        return True
    found = _last_version(events, child)
    gone = _last_version(events, subject)
    if found is None or gone is None:
        return False
    return any(
        owner["uid"] in living and _sort(owner) != _sort(gone)
        for owner in found["metadata"].get("ownerReferences") or ()
    )


def _last_version(events: Sequence[StoredEvent], uid: str) -> Mapping[str, Any] | None:
    """The last seen version of an object."""
    found = (each.object for each in reversed(events))
    return next((each for each in found if each["metadata"]["uid"] == uid), None)


def _sort(found: Mapping[str, Any]) -> Sort:
    return str(found["apiVersion"]).rpartition("/")[0], str(found["kind"])


# ------------------------------------------------------------------------ outside


def left_outside(trial: Trial) -> list[str]:
    """The external systems that a script's deletions leave unchanged.

    Only deletions count that call a handler, or should: things that are made outside
    for an object of a custom kind belong to it. Nodes and Leases come and go on their
    own. This is judged only if no object of these kinds remains: others may share what
    was made.
    """
    kinds = kinds_made_for(trial)
    script = trial.scene.script
    deletions = [
        number
        for number, each in enumerate(script)
        if isinstance(each, Delete) and kind_of(trial, each) in kinds
    ]
    states = trial.journal.outside
    if not deletions or len(states) <= deletions[-1] + 1:
        return []
    last = deletions[-1] + 1
    if any(trial.journal.rests[last].cluster.shelves.get(each) for each in kinds):
        return []
    if any(states[each] != states[each + 1] for each in deletions):
        return []
    return [each for each in states[last] if states[last][each] != states[0][each]]


def left_by_fault(benign: Trial, trial: Trial) -> list[str]:
    """The external systems where a fault makes a deletion handler leave something.

    Without the fault, everything that a script has made outside is removed at its end,
    as are the objects that it was made for.
    """
    kinds = frozenset(_kinds_with_cleanup(trial))
    shelves = trial.journal.ends[Phase.RESTARTED].cluster.shelves
    before, usual = benign.journal.outside[:1], digests_of(benign.run.calls.models)
    if not kinds or before != [usual] or any(shelves.get(each) for each in kinds):
        return []
    found = digests_of(trial.run.calls.models)
    return [each for each in found if found[each] != usual[each]]


def kinds_made_for(trial: Trial) -> frozenset[Sort]:
    """The kinds whose objects may have things outside that belong only to them."""
    return frozenset((*_kinds_with_cleanup(trial), *_custom_kinds(trial)))


def _kinds_with_cleanup(trial: Trial) -> Iterator[Sort]:
    """The kinds with a handler for their deletions."""
    for kind in trial.run.machine.state.survey.kinds.values():
        if any(each.rule.reasons == (Reason.DELETE,) for each in kind.changes):
            yield kind.resource.group, kind.resource.plural


def _custom_kinds(trial: Trial) -> Iterator[Sort]:
    """The custom kinds with handlers."""
    for kind in trial.run.machine.state.survey.kinds.values():
        if not is_builtin(kind.resource.group):
            yield kind.resource.group, kind.resource.plural


def kind_of(trial: Trial, action: Delete) -> Sort | None:
    """The kind of the object that a user deletes; None for an unknown kind."""
    with suppress(ActionRefused):
        resource, _ = address_of(trial.scene.base, action.where)
        return resource.group, resource.plural
    return None
