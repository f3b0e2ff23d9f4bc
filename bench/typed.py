"""The cost of typed objects: a spec of twenty fields, read as each kind of class.

    python -m bench.typed [--times 20000]

Printed are microseconds of CPU for one reading, the least of five rounds, beside what
making the object from values that are read already takes, and its ratio to the reading.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import field, make_dataclass
from functools import partial
from typing import Any, TypedDict

import msgspec
import pydantic

from fnop.core.values.models import reader_of
from fnop.effects.values import read_only

ROUNDS = 5
FIELDS: list[tuple[str, type]] = [
    (f"field{number}", (int, str, bool, list[str])[number % 4]) for number in range(20)
]
SPEC = read_only(
    {f"field{n}": (n, "text", True, ["a", "b"])[n % 4] for n in range(len(FIELDS))}
)


def classes() -> dict[str, Any]:
    """The classes of such a spec, by the library that makes them."""
    with_defaults = [(n, t, field(default_factory=t)) for n, t in FIELDS]
    models: dict[str, Any] = {name: (each, ...) for name, each in FIELDS}
    return {
        "dataclass": make_dataclass("Spec", with_defaults, frozen=True),
        "TypedDict": TypedDict("Spec", dict(FIELDS)),  # type: ignore[operator]
        "msgspec": msgspec.defstruct("Spec", FIELDS, frozen=True),
        "pydantic": pydantic.create_model("Spec", **models),
    }


def microseconds(work: Callable[[], object], times: int) -> float:
    """The CPU time of one call: the least of some rounds."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - began) / times * 1e6)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20_000)
    times = parser.parse_args().times
    print(f"{'class':12}{'read, us':>10}{'made, us':>10}{'ratio':>8}")
    for name, cls in classes().items():
        read = microseconds(partial(reader_of(cls), SPEC), times)
        made = microseconds(partial(cls, **SPEC), times)
        print(f"{name:12}{read:10.1f}{made:10.1f}{read / made:8.1f}")


if __name__ == "__main__":
    main()
