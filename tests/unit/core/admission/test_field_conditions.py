"""Match conditions fail for no object, and ask about enough."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.admission.configurations import (
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.own_writes import condition as of_others
from fnop.core.admission.reviewing import Reviewer
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.values.cel import fault_of
from fnop.effects.structs import replace
from fnop.testing import review
from tests.thorough import examples

cel = pytest.importorskip("cel_expr_python")
from fnop.interpreters.cluster.schema.cel import (  # noqa: E402
    condition,
    condition_fault,
)

ABOUT = Registration("x.fnop.dev", {"url": "https://a"})
CLAIMS = Resource("example.com", "v1", "claims", "Claim", "claim")
ODD: list[Any] = [None, "text", ["list"], 7, True, {}]
WANTED = [
    None,
    fnop.PRESENT,
    fnop.ABSENT,
    "a",
    "it's",
    "a\rb",
    7,
    2**70,
    True,
    "OBJECT",
]


def judging(field: Any, value: Any) -> Registry:
    registry = Registry()
    how = {} if value is None else {"value": value}

    @fnop.on.validate(
        "claims.example.com", registry=registry, id="judge", field=field, **how
    )
    def judge(**_: Any) -> None:
        raise fnop.Denied("asked")

    return registry


def conditions(registry: Registry, about: Registration = ABOUT) -> list[str]:
    made = configurations_of(groups_of(registry.handlers), Catalogue((CLAIMS,)), about)
    (webhook,) = made[Role.VALIDATE]["webhooks"]
    return [each["expression"] for each in webhook["matchConditions"]]


def asked(expression: str, new: Any, old: Any = None) -> bool | str:
    request = {"operation": "CREATE", "userInfo": {"username": "u"}, "options": {}}
    return condition(expression, {**request, "object": new, "oldObject": old})


# Most of them are not names in CEL, and go into brackets.
NAMES = st.sampled_from(
    [
        "tls",
        "in",
        "a-b",
        "app.kubernetes.io/name",
        "it's",
        'a"b\\',
        "null",
        "é",
        "OBJECT",
    ]
)


def objects(outer: str, inner: str, leaf: Any) -> st.SearchStrategy[Any]:
    """A spec that may have a field, or another value on the path to it."""
    odd = st.sampled_from(ODD)
    found = odd | st.builds(lambda each: {inner: each}, odd | st.just(leaf))
    return odd | st.builds(lambda each: {outer: each}, found)


UNSAID = ("a\rb", 2**70)


@settings(max_examples=examples(100))
@given(st.sampled_from(WANTED), NAMES, NAMES, st.data())
def test_whom_the_filter_selects_the_api_server_asks_about(
    value: Any, outer: str, inner: str, data: st.DataObject
) -> None:
    leaf = value if isinstance(value, (str, int)) else "a"
    new = {
        "apiVersion": "example.com/v1",
        "kind": "Claim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": data.draw(objects(outer, inner, leaf)),
    }
    registry = judging(["spec", outer, inner], value)
    is_selected = not review(registry, None, new).allowed
    _, *of_fields = conditions(registry)
    assert len(of_fields) == (value not in UNSAID)
    for expression in of_fields:
        assert asked(expression, new) is is_selected, (expression, new)
        assert asked(expression, None, new) is is_selected, "a deletion"


PARTS = st.sampled_from(["a", "team-*", "*-test", "te?m-x", "team-x"])
PARTS_OR_NOT = PARTS | PARTS.map(lambda part: f"!{part}")
OPTIONS = st.lists(st.lists(PARTS_OR_NOT, min_size=1, max_size=3).map(",".join))


@settings(max_examples=examples(30))
@given(OPTIONS.filter(bool), st.sampled_from(["a", "team-x", "team-test", "other"]))
def test_the_namespaces_of_patterns_alone_are_asked_about(
    options: list[str], place: str
) -> None:
    about = replace(ABOUT, namespaces=tuple(options))
    request = {"operation": "CREATE", "userInfo": {"username": "u"}, "options": {}}
    found = [
        condition(
            each, {"object": {"metadata": {}}, "oldObject": None, **request, **at}
        )
        for each in conditions(judging(None, None), about)
        for at in ({"namespace": place}, {}, {"namespace": ""})
    ]
    is_served = place in served_namespaces(options, (place,))
    if not has_patterns(options):  # the namespace selector says it
        assert found == [True] * 3
        return
    assert found == [*[True] * 3, is_served, True, True]


@pytest.mark.parametrize("name", ["in", "null", "namespace", "a-b", "ok", "while"])
def test_every_name_of_a_field_can_be_said(name: str) -> None:
    for field in (name, f"spec.{name}", f"spec.{name}.size", f"{name}.{name}"):
        found = conditions(judging(field, None))
        assert [condition_fault(each) for each in found] == ["", ""]


@pytest.mark.parametrize(
    ("field", "value"),
    [("spec.a\x07", None), ("spec.size", "x" * 60_000), ("spec.size", 1.5)],
)
def test_what_cel_cannot_say_is_left_to_the_filter(field: str, value: Any) -> None:
    found = conditions(judging(field, value))
    assert not any("spec" in each for each in found)


# What the lexer of CEL knows, and a bit more, in any order.
TOKENS = st.sampled_from(
    [
        *("object", ".spec", " ", "(", ")", "[", "]", "{", "}", "==", "=", "&&", "&"),
        *("'", '"', "\\", r"\d", r"\n", r"\x1F", r"\u00e9", "r'", "b'", "'''", "//"),
        *("é", "\x07", "\n", "1", "0x1f", "1.5e3", "in", "?", ":", ",", "$", "#", "|"),
    ]
)


@settings(max_examples=examples(150))
@given(st.lists(TOKENS, max_size=7).map("".join))
def test_what_is_refused_no_compiler_reads(expression: str) -> None:
    if fault_of(expression):
        assert condition_fault(expression), expression


@pytest.mark.parametrize(
    "expression",
    [
        r"object.kind.matches(r'\d') && has(object.a) // )",
        r"""object == {'a': [1, 2u, .5]}['''a'''] ? true : b"\101" == b'A'""",
        r'object.metadata.labels["it\'s"] != """(' + '\n"""',
        "\tobject.spec\r\n  .exists(x, x > -0x1F)",
        "object.spec[?'a'].orValue(true)",
    ],
)
def test_what_compiles_is_taken(expression: str) -> None:
    assert (fault_of(expression), condition_fault(expression)) == ("", "")


def test_a_connection_by_a_person_is_not_the_operator_s() -> None:
    expression = of_others("anna", "fnop.dev/x")
    for options, expected in (
        (None, True),
        ({}, True),
        ({"fieldManager": "kubectl"}, True),
        ({"fieldManager": "fnop.dev/x"}, False),
    ):
        request = {
            "operation": "CONNECT",
            "userInfo": {"username": "anna"},
            "options": options,
            "object": None,
            "oldObject": None,
        }
        assert condition(expression, request) is expected


def test_who_asks_for_all_kinds_does_not_mean_reviews_of_access() -> None:
    """While the operator is down, users could not log in.

    A handler that names them may share its webhook: the other handler is not called.
    """
    group = "authentication.k8s.io"
    reviews = Resource(group, "v1", "tokenreviews", "TokenReview", verbs=("create",))
    served = Catalogue((CLAIMS, reviews))
    found = {}
    for name in ("*", f"tokenreviews.{group}"):
        registry = Registry()
        fnop.on.validate(name, id="judge", registry=registry)(lambda **_: None)
        made = configurations_of(groups_of(registry.handlers), served, ABOUT)
        (webhook,) = made[Role.VALIDATE]["webhooks"]
        found[name] = [each["resources"] for each in webhook["rules"]]
    assert found == {"*": [["claims"]], f"tokenreviews.{group}": [["tokenreviews"]]}

    registry = Registry()
    for name in ("*", f"tokenreviews.{group}"):
        fnop.on.validate(name, id=name, registry=registry)(lambda **_: None)
    (shared,) = groups_of(registry.handlers)
    login = Request("1", "CREATE", group, "v1", "tokenreviews", "TokenReview")
    reviewer = Reviewer(registry.handlers, catalogue=served)
    asked = [each.id for each in shared.handlers if reviewer.is_about(each, login)]
    assert asked == [f"tokenreviews.{group}"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("objct.spec == null", "undeclared reference to 'objct"),
        ("object.spec ==", "Syntax error"),
        ("'a'", "must evaluate to bool"),
    ],
)
def test_what_needs_a_compiler_the_server_refuses(expression: str, why: str) -> None:
    assert fault_of(expression) == ""
    assert why in condition_fault(expression)
