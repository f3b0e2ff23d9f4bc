"""Accounts of a real API server that have the roles of a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fnop.adapters.generate.rights import Account
from tests.cluster.deploying import PLACES, applied
from tests.cluster.envtest import ApiServer, kubeconfig


@contextmanager
def an_account(
    api: ApiServer, made: list[dict[str, Any]], account: Account, folder: Path
) -> Iterator[Path]:
    """The kubeconfig of an account with these roles."""
    paths = applied(api, made, account.namespace)
    place = PLACES["ServiceAccount"].format(account.namespace)
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    status, answer = api.raw(
        "POST", f"{place}/{account.name}/token", {**kind, "spec": {}}
    )
    assert status == 201, answer
    user = {"token": answer["status"]["token"]}
    config = folder / "account.kubeconfig"
    config.write_text(json.dumps(kubeconfig(api.pki, api.url, user)))
    try:
        yield config
    finally:
        for path in paths:
            if not path.startswith("/api/v1/namespaces/fnop-operator"):
                api.raw("DELETE", path)
