"""Decisions about writes: admitted or denied, with warnings and changes."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

import orjson
from msgspec import Struct

from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Say, Subject
from fnop.core.seam.inputs import WriteDenied
from fnop.core.values.body import Body
from fnop.core.values.errors import shortened
from fnop.core.values.merge import operations
from fnop.effects.regexes import regex

__all__ = ["Decision", "Denial", "Result", "denied_writes", "response_of"]

Result = Literal["allowed", "denied", "error"]

# Users see no more than this; the API server has no limit of its own.
MESSAGE_LENGTH_MAX = 16_000
# The maximum number of causes of a denial, and of warnings; and the maximum length of
# each.
CAUSES_MAX = WARNINGS_MAX = 100
CAUSE_LENGTH_MAX = 1_000
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]+")


class Denial(Struct, frozen=True):
    """A handler's denial.

    It is `meant` by the author, with `AdmissionError` or `PermanentError`. Otherwise
    the handler gave no answer, and its failure policy denies. `place` is the author's
    file and line.
    """

    handler: str
    place: str
    message: str
    code: int
    field: str = ""
    meant: bool = True
    # An `AdmissionError`, which takes precedence.
    first: bool = False


class Decision(Struct, frozen=True):
    """The decision about one `request`.

    `asked` are the ids of the handlers that were called. Their `denials` refuse the
    request, and the client is shown their `warnings`. `object` is the new object
    after the mutations, None for a deletion. `lines` are for the log. `subject` is the
    object of a denied write.

    >>> Decision(Request("1", "DELETE", "", "v1", "pods", "Pod")).allowed
    True
    """

    request: Request
    asked: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()
    warnings: tuple[str, ...] = ()
    object: dict[str, Any] | None = None
    lines: tuple[Say, ...] = ()
    subject: Subject | None = None

    @property
    def allowed(self) -> bool:
        """Whether the write is allowed."""
        return not self.denials

    @property
    def ranked(self) -> tuple[Denial, ...]:
        """The denials: those with `AdmissionError` first, else by declaration."""
        return tuple(sorted(self.denials, key=lambda each: not each.first))

    @property
    def message(self) -> str:
        """The texts of all denials, each once; "" without any."""
        texts = dict.fromkeys(each.message for each in self.ranked)
        return "; ".join(texts)[:MESSAGE_LENGTH_MAX]

    @property
    def code(self) -> int:
        """The HTTP status of the first denial; 200 without any."""
        return self.ranked[0].code if self.denials else 200

    @property
    def results(self) -> dict[str, Result]:
        """The result of each handler that was called, by its id.

        A failed handler has given no answer, whatever its failure policy decided.
        """
        found: dict[str, Result] = dict.fromkeys(self.asked, "allowed")
        for denial in self.denials:
            found[denial.handler] = "denied" if denial.meant else "error"
        for line in self.lines:
            if line.error is not None and line.handler in found:
                found[line.handler] = "error"
        return found

    @property
    def patch(self) -> tuple[dict[str, Any], ...]:
        """The JSON patch of the mutations' changes (RFC 6902)."""
        if self.denials or self.request.object is None:
            return ()
        return tuple(operations(self.request.object, self.object))


def denied_writes(decision: Decision, settings: Settings) -> Iterator[WriteDenied]:
    """The denials to report as Kubernetes Events; none for a dry run."""
    request, subject = decision.request, decision.subject
    if subject is None or request.dry_run or not settings.admission_events:
        return
    by = f" by {shortened(request.user)}" if request.user else ""
    name, uid = subject.name, subject.uid or ""
    if request.operation == "CREATE":
        # The API server generates a new uid, and a new name, for each attempt.
        prefix = str(Body(request.present).meta.get("generateName") or name)
        is_made_up = not name or name.startswith(prefix)
        name, uid = prefix if is_made_up else name, ""
    for handler, denials in groupby(decision.denials, key=lambda each: each.handler):
        first, *others = denials
        place = f" ({first.place})" if first.place else ""
        more = f", and {len(others)} more" if others else ""
        yield WriteDenied(
            handler,
            subject.resource,
            subject.namespace or "",
            name,
            uid,
            f"{request.operation}{by} is denied by {handler}{place}: "
            f"{first.message}{more}",
        )


def response_of(decision: Decision) -> dict[str, Any]:
    """The AdmissionReview that answers the request, as JSON.

    >>> request = Request("1", "CREATE", "", "v1", "pods", "Pod", object={})
    >>> response_of(Decision(request, object={}))["response"]
    {'uid': '1', 'allowed': True}
    """
    request = decision.request
    response: dict[str, Any] = {"uid": request.uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = _status_of_denial(decision)
    if decision.warnings:
        response["warnings"] = _valid_warnings(decision.warnings)
    if patch := decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
    return {
        "apiVersion": request.api_version,
        "kind": "AdmissionReview",
        "response": response,
    }


def _valid_warnings(texts: Sequence[str]) -> list[str]:
    """The warnings as valid HTTP headers; the API server drops all others.

    >>> _valid_warnings(["a\\nb"] * (WARNINGS_MAX + 2))[-2:]
    ['a b', 'and 2 more warnings']
    """
    found = [_CONTROL.sub(" ", each)[:CAUSE_LENGTH_MAX] for each in texts]
    more = len(found) - WARNINGS_MAX
    return [*found[:WARNINGS_MAX], f"and {more} more warnings"] if more > 0 else found


def _status_of_denial(decision: Decision) -> Mapping[str, Any]:
    """The status of a denial; a denial about fields resembles the API server's own."""
    status: dict[str, Any] = {"code": decision.code, "message": decision.message}
    if decision.code == 403:
        status["reason"] = "Forbidden"
    causes = [
        {
            "reason": "FieldValueInvalid",
            # Clients that show a cause show its field before it.
            "message": each.message.removeprefix(f"{each.field}: ")[:CAUSE_LENGTH_MAX],
            "field": each.field[:CAUSE_LENGTH_MAX],
        }
        for each in [each for each in decision.ranked if each.field][:CAUSES_MAX]
    ]
    if causes:
        request = decision.request
        status["details"] = {
            "name": request.name,
            "group": request.group,
            "kind": request.kind,
            "causes": causes,
        }
        # Clients show the causes of an invalid object, and not its message.
        if decision.code == 422 and all(each.field for each in decision.denials):
            status["reason"] = "Invalid"
    return status
