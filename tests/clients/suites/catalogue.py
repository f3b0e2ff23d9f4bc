"""The suites: their versions, their tests, and the skipped ones with the reason.

Tests are skipped if they need more than an API server, such as running containers, or
features that current servers have dropped. `not_on_real` names tests that the available
real server, Kubernetes 1.20 without a kubelet, does not pass: they run only on the
simulated cluster, which must pass them. In patterns, `*` matches anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.suites.fetching import Archive, DebianSource, Sdist

__all__ = ["SUITES", "Suite"]


@dataclass(frozen=True)
class Suite:
    """One pytest run of a client's tests."""

    name: str
    archive: Archive
    arguments: tuple[str, ...]
    """Of pytest: the paths of the tests, and options."""
    within: str = "."
    """The folder of the archive to run in."""
    also: tuple[str, ...] = (".",)
    """Folders of the archive to import from."""
    plugins: tuple[str, ...] = ()
    """Modules of `fixtures/`."""
    context: str = "suite"
    """The name of the kubeconfig's one context, cluster and user."""
    seconds: int = 600
    """The longest that the whole may take."""
    test_seconds: int = 60
    """The longest that one test may take."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons by patterns of node ids: not run."""
    not_on_real: Mapping[str, str] = field(default_factory=dict)
    """Reasons by patterns of node ids: not run on the real server."""

    def paths(self, source: Path) -> list[Path]:
        """The folders that Python imports from."""
        return [source / name for name in self.also]


CONTAINERS = "executes in a container or forwards a port of it"
KUBELET = "waits for pods that run, or for the node of a kubelet"
GENERATED = "1.20 says 500, and not 409, where a generated name is taken"
SINGULAR = "names kinds in the singular, which discovery tells since 1.27"
STORAGE = "storage.k8s.io/v1 has this kind since 1.24"
WHO = "asks who it is; SelfSubjectReview is there since 1.28"
OTHER_KIND = "sends a Deployment to the path of pods, which every server refuses"
IDENTITY = "takes two objects of the client for equal that the client never does"
LACKING = "tests a command whose module the archive lacks"
V1BETA1 = "uses apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed"

WEBHOOKS = "listens for webhooks, with a library that OpenSSL 3 does not suit"
OFFICIAL_SYNC = {
    "*::TestDynamicClient::test_*custom_resources": V1BETA1,
    "*::test_cache_decoder_resource_and_subresource": IDENTITY,
}

KR8S = Sdist(
    "kr8s-0.20.15.tar.gz",
    "kr8s-0.20.15",
    "484d5206bbebd48f8cc00dd3ed749d4419294d2f08cd50c6232114cf62ed6d3a",
    "kr8s==0.20.15",
)
OFFICIAL = Sdist(
    "kubernetes-37.0.2.tar.gz",
    "kubernetes-37.0.2",
    "6967599ef976d0bb9c663c3621e690db0e26fbab7cf5c5e3ccf7e11b790d2de9",
    "kubernetes==37.0.2",
)
# The sdists lack the end-to-end tests; Debian packs the whole tree.
OFFICIAL_E2E = DebianSource(
    "python-kubernetes_30.1.0.orig.tar.gz",
    "python-30.1.0",
    "1b2d5fd5b1eaa85b329c6307ec18456652fb357ff28cb09ed3226e3680f365dd",
    "http://deb.debian.org/debian/pool/main/p/python-kubernetes/"
    "python-kubernetes_30.1.0.orig.tar.gz",
)
ASYNCIO = Sdist(
    "kubernetes_asyncio-36.1.0.tar.gz",
    "kubernetes_asyncio-36.1.0",
    "6d979d82e5ebe490bea298e7843732a2336173236bae28e200434889443d4443",
    "kubernetes_asyncio==36.1.0",
)
KOPF = Sdist(
    "kopf-1.45.2.tar.gz",
    "kopf-1.45.2",
    "5baa180cfdebe1c5095d2a0a96d7d91825b6920541a0825c55719c36abb0054f",
    "kopf==1.45.2",
)

SUITES = (
    Suite(
        "kr8s 0.20.15",
        KR8S,
        ("kr8s/tests",),
        plugins=("pytest_kind",),
        context="kind-pytest-kind",
        seconds=1200,
        test_seconds=30,
        left_out={
            "*::test_*port_forward*": CONTAINERS,
            "*::test_*_exec*": CONTAINERS,
            "*::test_adoption": CONTAINERS,
        },
        not_on_real={
            "*::test_get_pods[*": SINGULAR,
            "*::test_get_custom_resouces": SINGULAR,
            "*::test_api_names": SINGULAR,
            "*::test_lookup_kind": SINGULAR,
            "*::test_dynamic_classes[certificatesigningrequest]": SINGULAR,
            "*::test_dynamic_classes[certificatesigningrequest.*": SINGULAR,
            "*::test_get_dynamic_plurals[ingress.networking.k8s.io]": SINGULAR,
            "*::test_get_dynamic_plurals[*torage*apacit*": STORAGE,
            "*::test_crd_caching": SINGULAR,
            "*::test_get_raw_false_default": SINGULAR,
            "*::test_get_raw_with_field_selector": SINGULAR,
            "*::test_service_proxy": SINGULAR,
            "*::test_pod_list": SINGULAR,
            "*::test_pod_list_sync": SINGULAR,
            "*::test_create_existing_pod_fails": GENERATED,
            "*::test_kubeconfig": WHO,
            "*::test_kubeconfig_multi_paths_*": WHO,
            "*::test_kubeconfig_dict*": WHO,
            "*::test_two_pods": KUBELET,
            "*::test_watch_pods": KUBELET,
            "*::test_trio_pod_wait_ready": KUBELET,
            "*::test_pod_create_and_delete*": KUBELET,
            "*::test_pod_wait_*": KUBELET,
            "*::test_wait_replicas": KUBELET,
            "*::test_pod_watch*": KUBELET,
            "*::test_deployment_scale": KUBELET,
            "*::test_node*": KUBELET,
            "*::test_pod_logs*": KUBELET,
        },
    ),
    Suite(
        "kubectl-ng, of kr8s 0.20.15",
        KR8S,
        ("examples/kubectl-ng",),
        also=(".", "examples/kubectl-ng"),
        plugins=("pytest_kind", "kubectl_ng_version"),
        context="kind-pytest-kind",
        left_out={"*/test_exec.py::*": CONTAINERS, "*/test_version.py::*": LACKING},
    ),
    Suite(
        "kubernetes 37.0.2",
        OFFICIAL,
        ("kubernetes/dynamic",),
        plugins=("e2e_configuration",),
        left_out=OFFICIAL_SYNC,
    ),
    Suite(
        "kubernetes 37.0.2, aio",
        OFFICIAL,
        ("kubernetes/aio/dynamic",),
        plugins=("e2e_configuration",),
        left_out={"*::test_server_side_apply_api": OTHER_KIND},
    ),
    Suite(
        "kubernetes 30.1.0, e2e",
        OFFICIAL_E2E,
        ("kubernetes/e2e_test", "kubernetes/dynamic"),
        left_out={
            **OFFICIAL_SYNC,
            "*::test_exit_code": CONTAINERS,
            "*::test_pod_apis": CONTAINERS,
            "*::test_portforward_*": CONTAINERS,
        },
    ),
    Suite(
        "kubernetes_asyncio 36.1.0",
        ASYNCIO,
        ("kubernetes_asyncio/dynamic",),
        plugins=("e2e_configuration",),
        left_out={"*::test_server_side_apply_api": OTHER_KIND},
    ),
    Suite(
        "Kopf 1.45.2, e2e and examples",
        KOPF,
        # Kopf ends its loop before TLS has ended its connections; it is luck, on any
        # server, whether the garbage collector reports that within a test.
        (
            *("-W", "ignore:unclosed:ResourceWarning"),
            *("--only-e2e", "tests/e2e", "examples"),
        ),
        seconds=900,
        test_seconds=100,
        left_out={"*[17-admission]": WEBHOOKS},
    ),
)
