"""`fnop replay --shadow` asks the recorded reviews again, of other handlers."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import fnop
from fnop.adapters.cli.main import main
from fnop.adapters.recordings.replay_report import shadow_lines, sorts_of
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.shadow.attempts import Shadow
from fnop.interpreters.simulation.scenario import ApplyProblem, create
from tests.histories import History, config
from tests.simulations import example

KIND = "fnopexamples"
LABEL = f"{KIND}/default/"


def limiting(most: int, message: str = "it is too large") -> Registry:
    registry = Registry()

    @fnop.on.validate(KIND, id="small", registry=registry)
    def small(spec: fnop.Spec, **_: Any) -> None:
        if spec["size"] > most:
            raise fnop.Denied(message, field="spec.size")

    return registry


def shadowed(was: Registry, now: Registry, *sizes: int) -> Shadow:
    """The verdict on a run in which a user created an object of each size."""
    history = History(watching(was), config("limits", most="9"))
    for size in sizes:
        with suppress(ApplyProblem):  # it is denied
            create(history.run, example(f"a{size}", size=size))
    assert history.run.settle()
    return history.recording.shadow(watching(now))


def watching(registry: Registry) -> Registry:
    @fnop.on.event("configmaps", id="seen", registry=registry)
    def seen(**_: Any) -> None:
        pass

    return registry


def changes(found: Shadow) -> list[tuple[str, str, str]]:
    return [(e.was, e.answer, e.label.removeprefix(LABEL)) for e in found.redecided]


def test_reviews_that_are_decided_otherwise_are_told() -> None:
    found = shadowed(limiting(9), limiting(4), 3, 5, 6, 10)
    assert changes(found) == [
        ("admitted", "denied", "a5"),
        ("admitted", "denied", "a6"),
    ]
    assert found.reviews == 4
    assert {"any", "deny"} <= sorts_of(found)
    text = "\n".join(shadow_lines(found))
    assert "2 of 4 recorded reviews change" in text
    assert "2 reviews denied by small (test_shadow_reviews.py:" in text
    assert "where it was admitted: it is too large\n  CREATE of " in text


def test_what_is_admitted_now_is_no_denial() -> None:
    found = shadowed(limiting(4), limiting(9), 3, 5)
    assert changes(found) == [("denied", "admitted", "a5")]
    assert sorts_of(found) == {"any"}
    assert "1 review admitted, where it was denied by small (" in "\n".join(
        shadow_lines(found)
    )
    again = shadowed(limiting(4), limiting(4, "too much"), 3, 5)
    assert changes(again) == [("denied", "denied", "a5")]
    assert sorts_of(again) == {"any"}


def test_the_same_handlers_decide_the_same() -> None:
    found = shadowed(limiting(4), limiting(4), 3, 5)
    assert (found.reviews, found.redecided, found.undecided.total()) == (2, [], 0)
    assert sorts_of(found) == frozenset()


def labelling(team: str, *, warns: bool = False) -> Registry:
    registry = Registry()

    @fnop.on.mutate(KIND, id="labelled", registry=registry)
    def labelled(patch: fnop.Patch, warnings: list[str], **_: Any) -> None:
        patch.metadata.labels["team"] = team
        if warns:
            warnings.append("it has no team")

    return registry


def test_other_mutations_and_warnings_are_told() -> None:
    found = shadowed(labelling("a"), labelling("b"), 1)
    assert [each.fields for each in found.redecided] == [("metadata.labels.team",)]
    text = "\n".join(shadow_lines(found))
    assert "1 review changed otherwise: metadata.labels.team" in text
    warned = shadowed(labelling("a"), labelling("a", warns=True), 1)
    assert "1 review warned otherwise: it has no team" in "\n".join(
        shadow_lines(warned)
    )


def reading(*names: str, least: int = 0) -> Registry:
    registry = Registry()

    @fnop.on.validate(KIND, id="read", registry=registry)
    async def read(spec: fnop.Spec, **_: Any) -> None:
        for name in names:
            limits = await fnop.get("configmaps", name=name)
            most = 99 if limits is None else int(limits["data"]["most"])
            if not least <= spec["size"] <= most:
                raise fnop.Denied("it is beyond the limits")

    return registry


def test_handlers_are_given_the_recorded_answers_to_what_they_read() -> None:
    both = "limits", "others"
    found = shadowed(reading(*both), reading(*both, least=4), 3, 5)
    assert changes(found) == [("admitted", "denied", "a3")]
    # The answers are found by the names in them.
    found = shadowed(reading("limits", "others"), reading("others", least=4), 3, 5)
    assert changes(found) == [("admitted", "denied", "a3")]


@pytest.mark.parametrize("names", [("else",), ("limits", "else")])
def test_what_asks_for_something_else_is_not_compared(names: tuple[str, ...]) -> None:
    found = shadowed(reading("limits", "others"), reading(*names), 5)
    assert found.redecided == []
    assert found.undecided == {"its handler asks for what was not answered then": 1}
    assert "1 review cannot be compared: its handler asks for" in "\n".join(
        shadow_lines(found)
    )


def listing(kind: str, least: int, **selected: str) -> Registry:
    registry = Registry()

    @fnop.on.validate(KIND, id="lists", registry=registry)
    async def lists(spec: fnop.Spec, **_: Any) -> None:
        if spec["size"] < least or not await fnop.list(kind, **selected):
            raise fnop.Denied("there are no limits")

    return registry


def test_lists_are_those_of_their_kind_and_labels() -> None:
    def found(now: Registry) -> Shadow:
        return shadowed(listing("configmaps", 0), now, 3, 5)

    assert changes(found(listing("cm", 4))) == [("admitted", "denied", "a3")]
    for now in (listing("secrets", 0), listing("cm", 0, labels="a=b")):
        other = found(now)
        assert (other.redecided, other.undecided.total()) == ([], 2)


def indexed() -> Registry:
    registry = Registry()

    @fnop.index("configmaps", id="teams", registry=registry)
    def teams(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.on.validate(KIND, id="looks", registry=registry)
    def looks(spec: fnop.Spec, **given: Any) -> None:
        if spec["size"] > 4 and "limits" not in given["teams"]:
            raise fnop.Denied("no team")

    return registry


def test_a_decision_by_an_index_is_not_compared() -> None:
    found = shadowed(indexed(), indexed(), 3, 5)
    assert found.redecided == []
    (why,) = found.undecided
    assert "indices" in why
    assert found.undecided.total() == 1, "it looks at none for the smaller one"


def test_a_review_of_handlers_that_are_gone_is_not_compared() -> None:
    found = shadowed(limiting(4), Registry(), 5)
    assert found.undecided == {"its handlers are none now": 1}


def strong(least: int) -> Registry:
    registry = Registry()

    @fnop.on.validate("secrets", id="strong", registry=registry)
    def strong(body: fnop.Body, labels: Any, **_: Any) -> None:
        password = base64.b64decode(body["data"]["password"]).decode()
        if len(labels) < least or password == "hunter2":
            raise fnop.Denied(f"{password} is weak")

    return registry


def test_what_depends_on_secrets_is_not_compared() -> None:
    history = History(watching(strong(0)), config("c"))
    secret = {**config("s"), "kind": "Secret", "data": {"password": "c2VjcmV0LTE="}}
    create(history.run, secret)
    same = history.recording.shadow(watching(strong(0)))
    assert same.redecided == []
    assert [*same.undecided] == [
        "it depends on secrets, and the recording holds tokens in their place"
    ]
    denied = history.recording.shadow(watching(strong(1)))
    assert [each.is_denied_anew for each in denied.redecided] == [True]


def command(folder: Path, was: Registry, code: str, *sizes: int) -> Result:
    """The output of `fnop replay --shadow --fail-on deny` about this operator code."""
    history = History(was, config("limits", most="9"))
    for size in sizes:
        with suppress(ApplyProblem):
            create(history.run, example(f"a{size}", size=size))
    history.recording.records()
    (folder / "run.fnop").write_bytes(history.recording.written())
    (folder / "new.py").write_text(f"import fnop\n\n{code}")
    names = (str(folder / each) for each in ("run.fnop", "new.py"))
    call = ["replay", *names, "--shadow", "--fail-on", "deny"]
    return CliRunner().invoke(main, call)


NEW = """
@fnop.on.validate("fnopexamples", id="small")
async def small(spec, **_):
    if spec["size"] > 4:
        raise fnop.Denied("it is too large")
    if spec["size"] == 1:
        await fnop.get("configmaps", name="else")
"""


def test_the_command_fails_for_a_review_that_would_be_denied(tmp_path: Path) -> None:
    result = command(tmp_path, limiting(9), NEW, 3, 5)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("1 of 2 recorded reviews changes\n")
    assert "decisions change that --fail-on names: deny" in result.stderr


def test_the_command_tells_what_it_has_not_judged(tmp_path: Path) -> None:
    result = command(tmp_path, limiting(9), NEW, 1, 3)
    assert result.exit_code == 0, result.output
    assert "--fail-on has not judged 1 review that cannot be compared" in result.stderr
    assert command(tmp_path, limiting(9), NEW, 1).exit_code == 4
