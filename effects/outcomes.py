"""The outcomes: all possible answers of performing an effect.

Faults are grouped by their source: `Conflict`, `Missing` and `Refused` come from the
API server, `Unreachable` and `Unknown` from the network, `Raised` from the called
function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from fnop.effects.structs import beside

__all__ = [
    "TOO_LARGE",
    "Answer",
    "Applied",
    "Conflict",
    "Missing",
    "Outcome",
    "Raised",
    "Refused",
    "Unknown",
    "Unreachable",
]

# API servers' texts about requests that are too large: by their own limit, by the
# limits of etcd and its client, and by the limits for annotations, ConfigMaps and
# Secrets.
TOO_LARGE = (
    "Request entity too large",
    "request is too large",
    "message larger than max",
    "Too long: must have at most",
    "Too long: may not be more than",
)


class Applied(Struct, frozen=True):
    """The effect was performed; `object` is the object after it, if there is one."""

    object: Any = None


@beside("exception", "fns")
class Answer(Struct, frozen=True):
    """A value that is not an object: from a call, a listing, or fresh randomness.

    An impure handler that failed returns the `exception`, too. `fns` are the functions
    in its `patch.fns`; a recording has only the change that they made of the object.
    """

    value: Any = None
    exception: BaseException | None = None
    fns: tuple[Callable[[dict[str, Any]], object], ...] = ()


class Conflict(Struct, frozen=True):
    """HTTP 409: another write came first, or the name is taken (see `reason`).

    `managers` are the managers whose fields a server-side apply would change.
    """

    message: str
    reason: str = "Conflict"
    managers: tuple[str, ...] = ()


class Missing(Struct, frozen=True):
    """404 or 410: the object does not exist.

    `unserved` means that not even its kind is served now. An API server that has just
    started answers like this for a moment, and it says nothing about the object.
    """

    message: str
    unserved: bool = False


class Refused(Struct, frozen=True):
    """The API server refused: invalid, forbidden, too large, …"""

    status: int
    message: str
    reason: str = ""


class Unreachable(Struct, frozen=True):
    """The request was certainly not performed; a later one may succeed (429, 503)."""

    message: str
    retry_after_seconds: float | None = None


class Unknown(Struct, frozen=True):
    """The request was sent; it is unknown whether it was applied."""

    message: str


@beside("exception")
class Raised(Struct, frozen=True):
    """A called function raised.

    `type` is the class name; `delay_seconds` is set for a TemporaryError, and
    `permanent` for a PermanentError. The live `exception` is for a traceback: it is not
    part of the value, and is never recorded.
    """

    type: str
    message: str
    delay_seconds: float | None = None
    permanent: bool = False
    exception: BaseException | None = None


# A coroutine has passed its cancellation on.
CANCELLED = Raised("Cancelled", "it was told to stop, and did not")

Outcome = (
    Applied | Answer | Conflict | Missing | Refused | Unreachable | Unknown | Raised
)
