"""Cases of admission webhooks: which writes they review, and what comes of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from tests.conformance.cases.basics import DEPLOYMENTS, MAPS, PODS, SPACES, crd, version
from tests.conformance.hooks import ADDRESS, AUTHORITY, Answers, answering
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]
Answer = Callable[[Any], tuple[int, Any]]

GROUP = "admissionregistration.k8s.io/v1"
MUTATING = f"/apis/{GROUP}/mutatingwebhookconfigurations"
VALIDATING = f"/apis/{GROUP}/validatingwebhookconfigurations"
KINDS = {
    MUTATING: "MutatingWebhookConfiguration",
    VALIDATING: "ValidatingWebhookConfiguration",
}
HOOKED = {"hook": "yes"}
# The reviews that the webhooks have got.  A path names their objects if controllers
# write these, too: then only the step's parts are compared.
ASKED = Step("ASKED", "", has={})
WARNED = Step("WARNED", "")


# ---------------------------------------------------------------- the webhooks


def patching(*operations: Json, **more: Any) -> Answer:
    """The answer with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return answering(allowed=True, patchType="JSONPatch", patch=patch, **more)


def added(path: str, value: Any) -> Answer:
    return patching({"op": "add", "path": path, "value": value})


def body(**parts: Any) -> Answer:
    """An answer whose AdmissionReview has these parts; None takes one away."""

    def answer(review: Any) -> tuple[int, Any]:
        _, found = answering(allowed=True)(review)
        found |= parts
        return 200, {k: v for k, v in found.items() if v is not None}

    return answer


def said(text: Any) -> Answer:
    """The same answer to everybody."""
    return lambda review: (200, text)


OK = answering(allowed=True)
NO = answering(allowed=False)


def rule(*resources: str, operations: tuple[str, ...] = ("*",), **more: Any) -> Json:
    found = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": [*operations]}
    return {**found, "resources": [*resources], **more}


CREATING = rule("configmaps", operations=("CREATE",))
ALL_MAPS = rule("configmaps")


def hook(answer: str, *rules: Json, **more: Any) -> Json:
    """A webhook with the name of its answer."""
    return {
        "name": f"{answer}.hooks.test",
        "clientConfig": {"url": f"{ADDRESS}{answer}", "caBundle": AUTHORITY},
        "rules": [*rules] or [ALL_MAPS],
        "objectSelector": {"matchLabels": HOOKED},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **more,
    }


def configured(path: str, *hooks: Json, name: str = "a") -> Step:
    body = {
        "apiVersion": GROUP,
        "kind": KINDS[path],
        "metadata": {"name": f"{{ns}}-{name}"},
        "webhooks": [*hooks],
    }
    return Step("POST", path, body, code=201)


def mutating(*hooks: Json, name: str = "a") -> Step:
    return configured(MUTATING, *hooks, name=name)


def validating(*hooks: Json, name: str = "a") -> Step:
    return configured(VALIDATING, *hooks, name=name)


# -------------------------------------------------------------------- requests


def meta(name: str = "a", **more: Any) -> Json:
    found = {"name": name, "namespace": "{ns}", "labels": HOOKED, **more}
    return {k: v for k, v in found.items() if v is not None}


def config(name: str = "a", data: Json | None = None, **more: Any) -> Json:
    found: Json = {"apiVersion": "v1", "kind": "ConfigMap"}
    found["metadata"] = meta(name, **more)
    return found if data is None else {**found, "data": data}


DRY = {"dryRun": "All"}


def create(
    obj: Json | None = None,
    code: int = 201,
    path: str = MAPS,
    query: Json | None = None,
    **more: Any,
) -> Step:
    return Step("POST", path, obj or config(), code=code, query=query or {}, **more)


def merge(patch: Json, code: int = 200, path: str = f"{MAPS}/a", **more: Any) -> Step:
    return Step("PATCH", path, patch, MERGE_PATCH, code=code, **more)


def delete(path: str = f"{MAPS}/a", code: int = 200, **more: Any) -> Step:
    return Step("DELETE", path, code=code, **more)


def case(name: str, hooks: Answers, *steps: Step) -> Case:
    return Case(f"admission: {name}", steps, hooks=hooks)


def documented(name: str, hooks: Answers, *steps: Step) -> Case:
    """A case that 1.20 cannot play: it is written from the documentation."""
    return Case(f"admission: {name}", steps, servers=(), hooks=hooks)


# ------------------------------------------------------------- what is reviewed

BOTH = {"m": OK, "v": OK}


def both(*rules: Json, **more: Any) -> tuple[Step, Step]:
    """A webhook of each sort that lets everything through."""
    return mutating(hook("m", *rules, **more)), validating(hook("v", *rules, **more))


# Kubernetes 1.20 does not label a namespace with its name.
LABELLED = merge(
    {"metadata": {"labels": {"hooked": "{ns}"}}},
    path=f"{SPACES}/{{ns}}",
    compare=("metadata.labels.hooked",),
)
IN_SPACE: Json = {
    "objectSelector": {},
    "namespaceSelector": {"matchLabels": {"hooked": "{ns}"}},
}
# No token exists yet.
POD: Json = {
    "automountServiceAccountToken": False,
    "containers": [{"name": "c", "image": "i"}],
}
TEMPLATE: Json = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": meta("d"),
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "template": TEMPLATE,
    },
}


def reviews() -> Iterator[Case]:
    yield case(
        "a creation is reviewed before and after it gets its uid",
        BOTH,
        *both(),
        create(config(data={"a": "b"})),
        ASKED,
    )
    yield case(
        "a generated name is not there at first",
        BOTH,
        *both(),
        create(config(name="", generateName="a-")),
        ASKED,
    )
    yield case(
        "an update shows the old object",
        BOTH,
        create(),
        *both(),
        Step("PUT", f"{MAPS}/a", config(data={"a": "b"})),
        ASKED,
    )
    yield case(
        "an update that changes nothing is reviewed",
        BOTH,
        create(),
        *both(),
        Step("PUT", f"{MAPS}/a", config()),
        ASKED,
        merge({}),
        ASKED,
    )
    yield case(
        "an update of an old version is reviewed before it is a conflict",
        BOTH,
        create(),
        *both(),
        Step("PUT", f"{MAPS}/a", config(resourceVersion="1"), code=409),
        ASKED,
    )
    yield case(
        "a patch has the options of an update",
        BOTH,
        create(),
        *both(),
        merge({"data": {"a": "b"}}, query={"fieldManager": "me"}),
        ASKED,
        Step("PATCH", f"{MAPS}/a", [{"op": "remove", "path": "/data"}], JSON_PATCH),
        ASKED,
    )
    yield case(
        "an apply creates and updates",
        BOTH,
        *both(),
        Step(
            "PATCH",
            f"{MAPS}/a",
            config(data={"a": "b"}),
            APPLY_PATCH,
            {"fieldManager": "me"},
            201,
        ),
        ASKED,
        Step(
            "PATCH",
            f"{MAPS}/a",
            config(data={"a": "c"}),
            APPLY_PATCH,
            {"fieldManager": "me", "force": "true"},
        ),
        ASKED,
    )
    yield case(
        "a PUT that creates is a creation",
        BOTH,
        *both(rule("endpoints")),
        Step(
            "PUT",
            "/api/v1/namespaces/{ns}/endpoints/e",
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta("e")},
            code=201,
            query=DRY,
            compare="code",
        ),
        ASKED,
    )
    yield case(
        "a dry run says so",
        BOTH,
        *both(),
        create(query=DRY),
        ASKED,
        Step("GET", f"{MAPS}/a", code=404),
    )
    yield case(
        "a deletion shows the old object alone",
        BOTH,
        create(),
        *both(),
        delete(query=DRY),
        ASKED,
        Step("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"}),
        ASKED,
        delete(code=404),
        ASKED,
    )
    yield case(
        "a deletion with unmet preconditions is not reviewed",
        BOTH,
        create(),
        *both(),
        Step("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "x"}}, code=409),
        ASKED,
    )
    yield case(
        "what is being deleted is reviewed at each step",
        BOTH,
        create(config(finalizers=["a.b/c"])),
        *both(),
        delete(),
        ASKED,
        delete(),
        ASKED,
        merge({"metadata": {"finalizers": None}}),
        ASKED,
        Step("GET", f"{MAPS}/a", code=404),
    )
    yield case(
        "a collection is deleted object by object, without names",
        BOTH,
        create(config("a")),
        create(config("b")),
        *both(),
        delete(MAPS, query={"labelSelector": "hook=yes"}),
        ASKED,
    )
    yield case(
        "a namespace is in itself, and its deletion has a precondition",
        BOTH,
        *both(
            rule("namespaces", "namespaces/*"),
            objectSelector={"matchLabels": {"hooked": "{ns}"}},
        ),
        create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "{ns}-x", "labels": {"hooked": "{ns}"}},
            },
            path=SPACES,
            query=DRY,
            compare="code",
        ),
        Step("ASKED", "", compare=("0.review.request.namespace", "1.hook")),
        LABELLED,
        Step("ASKED", "", compare=("0.review.request.namespace", "1.hook")),
    )
    yield case(
        "the status that was sent is seen, and thrown away",
        BOTH,
        *both(rule("deployments")),
        create({**DEPLOYMENT, "status": {"replicas": 3}}, path=DEPLOYMENTS, query=DRY),
        Step(
            "ASKED",
            "",
            has={
                "0.review.request.object.status": {"replicas": 3},
                "1.review.request.object.status": {},
            },
        ),
    )
    service = "/api/v1/namespaces/{ns}/services"
    ports = {"ports": [{"port": 80}]}
    yield case(
        "a built-in kind is seen with an empty status",
        BOTH,
        create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta("s"),
                "spec": {**ports, "clusterIP": "None"},
            },
            path=service,
        ),
        *both(rule("services")),
        Step(
            "PUT",
            f"{service}/s",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta("s", resourceVersion="$0.metadata.resourceVersion"),
                "spec": {**ports, "clusterIP": "None", "selector": {"a": "b"}},
            },
            compare="code",
        ),
        Step("ASKED", "", has={"0.review.request.object.status": {"loadBalancer": {}}}),
    )
    gizmo = crd("Gizmo", version("v1", {"type": "object"}))
    gizmo["metadata"]["labels"] = HOOKED
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    yield case(
        "a definition is seen with the status of one that is new",
        {**BOTH, "v": NO},
        *both(rule("customresourcedefinitions")),
        create(gizmo, 400, path=definitions),
        ASKED,
    )
    yield case(
        "a pod is seen with its defaults",
        BOTH,
        *both(rule("pods")),
        create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": meta("p"),
                "spec": POD,
            },
            path=PODS,
            query=DRY,
            compare="code",
        ),
        Step(
            "ASKED",
            "",
            has={
                "0.review.request.object.spec.restartPolicy": "Always",
                "0.review.request.object.status": {},
                "1.review.request.object.status.phase": "Pending",
            },
            compare="code",
        ),
    )
    yield case(
        "webhooks are not asked about their configurations",
        {"m": NO, "v": NO},
        *both(rule("*"), **{**IN_SPACE, "objectSelector": {}}),
        merge({"metadata": {"labels": {"a": "b"}}}, path=f"{MUTATING}/{{ns}}-a"),
        ASKED,
        delete(f"{VALIDATING}/{{ns}}-a"),
        ASKED,
    )
    yield case(
        "what has no such namespace is not reviewed",
        BOTH,
        *both(),
        create(
            config(namespace="{ns}-no"),
            404,
            path="/api/v1/namespaces/{ns}-no/configmaps",
        ),
        ASKED,
    )
    space = f"{SPACES}/{{ns}}-t"
    maps = f"{space}/configmaps"
    yield case(
        "what has no name yet is refused by how it begins, before it is reviewed",
        BOTH,
        Step(
            "POST",
            SPACES,
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "{ns}-t"},
            },
            code=201,
            compare="code",
        ),
        create(config(namespace=None, finalizers=["a.b/c"]), path=maps, compare="code"),
        *both(),
        delete(space, compare="code"),
        create(config("", namespace=None, generateName="x-"), 403, path=maps),
        ASKED,
        merge({"metadata": {"finalizers": None}}, path=f"{maps}/a", compare="code"),
    )
    yield case(
        "an invalid object is reviewed by the first sort alone",
        BOTH,
        *both(),
        create(config("A_"), 422),
        ASKED,
    )
    yield case(
        "an object that is there is reviewed by both sorts",
        BOTH,
        create(),
        *both(),
        create(code=409),
        ASKED,
    )


# ----------------------------------------------------------------- subresources


def subresources() -> Iterator[Case]:
    scale = f"{DEPLOYMENTS}/d/scale"
    yield case(
        "a Scale is reviewed as one",
        {**BOTH, "seven": added("/spec/replicas", 7)},
        LABELLED,
        *both(rule("deployments/scale"), **IN_SPACE),
        create(DEPLOYMENT, path=DEPLOYMENTS, compare="code"),
        merge({"spec": {"replicas": 3}}, path=scale, query=DRY, compare="code"),
        Step("ASKED", DEPLOYMENTS, compare="code", has={
            "0.review.request.kind.kind": "Scale",
            "0.review.request.resource.resource": "deployments",
            "0.review.request.subResource": "scale",
            "0.review.request.requestSubResource": "scale",
            "0.review.request.object.spec": {"replicas": 3},
            "0.review.request.oldObject.spec": {},
            "0.review.request.object.status": {"replicas": 0, "selector": "a=b"},
            "1.review.request.object.spec": {"replicas": 3},
            "1.hook": "v",
            "2": ABSENT,
        }),
        Step("PUT", scale, {
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d", "namespace": "{ns}"}, "spec": {"replicas": 2},
        }, query=DRY, compare="code"),
        Step("ASKED", DEPLOYMENTS, compare="code", has={
            "0.review.request.object.status": {"replicas": 0},
            "0.review.request.object.metadata.uid": ABSENT,
            "1.review.request.object.status": {"replicas": 0, "selector": "a=b"},
        }),
        mutating(hook("seven", rule("deployments/scale"), **IN_SPACE), name="b"),
        merge({"spec": {"replicas": 3}}, path=scale, query=DRY,
              has={"spec.replicas": 7}, compare="code"),
    )  # fmt: skip
    status = f"{WIDGETS}/a/status"
    yield case(
        "a status is reviewed with the whole object",
        {**BOTH, "label": added("/metadata/labels/x", "y"),
         "phase": added("/status/phase", "hook")},
        create(widget(), path=WIDGETS),
        *both(rule("*/status")),
        merge({"status": {"phase": "on"}}, path=status),
        ASKED,
        merge({"spec": {"size": 1}}, path=f"{WIDGETS}/a"),
        ASKED,
        mutating(hook("label", rule("widgets/status")),
                 hook("phase", rule("widgets/status")), name="b"),
        merge({"status": {"phase": "off"}}, path=status,
              has={"metadata.labels": HOOKED, "status": {"phase": "hook"}}),
    )  # fmt: skip
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta("p"),
        "spec": POD,
    }
    yield case(
        "a binding is a creation on a pod",
        {**BOTH, "v": NO},
        LABELLED,
        create(pod, path=PODS, compare="code"),
        *both(rule("pods/binding"), **IN_SPACE),
        Step("POST", f"{PODS}/p/binding", {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": "p"}, "target": {"name": "n"},
        }, code=400),
        ASKED,
        Step("GET", f"{PODS}/p", has={"spec.nodeName": ABSENT}, compare="code"),
    )  # fmt: skip
    yield case(
        "an eviction is reviewed as one, not as a deletion",
        {**BOTH, "v": answering(allowed=False, status={"message": "stay"})},
        LABELLED,
        create(pod, path=PODS, compare="code"),
        *both(rule("pods/eviction", "pods"), **IN_SPACE),
        Step("POST", f"{PODS}/p/eviction", {
            "apiVersion": "policy/v1beta1", "kind": "Eviction",
            "metadata": {"name": "p"},
        }, code=400),
        Step("ASKED", "", compare="code", has={
            "0.review.request.kind.kind": "Eviction",
            "0.review.request.subResource": "eviction",
            "0.review.request.operation": "CREATE",
            "0.review.request.name": "p",
            "2": ABSENT,
        }),
    )  # fmt: skip
    yield case(
        "a pod without grace is reviewed when it is marked and when it goes",
        BOTH,
        create(pod, path=PODS, compare="code"),
        *both(rule("pods")),
        delete(f"{PODS}/p", compare="code"),
        Step("ASKED", "", compare="code", has={
            "0.review.request.oldObject.metadata.deletionTimestamp": ABSENT,
            "1.hook": "v",
            "2.hook": "m",
            "2.review.request.oldObject.metadata.deletionGracePeriodSeconds": 0,
            "3.hook": "v",
            "4": ABSENT,
        }),
    )  # fmt: skip
    yield case(
        "a namespace's finalizers are reviewed",
        {**BOTH, "v": NO},
        *both(rule("namespaces/finalize"),
              objectSelector={"matchLabels": {"hooked": "{ns}"}}),
        LABELLED,
        Step("PUT", f"{SPACES}/{{ns}}/finalize", {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "{ns}", "labels": {"hooked": "{ns}"}},
            "spec": {"finalizers": ["kubernetes", "a.b/c"]},
        }, code=400, compare="code"),
        Step("ASKED", "", compare=("0.review.request.subResource",)),
    )  # fmt: skip


# -------------------------------------------------------------------- the rules

WIDGETS = "/apis/adm.dev/v1/namespaces/{ns}/widgets"
WIDGETS_2 = "/apis/adm.dev/v2/namespaces/{ns}/widgets"
PHASE: Json = {"type": "object", "properties": {"phase": {"type": "string"}}}


def widgets() -> Json:
    def schema(**more: Json) -> Json:
        size = {"type": "integer", "maximum": 5}
        spec = {"type": "object", "properties": {"size": size, **more}}
        return {"type": "object", "properties": {"spec": spec, "status": PHASE}}

    text = {"type": "string"}
    one = schema(mode={**text, "default": "one"}, first=text)
    two = schema(mode={**text, "default": "two"}, second=text)
    found = crd(
        "Widget",
        version("v1", one, subresources={"status": {}}),
        version("v2", two, storage=False, subresources={"status": {}}),
    )
    found["metadata"]["name"] = "widgets.adm.dev"
    found["spec"]["group"] = "adm.dev"
    return found


CRDS = (widgets(),)


def widget(version: str = "v1", name: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": f"adm.dev/{version}",
        "kind": "Widget",
        "metadata": meta(name),
        "spec": spec,
    }


# Rules, and whether they match the creation of a ConfigMap.
MATCHED: tuple[tuple[str, Json, bool], ...] = (
    ("the resource", rule("configmaps"), True),
    ("another resource", rule("secrets"), False),
    ("any resource", rule("*"), True),
    ("anything", rule("*/*"), True),
    ("a resource and its subresources", rule("configmaps/*"), True),
    ("subresources alone", rule("*/status"), False),
    ("the core group", {**ALL_MAPS, "apiGroups": [""]}, True),
    ("another group", {**ALL_MAPS, "apiGroups": ["apps"]}, False),
    ("the version", {**ALL_MAPS, "apiVersions": ["v2", "v1"]}, True),
    ("another version", {**ALL_MAPS, "apiVersions": ["v2"]}, False),
    ("the operation", rule("configmaps", operations=("CREATE", "DELETE")), True),
    ("other operations", rule("configmaps", operations=("UPDATE", "CONNECT")), False),
    ("namespaced objects", rule("configmaps", scope="Namespaced"), True),
    ("objects of the cluster", rule("configmaps", scope="Cluster"), False),
)


def matching() -> Iterator[Case]:
    for name, given, meets in MATCHED:
        yield case(
            f"a rule with {name}",
            BOTH,
            *both(given),
            create(query=DRY, compare="code"),
            Step("ASKED", "", has={"1.hook": "v"} if meets else {"0": ABSENT}),
        )
    yield case(
        "objects of the cluster are in its scope, Namespaces among them",
        {"c": answering(allowed=False), "n": NO},
        LABELLED,
        validating(
            hook("n", rule("*", scope="Namespaced"),
                 objectSelector={"matchLabels": {"hooked": "{ns}"}}),
            hook("c", rule("*", scope="Cluster"),
                 objectSelector={"matchLabels": {"hooked": "{ns}"}}),
        ),
        merge({"metadata": {"labels": {"x": "y"}}}, 400, path=f"{SPACES}/{{ns}}"),
        Step("ASKED", "", has={"0.hook": "c", "1": ABSENT}, compare="code"),
    )  # fmt: skip
    yield case(
        "a namespace selector goes by the labels of the namespace",
        BOTH,
        *both(**IN_SPACE),
        create(query=DRY, compare="code"),
        ASKED,
        LABELLED,
        create(query=DRY, compare="code"),
        Step("ASKED", "", has={"0.hook": "m"}, compare="code"),
    )  # fmt: skip
    yield case(
        "a namespace selector with expressions",
        {"in": OK, "out": OK, "none": OK},
        LABELLED,
        mutating(
            *(
                hook(name, CREATING, namespaceSelector={"matchExpressions": [term]})
                for name, term in (
                    ("in", {"key": "hooked", "operator": "In", "values": ["{ns}"]}),
                    ("out", {"key": "hooked", "operator": "NotIn", "values": ["{ns}"]}),
                    ("none", {"key": "hooked", "operator": "DoesNotExist"}),
                )
            )
        ),
        create(query=DRY, compare="code"),
        Step("ASKED", "", has={"0.hook": "in", "1": ABSENT}, compare="code"),
    )
    yield case(
        "objects without a namespace are never exempted by one",
        {"v": NO},
        validating(
            hook("v", rule("clusterroles"),
                 namespaceSelector={"matchLabels": {"hooked": "{ns}"}}),
        ),
        create(
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
             "metadata": {"name": "{ns}-r", "labels": HOOKED}},
            400,
            path="/apis/rbac.authorization.k8s.io/v1/clusterroles",
        ),
        ASKED,
    )  # fmt: skip
    yield case(
        "an object selector meets the new or the old object",
        BOTH,
        create(config(labels={"a": "b"})),
        *both(),
        merge({"metadata": {"labels": HOOKED}}, compare="code"),
        Step("ASKED", "", has={"1.hook": "v"}, compare="code"),
        merge({"metadata": {"labels": {"hook": None}}}, compare="code"),
        Step("ASKED", "", has={"1.hook": "v"}, compare="code"),
        create(config("b", labels={"a": "b"})),
        Step("ASKED", "", has={"0": ABSENT}),
    )
    yield case(
        "an object selector goes by what earlier webhooks left",
        {"label": added("/metadata/labels/second", "yes"), "second": OK},
        mutating(
            hook("second", objectSelector={"matchLabels": {"second": "yes"}}),
            hook("label"),
            hook("second", name="late.hooks.test",
                 objectSelector={"matchLabels": {"second": "yes"}}),
        ),
        create(query=DRY),
        Step("ASKED", "", has={"0.hook": "label", "1.hook": "second", "2": ABSENT}),
    )  # fmt: skip
    only_v2 = {**rule("widgets"), "apiVersions": ["v2"]}
    yield case(
        "an equivalent version is reviewed in the version of the rule",
        {**BOTH, "second": added("/spec/second", "2"), "size": added("/spec/size", 3)},
        *both(only_v2),
        create(widget(first="1"), path=WIDGETS),
        ASKED,
        merge({"spec": {"first": "2"}}, path=f"{WIDGETS}/a"),
        ASKED,
        delete(f"{WIDGETS}/a"),
        ASKED,
        mutating(hook("second", only_v2), hook("size", only_v2), name="b"),
        create(widget(first="1"), path=WIDGETS,
               has={"spec": {"first": "1", "mode": "one", "size": 3}}),
    )  # fmt: skip
    yield case(
        "an exact rule does not match another version",
        BOTH,
        *both(only_v2, matchPolicy="Exact"),
        create(widget(first="1"), path=WIDGETS, query=DRY),
        ASKED,
        create(widget("v2"), path=WIDGETS_2, compare="code"),
        Step("ASKED", "", has={"1.hook": "v"}),
    )
    yield case(
        "the version of the request goes before equivalent ones",
        BOTH,
        *both(only_v2, {**rule("widgets"), "apiVersions": ["v1"]}),
        create(widget(), path=WIDGETS, query=DRY),
        Step("ASKED", "", has={"0.review.request.resource.version": "v1"}),
    )


# -------------------------------------------------------------------- mutations


def mutations() -> Iterator[Case]:
    yield case(
        "webhooks mutate in the order of configurations and lists",
        {
            "one": added("/data", {"a": "1"}),
            "two": added("/data/b", "2"),
            "three": added("/data/a", "3"),
        },
        mutating(hook("two"), hook("three"), name="b"),
        mutating(hook("one"), name="a"),
        create(has={"data": {"a": "3", "b": "2"}}),
        ASKED,
        Step("GET", f"{MAPS}/a", has={"data": {"a": "3", "b": "2"}}),
    )
    yield case(
        "an update is mutated",
        {"x": added("/data", {"x": "y"})},
        create(),
        mutating(hook("x")),
        merge({"data": {"a": "b"}}, has={"data": {"x": "y"}}),
        Step("PUT", f"{MAPS}/a", config(data={"q": "r"}), has={"data": {"x": "y"}}),
    )
    yield case(
        "an update that is undone changes nothing",
        {"x": added("/data", {"x": "y"})},
        create(config(data={"x": "y"})),
        mutating(hook("x")),
        merge({"data": {"a": "b"}}, has={"data": {"x": "y"}}),
    )  # fmt: skip
    yield case(
        "what a webhook adds that no schema has is pruned",
        {"frob": added("/spec/frob", 1), "top": added("/top", 1)},
        mutating(hook("frob", rule("widgets")), hook("top", rule("widgets"))),
        create(widget(), path=WIDGETS, has={"spec": {"mode": "one"}, "top": ABSENT}),
    )
    yield case(
        "a default that a webhook takes away comes back",
        {"bare": patching({"op": "remove", "path": "/spec/mode"})},
        mutating(hook("bare", rule("widgets"))),
        create(widget(), path=WIDGETS, has={"spec": {"mode": "one"}}),
    )
    yield case(
        "a built-in kind gets its defaults again",
        {"bare": patching({"op": "remove", "path": "/spec/strategy"})},
        mutating(hook("bare", rule("deployments"))),
        create(DEPLOYMENT, path=DEPLOYMENTS, query=DRY,
               has={"spec.strategy.type": "RollingUpdate"}),
    )  # fmt: skip
    yield case(
        "a mutation is validated",
        {"big": added("/spec/size", 9), "text": added("/spec/size", "x"),
         "label": added("/metadata/labels", {"_": "_"})},
        mutating(
            *(
                hook(is_, rule("widgets"), objectSelector={"matchLabels": {"is": is_}})
                for is_ in ("big", "text")
            ),
            hook("label"),
        ),
        *(
            create({**widget(), "metadata": meta(labels={"is": name})}, 422,
                   path=WIDGETS, compare="code")
            for name in ("big", "text")
        ),
        create(code=422, compare="code"),
    )  # fmt: skip
    yield case(
        "a webhook can give a new object another name",
        {"name": added("/metadata/name", "other")},
        mutating(hook("name")),
        create(has={"metadata.name": "other"}),
        Step("GET", f"{MAPS}/a", code=404),
    )
    yield case(
        "a webhook cannot give an object another namespace",
        {"space": added("/metadata/namespace", "default")},
        mutating(hook("space")),
        create(code=400),
    )
    yield case(
        "a webhook cannot choose a uid, a generation, or a moment",
        {
            "uid": added("/metadata/uid", "mine"),
            "generation": added("/metadata/generation", 7),
            "moment": added("/metadata/creationTimestamp", "2001-01-01T00:00:00Z"),
        },
        mutating(
            hook("uid", rule("widgets")),
            hook("generation", rule("widgets")),
            hook("moment", rule("widgets")),
        ),
        create(widget(), path=WIDGETS, has={"metadata.generation": 1}),
    )
    for name, value in (("uid", "mine"), ("name", "other")):
        yield case(
            f"a webhook cannot change the {name} of an object",
            {"m": added(f"/metadata/{name}", value)},
            create(widget(), path=WIDGETS),
            mutating(hook("m", rule("widgets"))),
            merge({"spec": {"size": 1}}, 422, path=f"{WIDGETS}/a"),
        )
    yield case(
        "a webhook can make a conflict",
        {"m": added("/metadata/resourceVersion", "1")},
        create(widget(), path=WIDGETS),
        mutating(hook("m", rule("widgets"))),
        merge({"spec": {"size": 1}}, 409, path=f"{WIDGETS}/a"),
    )
    yield case(
        "a webhook can hold an object",
        {"m": added("/metadata/finalizers", ["a.b/c"])},
        mutating(hook("m", CREATING)),
        create(has={"metadata.finalizers": ["a.b/c"]}),
        delete(has={"metadata.finalizers": ["a.b/c"]}),
        merge({"metadata": {"finalizers": None}}),
    )
    yield case(
        "a webhook does not change a deletion",
        {"m": added("/data", {"a": "b"})},
        create(),
        mutating(hook("m")),
        delete(code=500),
        Step("GET", f"{MAPS}/a"),
    )
    yield case(
        "what webhooks add is nobody's field",
        {"m": added("/data", {"a": "b"})},
        mutating(hook("m")),
        Step(
            "PATCH", f"{MAPS}/a", config(), APPLY_PATCH, {"fieldManager": "me"}, 201,
            has={"data": {"a": "b"}},
        ),
        Step(
            "PATCH", f"{MAPS}/a", config(data={"a": "c"}), APPLY_PATCH,
            {"fieldManager": "other"}, has={"data": {"a": "b"}},
        ),
    )  # fmt: skip
    yield case(
        "a later change makes earlier webhooks be asked once more",
        {
            "first": OK,
            "never": OK,
            "second": added("/data", {"a": "b"}),
            "third": added("/data/c", "d"),
        },
        mutating(
            hook("first", reinvocationPolicy="IfNeeded"),
            hook("never"),
            hook("second", reinvocationPolicy="IfNeeded"),
            hook("third", reinvocationPolicy="IfNeeded"),
        ),
        create(query=DRY),
        ASKED,
    )
    yield case(
        "without a later change no webhook is asked once more",
        {"first": added("/data", {"a": "b"}), "second": OK},
        mutating(
            hook("first", reinvocationPolicy="IfNeeded"),
            hook("second", reinvocationPolicy="IfNeeded"),
        ),
        create(query=DRY),
        ASKED,
    )
    yield case(
        "an empty patch changes nothing",
        {"m": patching()},
        mutating(hook("m")),
        create(query=DRY),
        ASKED,
    )
    yield case(
        "validating webhooks see what the others left",
        {"m": added("/data", {"a": "b"}), "v": OK},
        *both(),
        create(query=DRY),
        Step("ASKED", "", has={"1.review.request.object.data": {"a": "b"}}),
    )
    for name, operation, message in PATCHES:
        yield case(
            f"a patch that {name}",
            {"m": patching(operation)},
            mutating(hook("m", failurePolicy="Ignore")),
            create(code=500, has={"message": f"Internal error occurred: {message}"}),
        )


PATCHES: tuple[tuple[str, Json, str], ...] = (
    (
        "removes what is not there",
        {"op": "remove", "path": "/nope"},
        "error in remove for path: '/nope': Unable to remove nonexistent key: nope: "
        "missing value",
    ),
    (
        "adds below what is not there",
        {"op": "add", "path": "/nope/x", "value": 1},
        'add operation does not apply: doc is missing path: "/nope/x": missing value',
    ),
    (
        "moves what is not there",
        {"op": "move", "from": "/nope", "path": "/data"},
        "error in move for path: 'nope': Unable to remove nonexistent key: nope: "
        "missing value",
    ),
    (
        "tests in vain",
        {"op": "test", "path": "/kind", "value": "x"},
        "testing value /kind failed: test failed",
    ),
    ("has no known operation", {"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
    (
        "has no path",
        {"op": "remove"},
        "remove operation failed to decode path: missing value",
    ),
)


# ------------------------------------------------------------ denials and errors

DENIED = 'admission webhook "no.hooks.test" denied the request'
STATUSES: tuple[tuple[str, Json | None, int, Json], ...] = (
    ("without a status", None, 400, {"message": f"{DENIED} without explanation"}),
    ("with a message", {"message": "no way"}, 400, {"message": f"{DENIED}: no way"}),
    (
        "with a code",
        {"message": "no way", "code": 418},
        418,
        {"message": f"{DENIED}: no way", "code": 418, "reason": ABSENT},
    ),
    (
        "with a reason",
        {"reason": "Forbidden"},
        400,
        {"message": f"{DENIED}: Forbidden", "reason": "Forbidden"},
    ),
    (
        "that calls itself a success",
        {"code": 200, "status": "Success", "reason": "X", "message": "m"},
        400,
        {"status": "Failure", "reason": "X"},
    ),
    (
        "with details",
        {
            "code": 429,
            "reason": "TooManyRequests",
            "message": "m",
            "details": {"name": "n", "causes": [{"message": "c"}]},
        },
        429,
        {"details": {"name": "n", "causes": [{"message": "c"}]}},
    ),
    ("with empty details", {"details": {}}, 400, {"details": {}}),
)


def denials() -> Iterator[Case]:
    for name, status, code, has in STATUSES:
        more = {} if status is None else {"status": status}
        answers = {"no": answering(allowed=False, **more)}
        yield case(
            f"a denial {name}",
            answers,
            validating(hook("no")),
            create(code=code, has=has),
            delete(f"{VALIDATING}/{{ns}}-a", compare="code"),
            mutating(hook("no")),
            create(code=code, has=has),
        )
    yield case(
        "the second sort is not asked what the first has denied",
        {"m": NO, "v": OK},
        *both(),
        create(code=400),
        ASKED,
    )
    yield case(
        "updates and deletions are denied, too",
        {"no": answering(allowed=False, status={"message": "stay"})},
        create(),
        validating(hook("no")),
        merge({"data": {"a": "b"}}, 400),
        Step("PUT", f"{MAPS}/a", config(data={"a": "b"}), code=400),
        delete(code=400),
        delete(MAPS, code=400, query={"labelSelector": "hook=yes"}),
        Step("GET", f"{MAPS}/a", has={"data": ABSENT}),
    )
    yield case(
        "warnings come with the answer, each once",
        {
            "m": answering(allowed=True, warnings=["one", "two", ""]),
            "v": answering(allowed=True, warnings=["two", "three"]),
            "no": answering(allowed=False, warnings=["four"]),
        },
        *both(),
        create(query=DRY),
        Step("WARNED", "", has={"0": "one", "1": "two", "2": "three", "3": ABSENT}),
        validating(hook("no"), name="b"),
        create(code=400, query=DRY),
    )
    yield case(
        "many warnings are cut",
        {"m": answering(allowed=True, warnings=["a" * 300, "b" * 4000, "c" * 20])},
        mutating(hook("m")),
        create(query=DRY, compare="code"),
        Step("WARNED", "", has={"0": "a" * 256, "1": "b" * 256, "2": "c" * 20}),
    )
    yield case(
        "an old review is asked for and answered",
        {"m": added("/data", {"a": "b"}), "v": body(apiVersion=None, kind=None)},
        *both(admissionReviewVersions=["v9", "v1beta1", "v1"]),
        create(query=DRY, has={"data": {"a": "b"}}),
        ASKED,
    )


FAILED = 'Internal error occurred: failed calling webhook "bad.hooks.test": '
INVALID = "received invalid webhook response: "
UNCALLED = "failed to call webhook: "
WANTED = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
SHAPE = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def of_response(**parts: Any) -> Answer:
    return answering(allowed=True, **parts)


PATCH = base64.b64encode(b'[{"op": "add", "path": "/data", "value": {}}]').decode()
# Meaningless answers, the present messages about them, and the 1.20 messages without
# their beginning (None: in other words).
MALFORMED: tuple[tuple[str, Answer, str, str | None], ...] = (
    ("a text", said('"hello"'), UNCALLED, f"couldn't get version/kind; json parse "
     f"error: json: cannot unmarshal string into {SHAPE}"),
    ("a list", said([]), UNCALLED, f"couldn't get version/kind; json parse error: "
     f"json: cannot unmarshal array into {SHAPE}"),
    ("nothing", said(""), UNCALLED,
     "0-length response with status code: 200 and content type: application/json"),
    ("null", said("null"), INVALID, "webhook response was absent"),
    ("an empty object", said({}), INVALID, "webhook response was absent"),
    ("no response", body(response=None), INVALID, "webhook response was absent"),
    ("no kind", body(kind=None), INVALID, f"{WANTED}admission.k8s.io/v1, Kind="),
    ("no version", body(apiVersion=None), INVALID, f"{WANTED}/, Kind=AdmissionReview"),
    ("another kind", body(kind="Pod"), UNCALLED, None),
    ("an unknown version", body(apiVersion="x/v1"), UNCALLED, None),
    ("an older version", body(apiVersion="admission.k8s.io/v1beta1"), UNCALLED,
     "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown "
     "conversion"),
    ("a text in the place of the response", body(response="x"), UNCALLED, None),
    ("a text in the place of allowed", answering(allowed="yes"), UNCALLED, None),
    ("a text in the place of the status", of_response(status="no"), UNCALLED, None),
    ("a patch that is not base64", of_response(patch="***"), UNCALLED, None),
    ("a patch that is a list", of_response(patch=[{"op": "add"}]), UNCALLED, None),
    ("a patch without its type", of_response(patch=PATCH), INVALID,
     "webhook returned response.patch but not response.patchType"),
    ("a type without a patch", of_response(patchType="JSONPatch"), INVALID,
     "webhook returned response.patchType but not response.patch"),
    ("an empty type", of_response(patch=PATCH, patchType=""), INVALID,
     'webhook returned invalid response.patchType of ""'),
    ("another type of patch", of_response(patch=PATCH, patchType="Merge"), "",
     'unsupported patch type "Merge"'),
    ("another uid", of_response(uid="x"), INVALID, None),
)  # fmt: skip


def failures() -> Iterator[Case]:
    for name, answer, before, why in MALFORMED:
        text = f"{FAILED}{before}{why}"
        old = (
            None if why is None or not before else (500, {"message": f"{FAILED}{why}"})
        )
        yield case(
            f"an answer with {name} fails the write, or is ignored",
            {"bad": answer},
            mutating(hook("bad")),
            create(
                code=500,
                has={} if why is None else {"message": text},
                old=old,
                compare="code" if why is None else "all",
            ),
            Step(
                "PATCH",
                f"{MUTATING}/{{ns}}-a",
                [{"op": "replace", "path": "/webhooks/0/failurePolicy",
                  "value": "Ignore"}],
                JSON_PATCH,
            ),
            create(),
        )  # fmt: skip
    for name, answer, why in (
        ("a patch", patching(), "validating webhook may not return response.patch"),
        (
            "a type of patch",
            of_response(patchType="JSONPatch"),
            "validating webhook may not return response.patchType",
        ),
    ):
        yield case(
            f"a validating webhook that answers {name}",
            {"bad": answer},
            validating(hook("bad")),
            create(
                code=500,
                has={"message": f"{FAILED}{INVALID}{why}"},
                old=(500, {"message": f"{FAILED}{why}"}),
            ),
        )
    yield case(
        "an HTTP error fails the write, or is ignored",
        {"bad": lambda review: (500, "boom"), "worse": lambda review: (404, "nope")},
        mutating(hook("bad"), hook("worse", failurePolicy="Ignore")),
        create(code=500, compare="code"),
        Step("ASKED", "", has={"0.hook": "bad", "1": ABSENT}, compare="code"),
        delete(f"{MUTATING}/{{ns}}-a", compare="code"),
        mutating(
            hook("bad", failurePolicy="Ignore"), hook("worse", failurePolicy="Ignore")
        ),
        create(),
        Step("ASKED", "", has={"1.hook": "worse", "2": ABSENT}, compare="code"),
    )
    yield case(
        "any answer of success counts",
        {"m": lambda review: (201, added("/data", {"a": "b"})(review)[1])},
        mutating(hook("m")),
        create(query=DRY, has={"data": {"a": "b"}}),
    )
    yield case(
        "an ignored webhook does not undo those before it",
        {"m": added("/data", {"a": "b"}), "bad": said("x"), "v": OK},
        mutating(hook("m"), hook("bad", failurePolicy="Ignore")),
        validating(hook("v")),
        create(query=DRY, has={"data": {"a": "b"}}),
        ASKED,
    )


# ------------------------------------------------------------- match conditions


def condition(expression: str, name: str = "c") -> Json:
    return {"name": name, "expression": expression}


# Conditions, and whether the creation of a ConfigMap by the admin meets them.
CONDITIONS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("the object", ("object.metadata.name == 'a'",), True),
    ("the old object", ("oldObject == null",), True),
    ("the request", ("request.operation == 'CREATE' && !request.dryRun",), True),
    ("an empty field of the request", ("request.subResource == ''",), True),
    ("the user", ("'system:masters' in request.userInfo.groups",), True),
    ("another user", ("request.userInfo.username != 'admin'",), False),
    ("two conditions", ("true", "object.kind == 'Secret'"), False),
    ("an error beside a no", ("object.spec.x == 1", "false"), False),
    ("labels", ("'hook' in object.metadata.labels",), True),
)  # fmt: skip


def conditions() -> Iterator[Case]:
    for name, expressions, meets in CONDITIONS:
        given = [condition(each, f"c{i}") for i, each in enumerate(expressions)]
        yield documented(
            f"match conditions about {name}",
            {"v": NO},
            validating(hook("v", matchConditions=given)),
            create(code=400 if meets else 201),
            Step("ASKED", "", has={"0.hook": "v"} if meets else {"0": ABSENT}),
        )
    broken = [condition("object.spec.x == 1")]
    yield documented(
        "a match condition with an error goes by the failure policy",
        {"v": NO},
        validating(hook("v", matchConditions=broken)),
        create(
            code=403,
            has={
                "message": 'configmaps "a" is forbidden: expression '
                "'object.spec.x == 1' resulted in error: no such key: spec"
            },
        ),
        delete(f"{VALIDATING}/{{ns}}-a"),
        validating(hook("v", matchConditions=broken, failurePolicy="Ignore")),
        create(),
        Step("ASKED", "", has={"0": ABSENT}),
    )
    yield documented(
        "match conditions are checked when they are written",
        {},
        Step(
            "POST",
            VALIDATING,
            {
                "apiVersion": GROUP,
                "kind": KINDS[VALIDATING],
                "metadata": {"name": "{ns}-a"},
                "webhooks": [
                    hook(
                        "v",
                        matchConditions=[
                            condition("object.x ==", "a"),
                            condition("1", "b"),
                            condition("true", "b"),
                            condition("true", ""),
                            condition("", "d"),
                            condition("nobody.x", "_"),
                        ],
                    )
                ],
            },
            code=422,
            has={
                "details.causes.1.field": "webhooks[0].matchConditions[1].expression",
                "details.causes.2.reason": "FieldValueDuplicate",
                "details.causes.3.field": "webhooks[0].matchConditions[3].name",
                "details.causes.4.reason": "FieldValueRequired",
            },
        ),
    )


# ---------------------------------------------------------------- registrations

SERVICE: Json = {"name": "n", "namespace": "m"}
# Parts of a webhook, and the faulty field; None: without a fault.
REGISTERED: tuple[tuple[Json, str | None], ...] = (
    ({"clientConfig": {"url": "http://x.y"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://u:p@x.y"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://x.y?q=1"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://x.y#f"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://x y"}}, "clientConfig.url"),
    ({"clientConfig": {"url": ":x"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://x.y:z"}}, "clientConfig.url"),
    ({"clientConfig": {"url": "https://[::1]:99/x"}}, None),
    ({"clientConfig": {}}, "clientConfig"),
    ({"clientConfig": {"url": "https://x.y", "service": SERVICE}}, "clientConfig"),
    ({"clientConfig": {"service": SERVICE}}, None),
    ({"clientConfig": {"service": {**SERVICE, "port": 0}}},
     "clientConfig.service.port"),
    ({"clientConfig": {"service": {**SERVICE, "path": "x"}}},
     "clientConfig.service.path"),
    ({"clientConfig": {"service": {**SERVICE, "path": "/a/"}}}, None),
    ({"timeoutSeconds": 0}, "timeoutSeconds"),
    ({"timeoutSeconds": 31}, "timeoutSeconds"),
    ({"timeoutSeconds": 30}, None),
    ({"sideEffects": "Some"}, "sideEffects"),
    ({"sideEffects": "NoneOnDryRun"}, None),
    ({"name": "two.segments"}, "name"),
    ({"admissionReviewVersions": []}, "admissionReviewVersions"),
    ({"failurePolicy": "Maybe"}, "failurePolicy"),
    ({"matchPolicy": "Exactly"}, "matchPolicy"),
    ({"objectSelector": {"matchLabels": {"a": "_"}}}, "objectSelector.matchLabels"),
)  # fmt: skip


def registrations() -> Iterator[Case]:
    steps = []
    for parts, field in REGISTERED:
        given = {
            "apiVersion": GROUP,
            "kind": KINDS[VALIDATING],
            "metadata": {"name": "{ns}-a"},
            "webhooks": [{**hook("v"), **parts}],
        }
        where = {"details.causes.0.field": f"webhooks[0].{field}"}
        steps.append(
            Step("POST", VALIDATING, given, code=422, has=where)
            if field
            else Step(
                "POST", VALIDATING, given, code=201, query=DRY, compare=("webhooks",)
            )
        )
    yield case("webhooks are validated when they are registered", {"v": OK}, *steps)


CASES = (
    *registrations(),
    *reviews(),
    *subresources(),
    *matching(),
    *mutations(),
    *denials(),
    *failures(),
    *conditions(),
)
