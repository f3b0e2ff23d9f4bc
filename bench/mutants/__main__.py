"""`python -m bench.mutants [NAME...]`: the number of mutants that the properties kill.

For each operator, at most `--each` mutants of each sort are tried, spread over its
lines; `--each 0` tries all. The report comes at the end; meanwhile stderr gets a line
for each operator.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from bench.mutants.report import lines_of, score_of
from bench.mutants.running import judged_all
from bench.mutants.subjects import subjects

# The mutants of each sort that are made of each operator: few, for a short run.
EACH = 1


def main(arguments: Sequence[str]) -> int:
    """Print the tables, the alarms and the survivors."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants")
    parser.add_argument("names", nargs="*", help="subjects, by how their names begin")
    parser.add_argument("--each", type=int, default=EACH, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    options = parser.parse_args(arguments)
    found = subjects()
    if options.names:
        begin = tuple(options.names)
        found = [each for each in found if each.name.startswith(begin)]
    begun = time.monotonic()
    results = []
    for each in judged_all(found, options.each, options.jobs):
        killed, counted = score_of(each.outcomes)
        words = f"{killed} of {counted} killed, {len(each.alarms)} alarms"
        print(
            f"{each.name}: {words}, {each.seconds:.0f} s", file=sys.stderr, flush=True
        )
        results.append(each)
    lines = lines_of(
        [outcome for each in results for outcome in each.outcomes],
        [(each.name, alarm) for each in results for alarm in each.alarms],
        [(each.name, alarm) for each in results for alarm in each.purposes],
    )
    for line in lines:
        print(line)
    taken = sum(each.seconds for each in results)
    print(f"{time.monotonic() - begun:.0f} s, {taken:.0f} s of CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
