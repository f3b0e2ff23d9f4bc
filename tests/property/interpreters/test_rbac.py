"""RBAC in the simulated cluster agrees with a plain evaluator."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.cluster.access.escalation import uncovered
from fnop.interpreters.cluster.access.rbac import Rule, decide
from fnop.interpreters.cluster.requests.request import Attributes
from fnop.interpreters.runtime.protocol import ApiRequest, User
from tests.thorough import examples

RBAC = "rbac.authorization.k8s.io"
BASE = f"/apis/{RBAC}/v1"
BARE = empty_cluster(rbac=True)
Json = dict[str, Any]


def some(*texts: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(texts), min_size=1, max_size=3, unique=True)


RULES = st.fixed_dictionaries(
    {
        "verbs": some("get", "list", "*"),
        "apiGroups": some("", "apps", "*"),
        "resources": some("pods", "pods/log", "*/log", "*", "jobs", "pods/*"),
    },
    optional={"resourceNames": some("a", "b")},
)
PATHS = st.fixed_dictionaries(
    {
        "verbs": some("get", "post", "*"),
        "nonResourceURLs": some("/a", "/a/*", "/*", "*", "/a*"),
    }
)
NAMES = st.sampled_from(["one", "two", "gone"])
SPACES = st.sampled_from(["", "default", "kube-system"])
SUBJECTS = st.one_of(
    st.builds(lambda name: {"kind": "User", "name": name}, st.sampled_from("uv")),
    st.builds(lambda name: {"kind": "Group", "name": name}, st.sampled_from("gh")),
    st.builds(
        lambda name, space: {
            "kind": "ServiceAccount",
            "name": name,
            **({"namespace": space} if space else {}),
        },
        st.sampled_from("rs"),
        SPACES,
    ),
)
ROLES = st.dictionaries(
    st.tuples(SPACES, st.sampled_from(["one", "two"])),
    st.lists(RULES, max_size=3),
    max_size=4,
)
CLUSTER_RULES = st.lists(RULES | PATHS, max_size=3)
BINDINGS = st.lists(
    st.tuples(
        SPACES,
        st.booleans(),
        NAMES,
        st.lists(SUBJECTS, max_size=3),
    ),
    max_size=6,
)
USERS = st.builds(
    User,
    st.sampled_from(
        ["u", "v", "g", "system:serviceaccount:default:r", "system:serviceaccount:x:r"]
    ),
    st.lists(st.sampled_from("gh"), unique=True).map(tuple),
)
WISHES = st.one_of(
    st.builds(
        Attributes,
        st.sampled_from(["get", "list", "create"]),
        st.sampled_from(["", "apps"]),
        st.sampled_from(["pods", "jobs", "*"]),
        st.sampled_from(["", "log", "*"]),
        SPACES,
        st.sampled_from(["", "a", "c"]),
        st.just(""),
    ),
    st.builds(
        lambda verb, path: Attributes(verb, path=path),
        st.sampled_from(["get", "post"]),
        st.sampled_from(["/a", "/a/", "/a/b", "/b"]),
    ),
)


@settings(max_examples=examples(70))
@given(ROLES, CLUSTER_RULES, BINDINGS, USERS, st.lists(WISHES, min_size=1, max_size=6))
def test_it_decides_as_a_naive_evaluator(
    roles: dict[tuple[str, str], list[Json]],
    cluster_rules: list[Json],
    bindings: list[tuple[str, bool, str, list[Json]]],
    user: User,
    wishes: list[Attributes],
) -> None:
    roles = {**roles, ("", "one"): cluster_rules}
    cluster = BARE
    objects: list[tuple[str, str, Json]] = []
    for (space, name), rules in roles.items():
        plural = "roles" if space else "clusterroles"
        objects.append((space, plural, {"metadata": {"name": name}, "rules": rules}))
    for number, (space, own, name, subjects) in enumerate(bindings):
        plural = "rolebindings" if space else "clusterrolebindings"
        kind = "Role" if own and space else "ClusterRole"
        reference = {"apiGroup": RBAC, "kind": kind, "name": name}
        subjects = [
            s
            for s in subjects
            if space or s["kind"] != "ServiceAccount" or "namespace" in s
        ]
        body = {"metadata": {"name": f"b{number}"}, "roleRef": reference}
        objects.append((space, plural, {**body, "subjects": subjects}))
    for space, plural, body in objects:
        where = f"{BASE}/namespaces/{space}" if space else BASE
        request = ApiRequest("POST", f"{where}/{plural}", body=body)
        cluster, response, _ = answer(cluster, request, 0.0)
        assert response.status == 201, response
    for wanted in wishes:
        expected = naive(roles, bindings, user, wanted)
        assert decide(cluster, user, wanted).allowed is expected


def naive(
    roles: dict[tuple[str, str], list[Json]],
    bindings: list[tuple[str, bool, str, list[Json]]],
    user: User,
    wanted: Attributes,
) -> bool:
    """Any binding that reaches, to any rule that says so."""
    for space, own, name, subjects in bindings:
        if space and (space != wanted.namespace or wanted.path):
            continue
        rules = roles.get((space if own else "", name), [])
        if any(is_meant(s, user, space) for s in subjects) and any(
            says(rule, wanted) for rule in rules
        ):
            return True
    return False


def is_meant(subject: Json, user: User, space: str) -> bool:
    name = subject["name"]
    match subject["kind"]:
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case _:
            where = subject.get("namespace", space)
            return user.name == f"system:serviceaccount:{where}:{name}"


def says(rule: Json, wanted: Attributes) -> bool:
    if "*" not in rule["verbs"] and wanted.verb not in rule["verbs"]:
        return False
    if wanted.path:
        return any(
            wanted.path == url
            or (url.endswith("*") and wanted.path.startswith(url[:-1]))
            for url in rule.get("nonResourceURLs", ())
        )
    resource = wanted.resource
    accepted = {"*", resource}
    if wanted.subresource:
        full = f"{resource}/{wanted.subresource}"
        accepted = {"*", full, f"*/{wanted.subresource}"}
    return bool(
        {"*", wanted.group} & set(rule.get("apiGroups", ()))
        and accepted & set(rule.get("resources", ()))
        and wanted.name in (rule.get("resourceNames") or [wanted.name])
    )


ANY_RULE = st.builds(
    lambda rule: Rule(
        tuple(rule["verbs"]),
        tuple(rule["apiGroups"]),
        tuple(rule["resources"]),
        tuple(rule.get("resourceNames", ())),
    ),
    RULES,
)


@given(st.lists(ANY_RULE, max_size=3), st.lists(ANY_RULE, max_size=3))
def test_what_is_covered_gives_nothing_new(
    owned: list[Rule], wanted: list[Rule]
) -> None:
    """If nothing is lacking, no request is allowed by the new rules alone."""
    assert uncovered(wanted, wanted) == []
    if uncovered(owned, wanted):
        return
    for verb in ("get", "list", "create"):
        for group in ("", "apps", "batch"):
            for combined in ("pods", "pods/log", "jobs", "jobs/log", "other"):
                for name in ("", "a", "b", "c"):
                    if allowed(wanted, verb, group, combined, name):
                        assert allowed(owned, verb, group, combined, name)


def allowed(rules: list[Rule], verb: str, group: str, combined: str, name: str) -> bool:
    return any(
        rule.covers_resource(verb, group, combined)
        and (not rule.names or name in rule.names)
        for rule in rules
    )
