"""Functions in all forms (lambda, partial, method, ...), wherever fnop takes one."""

from __future__ import annotations

import doctest
import functools
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values import callables
from fnop.core.values.errors import RegistrationError
from fnop.testing import matches, plan_of
from tests.simulations import Scenario, example

KIND = "fnopexamples"

See = Callable[..., Any]


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(callables).failed == 0


# ------------------------------------------- the ways to write a function of an object
#
# Each tells `see` what it was given, by name.  With a value, that comes first.


def decorated(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


class Of:
    """Bound methods, and an object that can be called."""

    def __init__(self, see: See) -> None:
        self.see = see

    def method(self, spec: Any, **_: Any) -> Any:
        return self.see(spec=spec)

    def method_of_value(self, value: Any, spec: Any, **_: Any) -> Any:
        return self.see(value, spec=spec)

    def __call__(self, spec: Any, **_: Any) -> Any:
        return self.see(spec=spec)


class OfValue(Of):
    def __call__(self, value: Any, spec: Any, **_: Any) -> Any:  # type: ignore[override]
        return self.see(value, spec=spec)


def limited(see: See) -> Callable[..., Any]:
    return lambda limit, spec, **_: see(spec=spec, limit=limit)


def limited_of_value(see: See) -> Callable[..., Any]:
    return lambda limit, value, spec, **_: see(value, spec=spec, limit=limit)


WAYS: dict[str, Callable[[See], Callable[..., Any]]] = {
    "named": lambda see: lambda spec: see(spec=spec),
    "kwargs": lambda see: lambda **kwargs: see(**kwargs),
    "named and kwargs": lambda see: lambda spec, **kwargs: see(spec=spec, **kwargs),
    "ignoring": lambda see: lambda **_: see(),
    "keyword-only": lambda see: lambda *, spec: see(spec=spec),
    "own default": lambda see: lambda spec, mine=5: see(spec=spec, mine=mine),
    "known default": lambda see: lambda spec=None: see(spec=spec),
    "partial by name": lambda see: functools.partial(
        lambda spec, limit, **_: see(spec=spec, limit=limit), limit=3
    ),
    "partial of a known name": lambda see: functools.partial(
        lambda spec, name, **_: see(spec=spec, bound=name), name="mine"
    ),
    "partial by place": lambda see: functools.partial(limited(see), 3),
    "bound method": lambda see: Of(see).method,
    "object": lambda see: Of(see),
    "decorated": lambda see: decorated(lambda spec: see(spec=spec)),
}

WAYS_OF_VALUE: dict[str, Callable[[See], Callable[..., Any]]] = {
    "value alone": lambda see: lambda value: see(value),
    "positional-only value": lambda see: lambda value, /: see(value),
    "values": lambda see: lambda *values: see(*values),
    "named": lambda see: lambda value, spec: see(value, spec=spec),
    "kwargs": lambda see: lambda value, **kwargs: see(value, **kwargs),
    "values and kwargs": lambda see: lambda *values, **kwargs: see(*values, **kwargs),
    "ignoring": lambda see: lambda value, **_: see(value),
    "keyword-only": lambda see: lambda value, *, spec: see(value, spec=spec),
    "own default": lambda see: lambda value, mine=5: see(value, mine=mine),
    "known default": lambda see: lambda value, spec=None: see(value, spec=spec),
    "partial by name": lambda see: functools.partial(
        lambda value, limit, **_: see(value, limit=limit), limit=3
    ),
    "partial by place": lambda see: functools.partial(limited_of_value(see), 3),
    "bound method": lambda see: Of(see).method_of_value,
    "object": lambda see: OfValue(see),
    "decorated": lambda see: decorated(lambda value, spec: see(value, spec=spec)),
}

# The further arguments of each way: the spec, nothing, or everything.
ALL = {"kwargs", "named and kwargs", "values and kwargs"}
NONE = {"ignoring"}
NONE_OF_VALUE = NONE | {
    "value alone",
    "positional-only value",
    "values",
    "own default",
    "partial by name",
}
ALWAYS = {"spec", "body", "name", "namespace", "uid", "labels", "memo", "now", "param"}


# ---------------------------------------------------- the places of functions

Place = Callable[[Registry, Callable[..., Any]], None]


def nothing(**_: Any) -> None: ...


async def asleep(**_: Any) -> None:
    await fnop.sleep(1)


def option(decorator: Any, handler: Any = nothing, **more: Any) -> Any:
    """A place in the options of a decorator: `wrap` makes them of the function."""

    def of(wrap: Callable[[Any], dict[str, Any]]) -> Place:
        def place(registry: Registry, fn: Callable[..., Any]) -> None:
            options = {"registry": registry, **more, **wrap(fn)}
            decorator(KIND, **options)(handler)

        return place

    return of


def part(registry: Registry, fn: Callable[..., Any]) -> None:
    @fnop.on.create(KIND, registry=registry)
    def parent(**_: Any) -> None:
        fnop.register(nothing, id="part", when=fn)


PLACES: dict[str, Place] = {
    **{
        f"when of {name}": option(decorator, handler)(lambda fn: {"when": fn})
        for name, decorator, handler in (
            ("create", fnop.on.create, nothing),
            ("event", fnop.on.event, nothing),
            ("index", fnop.index, nothing),
            ("timer", fnop.timer, nothing),
            ("daemon", fnop.daemon, asleep),
        )
    },
    "when of a part": part,
    "initial_delay of a timer": option(fnop.timer)(lambda fn: {"initial_delay": fn}),
    "initial_delay of a daemon": option(fnop.daemon, asleep)(
        lambda fn: {"initial_delay": fn}
    ),
    "interval": option(fnop.timer)(lambda fn: {"interval": fn}),
    **{
        f"when={combine.__name__}": option(fnop.on.create)(
            lambda fn, combine=combine: {"when": combine([fn])}
        )
        for combine in (fnop.all_, fnop.any_, fnop.none_)
    },
    "when=not_": option(fnop.on.create)(lambda fn: {"when": fnop.not_(fn)}),
}

PLACES_OF_VALUE: dict[str, Place] = {
    "labels": option(fnop.on.create)(lambda fn: {"labels": {"app": fn}}),
    "annotations": option(fnop.on.event)(lambda fn: {"annotations": {"app": fn}}),
    "value": option(fnop.on.create, field="spec.size")(lambda fn: {"value": fn}),
    "new": option(fnop.on.field, field="spec.size")(lambda fn: {"new": fn}),
    "old": option(fnop.on.field, field="spec.size")(lambda fn: {"old": fn}),
    "labels of an index": option(fnop.index)(lambda fn: {"labels": {"app": fn}}),
    "labels=not_": option(fnop.on.create)(
        lambda fn: {"labels": {"app": fnop.not_(fn)}}
    ),
}


def subject() -> dict[str, Any]:
    """An object with all that the filters look at."""
    found = example(size=1)
    found["metadata"] |= {"labels": {"app": "db"}, "annotations": {"app": "db"}}
    return found


def runs(registry: Registry, seen: list[Any]) -> Scenario:
    """Run the operator over an object without any complaints."""
    run = Scenario(registry, [subject()])
    run.wait(5)
    assert [say.message for say in run.said if say.level == "error"] == []
    assert seen, "it is never called"
    return run


def check(way: str, seen: list[Any], values: int) -> None:
    nothing = NONE_OF_VALUE if values else NONE
    for given, named in seen:
        assert len(given) == values
        if way in ALL:
            assert named.keys() >= ALWAYS
            assert named.keys().isdisjoint(
                ("patch", "logger", "old", "diff", "stopped", "settings", "retry")
            )
        else:
            told = named.keys() - {"mine", "limit", "bound"}
            assert told == (set() if way in nothing else {"spec"})
        assert named.get("spec", {"size": 1}) == {"size": 1}
        assert named.get("mine", 5) == 5
        assert named.get("limit", 3) == 3
        assert named.get("bound", "mine") == "mine"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_a_function_of_an_object(place: str, way: str) -> None:
    registry, seen = Registry(), []

    def see(**named: Any) -> Any:
        seen.append(((), named))
        return 1.0 if place.startswith(("initial_delay", "interval")) else True

    with_index(registry)
    PLACES[place](registry, WAYS[way](see))
    runs(registry, seen)
    check(way, seen, 0)
    if way in ALL and "index" not in place:
        assert all("maps" in named for _, named in seen)


@pytest.mark.parametrize("place", PLACES_OF_VALUE)
@pytest.mark.parametrize("way", WAYS_OF_VALUE)
def test_a_function_of_a_value(place: str, way: str) -> None:
    registry, seen = Registry(), []

    def see(*values: Any, **named: Any) -> bool:
        seen.append((values, named))
        return True

    with_index(registry)
    PLACES_OF_VALUE[place](registry, WAYS_OF_VALUE[way](see))
    runs(registry, seen)
    check(way, seen, 1)
    expected = {"value": (1, None), "new": (1,), "old": (None,)}.get(place, ("db",))
    assert {each[0] for each, _ in seen} <= set(expected)


def with_index(registry: Registry) -> None:
    @fnop.index("configmaps", registry=registry)
    def maps(name: str, **_: Any) -> dict[str, bool]:
        return {name: True}


# ------------------------------------------------------------------------- handlers


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("decorator", ["create", "event", "timer", "index"])
def test_a_handler(decorator: str, way: str) -> None:
    registry, seen = Registry(), []

    def see(**named: Any) -> None:
        seen.append(((), named))

    found = getattr(fnop.on, decorator)
    more = {"registry": registry, "id": "seeing"}
    found(KIND, **more)(WAYS[way](see))
    runs(registry, seen)
    for _, named in seen:
        told = ALWAYS if way in ALL else {"spec"}
        assert named.keys() >= (set() if way in NONE else told)
        assert named.get("bound", "mine") == "mine"
        assert named.get("spec", {"size": 1}) == {"size": 1}


@pytest.mark.parametrize("way", sorted({"kwargs", "ignoring", "decorated of nothing"}))
@pytest.mark.parametrize("role", ["startup", "cleanup"])
def test_a_handler_of_no_object(role: str, way: str) -> None:
    registry, seen = Registry(), []

    def see(**named: Any) -> None:
        seen.append(named)

    ways: dict[str, Callable[[See], Any]] = {
        **WAYS,
        "decorated of nothing": lambda see: decorated(lambda: see()),
    }
    fn = ways[way](see)
    getattr(fnop.on, role)(registry=registry, id="seeing")(fn)
    run = Scenario(registry)
    run.wait(1)
    run.stop()
    run.wait(1)
    assert len(seen) == 1
    if way == "kwargs":
        names = {"activity", "settings", "logger", "memo", "now", "param", "retry"}
        assert seen[0].keys() >= names


# Impure handlers are called by their importable names.
SEEN: list[dict[str, Any]] = []


def impure_named(spec: Any, name: str) -> None:
    SEEN.append({"spec": spec, "name": name})


def impure_kwargs(**kwargs: Any) -> None:
    SEEN.append(kwargs)


def impure_ignoring(**_: Any) -> None:
    SEEN.append({})


async def impure_async(spec: Any, **kwargs: Any) -> None:
    SEEN.append({"spec": spec, **kwargs})


IMPURE = (impure_named, impure_kwargs, impure_ignoring, impure_async)


@pytest.mark.parametrize("fn", IMPURE)
@pytest.mark.parametrize("role", ["create", "event", "timer", "daemon"])
def test_an_impure_handler_of_an_object(role: str, fn: Callable[..., Any]) -> None:
    registry = Registry()
    SEEN.clear()
    getattr(fnop.on, role)(KIND, registry=registry, impure=True)(fn)
    run = Scenario(registry, [subject()], calls={f"{__name__}:{fn.__name__}": fn})
    run.wait(5)
    assert [say.message for say in run.said if say.level == "error"] == []
    assert len(SEEN) >= 1
    for named in SEEN:
        assert named.get("spec", {"size": 1}) == {"size": 1}


@pytest.mark.parametrize("fn", [impure_kwargs, impure_ignoring])
def test_an_impure_handler_of_no_object(fn: Callable[..., Any]) -> None:
    registry = Registry()
    SEEN.clear()
    fnop.on.startup(registry=registry, impure=True)(fn)
    run = Scenario(registry, calls={f"{__name__}:{fn.__name__}": fn})
    run.wait(1)
    assert [say.message for say in run.said if say.level == "error"] == []
    assert len(SEEN) == 1
    assert "settings" not in SEEN[0], "there are none where it runs"


# --------------------------------------------------------- functions of one value only

OF_ONE: dict[str, Callable[[See], Any]] = {
    "named": lambda see: lambda found: see(found),
    "positional-only": lambda see: lambda found, /: see(found),
    "default": lambda see: lambda found, mine=5: see(found),
    "values": lambda see: lambda *values: see(*values),
    "partial": lambda see: functools.partial(lambda mine, found: see(found), 5),
    "partial by name": lambda see: functools.partial(
        lambda found, mine: see(found), mine=5
    ),
    "bound method": lambda see: OfOne(see).method,
    "object": lambda see: OfOne(see),
    "decorated": lambda see: decorated(lambda found: see(found)),
}


class OfOne:
    def __init__(self, see: See) -> None:
        self.see = see

    def method(self, found: Any) -> Any:
        return self.see(found)

    def __call__(self, found: Any) -> Any:
        return self.see(found)


@pytest.mark.parametrize("way", OF_ONE)
def test_a_function_of_a_kind(way: str) -> None:
    registry, called = Registry(), []
    predicate = OF_ONE[way](lambda kind: kind.kind == "FnopExample")

    @fnop.on.create(predicate, registry=registry)
    def create(name: str, **_: Any) -> None:
        called.append(name)

    assert Scenario(registry, [subject()]).settle()
    assert called == ["example-1"]


@pytest.mark.parametrize("way", OF_ONE)
def test_a_function_that_patches(way: str) -> None:
    registry = Registry()
    change = OF_ONE[way](lambda body: body["spec"].update(size=2))

    @fnop.on.create(KIND, registry=registry)
    def create(patch: Any, **_: Any) -> None:
        patch.fns.append(change)

    run = Scenario(registry, [subject()])
    assert run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["spec"] == {"size": 2}


async def later(body: Any) -> None: ...


class Later:
    async def __call__(self, body: Any) -> None: ...


@pytest.mark.parametrize(
    "change",
    [5, later, Later(), lambda: None, lambda **_: None, lambda body, more: None],
    ids=["number", "async", "async object", "nothing", "kwargs", "two"],
)
def test_a_function_that_cannot_patch_is_refused(change: Any) -> None:
    def create(patch: Any) -> None:
        patch.fns.append(change)

    plan = plan_of(create, {})
    assert "patch.fns takes plain functions of one argument" in str(plan.failure)


# -------------------------------------------------------------- what cannot be called

WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "positional-only": (
        lambda spec, /: True,
        "'spec' is positional, but",
    ),
    "async": (later, "later is async, but a filter answers at once"),
    "async object": (Later(), "is async, but a filter answers at once"),
    "async partial": (functools.partial(later), "is async, but a filter answers at"),
}
WRONG_OF_VALUE: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda: True, "takes no value; its first argument is what is there"),
    "kwargs": (lambda **kwargs: True, "takes no value"),
    "keyword-only": (lambda *, value: True, "takes no value"),
    "positional-only": (lambda value, spec, /: True, "'spec' is positional"),
}


@pytest.mark.parametrize("place", [each for each in PLACES if "part" not in each])
@pytest.mark.parametrize("slip", WRONG)
def test_a_function_of_an_object_that_cannot_be_called(place: str, slip: str) -> None:
    fn, sentence = WRONG[slip]
    with pytest.raises(RegistrationError, match=sentence):
        PLACES[place](Registry(), fn)


@pytest.mark.parametrize("place", PLACES_OF_VALUE)
@pytest.mark.parametrize("slip", WRONG_OF_VALUE)
def test_a_function_of_a_value_that_cannot_be_called(place: str, slip: str) -> None:
    fn, sentence = WRONG_OF_VALUE[slip]
    with pytest.raises(RegistrationError, match=sentence):
        PLACES_OF_VALUE[place](Registry(), fn)


def test_an_async_function_chooses_no_kinds() -> None:
    async def typo(sepc: Any) -> None: ...

    slip: Any = typo
    with pytest.raises(RegistrationError, match="use it with parentheses"):
        fnop.on.create(slip, registry=Registry())


def test_a_built_in_function_is_a_filter_of_a_value() -> None:
    registry = Registry()
    fnop.on.create(KIND, labels={"app": str.isalpha}, registry=registry)(nothing)
    fnop.on.event(KIND, labels={"app": "db".__eq__}, registry=registry)(asleep)
    body = subject()
    assert matches(nothing, body, registry=registry)
    assert matches(asleep, body, registry=registry)
    body["metadata"]["labels"]["app"] = "1"
    assert not matches(nothing, body, registry=registry)
    assert not matches(asleep, body, registry=registry)


# --------------------------------------------------------------------- forms in layers


def test_a_decorator_may_make_a_handler_async() -> None:
    def awaiting(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def wrapper(**kwargs: Any) -> Any:
            await fnop.sleep(1)
            return fn(**kwargs)

        return wrapper

    @awaiting
    def create(name: str, **_: Any) -> str:
        return name

    assert plan_of(create, {}).result == "object"


def test_an_object_may_be_an_async_handler() -> None:
    class Creating:
        async def __call__(self, name: str, **_: Any) -> str:
            await fnop.sleep(1)
            return name

    assert plan_of(Creating(), {}).result == "object"
