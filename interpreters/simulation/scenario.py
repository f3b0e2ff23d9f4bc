"""Put objects into a simulated cluster, and take them out at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, path_of
from fnop.effects.values import thaw_json
from fnop.interpreters.cluster import restored, serving_earlier
from fnop.interpreters.runtime.answers import refusal_of, with_kind
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.documents import discovered
from fnop.interpreters.simulation.simulation import SimulatedRun, begin_reviewing

__all__ = [
    "ApplyProblem",
    "apply_manifests",
    "catalogue_of",
    "final_objects",
    "is_own",
    "restore",
    "results",
]

Request = Callable[[ApiRequest], ApiResponse]

_CRD = "CustomResourceDefinition"
# Objects that a cluster has, or creates in every namespace, by itself: not results.
_OWN = frozenset(
    (
        ("Namespace", "default"),
        ("Namespace", "kube-system"),
        ("Namespace", "kube-public"),
        ("Namespace", "kube-node-lease"),
        ("ServiceAccount", "default"),
        ("ConfigMap", "kube-root-ca.crt"),
        ("Node", "stub-node"),
    )
)


def is_own(kind: str, name: str) -> bool:
    """Whether a cluster has, or makes, an object of this name by itself.

    >>> is_own("Namespace", "default"), is_own("ConfigMap", "default")
    (True, False)
    """
    return (kind, name) in _OWN


class ApplyProblem(Exception):
    """A manifest that the cluster refuses, in one sentence."""


def catalogue_of(sim: SimulatedRun) -> Catalogue:
    """The kinds that the simulated cluster serves now."""
    registry = sim.cluster.registry
    if sim.catalogue is None or sim.catalogue[0] is not registry:
        sim.catalogue = registry, discovered(sim.request)
    return sim.catalogue[1]


def apply_manifests(
    sim: SimulatedRun, manifests: Iterable[dict[str, Any]], *, begins: bool = False
) -> tuple[str, ...]:
    """Create the objects: definitions first, then namespaces, then the rest.

    With `begins` an operator with admission handlers starts after the definitions and
    namespaces. It then knows all it needs when it is asked about the rest.

    Returns the API server's warnings, such as `Database db: unknown field "spec.x"`.
    Raises `ApplyProblem` with the API server's reason for what it refuses.
    """
    order = {_CRD: 0, "Namespace": 1}
    ordered = sorted(manifests, key=lambda each: order.get(each["kind"], 2))
    warnings: list[str] = []
    for each in ordered:
        if begins and each["kind"] not in order:
            begin_reviewing(sim)
        warnings += create(sim, each)
    return tuple(warnings)


def create(sim: SimulatedRun, manifest: dict[str, Any]) -> tuple[str, ...]:
    """Create one object, and return the API server's warnings about it."""
    catalogue = catalogue_of(sim)
    resource = catalogue.of_manifest(manifest)
    kind, meta = manifest["kind"], manifest["metadata"]
    if resource is None:
        raise ApplyProblem(
            f"{catalogue.absence_of(manifest, 'the cluster')}; add its "
            "CustomResourceDefinition to the manifests"
        )
    path = path_of(resource, meta.get("namespace") or "default")
    response = sim.request(ApiRequest("POST", path, (), manifest))
    if response.status >= 300:
        raise ApplyProblem(refusal_of(manifest, response))
    name = response.body["metadata"]["name"]
    return tuple(f"{kind} {name}: {text}" for text in response.warnings)


def restore(sim: SimulatedRun, objects: Iterable[Mapping[str, Any]]) -> None:
    """Create objects as another cluster has them: with uids, versions and status.

    Their namespaces are created. Watches do not report the objects: this is for the
    time before the operator begins. Raises `ApplyProblem` for an object of an unknown
    kind, and for an object without a uid.
    """
    for each in objects:
        resource, meta = _kind_of(sim, each), each.get("metadata") or {}
        if resource is None:
            absence = catalogue_of(sim).absence_of(each, "the cluster")
            raise ApplyProblem(
                f"{absence}; add its CustomResourceDefinition to the manifests"
            )
        if not meta.get("uid") or not meta.get("name"):
            raise ApplyProblem(
                f"{each['kind']} {meta.get('name')} has no uid: restored objects are "
                "those of kubectl get -o yaml; give others as objects"
            )
        namespace = meta.get("namespace") if resource.namespaced else None
        if namespace and not _is_there(sim, namespace):
            create(sim, _namespace(namespace))
        path = resource.group, resource.version, resource.plural
        sim.cluster = restored(sim.cluster, path, [thaw_json(each)])


def _kind_of(sim: SimulatedRun, found: Mapping[str, Any]) -> Resource | None:
    """The kind of an object of another cluster, which may have an earlier version."""
    resource = catalogue_of(sim).of_manifest(found)
    if resource is None:
        earlier = serving_earlier(sim.cluster, found["apiVersion"], found["kind"])
        if earlier is not None:
            sim.cluster = earlier
            resource = catalogue_of(sim).of_manifest(found)
    return resource


def _is_there(sim: SimulatedRun, namespace: str) -> bool:
    return (
        sim.request(ApiRequest("GET", f"/api/v1/namespaces/{namespace}")).status < 300
    )


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def objects_of(sim: SimulatedRun, resource: Resource) -> list[dict[str, Any]]:
    """All objects of a kind, as a listing returns them, with their kind."""
    return _listed(sim.request, resource)


def final_objects(sim: SimulatedRun) -> list[dict[str, Any]]:
    """All objects except definitions and those that the cluster began with.

    Without `managedFields`, as kubectl shows objects.
    """
    return results(sim.request, catalogue_of(sim))


def results(request: Request, catalogue: Catalogue) -> list[dict[str, Any]]:
    """The same of any simulated cluster, which answers requests."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for resource in catalogue.resources:
        if resource.kind == _CRD or not resource.preferred:
            continue
        for each in _listed(request, resource):
            meta = each["metadata"]
            known = is_own(resource.kind, meta["name"])
            if meta["uid"] not in seen and not known:
                seen.add(meta["uid"])
                shown = {k: v for k, v in meta.items() if k != "managedFields"}
                found.append({**each, "metadata": shown})
    return found


def _listed(request: Request, resource: Resource) -> list[dict[str, Any]]:
    response = request(ApiRequest("GET", path_of(resource, None)))
    items = response.body.get("items") or [] if response.status == 200 else []
    return [*with_kind(items, resource.api_version, resource.kind)]
