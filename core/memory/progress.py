"""How far a handler has got with one change, and what its errors mean for that.

A record is bound to what it is for: its `aim` names the reason and the digest of
what the handler observes.  A record for another aim says nothing, so neither a
success nor a counter ever leaks from one change into another.  The clock of
`timeout` starts with the first attempt.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from fnop.core.memory.observation import DIGEST_VERSION, Seen
from fnop.core.seam.commands import AttemptEnded
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import ErrorsMode, number_of
from fnop.core.values.evolve import quick, replace
from fnop.core.values.now import Now, parse_time, wall_text

__all__ = [
    "FRESH",
    "Failure",
    "Judgement",
    "Progress",
    "abandoned",
    "anew",
    "concluded",
    "deadline_of",
    "judge_again",
    "judge_failure",
    "progress_from_json",
    "progress_to_json",
    "seconds_left",
    "succeeded",
    "time_out",
]


# What is stored of an error's text: an API server's answer can be long.
MESSAGE_LENGTH_MAX = 512
# "At once" leaves a moment to everybody else.
DELAY_SECONDS_MIN = 0.05
# A deadline is reached by either clock: they round, and a stored time is shortened.
_DEADLINE_SECONDS_OFF = 0.001


@quick
class Progress(NamedTuple):
    """A handler's record.  Times are wall-clock seconds.

    `until` is when the next attempt is due; `due` the same on the monotonic
    clock, known only to the process that set it.  `acted` is the digest of what the
    handler has acted upon last, though the change may not be done, and `seen` what
    that was, for as long as this process lives.  `handled` is the digest of what it was
    done with last, where that is not what the object was seen as last.  `delegated`
    tells this process that the handler's own part is done, and its sub-handlers' not.
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
    delegated: bool = False

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
    handler's `errors` mode decides.  `rejected` tells that the API server refuses an
    effect of the plan.
    """

    type: str
    message: str
    temporary: float | None = None
    permanent: bool = False
    exception: BaseException | None = None
    rejected: bool = False

    @property
    def is_expected(self) -> bool:
        """Whether the author raised it as such: no traceback is of use."""
        return self.permanent or self.temporary is not None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Judgement:
    """The record after an attempt, how that has `ended`, and the line that says so.

    `was_last` tells that no attempt follows: it has ended, or waits for its deadline.
    """

    progress: Progress
    level: str
    line: str
    ended: AttemptEnded
    was_last: bool = False


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
    return progress._replace(
        finished="success", acted=acted, seen=seen, delegated=False
    )


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
    """Waiting is no failure: it counts towards the timeout alone (R5).

    A wait ends at the deadline at the latest.
    """
    left = seconds_left(progress, timeout, now)
    if timeout is not None and left <= 0:
        return time_out(progress, timeout, because or "still waiting")
    reason = f": {because}" if because else ""
    waiting = _delayed(progress, now, min(after, left), because)
    waiting = waiting._replace(waits=bool(because))
    ended = AttemptEnded("requeue", retried=True)
    if after >= left:
        soon = f"times out in {round(left, 1):g} s"
        line = f"{soon}, before it goes on in {after:g} s{reason}"
        return Judgement(waiting, "warning", line, ended, was_last=True)
    # What was said before is said again for those who look closely.
    level = "debug" if progress.waits and progress.message == because else "info"
    return Judgement(waiting, level, f"goes on in {after:g} s{reason}", ended)


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

    A handler with a retry that could not take place any more waits for its deadline:
    its timeout is a promise to wait as long.  `jitter`, from 0 to 1, is for a wait that
    grows; a constant one, in seconds, is kept to.
    """
    counted = progress._replace(
        retries=progress.retries + 1, waits=False, delegated=False
    )
    ended = AttemptEnded("error", rejected=failure.rejected)
    arbitrary = not failure.permanent and failure.temporary is None
    if failure.permanent or (arbitrary and errors is ErrorsMode.PERMANENT):
        return _final(counted, "error", f"failed for good: {failure}", ended)
    if arbitrary and errors is ErrorsMode.IGNORED:
        done = counted._replace(finished="success", until=None, due=None)
        line = f"failed, which is ignored: {failure}"
        return Judgement(done, "warning", line, ended, was_last=True)
    delay = _delay(failure, backoff, counted.retries, jitter)
    left = seconds_left(counted, timeout, now)
    if timeout is not None and left <= 0:
        return time_out(counted, timeout, str(failure))
    if retries is not None and counted.retries >= retries:
        after = f"after {number_of(counted.retries, 'attempt')}"
        return _final(counted, "error", f"failed for good {after}: {failure}", ended)
    later = _delayed(counted, now, min(delay, left), str(failure))
    level = "error" if arbitrary else "warning"
    line = f"failed, {_when_again(delay, left)}: {failure}"
    ended = replace(ended, retried=True)
    return Judgement(later, level, line, ended, was_last=delay >= left)


def _when_again(delay: float, left: float) -> str:
    """When the next attempt comes, or the deadline, if that is earlier (seconds)."""
    if delay < left:
        return f"again in {delay:g} s"
    soon = f"times out in {round(left, 1):g} s"
    return f"{soon}, before the next attempt in {delay:g} s"


def _delay(
    failure: Failure, backoff: float | Backoff, tries: int, jitter: float
) -> float:
    """How long until the next attempt: by the author's word, or by the backoff."""
    if failure.temporary is not None:
        return failure.temporary
    if isinstance(backoff, Backoff):
        return round(backoff.seconds(tries, jitter), 1)
    return backoff


def seconds_left(progress: Progress, timeout: float | None, now: Now) -> float:
    """How long a handler has until its deadline; zero at and after it."""
    if timeout is None:
        return math.inf
    left = timeout - _runtime(progress, now)
    return round(left, 3) if left > _DEADLINE_SECONDS_OFF else 0.0


def deadline_of(progress: Progress, timeout: float | None, now: Now) -> float | None:
    """When a handler that has begun times out, on the monotonic clock.

    >>> deadline_of(Progress("", started=100.0), 30.0, Now(wall=110.0, mono=5.0))
    25.0
    """
    if timeout is None or progress.started is None:
        return None
    return now.mono + seconds_left(progress, timeout, now)


def time_out(progress: Progress, timeout: float, why: str) -> Judgement:
    """A handler's end at its deadline, and what it was waiting for until then."""
    line = f"has timed out after {timeout:g} s: {why}"
    return _final(progress, "error", line, AttemptEnded("timeout"))


def abandoned(progress: Progress, why: str) -> Progress:
    """The record of what is given up before its own end."""
    return _final(progress, "info", why, AttemptEnded("cancelled")).progress


def _runtime(progress: Progress, now: Now) -> float:
    return 0.0 if progress.started is None else max(0.0, now.wall - progress.started)


def _final(progress: Progress, level: str, line: str, ended: AttemptEnded) -> Judgement:
    text = line[:MESSAGE_LENGTH_MAX]
    record = progress._replace(
        finished="failure",
        until=None,
        due=None,
        message=text,
        waits=False,
        delegated=False,
    )
    return Judgement(record, level, line, ended, was_last=True)


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
