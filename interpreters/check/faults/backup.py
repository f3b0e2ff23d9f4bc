"""F21: the cluster is restored from a backup."""

from __future__ import annotations

from fnop.interpreters.check.state.behaviour import Ahead, Behaviour
from fnop.interpreters.check.state.kinds import REST, Fault, FaultKind, Trait
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.cluster import Cluster

__all__ = ["BEHAVIOUR"]


class Backup(Behaviour):
    """The cluster is what it was before the last action, and the user does it again."""

    kinds = (
        FaultKind(
            "F21",
            "backup",
            REST,
            "the cluster is restored from a backup made before {site}, which is done "
            "again",
            540,
            Trait.MERGES | Trait.SPECIAL | Trait.DELETES | Trait.REWINDS,
        ),
    )

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the user has done something."""
        return visit.place > 0

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Restore the cluster."""
        backup, run, journal = _backup_of(state), state.run, state.journal
        run.cluster = backup
        journal.writes = [e for e in journal.writes if e.after <= backup.version]
        for source in sorted(run.reads.watches.kinds):
            run.reads.watches.breaks(source, reason="unreachable")
        run.reads.logs.breaks(run.clock.now())
        state.user.place -= 1
        state.user.rested = state.user.place
        return True


def _backup_of(state: TrialState) -> Cluster:
    """The cluster at the last rest but one; at first, before the operator began."""
    rests = [*state.journal.rests.values()]
    return rests[-2].cluster if len(rests) > 1 else state.scene.base.cluster


BEHAVIOUR = Backup()
