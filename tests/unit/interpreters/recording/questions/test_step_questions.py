"""`fnop replay --step`: what a user asks about a run, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import fnop
from fnop.adapters.cli.step import Session, Unclear
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.recording.model.contents import NoSuchObject
from fnop.interpreters.recording.model.predicates import parse_predicate
from fnop.interpreters.recording.model.refs import Named, Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.questions.cursor import Cursor, NoAnswer
from fnop.interpreters.recording.questions.provenance import Provenance
from fnop.interpreters.recording.questions.steps import Past, Reading
from tests.histories import OURS, History, config
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example

KIND = "fnopexamples"
EXAMPLE = "fnopexamples/default/example-1"
PLACES = {"slow": "op.py:7", "marked": "op.py:19"}


def slow() -> Registry:
    """An operator that thinks for half a minute about what it was shown."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="slow")
    async def slow(spec: Any, **_: Any) -> None:
        await fnop.sleep(30)
        target = fnop.target("configmaps", name="shared", namespace="default")
        await fnop.patch(target, data={"n": str(spec["n"])})

    @fnop.on.update(KIND, registry=registry, id="marked", retries=1)
    async def marked(spec: Any, **_: Any) -> dict[str, Any]:
        if spec["n"] == 7:
            await fnop.sleep(5)
        elif spec["n"] > 2:
            raise fnop.PermanentError("too many")
        return {"n": spec["n"]}

    @fnop.on.event("configmaps", registry=registry)
    def look(**_: Any) -> None:
        """Shows the recording what others write."""

    return registry


def session_of(records: Sequence[dict[str, Any]]) -> Session:
    """A session at the beginning of a recording."""
    reading = Reading(manager=OURS, places=PLACES)
    for each in records:
        reading.add(each)
    reading.end()

    def provenance(named: Named, until: int | None) -> Provenance:
        found = Provenance(*named, OURS)
        for each in records:
            found.add(each)
        return found

    steps = reading.steps()
    return Session(Cursor(steps, steps.first), lambda until: None, provenance)


@pytest.fixture(scope="module")
def records() -> Sequence[dict[str, Any]]:
    """The user changes the object while its handler thinks, and breaks it then."""
    recording = Recording(slow())
    objects = [config("shared", n="0"), example(n=1)]
    observers = (recording.recorder,)
    run = Scenario(slow(), objects, settings=TRACED, observers=observers)
    run.settle(seconds=10)
    run.edit(KIND, spec={"n": 2})
    run.settle()
    run.edit(KIND, spec={"n": 3})
    run.settle()
    _, found = recording.records()
    return [each for each in found if each is not None]


@pytest.fixture
def session(records: Sequence[dict[str, Any]]) -> Session:
    return session_of(records)


def asked(session: Session, *lines: str) -> list[str]:
    """The output of the last of some commands."""
    told: list[str] = []
    for line in lines:
        told = [*session.do(line)]
    return told


def test_who_tells_of_the_end_of_the_object_with_its_field() -> None:
    registry = Registry()

    @fnop.on.event(KIND, registry=registry)
    def look(**_: Any) -> None:
        """Shows the recording what others do."""

    history = History(registry, example(n=1))
    history.deletes(KIND)
    history.run.apply(example(n=1))
    assert history.run.settle()
    session = session_of(history.records())
    lines = asked(session, f"object {EXAMPLE}", "goto last", "who spec.n")
    first, gone, again = lines
    assert "nothing -> 1, " in first
    assert gone.endswith(" 1 -> nothing, with the object")
    assert again.startswith("-> ")
    assert "nothing -> 1, " in again
    step = gone.split("#")[1].split()[0]
    assert asked(session, f"goto {step}", "who spec.n")[1].startswith("-> ")


def test_a_call_and_its_writes_are_found(session: Session) -> None:
    head, *rest = asked(session, "call slow")
    assert head.startswith(f"#{session.cursor.step}, 00:00:")
    assert any("slow is called for create: version" in each for each in rest)
    called = session.cursor.step
    assert any("asks for Sleep 30s" in each for each in rest)
    assert "Patch configmaps/default/shared" in "\n".join(asked(session, "next write"))
    assert asked(session, "back call slow")[0].startswith(f"#{called}, ")
    asked(session, "c marked")
    assert "marked is called for update" in "\n".join(asked(session, "show"))


def test_a_call_is_looked_for_of_the_object_that_is_chosen() -> None:
    recording, registry = Recording(slow()), slow()
    objects = [config("shared"), example("a", n=1), example("b", n=1)]
    observers = (recording.recorder,)
    run = Scenario(registry, objects, settings=TRACED, observers=observers)
    assert run.settle()
    _, records = recording.records()
    session = session_of([each for each in records if each is not None])
    for chosen in ("b", "a"):
        asked(session, "goto first", f"object {KIND}/default/{chosen}")
        told = "\n".join(asked(session, "call slow", "show"))
        assert f"[default/{chosen}] slow is called" in told
    asked(session, "goto first", f"object {KIND}/default/a", "call slow")
    with pytest.raises(NoAnswer, match=r"no call of slow for .*default/a after"):
        asked(session, "call slow")
    # No handler is called for a config map: any call is meant then.
    asked(session, "goto first", "object configmaps/shared", "call slow")


def test_a_stale_view_stands_beside_the_truth(session: Session) -> None:
    asked(session, "write configmaps/shared")
    head, old, titles, *fields = asked(session, "saw")
    assert head.startswith("slow (op.py:7) was called for create of default/example-1 ")
    assert "1 revision old for 20 s; it is in version" in old
    assert titles.split() == ["truth", "seen"]
    assert ["spec.n", "2", "1"] in [each.split() for each in fields]


def test_the_age_counts_from_the_version_that_was_seen() -> None:
    recording, registry = Recording(slow()), slow()
    objects = [config("shared"), example(n=1)]
    observers = (recording.recorder,)
    run = Scenario(registry, objects, settings=TRACED, observers=observers)
    assert run.settle()
    run.edit(KIND, spec={"n": 7})
    run.settle(seconds=1)
    run.edit(KIND, spec={"n": 2})
    assert run.settle()
    _, records = recording.records()
    session = session_of([each for each in records if each is not None])
    told = "\n".join(asked(session, "call marked", "saw"))
    assert told.endswith(": as it is")
    told = "\n".join(asked(session, "next 4", "saw"))
    assert "marked (op.py:19) was called for update of default/example-1" in told
    assert ": 2 revisions old for 5 s; it is in version" in told


def test_what_is_shown_late_was_there_before() -> None:
    ref = Ref("ks", "", "one")
    late = [
        Revision(ref, "u", str(number), 0.0, since=since, shown=shown)
        for number, (since, shown) in enumerate([(1, 1), (2, 5), (3, 0), (7, 6)])
    ]
    past = Past(late, [each.since for each in late])
    assert [past.at(step) for step in range(8)] == [-1, 0, 1, 2, 2, 2, 2, 3]
    assert [past.shown_by(step) for step in range(8)] == [-1, 0, 0, 0, 0, 1, 1, 3]


def test_an_object_is_gone_from_a_step_on() -> None:
    history = History(slow(), config("shared"), example(n=1)).deletes(KIND)
    session = session_of(history.records())
    told = asked(session, "object example-1", "goto last", "why spec.n")
    (gone,) = (each for each in told if "the object is gone since #" in each)
    step = int(gone.partition("#")[2].partition(",")[0])
    assert asked(session, f"goto {step}", "why spec.n") == told
    assert asked(session, "back", "why spec.n") == [e for e in told if e != gone]
    with pytest.raises(NoAnswer, match=f"is gone since #{step}"):
        asked(session, "next", "get")


def test_the_truth_changes_with_the_cursor(session: Session) -> None:
    asked(session, "object fnopexamples/example-1", "goto last")
    assert "  'n': 3" in asked(session, "get")
    assert "  'n': 2" in asked(session, "back 1", "when spec.n = 2", "get")
    assert asked(session, "get")[0].startswith("# fnopexamples/default/example-1, vers")


def test_when_it_broke(session: Session) -> None:
    told = asked(session, "object example-1", "when spec.n >= 2")
    assert told[0].startswith(
        "spec.n >= 2 of fnopexamples/default/example-1 holds from"
    )
    assert told[0].endswith("to the end")
    broken = session.cursor.step
    assert asked(session, "bisect first last spec.n >= 2")[0].startswith(f"#{broken},")
    assert asked(session, "goto first", "find spec.n=2")[0].startswith(f"#{broken},")
    with pytest.raises(NoAnswer, match=r"begins to hold of .* after"):
        asked(session, "find spec.n=2")
    with pytest.raises(NoAnswer, match="never holds"):
        asked(session, "when spec.n = 17")
    with pytest.raises(NoAnswer, match="bisect needs a step at which it does not"):
        asked(session, f"bisect {broken} last spec.n >= 2")


def test_who_has_written_a_field(session: Session) -> None:
    first, second = asked(session, "object configmaps/shared", "who data.n")
    assert 'nothing -> "0", written by somebody else' in first
    assert '"0" -> "1", written by the Patch sent at #' in second
    assert second.endswith("for handler slow (op.py:7)")
    assert second.startswith("   ")
    (_, later) = asked(session, "goto last", "who data.n")
    assert later.startswith("-> ")
    with pytest.raises(NoAnswer, match=r"never had a field data\.x"):
        asked(session, "who data.x")


def test_why_is_asked_as_of_the_cursor(session: Session) -> None:
    told = asked(session, "object configmaps/shared", "goto last", "why data.n")
    assert told[0].endswith('data.n = "1"')
    assert "slow (op.py:7)" in "\n".join(told)
    asked(session, "goto first", "object example-1", "find spec.n=2")
    assert asked(session, "why spec.n")[0].endswith("spec.n = 2")
    assert asked(session, "goto last", "why spec.n")[0].endswith("spec.n = 3")
    with pytest.raises(NoAnswer, match=r"was shown no spec\.x"):
        asked(session, "why spec.x")


def test_failures_are_found(session: Session) -> None:
    assert "too many" in "\n".join(asked(session, "failed"))
    with pytest.raises(NoAnswer, match="there is no failure after"):
        asked(session, "failed")


def test_changes_of_an_object_are_found(session: Session) -> None:
    asked(session, "object example-1", "goto first")
    seen = [session.cursor.step]
    past = session.cursor.steps.pasts[session.cursor.object]
    for _ in dict.fromkeys(past.since):
        asked(session, "change")
        seen.append(session.cursor.step)
    with pytest.raises(NoAnswer, match=f"no change of {EXAMPLE} after #{seen[-1]}"):
        asked(session, "change")
    assert seen[1:] == [*dict.fromkeys(past.since)]
    for step in reversed(seen[1:-1]):
        asked(session, "back change")
        assert session.cursor.step == step


def test_objects_are_listed(session: Session) -> None:
    all_of_it = asked(session, "goto last", "objects")
    assert asked(session, "get all") == all_of_it
    (line,) = asked(session, "get fnopexamples")
    assert line.split() in [each.split() for each in all_of_it]
    assert line.startswith("fnopexamples/default/example-1")
    assert asked(session, "goto first", "get fnopexamples") == [
        "there are no fnopexamples.fnop.dev at #1"
    ]


def test_an_object_that_a_listing_lacks_is_gone() -> None:
    """It was deleted while the operator was down: no event ever reported that."""
    recording, registry = Recording(slow()), slow()
    objects = [config("shared", n="0"), config("other"), example(n=1)]
    observers = (recording.recorder,)
    run = Scenario(registry, objects, settings=TRACED, observers=observers)
    assert run.settle()
    run.crash()
    run.delete("configmaps", "other")
    assert run.settle()
    _, records = recording.records()
    session = session_of([each for each in records if each is not None])
    with pytest.raises(NoAnswer, match="configmaps/default/other is gone since #") as e:
        asked(session, "goto last", "get configmaps/other")
    since = str(e.value).rpartition("#")[2]
    told = "\n".join(asked(session, f"goto {since}"))
    assert "sees configmaps/default/other no more in a listing" in told
    assert "configmaps are listed" in told
    asked(session, "object configmaps/other", "back")
    assert "kind: ConfigMap" in asked(session, "get")
    assert asked(session, "when kind absent")[0].endswith(f"from #{since} to the end")


def test_a_step_without_an_object_asks_for_one(session: Session) -> None:
    with pytest.raises(NoAnswer, match="#1 is about no object; choose one"):
        asked(session, "get")
    assert asked(session, "object")[0].startswith("no object is chosen")
    assert asked(session, "object example-1") == [
        "commands are about fnopexamples/default/example-1"
    ]
    assert asked(session, "object -")[0].startswith("no object is chosen")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("frobnicate", "there is no command 'frobnicate': help lists them"),
        ("ba\x1b", "there is no command"),
        ("", "there is no command ''"),
        ("w shared example-1 x y", "the recording shows no object"),
        ("goto nowhere", "a step is a number, first or last"),
        ("goto " + "9" * 5000, "a step is a number, first or last"),
        ("goto 999999", "there is no step #999999: the recording has #1 to #"),
        ("back", "#1 is the first step"),
        ("next 0", "a count is a number from 1 on"),
        ("next tuesday", "next and back take a number, call, write, change, failed"),
        ("call nobody", "there is no call of nobody after #1"),
        ("get nobody", "the recording shows no object 'nobody'"),
        ("why", "is not a path of a field"),
        ("when spec", "is not a predicate; write FIELD OPERATOR VALUE"),
        ("when spec.n =", "a value is missing after"),
        ("bisect 1 2", "bisect takes two steps and a predicate"),
    ],
)
def test_what_has_no_answer_is_said_in_a_sentence(
    session: Session, line: str, sentence: str
) -> None:
    before = session.cursor
    if line.startswith("when"):
        session.cursor = before = before.choosing(session.cursor.steps.ordered[0])
    with pytest.raises((NoAnswer, NoSuchObject, Unclear)) as found:
        asked(session, line)
    assert sentence in str(found.value)
    assert session.cursor == before


@pytest.mark.parametrize("word", ["n", "next", "nex"])
def test_commands_have_short_names_and_beginnings(session: Session, word: str) -> None:
    asked(session, word)
    assert session.cursor.step == 2
    asked(session, "1")
    assert session.cursor.step == 1
    asked(session, "#2")
    assert session.cursor.step == 2
    asked(session, "b")
    assert session.cursor.step == 1


def test_help_names_every_command(session: Session) -> None:
    told = "\n".join(asked(session, "help"))
    for name in ("next", "back", "goto", "get", "saw", "why", "who", "when", "bisect"):
        assert f"{name}" in told
    for name in session.completions(""):
        if "/" not in name:
            assert name in told
    assert session.completions("fnopex") == ["fnopexamples/default/example-1"]


# --------------------------------------------------------------------- predicates

DATA = {
    "spec": {"n": 3, "text": "b", "flag": True, "none": None},
    "status": {"conditions": [{"type": "Ready", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("spec.n = 3", True),
        ("spec.n == 3", True),
        ("spec.n!=3", False),
        ("spec.n > 2", True),
        ("spec.n > 3", False),
        ("spec.n <= 3", True),
        ("spec.n < 10", True),
        ("spec.text < c", True),
        ("spec.text >= c", False),
        ("spec.text > 1", True),
        ("spec.n ~ 3", True),
        ("spec.flag = true", True),
        ("spec.flag = 1", False),
        ("spec.none absent", True),
        ("spec.other absent", True),
        ("spec.other != 3", True),
        ("spec.other < 3", False),
        ("spec.n exists", True),
        ("spec = {}", False),
        ("status.conditions[type=Ready].status = False", True),
        ("status.conditions[type=Synced] exists", False),
        ("status ~ Ready", True),
    ],
)
def test_a_predicate_holds(words: str, holds: bool) -> None:
    assert parse_predicate(words).holds(DATA) is holds


def test_of_nothing_only_absence_holds() -> None:
    assert parse_predicate("spec.n absent").holds(None)
    assert not parse_predicate("spec.n != 3").holds(None)
    assert not parse_predicate("spec.n exists").holds(None)


@pytest.mark.parametrize("words", ["", "=", "= 3", "a b c", "a.b. = 3", "[x] = 1"])
def test_what_is_no_predicate(words: str) -> None:
    with pytest.raises(ValueError, match=r"write|missing"):
        parse_predicate(words)
