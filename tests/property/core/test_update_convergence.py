"""Updates: no essential change is lost, whatever comes between.

Edits, reverts, restarts, waiting and retries in any order: at the end each handler
that a change concerns has acted upon the state that there is, last.
"""

from __future__ import annotations

from hypothesis import example as case, given, note, settings

from tests.property.scripts import KIND, Operator, Way, moved, scripts, shown_in, ways
from tests.simulations import Scenario, example
from tests.thorough import examples

PLAIN, HALFWAY = Way("plain", 1, 20), Way("halfway", 1, 20)
WAIT, CRASH, BACK = ("wait", 1, 0), ("crash", 0, 0), ("edit", 0, 0)


@settings(max_examples=examples(25))
@given(ways, ways, ways, scripts)
@case(HALFWAY, PLAIN, PLAIN, [WAIT, ("edit", 0, 1), WAIT, CRASH, BACK])
@case(PLAIN, HALFWAY, PLAIN, [WAIT, ("step", 1, 0), ("edit", 1, 0), WAIT, CRASH, BACK])
def test_every_handler_has_seen_what_it_was_to_see(
    update: Way, field: Way, create: Way, script: list[tuple[str, int, int]]
) -> None:
    # A crash may come before any write of the object but the one that this asks for.
    operator = Operator(update, field, create, write_ahead=CRASH in script)
    run = Scenario(operator.registry, [example(n=0, m=0)])
    moved(run, script)
    run.settle()
    assert run.settle(), "it comes to rest"
    found = run.get(KIND)
    assert found is not None
    final = found["spec"]
    note(f"final {final}, seen {dict(operator.seen)}")
    assert operator.seen["create"], "the creation is seen"
    # What was acted upon last is what there is.
    whole, of_field = run.get("configmaps", "whole"), run.get("configmaps", "field")
    assert whole is not None
    assert of_field is not None
    assert whole["data"] == shown_in("whole", final)["data"]
    # The field handler is called with the creation, and for the field alone.
    assert of_field["data"]["n"] == str(final["n"])


def test_who_has_seen_a_change_is_told_that_it_is_taken_back() -> None:
    operator = Operator(Way("fails", 3, 60), Way("plain", 1, 20), Way("plain", 1, 20))
    run = Scenario(operator.registry, [example(n=0, m=0)])
    assert run.settle()
    run.edit(KIND, spec={"n": 2})
    run.settle(seconds=10)  # the handler of the field is done, the other retries
    run.edit(KIND, spec={"n": 0})
    assert run.settle()
    assert operator.seen["field"][-1]["n"] == 0
