"""Perform the effects of an invocation: at once, or by requests in flight.

An effect that needs the world becomes a request, addressed and owned. fnop answers
others at once. Nothing here calls the author's code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.api.ownership import call_token, owned, stable_name
from fnop.core.handlers.declare.roles import Family
from fnop.core.memory.conditions import keeping
from fnop.core.memory.observation import digest_at
from fnop.core.objects.decide.reconcilers import requeued
from fnop.core.objects.report.events import note_line, report_event
from fnop.core.objects.report.explaining import tell_asked
from fnop.core.objects.write.state_location import own_conditions
from fnop.core.seam.effect_rules import (
    Described,
    Immediate,
    Pausing,
    Requested,
    Targeted,
    rule_of,
    uid_meant,
)
from fnop.core.state.address import Address, Request
from fnop.core.state.context import Context
from fnop.core.state.in_flight import InFlight, in_flight_for, proceed
from fnop.core.state.invocation import Invocation, Pause
from fnop.core.state.record import ObjectRecord
from fnop.core.state.requests import ForEffect
from fnop.core.state.splitting import cannot_split
from fnop.core.values.body import Key
from fnop.core.values.errors import act_of
from fnop.effects import (
    Adopt,
    Again,
    Answer,
    Apply,
    Call,
    Create,
    Effect,
    Event,
    Execute,
    Freeze,
    List,
    Log,
    Outcome,
    Patch,
    Random,
    Remember,
    Requeue,
    Resume,
    Return,
    Sleep,
    Target,
    Wait,
)
from fnop.effects.outcomes import Refused, Unreachable
from fnop.effects.structs import replace
from fnop.effects.values import read_only
from fnop.effects.wire import digest_of

__all__ = ["is_own", "perform", "send", "tell"]

# The address of an effect, or why it has none, or that it is not known yet.
_Addressed = Address | Refused | Unreachable


def perform(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Effect
) -> tuple[ObjectRecord, Invocation, Outcome | None]:
    """Perform an effect; without an outcome it is to be awaited."""
    if isinstance(effect, Requested):
        return _request_effect(context, record, invocation, effect)
    if isinstance(effect, Pausing):
        return record, *_pause_conversation(context, invocation, effect)
    if isinstance(effect, Requeue):
        return _requeue_target(context, record, invocation, effect)
    record, outcome = _perform_immediate(context, record, invocation, effect)
    return record, invocation, outcome


def _pause_conversation(
    context: Context, invocation: Invocation, effect: Pausing
) -> tuple[Invocation, Outcome | None]:
    """Wait for a time, for a request to stop, or for the sub-handlers."""
    match effect:
        case Wait() if invocation.stopped:
            return invocation, Answer(True)
        case Sleep(seconds=seconds) | Wait(seconds=seconds):
            until = None if seconds is None else context.now.mono + seconds
        case Execute():
            until = None
    return replace(invocation, awaits=Pause(until)), None


def _perform_immediate(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Immediate
) -> tuple[ObjectRecord, Outcome]:
    """Perform an effect that neither waits nor sends a request."""
    match effect:
        case Log():
            tell(context, invocation, (effect,))
        case Event():
            record = report_event(context, record, effect, invocation.handler.id)
        case Remember(changes=changes):
            kept = {**record.memo, **changes}
            memo = read_only({k: v for k, v in kept.items() if v is not None})
            if context.is_activity:
                context.remember(memo)
            record = replace(record, memo=memo)
        case Freeze(reason=reason):
            context.turn.freeze(reason)
        case Resume():
            context.turn.freeze(None)
        case Return() | Again() | Requeue():
            return record, Refused(400, f"{effect.kind} cannot be performed here")
    return record, Answer()


def _requeue_target(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Requeue
) -> tuple[ObjectRecord, Invocation, Outcome | None]:
    """Have the reconcilers of an object called, without waiting for them."""
    found = _address_of_target(context, effect.target)
    if not isinstance(found, Address):
        return record, invocation, found
    by_reconciler = invocation.handler.rule.family is Family.RECONCILER
    if by_reconciler and found.key == context.key:
        invocation = invocation.doing(requeues_itself=True)
    elif by_reconciler:
        invocation = invocation.doing(requeues_others=True)
    record = _requeue_by_key(context, record, found.key, by_reconciler=by_reconciler)
    return record, invocation, Answer()


def _requeue_by_key(
    context: Context, record: ObjectRecord, key: Key, *, by_reconciler: bool
) -> ObjectRecord:
    """Return the handled object's record, after an object is requeued by key."""
    other = context.of(key)
    asked = record if key == context.key else other.record
    if asked is None or not other.is_served:
        return record
    due = requeued(asked, context.now.mono, by_reconciler=by_reconciler)
    other.due()
    if key == context.key:
        return due
    other.put(due)
    return record


def _request_effect(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Requested
) -> tuple[ObjectRecord, Invocation, Outcome | None]:
    manifest, asking = None, invocation
    if _is_for_another(record, invocation, effect):
        gone = "the object has been deleted, and made anew"
        return record, invocation, Refused(404, gone, "NotFound")
    if isinstance(effect, Adopt):
        if context.is_activity:
            return record, invocation, Refused(400, "there is no object to adopt for")
        problem = _cannot_own(context, effect.child)
        if problem is not None:
            return record, invocation, Refused(400, problem, "CannotOwn")
        manifest, invocation = _own_child(context, record, invocation, effect)
    address = _address_of_effect(context, effect, manifest)
    if isinstance(address, Refused):
        return record, invocation, address
    if isinstance(address, Unreachable):
        return record, _await_address(context, asking, effect, address), None
    problem = cannot_split(effect, address)
    if problem is not None:
        return record, invocation, Refused(400, problem, "CannotSplit")
    in_flight = in_flight_for(
        _keeping_condition(context, record, invocation, effect),
        address,
        manifest=manifest,
        owner_uid=record.body.uid,
        manager=context.settings.marker,
        token=_creation_token(context, record, invocation),
    )
    in_flight = _with_handled_object(context, record, invocation, in_flight)
    if _waits_for_mark(context, record, invocation, effect):
        held = replace(in_flight, awaits_mark=True)
        return record, replace(invocation, awaits=held), None
    wait = context.turn.admit(effect) if isinstance(effect, Call) else 0.0
    if wait > 0:
        waiting = replace(in_flight, due=context.now.mono + wait)
        return record, replace(invocation, awaits=waiting), None
    return record, send(context, invocation, in_flight), None


def _with_handled_object(
    context: Context, record: ObjectRecord, invocation: Invocation, in_flight: InFlight
) -> InFlight:
    """The effect in flight, with the handled object that it changes."""
    effect, key = in_flight.effect, in_flight.requests[0].address.key
    if isinstance(effect, Create):
        before = invocation.done.created.get(key)
        return replace(in_flight, another=before not in (None, digest_of(effect)))
    if not isinstance(effect, (Patch, Apply)):
        return in_flight
    target = record if _is_of(effect, invocation) else context.of(key).record
    base = None if target is None else target.body
    in_flight = replace(in_flight, base=base)
    is_meant = uid_meant(effect) in (None, record.body.uid)
    if in_flight.reads_first and target is record and is_meant:
        return replace(in_flight, guard=record.body)  # so it need not be read
    return in_flight


def _keeping_condition(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Requested
) -> Requested:
    """Return the effect; a patch of conditions keeps the operator's own conditions."""
    if not isinstance(effect, Patch) or not is_own(effect, invocation):
        return effect
    merge = effect.merge or {}
    status = merge.get("status")
    if not isinstance(status, Mapping) or "conditions" not in status:
        return effect
    given = status["conditions"]
    kept = keeping(given, record.body, own_conditions(context))
    if kept == given:
        return effect
    status = {**status, "conditions": kept}
    return replace(effect, merge={**merge, "status": status})


def _is_for_another(
    record: ObjectRecord, invocation: Invocation, effect: Effect
) -> bool:
    """Whether an object other than the handled one has the name by now."""
    body = invocation.situation.body
    is_own = isinstance(effect, Patch) and effect.target is None
    return is_own and body is not None and body.uid != record.body.uid


def _await_address(
    context: Context, invocation: Invocation, effect: Requested, why: Unreachable
) -> Invocation:
    """Return the invocation, waiting until the effect's address is known.

    It waits with backoff, as it does when a server is unavailable.
    """
    in_flight = invocation.in_flight or InFlight(effect, (Request(effect, Address()),))
    waiting = proceed(in_flight, why, context.now, context.turn.jitter())
    assert isinstance(waiting, InFlight)
    return replace(invocation, awaits=waiting)


def _waits_for_mark(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Effect
) -> bool:
    """Whether the object must first store that its handler has begun to act."""
    handler, body = invocation.handler, invocation.situation.body
    if not handler.write_ahead or body is None or rule_of(effect).reads:
        return False
    if isinstance(effect, Patch) and is_own(effect, invocation):
        return False
    own_progress = record.stored.progress.get(handler.id)
    observation = context.kind.observation.as_of(invocation.situation.indices)
    acts_upon = digest_at(body, handler.scope, observation)
    return own_progress is None or own_progress.acted != acts_upon


def _creation_token(
    context: Context, record: ObjectRecord, invocation: Invocation
) -> str:
    """Return the token of the objects that this handler creates for this object."""
    return call_token(context.settings.marker, record.body.uid, invocation.handler.id)


def _is_of(effect: Patch | Apply, invocation: Invocation) -> bool:
    return isinstance(effect, Patch) and is_own(effect, invocation)


def _own_child(
    context: Context, record: ObjectRecord, invocation: Invocation, effect: Adopt
) -> tuple[dict[str, Any], Invocation]:
    """Return the child's manifest, owned by and named after the handled object."""
    resource = context.turn.survey.catalogue.of_manifest(effect.child)
    namespaced = resource is None or resource.namespaced
    owner = (invocation.situation.body or record.body).data
    labels = effect.labels
    if labels is None:
        labels = context.settings.inherited_labels
    child = owned(
        effect.child,
        owner,
        namespaced=namespaced,
        nested=effect.nested,
        labels=labels,
    )
    role = effect.role or str(invocation.done.children)
    if not child["metadata"].get("name"):
        name = stable_name(owner, invocation.handler.id, role)
        child["metadata"]["name"] = name
    return child, invocation.doing(children=invocation.done.children + 1)


def _cannot_own(context: Context, child: Mapping[str, Any]) -> str | None:
    """The reason why the handled object cannot own a child; None if it can.

    The garbage collector looks for an owner in its dependent's own namespace
    (Kubernetes: owners and dependents).
    """
    if not context.key.namespace:
        return None
    resource = context.turn.survey.catalogue.of_manifest(child)
    if resource is not None and not resource.namespaced:
        return (
            f"{child['kind']} is cluster-scoped, and cannot be owned by an object in \
a namespace; create it, and delete it in an on.delete handler"
        )
    namespace = (child.get("metadata") or {}).get("namespace")
    if namespace and namespace != context.key.namespace:
        return "a child must be in its owner's namespace; leave the namespace out, or \
create the object without adopting it"
    return None


def _address_of_effect(
    context: Context, effect: Requested, manifest: Any
) -> _Addressed:
    """Return an effect's address; it waits if its kind may not be discovered yet."""
    if isinstance(effect, Targeted):
        return _address_of_target(context, effect.target)
    if isinstance(effect, Described):
        return _address_of_manifest(context, effect.manifest, context.key)
    match effect:
        case Patch(target=target):
            return (
                _own_address(context)
                if target is None
                else _address_of_target(context, target)
            )
        case List(resource=name, namespace=namespace):
            return _address_by_name(context, name, namespace, None, context.key)
        case Adopt():
            return _address_of_manifest(context, manifest, context.key)
        case Call() | Random():
            return Address()


def _own_address(context: Context) -> _Addressed:
    if context.is_activity:
        return Refused(400, "there is no handled object; give a target")
    key = context.key
    return Address(context.kind.resource, key.namespace or None, key.name)


def _address_of_target(context: Context, target: Target) -> _Addressed:
    name, namespace = target.name, target.namespace
    return _address_by_name(context, target.resource, namespace, name, context.key)


def _address_by_name(
    context: Context, kind: str, namespace: str | None, name: str | None, key: Key
) -> _Addressed:
    resource = context.turn.survey.catalogue.lookup(kind)
    if resource is None:
        return _outcome_for_unknown(
            context, repr(kind), context.turn.survey.catalogue.absence(kind)
        )
    if not resource.namespaced or namespace == "*":
        return Address(resource, None, name)
    return Address(resource, namespace or key.namespace or "default", name)


def _outcome_for_unknown(
    context: Context, kind: str, absence: str
) -> Refused | Unreachable:
    """Return the outcome for a kind that is not served, or not discovered yet."""
    context.turn.rediscover()
    if context.turn.survey.catalogue.complete:
        return Refused(404, absence, "NotFound")
    return Unreachable(f"it is not known yet whether the API server serves {kind}")


def _address_of_manifest(context: Context, manifest: Any, key: Key) -> _Addressed:
    resource = context.turn.survey.catalogue.of_manifest(manifest)
    if resource is None:
        kind = f"{manifest['kind']} of {manifest['apiVersion']}"
        return _outcome_for_unknown(
            context, kind, context.turn.survey.catalogue.absence_of(manifest)
        )
    meta = manifest.get("metadata") or {}
    if not resource.namespaced:
        return Address(resource, None, meta.get("name"))
    namespace = meta.get("namespace") or key.namespace or "default"
    return Address(resource, namespace, meta.get("name"))


def send(context: Context, invocation: Invocation, in_flight: InFlight) -> Invocation:
    """Send the request that is due."""
    request = in_flight.request
    ticket = ForEffect(
        context.key,
        invocation.serial,
        invocation.handler.id,
        rule_of(request.effect).is_outside,
    )
    subject = (
        None if context.is_activity else context.subject(invocation.situation.body)
    )
    number = context.turn.perform(request.effect, request.address, ticket, subject)
    sent = replace(in_flight, id=number, due=None, awaits_mark=False)
    tell_asked(context, invocation, in_flight)
    return replace(invocation, awaits=sent)


def tell(
    context: Context,
    invocation: Invocation,
    lines: tuple[Log, ...],
    failure: BaseException | None = None,
) -> None:
    """Log the lines of an attempt; the last is about its failure, if it failed."""
    for position, line in enumerate(lines, start=1):
        context.say(
            line.level,
            line.message,
            body=invocation.situation.body,
            handler=invocation.handler.id,
            fields=tuple(sorted(line.fields.items())),
            exception=line.exception,
            act=act_of(failure) if position == len(lines) else None,
        )
        note_line(context, invocation.handler, line.level, line.message)


def is_own(effect: Patch, invocation: Invocation) -> bool:
    """Whether a patch is about the handled object."""
    target, body = effect.target, invocation.situation.body
    if effect.subresource not in (None, "status"):
        return False  # other subresources, such as scale, get their own request
    return target is None or (
        body is not None and target.uid is not None and target.uid == body.uid
    )
