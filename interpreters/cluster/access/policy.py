"""The roles and bindings of a new cluster with RBAC.

They are the ones of a current Kubernetes
(plugin/pkg/auth/authorizer/rbac/bootstrappolicy) that people and operators are bound
to. The roles of the control plane's own parts, which do not exist here, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["bootstrap"]

GROUP = "rbac.authorization.k8s.io"
READ = "get,list,watch"
WRITE = "create,delete,deletecollection,patch,update"
ALL = "create,delete,deletecollection,get,list,patch,update,watch"
AGGREGATE = f"{GROUP}/aggregate-to-"

# One rule a line: verbs, API group ("core" is the nameless one), resources. A rule that
# is not about resources has verbs and paths.
ROLES: dict[str, str] = {
    "cluster-admin": """
        * * *
        * *
    """,
    "system:discovery": """
        get /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,\
/readyz,/version,/version/
    """,
    "system:public-info-viewer": """
        get /healthz,/livez,/readyz,/version,/version/
    """,
    "system:monitoring": """
        get /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,\
/readyz,/readyz/*
    """,
    "system:service-account-issuer-discovery": """
        get /.well-known/openid-configuration,/.well-known/openid-configuration/,\
/openid/v1/jwks,/openid/v1/jwks/
    """,
    "system:basic-user": """
        create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
        create authentication.k8s.io selfsubjectreviews
    """,
    "system:auth-delegator": """
        create authentication.k8s.io tokenreviews
        create authorization.k8s.io subjectaccessreviews
    """,
    "system:aggregate-to-admin": f"""
        create authorization.k8s.io localsubjectaccessreviews
        {ALL} {GROUP} rolebindings,roles
    """,
    "system:aggregate-to-edit": f"""
        {READ} core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,\
services/proxy
        impersonate core serviceaccounts
        {WRITE} core pods,pods/attach,pods/exec,pods/portforward,pods/proxy
        create core pods/eviction
        {WRITE} core configmaps,events,persistentvolumeclaims,\
replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,\
services,services/proxy
        create core serviceaccounts/token
        {WRITE} apps daemonsets,deployments,deployments/rollback,\
deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale
        {WRITE} autoscaling horizontalpodautoscalers
        {WRITE} batch cronjobs,jobs
        {WRITE} extensions daemonsets,deployments,deployments/rollback,\
deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,\
replicationcontrollers/scale
        {WRITE} policy poddisruptionbudgets
        {WRITE} networking.k8s.io ingresses,networkpolicies
        {ALL} coordination.k8s.io leases
    """,
    "system:aggregate-to-view": f"""
        {READ} core configmaps,endpoints,persistentvolumeclaims,\
persistentvolumeclaims/status,pods,replicationcontrollers,\
replicationcontrollers/scale,serviceaccounts,services,services/status
        {READ} core bindings,events,limitranges,namespaces/status,pods/log,\
pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status
        {READ} core namespaces
        {READ} discovery.k8s.io endpointslices
        {READ} apps controllerrevisions,daemonsets,daemonsets/status,deployments,\
deployments/scale,deployments/status,replicasets,replicasets/scale,\
replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
        {READ} autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
        {READ} batch cronjobs,cronjobs/status,jobs,jobs/status
        {READ} extensions daemonsets,daemonsets/status,deployments,\
deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,\
replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale
        {READ} policy poddisruptionbudgets,poddisruptionbudgets/status
        {READ} networking.k8s.io ingresses,ingresses/status,networkpolicies
    """,
}
# Roles that are the sum of other roles, in the order in which the controller adds them.
SUMS: dict[str, tuple[str, ...]] = {
    "view": ("system:aggregate-to-view",),
    "edit": ("system:aggregate-to-edit", "system:aggregate-to-view"),
    "admin": (
        "system:aggregate-to-edit",
        "system:aggregate-to-view",
        "system:aggregate-to-admin",
    ),
}
# The sum that contains a role.
GOES_INTO = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}
BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:monitoring": ("system:monitoring",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
}


def _rules(text: str) -> list[dict[str, Any]]:
    return [_rule(*line.split()) for line in text.strip().splitlines()]


def _rule(verbs: str, group: str, resources: str | None = None) -> dict[str, Any]:
    named = {"verbs": verbs.split(",")}
    if resources is None:
        return {**named, "nonResourceURLs": group.split(",")}
    groups = ["" if group == "core" else group]
    return {**named, "apiGroups": groups, "resources": resources.split(",")}


def _object(kind: str, name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if kind == "ClusterRole" and name in GOES_INTO:
        labels[f"{AGGREGATE}{GOES_INTO[name]}"] = "true"
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }


def bootstrap() -> Iterator[tuple[str, dict[str, Any]]]:
    """The plural and the body of every object of the first policy."""
    for name, text in ROLES.items():
        yield "clusterroles", {**_object("ClusterRole", name), "rules": _rules(text)}
    for name, parts in SUMS.items():
        selector = {"matchLabels": {f"{AGGREGATE}{name}": "true"}}
        rules = [rule for part in parts for rule in _rules(ROLES[part])]
        yield (
            "clusterroles",
            {
                **_object("ClusterRole", name),
                "aggregationRule": {"clusterRoleSelectors": [selector]},
                "rules": rules,
            },
        )
    for name, groups in BINDINGS.items():
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        subjects = [{"apiGroup": GROUP, "kind": "Group", "name": g} for g in groups]
        yield (
            "clusterrolebindings",
            {
                **_object("ClusterRoleBinding", name),
                "roleRef": reference,
                "subjects": subjects,
            },
        )
