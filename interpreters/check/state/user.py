"""The user of a script: does one action after the other, and waits if need be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from fnop.core.api.resources import path_of
from fnop.interpreters.check.state.grounds import Ground, placed
from fnop.interpreters.check.state.records import Refusal, Reviewed
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.simulation.actions import (
    Action,
    ActionRefused,
    Apply,
    Delete,
    Edit,
    Wait,
    WriteLog,
    act,
    address_of,
)
from fnop.interpreters.simulation.logs import can_write_log

__all__ = ["give_up", "go_on", "is_reached", "unblock"]


def go_on(state: TrialState) -> bool:
    """Let the user do the next action; False if there is none, or the user waits."""
    user = state.user
    if state.is_over or user.blocked is not None:
        return False
    action = state.scene.script[user.place]
    user.place += 1
    if isinstance(action, Wait):
        user.until = state.run.clock.elapsed + action.seconds
    elif _is_blocked(state, action):
        user.blocked = action
    else:
        _act(state, action)
    if state.in_force.down:
        state.in_force.down -= 1
    return True


def unblock(state: TrialState) -> bool:
    """Do the action that was blocked, if it can be done now; whether it can."""
    action = state.user.blocked
    assert action is not None
    if _is_blocked(state, action):
        return False
    state.user.blocked = None
    _act(state, action)
    return True


def give_up(state: TrialState) -> None:
    """Try the action that was blocked, since waiting was in vain."""
    action, state.user.blocked = state.user.blocked, None
    assert action is not None
    if isinstance(action, Apply):
        state.journal.refused.append(f"{action}: the former object does not go")
    else:
        _act(state, action)


def is_reached(state: TrialState) -> bool:
    """Whether the API server reaches the operator's webhooks."""
    return state.run.ready and state.in_force.outage is None


def _act(state: TrialState, action: Action) -> None:
    state.tell("user", action)
    state.begins("user")
    journal, reviews, user = state.journal, state.journal.reviews, state.user
    known, unanswered = len(reviews.decided), reviews.unanswered
    user.awaits_review = False
    try:
        act(state.run, action, state.scene.namespace)
    except ActionRefused as problem:
        if isinstance(action, WriteLog):
            return  # a container that does not run writes nothing
        if reviews.unanswered > unanswered and not state.is_healed:
            user.blocked, user.awaits_review = action, True  # and tries again
            return
        reviewed = reviews.decided[known:]
        journal.refused.append(f"{action}: {problem}")
        journal.refusals.append(
            Refusal(
                *(action, str(problem), problem.status, user.place),
                tuple(each for one in reviewed for each in one.decision.denials),
                _harmful_mutations(state, action, reviewed),
            )
        )


def _harmful_mutations(
    state: TrialState, action: Action, reviewed: Sequence[Reviewed]
) -> str:
    """The mutations without which the cluster takes a refused action, named."""
    changed = [each.decision for each in reviewed if each.decision.patch]
    if not changed or any(each.decision.denials for each in reviewed):
        return ""
    first = reviewed[0]
    program, wall = state.scene.program, state.run.clock.now().wall
    before = Ground(program, wall, first.cluster, first.state, first.calls)
    try:
        act(before.run(), action, state.scene.namespace)
    except ActionRefused:
        return ""
    asked = {each for decision in changed for each in decision.asked}
    mutations = (e for e in program.handlers if e.id in asked and e.rule.mutates)
    return ", ".join(map(placed, mutations))


def _is_blocked(state: TrialState, action: Action) -> bool:
    """Whether users wait before they do an action.

    They do not create an object that is still being deleted. After a fault the object
    that they edit or delete may not have been made yet, a container may not run yet, or
    the API server does not reach the operator's webhooks.
    """
    if state.user.awaits_review:
        return not is_reached(state)
    if isinstance(action, WriteLog):
        return bool(state.struck) and not _can_write_log(state, action)
    path = _path_of(state, action)
    if path is None:
        return False
    response = state.run.request(ApiRequest("GET", path))
    if not isinstance(action, Apply):
        return response.status == 404 and bool(state.struck)
    meta = response.body["metadata"] if response.status == 200 else {}
    return "deletionTimestamp" in meta


def _can_write_log(state: TrialState, action: WriteLog) -> bool:
    """Whether the container that is to write a log runs."""
    place = action.namespace or state.scene.namespace
    name = action.where.partition("/")[2]
    return can_write_log(state.run.cluster, place, name, action.container)


def _path_of(state: TrialState, action: Action) -> str | None:
    """The path of the object that an action is about; None for no known one."""
    run, namespace = state.run, state.scene.namespace
    match action:
        case Apply(manifest) if "name" in manifest["metadata"]:
            return object_path(run, manifest, namespace)
        case Edit(where, _, place) | Delete(where, place):
            with suppress(ActionRefused):
                resource, name = address_of(run, where)
                return path_of(resource, place or namespace, name)
        case _:
            pass
    return None
