"""The same handlers in Kopf and in fnop: answers, warnings and objects are the same.

If fnop decides differently on purpose, the case says so
(docs/how-to/validate-and-mutate-objects.md).
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import orjson
import pytest

import fnop
from fnop.core.admission.decisions import Decision
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.merge import operated
from fnop.testing import review

kopf = pytest.importorskip("kopf")
# Kopf's code for a review is not one of its public functions.
engine = pytest.importorskip("kopf._core.engines.admission")
indexing = pytest.importorskip("kopf._core.engines.indexing")
inventory = pytest.importorskip("kopf._core.reactor.inventory")
references = pytest.importorskip("kopf._cogs.structs.references")

# What an operator of either framework is written with.
Tools = Any
Define = Callable[[Tools], None]


class Answer(NamedTuple):
    allowed: bool
    code: int | None
    message: str | None
    warnings: tuple[str, ...]
    object: Any


def claim(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    named = {"name": "c", "namespace": "default", "uid": "u-1", **metadata}
    body = {"apiVersion": "example.com/v1", "kind": "Claim", "metadata": named}
    return body if spec is None else {**body, "spec": spec}


# ------------------------------------------------------------------ both of them


def by_kopf(define: Define, request: dict[str, Any]) -> Answer:
    registry = kopf.OperatorRegistry()
    operation = request["request"]["operation"]

    def declared(decorator: Any) -> Any:
        def decorate(*words: Any, **how: Any) -> Any:
            wanted = how.get("operations") or [how.get("operation") or operation]
            if operation not in wanted:  # Kopf leaves that to the API server
                return lambda fn: fn
            return decorator(*words, registry=registry, **how)

        return decorate

    on = SimpleNamespace(
        validate=declared(kopf.on.validate), mutate=declared(kopf.on.mutate)
    )
    define(SimpleNamespace(on=on, errors=kopf))
    resource = references.Resource(
        "example.com", "v1", "claims", kind="Claim", singular="claim"
    )
    insights = references.Insights()
    insights.webhook_resources.add(resource)
    found = asyncio.run(
        engine.serve_admission_request(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", **request},
            settings=kopf.OperatorSettings(),
            memories=inventory.ResourceMemories(),
            memobase=kopf.Memo(),
            registry=registry,
            insights=insights,
            indices=indexing.OperatorIndexers().indices,
        )
    )["response"]
    status = found.get("status") or {}
    new = request["request"].get("object")
    patch = orjson.loads(base64.b64decode(found["patch"])) if "patch" in found else []
    return Answer(
        found["allowed"],
        status.get("code"),
        status.get("message"),
        tuple(found.get("warnings", ())),
        _shown(operated(patch, new)) if found["allowed"] else None,
    )


def by_fnop(define: Define, request: dict[str, Any]) -> Answer:
    registry = Registry()
    on = SimpleNamespace(
        validate=lambda *a, **k: fnop.on.validate(*a, registry=registry, **k),
        mutate=lambda *a, **k: fnop.on.mutate(*a, registry=registry, **k),
    )
    define(SimpleNamespace(on=on, errors=fnop))
    asked = request["request"]
    found: Decision = review(
        registry,
        asked.get("oldObject"),
        asked.get("object"),
        operation=asked["operation"],
        subresource=asked.get("subResource") or "",
        user=asked["userInfo"],
        dry_run=asked.get("dryRun", False),
    )
    return Answer(
        found.allowed,
        None if found.allowed else found.code,
        None if found.allowed else found.message,
        found.warnings,
        _shown(found.object) if found.allowed else None,
    )


def _shown(found: Any) -> Any:
    """An object as the API server stores it: without empty labels."""
    if found is None or found["metadata"].get("labels") != {}:
        return found
    rest = {key: v for key, v in found["metadata"].items() if key != "labels"}
    return {**found, "metadata": rest}


def asked(
    operation: str, old: Any = None, new: Any = None, **more: Any
) -> dict[str, Any]:
    kind = {"group": "example.com", "version": "v1", "kind": "Claim"}
    resource = {"group": "example.com", "version": "v1", "resource": "claims"}
    request = {
        "uid": "r-1",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "c",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "anna", "uid": "1", "groups": ["team"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        **more,
    }
    return {"request": request}


LABELLED = claim({"size": 2}, labels={"tier": "gold"})
REQUESTS = {
    "created": asked("CREATE", None, claim({"size": 2, "hosts": ["a", "b"]})),
    "created_empty": asked("CREATE", None, claim()),
    "created_bad": asked("CREATE", None, claim({"size": -1})),
    "created_labelled": asked("CREATE", None, LABELLED),
    "updated": asked("UPDATE", claim({"size": 1}), claim({"size": 3})),
    "shrunk": asked("UPDATE", claim({"size": 3}), claim({"size": 1})),
    "unchanged": asked("UPDATE", LABELLED, LABELLED),
    "deleted": asked("DELETE", LABELLED, None),
    "dry": asked("CREATE", None, claim({"size": 2}), dryRun=True),
    "status": asked("UPDATE", claim(), claim({"size": 2}), subResource="status"),
}


# -------------------------------------------------------------------- operators


def everything(on: Tools) -> None:
    @on.on.validate("claims")
    def sees(operation: str, subresource: Any, dryrun: bool, **kw: Any) -> None:
        kw["warnings"].append(f"{operation} {subresource} {dryrun}")
        kw["warnings"].append(kw["userinfo"]["username"])
        kw["warnings"].append(f"{sorted(kw['headers'])} {sorted(kw['sslpeer'])}")

    @on.on.validate("claims", subresource="*")
    def sees_all(subresource: Any, warnings: list[str], **_: Any) -> None:
        warnings.append(f"all: {subresource}")


def defaults(on: Tools) -> None:
    @on.on.mutate("claims")
    def size(spec: Any, patch: Any, **_: Any) -> None:
        if "size" not in spec:
            patch.spec["size"] = 1

    @on.on.mutate("claims", labels={"tier": "gold"})
    def golden(patch: Any, **_: Any) -> None:
        patch.metadata.annotations["example.com/tier"] = "gold"
        patch.metadata.labels["tier"] = None
        patch.spec["a/b"] = {"c~d": [1, {"e": None}]}

    @on.on.mutate("claims")
    def hosts(patch: Any, spec: Any, **_: Any) -> None:
        if "hosts" in spec:
            patch.fns.append(lambda body: body["spec"]["hosts"].append("z"))


def denials(on: Tools) -> None:
    @on.on.validate("claims", id="first")
    def positive(spec: Any, **_: Any) -> None:
        if spec.get("size", 1) < 0:
            raise on.errors.AdmissionError("a negative size", code=400)

    @on.on.validate("claims", operations=["DELETE"], labels={"tier": "gold"})
    def kept(**_: Any) -> None:
        raise on.errors.PermanentError("gold is kept")

    @on.on.validate("claims", operations=["UPDATE"])
    def grows(old: Any, new: Any, diff: Any, warnings: list[str], **_: Any) -> None:
        warnings.append(str([(d.op, tuple(d.field), d.old, d.new) for d in diff]))
        was, now = old.spec.get("size", 0), new["spec"].get("size", 0)
        if now < was:
            raise on.errors.AdmissionError(f"{was} must not become {now}")


def coded(on: Tools) -> None:
    @on.on.validate("claims", operation="CREATE")
    def nameless(**_: Any) -> None:
        raise on.errors.AdmissionError

    @on.on.validate("claims")
    def later(**_: Any) -> None:
        raise on.errors.TemporaryError("not yet")


def filtered(on: Tools) -> None:
    @on.on.validate("claims", field="spec.size", value=2)
    def two(warnings: list[str], **_: Any) -> None:
        warnings.append("two")

    @on.on.validate("claims", when=lambda operation, **_: operation == "UPDATE")
    def update(warnings: list[str], **_: Any) -> None:
        warnings.append("update")

    @on.on.validate("claims", labels={"tier": lambda value, **_: value == "gold"})
    def gold(warnings: list[str], **_: Any) -> None:
        warnings.append("gold")

    @on.on.validate(
        "claims", annotations={"x": fnop.ABSENT if on.errors is fnop else kopf.ABSENT}
    )
    def bare(warnings: list[str], **_: Any) -> None:
        warnings.append("bare")

    @on.on.validate("pods")
    def pods(warnings: list[str], **_: Any) -> None:
        warnings.append("never")


def conversing(on: Tools) -> None:
    @on.on.validate("claims")
    async def judge(body: Any, meta: Any, uid: str, name: str, **kw: Any) -> None:
        kw["warnings"].append(f"{uid} {name} {kw['namespace']} {dict(meta.labels)}")
        kw["warnings"].append(f"{body['kind']} {kw['param']} {kw['resource'].plural}")
        if kw["spec"].get("size") == 3:
            raise on.errors.AdmissionError("three", code=418)


OPERATORS = [everything, defaults, denials, coded, filtered, conversing]
# fnop reports all denials, Kopf only one.
SEVERAL = {("coded", "created"), ("coded", "created_empty"), ("coded", "created_bad")}
SEVERAL |= {("coded", "created_labelled"), ("coded", "dry")}


@pytest.mark.filterwarnings("ignore:operation= is deprecated:DeprecationWarning")
@pytest.mark.parametrize("define", OPERATORS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", REQUESTS)
def test_the_answer_is_the_same(define: Define, name: str) -> None:
    theirs, ours = by_kopf(define, REQUESTS[name]), by_fnop(define, REQUESTS[name])
    if (define.__name__, name) in SEVERAL:
        assert theirs.message is not None
        assert ours.message is not None
        assert ours.message.startswith(theirs.message.partition("(")[0])
        assert ours.message.endswith("; not yet")
        theirs = theirs._replace(message=ours.message)
    assert ours == theirs


def test_an_ignorable_failure_admits_here() -> None:
    """Kopf's documentation says so, too; its code denies with 500."""

    def define(on: Tools) -> None:
        @on.on.validate("claims", id="judge", ignore_failures=True)
        def judge(**_: Any) -> None:
            raise ValueError("what")

    assert not by_kopf(define, REQUESTS["created"]).allowed
    assert by_fnop(define, REQUESTS["created"]).allowed


def test_a_mutation_sees_the_one_before_it_here_alone() -> None:
    def define(on: Tools) -> None:
        @on.on.mutate("claims")
        def first(patch: Any, **_: Any) -> None:
            patch.spec["one"] = 1

        @on.on.mutate("claims")
        def second(spec: Any, warnings: list[str], **_: Any) -> None:
            warnings.append(str("one" in spec))

    assert by_kopf(define, REQUESTS["created"]).warnings == ("False",)
    assert by_fnop(define, REQUESTS["created"]).warnings == ("True",)
