"""Count the conformance cases: python -m tests.conformance.totals"""

from __future__ import annotations

from collections.abc import Iterable

from tests.conformance.cases import CASES, TOPICS
from tests.conformance.golden import recorded
from tests.conformance.servers import SERVERS
from tests.conformance.suite import Case

HEAD = ("topic", "cases", "steps", *SERVERS, "documentation", "partly compared")


def row(topic: str, cases: Iterable[Case]) -> tuple[str, ...]:
    """The number of cases, and of comparisons with each server."""
    found = list(cases)
    numbers = (
        len(found),
        sum(len(case.steps) for case in found),
        *(sum(server in case.servers for case in found) for server in SERVERS),
        sum(not case.servers for case in found),
        sum(partial_steps(case) for case in found),
    )
    return topic, *map(str, numbers)


def partial_steps(case: Case) -> int:
    """The steps of whose recorded answers only parts are compared."""
    steps = [step for server in case.servers for step in recorded(case, server) or ()]
    return sum("answer" not in step for step in steps)


def main() -> None:
    rows = [row(topic, cases) for topic, cases in TOPICS.items()]
    for line in (HEAD, *rows, row("all", CASES)):
        print(line[0].ljust(14), *(each.rjust(8) for each in line[1:]))


if __name__ == "__main__":
    main()
