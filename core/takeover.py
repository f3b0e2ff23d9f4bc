"""Taking over from Kopf: its state on live objects, read as if it were fnop's own.

An operator that was written with Kopf leaves on each object what it has handled, how
far its handlers have got, and a finalizer.  Its successor reads the first two, so that
no creation is handled a second time, and puts its own finalizer in the place of
Kopf's.  The annotations stay: the way back stays open.

The rules are those of Kopf 1.44's default storages (annotations under one prefix).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from fnop.core.cause import Reason
from fnop.core.last_seen import Observation, Stored, see
from fnop.core.objects import Body
from fnop.core.progress import Progress

__all__ = ["annotation_names", "taken_over"]

LAST_HANDLED = "last-handled-configuration"
_NAME_LENGTH_MAX = 63


def taken_over(
    body: Body, prefix: str, observation: Observation, handlers: Iterable[str]
) -> Stored | None:
    """What Kopf has stored on an object, for handlers of these ids; None: nothing.

    What cannot be read counts as nothing.

    >>> body = Body({"metadata": {"annotations": {
    ...     "kopf.zalando.org/last-handled-configuration": '{"spec":{"a":1}}'}}})
    >>> found = taken_over(body, "kopf.zalando.org", Observation(((),)), [])
    >>> same = see(Body({"spec": {"a": 1}}), Observation(((),)))
    >>> found.seen.digests == same.digests
    True
    """
    annotations = body.mapping("annotations")
    essence = _json(annotations.get(f"{prefix}/{LAST_HANDLED}"))
    if essence is not None:
        return Stored(see(Body(essence), observation))
    progress = {
        name: Progress(f"{Reason.CREATE.value}:", finished="success")
        for name in handlers
        if _has_created(annotations, prefix, name)
    }
    if not progress:
        return None
    return Stored(see(body, observation), creating=True, progress=progress)


def _json(text: Any) -> dict[str, Any] | None:
    try:
        found = orjson.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _has_created(annotations: Mapping[str, Any], prefix: str, handler: str) -> bool:
    """Whether a handler of an unfinished creation has succeeded already."""
    for name in annotation_names(prefix, handler):
        record = _json(annotations.get(name))
        if record is not None:
            is_creation = record.get("purpose") in (None, Reason.CREATE.value)
            return is_creation and record.get("success") is True
    return False


def annotation_names(prefix: str, handler: str) -> tuple[str, str]:
    """Where Kopf keeps a handler's progress: the newer name, and the older one.

    >>> annotation_names("kopf.zalando.org", "create_fn/spec")
    ('kopf.zalando.org/create_fn.spec', 'kopf.zalando.org/create_fn.spec')
    """
    safe = handler.replace("/", ".").replace("<", "_").replace(">", "_")
    name = safe
    if len(handler) > _NAME_LENGTH_MAX:
        suffix = _suffix(handler)
        name = safe[: _NAME_LENGTH_MAX - len(suffix)] + suffix
    older, room = safe, _NAME_LENGTH_MAX - len(prefix) - 1
    if len(safe) > room:
        suffix = _suffix(safe)
        older = safe[: max(0, room - len(suffix))] + suffix
    return f"{prefix}/{name}", f"{prefix}/{older}"


def _suffix(text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return "-" + base64.b64encode(digest, b"-.").decode().rstrip("=-.")
