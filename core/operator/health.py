"""The health of an operator, from its state and the times of its last inputs.

Two questions, as Kubernetes asks them:

- *Is it alive?* Whether it makes progress. It does not if something takes longer than
  it can take. Then a restart may help, and nothing else will.
- *Is it ready?* Whether it serves. It does not while it begins or ends, nor while the
  API server is unavailable or refuses a kind. A restart does not help then.

Answers come with their reasons, as sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field, to_builtins

from fnop.core.handlers.program.program import Program
from fnop.core.state.lifecycle import Phase
from fnop.core.state.requests import handler_of, is_outside
from fnop.core.state.turn import State, settings_of
from fnop.core.streams.stream import Stream, StreamPhase, StreamPurpose
from fnop.core.values.body import Key
from fnop.core.values.now import Now

__all__ = [
    "LIMITS",
    "UNREADY",
    "Health",
    "HealthLimits",
    "StreamHealth",
    "Timings",
    "health",
]


class HealthLimits(Struct, frozen=True):
    """The longest durations while all is well, in seconds.

    A request has its own deadline (60 s). Before it, the request may have to wait: for
    new credentials, or because too many fail. A call has no deadline except its
    handler's `timeout`. `grace` is added to any other deadline.
    """

    request: float = 300.0
    call: float = 3600.0
    queue: float = 300.0
    grace: float = 60.0


LIMITS = HealthLimits()


class Timings(Struct, frozen=True):
    """The times of events that are not in the state, in monotonic seconds.

    `heard` has the time of each stream's last line, and `asked` the time of each
    command that awaits its answer, both by number. `answered` is the time of the last
    answer. `reached` is the time of the API server's last response, or of the start.
    """

    heard: Mapping[int, float] = field(default_factory=dict)
    asked: Mapping[int, float] = field(default_factory=dict)
    answered: float | None = None
    reached: float | None = None


class StreamHealth(Struct, frozen=True):
    """The health of one stream.

    `age` is the time since its last line, or since it was opened; None while it is
    closed. `failures` counts the failures in a row.
    """

    resource: str
    namespace: str | None
    phase: str
    age: float | None
    failures: int
    refusal: str | None


class Health(Struct, frozen=True):
    """The health of an operator; ages are in seconds.

    `queue` counts the objects that are due, and `queues` does so by kind. `oldest` is
    how long the first of them has been due. `requests` and `calls` are the ages of
    those under way, calls by handler. `stuck` has the reasons why it is not alive,
    `unready` has the other reasons why it does not serve.
    """

    phase: str
    streams: tuple[StreamHealth, ...]
    objects: int
    queue: int
    queues: tuple[tuple[str, int], ...]
    oldest: float | None
    requests: tuple[float, ...]
    calls: tuple[tuple[str, float], ...]
    failures: int
    stuck: tuple[str, ...]
    unready: tuple[str, ...]
    # The logs of containers, by the state of their streams.
    logs: tuple[tuple[str, int], ...] = ()

    @property
    def is_alive(self) -> bool:
        """Whether it makes progress."""
        return not self.stuck

    @property
    def is_ready(self) -> bool:
        """Whether it serves: it is alive, and all its streams work."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why it is not ready."""
        return self.stuck + self.unready

    def summary(self) -> dict[str, Any]:
        """The health as JSON."""
        return {"alive": self.is_alive, "ready": self.is_ready, **to_builtins(self)}


# The reasons why an operator does not serve, by phase. An operator that waits for
# another one counts as ready to take over: a rollout must not wait for it.
UNREADY = {
    "new": "the operator has not started",
    "starting": "the startup handlers are not done",
    "discovering": "the kinds of the API server are not known yet",
    "serving": "",
    "standby": "",
    "frozen": "",
    "stopping": "the operator is stopping",
    "cleaning": "the operator is stopping: its cleanup handlers are called",
    "leaving": "the operator is stopping: its peers are told",
    "ended": "",  # it is not alive
}


def health(
    program: Program,
    state: State,
    seen: Timings,
    now: Now,
    limits: HealthLimits = LIMITS,
) -> Health:
    """The health of the operator at this moment. Total and pure."""
    queue = state.due
    waits = [(key, now.mono - at) for key, at in queue if at <= now.mono]
    oldest = max((age for _, age in waits), default=None)
    requests, calls = _ages_under_way(state, seen, now)
    has_ended = state.lifecycle.phase is Phase.ENDED
    stuck = [
        *(["the operator has ended"] if has_ended else []),
        *_unreachable_reasons(program, state, seen, now),
        *_stuck_streams(program, state, seen, now, limits),
        *_stuck_requests(requests, limits),
        *_stuck_calls(program, calls, limits),
        *_stuck_queue(state, seen, now, oldest, limits),
    ]
    return Health(
        state.lifecycle.phase.value,
        tuple(
            _health_of_stream(each, seen, now)
            for each in state.streams.followed.values()
        ),
        len(state.objects.records),
        len(waits),
        _count_by_kind(state, [key for key, _ in waits]),
        oldest,
        tuple(requests),
        tuple(calls),
        state.notes.failures,
        tuple(stuck),
        tuple(_unready_reasons(state)),
        tuple(sorted(Counter(e.phase.value for e in state.logs.read.values()).items())),
    )


def _count_by_kind(state: State, due: list[Key]) -> tuple[tuple[str, int], ...]:
    """The number of due objects by kind, including kinds without any."""
    counts = Counter({name: 0 for name in state.survey.kinds})
    counts.update(key.resource for key in due)
    return tuple((name, count) for name, count in sorted(counts.items()) if name)


def _ages_under_way(
    state: State, seen: Timings, now: Now
) -> tuple[list[float], list[tuple[str, float]]]:
    """The ages of requests, and of calls with their handlers."""
    requests: list[float] = []
    calls: list[tuple[str, float]] = []
    for number, ticket in sorted(state.requests.pending.items()):
        age = now.mono - seen.asked.get(number, now.mono)
        if is_outside(ticket):
            calls.append((handler_of(ticket), age))
        else:
            requests.append(age)
    return requests, calls


# ------------------------------------------------------------------ streams


def _health_of_stream(stream: Stream, seen: Timings, now: Now) -> StreamHealth:
    return StreamHealth(
        stream.resource.key,
        stream.namespace,
        stream.phase.value,
        _age_of_stream(stream, seen, now),
        stream.failures,
        stream.refusal,
    )


def _age_of_stream(stream: Stream, seen: Timings, now: Now) -> float | None:
    """The time since a stream's last line; None if it is not open."""
    if stream.phase not in (StreamPhase.LISTING, StreamPhase.WATCHING):
        return None
    heard = seen.heard.get(stream.id, stream.opened_at)
    return now.mono - max(heard, stream.opened_at)


def _unreachable_reasons(
    program: Program, state: State, seen: Timings, now: Now
) -> Iterator[str]:
    """Report an API server that has not responded to any request for too long.

    A restart finds it again if its address, or the route to it, has changed.
    """
    most = settings_of(program, state.lifecycle).unreachable_seconds
    quiet = 0.0 if seen.reached is None else now.mono - seen.reached
    if state.lifecycle.phase is not Phase.ENDED and quiet > most:
        yield f"the API server has not been reached for {quiet:.0f} s"


def _stuck_streams(
    program: Program, state: State, seen: Timings, now: Now, limits: HealthLimits
) -> Iterator[str]:
    """Report streams that are silent, or not opened, for too long."""
    settings = settings_of(program, state.lifecycle)
    silence = max(settings.watch_silence_seconds, settings.watch_timeout_seconds)
    watch = silence + limits.grace
    for stream in state.streams.followed.values():
        age = _age_of_stream(stream, seen, now)
        is_request = stream.phase is StreamPhase.LISTING and not stream.streamed
        if age is not None and age > (limits.request if is_request else watch):
            what = f"the {stream.phase.value} of {stream.label}"
            yield f"{what} has been silent for {age:.0f} s"
        late = now.mono - stream.due
        if stream.phase is StreamPhase.WAITING and late > limits.grace:
            yield f"the next watch of {stream.label} was due {late:.0f} s ago"


# ----------------------------------------------------- requests, calls, objects


def _stuck_requests(ages: list[float], limits: HealthLimits) -> Iterator[str]:
    age = max(ages, default=0.0)
    if age > limits.request:
        yield f"a request has had no answer for {age:.0f} s"


def _stuck_calls(
    program: Program, calls: list[tuple[str, float]], limits: HealthLimits
) -> Iterator[str]:
    """Report calls that take too long; a daemon's call may take forever."""
    handlers = {each.id: each for each in program.handlers if calls}
    lasting = {each.id for each in handlers.values() if each.rule.lasts}
    for name, age in calls:
        handler = handlers.get(name)
        timeout = None if handler is None else handler.timeout
        most = limits.call if timeout is None else timeout + limits.grace
        if age > most and name not in lasting:
            yield f"a call of {name or 'a handler'} has taken {age:.0f} s"


def _stuck_queue(
    state: State, seen: Timings, now: Now, oldest: float | None, limits: HealthLimits
) -> Iterator[str]:
    """Report due objects, if no answers come and no stream fails.

    A long queue alone is not a fault: at the start all objects are in it.
    """
    if (
        state.lifecycle.phase is not Phase.SERVING
        or oldest is None
        or oldest <= limits.queue
    ):
        return
    quiet = oldest if seen.answered is None else now.mono - seen.answered
    if quiet > limits.queue and not any(
        map(_is_failing, state.streams.followed.values())
    ):
        yield f"objects have been due for {oldest:.0f} s, and none was reconciled"


# ---------------------------------------------------------------- readiness


def _unready_reasons(state: State) -> Iterator[str]:
    phase = state.lifecycle.phase.value
    why = UNREADY.get(phase, f"the operator is {phase}")
    if why:
        yield why
    elif phase == "serving":
        yield from _unready_streams(state)


def _unready_streams(state: State) -> Iterator[str]:
    served = [
        each
        for each in state.streams.followed.values()
        if each.purpose is StreamPurpose.OBJECTS
    ]
    for stream in served:
        if _is_failing(stream):
            why = stream.refusal or f"{stream.failures} failures in a row"
            yield f"{stream.label} cannot be followed: {why}"
        elif not stream.lists:
            yield f"the first listing of {stream.label} is not complete"
    if not served and not state.lifecycle.ready:
        yield "there is nothing to serve yet"


def _is_failing(stream: Stream) -> bool:
    """Whether the API server is unavailable, or refuses; one failure may be chance.

    An open watch is healthy. Its earlier failures only count when it ends again.
    """
    if stream.phase is StreamPhase.WATCHING:
        return False
    return stream.failures > 1 or stream.refusal is not None
