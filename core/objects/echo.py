"""After an own write: views from before it, the view with it, and none that comes."""

from __future__ import annotations

from fnop.core.state.address import Address
from fnop.core.state.context import Context
from fnop.core.state.record import Echo, Known
from fnop.core.state.requests import ForEcho, ForWrite
from fnop.core.values.body import Body, is_behind
from fnop.effects import (
    Applied,
    Get,
    Missing,
    Outcome,
    Target,
)

__all__ = ["answer_echo", "look_at", "read_live", "shown", "vanished"]


def shown(context: Context, known: Known, body: Body) -> Known:
    """Take the answer to an own write as the freshest state of the object.

    The object is not reconciled before the watch has shown that version; an
    answer that changed nothing has nothing to be shown (R24).
    """
    if body.version == known.body.version:
        return known._replace(body=body, learned=context.step)
    if body.version in known.shown or is_behind(body.version, known.body.version):
        return known  # the watch has shown it, and what came after it
    echo = echo_of(context, body.version)
    return known._replace(body=body, echo=echo, learned=context.step)


def echo_of(context: Context, version: str, *, passes: bool = False) -> Echo:
    """Wait for the watch to show this version, for a bounded time."""
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    return Echo(version, context.step, deadline, passes=passes)


def vanished(context: Context, known: Known) -> Known:
    """A live answer does not know the object any more; the watch is to say so too."""
    step = context.step
    return known._replace(vanished=True, echo=echo_of(context, ""), learned=step)


def read_live(context: Context, ticket: ForEcho | ForWrite) -> int:
    """Read the handled object live."""
    resource, namespace = (
        context.kind.resource,
        context.key.namespace or None,
    )
    read = Get(Target.existing(resource.key, context.key.name, namespace))
    address = Address(resource, namespace, context.key.name)
    return context.perform(read, address, ticket, context.subject())


def look_at(context: Context, known: Known) -> None:
    """The watch has not shown an own write in time: a live read, never blind."""
    assert known.echo is not None
    read_live(context, ForEcho(context.key, known.body.uid))
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    echo = known.echo._replace(looking=True, deadline=deadline)
    context.put(known._replace(echo=echo))


def answer_echo(context: Context, ticket: ForEcho, outcome: Outcome) -> None:
    """The live read after an echo that did not come."""
    known = context.known
    if known is None or known.echo is None or known.body.uid != ticket.uid:
        return
    echo = known.echo
    match outcome:
        case Applied(object=dict() as found):
            body = Body(found)
            if body.uid != known.body.uid:
                context.bury(known.body.uid)
                known = known._replace(gone=True, echo=None)
            elif body.version in (*known.shown, echo.version):
                # Nothing newer: the watch has shown it, or will not any more.
                known = known._replace(body=body, vanished=False, echo=None)
            else:
                # The watch is late: what it shows before this version is older.
                fresh = echo_of(context, body.version, passes=True)
                known = known._replace(
                    body=body, vanished=False, echo=fresh, learned=context.step
                )
        case Missing(unserved=False):
            context.bury(known.body.uid)
            known = known._replace(gone=True, echo=None)
        case _:
            again = context.now.mono + context.settings.echo_timeout_seconds
            waiting = echo._replace(looking=False, deadline=again)
            known = known._replace(echo=waiting)
    context.put(known)
    context.due()
