"""Request lines: a name in an object cannot send a request elsewhere.

Names, namespaces, selectors and the like come from specs.  Each is refused when the
effect is built, or the request line has exactly the segments that were meant.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote

from hypothesis import example, given, settings, strategies as st
from yarl import URL

import fnop
from fnop.adapters.kubernetes.client import _encoded
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.ownership import owner_of
from fnop.core.api.resources import Resource, path_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.report.events import event_manifest
from fnop.core.seam.commands import Perform, Subject
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import Target
from fnop.interpreters.cluster.requests.selectors import selection_of
from fnop.interpreters.runtime.requests import request_for
from tests.thorough import examples

PODS = Resource("", "v1", "pods", "Pod", verbs=("get",), subresources=("status",))
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "R", "", False)
SAMPLES = (
    "",
    ".",
    "..",
    "../../secrets/x",
    "a/b",
    "a\\b",
    "x?fieldManager=me",
    "x#y",
    "%2e%2e",
    "..%2fsecrets",
    "a b",
    " ",
    "a\r\nHost: b\r\n\r\nGET / HTTP/1.1",
    "a\nb",
    "a\n",
    "nul\x00",
    "\x7f",
    "ü",
    "\ud800",
    "x" * 254,
    "a;b",
    "a,b",
    "a=b",
    "system:node",
    "*",
    "web-0.web",
)
texts = st.one_of(
    st.sampled_from(SAMPLES),
    st.text(st.characters(codec=None), max_size=12),
    st.text("ab.%/?#\\ \r\n-:=,", max_size=6),
)


def encodable(text: str) -> bool:
    return all(not "\ud800" <= letter <= "\udfff" for letter in text)


LINE = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")


def built(make: Any) -> Any:
    """The effect, or None if it is refused, which only a ValueError does."""
    try:
        return make()
    except ValueError as problem:
        said = str(problem)
    assert "\n" not in said
    assert len(said) < 300
    return None


def sent(effect: Any, resource: Resource, namespace: Any, name: Any) -> tuple[Any, Any]:
    """The segments of the request's path, and its query, as a server reads them."""
    request = request_for(Perform(1, effect, resource, namespace, name), "fnop.dev/x")
    assert LINE.fullmatch(request.path), request.path
    query = _encoded(request.query)
    assert re.fullmatch(r"[!-~]*", query)
    url = URL(f"http://server{request.path}?{query}", encoded=True)
    assert url.raw_path == request.path
    assert url.fragment == ""
    segments = [unquote(part, errors="strict") for part in url.raw_path.split("/")[1:]]
    return segments, parse_qsl(url.raw_query_string, keep_blank_values=True)


@given(texts, texts)
@example("web", "prod")
def test_an_object_has_its_own_path(name: str, namespace: str) -> None:
    for build in (
        lambda: fnop.get("pods", name=name, namespace=namespace),
        lambda: fnop.delete("pods", name=name, namespace=namespace),
        lambda: fnop.patch(
            fnop.target("pods", name=name, namespace=namespace), spec={"a": 1}
        ),
    ):
        effect = built(build)
        if effect is not None:
            where = effect.target
            path, _ = sent(effect, PODS, where.namespace, where.name)
            assert path == ["api", "v1", "namespaces", namespace, "pods", name]


@given(texts, texts)
@example("web", "prod")
def test_a_manifest_has_its_own_path(name: str, namespace: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
    }
    apply = built(lambda: fnop.apply(manifest))
    create = built(lambda: fnop.create(manifest))
    assert (apply is None) == (create is None)
    if apply is None:
        return
    where = ["api", "v1", "namespaces", namespace, "pods"]
    if not namespace:  # the same as None: the handled object's
        where, namespace = ["api", "v1", "namespaces", "own", "pods"], "own"
    assert sent(apply, PODS, namespace, name)[0] == [*where, name]
    assert sent(create, PODS, namespace, name)[0] == where


@given(texts)
@example("status")
def test_a_subresource_is_one_segment(name: str) -> None:
    effect = built(lambda: fnop.patch(status={"a": 1}, subresource=name))
    if effect is not None:
        path, _ = sent(effect, PODS, "ns", "web")
        assert path == ["api", "v1", "namespaces", "ns", "pods", "web", name]


@given(texts, texts, texts)
@example("prod", "app=x,tier in (a)", "metadata.name=x")
def test_selectors_stay_in_their_parameters(
    namespace: str, labels: str, fields: str
) -> None:
    effect = built(
        lambda: fnop.list("pods", namespace=namespace, labels=labels, fields=fields)
    )
    if effect is not None:
        where = None if namespace == "*" else namespace
        path, query = sent(effect, PODS, where, None)
        inside = [] if where is None else ["namespaces", namespace]
        assert path == ["api", "v1", *inside, "pods"]
        given = {"labelSelector": labels, "fieldSelector": fields}
        assert dict(query) == {key: text for key, text in given.items() if text}


labels_of = st.dictionaries(texts, texts, max_size=2)


@given(texts, texts, labels_of)
@example("app", "x", {})
@example("app", "x,tier in (a)", {})
@example("app", "x", {"b": "y)"})
def test_a_mapping_of_labels_selects_no_more(
    key: str, value: str, labels: dict[str, str]
) -> None:
    effect = built(lambda: fnop.list("pods", labels={key: value}))
    if effect is None:
        return
    selection = selection_of(None, {"labelSelector": effect.label_selector})
    assert selection.holds({"metadata": {"labels": {key: value}}})
    found = selection.holds({"metadata": {"labels": labels}})
    assert found == (labels.get(key) == value)


@given(texts, texts)
@example("a,b=c", "a")
def test_a_mapping_of_fields_selects_no_more(value: str, other: str) -> None:
    effect = built(lambda: fnop.list("pods", fields={"metadata.name": value}))
    if effect is not None:
        selection = selection_of(None, {"fieldSelector": effect.field_selector})
        for each in (value, other):
            found = selection.holds({"metadata": {"name": each}})
            assert found == (each == value)


@given(texts)
@example("a b?c#d%")
def test_what_the_server_has_shown_is_addressed(name: str) -> None:
    """Kubernetes: IsValidPathSegmentName; more than people write may be there."""
    target = Target.existing("clusterroles", name, None)
    assert (target.name, target.namespace, target.uid) == (name, None, None)
    if name in ("", ".", "..") or set(name) & set("/%") or not encodable(name):
        return  # no object has such a name
    path, _ = sent(fnop.effects.Get(target), ROLES, None, name)
    assert path == ["apis", ROLES.group, "v1", "clusterroles", name]


@given(texts, texts, texts, texts)
def test_the_parts_of_a_kind_are_segments(
    group: str, version: str, plural: str, kind: str
) -> None:
    """They come from discovery, and so from any server of a group."""
    resource = Resource(group, version, plural, kind)
    try:
        path = path_of(resource, "ns", "x")
    except (ValueError, UnicodeEncodeError):
        return
    first = ["apis", group] if group else ["api"]
    segments = [unquote(part) for part in path.split("/")[1:]]
    assert LINE.fullmatch(path)
    assert segments == [*first, version, "namespaces", "ns", plural, "x"]


@given(texts)
def test_no_name_of_a_kind_means_another(kind: str) -> None:
    found = Catalogue((PODS, ROLES)).lookup(kind)
    assert found in (None, PODS, ROLES)
    effect = built(lambda: fnop.get(kind, name="x"))
    assert effect is None or effect.target.resource == kind


@settings(max_examples=examples(50))
@given(texts)
def test_an_owner_of_an_impossible_name_is_none(name: str) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u"}
    reference["controller"] = True  # type: ignore[assignment]
    body = Body({"metadata": {"namespace": "ns", "ownerReferences": [reference]}})
    owner = owner_of(body, None)
    assert owner is None or owner.name == name


@given(st.sampled_from(SAMPLES).filter(encodable) | st.text(max_size=12))
def test_an_event_can_be_named_after_any_object(name: str) -> None:
    event = fnop.event("Reason", "message")
    subject = Subject("clusterroles.v1.", None, name or "x", "u", "R", "v1")
    manifest = event_manifest(event, subject, Settings(), Now(0.0, 0.0), "1")
    made = fnop.create(manifest)
    assert re.fullmatch(
        r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", made.manifest["metadata"]["name"]
    )
