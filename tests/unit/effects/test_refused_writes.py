"""Errors about writes name the operation, or the field, and the author's line."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import Perform
from fnop.effects import Create, Outcome, Patch
from fnop.interpreters.runtime.answers import outcome_of
from fnop.interpreters.runtime.protocol import ApiResponse
from tests.simulations import example
from tests.stories import Story

KIND = "fnopexamples"
# Kubernetes 1.20, for 2 MB in one field of a Deployment, and for 3.5 MB.
ETCD = (500, "etcdserver: request is too large")
ENTITY = (413, "Request entity too large: limit is 3145728")
NOTES = (422, "metadata.annotations: Too long: must have at most 262144 bytes")


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "remove", "path": "/spec/x/y"}, "there is nothing at /spec/x/y"),
        ({"op": "add", "path": "/spec/x/y", "value": 1}, "nothing to change at /x/y"),
        ({"op": "test", "path": "/spec", "value": 1}, "another value is there"),
    ],
)
def test_an_operation_on_the_handled_object_is_named(
    registry: Registry, operation: dict[str, Any], why: str
) -> None:
    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(**_: Any) -> Any:
        return fnop.patch(json=[operation])

    story = Story(registry, [example(size=1)])
    story.settle()
    [line] = story.said_at("error")
    op, path = operation["op"], operation["path"]
    assert f"the operation {op} {path} fails: " in line
    assert why in line
    assert "the patch of test_refused_writes.py:" in line


def test_an_operation_on_another_object_is_named(registry: Registry) -> None:
    """API servers say nothing about it but that there is an error (1.20)."""

    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(**_: Any) -> Any:
        steps = [{"op": "replace", "path": "/spec/x/y", "value": 1}]
        return fnop.patch(fnop.target(KIND, name="example-2"), json=steps)

    second = example("example-2")
    del second["spec"]
    story = Story(registry, [example(), second])
    story.settle()
    lines = story.said_at("error")
    assert lines
    assert all("one of its operations fails, replace /spec/x/y" in e for e in lines)
    assert all("(planned by test_refused_writes.py:" in each for each in lines)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "tets", "path": "/a"}, r"\[0\] has the op 'tets', and there are add,"),
        ({"op": "add", "path": "/a"}, r"\[0\] has no value: add /a"),
        ({"op": "move", "path": "/a"}, r"\[0\] has no from: move /a"),
        ({"op": "remove", "path": "a"}, r"\[0\] has the path 'a', which does not beg"),
        ({"path": "/a"}, r"\[0\] is .*, without op and path; it takes RFC 6902"),
    ],
)
def test_an_operation_that_is_none_is_refused(
    operation: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=f"Patch.json{why}"):
        fnop.patch(json=[operation])


@pytest.mark.parametrize(("status", "message"), [ETCD, ENTITY, NOTES])
def test_the_largest_field_is_named(status: int, message: str) -> None:
    effect = Patch(merge={"status": {"small": 1, "report": "x" * 2_000_000}})
    body = {"kind": "Status", "status": "Failure", "message": message}
    found: Any = outcome_of(effect, ApiResponse(status, body))
    assert isinstance(found, fnop.effects.outcomes.Refused)
    told = f"{message}; the largest field is status.report, of 2,000,002 bytes"
    assert found.message == told


@pytest.mark.parametrize("written", ["own", "other"])
def test_what_is_too_large_is_not_tried_again(registry: Registry, written: str) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        if written == "own":
            return fnop.patch(status={"report": "long"})
        meta = {"name": "a", "namespace": "default"}
        return fnop.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}
        )

    status, message = ENTITY

    def too_large(story: Story, command: Perform) -> Outcome | None:
        effect = command.effect
        is_own = isinstance(effect, Patch) and "report" in str(effect.merge)
        if not is_own and not isinstance(effect, Create):
            return None
        body = {"kind": "Status", "status": "Failure", "message": message}
        return outcome_of(effect, ApiResponse(status, body))

    story = Story(registry, [example()])
    story.fate = too_large
    story.wait(600)
    [line] = story.said_at("error")
    assert "failed for good" in line
    assert "the largest field is " in line


def made(kind: str, name: str, version: str = "v1", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}}


MAKING = (fnop.create, fnop.apply, fnop.adopt, fnop.child)


@pytest.mark.parametrize("make", MAKING)
@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (made("ConfigMap", "A_b"), "'A_b' cannot be the name of a ConfigMap: it has"),
        (made("Job", "a.-b", "batch/v1"), "'a.-b' cannot be the name of a Job: "),
        (
            made("Service", "1.a"),
            "'1.a' cannot be the name of a Service: a Service has",
        ),
        (made("Namespace", "a.b"), "'a.b' cannot be the name of a Namespace: "),
        (made("Boat", "a", "e.com/v1", labels={"a": "x y"}), "the label a cannot have"),
        (made("Boat", "a", "e.com/v1", labels={"a": "x" * 64}), "the label a cannot "),
        (made("Boat", "a", "e.com/v1", labels={"A B": "x"}), "'A B' in metadata.lab"),
        (made("Boat", "a", "e.com/v1", labels={"E.com/a": "x"}), "'E.com/a' in meta"),
        (made("Boat", "a", "e.com/v1", annotations={"A B": "x"}), "'A B' in metadata"),
    ],
)
def test_what_no_server_takes_is_refused_where_it_is_built(
    make: Any, manifest: dict[str, Any], why: str
) -> None:
    """As Kubernetes 1.20 refuses them."""
    with pytest.raises(ValueError, match=why):
        make(manifest)


@pytest.mark.parametrize("make", MAKING)
@pytest.mark.parametrize(
    "manifest",
    [
        made("ConfigMap", "a.b-1"),
        made("Role", "A_b:c", "rbac.authorization.k8s.io/v1"),
        made("Event", "A_b"),
        made("Boat", "A_b", "e.com/v1"),
        made("ConfigMap", "a", annotations={"E.com/a": "x y", "b": ""}),
        made("ConfigMap", "a", labels={"e.com/a": "", "b_C": "x.Y"}),
    ],
)
def test_what_a_server_takes_is_built(make: Any, manifest: dict[str, Any]) -> None:
    assert make(manifest)


@pytest.mark.parametrize(
    "change", [{"labels": {"a": "x y"}}, {"labels": {"a b": None}}]
)
def test_labels_of_a_patch_are_checked(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot "):
        fnop.patch(**change)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (lambda: fnop.TemporaryError(dealy=3), "no argument 'dealy'; write Temporary"),  # type: ignore[call-arg]
        (
            lambda: fnop.PermanentError("no", delay=3),  # type: ignore[call-arg]
            r"PermanentError is final, and takes no delay; raise TemporaryError",
        ),
    ],
)
def test_mistyped_errors_say_what_to_write(wrong: Any, remedy: str) -> None:
    with pytest.raises(TypeError, match=remedy):
        wrong()


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda: 1, "not a lambda; write def work"),
        (made, None),
        (5, "not int .a function that was called already.*write def work"),
        (test_mistyped_errors_say_what_to_write, None),
    ],
)
def test_what_cannot_be_called_outside_says_what_to_write(
    function: Any, what: str | None
) -> None:
    if what is None:
        assert fnop.call(function).function.endswith(function.__name__)
        return
    with pytest.raises(ValueError, match=what):
        fnop.call(function)


def test_a_mistyped_argument_of_an_effect_is_told(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        return fnop.get("pods", nmae="x")  # type: ignore[call-arg]

    story = Story(registry, [example()])
    story.settle()
    [line] = story.said_at("error")
    assert line.endswith("unexpected keyword argument 'nmae'; did you mean 'name'?")
