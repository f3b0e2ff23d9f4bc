"""Namespaces that the operator should serve, and that may not exist.

For a namespace that does not exist, the API server returns an empty list. A mistyped
name would go unnoticed. So the operator requests the namespaces that look empty.
"""

from __future__ import annotations

from fnop.core.api.namespaces import has_patterns
from fnop.core.api.resources import Resource
from fnop.core.state.address import Address
from fnop.core.state.requests import ForNamespace
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import StreamPurpose
from fnop.effects import Get, Missing, Outcome, Target, Witness

__all__ = ["ABSENT", "look_for_namespaces", "on_namespace"]

# The beginning of the warning.
ABSENT = "there is no namespace "

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def look_for_namespaces(turn: Turn) -> None:
    """Request the named namespaces without any found objects.

    A Role in the namespace may grant that, but need not: the answer is only for a
    warning.
    """
    if has_patterns(turn.settings.namespaces or ()):
        return
    served = {each.namespace for each in turn.streams.each(StreamPurpose.OBJECTS)}
    filled = {key.namespace for key, _ in turn.objects.all()}
    for name in sorted(each for each in served if each and each not in filled):
        with Witness.looking_away():
            effect = Get(Target("namespaces", name))
        turn.perform(effect, Address(_NAMESPACES, None, name), ForNamespace(name), None)


def on_namespace(turn: Turn, name: str, outcome: Outcome) -> None:
    """Warn about a missing namespace; without the right to know, say nothing."""
    if isinstance(outcome, Missing):
        turn.say(
            "warning",
            f"{ABSENT}{name!r}: its objects are served once it is there; "
            "check the name given by -n or namespaces=",
        )
