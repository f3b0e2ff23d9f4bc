"""The progress of a handler with one change: attempts, delays, and its end.

A record is bound to one change: its `aim` is the reason and the digest of the fields
that the handler observes. A record with another aim is ignored. So neither a success
nor a counter carries over from one change to another. The `timeout` begins with the
first attempt.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from fnop.core.memory.observation import DIGEST_VERSION, Seen
from fnop.core.seam.commands import AttemptEnded
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import ErrorsMode, number_of
from fnop.core.values.now import Now, parse_time, wall_text
from fnop.effects.regexes import regex
from fnop.effects.structs import replace

__all__ = [
    "FRESH",
    "Failure",
    "Judgement",
    "Progress",
    "abandoned",
    "anew",
    "attempting",
    "concluded",
    "deadline_of",
    "judge_again",
    "judge_failure",
    "progress_from_json",
    "progress_to_json",
    "seconds_left",
    "started_at",
    "succeeded",
    "time_out",
]


# The object that does not fit: the present one, or the one before its change; "" if
# none.
WhichObject: TypeAlias = Literal["", "present", "former"]
# The maximum length of an error's text that is stored: a response can be long.
MESSAGE_LENGTH_MAX = 512
# The shortest delay, so that other objects get their turn even before an instant retry.
DELAY_SECONDS_MIN = 0.05
# The maximum difference between the clocks of two processes, in seconds. If it is more,
# a clock was wrong when a time was stored, and has been set back since.
_CLOCK_SECONDS_OFF = 60.0
# The tolerance of deadlines: clocks round, and a stored time has fewer digits.
_DEADLINE_SECONDS_OFF = 0.001


class Progress(Struct, frozen=True):
    """A handler's record; times are in wall-clock seconds.

    `until` is the time of the next attempt. `due` is the same on the monotonic clock,
    known only to the process that set it. It is infinite after an error that no retry
    fixes. `delay` is the wait that `until` was set for. `acted` is the digest of the
    state upon which the handler last acted, though it may not be done with it. `seen`
    is that state itself, known only to this process. `handled` is the digest of the
    state that it was last done with, if that is not the object's last-handled state.
    `delegated`, also known only to this process, means that the handler's own part is
    done, but its sub-handlers are not.
    """

    aim: str
    retries: int = 0
    started: float | None = None
    until: float | None = None
    due: float | None = None
    finished: str | None = None  # "success" or "failure"
    message: str | None = None
    # It waits at its own request (R5), for the reason in `message`.
    waits: bool = False
    acted: str = ""
    seen: Seen | None = None
    handled: str = ""
    delegated: bool = False
    delay: float | None = None

    @property
    def is_finished(self) -> bool:
        return self.finished is not None

    @property
    def has_succeeded(self) -> bool:
        return self.finished == "success"

    @property
    def is_halted(self) -> bool:
        """Whether this process stops retrying it, but a process with other code may."""
        return self.due == math.inf

    def due_at(self, now: Now) -> float:
        """The time of the next attempt on the monotonic clock.

        fnop does not wait for a stored time from a clock that has been set back since.
        """
        if self.due is not None:
            return self.due
        if self.until is None or self._is_of_another_clock(now):
            return now.mono
        return now.mono + self.until - now.wall

    def _is_of_another_clock(self, now: Now) -> bool:
        """Whether the next attempt is later than its delay could ever mean.

        Releases up to 0.1 stored no delay; for these the first attempt shows it.
        """
        if _is_ahead(self.started, now):
            return True
        until = self.until or now.wall
        return self.delay is not None and _is_ahead(until - self.delay, now)


FRESH = Progress("")


def _is_ahead(stored: float | None, now: Now) -> bool:
    """Whether a time when something was stored is in the future."""
    return stored is not None and stored - now.wall > _CLOCK_SECONDS_OFF


def attempting(progress: Progress, now: Now) -> Progress:
    """Return the record of a handler whose next attempt begins now.

    The `timeout` begins with the first attempt. It begins again if that lies in the
    future, after a clock was set back.

    >>> attempting(Progress("", until=5.0), Now(100.0, 0.0)).started
    100.0
    """
    return replace(
        progress,
        started=started_at(progress, now),
        until=None,
        due=None,
        delegated=False,
        delay=None,
    )


def started_at(progress: Progress, now: Now) -> float:
    """The time of the first attempt; now, if none has begun yet."""
    started = progress.started
    return now.wall if started is None or _is_ahead(started, now) else started


class Failure(Struct, frozen=True):
    """The failure of an attempt.

    `temporary` (a delay in seconds) and `permanent` come from the author's exception.
    With neither, the handler's `errors` mode decides. `rejected` means that the API
    server refused an effect of the plan. A `misuse` of fnop is an error in the author's
    code that no retry fixes. A denial of an admission handler has an HTTP `code`, and
    may be about a `field`. The exceptions of a group are its `parts`. With `misfit`, an
    object does not fit the class of an argument: the present object, or the one before
    its change.
    """

    type: str
    message: str
    temporary: float | None = None
    permanent: bool = False
    exception: BaseException | None = None
    rejected: bool = False
    misuse: bool = False
    code: int | None = None
    field: str = ""
    parts: tuple[Failure, ...] = ()
    misfit: WhichObject = ""

    @property
    def is_expected(self) -> bool:
        """Whether it is one of fnop's exceptions, which needs no traceback."""
        return self.permanent or self.temporary is not None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    def to_wire(self) -> dict[str, Any]:
        """Its JSON form: the author's decision in it.

        >>> Failure("TemporaryError", "not yet", temporary=5).to_wire()
        {'type': 'TemporaryError', 'message': 'not yet', 'delay': 5}
        """
        found: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.temporary is not None:
            return {**found, "delay": self.temporary}
        return {**found, "permanent": True} if self.permanent else found


class Judgement(Struct, frozen=True):
    """The result of an attempt: the new record, its end, and a line for the log.

    With `was_last`, no attempt follows: the handler has ended, or waits for its
    deadline.
    """

    progress: Progress
    level: str
    line: str
    ended: AttemptEnded
    was_last: bool = False


def succeeded(progress: Progress) -> Progress:
    """Return the record after a success."""
    return Progress(
        progress.aim,
        progress.retries + 1,
        progress.started,
        finished="success",
        acted=progress.acted,
        seen=progress.seen,
    )


def concluded(progress: Progress) -> Progress:
    """Return the record after all sub-handlers, so the handler, have succeeded."""
    acted = _default_acted(progress.aim, "success") or progress.acted
    seen = progress.seen if acted == progress.acted else None
    return replace(
        progress, finished="success", acted=acted, seen=seen, delegated=False
    )


def anew(progress: Progress | None, aim: str) -> Progress:
    """Return a new record for an aim, with the digests of the previous record."""
    if progress is None:
        return Progress(aim)
    return Progress(
        aim, acted=progress.acted, seen=progress.seen, handled=progress.handled
    )


def _default_acted(aim: str, finished: str | None) -> str:
    """The default of `acted`: the digest in the aim of an ended creation or update."""
    reason, _, observed = aim.partition(":")
    return observed if finished and reason in ("create", "update") else ""


def judge_again(
    progress: Progress, now: Now, *, after: float, because: str, timeout: float | None
) -> Judgement:
    """Judge an attempt that asks to be called again after some seconds.

    Waiting is not a failure. It counts only towards the timeout (R5), and ends at the
    deadline at the latest.
    """
    left = seconds_left(progress, timeout, now)
    if timeout is not None and left <= 0:
        return time_out(progress, timeout, because or "still waiting")
    reason = f": {because}" if because else ""
    delayed = max(min(after, left), DELAY_SECONDS_MIN)
    waiting = _delay_attempt(progress, now, delayed, because)
    waiting = replace(waiting, waits=bool(because))
    ended = AttemptEnded("requeue", retried=True)
    if after >= left:
        soon = f"times out in {round(left, 1):g} s"
        line = f"{soon}, before it goes on in {after:g} s{reason}"
        return Judgement(waiting, "warning", line, ended, was_last=True)
    # The same reason as before is logged again at the level debug.
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
    halts: bool = False,
    as_kopf: bool = False,
) -> Judgement:
    """Judge a failed attempt by the author's exception, then by the `errors` mode.

    If a handler's next attempt would come after its deadline, it waits for the
    deadline: a timeout is a promise to wait that long. `jitter`, from 0 to 1, is for a
    `Backoff`; a constant wait, in seconds, has none. A misuse of fnop is permanent. But
    if the handler `halts`, it is not done with the change: only a process that may have
    other code retries it. For Kopf, an attempt may follow at once, and one that would
    come after the deadline never comes.
    """
    counted = replace(
        progress, retries=progress.retries + 1, waits=False, delegated=False
    )
    ended = AttemptEnded("error", rejected=failure.rejected)
    arbitrary = not failure.permanent and failure.temporary is None
    if failure.permanent or (arbitrary and errors is ErrorsMode.PERMANENT):
        return _judge_final(counted, "error", f"failed for good: {failure}", ended)
    if arbitrary and errors is ErrorsMode.IGNORED:
        done = replace(counted, finished="success", until=None, due=None)
        line = f"failed, which is ignored: {failure}"
        return Judgement(done, "warning", line, ended, was_last=True)
    if arbitrary and failure.misuse and not halts:
        return _judge_final(counted, "error", f"failed for good: {failure}", ended)
    delay = _delay_after_failure(failure, backoff, counted.retries, jitter)
    left = seconds_left(counted, timeout, now)
    if timeout is not None and left <= 0:
        return time_out(counted, timeout, str(failure))
    if retries is not None and counted.retries >= retries:
        after = f"after {number_of(counted.retries, 'attempt')}"
        return _judge_final(
            counted, "error", f"failed for good {after}: {failure}", ended
        )
    if as_kopf and timeout is not None and delay >= left:
        return _judge_final(counted, "error", f"failed for good: {failure}", ended)
    delayed = max(min(delay, left), 0.0 if as_kopf else DELAY_SECONDS_MIN)
    later = _delay_attempt(counted, now, delayed, str(failure))
    level = "error" if arbitrary else "warning"
    line = f"failed, {_words_for_next_attempt(delay, left)}: {failure}"
    ended = replace(ended, retried=not later.is_halted)
    return Judgement(later, level, line, ended, was_last=delay >= left)


def _words_for_next_attempt(delay: float, left: float) -> str:
    """The words for the next attempt, or for the deadline if that is earlier."""
    if delay < left:
        return f"again in {delay:g} s"
    if math.isinf(left):
        return "called again when its object changes, or after a restart"
    soon = f"times out in {round(left, 1):g} s"
    if math.isinf(delay):
        return soon
    return f"{soon}, before the next attempt in {delay:g} s"


def _delay_after_failure(
    failure: Failure, backoff: float | Backoff, tries: int, jitter: float
) -> float:
    """The seconds to the next attempt: from the exception, or from the backoff."""
    if failure.temporary is not None:
        return failure.temporary
    if failure.misuse:
        return math.inf
    if isinstance(backoff, Backoff):
        return round(backoff.seconds(tries, jitter), 1)
    return backoff


def seconds_left(progress: Progress, timeout: float | None, now: Now) -> float:
    """The seconds until a handler's deadline; zero at and after it."""
    if timeout is None:
        return math.inf
    left = timeout - _runtime_of(progress, now)
    return round(left, 3) if left > _DEADLINE_SECONDS_OFF else 0.0


def deadline_of(progress: Progress, timeout: float | None, now: Now) -> float | None:
    """The deadline of a handler that has begun, on the monotonic clock.

    >>> deadline_of(Progress("", started=100.0), 30.0, Now(wall=110.0, mono=5.0))
    25.0
    """
    if timeout is None or progress.started is None:
        return None
    return now.mono + seconds_left(progress, timeout, now)


def time_out(progress: Progress, timeout: float, why: str) -> Judgement:
    """Judge a handler at its deadline; `why` is its last reason for waiting."""
    line = f"has timed out after {timeout:g} s: {why}"
    return _judge_final(progress, "error", line, AttemptEnded("timeout"))


def abandoned(progress: Progress, why: str) -> Progress:
    """Return the record of a handler that is given up before its own end."""
    return _judge_final(progress, "info", why, AttemptEnded("cancelled")).progress


def _runtime_of(progress: Progress, now: Now) -> float:
    return 0.0 if progress.started is None else max(0.0, now.wall - progress.started)


def _judge_final(
    progress: Progress, level: str, line: str, ended: AttemptEnded
) -> Judgement:
    text = line[:MESSAGE_LENGTH_MAX]
    record = replace(
        progress,
        finished="failure",
        until=None,
        due=None,
        message=text,
        waits=False,
        delegated=False,
    )
    return Judgement(record, level, line, ended, was_last=True)


def _delay_attempt(
    progress: Progress, now: Now, delay: float, message: str
) -> Progress:
    return replace(
        progress,
        until=None if math.isinf(delay) else now.wall + delay,
        due=now.mono + delay,
        delay=None if math.isinf(delay) else delay,
        message=message[:MESSAGE_LENGTH_MAX],
    )


def progress_to_json(progress: Progress) -> dict[str, Any]:
    """The stored form of a record, without fields that have their defaults."""
    found: dict[str, Any] = {"aim": progress.aim}
    if progress.retries:
        found["retries"] = progress.retries
    for name in ("started", "until"):
        moment = getattr(progress, name)
        if moment is not None:
            found[name] = wall_text(moment)
    if progress.until is not None and progress.delay is not None:
        found["delay"] = progress.delay
    for name in ("finished", "message"):
        if getattr(progress, name) is not None:
            found[name] = getattr(progress, name)
    if progress.waits:
        found["waits"] = True
    if progress.acted != _default_acted(progress.aim, progress.finished):
        found["acted"] = progress.acted
    if progress.handled:
        found["handled"] = progress.handled
    return found


def progress_from_json(found: Any) -> Progress:
    """Return the record from its stored form; raise `ValueError` for anything else."""
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
    aim = f"{reason}{colon}{_add_version(observed)}"
    return Progress(
        aim,
        retries,
        started,
        until,
        finished=found.get("finished"),
        message=found.get("message"),
        waits=bool(found.get("waits")),
        acted=_add_version(
            str(found.get("acted", _default_acted(aim, found.get("finished"))))
        ),
        handled=_add_version(str(found.get("handled", ""))),
        delay=_delay_from_json(found.get("delay")),
    )


def _delay_from_json(found: Any) -> float | None:
    if found is not None and not isinstance(found, (int, float)):
        raise ValueError("a progress record whose delay is not a number")
    return found


_UNVERSIONED = regex("[0-9a-f]{20}")


def _add_version(digest: str) -> str:
    """Return a digest in its present form; releases up to 0.1 omitted some versions.

    >>> _add_version("fff04cd409d10063969b"), _add_version("1:fff0"), _add_version("?")
    ('1:fff04cd409d10063969b', '1:fff0', '?')
    """
    is_old = _UNVERSIONED.fullmatch(digest) is not None
    return f"{DIGEST_VERSION}:{digest}" if is_old else digest
