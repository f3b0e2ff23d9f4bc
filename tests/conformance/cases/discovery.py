"""Discovery: groups, versions and resources; the version; health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import JSON
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES", "CRDS"]

Json = dict[str, Any]

GROUP = "discovery.conf.dev"
OTHER = "order.conf.dev"
BOTH = ("1.20", "1.36")
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
}


def version(name: str, *, storage: bool = False, **more: Any) -> Json:
    found = {"name": name, "served": True, "storage": storage, **more}
    return {**found, "schema": {"openAPIV3Schema": OPEN}}


def crd(kind: str, group: str, *versions: Json, **more: Any) -> Json:
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": more.pop("scope", "Namespaced"),
            "names": {"plural": plural, "kind": kind, **more},
            "versions": list(versions),
        },
    }


CRDS = (
    crd(
        "Whole",
        GROUP,
        version("v1", storage=True, subresources={"status": {}, "scale": SCALE}),
        shortNames=["wh", "whl"],
        categories=["all", "conf"],
        singular="whole",
    ),
    crd("Bare", GROUP, version("v1", storage=True), scope="Cluster"),
    crd(
        "Many",
        OTHER,
        version("v1alpha1"),
        version("v1beta1", storage=True),
        version("v2beta1"),
        version("v1"),
        version("v10"),
        version("v2", served=False),
        version("next"),
    ),
)


def get(path: str, code: int = 200, **more: Any) -> Step:
    return Step("GET", path, code=code, **more)


AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = AGGREGATED.replace("v=v2", "v=v2beta1")


def groups() -> Iterator[Case]:
    yield Case(
        "the resources of a custom group",
        (
            get(
                f"/apis/{GROUP}/v1",
                has={"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1"},
            ),
            get(f"/apis/{GROUP}/v1/", has={"kind": "APIResourceList"}),
            get(f"/apis/{GROUP}", has={"preferredVersion.version": "v1"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "versions in the order of their priority",
        (
            get(
                f"/apis/{OTHER}",
                has={
                    "versions.0.version": "v10",
                    "versions.1.version": "v1",
                    "versions.2.version": "v2beta1",
                    "versions.3.version": "v1beta1",
                    "versions.4.version": "v1alpha1",
                    "versions.5.version": "next",
                    "versions.6": ABSENT,
                    "preferredVersion.version": "v10",
                },
            ),
            get(f"/apis/{OTHER}/v2beta1", has={"resources.0.name": "manys"}),
            get(f"/apis/{OTHER}/v2", 404),
        ),
        servers=BOTH,
    )
    yield Case(
        "groups and versions that nobody serves",
        (
            get("/apis/nothing.conf.dev", 404),
            get("/apis/nothing.conf.dev/v1", 404),
            get(f"/apis/{GROUP}/v9", 404),
            get(f"/apis/{GROUP}/v9/namespaces/{{ns}}/wholes", 404),
            get(f"/apis/{GROUP}/v1/namespaces/{{ns}}/nothings", 404),
        ),
        servers=BOTH,
    )
    yield Case(
        "built-in resources that nobody serves",
        (
            get("/apis/apps/v9", 404, has={"reason": "NotFound"}),
            get("/api/v9", 404, has={"reason": "NotFound"}),
            get("/api/v1/nothings", 404, has={"reason": "NotFound"}),
            get("/api/v1/namespaces/{ns}/nothings/x", 404),
            get("/apis/apps/v1/namespaces/{ns}/nothings", 404),
            get("/api/v1/namespaces/{ns}/pods/x/y/z", 404),
        ),
    )
    yield Case(
        "the roots",
        (
            get("/api", has={"versions.0": "v1"}, compare=("kind", "versions")),
            get("/api/", has={"kind": "APIVersions"}, compare=("kind", "versions")),
            get("/apis", has={"kind": "APIGroupList"}, compare=("kind", "apiVersion")),
            get(
                "/api/v1",
                has={"groupVersion": "v1"},
                compare=("kind", "apiVersion", "groupVersion"),
            ),
            get("/apis/apps", has={"preferredVersion.version": "v1"}),
            get(
                "/apis/apps/v1",
                has={"resources.4.name": "deployments/scale"},
                compare=tuple(f"resources.{i}" for i in (2, 4, 5, 7, 8)),
            ),
            get(
                "/apis/apiextensions.k8s.io/v1",
                has={"resources.1.name": "customresourcedefinitions/status"},
                compare=("resources.1",),
            ),
        ),
    )

    yield Case(
        "the resources of definitions",
        (
            get(
                "/apis/apiextensions.k8s.io/v1",
                has={"resources.0.categories": ["api-extensions"]},
            ),
            get("/apis/apiextensions.k8s.io"),
        ),
        servers=("1.36",),
    )


def aggregated() -> Iterator[Case]:
    # 1.20 does not know it, and the other real server has no root of groups.
    yield Case(
        "aggregated discovery",
        (
            get(
                "/api",
                accept=f"{AGGREGATED},{BETA},{JSON}",
                has={
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": "apidiscovery.k8s.io/v2",
                    "items.0.metadata": {},
                    "items.0.versions.0.version": "v1",
                    "items.0.versions.0.freshness": "Current",
                },
                old=(200, {"kind": "APIVersions"}),
            ),
            get(
                "/apis",
                accept=AGGREGATED,
                has={
                    "items.1.metadata.name": "apps",
                    "items.1.versions.0.resources.2.resource": "deployments",
                    "items.1.versions.0.resources.2.scope": "Namespaced",
                    "items.1.versions.0.resources.2.singularResource": "deployment",
                    "items.1.versions.0.resources.2.shortNames": ["deploy"],
                    "items.1.versions.0.resources.2.responseKind": {
                        "group": "apps",
                        "version": "v1",
                        "kind": "Deployment",
                    },
                    "items.1.versions.0.resources.2.subresources.0": {
                        "subresource": "scale",
                        "responseKind": {
                            "group": "autoscaling",
                            "version": "v1",
                            "kind": "Scale",
                        },
                        "verbs": ["get", "patch", "update"],
                    },
                },
                old=(406, {"reason": "NotAcceptable"}),
            ),
            get(
                "/apis",
                accept=BETA,
                has={"apiVersion": "apidiscovery.k8s.io/v2beta1"},
                old=(406, {"reason": "NotAcceptable"}),
            ),
        ),
    )
    yield Case(
        "only the roots are aggregated",
        (
            get(f"/apis/{GROUP}", 406, accept=AGGREGATED),
            get(f"/apis/{GROUP}/v1", 406, accept=AGGREGATED),
            get(f"/apis/{GROUP}/v1", accept=f"{AGGREGATED},{JSON}"),
        ),
        servers=BOTH,
    )


def others() -> Iterator[Case]:
    yield Case(
        "discovery in other notations",
        (
            get(f"/apis/{GROUP}", 406, accept="text/plain"),
            get(f"/apis/{GROUP}/v1", 406, accept="application/cbor"),
            get(f"/apis/{GROUP}", accept="*/*", has={"kind": "APIGroup"}),
            get(f"/apis/{GROUP}", accept="application/*", has={"kind": "APIGroup"}),
            get(f"/apis/{GROUP}", accept="application/yaml", compare="code"),
            get("/apis/nothing.conf.dev", 404, accept="text/plain"),
        ),
        servers=BOTH,
    )
    yield Case(
        "the version of the server",
        (
            get("/version", has={"major": "1"}, compare=("major", "platform")),
            get("/version", 406, accept="text/plain", compare=("reason", "code")),
            Step("POST", "/version", {}, code=405),
        ),
        servers=BOTH,
    )
    yield Case(
        "health",
        (
            *(
                get(f"/{root}", has={"": "ok"})
                for root in ("healthz", "livez", "readyz")
            ),
            get("/healthz/ping", has={"": "ok"}),
            get("/livez/etcd", has={"": "ok"}),
            get("/readyz/shutdown", has={"": "ok"}),
            get("/readyz/ping", query={"verbose": ""}, has={"": "ok"}),
            get("/livez", query={"verbose": "true"}, compare="code"),
            get("/livez", query={"exclude": "etcd"}, has={"": "ok"}),
            get("/healthz/nothing", 404, compare="code"),
            get("/healthz", accept="application/yaml", has={"": "ok"}),
            Step("POST", "/healthz", {}, has={"": "ok"}),
        ),
        servers=BOTH,
    )
    yield Case(
        "the index, and what is not in it",
        (
            get("/", compare="code"),
            get("/nothing", 404, compare="code"),
            get("/nothing/at/all", 404, compare="code"),
        ),
        servers=BOTH,
    )


CASES = (*groups(), *aggregated(), *others())
