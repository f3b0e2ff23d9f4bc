"""The behaviour of faults: where each can strike, what it does, and how it ends.

A module of `fnop.interpreters.check.faults` has one behaviour, with the kinds of faults
that share it. Every strike is legal: whatever the operator sees, an API server could
have shown it. A real write of a rival explains a conflict. Only the reply to a request
that was sent is lost. A watch skips nothing unless it is answered with 410, and no
stream goes back in time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn

from msgspec import Struct

from fnop.core.seam.commands import Perform
from fnop.core.values.errors import text_of
from fnop.effects import Call, Outcome, Raised, Refused, Unknown
from fnop.interpreters.check.state.kinds import Fault, FaultKind, Site
from fnop.interpreters.check.state.records import Visit
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.calls import called
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest

__all__ = [
    "Ahead",
    "Behaviour",
    "Performed",
    "as_rival",
    "failed",
    "forbidden",
    "unanswered",
]

# None stands for a call that has begun, and waits.
Performed = Callable[[], Outcome | None]


class Ahead(Struct, frozen=True):
    """Facts about a case that decide which faults can strike it.

    `actions` is the length of the script. The operator may be `elected`, may have
    handlers of `reviews`, and may replace a `former` one. `controllers` are those of
    the cluster that work for it. `forked` gives the state at a visit, if it is known.
    If the operator `lives` in this process, its calls are whole handlers.
    """

    actions: int
    elected: bool = False
    reviews: bool = False
    former: bool = False
    controllers: Collection[str] = ()
    forked: Callable[[Visit], TrialState | None] = lambda visit: None
    lives: bool = False


class Behaviour:
    """The behaviour of some kinds of faults. A method that does nothing is left out.

    Methods for sites at which none of the kinds strikes are never called.
    """

    kinds: tuple[FaultKind, ...] = ()

    def can(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> bool:
        """Whether the fault makes a difference at this visit."""
        return True

    def faults(self, kind: FaultKind, visit: Visit, ahead: Ahead) -> Iterable[Fault]:
        """The faults of a kind that can strike at a visit."""
        return (Fault(kind, visit.site),) if self.can(kind, visit, ahead) else ()

    def targets(self, kind: FaultKind, ahead: Ahead) -> Iterable[str]:
        """The targets of a fault that lasts for the whole script."""
        return (kind.mode,)

    def answer(
        self,
        state: TrialState,
        fault: Fault,
        command: Perform,
        site: Site,
        performed: Performed,
    ) -> Outcome | None:
        """The outcome of a request or a call that is struck. Raises `Crashed`."""
        self._reject_fault(fault)

    def strike_event(self, state: TrialState, fault: Fault, source: str) -> None:
        """Strike a watch event, or lines of a log, that are about to arrive."""
        self._reject_fault(fault)

    def strike_rest(self, state: TrialState, fault: Fault) -> bool:
        """Strike when everything has settled; whether it has to settle again."""
        self._reject_fault(fault)

    def begin(self, state: TrialState, fault: Fault) -> None:
        """Begin what lasts for the whole script."""
        self._reject_fault(fault)

    def _reject_fault(self, fault: Fault) -> NoReturn:
        raise AssertionError(f"{fault.kind.name} does not strike {fault.site}")

    def refuses(self, state: TrialState, site: Site) -> Outcome | None:
        """The refusal of a request, by a fault that lasts; None to let it pass."""
        return None

    def admits(self, state: TrialState, request: ApiRequest) -> ApiRequest:
        """The request, as a fault that lasts changes it."""
        return request

    def release(self, state: TrialState) -> bool:
        """End what lasts until a rest, or until an action settles; whether it did."""
        return False

    def heal(self, state: TrialState) -> None:
        """End what lasts, at the end of all faults."""


# ---------------------------------------------------------- parts of several faults


def forbidden(site: Site) -> Refused:
    """The refusal of a request that no right allows."""
    return Refused(403, f"{site.verb} of {site.target} is forbidden", "Forbidden")


def unanswered(command: Perform) -> Outcome:
    """The outcome of a request or a call without a reply."""
    if isinstance(command.effect, Call):
        return failed(command, TimeoutError("no answer"))
    return Unknown("no answer")


def failed(command: Perform, problem: Exception) -> Outcome:
    """The outcome of a call that raises an exception."""
    call = command.effect
    assert isinstance(call, Call)
    if not call.as_handler:
        return Raised(type(problem).__name__, text_of(problem), exception=problem)

    def fail(**arguments: Any) -> None:
        raise problem

    return called(fail, call)


def as_rival(state: TrialState, found: dict[str, Any], change: dict[str, Any]) -> None:
    """Let a rival change the metadata of an object, if the object is served."""
    path = object_path(state.run, found, found["metadata"].get("namespace", ""))
    if path is not None:
        query = (("fieldManager", "rival"),)
        body = {"metadata": change}
        state.request("rival", ApiRequest("PATCH", path, query, body, MERGE_PATCH))
