"""Signed state: users of an object cannot forge what the operator has done."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import example as sample, given, strategies as st

import fnop
from fnop.adapters.cli.main import main
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.memory.seals import seal_of
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import read_header, read_records, replay
from tests.simulations import DEFINITION, Scenario, example
from tests.stories import Story

KIND = "fnopexamples"
KEY, NEW = "k" * 32, "n" * 32
MARK = "fnop.dev/default"
TEXT = '{"seen":{"":"1:abc"},"uid":"u-1","v":1}'


def seal(*keys: str, operator: str = "default") -> Any:
    return seal_of(keys, operator)


def test_a_sealed_state_opens() -> None:
    text = seal(KEY).sealed(TEXT)
    assert text.startswith('{"sig":"')
    assert json.loads(text).items() > json.loads(TEXT).items()
    assert seal(KEY).opens(text)
    assert seal(NEW, KEY).opens(text)
    assert not seal(NEW).opens(text)


@given(st.data())
def test_another_text_does_not_open(data: st.DataObject) -> None:
    text = seal(KEY).sealed(TEXT)
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 3))
    other = text[:at] + data.draw(st.text(max_size=3)) + text[at + length :]
    assert seal(KEY).opens(other) == (other == text)


@given(st.none() | st.booleans() | st.text() | st.dictionaries(st.text(), st.text()))
@sample(TEXT)
@sample({"sig": "x", "v": 1, "uid": "u"})
@sample('{"sig":"' + "A" * 43 + '",')
def test_what_nobody_has_signed_does_not_open(text: Any) -> None:
    assert not seal(KEY).opens(text)
    assert seal(KEY, "unsigned").opens(text) == (
        not isinstance(text, str) or not text.startswith('{"sig":"AAAA')
    )


def test_the_operators_name_is_part_of_the_key() -> None:
    assert not seal(KEY, operator="other").opens(seal(KEY).sealed(TEXT))


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (("short-secret",), "at least 32 characters"),
        (("unsigned",), "the first state key signs"),
        (KEY, "takes several keys"),
        ((KEY.encode(),), "keys that are texts"),
    ],
)
def test_keys_that_cannot_be(keys: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem) as caught:
        fnop.Settings(state_keys=keys)
    assert "short-secret" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_nothing_shows_a_key() -> None:
    settings = fnop.Settings(state_keys=(KEY, NEW))
    program = Program((), settings)
    for shown in (repr(settings), repr(settings.places), repr(program)):
        assert "kkkk" not in shown
        assert "nnnn" not in shown
    assert seal_of((), "default") is None


# ------------------------------------------------------------------- on objects


@pytest.fixture
def calls() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def registry(calls: list[tuple[str, Any]]) -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def created(spec: Any, **_: Any) -> None:
        calls.append(("create", spec["size"]))

    @fnop.on.update(KIND, registry=registry)
    def updated(spec: Any, **_: Any) -> None:
        calls.append(("update", spec["size"]))

    return registry


def annotated(*keys: str) -> fnop.Settings:
    """The place where an author can write: the annotations."""
    return fnop.Settings(storage=fnop.AnnotationStorage(), state_keys=keys)


def state_of(story: Story) -> str:
    found = story.get(KIND)
    assert found is not None
    return str(found["metadata"]["annotations"][MARK])


def write_state(story: Story, text: str | None, **spec: Any) -> None:
    story.edit(KIND, metadata={"annotations": {MARK: text}}, spec=spec)


def restart(story: Story, registry: Registry, *keys: str) -> None:
    story.said.clear()
    story.crash(Program(registry.handlers, annotated(*keys)))
    story.settle(seconds=10)


def served(registry: Registry, *keys: str) -> Story:
    story = Story(registry, [example(size=1)], settings=annotated(*keys))
    story.settle(seconds=10)
    return story


def test_a_restart_believes_its_own_signature(
    registry: Registry, calls: list[Any]
) -> None:
    story = served(registry, KEY)
    assert seal(KEY).opens(state_of(story))
    story.crash()
    story.settle(seconds=10)
    assert calls == [("create", 1)]
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=10)
    assert calls == [("create", 1), ("update", 2)]


def forged(text: str) -> str:
    """A state that says of itself what an author would like it to say."""
    state = json.loads(text)
    state["seen"] = {name: "1:0000" for name in state["seen"]}
    return json.dumps(state, separators=(",", ":"), sort_keys=True)


def test_without_keys_an_author_can_make_a_handler_run(
    registry: Registry, calls: list[Any]
) -> None:
    """The reason for signatures."""
    story = served(registry)
    write_state(story, forged(state_of(story)))
    restart(story, registry)
    assert calls == [("create", 1), ("update", 1)]


@pytest.mark.parametrize("strips", [False, True])
def test_a_forged_state_is_not_believed(
    registry: Registry, calls: list[Any], strips: bool
) -> None:
    story = served(registry, KEY)
    text = forged(state_of(story))
    if not strips:
        signature = json.loads(state_of(story))["sig"]
        text = f'{{"sig":"{signature}",{text[1:]}'
    write_state(story, text)
    restart(story, registry, KEY)
    assert calls == [("create", 1)]
    (warning,) = story.said_at("warning")
    assert "no key of this operator has signed it" in warning
    assert state_of(story) == text, "it is left as it is"


def test_the_state_of_another_object_is_none(
    registry: Registry, calls: list[Any]
) -> None:
    story = served(registry, KEY)
    foreign = seal(KEY).sealed(json.dumps({"uid": "another", "v": 1, "seen": {}}))
    write_state(story, foreign)
    restart(story, registry, KEY)
    assert calls == [("create", 1)] * 2


def test_keys_are_rotated(registry: Registry, calls: list[Any]) -> None:
    story = served(registry, KEY)
    restart(story, registry, NEW, KEY)
    assert seal(NEW).opens(state_of(story)), "what is there is signed anew"
    sent = len(story.sent)
    restart(story, registry, NEW)
    assert calls == [("create", 1)]
    assert story.said_at("warning") == []
    assert len(story.sent) == sent, "once"


def test_signing_can_begin_and_end(registry: Registry, calls: list[Any]) -> None:
    story = served(registry)
    assert "sig" not in json.loads(state_of(story))
    restart(story, registry, KEY, "unsigned")
    assert seal(KEY).opens(state_of(story))
    restart(story, registry, KEY)
    restart(story, registry)
    assert calls == [("create", 1)]
    assert story.said_at("warning") == []


def test_no_handler_changes_the_keys(registry: Registry) -> None:
    @fnop.on.startup(registry=registry, retries=1)
    def configure(settings: fnop.Settings, **_: Any) -> Any:
        return fnop.Settings(settings.operator)

    story = served(registry, KEY)
    assert story.exit is not None
    assert "before the operator starts" in "\n".join(story.said_at("error"))


def test_a_recording_needs_no_key(registry: Registry) -> None:
    file, program = io.BytesIO(), Program(registry.handlers, annotated(KEY))
    recorder = Recorder(file, header_of(program, "1"), Redaction(b"x" * 16, program))
    story = Scenario(
        registry, [example(size=1)], settings=annotated(KEY), observers=[recorder]
    )
    story.settle(seconds=10)
    story.edit(KIND, spec={"size": 2})
    story.settle(seconds=10)
    recorder.finish()
    file.seek(0)
    records = [*read_records(file)]
    assert '\\"sig\\"' not in json.dumps(records)
    assert KEY not in json.dumps(records)
    again = iter(records)
    read_header(again)
    plain = Program(registry.handlers, annotated())
    assert replay(again, plain).difference is None


OPERATOR = """
import fnop

@fnop.on.create("fnopexamples")
def create(**_):
    return fnop.patch(status={"done": True})
"""


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (f"{KEY}\n\n{NEW}\n", 0, '"sig":"'),
        ("short-secret", 2, "at least 32 characters"),
        ("\n", 2, "there is no state key in"),
    ],
)
def test_the_keys_of_a_file(tmp_path: Path, text: str, status: int, said: str) -> None:
    keys, operator = tmp_path / "keys", tmp_path / "operator_with_keys.py"
    keys.write_text(text)
    operator.write_text(OPERATOR)
    manifest = tmp_path / "object.yaml"
    manifest.write_text("\n---\n".join(map(json.dumps, (DEFINITION, example()))))
    variables = {"FNOP_RUN_STATE_KEY_FILE": str(keys)}
    arguments = ["run", str(operator), "--simulate", str(manifest)]
    done = CliRunner().invoke(main, arguments, env=variables)
    assert done.exit_code == status, done.output
    assert said in done.output
    assert KEY not in done.output
    assert "short-secret" not in done.output
