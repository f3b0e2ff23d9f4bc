"""Admission webhooks for cases: a table of answers, played to both servers.

A case registers webhooks at `https://hooks.test/NAME`, with a NAME from a table of
answers.  A real server gets the address of a TLS server on loopback in its place; the
simulated one gets answers from the table. The sent reviews are kept, and the step
`ASKED` shows them.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fnop.interpreters.cluster.admission.questions import (
    Question,
    Reply,
    Reviewed,
    Unreached,
    unreached,
)
from fnop.interpreters.runtime.protocol import JSON
from tests.cluster.envtest import ApiServer
from tests.patience import happens

__all__ = [
    "ADDRESS",
    "AUTHORITY",
    "Answered",
    "Answers",
    "HookServer",
    "Hooked",
    "answering",
    "serving",
]

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}
NONE: Mapping[str, str] = {}
PROBES = itertools.count(1)  # what is left of an earlier case matches none of these
# Its configurations come before all others.
PROBE = "00-probe"
LABEL = "hooked"  # of namespaces, with their names
TIME_OF_FIELDS = re.compile('"operation": "[A-Za-z]+", "time": "[^"]*"')
SPACE = re.compile("/api/v1/namespaces/[^/]+")
ITSELF = ("system:apiserver", "system:serviceaccount:kube-system:")
SUBRESOURCES = ("finalize", "scale", "status")

# As cases write the webhooks' address, and the authority of its certificate.
ADDRESS = "https://hooks.test/"
AUTHORITY = "Y2E="

# From a review to the status and the body (JSON or text) of the answer.
Answers = Mapping[str, Callable[[Any], tuple[int, Any]]]
# The name of the answer, and the review.
Asked = dict[str, Any]


def answering(**response: Any) -> Callable[[Any], tuple[int, Any]]:
    """An answer in the version of its review, to its uid."""

    def answer(review: Any) -> tuple[int, Any]:
        return 200, {
            "apiVersion": review["apiVersion"],
            "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], **response},
        }

    return answer


def text_of(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)


class HookServer:
    """The webhooks of a real server, and what they were sent."""

    def __init__(self, answers: Answers, pki: Path) -> None:
        self.answers = answers
        self.asked: list[Asked] = []
        self.probed: list[Any] = []
        handler = type("Handler", (_Handler,), {"hooks": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pki / "server.crt", pki / "server.key")
        self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.address = f"https://127.0.0.1:{self.http.server_address[1]}/"
        self.authority = base64.b64encode((pki / "ca.crt").read_bytes()).decode()


class _Handler(BaseHTTPRequestHandler):
    hooks: HookServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path.strip("/").partition("?")[0]
        is_probe = review["request"].get("name") == PROBE
        # The writes of the server and of its controllers come at any time.
        user = review["request"]["userInfo"]["username"]
        is_aside = is_probe or user.startswith(ITSELF)
        if name == PROBE:
            self.hooks.probed.append(review)
        elif not is_aside:
            self.hooks.asked.append({"hook": name, "review": review})
        answer = self.hooks.answers.get(name) or answering(allowed=True)
        status, body = answer(review)
        data = text_of(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(answers: Answers, pki: Path) -> Iterator[HookServer]:
    """Answer reviews on loopback for as long as the block."""
    server = HookServer(answers, pki)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join()
        server.http.server_close()


def once_each(asked: Sequence[Asked]) -> list[Asked]:
    """The reviews without their own uids, and without those that are equal then.

    Kubernetes 1.20 reviews an update again that it has refused, or that removes the
    object: its compared object may have been out of date. Meanwhile a second may have
    passed, which managedFields show.
    """
    found: dict[str, Asked] = {}
    for one in asked:
        request = {**one["review"]["request"], "uid": ""}
        review = {**one["review"], "request": request}
        shown = {"hook": one["hook"], "review": review}
        text = json.dumps(shown, sort_keys=True)
        found.setdefault(TIME_OF_FIELDS.sub("", text), shown)
    return [*found.values()]


class Hooked:
    """A real server with webhooks: cases write their address and authority in short.

    It waits for each written configuration: reviews of a ConfigMap that is never
    created show that the server has seen it.
    """

    def __init__(self, api: ApiServer, server: HookServer) -> None:
        self.api, self.server = api, server
        self.written: list[str] = []
        self.names = ((server.address, ADDRESS), (server.authority, AUTHORITY))

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Send a request to the real server, and wait for what it configures."""
        text = json.dumps(body)
        for real, written in self.names:
            text = text.replace(json.dumps(written)[1:-1], real)
        status, found = self.api.raw(
            method, path, json.loads(text), content_type, query, headers
        )
        text = json.dumps(found)
        for real, written in self.names:
            text = text.replace(real, written)
        self.await_object(method, path, found)
        if CONFIGURATIONS in path and method != "GET" and status < 300:
            if method == "POST":
                self.written.append(f"{path}/{found['metadata']['name']}")
            self.await_configuration(path)
        if method == "PATCH" and SPACE.fullmatch(path) and status < 300:
            labels, name = found["metadata"].get("labels", {}), path.split("/")[-1]
            if labels.get(LABEL) == name:
                self.await_configuration(CONFIGURATIONS, name, {LABEL: name})
        return status, json.loads(text)

    def await_object(self, method: str, path: str, found: Any) -> None:
        """Wait until the server's cache has the object that was written.

        An update is first tried on the cached object: webhooks would review that.
        """
        metadata = found.get("metadata") if isinstance(found, dict) else None
        if method == "GET" or not metadata or "resourceVersion" not in metadata:
            return
        parts = path.split("/")
        if method == "POST":
            parts.append(metadata.get("name", ""))
        elif parts[-1] in SUBRESOURCES:
            parts.pop()
        query = {"resourceVersion": metadata["resourceVersion"]}
        where = "/".join(parts)

        def has_it() -> bool:  # a cache that lags by seconds answers 504
            return self.api.raw("GET", where, query=query)[0] != 504

        assert happens(has_it), "the server's cache has not caught up"

    def asked(self) -> list[Asked]:
        """The reviews since the last call."""
        found = [*self.server.asked]
        self.server.asked.clear()
        return once_each(found)

    @property
    def warnings(self) -> list[str]:
        """The warnings of the last answer."""
        return self.api.warnings

    def await_configuration(
        self, path: str, namespace: str = "default", labels: Mapping[str, str] = NONE
    ) -> None:
        """Wait until the server acts on all configurations of the kind at a path.

        And until it knows these labels of a namespace.
        """
        number = str(next(PROBES))
        plural = next((each for each in KINDS if each in path), min(KINDS))
        collection = f"{CONFIGURATIONS}/{plural}"
        self.api.raw("DELETE", f"{collection}/{PROBE}")
        probe = self._probe(KINDS[plural], number, labels)
        status, body = self.api.raw("POST", collection, probe)
        assert status == 201, body
        self.server.probed.clear()
        is_asked = partial(self._is_asked, namespace, number)
        assert happens(is_asked, every=0.02), "the configuration is not in use"

    def _is_asked(self, namespace: str, number: str) -> bool:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": PROBE, "labels": {PROBE: number}},
        }
        path, query = f"/api/v1/namespaces/{namespace}/configmaps", {"dryRun": "All"}
        self.api.raw("POST", path, body, query=query)
        return bool(self.server.probed)

    def _probe(self, kind: str, number: str, labels: Mapping[str, str]) -> Any:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        hook = {
            "name": "probe.hooks.test",
            "clientConfig": {
                "url": f"{self.server.address}{PROBE}",
                "caBundle": self.server.authority,
            },
            "rules": [{**rule, "operations": ["CREATE"]}],
            "objectSelector": {"matchLabels": {PROBE: number}},
            "namespaceSelector": {"matchLabels": labels},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": PROBE},
            "webhooks": [hook],
        }

    def close(self) -> None:
        """Remove the configurations of the case."""
        for path in self.written:
            self.api.raw("DELETE", path)
        for path in {each.rpartition("/")[0] for each in self.written}:
            self.await_configuration(path)


class Answered:
    """The webhooks of a simulated server: answers from the table."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.reviews: list[Asked] = []

    def __call__(self, question: Question) -> Reply:
        """Answer as the TLS server does, and a client reports it."""
        review = json.loads(json.dumps(dict(question.review)))
        name = question.client["url"].removeprefix(ADDRESS)
        self.reviews.append({"hook": name, "review": review})
        if name not in self.answers:
            return unreached(question)
        status, body = self.answers[name](review)
        if status not in (200, 201):
            return Unreached(f"the server responded with the status code {status}")
        try:
            return Reviewed(json.loads(text_of(body)))
        except ValueError:
            return Reviewed(body)

    def asked(self) -> list[Asked]:
        """The reviews since the last call."""
        found, self.reviews = self.reviews, []
        return once_each(found)
