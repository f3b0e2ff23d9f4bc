"""Trials at rests that several scripts share, as starting points.

The scripts of an operator begin alike: all create the object, and some then edit it. A
fault during the creation leads to the same rest in each of them, and the trials part
only at the user's next action. So the first trial leaves a fork there, and the others
continue from it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from fnop.interpreters.check.state.kinds import Schedule
from fnop.interpreters.check.state.records import Limits
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.actions import Action
from fnop.interpreters.simulation.simulation import CannotFork

__all__ = ["Rests"]

# The most forks that are kept: those that were unused for longest are dropped first.
KEPT_MAX = 1000


class Rests:
    """The forks that trials of several scripts, in one world, have left behind.

    A rest has a name: the first script that begins with the actions up to there, and
    their number. Only rests at which scripts part are kept.
    """

    def __init__(self, scripts: Sequence[tuple[Action, ...]]) -> None:
        self._lengths = [*map(len, scripts)]
        self._names: list[dict[int, int]] = []
        for script in scripts:
            names = {}
            for place in range(1, len(script) + 1):
                alike = [
                    (number, each[: place + 1])
                    for number, each in enumerate(scripts)
                    if each[:place] == script[:place]
                ]
                if any(longer != alike[0][1] for _, longer in alike):
                    names[place] = alike[0][0]
            self._names.append(names)
        self._forks: OrderedDict[tuple[Schedule, int, int], Trial] = OrderedDict()

    def keep(self, number: int, schedule: Schedule, trial: Trial) -> None:
        """Keep a fork of the trial of a script, which has reached a rest.

        At the end of its script, a trial ends everything that lasts until the user
        continues. This rest does not occur in a longer script.
        """
        place = trial.state.user.place
        name = self._names[number].get(place)
        is_over = place >= len(trial.scene.script)
        if name is None or is_over or trial.state.left or trial.journal.unsettled:
            return
        with suppress(CannotFork):
            self._forks.setdefault((schedule, name, place), trial.fork())
        if len(self._forks) > KEPT_MAX:
            self._forks.popitem(last=False)

    def latest(self, number: int, schedule: Schedule, limits: Limits) -> Trial | None:
        """A trial of the schedule at the latest rest that another script has left."""
        names = self._names[number]
        for place in sorted(names, reverse=True):
            key = schedule, names[place], place
            found = self._forks.get(key)
            if found is None or found.state.turns > limits.turns:
                continue
            self._forks.move_to_end(key)
            goes_on = place < self._lengths[number]
            if goes_on or not (found.state.in_force.holds or found.state.in_force.late):
                return found.fork()
        return None
