"""Detection of whether a simulated run settles, and if not, what prevents it.

A run has settled when nothing is due. Some runs never settle: a timer counts, a handler
fails for ever, or it changes the object that triggers it. Each is recognized from
outside: by the number of its turns, by its writes, and by whether time passes or the
cluster changes meanwhile.
"""

from __future__ import annotations

import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from math import inf
from typing import Any, Protocol

from msgspec import Struct

from fnop.core.handlers.declare.roles import BACKGROUND, EVENTS, Role
from fnop.core.operator.step import State, background_horizon, is_settled
from fnop.core.seam.commands import Perform, Say
from fnop.core.state.activity import ACTIVITY
from fnop.core.state.record import IDLE, ObjectRecord
from fnop.core.values.body import Key
from fnop.core.values.diff import diff
from fnop.core.values.errors import joined, number_of
from fnop.core.values.pace import Pace, culprits, is_quiet
from fnop.effects import Apply, Patch
from fnop.interpreters import cluster as simulated
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.simulation.lives import Threads

__all__ = ["Calm", "Despair", "Prospects", "Restlessness"]


class Run(Protocol):
    """The parts of a simulated run that show whether it settles."""

    @property
    def clock(self) -> VirtualClock: ...
    @property
    def cluster(self) -> simulated.Cluster: ...
    @property
    def looks_again(self) -> bool: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def state(self) -> State: ...
    @property
    def steps(self) -> int: ...
    @property
    def threads(self) -> Threads: ...


# After this number of changes, timers and daemons, or the handlers of one object, are
# assumed to continue for ever.
ROUNDS_MAX = 200
# After this number of equal errors in a row, a handler is assumed to fail for ever ...
REPEATS_MAX = 20
# ... and after this number of errors that the author foresees.
WAITS_MAX = 500
# This number of steps at once, or without a change in the cluster, counts as a circle:
# the minimum, and the number per object. A conversation may ask 2,000 questions.
STEPS_MAX, STEPS_EACH = 6_000, 200
# The number of steps that each second of virtual time allows for.
RATE_MAX, RATE_EACH = 200, 50
# This multiple of STEPS_MAX and STEPS_EACH is too many in any case.
STEPS_FACTOR = 10
# The number of first and of last writes whose changed fields are recorded.
LOOKS = 10
# The most handlers and fields that a sentence names.
NAMES_SHOWN = FIELDS_SHOWN = 3
# The number of last turns that decide which handler is busiest: others may be done.
TURNS_SEEN = 1_000

# The metadata that changes with every write, or by the operator itself.
_OWN_FIELDS = frozenset(("resourceVersion", "generation", "managedFields"))


class Calm:
    """Whether daemons and timers, which never end, no longer change anything (R36).

    The cluster is as it was when the last of them had not yet had its turn. Some, such
    as a timer that counts, always change something: `rounds` counts the times that all
    have had a turn.
    """

    def __init__(self) -> None:
        self.version = -1
        self.until: float | None = None
        self.rounds = 0

    def lasts(self, run: Run) -> bool:
        """Whether all have had a turn since the last look without a write."""
        if run.looks_again:
            return False
        if self.until is not None and run.clock.elapsed < self.until:
            return False
        if simulated.due(run.cluster) is not None:
            return False  # the cluster's own controllers have not had their turn
        if not run.state.streams.are_at_rest:
            return False  # the operator has not seen all changes yet
        horizon = background_horizon(run.state, run.clock.now(), run.threads.wakes)
        if horizon is None:
            return False
        if horizon == -inf:
            return True  # and no time has to pass for that
        calm = self.until is not None and self.version == run.cluster.version
        self.rounds += 1
        self.version, self.until = run.cluster.version, horizon
        return calm

    @property
    def is_lasting_unrest(self) -> bool:
        """Whether timers and daemons have changed objects for too long to stop."""
        return self.rounds > ROUNDS_MAX


class _Failing(Struct, frozen=True):
    """The last error of a handler, and the number of its repetitions in a row."""

    error: str
    times: int
    foreseen: bool


class Despair:
    """Whether all remaining work fails again and again, with the same error.

    Errors that an author foresees, `TemporaryError` and `again`, may well end. A
    `NameError` hardly does, nor does a refusal by the API server.
    """

    def __init__(self, repeats: int = REPEATS_MAX, waits: int = WAITS_MAX) -> None:
        self.errors: dict[tuple[Key, str], _Failing] = {}
        self._repeats, self._waits = repeats, waits

    def fork(self) -> Despair:
        """The same errors, for a run that continues independently."""
        fork = Despair(self._repeats, self._waits)
        fork.errors = {**self.errors}
        return fork

    def hear(self, say: Say) -> None:
        """Take a log line into account."""
        if say.handler is None or (say.ended is None and not say.error):
            return  # a line of the author's, or of a continuing attempt
        key = ACTIVITY if say.subject is None else say.subject.key
        last = self.errors.pop((key, say.handler), None)
        if say.error:
            times = 1 if last is None or last.error != say.error else last.times + 1
            is_rejected = say.ended is not None and say.ended.rejected
            unforeseen = bool(say.exception) or is_rejected
            self.errors[key, say.handler] = _Failing(say.error, times, not unforeseen)

    def reason(self, state: State) -> str:
        """Name a handler that fails for ever, if only such handlers are due; or ""."""
        if not self.errors:
            return ""
        failing: defaultdict[Key, set[str]] = defaultdict(set)
        for (key, handler), found in self.errors.items():
            if found.times >= (self._waits if found.foreseen else self._repeats):
                failing[key].add(handler)
        if not failing or state.requests.pending:
            return ""
        if not all(
            _is_only_failing(state.record(key), failing.get(key, set()))
            for key, _ in state.due
        ):
            return ""
        return self._words_for_errors(
            [
                (key, handler)
                for key, handler in self.errors
                if handler in failing[key] and is_left(state.record(key), handler)
            ]
        )

    def tries_again(self, state: State) -> bool:
        """Whether a daemon or timer has failed, and may yet succeed at its next try.

        A daemon may already go on: its last try then never ends.
        """
        return any(
            found.times < self._repeats and _is_background(state, key, handler)
            for (key, handler), found in self.errors.items()
            if is_left(record := state.record(key), handler)
            and handler not in _begun(record)
        )

    def is_foreseen(self, state: State) -> bool:
        """Whether the authors foresee the errors of all remaining handlers."""
        return all(
            found.foreseen
            for (key, handler), found in self.errors.items()
            if is_left(state.record(key), handler)
        )

    def present(self, state: State, *, tending: bool = False) -> str:
        """Name the handler that failed last, among timers and daemons or all; or ""."""
        return self._words_for_errors(
            [
                (key, handler)
                for key, handler in self.errors
                if is_left(state.record(key), handler)
                and (not tending or _is_background(state, key, handler))
            ]
        )

    def _words_for_errors(self, names: list[tuple[Key, str]]) -> str:
        found = [(self.errors[each].times, each) for each in names]
        if not found:
            return ""
        times, (key, handler) = max(found)
        error = self.errors[key, handler].error
        others = _words_for_others(len(found) - 1)
        often = "" if times == 1 else f", the same {times} times in a row"
        return f"{handler} fails for {label_of(key)}{often}: {error}{others}"


def _begun(record: ObjectRecord | None) -> set[str]:
    """The handlers of an object whose attempts are under way."""
    work = record.work if record is not None else None
    return {each.handler.id for each in (work or IDLE).invocations}


def _is_background(state: State, key: Key, handler: str) -> bool:
    """Whether this is a daemon or timer of the object."""
    record = state.record(key)
    return record is not None and handler in record.background


def _words_for_others(number: int) -> str:
    """The end of a sentence, with the number of other handlers that do the same.

    >>> _words_for_others(0), _words_for_others(1), _words_for_others(2)
    ('', ', and so does 1 other', ', and so do 2 others')
    """
    does = "does" if number == 1 else "do"
    return f", and so {does} {number_of(number, 'other')}" if number else ""


def label_of(key: Key) -> str:
    """The name of an object for users: `claims/c in default`."""
    if key == ACTIVITY:
        return "the operator itself"
    if not key.resource:
        return key.name  # a path: the operator has no other name for it
    kind = key.resource.partition(".")[0]
    return f"{kind}/{key.name}" + (f" in {key.namespace}" if key.namespace else "")


def _is_only_failing(record: ObjectRecord | None, failing: set[str]) -> bool:
    """Whether an object waits only for these handlers, or parts."""
    if record is None:
        return False
    work = record.work or IDLE
    if (
        work.running
        or work.reconciler_runs
        or work.event_runs
        or work.writing is not None
    ):
        return False
    left = _unfinished_handlers(record)
    if not left:
        # It waits for daemons and timers, or for a reconcile handler's time.
        return bool(record.background or record.reconcilers)
    return all(
        name in failing or any(each.startswith(f"{name}/") for each in failing)
        for name in left
    )


def _unfinished_handlers(record: ObjectRecord) -> set[str]:
    """The handlers that are not done: of a change under way, or after a failure."""
    work = record.work or IDLE
    handlers = {**record.stored.progress, **work.progress}
    begun = {name for name, each in handlers.items() if not each.is_finished}
    reconcilers = record.reconcilers.items()
    failed = {name for name, each in reconcilers if each.has_failed and not each.over}
    mappings = {e.handler.id for e in work.pending_events if e.progress.retries}
    return begun | failed | mappings


def is_left(record: ObjectRecord | None, handler: str) -> bool:
    """Whether a handler, or the one of this sub-handler, is not done with an object.

    A handler that failed for good is done, and so is one that was given up with its
    change.
    """
    if record is None:
        return False
    run_state = record.background.get(handler)
    if run_state is not None:
        return not run_state.over
    running = _begun(record)
    progress = record.progress_of(handler)
    if progress is not None and handler not in running:
        return not progress.is_finished
    left = _unfinished_handlers(record) | running
    return any(f"{handler}/".startswith(f"{name}/") for name in left)


def left_of(state: State, now: float) -> str:
    """Name the handler that is due next, and its time, in a sentence; or ""."""
    for key, due in state.due:
        record = state.record(key)
        if record is None:
            continue
        names = [each.handler.id for each in (record.work or IDLE).running]
        names += sorted(_unfinished_handlers(record))
        if names:
            wait = max(0.0, due - now)
            return f"{names[0]} of {label_of(key)} is due in {wait:g} s"
    for key in state.logs.queue:
        stream = state.logs.read[key]
        why = f": {stream.refusal}" if stream.refusal else ""
        return f"the log of {stream.label} waits to be read{why}"
    return ""


class _Writes:
    """The changes of one object: their number, their authors, and their fields."""

    __slots__ = ("authors", "fields", "key", "second", "since", "times", "turn")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.times = 0
        # The number of changes before the present second, and that second.
        self.since, self.second = 0, 0.0
        self.turn: Any = None
        # The number of writes of each handler, and of changes of each field.
        self.authors: defaultdict[str, int] = defaultdict(int)
        self.fields: defaultdict[str, int] = defaultdict(int)


class Restlessness:
    """The operator's turns and writes within one `settle` or `wait`, to find circles.

    Memory is bounded: each written object has counts, and fields only of its first and
    last writes.
    """

    def __init__(self, run: Run, *, bounded: bool) -> None:
        self._run = run
        # With a time limit, only circles that let no time pass have to be found.
        self._bounded = bounded
        self._roles = run.machine.program.roles
        # By the writer and the path: a thousand objects may write the same object.
        self._writes: dict[tuple[Key, str], _Writes] = {}
        self._ended: defaultdict[Key, int] = defaultdict(int)
        self._busy: deque[tuple[Key, str]] = deque(maxlen=TURNS_SEEN)
        self._looped: _Writes | None = None
        self._now = self._began_at = run.clock.elapsed
        self._version = run.cluster.version
        self._begun = self._changed = self._steps = run.steps
        self._excess = 0.0  # steps beyond the number that time allows

    # ----------------------------------------------------------------- seeing

    def hear(self, say: Say) -> None:
        """Note the end of an attempt: later writes belong to another attempt."""
        if say.took is not None and say.subject is not None:
            key = say.subject.key
            self._ended[key] += 1
            self._busy.append((key, say.handler or ""))

    def asks(self, command: Perform) -> None:
        """Note a request of a handler, or of the operator itself."""
        if command.subject is not None and command.handler:
            self._busy.append((command.subject.key, command.handler))

    def looks_at(self, command: Perform, request: ApiRequest) -> bool:
        """Whether `wrote` needs the object as it was before the write."""
        found = self._writes.get((_key_of_writer(command), request.path))
        if found is None or not _changes(command):
            return False
        return found.times < LOOKS or found.times - found.since >= ROUNDS_MAX - LOOKS

    def wrote(
        self, command: Perform, request: ApiRequest, before: Any, after: Any
    ) -> None:
        """Note that a handler has changed an object; `before` if it was requested."""
        if not _changes(command):
            return
        key = _key_of_writer(command)
        found = self._writes.get((key, request.path))
        if found is None:
            found = self._writes[key, request.path] = _Writes(_target(command, request))
        authors = (command.handler or "").split(", ")
        roles = {self._role(each) for each in authors}
        turn = (key, self._ended[key])
        if roles <= EVENTS or turn != found.turn:
            if self._bounded and found.second != self._now:
                found.since, found.second = found.times, self._now
            found.times += 1
            found.turn = turn
            for author in authors:
                found.authors[author] += 1
            if isinstance(before, dict) and isinstance(after, dict):
                for field in _changed_fields(before, after):
                    found.fields[field] += 1
        if found.times - found.since >= ROUNDS_MAX and not roles <= BACKGROUND:
            self._looped = found

    def _role(self, handler: str) -> Role | None:
        return self._roles.get(handler.partition("/")[0]) or self._roles.get(handler)

    # ---------------------------------------------------------------- judging

    def reason(self) -> str:
        """The reason why the run will not settle, in a sentence; or ""."""
        run = self._run
        if run.clock.elapsed >= self._now + 1.0:
            self._pass_time(run.clock.elapsed - self._now)
        if run.cluster.version != self._version:
            self._version, self._changed = run.cluster.version, run.steps
        if self._looped is not None:
            return self._words_for_loop(self._looped)
        if run.steps - self._begun <= STEPS_MAX:
            return ""  # too few for a circle, as in nearly all runs
        if self._is_over(self._excess + run.steps - self._steps):
            return f"hardly any time passes: {self.words_for_busiest()}"
        if self._bounded:
            return ""
        if self._is_over(run.steps - self._changed):
            return f"nothing in the cluster changes: {self.words_for_busiest()}"
        if self._is_over((run.steps - self._begun) / STEPS_FACTOR):
            return f"the run does not end: {self.words_for_busiest()}"
        return ""

    def _pass_time(self, seconds: float) -> None:
        steps = self._run.steps - self._steps
        rate = RATE_MAX + RATE_EACH * len(self._run.machine.state.objects.records)
        self._excess = max(0.0, self._excess + steps - rate * seconds)
        self._now, self._steps = self._run.clock.elapsed, self._run.steps

    def _is_over(self, steps: float) -> bool:
        if steps <= STEPS_MAX:
            return False
        return steps > STEPS_MAX + STEPS_EACH * len(
            self._run.machine.state.objects.records
        )

    def _words_for_loop(self, found: _Writes) -> str:
        return (
            f"{self._change(found)}, {found.times} times by now: each write calls a "
            "handler again that writes; let it write only what differs"
        )

    def circling(self) -> str:
        """Name the handlers that change an object over and over, in a sentence.

        The result is "" if no handlers do.
        """
        going = [
            each for each in self._writes.values() if self._is_still_changing(each)
        ]
        found = max(going, key=lambda each: each.times, default=None)
        return (
            "" if found is None or found.times < LOOKS else self._words_for_loop(found)
        )

    def _is_still_changing(self, found: _Writes) -> bool:
        """Whether an object is still changing; a resting object is not in a circle."""
        pace, now = self._pace_of(found), self._run.clock.now().mono
        return pace is None or not is_quiet(pace, now)

    def _pace_of(self, found: _Writes) -> Pace | None:
        record = self._run.machine.state.objects.records.get(found.key)
        return None if record is None else record.backoff.pace

    def tending(self) -> str:
        """Name the fields that timers and daemons keep writing, in a sentence."""
        found = max(self._writes.values(), key=lambda each: each.times, default=None)
        what = "" if found is None else f": {self._change(found)}"
        return f"timers and daemons write something at each of {ROUNDS_MAX} turns{what}"

    def _change(self, found: _Writes) -> str:
        names, fields = self._who_and_what(found)
        verb = "changes" if len(names) == 1 else "change"
        what = ", ".join(fields[:FIELDS_SHOWN]) or "something"
        return f"{joined(names[:NAMES_SHOWN])} {verb} {what} of {label_of(found.key)}"

    def _who_and_what(self, found: _Writes) -> tuple[list[str], list[str]]:
        """The handlers of a circle, and the fields that they change, as far as known.

        For an object that handlers are called for, the operator itself knows them best.
        For any other object, rare authors and rare fields are left out.
        """
        pace = self._pace_of(found)
        by = culprits(pace) if pace is not None else {}
        if by:
            paths = dict.fromkeys(each for fields in by.values() for each in fields)
            return [*by], [_dotted_path(each) for each in paths]
        return _most_frequent(found.authors), _most_frequent(found.fields)

    def words_for_busiest(self) -> str:
        """The steps that a run has taken, and the handler with most of them."""
        seconds = self._run.clock.elapsed - self._began_at
        taken = f"it took {self._run.steps - self._begun} steps within {seconds:g} s"
        if not self._busy:
            return taken
        ((key, handler), _), *_ = Counter(self._busy).most_common(1)
        return f"{taken}, and {handler} is the busiest, for {label_of(key)}"


class Prospects:
    """Whether a run may yet settle, judged by its failures and by its circles.

    Each method with a reason returns it as a sentence; or "".
    """

    __slots__ = ("_run", "despair", "restless")

    def __init__(self, run: Run, despair: Despair | None = None) -> None:
        # A run owns this object, and is freed at once when its last user drops it.
        self._run: Run = weakref.proxy(run)
        self.despair = despair or Despair()
        self.restless = Restlessness(self._run, bounded=False)

    def watch_for_circles(self, *, bounded: bool) -> None:
        """Restart the search for circles, in a time that is `bounded` or not."""
        self.restless = Restlessness(self._run, bounded=bounded)

    def despairs(self) -> str:
        """The reason why all remaining work fails for ever."""
        return self.despair.reason(self._run.state)

    def tries_again(self) -> bool:
        """Whether a daemon or timer that has failed may yet succeed."""
        return self.despair.tries_again(self._run.state)

    def is_foreseen(self) -> bool:
        """Whether authors foresee all errors of the remaining handlers."""
        return self.despair.is_foreseen(self._run.state)

    def reason_to_stop(self, calm: Calm) -> str:
        """The reason why waiting longer is useless."""
        return self.restless.tending() if calm.is_lasting_unrest else self.despairs()

    def circles(self) -> str:
        """The reason why the run does not settle, as far as it is known."""
        state = self._run.state
        return (
            self.restless.circling()
            or self.despair.present(state)
            or left_of(state, self._run.clock.elapsed)
            or self.restless.reason()
            or f"it does not come to rest: {self.restless.words_for_busiest()}"
        )

    def left(self, *, bounded: bool) -> str:
        """The work that is left when nothing happens any more.

        In a `bounded` time, turns of timers and daemons may be left.
        """
        run, state = self._run, self._run.state
        wakes = run.threads.wakes
        if run.looks_again:
            return "the operator looks for kinds that do not exist"
        if is_settled(state) and not wakes:
            return ""
        if bounded and background_horizon(state, run.clock.now(), wakes) is not None:
            return self.despair.present(state, tending=True)
        return (
            self.despair.present(state)
            or left_of(state, run.clock.elapsed)
            or self.restless.circling()
            or "something is still due"
        )


def _most_frequent(counts: Mapping[str, int]) -> list[str]:
    """The names that come at least half as often as the most frequent one.

    >>> _most_frequent({"a": 1, "b": 20, "c": 10}), _most_frequent({})
    (['b', 'c'], [])
    """
    ranked = Counter(counts).most_common()
    return [name for name, times in ranked if 2 * times >= ranked[0][1]]


def _dotted_path(pointer: str) -> str:
    """A field as people write it.

    >>> _dotted_path("/spec/size"), _dotted_path("/metadata/labels/example.com~1tier")
    ('spec.size', 'metadata.labels.example.com/tier')
    """
    parts = (part.replace("~1", "/") for part in pointer.lstrip("/").split("/"))
    return ".".join(part.replace("~0", "~") for part in parts)


def _key_of_writer(command: Perform) -> Key:
    """The object whose handlers request the command."""
    return ACTIVITY if command.subject is None else command.subject.key


def _changes(command: Perform) -> bool:
    """Whether handlers change an existing object: no creation, and no Event.

    The operator's own writes, such as of a failure, do not count.
    """
    if not command.handler or not isinstance(command.effect, (Patch, Apply)):
        return False
    return command.resource is None or command.resource.plural != "events"


def _target(command: Perform, request: ApiRequest) -> Key:
    """The object that a command is about."""
    resource, name = command.resource, command.name
    if resource is None or name is None:
        return Key("", "", request.path)
    return Key(resource.key, command.namespace or "", name)


def _changed_fields(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The fields that a write has changed, apart from the operator's own."""
    found = []
    for item in diff(before, after):
        path = item.field
        is_own = path[:1] == ("metadata",) and path[1:2] and path[1] in _OWN_FIELDS
        of_state = any(each.startswith("fnop.dev/") for each in path[1:])
        if not is_own and not of_state and path[:2] != ("status", "conditions"):
            found.append(".".join(path))
    return found
