"""Rules in CEL: x-kubernetes-validations."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.protocol import MERGE_PATCH
from tests.conformance.suite import Case, Step

__all__ = ["CASES", "CRDS_136"]

Json = dict[str, Any]

GROUP = "cel.conf.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
INT: Json = {"type": "integer"}
S: Json = {"type": "string", "maxLength": 9}


def crd(kind: str, schema: Json, **root: Any) -> Json:
    plural = f"{kind.lower()}s"
    whole = {"type": "object", "properties": {"spec": schema}, **root}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": whole},
                }
            ],
        },
    }


def ruled(schema: Json, *rules: Json) -> Json:
    return {**schema, "x-kubernetes-validations": list(rules)}


RULES = (
    {"rule": "!has(self.a) || self.a < 10"},
    {"rule": "!has(self.b) || self.b.size() < self.a", "fieldPath": ".b"},
    {"rule": "!has(self.n) || self.n < 1.0", "message": " too big "},
    {"rule": "self.a >= oldSelf.a", "message": "no shrinking"},
    {
        "rule": "!oldSelf.hasValue() || !has(self.b) || self.b != 'late'",
        "optionalOldSelf": True,
    },
    {"rule": "!has(self.a) || self.a != 8", "messageExpression": "'a is 8'"},
    {"rule": "!has(self.a) || self.a != 6", "reason": "FieldValueForbidden"},
    {"rule": "!has(self.a) || self.a != 5", "reason": "FieldValueDuplicate"},
    {"rule": "!has(self.d__dash__e) || self.d__dash__e == 'x'"},
    {"rule": "!has(self.t) || self.t < timestamp('2020-01-01T00:00:00Z')"},
    {"rule": "!has(self.port) || self.port != 3"},
)
SPEC: Json = {
    "type": "object",
    "properties": {
        "a": INT,
        "b": S,
        "n": {"type": "number"},
        "d-e": S,
        "t": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": True},
        "l": {
            "type": "array",
            "maxItems": 5,
            "items": ruled(
                {"type": "object", "properties": {"x": INT}}, {"rule": "self.x > 0"}
            ),
        },
        "s": ruled(S, {"rule": "self != 'bad'", "message": "no bad"}),
        "m": {
            "type": "object",
            "maxProperties": 5,
            "additionalProperties": ruled(INT, {"rule": "self < 5"}),
        },
        "r": {"type": "object", "required": ["q"], "properties": {"q": INT}},
    },
}
LIBRARY = {
    "lists": "[1, 2].isSorted() && [3, 1].min() == 1 && [1, 2].indexOf(2) == 1",
    "texts": "'a,b'.split(',')[1] == 'b' && 'AbC'.lowerAscii() == 'abc'",
    "patterns": "'abc 12'.find('[0-9]+') == '12' && 'a1'.findAll('[0-9]').size() == 1",
    "addresses": "cidr('10.0.0.0/8').containsIP('10.1.1.1') && ip('::1').isLoopback()",
    "quantities": "quantity('1Gi').isGreaterThan(quantity('1G'))",
    "equal quantities": "quantity('1Gi') == quantity('1024Mi')",
    "locators": "url('http://a:8/b?c=d').getPort() == '8'",
    "sets": "sets.intersects([1, 2], [2, 3])",
    "versions": "semver('1.2.3').isLessThan(semver('1.10.0'))",
    "optional": "optional.of(1).hasValue()",
}
CRDS_136 = (
    crd(
        "Law",
        ruled(SPEC, *RULES),
        **ruled({}, {"rule": "self.metadata.name != 'zz'"}),
    ),
    crd(
        "Lib",
        ruled(
            {"type": "object", "properties": {"use": S}},
            *(
                {"rule": f"self.use != '{name[:9]}' || !({rule})", "message": name}
                for name, rule in LIBRARY.items()
            ),
        ),
    ),
)
PATH = f"/apis/{GROUP}/v1/namespaces/{{ns}}/laws"
LIBS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/libs"


def law(code: int, name: str = "a", **spec: Any) -> Step:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Law",
        "metadata": {"name": name},
        "spec": spec,
    }
    return Step("POST", PATH, body, code=code)


def case(name: str, *steps: Step) -> Case:
    return Case(f"cel: {name}", steps, ("1.36",))


def patch(code: int, name: str = "a", **spec: Any) -> Step:
    return Step("PATCH", f"{PATH}/{name}", {"spec": spec}, MERGE_PATCH, code=code)


EVALUATED = (
    case("a failed rule", law(422, a=11)),
    case("a path and a missing key", law(422, a=1, b="xyz"), law(422, b="xyz")),
    case("a message", law(422, n=3), law(201, n=0)),
    case("a message that is computed", law(422, a=8)),
    case("reasons", law(422, a=6), law(422, a=5)),
    case("names that are no identifiers", law(422, **{"d-e": "y"})),
    case(
        "moments",
        law(422, t="2021-01-01T00:00:00Z"),
        law(201, t="2019-01-01T00:00:00Z"),
    ),
    case("an integer or a text", law(422, port=3), law(201, port="3")),
    case("items", law(422, l=[{"x": 0}, {}, {"x": 1}])),
    case("texts", law(422, s="bad"), law(201, s="good")),
    case("values of a map", law(422, m={"q": 7, "r": 1})),
    case("the root", law(422, name="zz")),
    case("not where the schema fails", law(422, a="x"), law(422, a=11, r={})),
    case("transitions", law(201, a=3), patch(422, a=2), patch(200, a=4)),
    case("optional old values", law(201, a=9, b="late"), patch(422, a=9, n=0.5)),
)


def rule(name: str, text: str, **more: Any) -> Case:
    """A rule that no definition may have."""
    node = {"type": "object", "properties": {"a": INT, "b": S}}
    body = crd("Rule", ruled(node, {"rule": text, **more}))
    step = Step("POST", DEFINITIONS, body, query={"dryRun": "All"}, code=422)
    return case(name, step)


WRITTEN = (
    rule("a rule of bad syntax", "self.a <"),
    rule("a rule of an unknown field", "self.x > 1"),
    rule("a rule of an unknown function", "foo(1)"),
    rule("a rule of wrong types", "self.b < 3"),
    rule("a rule of wrong arguments", "self.b.size() > 'a'"),
    rule("a rule that is no condition", "self.a"),
    rule("an empty rule", ""),
    rule("a rule that looks for null", "self.b == null"),
    rule("metadata below the root", "self.metadata.name == 'a'"),
    rule("a message of two lines", "self.a > 1", message="a\nb"),
    rule("a message that is no text", "self.a > 1", messageExpression="1"),
    rule("a message of an unknown field", "self.a > 1", messageExpression="self.q"),
    rule("an unknown reason", "self.a > 1", reason="Foo"),
    rule("a path to nowhere", "self.a > 1", fieldPath=".zz"),
    rule("no old value to be optional", "self.a > 1", optionalOldSelf=True),
)
USED = tuple(
    case(
        f"the library of {name}",
        Step(
            "POST",
            LIBS,
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Lib",
                "metadata": {"name": "a"},
                "spec": {"use": name[:9]},
            },
            code=422,
        ),
    )
    for name in LIBRARY
)
CASES = (*EVALUATED, *WRITTEN, *USED)
