"""The effect of each fault on a trial, and its end.

Every strike is legal: whatever the operator sees, an API server could have shown it.
A conflict is explained by a real write of a rival, a reply is lost only of a request
that was sent, a watch skips nothing unless it is answered with 410, and no stream goes
back in time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fnop.core.seam.commands import Perform
from fnop.core.values.errors import text_of
from fnop.effects import Call, Outcome, Raised, Refused, Unknown, Unreachable
from fnop.interpreters.check.trials.faults import RIVAL, Fault, Site
from fnop.interpreters.check.trials.records import Hold
from fnop.interpreters.check.trials.replicas import Absence
from fnop.interpreters.check.trials.sites import object_path, target_of
from fnop.interpreters.cluster import On, Slow, Stuck
from fnop.interpreters.runtime.calls import called
from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH, ApiRequest
from fnop.interpreters.runtime.requests import request_for
from fnop.interpreters.simulation.actions import SetPace, act
from fnop.interpreters.simulation.admission import has_admission
from fnop.interpreters.simulation.simulation import Crashed

if TYPE_CHECKING:
    from fnop.interpreters.check.trials.trial import Trial

__all__ = [
    "admitted",
    "at_event",
    "at_request",
    "at_rest",
    "from_the_start",
    "heal",
    "released_at_rest",
    "rivals_let_go",
]

# The number of equal requests that a burst of errors answers.
BURST = 3
# The number of requests that are refused while a right is missing.
FORBIDDEN = 10
_SKEW = 30.0
_SLOW = 20.0

Performed = Callable[[], Outcome]


# ------------------------------------------------------------------ requests


def at_request(
    trial: Trial, command: Perform, site: Site, performed: Performed
) -> Outcome:
    """The outcome of a request or a call, struck or not. Raises `Crashed`."""
    like = (site.handler, site.verb, site.target)
    if trial.forbidden.get(like[1:], 0) > 0:
        trial.forbidden[like[1:]] -= 1
        return _forbidden(site)
    if like in trial.bursts:
        fault, left = trial.bursts.pop(like)
        if left > 1:
            trial.bursts[like] = fault, left - 1
        return _answered(trial, fault, command, site, performed)
    fault_ = trial.due(site)
    if fault_ is None:
        return performed()
    if fault_.kind.name in _BURSTS:
        trial.bursts[like] = fault_, BURST - 1
    return _answered(trial, fault_, command, site, performed)


_BURSTS = frozenset(("F9:busy", "F9:failing", "F17:three errors"))


def _answered(
    trial: Trial, fault: Fault, command: Perform, site: Site, performed: Performed
) -> Outcome:
    match fault.kind.code, fault.kind.mode:
        case "F1" | "F3" | "F15", mode:
            return _stops(trial, mode, performed)
        case "F8", "remade":
            _remake(trial, command)
            return performed()
        case "F8", mode:
            _touch(trial, command, held=mode == "held")
            return performed()
        case "F13", "before":
            trial.goes_on()
            return performed()
        case "F13", _:
            outcome = performed()
            trial.goes_on()
            return outcome
        case "F10", "applied":
            performed()
            return _unanswered(command)
        case "F10", _:
            return _unanswered(command)
        case "F11", mode:
            return _lands_late(trial, command, mode)
        case "F17", _:
            return _fails(command, ConnectionError("connection refused"))
        case _:
            return _refused(trial, fault, site)


def _stops(trial: Trial, mode: str, performed: Performed) -> Outcome:
    """Let the operator stop at a request: for good, or until another process works."""
    if mode == "before":
        raise Crashed
    outcome = performed()
    if mode == "paused":
        trial.yields(Absence.ASLEEP)
        return outcome
    if mode == "failover":
        trial.yields(Absence.DEAD)
    elif mode == "crash":
        trial.down = 1
    raise Crashed


def _lands_late(trial: Trial, command: Perform, mode: str) -> Outcome:
    """Keep a request on its way; whether its sender still lives depends on the mode."""
    until = "action" if mode == "zombie" else "rest"
    manager = trial.run.machine.settings.marker
    trial.late.append((request_for(command, manager), until, trial.place))
    if mode == "late":
        return _unanswered(command)
    raise Crashed


def _refused(trial: Trial, fault: Fault, site: Site) -> Outcome:
    match fault.kind.name:
        case "F9:forbidden":
            return _forbidden(site)
        case "F22:forbidden":
            trial.forbidden[site.verb, site.target] = FORBIDDEN - 1
            return _forbidden(site)
        case "F9:invalid":
            return Refused(422, f"{site.target} is invalid, says a webhook", "Invalid")
        case "F9:busy":
            return Unreachable("too many requests", 1.0)
        case "F9:failing":
            return Unknown("etcdserver: request timed out")
        case name:
            raise AssertionError(f"{name} does not strike requests")


def _forbidden(site: Site) -> Refused:
    return Refused(403, f"{site.verb} of {site.target} is forbidden", "Forbidden")


def _unanswered(command: Perform) -> Outcome:
    if isinstance(command.effect, Call):
        return _fails(command, TimeoutError("no answer"))
    return Unknown("no answer")


def _fails(command: Perform, problem: Exception) -> Outcome:
    call = command.effect
    assert isinstance(call, Call)
    if not call.as_handler:
        return Raised(type(problem).__name__, text_of(problem), exception=problem)

    def fail(**arguments: Any) -> None:
        raise problem

    return called(fail, call)


def _target(trial: Trial, command: Perform) -> dict[str, Any] | None:
    """The object that a request is about, if it is there."""
    resource, name = command.resource, command.name
    if resource is None or name is None:
        return None
    shelf = trial.run.cluster.shelves.get((resource.group, resource.plural))
    return shelf.get((command.namespace or "", name)) if shelf else None


def _remake(trial: Trial, command: Perform) -> None:
    """Let a rival delete the target and make another one like it, which is its own.

    One that somebody holds by a finalizer is not deleted at once, and stays.
    """
    found = _target(trial, command)
    if found is None or found["metadata"].get("finalizers"):
        return
    meta = found["metadata"]
    path = object_path(trial.run, found, meta.get("namespace", ""))
    if path is None:
        return
    now = {"gracePeriodSeconds": 0}
    trial.begins("rival")
    trial.run.request(ApiRequest("DELETE", path, body=now))
    kept = {key: meta[key] for key in ("name", "namespace", "labels") if key in meta}
    rest = {key: each for key, each in found.items() if key != "status"}
    trial.run.request(
        ApiRequest("POST", path.rpartition("/")[0], body={**rest, "metadata": kept})
    )


def _touch(trial: Trial, command: Perform, *, held: bool) -> None:
    """Let a rival change the target, if it is there: what it changes is its own."""
    found = _target(trial, command)
    if found is None:
        return
    meta = found["metadata"]
    if held:
        if "deletionTimestamp" in meta:
            return  # no finalizer can be added any more
        change: dict[str, Any] = {"finalizers": [*meta.get("finalizers", ()), RIVAL]}
    else:
        change = {"annotations": {RIVAL: "touched"}}
    _as_rival(trial, found, change)


def _as_rival(trial: Trial, found: dict[str, Any], change: dict[str, Any]) -> None:
    path = object_path(trial.run, found, found["metadata"].get("namespace", ""))
    if path is not None:
        trial.begins("rival")
        query = (("fieldManager", "rival"),)
        body = {"metadata": change}
        trial.run.request(ApiRequest("PATCH", path, query, body, MERGE_PATCH))


def admitted(request: ApiRequest) -> ApiRequest:
    """The request as a webhook changes it: what is created gets a label more."""
    if request.method != "POST" and request.content_type != APPLY_PATCH:
        return request
    body = request.body
    if not isinstance(body, dict) or body.get("kind") in ("Event", "DeleteOptions"):
        return request
    meta = {**(body.get("metadata") or {})}
    for stanza in ("labels", "annotations"):
        meta[stanza] = {**(meta.get(stanza) or {}), RIVAL: "webhook"}
    return replace(request, body={**body, "metadata": meta})


# -------------------------------------------------------------------- events


def at_event(trial: Trial, fault: Fault, source: str) -> None:
    """Strike a watch event that is about to arrive."""

    match fault.kind.name:
        case "F2:rest" | "F2:action" | "F3:gap":
            trial.holds[source] = Hold(fault.kind.mode, trial.place)
        case "F6:break":
            trial.run.breaks(source)
        case "F6:gone":
            trial.run.breaks(source, 410)
        case "F13:event":
            trial.goes_on()
        case "F1:event":
            trial.run.crash()
        case name:
            raise AssertionError(f"{name} does not strike events")


def at_lines(trial: Trial, fault: Fault, source: str) -> None:
    """Strike lines of a log that are about to arrive."""
    match fault.kind.name:
        case "F24:break":
            trial.run.logs.breaks(trial.run.clock.now(), source)
        case "F24:cut":
            trial.run.logs.cut(source)
        case "F24:late":
            trial.holds[source] = Hold("rest", trial.place)
        case "F24:crash":
            trial.run.crash()
        case name:
            raise AssertionError(f"{name} does not strike logs")


def released_at_rest(trial: Trial) -> bool:
    """End what lasts until rest, or until an action has settled; whether it did."""
    ended = False
    is_last = trial.place >= len(trial.scene.script)
    if trial.outage is not None and (is_last or trial.place > trial.outage.since):
        trial.outage = None
        ended = True
    for source, hold in tuple(trial.holds.items()):
        if hold.until == "rest" or trial.place > hold.since or is_last:
            del trial.holds[source]
            if hold.until == "gap":
                trial.run.breaks(source, 410)
            ended = True
    for each in tuple(trial.late):
        request, until, since = each
        if until == "rest" or trial.place > since or is_last:
            trial.late.remove(each)
            _land(trial, request)
            ended = True
    if any(trial.forbidden.values()):
        trial.forbidden.clear()
        ended = True
    return ended


def _land(trial: Trial, request: ApiRequest) -> None:
    """Let a request of a former process arrive."""
    version = trial.run.cluster.version
    trial.begins("late")
    body = trial.run.request(request).body
    meta = body.get("metadata") if isinstance(body, dict) else None
    if trial.run.cluster.version != version and isinstance(meta, dict):
        trial.stray.add(str(meta.get("uid")))


# ------------------------------------------------------------------- at rest


def at_rest(trial: Trial, fault: Fault) -> bool:
    """Strike where all has come to rest after an action; whether to rest again."""
    match fault.kind.name:
        case "F1:rest":
            trial.run.crash()
        case "F3:down" | "F3:down twice":
            trial.run.crash()
            trial.down = 2 if fault.kind.mode == "down twice" else 1
            return False
        case "F7:again":
            for source in sorted({*trial.run.watched_kinds}):
                trial.run.breaks(source, 410)
        case "F20:upgrade":
            trial.run.crash(trial.scene.program)
        case "F21:backup":
            _restore(trial)
        case "F23:down" | "F23:slow":
            trial.outage = Hold(fault.kind.mode, trial.place)
            return False
        case "F19:labels" | "F19:owner" | "F19:deleted":
            _tamper(trial, fault)
        case name:
            raise AssertionError(f"{name} does not strike at rest")
    return True


def _restore(trial: Trial) -> None:
    """Let the cluster be what it was before the last action, which is done again."""
    backup = trial.backup
    trial.run.cluster = backup
    trial.writes = [each for each in trial.writes if each.after <= backup.version]
    for source in sorted(trial.run.watched_kinds):
        trial.run.breaks(source, reason="unreachable")
    trial.run.logs.breaks(trial.run.clock.now())
    trial.place -= 1
    trial.rested = trial.place


def children(trial: Trial) -> list[dict[str, Any]]:
    """The objects that the operator has created, as they are now."""
    uids = {each.body["metadata"]["uid"] for each in trial.writes if _created(each)}
    return [
        found
        for resource, shelf in sorted(trial.run.cluster.shelves.items())
        if resource[1] != "events"
        for _, found in sorted(shelf.items())
        if found["metadata"]["uid"] in uids
    ]


def _created(write: Any) -> bool:
    body = write.body
    return (
        write.site.verb in ("create", "adopt", "apply")
        and isinstance(body, dict)
        and "uid" in (body.get("metadata") or {})
    )


def child_name(trial: Trial, found: dict[str, Any]) -> str:
    """The name of a child in the details of a fault."""
    return target_of(found["kind"].lower(), found, trial.drawn)


def _tamper(trial: Trial, fault: Fault) -> None:
    for found in children(trial):
        if child_name(trial, found) != fault.detail:
            continue
        meta = found["metadata"]
        match fault.kind.mode:
            case "labels":
                gone = {each: None for each in meta.get("labels") or ()}
                _as_rival(trial, found, {"labels": gone})
            case "owner":
                _as_rival(trial, found, {"ownerReferences": None})
            case _:
                path = object_path(trial.run, found, meta.get("namespace", ""))
                if path is not None:
                    trial.begins("rival")
                    trial.run.request(ApiRequest("DELETE", path))
        return


# ------------------------------------------------------------------- the run


def from_the_start(trial: Trial, fault: Fault) -> None:
    """Begin what lasts for the whole script."""
    controller = fault.site.target
    match fault.kind.name:
        case "F12:slow":
            trial.slow = True
        case "F12:ahead":
            trial.run.skew = _SKEW
        case "F12:behind":
            trial.run.skew = -_SKEW
        case "F14:stuck":
            trial.paces.add(controller)
            act(trial.run, SetPace(controller, Stuck()))
        case "F14:slow":
            trial.paces.add(controller)
            act(trial.run, SetPace(controller, Slow(_SLOW)))
        case "F16:webhook":
            trial.hooked = True
        case "F18:backlog":
            trial.backlog = True
            # Its webhooks are not registered yet.
            trial.is_unreviewed = has_admission(trial.scene.program)
        case "F23:former":
            trial.is_shared = trial.is_unreviewed = True
        case "F15:two" | "F15:former":
            trial.begin_second(
                trial.scene.program
                if fault.kind.mode == "two"
                else trial.scene.former or trial.scene.program
            )
        case name:
            raise AssertionError(f"{name} does not last for a run")


def heal(trial: Trial) -> None:
    """End all faults: what was held arrives, rivals take back what was theirs."""
    trial.is_healed = True
    trial.left.clear()
    trial.bursts.clear()
    trial.forbidden.clear()
    trial.slow = trial.backlog = False
    trial.down = 0
    trial.outage, trial.is_shared = None, False
    if trial.second is not None:
        trial.run.drawn += trial.second.drawn
    trial.second = None
    trial.absence = Absence.NONE
    trial.holds.clear()
    for controller in sorted(trial.paces):
        act(trial.run, SetPace(controller, On()))
    for request, _, _ in trial.late:
        _land(trial, request)
    trial.late.clear()
    rivals_let_go(trial)


def rivals_let_go(trial: Trial) -> bool:
    """Let rivals take back what they have put on objects; whether there was any."""
    version = trial.run.cluster.version
    for resource, shelf in sorted(trial.run.cluster.shelves.items()):
        if trial.scene.base.cluster.shelves.get(resource) is shelf:
            continue
        for _, found in sorted(shelf.items()):
            _take_back(trial, found)
    return trial.run.cluster.version != version


def _take_back(trial: Trial, found: dict[str, Any]) -> None:
    meta = found["metadata"]
    change: dict[str, Any] = {}
    if (meta.get("annotations") or {}).get(RIVAL) == "touched":
        change["annotations"] = {RIVAL: None}
    finalizers = meta.get("finalizers") or []
    if RIVAL in finalizers:
        change["finalizers"] = [each for each in finalizers if each != RIVAL] or None
    if change:
        _as_rival(trial, found, change)
