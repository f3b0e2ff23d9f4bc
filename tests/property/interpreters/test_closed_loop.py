"""Recorded runs go on in the simulated cluster, from any of their steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.incidents.closed_loop import Ended, go_on, without_kubelet
from fnop.interpreters.recording.model.excerpt import Excerpt, excerpt_of
from tests.commands import fnop
from tests.recorded_examples import recorded
from tests.recordings import TRACED
from tests.simulations import (
    ROOT,
    example_calls,
    example_handlers,
)

NAMES = ("01-minimal", "02-children", "05-handlers", "16-indexing", "19-database")
SHARES = (0.0, 0.3, 0.6, 0.9, 1.0)


def gone_on(name: str, step: int) -> tuple[Excerpt, Ended]:
    excerpt = excerpt_of(lambda: iter(recorded(name)), step)
    program = Program(example_handlers(name), TRACED)
    calls = example_calls(name)
    return excerpt, go_on(excerpt, program, calls=calls, pace=without_kubelet)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", SHARES)
def test_the_same_operator_comes_to_the_same_end(name: str, share: float) -> None:
    step = max(1, round(share * len(recorded(name))))
    _, found = gone_on(name, step)
    # The operator starts again: the example notes that it was resumed.
    others = [each for each in found.differences if each.path != "status.seen"]
    assert (found.unsettled, others, [*found.refused]) == ("", [], [])


OTHER = """
import fnop

@fnop.on.create("fnopexamples")
def create_fn(spec, name, **_):
    return fnop.patch(status={"other": True})
"""


def test_another_operator_comes_to_another_end(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "01-minimal"
    operator, manifest = folder / "example.py", folder / "object.yaml"
    run = ("run", operator, "--simulate", manifest, "--record", "run.fnop")
    assert fnop(*run, folder=tmp_path).status == 0
    same = fnop("replay", "run.fnop", operator, "--from", "3", folder=tmp_path)
    assert (same.status, same.err) == (0, "")
    first, *_, last = same.out.splitlines()
    assert first.startswith("from #3, simulated: 0 objects as shown by then, ")
    assert last == "the end is as recorded"
    (tmp_path / "other.py").write_text(OTHER)
    other = fnop("replay", "run.fnop", "other.py", "--from", "3", folder=tmp_path)
    assert (other.status, other.err) == (1, "")
    assert "otherwise than recorded: fnopexamples.fnop.dev/example-1 status.other" in (
        other.out
    )
    late = fnop("replay", "run.fnop", operator, "--from", "999", folder=tmp_path)
    assert late.status == 2
    assert "and no step 999" in late.complaint


def test_changes_by_others_are_done_again() -> None:
    records = recorded("01-minimal")
    excerpt, _ = gone_on("01-minimal", 1)
    done = [(e.place.name, e.before is None, e.after is None) for e in excerpt.changes]
    assert ("example-1", True, False) in done
    assert ("other", True, False) in done
    assert any(name == "example-1" and not new for name, new, _ in done)
    assert [*excerpt_of(lambda: iter(records), len(records)).changes] == []
