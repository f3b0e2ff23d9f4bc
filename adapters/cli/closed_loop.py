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
from fnop.interpreters.recording.model.fields import listed
from fnop.interpreters.recording.model.plot import Incomplete, Plot, plot_of, runs_pods
from fnop.interpreters.recording.questions.story import Line

if TYPE_CHECKING:
    from fnop.interpreters.check.trials.differences import Difference

__all__ = ["gone_on", "outline", "plotted"]

_DIFFERENCES_SHOWN = 40


def plotted(
    recording: Recording, step: int | None, until: int | None, manager: str
) -> Plot:
    """A part of a recording; what is missing before it is said on stderr.

    The command ends where there is no such part, or where it is not complete.
    """
    account = account_in(recording.header)
    try:
        plot = plot_of(recording.whole, step, until, manager, account)
    except Incomplete as problem:
        fail(str(problem), EXIT_INCOMPLETE)
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)
    if plot.missing:
        steps = number_of(plot.missing, "step")
        warn(
            f"{steps} before #{plot.step} are missing: what was shown in these "
            "is not among the objects"
        )
    return plot


def outline(plot: Plot, objects: int) -> str:
    """The beginning of a part in a line, with so many objects."""
    found = number_of(objects, "object")
    known = "of the cluster as it was then" if plot.is_true else "as shown by then"
    changes = number_of(len(plot.changes), "change")
    return f"from #{plot.step}, simulated: {found} {known}, {changes} by others"


def gone_on(recording: Recording, program: Program, step: int, calls: Models) -> int:
    """Tell how a run goes on from a step, and how its end differs; the exit status."""
    from fnop.interpreters.check.incidents.closed_loop import go_on, without_kubelet

    plot = plotted(recording, step, None, program.settings.marker)
    echo(outline(plot, len(plot.objects)))

    def tell(lines: list[Line]) -> None:
        for line in story_lines(lines, None):
            echo(line)

    pace = {} if runs_pods(plot) else {"pace": without_kubelet}
    found = go_on(plot, program, calls=calls, tell=tell, **pace)
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
    for line in _concealed(found.concealed):
        echo(line)
    if not found.differences and not found.unsettled:
        echo("the end is as recorded")
    return 1 if found.differences or found.unsettled else 0


def _concealed(found: Sequence[Difference]) -> Iterator[str]:
    """The fields that cannot be compared, in a line."""
    if found:
        names = listed(f"{each.alias} {each.path}" for each in found)
        fields = number_of(len(found), "field")
        yield f"not compared, made of a secret or of randomness: {fields}: {names}"
