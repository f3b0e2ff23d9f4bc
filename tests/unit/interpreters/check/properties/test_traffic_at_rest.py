"""`fnop check`: what an operator goes on asking for while nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

import fnop
from fnop import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply
from fnop.interpreters.simulation.externals import PutService
from tests.reconcilers import KIND, config_map
from tests.simulations import DEFINITION, example

Operator = Callable[[Registry], None]
HERE = "test_traffic_at_rest.py:"


def ensure(**_: Any) -> Any: ...


def delete_record(**_: Any) -> Any: ...


def set_record(**_: Any) -> Any: ...


def is_there(**_: Any) -> Any: ...


class Records(PutService):
    """DNS records; deleting a missing one is an error."""

    def ensure(self, key: str) -> None:
        self.put(key)

    def drop(self, key: str) -> None:
        self.delete(key)

    def forget(self, key: str) -> None:
        with suppress(LookupError):
            self.delete(key)

    def has(self, key: str) -> bool:
        return key in self.keys()


def found(operator: Operator, drop: str = "drop") -> list[str]:
    registry = Registry()
    operator(registry)
    records = Records()
    calls = {
        f"{__name__}:ensure": records.ensure,
        f"{__name__}:delete_record": getattr(records, drop),
        f"{__name__}:is_there": records.has,
        f"{__name__}:set_record": records.ensure,
    }
    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), (apply(example()),), calls=calls)
    violations = Explorer(case).benign.violations
    return [each.message for each in violations if each.property == "quiet"]


# ------------------------------------------------------------------ in the cluster


def sweeping_by(pace: float, *, asks: bool = False) -> Operator:
    def operator(registry: Registry) -> None:
        @fnop.timer(KIND, interval=pace, id="sweep", registry=registry)
        async def sweep(name: str, **_: Any) -> None:
            key = f"{name}-old"
            if not asks or await fnop.get("secrets", name=key) is not None:
                await fnop.delete("secrets", name=key)

    return operator


def daemon(registry: Registry) -> None:
    @fnop.daemon(KIND, id="sweep", registry=registry)
    async def sweep(name: str, **_: Any) -> None:
        while True:
            await fnop.delete("secrets", name=f"{name}-old")
            await fnop.sleep(10)


def reconciling(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="sweep", registry=registry)
    async def sweep(name: str, **_: Any) -> fnop.Desired:
        await fnop.delete("secrets", name=f"{name}-old")
        return fnop.desired([config_map(name)], again=10)


def creating(registry: Registry) -> None:
    @fnop.timer(KIND, interval=10, id="sweep", registry=registry)
    async def sweep(name: str, body: fnop.Body, **_: Any) -> None:
        with suppress(fnop.Refused):
            await fnop.create(fnop.owned(config_map(name), body))


@pytest.mark.parametrize("operator", [sweeping_by(10), daemon, reconciling])
def test_a_deletion_of_what_is_not_there_is_found_at_each_turn(
    operator: Operator,
) -> None:
    (message,) = found(operator)
    assert message.startswith(f"`fnop.delete secrets/example-1-old` of sweep ({HERE}")
    assert "is answered 404 (Not Found), every 10 s for ever" in message
    assert "ask whether it is there first" in message


def test_a_creation_of_what_is_there_is_found_at_each_turn() -> None:
    (message,) = found(creating)
    assert message.startswith(f"`fnop.create configmaps/example-1` of sweep ({HERE}")
    assert "is answered 409 (AlreadyExists), every 10 s" in message


@pytest.mark.parametrize("operator", [sweeping_by(60), sweeping_by(10, asks=True)])
def test_a_timer_may_resync_and_may_ask(operator: Operator) -> None:
    assert found(operator) == []


def applying(registry: Registry) -> None:
    @fnop.timer(KIND, interval=5, id="sweep", registry=registry)
    async def keep(name: str, body: fnop.Body, **_: Any) -> None:
        await fnop.apply(fnop.owned(config_map(name), body), force=True)
        await fnop.call(ensure, key=name)


def test_a_timer_may_apply_what_it_wants_each_time() -> None:
    assert found(applying) == []


# --------------------------------------------------------------------- outside of it


def taking_away(*, asks: bool) -> Operator:
    def operator(registry: Registry) -> None:
        @fnop.timer(KIND, interval=15, id="sweep", registry=registry)
        async def sweep(name: str, **_: Any) -> None:
            if asks and not await fnop.call(is_there, key=f"{name}-old"):
                return
            with suppress(fnop.CallFailed):
                await fnop.call(delete_record, key=f"{name}-old")

    return operator


@pytest.mark.parametrize(
    ("drop", "answer"), [("drop", "LookupError"), ("forget", "without effect")]
)
def test_what_is_not_there_outside_is_not_to_be_taken_away_for_ever(
    drop: str, answer: str
) -> None:
    (message,) = found(taking_away(asks=False), drop)
    assert message.startswith(f"`fnop.call(delete_record)` of sweep ({HERE}")
    assert f"is answered {answer}, every 15 s for ever" in message


def writing(registry: Registry) -> None:
    @fnop.timer(KIND, interval=10, id="sweep", registry=registry)
    async def sweep(name: str, **_: Any) -> None:
        await fnop.call(set_record, key=f"{name}-record")


def ensuring(registry: Registry) -> None:
    @fnop.timer(KIND, interval=10, id="sweep", registry=registry)
    async def sweep(name: str, **_: Any) -> None:
        await fnop.call(ensure, key=f"{name}-record")


def test_what_is_outside_is_not_to_be_written_again_for_ever() -> None:
    (message,) = found(writing)
    assert "fnop.call(set_record)" in message
    assert "ask what is there, and write what differs" in message


def test_who_ensures_something_may_look_first() -> None:
    assert found(ensuring) == []


def test_a_timer_may_poll_what_is_outside() -> None:
    assert found(taking_away(asks=True)) == []


# ---------------------------------------------------------------------- asked again


def blind(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="keep", registry=registry)
    def keep(name: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        return fnop.desired([config_map(name, size=str(spec))], again=5)


def test_a_handler_that_sees_nothing_new_need_not_be_called_again() -> None:
    (message,) = found(blind)
    assert message.startswith(f"keep ({HERE}")
    assert "asks to be called again every 5 s for ever" in message
    assert "leave `again=` out" in message


def polling(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="keep", registry=registry)
    async def keep(name: str, **_: Any) -> fnop.Desired:
        there = await fnop.call(is_there, key=name)
        return fnop.desired([config_map(name, there=str(there))], again=5)


def resyncing(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="keep", registry=registry)
    def keep(name: str, **_: Any) -> fnop.Desired:
        return fnop.desired([config_map(name)], again=60)


def ageing(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="keep", registry=registry)
    def keep(name: str, now: datetime, started: datetime, **_: Any) -> fnop.Desired:
        old = str((now - started).total_seconds() > 1e6)
        return fnop.desired([config_map(name, old=old)], again=5)


def awaiting(registry: Registry) -> None:
    @fnop.reconcile(KIND, owns="configmaps", id="keep", registry=registry)
    def keep(name: str, children: fnop.Children, **_: Any) -> fnop.Desired:
        found = children["configmaps"].get(name)
        ready = found is not None and "ready" in found["data"]
        return fnop.desired([config_map(name)], again=None if ready else 5)


@pytest.mark.parametrize("operator", [polling, resyncing, ageing, awaiting])
def test_a_handler_may_be_called_again_to_look_at_what_it_is_not_called_for(
    operator: Operator,
) -> None:
    assert found(operator) == []
