"""The figures of an operator as seen from outside: its steps, its API, its reviews.

`Meter` sees what every observer sees, and keeps what the state forgets. That is the
last sign of each stream, the start of each wait for an answer, and the results of
attempts. It reads no clock, so a meter that is fed a recording counts the same as in
the run. `MeteredApi` counts the requests of an API client, `MeteredReviews` the reviews
of the operator's webhooks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Literal

from fnop.core.admission.configurations import UnknownWebhook
from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import MalformedReview
from fnop.core.operator.health import Timings
from fnop.core.seam.commands import (
    CloseStream,
    Command,
    Fetch,
    FollowLog,
    ListPage,
    Perform,
    Say,
    Watch,
)
from fnop.core.seam.inputs import (
    Answered,
    Bookmark,
    Input,
    ListDone,
    ListItem,
    LogLines,
    StreamEnded,
    WatchEvent,
)
from fnop.core.values.now import Now
from fnop.effects import Call, Raised, Unknown, Unreachable
from fnop.interpreters.runtime.clock import Clock, SystemClock
from fnop.interpreters.runtime.protocol import Api, ApiRequest, ApiResponse, WatchLine

__all__ = ["Histogram", "Meter", "MeteredApi", "MeteredReviews", "counted_as"]

Counted = Literal["success", "error", "requeue"]

# Seconds. For requests the bounds of client-go, for calls up to the hour, for reviews
# as long as an API server waits.
REQUEST_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
CALL_BOUNDS = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
REVIEW_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0)

_HEARD = (WatchEvent, Bookmark, ListItem, ListDone)


class Histogram:
    """The counts of values up to each bound.

    >>> times = Histogram((1.0, 5.0))
    >>> times.add(1.0)
    >>> times.add(7.0)
    >>> times.cumulated(), times.total
    ([1, 1, 2], 8.0)
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulated(self) -> list[int]:
        """The number of values within each bound; the last one counts all."""
        found, sum_ = [], 0
        for count in self._counts:
            sum_ += count
            found.append(sum_)
        return found


class Meter:
    """An observer (`fnop.interpreters.runtime.machine.Observer`).

    `attempts` counts by the object's resource, the handler and `success`, `error` or
    `requeue`. `events` counts by their type, and `ends` by the reason why streams
    ended. `calls` are the durations of calls by handler. `lines` of logs are counted by
    handler, as are the lines `dropped` by its rate.
    """

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, ...]] = Counter()
        self.events: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.calls: dict[str, Histogram] = {}
        self._heard: dict[int, float] = {}
        # The numbers among them that are listings of pages.
        self._pages: set[int] = set()
        self._logs: set[int] = set()
        self._asked: dict[int, float] = {}
        self._calling: dict[int, str] = {}
        self._answered: float | None = None
        self._reached: float | None = None

    @property
    def seen(self) -> Timings:
        """The times of events that the state does not keep."""
        return Timings(self._heard, self._asked, self._answered, self._reached)

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Take one step into account."""
        moment = now.mono
        if isinstance(input, _HEARD):
            self._reached = moment
            self._on_line_of_stream(input, moment)
        elif self._reached is None or self._is_of_server(input):
            self._reached = moment
        if isinstance(input, Answered):
            self._on_answer(input.id, moment)
        elif isinstance(input, LogLines):
            self.lines.update(each.handler for each in input.lines)
            self.dropped.update(dict(input.dropped))
        elif isinstance(input, StreamEnded) and input.stream in self._logs:
            self._logs.discard(input.stream)
        elif isinstance(input, StreamEnded):
            self._close(input.stream)
            self.ends[input.reason] += 1
        for command in commands:
            self._on_command(command, moment)

    def _is_of_server(self, input: Input) -> bool:
        """Whether an input comes from the API server, and not from its absence.

        The lines of lists and watches do; they are not asked about here.
        """
        match input:
            case StreamEnded(reason="unreachable" | "silent"):
                return False
            case Answered(number, outcome):
                unheard = isinstance(outcome, Raised | Unknown | Unreachable)
                return not unheard and number not in self._calling
            case _:
                return isinstance(input, LogLines | StreamEnded)

    def _on_line_of_stream(
        self, input: WatchEvent | Bookmark | ListItem | ListDone, moment: float
    ) -> None:
        if isinstance(input, WatchEvent):
            self.events[input.type] += 1
        is_last = isinstance(input, ListDone) and input.continue_token is None
        if is_last and input.stream in self._pages:
            self._close(input.stream)
        elif input.stream in self._heard:  # a closed one is not heard again
            self._heard[input.stream] = moment

    def _close(self, stream: int) -> None:
        self._heard.pop(stream, None)
        self._pages.discard(stream)

    def _on_answer(self, number: int, moment: float) -> None:
        self._answered = moment
        began = self._asked.pop(number, None)
        handler = self._calling.pop(number, None)
        if began is not None and handler is not None:
            times = self.calls.setdefault(handler, Histogram(CALL_BOUNDS))
            times.add(moment - began)

    def _on_command(self, command: Command, moment: float) -> None:
        match command:
            case Perform(id, effect):
                self._asked[id] = moment
                if isinstance(effect, Call):
                    self._calling[id] = command.handler or ""
            case Fetch(id):
                self._asked[id] = moment
            case ListPage(stream):
                self._heard[stream] = moment
                self._pages.add(stream)
            case Watch(stream):
                self._heard[stream] = moment
            case FollowLog(stream=stream):
                self._logs.add(stream)
            case CloseStream(stream):
                self._logs.discard(stream)
                self._close(stream)
            case Say(handler=str(handler)):
                self._on_line(command, handler)
            case _:
                pass

    def _on_line(self, say: Say, handler: str) -> None:
        result = counted_as(say)
        if result is not None:
            resource = "" if say.subject is None else say.subject.resource
            self.attempts[resource, handler, result] += 1


def counted_as(say: Say) -> Counted | None:
    """The result of an attempt, from the log line at its end; None for other lines.

    >>> from fnop.core.seam.commands import AttemptEnded
    >>> counted_as(Say("info", "in any words", ended=AttemptEnded("success")))
    'success'
    >>> counted_as(Say("info", "create handler f succeeded", handler="f"))
    """
    if say.ended is None:
        return None
    match say.ended.result:
        case "success" | "error" | "requeue" as result:
            return result
        case "timeout":
            # This attempt has failed. An attempt that asks to continue has not, nor has
            # a success whose write is then refused.
            has_failed = say.error is not None and say.took is not None
            return "error" if has_failed else None
        case "delegated" | "cancelled":
            return None


class MeteredApi:
    """An `Api` that counts the requests it forwards to another one.

    `answers` counts by method and status; a request without an answer has `<error>`, as
    in client-go. `times` are the durations by method.
    """

    def __init__(self, api: Api, clock: Clock | None = None) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.times: dict[str, Histogram] = {}
        self._api = api
        self._clock = clock or SystemClock()

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer one request. Raises `Unreachable` when no answer came."""
        began = self._clock.now().mono
        code = "<error>"
        try:
            response = await self._api.send(request)
            code = str(response.status)
            return response
        finally:
            self.answers[request.method, code] += 1
            times = self.times.setdefault(request.method, Histogram(REQUEST_BOUNDS))
            times.add(self._clock.now().mono - began)

    def watch(
        self, request: ApiRequest, *, silence_seconds: float
    ) -> AsyncGenerator[WatchLine, None]:
        """Follow one watch, as the wrapped API does."""
        return self._api.watch(request, silence_seconds=silence_seconds)

    async def close(self) -> None:
        """Release connections and files."""
        await self._api.close()


class MeteredReviews:
    """Decides as another function does (`Runner.review`), and counts.

    `answers` counts by webhook and HTTP status, `results` by handler and `allowed`,
    `denied` or `error`. `times` are the durations by webhook. Reviews that name no
    webhook have the webhook "". A review for an unknown webhook is not counted, because
    it is then asked again without a webhook (`fnop.adapters.webhooks.answering`).
    """

    def __init__(
        self, review: Callable[..., Awaitable[Decision]], clock: Clock | None = None
    ) -> None:
        self.answers: Counter[tuple[str, ...]] = Counter()
        self.results: Counter[tuple[str, ...]] = Counter()
        self.times: dict[str, Histogram] = {}
        self._review = review
        self._clock = clock or SystemClock()

    async def __call__(
        self, body: Any, *, webhook: str | None = None, **given: Any
    ) -> Decision:
        """Decide about a review; raises what the wrapped function raises."""
        began = self._clock.now().mono
        # A caller may send any name: only existing webhooks get a label.
        label, code = "", "500"
        try:
            decision = await self._review(body, webhook=webhook, **given)
            label, code = webhook or "", "200"
        except MalformedReview:
            code = "400"
            raise
        except UnknownWebhook:
            code = ""
            raise
        finally:
            if code:
                self.answers[label, code] += 1
                times = self.times.setdefault(label, Histogram(REVIEW_BOUNDS))
                times.add(self._clock.now().mono - began)
        self.results.update(decision.results.items())
        return decision
