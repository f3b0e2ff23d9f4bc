"""Admission handlers that were not asked in any run: laws cannot judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from fnop.core.admission.decisions import Decision
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.webhook import Webhook
from fnop.interpreters.check.admission.admitting import Admitting
from fnop.interpreters.check.state.grounds import placed

__all__ = ["Unasked", "unasked_by", "unjudged_by", "unshown_by"]

# The handlers that a law never heard, by the property; laws that heard all are absent.
Unasked = Mapping[str, tuple[Handler, ...]]


class _Subject(Struct, frozen=True):
    """The handlers that a law is about, and the requests that it hears them in."""

    concerns: Callable[[Handler, Webhook], bool]
    operations: frozenset[str] = frozenset(("CREATE", "UPDATE", "DELETE", "CONNECT"))


def _is_for_updates(handler: Handler, webhook: Webhook) -> bool:
    return webhook.is_about("UPDATE", webhook.subresource or "")


def _is_for_deletions(handler: Handler, webhook: Webhook) -> bool:
    # A mutation is asked about deletions only if it names them alone.
    is_asked = not handler.rule.mutates or webhook.operations == ("DELETE",)
    return is_asked and webhook.is_about("DELETE", "")


def _is_for_changes(handler: Handler, webhook: Webhook) -> bool:
    return handler.rule.mutates and webhook.operations != ("DELETE",)


_SUBJECTS = {
    "deletable": _Subject(_is_for_deletions, frozenset(("DELETE",))),
    "updatable": _Subject(_is_for_updates, frozenset(("UPDATE",))),
    "idempotent": _Subject(_is_for_changes),
    "accepted": _Subject(_is_for_changes),
    "traceless": _Subject(lambda handler, webhook: True),
    "steady": _Subject(lambda handler, webhook: not handler.rule.mutates),
}


def unasked_by(several: Sequence[Admitting]) -> Unasked:
    """The handlers that none of these runs has asked in the way that a law needs.

    The decisions of the runs themselves come first: the others take some time.
    """
    handlers = {e.id: e for each in several for e in each.handlers}
    left = {
        (law, each.id)
        for each in handlers.values()
        for law, subject in _SUBJECTS.items()
        if each.role in ADMISSION and each.webhook is not None
        if subject.concerns(each, each.webhook)
    }
    for decisions in _decisions(several):
        left -= {*_laws_and_handlers(decisions)}
        if not left:
            break
    return {
        law: found
        for law in _SUBJECTS
        if (found := tuple(e for e in handlers.values() if (law, e.id) in left))
    }


def unjudged_by(several: Sequence[Admitting]) -> Mapping[Handler, str]:
    """The handlers that no run shows to release an object.

    Each has denied all deletions because of other things, which are the value.
    """
    found = {handler: words for each in several for handler, words in each.unjudged}
    if not found:
        return {}
    admitted = {
        handler
        for each in several
        for decision in each.decisions
        if decision.request.operation == "DELETE"
        for handler, result in decision.results.items()
        if result == "allowed"
    }
    return {each: words for each, words in found.items() if each.id not in admitted}


def unshown_by(several: Sequence[Admitting]) -> Mapping[str, str]:
    """The properties that the runs cannot judge, each with the reason."""
    reasons = {
        law: f"never asked: {', '.join(map(placed, handlers))}"
        for law, handlers in unasked_by(several).items()
    }
    blind = unjudged_by(several).items()
    if blind and "deletable" not in reasons:
        told = (f"{placed(each)} reads {words}" for each, words in blind)
        reasons["deletable"] = f"not judged: {', '.join(told)}"
    return reasons


def _decisions(several: Sequence[Admitting]) -> Iterator[Iterable[Decision]]:
    """The decisions of the runs, and then those about writes that are tried again."""
    yield from (each.reviewed for each in several)
    for each in several:
        yield each.decisions


def _laws_and_handlers(decisions: Iterable[Decision]) -> Iterator[tuple[str, str]]:
    """The laws, each with the id of a handler that it hears by these decisions."""
    for decision in decisions:
        for law, subject in _SUBJECTS.items():
            if decision.request.operation in subject.operations:
                yield from ((law, each) for each in decision.asked)
