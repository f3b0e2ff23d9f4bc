"""Rules in CEL: x-kubernetes-validations."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import MERGE_PATCH
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
CRDS_136: tuple[Json, ...] = (
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


# ----------------------------------------------------------- what rules make of values

KNOWN: Json = {
    "type": "object",
    "properties": {
        "a": INT,
        "b": {"type": "string", "maxLength": 20},
        "n": {"type": "number"},
        "t": {"type": "string", "format": "date-time", "maxLength": 40},
        "d": {"type": "string", "format": "duration", "maxLength": 20},
        "l": {"type": "array", "maxItems": 5, "items": INT},
        "ls": {"type": "array", "maxItems": 5, "items": S},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": INT},
        "o": {"type": "object", "properties": {"x": INT, "y": S}},
        "p": {"x-kubernetes-int-or-string": True},
        "by": {"type": "string", "format": "byte", "maxLength": 20},
    },
}
# Each holds for some of the values and fails or errs for others.
TOLD = {
    "numbers": (
        "!has(self.a) || self.a > 3",
        "!has(self.a) || self.a % 2 == 0",
        "!has(self.a) || self.a / 0 == 1",
        "!has(self.a) || self.a + 9223372036854775807 > 0",
        "!has(self.n) || self.n * 2.0 == 3.0",
        "!has(self.n) || double(self.a) < self.n",
        "!has(self.a) || string(self.a) == '12'",
    ),
    "words": (
        "!has(self.b) || self.b.startsWith('a')",
        "!has(self.b) || self.b.matches('^[a-z]+$')",
        "!has(self.b) || int(self.b) == 3",
        "!has(self.b) || self.b.split(' ').size() == 1",
        "!has(self.b) || self.b.substring(1, 9) == 'ab'",
        "!has(self.b) || self.b.charAt(0) == 'a'",
        "!has(self.b) || '%s is %d'.format([self.b, 3]) == 'abc is 3'",
        "!has(self.b) || self.b in ['abc', 'x']",
    ),
    "lists": (
        "!has(self.l) || self.l.all(x, x > 1)",
        "!has(self.l) || self.l.exists_one(x, x == 2)",
        "!has(self.l) || self.l.map(x, x * 2).sum() == 12",
        "!has(self.l) || self.l.max() > 2",
        "!has(self.l) || self.l[0] == 1",
        "!has(self.ls) || self.ls.isSorted()",
        "!has(self.ls) || self.ls + ['q'] == ['q']",
    ),
    "maps and objects": (
        "!has(self.m) || self.m['k'] == 1",
        "!has(self.m) || self.m.size() != 2",
        "!has(self.m) || self.m.all(k, self.m[k] > 0)",
        "!has(self.o) || self.o.x == 1",
        "!has(self.o) || self.o.?x.orValue(5) == 1",
    ),
    "moments and spans": (
        "!has(self.t) || self.t.getFullYear() == 2020",
        "!has(self.t) || self.t + duration('1h') < timestamp('2020-01-02T05:00:00Z')",
        "!has(self.d) || self.d.getMinutes() == 60",
        "!has(self.d) || self.d < duration('1m')",
        "!has(self.by) || self.by == b'abc'",
    ),
    "integers or texts": (
        "!has(self.p) || type(self.p) == int",
        "!has(self.p) || self.p == '5%'",
    ),
    "addresses and quantities": (
        "!has(self.b) || isIP(self.b)",
        "!has(self.b) || ip(self.b).family() == 4",
        "!has(self.b) || cidr('10.0.0.0/8').containsIP(self.b)",
        "!has(self.b) || isURL(self.b)",
        "!has(self.b) || isQuantity(self.b)",
    ),
}
SAMPLES: tuple[Json, ...] = (
    {
        **{"a": 1, "b": "abc", "n": 1.5, "t": "2020-01-02T03:04:05Z", "d": "1h"},
        **{"l": [1, 2, 3], "ls": ["a", "b"], "m": {"k": 1, "j": 2}},
        **{"o": {"x": 1, "y": "z"}, "p": "5%", "by": "YWJj"},
    },
    {
        **{"a": 12, "b": "10.0.0.1", "n": 2, "t": "2030-01-02T03:04:05Z", "d": "2m"},
        **{"l": [3, 1], "ls": [], "m": {}, "o": {}, "p": 7, "by": "YQ=="},
    },
    {
        **{"a": -3, "b": "Hello World", "n": -0.5, "t": "1999-12-31T23:59:59Z"},
        **{"d": "0s", "l": [], "ls": ["c", "a", "b"], "m": {"k": 5, "j": -1}, "p": "x"},
    },
)
TELLING = {name: f"Tell{index}" for index, name in enumerate(TOLD)}
CRDS_136 = (
    *CRDS_136,
    *(
        crd(
            TELLING[name],
            ruled(KNOWN, *({"rule": rule} for rule in rules)),
        )
        for name, rules in TOLD.items()
    ),
)


def told(name: str) -> Case:
    kind = TELLING[name]
    path = f"/apis/{GROUP}/v1/namespaces/{{ns}}/{kind.lower()}s"
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "a"}}
    steps = (Step("POST", path, {**body, "spec": each}, code=422) for each in SAMPLES)
    return case(f"what rules say of {name}", *steps)


NULLABLE = {**S, "nullable": True}
CRDS_136 = (
    *CRDS_136,
    crd(
        "Void",
        ruled(
            {"type": "object", "properties": {"a": NULLABLE}},
            {"rule": "!has(self.a)"},
        ),
    ),
)
VOID = {"apiVersion": f"{GROUP}/v1", "kind": "Void", "metadata": {"name": "a"}}
NULLS = case(
    "null is as good as nothing",
    *(
        Step(
            "POST",
            f"/apis/{GROUP}/v1/namespaces/{{ns}}/voids",
            {**VOID, "spec": {"a": value}},
            code=code,
        )
        for value, code in (("x", 422), (None, 201))
    ),
)
MORE_WRITTEN = (
    rule("a field of a number", "self.a.b == 1"),
    rule("a field of a number that is looked for", "has(self.a.b)"),
    rule("itself looked for", "has(self)"),
    rule("no mathematics", "math.abs(self.a) == 3"),
    rule("a path that cannot be", "self.a > 1", fieldPath="a"),
)
CASES = (
    *EVALUATED,
    *WRITTEN,
    *MORE_WRITTEN,
    *USED,
    *(told(name) for name in TOLD),
    NULLS,
)
