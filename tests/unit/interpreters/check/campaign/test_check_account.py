"""The content of a failure's recording in addition to the operator's steps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fnop as facade
from fnop.adapters.check.recordings import write_failure
from fnop.adapters.reports.check_report import failure_record
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.account import account_of, happened, record_of
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.kinds import Schedule
from fnop.interpreters.check.trials.differences import Difference
from fnop.interpreters.recording.model.account import (
    Account,
    Change,
    Crash,
    Differing,
    Mark,
    ReferenceLine,
    account_from_json,
    account_to_json,
)
from fnop.interpreters.recording.questions.timeline import Timeline
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.simulation.actions import apply, edit
from tests.checks import CRD, OBJECT, PASSWORD, failure
from tests.commands import fnop
from tests.pages import read_recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return failure(tmp_path_factory.mktemp("check"))


def told_in(recording: Path) -> Account:
    header, _ = read_recording(recording)
    return account_from_json(header["check"]["account"])


def test_the_account_tells_what_happened(recording: Path) -> None:
    account = told_in(recording)
    lanes = [(each.lane, each.text) for each in account.marks]
    assert lanes[0] == ("user", "apply X x")
    assert lanes[1][0] == "fault"
    assert [lane for lane, _ in lanes[2:]] == ["rest"] * 3
    by = {(each.kind, each.name, each.by) for each in account.changes}
    assert ("xs.example.com", "x", "user") in by
    assert ("secrets", "x-a", "operator") in by
    assert account.beside == "the run without faults"
    (missing,) = account.differences
    assert (missing.object, missing.field, missing.found) == ("secrets/x-b", "", None)
    assert any("secrets/default/x-b" in each.text for each in account.reference)
    bad = [each for each in account.crashes if each.fails]
    (strike,) = (each for each in account.marks if each.lane == "fault")
    assert [(each.text, each.step, each.fails) for each in bad] == [
        (strike.text, strike.step, ["same_end"])
    ]
    assert account.untried == 0


def test_the_account_has_tokens_for_secrets(recording: Path) -> None:
    header, records = read_recording(recording)
    whole = repr((header["check"]["account"], records))
    assert PASSWORD not in whole
    assert "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==" not in whole
    (difference,) = told_in(recording).differences
    assert difference.expected["data"] == {"p": "(secret)"}


def test_a_failure_is_still_tried_again_and_made_a_test(recording: Path) -> None:
    folder = recording.parent.parent
    source = fnop("check", "--as-test", recording, folder=folder)
    assert source.status == 0
    assert "account" not in source.out
    replayed = fnop("replay", recording, "op.py", folder=folder)
    assert replayed.out.startswith("identical: ")


def test_an_account_is_the_same_as_json() -> None:
    account = Account(
        (Mark(3, 1.5, "user", "apply X x", 7),),
        (Change(4, 8, "xs.example.com", "d", "x", "u", "ADDED", "user", {"a": 1}),),
        "the run without faults",
        (Differing("xs/x", "spec.a", 1, None),),
        (ReferenceLine("start/", "the operator starts"),),
        (Crash(5, "crash", "h", "create", ["same_end"]),),
        2,
    )
    assert account_from_json(account_to_json(account)) == account
    assert account_from_json(None) == Account()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"marks": 1},
        {"marks": [[]]},
        {"marks": [{"step": 1}]},
        {
            "changes": [
                {**Change(1, 1, "", "", "", "", "", "", {})._asdict(), "body": 1}
            ]
        },
        {"crashes": [{**Crash(1, "", "", "", [])._asdict(), "fails": [1]}]},
        {"untried": "no"},
    ],
)
def test_what_is_no_account_is_said(wrong: Any) -> None:
    with pytest.raises(ValueError, match="account of its check is damaged"):
        account_from_json(wrong)


# ------------------------------------------------------------------------ every fault


def case() -> Case:
    """An operator with a child that it creates, and patches."""
    registry = Registry()

    @facade.on.create("xs.example.com", registry=registry)
    async def made(name: str, spec: Any, **_: Any) -> None:
        child = {"metadata": {"name": name}, "data": {"size": str(spec.get("size"))}}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", **child}
        await facade.adopt(manifest)

    @facade.on.update("xs.example.com", registry=registry)
    async def changed(name: str, spec: Any, **_: Any) -> None:
        found = await facade.get("configmaps", name=name)
        if found is not None:
            size = str(spec.get("size"))
            await facade.patch(found, data={"size": size})

    program = Program(registry.handlers, Settings(traces=True))
    script = (apply(OBJECT), edit("xs/x", spec={"size": 2}))
    return Case(program, (CRD,), script)


def test_the_account_knows_the_cluster_under_every_fault() -> None:
    """All objects shown to the operator were in the cluster then, with their makers."""
    subject, tried, compared = case(), Counter[str](), 0
    for schedule in Explorer(subject).singles():
        kind = schedule[0].kind
        tried[kind.name] += 1
        if tried[kind.name] > 2 or kind.code == "F21":  # versions count again
            continue
        timeline = timeline_in(subject, schedule)
        known = {(e.uid, str(e.version)) for e in timeline.account.changes}
        for event in timeline.events:
            found = event.revision
            if event.sort != "shown" or found is None or "root-ca" in found.ref.name:
                continue
            assert (found.uid, found.version) in known, (schedule, event)
            compared += 1
        for versions in timeline.revisions.of_objects().values():
            for each in versions:
                assert not each.shown or each.since <= each.shown, (schedule, each)
                assert (each.by == "operator") == (each.made > 0), (schedule, each)
    assert compared > 100


def timeline_in(subject: Case, schedule: Schedule) -> Timeline:
    """The timeline of a trial, as its recording would have it."""
    redaction = Redaction(b"k", subject.program)
    _, steps, account = happened(subject, schedule, redaction)
    timeline = Timeline(account)
    for each in steps:
        timeline.add(record_of(each))
    timeline.end()
    return timeline


# ---------------------------------------------------------------------------- secrets


def copying() -> Case:
    """An operator that makes a Secret."""
    registry = Registry()

    @facade.on.create("xs.example.com", registry=registry)
    async def made(name: str, **_: Any) -> None:
        about = {"apiVersion": "v1", "metadata": {"name": name}}
        data = {"p": PASSWORD, "pin": "1234"}
        await facade.adopt({**about, "kind": "Secret", "stringData": data})

    program = Program(registry.handlers, Settings(traces=True))
    return Case(program, (CRD,), (apply(OBJECT),))


def test_the_message_of_a_failure_has_no_values_of_secrets(tmp_path: Path) -> None:
    """Neither any values in Secrets, nor revealing copies elsewhere."""
    differences = (
        Difference("secrets/x", "data.pin", "MTIzNA==", "NDMyMQ=="),
        Difference("configmaps/x", "data.copy", f"the {PASSWORD}", "the 4711"),
    )
    message = "; ".join(map(str, differences))
    subject, failed = copying(), Failure("script", (), Violation("same_end", message))
    told = failure_record(subject, failed)
    write_failure(tmp_path / "run.fnop", Explorer(subject), failed, told, lambda: False)
    header, _ = read_recording(tmp_path / "run.fnop")
    found = header["check"]["message"]
    assert found.startswith("secrets/x data.pin is another one; configmaps/x data.copy")
    assert '"the 4711" instead of "the ' in found
    assert PASSWORD not in found


def test_without_time_no_crash_is_tried() -> None:
    subject = case()
    failure = Failure("script", (), Violation("settles", ""))
    redaction = Redaction(b"k", subject.program)
    _, account = account_of(subject, failure, lambda: redaction, lambda: False)
    assert account.crashes == ()
    assert account.untried > 0
    assert account.reference == ()  # it is the run without faults
