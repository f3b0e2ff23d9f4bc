"""The kinds that a cluster serves: built-in ones from a table, CRDs at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from fnop.effects.structs import beside, derived, replace
from fnop.interpreters.cluster.schema.schema import Schema, compile_root

__all__ = [
    "Column",
    "Kind",
    "Registry",
    "Scale",
    "builtin_registry",
    "earlier_kinds",
    "kinds_of_crd",
    "storage_of",
]


class Scale(Struct, frozen=True):
    """The paths at which `/scale` finds its numbers in an object."""

    spec: tuple[str, ...]
    status: tuple[str, ...]
    selector: tuple[str, ...] | None


class Column(Struct, frozen=True):
    """One column of a custom kind's table (additionalPrinterColumns)."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@beside("memo")
class Kind(Struct, frozen=True):
    """One kind in one version, and the rules for its objects."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    # The `/status` subresource: with it, the main endpoint does not write status.
    status: bool = False
    scale: Scale | None = None
    # Whether metadata.generation counts changes of the desired state.
    generation: bool = False
    # PUT without resourceVersion overwrites (AllowUnconditionalUpdate).
    unconditional: bool = True
    # PUT to a free name creates (AllowCreateOnUpdate).
    creates_on_update: bool = False
    # A question rather than an object: the answer to a POST, never stored.
    create_only: bool = False
    custom: bool = False
    # Whether its definition is being deleted.
    terminating: bool = False
    served: bool = True
    storage: bool = True
    storage_version: str = ""  # of custom kinds
    schema: Schema | None = None
    # The schema of the stored version, whose defaults are filled in when it is read.
    stored: Schema | None = None
    # The first schema as it was written: openAPIV3Schema.
    source: Mapping[str, Any] | None = None
    columns: tuple[Column, ...] = ()
    # JSON paths that field selectors may name (".spec.colour").
    selectable: tuple[str, ...] = ()
    # The warning that every answer in this version carries ("": not deprecated).
    deprecation: str = ""
    # The version whose types describe a built-in kind ("": its own).
    typed: str = ""
    # Other modules keep what they derive from a kind here (its shape, for one).
    memo: dict[str, Any] = derived()
    # The apiVersion in objects, and the key under which all versions are stored
    # together.
    api_version: str = derived()
    resource: tuple[str, str] = derived()

    def __post_init__(self) -> None:
        force_setattr(self, "memo", {})
        named = f"{self.group}/{self.version}" if self.group else self.version
        force_setattr(self, "api_version", named)
        force_setattr(self, "typed", self.typed or self.version)
        force_setattr(self, "resource", storage_of(self.group, self.plural))


# Resources that are only another view of a resource stored elsewhere.
VIEWS = {("events.k8s.io", "events"): ("", "events")}


def storage_of(group: str, plural: str) -> tuple[str, str]:
    """The resource under which the objects of a group and plural are stored.

    >>> storage_of("events.k8s.io", "events")
    ('', 'events')
    """
    path = (group, plural)
    return VIEWS.get(path, path)


@beside("memo")
class Registry(Struct, frozen=True):
    """All served kinds: by (group, version, plural), and by (group, kind).

    The maps are small and seldom change, so they are plain dicts, copied at each
    change.
    """

    by_path: Mapping[tuple[str, str, str], Kind]
    by_kind: Mapping[tuple[str, str], Kind]
    # Other modules keep what they derive from a registry here (its documents).
    memo: dict[str, Any] = derived()

    def __post_init__(self) -> None:
        force_setattr(self, "memo", {})

    def with_kinds(self, kinds: tuple[Kind, ...]) -> Registry:
        """The registry with these kinds; a kind of the same path is replaced."""
        paths = {(kind.group, kind.version, kind.plural): kind for kind in kinds}
        names = {(kind.group, kind.kind): kind for kind in kinds if kind.storage}
        return Registry({**self.by_path, **paths}, {**self.by_kind, **names})

    def without(self, group: str, plural: str) -> Registry:
        """The registry without any version of this resource."""
        return Registry(
            _kept(self.by_path, group, plural), _kept(self.by_kind, group, plural)
        )


K = TypeVar("K")


def _kept(kinds: Mapping[K, Kind], group: str, plural: str) -> dict[K, Kind]:
    return {
        path: kind
        for path, kind in kinds.items()
        if kind.group != group or kind.plural != plural
    }


# One row per kind: kind, plural, short names, categories, then letters:
#   c cluster-scoped   s has /status   x has /scale   g counts generations
#   u PUT needs a resourceVersion      p PUT to a free name creates it
#   r is only created, never stored
BUILTINS: dict[tuple[str, str], str] = {
    ("", "v1"): """
        Binding bindings - - r
        ConfigMap configmaps cm - -
        Endpoints endpoints ep - p
        Event events ev - p
        LimitRange limitranges limits - p
        Namespace namespaces ns - cs
        Node nodes no - cs
        PersistentVolumeClaim persistentvolumeclaims pvc - s
        PersistentVolume persistentvolumes pv - cs
        Pod pods po all s
        PodTemplate podtemplates - - g
        ReplicationController replicationcontrollers rc all sxg
        ResourceQuota resourcequotas quota - s
        Secret secrets - - -
        ServiceAccount serviceaccounts sa - -
        Service services svc all sp
    """,
    ("apps", "v1"): """
        ControllerRevision controllerrevisions - - -
        DaemonSet daemonsets ds all sg
        Deployment deployments deploy all sxg
        ReplicaSet replicasets rs all sxg
        StatefulSet statefulsets sts all sxg
    """,
    ("batch", "v1"): """
        CronJob cronjobs cj all sg
        Job jobs - all sg
    """,
    ("autoscaling", "v2"): """
        HorizontalPodAutoscaler horizontalpodautoscalers hpa all s
    """,
    ("rbac.authorization.k8s.io", "v1"): """
        ClusterRoleBinding clusterrolebindings - - cp
        ClusterRole clusterroles - - cp
        RoleBinding rolebindings - - p
        Role roles - - p
    """,
    ("coordination.k8s.io", "v1"): """
        Lease leases - - pu
    """,
    ("networking.k8s.io", "v1"): """
        IngressClass ingressclasses - - cg
        Ingress ingresses ing - sg
        NetworkPolicy networkpolicies netpol - g
    """,
    ("policy", "v1"): """
        PodDisruptionBudget poddisruptionbudgets pdb - sg
    """,
    ("storage.k8s.io", "v1"): """
        CSIDriver csidrivers - - cg
        CSINode csinodes - - c
        CSIStorageCapacity csistoragecapacities - - -
        StorageClass storageclasses sc - c
        VolumeAttachment volumeattachments - - cs
    """,
    ("admissionregistration.k8s.io", "v1"): """
        MutatingWebhookConfiguration mutatingwebhookconfigurations - - cg
        ValidatingWebhookConfiguration validatingwebhookconfigurations - - cg
    """,
    ("apiextensions.k8s.io", "v1"): """
        CustomResourceDefinition customresourcedefinitions crd,crds api-extensions csgu
    """,
    ("apiregistration.k8s.io", "v1"): """
        APIService apiservices - api-extensions cs
    """,
    ("certificates.k8s.io", "v1"): """
        CertificateSigningRequest certificatesigningrequests csr - cs
    """,
    ("node.k8s.io", "v1"): """
        RuntimeClass runtimeclasses - - c
    """,
    ("discovery.k8s.io", "v1"): """
        EndpointSlice endpointslices - - g
    """,
    ("scheduling.k8s.io", "v1"): """
        PriorityClass priorityclasses pc - cg
    """,
    ("events.k8s.io", "v1"): """
        Event events ev - p
    """,
    ("authorization.k8s.io", "v1"): """
        LocalSubjectAccessReview localsubjectaccessreviews - - r
        SelfSubjectAccessReview selfsubjectaccessreviews - - cr
        SelfSubjectRulesReview selfsubjectrulesreviews - - cr
        SubjectAccessReview subjectaccessreviews - - cr
    """,
    ("authentication.k8s.io", "v1"): """
        SelfSubjectReview selfsubjectreviews - - cr
        TokenReview tokenreviews - - cr
    """,
}

REPLICAS = Scale(("spec", "replicas"), ("status", "replicas"), None)


def _names(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def _builtin(group: str, version: str, row: str) -> Kind:
    kind, plural, short_names, categories, traits = row.split()
    return Kind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        list_kind=f"{kind}List",
        short_names=_names(short_names),
        categories=_names(categories),
        namespaced="c" not in traits,
        status="s" in traits,
        scale=REPLICAS if "x" in traits else None,
        generation="g" in traits,
        unconditional="u" not in traits,
        creates_on_update="p" in traits,
        create_only="r" in traits,
    )


def _builtins() -> Iterator[Kind]:
    for (group, version), rows in BUILTINS.items():
        for row in rows.strip().splitlines():
            yield _builtin(group, version, row)


# Versions of built-in kinds that older servers serve, alone or next to the present one,
# with the same fields. Ingresses, autoscalers, endpoint slices and webhooks had other
# fields once.
EARLIER: dict[tuple[str, str], tuple[str, ...]] = {
    ("batch", "v1beta1"): ("cronjobs",),
    ("coordination.k8s.io", "v1beta1"): ("leases",),
    ("events.k8s.io", "v1beta1"): ("events",),
    ("networking.k8s.io", "v1beta1"): ("ingressclasses",),
    ("policy", "v1beta1"): ("poddisruptionbudgets",),
    ("rbac.authorization.k8s.io", "v1beta1"): (
        *("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
    ),
    ("scheduling.k8s.io", "v1beta1"): ("priorityclasses",),
    ("storage.k8s.io", "v1beta1"): (
        *("csidrivers", "csinodes", "csistoragecapacities", "storageclasses"),
        "volumeattachments",
    ),
}


def builtin_registry() -> Registry:
    """The kinds that every cluster has."""
    return Registry({}, {}).with_kinds(tuple(_builtins()))


def earlier_kinds(registry: Registry) -> Iterator[Kind]:
    """The same kinds in versions that older servers serve."""
    present = {(kind.group, kind.plural): kind for kind in registry.by_path.values()}
    for (group, version), plurals in EARLIER.items():
        for plural in plurals:
            kind = present[group, plural]
            yield replace(kind, version=version, typed=kind.version)


def _path(text: str | None) -> tuple[str, ...]:
    return tuple((text or "").strip(".").split("."))


def _scale(subresources: dict[str, Any]) -> Scale | None:
    scale = subresources.get("scale")
    if scale is None:
        return None
    selector = scale.get("labelSelectorPath")
    return Scale(
        _path(scale.get("specReplicasPath")),
        _path(scale.get("statusReplicasPath")),
        _path(selector) if selector else None,
    )


def _columns(version: dict[str, Any]) -> tuple[Column, ...]:
    return tuple(
        Column(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("format") or "",
            column.get("description") or "",
            column.get("priority") or 0,
        )
        for column in version.get("additionalPrinterColumns") or ()
    )


def _selectable_paths(version: dict[str, Any]) -> tuple[str, ...]:
    return tuple(field["jsonPath"] for field in version.get("selectableFields") or ())


def _deprecation(spec: dict[str, Any], version: dict[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    named = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
    return version.get("deprecationWarning") or f"{named} is deprecated"


def kinds_of_crd(crd: dict[str, Any]) -> tuple[Kind, ...]:
    """The kinds that a CustomResourceDefinition defines, one per version."""
    spec = crd["spec"]
    names = spec["names"]
    (storage,) = (v["name"] for v in spec["versions"] if v["storage"])
    sources = {v["name"]: _source(v) for v in spec["versions"]}
    schemas = {name: compile_root(source) for name, source in sources.items()}
    return tuple(
        Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            singular=names["singular"],
            list_kind=names["listKind"],
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            namespaced=spec["scope"] == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            scale=_scale(version.get("subresources") or {}),
            generation=True,
            # Custom resources are never overwritten without a resourceVersion.
            unconditional=False,
            custom=True,
            terminating="deletionTimestamp" in crd["metadata"],
            served=bool(version["served"]),
            storage=bool(version["storage"]),
            storage_version=storage,
            schema=schemas[version["name"]],
            stored=schemas[storage],
            source=sources[version["name"]],
            columns=_columns(version),
            selectable=_selectable_paths(version),
            deprecation=_deprecation(spec, version),
        )
        for version in spec["versions"]
    )


def _source(version: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found
