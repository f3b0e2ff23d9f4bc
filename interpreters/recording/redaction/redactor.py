"""The records of one run without their secrets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct

from fnop.core.handlers.program.program import Program
from fnop.core.values.diff import Path, parse_field
from fnop.effects.values import canonical
from fnop.interpreters.recording.identities.tokens import MARK, draws_secret
from fnop.interpreters.recording.redaction.copies import Substitutions
from fnop.interpreters.recording.redaction.digests import Digests
from fnop.interpreters.recording.redaction.forms import (
    LINE_LENGTH,
    base64_of,
    drawn_forms,
    forms,
    from_base64,
    inner_base64,
    parts_of,
    text_of,
)
from fnop.interpreters.recording.redaction.places import Places, differs, has_clue
from fnop.interpreters.recording.redaction.telling import is_address, is_telling

__all__ = ["Draft", "Redaction"]


def _listed_path(field: str) -> Path:
    """The path of a field that a user lists; keys of annotations contain dots.

    >>> _listed_path("spec.url"), _listed_path("metadata.annotations.example.com/key")
    (('spec', 'url'), ('metadata', 'annotations', 'example.com/key'))
    """
    path = parse_field(field)
    if not path:
        raise ValueError(f"{field!r} names no field; name one such as spec.url")
    if path[:2] in (("metadata", "annotations"), ("metadata", "labels")):
        return (*path[:2], ".".join(path[2:])) if len(path) > 2 else path
    return path


class Draft(Protocol):
    """A record to be written: its texts, and the whole record if it is needed."""

    @property
    def is_concerned(self) -> bool:
        """Whether it may contain the place of a secret, or a known copy of one."""

    @property
    def texts(self) -> Iterable[bytes]:
        """All texts of the record."""

    def whole(self) -> dict[str, Any]:
        """The record, built again."""


class _Whole(Struct, frozen=True):
    """A record about which nothing is known."""

    record: dict[str, Any]
    is_concerned: bool = True
    texts: Iterable[bytes] = ()

    def whole(self) -> dict[str, Any]:
        return self.record


class Redaction:
    """Replaces secrets in the records of one run, in their order.

    A value is known from the first place of a secret that shows it. Records in which
    anything was replaced carry `"redacted": true`.
    """

    def __init__(
        self, key: bytes, program: Program, fields: Iterable[str] = ()
    ) -> None:
        self._key = key
        self._digests = Digests(program)
        listed = tuple(map(_listed_path, fields))
        self._uids: set[str] = set()
        self._places = Places(self._hide, listed, self._uids)
        self._listed_hints = tuple(each[-1].lower().encode() for each in listed)
        # The tokens of all values so far, and the distinctive ones in all their forms.
        self._known: set[str] = set()
        self._copies = Substitutions()
        # The digests of objects that contain no place of a secret.
        self._plain: set[bytes] = set()
        # Requests about Secrets, and for random bytes that are a secret.
        self._about_secrets: set[int] = set()
        self._drawing: set[int] = set()
        # Drawn bytes in each form that a field may hold, with the bytes that replace
        # them.
        self._draws: dict[str, str] = {}

    def know_uid(self, uid: str) -> None:
        """Take note of an object's uid, which is not a secret even as a token."""
        self._uids.add(uid)

    def concerns(self, record: dict[str, Any], news: bytes) -> bool:
        """Whether a record may hold a secret; `news` is the part not written before.

        The record may lack the object of its input.
        """
        input = record["input"]
        if input["in"] == "Answered":
            number = input["id"]
            if number in self._about_secrets or number in self._drawing:
                return True
        for each in record["commands"]:
            if each["do"] == "Perform" and (
                _is_about_secrets(each) or _draws_secret(each)
            ):
                self._remember((each,))
                return True
        return self.is_hinted(news) or bool(self._copies.found_in(news))

    def scrubbed(self, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The records without secrets; a record without any is returned itself.

        A value that a later record shows to be a secret is hidden in all of them.
        Mappings keep their order: a handler may show one.
        """
        found = self.redacted([_Whole(each) for each in records])
        return [
            record if redacted is None else redacted
            for record, redacted in zip(records, found, strict=True)
        ]

    def redacted(self, drafts: Sequence[Draft]) -> list[dict[str, Any] | None]:
        """Do the same as `scrubbed` for drafts; None for each unchanged record."""
        known = len(self._copies)
        concerned = [
            self._redact_places(each) if each.is_concerned else None for each in drafts
        ]
        is_more_known = len(self._copies) > known
        return [
            self._without_copies(*found)
            if found is not None
            else self._redact_late_copies(draft)
            if is_more_known
            else None
            for draft, found in zip(drafts, concerned, strict=True)
        ]

    def _redact_places(
        self, draft: Draft
    ) -> tuple[dict[str, Any], dict[str, Any], bytes]:
        """A record, the same record without secrets at their places, and its text."""
        record = draft.whole()
        line = orjson.dumps(record)
        return record, self._without_placed_secrets(record, line), line

    def _redact_late_copies(self, draft: Draft) -> dict[str, Any] | None:
        """A record with copies of secrets that were not known when it was searched."""
        if not any(map(self._copies.found_in, draft.texts)):
            return None
        record = draft.whole()
        return self._without_copies(record, record, orjson.dumps(record))

    def veiled(self, value: Any) -> Any:
        """A JSON value that is not a record, without the secrets known by now."""
        line = orjson.dumps(value)
        if self.is_hinted(line):
            value = self._places.walk(value, (), secret=False)
            line = orjson.dumps(value)
        copies = self._copies.found_in(line)
        return self._copies.applied({"": value}, copies)[""] if copies else value

    def _without_copies(
        self, record: dict[str, Any], found: dict[str, Any], line: bytes
    ) -> dict[str, Any] | None:
        placed = line if found is record else orjson.dumps(found)
        copies = self._copies.found_in(placed)
        if copies:
            found = self._copies.applied(found, copies)
        if found is record or orjson.dumps(found) == line:
            return None
        return {**self._replace_digests(record, found), "redacted": True}

    def _without_placed_secrets(
        self, record: dict[str, Any], line: bytes
    ) -> dict[str, Any]:
        input, secret = record["input"], False
        if input["in"] == "Answered":
            input = self._replace_drawn(input)
            secret = input["id"] in self._about_secrets
            self._about_secrets.discard(input["id"])
        commands = record["commands"]
        self._remember(commands)
        if secret or self.is_hinted(line) or any(map(_is_about_secrets, commands)):
            input = (
                self._places.walk(input, (), secret=secret)
                if secret
                else self._redact_input(input)
            )
            commands = [
                self._places.walk(each, (), secret=is_about)
                if (is_about := _is_about_secrets(each))
                or self.is_hinted(orjson.dumps(each))
                else each
                for each in commands
            ]
        if input is record["input"] and not differs(commands, record["commands"]):
            return record
        return {**record, "input": input, "commands": commands}

    def _redact_input(self, input: dict[str, Any]) -> dict[str, Any]:
        """An input without secrets; an object known to have none is not searched again.

        The answer to a write comes again as a watch event.
        """
        shown = input.get("body") or input.get("outcome") or input
        text = orjson.dumps(shown)
        if not self.is_hinted(text):
            return input
        sum_ = hashlib.blake2b(text, digest_size=16).digest()
        if sum_ in self._plain:
            return input
        found: dict[str, Any] = self._places.walk(input, (), secret=False)
        if found is input:
            if len(self._plain) >= _PLAIN_MAX:
                self._plain.clear()
            self._plain.add(sum_)
        return found

    def is_hinted(self, text: bytes) -> bool:
        """Whether a text may contain the place of a secret."""
        lower = text.lower()
        if any(each in lower for each in self._listed_hints):
            return True
        return has_clue(lower)

    def _remember(self, commands: Iterable[dict[str, Any]]) -> None:
        for each in commands:
            if _is_about_secrets(each):
                self._about_secrets.add(each["id"])
            if _draws_secret(each):
                self._drawing.add(each["id"])

    def _replace_drawn(self, answered: dict[str, Any]) -> dict[str, Any]:
        """Treat random bytes that are a secret as one from the moment they are drawn.

        Other bytes of the same number replace them, in each form.
        """
        if answered["id"] not in self._drawing:
            return answered
        self._drawing.discard(answered["id"])
        outcome = answered["outcome"]
        drawn = outcome.get("value")
        if not isinstance(drawn, str):
            return answered
        raw = bytes.fromhex(drawn)
        others = self._replacement_bytes(raw)
        for text, instead in drawn_forms(raw, others):
            self._draw(text, instead)
        return {**answered, "outcome": {**outcome, "value": others.hex()}}

    def _draw(self, text: str, instead: str) -> None:
        if text not in self._draws:
            self._draws[text] = instead
            self._learn_secret(text.encode(), instead)

    def _replacement_bytes(self, raw: bytes) -> bytes:
        found = b""
        while len(found) < len(raw):
            more = raw + len(found).to_bytes(2)
            found += hashlib.blake2b(more, key=self._key, digest_size=64).digest()
        return found[: len(raw)]

    def _hide(self, value: Any, encoded: bool) -> str:
        """The token of a value at the place of a secret."""
        text = value if isinstance(value, str) else canonical(value).decode()
        if text in self._draws:
            return self._draws[text]
        raw = from_base64(text) if encoded else None
        if raw is None:
            return self._token_of(text.encode())
        return base64_of(self._token_of(raw).encode())

    def _token_of(self, value: bytes) -> str:
        drawn = self._draws.get(text_of(value) or "")
        if drawn is not None:
            return drawn
        token = self._token_for(value)
        if token not in self._known:
            self._known.add(token)
            self._learn_secret(value, token)
            for part in parts_of(value):
                self._learn_part(part)
        return token

    def _learn_part(self, part: str) -> None:
        token = self._token_for(part.encode())
        self._copies.add(part, token)
        if len(part) < LINE_LENGTH:  # one line of many is hardly encoded by itself
            self._learn_inner(part.encode(), token)

    def _token_for(self, value: bytes) -> str:
        digest = hashlib.blake2b(value, key=self._key, digest_size=_ID_BYTES)
        return MARK + digest.hexdigest()

    def _learn_secret(self, value: bytes, token: str) -> None:
        if is_telling(value) and not is_address(text_of(value) or ""):
            for form, instead in forms(value, token):
                self._copies.add(form, instead)
                self._copies.add_wrapped(form, instead)
            self._learn_inner(value, token)

    def _learn_inner(self, value: bytes, token: str) -> None:
        """Remember its base64 within the base64 of a longer or cut-off text.

        Whole groups are replaced by whole groups, so that the text stays base64.
        """
        text, instead = text_of(value), base64_of(token.encode())
        for form in inner_base64(value):
            self._copies.add(form, instead, of=text)

    def _replace_digests(
        self, record: dict[str, Any], found: dict[str, Any]
    ) -> dict[str, Any]:
        """Replace digests of the former contents by those of the recorded ones."""
        known = len(self._copies)
        self._digests.learn(record["input"], found["input"], self._copies)
        self._digests.learn_sent(record["commands"], found["commands"], self._copies)
        if len(self._copies) == known:
            return found
        copies = self._copies.found_in(canonical(found))
        redacted: dict[str, Any] = (
            self._copies.applied(found, copies) if copies else found
        )
        return redacted


_PLAIN_MAX = 65_536
# The bytes by which a token names its value (see `TOKEN_LENGTH`).
_ID_BYTES = 12


def _is_about_secrets(command: dict[str, Any]) -> bool:
    resource = command.get("resource")
    return (
        command["do"] == "Perform"
        and isinstance(resource, str)
        and resource.startswith("secrets.")
        and resource.endswith(".")
    )


def _draws_secret(command: dict[str, Any]) -> bool:
    return command["do"] == "Perform" and draws_secret(command["effect"])
