"""Progress of handlers: the table of what the end of an attempt means."""

from typing import Any

import pytest

from fnop.core.memory.progress import (
    Failure,
    Judgement,
    Progress,
    attempting,
    judge_again,
    judge_failure,
    progress_from_json,
    progress_to_json,
    succeeded,
)
from fnop.core.seam.commands import AttemptEnded
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import ErrorsMode
from fnop.core.values.now import Now
from fnop.effects.structs import replace

BEGUN = Progress("create:1:abc", retries=0, started=1000.0)
NOW = Now(1010.0, 10.0)  # the first attempt was ten seconds ago
TEMPORARY = Failure("TemporaryError", "later", temporary=5.0)
PERMANENT = Failure("PermanentError", "never", permanent=True)
ARBITRARY = Failure("ValueError", "what?")
REJECTED = Failure("Refused", "no", rejected=True)


def judged(failure: Failure, progress: Progress = BEGUN, **options: Any) -> Judgement:
    given: dict[str, Any] = {
        "errors": ErrorsMode.TEMPORARY,
        "timeout": None,
        "retries": None,
        "backoff": 60.0,
    }
    return judge_failure(progress, failure, NOW, **(given | options))


MODES = [
    # failure, mode → finished, level, the next attempt in seconds
    (ARBITRARY, ErrorsMode.TEMPORARY, None, "error", 60.0),
    (ARBITRARY, ErrorsMode.PERMANENT, "failure", "error", None),
    (ARBITRARY, ErrorsMode.IGNORED, "success", "warning", None),
    (TEMPORARY, ErrorsMode.TEMPORARY, None, "warning", 5.0),
    (TEMPORARY, ErrorsMode.PERMANENT, None, "warning", 5.0),
    (TEMPORARY, ErrorsMode.IGNORED, None, "warning", 5.0),
    (PERMANENT, ErrorsMode.TEMPORARY, "failure", "error", None),
    (PERMANENT, ErrorsMode.PERMANENT, "failure", "error", None),
    (PERMANENT, ErrorsMode.IGNORED, "failure", "error", None),
]


@pytest.mark.parametrize(("failure", "mode", "finished", "level", "delay"), MODES)
def test_the_author_decides_and_then_the_mode(
    failure: Failure,
    mode: ErrorsMode,
    finished: str | None,
    level: str,
    delay: float | None,
) -> None:
    found = judged(failure, errors=mode)
    assert (found.progress.finished, found.level) == (finished, level)
    assert found.progress.retries == 1, "an attempt is an attempt"
    if delay is None:
        assert (found.progress.until, found.progress.due) == (None, None)
    else:
        assert found.progress.until == NOW.wall + delay
        assert found.progress.due == NOW.mono + delay
        assert found.progress.due_at(NOW) == NOW.mono + delay


def test_a_delay_of_nothing_leaves_a_moment_to_everybody_else() -> None:
    at_once = Failure("TemporaryError", "", temporary=0.0)
    assert judged(at_once).progress.due_at(NOW) == NOW.mono + 0.05


def test_retries_count_attempts() -> None:
    """`retries=3` means three attempts in all."""
    progress, attempts = BEGUN, 0
    while not progress.is_finished:
        attempts += 1
        progress = judged(ARBITRARY, progress, retries=3).progress
    assert (attempts, progress.finished) == (3, "failure")


@pytest.mark.parametrize("failure", [TEMPORARY, ARBITRARY])
@pytest.mark.parametrize(("number", "text"), [(1, "1 attempt:"), (2, "2 attempts:")])
def test_the_last_retry_is_said_to_be_the_last(
    failure: Failure, number: int, text: str
) -> None:
    found = judged(failure, replace(BEGUN, retries=number - 1), retries=number)
    assert found.line.startswith(f"failed for good after {text}")
    assert found.level == "error"


@pytest.mark.parametrize(
    ("timeout", "waits", "says"),
    [
        (10.0, None, "has timed out after 10 s: "),
        (13.0, 3.0, "failed, times out in 3 s, before the next attempt in 5 s: "),
        (15.0, 5.0, "failed, times out in 5 s, before the next attempt in 5 s: "),
        (15.5, 5.0, "failed, again in 5 s: "),
        (100.0, 5.0, "failed, again in 5 s: "),
    ],
)
def test_a_retry_that_could_not_take_place_ends_at_the_deadline(
    timeout: float, waits: float | None, says: str
) -> None:
    """Ten seconds have passed, and the next attempt would be in five."""
    found = judged(TEMPORARY, timeout=timeout)
    assert found.line.startswith(says)
    assert found.progress.is_finished is (waits is None)
    if waits is not None:
        assert found.progress.due_at(NOW) == NOW.mono + waits


def test_an_ignored_error_is_no_matter_of_timeouts() -> None:
    found = judged(ARBITRARY, errors=ErrorsMode.IGNORED, timeout=1.0, retries=1)
    assert found.progress.finished == "success"


def test_e65_the_clock_of_a_timeout_starts_with_the_first_attempt() -> None:
    waiting = Progress("create:1:abc")
    assert not judged(TEMPORARY, waiting, timeout=6.0).progress.is_finished
    again = judge_again(waiting, NOW, after=5.0, because="", timeout=6.0)
    assert not again.progress.is_finished


def test_r5_again_counts_towards_the_timeout_and_not_towards_retries() -> None:
    progress = replace(BEGUN, retries=2)
    found = judge_again(progress, NOW, after=5.0, because="not yet", timeout=None)
    assert found.progress.retries == 2
    assert (found.level, found.line) == ("info", "goes on in 5 s: not yet")
    assert found.progress.due_at(NOW) == NOW.mono + 5.0
    late = judge_again(progress, NOW, after=5.0, because="not yet", timeout=14.0)
    assert (late.level, late.line) == (
        "warning",
        "times out in 4 s, before it goes on in 5 s: not yet",
    )
    assert late.progress.due_at(NOW) == NOW.mono + 4.0
    over = judge_again(progress, NOW, after=5.0, because="not yet", timeout=10.0)
    assert over.progress.finished == "failure"
    assert over.line == "has timed out after 10 s: not yet"


def test_a_success_counts_and_clears_what_was_waited_for() -> None:
    found = succeeded(replace(BEGUN, retries=2, until=1.0, due=1.0, message="x"))
    assert found == Progress(BEGUN.aim, 3, 1000.0, finished="success")
    assert found.has_succeeded


def test_a_wall_clock_that_jumped_back_expires_nothing() -> None:
    future = replace(BEGUN, started=NOW.wall + 3600)
    assert not judged(TEMPORARY, future, timeout=6.0).progress.is_finished


def test_a_stored_delay_is_waited_for_on_this_process_s_clock() -> None:
    stored = progress_from_json(progress_to_json(judged(TEMPORARY).progress))
    assert stored.due is None, "another process has another monotonic clock"
    assert stored.due_at(Now(NOW.wall + 2, 777.0)) == 777.0 + 3.0


STORED = [
    # seconds from now: the first attempt, the next one; its delay → the wait
    (-10.0, 5.0, 5.0, 5.0),
    (-10.0, 3.0, 5.0, 3.0),
    (-10.0, -3.0, 5.0, -3.0),
    (-10.0, 50.0, 5.0, 50.0),  # clocks differ by less than a minute
    (-10.0, 66.0, 5.0, 0.0),
    (-10.0, 86_400.0, 5.0, 0.0),
    (-10.0, 86_400.0, 86_400.0, 86_400.0),
    (50.0, 55.0, 5.0, 55.0),
    (3600.0, 3605.0, 5.0, 0.0),
    (3600.0, 3605.0, None, 0.0),
    (-10.0, 3605.0, None, 3605.0),  # by a release that stored no delay
    (None, 3605.0, 5.0, 0.0),
]


@pytest.mark.parametrize(("started", "until", "delay", "wait"), STORED)
def test_a_stored_time_of_a_clock_that_was_ahead_is_not_waited_for(
    started: float | None, until: float, delay: float | None, wait: float
) -> None:
    began = None if started is None else NOW.wall + started
    stored = Progress("a", 1, began, NOW.wall + until, delay=delay)
    assert progress_from_json(progress_to_json(stored)) == stored
    assert stored.due_at(NOW) == NOW.mono + wait


def test_an_attempt_begins_with_the_first_one_unless_that_is_yet_to_come() -> None:
    for ahead, since in ((-10.0, -10.0), (30.0, 30.0), (3600.0, 0.0)):
        waiting = judged(TEMPORARY, replace(BEGUN, started=NOW.wall + ahead)).progress
        begun = attempting(waiting, NOW)
        assert begun == Progress(
            begun.aim, 1, NOW.wall + since, message=waiting.message
        )


# ------------------------------------------------------------------- stored form


@pytest.mark.parametrize(
    "progress",
    [
        Progress("create:1:abc"),
        BEGUN,
        succeeded(BEGUN),
        judged(PERMANENT).progress,
        replace(judged(TEMPORARY).progress, due=None),
    ],
)
def test_a_record_survives_being_stored(progress: Progress) -> None:
    assert progress_from_json(progress_to_json(progress)) == progress


def test_what_says_nothing_is_not_stored() -> None:
    assert progress_to_json(Progress("create:1:abc")) == {"aim": "create:1:abc"}


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},
        {"aim": 1},
        {"aim": "a", "finished": "perhaps"},
        {"aim": "a", "retries": "2"},
        {"aim": "a", "retries": None},
        {"aim": "a", "started": "yesterday"},
        {"aim": "a", "until": 5},
        {"aim": "a", "until": None},
        {"aim": "a", "delay": "5"},
    ],
)
def test_what_is_no_record_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        progress_from_json(found)


ENDS = [
    # failure (None: it asks to go on), options → how the attempt has ended
    (ARBITRARY, {}, AttemptEnded("error", retried=True)),
    (TEMPORARY, {}, AttemptEnded("error", retried=True)),
    (TEMPORARY, {"timeout": 12.0}, AttemptEnded("error", retried=True)),
    (TEMPORARY, {"timeout": 10.0}, AttemptEnded("timeout")),
    (ARBITRARY, {"errors": ErrorsMode.IGNORED}, AttemptEnded("error")),
    (ARBITRARY, {"errors": ErrorsMode.PERMANENT}, AttemptEnded("error")),
    (ARBITRARY, {"retries": 1}, AttemptEnded("error")),
    (PERMANENT, {}, AttemptEnded("error")),
    (REJECTED, {}, AttemptEnded("error", retried=True, rejected=True)),
    (REJECTED, {"retries": 1}, AttemptEnded("error", rejected=True)),
    (None, {"timeout": None}, AttemptEnded("requeue", retried=True)),
    (None, {"timeout": 12.0}, AttemptEnded("requeue", retried=True)),
    (None, {"timeout": 10.0}, AttemptEnded("timeout")),
]


@pytest.mark.parametrize(("failure", "options", "ended"), ENDS)
def test_how_an_attempt_has_ended_is_told_as_a_value(
    failure: Failure | None, options: dict[str, Any], ended: AttemptEnded
) -> None:
    if failure is None:
        found = judge_again(BEGUN, NOW, after=5.0, because="not yet", **options)
    else:
        found = judged(failure, **options)
    assert found.ended == ended
    is_over = found.progress.is_finished
    assert is_over is not found.ended.retried, "what is not over is tried again"


def test_the_wait_after_errors_grows_with_jitter_and_a_constant_one_is_kept() -> None:
    problem = Failure("E", "no")
    waits: list[list[float]] = []
    for backoff in (Backoff(first=2, most=10), 7.0):
        progress, found = Progress("x"), []
        for _ in range(5):
            judged = judge_failure(
                progress,
                problem,
                NOW,
                errors=ErrorsMode.TEMPORARY,
                timeout=None,
                retries=None,
                backoff=backoff,
                jitter=0.5,
            )
            progress = judged.progress
            assert progress.due is not None
            found.append(round(progress.due - NOW.mono, 1))
        waits.append(found)
    assert waits == [[2.2, 4.4, 8.8, 11.0, 11.0], [7.0] * 5]


@pytest.mark.parametrize(
    "wrong", [{"first": 0}, {"first": 5, "most": 4}, {"factor": 0.5}]
)
def test_what_is_no_backoff_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a backoff begins with"):
        Backoff(**wrong)
