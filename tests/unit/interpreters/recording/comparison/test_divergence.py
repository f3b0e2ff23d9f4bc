"""Two runs compared: which steps correspond, what differs, and why."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.comparison.causes import Comparison, compared
from fnop.interpreters.recording.comparison.divergence import Sort
from fnop.interpreters.recording.comparison.pairs import common_length
from fnop.interpreters.recording.comparison.runs import Run
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.identities.volatile import Names, Renaming, has_token
from fnop.interpreters.recording.redaction import MARK, TOKEN, Redaction, forms
from tests.recordings import TRACED
from tests.simulations import Scenario, example

UID = "0865be06-fec6-49da-aaf6-e9a6339e1cf{}"


class Kept(io.BytesIO):
    def close(self) -> None:
        """Keep readable what was written."""


def run_of(
    registry: Registry,
    acts: Callable[[Scenario], object],
    *,
    seed: str = "0",
    key: bytes = b"k" * 16,
) -> Run:
    """The recorded run of what a user does."""
    program, kept = Program(registry.handlers, TRACED), Kept()
    recorder = Recorder(kept, header_of(program, "test"), Redaction(key, program))
    sim = Scenario(registry, settings=TRACED, observers=[recorder], seed=seed)
    acts(sim)
    assert sim.settle(), sim.unsettled
    recorder.finish()
    assert recorder.problem is None, recorder.problem
    records = read_records(io.BytesIO(kept.getvalue()))
    read_header(records)
    run = Run()
    for each in records:
        assert each is not None
        run.add(each)
    return run


def create(sim: Scenario) -> Scenario:
    return sim.apply(example(size=1)).apply()


# ------------------------------------------------------------------------- secrets


def certify(*, digest: str = "sha256", text: str = "") -> Registry:
    """An operator that makes a password, and a checksum of it."""
    registry = Registry()

    @fnop.on.create("fnopexamples", id="decide", registry=registry)
    async def certify(name: str, **_: Any) -> Any:
        password = (await fnop.random(16, secret=True)).hex()
        about = {"apiVersion": "v1", "metadata": {"name": name}}
        await fnop.adopt({**about, "kind": "Secret", "stringData": {"p": password}})
        checksum = hashlib.new(digest, password.encode()).hexdigest()
        data = {"checksum": checksum, "text": text}
        await fnop.adopt({**about, "kind": "ConfigMap", "data": data})
        return {"checksum": checksum}

    return registry


def test_a_digest_of_a_secret_is_another_one_in_each_run() -> None:
    one = run_of(certify(), create)
    other = run_of(certify(), create, seed="1", key=b"o" * 16)
    assert compared(one, other).first is None
    assert compared(other, one).first is None


def test_where_a_secret_is_known_other_texts_are_compared_all_the_same() -> None:
    one = run_of(certify(), create)
    for operator in (certify(text="more"), certify(digest="md5")):
        first = compared(one, run_of(operator, create, seed="1", key=b"o" * 16)).first
        assert first is not None
        assert first.found.sort is Sort.DECISION


def secret(**data: str) -> Callable[[Scenario], object]:
    meta = {"name": "s", "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    return lambda sim: sim.apply({**manifest, "stringData": data})


def seeing(kind: str) -> Registry:
    registry = Registry()

    @fnop.on.event(kind, registry=registry)
    def seen(**_: Any) -> None:
        """Look at it."""

    return registry


ONE, OTHER = "correct horse battery staple", "9f86d081884c7d659a2feaa0c55ad015"


@pytest.mark.parametrize("key", [b"k" * 16, b"o" * 16])
def test_tokens_correspond_one_to_one(key: bytes) -> None:
    """Of one key or of two: equal secrets stay equal, and others stay others."""
    one = run_of(seeing("secrets"), secret(a=ONE, b=ONE))
    same = run_of(seeing("secrets"), secret(a=ONE, b=ONE), key=key)
    assert compared(one, same).first is None
    first = compared(
        one, run_of(seeing("secrets"), secret(a=ONE, b=OTHER), key=key)
    ).first
    assert first is not None
    (input,) = first.cause.inputs
    assert [each.field for each in input.fields] == [("data", "b")]


def test_recordings_with_one_key_tell_another_secret() -> None:
    one = run_of(seeing("secrets"), secret(a=ONE, b=OTHER))
    first = compared(one, run_of(seeing("secrets"), secret(a=ONE, b="x" + OTHER))).first
    assert first is not None
    other_key = run_of(seeing("secrets"), secret(a=ONE, b="x" + OTHER), key=b"o" * 16)
    assert compared(one, other_key).first is None  # the keys differ: unknown


FORMS = sorted({each for _, each in forms(b"s", MARK + "0123abcd" * 3)})


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_tokens_are_known(form: str) -> None:
    assert TOKEN.search(form)
    assert has_token({"a": f"of {form}, b"})


# --------------------------------------------------------------------------- causes


def sized(limit: int = 0) -> Registry:
    """An operator that decides by an index, by its memo, and by a field."""
    registry = Registry()

    @fnop.index("configmaps", id="known", registry=registry)
    def known(name: str, **_: Any) -> Any:
        return {name: True}

    @fnop.on.create("fnopexamples", id="decide", registry=registry)
    @fnop.on.update("fnopexamples", id="decide", registry=registry)
    def decide(spec: Any, known: Any = fnop.INDEX, **_: Any) -> Any:
        return {"size": spec["size"], "known": len(known), "limit": limit}

    return registry


def config(sim: Scenario, name: str) -> Scenario:
    meta = {"name": name, "namespace": "default"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    return sim.apply({**manifest, "data": {"a": "1"}})


def first_of(found: Comparison) -> Any:
    assert found.first is not None
    return found.first


def test_the_code_differs_where_nothing_else_does() -> None:
    first = first_of(compared(run_of(sized(), create), run_of(sized(1), create)))
    assert first.found.sort is Sort.DECISION
    assert [each.field[-1] for each in first.found.fields] == ["limit"]
    assert first.cause.inputs == ()


def test_an_index_is_a_cause() -> None:
    known = run_of(sized(), lambda sim: create(config(sim, "s")))
    first = first_of(compared(run_of(sized(), create), known))
    assert first.found.sort is Sort.DECISION
    assert "known: configmaps/default/s" in [e.what for e in first.cause.inputs]
    assert {each.kind for each in first.cause.inputs} == {"index"}


def test_a_field_is_a_cause_with_the_step_that_brought_it() -> None:
    def edited(size: int) -> Callable[[Scenario], object]:
        def acts(sim: Scenario) -> None:
            create(sim).settle()
            sim.edit("fnopexamples", spec={"size": size}).settle()
            sim.edit("fnopexamples", spec={"size": 7})

        return acts

    found = compared(run_of(sized(), edited(2)), run_of(sized(), edited(3)))
    first, decision = first_of(found), found.decision
    assert first.found.sort is Sort.VIEW
    (input,) = first.cause.inputs
    assert [(e.field, e.old, e.new) for e in input.fields] == [(("spec", "size"), 2, 3)]
    assert [each.step for each in input.shown] == [*first.found.steps]
    assert [each.by for each in input.shown] == ["modified", "modified"]
    assert input.same == (None, None)
    assert decision is not None
    assert decision.found.before is first.found
    (lane,) = (each for each in found.lanes if each.handler == "decide")
    assert (lane.equal, lane.ours, lane.theirs) == (2, 1, 1)


def test_a_state_that_the_other_run_has_seen_earlier_is_told_so() -> None:
    def twice(sim: Scenario) -> None:
        create(sim).settle()
        sim.edit("fnopexamples", spec={"size": 2}).settle()
        sim.edit("fnopexamples", spec={"size": 3})

    def once(sim: Scenario) -> None:
        create(sim).settle()
        sim.edit("fnopexamples", spec={"size": 3})

    operator = seeing("fnopexamples")
    first = first_of(compared(run_of(operator, twice), run_of(operator, once)))
    (input,) = first.cause.inputs
    ours, theirs = input.same
    assert theirs is None  # it was never shown size 2
    assert ours.step > first.found.steps[0]  # and we were shown size 3 later


def test_a_call_that_one_run_lacks_has_a_trigger() -> None:
    def edited(sim: Scenario) -> None:
        create(sim).settle()
        sim.edit("fnopexamples", spec={"size": 2})

    found = compared(run_of(sized(), edited), run_of(sized(), create))
    first = first_of(found)
    assert (first.found.sort, first.found.steps[1]) == (Sort.CALL, None)
    (input,) = first.cause.inputs
    assert (input.kind, input.what) == ("trigger", "FnopExample default/example-1")
    assert ("spec", "size") in [each.field for each in input.fields]
    assert found.shorter == 1


# ---------------------------------------------------------------------------- names


def object_of(name: str, uid: int, **meta: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "uid": UID.format(uid), **meta},
    }


def test_generated_names_correspond_wherever_they_stand() -> None:
    ours, theirs = Names(), Names()
    for names, ends in ((ours, ("abcde", "fghij")), (theirs, ("zzzzz", "yyyyy"))):
        for number, end in enumerate(ends):
            names.learn(object_of(f"x-{end}", number, generateName="x-"))
    renaming = Renaming(ours, theirs)
    assert renaming.is_same("pod x-abcde: x-fghij-data", "pod x-zzzzz: x-yyyyy-data")
    assert not renaming.is_same("pod x-abcde", "pod x-yyyyy")
    assert renaming.is_same({"x-abcde": 1}, {"x-zzzzz": 1})
    both = [
        [object_of(f"x-{end}", n) for n, end in enumerate(ends)]
        for ends in (("abcde", "fghij"), ("zzzzz", "yyyyy"))
    ]
    assert renaming.is_same(both[0], both[1][::-1])  # lists of objects have no order


def test_an_object_that_was_made_anew_is_another_one() -> None:
    ours, theirs = Names(), Names()
    for names in (ours, theirs):
        names.learn(object_of("x", 1))
        names.learn(object_of("x", 2))
    renaming = Renaming(ours, theirs)
    assert renaming.is_same(UID.format(1), UID.format(1))
    assert not renaming.is_same(UID.format(1), UID.format(2))


def test_true_is_not_one() -> None:
    renaming = Renaming(Names(), Names())
    for one, other in ((True, 1), ([True], [1]), ({"a": False}, {"a": 0})):
        assert not renaming.is_same(one, other)
        assert not renaming.is_same({"b": one, "c": UID}, {"b": other, "c": UID})
    assert renaming.is_same(1, 1.0)


def test_the_same_text_with_another_digest_differs() -> None:
    """An image, for example: only who knows a secret makes digests of it."""
    renaming = Renaming(Names(), Names())
    assert not renaming.is_same("a" * 40, "b" * 40)
    assert not renaming.is_same("app@sha256:" + "a" * 64, "app@sha256:" + "b" * 64)


def test_common_subsequences() -> None:
    assert common_length("", "abc") == 0
    assert common_length("abc", "abc") == 3
    assert common_length("xaxbxc", "aybycy") == 3
    assert common_length("ab" * 500, "ba" * 500) == 999
