"""Damaged recordings: show the part before the damage, and then its place.

All modes read such a recording as one that is cut off there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fnop.adapters.common.endings import EXIT_DAMAGED, fail
from fnop.effects.structs import replace

if TYPE_CHECKING:
    from fnop.interpreters.recording.format.reader import RecordingLimits

__all__ = ["as_far_as_it_goes"]


@contextmanager
def as_far_as_it_goes(
    limits: RecordingLimits, name: str = ""
) -> Iterator[RecordingLimits]:
    """Limits with which a damaged recording is read up to the damage.

    At the end of the block the damage is reported, even after an error, and the command
    ends with the status of damage. `name` is for commands with several recordings.
    """
    from fnop.interpreters.recording.format.reader import Damage

    damage = Damage()
    try:
        yield replace(limits, damage=damage)
    finally:
        if damage.problem is not None:
            fail(
                f"{name}: {damage.problem}" if name else str(damage.problem),
                EXIT_DAMAGED,
            )
