"""F19: another client tampers with a child."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour, as_rival
from fnop.interpreters.check.state.kinds import REST, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.sites import object_path, target_of
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = ["BEHAVIOUR"]


class Tampering(Behaviour):
    """A child loses its labels or its owner references, or is deleted."""

    kinds = (
        FaultKind(
            *("F19", "labels", REST, "a child loses its labels after {site}", 430),
            Trait.TAMPERS,
        ),
        FaultKind(
            *("F19", "owner", REST, "a child loses its owner after {site}", 440),
            Trait.TAMPERS | Trait.DISOWNS,
        ),
        FaultKind(
            *("F19", "deleted", REST, "a child is deleted by hand after {site}", 450),
            Trait.TAMPERS,
        ),
    )

    def faults(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> Iterator[Fault]:
        """A fault for each child that has what it would lose."""
        state = ahead.forked(visit)
        for found in () if state is None else _children(state):
            meta = found["metadata"]
            if kind.mode == "labels" and not meta.get("labels"):
                continue
            if kind.mode == "owner" and not meta.get("ownerReferences"):
                continue
            assert state is not None
            yield Fault(kind, visit.site, _name(state, found))

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Tamper with the child that the fault names."""
        for found in _children(state):
            if _name(state, found) == fault.detail:
                _tamper(state, fault.kind, found)
                break
        return True


def _children(state: TrialState) -> list[dict[str, Any]]:
    """The objects that the operator has created, as they are now."""
    writes = state.journal.writes
    uids = {each.body["metadata"]["uid"] for each in writes if _is_creation(each)}
    return [
        found
        for resource, shelf in sorted(state.run.cluster.shelves.items())
        if resource[1] != "events"
        for _, found in sorted(shelf.items())
        if found["metadata"]["uid"] in uids
    ]


def _is_creation(write: Any) -> bool:
    body = write.body
    return (
        write.site.verb in ("create", "adopt", "apply")
        and isinstance(body, dict)
        and "uid" in (body.get("metadata") or {})
    )


def _name(state: TrialState, found: dict[str, Any]) -> str:
    """The name of a child in the details of a fault."""
    return target_of(found["kind"].lower(), found, state.drawn)


def _tamper(state: TrialState, kind: FaultKind, found: dict[str, Any]) -> None:
    meta = found["metadata"]
    match kind.mode:
        case "labels":
            gone = {each: None for each in meta.get("labels") or ()}
            as_rival(state, found, {"labels": gone})
        case "owner":
            as_rival(state, found, {"ownerReferences": None})
        case _:
            path = object_path(state.run, found, meta.get("namespace", ""))
            if path is not None:
                state.request("rival", ApiRequest("DELETE", path))


BEHAVIOUR = Tampering()
