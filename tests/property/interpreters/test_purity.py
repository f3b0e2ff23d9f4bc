"""The purity gate: it finds exactly the lines that are impure."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.inputs.purity import Purity
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.simulations import DEFINITION, example
from tests.thorough import examples

HEAD = """
import copy, datetime, json, os, random, secrets, time, uuid
from functools import lru_cache, partial

def through(use):
    return use()

class Holder:
    @property
    def value(self):
        return self.use()
"""
IMPURE = [
    "time.time()",
    "datetime.datetime.now()",
    "random.random()",
    "random.choice('ab')",
    "os.environ.get('HOME')",
    "uuid.uuid4()",
    "secrets.token_bytes(2)",
    "os.urandom(1)",
    "open(__file__).close()",
]
PURE = [
    "json.dumps({'a': 1})",
    "copy.copy([1])",
    "random.Random(1).random()",
    "datetime.datetime(2026, 1, 1).isoformat()",
    "uuid.UUID(int=1)",
    "time.gmtime(0)",
    "os.path.join('a', 'b')",
]
# The possible paths from a line to its expression.
WAYS = [
    "{}",
    "[{} for _ in (1, 2)]",
    "(lambda: {})()",
    "through(lambda: {})",
    "sorted([1, 2], key=lambda _: str({}))",
    "partial(lambda a: {}, 1)()",
    "lru_cache(lambda: {})()",
    "str([next(iter([{}]))])",
    "type('Made', (Holder,), {{'use': lambda self: {}}})().value",
]
Line = tuple[bool, str]
LINES = st.lists(
    st.one_of(
        st.tuples(st.just(True), st.sampled_from(IMPURE), st.sampled_from(WAYS)),
        st.tuples(st.just(False), st.sampled_from(PURE), st.sampled_from(WAYS)),
    ),
    min_size=1,
    max_size=8,
)


@given(LINES, st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_the_impure_lines_are_told_and_no_others(
    lines: list[tuple[bool, str, str]], in_a_conversation: bool
) -> None:
    text = f"{HEAD}\n{'async ' if in_a_conversation else ''}def handler(**_):\n"
    asked = set()
    for is_impure, expression, way in lines:
        text += f"    {way.format(expression)}\n"
        if is_impure:
            asked.add(text.count("\n"))
    names: dict[str, Any] = {"__name__": "operator_of_a_test", "__file__": __file__}
    exec(compile(text, "/operators/drawn.py", "exec"), names)
    registry, purity = Registry(), Purity()
    fnop.on.create("fnopexamples", registry=registry, id="h")(names["handler"])
    program = Program(registry.handlers, fnop.Settings())
    run = SimulatedRun(program, empty_cluster("0", EPOCH), eye=purity)
    apply_manifests(run, [DEFINITION, example()])
    assert run.settle()
    assert {each.line for each in purity.findings} == asked
    assert {each.place.partition(",")[0] for each in purity.findings} <= {"drawn.py"}
