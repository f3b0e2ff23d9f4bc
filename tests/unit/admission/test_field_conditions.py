"""The match conditions of `field=`: they fail for no object, and ask about enough."""

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
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.roles import Role
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
WANTED = [None, fnop.PRESENT, fnop.ABSENT, "a", "it's", "a\rb", 7, 2**70, True]


def judging(field: Any, value: Any) -> Registry:
    registry = Registry()
    how = {} if value is None else {"value": value}

    @fnop.on.validate(
        "claims.example.com", registry=registry, id="judge", field=field, **how
    )
    def judge(**_: Any) -> None:
        raise fnop.Denied("asked")

    return registry


def conditions(registry: Registry) -> list[str]:
    made = configurations_of(groups_of(registry.handlers), Catalogue((CLAIMS,)), ABOUT)
    (webhook,) = made[Role.VALIDATE]["webhooks"]
    return [each["expression"] for each in webhook["matchConditions"]]


def asked(expression: str, new: Any, old: Any = None) -> bool | str:
    request = {"operation": "CREATE", "userInfo": {"username": "u"}, "options": {}}
    return condition(expression, {**request, "object": new, "oldObject": old})


def objects(leaf: Any) -> st.SearchStrategy[Any]:
    """A spec in which `tls.mode` may be, or something else on the way to it."""
    odd = st.sampled_from(ODD)
    mode = odd | st.builds(lambda found: {"mode": found}, odd | st.just(leaf))
    return odd | st.builds(lambda found: {"tls": found}, mode)


@settings(max_examples=examples(60))
@given(st.sampled_from(WANTED), st.data())
def test_whom_the_filter_selects_the_api_server_asks_about(
    value: Any, data: st.DataObject
) -> None:
    leaf = value if isinstance(value, (str, int)) else "a"
    spec = data.draw(objects(leaf))
    new = {
        "apiVersion": "example.com/v1",
        "kind": "Claim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": spec,
    }
    registry = judging("spec.tls.mode", value)
    is_selected = not review(registry, None, new).allowed
    for expression in conditions(registry):
        found = asked(expression, new)
        assert isinstance(found, bool), (found, expression)
        assert found or not is_selected, (expression, spec)


@pytest.mark.parametrize("name", ["in", "null", "namespace", "a-b", "ok"])
def test_a_name_that_cel_does_not_take_is_left_to_the_filter(name: str) -> None:
    found = conditions(judging(f"spec.{name}", None))
    assert [condition_fault(each) for each in found] == [""] * len(found)
    assert any("spec" in each for each in found) == (name == "ok")


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
    """While the operator is down nobody could log in."""
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
