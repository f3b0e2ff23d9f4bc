"""`fnop plan`: it shows what is done first, in any cluster, and changes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster import Off, paced
from fnop.interpreters.cluster.controllers.rounds import NAMES
from fnop.interpreters.plan.fields import changed_fields
from fnop.interpreters.plan.masking import Masking
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.plans import Served, planned, planner_of, sent_as_planned
from tests.simulations import Scenario, example
from tests.thorough import examples

KIND = "fnopexamples"


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def enumerated(texts: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return ((f"k{number}", each) for number, each in enumerate(texts))


_NAMES = st.sampled_from(("a", "b", "c", "d"))
_SPECS = st.fixed_dictionaries(
    {"size": st.integers(0, 3)},
    optional={"children": st.integers(0, 3), "fails": st.booleans()},
)
_DRIFT = st.one_of(
    st.tuples(st.just("spec"), _NAMES, _SPECS),
    st.tuples(st.just("child"), _NAMES, st.integers(0, 2)),
    st.tuples(st.just("gone"), _NAMES, st.integers(0, 2)),
    st.tuples(st.just("delete"), _NAMES, st.none()),
    st.tuples(st.just("create"), st.sampled_from(("x", "y")), _SPECS),
)


def operators() -> dict[str, Registry]:
    """Operators of different styles."""
    levels, causes = Registry(), Registry()

    @fnop.reconcile(KIND, owns=["configmaps"], registry=levels)
    def keep(name: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
        size = str(spec.get("size"))
        children = [note(f"{name}-{n}", size) for n in range(spec.get("children", 1))]
        return fnop.desired(children, status={"size": size})

    @fnop.on.delete(KIND, registry=causes)
    async def delete(name: str, **_: Any) -> None:
        await fnop.delete("configmaps", name=f"{name}-0")

    @fnop.on.create(KIND, registry=causes)
    @fnop.on.update(KIND, registry=causes)
    async def change(
        name: str, spec: fnop.Spec, patch: fnop.Patch, **_: Any
    ) -> dict[str, Any]:
        token = await fnop.random(4)
        if spec.get("fails"):
            raise fnop.TemporaryError("not yet", delay=60)
        for n in range(spec.get("children", 1)):
            await fnop.apply(note(f"{name}-{n}", f"{spec.get('size')}/{token}"))
        patch.status["size"] = str(spec.get("size"))
        return {"token": token}

    return {"levels": levels, "causes": causes}


def note(name: str, size: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"size": size},
    }


def drifted(run: Scenario, drift: tuple[str, str, Any]) -> None:
    what, name, value = drift
    match what:
        case "spec" if run.get(KIND, name) is not None:
            run.edit(KIND, name, spec={"children": None, "fails": None, **value})
        case "child" if run.get("configmaps", f"{name}-{value}") is not None:
            run.edit("configmaps", f"{name}-{value}", data={"size": "drifted"})
        case "gone" if run.get("configmaps", f"{name}-{value}") is not None:
            run.delete("configmaps", f"{name}-{value}")
        case "delete" if run.get(KIND, name) is not None:
            run.delete(KIND, name)
        case "create" if run.get(KIND, name) is None:
            run.apply(example(name, **value))
        case _:
            pass


@settings(max_examples=examples(12))
@given(
    st.sampled_from(("levels", "causes")),
    st.dictionaries(_NAMES, _SPECS, max_size=4),
    st.lists(_DRIFT, max_size=6),
    st.booleans(),
)
def test_the_first_round_is_what_a_run_does_at_once(
    style: str,
    specs: dict[str, dict[str, Any]],
    drifts: list[tuple[str, str, Any]],
    has_run: bool,
) -> None:
    registry = operators()[style]
    run = Scenario(registry, [example(name, **spec) for name, spec in specs.items()])
    if has_run:
        run.settle(seconds=30)
    for each in drifts:
        drifted(run, each)
    before, wall = run.cluster, run.clock.now().wall
    served = Served(before, wall)
    planner = planner_of(registry, served, wall)
    planned(planner)
    # Nothing was written, and what is stored is what it was.
    assert served.cluster is before
    assert {each.method for each in served.requests} == {"GET"}
    off = paced(before, {name: Off() for name in NAMES})
    program = run.machine.program
    real = SimulatedRun(program, off, seed="other", clock=VirtualClock(wall))
    real.settle(seconds=0.1)
    assert sent_as_planned(planner, real.requests) == []


_KEYS = st.sampled_from(
    ("a", "b", "name", "value", "password", "apiToken", "secret", "data", "annotations")
)
_TELLING = (
    "correct horse battery staple",
    "9f86d081884c7d659a2feaa0",
    "x7Qk2LmZp4RrW3",
)
_TEXTS = st.one_of(
    st.sampled_from(("", "pet", "1234", "blue", "tea pot")),
    st.builds(
        lambda form, text: form(text),
        st.sampled_from(
            (str, json.dumps, lambda text: f"postgres://u:{text}@db", base64_of)
        ),
        st.sampled_from(_TELLING),
    ),
)
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 9), _TEXTS)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
# A value may be at the place of a secret before, or afterwards, alone.
_VARIABLES = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("password", "colour")),
        "value": st.sampled_from(("pet", "blue", _TELLING[0])),
    }
)
# The same secrets in another order are another text.
_COPIES = st.lists(st.sampled_from(_TELLING), min_size=2, max_size=2).map("/".join)
_OBJECTS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(("Secret", "ConfigMap", "Thing")),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("a")},
            optional={"annotations": st.dictionaries(_KEYS, _TEXTS, max_size=2)},
        ),
    },
    optional={
        "spec": _VALUES,
        "env": st.lists(_VARIABLES, max_size=2),
        "dsn": _COPIES,
        "data": st.dictionaries(_KEYS, _TEXTS, max_size=3),
    },
)


@settings(max_examples=examples(100))
@given(_OBJECTS, _OBJECTS)
def test_masked_states_differ_where_the_real_ones_do_and_tell_nothing(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    after = {**after, "kind": before["kind"]}
    masking = Masking(Redaction(b"key", Program((), Settings())))
    secret = {"kind": "Secret", "stringData": dict(enumerated(_TELLING))}
    masking.learn([secret, before, after])
    old, new = masking.shown(before, after)
    real = [each.path for each in changed_fields(before, after)]
    assert [each.path for each in changed_fields(old, new)] == real
    text = json.dumps([old, new])
    for each in _TELLING:
        assert each not in text
        assert base64_of(each) not in text
    # Shapes stay.
    assert keys_of(old) == keys_of(before)
    assert keys_of(new) == keys_of(after)


def keys_of(value: Any) -> Any:
    """The shape of a value, without what is in it."""
    if isinstance(value, dict):
        return {key: keys_of(each) for key, each in value.items()}
    return [*map(keys_of, value)] if isinstance(value, list) else None
