"""`fnop replay RUN OPERATOR --from STEP`: the run goes on in a simulated cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fnop.adapters.common.endings import EXIT_INCOMPLETE, EXIT_USAGE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.recorded import Recording, account_in
from fnop.adapters.recordings.story_report import story_lines
from fnop.adapters.testing.models import Models
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.model.excerpt import (
    Excerpt,
    Incomplete,
    excerpt_of,
    runs_pods,
)
from fnop.interpreters.recording.model.fields import listed
from fnop.interpreters.recording.questions.story import Line

if TYPE_CHECKING:
    from fnop.interpreters.check.trials.differences import Difference

__all__ = ["excerpt_at", "gone_on", "outline"]

_DIFFERENCES_SHOWN = 40


def excerpt_at(
    recording: Recording, step: int | None, until: int | None, manager: str
) -> Excerpt:
    """A part of a recording; stderr names the steps that are missing before it.

    The command ends if there is no such part, or if it is not complete.
    """
    account = account_in(recording.header)
    try:
        excerpt = excerpt_of(recording.whole, step, until, manager, account)
    except Incomplete as problem:
        fail(str(problem), EXIT_INCOMPLETE)
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)
    if excerpt.missing:
        steps = number_of(excerpt.missing, "step")
        warn(
            f"{steps} before #{excerpt.step} are missing: what was shown in these "
            "is not among the objects"
        )
    return excerpt


def outline(excerpt: Excerpt, objects: int) -> str:
    """The beginning of a part in a line, with the number of its objects."""
    found = number_of(objects, "object")
    known = "of the cluster as it was then" if excerpt.is_true else "as shown by then"
    changes = number_of(len(excerpt.changes), "change")
    return f"from #{excerpt.step}, simulated: {found} {known}, {changes} by others"


def gone_on(recording: Recording, program: Program, step: int, calls: Models) -> int:
    """Report how a run continues from a step, and how its end differs.

    Returns the exit status.
    """
    from fnop.interpreters.check.incidents.closed_loop import go_on, without_kubelet

    excerpt = excerpt_at(recording, step, None, program.settings.marker)
    echo(outline(excerpt, len(excerpt.objects)))

    def tell(lines: list[Line]) -> None:
        for line in story_lines(lines, None):
            echo(line)

    pace = {} if runs_pods(excerpt) else {"pace": without_kubelet}
    found = go_on(excerpt, program, calls=calls, report=tell, **pace)
    for each in found.refused:
        warn(f"not done again, the cluster refuses it: {each}")
    for sentence in found.calls.values():
        warn(sentence)
    if calls.unused:
        warn(calls.unused)
    if found.unsettled:
        echo(f"it does not come to rest: {found.unsettled}")
    for difference in found.differences[:_DIFFERENCES_SHOWN]:
        echo(f"otherwise than recorded: {difference}")
    more = len(found.differences) - _DIFFERENCES_SHOWN
    if more > 0:
        echo(f"and {number_of(more, 'difference')} more")
    for line in _uncompared_fields(found.concealed):
        echo(line)
    if not found.differences and not found.unsettled:
        echo("the end is as recorded")
    return 1 if found.differences or found.unsettled else 0


def _uncompared_fields(found: Sequence[Difference]) -> Iterator[str]:
    """The fields that cannot be compared, in a line."""
    if found:
        names = listed(f"{each.alias} {each.path}" for each in found)
        fields = number_of(len(found), "field")
        yield f"not compared, made of a secret or of randomness: {fields}: {names}"
