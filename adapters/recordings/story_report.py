"""The story of a run, and why a field has its value, as lines for people."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import islice

from fnop.core.values.errors import number_of
from fnop.core.values.paths import contrasts, path_text
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import named
from fnop.interpreters.recording.model.refs import Named, ref_of
from fnop.interpreters.recording.model.sources import IndexEntry, Reply, Source
from fnop.interpreters.recording.model.times import clock
from fnop.interpreters.recording.questions.busy import Call, call_of
from fnop.interpreters.recording.questions.provenance import Shown, Sight, Why
from fnop.interpreters.recording.questions.story import Line

__all__ = ["is_shown", "quoted", "story_line", "story_lines", "why_lines", "written"]

_VALUE_LENGTH = 200
_SIGHTS_SHOWN = 10
_CONTRASTS_SHOWN = 8
_ANSWERS_SHOWN = 8
_SOURCES_SHOWN = 3


def is_shown(
    line: Line, about: Named | None, busy: Container[Call] | None = None
) -> bool:
    """Whether a line is shown: about one object, if one is requested.

    Lines about a child are the requests about it, and changes to it by others. With
    `busy`, calls that are not among these are skipped.
    """
    return (about is None or _is_about(line, about)) and not _is_quiet(line, busy)


def story_line(line: Line, about: Named | None) -> str:
    """Time, step, object and text."""
    is_known = about is not None and line.where == about.where
    where = f"[{line.where}] " if line.where and not is_known else ""
    indent = "    " * line.depth
    step = f"#{line.step}"
    return f"{clock(line.wall)} {step:>6} {indent}{where}{line.text}"


def story_lines(
    lines: Iterable[Line], about: Named | None, busy: Container[Call] | None = None
) -> Iterator[str]:
    """The lines that are shown, as texts."""
    shown = (each for each in lines if is_shown(each, about, busy))
    return (story_line(each, about) for each in shown)


def _is_about(line: Line, about: Named) -> bool:
    label = ref_of(about.resource.key, about.namespace, about.name).label
    return about.where == line.where or label == line.object


def _is_quiet(line: Line, busy: Container[Call] | None) -> bool:
    is_of_call = line.attempt is not None and line.sort in _OF_CALLS
    if busy is None or line.attempt is None or not is_of_call:
        return False
    return call_of(line.attempt) not in busy


_OF_CALLS = frozenset(("call", "ask", "desire", "end"))


def why_lines(
    about: Named, field: str, why: Why, places: Mapping[str, str]
) -> Iterator[str]:
    """The chain from the value back to the input that caused it.

    `places` are the source lines of the handlers, by their ids.
    """
    yield f"{about}: {field} {_value_text(why)}"
    if why.gone is not None:
        yield f"  the object is gone since #{why.gone.step}, {clock(why.gone.wall)}"
    yield from _version_lines(why)
    yield from _missing_steps(why)
    yield f"  {written(why, places)}"
    if why.attempt is not None:
        yield f"  {_call_text(why.attempt)}"
        yield from (f"    {each}" for each in _input_lines(why))


def _value_text(why: Why) -> str:
    return "is not there any more" if why.value is None else f"= {quoted(why.value)}"


def _version_lines(why: Why) -> Iterator[str]:
    """The version in which the value appeared, or is missing, and the one before."""
    version, shown = why.shown.body.version, _first_shown_text(why.shown)
    if why.value is None:
        assert why.before is not None
        yield f"  removed in version {version}, {shown}"
        yield f"  it was {quoted(why.former)} until version {why.before.body.version}"
        return
    if why.before is None:
        first = "the first that the operator has seen"
        yield f"  since version {version}, {shown}: {first}"
        return
    if why.former is None:
        yield f"  since version {version}, {shown}; it was not there before"
        return
    until = why.before.body.version
    if not isinstance(why.value, dict | list):
        former = f"{quoted(why.former)} until version {until}"
        yield f"  since version {version}, {shown}; {former}"
        return
    yield f"  since version {version}, {shown}; in version {until} it was otherwise:"
    found = [*contrasts(why.former, why.value)]
    for path, old, new in found[:_CONTRASTS_SHOWN]:
        yield f"    {path_text(path) or 'all of it'}: {quoted(old)} -> {quoted(new)}"
    more = len(found) - _CONTRASTS_SHOWN
    if more > 0:
        yield f"    and {number_of(more, 'field')} more"


def _missing_steps(why: Why) -> Iterator[str]:
    """The steps that the recording lacks, and their possible events."""
    for gap in why.missing:
        what = "appeared" if gap.first <= why.shown.step else "changed"
        steps, verb = number_of(gap.steps, "step"), "is" if gap.steps == 1 else "are"
        lacks = f"{steps} after #{gap.first - 1} {verb} missing"
        yield f"  {lacks}: the value may have {what} there"


def written(why: Why, places: Mapping[str, str]) -> str:
    """The author of a value or of its removal, and the request."""
    write = why.write
    deed = "removed" if why.value is None else "written"
    if why.is_servers and write is not None:
        return f"set by the API server with the {_request_text(why, places)}"
    if why.is_servers:
        known = " that is recorded" if why.is_uncertain else ""
        return f"set by the API server, and not with a request of this operator{known}"
    if write is None:
        if why.is_managers:
            lacks = "with a request that is not recorded, or whose answer is not"
            return f"{deed} by this operator, {lacks}; {_managers_text(why)}"
        by = "in a missing step, or " if why.is_uncertain else ""
        return f"{deed} {by}by somebody else; {_managers_text(why)}"
    if why.author or why.is_own:
        by = "" if why.author else ", by fnop itself"
        return f"{deed} by the {_request_text(why, places)}{by}"
    request = _request_text(why, places)
    return f"set by the API server with the {request}; {_managers_text(why)}"


def _managers_text(why: Why) -> str:
    managers = ", ".join(why.managers) or "nobody that managed fields name"
    until = " until then" if why.value is None else ""
    return f"managers of the field{until}: {managers}"


def _request_text(why: Why, places: Mapping[str, str]) -> str:
    """The request behind a version, with the handler if that is the author."""
    write = why.write
    assert write is not None
    request = f"{write.verb} sent at #{write.step}, {clock(write.wall)}"
    lost = "" if write.answered == "Applied" else ", whose reply was lost"
    if not (write.answered or write.is_lost):
        lost = ", whose reply had not come yet"
    handler = why.author or (write.handler if why.is_servers else "")
    if not handler:
        return f"{request}{lost}"
    place = f" ({places[handler]})" if places.get(handler) else ""
    return f"{request}{lost}, for handler {handler}{place}"


def _call_text(attempt: Attempt) -> str:
    reason = f",{attempt.reason_text}" if attempt.reason else ""
    began = f"begun at #{attempt.step}, {clock(attempt.now.wall)}"
    return (
        f"decided by the call of {attempt.handler} {began}{reason}{attempt.retry_text}"
    )


def _input_lines(why: Why) -> Iterator[str]:
    """The view of the attempt, its answers, and the places of an equal value."""
    for sight in why.sights[:_SIGHTS_SHOWN]:
        yield f"it was shown {_sight_text(sight)}"
    more = len(why.sights) - _SIGHTS_SHOWN
    if more > 0:
        yield f"and {number_of(more, 'object')} more"
    for reply in why.answers[-_ANSWERS_SHOWN:]:
        yield f"it was answered at #{reply.step}: {named(reply.asked)}"
    if why.indices:
        keys = (f"{name} ({number_of(size, 'key')})" for name, size in why.indices)
        yield f"there were the indices {', '.join(keys)}, for handlers that take them"
    for source, since in islice(why.sources, _SOURCES_SHOWN):
        yield f"the value is equal to {_source(source, since)}"


def _source(source: Source, since: int) -> str:
    path = path_text(source.path)
    match source.of:
        case Reply(asked, step):
            part = f"{path} of " if path else ""
            return f"{part}what {named(asked)} answered at #{step}"
        case IndexEntry(index, key, of):
            part = f", in {path}" if path else ""
            kind = of.resource.partition(".")[0]
            place = f"{of.namespace}/{of.name}" if of.namespace else of.name
            seen = f", since #{since}" if since else ""
            held = f"what the index {index} holds for {quoted(key)}{part}"
            return f"{held}: it is of {kind}/{place}{seen}"


def _sight_text(sight: Sight) -> str:
    version = sight.version
    what = f"{version.resource.partition('.')[0]} {version.where}"
    if sight.step is None:
        return f"{what} in version {version.version}, from before the recording"
    age = f"{sight.seconds:.3g} s after #{sight.step} had shown it"
    stale = ""
    if sight.revisions:
        newer = number_of(sight.revisions, "newer version")
        stale = f"; {newer} had been shown by then"
    return f"{what} in version {version.version}, {age}{stale}"


def _first_shown_text(shown: Shown) -> str:
    return f"first shown at #{shown.step} ({shown.by}), {clock(shown.wall)}"


def quoted(value: object) -> str:
    """A value as JSON, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."
