"""A real API server refuses the options that a handler's declaration refuses."""

from __future__ import annotations

from typing import Any

from tests.cluster.envtest import ApiServer
from tests.webhook_options import (
    IGNORED,
    LATER,
    REFUSED,
    TAKEN,
    configuration,
    selector_in,
)

PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def test_selectors_are_taken_as_is_assumed(apiserver: ApiServer) -> None:
    def status(given: Any) -> int:
        body = configuration("options.fnop.test", selector_in(given))
        query = {"dryRun": "All"}
        return int(apiserver.raw("POST", PATH, body, query=query)[0])

    assert [each for each, _ in REFUSED if status(each) not in (400, 422)] == []
    assert [each for each in TAKEN if status(each) != 201] == []
    assert [each for each, _ in IGNORED if status(each) != 201] == []
    # This server is of Kubernetes 1.20.
    assert [each for each, _ in LATER if status(each) != 201] == []


def test_names_are_taken_as_is_assumed(apiserver: ApiServer) -> None:
    def status(domain: str) -> int:
        body = configuration(domain, webhook=f"{'j' * 63}.{domain}")
        query = {"dryRun": "All"}
        return int(apiserver.raw("POST", PATH, body, query=query)[0])

    for name in ("hooks", "Hooks.dev", "a..dev", "a_b.dev", f"{'a.' * 95}b"):
        assert status(name) == 422, name
    assert status(f"{'a.' * 94}b") == 201
