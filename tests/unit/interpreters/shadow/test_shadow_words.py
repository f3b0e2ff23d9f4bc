"""`fnop replay --shadow`: the words for changed decisions and whole handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.adapters.recordings.replay_report import shadow_lines, sorts_of
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.recording.comparison.sorts import WORDS
from fnop.interpreters.shadow.attempts import Shadow
from tests.histories import History, config
from tests.simulations import ROOT, example

KIND = "fnopexamples"
Decide = Callable[..., Any]


def deciding(decide: Decide, *, creating: bool = False) -> Registry:
    """An operator with one handler, of either style."""
    registry = Registry()
    if creating:
        fnop.on.create(KIND, registry=registry, id="make")(decide)
    else:
        fnop.reconcile(KIND, owns="configmaps", registry=registry, id="make")(decide)
    return registry


def asked(was: Decide, now: Decide, *, creating: bool = False) -> frozenset[str]:
    """The words if another function is in a recorded one's place."""
    history = History(deciding(was, creating=creating), rests=was is not temporary)
    return sorts_of(history.recording.shadow(deciding(now, creating=creating)))


# -------------------------------------------------------------- what is desired


def two(**_: Any) -> Any:
    return fnop.desired([config("a", n="1"), config("b", n="1")])


def one(**_: Any) -> Any:
    return fnop.desired([config("a", n="1")])


def other(**_: Any) -> Any:
    return fnop.desired([config("a", n="2"), config("b", n="1")])


def third(**_: Any) -> Any:
    return fnop.desired([config("a", n="1"), config("b", n="1"), config("c")])


def optioned(**_: Any) -> Any:
    kept = fnop.child(config("b", n="1"), keep=True)
    return fnop.desired([config("a", n="1"), kept])


def as_they_are(**_: Any) -> Any:
    return fnop.desired(fnop.UNCHANGED)


def failing(**_: Any) -> Any:
    raise fnop.PermanentError("no")


def telling(**_: Any) -> Any:
    children = [config("a", n="1"), config("b", n="1")]
    return fnop.desired(children, status={"told": True})


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (two, two, ""),
        (two, one, "delete"),
        (two, other, "change"),
        (two, third, "create"),
        (two, optioned, "change"),
        (optioned, one, ""),  # it is let go, and not deleted
        (two, telling, "change"),
        (two, as_they_are, ""),
        (two, failing, "raise"),  # its children stay
        (failing, two, "create"),
        (as_they_are, two, "create"),
    ],
)
def test_the_words_for_what_is_desired(was: Decide, now: Decide, words: str) -> None:
    assert asked(was, now) == {*words.split(), *({"any"} if was is not now else ())}


def test_children_that_are_there_are_applied_or_deleted() -> None:
    """Of a handler that has failed, or has left its children alone, at that time."""

    def first(spec: Any, **_: Any) -> Any:
        return as_they_are() if spec["n"] > 1 else two()

    def now(spec: Any, **_: Any) -> Any:
        return one() if spec["n"] > 1 else two()

    history = History(deciding(first))
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    found = sorts_of(history.recording.shadow(deciding(now)))
    assert found == {"any", "apply", "delete"}


# -------------------------------------------------------------- effects


def target() -> fnop.Target:
    return fnop.target("configmaps", name="shared", namespace="default")


def quoted(**_: Any) -> Any:
    return fnop.event("Quoted", "it costs 1")


def priced(**_: Any) -> Any:
    return fnop.event("Priced", "it costs 1")


def reworded(**_: Any) -> Any:
    return fnop.event("Quoted", "it costs one")


def warned(**_: Any) -> Any:
    return fnop.event("Quoted", "it costs 1", type="Warning")


def twice(**_: Any) -> Any:
    return [fnop.event("Quoted", "it costs 1"), fnop.event("Quoted", "it costs 1")]


def patched(**_: Any) -> Any:
    return fnop.patch(target(), data={"n": "1"})


def repatched(**_: Any) -> Any:
    return fnop.patch(target(), data={"n": "2"})


def marked(patch: Any, **_: Any) -> None:
    patch.status["n"] = 1


def remarked(patch: Any, **_: Any) -> None:
    patch.status["n"] = 2


def applied(**_: Any) -> Any:
    return fnop.apply(config("made", n="1"))


def reapplied(**_: Any) -> Any:
    return fnop.apply(config("made", n="2"))


def elsewhere(**_: Any) -> Any:
    return fnop.apply(config("made-too", n="1"))


def created(**_: Any) -> Any:
    return fnop.create(config("made", n="1"))


def deleted(**_: Any) -> Any:
    return fnop.delete("configmaps", name="made", namespace="default")


def nothing(**_: Any) -> None: ...


def temporary(**_: Any) -> None:
    raise fnop.TemporaryError("later", delay=3600)


def final(**_: Any) -> None:
    raise fnop.PermanentError("never")


async def waiting(**_: Any) -> None:
    await fnop.sleep(1)
    await fnop.event("Quoted", "it costs 1")


async def hasty(**_: Any) -> None:
    await fnop.event("Quoted", "it costs 1")


async def calling(**_: Any) -> None:
    await fnop.random(4)


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (quoted, priced, "event"),
        (quoted, warned, "event"),
        (quoted, twice, "event"),
        (twice, quoted, ""),
        (quoted, reworded, ""),
        (quoted, nothing, ""),
        (nothing, quoted, "event"),
        (marked, remarked, "change"),
        (nothing, marked, "patch"),
        (marked, nothing, ""),
        (applied, reapplied, "change"),
        (applied, elsewhere, "apply"),
        (nothing, applied, "apply"),
        (nothing, created, "create"),
        (nothing, deleted, "delete"),
        (nothing, temporary, "raise"),
        (nothing, final, "raise"),
        (temporary, final, ""),  # it has failed before
        (final, nothing, ""),
        (waiting, hasty, ""),  # the Event comes later in the recording
        (nothing, calling, ""),
    ],
)
def test_the_words_for_effects(was: Decide, now: Decide, words: str) -> None:
    found = asked(was, now, creating=True)
    assert found == {*words.split(), *({"any"} if was is not now else ())}


def test_the_words_for_patches_of_others() -> None:
    for was, now, word in ((patched, repatched, "change"), (nothing, patched, "patch")):
        registry = deciding(was, creating=True)
        history = History(registry, config("shared", n="0"), example(n=1))
        found = history.recording.shadow(deciding(now, creating=True))
        assert sorts_of(found) == {"any", word}


def ask(item: str) -> str:
    """An answer."""
    return item


def test_the_word_for_calls() -> None:
    def calls(item: str) -> Decide:
        async def call(**_: Any) -> None:
            await fnop.call(ask, item=item)

        return call

    history = History(deciding(calls("a"), creating=True), calls=(ask,))
    found = history.recording.shadow(deciding(calls("b"), creating=True))
    assert sorts_of(found) == {"any", "call"}


def test_every_word_is_in_the_docs() -> None:
    page = (ROOT / "docs/reference/shadow.md").read_text()
    rows = [each.split("|")[1].strip() for each in page.splitlines() if "| `" in each]
    assert [each for each in rows if each.strip("`") in WORDS] == [
        f"`{each}`" for each in WORDS
    ]


# -------------------------------------------------------------- handlers as a whole


def indexing(
    value: Callable[[Any], Any], *, name: str = "templates", role: str = "template"
) -> Registry:
    registry = Registry()

    @fnop.index("configmaps", labels={"role": role}, registry=registry, id=name)
    def templates(name: str, body: Any, **_: Any) -> Any:
        return {name: value(body)}

    @fnop.on.create(KIND, registry=registry, id="make")
    def make(**_: Any) -> None: ...

    return registry


def indexed(now: Registry) -> Shadow:
    gold = config("gold", colour="golden")
    gold["metadata"]["labels"] = {"role": "template"}
    history = History(indexing(lambda body: body["data"]["colour"]), gold, example())
    history.writes("alice", "configmaps", "gold", data={"colour": "yellow"})
    return history.recording.shadow(now)


def test_an_index_that_returns_the_same_does_not_change() -> None:
    found = indexed(indexing(lambda body: body["data"]["colour"]))
    assert sorts_of(found) == frozenset()
    assert found.indexed >= 2
    assert found.untold == {}


def test_an_index_that_returns_other_values_is_a_change() -> None:
    found = indexed(indexing(lambda body: body["data"]["colour"].upper()))
    assert sorts_of(found) == {"any", "index"}
    assert [e.attempt.where for e in found.reindexed] == ["default/gold"] * 2
    lines = shadow_lines(found)
    assert any(
        "2 of" in e and "values of objects in indices change" in e for e in lines
    )
    assert any("2 x index handler templates" in e for e in lines)
    assert '  index.gold: "golden" -> "GOLDEN"' in lines


def test_an_index_that_selects_others_is_a_change() -> None:
    found = indexed(indexing(lambda body: body["data"]["colour"], role="none"))
    assert sorts_of(found) == {"any", "index"}
    assert all(each.changed.now == {"index": {}} for each in found.reindexed)


def test_an_index_that_raises_is_a_change() -> None:
    found = indexed(indexing(lambda body: body["no such"]))
    assert sorts_of(found) == {"any", "index"}
    assert any(": it raises KeyError" in each for each in shadow_lines(found))


def test_an_index_that_is_gone_is_removed_and_one_of_another_name_new() -> None:
    found = indexed(indexing(lambda body: body["data"]["colour"], name="other"))
    assert sorts_of(found) == {"any", "removed"}
    lines = shadow_lines(found)
    assert any("of the index templates, which is none now" in each for each in lines)
    assert any(each.endswith("is not in the recording") for each in lines)


def test_a_renamed_handler_is_removed_and_new() -> None:
    def renamed() -> Registry:
        registry = Registry()
        fnop.reconcile(KIND, owns="configmaps", registry=registry, id="keep")(two)
        return registry

    history = History(deciding(two))
    found = history.recording.shadow(renamed())
    assert sorts_of(found) == {"any", "removed"}
    count = found.missing["make"]
    assert count == found.attempts > 0
    first, *rest = shadow_lines(found)
    assert first == f"0 of {count} recorded decisions change"
    assert any("of make, which is no handler now" in each for each in rest)
    (new,) = [each for each in rest if each.endswith("is not in the recording")]
    assert new.startswith("reconcile handler keep (test_shadow_words.py:")


def test_a_handler_that_never_decided_is_named_and_no_change() -> None:
    registry = deciding(two)
    fnop.on.delete(KIND, registry=registry, id="gone")(nothing)
    found = History(registry).recording.shadow(deciding(two))
    assert sorts_of(found) == frozenset()
    assert "0 decisions of gone, which is no handler now" in shadow_lines(found)


# -------------------------------------------------------------- groups


def named(port: int) -> Registry:
    def make(name: str, **_: Any) -> Any:
        return fnop.desired(config(f"{name}-conf", port=str(port)))

    return deciding(make)


def test_one_edit_is_one_group_however_many_objects_there_are() -> None:
    history = History(named(80), example("one"), example("two"), example("three"))
    found = history.recording.shadow(named(81))
    assert len(found.changed) > 3
    (group,) = [e for e in shadow_lines(found) if "reconcile handler make" in e]
    assert group.startswith(f"{len(found.changed)} x ")
    lines = shadow_lines(found)
    field = "desired.children.configmap/default/*-conf.manifest.data.port"
    assert f'  {field}: "80" -> "81"' in lines
    assert lines[-1].endswith(", ...)"), "there are more steps than are named"


def test_of_one_object_the_names_are_told() -> None:
    found = History(named(80)).recording.shadow(named(81))
    assert any("default/example-1-conf.manifest" in e for e in shadow_lines(found))


def test_the_same_effect_with_other_fields_is_told_so() -> None:
    def asks(message: str, reason: str = "Quoted") -> Registry:
        async def make(**_: Any) -> None:
            await fnop.event(reason, message)

        return deciding(make, creating=True)

    recording = History(asks("one")).recording
    lines = shadow_lines(recording.shadow(asks("two")))
    assert any("asks for Event Quoted with other fields" in each for each in lines)
    recording = History(asks("one")).recording
    lines = shadow_lines(recording.shadow(asks("one", "Priced")))
    assert any(
        "asks for Event Priced, where it asked for Event Quoted" in e for e in lines
    )


def test_another_order_of_children_is_told_so() -> None:
    def back(**_: Any) -> Any:
        return fnop.desired([config("b", n="1"), config("a", n="1")])

    lines = shadow_lines(History(deciding(two)).recording.shadow(deciding(back)))
    assert "  the same, in another order" in lines


def test_options_of_children_are_compared_as_they_are() -> None:
    def after(**_: Any) -> Any:
        later = fnop.child(config("b", n="1"), after="configmap/a")
        return fnop.desired([config("a", n="1"), later])

    def changed(**_: Any) -> Any:
        later = fnop.child(config("b", n="2"), after="configmap/a")
        return fnop.desired([config("a", n="1"), later])

    lines = shadow_lines(History(deciding(after)).recording.shadow(deciding(changed)))
    assert any("data.n" in each for each in lines)
    assert not any("after" in each for each in lines)
