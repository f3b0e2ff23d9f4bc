"""How far a handler has got with one change, and what its errors mean for that.

A record is bound to what it is for: its `aim` names the reason and the digest of
what the handler observes.  A record for another aim says nothing, so neither a
success nor a counter ever leaks from one change into another.  The clock of
`timeout` starts with the first attempt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from fnop.core.memory.observation import DIGEST_VERSION, Seen
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import ErrorsMode, number_of
from fnop.core.values.evolve import quick
from fnop.core.values.now import Now, parse_time, wall_text

__all__ = [
    "FRESH",
    "Failure",
    "Judgement",
    "Progress",
    "anew",
    "concluded",
    "judge_again",
    "judge_failure",
    "progress_from_json",
    "progress_to_json",
    "succeeded",
]


# What is stored of an error's text: an API server's answer can be long.
MESSAGE_LENGTH_MAX = 512
# "At once" leaves a moment to everybody else.
DELAY_SECONDS_MIN = 0.05


@quick
class Progress(NamedTuple):
    """A handler's record.  Times are wall-clock seconds.

    `until` is when the next attempt is due; `due` the same on the monotonic
    clock, known only to the process that set it.  `acted` is the digest of what the
    handler has acted upon last, though the change may not be done, and `seen` what
    that was, for as long as this process lives.  `handled` is the digest of what it was
    done with last, where that is not what the object was seen as last.
    """

    aim: str
    retries: int = 0
    started: float | None = None
    until: float | None = None
    due: float | None = None
    finished: str | None = None  # "success" or "failure"
    message: str | None = None
    # It waits of its own accord (R5): `message` is what for.
    waits: bool = False
    acted: str = ""
    seen: Seen | None = None
    handled: str = ""

    @property
    def is_finished(self) -> bool:
        return self.finished is not None

    @property
    def has_succeeded(self) -> bool:
        return self.finished == "success"

    def due_at(self, now: Now) -> float:
        """When the next attempt is due, on the monotonic clock."""
        if self.due is not None:
            return self.due
        return now.mono if self.until is None else now.mono + self.until - now.wall


FRESH = Progress("")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    `temporary` and `permanent` are the author's word; neither means that the
    handler's `errors` mode decides.
    """

    type: str
    message: str
    temporary: float | None = None
    permanent: bool = False
    exception: BaseException | None = None

    @property
    def is_expected(self) -> bool:
        """Whether the author raised it as such: no traceback is of use."""
        return self.permanent or self.temporary is not None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Judgement:
    """The record after an attempt, and the line that says what it means."""

    progress: Progress
    level: str
    line: str


def succeeded(progress: Progress) -> Progress:
    """The record after a success."""
    return Progress(
        progress.aim,
        progress.retries + 1,
        progress.started,
        finished="success",
        acted=progress.acted,
        seen=progress.seen,
    )


def concluded(progress: Progress) -> Progress:
    """The record after all parts have succeeded: it has acted upon what it was for."""
    acted = _acted_by(progress.aim, "success") or progress.acted
    seen = progress.seen if acted == progress.acted else None
    return progress._replace(finished="success", acted=acted, seen=seen)


def anew(progress: Progress | None, aim: str) -> Progress:
    """A fresh record; what has been acted upon stays so."""
    if progress is None:
        return Progress(aim)
    return Progress(
        aim, acted=progress.acted, seen=progress.seen, handled=progress.handled
    )


def _acted_by(aim: str, finished: str | None) -> str:
    """What an ended handler has acted upon, unless the record says otherwise."""
    reason, _, observed = aim.partition(":")
    return observed if finished and reason in ("create", "update") else ""


def judge_again(
    progress: Progress, now: Now, *, after: float, because: str, timeout: float | None
) -> Judgement:
    """Waiting is no failure: it counts towards the timeout alone (R5)."""
    if timeout is not None and _runtime(progress, now) + after >= timeout:
        line = f"has timed out after {timeout:g} s: {because or 'still waiting'}"
        return _final(progress, "error", line)
    # What was said before is said again for those who look closely.
    level = "debug" if progress.waits and progress.message == because else "info"
    waiting = _delayed(progress, now, after, because)._replace(waits=bool(because))
    reason = f": {because}" if because else ""
    return Judgement(waiting, level, f"goes on in {after:g} s{reason}")


def judge_failure(
    progress: Progress,
    failure: Failure,
    now: Now,
    *,
    errors: ErrorsMode,
    timeout: float | None,
    retries: int | None,
    backoff: float | Backoff,
    jitter: float = 0.0,
) -> Judgement:
    """What a failed attempt means, by the author's word and then by the mode.

    A retry that could not take place any more is not waited for.  `jitter`, from 0 to
    1, is for a wait that grows; a constant one, in seconds, is kept to.
    """
    counted = progress._replace(retries=progress.retries + 1, waits=False)
    if failure.permanent:
        return _final(counted, "error", f"failed for good: {failure}")
    if failure.temporary is None:
        if errors is ErrorsMode.IGNORED:
            done = counted._replace(finished="success", until=None, due=None)
            return Judgement(done, "warning", f"failed, which is ignored: {failure}")
        if errors is ErrorsMode.PERMANENT:
            return _final(counted, "error", f"failed for good: {failure}")
    if failure.temporary is not None:
        delay = failure.temporary
    elif isinstance(backoff, Backoff):
        delay = round(backoff.seconds(counted.retries, jitter), 1)
    else:
        delay = backoff
    if timeout is not None and _runtime(counted, now) + delay >= timeout:
        return _final(counted, "error", f"has timed out after {timeout:g} s: {failure}")
    if retries is not None and counted.retries >= retries:
        attempts = number_of(counted.retries, "attempt")
        line = f"failed for good after {attempts}: {failure}"
        return _final(counted, "error", line)
    later = _delayed(counted, now, delay, str(failure))
    level = "warning" if failure.temporary is not None else "error"
    return Judgement(later, level, f"failed, again in {delay:g} s: {failure}")


def _runtime(progress: Progress, now: Now) -> float:
    return 0.0 if progress.started is None else max(0.0, now.wall - progress.started)


def _final(progress: Progress, level: str, line: str) -> Judgement:
    text = line[:MESSAGE_LENGTH_MAX]
    ended = progress._replace(
        finished="failure", until=None, due=None, message=text, waits=False
    )
    return Judgement(ended, level, line)


def _delayed(progress: Progress, now: Now, delay: float, message: str) -> Progress:
    delay = max(delay, DELAY_SECONDS_MIN)
    return progress._replace(
        until=now.wall + delay,
        due=now.mono + delay,
        message=message[:MESSAGE_LENGTH_MAX],
    )


def progress_to_json(progress: Progress) -> dict[str, Any]:
    """The stored form; fields that say nothing are left out."""
    found: dict[str, Any] = {"aim": progress.aim}
    if progress.retries:
        found["retries"] = progress.retries
    for name in ("started", "until"):
        moment = getattr(progress, name)
        if moment is not None:
            found[name] = wall_text(moment)
    for name in ("finished", "message"):
        if getattr(progress, name) is not None:
            found[name] = getattr(progress, name)
    if progress.waits:
        found["waits"] = True
    if progress.acted != _acted_by(progress.aim, progress.finished):
        found["acted"] = progress.acted
    if progress.handled:
        found["handled"] = progress.handled
    return found


def progress_from_json(found: Any) -> Progress:
    """The record of its stored form; raises `ValueError` for anything else."""
    if not isinstance(found, dict) or not isinstance(found.get("aim"), str):
        raise ValueError("a progress record without an aim")
    if found.get("finished") not in (None, "success", "failure"):
        raise ValueError("a progress record that ended in an unknown way")
    retries = found.get("retries", 0)
    if not isinstance(retries, int):
        raise ValueError("a progress record whose retries are no number")
    started, until = (
        parse_time(str(found[name])) if name in found else None
        for name in ("started", "until")
    )
    reason, colon, observed = found["aim"].partition(":")
    aim = f"{reason}{colon}{_versioned(observed)}"
    return Progress(
        aim,
        retries,
        started,
        until,
        finished=found.get("finished"),
        message=found.get("message"),
        waits=bool(found.get("waits")),
        acted=_versioned(
            str(found.get("acted", _acted_by(aim, found.get("finished"))))
        ),
        handled=_versioned(str(found.get("handled", ""))),
    )


_UNVERSIONED = re.compile("[0-9a-f]{20}")


def _versioned(digest: str) -> str:
    """A digest in its present form; releases up to 0.1 left the version out of some.

    >>> _versioned("fff04cd409d10063969b"), _versioned("1:fff0"), _versioned("?")
    ('1:fff04cd409d10063969b', '1:fff0', '?')
    """
    is_old = _UNVERSIONED.fullmatch(digest) is not None
    return f"{DIGEST_VERSION}:{digest}" if is_old else digest
