"""Settings: one immutable value, which startup handlers may change."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare import settings as module
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role, kwargs_of
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster.requests.selectors import label_clauses
from tests.mistakes import said
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(module).failed == 0


def test_a_startup_handler_returns_the_settings_from_then_on(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.startup(registry=registry)
    def first(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(default_backoff=7, operator="other")

    @fnop.on.startup(registry=registry)
    async def second(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        seen.append(settings.default_backoff)
        await fnop.sleep(1)
        return settings.replace(conditions=False)

    @fnop.on.create(KIND, registry=registry)
    def create(retry: int, **_: Any) -> None:
        if not retry:
            raise ValueError("again after the backoff")

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        """For the finalizer."""

    @fnop.on.cleanup(registry=registry)
    def cleanup(settings: fnop.Settings, **_: Any) -> None:
        seen.append(settings.default_backoff)

    run = Scenario(registry, [example()])
    assert run.settle()
    assert seen == [7]
    assert run.clock.elapsed == pytest.approx(8, abs=0.5)
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"] == ["fnop.dev/other"]
    managers = {each["manager"] for each in found["metadata"]["managedFields"]}
    assert "fnop.dev/other" in managers
    run.stop()
    run.settle()
    assert seen == [7, 7]


# ----------------------------------------------------------------- ignored fields

IGNORING = fnop.Settings(
    ignored_fields=("spec.replicas", "metadata.labels.example.com/tier")
)


@pytest.fixture
def diary() -> list[Any]:
    return []


@pytest.fixture
def updating(registry: Registry, diary: list[Any]) -> Registry:
    """Handlers that note what has changed."""

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None:
        diary.append("create")

    @fnop.on.update(KIND, registry=registry)
    def update(diff: fnop.Diff, **_: Any) -> None:
        diary.append([(each.op, ".".join(each.field), each.new) for each in diff])

    return registry


def change(run: Scenario, **spec: Any) -> None:
    run.edit(KIND, spec=spec)
    assert run.settle()


def test_k_8_14_ignored_fields_cause_no_update_and_are_in_no_diff(
    updating: Registry, diary: list[Any]
) -> None:
    run = Scenario(updating, [example(size=1)], settings=IGNORING)
    assert run.settle()
    writes = len(run.writes)
    change(run, replicas=1)
    change(run, replicas=2)
    run.edit(KIND, metadata={"labels": {"example.com/tier": "a"}})
    assert run.settle()
    assert diary == ["create"]
    assert len(run.writes) == writes
    change(run, replicas=3, size=2)
    run.edit(KIND, metadata={"labels": {"example.com/tier": None, "other": "b"}})
    assert run.settle()
    assert diary[1:] == [
        [("change", "spec.size", 2)],
        [("add", "metadata", {"labels": {"other": "b"}})],
    ]


def test_k_8_14_a_handler_of_an_ignored_field_is_called_all_the_same(
    registry: Registry, diary: list[Any]
) -> None:
    @fnop.on.field(KIND, field="spec.replicas", registry=registry)
    def replicas(old: Any, new: Any, **_: Any) -> None:
        diary.append((old, new))

    @fnop.on.update(KIND, registry=registry)
    def update(**_: Any) -> None:
        diary.append("update")

    run = Scenario(registry, [example(size=1, replicas=1)], settings=IGNORING)
    assert run.settle()
    change(run, replicas=2)
    assert diary == [(None, 1), (1, 2)]


def test_k_8_14_an_ignored_field_is_no_end_of_idleness(registry: Registry) -> None:
    calls: list[float] = []

    @fnop.timer(KIND, idle=10, registry=registry)
    def idle(**_: Any) -> None:
        calls.append(run.clock.elapsed)

    run = Scenario(registry, [example(size=1)], settings=IGNORING)
    run.settle(seconds=5)
    change(run, replicas=1)
    assert len(calls) == 1
    assert calls[0] == pytest.approx(10, abs=1)


@pytest.mark.parametrize("keeps_old", [True, False])
@pytest.mark.parametrize("removed", [False, True])
def test_k_8_14_another_setting_is_no_change_of_the_objects(
    keeps_old: bool, removed: bool
) -> None:
    """Objects are neither handled nor written when an operator ignores other fields."""
    registry, diary = Registry(), list[Any]()

    def update(**_: Any) -> None:
        diary.append("update")

    def updated(diff: fnop.Diff, **_: Any) -> None:
        diary.append([(".".join(each.field), each.old, each.new) for each in diff])

    fnop.on.update(KIND, registry=registry, id="x")(updated if keeps_old else update)
    settings = [fnop.Settings(), IGNORING]
    before, after = reversed(settings) if removed else settings
    run = Scenario(
        registry, [example(size=1, replicas=1), example("b", size=1)], settings=before
    )
    assert run.settle()
    run.edit(KIND, metadata={"labels": {"example.com/tier": "a"}})
    assert run.settle()
    diary.clear()
    writes = len(run.writes)
    run.crash(Program(registry.handlers, after))
    assert run.settle()
    assert diary == []
    assert len(run.writes) == writes
    change(run, size=2)
    assert diary == [[("spec.size", 1, 2)] if keeps_old else "update"]
    # From then on the new setting is what counts.
    change(run, replicas=2)
    assert len(diary) == 1 + removed
    run.crash()
    assert run.settle()
    assert len(diary) == 1 + removed


def test_k_8_14_what_has_changed_meanwhile_is_told_at_the_upgrade(
    updating: Registry, diary: list[Any]
) -> None:
    run = Scenario(updating, [example(size=1, replicas=1)])
    assert run.settle()
    run.stop()
    assert run.settle()
    run.edit(KIND, spec={"size": 2, "replicas": 2})
    run.crash(Program(updating.handlers, IGNORING))
    assert run.settle()
    assert diary == ["create", [("change", "spec.size", 2)]]


def test_k_8_14_attempts_of_a_change_go_on_under_another_setting() -> None:
    registry, diary = Registry(), list[int]()

    @fnop.on.create(KIND, registry=registry, retries=3, id="create")
    def create(retry: int, **_: Any) -> None:
        diary.append(retry)
        raise fnop.TemporaryError("again", delay=100)

    @fnop.on.update(KIND, registry=registry, id="update")
    def update(**_: Any) -> None: ...

    run = Scenario(registry, [example(size=1, replicas=1)])
    run.settle(seconds=50)
    run.crash(Program(registry.handlers, IGNORING))
    assert run.settle()
    assert diary == [0, 1, 2]


@pytest.mark.parametrize(
    "field",
    ["", "status.phase", "metadata", "metadata.name", "kind", ("metadata", "uid")],
)
def test_k_8_14_what_makes_no_update_anyhow_is_refused(field: Any) -> None:
    with pytest.raises(ValueError, match="makes no update anyhow; name a field such"):
        fnop.Settings(ignored_fields=(field,))


def test_k_8_14_one_field_is_several_too() -> None:
    with pytest.raises(TypeError, match=r"such as \('spec.replicas',\)"):
        fnop.Settings(ignored_fields="spec.replicas")  # type: ignore[arg-type]


def test_a_restart_begins_with_those_of_the_program(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.startup(registry=registry)
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        seen.append(settings.default_backoff)
        return settings.replace(default_backoff=7)

    run = Scenario(registry, [])
    run.settle()
    run.crash()
    run.settle()
    assert seen == [fnop.Backoff(), fnop.Backoff()]


def failing_startup(registry: Registry, change: Any) -> str:
    @fnop.on.startup(registry=registry, retries=1)
    def configure(settings: fnop.Settings, **_: Any) -> Any:
        return change(settings)

    run = Scenario(registry, [])
    run.settle()
    assert run.exit is not None
    assert run.exit.status == 1
    return "\n".join(run.lines)


def test_a_mistyped_setting_is_named(registry: Registry) -> None:
    said = failing_startup(registry, lambda s: s.replace(default_backof_seconds=1))
    assert "did you mean 'default_backoff'?" in said


def test_a_setting_that_there_is_not_is_named(registry: Registry) -> None:
    said = failing_startup(registry, lambda s: s.posting.enabled)
    assert "there is no setting 'posting'" in said


def test_a_value_that_cannot_be_is_refused(registry: Registry) -> None:
    said = failing_startup(registry, lambda s: s.replace(operator="Not A Name"))
    assert "the operator's name 'Not A Name' must be" in said


def unreturned(settings: fnop.Settings) -> None:
    settings.replace(default_backoff=7)


def changed_further(settings: fnop.Settings) -> fnop.Settings:
    changed = settings.replace(default_backoff=7)
    changed.replace(conditions=False)
    return changed


@pytest.mark.parametrize("slip", [unreturned, changed_further])
def test_settings_that_are_not_returned_are_told_with_their_line(
    registry: Registry, slip: Any
) -> None:
    said = failing_startup(registry, slip)
    line = slip.__code__.co_firstlineno + (1 if slip is unreturned else 2)
    assert f"the settings made at {__file__}:{line} have no effect: return" in said


def test_settings_on_the_way_to_others_are_no_slip(registry: Registry) -> None:
    @fnop.on.startup(registry=registry)
    async def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        slow = settings.replace(default_backoff=7)
        await fnop.sleep(1)
        quiet = slow.replace(conditions=False)
        other = settings.replace(default_backoff=9)
        return other if quiet == other else quiet

    run = Scenario(registry, [])
    assert run.settle()
    assert run.machine.settings.default_backoff == 7


def test_nobody_else_changes_settings(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(**_: Any) -> Any:
        return fnop.Settings()

    run = Scenario(registry, [example()])
    run.settle()
    assert any("by startup handlers alone" in line for line in run.lines)


# ---------------------------------------------------------------------- the memo


def test_what_startup_remembers_is_there_for_everybody(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.startup(registry=registry)
    def connect(**_: Any) -> Any:
        return fnop.remember(address="db", count=0)

    @fnop.on.create(KIND, registry=registry)
    def create(memo: Any, **_: Any) -> Any:
        seen.append((memo.address, memo["count"]))
        return fnop.remember(count=memo.count + 1)

    @fnop.on.update(KIND, registry=registry)
    def update(memo: Any, **_: Any) -> None:
        seen.append((memo.address, memo.count))
        with pytest.raises(AttributeError, match="the memo has no 'other'"):
            memo.other  # noqa: B018
        with pytest.raises(TypeError, match=r"return fnop.remember\(x=...\)"):
            memo.x = 1

    @fnop.on.cleanup(registry=registry)
    def disconnect(memo: Any, **_: Any) -> None:
        seen.append(dict(memo))

    run = Scenario(registry, [example(a=1)])
    assert run.settle()
    run.edit(KIND, spec={"a": 2})
    assert run.settle()
    run.stop()
    run.settle()
    assert seen == [("db", 0), ("db", 1), {"address": "db", "count": 0}]


@pytest.mark.parametrize("role", ["create", "event", "timer", "startup"])
def test_the_rest_of_the_arguments_is_that_of_the_handler_s_kind(
    registry: Registry, role: str
) -> None:
    seen: list[set[str]] = []

    def handle(**kwargs: Any) -> None:
        seen.append(set(kwargs))

    if role == "timer":
        fnop.timer(KIND, registry=registry, interval=60)(handle)
    elif role == "startup":
        fnop.on.startup(registry=registry)(handle)
    else:
        getattr(fnop.on, role)(KIND, registry=registry)(handle)
    Scenario(registry, [example(a=1)]).settle(seconds=1)
    own = kwargs_of(Role(role)) - {"old", "diff", "obj"}
    assert seen[0] == own


def test_an_event_about_an_event_is_dropped(registry: Registry) -> None:
    @fnop.on.event("events.v1.", registry=registry)
    def answer(**_: Any) -> Any:
        return fnop.event("Seen", "an event")

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        return fnop.event("Made", "it is there")

    run = Scenario(registry, [example()])
    assert run.settle()
    assert [each["reason"] for each in run.objects("events")] == ["Made"]


@pytest.mark.parametrize(
    "selector", ["app in db", "a b", "=x", "a=b c", "a in (b", "a,,b", "a=b)", "!"]
)
def test_what_is_no_selector_is_refused(selector: str) -> None:
    assert isinstance(label_clauses(selector), str), "so does a server"
    with pytest.raises(ValueError, match="is not a label selector"):
        fnop.Settings(selector=selector)


@pytest.mark.parametrize("own", [None, 0.0, 3.0, fnop.Backoff(first=2)])
@pytest.mark.parametrize("default", [5.0, fnop.Backoff()])
def test_a_handlers_own_backoff_counts_before_the_default(
    registry: Registry, own: float | fnop.Backoff | None, default: float | fnop.Backoff
) -> None:
    """Even 0, which does not count as missing."""
    fnop.on.create(KIND, registry=registry, id="a", backoff=own)(lambda **_: None)
    (handler,) = registry.handlers
    assert handler.backoff_or(default) == (default if own is None else own)


def test_settings_are_replaced() -> None:
    settings: Any = fnop.Settings()

    def setting(name: str, value: Any) -> Callable[[], None]:
        return lambda: setattr(settings, name, value)

    assert said(setting("posting_level", "info")) == (
        "settings are immutable; a startup handler returns others: "
        "return settings.replace(posting_level=...)"
    )
    assert said(setting("postng_level", 5)) == (
        "there is no setting 'postng_level'; did you mean 'posting_level'?"
    )
    assert "there is no setting 'posting'" in said(lambda: settings.posting.level)
    assert settings == fnop.Settings()


def test_settings_are_named_as_they_are() -> None:
    made: Any = fnop.Settings
    assert "did you mean 'operator'?" in said(lambda: made(oprator="a"))
    assert "there is no setting 'x'; there are operator, " in said(lambda: made(x=1))
    assert "such as ('default',)" in said(lambda: made(namespaces="default"))
    replaced: Any = fnop.Settings().replace
    assert "did you mean 'operator'?" in said(lambda: replaced(oprator="a"))


# ---------------------------------------------------------------------- finalizers


def test_the_finalizer_is_that_of_the_operator_or_of_the_settings() -> None:
    assert fnop.Settings(operator="billing").own_finalizer == "fnop.dev/billing"
    own = fnop.Settings(operator="billing", finalizer="example.com/held")
    assert own.own_finalizer == "example.com/held"
    assert own.finalizers == ("example.com/held",)


def test_objects_are_held_by_the_finalizer_of_the_settings(registry: Registry) -> None:
    calls = []
    fnop.on.delete(KIND, id="gone", registry=registry)(lambda **_: calls.append(1))
    settings = fnop.Settings(finalizer="example.com/held")
    run = Scenario(registry, [example()], settings=settings)
    run.settle()
    found: Any = run.get(KIND)
    assert found["metadata"]["finalizers"] == ["example.com/held"]
    run.delete(KIND).settle()
    assert run.get(KIND) is None
    assert calls == [1]


def test_a_finalizer_that_is_taken_over_is_replaced_by_it(registry: Registry) -> None:
    fnop.on.delete(KIND, id="gone", registry=registry)(lambda **_: None)
    settings = fnop.Settings(
        finalizer="example.com/held",
        takes_over="kopf.zalando.org",
        takes_over_finalizer="old.example.com/held",
    )
    assert settings.finalizers == ("example.com/held", "old.example.com/held")
    thing = example()
    thing["metadata"]["finalizers"] = ["old.example.com/held"]
    run = Scenario(registry, [thing], settings=settings)
    run.settle()
    found: Any = run.get(KIND)
    assert found["metadata"]["finalizers"] == ["example.com/held"]
