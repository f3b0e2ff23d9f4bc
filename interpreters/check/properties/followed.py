"""The handlers that the operator has called for each edit of a script."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.values.cause import Reason
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.actions import Edit, address_of

__all__ = ["calls_for_edits"]

# The most edits that are named: edits without a called handler come first.
_EDITS_MAX = 6
_FOLLOWING = frozenset((Family.CHANGE, Family.RECONCILER))


def calls_for_edits(trial: Trial) -> tuple[str, ...]:
    """A sentence for each edit of a script, on the handlers that were called for it."""
    unheard, heard = [], []
    for place, action in enumerate(trial.scene.script, 1):
        if not isinstance(action, Edit):
            continue
        resource, name = address_of(trial.run, action.where)
        called = _called_handlers(trial, place, resource, name)
        if called:
            heard.append(f"{action}: {', '.join(called)}")
        else:
            unheard.append(_unheard_message(trial, action, resource))
    return (*unheard, *heard)[:_EDITS_MAX]


def _called_handlers(
    trial: Trial, place: int, resource: Resource, name: str
) -> list[str]:
    """The handlers whose attempts have ended after `place` actions, each once.

    If no handler was called for the edited object, these are the handlers that were
    called for other objects, which may own the edited one or depend on it. Timers and
    daemons do not follow edits. Nor do handlers that are called after the restart at
    the end: a new process calls them, whatever the user has done.
    """
    background = {
        each.id
        for each in trial.scene.program.handlers
        if each.rule.family is Family.BACKGROUND
    }
    ended = [
        (say.handler, say.subject)
        for phase, number, say in trial.journal.said
        if phase <= Phase.HEALED and number == place
        if say.ended is not None and say.subject
        if say.handler and say.handler not in background
    ]
    edited = resource.key, name
    own = [each for each, found in ended if (found.resource, found.name) == edited]
    others = [
        f"{each} of {found.resource.partition('.')[0]}/{found.name}"
        for each, found in ended
    ]
    return [*dict.fromkeys(own or others)]


def _unheard_message(trial: Trial, action: Edit, resource: Resource) -> str:
    why = "; ".join(_reasons(trial.scene.program.handlers, resource))
    return f"{action}: no handler of changes is called{f' ({why})' if why else ''}"


def _reasons(handlers: tuple[Handler, ...], resource: Resource) -> Iterator[str]:
    """The reasons why a kind's handlers are not called for a change.

    Handlers of updates come first; the others are named only if there are none of
    these.
    """
    own = [
        each
        for each in handlers
        if each.rule.family in _FOLLOWING
        if each.selector is not None and each.selector.matches(resource)
    ]
    updating = [each for each in own if _is_for_updates(each)]
    for each in updating or own:
        if not updating:
            yield f"`{each.id}` is for {each.rule.decorator.removeprefix('@fnop.')}"
        elif each.field:
            yield f"`{each.id}` has field={'.'.join(each.field)}"
        else:
            yield f"the filters of `{each.id}` exclude it"


def _is_for_updates(handler: Handler) -> bool:
    rule = handler.rule
    if rule.family is Family.RECONCILER:
        return True
    return Reason.UPDATE in rule.reasons and not rule.is_for_resuming
