"""The manifests in the documentation, as a real API server judges them."""

from __future__ import annotations

from typing import Any

from tests.cluster.envtest import ApiServer
from tests.documentation import PAGES, manifests, title
from tests.patience import happens


def test_the_manifests_in_the_docs_are_accepted(
    apiserver: ApiServer, namespace: str
) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    assert happens(lambda: apiserver.raw("GET", account)[0] == 200)  # pods need it
    accepted, refused = [], []
    for page in PAGES:
        for each in manifests(page.read_text()):
            path = path_of(apiserver, each, namespace)
            if path is None:  # a kind of the example's own, or of a newer server
                continue
            metadata = {"name": "example", **each.get("metadata", {})}
            body = {**each, "metadata": metadata}
            status, answer = apiserver.raw("POST", path, body, query={"dryRun": "All"})
            place = f"{title(page)}: {each['kind']}"
            if status == 201:
                accepted.append(place)
            else:
                refused.append(f"{place}: {answer['message']}")
    assert refused == []
    assert len(accepted) > 10


def path_of(
    apiserver: ApiServer, manifest: dict[str, Any], namespace: str
) -> str | None:
    """The path for an object's creation; None if the server does not serve its kind."""
    version = manifest["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    status, found = apiserver.raw("GET", root)
    for each in found["resources"] if status == 200 else ():
        if each["kind"] == manifest["kind"] and "/" not in each["name"]:
            where = manifest.get("metadata", {}).get("namespace", namespace)
            inner = f"namespaces/{where}/" if each["namespaced"] else ""
            return f"{root}/{inner}{each['name']}"
    return None
