"""The findings of a replay, as lines for people."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fnop.adapters.common.codes import Code, versions
from fnop.adapters.recordings.recorded import CUT_OFF
from fnop.core.values.diff import Diff, DiffItem, diff
from fnop.core.values.errors import number_of
from fnop.core.values.paths import Contrast, contrasts, path_text
from fnop.interpreters.recording.comparison.sorts import words_of

if TYPE_CHECKING:
    from fnop.interpreters.recording.comparison.shadow import Changed
    from fnop.interpreters.recording.replay.replay import Difference
    from fnop.interpreters.shadow.attempts import Judged, Shadow
    from fnop.interpreters.shadow.reviews import Redecided
    from fnop.interpreters.shadow.writes import Reviewed

__all__ = ["difference_lines", "shadow_lines", "sorts_of"]

_T = TypeVar("_T")

# The number of shown groups of changes, and of examples in each.
_GROUPS_SHOWN = 20
_EXAMPLES_SHOWN = 3
_FIELDS_SHOWN = 6
# The number of writes that are named in a group.
_WRITES_SHOWN = 5
_VALUE_LENGTH = 100


# -------------------------------------------------------------- the first difference

# A difference may come only from tokens that replace secrets.
_DOUBTS = {
    "derived": "it depends on a secret, and the recording holds a token in its place",
    "given": "its handler was given a secret, and the recording holds a token instead",
    "process": "the code of all handlers is as recorded, so it depends on what the "
    "recording lacks: startup, storages, or a value that a handler keeps, as in a memo",
}


def difference_lines(
    difference: Difference,
    recorded_by: Code,
    now_by: Code,
    *,
    has_shadow: bool = True,
) -> Iterator[str]:
    """The first decision that differs, and the code that made it in each run.

    `has_shadow` means that --shadow can ask for the other decisions.
    """
    was, now = difference.recorded, difference.now
    shown = now or was
    assert shown is not None
    who = f", of handler {difference.handler}" if difference.handler else ""
    about = f" about {difference.attempt[1]}" if difference.attempt else ""
    what = f"step {difference.step + 1}: {_effect_and_object(shown)}{about}{who}"
    doubt = _DOUBTS.get(difference.doubt or "")
    if doubt:
        more = "; --shadow asks all others" if has_shadow else ""
        yield f"cannot be compared at {what}: {doubt}{more}"
    else:
        yield f"different at {what}"
    for item in _changes(was, now):
        if item.field:
            yield f"at {'/'.join(item.field)}"
        was_by, is_by = versions(recorded_by, now_by, difference.handler)
        yield f"recorded ({was_by}): {_json_text(item.old)}"
        yield f"now ({is_by}): {_json_text(item.new)}"


_TRACES = {
    "Began": "what an attempt is shown",
    "Asked": "what an attempt asks for",
    "Given": "what an attempt is answered",
    "Desires": "what is desired",
    "Ended": "the decision",
    "Wrote": "whose fields are written",
    "Indexed": "what is indexed",
    "Decided": "the review of a write",
}


def _effect_and_object(command: dict[str, Any]) -> str:
    """The name of a command's effect, and its object."""
    if command["do"] in _TRACES:
        return _TRACES[command["do"]]
    effect: str = (command.get("effect") or {}).get("is", command["do"])
    about = command.get("subject")
    return f"{effect} about {about}" if about else effect


def _changes(was: Any, now: Any) -> Diff:
    """The fields that differ; all fields if the two commands are of different kinds."""
    if was and now and _effect_and_object(was) == _effect_and_object(now):
        return diff(was, now)
    return (DiffItem("change", (), was, now),)


def _json_text(value: Any) -> str:
    if value is None:
        return "nothing"
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


# ------------------------------------------------------------------------- the shadow


def shadow_lines(found: Shadow) -> list[str]:
    """The number of decisions that change, in groups of similar ones."""
    lines = [*_summary(found)]
    changed = _groups([*found.changed, *found.reindexed])
    for group in changed[:_GROUPS_SHOWN]:
        lines += ["", *_group_lines(group)]
    for group in _groups(found.concealed)[:_GROUPS_SHOWN]:
        lines += ["", *_concealed_lines(group)]
    for one in _group_by_key(found.reviewed, _write_key)[:_GROUPS_SHOWN]:
        lines += ["", *_write_lines(one)]
    for other in _group_by_key(found.redecided, _review_key)[:_GROUPS_SHOWN]:
        lines += ["", *_review_lines(other)]
    if len(changed) > _GROUPS_SHOWN:
        lines += ["", f"and {number_of(len(changed) - _GROUPS_SHOWN, 'other group')}"]
    return lines


def _summary(found: Shadow) -> Iterator[str]:
    yield from _counts(found)
    for name, count in sorted(found.missing.items()):
        yield f"{number_of(count, 'decision')} of {name}, which is no handler now"
    for name, count in sorted(found.unindexed.items()):
        yield f"{number_of(count, 'value')} of the index {name}, which is none now"
    for handler in found.new:
        yield f"{handler.label} ({handler.place or '?'}) is not in the recording"
    if found.reindexed:
        change = "changes" if len(found.reindexed) == 1 else "change"
        yield (
            f"{len(found.reindexed)} of {found.indexed:,} values of objects in indices "
            f"{change}"
        )
    if found.concealed:
        they = "it depends" if len(found.concealed) == 1 else "they depend"
        yield (
            f"{number_of(len(found.concealed), 'decision')} cannot be compared: {they} "
            "on secrets, and the recording holds tokens in their place"
        )
    for why, count in found.untold.most_common():
        yield f"{number_of(count, 'decision')} cannot be asked again: {why}"
    yield from _writes(found)
    if found.lost:
        yield f"{number_of(found.lost, 'step')} of the run are not in the recording"
    if found.truncated:
        yield f"the recording {CUT_OFF}"


def _counts(found: Shadow) -> Iterator[str]:
    """The decisions that change; only reviews if the recording has no attempts."""
    if found.attempts or not found.reviews:
        change = "changes" if len(found.changed) == 1 else "change"
        yield f"{len(found.changed)} of {found.attempts:,} recorded decisions {change}"
    if found.reviews:
        change = "changes" if len(found.redecided) == 1 else "change"
        yield f"{len(found.redecided)} of {found.reviews:,} recorded reviews {change}"
    for why, count in found.undecided.most_common():
        yield f"{number_of(count, 'review')} cannot be compared: {why}"


def _writes(found: Shadow) -> Iterator[str]:
    """The answers of admission handlers about the watched writes."""
    if found.writes:
        denied, changes = (
            sum(each.answer == answer for each in found.reviewed)
            for answer in ("denied", "changed")
        )
        yield (
            f"of {number_of(found.writes, 'recorded write')} {denied} would be denied, "
            f"and {changes} changed, by admission handlers"
        )
    for why, count in found.unreviewed.most_common():
        yield f"{number_of(count, 'answer')} about writes cannot be told: {why}"


def _group_by_key(found: Sequence[_T], key: Callable[[_T], Any]) -> list[list[_T]]:
    """Groups with one key each, the largest group first."""
    groups: dict[Any, list[_T]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _write_key(each: Reviewed) -> tuple[str, ...]:
    return each.handler.id, each.answer, each.message, *each.fields


def _review_key(each: Redecided) -> tuple[Any, ...]:
    return each.was, each.answer, each.handler, each.message, *each.fields


def _write_lines(group: Sequence[Reviewed]) -> Iterator[str]:
    first = group[0]
    what = first.message or ", ".join(first.fields[:_FIELDS_SHOWN])
    place = f" ({first.handler.place})" if first.handler.place else ""
    who = f"{first.handler.id}{place}"
    yield f"{number_of(len(group), 'write')} {first.answer} by {who}: {what}"
    yield from _named_writes(group)


def _review_lines(group: Sequence[Redecided]) -> Iterator[str]:
    first = group[0]
    place = f" ({first.place})" if first.place else ""
    by = f" by {first.handler}{place}" if first.handler else ""
    match first.was, first.answer:
        case "admitted", "denied":
            how = f"denied{by}, where it was admitted"
        case "denied", "admitted":
            how = f"admitted, where it was denied{by}"
        case "denied", _:
            how = f"denied otherwise{by}"
        case _:
            how = "changed otherwise" if first.fields else "warned otherwise"
    what = first.message or ", ".join(first.fields[:_FIELDS_SHOWN])
    yield f"{number_of(len(group), 'review')} {how}: {what}"
    yield from _named_writes(group)


def _named_writes(group: Sequence[Reviewed | Redecided]) -> Iterator[str]:
    for each in group[:_WRITES_SHOWN]:
        yield f"  {each.operation} of {each.label}"
    if len(group) > _WRITES_SHOWN:
        yield f"  and {len(group) - _WRITES_SHOWN} more"


def _groups(changes: Sequence[Judged]) -> list[list[Judged]]:
    """Changes of one handler, of one sort, in the same fields; the largest first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Judged]] = {}
    for each in changes:
        groups.setdefault(_group_of(each), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _group_of(judged: Judged) -> tuple[str, str, tuple[str, ...]]:
    changed = judged.changed
    fields = dict.fromkeys(_generic_path(each, judged) for each in _fields(changed))
    what = changed.failure.type if changed.failure is not None else changed.sort
    return judged.handler.id, what, tuple(sorted(fields)[:_FIELDS_SHOWN])


def _fields(changed: Changed) -> list[Contrast]:
    """The fields that differ, also within lists."""
    return [
        each
        for item in changed.fields
        for each in contrasts(item.old, item.new, item.field)
    ]


def _generic_path(field: Contrast, judged: Judged) -> str:
    """A field without the object's name, which begins its children's names.

    So one change is one group for any number of objects.
    """
    about = judged.attempt.object
    if about is None or not about.name:
        return _path(field)
    name = re.escape(about.name)
    return re.sub(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", "*", _path(field))


def _group_lines(group: Sequence[Judged]) -> Iterator[str]:
    first = group[0]
    yield f"{_times(group)} {_verb(first)}"
    is_alike = ("is" in first.changed.recorded) == ("is" in first.changed.now)
    fields = _fields(first.changed) if is_alike else []
    for each in fields[:_FIELDS_SHOWN]:
        old, new = _brief_text(each.old), _brief_text(each.new)
        yield f"  {_titled_in(each, group)}: {old} -> {new}"
    more = len(fields) - _FIELDS_SHOWN
    if more > 0:
        yield f"  and {number_of(more, 'field')} more"
    if is_alike and not fields:
        yield "  the same, in another order"
    yield f"  at {_places(group)}"


def _concealed_lines(group: Sequence[Judged]) -> Iterator[str]:
    """Decisions that cannot be compared, with the fields, but without the values."""
    yield f"{_times(group)} cannot be compared"
    fields = [_titled_in(each, group) for each in _fields(group[0].changed)]
    more = len(fields) - _FIELDS_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    if fields:
        yield f"  in {', '.join(fields[:_FIELDS_SHOWN])}{rest}"
    yield f"  at {_places(group)}"


def _times(group: Sequence[Judged]) -> str:
    handler = group[0].handler
    times = f"{len(group)} x " if len(group) > 1 else ""
    return f"{times}{handler.label} ({handler.place or '?'})"


def _titled_in(field: Contrast, group: Sequence[Judged]) -> str:
    """The name of a field; for several objects, in their common form."""
    places = {each.attempt.where for each in group}
    return _path(field) if len(places) == 1 else _generic_path(field, group[0])


def _places(group: Sequence[Judged]) -> str:
    """The objects of a group, and the steps in which the calls began."""
    handler = group[0].handler
    places = Counter(each.attempt.where or handler.id for each in group)
    names = [name for name, _ in places.most_common(_EXAMPLES_SHOWN)]
    rest = f", and {len(places) - len(names)} more" if len(places) > len(names) else ""
    steps = [f"#{each.attempt.step}" for each in group[:_EXAMPLES_SHOWN]]
    steps += ["..."] if len(group) > len(steps) else []
    word = "step" if len(group) == 1 else "steps"
    return f"{', '.join(names)}{rest} ({word} {', '.join(steps)})"


def _verb(judged: Judged) -> str:
    changed = judged.changed
    if changed.sort == "indexes":
        failure = f": it raises {changed.failure}" if changed.failure else ""
        return f"returns other values{failure}"
    if changed.failure is not None and changed.sort == "raises":
        return f"raises {changed.failure}"
    recorded, now = _effect_text(changed.recorded), _effect_text(changed.now)
    if changed.sort != "asks":
        return f"ends, where it asked for {recorded}" if recorded else "ends otherwise"
    if recorded == now:
        return f"asks for {now} with other fields"
    return f"asks for {now}, where it {_ended(recorded)}"


def _ended(recorded: str) -> str:
    return f"asked for {recorded}" if recorded else "ended"


def _effect_text(decision: dict[str, Any]) -> str:
    """An effect in words: its kind and its object; "" for an end."""
    if "is" not in decision:
        return ""
    manifest = decision.get("manifest") or decision.get("child") or {}
    target = decision.get("target") or {}
    meta = manifest.get("metadata") or {}
    kind = manifest.get("kind") or target.get("kind") or target.get("resource") or ""
    name = meta.get("name") or target.get("name") or decision.get("function") or ""
    name = name or (decision.get("reason") if decision["is"] == "Event" else "")
    about = "/".join(str(each) for each in (kind, name) if each)
    return f"{decision['is']} {about}".strip()


def _path(field: Contrast) -> str:
    return path_text(field.path) or "all of it"


def _brief_text(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."


def sorts_of(found: Shadow) -> frozenset[str]:
    """The words of `--fail-on` for the changes."""
    changes = (*found.changed, *found.reindexed)
    words = {word for each in changes for word in words_of(each.attempt, each.changed)}
    if any((*found.missing.values(), *found.unindexed.values())):
        words |= {"any", "removed"}
    if any(each.answer == "denied" for each in found.reviewed):
        words |= {"any", "deny"}
    if found.redecided:
        words.add("any")
    if any(each.is_denied_anew for each in found.redecided):
        words.add("deny")
    return frozenset(words)
