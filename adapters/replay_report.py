"""The findings of a replay, as lines for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fnop.core.values.diff import Diff, DiffItem, diff
from fnop.core.values.errors import number_of

if TYPE_CHECKING:
    from fnop.interpreters.replay import Difference
    from fnop.interpreters.shadow import Judged, Shadow

__all__ = ["difference_lines", "shadow_lines", "sorts_of"]

# Groups of changes, and examples of one, that are shown.
_GROUPS_SHOWN = 20
_EXAMPLES_SHOWN = 3
_FIELDS_SHOWN = 6
_VALUE_LENGTH = 100


# -------------------------------------------------------------- the first difference

# Why a difference may come from nothing but tokens in place of secrets.
_DOUBTS = {
    "derived": "it depends on a secret, and the recording holds a token in its place",
    "given": "its handler was given a secret, and the recording holds a token instead",
}


def difference_lines(
    difference: Difference, recorded_by: str, now_by: str
) -> Iterator[str]:
    """The first decision that differs; the two are releases of fnop."""
    was, now = difference.recorded, difference.now
    shown = now or was
    assert shown is not None
    who = f", of handler {difference.handler}" if difference.handler else ""
    about = f" about {difference.attempt[1]}" if difference.attempt else ""
    what = f"step {difference.step + 1}: {_titled(shown)}{about}{who}"
    doubt = _DOUBTS.get(difference.doubt or "")
    yield f"cannot be compared at {what}: {doubt}" if doubt else f"different at {what}"
    for item in _changes(was, now):
        if item.field:
            yield f"at {'/'.join(item.field)}"
        yield f"recorded (fnop {recorded_by}): {_shown(item.old)}"
        yield f"now (fnop {now_by}): {_shown(item.new)}"


_TRACES = {
    "Began": "what an attempt is shown",
    "Asked": "what an attempt asks for",
    "Given": "what an attempt is answered",
    "Desires": "what is desired",
    "Ended": "the decision",
    "Wrote": "whose fields are written",
    "Indexed": "what is indexed",
}


def _titled(command: dict[str, Any]) -> str:
    """The name of a command's effect, and the object that it is about."""
    if command["do"] in _TRACES:
        return _TRACES[command["do"]]
    effect: str = (command.get("effect") or {}).get("is", command["do"])
    about = command.get("subject")
    return f"{effect} about {about}" if about else effect


def _changes(was: Any, now: Any) -> Diff:
    """The fields that differ; of two commands of different kinds, all of both."""
    if was and now and _titled(was) == _titled(now):
        return diff(was, now)
    return (DiffItem("change", (), was, now),)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


# ------------------------------------------------------------------------- the shadow


def shadow_lines(found: Shadow) -> list[str]:
    """The number of decisions that change, and groups of them that are alike."""
    lines = [*_summary(found)]
    groups: dict[tuple[str, str, tuple[str, ...]], list[Judged]] = {}
    for each in found.changed:
        groups.setdefault(_group_of(each), []).append(each)
    largest = sorted(groups.values(), key=len, reverse=True)
    for group in largest[:_GROUPS_SHOWN]:
        lines += ["", *_group_lines(group)]
    if len(largest) > _GROUPS_SHOWN:
        lines += ["", f"and {number_of(len(largest) - _GROUPS_SHOWN, 'other group')}"]
    return lines


def _summary(found: Shadow) -> Iterator[str]:
    changed = len(found.changed)
    change = "changes" if changed == 1 else "change"
    yield f"{changed} of {found.attempts:,} recorded decisions {change}"
    if found.concealed:
        yield (
            f"{number_of(found.concealed, 'decision')} cannot be compared: the "
            "recording holds tokens in place of secrets"
        )
    for why, count in found.untold.most_common():
        yield f"{number_of(count, 'decision')} cannot be asked again: {why}"
    for name, count in sorted(found.missing.items()):
        yield f"{number_of(count, 'decision')} of {name}, which is no handler now"
    if found.truncated:
        yield "the recording is cut off: its end was never written"


def _group_of(judged: Judged) -> tuple[str, str, tuple[str, ...]]:
    """Changes of one handler, of one sort, in the same fields, are alike."""
    changed = judged.changed
    fields = tuple(sorted({_dotted(each.field) for each in changed.fields}))
    what = changed.failure.type if changed.failure is not None else changed.sort
    return judged.handler.id, what, fields[:_FIELDS_SHOWN]


def _group_lines(group: Sequence[Judged]) -> Iterator[str]:
    first = group[0]
    handler, changed = first.handler, first.changed
    times = f"{len(group)} x " if len(group) > 1 else ""
    yield f"{times}{handler.label} ({handler.place or '?'}) {_verb(first)}"
    is_alike = ("is" in changed.recorded) == ("is" in changed.now)
    fields = changed.fields if is_alike else ()
    for item in fields[:_FIELDS_SHOWN]:
        yield f"  {_dotted(item.field)}: {_brief(item.old)} -> {_brief(item.new)}"
    more = len(fields) - _FIELDS_SHOWN
    if more > 0:
        yield f"  and {number_of(more, 'field')} more"
    places = Counter(f"{each.attempt.where or handler.id}" for each in group)
    names = [name for name, _ in places.most_common(_EXAMPLES_SHOWN)]
    rest = f", and {len(places) - len(names)} more" if len(places) > len(names) else ""
    steps = ", ".join(f"#{each.attempt.step}" for each in group[:_EXAMPLES_SHOWN])
    yield f"  at {', '.join(names)}{rest} (step {steps})"


def _verb(judged: Judged) -> str:
    changed = judged.changed
    if changed.failure is not None and changed.sort == "raises":
        return f"raises {changed.failure}"
    if changed.sort == "asks":
        recorded = _named(changed.recorded)
        return f"asks for {_named(changed.now)}, where it {_ended(recorded)}"
    asked = _named(changed.recorded)
    return f"ends, where it asked for {asked}" if asked else "ends otherwise"


def _ended(recorded: str) -> str:
    return f"asked for {recorded}" if recorded else "ended"


def _named(decision: dict[str, Any]) -> str:
    """An effect in words: its kind, and what it is about; "" for an end."""
    if "is" not in decision:
        return ""
    manifest = decision.get("manifest") or decision.get("object") or {}
    target = decision.get("target") or {}
    meta = manifest.get("metadata") or {}
    kind = manifest.get("kind") or target.get("kind") or target.get("resource") or ""
    name = meta.get("name") or target.get("name") or decision.get("function") or ""
    about = "/".join(str(each) for each in (kind, name) if each)
    return f"{decision['is']} {about}".strip()


def _dotted(field: Sequence[str]) -> str:
    return ".".join(field) or "all of it"


def _brief(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."


def sorts_of(found: Shadow) -> frozenset[str]:
    """The words of `--fail-on` that the changes are: for what is new in a decision.

    "raise" is a failure where there was none; the others are effects that are asked for
    now, or desired no more: a child that is not desired any more is a "delete".
    """
    return frozenset(sort for each in found.changed for sort in _sorts(each))


def _sorts(judged: Judged) -> Iterator[str]:
    changed = judged.changed
    yield "any"
    if changed.failure is not None:
        yield "raise"
    were, are = _effects(changed.recorded), _effects(changed.now)
    for name, count in (are - were).items():
        if count > 0 and name in _SORTS:
            yield _SORTS[name]
    if _children(changed.recorded) - _children(changed.now):
        yield "delete"
    if _children(changed.now) - _children(changed.recorded):
        yield "create"


_SORTS = {
    "Delete": "delete",
    "Create": "create",
    "Adopt": "create",
    "Apply": "apply",
    "Patch": "patch",
    "Event": "event",
}


def _effects(decision: dict[str, Any]) -> Counter[str]:
    """The kinds of the effects of a decision, each with its contents."""
    plan = [decision] if "is" in decision else decision.get("plan", ())
    patches = [each for each in decision.get("patches", ()) if each]
    return Counter(each["is"] for each in (*plan, *patches))


def _children(decision: dict[str, Any]) -> set[tuple[str, ...]]:
    desired = decision.get("desired") or {}
    manifests = [each["manifest"] for each in desired.get("children", ())]
    return {
        (
            str(each.get("kind")),
            str(each["metadata"].get("namespace", "")),
            str(each["metadata"].get("name")),
        )
        for each in manifests
    }
