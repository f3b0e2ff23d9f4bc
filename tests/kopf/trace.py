"""What an operator has left, in a normal form that two runs can share.

A trace has objects, Events, calls of handlers, log lines, answers to requests and exit
statuses. `differences` compares two traces, and `Judge` knows which of the differences
the users' page lists.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

# ------------------------------------------------------------------- normal forms

_VOLATILE = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\d+:\d\d:\d\d(\.\d+)?"), "<duration>"),
    (re.compile(r"\b\d+\.\d{3,}\b"), "<float>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"(?<=-token-)[a-z0-9]{5}\b"), "<random>"),
    (re.compile(r"^\S+\.py:\d+: (?=\w+Warning: )"), ""),
    (re.compile(r"(?<='resourceVersion': ')\d+"), "<version>"),
    (re.compile(r"[\w.-]+@[\w.-]+/\d{14}/\w{3,4}\b"), "<peer>"),
)
_FLEETING = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def normal_text(text: str) -> str:
    """The text, with a placeholder for each value that differs between two runs."""
    for pattern, placeholder in _VOLATILE:
        text = pattern.sub(placeholder, text)
    return text


def normal_object(body: Mapping[str, Any], *, ours: bool) -> dict[str, Any]:
    """The object, without fields that differ between two runs.

    The status of a kind that is not `ours` is its controllers' and is skipped.
    """
    meta = {k: v for k, v in body["metadata"].items() if k not in _FLEETING}
    # Kopf touches an object to see it again, and at times leaves the touch behind.
    notes = meta.pop("annotations", {})
    if left := {k: v for k, v in notes.items() if not k.endswith("/touch-dummy")}:
        meta["annotations"] = left
    kept = {k: v for k, v in body.items() if k != "status" or ours}
    normal: dict[str, Any] = _normal({**kept, "metadata": meta})
    return normal


def _normal(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: "<bundle>" if key == "caBundle" else _normal(each)
                for key, each in value.items()
            }
        case list():
            return [_normal(each) for each in value]
        case str():
            return normal_text(_with_sorted_keys(value))
        case _:
            return value


def _with_sorted_keys(text: str) -> str:
    """JSON in annotations may have any order of keys."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    if not isinstance(parsed, dict):
        return text
    return json.dumps(parsed, sort_keys=True, separators=(",", ":"))


# ------------------------------------------------------------------------ the log

_CALL = re.compile(
    r"(Handler|Timer|Daemon|Activity|Indexer|Webhook) '(.+)' is invoked\.$"
)

_REQUEST_DONE = re.compile(
    r"^(Indexer|Webhook) '.+' succeeded\.$|^127\.0\.0\.1 \["
    r"|^(Reconfiguring|Cleaning up) the .*webhook "
)
_UNWANTED = re.compile(r"(finished with inconsistencies|will not be served): .*")
# All of a traceback but the errors: the rest names files.
_TRACEBACK = re.compile(r"^\s|^$|^Traceback |^The above exception ")
_BACKGROUND = frozenset({"Timer", "Daemon", "Indexer", "Webhook"})
# A line of a program that has not asked for JSON.
_PLAIN = re.compile(
    r"^\[[\d\-: ,.]+\] \S+ +\[(?P<severity>\w+) *\] "
    r"(\[(?P<about>[\w.-]+/[\w.-]+)\] )?(?P<message>.*)$"
)


def named(ref: Mapping[str, Any], plurals: Mapping[str, str], namespace: str) -> str:
    """The object as in a story: its plural, another namespace, its name."""
    place = ref.get("namespace") or namespace
    elsewhere = "" if place == namespace else f"@{place}"
    return f"{plurals[ref['kind']]}{elsewhere}/{ref['name']}"


@dataclass
class Trace:
    """The lines that an operator has logged, sorted by the object they are about.

    Handlers of watch events are `loose`: how often they are called depends on the
    number of writes, and on events that Kopf takes together. A timer is `loose` if its
    end is not ordered with handlers of the change that it makes. Lines that match one
    of `loose_lines` come in any order and number. Lines about a handler in `apart` are
    not ordered with other ones. Whether `lucky_lines` come at all is luck.
    """

    loose: Collection[str] = ()
    loose_lines: Collection[str] = ()
    apart: Collection[str] = ()
    lucky_lines: Collection[str] = ()
    namespace: str = ""
    calls: dict[str, list[str]] = field(default_factory=dict)
    background: dict[str, dict[str, int]] = field(default_factory=dict)
    log: dict[str, list[str]] = field(default_factory=dict)

    def add(self, line: str, plurals: Mapping[str, str], role: str = "") -> None:
        """Take a line of the operator that has this role in the story."""
        severity, about, message, raised = "", "", line, ""
        try:
            entry = json.loads(line)
            severity, message = entry["severity"], str(entry["message"])
        except (ValueError, TypeError):
            if plain := _PLAIN.match(line):
                severity, message = plain["severity"].lower(), plain["message"]
                about = plain["about"] or "operator"
            elif _TRACEBACK.search(line):
                return
        else:
            ref = entry.get("object") or {}
            about = named(ref, plurals, self.namespace) if ref else "operator"
            raised = str(entry.get("exc_info", "")).strip()
        about, message = role + (about or "stderr"), normal_text(message)
        if found := _CALL.search(message):
            self._add_call(about, *found.groups())
        elif severity != "debug" and not self._is_loose(message):
            cause = f" <- {normal_text(raised.splitlines()[-1])}" if raised else ""
            # The rest names the whole object, with the writes of other controllers, or
            # kinds in any order.
            message = _UNWANTED.sub(r"\1", message)
            self._add_line(about, f"{message}{cause}", severity)

    def _add_line(self, about: str, text: str, severity: str) -> None:
        line = f"{severity}: {text}" if severity else text
        if any(re.search(each, line) for each in self.lucky_lines):
            return
        if any(re.search(each, line) for each in self.loose_lines):
            self._count(about, f"line {line}")
            return
        about += "".join(f" {each}" for each in self.apart if f"'{each}'" in line)
        lines = self.log.setdefault(about, [])
        if lines[-1:] != [line] or not severity:
            lines.append(line)

    def _is_loose(self, message: str) -> bool:
        """Does this line come as often as there are watch events or requests?"""
        done = {
            f"{form} {handler!r} succeeded."
            for form in ("Handler", "Timer", "Daemon", "Activity")
            for handler in self.loose
        }
        return message in done or _REQUEST_DONE.search(message) is not None

    def _add_call(self, about: str, form: str, handler: str) -> None:
        if form in _BACKGROUND or handler in self.loose:
            # They are not ordered with the calls of other handlers.
            self._count(about, f"{form} {handler}")
        else:
            self.calls.setdefault(about, []).append(handler)

    def _count(self, about: str, what: str) -> None:
        own = self.background.setdefault(about, {})
        own[what] = own.get(what, 0) + 1


# ------------------------------------------------------------------ the differences


def differences(one: Any, two: Any, where: str = "") -> Iterator[str]:
    """What only `one` (-) or `two` (+) has, each with its place."""
    if one == two:
        return
    one, two = _parsed(one), _parsed(two)
    if _are_named(one) and _are_named(two):
        one, two = ({each["name"]: each for each in every} for every in (one, two))
    match one, two:
        case dict(), dict():
            for key in sorted({*one, *two}):
                path = f"{where} {key}".strip()
                for mark, has, lacks in (("-", one, two), ("+", two, one)):
                    for each in _texts(has[key]) if key in {*has} - {*lacks} else ():
                        yield f"{path}: {mark} {each}"
                if key in one and key in two:
                    yield from differences(one[key], two[key], path)
        case list(), list():
            texts = _texts(one), _texts(two)
            for line in difflib.unified_diff(texts[0], texts[1], lineterm="", n=0):
                if not line.startswith(("---", "+++", "@@")):
                    yield f"{where}: {line[0]} {line[1:]}"
        case _:
            yield f"{where}: - {json.dumps(one)}"
            yield f"{where}: + {json.dumps(two)}"


def _parsed(value: Any) -> Any:
    """An annotation may be an object in JSON."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _are_named(value: Any) -> bool:
    """Whether it is a list of objects with different names."""
    if not isinstance(value, list):
        return False
    names = [each.get("name") for each in value if isinstance(each, dict)]
    return len(value) == len({*names} - {None})


def _texts(value: Any) -> list[str]:
    """The elements of a list as texts, or the value as one."""
    elements = value if isinstance(value, list) else [value]
    return [
        each if isinstance(each, str) else json.dumps(each, sort_keys=True)
        for each in elements
    ]


class Judge:
    """Which differences the users' pages list.

    A file has the rows of the pages' tables by their first cells, and patterns of the
    differences that follow from each row.
    """

    def __init__(self, file: Path, root: Path) -> None:
        self._rows: dict[str, list[re.Pattern[str]]] = {}
        for page, rows in yaml.safe_load(file.read_text()).items():
            text = (root / page).read_text()
            for row, patterns in rows.items():
                if f"| {row} |" not in text:
                    raise ValueError(f"{page} has no row {row!r}: see {file}")
                self._rows[row] = [re.compile(each) for each in patterns]

    def row_of(self, difference: str) -> str | None:
        """The row of the table, or None if no page lists the difference."""
        for row, patterns in self._rows.items():
            if any(each.search(difference) for each in patterns):
                return row
        return None
