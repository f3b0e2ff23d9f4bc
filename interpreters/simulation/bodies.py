"""Objects of a simulated cluster as operators get them: one value for each of them.

All operators that see an object in one version get the same body. It is read-only at
every depth, so no view of it has to be copied. It keeps its digests and owners.
"""

from __future__ import annotations

from typing import Any

from fnop.core.values.body import Body
from fnop.effects.values import read_only

__all__ = ["body_of", "frozen_of"]

# The most values that are kept: objects of a few clusters.
_KEPT_MAX = 4_096
# By the identity of the plain value, and kept with it.
_frozen: dict[int, tuple[Any, Any]] = {}
_bodies: dict[int, tuple[Any, Body]] = {}


def frozen_of(found: Any) -> Any:
    """The same JSON value, read-only at every depth; it never changes.

    >>> answered = {"metadata": {"name": "a"}}
    >>> frozen_of(answered) is frozen_of(answered)
    True
    """
    known = _frozen.get(id(found))
    if known is None:
        if len(_frozen) >= _KEPT_MAX:
            _frozen.clear()
        known = _frozen[id(found)] = found, read_only(found)
    return known[1]


def body_of(found: Any, raw: bytes | None = None) -> Body:
    """The body of a stored object, which never changes.

    >>> stored = {"metadata": {"name": "a"}}
    >>> body_of(stored) is body_of(stored), body_of({**stored}) is body_of(stored)
    (True, False)
    """
    known = _bodies.get(id(found))
    if known is None:
        if len(_bodies) >= _KEPT_MAX:
            _bodies.clear()
        known = _bodies[id(found)] = found, Body(frozen_of(found), raw)
    return known[1]
