"""RBAC in the simulated cluster: rules, tokens and impersonation."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.interpreters.cluster import (
    Cluster,
    answer,
    backlog,
    empty_cluster,
    impersonated,
    user_of_token,
)
from fnop.interpreters.cluster.access.escalation import uncovered
from fnop.interpreters.cluster.access.rbac import (
    Rule,
    aggregated,
    authorize,
    decide,
)
from fnop.interpreters.cluster.requests.request import Attributes, attributes_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User

NOW = 1_700_000_000.0
RBAC = "rbac.authorization.k8s.io"
BASE = f"/apis/{RBAC}/v1"
EVERYBODY = "system:authenticated"
ALICE = User("alice", (EVERYBODY,))
ADMIN = User("admin", ("system:masters", EVERYBODY))


def ask(
    cluster: Cluster, method: str, path: str, body: Any = None, user: User | None = None
) -> tuple[Cluster, ApiResponse]:
    request = ApiRequest(method, path, body=body, user=user)
    cluster, response, _ = answer(cluster, request, NOW)
    return cluster, response


def with_role(
    cluster: Cluster, name: str, *rules: dict[str, Any], namespace: str = ""
) -> Cluster:
    """With a (cluster) role of these rules, bound to alice there."""
    where = f"{BASE}/namespaces/{namespace}/" if namespace else f"{BASE}/cluster"
    kind = "Role" if namespace else "ClusterRole"
    role = {"metadata": {"name": name}, "rules": list(rules)}
    cluster, response = ask(cluster, "POST", f"{where}roles", role)
    assert response.status == 201, response
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}],
    }
    cluster, response = ask(cluster, "POST", f"{where}rolebindings", binding)
    assert response.status == 201, response
    return cluster


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> Any:
    found = {
        "verbs": verbs.split(","),
        "apiGroups": group.split(","),
        "resources": resources.split(","),
    }
    return {**found, "resourceNames": names.split(",")} if names else found


GUARDED = empty_cluster(rbac=True)
PODS = rule("get,list", "pods")

# One rule, what is asked as "verb group resource[/subresource] [name]", the answer.
TRUTH = [
    (PODS, "get - pods p", True),
    (PODS, "get - pods", True),
    (PODS, "watch - pods", False),
    (PODS, "get apps pods p", False),
    (PODS, "get - pods/log p", False),
    (rule("*", "pods"), "anything - pods p", True),
    (rule("get", "*"), "get - pods/log p", True),
    (rule("get", "*"), "get apps deployments d", False),
    (rule("get", "*", "*"), "get apps deployments/scale d", True),
    (rule("get", "pods/log"), "get - pods/log p", True),
    (rule("get", "pods/log"), "get - pods p", False),
    (rule("get", "pods/*"), "get - pods/log p", False),
    (rule("get", "*/log"), "get - pods/log p", True),
    (rule("get", "*/log"), "get - pods p", False),
    (rule("get", "*/scale", "apps"), "get apps deployments/scale d", True),
    (rule("get", "*/scale", "apps"), "get batch jobs/scale d", False),
    (rule("get", "pods", names="a,b"), "get - pods b", True),
    (rule("get", "pods", names="a,b"), "get - pods c", False),
    (rule("list", "pods", names="a"), "list - pods", False),
    (rule("create", "pods", names="a"), "create - pods", False),
    (rule("get", "pods", "apps,"), "get - pods p", True),
    ({"verbs": ["get"], "nonResourceURLs": ["*"]}, "get - pods p", False),
]


@pytest.mark.parametrize(("given", "asked", "allowed"), TRUTH)
def test_one_rule(given: dict[str, Any], asked: str, allowed: bool) -> None:
    cluster = with_role(GUARDED, "r", given)
    verb, group, resource, name = [*asked.split(), ""][:4]
    resource, _, subresource = resource.partition("/")
    group = "" if group == "-" else group
    wanted = Attributes(verb, group, resource, subresource, "n", name)
    assert decide(cluster, ALICE, wanted).allowed is allowed
    assert not decide(cluster, User("bob", (EVERYBODY,)), wanted).allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (["/logs"], "/logs", True),
        (["/logs"], "/logs/a", False),
        (["/logs/*"], "/logs/a/b", True),
        (["/logs/*"], "/logs", False),
        (["/logs*"], "/logs", True),
        (["*"], "/anything", True),
        (["/x", "/logs/a"], "/logs/a", True),
    ],
)
def test_one_path(urls: list[str], path: str, allowed: bool) -> None:
    cluster = with_role(GUARDED, "r", {"verbs": ["get"], "nonResourceURLs": urls})
    assert decide(cluster, ALICE, Attributes("get", path=path)).allowed is allowed
    assert not decide(cluster, ALICE, Attributes("post", path=path)).allowed


@pytest.mark.parametrize(
    ("method", "path", "query", "wanted"),
    [
        ("GET", "/version", (), Attributes("get", path="/version")),
        ("HEAD", "/api", (), Attributes("head", path="/api")),
        ("GET", "/api/v1", (), Attributes("get", path="/api/v1")),
        ("GET", "/apis/apps/v1", (), Attributes("get", path="/apis/apps/v1")),
        ("GET", "/api/v1/pods", (), Attributes("list", "", "pods")),
        (
            "GET",
            "/api/v1/namespaces/n/pods",
            (("watch", "true"),),
            Attributes("watch", "", "pods", "", "n"),
        ),
        (
            "GET",
            "/api/v1/namespaces/n/pods",
            (("watch", "0"), ("fieldSelector", "metadata.name==p")),
            Attributes("list", "", "pods", "", "n", "p"),
        ),
        (
            "GET",
            "/api/v1/watch/namespaces/n/pods/p",
            (),
            Attributes("watch", "", "pods", "", "n", "p"),
        ),
        ("DELETE", "/api/v1/nodes", (), Attributes("deletecollection", "", "nodes")),
        ("DELETE", "/api/v1/nodes/a", (), Attributes("delete", "", "nodes", name="a")),
        (
            "GET",
            "/api/v1/namespaces/n",
            (),
            Attributes("get", "", "namespaces", "", "n", "n"),
        ),
        (
            "PUT",
            "/api/v1/namespaces/n/finalize",
            (),
            Attributes("update", "", "namespaces", "finalize", "n", "n"),
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/n/deployments/d/scale",
            (),
            Attributes("patch", "apps", "deployments", "scale", "n", "d"),
        ),
        (
            "POST",
            "/api/v1/namespaces/n/services/s/proxy/a/b",
            (),
            Attributes("create", "", "services", "proxy", "n", "s"),
        ),
        ("OPTIONS", "/api/v1/pods", (), Attributes("", "", "pods")),
    ],
)
def test_what_a_request_asks_for(
    method: str, path: str, query: tuple[tuple[str, str], ...], wanted: Attributes
) -> None:
    assert attributes_of(ApiRequest(method, path, query)) == wanted


def test_a_cluster_without_rbac_asks_nobody() -> None:
    cluster = empty_cluster()
    assert not cluster.rbac
    assert ask(cluster, "GET", "/api/v1/pods", user=ALICE)[1].status == 200


def test_a_request_without_a_user_is_not_asked() -> None:
    assert ask(GUARDED, "GET", "/api/v1/pods")[1].status == 200
    assert ask(GUARDED, "GET", "/api/v1/pods", user=ADMIN)[1].status == 200
    assert ask(GUARDED, "GET", "/api/v1/pods", user=ALICE)[1].status == 403


def test_watches_are_asked_too() -> None:
    request = ApiRequest("GET", "/api/v1/pods", (("watch", "1"),), user=ALICE)
    refused = backlog(GUARDED, request)
    assert isinstance(refused, ApiResponse)
    assert refused.status == 403
    cluster = with_role(GUARDED, "w", rule("watch", "pods"))
    assert backlog(cluster, request) == ()


def test_what_is_remembered_follows_the_roles() -> None:
    request = ApiRequest("GET", "/api/v1/pods", user=ALICE)
    allowed = with_role(GUARDED, "r", PODS)
    authorize(allowed, request)
    withdrawn, response = ask(allowed, "DELETE", f"{BASE}/clusterrolebindings/r")
    assert response.status == 200
    assert answer(withdrawn, request, NOW)[1].status == 403
    # An older value of the cluster still means what it meant.
    authorize(allowed, request)


def test_objects_that_no_decoder_made_do_no_harm() -> None:
    """With any content of a role: it allows its rules, and breaks nothing."""
    odd: list[Any] = [None, [], {}, "x", [None], [{"verbs": "get"}], [{"resources": 1}]]
    for rules in odd:
        role = {"metadata": {"name": "odd"}, "rules": rules}
        cluster, _ = ask(GUARDED, "POST", f"{BASE}/clusterroles", role, ADMIN)
        _, response = ask(cluster, "POST", f"{BASE}/clusterroles", role, ALICE)
        assert response.status == 403


def test_reasons_name_the_binding() -> None:
    cluster = with_role(GUARDED, "r", PODS, namespace="default")
    wanted = Attributes("get", "", "pods", "", "default", "p")
    assert decide(cluster, ALICE, wanted).reason == (
        'RBAC: allowed by RoleBinding "r/default" of Role "r" to User "alice"'
    )


def test_default_roles_are_the_sums_that_the_controller_would_write() -> None:
    for name in ("view", "edit", "admin"):
        _, response = ask(GUARDED, "GET", f"{BASE}/clusterroles/{name}")
        assert aggregated(GUARDED, response.body) is None, name


def test_aggregation_follows_labels() -> None:
    role: dict[str, Any] = {
        "metadata": {"name": "mine", "labels": {f"{RBAC}/aggregate-to-view": "true"}},
        "rules": [rule("get", "widgets", "x.dev")],
    }
    cluster, _ = ask(GUARDED, "POST", f"{BASE}/clusterroles", role)
    _, response = ask(cluster, "GET", f"{BASE}/clusterroles/view")
    rules = aggregated(cluster, response.body)
    assert rules is not None
    assert rules[0] == role["rules"][0]
    assert len(rules) == len(response.body["rules"]) + 1


def test_rights_are_covered_by_single_rules() -> None:
    owned = [Rule(("get",), ("",), ("pods",)), Rule(("*",), ("apps",), ("*",))]
    wanted = [Rule(("get", "list"), ("", "apps"), ("pods",))]
    assert uncovered(owned, wanted) == [Rule(("list",), ("",), ("pods",))]


# -------------------------------------------------------------------- escalation


def test_an_escalation_leaves_no_trace() -> None:
    own = rule("create,update,patch,get", "*", RBAC)
    cluster = with_role(GUARDED, "r", own, PODS)
    body = {"metadata": {"name": "more"}, "rules": [rule("*", "secrets")]}
    after, response = ask(cluster, "POST", f"{BASE}/clusterroles", body, ALICE)
    assert response.status == 403
    assert after is cluster
    message = response.body["message"]
    assert 'user "alice" (groups=["system:authenticated"])' in message
    assert message.endswith('\n{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}')
    body["rules"] = [PODS]
    assert ask(cluster, "POST", f"{BASE}/clusterroles", body, ALICE)[1].status == 201


def test_what_garbage_collection_writes_is_no_escalation() -> None:
    own = rule("patch,get", "clusterroles", RBAC)
    cluster = with_role(GUARDED, "r", own)
    patch = {"metadata": {"finalizers": ["x.dev/y"]}}
    request = ApiRequest(
        "PATCH",
        f"{BASE}/clusterroles/cluster-admin",
        body=patch,
        content_type="application/merge-patch+json",
        user=ALICE,
    )
    assert answer(cluster, request, NOW)[1].status == 200


# ----------------------------------------------------------------- impersonation


def headers(**given: str) -> list[tuple[str, str]]:
    return [(name.replace("_", "-"), value) for name, value in given.items()]


def test_without_headers_one_is_oneself() -> None:
    assert impersonated(GUARDED, ALICE, [("Accept", "*/*")]) is ALICE
    assert impersonated(GUARDED, None, []) is None


def test_the_admin_may_be_anybody() -> None:
    found = impersonated(
        GUARDED,
        ADMIN,
        [
            ("Impersonate-User", "bob"),
            ("Impersonate-Group", "a"),
            ("impersonate-group", "b"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Scopes%2fX", "y"),
        ],
    )
    extra = (("scopes/x", ("y",)),)
    assert found == User("bob", ("a", "b", EVERYBODY), "7", extra)


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("bob", (EVERYBODY,)),
        ("system:anonymous", ("system:unauthenticated",)),
        (
            "system:serviceaccount:n:robot",
            ("system:serviceaccounts", "system:serviceaccounts:n", EVERYBODY),
        ),
    ],
)
def test_groups_that_go_without_saying(name: str, groups: tuple[str, ...]) -> None:
    found = impersonated(GUARDED, ADMIN, headers(Impersonate_User=name))
    assert found == User(name, groups)


def test_impersonation_needs_permission_for_every_part() -> None:
    refused = impersonated(GUARDED, ALICE, headers(Impersonate_User="bob"))
    assert isinstance(refused, ApiResponse)
    assert refused.body["message"] == (
        'users "bob" is forbidden: User "alice" cannot impersonate resource "users" '
        'in API group "" at the cluster scope'
    )
    cluster = with_role(GUARDED, "imp", rule("impersonate", "users", names="bob"))
    both = headers(Impersonate_User="bob", Impersonate_Group="g")
    refused = impersonated(cluster, ALICE, both)
    assert isinstance(refused, ApiResponse)
    assert refused.body["details"] == {"name": "g", "kind": "groups"}
    assert impersonated(cluster, ALICE, both[:1]) == User("bob", (EVERYBODY,))
    account = headers(Impersonate_User="system:serviceaccount:n:robot")
    refused = impersonated(cluster, ALICE, account)
    assert isinstance(refused, ApiResponse)
    assert 'serviceaccounts "robot"' in refused.body["message"]


def test_a_group_without_a_user_is_nobody() -> None:
    refused = impersonated(GUARDED, ADMIN, headers(Impersonate_Group="g"))
    assert isinstance(refused, ApiResponse)
    assert refused.status == 500


# ------------------------------------------------------------------------ tokens

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROBOT = "system:serviceaccount:default:robot"


def with_robot() -> Cluster:
    return ask(GUARDED, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})[0]


def token_of(cluster: Cluster, **spec: Any) -> str:
    _, response = ask(cluster, "POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
    assert response.status == 201, response
    token: str = response.body["status"]["token"]
    return token


def test_a_token_is_its_account() -> None:
    cluster = with_robot()
    token = token_of(cluster)
    assert token == token_of(cluster)
    assert token.count(".") == 2
    user = user_of_token(cluster, token, NOW)
    assert user is not None
    assert user.name == ROBOT
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        EVERYBODY,
    )


def test_tokens_end() -> None:
    cluster = with_robot()
    token = token_of(cluster, expirationSeconds=600)
    assert user_of_token(cluster, token, NOW + 599) is not None
    assert user_of_token(cluster, token, NOW + 600) is None


def test_tokens_end_with_their_account() -> None:
    cluster = with_robot()
    token = token_of(cluster)
    gone, _ = ask(cluster, "DELETE", f"{ACCOUNTS}/robot")
    assert user_of_token(gone, token, NOW) is None
    # A namesake is another account.
    again, _ = ask(gone, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    assert user_of_token(again, token, NOW) is None
    assert user_of_token(again, token_of(again), NOW) is not None


def test_tokens_end_with_the_pod_that_they_are_bound_to() -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "serviceAccountName": "robot",
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    pods = "/api/v1/namespaces/default/pods"
    cluster, _ = ask(with_robot(), "POST", pods, pod)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    token = token_of(cluster, boundObjectRef=reference)
    user = user_of_token(cluster, token, NOW)
    assert user is not None
    assert ("authentication.kubernetes.io/pod-name", ("p",)) in user.extra
    gone, _ = ask(cluster, "DELETE", f"{pods}/p")
    assert user_of_token(gone, token, NOW) is None


def test_tokens_are_for_their_audience() -> None:
    cluster = with_robot()
    token = token_of(cluster, audiences=["vault"])
    assert user_of_token(cluster, token, NOW) is None
    assert user_of_token(cluster, token, NOW, ("x", "vault")) is not None


@pytest.mark.parametrize("token", ["", "abc", "a.b", "a.b.c", "..", "a.{}.c", "é.ü.ß"])
def test_other_tokens_are_nobodys(token: str) -> None:
    assert user_of_token(with_robot(), token, NOW) is None


def test_a_token_of_another_cluster_is_nobodys() -> None:
    cluster = with_robot()
    other = empty_cluster("1", rbac=True)
    other, _ = ask(other, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    assert user_of_token(other, token_of(cluster), NOW) is None
    head, payload, digest = token_of(cluster).split(".")
    assert user_of_token(cluster, f"{head}.{payload}x.{digest}", NOW) is None


# ----------------------------------------------------------------------- reviews

OWN = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def test_reviews_are_not_stored() -> None:
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    after, response = ask(GUARDED, "POST", OWN, {"spec": spec}, ALICE)
    assert response.body["status"] == {"allowed": False}
    assert after is GUARDED
    _, response = ask(GUARDED, "POST", OWN, {"spec": spec})
    assert response.body["status"] == {"allowed": True}


@pytest.mark.parametrize(
    "spec",
    [
        1,
        {"resourceAttributes": 1},
        {"nonResourceAttributes": []},
        {"resourceAttributes": {"verb": 1}},
        {"user": 1, "resourceAttributes": {}},
        {"groups": 1, "resourceAttributes": {}},
        {"user": "u", "extra": {"a": 1}, "resourceAttributes": {}},
    ],
)
@pytest.mark.parametrize("kind", ["selfsubjectaccessreviews", "subjectaccessreviews"])
def test_odd_reviews_are_answered(kind: str, spec: Any) -> None:
    path = f"/apis/authorization.k8s.io/v1/{kind}"
    _, response = ask(GUARDED, "POST", path, {"spec": spec})
    assert response.status in (201, 400, 422)


@pytest.mark.parametrize("spec", [1, {"token": 1}, {"token": "x", "audiences": 1}])
def test_odd_token_reviews_are_answered(spec: Any) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    _, response = ask(GUARDED, "POST", path, {"spec": spec})
    assert response.status in (201, 400, 422)


@pytest.mark.parametrize(
    "body",
    [
        1,
        [],
        {"spec": 1},
        {"spec": {"audiences": 1}},
        {"spec": {"audiences": [1]}},
        {"spec": {"expirationSeconds": "x"}},
        {"spec": {"expirationSeconds": True}},
        {"spec": {"boundObjectRef": 1}},
        {"spec": {"boundObjectRef": {"kind": [], "apiVersion": 1}}},
    ],
)
def test_odd_token_requests_are_answered(body: Any) -> None:
    _, response = ask(with_robot(), "POST", f"{ACCOUNTS}/robot/token", body)
    assert response.status in (201, 400, 422)


@pytest.mark.parametrize("name", ["eviction", "binding", "ephemeralcontainers"])
@pytest.mark.parametrize(
    "body",
    [
        None,
        1,
        [],
        {"metadata": 1},
        {"metadata": {"name": "p"}, "target": 1},
        {"metadata": {"name": "p"}, "deleteOptions": 1},
        {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": 1}},
        {"metadata": {"name": "p", "annotations": 1}, "target": {"name": 1}},
        {"metadata": {"name": "p"}, "spec": {"ephemeralContainers": 1}},
        {"metadata": {"name": "p"}, "spec": {"ephemeralContainers": [1]}},
    ],
)
def test_odd_bodies_of_subresources_are_answered(name: str, body: Any) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    cluster = answer(GUARDED, ApiRequest("POST", pods, body=pod), NOW)[0]
    for method in ("POST", "PUT"):
        _, response = ask(cluster, method, f"{pods}/p/{name}", body)
        assert response.status < 600


@pytest.mark.parametrize("finalizers", [1, {}, [1], [None], ["x", 1]])
def test_odd_finalizers_are_answered(finalizers: Any) -> None:
    body = {"metadata": {"name": "default"}, "spec": {"finalizers": finalizers}}
    _, response = ask(GUARDED, "PUT", "/api/v1/namespaces/default/finalize", body)
    assert response.status in (200, 400, 422)


# -------------------------------------------------------------------------- logs


def test_logs_come_from_an_annotation() -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {
        "metadata": {
            "name": "p",
            "annotations": {
                "simulated.fnop.dev/log": "one\ntwo\n",
                "simulated.fnop.dev/log.d": "of d\n",
            },
        },
        "spec": {
            "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
        },
    }
    cluster, response = ask(GUARDED, "POST", pods, pod)
    assert response.status == 201, response

    def log(**query: str) -> Any:
        request = ApiRequest("GET", f"{pods}/p/log", tuple(query.items()))
        return answer(cluster, request, NOW)[1].body

    assert log(container="c") == "one\ntwo\n"
    assert log(container="c", tailLines="1") == "two\n"
    assert log(container="c", limitBytes="2") == "on"
    assert log(container="d") == "of d\n"
