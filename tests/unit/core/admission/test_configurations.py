"""The configurations of webhooks: an operator's registration at the API server."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.admission.configurations import (
    Registration,
    UnknownWebhook,
    asked_by,
    configurations_of,
    groups_of,
)
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.values.label_selectors import check_selector

SERVED = Catalogue((Resource("example.com", "v1", "claims", "Claim", "claim"),))


def webhook(selector: str, **how: Any) -> dict[str, Any]:
    registry = Registry()

    @fnop.on.validate("claims.example.com", registry=registry, id="judge", **how)
    def judge(**_: Any) -> None: ...

    about = Registration("x.fnop.dev", {"url": "https://a"}, selector=selector)
    made = configurations_of(groups_of(registry.handlers), SERVED, about)
    found: dict[str, Any] = made[Role.VALIDATE]["webhooks"][0]
    return found


def test_the_name_of_a_webhook_goes_before_the_id_of_a_handler() -> None:
    """The configurations point to names; an id may look like another one's name."""
    registry = Registry()
    claims, nothing = "claims.example.com", lambda **_: None
    for name in ("mutate", "other"):
        fnop.on.validate(claims, registry=registry, id=name)(nothing)
    for name in ("a", "b"):
        fnop.on.mutate(claims, registry=registry, id=name)(nothing)
    for name, timeout in (("spec-size", 10), ("spec.size", 3)):
        fnop.on.validate(claims, registry=registry, id=name, timeout=timeout)(nothing)
    groups = groups_of(registry.handlers)
    for each in groups:
        assert asked_by(groups, each.path) == each.ids
    assert asked_by(groups, "b") == {"b"}


def test_no_rule_names_a_subresource_beside_all_of_them() -> None:
    """The API server refuses such a configuration, and with it all its webhooks."""
    registry = Registry()
    for name, subresource in (("all", "*"), ("one", "status"), ("none", None)):

        @fnop.on.validate(
            "claims.example.com", registry=registry, id=name, subresource=subresource
        )
        def judge(**_: Any) -> None: ...

    about = Registration("x.fnop.dev", {"url": "https://a"})
    made = configurations_of(groups_of(registry.handlers), SERVED, about)
    rules = [rule for each in made[Role.VALIDATE]["webhooks"] for rule in each["rules"]]
    assert [each["resources"] for each in rules] == [["claims", "claims/*"]]


def test_an_operator_of_some_objects_is_asked_about_these_alone() -> None:
    found = webhook("app=db,!legacy", labels={"tier": "prod", "size": fnop.PRESENT})
    assert found["objectSelector"] == {
        "matchLabels": {"tier": "prod"},
        "matchExpressions": [
            {"key": "size", "operator": "Exists"},
            {"key": "app", "operator": "In", "values": ["db"]},
            {"key": "legacy", "operator": "DoesNotExist"},
        ],
    }
    assert webhook("")["objectSelector"] == {}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", []),
        (" a , b = c ", [("a", "Exists"), ("b", "In", "c")]),
        ("a!=b,c==d", [("a", "NotIn", "b"), ("c", "In", "d")]),
        ("x in (a, b),y", [("x", "In", "a", "b"), ("y", "Exists")]),
        ("x notin (a),! y", [("x", "NotIn", "a"), ("y", "DoesNotExist")]),
        ("a=", [("a", "In", "")]),
        ("in in (in)", [("in", "In", "in")]),
        # No expression has numbers.
        ("n<3,a", [("a", "Exists")]),
    ],
)
def test_a_selector_becomes_expressions(selector: str, expected: list[Any]) -> None:
    check_selector(selector)
    made = webhook(selector)["objectSelector"].get("matchExpressions", ())
    found = [(each["key"], each["operator"], *each.get("values", ())) for each in made]
    assert found == expected


EARLIER_AND_NOW: list[Any] = [{"timeout": 5}, {}]


def test_a_webhook_of_other_handlers_is_unknown_to_another_version() -> None:
    """Then that version asks all of its handlers."""
    versions = []
    for options in EARLIER_AND_NOW:
        registry = Registry()
        for name in ("privileged", "small", "named"):
            how = options if name == "privileged" else {}
            fnop.on.validate("claims", id=name, registry=registry, **how)(
                lambda **_: None
            )
        versions.append(groups_of(registry.handlers))
    former, present = versions
    (path,) = (each.path for each in present)
    assert asked_by(present, path) == {"privileged", "small", "named"}
    with pytest.raises(UnknownWebhook):
        asked_by(former, path)
