"""A director decides how the world treats a simulated run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import Request as AdmissionRequest
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command, Perform
from fnop.effects import Outcome
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.watches import Delivery

__all__ = ["Crashed", "Director"]


class Crashed(Exception):
    """Raised by a director: the operator dies at this command, and another begins.

    The new operator has the same code, unless another `program` is given.
    """

    def __init__(self, program: Program | None = None) -> None:
        super().__init__()
        self.program = program


class Director:
    """The calm world: inputs arrive in the order that the world made them, and the
    cluster answers every request at once.

    Subclasses choose another order, hold commands, and let requests fail.
    """

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        """The position of the next delivery; None if all are held."""
        return 0

    def holds(self, command: Command) -> bool:
        """Whether the run leaves a command to the director, which may run it later."""
        return False

    def performs(
        self, command: Perform, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        """The outcome of a request or call; `perform` executes it. Raises `Crashed`.

        None for a call that has begun, and waits.
        """
        return perform()

    def sends(
        self,
        command: Perform,
        request: ApiRequest,
        send: Callable[[ApiRequest], ApiResponse],
    ) -> ApiResponse:
        """The response to the request of a command; `send` asks the cluster."""
        return send(request)

    def asks(
        self,
        handler: str,
        request: ApiRequest,
        send: Callable[[ApiRequest], ApiResponse],
    ) -> ApiResponse:
        """The response to a client of a handler in a life. Raises `Crashed`."""
        return send(request)

    def informs(self, command: Perform, read: Callable[[], Outcome]) -> Outcome:
        """The outcome of a request or call by a review; `read` executes it."""
        return read()

    def reviews(
        self,
        request: AdmissionRequest,
        asks: frozenset[str],
        decide: Callable[[], Decision],
    ) -> Decision | None:
        """The decision of handlers, by their ids; None if they are unreachable."""
        return decide()
