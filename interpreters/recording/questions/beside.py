"""What somebody saw, beside the truth: how old that was, and what differs.

The truth is what was there at a step, as far as anybody ever learnt it: in a recording
of a check the cluster itself, in others also what the operator was shown only later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fnop.core.values.paths import Contrast, contrasts
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.revisions import Ref, Revision
from fnop.interpreters.recording.questions.steps import Past, Steps

__all__ = ["Beside", "View", "operator_view", "view_of"]


class Beside(NamedTuple):
    """A version of an object that was seen, and the one that is there.

    `seen` is None where nothing was seen, `truth` None where the object is not there.
    `revisions` counts the versions that are newer, `seconds` is the time since the
    first of them was there.  `differing` are the fields, the truth first.
    """

    object: Ref
    seen: Revision | None
    truth: Revision | None
    revisions: int = 0
    seconds: float = 0.0
    differing: tuple[Contrast, ...] = ()


class View(NamedTuple):
    """What the handler of a call was shown and has read by a step."""

    attempt: Attempt
    sights: tuple[Beside, ...]


def view_of(attempt: Attempt, steps: Steps, step: int) -> View:
    """The last sight of each object that an attempt had by a step."""
    seen: dict[Ref, Revision | None] = {}
    for each in steps.behind.sightings(attempt):
        if each.step <= step:
            seen[each.object] = each.revision
    known = (_beside(ref, found, steps, step) for ref, found in seen.items())
    return View(attempt, tuple(known))


def operator_view(ref: Ref, steps: Steps, step: int) -> Beside:
    """What the operator had been shown of an object by a step."""
    past = steps.pasts.get(ref)
    number = -1 if past is None else past.shown_by(step)
    found = None if past is None or number < 0 else past.versions[number]
    is_gone = found is not None and found.gone
    return _beside(ref, None if is_gone else found, steps, step)


def _beside(ref: Ref, seen: Revision | None, steps: Steps, step: int) -> Beside:
    past = steps.pasts.get(ref, Past((), ()))
    now = past.at(step)
    there = past.versions[now] if now >= 0 else None
    truth = None if there is None or there.gone else there
    if seen is None:
        return Beside(ref, None, truth)
    then = next(_places(seen, past), now)
    if then >= now:
        return Beside(ref, seen, truth if then == now else seen)
    seconds = max(0.0, steps.wall(step) - past.versions[then + 1].wall)
    pair = (None, None) if truth is None else (truth.data, seen.data)
    return Beside(ref, seen, truth, now - then, seconds, (*contrasts(*pair),))


def _places(seen: Revision, past: Past) -> Iterator[int]:
    """Where a version stands among those of its object."""
    return (number for number, each in enumerate(past.versions) if each is seen)
