"""Kopf's log lines about pauses: an operator with a higher priority serves instead.

fnop's own lines about them are details, which only `--verbose` shows.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from fnop.core.peers.freezing import Frozen, PeeringVerdict, Serving, Why
from fnop.core.peers.peers import Peer

__all__ = ["Pauses"]

_LOG = logging.getLogger("kopf.peering")


class Pauses:
    """Follows the verdicts of peering, and logs those that Kopf logs, too.

    fnop warns of all other pauses itself.
    """

    def __init__(self) -> None:
        self._before: PeeringVerdict | None = None
        self._is_paused: bool | None = None

    def see(self, verdict: PeeringVerdict | None, *, mandatory: bool = False) -> None:
        """Log a verdict if it is not the one before.

        In Kopf an operator with a mandatory peering begins paused, and says only that
        it resumes.
        """
        if self._is_paused is None:
            self._is_paused = mandatory
        before, self._before = self._before, verdict
        if verdict is before:
            return
        match verdict:
            case None | Frozen(Why.JOINING | Why.LEFT):
                return
            case Frozen(Why.OUTRANKED, peers) if not self._is_paused:
                shown = ", ".join(map(_shown, peers))
                _LOG.info(f"Pausing operations in favour of [{shown}].")
            case Serving() if self._is_paused:
                _LOG.info(
                    "Resuming operations after the pause. Conflicting operators with "
                    "the same priority are gone."
                )
        self._is_paused = isinstance(verdict, Frozen)


def _shown(peer: Peer) -> str:
    """
    >>> _shown(Peer("dev", priority=666, lastseen=0.5))
    "<Peer dev: priority=666, lifetime=60, lastseen='1970-01-01T00:00:00.500000+00:00'>"
    """
    seen = datetime.fromtimestamp(peer.lastseen or 0.0, UTC).isoformat()
    return (
        f"<Peer {peer.identity}: priority={peer.priority}, "
        f"lifetime={int(peer.lifetime)}, lastseen={seen!r}>"
    )
