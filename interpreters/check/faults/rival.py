"""F8: a rival changes or replaces the target of a request."""

from __future__ import annotations

from typing import Any

from fnop.core.seam.commands import Perform
from fnop.effects import Outcome
from fnop.interpreters.check.state.behaviour import (
    Ahead,
    Behaviour,
    Performed,
    as_rival,
)
from fnop.interpreters.check.state.kinds import (
    RIVAL,
    WRITE,
    Fault,
    FaultKind,
    Place,
    Site,
    Trait,
)
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = ["BEHAVIOUR", "let_go"]


class Rival(Behaviour):
    """Another client writes the target before the operator does.

    Its annotations and finalizers are its own, and it takes them back at the end.
    """

    kinds = (
        FaultKind(
            "F8",
            "touched",
            WRITE,
            "a rival annotates the target before {site}",
            120,
            Trait.MERGES | Trait.RIVALS,
        ),
        FaultKind(
            "F8",
            "held",
            WRITE,
            "a rival adds a finalizer before {site}",
            130,
            Trait.MERGES | Trait.RIVALS,
        ),
        FaultKind(
            "F8",
            "remade",
            WRITE,
            "a rival deletes the target and makes another of its name before {site}",
            140,
            Trait.MERGES | Trait.TAMPERS | Trait.DELETES | Trait.RIVALS,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the request names an object that exists already.

        Only deletions, and patches of other objects, may mean the former object: others
        mean any object of the name, and the operator patches its own as it is by then.
        """
        verb = visit.site.verb
        if kind.mode != "remade":
            return verb not in ("create", "adopt")
        own = visit.site.place is Place.OWN
        return verb in (("delete",) if own else ("patch", "delete"))

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """Let the rival write, and then the operator."""
        if fault.kind.mode == "remade":
            _recreate_target(state, command)
        else:
            _touch(state, command, held=fault.kind.mode == "held")
        return performed()

    def heal(self, state: TrialState) -> None:
        """Let rivals take back their marks."""
        let_go(state)


def let_go(state: TrialState) -> bool:
    """Let rivals take back their marks on objects; whether there were any."""
    version = state.run.cluster.version
    for resource, shelf in sorted(state.run.cluster.shelves.items()):
        if state.scene.base.cluster.shelves.get(resource) is shelf:
            continue
        for _, found in sorted(shelf.items()):
            _undo_rival_change(state, found)
    return state.run.cluster.version != version


def _target(state: TrialState, command: Perform) -> dict[str, Any] | None:
    """The object that a request is about, if it is there."""
    resource, name = command.resource, command.name
    if resource is None or name is None:
        return None
    shelf = state.run.cluster.shelves.get((resource.group, resource.plural))
    return shelf.get((command.namespace or "", name)) if shelf else None


def _recreate_target(state: TrialState, command: Perform) -> None:
    """Let a rival delete the target and make another one like it, which is its own.

    An object with a finalizer is not deleted at once, and stays.
    """
    found = _target(state, command)
    if found is None or found["metadata"].get("finalizers"):
        return
    meta = found["metadata"]
    path = object_path(state.run, found, meta.get("namespace", ""))
    if path is None:
        return
    now = {"gracePeriodSeconds": 0}
    state.request("rival", ApiRequest("DELETE", path, body=now))
    kept = {key: meta[key] for key in ("name", "namespace", "labels") if key in meta}
    rest = {key: each for key, each in found.items() if key != "status"}
    body = {**rest, "metadata": kept}
    state.run.request(ApiRequest("POST", path.rpartition("/")[0], body=body))


def _touch(state: TrialState, command: Perform, *, held: bool) -> None:
    """Let a rival mark the target, if it is there."""
    found = _target(state, command)
    if found is None:
        return
    meta = found["metadata"]
    if held:
        if "deletionTimestamp" in meta:
            return  # Kubernetes: no finalizer can be added then
        change: dict[str, Any] = {"finalizers": [*meta.get("finalizers", ()), RIVAL]}
    else:
        change = {"annotations": {RIVAL: "touched"}}
    as_rival(state, found, change)


def _undo_rival_change(state: TrialState, found: dict[str, Any]) -> None:
    meta = found["metadata"]
    change: dict[str, Any] = {}
    if (meta.get("annotations") or {}).get(RIVAL) == "touched":
        change["annotations"] = {RIVAL: None}
    finalizers = meta.get("finalizers") or []
    if RIVAL in finalizers:
        change["finalizers"] = [each for each in finalizers if each != RIVAL] or None
    if change:
        as_rival(state, found, change)


BEHAVIOUR = Rival()
