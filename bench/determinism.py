"""`python -m bench.determinism [PAIRS [SEED]]`: equal schedules have equal digests.

It runs random schedules of the examples twice each: alternately from a fork of the
benign run and from the beginning. A difference is a defect of the simulator.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle

from bench.sweep import cases_named
from fnop.adapters.common.collector import calm_collector
from fnop.interpreters.check.campaign.explore import Explorer, digest_of
from fnop.interpreters.check.properties.evidence import seen_by
from fnop.interpreters.check.state.kinds import Schedule, in_words
from fnop.interpreters.check.trials.trial import Trial

NAMES = ("01-minimal", "04-events", "05-handlers", "13-hooks", "16-indexing")


def digests(explorer: Explorer, schedule: Schedule, *, whole: bool) -> tuple[str, str]:
    """The digests of two runs of a schedule."""
    first = explorer.trial_of(schedule).play()
    if whole:
        scene, limits = explorer.reference.scene, explorer.reference.limits
        second = Trial(scene, schedule, limits=limits).play()
    else:
        second = explorer.trial_of(schedule).play()
    return digest_of(seen_by(first)), digest_of(seen_by(second))


def main(pairs: int, seed: int = 7) -> int:
    """Compare pairs, and print the number that differ, also after every thousand."""
    calm_collector()  # as the command does
    explorers = [Explorer(case) for name in NAMES for case in cases_named(name)]
    begun, differing = time.process_time(), 0
    sources = [each.random(pairs, seed=seed) for each in explorers]
    for number, (explorer, source) in zip(
        range(pairs), cycle(zip(explorers, sources, strict=True))
    ):
        schedule = next(source)
        one, other = digests(explorer, schedule, whole=number % 2 == 0)
        if one != other:
            differing += 1
            print(f"[{explorer.case.name}] {in_words(schedule)}", flush=True)
        if number % 1_000 == 999:
            print(f"{number + 1} pairs, {differing} differ", flush=True)
    seconds = time.process_time() - begun
    print(f"{pairs} pairs, {differing} differ, {seconds:.0f} s of CPU")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["1000"])))
