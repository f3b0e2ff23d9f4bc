"""The cluster as it was, if a recording's account has each of its changes.

The operator may have been shown an older state: a watch may be late, and a reply may be
lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fnop.core.values.body import Body
from fnop.interpreters.recording.model.account import Account, Change
from fnop.interpreters.recording.model.history import History, Question, Step
from fnop.interpreters.recording.model.records import Gap
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.world import Foreign, restorable

__all__ = ["Truth"]

Objects = dict[Place, dict[str, Any]]

# The authors whose changes the new run must repeat. The operator makes its own changes
# again, and so do the cluster's own controllers, which a simulated cluster has, too.
_OTHERS = frozenset(("user", "rival"))


@dataclass
class Truth(Question):
    """The cluster of a recording that has an account.

    The account has neither the times of changes nor managed fields. These come from the
    steps, and from the versions that were shown.
    """

    account: Account
    history: History = field(default_factory=History)
    _walls: list[float] = field(default_factory=list)
    # The managed fields in the versions that were shown, by uid.
    _managed: dict[str, dict[int, Any]] = field(default_factory=dict)

    def miss(self, gap: Gap) -> None:
        """Take note of missing steps."""
        self._walls += [self.history.wall] * gap.steps

    def see(self, step: Step) -> None:
        """Take one step in."""
        self._walls.append(step.wall)
        for body in step.shown:
            if body.version.isdecimal():
                fields = body.meta.get("managedFields")
                self._managed.setdefault(body.uid, {})[int(body.version)] = fields

    def objects(self, step: int | None = None) -> Objects:
        """The objects at a step, by default at the end, as `restorable` has them."""
        found: Objects = {}
        dead: set[str] = set()
        for change in self._changes_until(step):
            place = Place.of(change.body)
            if change.type == "DELETED":
                found.pop(place, None)
                dead.add(change.uid)
            else:
                found[place] = self._complete_object(change)
        return restorable(found, dead)

    def changes_of_others(self, step: int, until: int | None = None) -> list[Foreign]:
        """The changes by other clients after a step, up to another one."""
        known: Objects = {}
        found = []
        for change in self._changes_until(until):
            place = Place.of(change.body)
            before = known.pop(place, None)
            if change.type == "DELETED":
                after = _object_after_deletion(before)
            else:
                after = known[place] = self._complete_object(change)
            if change.since > step and change.by in _OTHERS:
                wall = self._time_of_change(change)
                found.append(Foreign(change.since, wall, place, before, after))
        return found

    def _changes_until(self, step: int | None) -> list[Change]:
        changes = self.account.changes
        return [each for each in changes if step is None or each.since <= step]

    def _complete_object(self, change: Change) -> dict[str, Any]:
        """The object with its version, and with the managed fields known for it."""
        metadata = dict(change.body.get("metadata") or {})
        metadata["resourceVersion"] = str(change.version)
        shown = self._managed.get(change.uid, {})
        earlier = [each for each in shown if each <= change.version]
        if earlier and shown[max(earlier)] is not None:
            metadata["managedFields"] = shown[max(earlier)]
        return {**change.body, "metadata": metadata}

    def _time_of_change(self, change: Change) -> float:
        """The time of a change: not before the last step, or action, before it."""
        steps = self._walls[: max(0, change.since - 1)][-1:]
        marks = (e.wall for e in self.account.marks if e.version < change.version)
        return max((*steps, *marks), default=0.0)


def _object_after_deletion(before: dict[str, Any] | None) -> dict[str, Any] | None:
    """The object after its deletion, or None if it is gone.

    A client that removes the last finalizers ends an object that is being deleted
    already.

    >>> meta = {"name": "x", "deletionTimestamp": "now"}
    >>> _object_after_deletion({"metadata": {**meta, "finalizers": ["a/b"]}})
    {'metadata': {'name': 'x', 'deletionTimestamp': 'now'}}
    >>> _object_after_deletion({"metadata": {"name": "x"}})
    """
    body = None if before is None else Body(before)
    if before is None or body is None or not (body.is_deleting and body.finalizers):
        return None
    kept = {k: v for k, v in before["metadata"].items() if k != "finalizers"}
    return {**before, "metadata": kept}
