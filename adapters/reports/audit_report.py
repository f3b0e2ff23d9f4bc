"""The report of an audit: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.adapters.reports.plan_report import (
    by_json,
    field_text,
    place_json,
    source_text,
)
from fnop.core.values.errors import number_of
from fnop.interpreters.plan.audited import Answer, Audit, Finding

__all__ = ["FORMAT", "as_json", "as_lines"]

FORMAT = 1
# The number of objects that are named in a group, and of fields of each.
_NAMED_MAX, _FIELDS_MAX = 20, 6
_SIGNS = {
    Answer.REFUSED: "x",
    Answer.CHANGED: "~",
    Answer.KEPT: "x",
    Answer.WARNED: "!",
    Answer.UNKNOWN: "?",
}
_WORDS = {
    Answer.REFUSED: "would be refused by",
    Answer.CHANGED: "would be changed by",
    Answer.KEPT: "cannot be deleted, because of",
    Answer.WARNED: "would be warned about by",
    Answer.UNKNOWN: "cannot be judged by",
}


def as_lines(audit: Audit) -> Iterator[str]:
    """The audit for people: the objects by handler and message, the worst first."""
    groups: dict[tuple[Answer, str, str], list[Finding]] = {}
    for answer in Answer:
        for each in audit.findings:
            if each.answer is answer:
                place = source_text(each.source)
                who = (
                    f"{each.source.handler} ({place})" if place else each.source.handler
                )
                groups.setdefault((answer, who, each.text), []).append(each)
    for (answer, who, message), found in groups.items():
        number = number_of(len({each.place for each in found}), "object")
        why = f": {message}" if message else ""
        yield f"  {_SIGNS[answer]} {number} {_WORDS[answer]} {who}{why}"
        for each in found[:_NAMED_MAX]:
            yield f"      {each.place.label}"
            for field in each.fields[:_FIELDS_MAX]:
                yield f"        {field_text(field)}"
        if len(found) > _NAMED_MAX:
            yield f"      and {len(found) - _NAMED_MAX} more"
    if groups:
        yield ""
    for unread in audit.unread:
        yield f"  ? not audited: {unread.place.label} cannot be read: {unread.why}"
    for note in audit.notes:
        yield f"  note: {note}"
    yield _footer(audit)


def _footer(audit: Audit) -> str:
    counts = ", ".join(
        f"{audit.count(answer)} {words}"
        for answer, words in (
            (Answer.REFUSED, "would be refused"),
            (Answer.CHANGED, "changed"),
            (Answer.WARNED, "warned about"),
        )
    )
    kept = audit.count(Answer.KEPT)
    counts += f", {kept} not to be deleted" if kept else ""
    unknown = audit.count(Answer.UNKNOWN)
    rest = f", {unknown} not judged" if unknown else ""
    unread = len({each.place.resource for each in audit.unread})
    rest += f"; {number_of(unread, 'kind')} not audited" if unread else ""
    asked, reads = number_of(audit.asked, "object"), number_of(audit.reads, "read")
    return f"Audit: of {asked} {counts}{rest}. 0 writes sent, {reads}."


# ------------------------------------------------------------------------- JSON


def as_json(audit: Audit) -> dict[str, Any]:
    """The audit as JSON; `format` changes if its meaning does."""
    return {
        "format": FORMAT,
        "findings": [
            {
                "answer": each.answer.value,
                **by_json([each.source]),
                "object": place_json(each.place),
                "message": each.message or None,
                "field": each.field or None,
                "fields": [
                    {"field": field.path, "before": field.old, "after": field.new}
                    for field in each.fields
                ],
            }
            for each in audit.findings
        ],
        "unread": [{**place_json(e.place), "why": e.why} for e in audit.unread],
        "notes": list(audit.notes),
        "asked": audit.asked,
        "reads": audit.reads,
        "writes": 0,
    }
