"""Admission webhooks of the simulated cluster: how its caller is asked.

What they review and what follows is in tests/conformance/cases/admission.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from fnop.interpreters.cluster import (
    Ask,
    Cluster,
    Configuration,
    Question,
    Replies,
    Reply,
    Reviewed,
    Unanswered,
    Unreached,
    answer,
    empty_cluster,
    tick,
)
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    User,
)

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP = "admissionregistration.k8s.io/v1"
KINDS = {
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}
MUTATING, VALIDATING = KINDS
NOW = 1_700_000_100.0


def hook(
    name: str, operations: tuple[str, ...] = ("*",), **more: Any
) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": [*operations],
        "resources": ["configmaps"],
    }
    return {
        "name": f"{name}.hooks.test",
        "clientConfig": {"url": f"https://hooks.test/{name}"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def hooked(cluster: Cluster, plural: str, *hooks: dict[str, Any]) -> Cluster:
    body = {
        "apiVersion": GROUP,
        "kind": KINDS[plural],
        "metadata": {"name": "hooks"},
        "webhooks": [*hooks],
    }
    path = f"/apis/{GROUP}/{plural}"
    cluster, response, _ = answer(cluster, ApiRequest("POST", path, body=body), NOW)
    assert response.status == 201, response.body
    return cluster


def creation(
    name: str = "a",
    query: tuple[tuple[str, str], ...] = (),
    user: User | None = None,
    **metadata: str,
) -> ApiRequest:
    named = {"name": name, **metadata}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}
    return ApiRequest("POST", MAPS, query, body, user=user)


LEASE = ApiRequest(
    "POST",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    body={
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"generateName": "busy-"},
    },
)


def reviewed(question: Question, **response: Any) -> Reply:
    uid = question.review["request"]["uid"]
    named = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return Reviewed({**named, "response": {"uid": uid, "allowed": True, **response}})


def adding(key: str) -> Callable[[Question], Reply]:
    operation = {"op": "add", "path": "/data", "value": {key: "x"}}
    patch = base64.b64encode(json.dumps([operation]).encode()).decode()
    return lambda question: reviewed(question, patch=patch, patchType="JSONPatch")


def found_out(
    cluster: Cluster, request: ApiRequest, ask: Ask, *, busy: bool = False
) -> tuple[Cluster, ApiResponse, list[Question]]:
    """Answer as a caller that must wait for each reply.

    In a `busy` cluster others write meanwhile.
    """
    replies, questions = Replies(), []
    while True:
        try:
            after, response, _ = answer(cluster, request, NOW, replies)
        except Unanswered as problem:
            questions.append(problem.question)
            replies.learn(problem.question, ask(problem.question))
        else:
            return after, response, questions
        if busy:
            cluster, made, _ = answer(cluster, LEASE, NOW)
            assert made.status == 201


def test_a_question_says_all_that_a_caller_has_to_know() -> None:
    cluster = hooked(empty_cluster(), MUTATING, hook("a", timeoutSeconds=7))
    found: list[Question] = []

    def ask(question: Question) -> Reply:
        found.append(question)
        return reviewed(question)

    user = User("anna", ("devs",), "7", (("key", ("value",)),))
    _, response, _ = answer(cluster, creation(user=user), NOW, ask)
    assert response.status == 201
    (question,) = found
    assert question.configuration == Configuration(KINDS[MUTATING], "hooks")
    assert (question.webhook, question.seconds) == ("a.hooks.test", 7)
    assert question.client["url"] == "https://hooks.test/a"
    with pytest.raises(TypeError):
        question.client["url"] = ""  # type: ignore[index]
    assert question.review["apiVersion"] == "admission.k8s.io/v1"
    assert question.review["request"]["userInfo"] == {
        "username": "anna",
        "uid": "7",
        "groups": ["devs"],
        "extra": {"key": ["value"]},
    }


def test_what_asking_raises_goes_through_and_leaves_no_trace() -> None:
    cluster = hooked(empty_cluster(), VALIDATING, hook("a"))
    before = cluster.version

    with pytest.raises(Unanswered):
        answer(cluster, creation(), NOW, Replies())
    assert cluster.version == before


REQUESTS = {
    "a creation": creation("new"),
    "a generated name": creation("", generateName="new-"),
    "a patch": ApiRequest(
        "PATCH", f"{MAPS}/old", body={"data": {"c": "d"}}, content_type=MERGE_PATCH
    ),
    "an apply": ApiRequest(
        "PATCH",
        f"{MAPS}/applied",
        (("fieldManager", "me"),),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}},
        APPLY_PATCH,
    ),
    "a deletion": ApiRequest("DELETE", f"{MAPS}/old"),
    "a deletion of all": ApiRequest("DELETE", MAPS),
}
ORDER = {"DELETE": ["c", "d"]}


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_caller_may_find_out_one_reply_after_the_other(name: str, busy: bool) -> None:
    """Also while others write: no webhook is called twice for the same write."""
    request = REQUESTS[name]
    cluster, _, _ = answer(empty_cluster(), creation("old"), NOW)
    writing = ("CREATE", "UPDATE")
    mutating = (hook("a", writing), hook("b", writing, reinvocationPolicy="IfNeeded"))
    cluster = hooked(cluster, MUTATING, *mutating)
    cluster = hooked(cluster, VALIDATING, hook("c"), hook("d"))
    replies = {"a": adding("a"), "b": adding("b"), "c": reviewed, "d": reviewed}

    def ask(question: Question) -> Reply:
        return replies[question.webhook[0]](question)

    at_once, response, _ = answer(cluster, request, NOW, ask)
    later, same, questions = found_out(cluster, request, ask, busy=busy)
    called = [each.webhook[0] for each in questions]
    assert called == ORDER.get(request.method, ["a", "b", "c", "d"])
    assert len({each.review["request"]["uid"] for each in questions}) == len(called)
    if not busy:
        assert same == response
        assert later.shelves == at_once.shelves
    assert (same.status, same.body.get("data")) == (
        response.status,
        response.body.get("data"),
    )


def test_without_anybody_who_asks_webhooks_are_unreached() -> None:
    cluster = hooked(
        empty_cluster(), VALIDATING, hook("a", failurePolicy="Ignore"), hook("b")
    )
    _, response, _ = answer(cluster, creation(), NOW)
    assert response.status == 500
    assert response.body["message"].startswith(
        'Internal error occurred: failed calling webhook "b.hooks.test": failed to '
        'call webhook: Post "https://hooks.test/b?timeout=10s": dial tcp'
    )


def test_the_transport_says_why_a_webhook_was_unreached() -> None:
    cluster = hooked(empty_cluster(), VALIDATING, hook("a"))
    reply = Unreached("context deadline exceeded")
    _, response, _ = answer(cluster, creation(), NOW, lambda question: reply)
    assert response.body["message"].endswith("webhook: context deadline exceeded")


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_webhook_with_side_effects_is_not_asked_in_a_dry_run(
    is_ignored: bool,
) -> None:
    """No policy ignores it.  Only objects of older servers have such webhooks."""
    policy = "Ignore" if is_ignored else "Fail"
    cluster = hooked(empty_cluster(), VALIDATING, hook("a", failurePolicy=policy))
    key = ("", "hooks")
    resource = ("admissionregistration.k8s.io", VALIDATING)
    found = cluster.shelves[resource]
    (old,) = found[key]["webhooks"]
    changed = {**found[key], "webhooks": [{**old, "sideEffects": "Some"}]}
    shelves = {**cluster.shelves, resource: found.set(key, changed)}
    cluster = type(cluster)(
        cluster.seed, cluster.version, cluster.registry, shelves, cluster.history
    )
    request = creation(query=(("dryRun", "All"),))
    _, response, _ = answer(cluster, request, NOW, reviewed)
    assert response.status == 400
    assert response.body["message"] == (
        'admission webhook "a.hooks.test" does not support dry run'
    )
    assert answer(cluster, creation(), NOW, reviewed)[1].status == 201


def test_controllers_write_without_webhooks() -> None:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["replicasets", "pods"],
    }
    cluster = hooked(empty_cluster(), VALIDATING, hook("a", rules=[rule]))
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    cluster, response, _ = answer(cluster, ApiRequest("POST", path, body=body), NOW)
    assert response.status == 201
    for _ in range(3):
        cluster, _ = tick(cluster, NOW)
    assert len(cluster.shelves["", "pods"]) == 1


def test_a_reply_is_not_taken_for_that_to_another_question() -> None:
    cluster = hooked(empty_cluster(), VALIDATING, hook("a"))
    replies = Replies()
    with pytest.raises(Unanswered) as found:
        answer(cluster, creation("a"), NOW, replies)
    replies.learn(found.value.question, reviewed(found.value.question))
    assert answer(cluster, creation("a"), NOW, replies)[1].status == 201
    for other in (creation("b"), creation("a", user=User("anna"))):
        with pytest.raises(Unanswered):
            answer(cluster, other, NOW, replies)
    dry = creation("a", query=(("dryRun", "All"),))
    with pytest.raises(Unanswered):
        answer(cluster, dry, NOW, replies)
