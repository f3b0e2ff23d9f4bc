"""The answers of handlers, and their effect: one decision, without a cluster."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core.admission.decisions import Decision, response_of
from fnop.core.admission.reviewing import Reviewer, review as reviewing
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.core.values.merge import operated, operations
from fnop.core.values.now import Now
from fnop.effects import Answer
from fnop.effects.structs import replace
from fnop.effects.values import same_json
from fnop.testing import Simulation, review

KIND = "claims.example.com"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": KIND},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "claims", "singular": "claim", "kind": "Claim"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def claim(metadata: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Claim",
        "metadata": {"name": "c", "namespace": "default", **(metadata or {})},
        "spec": spec,
    }


@pytest.fixture
def registry() -> Registry:
    return Registry()


def denying(
    registry: Registry, problem: Exception | type[Exception], **how: Any
) -> Any:
    """A validation that raises this."""

    @fnop.on.validate(KIND, registry=registry, **how)
    def judge(**_: Any) -> None:
        raise problem

    return judge


# ------------------------------------------------------------------- denials


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (fnop.Denied("no"), 403, "no"),
        (fnop.Denied("no", field="spec.size"), 422, "no"),
        (fnop.Denied("no", field="spec.size", code=400), 400, "no"),
        (fnop.AdmissionError("no", code=451), 451, "no"),
        (fnop.AdmissionError("no", code=0), 500, "no"),
        (fnop.AdmissionError("no", code=199), 500, "no"),
        (fnop.AdmissionError("no"), 500, "no"),
        (fnop.AdmissionError(), 500, "AdmissionError"),
        (fnop.PermanentError("no"), 500, "no"),
        (fnop.TemporaryError("later"), 500, "later"),
        (ValueError("what"), 500, "judge gave no answer: ValueError: what"),
        (KeyError("size"), 500, "judge gave no answer: KeyError: 'size'"),
    ],
)
def test_each_exception_has_its_code_and_its_words(
    registry: Registry, problem: Exception, code: int, message: str
) -> None:
    denying(registry, problem, id="judge")
    found = review(registry, None, claim())
    assert not found.allowed
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize("problem", [fnop.TemporaryError("later"), ValueError("what")])
def test_without_an_answer_an_ignorable_handler_warns(
    registry: Registry, problem: Exception
) -> None:
    denying(registry, problem, id="judge", ignore_failures=True)
    found = review(registry, None, claim())
    assert found.allowed
    (warning,) = found.warnings
    assert warning.startswith("judge gave no answer, so this write is not checked: ")
    assert str(problem) in warning


@pytest.mark.parametrize("problem", [fnop.Denied("no"), fnop.PermanentError("no")])
def test_a_meant_denial_is_not_ignored(registry: Registry, problem: Exception) -> None:
    denying(registry, problem, ignore_failures=True)
    assert not review(registry, None, claim()).allowed


def test_all_are_asked_and_all_denials_told_admission_errors_first(
    registry: Registry,
) -> None:
    for name, problem in (
        ("a", fnop.PermanentError("from a")),
        ("b", fnop.AdmissionError("from b", code=409)),
        ("c", ValueError("from c")),
        ("d", fnop.Denied("from d", field="spec.d")),
    ):
        denying(registry, problem, id=name)
    found = review(registry, None, claim())
    assert found.asked == ("a", "b", "c", "d")
    assert found.code == 409
    assert (
        found.message == "from b; from d; from a; c gave no answer: ValueError: from c"
    )
    status = response_of(found)["response"]["status"]
    assert [each["field"] for each in status["details"]["causes"]] == ["spec.d"]


def test_a_field_s_denial_has_the_form_of_the_server_s_own(registry: Registry) -> None:
    denying(registry, fnop.Denied("too small", field="spec.size"))
    assert response_of(review(registry, None, claim()))["response"]["status"] == {
        "code": 422,
        "reason": "Invalid",
        "message": "too small",
        "details": {
            "name": "c",
            "group": "example.com",
            "kind": "Claim",
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "message": "too small",
                    "field": "spec.size",
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (fnop.Denied("no"), "Forbidden"),
        (fnop.AdmissionError("no", code=401), None),
        (fnop.AdmissionError("no", code=404), None),
        (fnop.AdmissionError("no", code=409), None),
    ],
    ids=["403", "401", "404", "409"],
)
def test_no_reason_makes_a_client_log_in_or_look_elsewhere(
    registry: Registry, problem: Exception, reason: str | None
) -> None:
    denying(registry, problem)
    status = response_of(review(registry, None, claim()))["response"]["status"]
    assert status.get("reason") == reason


# ----------------------------------------------------------------- mutations


def test_mutations_are_called_in_order_and_each_sees_the_one_before(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.validate(KIND, registry=registry)
    def last(spec: fnop.Spec, **_: Any) -> None:
        seen.append(("last", dict(spec)))

    @fnop.on.mutate(KIND, registry=registry)
    def first(patch: fnop.Patch, spec: fnop.Spec, **_: Any) -> None:
        seen.append(("first", dict(spec)))
        patch.spec["one"] = 1

    @fnop.on.mutate(KIND, registry=registry)
    def second(spec: fnop.Spec, **_: Any) -> list[fnop.Effect]:
        seen.append(("second", dict(spec)))
        return [fnop.patch(spec={"two": spec["one"] + 1})]

    found = review(registry, None, claim())
    assert seen == [
        ("first", {}),
        ("second", {"one": 1}),
        ("last", {"one": 1, "two": 2}),
    ]
    assert found.patch == (
        {"op": "add", "path": "/spec/one", "value": 1},
        {"op": "add", "path": "/spec/two", "value": 2},
    )
    assert found.object == claim(one=1, two=2)


def test_the_patch_names_what_the_author_has_changed_and_nothing_else(
    registry: Registry,
) -> None:
    @fnop.on.mutate(KIND, registry=registry)
    def change(patch: fnop.Patch, **_: Any) -> None:
        patch.metadata.labels["example.com/a"] = "1"
        patch.spec["~"] = 1
        patch.spec["gone"] = None
        patch.fns.append(lambda body: body["spec"]["hosts"].remove("x"))

    new = claim({"labels": {"other": "y"}}, gone=1, hosts=["x", "y"], null=None)
    found = review(registry, None, new)
    assert found.patch == (
        {"op": "add", "path": "/metadata/labels/example.com~1a", "value": "1"},
        {"op": "remove", "path": "/spec/gone"},
        {"op": "replace", "path": "/spec/hosts", "value": ["y"]},
        {"op": "add", "path": "/spec/~0", "value": 1},
    )
    response = response_of(found)["response"]
    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(response["patch"])) == list(found.patch)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a/b", "~"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b/c", "~", ""]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_operations_lead_from_one_value_to_the_other(base: Any, target: Any) -> None:
    assert same_json(operated([*operations(base, target)], base), target)
    assert [*operations(base, base)] == []


@pytest.mark.parametrize(
    ("operations", "operation", "asked"),
    [
        (None, "CREATE", True),
        (None, "UPDATE", True),
        (None, "DELETE", False),
        (["DELETE"], "DELETE", True),
        (["CREATE", "DELETE"], "DELETE", False),
    ],
)
def test_a_mutation_sees_a_deletion_only_if_it_asks_for_nothing_else(
    registry: Registry, operations: Any, operation: Any, asked: bool
) -> None:
    @fnop.on.mutate(KIND, registry=registry, operations=operations)
    def change(**_: Any) -> None: ...

    old, new = claim(), None if operation == "DELETE" else claim()
    found = review(registry, old, new, operation=operation)
    assert bool(found.asked) is asked


@pytest.mark.parametrize("subresource", ["", "status", "scale"])
@pytest.mark.parametrize("wanted", [None, "status", "*"])
def test_a_subresource_is_asked_about_by_its_name(
    registry: Registry, wanted: str | None, subresource: str
) -> None:
    @fnop.on.validate(KIND, registry=registry, subresource=wanted)
    def judge(**_: Any) -> None: ...

    found = review(registry, claim(), claim(), subresource=subresource)
    assert bool(found.asked) is (wanted == "*" or (wanted or "") == subresource)


# ----------------------------------------------------------- safe by default


def test_an_object_that_is_being_deleted_is_let_through(registry: Registry) -> None:
    denying(registry, fnop.Denied("no"), id="usual")
    denying(registry, fnop.Denied("no"), id="also", deleted=True)
    old = claim({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]})
    new = claim({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []})
    found = review(registry, old, new, operation="UPDATE")
    assert found.asked == ("also",)


def sized(registry: Registry, **how: Any) -> None:
    @fnop.on.validate(KIND, registry=registry, id="sized", **how)
    def judge(spec: fnop.Spec, old: Any, logger: fnop.Logger, **_: Any) -> None:
        logger.info("judged")
        if spec["size"] % 2:
            raise fnop.Denied(f"the size {spec['size']} is odd", field="spec.size")
        if old and spec["size"] < old["spec"]["size"]:
            raise fnop.Denied("it must not shrink", field="spec.size")


def test_an_update_is_not_denied_for_what_was_wrong_before(registry: Registry) -> None:
    sized(registry)
    found = review(registry, claim(size=3), claim(size=3, other=1))
    assert found.allowed
    assert found.warnings == ("the size 3 is odd (as it was before this change)",)
    said = [each.message for each in found.lines]
    assert said[0] == "judged"
    assert "warned of what was wrong before the UPDATE by kubernetes-admin" in said[1]
    assert len(said) == 2, "and it was not judged once more"


@pytest.mark.parametrize(
    ("before", "after"), [(3, 5), (2, 3), (4, 2)], ids=["other", "new", "step"]
)
def test_what_the_update_makes_wrong_is_denied(
    registry: Registry, before: int, after: int
) -> None:
    sized(registry)
    assert not review(registry, claim(size=before), claim(size=after)).allowed


def listing(registry: Registry, **how: Any) -> None:
    """A validation that reports all mistakes at once."""

    @fnop.on.validate(KIND, registry=registry, id="listed", **how)
    def judge(spec: fnop.Spec, **_: Any) -> None:
        bad = [each for each in spec.get("nets", ()) if "bad" in each]
        if bad:
            raise ExceptionGroup(
                "nets",
                [fnop.Denied(f"{each} is no net", field="spec.nets") for each in bad],
            )


@pytest.mark.parametrize(
    ("before", "after", "denied"),
    [
        ((), ("bad1", "bad2"), ["bad1 is no net", "bad2 is no net"]),
        (("bad1", "bad2"), ("good", "bad2"), []),
        (("bad1",), ("bad1", "bad2"), ["bad2 is no net"]),
        (("bad1",), ("good",), []),
    ],
    ids=["new", "repair", "worse", "mended"],
)
def test_of_several_mistakes_those_count_that_are_new(
    registry: Registry, before: Any, after: Any, denied: list[str]
) -> None:
    listing(registry)
    found = review(registry, claim(nets=[*before]), claim(nets=[*after]))
    assert [each.message for each in found.denials] == denied


def lists(spec: fnop.Spec, **_: Any) -> None:
    """An impure validation with several mistakes."""
    raise ExceptionGroup("two", [fnop.Denied("one"), fnop.AdmissionError("two", 400)])


def test_an_impure_handler_may_tell_several_too(registry: Registry) -> None:
    fnop.on.validate(KIND, registry=registry, impure=True)(lists)
    found = review(registry, None, claim(), calls={lists: lists})
    assert [(each.message, each.code) for each in found.denials] == [
        ("one", 403),
        ("two", 400),
    ]


def test_a_mistake_among_denials_is_no_answer(registry: Registry) -> None:
    denying(registry, ExceptionGroup("both", [fnop.Denied("no"), ValueError("what")]))
    found = review(registry, None, claim())
    assert (found.code, len(found.denials)) == (500, 1)
    assert not found.denials[0].meant


def test_a_deletion_is_not_denied_for_what_is_wrong_with_the_object(
    registry: Registry,
) -> None:
    sized(registry)
    found = review(registry, claim(size=3), None)
    assert found.allowed
    assert found.warnings == ("the size 3 is odd (as it was before this change)",)


@pytest.mark.parametrize("operations", [None, ["DELETE"]])
def test_a_deletion_that_is_meant_to_be_denied_is(
    registry: Registry, operations: Any
) -> None:
    @fnop.on.validate(KIND, registry=registry, operations=operations)
    def judge(operation: str, **_: Any) -> None:
        if operation == "DELETE":
            raise fnop.Denied("it is kept")

    assert review(registry, claim(size=3), None).message == "it is kept"


MARKED = {"labels": {"m": "1"}, "annotations": {"m": "1"}}


@pytest.mark.parametrize(
    "filters",
    [
        {"field": "spec.size", "value": 7},
        {"field": "spec.size", "value": lambda value, **_: value == 7},
        {"labels": {"m": "1"}},
        {"annotations": {"m": fnop.PRESENT}},
        {"when": lambda spec, **_: spec.get("size") == 7},
        {"when": lambda spec, **_: spec["size"] == 7},
    ],
    ids=["field", "function", "labels", "annotations", "when", "when that fails"],
)
def test_a_stored_object_that_no_filter_selects_is_no_excuse(
    registry: Registry, filters: Any
) -> None:
    """Else a handler whose filters are its rule would never deny an update."""

    @fnop.on.validate(KIND, registry=registry, **filters)
    def never(**_: Any) -> None:
        raise fnop.Denied("never")

    assert review(registry, claim(), claim(MARKED, size=7)).message == "never"
    found = review(registry, claim(MARKED, size=7), claim(MARKED, size=7, other=1))
    assert found.warnings == ("never (as it was before this change)",)


@pytest.mark.parametrize("field", ["spec.size", "spec", "", "/spec/size"])
def test_a_field_that_is_wrong_anew_is_denied_in_whatever_words(
    registry: Registry, field: str
) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(spec: fnop.Spec, **_: Any) -> None:
        if spec["size"] % 2:
            raise fnop.Denied("the size must be even", field=field)

    # For a mapping, or without a field, this is unknown.
    told = review(registry, claim(size=3), claim(size=5)).allowed
    assert told == (field != "spec.size")
    assert review(registry, claim(size=3), claim(size=3, other=1)).allowed


def nets(registry: Registry, path: str) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(spec: fnop.Spec, **_: Any) -> None:
        found = spec.get("nets") or {}
        items = found.items() if isinstance(found, dict) else enumerate(found)
        bad = [key for key, each in items if "name" not in each]
        if bad:
            raise ExceptionGroup(
                "nets",
                [fnop.Denied("it needs a name", field=path.format(e)) for e in bad],
            )


@pytest.mark.parametrize(
    ("path", "before", "after", "denied"),
    [
        ("spec.nets[{}].name", [{}], [{}, {}], 1),
        ("spec.nets[{}].name", [{}, {}], [{}], 0),
        ("spec.nets[{}].name", [{"name": "a"}, {}], [{}], 0),
        ("spec.nets.{}", {"a": {}}, {"b": {}}, 1),
        ("spec.nets.{}", {"a": {}}, {"a": {}, "c": {"name": "c"}}, 0),
    ],
    ids=["one more", "one less", "another place", "elsewhere", "beside"],
)
def test_equal_words_excuse_as_many_mistakes_as_there_were_at_their_fields(
    registry: Registry, path: str, before: Any, after: Any, denied: int
) -> None:
    nets(registry, path)
    found = review(registry, claim(nets=before), claim(nets=after))
    assert len(found.denials) == denied


def test_who_may_write_is_no_matter_of_the_stored_object(registry: Registry) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(userinfo: Any, **_: Any) -> None:
        if userinfo["username"] != "admin":
            raise fnop.Denied("only admin writes claims")

    assert not review(registry, claim(size=1), claim(size=2), user="eve").allowed
    assert not review(registry, claim(size=1), None, user="eve").allowed
    assert review(registry, claim(size=1), claim(size=2), user="admin").allowed


@pytest.mark.parametrize("result", [False, {"allowed": False}])
def test_a_result_that_looks_like_a_denial_is_refused(
    registry: Registry, result: Any
) -> None:
    fnop.on.validate(KIND, registry=registry, id="judge")(lambda **_: result)
    found = review(registry, None, claim())
    assert (found.allowed, found.code) == (False, 500)
    assert "raise fnop.Denied('...') to deny" in found.message


@pytest.mark.parametrize("result", ["too small", {"spec": {"size": 2}}, 3])
def test_a_result_without_an_effect_is_told(registry: Registry, result: Any) -> None:
    fnop.on.mutate(KIND, registry=registry, id="fill")(lambda **_: result)
    fnop.on.validate(KIND, registry=registry, id="judge")(lambda **_: True)
    found = review(registry, None, claim(size=1))
    assert found.allowed
    (line,) = found.lines
    assert (line.level, line.handler) == ("warning", "fill")
    assert "its result has no effect" in line.message


@pytest.mark.parametrize("code", [600, 1000, 2**31])
def test_a_code_that_no_server_can_answer_is_500(registry: Registry, code: int) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(**_: Any) -> None:
        raise fnop.AdmissionError("no", code=code)

    found = review(registry, None, claim())
    assert (found.code, found.message) == (500, "no")


def test_an_object_with_many_mistakes_gets_an_answer_of_limited_size(
    registry: Registry,
) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(warnings: fnop.Warnings, **_: Any) -> None:
        warnings.extend(["w" * 5_000] * 5_000)
        raise ExceptionGroup(
            "all", [fnop.Denied("x" * 99, field=f"spec.a{n}") for n in range(5_000)]
        )

    found = review(registry, None, claim())
    assert len(found.denials) == 5_000
    assert len(orjson.dumps(response_of(found))) < 400_000
    (line,) = found.lines
    assert line.message.endswith("; and 4990 more") or len(line.message) < 3_000


def test_a_warning_is_a_header_of_one_line(registry: Registry) -> None:
    """The API server drops others."""

    @fnop.on.validate(KIND, registry=registry)
    def judge(warnings: fnop.Warnings, **_: Any) -> None:
        warnings.append("two\nlines\x1b[31m\u0085end")

    found = response_of(review(registry, None, claim()))
    assert found["response"]["warnings"] == ["two lines [31m end"]


@pytest.mark.parametrize("acts", [True, False])
def test_a_handler_that_looks_at_dry_runs_is_asked_about_the_stored_object(
    registry: Registry, acts: bool
) -> None:
    """As it is about the new one; only one that acts on the world is not to act."""
    seen: list[bool] = []

    @fnop.on.validate(KIND, registry=registry, side_effects=acts)
    def judge(spec: fnop.Spec, dryrun: bool, **_: Any) -> None:
        seen.append(dryrun)
        if acts or not dryrun:
            raise fnop.Denied("no")

    assert review(registry, claim(size=3), claim(size=3)).allowed
    assert seen == [False, acts]


@pytest.mark.parametrize("spec", ["wrong", ["wrong"], 7, False])
def test_a_patch_replaces_no_value_of_the_user_by_a_mapping(
    registry: Registry, spec: Any
) -> None:
    @fnop.on.mutate(KIND, registry=registry)
    def fills(patch: fnop.Patch, **_: Any) -> None:
        patch.spec["size"] = 1

    found = review(registry, None, {**claim(), "spec": spec})
    assert not found.allowed
    assert "spec is not a mapping, and the patch would replace it" in found.message
    assert review(registry, None, {**claim(), "spec": None}).object == claim(size=1)


def test_without_ratcheting_the_old_object_is_no_excuse(registry: Registry) -> None:
    sized(registry, ratcheting=False)
    assert not review(registry, claim(size=3), claim(size=3)).allowed


@pytest.mark.parametrize(
    ("served", "asked"),
    [
        ({}, True),
        ({"namespaces": ("default",)}, True),
        ({"namespaces": ("other",)}, False),
        ({"namespaces": ("def*,!default",)}, False),
        ({"namespaces": ("def*",)}, True),
        ({"selector": "tier=gold"}, True),
        ({"selector": "tier!=gold"}, False),
    ],
    ids=str,
)
def test_who_serves_a_part_of_the_cluster_is_asked_about_that(
    registry: Registry, served: Any, asked: bool
) -> None:
    @fnop.on.validate(KIND, registry=registry)
    def judge(**_: Any) -> None: ...

    new = claim({"labels": {"tier": "gold"}})
    found = review(registry, None, new, settings=fnop.Settings(**served))
    assert bool(found.asked) is asked


def test_the_operator_s_own_writes_are_not_asked_about(registry: Registry) -> None:
    denying(registry, fnop.Denied("no"), id="usual")
    denying(registry, fnop.Denied("no"), id="also", own_writes=True)
    own = "system:serviceaccount:fnop:operator"  # as whom a simulated one writes
    assert review(registry, None, claim(), user=own).asked == ("also",)
    assert review(registry, None, claim(), user="anna").asked == ("usual", "also")


@pytest.mark.parametrize("before", ["prod", "test", None])
@pytest.mark.parametrize("now", ["prod", "test", None])
def test_the_labels_of_the_new_object_count(
    registry: Registry, before: str | None, now: str | None
) -> None:
    """As with Kopf; an objectSelector selects the old object, too."""
    denying(
        registry,
        fnop.Denied("no"),
        id="judge",
        labels={"tier": "prod"},
        when=lambda spec, **_: spec["size"] == 2,
        ratcheting=False,
    )

    def labelled(tier: str | None, size: int) -> dict[str, Any]:
        return claim({"labels": {"tier": tier} if tier else {}}, size=size)

    found = review(registry, labelled(before, 1), labelled(now, 2))
    assert bool(found.denials) is (now == "prod")
    assert review(registry, labelled(before, 2), labelled(now, 1)).allowed


def looks_up(**kwargs: Any) -> None:
    if kwargs["userinfo"].get("username") != "root":
        raise fnop.Denied("only root changes locked claims")


def passes_on(spec: Any, **kwargs: Any) -> None:
    raise fnop.Denied("only root changes locked claims")


@pytest.mark.parametrize(
    ("handler", "options", "is_excused"),
    [
        (looks_up, {}, False),
        (passes_on, {}, True),
        (passes_on, {"when": lambda userinfo, **_: bool(userinfo)}, False),
        (passes_on, {"when": lambda **kw: bool(kw["userinfo"])}, False),
    ],
)
def test_who_asks_for_the_caller_by_other_ways_is_not_excused(
    registry: Registry, handler: Any, options: Any, is_excused: bool
) -> None:
    fnop.on.validate(KIND, registry=registry, **options)(handler)
    found = review(registry, claim(size=1), claim(size=2), user="anna")
    assert found.allowed is is_excused


def test_a_mutation_that_denies_is_not_excused(registry: Registry) -> None:
    """The write would be stored without its changes."""

    @fnop.on.mutate(KIND, registry=registry)
    def fill(spec: Any, patch: fnop.Patch, **_: Any) -> None:
        if spec["size"] > 9:
            raise fnop.Denied("it is too large")
        patch.spec["privileged"] = False

    found = review(registry, claim(size=10), claim(size=10, privileged=True))
    assert found.message == "it is too large"


@pytest.mark.parametrize("side_effects", [True, False])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_call_in_a_dry_run_is_refused_and_an_equal_one_is_made_once(
    registry: Registry, dry_run: bool, side_effects: bool
) -> None:
    calls: list[int] = []

    @fnop.on.validate(KIND, registry=registry, side_effects=side_effects)
    async def judge(spec: Any, **_: Any) -> None:
        await fnop.call(looks_up, size=3)
        raise fnop.Denied("no")

    request = Request("1", "UPDATE", "example.com", "v1", "claims", "Claim")
    request = request._replace(object=claim(size=1), old=claim(size=1), dry_run=dry_run)
    found = reviewing(Reviewer(registry.handlers), request, Now(0.0, 0.0))
    try:
        next(found)
        while True:
            calls.append(1)
            found.send((Now(0.0, 0.0), Answer(None)))
    except StopIteration as stop:
        decision: Decision = stop.value
    may_call = side_effects or not dry_run
    assert len(calls) == may_call
    # The handler denies the stored object, too.
    assert decision.allowed is may_call
    assert may_call or "this is a dry run" in decision.message


def test_another_account_than_a_service_s_may_be_a_person_s(registry: Registry) -> None:
    """An operator on a user's machine gets reviews of that user's writes."""
    denying(registry, fnop.Denied("no"), id="judge")
    request = Request("1", "CREATE", "example.com", "v1", "claims", "Claim", object={})
    mine = request._replace(user_info={"username": "anna"})
    reviewer = Reviewer(registry.handlers, account="anna")

    def asked(request: Request) -> tuple[str, ...]:
        with pytest.raises(StopIteration) as end:
            next(reviewing(reviewer, request, Now(0.0, 0.0)))
        found: Decision = end.value.value
        return found.asked

    assert asked(mine) == ("judge",)
    assert asked(mine._replace(options={"fieldManager": "kubectl"})) == ("judge",)
    assert asked(mine._replace(options={"fieldManager": "fnop.dev/default"})) == ()


# ------------------------------------------------------------ what it is given


def test_old_and_new_are_whole_objects_also_with_a_field(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.validate(KIND, registry=registry, field="spec.size")
    def judge(old: Any, new: Any, diff: fnop.Diff, **_: Any) -> None:
        seen.append((old, new, [each.field for each in diff]))

    old, new = claim(size=1, other=1), claim(size=1, other=2)
    review(registry, old, new)
    assert seen == [(old, new, [("spec", "other")])]
    assert review(registry, None, claim(other=1)).asked == (), "it has no such field"


def test_a_new_object_may_have_no_name_and_no_uid(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.validate(KIND, registry=registry)
    def judge(name: str | None, uid: str | None, **_: Any) -> None:
        seen.append((name, uid))

    review(registry, None, claim({"name": None, "generateName": "c-"}))
    review(registry, None, claim({"name": "c", "uid": "u"}))
    assert seen == [(None, None), ("c", "u")]


def test_the_former_object_is_among_the_rest_of_the_arguments(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.validate(KIND, registry=registry)
    def judge(**kwargs: Any) -> None:
        seen.append((kwargs["old"]["spec"], len(kwargs["diff"]), "obj" in kwargs))

    review(registry, claim(size=1), claim(size=2))
    assert seen == [({"size": 1}, 1, False)]


def test_a_filter_of_a_value_cannot_change_it(registry: Registry) -> None:
    def changes(value: Any, **_: Any) -> bool:
        value.append(9)
        return True

    fnop.on.validate(
        KIND, registry=registry, id="judge", field="spec.list", value=changes
    )(lambda **_: None)
    found = review(registry, None, claim(list=[1]))
    assert "read-only view" in found.message


def test_the_request_and_the_connection_are_arguments(registry: Registry) -> None:
    seen: dict[str, Any] = {}

    @fnop.on.validate(KIND, registry=registry, id="judge")
    def judge(**kwargs: Any) -> None:
        seen.update(kwargs)

    review(
        registry,
        claim(),
        None,
        user={"username": "anna", "groups": ["team"]},
        dry_run=True,
        headers={"X": "y"},
    )
    assert (seen["operation"], seen["subresource"]) == ("DELETE", None)
    assert seen["userinfo"] == {"username": "anna", "groups": ["team"]}
    assert (seen["dryrun"], seen["headers"], seen["sslpeer"]) == (True, {"X": "y"}, {})
    assert seen["new"] is None
    assert (seen["name"], seen["namespace"], seen["body"]) == ("c", "default", claim())
    assert seen["resource"].plural == "claims"


def test_the_memo_is_that_of_the_object(registry: Registry) -> None:
    """The memo of startup handlers, until the object has one of its own."""
    seen: list[Any] = []

    @fnop.on.startup(registry=registry)
    def start(**_: Any) -> fnop.Effect:
        return fnop.remember(began="yes")

    @fnop.on.create(KIND, registry=registry)
    def created(**_: Any) -> fnop.Effect:
        return fnop.remember(made="yes")

    @fnop.on.validate(KIND, registry=registry)
    def judge(memo: fnop.Memo, operation: str, userinfo: Any, **_: Any) -> None:
        if userinfo["username"] == "admin":
            seen.append((operation, dict(memo)))

    sim = Simulation(registry, crds=DEFINITION).apply(claim()).settle()
    sim.edit("claims/c", spec={"size": 1})
    assert seen == [
        ("CREATE", {"began": "yes"}),
        ("UPDATE", {"began": "yes", "made": "yes"}),
    ]


def test_filters_get_the_request_too(registry: Registry) -> None:
    @fnop.on.validate(
        KIND,
        registry=registry,
        id="judge",
        when=lambda operation, userinfo, **_: (
            (operation, userinfo["username"]) == ("UPDATE", "anna")
        ),
    )
    def judge(**_: Any) -> None: ...

    assert review(registry, claim(), claim(), user="anna").asked == ("judge",)
    assert review(registry, None, claim(), user="anna").asked == ()
    with pytest.raises(RegistrationError, match=r"only filters of on\.validate and on"):
        fnop.on.create(KIND, registry=registry, when=lambda operation, **_: True)(judge)


def test_a_filter_that_raises_gives_no_answer(registry: Registry) -> None:
    @fnop.on.validate(
        KIND, registry=registry, id="judge", when=lambda spec, **_: spec["size"] > 1
    )
    def judge(**_: Any) -> None: ...

    found = review(registry, None, claim())
    assert found.message == "judge gave no answer: KeyError: 'size'"


def test_handlers_converse_by_reads_and_use_indices(registry: Registry) -> None:
    @fnop.index(KIND, registry=registry)
    def by_host(spec: fnop.Spec, name: str, **_: Any) -> dict[str, str]:
        return {spec["host"]: name}

    @fnop.on.validate(KIND, registry=registry)
    async def alone(
        spec: fnop.Spec, name: str, by_host: fnop.Index[str, str] = fnop.INDEX, **_: Any
    ) -> None:
        others = {*by_host.get(spec["host"], ())} - {name}
        found = await fnop.list(KIND)
        if others:
            raise fnop.Denied(f"{len(found)} claims, and {others} has the host")

    first = claim({"name": "a"}, host="x")
    objects = {"crds": DEFINITION, "objects": [first]}
    assert review(registry, None, claim(host="y"), **objects).allowed  # type: ignore[arg-type]
    found = review(registry, None, claim(host="x"), **objects)  # type: ignore[arg-type]
    assert found.message == "1 claims, and {'a'} has the host"


def test_an_index_that_is_not_filled_is_no_answer(registry: Registry) -> None:
    @fnop.index(KIND, registry=registry)
    def by_host(spec: fnop.Spec, name: str, **_: Any) -> dict[str, str]:
        return {spec["host"]: name}

    @fnop.on.validate(KIND, registry=registry, id="alone")
    def alone(by_host: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> None: ...

    @fnop.on.validate(KIND, registry=registry, id="other")
    def other(**_: Any) -> None: ...

    request = Request("1", "CREATE", "example.com", "v1", "claims", "Claim", object={})
    reviewer = Reviewer(registry.handlers, indices={"by_host": {}}, filled=False)
    with pytest.raises(StopIteration) as end:
        next(reviewing(reviewer, request, Now(0.0, 0.0)))
    found: Decision = end.value.value
    assert found.asked == ("alone", "other")
    assert [each.handler for each in found.denials] == ["alone"]
    assert "has not listed all objects of its indices yet" in found.message


@pytest.mark.parametrize(
    "effect",
    [
        lambda: fnop.create(claim()),
        lambda: fnop.delete("configmaps", name="x"),
        lambda: fnop.sleep(1),
        lambda: fnop.remember(a=1),
        lambda: fnop.event("Seen"),
    ],
)
@pytest.mark.parametrize("awaited", [False, True])
def test_a_review_stores_nothing(
    registry: Registry, effect: Any, awaited: bool
) -> None:
    if awaited:

        @fnop.on.validate(KIND, registry=registry, id="judge")
        async def asks(**_: Any) -> None:
            await effect()
    else:

        @fnop.on.validate(KIND, registry=registry, id="judge")
        def returns(**_: Any) -> Any:
            return [effect()]

    found = review(registry, None, claim())
    assert not found.allowed
    assert "gave no answer" in found.message


@pytest.mark.parametrize("has_status", [True, False])
@pytest.mark.parametrize("changes", ["status", "spec", "metadata"])
@pytest.mark.parametrize("subresource", ["", "status"])
def test_a_change_that_the_api_server_ignores_is_told(
    registry: Registry, subresource: str, changes: str, has_status: bool
) -> None:
    @fnop.on.mutate(KIND, registry=registry, id="change", subresource="*")
    def change(patch: fnop.Patch, **_: Any) -> None:
        patch[changes] = {"labels": {"a": "b"}}

    kind = Resource("example.com", "v1", "claims", "Claim")
    if has_status:
        kind = replace(kind, subresources=("status",))
    found = {"metadata": {"name": "c"}, "spec": {}, "status": {}}
    request = Request("1", "UPDATE", "example.com", "v1", "claims", "Claim")
    request = request._replace(subresource=subresource, object=found, old=found)
    reviewer = Reviewer(registry.handlers, catalogue=Catalogue((kind,)))
    with pytest.raises(StopIteration) as end:
        next(reviewing(reviewer, request, Now(0.0, 0.0)))
    decision: Decision = end.value.value
    assert decision.allowed
    is_lost = has_status and changes == ("spec" if subresource else "status")
    assert [each.level for each in decision.lines] == ["warning"] * is_lost
    assert all(f"changes {changes}" in each.message for each in decision.lines)


def test_a_validation_that_patches_is_told_what_to_do(registry: Registry) -> None:
    @fnop.on.validate(KIND, registry=registry, id="judge")
    def judge(patch: fnop.Patch, **_: Any) -> None:
        patch.spec["a"] = 1

    assert "declare it with @fnop.on.mutate" in review(registry, None, claim()).message


@pytest.mark.parametrize(("dry_run", "level"), [(False, "info"), (True, "debug")])
def test_a_denial_is_logged_with_the_user(
    registry: Registry, dry_run: bool, level: str
) -> None:
    denying(registry, fnop.Denied("no"), id="judge")
    [line] = review(registry, None, claim(), user="me", dry_run=dry_run).lines
    assert (line.level, line.handler, line.error) == (level, "judge", None)
    assert line.message == "validate handler judge denied the CREATE by me: no"
    assert line.subject is not None
    assert line.subject.label == "default/c"


def test_log_lines_and_failures_come_with_their_handler(registry: Registry) -> None:
    @fnop.on.validate(KIND, registry=registry, id="judge")
    def judge(logger: fnop.Logger, **_: Any) -> None:
        logger.info("it is %s", "asked")
        raise ValueError("what")

    lines = review(registry, None, claim()).lines
    assert [(e.level, e.message, e.handler) for e in lines] == [
        ("info", "it is asked", "judge"),
        (
            "error",
            "validate handler judge gave no answer: ValueError: what",
            "judge",
        ),
    ]
    assert isinstance(lines[1].exception, ValueError)
    assert lines[0].subject is not None
    assert lines[0].subject.label == "default/c"


@pytest.mark.parametrize("crds", [(), DEFINITION], ids=["undefined", "defined"])
def test_a_scale_is_reviewed_as_one_of_its_kind(registry: Registry, crds: Any) -> None:
    @fnop.on.validate(KIND, registry=registry, id="scaled", subresource="scale")
    def judge(spec: fnop.Spec, **_: Any) -> None:
        if spec["replicas"] > 9:
            raise fnop.Denied("too many", field="spec.replicas")

    def scale(replicas: int) -> dict[str, Any]:
        head = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
        metadata = {"name": "c", "namespace": "default"}
        return {**head, "metadata": metadata, "spec": {"replicas": replicas}}

    found = review(
        *(registry, scale(1), scale(10)),
        resource="claims.v1.example.com",
        subresource="scale",
        crds=crds,
    )
    assert (found.asked, found.message) == (("scaled",), "too many")
    with pytest.raises(AssertionError, match=r"no admission handler is about scales\."):
        review(registry, scale(1), scale(10), subresource="scale")


def test_a_kind_that_no_handler_is_about_is_an_error_of_the_test(
    registry: Registry,
) -> None:
    denying(registry, fnop.Denied("no"))
    with pytest.raises(AssertionError, match="no admission handler is about boats"):
        review(registry, None, {**claim(), "kind": "Boat"})


# ------------------------------------------------------------------- impure


def scans(
    spec: fnop.Spec, patch: fnop.Patch, warnings: fnop.Warnings, dryrun: bool, **_: Any
) -> None:
    """An impure mutation."""
    if spec.get("bad"):
        raise fnop.Denied("it has a virus", field="spec.bad")
    warnings.append(f"scanned, dry run: {dryrun}")
    patch.spec["scanned"] = True


def test_an_impure_handler_answers_as_a_pure_one(registry: Registry) -> None:
    fnop.on.mutate(KIND, registry=registry, impure=True, side_effects=True)(scans)
    found = review(registry, None, claim(), calls={scans: scans})
    assert found.object == claim(scanned=True)
    assert found.warnings == ("scanned, dry run: False",)
    found = review(registry, None, claim(bad=True), calls={scans: scans})
    assert (found.message, found.code) == ("it has a virus", 422)
    assert found.ranked[0].field == "spec.bad"


def test_an_impure_handler_acts_in_a_dry_run_only_if_it_says_so(
    registry: Registry,
) -> None:
    fnop.on.mutate(KIND, registry=registry, impure=True)(scans)
    found = review(registry, None, claim(), dry_run=True, calls={scans: scans})
    assert not found.allowed
    assert "side_effects=True" in found.message


# ------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"operations": []}, r"operations=\[\] would ask about nothing"),
        ({"operations": ["create"]}, "operations= are CREATE, UPDATE, DELETE and"),
        ({"timeout": 31}, "timeout= is a whole number of seconds from 1 to 30"),
        ({"timeout": 0.5}, "timeout= is a whole number of seconds from 1 to 30"),
        ({"match_policy": "exact"}, "match_policy= is 'Exact' or 'Equivalent'"),
        ({"subresource": "a/b"}, "subresource= is one name in small letters"),
        ({"namespace_selector": 1}, "namespace_selector= takes labels"),
        ({"match_conditions": [1]}, "match_conditions= are CEL expressions by name"),
        ({"retries": 3}, "has no option retries="),
        ({"errors": fnop.ErrorsMode.IGNORED}, "has no option errors="),
        ({"backoff": 3}, "has no option backoff="),
    ],
)
@pytest.mark.parametrize("decorator", [fnop.on.validate, fnop.on.mutate])
def test_options_that_cannot_work_are_refused(
    registry: Registry, decorator: Any, options: Any, words: str
) -> None:
    with pytest.raises(RegistrationError, match=words):
        decorator(KIND, registry=registry, **options)(lambda **_: None)


def test_the_older_word_for_one_operation_is_understood(registry: Registry) -> None:
    @fnop.on.validate(KIND, registry=registry, id="judge", operation="DELETE")
    def judge(**_: Any) -> None: ...

    assert review(registry, claim(), None).asked == ("judge",)
    assert review(registry, None, claim()).asked == ()
