"""Debug lines about an object: what is seen of it, and why handlers are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.testing.models import models_for
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.report.explaining import fields_of
from fnop.core.values.diff import diff
from tests.commands import fnop as command
from tests.simulations import (
    ROOT,
    Scenario,
    example,
    example_calls,
    example_handlers,
    manifests_of,
)

KIND = "fnopexamples"
EXAMPLES = sorted(
    each.parent.name
    for each in ROOT.glob("examples/*/example.py")
    if (each.parent / "object.yaml").exists()
)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def explained(registry: Registry, *objects: dict[str, Any], **options: Any) -> Scenario:
    return Scenario(registry, objects, settings=Settings(explain=True), **options)


def about_objects(run: Scenario, since: int = 0) -> list[str]:
    said = [each for each in run.said[since:] if each.level == "debug" and each.subject]
    for each in said:
        assert each.subject
    return [each.message.partition(" (version")[0] for each in said]


def test_an_update_is_told_with_its_fields(registry: Registry) -> None:
    @fnop.on.update(KIND, id="resized", registry=registry)
    def resized(diff: fnop.Diff, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"known": True})

    run = explained(registry, example(size=1, gone=True))
    run.settle()
    since = len(run.said)
    run.edit(KIND, spec={"size": 2, "gone": None, "new": {"a": 1}}).settle()
    changes = "spec.gone removed, spec.new added, spec.size"
    assert about_objects(run, since)[:3] == [
        f"FnopExample has changed: metadata.generation, {changes}",
        f"update handler resized begins: changed since it was handled: {changes}",
        "writes (status): status.known, the operator's state, for resized",
    ]
    assert "the write is answered: done, version" in " ".join(
        each.message for each in run.said[since:]
    )


def test_without_the_last_state_an_update_is_told_all_the_same(
    registry: Registry,
) -> None:
    @fnop.on.update(KIND, id="changed", registry=registry)
    def changed(**_: Any) -> None: ...

    run = explained(registry, example(size=1))
    run.settle()
    run.edit(KIND, spec={"size": 2}).settle()
    assert (
        "update handler changed begins: changed since it was handled: "
        "its essence (which is kept as a digest alone)" in about_objects(run)
    )


@pytest.mark.parametrize("patches", [False, True], ids=["plain", "patching"])
def test_the_end_of_a_change_is_told_with_the_ends_of_its_handlers(
    registry: Registry, patches: bool
) -> None:
    def works(**_: Any) -> fnop.Effect | None:
        return fnop.patch(status={"known": True}) if patches else None

    def fails(**_: Any) -> None:
        raise fnop.PermanentError("no")

    for id, fn in (("one", works), ("two", fails), ("three", works)):
        fnop.on.create(KIND, id=id, registry=registry)(fn)
    fnop.on.delete(KIND, id="gone", registry=registry)(lambda **_: None)
    run = explained(registry, example(size=1))
    run.settle()
    run.delete(KIND, "example-1").settle()
    ends = [each for each in run.said if "is handled" in each.message]
    assert [each.message for each in ends] == [
        "the create is handled: 2 succeeded, 1 failed",
        "the delete is handled: 1 succeeded, 0 failed",
    ]
    fields = ("handled", "create"), ("succeeded", 2), ("failed", 1)
    assert ends[0].fields == fields


def ask(attempt: int) -> int:
    raise NotImplementedError


def test_attempts_are_told_with_what_they_ask_for_and_the_answers(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, id="made", registry=registry, backoff=5)
    async def made(retry: int, **_: Any) -> None:
        await fnop.call(ask, attempt=retry)
        await fnop.delete("configmaps", name="none")

    def answer(attempt: int) -> int:
        if attempt:
            return 1
        raise OSError("the line is dead")

    run = explained(registry, example(), calls=models_for({ask: answer}))
    run.settle()
    lines = [each for each in about_objects(run) if "handler made" in each]
    assert lines == [
        "create handler made begins: the object is new",
        "create handler made asks: Call ask",
        "create handler made is answered: Call ask: raised OSError: the line is dead",
        "create handler made begins, attempt 2: the object is new",
        "create handler made asks: Call ask",
        "create handler made is answered: Call ask: done",
        "create handler made asks: Delete configmaps/none",
        "create handler made is answered: Delete configmaps/none: missing: "
        'configmaps "none" not found',
    ]


def test_a_reconcile_handler_is_told_with_what_differs(registry: Registry) -> None:
    @fnop.reconcile(KIND, id="kept", owns="configmaps", registry=registry)
    def kept(name: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        data = {"size": str(spec["size"])}
        metadata = {"name": f"{name}-a"}
        return fnop.desired(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": data,
            }
        )

    run = explained(registry, example(size=1))
    run.settle()
    run.edit(KIND, spec={"size": 2}).settle()
    run.edit("configmaps", "example-1-a", data={"size": "9"}).settle()
    lines = about_objects(run)
    begun = [each.partition(" begins: ")[2] for each in lines if "begins" in each]
    assert begun[0] == "this process has not called it yet"
    assert "changed: spec.size" in begun
    assert begun[-1] == "changed children: configmaps/example-1-a"
    assert "ConfigMap has changed: data.size" in lines
    assert not [each for each in lines if "kube-root-ca" in each]


def test_no_value_is_told(registry: Registry) -> None:
    secret = "hunter2"

    @fnop.on.update(KIND, id="changed", registry=registry)
    async def changed(spec: fnop.Spec, diff: fnop.Diff, **_: Any) -> fnop.Effect:
        await fnop.call(ask, attempt=secret)
        await fnop.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "a"},
                "stringData": {"password": secret},
            }
        )
        return fnop.patch(status={"password": secret}, labels={"it": secret})

    run = explained(
        registry, example(password="x"), calls=models_for({ask: lambda attempt: secret})
    )
    run.settle()
    run.edit(KIND, spec={"password": secret}).settle()
    lines = about_objects(run)
    assert "update handler changed asks: Apply secrets/a" in lines
    assert not [each for each in lines if secret in each]


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_changes_nothing_else(name: str) -> None:
    """An operator that explains itself does what it does without that."""

    def ran(*, explain: bool) -> Scenario:
        run = Scenario(
            example_handlers(name),
            manifests_of(name),
            settings=Settings(explain=explain),
            calls=example_calls(name),
        )
        run.settle(seconds=60.0)
        return run

    plain, told = ran(explain=False), ran(explain=True)
    assert plain.requests == told.requests
    shown = [each for each in told.said if each.level != "debug"]
    assert shown == [each for each in plain.said if each.level != "debug"]
    assert len(told.said) > len(plain.said)


def test_a_run_that_was_explained_is_replayed(tmp_path: Path) -> None:
    case = ROOT / "examples" / "02-children"
    run = ("run", case / "example.py", "-v", "--simulate", case / "object.yaml")
    done = command(*run, "--record", "run.fnop", folder=tmp_path)
    assert "begins: the object is new" in done.err
    replayed = command("replay", "run.fnop", case / "example.py", folder=tmp_path)
    assert replayed.out.startswith("identical: ")


def test_long_lists_of_fields_are_cut() -> None:
    found = diff({}, {f"f{number}": 1 for number in range(10)})
    assert fields_of(found).endswith("f7 added and 2 more")
    assert fields_of(diff(1, 2)) == "all of it"
    assert fields_of(diff(1, 2), ("spec", "size")) == "spec.size"
