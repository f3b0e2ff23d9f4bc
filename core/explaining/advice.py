"""The diagnosis: why the object is as it is, and what comes next, in a few sentences.

Whatever stops everything comes first: no operator, a freeze, a state that cannot be
read. Then what has failed, what waits, and what is to be done yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from fnop.core.explaining.facts import line
from fnop.core.explaining.story import (
    Advice,
    Deletion,
    HandlerState,
    Operator,
    Peering,
    Seat,
    Story,
)
from fnop.core.explaining.surroundings import is_a_freeze, is_tied

__all__ = ["advice_for", "ago", "span"]

# An attempt that is late by so many seconds does not come.
_LATE_SECONDS = 30.0
_NAMED_MAX = 5
# The finalizers of Kubernetes' own controllers, and what they wait for.
_KNOWN = {
    "foregroundDeletion": "the garbage collector deletes its children first",
    "orphan": "the garbage collector takes its children from it first",
    "kubernetes": "the content of the namespace goes first",
    "kubernetes.io/pvc-protection": "a pod uses it",
    "kubernetes.io/pv-protection": "a claim uses it",
}


def advice_for(story: Story) -> tuple[Advice, ...]:
    """The sentences of the diagnosis, the most important one first; at least one."""
    found = [*_stopped(story), *_deleting(story), *_unread_state(story)]
    if story.subject.deletion is None:
        found += [*_failed(story), *_waiting(story), *_children(story)]
        found += _pending(story, explained=bool(found))
    if not found:
        found += _at_rest(story)
    return (*found, *_stale(story))


# -------------------------------------------------------------- nobody is at work


def _stopped(story: Story) -> Iterator[Advice]:
    operator = story.operator
    match operator.life:
        case "dead":
            yield Advice("no-operator", _dead(operator, story.wall))
        case "frozen":
            yield Advice("frozen", _frozen(operator, story.wall))
        case _:
            pass


def _dead(operator: Operator, wall: float) -> str:
    signs = [_vacant(each, wall) for each in operator.leases]
    if operator.places:
        signs.append(f"nobody is in the peering object {', '.join(operator.places)}")
    why = "; ".join(signs)
    text = f"No operator named {operator.name} is alive ({why}): nothing happens"
    return f"{text} until one is started."


def _vacant(seat: Seat, wall: float) -> str:
    lease = f"its lease in {seat.namespace}" if seat.namespace else "its lease"
    if not seat.holder:
        return f"{lease} is held by nobody"
    long = "a long time" if seat.renewed is None else span(wall - seat.renewed)
    return f"{seat.holder} has not renewed {lease} for {long}"


def _frozen(operator: Operator, wall: float) -> str:
    alive = [each for each in operator.peers if each.alive]
    freezes = [each for each in alive if is_a_freeze(each)]
    if freezes:
        by = max(freezes, key=lambda each: each.priority)
        return (
            f"The operators are frozen by {by.identity}{_because(by)}"
            f"{_until(by, wall)}. To end it: fnop resume, with the same -n or -A."
        )
    assert is_tied(alive)
    names = ", ".join(each.identity for each in alive)
    return (
        f"All operators are frozen, for several have the same priority: {names}. "
        "Stop one of them, or give it another --priority."
    )


def _because(peer: Peering) -> str:
    return f" ({peer.message})" if peer.message else ""


def _until(peer: Peering, wall: float) -> str:
    return "" if peer.until is None else f", for {span(peer.until - wall)} yet"


# --------------------------------------------------------------------- deletion


def _deleting(story: Story) -> Iterator[Advice]:
    deletion = story.subject.deletion
    if deletion is None:
        return
    since = "It is being deleted"
    if deletion.since is not None:
        since += f", for {span(story.wall - deletion.since)}"
    if deletion.own:
        yield Advice("deleting", f"{since}, and {_held_by_us(story, deletion)}")
    for name in deletion.fnop:
        other = name.partition("/")[2]
        text = f"held by another operator of fnop: see fnop explain ... --name {other}"
        yield Advice("held", f"{since}, and {text}.")
    if deletion.foreign:
        whys = "; ".join(
            f"{each} ({_KNOWN[each]})" if each in _KNOWN else each
            for each in deletion.foreign
        )
        text = f"waits for {whys}"
        if not deletion.own:
            text += f", not for {story.operator.name}"
        unknown = [each for each in deletion.foreign if each not in _KNOWN]
        rest = " Whoever has put it there has to take it off." if unknown else ""
        yield Advice("held", f"{since}, and {text}.{rest}")
    if not story.subject.finalizers:
        yield Advice("deleting", f"{since}; no finalizer holds it: it goes by itself.")


def _held_by_us(story: Story, deletion: Deletion) -> str:
    operator, names = story.operator, ", ".join(deletion.own)
    open_ones = [e for e in story.state.handlers if e.stage != "done"]
    if operator.life == "dead":
        return (
            f"held by {names}. Start the operator; if it is gone for good, take its "
            f"marks off: fnop uninstall operator.py --name {operator.name}"
        )
    if open_ones:
        told = "; ".join(_progress(each, story.wall) for each in open_ones)
        return f"held by {names} until its handlers are done: {told}."
    outside = [each for each in story.children if each.applied]
    if outside:
        count = "1 child" if len(outside) == 1 else f"{len(outside)} children"
        return f"held by {names} until {count} and its deletion handlers are done."
    return (
        f"held by {names} until its deletion handlers are done. How far they are is "
        f"not on the object{_see_log(operator)}"
    )


def _see_log(operator: Operator) -> str:
    return f": see the log of the operator {operator.name}."


# ------------------------------------------------------------------------- state


def _unread_state(story: Story) -> Iterator[Advice]:
    state = story.state
    if not state.problem:
        return
    text = f"The state of {story.operator.name} on it cannot be read: {state.problem}."
    if state.signature == "bad":
        text += (
            " The operator takes the object for one that it has handled, and calls no "
            "handler of creation: somebody else may have written the state, or the "
            "key is another one."
        )
    elif state.handled == "no":
        text += " The operator ignores it, and handles the object as a new one."
    else:
        text += (
            " The operator leaves it alone, and takes the object for one that was "
            "handled."
        )
    yield Advice("unreadable", text)


def _failed(story: Story) -> Iterator[Advice]:
    failed = [each for each in story.state.handlers if each.stage == "failed"]
    own = next((e for e in story.conditions if e.own and e.status == "False"), None)
    if own is not None and own.reason.endswith("Failed"):
        when = ago(own.since, story.wall)
        what = own.reason.removesuffix("Failed").lower()
        whose = f"Handlers of the {what} have failed for good" if what else "Failed"
        text = f"{whose}, {when}: {own.message}. {_remedy(what)}"
    elif failed:
        told = "; ".join(f"{each.id}: {each.message}" for each in failed)
        text = f"Failed for good: {told}. {_remedy(failed[0].reason)}"
    else:
        return
    yield Advice("failed", text)


def _remedy(reason: str) -> str:
    again = (
        "delete the object and create it anew"
        if reason == "create"
        else "mend the cause, and change the object again"
    )
    return f"They are not called again for this {reason or 'change'}: {again}."


def _waiting(story: Story) -> Iterator[Advice]:
    for each in story.state.handlers:
        if each.stage not in ("waiting", "retrying"):
            continue
        text = _progress(each, story.wall)
        late = None if each.due is None else story.wall - each.due
        if late is not None and late > _LATE_SECONDS:
            text += f". No operator seems to be at work on it{_see_log(story.operator)}"
            yield Advice("overdue", f"Overdue: {text}")
        else:
            yield Advice(each.stage, f"Waiting: {text}.")


def _progress(handler: HandlerState, wall: float) -> str:
    """Where a handler stands, in a few words.

    >>> _progress(HandlerState("f", "retrying", "create", 3, 0.0, 112.0, "no"), 100.0)
    'retry 3 of f in 12s (no)'
    """
    why = f" ({handler.message})" if handler.message else ""
    when = "now" if handler.due is None else _when(handler.due, wall)
    match handler.stage:
        case "waiting":
            return f"{handler.id} goes on {when}{why}"
        case "retrying":
            return f"retry {handler.attempts} of {handler.id} {when}{why}"
        case "started":
            return f"{handler.id} has begun{why}"
        case "failed":
            return f"{handler.id} {handler.message}"
        case "again":
            return f"{handler.id} is to be called for this version of the object"
        case _:
            return f"{handler.id} is done"


def _when(due: float, wall: float) -> str:
    return f"in {span(due - wall)}" if due >= wall else f"was due {ago(due, wall)}"


def _pending(story: Story, *, explained: bool) -> Iterator[Advice]:
    state, open_ones = story.state, [*_open(story)]
    begun = ", ".join(each.id for each in open_ones)
    told = f"; begun: {begun}" if begun else ""
    if state.handled == "creating":
        yield Advice("pending", f"Its creation is not handled to the end{told}.")
    elif state.changed:
        names = [each for each in state.changed if each]
        what = _few(names) if names else "a part of it"
        text = f"A change of {what} is not handled yet{told}."
        yield Advice("pending", text if explained else f"{text} {_if_it_lasts(story)}")
    elif open_ones:
        yield Advice("pending", f"Handlers are at work: {begun}.")


def _open(story: Story) -> Iterator[HandlerState]:
    return (e for e in story.state.handlers if e.stage in ("started", "again"))


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _if_it_lasts(story: Story) -> str:
    name = story.operator.name
    if story.operator.life == "alive":
        return (
            "A handler is at work on it, or is tried again within a minute: that is "
            f"not written on the object, but in the log of {name}."
        )
    return (
        f"If that lasts, either no operator named {name} runs, or a handler is tried "
        f"again and again: its log tells."
    )


# --------------------------------------------------------------------- children


def _children(story: Story) -> Iterator[Advice]:
    synced = next((e for e in story.conditions if e.type == "Synced"), None)
    if synced is None or synced.status != "False":
        return
    if synced.reason == "Failing":
        at = synced.since
        since = "" if at is None else f", for {span(story.wall - at)}"
        text = f"Children cannot be made as desired{since}"
        rest = "The operator tries again, with growing pauses; the others are not held."
        yield Advice("children", f"{text}: {synced.message}. {rest}")
    else:
        yield Advice("children", f"Children are on their way: {synced.message}.")


# ----------------------------------------------------------------------- at rest


def _at_rest(story: Story) -> Iterator[Advice]:
    operator, subject, state = story.operator, story.subject, story.state
    generation = f" for generation {subject.generation}" if subject.generation else ""
    not_ready = next(
        (e for e in story.conditions if e.type == "Ready" and e.status != "True"), None
    )
    if not operator.marked:
        yield Advice("unmarked", _unmarked(story))
    elif not_ready is not None:
        why = not_ready.message or not_ready.reason
        yield Advice(
            "not-ready",
            f"Nothing to do for {operator.name}{generation}; Ready is "
            f"{not_ready.status}: {why}. It waits for something else, such as a child.",
        )
    elif state.handled == "yes":
        yield Advice(
            "done", f"Nothing to do: the object is handled as it is now{generation}."
        )
    elif _is_synced(story):
        yield Advice("done", f"Nothing to do: all is as desired{generation}.")
    else:
        yield Advice(
            "unknown",
            f"{operator.name} has left marks on it, and no state: it is at work, or "
            "has no handlers that remember (those of reconcile, event and deletion do "
            "not).",
        )


def _is_synced(story: Story) -> bool:
    return any(e.type == "Synced" and e.status == "True" for e in story.conditions)


def _unmarked(story: Story) -> str:
    operator = story.operator
    text = f"No operator named {operator.name} has left a mark on it"
    if operator.others:
        names = ", ".join(operator.others)
        return f"{text}; {names} has: see fnop explain ... --name {operator.others[0]}"
    if story.handlers is not None:
        fitting = [each for each in story.handlers if each.fits]
        if not story.handlers:
            return f"{text}, and the files have no handler of {story.subject.resource}."
        if not fitting:
            return f"{text}, and the filters of no handler let it through: labels, ...."
        names = ", ".join(each.id for each in fitting)
        return f"{text}, though handlers fit: {names}. Does it run, with these rights?"
    return (
        f"{text}. Either none runs, or none serves this kind and namespace, or its "
        "handlers do not fit: name its files here, and they are asked."
    )


def _stale(story: Story) -> Iterator[Advice]:
    stale = [each for each in story.conditions if each.stale]
    if stale and story.subject.deletion is None:
        names = ", ".join(f"{e.type} (of generation {e.generation})" for e in stale)
        text = f"Not about generation {story.subject.generation} yet: {names}."
        yield Advice("stale", text)


# ------------------------------------------------------------------------- words


def span(seconds: float) -> str:
    """A duration in at most two units, as kubectl has it.

    >>> span(0.4), span(12), span(95), span(7300), span(200_000), span(-5)
    ('0s', '12s', '95s', '2h', '2d7h', '0s')
    """
    left = max(0, int(min(seconds, 1e12)))
    if left < 120:
        return f"{left}s"
    if left < 600:
        return f"{left // 60}m{left % 60}s" if left % 60 else f"{left // 60}m"
    if left < 3 * 3600:
        hours, minutes = divmod(left // 60, 60)
        if not hours:
            return f"{minutes}m"
        return f"{hours}h{minutes}m" if minutes > 1 else f"{hours}h"
    if left < 48 * 3600:
        return f"{left // 3600}h"
    days, hours = divmod(left // 3600, 24)
    return f"{days}d{hours}h" if hours and days < 8 else f"{days}d"


def ago(at: float | None, wall: float) -> str:
    """How long ago a time is; "an unknown time" without one.

    >>> ago(100.0, 160.0), ago(None, 0.0), ago(200.0, 160.0)
    ('60s ago', 'an unknown time', '0s ago')
    """
    return "an unknown time" if at is None else f"{line(span(wall - at))} ago"
