"""Mistakes in what handlers return, write to a patch, or store in a memo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.testing import plan_of
from tests.simulations import example

KIND = "fnopexamples"


def listing() -> Any:
    yield fnop.list("pods")


AWAIT = "coroutine is not a JSON value; it was not awaited; write `await` before it"
RAISE = "PermanentError is not a JSON value; it is an error: write `raise` before it"


RETURNED: dict[str, tuple[Callable[[], Any], str]] = {
    "a coroutine": (lambda: helper(), f"Return.value: {AWAIT}"),
    "several": (lambda: [helper(), helper()], f"the plan[0]: {AWAIT}"),
    "one in a plan": (lambda: [fnop.event("A"), helper()], f"the plan[0]: {AWAIT}"),
    "in a mapping": (lambda: {"a": [helper()], "b": helper()}, f"a[0]: {AWAIT}"),
    "a generator": (lambda: listing(), "generator is not a JSON value; write `yield"),
    "an error": (lambda: fnop.PermanentError("x"), f"Return.value: {RAISE}"),
    "an error's class": (lambda: fnop.PermanentError, "write `raise` before it"),
    "a function": (lambda: fnop.again, "it is a function: call it, as in again(...)"),
    "a class": (lambda: dict, "type is not a JSON value; use str, int"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_no_answer_is_told_with_its_remedy(name: str) -> None:
    """Python would warn about a coroutine that the error names, and fail this test."""
    make, sentence = RETURNED[name]
    assert sentence in str(plan_of(lambda **_: make(), example()).failure)


def assigned(patch: Any, *path: str) -> None:
    for name in path[:-1]:
        patch = getattr(patch, name)
    setattr(patch, path[-1], {"x": 1})


def deleted(patch: Any) -> None:
    del patch.spec["size"]


PATCHED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "the status": (
        lambda patch: assigned(patch, "status"),
        "the status of a patch is not assigned as a whole: write its keys, as in "
        "patch.status['key'] = ..., or patch.status.update(...)",
    ),
    "labels": (
        lambda patch: assigned(patch, "metadata", "labels"),
        "or patch.labels.update(...)",
    ),
    "a field of the status": (
        lambda patch: assigned(patch, "status", "phase"),
        "a patch has no attribute 'phase': its fields are keys",
    ),
    "deleted": (
        deleted,
        "does not write 'size'; to remove it from the object, set it to None",
    ),
    "popped": (lambda patch: patch.spec.pop("size"), "set it to None"),
}


@pytest.mark.parametrize("name", PATCHED)
def test_a_patch_is_written_by_its_keys(name: str) -> None:
    slip, sentence = PATCHED[name]

    def handle(patch: Any, **_: Any) -> None:
        slip(patch)

    assert sentence in str(plan_of(handle, example(size=1)).failure)


def test_what_was_written_to_a_patch_can_be_taken_back() -> None:
    def handle(patch: Any, **_: Any) -> None:
        patch.status.update({"a": 1, "b": 2, "c": 3})
        del patch.status["a"]
        assert patch.status.pop("b") == 2
        assert patch.status.pop("zzz", None) is None

    plan = plan_of(handle, example())
    assert plan.failure is None
    assert plan.patched == {"status": {"c": 3}}


def test_what_is_done_may_be_told_from_none() -> None:
    plan = [fnop.patch(status={}), None, fnop.event("Made")]
    assert [each.kind for each in filter(None, plan)] == ["Patch", "Event"]


async def helper() -> int:
    return 1


def change_all(memo: Any) -> None:
    memo |= {"x": 1}


MEMOS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an item": (lambda memo: memo.__setitem__("x", 1), "fnop.remember(x=...)"),
    "an attribute": (lambda memo: setattr(memo, "x", 1), "fnop.remember(x=...)"),
    "no identifier": (
        lambda memo: memo.__setitem__("x-y", 1),
        "fnop.remember(**{'x-y': ...})",
    ),
    "no item": (lambda memo: memo.__delitem__("x"), "fnop.remember(x=...), or None"),
    "no attribute": (lambda memo: delattr(memo, "x"), "fnop.remember(x=...), or None"),
    "a default": (lambda memo: memo.setdefault("x", []), "fnop.remember(x=...)"),
    "taken out": (lambda memo: memo.pop("x"), "fnop.remember(x=...)"),
    "several": (lambda memo: memo.update(x=1), "fnop.remember(x=...)"),
    "a mapping": (lambda memo: memo.update({"x": 1}), "fnop.remember(key=...)"),
    "merged": (change_all, "fnop.remember(key=...)"),
    "none": (lambda memo: memo.clear(), "fnop.remember(key=...)"),
    "within": (lambda memo: memo["list"].append(1), "fnop.remember(...)"),
}


@pytest.mark.parametrize("name", MEMOS)
def test_a_memo_is_changed_by_remembering(name: str) -> None:
    slip, sentence = MEMOS[name]

    @fnop.on.create(KIND, registry=Registry())
    def handle(memo: Any, **_: Any) -> None:
        slip(memo)

    text = str(plan_of(handle, example(), memo={"x": 1, "list": []}).failure)
    assert sentence in text
    assert "memo" in text
