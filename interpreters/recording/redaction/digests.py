"""The digests of redacted objects: a replay computes them from the recorded content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fnop.core.children.restoring import (
    applied_digests,
    recorded_digest,
    sent_digests,
)
from fnop.core.handlers.program.program import Program
from fnop.core.memory.observation import Observation, see
from fnop.core.values.body import Body
from fnop.interpreters.recording.redaction.copies import Substitutions

__all__ = ["Digests"]


class Digests:
    """The new digests of objects whose contents a redaction changes."""

    def __init__(self, program: Program) -> None:
        scopes = {(), *(each.field for each in program.handlers)}
        settings = program.settings
        self._observation = Observation(
            tuple(sorted(scopes)),
            ignored=settings.ignored,
            own=settings.places.paths,
            hidden=settings.hidden,
        )

    def learn(
        self, before: dict[str, Any], after: dict[str, Any], into: Substitutions
    ) -> None:
        """Take note of the new digests of an input's objects."""
        were, are = _objects_in(before), _objects_in(after)
        for one, other in zip(were, are, strict=True):
            if one is other:
                continue
            was = see(Body(one), self._observation).digests
            is_ = see(Body(other), self._observation).digests
            for scope, digest in was.items():
                into.add(
                    _digest_without_version(digest), _digest_without_version(is_[scope])
                )
            _learn_manifest_digests(one, other, into)

    def learn_sent(
        self,
        before: Iterable[dict[str, Any]],
        after: Iterable[dict[str, Any]],
        into: Substitutions,
    ) -> None:
        """Take note of the new digests of manifests in commands."""
        for one, other in zip(before, after, strict=True):
            if one is not other and one["do"] == "Perform":
                was, is_ = one["effect"].get("manifest"), other["effect"]
                if isinstance(was, dict):
                    _learn_manifest_digests(was, is_["manifest"], into, sent_digests)


def _learn_manifest_digests(
    before: dict[str, Any],
    after: dict[str, Any],
    into: Substitutions,
    digests: Callable[[dict[str, Any]], Sequence[str]] = applied_digests,
) -> None:
    """Take note of the new digests of a child's manifest.

    The author may write the same content in another form the next time. An example is
    `data`, copied from the child, instead of the `stringData` from which it came.
    """
    if recorded_digest(before):
        for was, is_ in zip(digests(before), digests(after), strict=False):
            into.add(was, is_)


def _digest_without_version(digest: str) -> str:
    """A digest without its version, as several texts contain it."""
    return digest.partition(":")[2]


def _objects_in(input: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that an input shows, in an order that redaction does not change."""
    outcome = input.get("outcome") or {}
    found = [input.get("body"), outcome.get("object"), outcome.get("value")]
    if isinstance(found[2], dict):
        found.append(found[2].get("items"))
    listed = [item for each in found if isinstance(each, list) for item in each]
    return [
        each
        for each in (*found, *listed)
        if isinstance(each, dict) and isinstance(each.get("metadata"), dict)
    ]
