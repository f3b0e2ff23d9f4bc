"""Children of an owner that is being deleted are not created again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import fnop
from fnop.core.children.synchronise import synchronise
from fnop.core.handlers.declare.registry import Registry
from fnop.effects import Get
from fnop.testing import create, delete, explore
from tests.reconcilers import KIND, NAME, Desiring, config_map, data_of
from tests.simulations import DEFINITION, example


@contextmanager
def reading_owners(answer: Any) -> Iterator[None]:
    """Live reads of owners are answered with this, or fail with it."""

    def answered(*given: Any) -> Any:
        talk = synchronise(*given)
        step = partial(next, talk)
        while True:
            try:
                effect = step()
            except StopIteration as end:
                return end.value
            try:
                if not isinstance(effect, Get):
                    step = partial(talk.send, (yield effect))
                elif isinstance(answer, Exception):
                    step = partial(talk.throw, answer)
                else:
                    step = partial(talk.send, answer)
            except Exception as problem:
                step = partial(talk.throw, problem)

    with mock.patch("fnop.core.handlers.run.invocation.synchronise", answered):
        yield


def test_a_child_of_an_owner_that_goes_is_not_made_at_a_later_call_either() -> None:
    """The garbage collector deletes one after the other, and each event is a call."""
    op = Desiring(*(config_map(name, a="1") for name in ("one", "two"))).begin()
    with reading_owners(None):
        op.sim.delete("configmaps/one").wait(1)
        assert op.synced()[1] == "Pending"
        op.sim.edit("configmaps/two", data={"theirs": "x"}).wait(1)
        op.sim.delete("configmaps/two").wait(1)
        assert data_of(op.sim, "one") is None
        assert data_of(op.sim, "two") is None


def test_a_handler_that_fails_meanwhile_knows_its_children_still() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    with reading_owners(None):
        op.answer = iter(lambda: 1 / 0, None)  # it fails when it is looked at
        op.sim.delete("configmaps/one").wait(1)
        assert op.synced()[1] == "HandlerFailed"
        op.answer = None
        op.sim.wait(60)
        assert data_of(op.sim, "one") is None


def test_a_failing_read_of_the_owner_holds_up_no_other_child() -> None:
    op = Desiring(*(config_map(name, a="1") for name in ("one", "two"))).begin()
    with reading_owners(fnop.TemporaryError("answered 500")):
        op.sim.delete("configmaps/one")
        op.sim.edit("configmaps/two", data={"a": "theirs"}).wait(20)
        assert data_of(op.sim, "two") == {"a": "1"}
        assert data_of(op.sim, "one") is None
        status, reason, message = op.synced()
        assert (status, reason) == ("False", "Failing")
        assert "answered 500" in message
    op.sim.wait(120)
    assert data_of(op.sim, "one") == {"a": "1"}


def test_children_of_a_deleted_owner_are_not_made_anew() -> None:
    """The watch of the owner is late, and the garbage collector has been at work."""
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def keep(name: str, **_: object) -> fnop.Desired:
        return fnop.desired([config_map(f"{name}-{part}") for part in "ab"])

    explored = explore(registry, create(example()), delete(NAME), crds=[DEFINITION])
    explored.must("settles", "same_end", "bounded_work", "no_orphans")
