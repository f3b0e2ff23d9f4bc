"""Answers with names in the place of what cannot be equal on two servers.

Uids, resource versions, generated names, hashes and addresses get names in the order
of their appearance: one name for one original, another for another.  So two
answers are equal after renaming if there is a bijection between what they call
the same things.  Moments lose their value and keep their precision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["Renaming", "differences"]

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VERSION = re.compile(
    r"(?<=\()\d+(?=\))"  # in brackets behind a text
    r"|(?<=ResourceVersion in precondition: )\d+"
    r"|(?<=ResourceVersion in object meta: )\d+"
)
# A version in an answer, perhaps for the first time: after a deletion of many.
TOLD = re.compile(r"(?<=ResourceVersion in record \()\d+(?=\))")
# The address of a document with the hash of its content.
CONTENT_HASH = re.compile(r"(?<=[?&]hash=)[0-9A-F]{32,}")
# The age of an object in a table: no case takes longer.
AGE = re.compile(r"\d{1,3}s")
ADDRESS = re.compile(r"\d+(\.\d+){3}|[0-9a-f:]*:[0-9a-f:]+")

# Hashes of storage versions are not predictable.
DROPPED = frozenset(("storageVersionHash",))
# 1.20 tracked other fields than a current server: fields of the status through the main
# endpoint, and no fields of subresources by themselves.
DROPPED_OLD = DROPPED | {"managedFields"}
HASHES = frozenset(("pod-template-hash", "controller-revision-hash"))
ADDRESSES = frozenset(("clusterIP", "clusterIPs", "hostIP", "ip", "podIP"))
PORTS = frozenset(("nodePort", "healthCheckNodePort"))
GENERATED = 5  # characters behind a generateName


class Renaming:
    """The names that one server's answers to one case have got so far.

    >>> names = Renaming()
    >>> names.of({"metadata": {"uid": "u", "resourceVersion": "17"}})
    {'metadata': {'resourceVersion': 'version-0', 'uid': 'u'}}
    >>> names.of({"metadata": {"uid": "u", "resourceVersion": "17"}})
    {'metadata': {'resourceVersion': 'version-0', 'uid': 'u'}}
    """

    def __init__(self, namespace: str = "", server: str = "") -> None:
        self.is_old = server == "1.20"
        self.uids: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        # Whole words: original -> name.
        self.words: dict[str, str] = {namespace: "{ns}"} if namespace else {}
        self.counts: dict[str, int] = {}
        self.pattern = either_word(self.words)

    def of(self, value: Any) -> Any:
        """The value with every volatile part renamed."""
        for kind, word in volatile_words(value):
            self._register(kind, word)
        return self._renamed(value)

    def part_of(self, path: str, value: Any) -> Any:
        """The renamed value that stands at a dotted path of an answer."""
        named = self.of(value)
        is_cell = path.split(".")[-2:-1] == ["cells"]
        return self._cell(named) if is_cell else named

    def _register(self, kind: str, word: str) -> None:
        if word in self.words:
            return
        count = self.counts[kind] = self.counts.get(kind, -1) + 1
        # What a generated name begins with is kept, hashes in it renamed.
        start = self._text(word[:-GENERATED]) if kind == "generated" else ""
        self.words[word] = f"{start}<{kind}-{count}>"
        self.pattern = either_word(self.words)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._renamed(item) for item in value]
        if isinstance(value, str):
            return self._text(value)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        # In one order on both sides: the first appearance gives the name.
        result = {
            self._text(name): self._field(name, value)
            for name in sorted(value)
            if not self._is_dropped(name, value[name])
        }
        if len(result.get("causes") or ()) > 1:
            # The real validator walks maps in no order.
            result["causes"] = sorted(result["causes"], key=json.dumps)
        if isinstance(result.get("managedFields"), list):
            # They are ordered by time, with many in one second.
            result["managedFields"].sort(key=manager_of)
        if isinstance(result.get("message"), str):
            result["message"] = sorted_list(result["message"])
        if "groupVersion" in value and isinstance(value.get("resources"), list):
            result["resources"].sort(key=lambda one: one["name"])
        return result

    def _is_dropped(self, name: str, value: Any) -> bool:
        if self.is_old and name == "creationTimestamp" and value is None:
            return True  # it showed times in templates, which have none
        return name in (DROPPED_OLD if self.is_old else DROPPED)

    def _field(self, name: str, owner: dict[str, Any]) -> Any:
        value = owner[name]
        if name == "resourceVersion" and value and isinstance(value, str):
            # A list has the version of the whole cluster, if others write.
            return self._version(value) if "uid" in owner else "any"
        if name == "continue" and value:
            return "token"
        if name in PORTS and value:
            return self.words.get(str(value), value)
        if name == "cells" and isinstance(value, list):
            return [self._cell(cell) for cell in value]
        return self._renamed(value)

    def _cell(self, value: Any) -> Any:
        is_age = isinstance(value, str) and AGE.fullmatch(value)
        return "<age>" if is_age else self._renamed(value)

    def _version(self, version: str) -> str:
        return self.versions.setdefault(version, f"version-{len(self.versions)}")

    def _text(self, text: str) -> str:
        if found := MOMENT.fullmatch(text):
            return "micro-moment" if found[1] else "moment"
        text = UID.sub(
            lambda found: self.uids.setdefault(found[0], f"uid-{len(self.uids)}"), text
        )
        text = TOLD.sub(lambda found: self._version(found[0]), text)
        text = VERSION.sub(lambda found: self.versions.get(found[0], found[0]), text)
        text = CONTENT_HASH.sub("...", text)
        return self.pattern.sub(lambda found: self.words[found[0]], text)


def manager_of(entry: Any) -> tuple[str, ...]:
    names = ("manager", "operation", "subresource", "apiVersion")
    return tuple(str(entry.get(name)) for name in names)


def either_word(words: dict[str, str]) -> re.Pattern[str]:
    """Any of the words, the longest first, without an adjoining letter or digit."""
    longest = sorted(words, key=len, reverse=True)
    either = "|".join(map(re.escape, longest)) or "(?!)"  # nothing, ever
    return re.compile(f"(?<![0-9A-Za-z])(?:{either})(?![0-9A-Za-z])")


def volatile_words(value: Any) -> Iterator[tuple[str, str]]:
    """The words in an answer that a server has made up, and of what kind they are.

    Hashes come first: they are parts of generated names.

    >>> list(volatile_words({"generateName": "a-", "name": "a-x2z7q"}))
    [('generated', 'a-x2z7q')]
    """
    found = list(_volatile_words(value))
    yield from sorted(found, key=lambda one: one[0] != "hash")


def _volatile_words(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _volatile_words(item)
    if not isinstance(value, dict):
        return
    for name in sorted(value):
        part = value[name]
        if name in HASHES and isinstance(part, str) and part:
            yield "hash", part
        elif name in PORTS and isinstance(part, int) and part:
            yield "port", str(part)
        elif name in ADDRESSES:
            parts = part if isinstance(part, list) else [part]
            for each in parts:
                if isinstance(each, str) and ADDRESS.fullmatch(each):
                    yield "address", each
        else:
            yield from _volatile_words(part)
    name, prefix = value.get("name"), value.get("generateName")
    if not isinstance(name, str) or not isinstance(prefix, str):
        return
    if name.startswith(prefix) and len(name) == len(prefix) + GENERATED:
        yield "generated", name


def sorted_list(message: str) -> str:
    """A message with what it lists in brackets put in order.

    >>> sorted_list('x "a" is invalid: [b: no, a: no]')
    'x "a" is invalid: [a: no, b: no]'
    """
    head, bracket, tail = message.partition(" is invalid: [")
    if not bracket or not tail.endswith("]"):
        return message
    return f"{head}{bracket}{', '.join(sorted(tail[:-1].split(', ')))}]"


# ------------------------------------------------------------------ differing

MANY = 12


def differences(ours: Any, theirs: Any) -> str:
    """The differing places of two values, one path per line.

    >>> print(differences({"a": [1, 2]}, {"a": [1, 3]}))
    a.1: 2, not 3
    """
    found = list(_differences("", ours, theirs))
    more = [f"and {len(found) - MANY} more"] if len(found) > MANY else []
    return "\n".join([*found[:MANY], *more])


MISSING = "(absent)"


def _differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            mine, other = ours.get(name, MISSING), theirs.get(name, MISSING)
            yield from _differences(f"{path}.{name}" if path else name, mine, other)
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, not {len(theirs)}"
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from _differences(f"{path}.{index}", mine, other)
    elif json.dumps(ours) != json.dumps(theirs):  # True is not 1
        yield f"{path}: {shown(ours)}, not {shown(theirs)}"


def shown(value: Any) -> str:
    return value if value == MISSING else json.dumps(value)
