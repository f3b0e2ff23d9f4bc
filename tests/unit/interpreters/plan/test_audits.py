"""`fnop plan --admission`: which live objects would be refused or changed now."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import fnop
from fnop.adapters.reports.audit_report import as_json, as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.plan.audit import Auditor
from fnop.interpreters.plan.audited import Answer, Audit
from fnop.interpreters.plan.planner import PlanProblem
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.plans import Served
from tests.simulations import Scenario, example

KIND = "fnopexamples"
NOBODY = Registry()


@pytest.fixture
def registry() -> Registry:
    return Registry()


def audited(
    registry: Registry,
    objects: list[dict[str, Any]],
    settings: Settings | None = None,
    served: type[Served] = Served,
    **options: Any,
) -> tuple[Audit, Served]:
    """The audit of a cluster whose objects were never reviewed."""
    run = Scenario(NOBODY, objects)
    wall = run.clock.now().wall
    api = served(run.cluster, wall, **options)

    async def pause(seconds: float) -> None:
        pass

    program = Program(registry.handlers, settings or Settings())
    auditor = Auditor(program, api, wall=wall, pause=pause)
    return asyncio.run(auditor.audit()), api


def found(audit: Audit) -> set[tuple[str, str, str]]:
    """The answers by handler and object."""
    names = (e.source.handler.rpartition(".")[2] for e in audit.findings)
    return {
        (str(e.answer), name, e.place.name)
        for name, e in zip(names, audit.findings, strict=True)
    }


def small(registry: Registry, **options: Any) -> None:
    options = {"operations": ["CREATE", "UPDATE"], **options}

    @fnop.on.validate(KIND, registry=registry, **options)
    def small(spec: fnop.Spec, **_: Any) -> None:
        if spec["size"] > 9:
            raise fnop.Denied("it is too large", field="spec.size")


def test_objects_that_break_a_rule_are_told_though_updates_pass(
    registry: Registry,
) -> None:
    small(registry)
    audit, served = audited(registry, [example("a", size=1), example("b", size=10)])
    assert found(audit) == {("refused", "small", "b")}
    assert audit.asked == 2
    assert not audit.is_clean
    assert {each.method for each in served.requests} == {"GET"}
    first, second, *_ = as_lines(audit)
    assert first.startswith("  x 1 object would be refused by ")
    assert first.endswith("it is too large")
    assert "/b" in second
    (told,) = as_json(audit)["findings"]
    assert told["answer"] == "refused"
    assert told["object"]["name"] == "b"
    assert told["line"].rpartition(":")[2].isdecimal()


def test_changes_and_warnings_are_told_with_their_handlers(registry: Registry) -> None:
    @fnop.on.mutate(KIND, registry=registry)
    def labelled(patch: fnop.Patch, labels: Any, **_: Any) -> None:
        if "team" not in labels:
            patch.metadata.labels["team"] = "none"

    @fnop.on.mutate(KIND, registry=registry)
    def untouched(**_: Any) -> None:
        pass

    @fnop.on.validate(KIND, registry=registry)
    def doubted(labels: Any, warnings: list[str], **_: Any) -> None:
        if labels.get("team") == "none":
            warnings.append("it has no team")

    audit, _ = audited(registry, [example("a", size=1)])
    assert found(audit) == {("changed", "labelled", "a"), ("warned", "doubted", "a")}
    (change,) = [each for each in audit.findings if each.answer is Answer.CHANGED]
    assert [(e.path, e.old, e.new) for e in change.fields] == [
        ("metadata.labels.team", None, "none")
    ]


def test_what_the_schema_refuses_after_a_change_is_refused(registry: Registry) -> None:
    @fnop.on.mutate("configmaps", registry=registry)
    def broken(patch: fnop.Patch, **_: Any) -> None:
        patch["data"] = {"a": 1}

    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    audit, _ = audited(registry, [config])
    assert ("refused", "broken", "c") in found(audit)


def test_handlers_read_what_is_there_and_indices_are_filled(registry: Registry) -> None:
    @fnop.index("configmaps", registry=registry)
    def teams(name: str, **_: Any) -> dict[str, str]:
        return {name: name}

    @fnop.on.validate(KIND, operations=["UPDATE"], registry=registry)
    async def known(name: str, **given: Any) -> None:
        if name not in given["teams"]:
            raise fnop.Denied("no team")
        if await fnop.get("secrets", name=name) is None:
            raise fnop.Denied("no Secret")

    objects = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
        for kind, name in (("ConfigMap", "a"), ("ConfigMap", "b"), ("Secret", "a"))
    ]
    several = [example(name, size=1) for name in ("a", "b", "c")]
    audit, _ = audited(registry, [*objects, *several])
    told = {(each.place.name, each.message) for each in audit.findings}
    assert told == {("b", "no Secret"), ("c", "no team")}


def scanned(**_: Any) -> None:
    raise AssertionError("nobody calls it")


def test_calls_are_not_made_and_the_others_are_asked(registry: Registry) -> None:
    fnop.on.validate(KIND, registry=registry, impure=True)(scanned)
    small(registry)
    audit, _ = audited(registry, [example("a", size=10)])
    assert found(audit) == {("unknown", "scanned", "a"), ("refused", "small", "a")}


def test_kinds_that_may_not_be_read_are_told(registry: Registry) -> None:
    small(registry)
    with pytest.raises(PlanProblem, match="can be read: you may not"):
        audited(
            registry,
            [example("a", size=10)],
            refuses=lambda request: request.path.endswith(f"/{KIND}"),
        )


class Unversioned(Served):
    """A cluster that answers lists of pods like lists of ComponentStatuses.

    Kubernetes 1.20 gives neither the list nor its items a version.
    """

    items: tuple[str, ...] = ()

    async def send(self, request: ApiRequest) -> ApiResponse:
        if not request.path.endswith("/pods"):
            return await super().send(request)
        items = [{"metadata": {"name": each}} for each in self.items]
        found = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        return ApiResponse(200, found)


class OfScheduler(Unversioned):
    """One such list with an item."""

    items = ("scheduler",)


@pytest.mark.parametrize("served", [Unversioned, OfScheduler])
def test_kinds_without_versions_hold_up_no_audit_of_all(
    registry: Registry, served: type[Unversioned]
) -> None:
    @fnop.on.validate("*", id="never", operations=["DELETE"], registry=registry)
    def never(**_: Any) -> None:
        raise fnop.Denied("it is kept")

    audit, _ = audited(registry, [example("a", size=1)], served=served)
    assert ("kept", "never", "a") in found(audit)
    text = "\n".join(as_lines(audit))
    told = [each.place.label for each in audit.unread]
    assert told == (["pods/*"] if served.items else [])
    assert ("? not audited: pods/* cannot be read: " in text) is bool(served.items)
    assert ("; 1 kind not audited" in text) is bool(served.items)


def test_a_handler_that_reads_what_has_no_version_is_not_judged(
    registry: Registry,
) -> None:
    @fnop.on.validate(KIND, id="alone", registry=registry)
    async def alone(**_: Any) -> None:
        await fnop.list("pods")

    audit, _ = audited(registry, [example("a", size=1)], served=OfScheduler)
    assert found(audit) == {("unknown", "alone", "a")}


def test_selected_objects_are_asked_about_and_selectors_hold(
    registry: Registry,
) -> None:
    small(registry, object_selector={"checked": "yes"})
    objects = [example(name, size=10) for name in ("a", "b")]
    objects[0]["metadata"]["labels"] = {"checked": "yes"}
    audit, _ = audited(registry, objects)
    assert found(audit) == {("refused", "small", "a")}
    elsewhere, _ = audited(registry, objects, Settings(namespaces=("other",)))
    assert elsewhere.asked == 0


class Old(Served):
    """A cluster of Kubernetes 1.20, which labels no namespaces."""

    async def send(self, request: ApiRequest) -> ApiResponse:
        if request.path == "/version":
            return ApiResponse(200, {"major": "1", "minor": "20"})
        return await super().send(request)


@pytest.mark.parametrize(("served", "names"), [(Served, {"b"}), (Old, {"a", "b"})])
def test_the_system_is_spared_where_its_namespace_has_a_label(
    registry: Registry, served: type[Served], names: set[str]
) -> None:
    small(registry)
    objects = [example(name, size=10) for name in ("a", "b")]
    objects[0]["metadata"]["namespace"] = "kube-system"
    audit, _ = audited(registry, objects, served=served)
    assert {each.place.name for each in audit.findings} == names


def test_handlers_of_other_operations_are_noted(registry: Registry) -> None:
    small(registry, operations=["CREATE"])
    audit, _ = audited(registry, [example("a", size=10)])
    assert audit.is_clean
    (note,) = audit.notes
    assert note.startswith(
        "not asked, since they are about neither updates nor deletions: "
    )


@pytest.mark.parametrize("ratcheting", [True, False])
def test_what_is_wrong_with_an_object_denies_its_deletion_if_nobody_forgives(
    registry: Registry, ratcheting: bool
) -> None:
    @fnop.on.validate(KIND, id="small", ratcheting=ratcheting, registry=registry)
    def small(spec: Any, **_: Any) -> None:
        if spec["size"] > 9:
            raise fnop.Denied("it is too large")

    audit, _ = audited(registry, [example("a", size=10)])
    kept = set() if ratcheting else {("kept", "small", "a")}
    assert found(audit) == {("refused", "small", "a"), *kept}


def test_objects_that_cannot_be_deleted_are_told(registry: Registry) -> None:
    @fnop.on.validate(KIND, id="kept", operations=["DELETE"], registry=registry)
    def kept(labels: Any, **_: Any) -> None:
        if labels.get("keep") == "yes":
            raise fnop.Denied("it is kept")

    objects = [example(name, size=1) for name in ("a", "b")]
    objects[0]["metadata"]["labels"] = {"keep": "yes"}
    audit, served = audited(registry, objects)
    assert found(audit) == {("kept", "kept", "a")}
    assert audit.is_clean
    assert audit.notes == ()
    assert {each.method for each in served.requests} == {"GET"}
    lines = [*as_lines(audit)]
    assert lines[0].startswith("  x 1 object cannot be deleted, because of kept (")
    assert "1 not to be deleted" in lines[-1]


@pytest.mark.parametrize("problem", [KeyError("size"), fnop.Denied("no")])
def test_a_handler_that_fails_is_excused_from_nothing(
    registry: Registry, problem: Exception
) -> None:
    """The API server refuses the deletion, too; a meant denial is excused there."""

    @fnop.on.validate(KIND, id="judge", registry=registry)
    def judge(**_: Any) -> None:
        raise problem

    audit, _ = audited(registry, [example("a", size=1)])
    kept = {("kept", "judge", "a")} if isinstance(problem, KeyError) else set()
    assert found(audit) == {("refused", "judge", "a"), *kept}


def test_secrets_are_masked(registry: Registry) -> None:
    @fnop.on.validate("secrets", operations=["UPDATE"], registry=registry)
    def strong(body: fnop.Body, **_: Any) -> None:
        raise fnop.Denied(f"{body['data']['password']} is weak")

    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"password": "Zk9xN2h3UTlyVDJ4VjhuTGMzZA=="},
    }
    audit, _ = audited(registry, [secret])
    assert "Zk9xN2h3UTlyVDJ4VjhuTGMzZA==" not in "\n".join(as_lines(audit))
