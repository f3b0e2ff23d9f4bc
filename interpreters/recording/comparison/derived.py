"""Texts that handlers derived from secrets: digests, and copies of random values.

A recording replaces secrets by other texts, and a later run draws new ones. So these
texts differ in each run. No recording says how a text was derived. But a text that
looks like a digest is probably derived from a secret if its author had seen one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from fnop.core.api.catalogue import Catalogue
from fnop.core.values.paths import FieldPath
from fnop.effects import Random
from fnop.effects.wire import to_wire
from fnop.interpreters.recording.identities.volatile import has_token
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.excerpt import Excerpt, resource_of
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.questions.provenance import Provenance

__all__ = ["derived_texts"]

Read = Callable[[], Iterable[dict[str, Any]]]

# Digests within a text, in hexadecimal or in base64.
_DIGEST = re.compile(
    r"(?<![0-9A-Za-z])[0-9a-f]{16,128}(?![0-9A-Za-z])"
    r"|(?<![0-9A-Za-z+/])(?:[A-Za-z0-9+/]{27}=|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==)"
)
# A shorter text may occur anywhere by chance.
_DRAWN_LENGTH_MIN = 16
# Metadata that handlers do not set.
_SERVER = frozenset(("uid", "resourceVersion", "managedFields", "ownerReferences"))


def derived_texts(excerpt: Excerpt, read: Read, manager: str) -> frozenset[str]:
    """The texts in the objects at the end that are derived from a secret.

    `read` returns the records, and `manager` is the operator's name in managed fields.
    """
    long = (each for each in excerpt.drawn if len(each) >= _DRAWN_LENGTH_MIN)
    drawn = [form for each in long for form in _forms(each)]
    found: set[str] = set()
    for place, each in excerpt.end.items():
        suspects = {
            path: text
            for path, text in _texts(each)
            if place.kind != "Secret"
            and (_DIGEST.search(text) or _has_any(text, drawn))
        }
        copies = {text for text in suspects.values() if _has_any(text, drawn)}
        found |= copies
        rest = {path: text for path, text in suspects.items() if text not in copies}
        found |= {
            *_suspects_from_secrets(excerpt.catalogue, place, rest, read, manager)
        }
    return frozenset(found)


def _suspects_from_secrets(
    catalogue: Catalogue,
    place: Place,
    suspects: Mapping[FieldPath, str],
    read: Read,
    manager: str,
) -> Iterator[str]:
    """The suspects that their authors made after they had seen a secret.

    A suspect that is part of the object itself is skipped: its author was given it.
    """
    resource = resource_of(catalogue, place)
    if not suspects or resource is None:
        return
    provenance = Provenance(resource, place.namespace, place.name, manager)
    for record in read():
        provenance.add(record)
    for path, text in suspects.items():
        why = provenance.why(path)
        if why is None or why.attempt is None or why.value != text:
            continue
        own = b"" if why.attempt.body is None else orjson.dumps(why.attempt.body.data)
        if text.encode() not in own and _knows_secrets(why.attempt):
            yield text


def _knows_secrets(attempt: Attempt) -> bool:
    """Whether an attempt was shown or given a secret, or has drawn one."""
    bodies = [attempt.body, *attempt.children.values()]
    shown = [each.data for each in bodies if each is not None]
    asked = [each.asked for each in attempt.exchanges]
    given = [to_wire(e.outcome) for e in attempt.exchanges if e.outcome is not None]
    objects = [*shown, *(each.get("object") for each in given)]
    return (
        any(each["is"] == Random.__name__ for each in asked)
        or any(isinstance(e, Mapping) and e.get("kind") == "Secret" for e in objects)
        or has_token([shown, given, attempt.memo])
    )


def _texts(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """All texts in an object, with their paths."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if path != ("metadata",) or key not in _SERVER:
                yield from _texts(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _texts(each, (*path, number))
    elif isinstance(value, str):
        yield path, value


def _has_any(text: str, drawn: Iterable[str]) -> bool:
    return any(each in text for each in drawn)


def _forms(drawn: str) -> Iterator[str]:
    """The forms in which random bytes may occur in a text."""
    raw = bytes.fromhex(drawn)
    yield drawn
    yield base64.b64encode(raw).decode().rstrip("=")
    yield base64.urlsafe_b64encode(raw).decode().rstrip("=")
