"""Reviews of writes are recorded next to the steps, and decided again."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.questions.story import Story
from fnop.interpreters.recording.replay.replay import replay_file
from fnop.interpreters.runtime.run import Runner
from fnop.interpreters.simulation.scenario import ApplyProblem, create
from tests.histories import History
from tests.recordings import TRACED, Recording, text_of
from tests.simulations import example

KIND = "fnopexamples"


def operator(limit: int = 9) -> Registry:
    registry = Registry()

    @fnop.index(KIND, id="names", registry=registry)
    def names(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.on.update(KIND, id="served", registry=registry)
    def served(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
        patch.status["size"] = spec["size"]

    @fnop.on.mutate(KIND, id="labelled", registry=registry)
    def labelled(patch: fnop.Patch, labels: Any, **_: Any) -> None:
        if "team" not in labels:
            patch.metadata.labels["team"] = "none"

    @fnop.on.validate(KIND, id="small", registry=registry)
    async def small(spec: fnop.Spec, warnings: list[str], **given: Any) -> None:
        if await fnop.get("configmaps", name="limits") is not None:
            warnings.append("limits are ignored")
        if spec["size"] > limit and given["names"]:
            raise fnop.Denied("it is too large", field="spec.size")

    return registry


@pytest.fixture(scope="module")
def recorded() -> bytes:
    history = History(operator(), example("a", size=1))
    history.writes("kubectl", KIND, "a", spec={"size": 5})
    with pytest.raises(AssertionError):
        history.writes("kubectl", KIND, "a", spec={"size": 10})
    history.recording.records()
    return history.recording.written()


def program(limit: int = 9) -> Program:
    return Program(operator(limit).handlers, TRACED)


def reviews(data: bytes) -> list[dict[str, Any]]:
    records = read_records(io.BytesIO(data), reviews=True)
    read_header(records)
    found = [each for each in records if each is not None]
    return [each for each in found if each["input"]["in"] == "Reviewed"]


def test_reviews_are_recorded_with_their_answers_and_no_reader_of_steps_sees_them(
    recorded: bytes,
) -> None:
    found = reviews(recorded)
    decided = [each["commands"][0] for each in found]
    assert {each["do"] for each in decided} == {"Decided"}
    assert [each["denials"] for each in decided if not each["allowed"]] == [
        [
            {
                "handler": "small",
                "message": "it is too large",
                "code": 422,
                "field": "spec.size",
            }
        ]
    ]
    assert any(each["input"]["answers"] for each in found)
    assert all("headers" not in each["input"]["request"] for each in found)
    steps = read_records(io.BytesIO(recorded))
    read_header(steps)
    assert all(e is not None and e["input"]["in"] != "Reviewed" for e in steps)


def test_the_story_tells_denials_with_handler_and_line(recorded: bytes) -> None:
    records = read_records(io.BytesIO(recorded), reviews=True)
    places = read_header(records)["places"]
    story = Story(places=places)
    lines = [line for each in records if each is not None for line in story.add(each)]
    told = [each for each in lines if each.sort == "review"]
    assert {each.where for each in told} == {"default/a"}
    denied = [each.text for each in told if "denied" in each.text]
    place = places["small"]
    assert denied == [f"UPDATE by admin is denied by small ({place}): it is too large"]
    changed = [each.text for each in told if "changed" in each.text]
    assert changed[0] == "UPDATE by admin is changed: metadata.labels.team added"


def test_the_same_program_decides_the_same(recorded: bytes) -> None:
    found = replay_file(io.BytesIO(recorded), program())
    assert found.difference is None
    assert found.steps


def test_another_decision_is_told_with_its_handler(recorded: bytes) -> None:
    found = replay_file(io.BytesIO(recorded), program(limit=20)).difference
    assert found is not None
    assert found.handler == "small"
    assert found.recorded is not None
    assert found.now is not None
    assert (found.recorded["allowed"], found.now["allowed"]) == (False, True)


def test_secrets_in_reviews_are_redacted() -> None:
    registry = Registry()

    @fnop.on.mutate("secrets", id="salted", registry=registry)
    def salted(body: fnop.Body, patch: fnop.Patch, **_: Any) -> None:
        if "salt" not in body["data"]:
            patch["data"] = {"salt": "cGVwcGVyLXRoYXQtaXMtc2VjcmV0"}

    @fnop.on.validate("secrets", id="strong", registry=registry)
    def strong(body: fnop.Body, **_: Any) -> None:
        raise fnop.Denied(f"{body['data']['password']} is weak")

    @fnop.on.event(KIND, id="seen", registry=registry)
    def seen(**_: Any) -> None:
        pass

    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "data": {"password": "Zk9xN2h3UTlyVDJ4VjhuTGMzZA=="},
    }
    history = History(registry, example("a", size=1))
    with pytest.raises(ApplyProblem, match="is weak"):
        create(history.run, secret)
    history.recording.records()
    data = history.recording.written()
    found_reviews = reviews(data)
    about = {each["input"]["request"]["plural"] for each in found_reviews}
    assert about == {"secrets"}
    text = text_of(data) + json.dumps(found_reviews)
    assert "Zk9xN2h3UTlyVDJ4VjhuTGMzZA" not in text
    assert "cGVwcGVyLXRoYXQtaXMtc2VjcmV0" not in text
    found = replay_file(io.BytesIO(data), Program(registry.handlers, TRACED))
    assert found.difference is None or found.difference.doubt is not None


def test_a_running_operator_records_its_reviews() -> None:
    registry = Registry()

    @fnop.on.validate(KIND, id="never", registry=registry)
    def never(**_: Any) -> None:
        raise fnop.Denied("no")

    async def unused(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is asked for")

    recording = Recording(registry)
    api: Any = unused
    runner = Runner(
        recording.program,
        api,
        seed="s",
        resolve=lambda name: unused,
        random=bytes,
        observers=(recording.recorder,),
    )
    request = {
        "uid": "1",
        "operation": "CREATE",
        "kind": {"group": "fnop.dev", "version": "v1", "kind": "FnopExample"},
        "resource": {"group": "fnop.dev", "version": "v1", "resource": KIND},
        "namespace": "default",
        "object": example("a", size=1),
    }
    version = "admission.k8s.io/v1"
    body = {"apiVersion": version, "kind": "AdmissionReview", "request": request}

    async def reviewed() -> None:
        # As a web server passes them on: credentials among them.
        headers = {"authorization": "Bearer c2VjcmV0"}
        assert not (await runner.review(body, headers=headers)).allowed

    asyncio.run(reviewed())
    recording.records()
    (found,) = reviews(recording.written())
    assert found["commands"][0]["denials"][0]["message"] == "no"
    assert "c2VjcmV0" not in json.dumps(found)
