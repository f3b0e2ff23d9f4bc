"""The option `requeue_on=`: an index whose entries a handler observes.

It creates two handlers: an index of the keys under which each object has its entries,
and an update handler for these entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, TypeVar

from msgspec import Struct

from fnop.core.handlers.declare.filters import Callback, Filters, Wanted
from fnop.core.handlers.declare.forms import Form, Signature, form_of
from fnop.core.handlers.declare.handler import Handler, Within
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import INDICES, Role, kwargs_of
from fnop.core.values.entries import ENTRIES, key_name
from fnop.core.values.errors import ErrorsMode, RegistrationError, listed
from fnop.effects.structs import replace
from fnop.effects.values import shown

__all__ = ["Requeue", "requeue_of"]


class Requeue(Struct, frozen=True):
    """The index in `requeue_on=`, and the function from an object to its keys."""

    name: str
    keys: Callable[..., Any]

    def handlers(self, called: Handler, label: str) -> tuple[Handler, Handler]:
        """The handlers that call a handler again when entries of the index change.

        These are the index of its objects' keys, and the handler itself as an update
        handler of the entries.
        """
        filters, own_id = called.filters, f"{called.id}@{self.name}"
        keys = Handler(
            f"{own_id} keys",
            Within(_entries_of_keys, self.keys),
            Role.INDEX,
            Signature.of(self.keys, kwargs_of(Role.INDEX), f"{label}: requeue_on="),
            called.selector,
            # Functions may depend on more than the object.
            Filters(
                _constant_criteria(filters.labels),
                _constant_criteria(filters.annotations),
                fields=_constant_criteria(filters.fields),
            ),
            errors=ErrorsMode.IGNORED,
            owner=called.owner,
        )
        again = replace(
            called,
            id=own_id,
            role=Role.UPDATE,
            entries=(ENTRIES, self.name, keys.id),
            repeats=called.id,
        )
        return keys, again


def requeue_of(
    options: Mapping[str, Any], label: str, registry: Registry
) -> Requeue | None:
    """The index in `requeue_on=`; None without one.

    Raises `RegistrationError` for an index that is not declared yet.
    """
    given = options.get("requeue_on")
    if given is None:
        return None
    keys: Callable[..., Any] = _keys_of_object
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise RegistrationError(
                f"{label}: requeue_on= takes one index with the function of its keys, "
                f"not {len(given)}; use a decorator for each"
            )
        ((given, keys),) = given.items()
        if not callable(keys):
            raise RegistrationError(
                f"{label}: requeue_on= maps an index to a function of the object that "
                f"returns its keys, not to {shown(keys)}"
            )
        if form_of(keys, f"{label}: requeue_on=") is not Form.PLAN:
            raise RegistrationError(
                f"{label}: the function of the keys in requeue_on= answers at once; "
                "write it without async and yield"
            )
    return Requeue(_index_id(given, label, registry), keys)


def _index_id(given: Any, label: str, registry: Registry) -> str:
    known = [each for each in registry.handlers if each.role in INDICES]
    for each in known:
        if given == each.id or given is each.fn:
            return each.id
    names = [each.id for each in known if each.id.isidentifier()]
    hint = f"there are {listed(names)}" if names else "there is none"
    raise RegistrationError(
        f"{label}: requeue_on= names an index that is declared before it, not "
        f"{shown(given)}; {hint}"
    )


def _keys_of_object(name: str, namespace: str | None, **_: Any) -> list[Any]:
    """The keys that name an object, in the two usual forms."""
    return [name] if namespace is None else [f"{namespace}/{name}", (namespace, name)]


def _entries_of_keys(function: Callable[..., Any], /, **given: Any) -> dict[Any, bool]:
    """The entry in an index of keys: each key that the function returns."""
    keys = function(**given)
    if keys is None:
        return {}
    if isinstance(keys, Set):
        keys = sorted(keys, key=key_name)
    return dict.fromkeys(keys, True) if isinstance(keys, list) else {keys: True}


T = TypeVar("T")


def _constant_criteria(
    wanted: tuple[tuple[T, Wanted], ...],
) -> tuple[tuple[T, Wanted], ...]:
    """Keep the criteria that are constant values."""
    return tuple(each for each in wanted if not isinstance(each[1], Callback))
