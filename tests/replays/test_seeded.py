"""A change of one handler: `--shadow` finds the decisions that it affects alone.

Which these are is found in the recorded traces, by the condition under which the
changed line is reached; none of the author's code is asked for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import History, Step
from tests.replays.corpus import Recorded, read_index
from tests.replays.operators import UNTOLD, shadowed
from tests.simulations import ROOT

RECORDED = [each for each in read_index().values() if each.is_traced]


class Seed(NamedTuple):
    """A change of an operator's text, and which attempts of a handler it affects.

    A handler that ends with "/" stands for its parts.  `sort` is how the attempts
    decide otherwise; unless it affects `all` of the handler's, others do not.
    """

    operator: str
    old: str
    new: str
    handler: str
    affects: Callable[[Attempt], bool]
    sort: str = "ends"
    all: bool = False


def ends_with(attempt: Attempt, kind: str) -> list[Any]:
    """The effects of a kind in the plan and the patches of an attempt."""
    end = attempt.end or {}
    found = [*end.get("plan", ()), *end.get("patches", ())]
    return [each for each in found if each and each["is"] == kind]


def asks(attempt: Attempt, kind: str) -> bool:
    return any(each.asked["is"] == kind for each in attempt.exchanges)


def fails(attempt: Attempt) -> bool:
    return "failure" in (attempt.end or {})


def returns(attempt: Attempt) -> Any:
    (found,) = ends_with(attempt, "Return")
    return found["value"]


def is_decided(attempt: Attempt, exchanges: int) -> bool:
    """Whether it has continued after this number of answers."""
    return attempt.end is not None or len(attempt.exchanges) > exchanges


def conditions(attempt: Attempt) -> list[Any]:
    desired = (attempt.desires or {}).get("desired") or {}
    return [*desired.get("conditions", ())]


def value_of(attempt: Attempt) -> int:
    assert attempt.body is not None
    return int(attempt.body.data["spec"]["value"])


CHURNING = "tests/cluster/operators/churning.py"
SEEDS = {
    "a value": Seed(
        *("examples/01-minimal/example.py", "shall run for", "runs for"),
        *("create_fn", lambda _: True),
        all=True,
    ),
    "a field of a child": Seed(
        *("examples/02-children/example.py", '"name": "main"', '"name": "first"'),
        *("create_pod", lambda each: asks(each, "Adopt")),
        sort="asks",
        all=True,
    ),
    "a result at last": Seed(
        *("examples/03-exceptions/example.py", "retry + 1", "retry"),
        *("works_at_last", lambda each: not fails(each)),
    ),
    "a delay": Seed(
        *("examples/03-exceptions/example.py", "delay=1", "delay=2"),
        *("works_at_last", fails),
    ),
    "a lost patch": Seed(
        "examples/05-handlers/example.py",
        'return fnop.patch(status={"changed": changed})',
        "return []",
        *("update_fn", lambda each: bool(ends_with(each, "Patch"))),
        all=True,
    ),
    "an old value": Seed(
        *("examples/05-handlers/example.py", '"old": old', '"old": None'),
        "field_fn/spec.field",
        lambda each: returns(each)["old"] is not None,
    ),
    "a part": Seed(
        "examples/07-subhandlers/example.py",
        'return {"attempts": retry + 1}',
        'raise ValueError("the part is broken")',
        *("build/", lambda each: not fails(each)),
        sort="raises",
    ),
    "no creation": Seed(
        *("examples/10-builtins/example.py", "await fnop.create(copy)", "pass"),
        *("copied", lambda each: asks(each, "Create")),
        all=True,
    ),
    "ticks": Seed(
        *("examples/15-timers/example.py", "min(3, ticks", "min(2, ticks"),
        "every_second",
        lambda each: ends_with(each, "Patch")[0]["merge"]["status"]["ticks"] == 3,
    ),
    "never enough": Seed(
        *("examples/15-timers/example.py", 'get("ticks") == 3', 'get("ticks") == 4'),
        *("until_it_is_done", fails),
    ),
    "a message": Seed(
        *(
            "examples/19-database/example.py",
            "{ready}/{size}",
            "{ready}/{max(3, size)}",
        ),
        "database",
        lambda each: any(found["message"] == "0/1" for found in conditions(each)),
    ),
    "without its service": Seed(
        "examples/19-database/example.py",
        "    stateful_set = children[StatefulSet].get(name)\n",
        "    stateful_set = children[StatefulSet].get(name)\n"
        '    if not children["services"]:\n'
        '        raise fnop.PermanentError("it has no service")\n',
        "database",
        lambda each: not any(key.resource == "services.v1." for key in each.children),
        sort="raises",
    ),
    "a template is gone": Seed(
        *("examples/20-tenants/example.py", 'CLOSED = {"pods": "0"}'),
        *('CLOSED = {"pods": "1"}', "tenant"),
        lambda each: any(found["reason"] == "NoTemplate" for found in conditions(each)),
    ),
    "a call": Seed(
        "examples/21-records/example.py",
        "await fnop.call(put_records, owner=uid, records=wanted)",
        "pass",
        *("record", lambda each: asks(each, "Call")),
    ),
    "another number": Seed(
        *(CHURNING, "value % 7 == 0 and retry == 0", "value % 11 == 0 and retry == 0"),
        "changed",
        lambda each: (
            (value_of(each) % 7 == 0) != (value_of(each) % 11 == 0)
            and not each.retry
            and is_decided(each, 1)
        ),
        sort="any",
    ),
    "no child": Seed(
        *(CHURNING, "await fnop.adopt(child)", "pass"),
        *("made", lambda each: asks(each, "Adopt")),
    ),
    "an end that fails": Seed(
        *(CHURNING, 'if body["spec"]["value"] % 3 == 0 and retry == 0:', "if True:"),
        *("ended", lambda each: each.end is not None and not fails(each)),
        sort="raises",
    ),
}


def is_of(attempt: Attempt, handler: str) -> bool:
    is_part = handler.endswith("/") and attempt.handler.startswith(handler)
    return attempt.handler == handler or is_part


def recordings_of(operator: str) -> Sequence[Recorded]:
    return [each for each in RECORDED if each.operator == operator]


def attempts_in(recorded: Recorded) -> Iterator[Attempt]:
    """All attempts, also those that were cut off."""
    history = History()
    with recorded.file.open("rb") as opened:
        records = read_records(opened)
        read_header(records)
        for record in records:
            step = None if record is None else history.read(record)
            yield from step.ended if isinstance(step, Step) else ()
    yield from history.attempts.cut_off()


@pytest.mark.parametrize("name", SEEDS)
def test_exactly_the_affected_decisions_change(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = SEEDS[name]
    text = (ROOT / seed.operator).read_text()
    assert text.count(seed.old) == 1, "the operator has changed"
    file = tmp_path / Path(seed.operator).name
    file.write_text(text.replace(seed.old, seed.new))
    handled = affected = 0
    for recorded in recordings_of(seed.operator):
        known = [e for e in attempts_in(recorded) if is_of(e, seed.handler)]
        wanted = [each for each in known if seed.affects(each)]
        handled, affected = handled + len(known), affected + len(wanted)
        found = shadowed(recorded, file, monkeypatch)
        assert [
            (each.attempt.handler, each.attempt.step) for each in found.changed
        ] == [(each.handler, each.step) for each in wanted], recorded.name
        sorts = {each.changed.sort for each in found.changed}
        assert seed.sort == "any" or sorts <= {seed.sort}
        assert found.untold.keys() <= UNTOLD
        assert (found.concealed, found.reindexed) == ([], [])
        assert (found.missing, found.unindexed) == ({}, {})
    assert affected, "the corpus has no decision that is affected"
    assert seed.all or affected < handled, "the corpus has only affected decisions"


def test_an_index_that_selects_otherwise_is_found_by_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = "examples/16-indexing/example.py"
    file = tmp_path / "example.py"
    text = (ROOT / operator).read_text()
    old = '{labels["colour"]: name}'
    assert text.count(old) == 1
    file.write_text(text.replace(old, '{labels["colour"].upper(): name}'))
    values = 0
    for recorded in recordings_of(operator):
        found = shadowed(recorded, file, monkeypatch)
        assert found.changed == []  # they have the recorded indices
        assert len(found.reindexed) == found.indexed
        values += found.indexed
    assert values
