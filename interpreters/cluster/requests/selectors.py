"""Label and field selectors, as in `k8s.io/apimachinery/pkg/labels` and `fields`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.kubernetes.label_selectors import (
    Parser,
    Requirement,
    Unreadable,
    whole_number,
)
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.metadata import key_faults, value_faults
from fnop.interpreters.cluster.values.status import bad_request, quoted

__all__ = ["Selection", "field_selection", "label_selection", "selection_of"]


class FieldTest(Struct, frozen=True):
    """One clause of a field selector."""

    path: tuple[str, ...]
    value: str
    equal: bool
    # The value of a missing field: 0 for numbers, and so on.
    default: str = ""

    def holds(self, obj: Mapping[str, Any]) -> bool:
        """Whether the field has, or has not, the value."""
        found: Any = obj
        for part in self.path:
            found = found.get(part) if isinstance(found, Mapping) else None
        text = self.default if found is None else _text(found)
        return (text == self.value) is self.equal


class Selection(Struct, frozen=True):
    """The selectors of one request; `holds` tests an object."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldTest, ...]

    def holds(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object is selected."""
        if self.labels:
            labels = obj["metadata"].get("labels") or {}
            if not all(clause.holds(labels) for clause in self.labels):
                return False
        return all(clause.holds(obj) for clause in self.fields)


EVERYTHING = Selection((), ())


def _text(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)


# ---------------------------------------------------------------------- labels


def _check_clause(clause: Requirement) -> None:
    """Refuse labels that cannot exist: first the key, then the values."""
    key, operator, values = clause.key, clause.operator, sorted({*clause.values})
    if not operator and (faults := key_faults(key)):
        why = f"<nil>: Invalid value: {quoted(key)}: {'; '.join(faults)}"
        raise Unreadable(why)
    problems = [
        f"values[{index}]: Invalid value: {quoted(value)}: "
        "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values)
        if operator in ("Gt", "Lt") and whole_number(value) is None
    ]
    problems += [
        f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(faults)}"
        for index, value in enumerate(values)
        if (faults := value_faults(value))
    ]
    if problems:
        text = ", ".join(problems)
        raise Unreadable(text if len(problems) == 1 else f"[{text}]")


@lru_cache(maxsize=1024)
def label_clauses(selector: str) -> tuple[Requirement, ...] | str:
    """Parse a label selector; return a text if it is malformed.

    >>> [clause.operator for clause in label_clauses("a=1,b notin (x,y),!c")]
    ['In', 'NotIn', 'DoesNotExist']
    >>> label_clauses("a in")
    "unable to parse requirement: found '' expected: '('"
    """
    try:
        return tuple(Parser(selector, _check_clause).clauses())
    except Unreadable as problem:
        return str(problem)


def label_selection(selector: str) -> tuple[Requirement, ...]:
    """Parse a label selector; malformed → 400."""
    found = label_clauses(selector)
    if isinstance(found, str):
        raise bad_request(found)
    return found


# ---------------------------------------------------------------------- fields

TERM = re.compile(r"(.*?)(==|!=|=)(.*)", re.DOTALL)
# Commas separate terms, unless a backslash precedes them.
TERMS = re.compile(r"(?:[^,\\]|\\.?)*", re.DOTALL)
ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


class Field(Struct, frozen=True):
    """One term of a field selector, before its name is looked up."""

    name: str
    value: str
    equal: bool


@lru_cache(maxsize=1024)
def field_clauses(selector: str) -> tuple[Field, ...] | str:
    r"""Parse a field selector; return a text if it is malformed.

    >>> field_clauses("metadata.name=x")
    (Field(name='metadata.name', value='x', equal=True),)
    >>> field_clauses(r"a=x\,y,b!=")[0].value
    'x,y'
    >>> field_clauses("a")
    "invalid selector: 'a'; can't understand 'a'"
    """
    found = []
    try:
        for text in sorted(filter(None, TERMS.findall(selector))):
            match = TERM.fullmatch(text)
            if match is None:
                return f"invalid selector: '{selector}'; can't understand '{text}'"
            found.append(Field(match[1], _without_escapes(match[3]), match[2] != "!="))
    except Unreadable as problem:
        return f"invalid field selector: {problem}"
    return tuple(found)


def _without_escapes(value: str) -> str:
    return ESCAPED.sub(_unescape, value)


def _unescape(found: re.Match[str]) -> str:
    if found[2]:
        raise Unreadable(f"unescaped character in value: {ord(found[2])}")
    if found[1] not in ("\\", ",", "=") or not found[1]:
        raise Unreadable(f"invalid escape sequence: \\{found[1]}")
    return found[1]


class Where(NamedTuple):
    """The path of a selectable field in the stored object."""

    path: str
    default: str = ""


def _same_places(*names: str) -> dict[str, Where]:
    return {name: Where(name) for name in names}


INVOLVED = (
    "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath",
)  # fmt: skip

# Fields by which collections can be filtered, in addition to name and namespace. They
# are the ones in AddFieldLabelConversionFunc of each kind, with the places that its
# GetAttrs reads.
SELECTABLE: dict[tuple[str, str], dict[str, Where]] = {
    ("", "pods"): {
        **_same_places(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        "spec.hostNetwork": Where("spec.hostNetwork", "false"),
        # The name is known, but no pod has such a field.
        "status.podIPs": Where("-"),
    },
    ("", "events"): {
        **_same_places(
            *(f"involvedObject.{name}" for name in INVOLVED),
            "reason",
            "reportingComponent",
            "type",
        ),
        "source": Where("source.component"),
    },
    ("events.k8s.io", "events"): {
        # In the stored event, which is a core/v1 event.
        **{f"regarding.{name}": Where(f"involvedObject.{name}") for name in INVOLVED},
        **_same_places("reason", "type"),
        "reportingController": Where("reportingComponent"),
    },
    ("", "namespaces"): _same_places("status.phase"),
    ("", "nodes"): {"spec.unschedulable": Where("spec.unschedulable", "false")},
    ("", "replicationcontrollers"): {"status.replicas": Where("status.replicas", "0")},
    ("", "secrets"): _same_places("type"),
    ("", "services"): _same_places("spec.clusterIP", "spec.type"),
    ("batch", "jobs"): {"status.successful": Where("status.succeeded", "0")},
    ("certificates.k8s.io", "certificatesigningrequests"): _same_places(
        "spec.signerName"
    ),
}
EVERYWHERE = _same_places("metadata.name", "metadata.namespace")


def selection_of(kind: Kind | None, query: Mapping[str, str]) -> Selection:
    """The selection of a list, watch or collection delete; malformed → 400.

    Without a kind, the names of fields are not checked.
    """
    if "labelSelector" not in query and "fieldSelector" not in query:
        return EVERYTHING
    labels = label_selection(query.get("labelSelector", ""))
    fields = field_clauses(query.get("fieldSelector", ""))
    if isinstance(fields, str):
        raise bad_request(fields)
    return Selection(labels, field_selection(kind, fields))


def field_selection(
    kind: Kind | None, fields: tuple[Field, ...], of: tuple[str, str] = ("", "")
) -> tuple[FieldTest, ...]:
    """Look the names of fields up in a kind; unknown ones → 400.

    If the kind itself is not at hand, `of` is its group and plural.
    """
    if kind is not None:
        of = (kind.group, kind.plural)
        for each in fields:
            _check_field(kind, each.name)
    known = SELECTABLE.get(of, {})
    return tuple(_test(each, known.get(each.name)) for each in fields)


def _test(clause: Field, where: Where | None) -> FieldTest:
    path, default = where or Where(clause.name)
    return FieldTest(tuple(path.split(".")), clause.value, clause.equal, default)


def _check_field(kind: Kind, name: str) -> None:
    if kind.custom:
        # A cluster-scoped custom kind does not know its namespace.
        if name == "metadata.namespace" and not kind.namespaced:
            raise bad_request(f"field label not supported: {name}")
        if name in EVERYWHERE or f".{name}" in kind.selectable:
            return
        raise bad_request(f"field label not supported: {name}")
    more = SELECTABLE.get((kind.group, kind.plural), {})
    if name in EVERYWHERE or name in more:
        return
    if kind.resource == ("batch", "jobs"):
        raise bad_request(f"field label {quoted(name)} not supported for batchv1.Job")
    if more:
        raise bad_request(f"field label not supported: {name}")
    raise bad_request(
        f'{quoted(name)} is not a known field selector: only "metadata.name", '
        '"metadata.namespace"'
    )
