"""The cost of the core in bytecode instructions: it is the same on each machine.

    python -m bench.costs            # measure, next to the committed figures
    python -m bench.costs --write    # commit to the present figures

A round is one of `bench.suffix`, such as the creation of an object. The count covers
the core alone, from the input of a step to its commands. It depends on the minor
version of Python, so the figures in `costs.json` are kept by version. Use 3.11: later
versions do not report all instructions to a tracer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from bench.suffix import ROUNDS, settled

COMMITTED = Path(__file__).with_suffix(".json")
ROUNDS_COUNTED = ("create", "create, child", "edit", "edit, child", "restart")
# A change by more than this part needs new committed figures, and a reason.
TOLERANCE = 0.05

_CORE = ("/core/", "/effects/")


def version() -> str:
    """The minor version of Python that runs this."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def committed(python: str) -> dict[str, int] | None:
    """The committed figures for a version of Python; None if there are none."""
    found: dict[str, dict[str, int]] = json.loads(COMMITTED.read_text())
    return found.get(python)


def measured() -> dict[str, int]:
    """Count the instructions of one round of each kind."""
    return {name: _instructions_of(name) for name in ROUNDS_COUNTED}


def _instructions_of(name: str) -> int:
    registry, roomy, play = ROUNDS[name]
    run = settled(registry, roomy=roomy)
    play(run.fork())  # fills the caches
    return counted(lambda: play(run.fork()))


def counted(work: Callable[[], object]) -> int:
    """Count the bytecode instructions that the core executes meanwhile.

    >>> counted(lambda: None)
    0
    """
    count = 0

    def on_call(frame: FrameType, event: str, arg: object) -> Any:
        if not any(part in frame.f_code.co_filename for part in _CORE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return on_instruction

    def on_instruction(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "opcode"
        return on_instruction

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="commit to these figures")
    options = parser.parse_args()
    found, known = measured(), committed(version()) or {}
    for name, count in found.items():
        before = known.get(name)
        ratio = "" if before is None else f"{count / before - 1:+8.1%}"
        print(f"{name:15} {count:7} instructions{ratio}")
    if options.write:
        kept = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
        kept[version()] = found
        COMMITTED.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
