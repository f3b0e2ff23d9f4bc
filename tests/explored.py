"""Histories of one object: users, faults, crashes and pauses, in any order.

An operator with handlers of every kind serves a FnopExample, and desires children near
it and in another namespace.  A script of moves edits the object, holds its watch back,
lets the answers of the API server fail, kills the process or lets it stand still.  In
the end all holds are let go, the faults are over, and the laws of `broken_laws` hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.write.expectations import LOOKS_MAX
from fnop.core.peers.lease import Candidate
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import Answered
from fnop.effects import (
    Apply,
    Conflict,
    Create,
    Delete,
    Effect,
    Get,
    Missing,
    Outcome,
    Patch,
    Unknown,
    Unreachable,
)
from fnop.interpreters.simulation.director import Crashed, Director
from fnop.interpreters.simulation.watches import Delivery
from tests.simulations import Scenario, example
from tests.stories import definition

__all__ = [
    "AHEAD",
    "ASKED_BY",
    "FAULTS",
    "HANDLERS",
    "UNRETRIED",
    "Explored",
    "Move",
    "Shape",
    "broken_laws",
    "played",
]

KIND = "fnopexamples"
FAR = "far"
# Nothing that is left to do after the last fault takes as long.
CALM_SECONDS = 300.0


class Shape(NamedTuple):
    """The operator: its handlers, and their declarations.

    `retried` fail once each time before they succeed, those in `ahead` store first that
    they have begun (`write_ahead`).
    """

    handlers: frozenset[str] = frozenset()
    retried: frozenset[str] = frozenset()
    ahead: frozenset[str] = frozenset()
    subresource: bool = True
    leads: bool = False


Move = tuple[Any, ...]

# Effects by the name that moves call them.
_EFFECTS: dict[str, type[Effect]] = {
    "apply": Apply,
    "create": Create,
    "delete": Delete,
    "get": Get,
    "patch": Patch,
}
# What becomes of a request: refused, failed, or done without an answer.  A proxy, or a
# server that lags behind, answers 404 and 410 though the object exists.
FAULTS = (
    ("apply", "409"),
    ("delete", "409"),
    ("delete", "404"),
    ("patch", "409"),
    ("get", "404"),
    ("patch", "404"),
    ("get", "500"),
    ("patch", "500"),
    ("delete", "500"),
    ("apply", "lost"),
    ("create", "lost"),
    ("delete", "lost"),
    ("patch", "lost"),
    ("patch", "429"),
    ("delete", "429"),
    ("patch", "killed before"),
    ("patch", "killed after"),
    ("delete", "killed before"),
    ("delete", "killed after"),
    ("apply", "killed after"),
)


# The handlers that make requests which not all operators make.
ASKED_BY = {
    "apply": frozenset(("beside", "delete", "reconcile")),
    "create": frozenset(("create",)),
    "delete": frozenset(("reconcile",)),
}

_SOURCES = {"own": "fnopexamples.v1.fnop.dev", "children": "configmaps.v1"}


class Success(NamedTuple):
    """A call of a handler that came to its end, for `n` in the spec that it saw."""

    handler: str
    uid: str
    generation: int
    life: int
    n: Any


class _Director(Director):
    def __init__(self, run: Explored) -> None:
        self._run = run

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        for place, each in enumerate(inbox):
            if not self._run.holds(each):
                return place
        return None

    def performs(
        self, command: Perform, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        effect, run = command.effect, self._run
        for place, (kind, fault) in enumerate(run.faults):
            if isinstance(effect, kind):
                del run.faults[place]
                run.denials += (kind, fault) == (Get, "404")
                run.told.append(
                    f"  {effect.kind} {command.name} of "
                    f"{command.handler or 'fnop'}: {fault}"
                )
                return _struck(fault, perform)
        if isinstance(effect, Patch):
            run.patches.add(command.id)
        outcome = perform()
        run.told.append(
            f"  {effect.kind} {command.name} of {command.handler or 'fnop'}: "
            f"{type(outcome).__name__}"
        )
        return outcome


class Explored(Scenario):
    """A run whose watches can be held, and whose requests can fail."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.held: set[str] = set()
        self.faults: list[tuple[type[Effect], str]] = []
        # The requests whose answers `hold answers` holds.
        self.patches: set[int] = set()
        # The number of live reads that were answered 404.
        self.denials = 0
        self.told: list[str] = []
        self.successes: list[Success] = []
        # The uids that were deleted, with whether the operator held them then.
        self.deletions: dict[str, bool] = {}
        # The sum of what was to be moved from the spec to the status, by uid.
        self.todo: Counter[str] = Counter()
        definitions = [definition(subresource=False)] if not shape.subresource else []
        settings = Settings()
        if shape.leads:
            settings = Settings(election=Candidate("me", "default", "operator"))
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": FAR},
        }
        super().__init__(
            operator(shape, self), [*definitions, namespace], settings=settings
        )
        self.director = _Director(self)
        self.settle(seconds=60)

    # ------------------------------------------------------------------ moves

    def move(self, move: Move) -> None:
        self.told.append(f"{self.clock.elapsed:.1f}: {move}")
        name, *arguments = move
        getattr(self, f"move_{name}")(*arguments)

    def move_create(self) -> None:
        if self.get(KIND) is None:
            self.apply(example(n=0, color="white"))

    def move_edit(self, field: str, value: Any) -> None:
        if self.get(KIND) is not None:
            self.edit(KIND, spec={field: value})

    def move_todo(self, number: int) -> None:
        """A user adds what a function moves to the status, if that is free."""
        found = self.get(KIND)
        if found is not None and "todo" not in found["spec"]:
            self.edit(KIND, spec={"todo": number})
            self.todo[found["metadata"]["uid"]] += number

    def move_delete(self) -> None:
        found = self.get(KIND)
        if found is None:
            return
        meta = found["metadata"]
        if not meta.get("deletionTimestamp"):
            self.deletions[meta["uid"]] = bool(meta.get("finalizers"))
        self.delete(KIND)

    def move_hold(self, kind: str) -> None:
        self.held.add(_SOURCES.get(kind, kind))

    def holds(self, delivery: Delivery) -> bool:
        """Whether an input is not to arrive yet."""
        match delivery.input:
            case Answered(id=number) if number in self.patches:
                return "answers" in self.held
        return delivery.source in self.held

    def move_show(self) -> None:
        self.held.clear()

    def move_wait(self, seconds: float) -> None:
        self.wait(seconds)

    def move_step(self, number: int) -> None:
        for _ in range(number):
            self.advance()

    def move_fault(self, kind: str, fault: str, times: int = 1) -> None:
        self.faults += [(_EFFECTS[kind], fault)] * times

    def move_breaks(self, kind: str, status: int | None) -> None:
        self.reads.watches.breaks(_SOURCES[kind], status)

    def move_kill(self) -> None:
        self.crash()

    def move_suspend(self, seconds: float) -> None:
        """The process stands still, as by SIGSTOP; the world does not."""
        self.clock.advance_to(self.clock.elapsed + seconds)

    def move_skew(self, seconds: float) -> None:
        """The process's wall clock jumps."""
        self.skew += seconds

    def succeeded(self, handler: str, body: Any) -> None:
        meta = body["metadata"]
        self.told.append(f"  {handler} succeeds for generation {meta['generation']}")
        n = body["spec"]["n"]
        self.successes.append(
            Success(handler, meta["uid"], meta["generation"], self.draws.lives, n)
        )

    def calms(self) -> bool:
        """Let everything go, and wait for the end of all that is left to do."""
        self.held.clear()
        self.faults.clear()
        self.told.append("calm")
        is_settled = self.settle(seconds=CALM_SECONDS)
        if is_settled and self.may_be_forgotten and self.get(KIND) is not None:
            self.edit(KIND, metadata={"labels": {"seen": "again"}})
            is_settled = self.settle(seconds=CALM_SECONDS)
        return is_settled

    @property
    def may_be_forgotten(self) -> bool:
        """Whether enough live reads have denied the object that fnop believes them.

        It is a new one then, from its next version on.
        """
        return self.denials > LOOKS_MAX


def _struck(fault: str, perform: Callable[[], Outcome | None]) -> Outcome | None:
    match fault:
        case "409":
            return Conflict("the object has been modified", "Conflict")
        case "404":
            return Missing("not found", unserved=False)
        case "429":
            return Unreachable("too many requests", 1.0)
        case "500":
            return Unknown("an internal error")
        case "lost":
            perform()
            return Unknown("the connection broke")
        case "killed before":
            raise Crashed
        case "killed after":
            perform()
            raise Crashed
        case _:
            raise AssertionError(fault)


# --------------------------------------------------------------------- the operator


def operator(shape: Shape, run: Explored) -> Registry:
    """The operator of this shape; what it does is noted in the run."""
    registry = Registry()
    options: dict[str, Any] = {"registry": registry}

    def begins(name: str, retry: int) -> None:
        if name in shape.retried and not retry:
            raise fnop.TemporaryError("not yet", delay=2)

    def named(name: str) -> dict[str, Any]:
        return {"id": name, **options}

    def ahead(name: str) -> dict[str, Any]:
        return {"write_ahead": name in shape.ahead, **named(name)}

    for name, declare in HANDLERS.items():
        if name in shape.handlers:
            declare(run, begins, ahead if name in AHEAD else named)
    return registry


def _config_map(name: str, number: Any, namespace: str = "") -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    data = {"n": str(number)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _declare_create(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.create(KIND, **options("create"))
    async def create(spec: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("create", retry)
        await fnop.adopt(_config_map("adopted", 0))
        run.succeeded("create", body)
        return fnop.patch(status={"create": True})


def _declare_update(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.update(KIND, **options("update"))
    def update(spec: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("update", retry)
        run.succeeded("update", body)
        return fnop.patch(status={"update": spec["n"]})


def _declare_update_beside(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.update(KIND, **options("beside"))
    async def beside(spec: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("beside", retry)
        await fnop.apply(_config_map("beside", spec["n"]))
        run.succeeded("beside", body)
        return fnop.patch(status={"beside": spec["n"]})


def _declare_field(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.field(KIND, field="spec.color", **options("field"))
    def field(new: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("field", retry)
        return fnop.patch(status={"field": new})


def _declare_function(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.create(KIND, **options("function"))
    @fnop.on.update(KIND, **options("function"))
    def function(spec: Any, body: Any, patch: Any, retry: int, **_: Any) -> None:
        begins("function", retry)
        if "todo" in spec:
            patch.fns.append(_move_todo)


def _move_todo(found: dict[str, Any]) -> None:
    todo = found["spec"].pop("todo")
    done = found.setdefault("status", {})
    done["done"] = done.get("done", 0) + todo


def _declare_resume(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.resume(KIND, **options("resume"))
    def resume(body: Any, retry: int, **_: Any) -> Any:
        begins("resume", retry)
        return fnop.patch(status={"resume": True})


def _declare_delete(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.delete(KIND, **options("delete"))
    async def delete(body: Any, retry: int, **_: Any) -> None:
        begins("delete", retry)
        await fnop.apply(_config_map("tombstone", body["metadata"]["generation"]))
        run.succeeded("delete", body)


def _declare_event(run: Explored, begins: Any, options: Any) -> None:
    @fnop.on.event(KIND, id="event", registry=options("event")["registry"])
    def event(spec: Any, body: Any, **_: Any) -> Any:
        return fnop.patch(status={"event": spec["n"]})


def _declare_timer(run: Explored, begins: Any, options: Any) -> None:
    @fnop.timer(KIND, interval=20, id="timer", registry=options("timer")["registry"])
    def timer(spec: Any, retry: int, **_: Any) -> Any:
        begins("timer", retry)
        return fnop.patch(status={"timer": spec["n"]})


def _declare_hourly(run: Explored, begins: Any, options: Any) -> None:
    registry = options("hourly")["registry"]

    @fnop.timer(KIND, interval=3600, initial_delay=1, id="hourly", registry=registry)
    def hourly(spec: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("hourly", retry)
        run.succeeded("hourly", body)
        return spec["n"]


def _declare_daemon(run: Explored, begins: Any, options: Any) -> None:
    @fnop.daemon(KIND, id="daemon", registry=options("daemon")["registry"])
    async def daemon(spec: Any, body: Any, retry: int, **_: Any) -> Any:
        begins("daemon", retry)
        await fnop.sleep(2)
        run.succeeded("daemon", body)
        return spec["n"]


def _declare_reconcile(run: Explored, begins: Any, options: Any) -> None:
    registry = options("reconcile")["registry"]

    @fnop.reconcile(KIND, owns="configmaps", id="reconcile", registry=registry)
    def reconcile(spec: Any, retry: int, **_: Any) -> Any:
        begins("reconcile", retry)
        desired = [_config_map("near", spec["n"])]
        if spec["n"] % 2 == 0:
            desired.append(_config_map("even", spec["n"], FAR))
        desired.append(_config_map("far", spec["n"], FAR))
        return fnop.desired(desired, status={"reconcile": spec["n"]})


# Those that may store first that they have begun to act.
AHEAD = frozenset(("update", "beside", "field"))
# A timer that fails each time before it succeeds never settles.
UNRETRIED = frozenset(("event", "timer"))

HANDLERS: dict[str, Callable[[Explored, Any, Any], None]] = {
    "create": _declare_create,
    "update": _declare_update,
    "beside": _declare_update_beside,
    "field": _declare_field,
    "function": _declare_function,
    "resume": _declare_resume,
    "delete": _declare_delete,
    "event": _declare_event,
    "timer": _declare_timer,
    "hourly": _declare_hourly,
    "daemon": _declare_daemon,
    "reconcile": _declare_reconcile,
}


# ------------------------------------------------------------------------ the laws


def played(shape: Shape, script: Sequence[Move]) -> Explored:
    """The run of a script, up to its calm end."""
    run = Explored(shape)
    for move in script:
        run.move(move)
    return run


def broken_laws(run: Explored) -> list[str]:
    """The laws that do not hold at the end of a run, each in a sentence."""
    if not run.calms():
        return [f"it does not come to rest: {run.unsettled}"]
    found = run.get(KIND)
    return [
        *([] if found is None else _unconverged(run, found)),
        *([] if run.may_be_forgotten else _forgotten(run)),
        *_deletions_missed(run, found),
        *_orphans(run, found),
    ]


def _unconverged(run: Explored, found: dict[str, Any]) -> Iterator[str]:
    """The parts of its last spec that the object does not show."""
    spec, status, uid = found["spec"], found.get("status", {}), found["metadata"]["uid"]
    handlers = run.shape.handlers
    last = {each.handler: each for each in run.successes if each.uid == uid}
    expected: dict[str, Any] = {
        "field": spec["color"],
        "event": spec["n"],
        "timer": spec["n"],
        "reconcile": spec["n"],
    }
    for name in ("update", "beside"):
        # A crash before the write loses the call, and the spec may be as before it.
        is_known = name in last and last[name].life == run.draws.lives
        if is_known or name in status:
            expected[name] = spec["n"]
    for name in _BACKGROUND:
        if name in last and last[name].life == run.draws.lives:
            expected[name] = last[name].n
    for name, value in expected.items():
        if name in handlers and status.get(name) != value:
            yield f"status.{name} is {status.get(name)!r}, and not {value!r}"
    if "create" in handlers and "create" not in status:
        yield "status.create is missing"
    if {"create", "update"} <= handlers:
        handled = [e for e in run.successes if e.uid == uid and e.handler in _CHANGES]
        if handled[-1].life == run.draws.lives and handled[-1].n != spec["n"]:
            yield f"{spec['n']} is not handled, but {[each.n for each in handled]}"
    if "function" in handlers and not run.draws.lives:
        # Two requests are not a transaction: a crash between them loses the second.
        done = status.get("done", 0)
        if "todo" in spec or done != run.todo[uid]:
            yield f"{done} of {run.todo[uid]} are done"


_CHANGES = ("create", "update")
# Those with results, which are of what they saw.
_BACKGROUND = ("hourly", "daemon")


def _forgotten(run: Explored) -> Iterator[str]:
    """The successes that a process has forgotten, and repeated."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for each in run.successes:
        if each.handler in _BACKGROUND:
            continue  # they begin again when this replica leads again
        once = each.handler in ("create", "delete")
        about = "" if once else f" for generation {each.generation}"
        counts[each.handler, each.uid, about, each.life] += 1
    for (handler, uid, about, _), number in counts.items():
        if number > 1:
            yield f"{handler} succeeds {number} times{about} with {uid[:8]}"


def _deletions_missed(run: Explored, found: Any) -> Iterator[str]:
    handled = {each.uid for each in run.successes if each.handler == "delete"}
    for uid, is_held in run.deletions.items():
        if found is not None and found["metadata"]["uid"] == uid:
            yield f"{uid[:8]} was deleted, and is still there"
        if is_held and "delete" in run.shape.handlers and uid not in handled:
            yield f"the deletion of {uid[:8]} was not handled"


def _orphans(run: Explored, found: Any) -> Iterator[str]:
    """The children that are there without their owner, or not as desired."""
    there = {
        name: run.get("configmaps", name, namespace)
        for name, namespace in (
            ("adopted", None),
            ("near", None),
            ("even", FAR),
            ("far", FAR),
        )
    }
    desired: dict[str, Any] = {}
    if found is not None:
        number = found["spec"]["n"]
        if "create" in run.shape.handlers:
            desired["adopted"] = 0
        if "reconcile" in run.shape.handlers:
            desired |= {"near": number, "far": number}
            if number % 2 == 0:
                desired["even"] = number
    for name, child in there.items():
        data = None if child is None else child["data"]["n"]
        wanted = str(desired[name]) if name in desired else None
        if data != wanted:
            yield f"the child {name} is {data!r}, and not {wanted!r}"
