"""Declaring handlers: the refusals, and their words."""

import functools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Selector
from fnop.core.handlers.declare.filters import PRESENT
from fnop.core.handlers.declare.forms import Form
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.values.errors import ErrorsMode, RegistrationError
from fnop.core.values.paths import parse_path

OBJECTS = ("create", "update", "delete", "resume", "event")


def declared(fn: Callable[..., Any], role: str = "create", **options: Any) -> Handler:
    registry = Registry()
    getattr(fnop.on, role)("pods", registry=registry, **options)(fn)
    (handler,) = registry.handlers
    return handler


def refusal(fn: Callable[..., Any], role: str = "create", **options: Any) -> str:
    with pytest.raises(RegistrationError) as found:
        declared(fn, role, **options)
    return str(found.value)


def nothing(**_: Any) -> None:
    pass


# ----------------------------------------------------------------------- kwargs


def test_an_unknown_argument_is_refused_with_a_suggestion() -> None:
    def handler(specs: Any) -> None:
        pass

    message = refusal(handler)
    assert "unknown argument 'specs'; did you mean 'spec'?" in message
    assert "@fnop.on.create" in message
    assert "handler" in message


def test_an_argument_like_no_other_gets_the_list() -> None:
    def handler(zzz: Any) -> None:
        pass

    message = refusal(handler)
    assert "it may ask for annotations, body, diff," in message


@pytest.mark.parametrize(
    ("role", "names"),
    [
        ("event", "old"),
        ("event", "diff"),
        ("event", "reason"),
        ("create", "type"),
        ("create", "event"),
        ("create", "settings"),
    ],
)
def test_an_argument_of_another_role_is_refused(role: str, names: str) -> None:
    found: dict[str, Any] = {}
    exec(f"def handler({names}): pass", found)
    assert f"unknown argument {names!r}" in refusal(found["handler"], role)


def test_an_argument_with_a_default_is_the_author_s_own() -> None:
    def handler(spec: Any, mine: int = 5) -> None:
        pass

    assert declared(handler).signature.wants == ("spec",)


@pytest.mark.parametrize(
    "source", ["def handler(spec, /): pass", "def handler(*args): pass"]
)
def test_positional_arguments_are_refused(source: str) -> None:
    found: dict[str, Any] = {}
    exec(source, found)
    assert "called with keyword arguments" in refusal(found["handler"])


def test_the_marker_of_an_index_asks_for_one() -> None:
    registry = Registry()
    fnop.index("pods", registry=registry, id="by_app")(lambda **_: None)

    def handler(by_app: Any = fnop.INDEX, mine: int = 5, **_: Any) -> None: ...

    fnop.on.create("pods", registry=registry)(handler)
    assert registry.handlers[-1].signature.wants == ("by_app",)


def test_an_index_is_asked_for_by_its_name_alone() -> None:
    registry = Registry()
    fnop.index("pods", registry=registry, id="by_app")(lambda **_: None)
    scope: dict[str, Any] = {}
    exec("def handler(by_app, spec): pass", scope)
    fnop.on.create("pods", registry=registry)(scope["handler"])
    assert registry.handlers[-1].signature.wants == ("by_app", "spec")


@pytest.mark.parametrize(
    ("declared_before", "asked", "sentence"),
    [
        (["by_app"], "by_apps", "index 'by_apps' that is not declared above it; did"),
        (["by_app"], "by_apps", "did you mean 'by_app'?"),
        (["by_app", "names"], "zzz", "there are by_app, names"),
        ([], "by_app", "'by_app' that is not declared above it; there is none"),
        (
            ["by_app"],
            "spec",
            "'spec' is not an index but an argument of its own; leave",
        ),
    ],
)
def test_the_marker_of_an_index_is_for_those_that_there_are(
    declared_before: list[str], asked: str, sentence: str
) -> None:
    registry = Registry()
    for name in declared_before:
        fnop.index("pods", registry=registry, id=name)(lambda **_: None)
    scope: dict[str, Any] = {"fnop": fnop}
    exec(f"def handler({asked}=fnop.INDEX): pass", scope)
    with pytest.raises(RegistrationError, match=re.escape(sentence)):
        fnop.on.create("pods", registry=registry)(scope["handler"])


def test_the_marker_of_an_index_says_what_it_is() -> None:
    assert repr(fnop.INDEX) == "fnop.INDEX"


def test_keyword_only_arguments_are_welcome() -> None:
    def handler(*, spec: Any, name: str) -> None:
        pass

    assert declared(handler).signature.wants == ("spec", "name")


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("def handler(**kwargs): pass", True),
        ("def handler(**_): pass", False),
        ("def handler(**_kwargs): pass", False),
        ("def handler(): pass", False),
    ],
)
def test_the_rest_is_computed_for_those_who_take_it(source: str, rest: bool) -> None:
    found: dict[str, Any] = {}
    exec(source, found)
    assert declared(found["handler"]).signature.rest is rest


# ------------------------------------------------------------------------ forms


def test_the_form_is_seen_from_the_function() -> None:
    async def awaited() -> None:
        pass

    def generator() -> Iterator[Any]:
        yield fnop.sleep(1)

    @functools.wraps(awaited)
    def wrapped(**_: Any) -> Any:
        return awaited()

    assert declared(nothing).signature.form is Form.PLAN
    assert declared(awaited).signature.form is Form.AWAITED
    assert declared(generator).signature.form is Form.GENERATOR
    assert declared(wrapped).signature.form is Form.AWAITED
    assert declared(functools.partial(awaited), id="p").signature.form is Form.AWAITED


def test_an_async_generator_is_refused() -> None:
    async def handler() -> AsyncIterator[Any]:
        yield fnop.sleep(1)

    assert "both awaits and yields" in refusal(handler)


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize("role", OBJECTS)
def test_an_unknown_option_is_refused_with_a_suggestion(role: str) -> None:
    assert f"@fnop.on.{role} has no option label=; did you mean labels=?" in refusal(
        nothing, role, label={}
    )
    assert "it takes" in refusal(nothing, role, zzz=1)


@pytest.mark.parametrize(
    ("role", "option"),
    [
        ("create", "old"),
        ("create", "optional"),
        ("create", "deleted"),
        ("delete", "deleted"),
        ("event", "retries"),
        ("event", "timeout"),
        ("resume", "optional"),
    ],
)
def test_an_option_of_another_role_is_refused(role: str, option: str) -> None:
    assert f"has no option {option}=" in refusal(nothing, role, **{option: 1})


@pytest.mark.parametrize("option", ["timeout", "retries", "backoff"])
@pytest.mark.parametrize("value", [-1, "5", True, [1]])
def test_limits_are_numbers(option: str, value: Any) -> None:
    assert f"{option}= must be a number" in refusal(nothing, **{option: value})


def test_errors_is_a_mode() -> None:
    assert "ErrorsMode.IGNORED" in refusal(nothing, errors="ignored")


def test_errors_defaults_by_role() -> None:
    assert declared(nothing, "event").errors is ErrorsMode.IGNORED
    assert declared(nothing, "create").errors is ErrorsMode.TEMPORARY


# ---------------------------------------------------------------------- filters


@pytest.mark.parametrize("option", ["labels", "annotations"])
def test_a_none_in_a_filter_is_ambiguous(option: str) -> None:
    options: dict[str, Any] = {option: {"app": None}}
    message = refusal(nothing, **options)
    assert f"{option}={{'app': None}} is ambiguous" in message
    assert "fnop.PRESENT or fnop.ABSENT" in message


@pytest.mark.parametrize("option", ["labels", "annotations"])
def test_a_filter_of_labels_is_a_mapping(option: str) -> None:
    options: dict[str, Any] = {option: ["app"]}
    assert f"{option}= takes a mapping" in refusal(nothing, **options)


@pytest.mark.parametrize("option", ["labels", "annotations"])
@pytest.mark.parametrize("value", [1, True, 1.5, ["a"]])
def test_a_filter_that_fits_no_object_is_refused(option: str, value: Any) -> None:
    options: dict[str, Any] = {option: {"n": value}}
    assert f"fits no object, for its values are texts; write {str(value)!r}" in refusal(
        nothing, **options
    )


@pytest.mark.parametrize(
    ("key", "value"), [("n", "a b"), ("n", "x" * 64), ("n!", "a"), ("a b", PRESENT)]
)
def test_a_label_that_no_object_can_have_is_refused(key: str, value: Any) -> None:
    message = refusal(nothing, labels={key: value})
    assert "cannot be a label, so no object has it" in message
    if key == "n":  # an annotation's value is any text
        found = declared(nothing, annotations={key: value})
        assert found.filters.annotations == ((key, value),)


@pytest.mark.parametrize(
    ("pointer", "meant"),
    [
        ("/spec/duration", "'spec.duration'"),
        ("spec/duration", "'spec.duration'"),
        ("spec/", "'spec.'"),
        ("/metadata/labels/a.b~1c", "['metadata', 'labels', 'a.b/c']"),
    ],
)
def test_a_field_is_no_json_pointer(pointer: str, meant: str) -> None:
    message = refusal(nothing, field=pointer)
    assert f"field={pointer!r} is a JSON pointer; write field={meant}" in message


# Other notations: each was accepted, and the handler was never called.
@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("spec.ports[0].port", "is in a list, whose items have no path; write "),
        ("spec[size]", "write field='spec'"),
        ("$.spec.size", "is not a path such as 'spec.size' or a list of keys"),
        ("{.spec.size}", "is not a path such as"),
        (" spec.size", "is not a path such as"),
        (["spec/size"], "is not a path such as"),
        (["/spec", "size"], "is not a path such as"),
    ],
)
@pytest.mark.parametrize("role", ["create", "update", "timer", "daemon", "field"])
def test_a_field_in_another_notation_is_refused(
    role: str, field: Any, sentence: str
) -> None:
    options = {"interval": 5} if role == "timer" else {}
    assert sentence in refusal(nothing, role, field=field, **options)


@pytest.mark.parametrize(
    "take",
    [
        lambda field: fnop.index("pods", field=field, registry=Registry())(nothing),
        lambda field: fnop.Settings(ignored_fields=(field,)),
        fnop.StatusStorage,
        lambda field: fnop.label({}, {"a": "b"}, nested=[field]),
        parse_path,
    ],
)
@pytest.mark.parametrize("field", ["spec/template", "/spec/template"])
def test_no_option_takes_a_json_pointer_for_a_field(
    take: Callable[[str], Any], field: str
) -> None:
    with pytest.raises((TypeError, ValueError), match="is a JSON pointer; write"):
        take(field)


@pytest.mark.parametrize(
    "field", ["metadata.labels.app/name", "data.a-b", ["data", "a/b[0]"], "spec.a b"]
)
def test_keys_of_a_mapping_may_be_any(field: Any) -> None:
    assert declared(nothing, field=field).filters.field[0] in (
        "metadata",
        "data",
        "spec",
    )


def test_filters_are_kept_as_given() -> None:
    handler = declared(nothing, labels={"b": "1", "a": PRESENT})
    assert handler.filters.labels == (("a", PRESENT), ("b", "1"))


@pytest.mark.parametrize(
    ("role", "options"),
    [("create", {"value": 1}), ("update", {"old": 1}), ("update", {"new": 1})],
)
def test_values_need_a_field(role: str, options: dict[str, Any]) -> None:
    assert "need field=" in refusal(nothing, role, **options)


def test_a_value_is_one_side_or_both_but_not_twice() -> None:
    message = refusal(nothing, "update", field="spec.a", value=1, old=2)
    assert "either value= or old=/new=" in message


def test_when_is_a_function() -> None:
    assert "when= takes a function" in refusal(nothing, when=True)


@pytest.mark.parametrize(
    ("role", "options", "sentence"),
    [
        ("create", {"when": lambda sepc: True}, "when= asks for an unknown argument"),
        ("create", {"when": lambda sepc: True}, "'sepc'; did you mean 'spec'?"),
        ("create", {"when": lambda ree: True}, "'ree'; it may ask for annotations"),
        ("create", {"when": lambda retry, **_: True}, "before there is an attempt;"),
        ("create", {"labels": {"a": lambda value, nmae: True}}, "labels= asks for"),
        ("event", {"annotations": {"a": lambda v, mmo: True}}, "annotations= asks"),
        (
            "update",
            {"field": "a", "value": lambda v, patch: True},
            "value= asks for 'patch', but a filter only answers, and is called at any",
        ),
        ("update", {"field": "a", "old": lambda v, logger: True}, "let the handler wr"),
        (
            "event",
            {"when": lambda reason: True},
            "asks for 'reason', but only filters of changes have one: of on.create",
        ),
        ("timer", {"when": lambda reason: True}, "only filters of changes have one"),
        ("timer", {"initial_delay": lambda reason: 1.0}, "only filters of changes"),
        ("index", {"when": lambda reason: True}, "only filters of changes have one"),
        ("field", {"field": "a", "new": fnop.not_(lambda v, zz: True)}, "new= asks"),
        ("timer", {"initial_delay": lambda sepc: 1.0}, "initial_delay= asks for an"),
    ],
)
def test_functions_in_options_ask_for_what_there_is(
    role: str, options: dict[str, Any], sentence: str
) -> None:
    assert sentence in refusal(nothing, role, **options)


def test_functions_in_options_ask_for_indices_that_are_declared_above() -> None:
    registry = Registry()

    def by_name(name: str, **_: Any) -> dict[str, int]:
        return {name: 1}

    fnop.index("pods", registry=registry)(by_name)
    fnop.on.create(
        "pods", when=lambda by_name=fnop.INDEX, **_: True, registry=registry
    )(nothing)
    filters = registry.handlers[-1].filters
    assert filters.when is not None
    assert filters.when.wants == ("by_name",)
    assert filters.asks_indices

    def slip(by_nmae: Any, **_: Any) -> bool:
        return True

    wrong: Any = slip
    with pytest.raises(RegistrationError, match="'by_nmae'; did you mean 'by_name'"):
        fnop.on.create("pods", when=wrong, registry=registry)(nothing)


def test_an_index_asks_for_no_other() -> None:
    registry = Registry()

    def one(name: str, **_: Any) -> dict[str, int]:
        return {name: 1}

    def other(name: str, one: Any = fnop.INDEX, **_: Any) -> dict[str, int]:
        return {name: 1}

    fnop.index("pods", registry=registry)(one)
    sentence = "an index is made of its objects alone, and not of another index"
    with pytest.raises(RegistrationError, match=sentence):
        fnop.index("pods", when=lambda one=fnop.INDEX, **_: True, registry=registry)(
            nothing
        )
    with pytest.raises(RegistrationError, match="an index is made of its objects al"):
        fnop.index("pods", registry=registry)(other)


def test_functions_in_options_ask_for_the_object() -> None:
    filters = declared(nothing, when=lambda spec, new, **_: True).filters
    assert filters.when is not None
    assert filters.when.wants == ("spec", "new")


def test_a_field_handler_needs_its_field() -> None:
    with pytest.raises(RegistrationError, match=r"needs field=, such as"):
        fnop.on.field("pods")  # type: ignore[call-arg]


def test_a_field_is_part_of_the_id() -> None:
    assert declared(nothing, "field", field="spec.size").id == "nothing/spec.size"
    assert declared(nothing, "field", field=("spec", "size")).field == ("spec", "size")


# -------------------------------------------------------------------- selectors


@pytest.mark.parametrize("role", OBJECTS)
def test_a_decorator_without_parentheses_is_refused(role: str) -> None:
    with pytest.raises(RegistrationError, match="use it with parentheses"):
        getattr(fnop.on, role)(nothing)


@pytest.mark.parametrize("role", ["startup", "cleanup"])
def test_an_activity_without_parentheses_is_refused(role: str) -> None:
    with pytest.raises(RegistrationError, match=rf"use it as @fnop.on.{role}\(\)"):
        getattr(fnop.on, role)(nothing)


@pytest.mark.parametrize("role", OBJECTS)
def test_a_handler_names_its_kind(role: str) -> None:
    with pytest.raises(RegistrationError, match="name exactly one kind"):
        getattr(fnop.on, role)()


def test_an_activity_is_about_no_object() -> None:
    with pytest.raises(RegistrationError, match="is about no object"):
        fnop.on.startup("pods")  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="has no option kind="):
        fnop.on.cleanup(kind="Pod")  # type: ignore[call-arg]


def test_a_kind_is_named_by_keywords_too() -> None:
    registry = Registry()
    fnop.on.create(kind="Pod", version="v1", registry=registry)(nothing)
    assert registry.handlers[0].selector == Selector(version="v1", kind="Pod")


def test_a_decorator_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(AttributeError, match="'changed'; there are cleanup, create,"):
        fnop.on.changed("pods")  # type: ignore[attr-defined]


# -------------------------------------------------------------------------- ids


def test_two_functions_may_not_share_an_id() -> None:
    registry = Registry()
    fnop.on.create("pods", registry=registry, id="same")(nothing)
    with pytest.raises(RegistrationError, match=r"give one of them id=\.\.\."):
        fnop.on.update("pods", registry=registry, id="same")(lambda **_: None)


def test_one_function_may_serve_several_causes() -> None:
    registry = Registry()
    fnop.on.create("pods", registry=registry)(nothing)
    fnop.on.resume("pods", registry=registry)(nothing)
    assert [handler.role for handler in registry.handlers] == [Role.CREATE, Role.RESUME]
    assert {handler.id for handler in registry.handlers} == {"nothing"}


def test_two_kinds_may_have_handlers_of_one_id() -> None:
    registry = Registry()
    fnop.on.create("pods", registry=registry, id="same")(nothing)
    fnop.on.create("nodes", registry=registry, id="same")(lambda **_: None)
    assert len(registry.handlers) == 2


def test_a_function_without_a_name_needs_an_id() -> None:
    assert "has no name to serve as its id; give id=" in refusal(lambda: None)
    assert declared(lambda: None, id="named").id == "named"


def test_the_decorated_function_stays_what_it_was() -> None:
    registry = Registry()
    assert fnop.on.create("pods", registry=registry)(nothing) is nothing


def test_handlers_keep_the_order_of_their_declaration() -> None:
    registry = Registry()
    for name in "cab":
        fnop.on.create("pods", registry=registry, id=name)(nothing)
    assert [handler.id for handler in registry.handlers] == ["c", "a", "b"]


# ---------------------------------------------------------- R1: who observes `old`


def looks_at_old(old: Any) -> None:
    pass


def looks_at_diff(diff: Any) -> None:
    pass


def takes_the_rest(**kwargs: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("fn", "role", "options", "observes"),
    [
        (looks_at_old, "update", {}, True),
        (looks_at_diff, "update", {}, True),
        (nothing, "update", {}, False),
        (takes_the_rest, "update", {}, False),
        (nothing, "update", {"field": "spec.a"}, False),
        (nothing, "update", {"field": "spec.a", "old": 1}, True),
        (nothing, "update", {"field": "spec.a", "new": 1}, False),
        (nothing, "update", {"field": "spec.a", "value": 1}, True),
        (nothing, "create", {"field": "spec.a", "value": 1}, False),
        (nothing, "update", {"when": lambda old, **_: True}, True),
        (nothing, "update", {"when": lambda spec, **_: True}, False),
    ],
)
def test_r1_only_who_names_the_past_observes_it(
    fn: Callable[..., Any], role: str, options: dict[str, Any], observes: bool
) -> None:
    assert declared(fn, role, **options).observes_old is observes
