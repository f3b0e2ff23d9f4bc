"""The diagnosis: why the object is as it is, and what comes next, in a few sentences.

Causes that stop everything come first: no operator, a freeze, a state that cannot be
read. Then follow failures, waits, and pending work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fnop.core.memory.takeover import KOPF_FINALIZER
from fnop.core.values.durations import ago, span
from fnop.core.values.errors import joined, listed, number_of
from fnop.interpreters.explain.story import (
    Advice,
    Child,
    Deletion,
    HandlerState,
    HeldLease,
    Operator,
    Peering,
    State,
    Story,
    Subject,
)
from fnop.interpreters.explain.surroundings import freezes, rivals

__all__ = ["advice_for"]

# An attempt that is late by this many seconds is not expected any longer.
_LATE_SECONDS = 30.0
_NAMED_MAX = 5
# The finalizers of Kubernetes' own controllers, and the events they wait for.
_KNOWN = {
    KOPF_FINALIZER: "its operator with Kopf's API is to call its deletion handlers "
    "first",
    "foregroundDeletion": "the garbage collector deletes its children first",
    "orphan": "the garbage collector takes its children from it first",
    "kubernetes": "the content of the namespace goes first",
    "kubernetes.io/pvc-protection": "a pod uses it",
    "kubernetes.io/pv-protection": "a claim uses it",
}


def advice_for(story: Story) -> tuple[Advice, ...]:
    """The sentences of the diagnosis, the most important one first; at least one."""
    stopped = [*_advice_on_operator(story)]
    found = [*_advice_on_deletion(story), *_advice_on_state(story)]
    if story.subject.deletion is None:
        found += [
            *_advice_on_failure(story),
            *_advice_on_waiting(story),
            *_children(story),
        ]
        found += _advice_on_pending(story, explained=bool(stopped or found))
    if not found:
        found += _advice_at_rest(story)
    return (*stopped, *found, *_advice_on_stale(story))


# ------------------------------------------------------------ no operator at work


def _advice_on_operator(story: Story) -> Iterator[Advice]:
    operator = story.operator
    match operator.life:
        case "dead":
            yield Advice("no-operator", _words_for_dead(operator, story.wall))
        case "absent":
            places = ", ".join(operator.places)
            text = f"Nobody is in the peering object {places}: no operator runs,"
            rest = f"unless {operator.name} does so with --standalone."
            yield Advice("no-operator", f"{text} {rest}")
        case "frozen":
            yield Advice("frozen", _words_for_frozen(operator, story.wall))
        case _:
            pass


def _words_for_dead(operator: Operator, wall: float) -> str:
    why = "; ".join(_words_for_vacant(each, wall) for each in operator.leases)
    text = f"No operator named {operator.name} is alive ({why}): nothing happens"
    return f"{text} until one is started."


def _words_for_vacant(lease_held: HeldLease, wall: float) -> str:
    lease = (
        f"its lease in {lease_held.namespace}" if lease_held.namespace else "its lease"
    )
    if not lease_held.holder:
        return f"{lease} is held by nobody"
    long = (
        "a long time" if lease_held.renewed is None else span(wall - lease_held.renewed)
    )
    return f"{lease_held.holder} has not renewed {lease} for {long}"


def _words_for_frozen(operator: Operator, wall: float) -> str:
    people = freezes(operator.peers)
    if people:
        by = people[0]
        return (
            f"The operators are frozen by {by.identity}{_reason_of_freeze(by)}"
            f"{_end_of_freeze(by, wall)}. To end it: fnop resume, with the "
            "same -n or -A."
        )
    names = ", ".join(each.identity for each in rivals(operator.peers))
    return (
        f"All operators are frozen, for several have the same priority: {names}. "
        "Stop one of them, or give it another --priority."
    )


def _reason_of_freeze(peer: Peering) -> str:
    return f" ({peer.message})" if peer.message else ""


def _end_of_freeze(peer: Peering, wall: float) -> str:
    return "" if peer.until is None else f", for {span(peer.until - wall)} yet"


# --------------------------------------------------------------------- deletion


def _advice_on_deletion(story: Story) -> Iterator[Advice]:
    deletion = story.subject.deletion
    if deletion is None:
        return
    since = "It is being deleted"
    if deletion.since is not None:
        since = (
            f"It has been waiting to be deleted for {_waiting_time(deletion, story)}"
        )
    if deletion.own:
        yield from _advice_on_finalizers(story, deletion, since)
    for name in deletion.fnop:
        other = name.partition("/")[2]
        yield Advice(
            "held",
            f"{since}: {name} is of another operator of fnop, named {other}.",
            remedy=f"See fnop explain ... --name {other}.",
        )
    if deletion.foreign:
        details = tuple(
            f"{each}: {_KNOWN[each]}" if each in _KNOWN else each
            for each in deletion.foreign
        )
        unknown = [each for each in deletion.foreign if each not in _KNOWN]
        rest = "Whoever has put it there has to take it off." if unknown else ""
        whose = f" that {story.operator.name} has nothing to do with"
        text = f"{since}, and waits for finalizers{whose}:"
        yield Advice("held", text, details, rest)
    if not story.subject.finalizers:
        text = f"{since}; no finalizer holds it, so it goes by itself."
        yield Advice("deleting", text)


def _waiting_time(deletion: Deletion, story: Story) -> str:
    return span(story.wall - (deletion.since or story.wall))


def _advice_on_finalizers(
    story: Story, deletion: Deletion, since: str
) -> Iterator[Advice]:
    operator, names = story.operator, ", ".join(deletion.own)
    text = f"{since}, held by {names}"
    open_ones = [e for e in story.state.handlers if e.stage != "done"]
    far = [each for each in story.children if _is_far(each, story.subject)]
    if operator.life in ("dead", "absent"):
        gone = "if it is gone for good, fnop uninstall operator.py --name"
        remedy = f"Start the operator; {gone} {operator.name}"
        yield Advice("deleting", f"{text}.", remedy=remedy)
    elif open_ones:
        details = tuple(_progress_of(each, story.wall) for each in open_ones)
        text += " until its handlers are done:"
        yield Advice("deleting", text, details)
    else:
        children = "1 child and " if len(far) == 1 else f"{len(far)} children and "
        text += f" until {children if far else ''}its deletion handlers are done."
        yield Advice("deleting", text, remedy=_words_for_progress(operator))


def _is_far(child: Child, subject: Subject) -> bool:
    """Whether only the operator deletes a child together with its owner.

    Kubernetes: a namespaced owner cannot own objects outside its namespace.
    """
    is_elsewhere = child.namespace != subject.namespace
    return child.applied and bool(subject.namespace) and is_elsewhere


def _words_for_progress(operator: Operator) -> str:
    if operator.life == "alive":
        return "How far they are is not written on it, but in the operator's log."
    return (
        f"Does {operator.name} run? Its log tells how far they are. If it is gone for "
        f"good: fnop uninstall operator.py --name {operator.name}"
    )


# ------------------------------------------------------------------------- state


def _advice_on_state(story: Story) -> Iterator[Advice]:
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
    yield Advice("unreadable", text, remedy=_remedy_to_restart(story))


def _remedy_to_restart(story: Story) -> str:
    """The way to make the operator handle an object as a new one."""
    subject, state = story.subject, story.state
    if state.place != "annotation" or state.handled == "no":
        return ""
    place = f" -n {subject.namespace}" if subject.namespace else ""
    return (
        "To have it handled as a new one, remove the state, and start the operator "
        f"anew: kubectl annotate {subject.resource}/{subject.name}{place} "
        f"fnop.dev/{story.operator.name}-"
    )


def _advice_on_failure(story: Story) -> Iterator[Advice]:
    failed = [each for each in story.state.handlers if each.stage == "failed"]
    if not failed:
        return
    own = next((e for e in story.conditions if e.own and e.status == "False"), None)
    at = None if own is None else own.since
    when = "" if at is None else f", {ago(at, story.wall)}"
    reason = _NOUNS.get(failed[0].reason, "change")
    details = tuple(f"{each.id}: {each.message}" for each in failed)
    text = f"{number_of(len(failed), 'handler')} of its {reason} failed for good{when}:"
    again = _AGAIN.get(reason, "and change the object again")
    whom = "It is" if len(failed) == 1 else "They are"
    remedy = f"{whom} not called again for this {reason}: mend the cause, {again}."
    yield Advice("failed", text, details, remedy)


_NOUNS = {
    "create": "creation",
    "update": "update",
    "delete": "deletion",
    "resume": "resumption",
}
# The way to make the operator call handlers once more.
_AGAIN = {
    "creation": "delete the object, and create it anew",
    "resumption": "and start the operator anew",
}


def _advice_on_waiting(story: Story) -> Iterator[Advice]:
    waiting = [e for e in story.state.handlers if e.stage in ("waiting", "retrying")]
    late = [each for each in waiting if _is_late(each, story.wall)]
    rest = [each for each in waiting if each not in late]
    if late:
        details = tuple(_progress_of(each, story.wall) for each in late)
        text = "Overdue: no operator seems to be at work on it."
        remedy = f"Does {story.operator.name} run? Its log tells."
        yield Advice("overdue", text, details, remedy)
    if rest:
        details = tuple(_progress_of(each, story.wall) for each in rest)
        is_served = story.operator.life in ("alive", "unknown")
        text = "Waiting; it goes on by itself:" if is_served else "Waiting:"
        yield Advice("waiting", text, details)


def _is_late(handler: HandlerState, wall: float) -> bool:
    return handler.due is not None and wall - handler.due > _LATE_SECONDS


def _progress_of(handler: HandlerState, wall: float) -> str:
    """The progress of a handler, in a few words.

    >>> state = HandlerState("f", "retrying", "create", 3, 0.0, 112.0, "no")
    >>> _progress_of(state, 100.0)
    'retry 3 of f in 12s (no)'
    """
    why = f" ({handler.message})" if handler.message else ""
    when = "now" if handler.due is None else _due_in_words(handler.due, wall)
    match handler.stage:
        case "waiting":
            if handler.due is None:
                return f"{handler.id} waits{why}"
            return f"{handler.id} goes on {when}{why}"
        case "retrying":
            return f"retry {handler.attempts} of {handler.id} {when}{why}"
        case "started":
            return f"{handler.id} has begun{why}"
        case "failed":
            return f"{handler.id} has failed for good{why}"
        case "again":
            return f"{handler.id} is to be called for this version of the object"
        case _:
            return f"{handler.id} is done"


def _due_in_words(due: float, wall: float) -> str:
    return f"in {span(due - wall)}" if due >= wall else f"was due {ago(due, wall)}"


def _advice_on_pending(story: Story, *, explained: bool) -> Iterator[Advice]:
    state, open_ones = story.state, [*_open_handlers(story)]
    begun = ", ".join(each.id for each in open_ones)
    told = f"; begun: {begun}" if begun else ""
    if state.handled == "creating":
        if not explained:
            text = f"Its creation is under way{told}."
            yield Advice("pending", text, remedy=_words_if_it_lasts(story))
    elif state.changed:
        names = [each for each in state.changed if each]
        what = _first_names(names) if names else "a part of it"
        text = f"A change of {what} is not handled yet{told}."
        remedy = "" if explained else _words_if_it_lasts(story)
        yield Advice("pending", text, remedy=remedy)
    elif open_ones:
        yield Advice("pending", f"Handlers are at work: {begun}.")


def _open_handlers(story: Story) -> Iterator[HandlerState]:
    return (e for e in story.state.handlers if e.stage in ("started", "again"))


def _first_names(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _words_if_it_lasts(story: Story) -> str:
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
    is_ours = story.operator.marked  # other controllers use that condition type, too
    if synced is None or synced.status != "False" or not is_ours:
        return
    details = tuple(_LABELLED.split(synced.message))
    at = synced.since
    since = "" if at is None else f", for {span(story.wall - at)}"
    if synced.reason == "HandlerFailed":
        text = f"The reconcile handler fails before it desires anything{since}:"
        if synced.message.startswith("PermanentError"):
            remedy = "It is called again when the object or a child changes."
        else:
            remedy = f"{story.operator.name} tries again, with growing pauses."
        yield Advice("failed", text, (synced.message,), remedy)
    elif synced.reason == "Failing":
        text = f"Children cannot be made as desired{since}:"
        is_served = story.operator.life in ("alive", "unknown")
        remedy = (
            f"{story.operator.name} tries again, with growing pauses; children that "
            "are not named here are not held up."
        )
        yield Advice("children", text, details, remedy if is_served else "")
    else:
        yield Advice("children", "Children are on their way:", details)


# The parts of the message of `Synced`: each begins with the label of a child.
_LABELLED = re.compile(r"; (?=[a-z0-9.]+/\S+ )")


# ----------------------------------------------------------------------- at rest


def _advice_on_done(state: State, generation: str) -> Advice:
    text = f"Nothing to do: the object is handled as it is now{generation}."
    if not state.indices:
        return Advice("done", text)
    names = listed(state.indices)
    return Advice(
        "done",
        f"{text} Its handlers observe {names}, too: the values of an index are unknown "
        "here.",
        remedy="Use fnop plan to see whether the operator would call them.",
    )


def _advice_at_rest(story: Story) -> Iterator[Advice]:
    operator, subject, state = story.operator, story.subject, story.state
    generation = f" for generation {subject.generation}" if subject.generation else ""
    not_ready = next(
        (e for e in story.conditions if e.type == "Ready" and e.status != "True"), None
    )
    if subject.is_child and not state.place:
        yield _advice_on_child(story)
    elif not operator.marked:
        yield Advice("unmarked", _words_for_unmarked(story))
    elif not_ready is not None:
        why = not_ready.message or not_ready.reason
        yield Advice(
            "not-ready",
            f"{operator.name} has nothing to do{generation}; Ready is "
            f"{not_ready.status}: {why}.{_words_for_children(story)}",
        )
    elif state.handled == "yes":
        yield _advice_on_done(state, generation)
    elif _is_synced(story):
        yield Advice("done", f"Nothing to do: all is as desired{generation}.")
    else:
        yield Advice(
            "unknown",
            f"{operator.name} has left marks on it, and no state. Either a handler of "
            "its creation is at work, or tried again within a minute, or no handler of "
            "this kind needs a state (reconcile, event, deletion): its log tells.",
        )


def _advice_on_child(story: Story) -> Advice:
    owner = story.subject.owners[-1]
    text = f"It is a child of {owner.kind} {owner.name}, for which fnop has applied it."
    kind = f"{owner.kind.lower()}.{owner.group}".rstrip(".")
    place = f" -n {owner.namespace}" if owner.namespace else ""
    remedy = f"Its story is told with that: fnop explain {kind}/{owner.name}{place}"
    return Advice("child", text, remedy=remedy)


def _words_for_children(story: Story) -> str:
    """The children that are not ready according to a status."""
    behind = [each for each in story.children if each.behind]
    if not behind:
        return ""
    told = "; ".join(f"{each.label}: {each.told}" for each in behind[:_NAMED_MAX])
    return f" Look at its children: {told}."


def _is_synced(story: Story) -> bool:
    return any(e.type == "Synced" and e.status == "True" for e in story.conditions)


def _words_for_unmarked(story: Story) -> str:
    operator = story.operator
    text = f"No operator named {operator.name} has left a mark on it"
    if operator.others:
        names = ", ".join(operator.others)
        return f"{text}; {names} has: see fnop explain ... --name {operator.others[0]}"
    if operator.kopf:
        return (
            f"An operator with Kopf's API handles it, under Kopf or under fnop: it "
            f"keeps its state in {joined(operator.kopf)}. To see which handlers are "
            "called next, run: fnop plan --kopf --takeover FILE"
        )
    if story.handlers is not None:
        fitting = [each for each in story.handlers if each.fits]
        if not story.handlers:
            return f"{text}, and the files have no handler of {story.subject.resource}."
        if not fitting:
            return f"{text}, and the filters of no handler let it through."
        names = ", ".join(each.id for each in fitting)
        return f"{text}, though handlers fit: {names}. Does it run, and serve this one?"
    doubts = "it does not serve this kind and namespace, or no handler of it fits"
    if operator.life == "alive":
        return (
            f"{text}, though one runs: {doubts}, or a reconcile handler fails each "
            "time (its log tells). With --operator FILE its handlers are asked."
        )
    return (
        f"{text}. Either none runs, or {doubts}. With --operator FILE its handlers "
        "are asked."
    )


def _advice_on_stale(story: Story) -> Iterator[Advice]:
    stale = [each for each in story.conditions if each.stale]
    if stale and story.subject.deletion is None:
        names = ", ".join(f"{e.type} (of generation {e.generation})" for e in stale)
        text = f"Not about generation {story.subject.generation} yet: {names}."
        yield Advice("stale", text)


# ------------------------------------------------------------------------- words
