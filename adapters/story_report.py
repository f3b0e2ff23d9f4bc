"""The story of a run, and why a field has its value, as lines for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from fnop.core.history.attempts import Attempt
from fnop.core.history.contents import Named
from fnop.core.history.provenance import Shown, Sight, Why
from fnop.core.history.story import Line
from fnop.core.values.errors import number_of

__all__ = ["clock", "moment", "story_lines", "why_lines"]

_VALUE_LENGTH = 200
_SIGHTS_SHOWN = 10


def story_lines(lines: Iterable[Line], where: str | None) -> Iterator[str]:
    """Time, step, object and text; of one object, where one is asked for."""
    for each in lines:
        if where is None or each.where == where:
            about = f"[{each.where}] " if each.where and where is None else ""
            indent = "    " * each.depth
            step = f"#{each.step}"
            yield f"{clock(each.wall)} {step:>6} {indent}{about}{each.text}"


def why_lines(
    named: Named, field: str, why: Why, places: Mapping[str, str]
) -> Iterator[str]:
    """The chain from the value to the input that it goes back to.

    `places` are where the handlers were written, by their ids.
    """
    yield f"{named}: {field} = {_text(why.value)}"
    before = "it was not there before"
    if why.before is not None and why.former is not None:
        before = f"{_text(why.former)} until version {why.before.body.version}"
    yield f"  since version {why.shown.body.version}, {_shown(why.shown)}; {before}"
    yield f"  {_written(why, places)}"
    if why.attempt is not None:
        yield f"  {_decided(why.attempt)}"
        for sight in why.sights[:_SIGHTS_SHOWN]:
            yield f"    it was shown {_seen(sight)}"
        more = len(why.sights) - _SIGHTS_SHOWN
        if more > 0:
            yield f"    and {number_of(more, 'object')} more"


def _written(why: Why, places: Mapping[str, str]) -> str:
    managers = ", ".join(why.managers) or "nobody that managed fields name"
    write = why.write
    if write is None:
        return f"written by somebody else; managers of the field: {managers}"
    request = f"{write.effect['is']} sent at #{write.step}, {clock(write.wall)}"
    lost = "" if write.version else ", whose reply was lost"
    if why.author:
        place = f" ({places[why.author]})" if places.get(why.author) else ""
        return f"written by the {request}{lost}, for handler {why.author}{place}"
    if why.is_own:
        return f"written by the {request}{lost}, by fnop itself"
    by = f"managers of the field: {managers}"
    return f"set by the API server with the {request}; {by}"


def _decided(attempt: Attempt) -> str:
    retry = f", attempt {attempt.retry + 1}" if attempt.retry else ""
    reason = f", for {attempt.reason}" if attempt.reason else ""
    began = f"begun at #{attempt.step}, {clock(attempt.now.wall)}"
    return f"decided by the call of {attempt.handler} {began}{reason}{retry}"


def _seen(sight: Sight) -> str:
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


def _shown(shown: Shown) -> str:
    return f"first shown at #{shown.step} ({shown.by}), {clock(shown.wall)}"


def clock(wall: float) -> str:
    """The time of day; "?" for what is no time.

    >>> clock(0.25), clock(1e300)
    ('00:00:00.250', '?')
    """
    try:
        return datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, OSError, ValueError):
        return "?"


def moment(wall: float) -> str:
    """The date and the time.

    >>> moment(0.25), moment(1e300)
    ('1970-01-01 00:00:00 UTC', '?')
    """
    try:
        return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return "?"


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."
