"""`make bench-mutants`: each mutator, on a small source."""

import ast

import pytest

from bench.mutants.judging import Outcome
from bench.mutants.mutators import OPERATORS, Mutant, mutants_of
from bench.mutants.report import lines_of, score_of
from bench.mutants.running import chosen


def made(operator: str, body: str) -> list[str]:
    """The mutations of a handler's body, without its surroundings."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"async def handler(spec, patch):\n{lines}"
    return [
        "\n".join(line[4:] for line in each.source.splitlines()[1:])
        for each in mutants_of(source)
        if each.operator == operator
    ]


CASES = [
    ("write", "await fnop.delete(found)", ["pass"]),
    ("write", "await fnop.get('pods', name='x')", []),
    ("write", "return fnop.patch(status={})", ["return None"]),
    ("write", "patch.status['x'] = spec", ["pass"]),
    (
        "write",
        "return [fnop.create(a), fnop.event('A', 'b')]",
        ["return [fnop.event('A', 'b')]", "return [fnop.create(a)]"],
    ),
    (
        "order",
        "await fnop.create(a)\nawait fnop.delete(b)",
        ["await fnop.delete(b)\nawait fnop.create(a)"],
    ),
    ("order", "a = await fnop.create(m)\nawait fnop.delete(a)", []),
    ("order", "a = await fnop.get('pods', name='x')\nawait fnop.delete(b)", []),
    (
        "precondition",
        "if found is None:\n    return\nawait fnop.delete(found)",
        [
            "await fnop.delete(found)",
            "if not found is None:\n    return\nawait fnop.delete(found)",
        ],
    ),
    (
        "precondition",
        "if a and b:\n    await fnop.delete(a)",
        [
            "await fnop.delete(a)",
            "if not (a and b):\n    await fnop.delete(a)",
            "if b:\n    await fnop.delete(a)",
            "if a:\n    await fnop.delete(a)",
        ],
    ),
    ("precondition", "if a:\n    b = 1", []),
    ("comparison", "return a == b", ["return a >= b"]),
    ("comparison", "return a < b", ["return a <= b"]),
    ("comparison", "return a >= b", ["return a > b"]),
    ("comparison", "return a in b", []),
    ("number", "return fnop.sleep(1)", ["return fnop.sleep(2)"]),
    ("number", "return True", []),
    ("retry", "return fnop.again(after=1)", ["return None"]),
    (
        "retry",
        "raise fnop.TemporaryError('x', delay=1)",
        ["return None", "raise fnop.PermanentError('x')"],
    ),
    ("owner", "await fnop.adopt(a, role='b')", ["await fnop.create(a)"]),
    ("owner", "return fnop.owned(a, body)", ["return a"]),
    (
        "version",
        "return {'resourceVersion': a, 'finalizers': b}",
        ["return {'finalizers': b}"],
    ),
    ("version", "await fnop.delete('pods', name='x')", []),
    ("force", "return fnop.apply(a)", ["return fnop.apply(a, force=True)"]),
    ("force", "return fnop.apply(a, force=True)", ["return fnop.apply(a)"]),
]


@pytest.mark.parametrize(("operator", "body", "expected"), CASES)
def test_a_mutator_makes_one_mistake(
    operator: str, body: str, expected: list[str]
) -> None:
    assert made(operator, body) == expected


def test_each_mutator_has_a_case() -> None:
    assert {operator for operator, _, _ in CASES} | {"cleanup"} == {*OPERATORS}


def test_a_handler_of_deletions_does_nothing() -> None:
    source = "@fnop.on.delete('xs')\nasync def end(uid):\n    a = 1\n    return a\n"
    (mutant,) = (e for e in mutants_of(source) if e.operator == "cleanup")
    assert mutant.source == "@fnop.on.delete('xs')\nasync def end(uid):\n    pass\n"
    assert mutant.words == "end does nothing"


def test_a_write_without_the_uid_names_the_same_object() -> None:
    (source,) = made("version", "await fnop.delete(found)")
    call = ast.parse(f"async def f():\n    {source}").body[0]
    manifest = ast.unparse(call.body[0].value.value.args[0])  # type: ignore[attr-defined]
    metadata = {"name": "x", "namespace": "n", "uid": "u"}
    found = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert eval(manifest, {"found": found}) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "n"},
    }


def test_the_module_s_own_writers_are_writes() -> None:
    source = (
        "async def remove(x):\n    await fnop.delete(x)\n\n"
        "async def handler(x):\n    await remove(x)\n    await fnop.create(x)\n"
    )
    words = [each.words for each in mutants_of(source) if each.operator == "write"]
    assert "without `await remove(x)`" in words


def test_no_mutant_runs_the_program_when_it_is_imported() -> None:
    source = "if __name__ == '__main__':\n    run(1)\nif name == 'x':\n    run(1)\n"
    found = mutants_of(source)
    assert found
    assert all("if __name__ == '__main__':\n    run(1)\n" in e.source for e in found)


def test_no_mutant_is_the_source_or_made_twice() -> None:
    source = "@fnop.on.delete('xs')\nasync def end(x):\n    await fnop.delete('x')\n"
    texts = [each.source for each in mutants_of(source)]
    assert len(texts) == len({*texts})
    assert ast.unparse(ast.parse(source)) + "\n" not in texts


def mutant(operator: str, line: int) -> Mutant:
    return Mutant(operator, line, f"without line {line}", "")


def test_some_of_each_sort_are_chosen_from_all_lines() -> None:
    found = [mutant("write", line) for line in range(10)] + [mutant("order", 3)]
    assert [each.line for each in chosen(found, 2)] == [0, 5, 3]
    assert chosen(found, 0) == found


def test_the_score_leaves_out_what_is_equal_and_what_does_not_load() -> None:
    outcomes = [
        Outcome("a", mutant("write", 1), ("same_end", "total"), "words", "end", 7),
        Outcome("a", mutant("write", 2), ("total",), "words", "", 7),
        Outcome("a", mutant("order", 3), (), "", "writes", 200),
        Outcome("a", mutant("order", 4), (), "", "", 200),
        Outcome("a", mutant("order", 5), (), "it does not load", "loads", 0),
    ]
    assert score_of(outcomes) == (2, 3)
    purposes = [("b", "benign: meant so (serves)")]
    lines = [*lines_of(outcomes, [("a", "benign: odd (total)")], purposes)]
    assert "alarms on operators without a mistake: 1" in lines
    assert "alarms on operators that fail on purpose (b): 1" in lines
    assert (
        "write                2       2     0      0      0      0          0" in lines
    )
    assert "total                   2             1         1" in lines
    assert "    a:3 order: without line 3 (200 schedules)" in lines
    assert lines[-4:] == [
        "with an expectation of the benign end: 2 of 3 (67 %)",
        "of those that can be told without an expectation: 2 of 3 (67 %)",
        "of those with the same benign end: 1 of 2 (50 %)",
        "killed by properties alone: 2 of 3 (67 %)",
    ]
