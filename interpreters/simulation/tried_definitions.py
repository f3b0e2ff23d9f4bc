"""Try live objects with another definition of their kind, in a simulated cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.core.api.resources import Resource, path_of
from fnop.interpreters.cluster import Cluster, answer, describing, empty_cluster
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = ["cluster_with", "refusal_of"]

# Fields that only a server sets, or that hold an object under deletion.
_OWN = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"),
)
_NAMESPACE = "default"


def cluster_with(definition: Mapping[str, Any]) -> Cluster:
    """A cluster that serves the kind according to a definition."""
    spec, kind = definition["spec"], str(definition["spec"]["names"]["kind"])
    # The API server fills these in (apiextensions: defaulting of names).
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **spec["names"]}
    whole = {**definition, "spec": {**spec, "names": names}}
    return describing(empty_cluster(), [whole])


def refusal_of(
    cluster: Cluster, resource: Resource, found: Mapping[str, Any], now: float
) -> str:
    """The reason why another cluster's object could not be stored; "" if it could."""
    metadata = {k: v for k, v in found["metadata"].items() if k not in _OWN}
    place = None
    if resource.namespaced:
        place = metadata["namespace"] = _NAMESPACE
    body = {**found, "apiVersion": resource.api_version, "metadata": metadata}
    path = path_of(resource, place)
    cluster, response, _ = answer(cluster, ApiRequest("POST", path, (), body), now)
    if response.status < 300 and "status" in found:
        made = {**response.body, "status": found["status"]}
        path = path_of(resource, place, metadata["name"], "status")
        request = ApiRequest("PUT", path, (), made)
        _, second, _ = answer(cluster, request, now)
        # A kind without a status subresource has stored it above.
        response = response if second.status == 404 else second
    return "" if response.status < 300 else message_of(response)
