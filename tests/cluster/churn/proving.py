"""The recordings of a run must show that nothing is decided differently.

Each recording is decided again, shown as a story, examined with `--shadow`, and
compared with itself, by the commands that a user has. The recording of a killed process
is cut off, and identical as far as it goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.churn.failing import OPERATOR
from tests.commands import Done, fnop

__all__ = ["Proof", "proved"]

# A process that ended before its first step has recorded nothing.
_NOTHING = re.compile("the recording is (empty|cut off before its first record)")
_VERDICT = re.compile(
    r"^(?:identical: (?P<whole>\d+) steps?"
    r"|fnop: identical for (?P<part>\d+) steps?, where the recording is cut off: .*)$",
    re.M,
)
_CHANGED = re.compile(r"^0 of ([\d,]+) recorded decisions change$", re.M)
_UNTOLD = re.compile(r"^(\d+) decisions? (cannot be [^:]*: .*)$", re.M)
_EQUAL = re.compile(r"^no difference in (\d+) decisions? of handlers$", re.M)


@dataclass
class Proof:
    """The results of the recordings; `problems` are the differences.

    `untold` counts the decisions that could not be compared, by the reason.
    """

    whole: int = 0
    cut_off: int = 0
    empty: int = 0
    steps: int = 0
    decisions: int = 0
    size: int = 0
    seconds: float = 0.0
    untold: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        untold = ", ".join(f"{n} {why}" for why, n in self.untold.most_common())
        return "\n".join(
            (
                f"recordings: {self.whole} whole, {self.cut_off} cut off, {self.empty} "
                f"without a step; {self.size / 1e6:.1f} MB",
                f"decided again: {self.steps:,} steps, in {self.seconds:.1f} s (CPU)",
                f"asked again: {self.decisions:,} decisions; not asked: {untold or 0}",
                f"problems: {len(self.problems)}",
                *(f"  {each}" for each in self.problems[:50]),
            )
        )


def proved(files: Sequence[Path], folder: Path) -> Proof:
    """Ask each recording; the largest one also as a page."""
    proof = Proof()
    for file in files:
        proof.size += file.stat().st_size
        proof.problems += (f"{file.name}: {each}" for each in _asked(file, proof))
    largest = max(files, key=lambda each: each.stat().st_size, default=None)
    if largest is not None:
        proof.problems += _drawn(largest, folder)
    return proof


def _asked(file: Path, proof: Proof) -> Iterator[str]:
    """Examine one recording; return its differences."""
    done = _fnop(file.parent, "replay", file, OPERATOR)
    if done.status == 3 and _NOTHING.search(done.err):
        proof.empty += 1
        return
    proof.seconds += done.cpu_seconds
    found = _VERDICT.search(done.out + done.err)
    if found is None or done.status != (0 if found["whole"] else 4):
        yield _told(done)
        return
    proof.whole += found["whole"] is not None
    proof.cut_off += found["part"] is not None
    proof.steps += int(found["whole"] or found["part"])
    for check in (_told_again, _shadowed, _compared):
        yield from check(file, proof, done.status)


def _told_again(file: Path, _: Proof, __: int) -> Iterator[str]:
    done = _fnop(file.parent, "replay", file)
    if done.status or "the operator starts" not in done.out:
        yield f"its story: {_told(done)}"


def _shadowed(file: Path, proof: Proof, _: int) -> Iterator[str]:
    done = _fnop(file.parent, "replay", file, OPERATOR, "--shadow", "--fail-on", "any")
    found = _CHANGED.search(done.out)
    if done.status or found is None:
        yield f"--shadow: {_told(done)}"
        return
    proof.decisions += int(found[1].replace(",", ""))
    for number, why in _UNTOLD.findall(done.out):
        proof.untold[_general(why)] += int(number)


def _general(why: str) -> str:
    """A reason without the names of the object.

    >>> _general("cannot be asked again: pods.v1. n/a in version 7 is not there")
    'cannot be asked again: pods.v1. * in version * is not there'
    """
    return re.sub(r" \S+ in version \S+ ", " * in version * ", why)


def _compared(file: Path, _: Proof, status: int) -> Iterator[str]:
    done = _fnop(file.parent, "diff", file, file)
    if done.status != status or not _EQUAL.search(done.out):
        yield f"with itself: {_told(done)}"


def _drawn(file: Path, folder: Path) -> Iterator[str]:
    page = folder / "largest.html"
    done = _fnop(folder, "replay", file, "--html", page)
    if done.status or not page.stat().st_size:
        yield f"{file.name}: --html: {_told(done)}"


def _fnop(folder: Path, *args: str | Path) -> Done:
    return fnop(*args, folder=folder, limit=120)


def _told(done: Done) -> str:
    said = " | ".join(f"{done.out}\n{done.err}".split("\n")[:6])
    return f"status {done.status}: {said:.600}"
