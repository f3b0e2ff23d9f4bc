"""Options of admission handlers that API servers refuse, and such that they take.

Each is tried on the handlers, on a simulated server, and on a real one.
"""

from __future__ import annotations

from typing import Any

__all__ = ["IGNORED", "LATER", "REFUSED", "TAKEN", "configuration", "selector_in"]

DOMAIN = ".".join(["a" * 63] * 4)  # 255 characters


def expression(**given: Any) -> dict[str, Any]:
    return {"matchExpressions": [given]}


REFUSED: list[tuple[Any, str]] = [
    ({"a b": "x"}, "'a b' cannot be the name of a label"),
    ({"": "x"}, "'' cannot be the name of a label"),
    ({"/tier": "x"}, "'/tier' cannot be the name of a label"),
    ({"a..b/tier": "x"}, "'a..b/tier' cannot be the name of a label"),
    ({"A.b/tier": "x"}, "'A.b/tier' cannot be the name of a label"),
    ({"a/b/c": "x"}, "'a/b/c' cannot be the name of a label"),
    ({"-tier": "x"}, "'-tier' cannot be the name of a label"),
    ({"é": "x"}, "cannot be the name of a label"),
    ({"t" * 64: "x"}, "63 at most"),
    ({f"{DOMAIN}/tier": "x"}, "cannot be the name of a label"),
    ({"tier": "a b"}, "the label 'tier' cannot have the value 'a b'"),
    ({"tier": "x" * 64}, "63 at most, and begins and ends with a letter or digit"),
    ({"tier": "a."}, "cannot have the value 'a.'"),
    ({"tier": "a\n"}, r"cannot have the value 'a\n'"),
    ({"tier": 1}, "has the value 1, but values of labels are texts; write '1'"),
    (
        {"tier": True},
        "has the value True, but values of labels are texts; write 'true'",
    ),
    ({"matchLabels": {"tier": 1.5}}, "write '1.5'"),
    (
        {"matchLabels": {"tier": ["a"]}},
        "for several write {'matchExpressions': [{'key'",
    ),
    ({"matchLabels": ["tier"]}, "matchLabels is a mapping, such as"),
    ({"matchExpressions": {"key": "a"}}, "matchExpressions is a list, such as"),
    ({"matchExpressions": ["tier"]}, "matchExpressions[0] is a mapping, such as"),
    (expression(operator="Exists"), "matchExpressions[0] has no key; name a label"),
    (expression(key="a b", operator="Exists"), "[0]: 'a b' cannot be the name"),
    (expression(key="a"), "has no operator; there are In, NotIn, Exists and Does"),
    (expression(key="a", operator="in", values=["b"]), "'in'; did you mean 'In'?"),
    (expression(key="a", operator="Exist"), "'Exist'; did you mean 'Exists'?"),
    (expression(key="a", operator="Gt", values=["1"]), "operator 'Gt'; there are In,"),
    (expression(key="a", operator="In"), "In needs values, such as ['prod']"),
    (expression(key="a", operator="NotIn", values=[]), "NotIn needs values"),
    (expression(key="a", operator="In", values="b"), "values is a list of texts"),
    (expression(key="a", operator="In", values=[1]), "the value 1, but values of"),
    (expression(key="a", operator="Exists", values=["b"]), "Exists takes no values"),
    (expression(key="a", operator="DoesNotExist", values=[""]), "takes no values"),
]
"""Selectors that every server refuses, and a part of fnop's sentence."""

LATER: list[tuple[Any, str]] = [
    (expression(key="a", operator="In", values=["b c"]), "have the value 'b c'"),
    (expression(key="a", operator="NotIn", values=["b", "-c"]), "have the value '-c'"),
]
"""Such that servers refuse since Kubernetes 1.27."""

IGNORED: list[tuple[Any, str]] = [
    ({"matchLabel": {"a": "b"}}, "no field 'matchLabel'; did you mean 'matchLabels'?"),
    ({"matchexpressions": []}, "'matchexpressions'; did you mean 'matchExpressions'?"),
    ({"matchLabels": {}, "tier": "x"}, "no field 'tier'; labels go into matchLabels"),
    (
        expression(key="a", operator="Exists", value="b"),
        "matchExpressions[0] has no field 'value'; did you mean 'values'?",
    ),
    ({"tier": None}, "the label 'tier' has no value; for any value write"),
]
"""Such that servers take and read in another way than they were meant."""

TAKEN: list[Any] = [
    {},
    {"tier": "prod", "example.com/Tier_1": "", "1": "0"},
    {"t" * 63: "x" * 63, f"{DOMAIN[:253]}/tier": "A.b_c-d"},
    {"matchLabels": None, "matchExpressions": []},
    expression(key="a.b/c", operator="NotIn", values=["", "b"]),
    expression(key="a", operator="Exists", values=[]),
    expression(key="a", operator="DoesNotExist"),
]
"""Such that every server takes."""


def selector_in(given: Any) -> Any:
    """The selector of a manifest that an option would come to, were it not checked."""
    is_one = isinstance(given, dict) and any(
        isinstance(value, (dict, list)) for value in given.values()
    )
    return given if is_one else {"matchLabels": given}


def configuration(
    name: str, selector: Any = None, *, webhook: str = "judge.hooks.test", **more: Any
) -> dict[str, Any]:
    """A configuration with one webhook, which matches no object that tests write."""
    rule = {
        "apiGroups": ["nothing.test"],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["nothings"],
    }
    hook = {
        "name": webhook,
        "clientConfig": {"url": "https://127.0.0.1:1/judge"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "objectSelector": selector,
        "namespaceSelector": selector,
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
