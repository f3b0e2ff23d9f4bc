"""Compare what was seen with the truth: how old it was, and what differs.

The truth is what existed at a step, as far as it was ever learnt. In a recording of a
check it is the cluster itself. In other recordings it also includes what the operator
was shown only later.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fnop.core.values.paths import Contrast, contrasts
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.questions.steps import Past, Steps

__all__ = ["Beside", "View", "operator_view", "view_of"]


class Beside(Struct, frozen=True):
    """A version of an object that was seen, and the one that exists.

    `seen` is None if nothing was seen, and `truth` is None if the object does not
    exist. `revisions` counts the newer versions, and `seconds` is the time since the
    first of them existed. `differing` are the fields that differ, the truth first.
    """

    object: Ref
    seen: Revision | None
    truth: Revision | None
    revisions: int = 0
    seconds: float = 0.0
    differing: tuple[Contrast, ...] = ()


class View(Struct, frozen=True):
    """The objects that the handler of a call was shown or has read by a step."""

    attempt: Attempt
    sights: tuple[Beside, ...]


def view_of(attempt: Attempt, steps: Steps, step: int) -> View:
    """The last sight of each object that an attempt had by a step."""
    seen: dict[Ref, Revision | None] = {}
    for each in steps.behind.sightings(attempt):
        if each.step <= step:
            seen[each.object] = each.revision
    known = (
        _compare_with_truth(ref, found, steps, step) for ref, found in seen.items()
    )
    return View(attempt, tuple(known))


def operator_view(ref: Ref, steps: Steps, step: int) -> Beside:
    """The version of an object that the operator had been shown by a step."""
    past = steps.pasts.get(ref)
    number = -1 if past is None else past.shown_by(step)
    found = None if past is None or number < 0 else past.versions[number]
    is_gone = found is not None and found.gone
    return _compare_with_truth(ref, None if is_gone else found, steps, step)


def _compare_with_truth(
    ref: Ref, seen: Revision | None, steps: Steps, step: int
) -> Beside:
    past = steps.pasts.get(ref, Past((), ()))
    now = past.at(step)
    there = past.versions[now] if now >= 0 else None
    truth = None if there is None or there.gone else there
    if seen is None:
        return Beside(ref, None, truth)
    then = next(_place_of_version(seen, past), now)
    if then >= now:
        return Beside(ref, seen, truth if then == now else seen)
    seconds = max(0.0, steps.wall(step) - past.versions[then + 1].wall)
    pair = (None, None) if truth is None else (truth.data, seen.data)
    return Beside(ref, seen, truth, now - then, seconds, (*contrasts(*pair),))


def _place_of_version(seen: Revision, past: Past) -> Iterator[int]:
    """The number of a version among the versions of its object."""
    return (number for number, each in enumerate(past.versions) if each is seen)
