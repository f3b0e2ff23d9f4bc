"""The rights of users, and requests about them; subresources of pods and accounts."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

Json = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
BASE = f"/apis/{RBAC}/v1"
ROLES = f"{BASE}/namespaces/{{ns}}/roles"
BINDINGS = f"{BASE}/namespaces/{{ns}}/rolebindings"
CLUSTER_ROLES = f"{BASE}/clusterroles"
CLUSTER_BINDINGS = f"{BASE}/clusterrolebindings"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
PODS = "/api/v1/namespaces/{ns}/pods"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
FOOS = "/apis/conf.dev/v1/namespaces/{ns}/foos"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
OWN_ACCESS = f"{AUTHORIZATION}/selfsubjectaccessreviews"
ACCESS = f"{AUTHORIZATION}/subjectaccessreviews"
LOCAL_ACCESS = f"{AUTHORIZATION}/namespaces/{{ns}}/localsubjectaccessreviews"
OWN_RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ISSUER = "https://kubernetes.default.svc"
ANSWER = ("kind", "apiVersion", "spec", "status")


# ---------------------------------------------------------------- what is sent


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> Json:
    found: Json = {
        "verbs": verbs.split(","),
        "apiGroups": group.split(","),
        "resources": resources.split(","),
    }
    return {**found, "resourceNames": names.split(",")} if names else found


def paths(verbs: str, urls: str) -> Json:
    return {"verbs": verbs.split(","), "nonResourceURLs": urls.split(",")}


def role(name: str, *rules: Json) -> Step:
    """Make a role in the namespace."""
    return Step("POST", ROLES, named(name, rules=list(rules)), code=201)


def cluster_role(name: str, *rules: Json) -> Step:
    body = named(name, rules=list(rules))
    return Step("POST", CLUSTER_ROLES, body, code=201)


def named(name: str, **parts: Any) -> Json:
    return {"metadata": {"name": name}, **parts}


def user(name: str) -> Json:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group(name: str) -> Json:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def account(name: str, namespace: str | None = None) -> Json:
    where = {} if namespace is None else {"namespace": namespace}
    return {"kind": "ServiceAccount", "name": name, **where}


def bound(to: str, *subjects: Json, kind: str = "Role") -> Json:
    """A binding to a role of the same name."""
    reference = {"apiGroup": RBAC, "kind": kind, "name": to}
    return named(to, roleRef=reference, subjects=list(subjects))


def binding(to: str, *subjects: Json, kind: str = "Role") -> Step:
    return Step("POST", BINDINGS, bound(to, *subjects, kind=kind), code=201)


def cluster_binding(to: str, *subjects: Json) -> Step:
    body = bound(to, *subjects, kind="ClusterRole")
    return Step("POST", CLUSTER_BINDINGS, body, code=201)


def message(text: str) -> Json:
    return {"message": text, "reason": "Forbidden"}


def pod(name: str, *containers: str) -> Json:
    made = [{"name": each, "image": "i"} for each in containers or ("c",)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": made},
    }


def access(verb: str, resource: str, **more: str) -> Json:
    return {"resourceAttributes": {"verb": verb, "resource": resource, **more}}


def ask(path: str, spec: Json, **more: Any) -> Step:
    """Create a review; the metadata of its answer is ignored."""
    given = {"code": 201, "compare": ANSWER, **more}
    return Step("POST", path, {"spec": spec}, **given)


def eviction(name: str, version: str = "v1beta1", **more: Any) -> Json:
    # 1.20 knows no other version yet.
    kind = {"apiVersion": f"policy/{version}", "kind": "Eviction"}
    return {**kind, **named(name), **more}


# ------------------------------------------------------------------ permission

NOBODY: tuple[Case, ...] = (
    Case(
        "rbac: who has no role may do nothing",
        (
            Step(
                "GET",
                PODS,
                code=403,
                user="rbac-a",
                has={"details.kind": "pods", "details.name": ABSENT},
            ),
            Step(
                "GET",
                "/api/v1/pods",
                code=403,
                user="rbac-a",
                has=message(
                    'pods is forbidden: User "rbac-a" cannot list resource "pods" in '
                    'API group "" at the cluster scope'
                ),
            ),
            Step("GET", f"{PODS}/p", code=403, user="rbac-a"),
            Step("POST", MAPS, named("m"), code=403, user="rbac-a"),
            Step("PUT", f"{MAPS}/m", named("m"), code=403, user="rbac-a"),
            Step("PATCH", f"{MAPS}/m", {}, MERGE_PATCH, code=403, user="rbac-a"),
            Step("DELETE", f"{MAPS}/m", code=403, user="rbac-a"),
            Step("DELETE", MAPS, code=403, user="rbac-a"),
        ),
    ),
    Case(
        "rbac: a namespace is asked for in itself",
        (
            Step(
                "GET",
                "/api/v1/namespaces/kube-public",
                code=403,
                user="rbac-a",
                has=message(
                    'namespaces "kube-public" is forbidden: User "rbac-a" cannot get '
                    'resource "namespaces" in API group "" in the namespace '
                    '"kube-public"'
                ),
            ),
            Step(
                "GET", "/api/v1/namespaces/kube-public/status", code=403, user="rbac-a"
            ),
            Step("GET", "/api/v1/namespaces", code=403, user="rbac-a"),
            Step("GET", "/api/v1/nodes/n", code=403, user="rbac-a"),
            role("own", rule("get", "namespaces")),
            binding("own", user("rbac-own")),
            Step(
                "GET",
                "/api/v1/namespaces/{ns}",
                user="rbac-own",
                eventually=True,
                compare="code",
            ),
            Step("GET", "/api/v1/namespaces", code=403, user="rbac-own"),
        ),
    ),
    Case(
        "rbac: permission comes before existence",
        (
            Step("GET", "/apis/foo.bar/v1/nothing", code=403, user="rbac-a"),
            Step(
                "GET",
                "/apis/foo.bar/v1/namespaces/q/nothing/a/b/c",
                code=403,
                user="rbac-a",
                has=message(
                    'nothing.foo.bar "a" is forbidden: User "rbac-a" cannot get '
                    'resource "nothing/b" in API group "foo.bar" in the namespace "q"'
                ),
            ),
            Step("GET", "/api/v1/namespaces/nope/pods", code=403, user="rbac-a"),
            Step("GET", f"{PODS}/p/nonsense", code=403, user="rbac-a"),
            Step("GET", "/api/v1/namespaces//pods", code=403, user="rbac-a"),
            Step("POST", f"{DEPLOYMENTS}/d/scale", {}, code=403, user="rbac-a"),
        ),
    ),
    Case(
        "rbac: permission comes before what is wrong with a body",
        (
            Step("POST", MAPS, [], code=403, user="rbac-a"),
            Step("POST", MAPS, named("NOT A NAME"), code=403, user="rbac-a"),
            Step("POST", MAPS, named("taken"), code=201),
            Step("POST", MAPS, named("taken"), code=403, user="rbac-a"),
        ),
    ),
    Case(
        "rbac: paths that are no resources",
        (
            Step("GET", "/version", user="rbac-a", compare="code"),
            Step("GET", "/api", user="rbac-a", compare="code"),
            Step("GET", "/apis/apps/v1", user="rbac-a", compare="code"),
            Step("GET", "/healthz", user="rbac-a"),
            Step(
                "GET",
                "/metrics",
                code=403,
                user="rbac-a",
                has=message('forbidden: User "rbac-a" cannot get path "/metrics"')
                | {"details": {}},
            ),
            Step("GET", "/nope/nothing", code=403, user="rbac-a"),
            Step("POST", "/version", {}, code=403, user="rbac-a"),
            Step("DELETE", "/api", code=403, user="rbac-a"),
        ),
    ),
    Case(
        "rbac: nobody in particular",
        (
            Step("GET", "/version", user="system:anonymous", compare="code"),
            Step("GET", "/api", code=403, user="system:anonymous"),
            Step(
                "GET",
                "/api/v1/pods",
                code=403,
                user="system:anonymous",
                has=message(
                    'pods is forbidden: User "system:anonymous" cannot list resource '
                    '"pods" in API group "" at the cluster scope'
                ),
            ),
            # Who is put among the unknown is not put among the known as well.
            Step("GET", "/api", code=403, user="x", groups=("system:unauthenticated",)),
        ),
    ),
    Case(
        "rbac: masters may do everything",
        (
            Step("GET", LEASES, user="rbac-a", groups=("system:masters",)),
            Step(
                "GET",
                "/apis/foo.bar/v1/nothing",
                code=404,
                user="rbac-a",
                groups=("x", "system:masters"),
            ),
        ),
    ),
)

GRANTED: tuple[Case, ...] = (
    Case(
        "rbac: a role holds in its namespace",
        (
            role("reader", rule("get,list", "configmaps")),
            binding("reader", user("rbac-b")),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-b", eventually=True),
            Step("GET", MAPS, user="rbac-b", compare="code"),
            Step("GET", "/api/v1/configmaps", code=403, user="rbac-b"),
            Step("GET", SECRETS, code=403, user="rbac-b"),
            Step("POST", MAPS, named("m"), code=403, user="rbac-b"),
            Step(
                "GET", "/api/v1/namespaces/default/configmaps", code=403, user="rbac-b"
            ),
        ),
    ),
    Case(
        "rbac: each verb by itself",
        (
            role("lister", rule("list", "configmaps"), rule("create", "secrets")),
            binding("lister", user("rbac-c")),
            Step("GET", MAPS, user="rbac-c", eventually=True, compare="code"),
            Step("GET", f"{MAPS}/m", code=403, user="rbac-c"),
            Step("GET", MAPS, query={"watch": "1"}, code=403, user="rbac-c"),
            Step("GET", MAPS, query={"watch": "false"}, user="rbac-c", compare="code"),
            Step("POST", SECRETS, named("s"), code=201, user="rbac-c"),
            Step("GET", f"{SECRETS}/s", code=403, user="rbac-c"),
            Step("DELETE", SECRETS, code=403, user="rbac-c"),
        ),
    ),
    Case(
        "rbac: to delete one is not to delete all",
        (
            role("deleter", rule("delete", "configmaps")),
            binding("deleter", user("rbac-d")),
            Step("POST", MAPS, named("m"), code=201),
            Step("DELETE", f"{MAPS}/x", code=404, user="rbac-d", eventually=True),
            Step("DELETE", MAPS, code=403, user="rbac-d"),
            Step("DELETE", f"{MAPS}/m", user="rbac-d"),
        ),
    ),
    Case(
        "rbac: names restrict what has a name",
        (
            role(
                "named",
                rule("get,list,watch,update,delete,create", "configmaps", names="one"),
            ),
            binding("named", user("rbac-e")),
            Step("POST", MAPS, named("one"), code=201),
            Step("GET", f"{MAPS}/one", user="rbac-e", eventually=True),
            Step("GET", f"{MAPS}/two", code=403, user="rbac-e"),
            Step("GET", MAPS, code=403, user="rbac-e"),
            # A list of one by its name is asked for by that name.
            Step(
                "GET",
                MAPS,
                query={"fieldSelector": "metadata.name=one"},
                user="rbac-e",
                has={"items.0.metadata.name": "one"},
            ),
            Step(
                "GET",
                MAPS,
                query={"fieldSelector": "metadata.name=two"},
                code=403,
                user="rbac-e",
                has={"details.name": "two"},
            ),
            # What is created has no name in its path.
            Step("POST", MAPS, named("one"), code=403, user="rbac-e"),
            Step("DELETE", MAPS, code=403, user="rbac-e"),
        ),
    ),
    Case(
        "rbac: subresources are resources of their own",
        (
            role(
                "parts",
                rule("get", "pods"),
                rule("patch,get", "*/status"),
                rule("get", "deployments/scale", "apps"),
                rule("get", "secrets/*"),
            ),
            binding("parts", user("rbac-f")),
            Step("GET", f"{PODS}/p", code=404, user="rbac-f", eventually=True),
            Step("GET", f"{PODS}/p/log", code=403, user="rbac-f"),
            Step("GET", f"{PODS}/p/status", code=404, user="rbac-f"),
            Step("GET", f"{DEPLOYMENTS}/d/status", code=403, user="rbac-f"),
            Step("GET", f"{DEPLOYMENTS}/d/scale", code=404, user="rbac-f"),
            Step("GET", f"{DEPLOYMENTS}/d", code=403, user="rbac-f"),
            # A star stands for a whole name only.
            Step("GET", f"{SECRETS}/s/anything", code=403, user="rbac-f"),
        ),
    ),
    Case(
        "rbac: stars",
        (
            role("stars", rule("*", "configmaps"), rule("get", "*", "*")),
            binding("stars", user("rbac-g")),
            Step("DELETE", f"{MAPS}/x", code=404, user="rbac-g", eventually=True),
            Step("GET", f"{DEPLOYMENTS}/d/scale", code=404, user="rbac-g"),
            Step("GET", f"{PODS}/p/log", code=404, user="rbac-g"),
            Step("GET", DEPLOYMENTS, code=403, user="rbac-g"),
            Step("GET", "/metrics", code=403, user="rbac-g"),
        ),
    ),
    Case(
        "rbac: a cluster role bound in a namespace",
        (
            cluster_role("{ns}-maps", rule("list", "configmaps,nodes")),
            binding("{ns}-maps", user("rbac-h"), kind="ClusterRole"),
            Step("GET", MAPS, user="rbac-h", eventually=True, compare="code"),
            Step("GET", "/api/v1/configmaps", code=403, user="rbac-h"),
            Step("GET", "/api/v1/nodes", code=403, user="rbac-h"),
        ),
    ),
    Case(
        "rbac: a cluster role bound everywhere",
        (
            cluster_role(
                "{ns}-everywhere", rule("list", "configmaps"), paths("get", "/rbac/*")
            ),
            cluster_binding("{ns}-everywhere", user("rbac-i")),
            Step(
                "GET",
                "/api/v1/configmaps",
                user="rbac-i",
                eventually=True,
                compare="code",
            ),
            Step("GET", MAPS, user="rbac-i", compare="code"),
            Step("GET", "/rbac/any/thing", code=404, user="rbac-i", compare="code"),
            Step("GET", "/rbac", code=403, user="rbac-i"),
            Step("POST", "/rbac/x", {}, code=403, user="rbac-i"),
        ),
    ),
    Case(
        "rbac: groups",
        (
            role("team", rule("list", "configmaps")),
            binding("team", group("rbac-team"), group("rbac-others")),
            Step(
                "GET",
                MAPS,
                user="rbac-j",
                groups=("rbac-team",),
                eventually=True,
                compare="code",
            ),
            Step(
                "GET", MAPS, user="rbac-k", groups=("x", "rbac-others"), compare="code"
            ),
            Step("GET", MAPS, code=403, user="rbac-j", groups=("rbac-x",)),
            # A user of that name is not the group.
            Step("GET", MAPS, code=403, user="rbac-team"),
        ),
    ),
    Case(
        "rbac: service accounts",
        (
            role("robots", rule("list", "configmaps")),
            binding(
                "robots", account("robot", "kube-public"), account("local", "{ns}")
            ),
            Step(
                "GET",
                MAPS,
                user="system:serviceaccount:kube-public:robot",
                eventually=True,
                compare="code",
            ),
            Step("GET", MAPS, code=403, user="system:serviceaccount:default:robot"),
            Step("GET", MAPS, code=403, user="robot"),
        ),
    ),
    Case(
        "rbac: the groups of service accounts",
        (
            role("all", rule("list", "configmaps")),
            binding("all", group("system:serviceaccounts:kube-public")),
            Step(
                "GET",
                MAPS,
                user="system:serviceaccount:kube-public:any",
                eventually=True,
                compare="code",
            ),
            Step("GET", MAPS, code=403, user="rbac-l"),
        ),
    ),
    Case(
        "rbac: a binding to a role that is missing",
        (
            role("there", rule("get", "configmaps")),
            binding("there", user("rbac-m")),
            binding("gone", user("rbac-m"), user("rbac-n")),
            cluster_binding("{ns}-gone", user("rbac-m")),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-m", eventually=True),
            Step(
                "GET",
                SECRETS,
                code=403,
                user="rbac-n",
                eventually=True,
                compare="all",
            ),
            Step("GET", SECRETS, code=403, user="rbac-m"),
            Step("GET", "/metrics", code=403, user="rbac-m"),
        ),
    ),
    Case(
        "rbac: custom kinds",
        (
            role(
                "foos",
                rule("get,create,list", "foos", "conf.dev"),
                rule("patch", "foos/status", "conf.dev"),
            ),
            binding("foos", user("rbac-foo")),
            Step("GET", f"{FOOS}/f", code=404, user="rbac-foo", eventually=True),
            Step(
                "DELETE",
                f"{FOOS}/f",
                code=403,
                user="rbac-foo",
                has={"details": {"name": "f", "group": "conf.dev", "kind": "foos"}},
            ),
            Step("PATCH", f"{FOOS}/f", {}, MERGE_PATCH, code=403, user="rbac-foo"),
            Step(
                "PATCH", f"{FOOS}/f/status", {}, MERGE_PATCH, code=404, user="rbac-foo"
            ),
            Step("GET", f"{FOOS}/f/status", code=403, user="rbac-foo"),
            Step("DELETE", FOOS, code=403, user="rbac-foo"),
        ),
    ),
    Case(
        "rbac: to try is to do",
        (
            Step(
                "POST",
                MAPS,
                named("m"),
                query={"dryRun": "All"},
                code=403,
                user="rbac-dry",
            ),
            role("trier", rule("create", "configmaps")),
            binding("trier", user("rbac-dry")),
            Step(
                "POST",
                MAPS,
                named("m"),
                query={"dryRun": "All"},
                code=201,
                user="rbac-dry",
                eventually=True,
            ),
            Step("GET", f"{MAPS}/m", code=404),
        ),
    ),
    Case(
        "rbac: watches of one object by its name",
        (
            role("watcher", rule("watch", "configmaps", names="one")),
            binding("watcher", user("rbac-watch")),
            Step("POST", MAPS, named("one"), code=201, compare="code"),
            Step(
                "GET",
                MAPS,
                query={"watch": "1", "fieldSelector": "metadata.name=one"},
                user="rbac-watch",
                eventually=True,
                compare="code",
            ),
            Step("GET", MAPS, query={"watch": "1"}, code=403, user="rbac-watch"),
            Step(
                "GET",
                MAPS,
                query={"watch": "1", "fieldSelector": "metadata.name!=one"},
                code=403,
                user="rbac-watch",
            ),
        ),
    ),
    Case(
        "rbac: the right to evict is not the right to delete",
        (
            Step("POST", PODS, pod("p"), code=201, compare="code", eventually=True),
            role("evictor", rule("create", "pods/eviction")),
            binding("evictor", user("rbac-evict")),
            Step(
                "POST",
                f"{PODS}/q/eviction",
                eviction("q"),
                code=404,
                user="rbac-evict",
                eventually=True,
            ),
            Step("DELETE", f"{PODS}/p", code=403, user="rbac-evict"),
            Step("POST", PODS, pod("q"), code=403, user="rbac-evict"),
            Step(
                "POST", f"{PODS}/p/eviction", eviction("p"), code=201, user="rbac-evict"
            ),
        ),
    ),
    Case(
        "rbac: rights end with the binding",
        (
            role("brief", rule("get", "configmaps")),
            binding("brief", user("rbac-o")),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-o", eventually=True),
            Step("DELETE", f"{BINDINGS}/brief", compare="code"),
            Step("GET", f"{MAPS}/m", code=403, user="rbac-o", eventually=True),
        ),
    ),
    Case(
        "rbac: rights change with the role",
        (
            role("moving", rule("get", "configmaps")),
            binding("moving", user("rbac-p")),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-p", eventually=True),
            Step(
                "PATCH",
                f"{ROLES}/moving",
                {"rules": [rule("get", "secrets")]},
                MERGE_PATCH,
                compare="code",
            ),
            Step("GET", f"{SECRETS}/m", code=404, user="rbac-p", eventually=True),
            Step("GET", f"{MAPS}/m", code=403, user="rbac-p"),
        ),
    ),
    Case(
        "rbac: the default role edit",
        (
            Step(
                "POST",
                BINDINGS,
                bound("edit", user("rbac-q"), kind="ClusterRole"),
                code=201,
            ),
            Step("POST", MAPS, named("m"), code=201, user="rbac-q", eventually=True),
            Step("GET", f"{SECRETS}/s", code=404, user="rbac-q"),
            Step("GET", f"{PODS}/p/log", code=404, user="rbac-q"),
            Step("GET", f"{DEPLOYMENTS}/d/scale", code=404, user="rbac-q"),
            Step("GET", ROLES, code=403, user="rbac-q"),
            Step("GET", "/api/v1/nodes", code=403, user="rbac-q"),
        ),
    ),
    Case(
        "rbac: the default role view",
        (
            Step(
                "POST",
                BINDINGS,
                bound("view", user("rbac-r"), kind="ClusterRole"),
                code=201,
            ),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-r", eventually=True),
            Step("GET", f"{SECRETS}/s", code=403, user="rbac-r"),
            Step("POST", MAPS, named("m"), code=403, user="rbac-r"),
            Step("GET", "/api/v1/namespaces/{ns}", user="rbac-r", compare="code"),
        ),
    ),
    Case(
        "rbac: the default role admin",
        (
            Step(
                "POST",
                BINDINGS,
                bound("admin", user("rbac-s"), kind="ClusterRole"),
                code=201,
            ),
            Step("GET", f"{ROLES}/r", code=404, user="rbac-s", eventually=True),
            Step(
                "POST",
                ROLES,
                named("mine", rules=[rule("get,create", "configmaps,secrets")]),
                code=201,
                user="rbac-s",
            ),
            Step(
                "POST",
                BINDINGS,
                bound("view", user("rbac-t"), kind="ClusterRole"),
                code=201,
                user="rbac-s",
            ),
            Step(
                "POST",
                BINDINGS,
                bound("cluster-admin", user("rbac-t"), kind="ClusterRole"),
                code=403,
                user="rbac-s",
            ),
            Step("GET", CLUSTER_ROLES, code=403, user="rbac-s"),
        ),
    ),
)

# ---------------------------------------------------------------- giving away

WRITER = rule("create,get,update,patch,list,delete", "*", RBAC)
SECRET_RULE = rule("get,list", "secrets,pods")


def writer(name: str, *more: Json) -> tuple[Step, Step, Step]:
    """A user who may write roles, and has some rights to give away."""
    return (
        cluster_role(f"{{ns}}-{name}", WRITER, *more),
        cluster_binding(f"{{ns}}-{name}", user(name)),
        Step("GET", f"{ROLES}/none", code=404, user=name, eventually=True),
    )


ESCALATION: tuple[Case, ...] = (
    Case(
        "rbac: nobody gives what they do not have",
        (
            *writer("rbac-esc-a", rule("get", "pods,*/status")),
            Step(
                "POST",
                ROLES,
                named(
                    "r",
                    rules=[
                        rule("get,list", "pods,pods/status,secrets"),
                        rule("get", "deployments", "apps", "a,b"),
                    ],
                ),
                code=403,
                user="rbac-esc-a",
                has={"reason": "Forbidden", "details.kind": "roles"},
            ),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "pods,pods/status,pods/log")]),
                code=403,
                user="rbac-esc-a",
                groups=("rbac-g1", "rbac-g2"),
            ),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "pods,services/status")]),
                code=201,
                user="rbac-esc-a",
            ),
            Step(
                "POST",
                ROLES,
                named("a/b", rules=[rule("get", "secrets")]),
                code=403,
                user="rbac-esc-a",
            ),
        ),
    ),
    Case(
        "rbac: who has a right for one name cannot give it for all",
        (
            *writer("rbac-esc-b", rule("get", "secrets", names="one,two")),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "secrets")]),
                code=403,
                user="rbac-esc-b",
            ),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "secrets", names="one,three")]),
                code=403,
                user="rbac-esc-b",
            ),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "secrets", names="one")]),
                code=201,
                user="rbac-esc-b",
            ),
        ),
    ),
    Case(
        "rbac: rights to paths are given away by prefix",
        (
            *writer("rbac-esc-c", paths("get", "/logs/*")),
            Step(
                "POST",
                CLUSTER_ROLES,
                named("{ns}-p", rules=[paths("get,post", "/x,/logs/a,/logs/*")]),
                code=403,
                user="rbac-esc-c",
            ),
            Step(
                "POST",
                CLUSTER_ROLES,
                named("{ns}-p", rules=[paths("get", "/logs/a,/logs/b/*")]),
                code=201,
                user="rbac-esc-c",
            ),
        ),
    ),
    Case(
        "rbac: a changed role must not give more either",
        (
            *writer("rbac-esc-d", rule("get", "configmaps")),
            role("small", rule("get", "configmaps")),
            role("big", rule("*", "*", "*")),
            Step(
                "PATCH",
                f"{ROLES}/small",
                {"rules": [rule("get,delete", "configmaps")]},
                MERGE_PATCH,
                code=403,
                user="rbac-esc-d",
            ),
            Step(
                "PATCH",
                f"{ROLES}/big",
                {"metadata": {"labels": {"a": "b"}}},
                MERGE_PATCH,
                code=403,
                user="rbac-esc-d",
            ),
            # Anybody may write the garbage collector's objects.
            Step(
                "PATCH",
                f"{ROLES}/big",
                {"metadata": {"finalizers": ["x.dev/y"]}},
                MERGE_PATCH,
                user="rbac-esc-d",
            ),
            Step(
                "PATCH",
                f"{ROLES}/small",
                {"metadata": {"labels": {"a": "b"}}},
                MERGE_PATCH,
                user="rbac-esc-d",
            ),
            Step(
                "PATCH",
                f"{ROLES}/big",
                {"metadata": {"finalizers": None}},
                MERGE_PATCH,
                user="rbac-esc-d",
                compare="code",
            ),
        ),
    ),
    Case(
        "rbac: the verb escalate",
        (
            *writer("rbac-esc-e"),
            role("up", rule("escalate", "roles", RBAC)),
            binding("up", user("rbac-esc-e")),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("*", "*", "*")]),
                code=201,
                user="rbac-esc-e",
                eventually=True,
            ),
            Step(
                "POST",
                CLUSTER_ROLES,
                named("{ns}-r", rules=[rule("*", "*", "*")]),
                code=403,
                user="rbac-esc-e",
            ),
        ),
    ),
    Case(
        "rbac: only cluster admins aggregate",
        (
            *writer("rbac-esc-f"),
            Step(
                "POST",
                CLUSTER_ROLES,
                named(
                    "{ns}-agg",
                    aggregationRule={
                        "clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]
                    },
                ),
                code=403,
                user="rbac-esc-f",
            ),
        ),
    ),
    Case(
        "rbac: to bind a role is to give its rights",
        (
            *writer("rbac-esc-g", rule("get", "configmaps")),
            role("small", rule("get", "configmaps")),
            role("big", rule("get,update,patch", "configmaps,leases,pods")),
            Step(
                "POST", BINDINGS, bound("big", user("x")), code=403, user="rbac-esc-g"
            ),
            Step(
                "POST",
                CLUSTER_BINDINGS,
                bound("cluster-admin", user("x"), kind="ClusterRole"),
                code=403,
                user="rbac-esc-g",
            ),
            Step(
                "POST", BINDINGS, bound("small", user("x")), code=201, user="rbac-esc-g"
            ),
            binding("big", user("y")),
            Step(
                "PATCH",
                f"{BINDINGS}/big",
                {"metadata": {"labels": {"a": "b"}}},
                MERGE_PATCH,
                code=403,
                user="rbac-esc-g",
            ),
        ),
    ),
    Case(
        "rbac: only what exists is bound without the right to bind",
        (
            *writer("rbac-esc-h"),
            Step(
                "POST",
                BINDINGS,
                bound("missing", user("x")),
                code=404,
                user="rbac-esc-h",
                has={"details.kind": "roles"},
            ),
            Step(
                "POST",
                CLUSTER_BINDINGS,
                bound("{ns}-missing", user("x"), kind="ClusterRole"),
                code=404,
                user="rbac-esc-h",
            ),
            Step("POST", BINDINGS, bound("missing", user("x")), code=201),
        ),
    ),
    Case(
        "rbac: the verb bind",
        (
            *writer("rbac-esc-i", rule("bind", "clusterroles", RBAC, "view")),
            Step(
                "POST",
                BINDINGS,
                bound("view", user("x"), kind="ClusterRole"),
                code=201,
                user="rbac-esc-i",
            ),
            Step(
                "POST",
                BINDINGS,
                bound("edit", user("x"), kind="ClusterRole"),
                code=403,
                user="rbac-esc-i",
                compare=("code", "reason", "details"),
            ),
        ),
    ),
    Case(
        "rbac: what a missing role would give is not counted",
        (
            *writer("rbac-esc-j"),
            binding("gone", user("rbac-esc-j")),
            cluster_binding("{ns}-gone2", user("rbac-esc-j")),
            Step(
                "POST",
                ROLES,
                named("r", rules=[rule("get", "secrets")]),
                code=403,
                user="rbac-esc-j",
                compare=("reason", "details"),
            ),
        ),
    ),
    Case(
        "rbac: a PUT that creates needs the right to create",
        (
            role(
                "updater",
                rule("get,update,patch", "leases,configmaps", "coordination.k8s.io,"),
            ),
            binding("updater", user("rbac-u")),
            Step("GET", f"{LEASES}/l", code=404, user="rbac-u", eventually=True),
            Step("PUT", f"{LEASES}/l", named("l"), code=403, user="rbac-u"),
            Step("PUT", f"{MAPS}/m", named("m"), code=404, user="rbac-u"),
            Step(
                "PUT",
                f"{LEASES}/l",
                named("l", spec={"holderIdentity": "you"}),
                code=201,
            ),
            Step(
                "PATCH",
                f"{LEASES}/l",
                {"spec": {"holderIdentity": "me"}},
                MERGE_PATCH,
                user="rbac-u",
            ),
        ),
    ),
    Case(
        "rbac: an apply that creates needs the right to create",
        (
            role("applier", rule("get,patch", "configmaps")),
            binding("applier", user("rbac-v")),
            Step("GET", f"{MAPS}/m", code=404, user="rbac-v", eventually=True),
            Step(
                "PATCH",
                f"{MAPS}/m",
                {"apiVersion": "v1", "kind": "ConfigMap", **named("m")},
                APPLY_PATCH,
                {"fieldManager": "me"},
                code=403,
                user="rbac-v",
            ),
        ),
    ),
)

# -------------------------------------------------------------------- reviews

BOTH: Json = {
    **access("get", "pods"),
    "nonResourceAttributes": {"verb": "get", "path": "/version"},
}

REVIEWS: tuple[Case, ...] = (
    Case(
        "rbac: may I?",
        (
            role("reader", rule("get", "configmaps", names="one")),
            binding("reader", user("rbac-w")),
            ask(
                OWN_ACCESS,
                access("get", "configmaps", namespace="{ns}", name="one"),
                user="rbac-w",
                has={"status.allowed": True},
                eventually=True,
            ),
            ask(
                OWN_ACCESS,
                access("get", "configmaps", namespace="{ns}"),
                user="rbac-w",
                has={"status": {"allowed": False}},
            ),
            ask(
                OWN_ACCESS,
                access("get", "configmaps", namespace="default", name="one"),
                user="rbac-w",
                has={"status": {"allowed": False}},
            ),
            ask(OWN_ACCESS, access("*", "*", group="*"), has={"status.allowed": True}),
        ),
    ),
    Case(
        "rbac: may I see a path?",
        (
            ask(
                OWN_ACCESS,
                {"nonResourceAttributes": {"verb": "get", "path": "/apis"}},
                user="rbac-x",
                has={"status.allowed": True},
                # It is random which of two bindings is named.
                compare=("status.allowed",),
            ),
            ask(
                OWN_ACCESS,
                {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
                user="rbac-x",
                has={"status": {"allowed": False}},
            ),
        ),
    ),
    Case(
        "rbac: a review asks one thing",
        (
            Step("POST", OWN_ACCESS, {"spec": {}}, code=422),
            Step("POST", OWN_ACCESS, {}, code=422),
            Step("POST", OWN_ACCESS, {"spec": BOTH}, code=422),
            Step("POST", ACCESS, {"spec": access("get", "pods")}, code=422),
            Step(
                "POST",
                OWN_ACCESS,
                {"metadata": {"name": "x"}, "spec": access("get", "pods")},
                code=422,
                compare="code",
            ),
        ),
    ),
    Case(
        "rbac: may they?",
        (
            cluster_role("{ns}-scaler", rule("update", "*/scale", "apps")),
            cluster_binding("{ns}-scaler", user("rbac-y"), group("rbac-scalers")),
            ask(
                ACCESS,
                {
                    "user": "rbac-y",
                    **access(
                        "update",
                        "deployments",
                        group="apps",
                        subresource="scale",
                        namespace="{ns}",
                    ),
                },
                has={"status.allowed": True},
                eventually=True,
            ),
            ask(
                ACCESS,
                {
                    "groups": ["rbac-scalers"],
                    "extra": {"k": ["v"]},
                    "uid": "7",
                    **access("update", "x", group="apps", subresource="scale"),
                },
                has={"status.allowed": True},
            ),
            ask(
                ACCESS,
                {"user": "rbac-y", **access("update", "deployments", group="apps")},
                has={"status.allowed": False},
            ),
            ask(
                ACCESS,
                {"user": "z", "groups": ["system:masters"], **access("get", "pods")},
                has={"status": {"allowed": True}},
            ),
        ),
    ),
    Case(
        "rbac: why they may not",
        (
            binding("gone", user("rbac-z")),
            ask(
                ACCESS,
                {"user": "rbac-z", **access("get", "pods", namespace="{ns}")},
                has={
                    "status.allowed": False,
                    "status.reason": f'RBAC: role.{RBAC} "gone" not found',
                },
                eventually=True,
            ),
        ),
    ),
    Case(
        "rbac: may they, here?",
        (
            Step(
                "POST",
                LOCAL_ACCESS,
                {
                    "metadata": {"namespace": "{ns}"},
                    "spec": {"user": "u", **access("get", "pods", namespace="{ns}")},
                },
                code=201,
                has={"status": {"allowed": False}},
                compare=ANSWER,
            ),
            Step(
                "POST",
                LOCAL_ACCESS,
                {
                    "metadata": {"namespace": "{ns}"},
                    "spec": {"user": "u", **access("get", "pods", namespace="other")},
                },
                code=422,
            ),
            Step(
                "POST",
                LOCAL_ACCESS,
                {
                    "metadata": {"namespace": "{ns}"},
                    "spec": {
                        "user": "u",
                        "nonResourceAttributes": {"verb": "get", "path": "/version"},
                    },
                },
                code=422,
            ),
        ),
    ),
    Case(
        "rbac: what may I?",
        (
            role("some", rule("get,list", "configmaps", names="a,b")),
            binding("some", user("rbac-aa")),
            ask(
                OWN_RULES,
                {"namespace": "{ns}"},
                user="rbac-aa",
                has={"status.incomplete": False},
                eventually=True,
                compare=("kind", "apiVersion", "status.incomplete"),
            ),
            Step("POST", OWN_RULES, {"spec": {}}, code=400, user="rbac-aa"),
        ),
    ),
    Case(
        "rbac: reviews are only created",
        (
            Step("GET", ACCESS, code=405),
            Step("GET", f"{ACCESS}/x", code=404),
            Step("PUT", f"{ACCESS}/x", {}, code=404),
            Step("DELETE", ACCESS, code=405),
            Step("POST", f"{ACCESS}/x", {}, code=404),
        ),
    ),
    Case(
        "rbac: who may ask",
        (
            ask(OWN_ACCESS, access("get", "pods"), user="rbac-ab"),
            ask(OWN_RULES, {"namespace": "x"}, user="rbac-ab", compare="code"),
            Step(
                "POST",
                ACCESS,
                {"spec": {"user": "u", **access("get", "pods")}},
                code=403,
                user="rbac-ab",
            ),
            Step("POST", TOKENS, {"spec": {"token": "t"}}, code=403, user="rbac-ab"),
            Step("POST", f"{ACCOUNTS}/default/token", {}, code=403, user="rbac-ab"),
        ),
    ),
    # Kubernetes 1.28 and later.
    Case(
        "rbac: who am I?",
        (
            Step(
                "POST",
                "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                {
                    "apiVersion": "authentication.k8s.io/v1",
                    "kind": "SelfSubjectReview",
                },
                code=201,
                user="rbac-ac",
                groups=("g",),
                has={
                    "status.userInfo": {
                        "username": "rbac-ac",
                        "groups": ["g", "system:authenticated"],
                    }
                },
            ),
        ),
        servers=(),
    ),
    Case(
        "rbac: whose token is nobody's",
        (
            ask(
                TOKENS,
                {"token": "abc"},
                has={"status": {"user": {}, "error": "invalid bearer token"}},
            ),
            Step("POST", TOKENS, {"spec": {}}, code=400),
        ),
    ),
    Case(
        "rbac: the token of a service account",
        (
            Step("POST", ACCOUNTS, named("robot"), code=201, compare="code"),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {},
                code=201,
                has={"spec.audiences": [ISSUER], "spec.expirationSeconds": 3600},
                compare=("kind", "apiVersion", "spec", "status.expirationTimestamp"),
            ),
            ask(
                TOKENS,
                {"token": "$1.status.token"},
                has={"status.authenticated": True, "status.audiences": [ISSUER]},
                compare=("kind", "status"),
            ),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {"spec": {"audiences": ["a"], "expirationSeconds": 700}},
                code=201,
                compare=("spec", "status.expirationTimestamp"),
            ),
            ask(
                TOKENS,
                {"token": "$3.status.token"},
                has={"status.authenticated": ABSENT},
                compare=("status",),
            ),
            ask(
                TOKENS,
                {"token": "$3.status.token", "audiences": ["b", "a"]},
                has={"status.authenticated": True},
                compare=("status.user",),
            ),
        ),
    ),
    Case(
        "rbac: token requests that are refused",
        (
            Step("POST", ACCOUNTS, named("robot"), code=201, compare="code"),
            Step("POST", f"{ACCOUNTS}/nobody/token", {}, code=404),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {"spec": {"expirationSeconds": 70}},
                code=422,
            ),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {"spec": {"expirationSeconds": 7000000000000}},
                code=422,
            ),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {
                    "spec": {
                        "boundObjectRef": {
                            "kind": "Pod",
                            "apiVersion": "v1",
                            "name": "none",
                        }
                    }
                },
                code=404,
            ),
            Step(
                "POST",
                f"{ACCOUNTS}/robot/token",
                {"spec": {"boundObjectRef": {"kind": "X", "apiVersion": "v1"}}},
                code=400,
            ),
            Step("GET", f"{ACCOUNTS}/robot/token", code=405),
            Step("PUT", f"{ACCOUNTS}/robot/token", {}, code=405),
        ),
    ),
)

# ---------------------------------------------------------------- subresources

DAY = "2020-01-01T"
LOG_OPTIONS: tuple[tuple[int, dict[str, str]], ...] = (
    (204, {"follow": "true"}),
    (204, {"follow": "odd", "previous": "true", "timestamps": ""}),
    (204, {"sinceTime": ""}),
    (204, {"sinceTime": "null"}),
    (204, {"sinceTime": f"{DAY}00:00:00.5Z"}),
    (204, {"sinceTime": f"{DAY}00:00:00,123456789123Z"}),
    (204, {"sinceTime": f"{DAY}00:00:00+01:00"}),
    (204, {"sinceTime": f"{DAY}0:00:00Z"}),
    (204, {"unknown": "x"}),
    (400, {"tailLines": ""}),
    (400, {"tailLines": "x", "limitBytes": "y"}),
    (400, {"tailLines": "x", "sinceTime": "y"}),
    (400, {"limitBytes": "9223372036854775808"}),
    (400, {"sinceTime": "x"}),
    (400, {"sinceTime": '"x'}),
    (400, {"sinceTime": "2020-01-01"}),
    (400, {"sinceTime": "2020-1-01T00:00:00Z"}),
    (400, {"sinceTime": "2020-01-01 00:00:00Z"}),
    (400, {"sinceTime": "2020-13-01T00:00:00Z"}),
    (400, {"sinceTime": "2020-00-01T00:00:00Z"}),
    (400, {"sinceTime": "2020-02-30T00:00:00Z"}),
    (400, {"sinceTime": "2020-01-00T00:00:00Z"}),
    (400, {"sinceTime": f"{DAY}00:00:00"}),
    (400, {"sinceTime": f"{DAY}0:0:0Z"}),
    (400, {"sinceTime": f"{DAY}00:00:00.Z"}),
    (400, {"sinceTime": f"{DAY}00:00:00z"}),
    (400, {"sinceTime": f"{DAY}00:00:00+0100"}),
    (400, {"sinceTime": f"{DAY}25:00:00Z"}),
    (400, {"sinceTime": f"{DAY}00:61:00Z"}),
    (400, {"sinceTime": f"{DAY}00:00:61Z"}),
    (400, {"sinceTime": f"{DAY}00:00:00Zx"}),
    (422, {"limitBytes": "0"}),
    (422, {"sinceSeconds": "0"}),
    (422, {"sinceSeconds": "-5"}),
    (422, {"sinceSeconds": "1", "sinceTime": ""}),
    (422, {"tailLines": "-1", "limitBytes": "0", "sinceSeconds": "0"}),
    (422, {"container": "x", "tailLines": "-1"}),
)

SUBRESOURCES: tuple[Case, ...] = (
    Case(
        "eviction: a pod without a budget goes",
        (
            Step("POST", PODS, pod("p"), code=201, compare="code", eventually=True),
            Step("POST", f"{PODS}/p/eviction", eviction("q"), code=400),
            Step("POST", f"{PODS}/none/eviction", eviction("none"), code=404),
            Step("GET", f"{PODS}/p/eviction", code=405),
            Step(
                "POST",
                f"{PODS}/p/eviction",
                eviction("p"),
                query={"dryRun": "All"},
                code=201,
            ),
            Step("GET", f"{PODS}/p", compare="code"),
            Step("POST", f"{PODS}/p/eviction", eviction("p"), code=201),
            Step("GET", f"{PODS}/p", code=404),
        ),
    ),
    # policy/v1 is younger than 1.20, and budgets need their controller.
    Case(
        "eviction: a budget that is spent protects",
        (
            Step("POST", PODS, pod("p"), code=201),
            Step(
                "PATCH",
                f"{PODS}/p/status",
                {"status": {"phase": "Running"}},
                MERGE_PATCH,
            ),
            Step(
                "POST",
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
                named(
                    "b",
                    spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
                ),
                code=201,
            ),
            Step(
                "PATCH",
                "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b/status",
                {
                    "status": {
                        "observedGeneration": 1,
                        "desiredHealthy": 1,
                        "currentHealthy": 0,
                        "disruptionsAllowed": 0,
                        "expectedPods": 1,
                    }
                },
                MERGE_PATCH,
            ),
            Step(
                "POST",
                f"{PODS}/p/eviction",
                eviction("p", "v1"),
                code=429,
                has={
                    "message": "Cannot evict pod as it would violate the pod's "
                    "disruption budget.",
                    "reason": "TooManyRequests",
                    "details.causes": [
                        {
                            "reason": "DisruptionBudget",
                            "message": "The disruption budget b needs 1 healthy pods "
                            "and has 0 currently",
                        }
                    ],
                },
            ),
            Step("GET", f"{PODS}/p"),
        ),
        servers=(),
    ),
    Case(
        "binding: a pod gets its node once",
        (
            Step("POST", PODS, pod("p"), code=201, compare="code", eventually=True),
            Step(
                "POST", f"{PODS}/p/binding", named("q", target={"name": "n"}), code=400
            ),
            Step(
                "POST",
                f"{PODS}/none/binding",
                named("none", target={"name": "n"}),
                code=404,
            ),
            Step(
                "POST",
                f"{PODS}/p/binding",
                named("p", target={"kind": "X", "name": ""}),
                code=500,
            ),
            Step(
                "POST",
                f"{PODS}/p/binding",
                named("p", target={"kind": "Node", "name": "n"}),
                code=201,
            ),
            Step(
                "GET",
                f"{PODS}/p",
                has={"spec.nodeName": "n", "status.conditions.0.type": "PodScheduled"},
                compare=("spec.nodeName", "status.conditions"),
            ),
            Step(
                "POST",
                f"{PODS}/p/binding",
                named("p", target={"kind": "Node", "name": "m"}),
                code=409,
            ),
            Step(
                "POST",
                "/api/v1/namespaces/{ns}/bindings",
                named("none", target={"name": "n"}),
                code=404,
            ),
            Step("POST", PODS, pod("q"), code=201, compare="code"),
            Step(
                "POST",
                "/api/v1/namespaces/{ns}/bindings",
                named("q", target={"name": "n"}),
                code=201,
            ),
            Step("GET", "/api/v1/namespaces/{ns}/bindings", code=405),
        ),
    ),
    Case(
        "finalize: a namespace's own finalizers",
        (
            Step(
                "POST", "/api/v1/namespaces", named("{ns}-f"), code=201, compare="code"
            ),
            Step("GET", "/api/v1/namespaces/{ns}-f/finalize", code=405),
            Step(
                "PUT",
                "/api/v1/namespaces/{ns}-f/finalize",
                named("{ns}-f", spec={"finalizers": ["bad"]}),
                code=422,
            ),
            Step(
                "PUT",
                "/api/v1/namespaces/{ns}-f/finalize",
                named("{ns}-f", spec={"finalizers": ["kubernetes", "x.dev/y"]}),
                has={"spec.finalizers": ["kubernetes", "x.dev/y"]},
                compare=("spec", "status"),
            ),
            Step(
                "PUT",
                "/api/v1/namespaces/{ns}-none/finalize",
                named("{ns}-none"),
                code=404,
            ),
        ),
    ),
    Case(
        "log: of a pod that has not started",
        (
            Step("POST", PODS, pod("one"), code=201, compare="code", eventually=True),
            Step("POST", PODS, pod("two", "c", "d"), code=201, compare="code"),
            Step("GET", f"{PODS}/one/log", code=204),
            Step("GET", f"{PODS}/two/log", code=400),
            Step("GET", f"{PODS}/two/log", query={"container": "d"}, code=204),
            Step("GET", f"{PODS}/two/log", query={"container": "x"}, code=400),
            Step("GET", f"{PODS}/one/log", query={"tailLines": "-1"}, code=422),
            Step("GET", f"{PODS}/none/log", code=404),
            Step("POST", f"{PODS}/one/log", {}, code=405),
        ),
    ),
    Case(
        "log: options are read in their order, and checked before the pod",
        (
            Step("POST", PODS, pod("one"), code=201, compare="code", eventually=True),
            *(
                Step("GET", f"{PODS}/one/log", query=query, code=code)
                for code, query in LOG_OPTIONS
            ),
            Step("GET", f"{PODS}/none/log", query={"tailLines": "-1"}, code=422),
        ),
    ),
    Case(
        "exec: without a node there is nothing to connect to",
        (
            Step(
                "POST",
                PODS,
                pod("p", "c", "d"),
                code=201,
                compare="code",
                eventually=True,
            ),
            Step("GET", f"{PODS}/p/exec", code=400),
            Step("POST", f"{PODS}/p/exec", {}, query={"container": "c"}, code=400),
            Step("POST", f"{PODS}/p/attach", {}, query={"container": "d"}, code=400),
            Step("POST", f"{PODS}/p/portforward", {}, code=400),
            Step("GET", f"{PODS}/none/exec", code=404),
            Step("GET", f"{PODS}/p/proxy", code=400),
            Step("GET", f"{PODS}/p/proxy/a/b/c", code=400),
            Step("GET", "/api/v1/namespaces/{ns}/services/none/proxy/a", code=404),
            Step("GET", f"{PODS}/p/nonsense", code=404),
        ),
    ),
    # Kubernetes 1.25 and later.
    Case(
        "ephemeral containers only become more",
        (
            Step("POST", PODS, pod("p"), code=201),
            Step(
                "PATCH",
                f"{PODS}/p/ephemeralcontainers",
                {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
                MERGE_PATCH,
                has={"spec.ephemeralContainers.0.name": "e"},
            ),
            Step(
                "PATCH",
                f"{PODS}/p/ephemeralcontainers",
                {"spec": {"ephemeralContainers": []}},
                MERGE_PATCH,
                code=422,
            ),
            Step("GET", f"{PODS}/p", has={"spec.ephemeralContainers.0.name": "e"}),
        ),
        servers=(),
    ),
)

# These need controllers.
CONTROLLED: tuple[Case, ...] = (
    Case(
        "rbac: aggregated roles gather the rules of others",
        (
            Step(
                "POST",
                CLUSTER_ROLES,
                named(
                    "{ns}-sum",
                    aggregationRule={
                        "clusterRoleSelectors": [{"matchLabels": {"into": "{ns}"}}]
                    },
                ),
                code=201,
                compare=("aggregationRule",),
            ),
            Step(
                "POST",
                CLUSTER_ROLES,
                {
                    "metadata": {"name": "{ns}-part", "labels": {"into": "{ns}"}},
                    "rules": [rule("get", "configmaps")],
                },
                code=201,
            ),
            Step(
                "GET",
                f"{CLUSTER_ROLES}/{{ns}}-sum",
                has={"rules": [rule("get", "configmaps")]},
                eventually=True,
                compare=("rules", "aggregationRule"),
            ),
        ),
    ),
    Case(
        "finalize: a namespace ends with its last finalizer",
        (
            Step(
                "POST", "/api/v1/namespaces", named("{ns}-f"), code=201, compare="code"
            ),
            Step(
                "PUT",
                "/api/v1/namespaces/{ns}-f/finalize",
                named("{ns}-f", spec={"finalizers": ["kubernetes", "x.dev/y"]}),
                compare=("spec", "status"),
            ),
            Step("DELETE", "/api/v1/namespaces/{ns}-f", compare="code"),
            Step(
                "GET",
                "/api/v1/namespaces/{ns}-f",
                has={"spec.finalizers": ["x.dev/y"]},
                compare=("spec", "status.phase"),
                eventually=True,
            ),
            Step(
                "PUT",
                "/api/v1/namespaces/{ns}-f/finalize",
                named("{ns}-f", spec={"finalizers": []}),
                compare=("spec", "status.phase"),
            ),
            Step("GET", "/api/v1/namespaces/{ns}-f", code=404, eventually=True),
        ),
        slow=True,
    ),
)

CASES: tuple[Case, ...] = (
    *NOBODY,
    *GRANTED,
    *ESCALATION,
    *REVIEWS,
    *SUBRESOURCES,
    *CONTROLLED,
)
