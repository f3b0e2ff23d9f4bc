"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.status import bad_request

__all__ = ["Selection", "selection_of"]


class Requirement(NamedTuple):
    """One clause of a label selector."""

    key: str
    operator: str  # in, notin, exists, absent, gt, lt
    values: frozenset[str]

    def holds(self, labels: Mapping[str, Any]) -> bool:
        """Whether labels satisfy this clause."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                # An absent label is in no set: it satisfies `notin` and `!=`.
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: Any) -> bool:
        (bound,) = self.values
        if value is None or not INTEGER.fullmatch(value):
            return False
        number, limit = int(value), int(bound)
        return number > limit if self.operator == "gt" else number < limit


class FieldTest(NamedTuple):
    """One clause of a field selector."""

    path: tuple[str, ...]
    value: str
    equal: bool

    def holds(self, obj: Mapping[str, Any]) -> bool:
        """Whether the field has, or has not, the value."""
        found: Any = obj
        for part in self.path:
            found = found.get(part) if isinstance(found, Mapping) else None
        text = "" if found is None else _text(found)
        return (text == self.value) is self.equal


class Selection(NamedTuple):
    """What the selectors of one request let through."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldTest, ...]

    def holds(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object is selected."""
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(clause.holds(labels) for clause in self.labels):
                return False
        return all(clause.holds(obj) for clause in self.fields)


def _text(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)


INTEGER = re.compile(r"-?\d+")
LABEL_KEY = r"(?:[a-z0-9.-]+/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
LABEL_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
SET_CLAUSE = re.compile(rf"({LABEL_KEY})\s+(in|notin)\s*\(([^()]*)\)")
EQUALITY = re.compile(rf"({LABEL_KEY})\s*(==|=|!=)\s*({LABEL_VALUE})")
COMPARISON = re.compile(rf"({LABEL_KEY})\s*(<|>)\s*(-?\d+)")
PRESENCE = re.compile(rf"(!?)\s*({LABEL_KEY})")
# Commas separate clauses, except inside the parentheses of a set.
CLAUSES = re.compile(r",(?![^()]*\))")


def _requirement(clause: str) -> Requirement | None:
    if match := SET_CLAUSE.fullmatch(clause):
        values = frozenset(value.strip() for value in match[3].split(","))
        return Requirement(match[1], match[2], values)
    if match := EQUALITY.fullmatch(clause):
        operator = "notin" if match[2] == "!=" else "in"
        return Requirement(match[1], operator, frozenset([match[3]]))
    if match := COMPARISON.fullmatch(clause):
        operator = "gt" if match[2] == ">" else "lt"
        return Requirement(match[1], operator, frozenset([match[3]]))
    if match := PRESENCE.fullmatch(clause):
        return Requirement(match[2], "absent" if match[1] else "exists", frozenset())
    return None


@lru_cache(maxsize=1024)
def label_clauses(selector: str) -> tuple[Requirement, ...] | None:
    """Parse a label selector; None where it is malformed.

    >>> [clause.operator for clause in label_clauses("a=1,b notin (x,y),!c")]
    ['in', 'notin', 'absent']
    >>> label_clauses("a in") is None
    True
    """
    if not selector.strip():
        return ()
    clauses = [_requirement(text.strip()) for text in CLAUSES.split(selector)]
    found = tuple(clause for clause in clauses if clause is not None)
    return found if len(found) == len(clauses) else None


FIELD = re.compile(r"([^=!]+?)\s*(==|=|!=)\s*(.*)")


@lru_cache(maxsize=1024)
def field_clauses(selector: str) -> tuple[FieldTest, ...] | None:
    """Parse a field selector; None where it is malformed.

    >>> field_clauses("metadata.name=x")[0].path
    ('metadata', 'name')
    """
    if not selector.strip():
        return ()
    matches = [FIELD.fullmatch(text.strip()) for text in selector.split(",")]
    if not all(matches):
        return None
    return tuple(
        FieldTest(tuple(m[1].split(".")), m[3].strip(), m[2] != "!=")
        for m in matches
        if m
    )


# Fields by which collections can be filtered, beside name and namespace.
SELECTABLE: dict[tuple[str, str], frozenset[str]] = {
    ("", "pods"): frozenset(
        (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        )
    ),
    ("", "events"): frozenset(
        (
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        )
    ),
    ("", "namespaces"): frozenset(("status.phase",)),
    ("", "nodes"): frozenset(("spec.unschedulable",)),
    ("", "replicationcontrollers"): frozenset(("status.replicas",)),
    ("", "secrets"): frozenset(("type",)),
    ("apps", "replicasets"): frozenset(("status.replicas",)),
    ("batch", "jobs"): frozenset(("status.successful",)),
}
EVERYWHERE = frozenset(("metadata.name", "metadata.namespace"))


def selection_of(kind: Kind | None, query: Mapping[str, str]) -> Selection:
    """The selection of a list, watch or collection delete; malformed → 400.

    Without a kind, which fields it knows is not checked.
    """
    labels = label_clauses(query.get("labelSelector", ""))
    if labels is None:
        text = query["labelSelector"]
        raise bad_request(f"unable to parse requirement: invalid selector: {text}")
    fields = field_clauses(query.get("fieldSelector", ""))
    if fields is None:
        text = query["fieldSelector"]
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    if kind is not None:
        for clause in fields:
            _check_field(kind, ".".join(clause.path))
    return Selection(labels, fields)


def _check_field(kind: Kind, name: str) -> None:
    more = SELECTABLE.get(kind.resource, frozenset())
    if name in EVERYWHERE or name in more:
        return
    if kind.custom or more:
        raise bad_request(f"field label not supported: {name}")
    raise bad_request(
        f'"{name}" is not a known field selector: only "metadata.name", '
        '"metadata.namespace"'
    )
