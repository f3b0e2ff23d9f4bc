"""The decorators of Kopf: what they note, and what they refuse as Kopf does."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring import on
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.adapters.kopf.declaring.registry import (
    Entry,
    OperatorRegistry,
    get_default_registry,
)
from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.declare.roles import Role

theirs = pytest.importorskip("kopf")
from kopf._cogs.structs.references import Selector as KopfSelector  # noqa: E402

ROLES = {each.value: each for each in on.OPTIONS}
ABOUT_OBJECTS = [name for name, role in ROLES.items() if "kind" in on.OPTIONS[role]]


def fn(**_: Any) -> None: ...


def declared(decorate: Callable[..., Any], *words: Any, **options: Any) -> Any:
    """The entry of one declaration."""
    registry = OperatorRegistry()
    assert decorate(*words, **options, registry=registry)(fn) is fn
    (found,) = registry.entries
    return found


@pytest.mark.parametrize("name", ROLES)
def test_a_decorator_notes_what_its_author_has_written(name: str) -> None:
    words = ("pods",) if name in ABOUT_OBJECTS else ()
    more = {"field": "spec.a"} if name == "field" else {}
    found = declared(getattr(on, name), *words, id="own", param=3, **more)
    assert found == Entry(ROLES[name], words, {"id": "own", "param": 3, **more}, fn)
    assert found.id == "own"


def test_options_that_are_none_are_not_given() -> None:
    found = declared(on.create, "pods", id=None, retries=None, labels=None, timeout=0)
    assert found.options == {"timeout": 0}


def test_without_a_registry_the_default_one_is_used() -> None:
    on.create("pods")(fn)
    on.update("pods")(fn)
    entries = get_default_registry().entries
    assert [each.role for each in entries] == [Role.CREATE, Role.UPDATE]


# ------------------------------------------------------------------------- refusals

REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("create", (), {}),
    ("create", ("",), {}),
    ("create", ("a", "b", "c", "d"), {}),
    ("create", ("pods",), {"kind": "Pod"}),
    ("create", (), {"kind": "Pod", "plural": "pods"}),
    ("create", (), {"group": "apps"}),
    ("create", (lambda resource: True, "pods"), {}),
    ("create", ("pods",), {"value": 1}),
    ("update", ("pods",), {"old": 1}),
    ("field", ("pods",), {}),
    ("field", ("pods",), {"field": "spec", "value": 1, "new": 2}),
    ("update", ("pods",), {"field": "spec", "value": 1, "old": 2}),
    ("create", ("pods",), {"field": "spec", "old": 2}),
    ("create", ("pods",), {"labels": {"a": None}}),
    ("event", ("pods",), {"annotations": {"a": "b", "c": None}}),
    ("create", ("pods",), {"field": 5}),
    ("validate", ("pods",), {"operations": []}),
    ("mutate", ("pods",), {"operations": ()}),
    ("event", ("pods",), {"retries": 3}),
    ("startup", ("pods",), {}),
    ("login", (), {"labels": {}}),
]


@pytest.mark.parametrize(("name", "words", "options"), REFUSED, ids=range(len(REFUSED)))
def test_what_kopf_refuses_is_refused_with_the_same_error(
    name: str, words: tuple[Any, ...], options: dict[str, Any]
) -> None:
    errors = []
    for module, cls in ((theirs.on, theirs.OperatorRegistry), (on, OperatorRegistry)):
        with pytest.raises((TypeError, ValueError)) as found:
            getattr(module, name)(*words, **options, registry=cls())(fn)
        errors.append(found.type)
    assert errors[0] is errors[1]


def test_a_refusal_names_the_decorator_and_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"kopf\.on\.create.*labels=.*kopf\.PRESENT"):
        on.create("pods", labels={"a": None})
    with pytest.raises(TypeError, match=r"kopf\.on\.create\(\): name exactly one kind"):
        on.create()
    with pytest.raises(TypeError, match=r"kopf\.on\.update.*old= needs field="):
        on.update("pods", old=1)


# ------------------------------------------------------------------------ selectors

RESOURCES = [
    ("", "v1", "pods", "Pod", "pod", ("po",), ("all",), True),
    ("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", "podmetrics", (), (), True),
    (
        "apps",
        "v1",
        "deployments",
        "Deployment",
        "deployment",
        ("deploy",),
        ("all",),
        True,
    ),
    (
        "apps",
        "v1beta1",
        "deployments",
        "Deployment",
        "deployment",
        ("deploy",),
        (),
        False,
    ),
    ("", "v1", "events", "Event", "event", ("ev",), (), True),
    ("events.k8s.io", "v1", "events", "Event", "event", ("ev",), (), True),
    ("kopf.dev", "v1", "kexes", "Kex", "kex", ("kx",), (), True),
]
EVERYTHING = "everything"
is_short = lambda resource: len(resource.plural) < 6  # noqa: E731
SELECTED: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("pods",), {}),
    (("Pod",), {}),
    (("po",), {}),
    (("pods.v1",), {}),
    (("pods.v1.",), {}),
    (("deployments.apps",), {}),
    (("deployments.v1beta1.apps",), {}),
    (("kexes.v1.kopf.dev",), {}),
    (("v1", "pods"), {}),
    (("apps", "deployments"), {}),
    (("apps/v1", "deployments"), {}),
    (("apps/v1beta1", "deployments"), {}),
    (("", "v1", "pods"), {}),
    (("apps", "v1", "deployments"), {}),
    (("", "pods"), {}),
    ((EVERYTHING,), {}),
    ((EVERYTHING,), {"group": "apps"}),
    (("apps", EVERYTHING), {}),
    (("apps/v1", EVERYTHING), {}),
    (("apps/v1beta1", EVERYTHING), {}),
    (("v1", EVERYTHING), {}),
    (("apps", "v1", EVERYTHING), {}),
    ((is_short,), {}),
    ((is_short,), {"group": "kopf.dev"}),
    ((is_short,), {"version": "v1beta1"}),
    ((), {"kind": "Pod"}),
    ((), {"plural": "pods", "group": ""}),
    ((), {"singular": "kex"}),
    ((), {"shortcut": "deploy", "version": "v1beta1"}),
    ((), {"category": "all"}),
    ((), {"category": "all", "group": "apps"}),
    (("unknown",), {}),
]


def spelt(words: tuple[Any, ...], marker: Any) -> tuple[Any, ...]:
    return tuple(marker if each is EVERYTHING else each for each in words)


@pytest.mark.parametrize(("words", "options"), SELECTED, ids=range(len(SELECTED)))
def test_words_select_the_kinds_that_they_select_in_kopf(
    words: tuple[Any, ...], options: dict[str, Any]
) -> None:
    selector = KopfSelector(*spelt(words, theirs.EVERYTHING), **options)
    entry = declared(on.event, *spelt(words, kopf.EVERYTHING), **options)
    ours = Selector.of(*entry.words, **entry.options)
    names = ("group", "version", "plural", "kind", "singular")
    for row in RESOURCES:
        given: dict[str, Any] = dict(zip(names, row, strict=False))
        short, categories, preferred = row[5:]
        kind = theirs.Resource(
            **given,
            shortcuts=frozenset(short),
            categories=frozenset(categories),
            preferred=preferred,
        )
        mine = Resource(
            **given, shortcuts=short, categories=categories, preferred=preferred
        )
        # Of several versions, the catalogue selects the preferred one.
        is_of_version = selector.version is not None or selector.fn is not None
        if mine.preferred or is_of_version:
            assert ours.matches(mine) is selector.check(kind), row


# --------------------------------------------------------------------- sub-handlers


def test_sub_handlers_are_those_of_the_running_handler() -> None:
    call = CurrentCall("a", {}, None)

    def run() -> None:
        CURRENT.set(call)
        assert on.subhandler(id="b")(fn) is fn
        on.register(fn, id="c")

    copy_context().run(run)
    assert call.children == [(fn, {"id": "b"}), (fn, {"id": "c"})]


def test_outside_of_handlers_there_are_no_sub_handlers() -> None:
    for module in (theirs.on, on):
        with pytest.raises(LookupError):
            module.register(fn, id="b")
        with pytest.raises(LookupError):
            module.subhandler(id="b")(fn)
