"""Built-in kinds that few operators write: they are served, filled in and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

CORE = "/api/v1/namespaces/{ns}/"
STORAGE = "/apis/storage.k8s.io/v1/"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# A request for a certificate of anna, in PEM, in base64.
REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISk1IRUNBUUF3RHpFTk1B"
    "c0dBMVVFQXd3RVlXNXVZVEJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSApBMElBQkNy"
    "MkNHWUpxQ1pCaGNjNzlpWHh2UEk3YktHSkgyajhTbVRpa0tOcEJvS3k1eDQ4WFkrblVYSDB3"
    "WE1QCnVPQTlnRFVTMDFDNndyczdNM0N5bzErOWRJK2dBREFLQmdncWhrak9QUVFEQWdOSUFE"
    "QkZBaUE3djh1OWoxRHkKVW8zc09JVlVtTmVpdjgzNmZLQThmSWNUODZKT3dJeXNVd0loQUtL"
    "cW8rL29oQWdWZ1YyckxvUWpLVjlEWmh0KwpIMG1Nbmk5R0VvZy8wQ1AxCi0tLS0tRU5EIENF"
    "UlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="
)
WANTED: Json = {
    "request": REQUEST,
    "signerName": "harbour.dev/pilots",
    "usages": ["client auth"],
}
APPROVED: Json = {
    "type": "Approved",
    "status": "True",
    "reason": "Known",
    "message": "she is known",
}
DENIED: Json = {**APPROVED, "type": "Denied"}


def named(name: str, **more: Any) -> Json:
    """A body that leaves its type to the path."""
    return {"metadata": {"name": name}, **more}


def post(path: str, body: Json, **more: Any) -> Step:
    return Step("POST", path, body, code=201, **more)


def merge(path: str, body: Json, **more: Any) -> Step:
    return Step("PATCH", path, body, MERGE_PATCH, **more)


def certificates() -> Iterator[Case]:
    """The requester is the sender; approvals and certificates come from others."""
    one = f"{SIGNING}/{{ns}}-a"
    yield Case(
        "a request for a certificate is its sender's",
        (
            post(
                SIGNING,
                named("{ns}-a", spec={**WANTED, "username": "bob", "groups": ["x"]}),
                has={"spec.username": "admin", "status": {}},
                compare=("spec", "status"),
            ),
            merge(
                one,
                {"spec": {"username": "bob", "signerName": "harbour.dev/others"}},
                has={"spec.signerName": "harbour.dev/pilots"},
                compare=("spec", "status"),
            ),
            Step("DELETE", one, compare="code"),
        ),
        servers=("1.20",),
    )
    yield Case(
        "a request for a certificate is approved and signed",
        (
            post(SIGNING, named("{ns}-a", spec=WANTED), compare=("spec", "status")),
            merge(
                f"{one}/approval",
                {"status": {"conditions": [APPROVED], "certificate": "LS0t"}},
                has={
                    "status.conditions.0.type": "Approved",
                    "status.certificate": ABSENT,
                },
                compare=("spec", "status"),
            ),
            merge(f"{one}/status", {"status": {"conditions": []}}, code=422),
            merge(f"{one}/approval", {"status": {"conditions": []}}, code=422),
            merge(
                f"{one}/status",
                {"status": {"conditions": [APPROVED, DENIED]}},
                code=422,
            ),
            Step("GET", f"{one}/approval", compare=("spec", "status")),
            Step("DELETE", one, compare="code"),
        ),
        servers=("1.20",),
    )


def services() -> Iterator[Case]:
    """Aggregated APIs: they are stored, and nothing stands behind them here."""
    spec: Json = {
        "group": "{ns}.harbour.dev",
        "version": "v1",
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"name": "api", "namespace": "{ns}"},
    }
    name = "v1.{ns}.harbour.dev"
    yield Case(
        "aggregated APIs are stored",
        (
            post(
                SERVICES,
                named(name, spec=spec),
                has={"spec.service.port": 443, "status": {}},
                compare=("spec", "status"),
            ),
            Step(
                "POST",
                SERVICES,
                named(name, spec=spec),
                code=409,
                has={"reason": "AlreadyExists"},
            ),
            Step("DELETE", f"{SERVICES}/{name}", compare="code"),
        ),
        servers=("1.20",),
    )


def storage() -> Iterator[Case]:
    driver = STORAGE + "csidrivers/{ns}-a"
    yield Case(
        "drivers of volumes and what they attach",
        (
            post(
                STORAGE + "csidrivers",
                named("{ns}-a", spec={}),
                has={"spec.attachRequired": True, "spec.podInfoOnMount": False},
                compare=("spec.attachRequired", "spec.volumeLifecycleModes"),
            ),
            Step("DELETE", driver, compare="code"),
            post(
                STORAGE + "csinodes",
                named("{ns}-a", spec={"drivers": [{"name": "a.io", "nodeID": "n"}]}),
                has={"metadata.generation": ABSENT},
                compare=("spec",),
            ),
            Step("GET", STORAGE + "csinodes/{ns}-a", accept=TABLE, compare=CELLS),
            Step("DELETE", STORAGE + "csinodes/{ns}-a", compare="code"),
            post(
                STORAGE + "volumeattachments",
                named(
                    "{ns}-a",
                    spec={
                        "attacher": "a.io",
                        "nodeName": "n",
                        "source": {"persistentVolumeName": "v"},
                    },
                ),
                has={"status": {"attached": False}},
                compare=("spec", "status"),
            ),
            Step(
                "GET", STORAGE + "volumeattachments/{ns}-a", accept=TABLE, compare=CELLS
            ),
            Step("DELETE", STORAGE + "volumeattachments/{ns}-a", compare="code"),
        ),
        servers=("1.20",),
    )
    yield Case(
        "storage that is left",
        (
            post(
                STORAGE + "namespaces/{ns}/csistoragecapacities",
                named("a", storageClassName="fast", capacity="5Gi"),
                has={"capacity": "5Gi"},
            ),
        ),
        servers=(),
    )


CELLS = ("columnDefinitions.0.name", "rows.0.cells.1")


def others() -> Iterator[Case]:
    runtime = "/apis/node.k8s.io/v1/runtimeclasses"
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    yield Case(
        "runtime classes and templates of pods",
        (
            post(runtime, named("{ns}-a", handler="runc"), has={"handler": "runc"}),
            Step("GET", f"{runtime}/{{ns}}-a", accept=TABLE, compare=CELLS),
            Step("DELETE", f"{runtime}/{{ns}}-a", compare="code"),
            post(
                CORE + "podtemplates",
                named("a", template=template),
                has={"template.spec.restartPolicy": "Always"},
                compare=("template",),
            ),
            Step("GET", CORE + "podtemplates/a", accept=TABLE, compare=CELLS),
            # 1.20 did not count the generations of templates.
            Step(
                "DELETE",
                CORE + "podtemplates/a",
                has={"kind": "PodTemplate"},
                compare=("kind", "template"),
            ),
        ),
        servers=("1.20",),
    )


CASES = (*certificates(), *services(), *storage(), *others())
