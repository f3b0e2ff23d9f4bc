"""The public names of Kopf, each with the parameters that Kopf has."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_type_hints

import pytest

from fnop import kopf
from fnop.adapters.kopf.commands import names
from fnop.adapters.kopf.declaring import on
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running.embedding import Options

theirs = pytest.importorskip("kopf")

# Public names of Kopf that its `__all__` has forgotten.
FORGOTTEN = ("adjust_namespace", "harmonize_naming")
NAMES = sorted({*theirs.__all__, *FORGOTTEN})
# Their parameters are those of `operator`.
RUNNING = ("operator", "run", "spawn_tasks")
DECORATORS = sorted(
    name
    for name, value in vars(theirs.on).items()
    if inspect.isfunction(value) and name in on.__all__
)


def test_kopf_has_the_names_that_are_compared() -> None:
    assert len(theirs.__all__) == 108
    assert len(DECORATORS) == 17


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_of_kopf_exists(name: str) -> None:
    assert getattr(kopf, name) is not None
    assert name in kopf.__all__


def test_nothing_else_is_public() -> None:
    assert set(kopf.__all__) == set(NAMES)
    assert kopf.__all__ is names.__all__


def parameters(fn: Any) -> set[str]:
    """The names that a call may give, without private ones."""
    return {
        each.name
        for each in inspect.signature(fn).parameters.values()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        and not each.name.startswith("_")
    }


def is_accepted(fn: Any, name: str) -> bool:
    """Whether a call may give an argument of this name."""
    if inspect.isclass(fn):  # the options of a subclass go to its base
        return any(name in parameters(each) for each in fn.__mro__[:-1])
    own = inspect.signature(fn, follow_wrapped=False).parameters
    return name in parameters(fn) or name in own


def is_called(name: str) -> bool:
    found = getattr(theirs, name)
    if name in DECORATORS:
        return False
    if inspect.isclass(found):
        is_data = issubclass(found, (Exception, dict)) or found.__module__ == "typing"
        is_protocol = getattr(found, "_is_protocol", False)
        return not is_data and not is_protocol and bool(parameters(found))
    return inspect.isfunction(found)


@pytest.mark.parametrize("name", [each for each in NAMES if is_called(each)])
def test_a_call_takes_the_parameters_of_kopf(name: str) -> None:
    ours, wanted = getattr(kopf, name), parameters(getattr(theirs, name))
    if name in RUNNING:
        assert wanted <= {*get_type_hints(Options), *parameters(ours)}
    elif name.startswith("login_"):
        call = inspect.signature(ours).parameters.values()
        assert any(each.kind is each.VAR_KEYWORD for each in call)
    elif name.endswith("Tunnel"):
        assert "fnop opens no tunnel" in ours(**dict.fromkeys(wanted)).refusal
    else:
        assert [each for each in wanted if not is_accepted(ours, each)] == []


@pytest.mark.parametrize("name", DECORATORS)
def test_a_decorator_takes_the_options_of_kopf(name: str) -> None:
    if name in ("register", "subhandler"):
        call = inspect.signature(getattr(on, name)).parameters.values()
        assert any(each.kind is each.VAR_KEYWORD for each in call)
        return
    given: dict[str, Any] = dict.fromkeys(parameters(getattr(theirs.on, name)))
    given["registry"] = registry = OperatorRegistry()
    words = () if "group" not in given else ("pods",)
    getattr(on, name)(*words, **given)(print)
    assert [each.fn for each in registry.entries] == [print]


@pytest.mark.parametrize("name", DECORATORS)
def test_a_decorator_refuses_what_kopf_does_not_know(name: str) -> None:
    if name in ("register", "subhandler"):
        return  # outside of a handler they refuse all
    required = {"field": "spec"} if name == "field" else {}
    for module in (theirs.on, on):
        with pytest.raises(TypeError, match="unknown"):
            getattr(module, name)(unknown=1, **required)


def test_errors_are_those_of_fnop_with_the_meaning_of_kopf() -> None:
    assert kopf.TemporaryError("later", delay=3).delay == 3
    assert kopf.TemporaryError("later").delay == theirs.TemporaryError("later").delay
    assert kopf.AdmissionError("no", code=400).code == 400
    assert not issubclass(kopf.PermanentError, kopf.TemporaryError)


@pytest.mark.parametrize("name", ["ErrorsMode", "Reason", "DiffOperation", "LogFormat"])
def test_enumerations_have_the_members_of_kopf(name: str) -> None:
    wanted = getattr(theirs, name)
    found = getattr(kopf, name)
    assert {each.name for each in wanted} <= {each.name for each in found}
    for each in wanted:
        assert str(getattr(found, each.name).value) == str(each.value) or (
            name == "ErrorsMode"
        )


def test_annotations_of_fields_and_handlers_hold_at_run_time() -> None:
    def handler(
        body: kopf.Body,
        meta: kopf.Meta,
        spec: kopf.Spec,
        status: kopf.Status,
        patch: kopf.Patch,
        memo: kopf.Memo,
        logger: kopf.Logger,
        pods: kopf.Index,
        store: kopf.Store,
        diff: kopf.Diff,
        event: kopf.RawEvent,
        field: kopf.FieldPath,
        id: kopf.HandlerId,
    ) -> None: ...

    assert len(get_type_hints(handler)) == 14


def seen_by(library: Any, name: str) -> Any:
    """A value as its author makes it, and sees it in a log."""
    owner = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}}
    added = (library.DiffOperation.ADD, ("a",), None, 1)
    return {
        "patch": lambda: library.Patch({"spec": {"x": 1}}),
        "no patch": library.Patch,
        "functions": lambda: library.Patch(fns=[print]),
        "spec": lambda: library.Body({"spec": {"x": 1}}).spec,
        "body": lambda: library.Body(owner),
        "memo": lambda: library.Memo(a=1),
        "operation": lambda: library.DiffOperation.ADD,
        "item": lambda: library.DiffItem(*added),
        "diff": lambda: library.Diff([library.DiffItem(*added)]),
        "reason": lambda: library.Reason.CREATE,
        "resource": lambda: library.Resource("apps", "v1", "deployments", kind="D"),
        "owner": lambda: library.build_owner_reference(owner),
        "object": lambda: library.build_object_reference(owner),
        "permanent": lambda: library.PermanentError("x"),
    }[name]()


@pytest.mark.parametrize(
    "name",
    [
        *("patch", "no patch", "functions", "spec", "body", "memo", "operation"),
        *("item", "diff", "reason", "resource", "owner", "object", "permanent"),
    ],
)
def test_values_are_shown_as_by_kopf(name: str) -> None:
    one, two = seen_by(kopf, name), seen_by(theirs, name)
    assert (repr(one), str(one)) == (repr(two), str(two))


def classes() -> list[str]:
    return [each for each in theirs.__all__ if isinstance(getattr(theirs, each), type)]


# fnop makes certificates of its own.
WITHOUT = {"build_certificate", "guess_host"}
# Parts of names that nobody has to form.
PARTS = {"make_safe_key", "make_suffix"}


@pytest.mark.parametrize("name", classes())
def test_classes_have_the_members_of_kopf(name: str) -> None:
    if not hasattr(kopf, name):
        pytest.skip("another test lists the names")
    found = {each for each in dir(getattr(kopf, name)) if not each.startswith("_")}
    wanted = {each for each in dir(getattr(theirs, name)) if not each.startswith("_")}
    found |= set(getattr(getattr(kopf, name), "__annotations__", ()))
    found |= {"fns"} if name == "Patch" else set()  # of an instance
    assert wanted - found - WITHOUT - PARTS == set()


@pytest.mark.parametrize("name", classes())
def test_dataclasses_of_kopf_are_dataclasses(name: str) -> None:
    if dataclasses.is_dataclass(getattr(theirs, name)) and hasattr(kopf, name):
        assert dataclasses.is_dataclass(getattr(kopf, name))
