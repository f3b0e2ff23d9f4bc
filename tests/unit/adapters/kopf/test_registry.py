"""The registry of declarations, and the ids of functions."""

from __future__ import annotations

import doctest
import functools
from collections.abc import Callable
from typing import Any

import pytest

from fnop.adapters.kopf.declaring import registry as module
from fnop.adapters.kopf.declaring.on import create
from fnop.adapters.kopf.declaring.registry import (
    Entry,
    OperatorRegistry,
    get_default_registry,
    id_of,
    set_default_registry,
)
from fnop.core.handlers.declare.roles import Role

pytest.importorskip("kopf")
from kopf._core.intents.registries import generate_id, get_callable_id


def plain(**_: Any) -> None: ...


async def awaited(**_: Any) -> None: ...


@functools.wraps(plain)
def wrapped(**_: Any) -> None: ...


class Holder:
    def method(self, **_: Any) -> None: ...

    @staticmethod
    def static(**_: Any) -> None: ...

    @classmethod
    def of_class(cls, **_: Any) -> None: ...


def nested() -> Callable[..., None]:
    def inner(**_: Any) -> None: ...

    return inner


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "plain": plain,
    "awaited": awaited,
    "wrapped": wrapped,
    "method": Holder().method,
    "static": Holder.static,
    "class method": Holder.of_class,
    "nested": nested(),
    "partial": functools.partial(plain, a=1),
    "partial of partial": functools.partial(functools.partial(plain, a=1), b=2),
    "partial of wrapped": functools.partial(wrapped),
    "wraps of partial": functools.wraps(functools.partial(plain))(lambda **_: None),
    "method of another object": functools.partial(Holder().method),
}


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_id_is_that_of_kopf(name: str) -> None:
    fn = FUNCTIONS[name]
    assert id_of(fn) == get_callable_id(fn)
    assert id_of(fn, "given") == generate_id(fn, "given") == "given"


def test_the_id_of_a_lambda_is_its_place() -> None:
    fn = lambda **_: None  # noqa: E731
    line = fn.__code__.co_firstlineno
    assert id_of(fn) == f"lambda:test_registry.py:{line}"
    assert id_of(functools.partial(fn)) == id_of(fn)


class Callables:
    def __call__(self, **_: Any) -> None: ...


def test_a_callable_object_needs_an_id() -> None:
    for look in (id_of, get_callable_id):
        with pytest.raises(ValueError, match="id"):
            look(Callables())
    assert id_of(Callables(), "given") == "given"
    registry = OperatorRegistry()
    with pytest.raises(ValueError, match="id="):
        create("pods", registry=registry)(Callables())
    assert registry.entries == []


def test_the_default_registry_can_be_replaced() -> None:
    first = get_default_registry()
    assert get_default_registry() is first
    own = OperatorRegistry()
    set_default_registry(own)
    create("pods")(plain)
    assert get_default_registry() is own
    assert ([e.fn for e in own.entries], first.entries) == ([plain], [])
    set_default_registry(None)
    assert get_default_registry().entries == []


def entry(role: Role, **options: Any) -> Entry:
    return Entry(role, ("pods",), options, plain)


def test_a_registry_knows_its_indices_and_webhooks() -> None:
    registry = OperatorRegistry()
    assert registry.is_empty
    assert (registry.indices, registry.has_webhooks) == ((), False)
    for each in (entry(Role.INDEX), entry(Role.INDEX, id="b"), entry(Role.INDEX)):
        registry.add(each)
    assert registry.indices == ("plain", "b")
    assert not registry.has_webhooks
    registry.add(entry(Role.MUTATE))
    assert registry.has_webhooks
    assert not registry.is_empty


def test_logins_and_probes_alone_make_no_operator() -> None:
    registry = OperatorRegistry()
    registry.add(entry(Role.LOGIN))
    registry.add(entry(Role.PROBE))
    assert registry.is_empty
    registry.add(entry(Role.EVENT))
    assert not registry.is_empty
