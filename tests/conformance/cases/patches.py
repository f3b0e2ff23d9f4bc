"""Patches of built-in kinds: merge keys, directives, orders, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

CORE = "/api/v1/namespaces/{ns}/"
MAPS = CORE + "configmaps"
SERVICES = CORE + "services"
ACCOUNTS = CORE + "serviceaccounts"
# Replica sets without replicas: their controller writes nothing but status.
SETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
T = SETS + "/t"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies"

INVALID = {"reason": "Invalid"}
BAD = {"reason": "BadRequest"}
# The words come from a decoder; 1.20 had another one.
CAUSE = ("reason", "details.causes.0.field", "details.causes.0.reason")


def post(path: str, body: Json) -> Step:
    return Step("POST", path, body, code=201)


def patch(path: str, body: Any, type: str, code: int, **more: Any) -> Step:
    if path == T and code == 200:
        more.setdefault("compare", ("spec",))
    return Step("PATCH", path, body, type, code=code, **more)


def strategic(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return patch(path, body, STRATEGIC_PATCH, code, **more)


def merge(path: str, body: Any, code: int = 200, **more: Any) -> Step:
    return patch(path, body, MERGE_PATCH, code, **more)


def operate(path: str, *operations: Json, code: int = 200, **more: Any) -> Step:
    return patch(path, [*operations], JSON_PATCH, code, **more)


def operation(op: str, path: str, **more: Any) -> Json:
    return {"op": op, "path": path, **more}


def configmap(name: str = "a", **parts: Any) -> Json:
    return {"metadata": {"name": name, **parts.pop("metadata", {})}, **parts}


def container(name: str, **more: Any) -> Json:
    return {"name": name, "image": "i:1", **more}


LABELS = {"app": "a"}


def made(*containers: Json, **spec: Any) -> Step:
    """A replica set is made, with these containers in its template."""
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [*containers], **spec},
    }
    selector = {"matchLabels": LABELS}
    spec = {"replicas": 0, "selector": selector, "template": template}
    body = {"metadata": {"name": "t"}, "spec": spec}
    return Step("POST", SETS, body, code=201, compare=("spec",))


def of_pod(**spec: Any) -> Json:
    """A patch of the pods of a template."""
    return {"spec": {"template": {"spec": spec}}}


def inside(part: str) -> str:
    return f"spec.template.spec.{part}"


def names(*wanted: str, part: str = "containers", key: str = "name") -> Json:
    """The items of a list, in this order, and no more."""
    found = {inside(f"{part}.{n}.{key}"): name for n, name in enumerate(wanted)}
    return {**found, inside(f"{part}.{len(wanted)}"): ABSENT}


def strategic_patches() -> Iterator[Case]:
    abc = [container(name) for name in "abc"]
    yield Case(
        "strategic patches put what is new first",
        (
            made(*abc),
            strategic(T, of_pod(containers=[container("d")]), has=names(*"dabc")),
            strategic(
                T,
                of_pod(containers=[{"name": "c", "image": "j:1"}]),
                has=names(*"dabc"),
            ),
            strategic(
                T,
                of_pod(containers=[container("c"), container("e"), container("a")]),
                has=names(*"dbcea"),
            ),
        ),
    )
    yield Case(
        "strategic patches delete items",
        (
            made(*abc),
            strategic(
                T,
                of_pod(containers=[{"name": "b", "$patch": "delete"}]),
                has=names(*"ac"),
            ),
            strategic(
                T,
                of_pod(containers=[{"name": "no", "$patch": "delete"}]),
                has=names(*"ac"),
            ),
            strategic(
                T,
                of_pod(
                    containers=[{"name": "a", "$patch": "delete"}, container("a")],
                ),
            ),
        ),
    )
    yield Case(
        "strategic patches replace lists and maps",
        (
            made(*abc, nodeSelector={"a": "b", "c": "d"}),
            strategic(
                T,
                of_pod(containers=[container("z"), {"$patch": "replace"}]),
                has=names("z"),
            ),
            strategic(
                T,
                of_pod(nodeSelector={"$patch": "replace", "e": "f"}),
                has={inside("nodeSelector"): {"e": "f"}},
            ),
            strategic(
                T,
                of_pod(nodeSelector={"$patch": "delete"}),
                has={inside("nodeSelector"): ABSENT},
            ),
            strategic(
                T, of_pod(nodeSelector={"$patch": "merge", "g": "h"}), 422, has=INVALID
            ),
            strategic(T, of_pod(nodeSelector={"g": "h"})),
            strategic(T, of_pod(nodeSelector={"$patch": "merge", "g": "i"}), 500),
            strategic(T, of_pod(nodeSelector={"$patch": "other", "g": "i"}), 500),
            strategic(T, of_pod(containers=[{"name": "z", "$patch": "other"}]), 500),
        ),
    )
    yield Case(
        "strategic patches keep some keys",
        (
            made(
                *abc,
                volumes=[
                    {"name": "v", "emptyDir": {}},
                    {"name": "w", "secret": {"secretName": "s"}},
                ],
            ),
            strategic(
                T,
                of_pod(
                    volumes=[
                        {
                            "name": "v",
                            "hostPath": {"path": "/"},
                            "$retainKeys": ["name", "hostPath"],
                        }
                    ]
                ),
                has={inside("volumes.0.emptyDir"): ABSENT},
            ),
            strategic(
                T,
                of_pod(
                    volumes=[{"name": "w", "emptyDir": {}, "$retainKeys": ["name"]}]
                ),
                400,
                has=BAD,
            ),
            strategic(
                T, of_pod(volumes=[{"name": "w", "$retainKeys": "name"}]), 400, has=BAD
            ),
        ),
    )
    yield Case(
        "strategic patches order lists",
        (
            made(*abc),
            strategic(
                T,
                of_pod(**{"$setElementOrder/containers": [{"name": n} for n in "cab"]}),
                has=names(*"cab"),
            ),
            strategic(
                T,
                of_pod(
                    containers=[container("d")],
                    **{"$setElementOrder/containers": [{"name": n} for n in "adc"]},
                ),
                has=names(*"adcb"),
            ),
            strategic(
                T,
                of_pod(
                    containers=[container("e")],
                    **{"$setElementOrder/containers": [{"name": "a"}]},
                ),
                500,
            ),
            strategic(
                T,
                of_pod(**{"$setElementOrder/containers": [{"image": "x"}]}),
                500,
            ),
            *(
                strategic(
                    T,
                    of_pod(
                        containers=[container("a")],
                        **{"$setElementOrder/containers": order},
                    ),
                    500,
                )
                for order in (1, "x", {"a": 1}, [1])
            ),
        ),
    )
    yield Case(
        "strategic patches merge what is in containers",
        (
            made(
                container(
                    "a",
                    env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    args=["x", "y"],
                    ports=[{"containerPort": 80, "name": "http"}],
                    volumeMounts=[{"name": "v", "mountPath": "/a"}],
                ),
                volumes=[{"name": "v"}],
            ),
            strategic(
                T,
                of_pod(
                    containers=[
                        {
                            "name": "a",
                            "env": [{"name": "B", "value": "3"}, {"name": "C"}],
                            "args": ["z"],
                            "ports": [{"containerPort": 81}],
                            "volumeMounts": [{"name": "v", "mountPath": "/b"}],
                        }
                    ]
                ),
                has={inside("containers.0.args"): ["z"]},
            ),
            strategic(
                T,
                of_pod(
                    containers=[
                        {
                            "name": "a",
                            "env": [{"name": "A", "$patch": "delete"}],
                            "args": None,
                            "ports": [{"containerPort": 80, "$patch": "delete"}],
                        }
                    ]
                ),
                has={inside("containers.0.args"): ABSENT},
            ),
            strategic(T, of_pod(containers=[{"image": "j"}]), 500),
        ),
    )
    yield Case(
        "strategic patches replace lists without keys",
        (
            made(
                *abc,
                tolerations=[{"key": "k", "operator": "Exists"}],
                hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}],
                imagePullSecrets=[{"name": "s"}],
            ),
            strategic(
                T,
                of_pod(
                    tolerations=[{"key": "l", "operator": "Exists"}],
                    hostAliases=[
                        {"ip": "10.0.0.1", "hostnames": ["b"]},
                        {"ip": "10.0.0.2", "hostnames": ["c"]},
                    ],
                    imagePullSecrets=[{"name": "t"}],
                ),
                has={inside("tolerations.1"): ABSENT},
            ),
            strategic(T, of_pod(tolerations=None, imagePullSecrets=None)),
        ),
    )
    yield Case(
        "ports of services are merged by their numbers",
        (
            post(
                SERVICES,
                {
                    "metadata": {"name": "s"},
                    "spec": {
                        "clusterIP": "None",
                        "ports": [
                            {"name": "a", "port": 80},
                            {"name": "b", "port": 81},
                        ],
                    },
                },
            ),
            strategic(
                SERVICES + "/s",
                {"spec": {"ports": [{"port": 81, "targetPort": "x"}]}},
                has={"spec.ports.1.targetPort": "x"},
            ),
            strategic(
                SERVICES + "/s",
                {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}},
                has={"spec.ports.1": ABSENT},
            ),
        ),
    )
    yield Case(
        "ports of network policies are replaced",
        (
            post(
                POLICIES,
                {
                    "metadata": {"name": "n"},
                    "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]},
                },
            ),
            strategic(
                POLICIES + "/n",
                {"spec": {"ingress": [{"ports": [{"port": 81}]}]}},
                has={"spec.ingress.0.ports.1": ABSENT},
            ),
        ),
    )
    yield Case(
        "strategic patches of metadata",
        (
            *(post(MAPS, configmap(name)) for name in "xy"),
            post(
                MAPS,
                configmap(
                    metadata={
                        "finalizers": ["a/a", "b/b"],
                        "labels": {"a": "1", "b": "2"},
                        "ownerReferences": [
                            {
                                "apiVersion": "v1",
                                "kind": "ConfigMap",
                                "name": name,
                                "uid": f"${index}.metadata.uid",
                            }
                            for index, name in enumerate("xy")
                        ],
                    }
                ),
            ),
            strategic(
                MAPS + "/a",
                {
                    "metadata": {
                        "labels": {"a": None, "c": "3"},
                        "ownerReferences": [
                            {"uid": "$0.metadata.uid", "$patch": "delete"}
                        ],
                        "$deleteFromPrimitiveList/finalizers": ["a/a", "no/no"],
                    }
                },
                has={"metadata.labels": {"b": "2", "c": "3"}},
            ),
            strategic(
                MAPS + "/a",
                {
                    "metadata": {
                        "finalizers": ["c/c"],
                        "$setElementOrder/finalizers": ["c/c", "b/b"],
                    }
                },
                has={"metadata.finalizers": ["c/c", "b/b"]},
            ),
            strategic(
                MAPS + "/a",
                {"metadata": {"finalizers": None, "ownerReferences": None}},
                has={"metadata.finalizers": ABSENT},
            ),
        ),
    )
    yield Case(
        "secrets of accounts are merged by name",
        (
            post(ACCOUNTS, {"metadata": {"name": "s"}, "secrets": [{"name": "a"}]}),
            strategic(
                ACCOUNTS + "/s",
                {
                    "secrets": [{"name": "b"}],
                    "imagePullSecrets": [{"name": "c"}],
                    "automountServiceAccountToken": False,
                },
                # The token controller may have added a third by then.
                has={"secrets.0": {"name": "b"}, "secrets.1": {"name": "a"}},
                compare=("imagePullSecrets", "automountServiceAccountToken"),
            ),
        ),
    )
    yield Case(
        "strategic patches that fit no type",
        (
            post(MAPS, configmap(data={"a": "b"})),
            strategic(MAPS + "/a", [], 400, has=BAD),
            strategic(MAPS + "/a", {"data": {"a": 1}}, 422, has=INVALID, compare=CAUSE),
            strategic(MAPS + "/a", {"data": ["a"]}, 422, has=INVALID, compare=CAUSE),
            strategic(
                MAPS + "/a",
                {"metadata": {"finalizers": "x"}},
                422,
                has=INVALID,
                compare=CAUSE,
            ),
            strategic(MAPS + "/a", {"no": {"such": "field"}}),
        ),
    )


def other_patches() -> Iterator[Case]:
    yield Case(
        "merge patches know no directives",
        (
            made(container("a"), container("b")),
            merge(T, of_pod(containers=[container("c")]), has=names("c")),
            merge(
                T,
                of_pod(nodeSelector={"$patch": "replace", "a": "b"}),
                422,
                has=INVALID,
            ),
            merge(T, of_pod(containers=None), 422, has=INVALID),
            merge(T, of_pod(containers=[]), 422, has=INVALID),
        ),
    )
    yield Case(
        "merge patches that fit no type",
        (
            post(MAPS, configmap(data={"a": "b"})),
            merge(MAPS + "/a", {"data": {"a": 1}}, 422, has=INVALID, compare=CAUSE),
            merge(MAPS + "/a", {"data": {"a": None}}, has={"data": ABSENT}),
            merge(MAPS + "/a", {"data": "x"}, 422, has=INVALID, compare=CAUSE),
            merge(MAPS + "/a", {"metadata": {"name": "b"}}, 400),
            merge(MAPS + "/a", {"metadata": {"labels": {"a": "b c"}}}, 422),
            merge(MAPS + "/a", {"kind": "Secret"}, 422, has=INVALID, compare=CAUSE),
        ),
    )
    yield Case(
        "JSON patches of a config map",
        (
            post(MAPS, configmap(metadata={"annotations": {"a/b": "1"}})),
            operate(
                MAPS + "/a",
                operation("replace", "/metadata/annotations/a~1b", value="3"),
                has={"metadata.annotations": {"a/b": "3"}},
            ),
            operate(
                MAPS + "/a",
                operation("test", "/data", value=None),
                operation("add", "/data", value={"a": "1"}),
                has={"data": {"a": "1"}},
            ),
            operate(
                MAPS + "/a",
                operation("test", "/data/a", value="1"),
                operation("copy", "/data/b", **{"from": "/data/a"}),
                operation("move", "/data/c", **{"from": "/data/a"}),
                has={"data": {"b": "1", "c": "1"}},
            ),
            operate(
                MAPS + "/a",
                operation("add", "/data/n", value=1),
                code=422,
                has=INVALID,
                compare=CAUSE,
            ),
            operate(MAPS + "/a", operation("remove", "/metadata/name"), code=400),
            operate(MAPS + "/a", has={"data": {"b": "1", "c": "1"}}),
        ),
    )
    yield Case(
        "JSON patches of lists",
        (
            made(container("a"), container("b")),
            operate(
                T,
                operation(
                    "add", "/spec/template/spec/containers/0", value=container("c")
                ),
                operation(
                    "add", "/spec/template/spec/containers/-", value=container("d")
                ),
                has=names(*"cabd"),
            ),
            operate(
                T,
                operation("remove", "/spec/template/spec/containers/1"),
                operation(
                    "replace", "/spec/template/spec/containers/0/image", value="z:1"
                ),
                has=names(*"cbd"),
            ),
            operate(
                T,
                operation("remove", "/spec/template/spec/containers/7"),
                code=422,
                has=INVALID,
            ),
            operate(
                T,
                operation(
                    "add", "/spec/template/spec/containers/9", value=container("x")
                ),
                code=422,
                has=INVALID,
            ),
        ),
    )


CASES = (*strategic_patches(), *other_patches())
