"""`fnop replay --shadow`: decisions that depend on secrets are counted apart."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.adapters.recordings.replay_report import shadow_lines, sorts_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.replay.replay import replay
from fnop.interpreters.shadow.attempts import Shadow
from tests.histories import History, config
from tests.recordings import TRACED
from tests.simulations import example
from tests.thorough import examples

KIND = "fnopexamples"
Derive = Callable[[str], Any]


def sealed(name: str, text: str) -> dict[str, Any]:
    """A Secret with a value."""
    data = {"password": base64.b64encode(text.encode()).decode()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def full(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def short(text: str) -> str:
    return full(text)[:12]


def sentence(text: str) -> str:
    return f"the sum is {short(text)} of it"


def reversed_(text: str) -> str:
    return text[::-1]


def length(text: str) -> str:
    return f"of {len(text)}"


def encoded(text: str) -> str:
    return base64.b64encode(f"user:{text}".encode()).decode()


def listed(text: str) -> str:
    return ",".join((full(text), "b"))


def in_base32(text: str) -> str:
    return base64.b32encode(text.encode()).decode()


def in_utf16(text: str) -> str:
    return base64.b64encode(text.encode("utf-16-le")).decode()


def in_colons(text: str) -> str:
    return text.encode().hex(":")


FORMS = [in_base32, in_utf16, in_colons]
DERIVED = [full, short, sentence, reversed_, encoded, listed]


def hashing(derive: Derive, *, size: int = 1, more: bool = False) -> Registry:
    """A handler that draws a password, keeps it in a Secret, and derives a text."""
    registry = Registry()

    @fnop.reconcile(KIND, owns=["secrets", "configmaps"], registry=registry, id="keep")
    async def keep(spec: Any, name: str, children: Any, **_: Any) -> fnop.Desired:
        found = children["secrets"].get(name, {})
        password = (found.get("data") or {}).get("password")
        if not password:
            drawn = await fnop.random(18, secret=True)
            password = base64.b64encode(drawn.hex().encode()).decode()
        secret = {**sealed(name, ""), "data": {"password": password}}
        made = config(f"{name}-conf", size=str(spec.get("n", 0) * size))
        annotations = {"x/digest": derive(password)} | ({"x/more": "1"} if more else {})
        made["metadata"]["annotations"] = annotations
        return fnop.desired([secret, made])

    return registry


def shadowed(was: Registry, now: Registry) -> Shadow:
    history = History(was, example(n=1))
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    return history.recording.shadow(now)


@pytest.mark.parametrize("derive", DERIVED)
def test_a_text_that_is_made_of_a_secret_is_no_change(derive: Derive) -> None:
    found = shadowed(hashing(derive), hashing(derive))
    assert found.changed == []
    assert sorts_of(found) == frozenset()
    assert found.untold == {}


def test_which_decisions_cannot_be_compared_is_told() -> None:
    lines = shadow_lines(shadowed(hashing(short), hashing(short)))
    count = next(e for e in lines if "cannot be compared: " in e).partition(" ")[0]
    assert int(count) > 1
    at = lines.index(next(e for e in lines if "handler keep" in e))
    assert lines[at].startswith(f"{count} x reconcile handler keep (test_shadow_sec")
    assert lines[at].endswith("cannot be compared")
    assert lines[at + 1].strip() == (
        "in desired.children.configmap/default/example-1-conf.manifest.metadata."
        "annotations.x/digest"
    )
    assert lines[at + 2].strip().startswith("at default/example-1 (steps #")


def test_what_else_changes_is_told_without_what_depends_on_a_secret() -> None:
    found = shadowed(hashing(full), hashing(full, size=3))
    fields = {
        each.field[-1] for judged in found.changed for each in judged.changed.fields
    }
    assert fields == {"size"}
    assert sorts_of(found) == {"any", "change"}


def test_a_new_field_beside_a_secret_is_a_change() -> None:
    found = shadowed(hashing(full), hashing(full, more=True))
    fields = {
        each.field[-1] for judged in found.changed for each in judged.changed.fields
    }
    assert fields == {"x/more"}


def test_a_constant_in_the_place_of_a_sum_is_a_change() -> None:
    found = shadowed(hashing(full), hashing(lambda _: "0" * 64))
    assert found.changed
    assert sorts_of(found) == {"any", "change"}


def test_a_secret_that_is_desired_no_more_is_a_change() -> None:
    def without() -> Registry:
        registry = Registry()

        @fnop.reconcile(
            KIND, owns=["secrets", "configmaps"], registry=registry, id="keep"
        )
        def keep(**_: Any) -> fnop.Desired:
            return fnop.desired()

        return registry

    found = shadowed(hashing(full), without())
    assert "delete" in sorts_of(found)


def test_a_removed_value_of_a_secret_is_a_change() -> None:
    def making(**data: str) -> Registry:
        registry = Registry()

        @fnop.reconcile(KIND, owns="secrets", registry=registry, id="keep")
        def keep(name: str, **_: Any) -> fnop.Desired:
            return fnop.desired({**sealed(name, ""), "data": data})

        return registry

    given = {"user": "YWRtaW4=", "mode": "dHJ1ZQ=="}
    same = shadowed(making(**given), making(**given))
    assert same.changed == []
    fewer = shadowed(making(**given), making(user="YWRtaW4="))
    assert fewer.changed
    assert sorts_of(fewer) == {"any", "change"}


# ------------------------------------------------------------ secrets of others


def copying(derive: Derive, choose: Callable[[str], bool] | None = None) -> Registry:
    """A handler that reads a Secret, and derives a text; or chooses by it."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="copy")
    @fnop.on.update(KIND, registry=registry, id="copy")
    async def copy(**_: Any) -> Any:
        found = await fnop.get("secrets", name="s", namespace="default")
        password = base64.b64decode(found["data"]["password"]).decode()
        if choose is not None and choose(password):
            return fnop.event("Chosen", "by a secret")
        return fnop.apply(config("copy", text=derive(password)))

    return registry


def of_another(was: Registry, now: Registry, password: str) -> Shadow:
    history = History(was, sealed("s", password), example(n=1))
    history.writes("alice", KIND, "example-1", spec={"n": 2})
    return history.recording.shadow(now)


passwords = st.sampled_from(
    ["correct horse battery staple", "hC7!kq/+Zt9$wMv2#pL", "default", "true", "a"]
)


@settings(max_examples=examples(10))
@given(passwords, st.sampled_from([*DERIVED, *FORMS, length]))
def test_the_same_operator_changes_nothing(password: str, derive: Derive) -> None:
    found = of_another(copying(derive), copying(derive), password)
    assert found.changed == []


@pytest.mark.parametrize("derive", FORMS)
def test_what_has_another_form_replays_as_identical(derive: Derive) -> None:
    operator = copying(derive)
    history = History(operator, sealed("s", "hC7!kq/+Zt9$wMv2#pL"), example(n=1))
    _, records = history.recording.records()
    found = replay(records, Program(operator.handlers, TRACED))
    assert found.difference is None


@settings(max_examples=examples(10))
@given(passwords, st.sampled_from(DERIVED))
def test_another_kind_of_effect_is_a_change(password: str, derive: Derive) -> None:
    def otherwise() -> Registry:
        return copying(derive, choose=lambda _: True)

    found = of_another(copying(derive), otherwise(), password)
    assert found.changed
    assert "event" in sorts_of(found)


def test_a_choice_by_a_secret_cannot_be_compared() -> None:
    def choosing() -> Registry:
        return copying(full, choose=lambda text: text.startswith("correct"))

    found = of_another(choosing(), choosing(), "correct horse battery staple")
    # A token says nothing of what the secret begins with: both of them choose alike.
    assert (found.changed, found.untold) == ([], {})
    assert len(found.concealed) == 2


@pytest.mark.parametrize(
    ("choose", "password"),
    [
        (lambda text: text == "true", "true"),
        (lambda text: len(text.split("/")) == 2, "team-a/S3cr3t!"),
        (lambda text: text.isdecimal() and int(text) > 0, "4711"),
        (lambda text: text in ("strict", "lax"), "lax"),
        (lambda text: len(text) < 8, "short"),
        (lambda text: not text, ""),
        (lambda text: text == "default/example-1", "default/example-1"),
    ],
)
@pytest.mark.parametrize("is_field", [True, False])
def test_whatever_is_chosen_by_a_secret_cannot_be_compared(
    choose: Callable[[str], bool], password: str, *, is_field: bool
) -> None:
    def choosing(size: str = "1") -> Registry:
        if not is_field:
            return copying(lambda text: size, choose=choose)
        return copying(lambda text: f"{size} " + "ab"[choose(text)])

    found = of_another(choosing(), choosing(), password)
    assert (found.changed, found.untold) == ([], {})
    if not is_field:
        # What the new code does otherwise in any case is still a change.
        found = of_another(choosing(), copying(lambda _: "", lambda _: False), "other")
        assert len(found.changed) == 2


def test_a_choice_that_other_tokens_make_otherwise_cannot_be_compared() -> None:
    def choosing() -> Registry:
        return copying(full, choose=lambda text: text.startswith("redacted"))

    found = of_another(choosing(), choosing(), "correct horse battery staple")
    assert found.changed == []
    assert found.concealed


@pytest.mark.parametrize("is_asked_at_last", [True, False])
def test_a_choice_between_an_effect_and_the_end(is_asked_at_last: bool) -> None:
    """Whichever of them is recorded, decided now, or with the other tokens."""

    def choosing() -> Registry:
        registry = Registry()

        @fnop.on.create(KIND, registry=registry, id="copy")
        async def copy(patch: Any, **_: Any) -> Any:
            found = await fnop.get("secrets", name="s", namespace="default")
            password = base64.b64decode(found["data"]["password"]).decode()
            if password.startswith("redacted") == is_asked_at_last:
                await fnop.event("Chosen", full(password))
                return None
            patch.status["sum"] = full(password)
            return fnop.event("Ended", "otherwise")

        return registry

    found = of_another(choosing(), choosing(), "correct horse battery staple")
    assert found.changed == []
    assert len(found.concealed) == 1


def test_an_index_of_secrets_is_compared_alike() -> None:
    def indexing(derive: Derive) -> Registry:
        registry = Registry()

        @fnop.index("secrets", registry=registry, id="sums")
        def sums(name: str, body: Any, **_: Any) -> Any:
            return {name: derive(body["data"]["password"])}

        @fnop.on.create(KIND, registry=registry, id="make")
        def make(**_: Any) -> None: ...

        return registry

    password = "correct horse battery staple"
    found = of_another(indexing(full), indexing(full), password)
    assert (found.changed, found.reindexed) == ([], [])
    found = of_another(indexing(full), indexing(lambda _: "none"), password)
    assert sorts_of(found) == {"any", "index"}
