"""Secrets by their place: the data of Secrets, and fields with sensitive names."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Container, Iterable
from functools import lru_cache
from operator import is_not
from typing import Any

import orjson

from fnop.core.values.diff import Path, path_at
from fnop.effects.values import canonical
from fnop.interpreters.recording.identities.volatile import UID
from fnop.interpreters.recording.redaction.content import ENVELOPE, IDENTITY
from fnop.interpreters.recording.redaction.forms import base64_of, from_base64
from fnop.interpreters.recording.redaction.telling import is_reference, is_telling

__all__ = ["Places", "differs", "has_clue", "is_secret_kind", "is_sensitive_name"]

_HELD = ("data", "stringData", "binaryData")
_HELD_PATH = re.compile(r"/(data|stringData|binaryData)(/|$)")
_ALWAYS = re.compile(
    r"(password|passwd|passphrase|pwd|token|api[-_.]?key|private[-_.]?key"
    r"|secret[-_.]?access[-_.]?key|client[-_.]?secret|authorization|bearer)s?$",
    re.IGNORECASE,
)
# Such a field may also hold the name of a Secret, or of a key in one.
_SOMETIMES = re.compile(
    r"(secret|credential|access[-_.]?key|secret[-_.]?key)s?$", re.IGNORECASE
)
_OBJECT_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,251}[A-Za-z0-9])?")
# The spaces between the tokens of JSON, and their quotes, also in JSON within a text.
_SPACE = rb"(?:\s|\\+[nrt])*"
_QUOTE = rb'\\*"'
_COLON = _QUOTE + _SPACE + b":" + _SPACE
_NAMES = (
    *(rb"password", rb"passwd", rb"passphrase", rb"pwd", rb"token", rb"bearer"),
    *(rb"api[-_.]?key", rb"private[-_.]?key", rb"access[-_.]?key", rb"secret[-_.]?key"),
    *(rb"authorization", rb"secret", rb"credential"),
)
# The clues to the place of a secret: a part of a Secret; the packed values of a state;
# a sensitive field with a text or with a list; a variable with such a name. Each
# pattern begins with the text next to it, which is searched for first, in small
# letters.
_CLUES = (
    (b'"secret', re.compile(rb'"secret(?:list)?' + _QUOTE)),
    (b'"was', re.compile(b'"was' + _COLON + _QUOTE)),
    *(
        (
            re.match(b"[a-z]+", name)[0],  # type: ignore[index]
            re.compile(name + b"s?" + _COLON + b"(?:" + _QUOTE + rb"|\[)"),
        )
        for name in _NAMES
    ),
)
_VARIABLE = re.compile(
    b'"name' + _COLON + _QUOTE + b'[^"]*(?:' + b"|".join(_NAMES) + b")s?" + _QUOTE
)
_UNPACKED_MAX = 16 * 1024 * 1024


def is_secret_kind(value: dict[str, Any]) -> bool:
    return value.get("kind") in ("Secret", "SecretList")


class Places:
    """Rewrites the texts at the places of secrets, and nothing else.

    A value without such places is returned itself.
    """

    def __init__(
        self,
        hide: Callable[[Any, bool], Any],
        listed: tuple[Path, ...],
        uids: Container[str],
    ) -> None:
        self._hide = hide
        self._uids = uids  # an object's uid is not a secret, whatever its use
        self._listed = listed

    def walk(self, value: Any, path: Path, *, secret: bool) -> Any:
        """Hide the secrets in a value; `secret` if it belongs to a Secret."""
        if isinstance(value, dict):
            return self._redact_mapping(
                value, path, secret=secret or is_secret_kind(value)
            )
        if isinstance(value, list):
            found = [self.walk(item, path, secret=secret) for item in value]
            return found if differs(found, value) else value
        if isinstance(value, str) and value[:1] in ("{", "["):
            return self._redact_json_text(value, path, secret=secret)
        return value

    def _redact_mapping(
        self, value: dict[str, Any], path: Path, *, secret: bool
    ) -> Any:
        found = value
        for name, item in value.items():
            if not (secret or self._listed) and _is_plain(name, item):
                continue
            new = self._redact_field(value, name, item, path, secret=secret)
            if new is not item:
                found = dict(value) if found is value else found
                found[name] = new
        return found

    def _redact_field(
        self, parent: dict[str, Any], name: str, item: Any, path: Path, *, secret: bool
    ) -> Any:
        if secret and self._is_held(parent, name):
            encoded = "stringData" not in (name if name != "value" else parent["path"])
            return self._redact_value(item, encoded=encoded)
        if name in _KEPT and _is_kept(parent, name, path):
            return item
        here = (*path, *path_at(name)) if name[:1] == "/" else (*path, name)
        is_listed = bool(self._listed) and self._is_listed(here)
        if is_listed or (
            self._is_sensitive(parent, name, item) and not self._is_of_uids(item)
        ):
            return self._redact_value(item, encoded=False)
        if name == "was" and isinstance(item, str) and "seen" in parent:
            return self._redact_state(item, path, secret=secret)
        return self.walk(item, here, secret=secret)

    def _is_of_uids(self, item: Any) -> bool:
        """Whether a text is an object's uid, with nothing secret added.

        An example is a token by which a call is made only once: `f"{uid}/orders"`.
        """
        if not isinstance(item, str):
            return False
        rest = UID.sub(lambda uid: "" if uid[0] in self._uids else uid[0], item)
        return len(rest) < len(item) and not is_telling(rest)

    @staticmethod
    def _is_held(parent: dict[str, Any], name: str) -> bool:
        """Whether a field of a Secret is, or becomes, a part of its data."""
        if name == "value" and isinstance(parent.get("path"), str):
            return bool(_HELD_PATH.match(parent["path"]))
        if name in _HELD:
            return isinstance(parent[name], dict | str)
        return bool(_HELD_PATH.match(name))

    def _is_listed(self, path: Path) -> bool:
        return any(path[-len(each) :] == each for each in self._listed)

    @staticmethod
    def _is_sensitive(parent: dict[str, Any], name: str, item: Any) -> bool:
        if isinstance(item, dict):
            return False
        if name == "value" and isinstance(parent.get("name"), str):
            name = parent["name"]  # a variable of a container's environment
        if isinstance(item, list):
            return bool(item) and all(
                isinstance(each, str) and _is_sensitive_text(name, each)
                for each in item
            )
        return isinstance(item, str) and _is_sensitive_text(name, item)

    def _redact_value(self, value: Any, *, encoded: bool) -> Any:
        if isinstance(value, dict):
            return {
                name: self._redact_value(item, encoded=encoded)
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self._redact_value(item, encoded=encoded) for item in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        return self._hide(value, encoded)

    def _redact_json_text(self, text: str, path: Path, *, secret: bool) -> str:
        """A JSON text, such as the state, or the note of `kubectl apply`."""
        try:
            value = orjson.loads(text)
        except ValueError:
            return text
        found = self.walk(value, path, secret=secret)
        if found is value:
            return text
        is_sorted = text.encode() == canonical(value)
        again = (canonical(found) if is_sorted else orjson.dumps(found)).decode()
        return again + text[len(text.rstrip()) :]

    def _redact_state(self, text: str, path: Path, *, secret: bool) -> str:
        """The values of a state, compressed (`last_seen.write_stored`)."""
        raw = from_base64(text)
        try:
            inflater = zlib.decompressobj()
            value = orjson.loads(inflater.decompress(raw or b"", _UNPACKED_MAX))
        except (zlib.error, ValueError):
            return text
        found = self.walk(value, path, secret=secret)
        return text if found is value else base64_of(zlib.compress(canonical(found), 6))


def has_clue(text: bytes) -> bool:
    """Whether a text, in small letters, may contain the place of a secret.

    >>> has_clue(b'{"password":"x"}'), has_clue(b'{"phase":"x"}')
    (True, False)
    """
    is_named = False
    for literal, pattern in _CLUES:
        if literal in text:
            if pattern.search(text):
                return True
            is_named = True
    return is_named and _VARIABLE.search(text) is not None


def _is_plain(name: str, item: Any) -> bool:
    """Whether a field outside of Secrets clearly neither is nor holds a secret."""
    kind = type(item)
    if kind is str:
        is_text = item[:1] not in ("{", "[") and name not in ("value", "was")
        return is_text and is_sensitive_name(name) is None
    return kind is not dict and kind is not list


# The names for which `_is_kept` may be true.
_KEPT = ENVELOPE | IDENTITY | {"seen"}


def _is_kept(parent: dict[str, Any], name: str, path: Path) -> bool:
    """Whether a field says what a record or an object is, and holds no secret."""
    if name in ENVELOPE and ("in" in parent or "do" in parent):
        return True
    if name == "seen" and "uid" in parent:
        return True  # the digests of a state, by the names of fields
    return path[-1:] == ("metadata",) and name in IDENTITY


def _is_sensitive_text(name: str, text: str) -> bool:
    always = is_sensitive_name(name)
    if always is None:
        return False
    if always:
        return True
    is_name = _OBJECT_NAME.fullmatch(text) is not None and not is_telling(text)
    return not (is_name or is_reference(text))


@lru_cache(4096)
def is_sensitive_name(name: str) -> bool | None:
    """Whether such a field holds a secret; False for sometimes, None for never."""
    if _ALWAYS.search(name):
        return True
    return False if _SOMETIMES.search(name) else None


def differs(some: Iterable[Any], others: Iterable[Any]) -> bool:
    return any(map(is_not, some, others))
