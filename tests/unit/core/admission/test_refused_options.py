"""Options of admission handlers: what API servers refuse is refused when declared."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.admission.configurations import (
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.webhook import CONDITIONS
from fnop.core.values.errors import RegistrationError
from fnop.core.values.manifest_selectors import selector_of
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.cluster.validation.selector_rules import label_selector
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.thorough import examples
from tests.webhook_options import (
    IGNORED,
    LATER,
    REFUSED,
    TAKEN,
    configuration,
    selector_in,
)

SERVED = Catalogue((Resource("example.com", "v1", "claims", "Claim", "claim"),))
ABOUT = Registration("x.fnop.dev", {"url": "https://a"})
PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def webhook(about: Registration = ABOUT, **how: Any) -> dict[str, Any]:
    """The webhook of a validation that is declared with these options."""
    registry = Registry()
    fnop.on.validate("claims.example.com", registry=registry, id="judge", **how)(
        lambda **_: None
    )
    made = configurations_of(groups_of(registry.handlers), SERVED, about)
    found: dict[str, Any] = made[Role.VALIDATE]["webhooks"][0]
    return found


def refusal(**how: Any) -> str:
    with pytest.raises(RegistrationError) as caught:
        webhook(**how)
    return str(caught.value)


def status(body: dict[str, Any]) -> int:
    """The simulated server's answer to a configuration."""
    request = ApiRequest("POST", PATH, body=thaw_json(body))
    return answer(empty_cluster(), request, 1_700_000_100.0)[1].status


@pytest.mark.parametrize("option", ["namespace_selector", "object_selector"])
@pytest.mark.parametrize(("selector", "sentence"), [*REFUSED, *LATER, *IGNORED])
def test_a_selector_that_no_server_takes_is_refused(
    option: str, selector: Any, sentence: str
) -> None:
    said = refusal(**{option: selector})
    assert said.startswith(f"@fnop.on.validate: {option}=")
    assert sentence in said
    if (selector, sentence) not in IGNORED:
        assert status(configuration("x", selector_in(selector))) in (400, 422)


@pytest.mark.parametrize("selector", TAKEN)
def test_a_selector_that_servers_take_is_taken(selector: Any) -> None:
    made = webhook(namespace_selector=selector, object_selector=selector)
    assert made["namespaceSelector"] == made["objectSelector"]
    assert status(configuration("x", selector_in(selector))) == 201
    assert status(configuration("x", made["objectSelector"])) == 201


def test_presence_is_no_text() -> None:
    """In JSON it would be the text "present"."""
    for selector in ({"tier": fnop.PRESENT}, {"matchLabels": {"tier": fnop.ABSENT}}):
        assert "Exists and DoesNotExist" in refusal(object_selector=selector)


WORDS = st.sampled_from(["a", "b.c/d", "a b", "-", "x" * 64, "", "é", "a/b/c", "A_b.c"])
EXPRESSIONS = st.fixed_dictionaries(
    {
        "key": WORDS,
        "operator": st.sampled_from(["In", "NotIn", "Exists", "exists", ""]),
    },
    optional={"values": st.lists(WORDS, max_size=2)},
)
SELECTORS = st.fixed_dictionaries(
    {"matchLabels": st.dictionaries(WORDS, WORDS, max_size=2)},
    optional={"matchExpressions": st.lists(EXPRESSIONS, max_size=2)},
)


@settings(max_examples=examples(60))
@given(SELECTORS)
def test_a_selector_is_refused_if_a_server_refuses_it(selector: dict[str, Any]) -> None:
    try:
        is_taken = bool(selector_of(selector, "object_selector="))
    except ValueError:
        is_taken = False
    assert is_taken == (not [*label_selector(selector, "objectSelector")])


def test_a_label_of_a_filter_and_a_selector_has_both_values() -> None:
    selector = {"tier": "a", "zone": "b"}
    made = webhook(labels={"tier": "c", "zone": "b"}, object_selector=selector)
    assert made["objectSelector"] == {
        "matchLabels": selector,
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["c"]}],
    }


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ({"a b": fnop.ABSENT}, "labels: 'a b': '' cannot be a label"),
        ({"a..b/c": "x"}, "labels: 'a..b/c': 'x' cannot be a label"),
        ({"tier": "a b"}, "labels: 'tier': 'a b' cannot be a label"),
        ({"tier": 1}, "labels={'tier': 1} fits no object, for its values are texts"),
    ],
)
def test_a_label_that_no_selector_can_have_is_refused(
    labels: dict[str, Any], sentence: str
) -> None:
    assert refusal(labels=labels).startswith(f"@fnop.on.validate: {sentence}")


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        ("a..b/c=x", "'a..b/c' in the label selector 'a..b/c=x' cannot be the name"),
        ("!té", "'té' in the label selector '!té' cannot be the name"),
        ("tier in (a, b$)", "'b$' in the label selector 'tier in (a, b$)' cannot be"),
        ("size>big", "'big' in the label selector 'size>big' is not a whole number"),
    ],
)
def test_an_operator_s_selector_is_one_of_labels(selector: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        Settings(selector=selector)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("// has(object.spec)", "it is empty"),
        ("has(object.spec", "the '(' at character 4 is not closed"),
        ("object.spec)", "the ')' at character 12 closes nothing"),
        ("object.list[0)", "the ')' at character 14 closes nothing"),
        ("object.spec = null", "'=' at character 13 is not CEL"),
        ("object.spec\x07 != null", r"'\x07' at character 12 is not CEL"),
        ("object.größe > 1", r"'\xf6' at character 10 is not CEL"),
        ("object.kind == 'Claim", "the text at character 16 is not closed"),
        (r"object.kind.matches('\d')", "an escape that CEL does not know"),
        ("'" + "a" * 100_000 + "' == object.kind", "more than 100,000 characters"),
    ],
)
def test_a_condition_that_is_not_cel_is_refused(expression: str, fault: str) -> None:
    said = refusal(match_conditions=[expression])
    assert said.startswith("@fnop.on.validate: match_conditions= has ")
    assert fault in said


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "has the name '', but a name has letters"),
        ("a b", "has the name 'a b', but"),
        ("x" * 64, "63 at most"),
        (1, "has the name 1, but"),
        *(
            (name, f"{name!r}, which is that of a condition of fn")
            for name in CONDITIONS
        ),
    ],
)
def test_a_condition_has_a_name_of_its_own(name: Any, sentence: str) -> None:
    assert sentence in refusal(match_conditions={name: "true"})


def test_a_webhook_has_64_conditions_with_those_that_fnop_adds() -> None:
    about = replace(ABOUT, account="anna", manager="fnop.dev/x", namespaces=("a-*",))
    lifted = {"deleted": True, "own_writes": True, "namespace_selector": {}}
    for how, added in (({}, 3), ({"field": "spec.size"}, 4), (lifted, 0)):
        most = ["true"] * (64 - added)
        assert (
            len(webhook(about, match_conditions=most, **how)["matchConditions"]) == 64
        )
        said = refusal(match_conditions=[*most, "true"], **how)
        assert f"{65 - added} expressions" in said
        assert f"fnop may add {added}; join some" in said


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"subresource": "Status"}, "subresource= is one name in small letters, such"),
        ({"subresource": "a b"}, "subresource= is one name in small letters, such"),
        (
            {"operations": 1},
            "operations= are CREATE, UPDATE, DELETE and CONNECT, not 1",
        ),
        (
            {"match_conditions": 1},
            "match_conditions= are CEL expressions by name, such",
        ),
    ],
)
def test_an_option_of_another_kind_is_refused(
    how: dict[str, Any], sentence: str
) -> None:
    assert refusal(**how).startswith(f"@fnop.on.validate: {sentence}")


@pytest.mark.parametrize(
    "name", ["hooks", "Hooks.dev", "a..dev", "a_b.dev", f"{'a.' * 95}b"]
)
def test_configurations_have_the_name_of_a_domain(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name webhook configurations"):
        Settings(admission_managed=name)


def test_the_longest_name_is_taken() -> None:
    about = replace(ABOUT, name=f"{'a.' * 94}b")
    assert Settings(admission_managed=about.name).admission_managed == about.name
    registry = Registry()
    fnop.on.validate("claims.example.com", registry=registry, id="j" * 99)(
        lambda **_: None
    )
    made = configurations_of(groups_of(registry.handlers), SERVED, about)
    (found,) = made[Role.VALIDATE]["webhooks"]
    assert len(found["name"]) == 253
    assert status(made[Role.VALIDATE]) == 201


def test_the_name_of_an_operator_is_one_of_a_domain() -> None:
    for name in ("a..b", "a.-b", "a-.b"):
        with pytest.raises(ValueError, match="the operator's name"):
            Settings(operator=name)
    assert Settings(operator="a-b.c").domain == "a-b.c.fnop.dev"
