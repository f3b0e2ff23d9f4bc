"""The table of handler roles: it is complete, consistent, and in use."""

from __future__ import annotations

import ast
import re
from typing import Any, Required, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core.handlers.declare.options import options_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import (
    ACTIVITIES,
    ADMISSION,
    BACKGROUND,
    CHANGES,
    CLUSTER,
    EVENTS,
    INDICES,
    LOGS,
    OUTSIDE,
    RECONCILERS,
    ROLES,
    Family,
    Finalizer,
    Role,
    kwargs_of,
    roles_of,
)
from fnop.core.objects.attempt.ending import ENDINGS
from fnop.core.values.cause import HANDLED
from fnop.core.values.errors import RegistrationError
from tests.simulations import ROOT

DERIVED = (
    *(ACTIVITIES, OUTSIDE, CHANGES, EVENTS, LOGS, INDICES, BACKGROUND, RECONCILERS),
    *(ADMISSION, CLUSTER),
)


def decorator_of(role: Role) -> Any:
    place = fnop.on.cluster if role in CLUSTER else fnop.on
    return getattr(place, role.value)


def declared(role: Role, fn: Any, **options: Any) -> Any:
    """The handler that the role's decorator makes of a function."""
    registry = Registry()
    words = ("pods",) if ROLES[role].is_about_objects else ()
    needed = dict.fromkeys(ROLES[role].needs, "spec.size")
    decorator_of(role)(*words, registry=registry, **{**needed, **options})(fn)
    (found,) = registry.handlers
    return found


def usual(role: Role) -> Any:
    async def awaiting(**_: Any) -> None: ...

    def plain(**_: Any) -> None: ...

    return awaiting if ROLES[role].lasts else plain


def test_each_role_has_a_row() -> None:
    assert list(ROLES) == list(Role)


@given(st.sampled_from(Role))
def test_each_role_is_of_just_one_family(role: Role) -> None:
    assert [role in each for each in DERIVED].count(True) == 1
    assert role in roles_of(ROLES[role].family)


def test_the_derived_sets_are_all_families() -> None:
    assert {*DERIVED} == {*map(roles_of, Family)}


@pytest.mark.parametrize("role", Role)
def test_the_decorator_of_a_row_is_the_one_that_makes_its_handlers(role: Role) -> None:
    made = declared(role, usual(role))
    assert made.role is role
    assert made.rule is ROLES[role]
    assert made.errors is ROLES[role].errors
    found: Any = fnop
    for name in ROLES[role].decorator.removeprefix("@fnop.").split("."):
        found = getattr(found, name)
    assert found == decorator_of(role)


@pytest.mark.parametrize("role", Role)
def test_the_documentation_says_when_its_handlers_are_called(role: Role) -> None:
    page = (ROOT / "docs/reference/handlers.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `@")]
    assert any(f"`{ROLES[role].decorator}(" in each for each in rows)


@pytest.mark.parametrize("role", Role)
def test_what_has_to_be_given_is_what_the_options_say(role: Role) -> None:
    hints = get_type_hints(ROLES[role].options, include_extras=True)
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    assert {*ROLES[role].needs} == required
    for name in ROLES[role].needs:
        with pytest.raises(RegistrationError, match=f"needs {name}="):
            decorator_of(role)("pods", registry=Registry())


def test_the_reasons_of_all_roles_are_those_that_are_handled() -> None:
    reasons = {each for rule in ROLES.values() for each in rule.reasons}
    assert reasons == HANDLED
    assert {each.value for each in reasons} == {*get_args(fnop.Reason)}


@given(st.sampled_from(Role))
def test_reasons_are_for_handlers_of_changes(role: Role) -> None:
    rule, is_change = ROLES[role], role in CHANGES
    assert bool(rule.reasons) is is_change
    assert ("reason" in kwargs_of(role)) is is_change
    assert is_change or not (rule.compares or rule.remembers or rule.has_past)
    # What is called for a difference has to know what was handled.
    assert rule.remembers or not rule.compares
    # It is not asked about two things at once.
    assert not (rule.compares and rule.is_for_resuming)


@given(st.sampled_from(Role), st.booleans())
def test_an_option_says_whether_objects_are_held_if_one_may(
    role: Role, value: bool
) -> None:
    rule = ROLES[role]
    options = options_of(rule.options)
    assert ("optional" in options) is (rule.finalizer is Finalizer.UNLESS_OPTIONAL)
    by_option = (Finalizer.UNLESS_DECLINED, Finalizer.IF_ASKED)
    assert ("finalizer" in options) is (rule.finalizer in by_option)
    if "optional" in options:
        assert declared(role, usual(role), optional=value).holds is not value
    elif "finalizer" in options:
        assert declared(role, usual(role), finalizer=value).holds is value
    else:
        assert not declared(role, usual(role)).holds


@pytest.mark.parametrize("role", Role)
def test_who_holds_by_himself(role: Role) -> None:
    holding = (Finalizer.UNLESS_OPTIONAL, Finalizer.UNLESS_DECLINED)
    expected = ROLES[role].finalizer in holding
    assert declared(role, usual(role)).holds is expected


def test_only_what_has_no_object_needs_no_verbs_and_none_is_unknown() -> None:
    for role, rule in ROLES.items():
        assert {*rule.verbs} <= {"patch"}
        assert rule.is_about_objects or not rule.verbs, role


# Roles whose handlers are called by one place of their own, which names them.
_BY_NAME = {"STARTUP", "CLEANUP", "LOGIN", "PROBE", *(each.name for each in CLUSTER)}


def test_elsewhere_no_role_is_compared_with() -> None:
    """The differences between roles come only from their rows."""
    found = set()
    for room in ("core", "adapters", "interpreters"):
        for file in (ROOT / room).rglob("*.py"):
            text = file.read_text()
            if not re.search(r"\bRole\b", text):
                continue
            for node in ast.walk(ast.parse(text)):
                match node:
                    case ast.Attribute(value=ast.Name(id="Role"), attr=str(name)):
                        found.add((file.relative_to(ROOT).as_posix(), name))
                    case _:
                        pass
    names = ("roles", "decorators", "requeueing")
    makers = {f"core/handlers/declare/{each}.py" for each in names}
    makers.add("adapters/kopf/declaring/on.py")  # the decorators of Kopf
    others = {(file, name) for file, name in found if file not in makers}
    # Of a function with no decorator.
    allowed = {("adapters/testing/planning.py", "CREATE")}
    assert {each for each in others if each[1] not in _BY_NAME} == allowed


def test_every_family_with_attempts_has_an_ending() -> None:
    """Handlers of the other families are called without an invocation."""
    without = {Family.INDEX, Family.OUTSIDE, Family.ADMISSION}
    assert ENDINGS.keys() == set(Family) - without
