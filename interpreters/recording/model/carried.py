"""The owners of fields in a request (`Wrote`), as all releases record them.

If a handler returned a value, earlier releases recorded all of the status instead of
the fields under the handler's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fnop.core.values.diff import pointer

__all__ = ["Carried", "carried", "told_alike"]

# Handlers and the pointers of their fields. Fields that others overwrite come first.
Carried = tuple[tuple[str, tuple[str, ...]], ...]

_STATUS = "/status"


def carried(told: Iterable[Any]) -> Carried:
    """The handlers and their fields; raises for anything else.

    A pointer to all of the status probably stands for a returned value. It counts after
    all other fields, except the field under the handler's name.

    >>> carried([["a", ["/status/x", "/status"]], ["b", ["/status/y"]]])
    (('a', ('/status',)), ('a', ('/status/x',)), ('b', ('/status/y',)), \
('a', ('/status/a',)))
    """
    given = [(str(name), tuple(map(str, pointers))) for name, pointers in told]
    returned = [name for name, pointers in given if pointers[-1:] == (_STATUS,)]
    if not returned:
        return tuple(given)
    patched = ((name, _patched_fields(pointers)) for name, pointers in given)
    return (
        *((name, (_STATUS,)) for name in returned),
        *((name, pointers) for name, pointers in patched if pointers),
        *((name, (_status_pointer(name),)) for name in returned),
    )


def told_alike(
    recorded: Mapping[str, Any] | None, now: Mapping[str, Any] | None
) -> bool:
    """Whether two commands name the same fields, the recorded one in an older form.

    >>> was = {"do": "Wrote", "id": 1, "fields": [["a", ["/metadata/x", "/status"]]]}
    >>> fields = [["a", ["/metadata/x"]], ["a", ["/status/a/size"]]]
    >>> told_alike(was, was | {"fields": fields}), told_alike(was, was | {"fields": []})
    (True, False)
    """
    if (
        recorded is None
        or now is None
        or recorded["do"] != "Wrote"
        or recorded["do"] != now["do"]
    ):
        return False
    one, other = (
        _fields_by_handler(recorded["fields"]),
        _fields_by_handler(now["fields"]),
    )
    if recorded["id"] != now.get("id") or [*one] != [*other]:
        return False
    return all(_are_alike(name, one[name], other[name]) for name in one)


def _fields_by_handler(fields: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, pointers in fields:
        found[name] = (*found.get(name, ()), *pointers)
    return found


def _are_alike(name: str, was: tuple[str, ...], now: tuple[str, ...]) -> bool:
    patched = _patched_fields(was)
    left, mine = now[len(patched) :], _status_pointer(name)
    is_result = was != patched and bool(left)
    return now == was or (
        is_result
        and now[: len(patched)] == patched
        and all(each == mine or each.startswith(f"{mine}/") for each in left)
    )


def _patched_fields(pointers: tuple[str, ...]) -> tuple[str, ...]:
    return pointers[:-1] if pointers[-1:] == (_STATUS,) else pointers


def _status_pointer(name: str) -> str:
    return pointer(("status", name))
