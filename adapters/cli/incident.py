"""`fnop replay RUN --as-test`, and `--explore`: a recorded part of a run, again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from msgspec import Struct

import fnop
from fnop.adapters.cli.closed_loop import excerpt_at, outline
from fnop.adapters.common.codes import Code
from fnop.adapters.common.endings import EXIT_INCOMPLETE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.recorded import Recording, understood
from fnop.adapters.testing.models import Models
from fnop.core.api.resources import Selector
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import (
    PermanentError,
    TemporaryError,
    described,
    number_of,
)
from fnop.effects import Answer, Raised
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.check.incidents.incidents import Incident, fit_of, incident_of
from fnop.interpreters.recording.model.calls import last_answers
from fnop.interpreters.recording.model.excerpt import Excerpt, about, without_others
from fnop.interpreters.recording.model.fields import listed
from fnop.interpreters.recording.model.refs import Place

__all__ = ["Part", "explored", "printed_test"]

_DEFINITION = "CustomResourceDefinition"


class Part(Struct, frozen=True):
    """A part of a recording: from one step to another, about one object or all.

    `crds` are files with definitions.
    """

    step: int | None
    until: int | None
    about: Place | None
    crds: Sequence[str]


def printed_test(
    recording: Recording, part: Part, program: Program | None, paths: Sequence[str]
) -> int:
    """Print a test of a part of a run; return the exit status."""
    from fnop.interpreters.recording.replay.replay import recorded_settings

    settings = recorded_settings(recording.header)
    excerpt = _excerpt(recording, part, program, settings.marker)
    told = _incident(excerpt, part)
    test = _test_of(recording, excerpt, told, paths, settings)
    if program is not None and _is_recorded(recording, program):
        test = _find_passing_test(recording, part, program, excerpt, test, paths)
    for sentence in told.left_out:
        warn(f"left out {sentence}")
    if test.derived:
        texts = number_of(test.derived, "text")
        warn(f"left out of EXPECTED: {texts} made of a secret: another one in each run")
    for line in test.source.splitlines():
        echo(line)
    return 0


class _Test(Struct, frozen=True):
    """A test as source; `derived` is the number of texts that it omits."""

    source: str
    derived: int


def _test_of(
    recording: Recording,
    excerpt: Excerpt,
    incident: Incident,
    paths: Sequence[str],
    settings: Settings,
) -> _Test:
    from fnop.adapters.check.incident_tests import incident_test
    from fnop.interpreters.recording.comparison.derived import derived_texts

    with understood():
        derived = derived_texts(excerpt, recording.whole, settings.marker)
    name = Path(recording.path).name
    source = incident_test(incident, excerpt.step, name, paths, settings, derived)
    return _Test(source, len(derived))


def _is_recorded(recording: Recording, program: Program) -> bool:
    """Whether an operator is the recorded one: another one may fail its tests."""
    recorded = Code.recorded(recording.header)
    present = Code.present(program, fnop.__version__)
    return recorded.fnop == present.fnop and not present.others(recorded)


def _find_passing_test(
    recording: Recording,
    part: Part,
    program: Program,
    excerpt: Excerpt,
    test: _Test,
    paths: Sequence[str],
) -> _Test:
    """A test that the recorded operator passes.

    The recording may lack the effects of the last changes, for example if the process
    was killed. Then the test ends before them. The command ends if no test passes.
    """
    settings = program.settings
    why = first = _failure_of(test.source)
    changes = [each for each in excerpt.changes if each.step > excerpt.step]
    for change in [*reversed(changes)][:_CUTS_MAX]:
        if not why:
            break
        shorter = replace(part, until=change.step - 1)
        cut = _excerpt(recording, shorter, program, settings.marker)
        test = _test_of(recording, cut, _incident(cut, shorter), paths, settings)
        why = _failure_of(test.source)
        if not why:
            name = f"{change.place.kind.lower()}/{change.place.name}"
            warn(
                f"the test ends before #{change.step}, where somebody changes {name}: "
                f"the recording does not have all that came of it ({first})"
            )
    if why:
        fail(
            f"no test can be made of this part: the recorded operator fails it: {why}; "
            "begin at another step (--at), or take one object (--object)",
            EXIT_INCOMPLETE,
        )
    return test


# The number of last changes before which a test may end.
_CUTS_MAX = 12


def _failure_of(source: str) -> str:
    """The reason why a test fails, in a line; "" if it passes.

    The test is run once, in this process.
    """
    space: dict[str, Any] = {"__name__": "incident"}
    try:
        with redirect_stdout(sys.stderr):
            exec(compile(source, "<the test>", "exec"), space)
            space["test_incident"]()
    except Exception as problem:
        return described(problem).partition("\n")[0]
    return ""


def explored(
    recording: Recording,
    part: Part,
    program: Program,
    paths: Sequence[str],
    calls: Models,
    options: dict[str, Any],
) -> int:
    """Try faults around a part of a run, and report; return the exit status."""
    from fnop.adapters.check.incident_tests import answers_to_json
    from fnop.adapters.check.run import Checking
    from fnop.adapters.cli.check import options_of_check
    from fnop.interpreters.check.campaign.explore import Case
    from fnop.interpreters.simulation.recorded import Recorded
    from fnop.interpreters.simulation.scenario import ApplyProblem

    excerpt = _excerpt(recording, part, program, program.settings.marker)
    # fnop compares runs with and without faults, so a function must answer both alike.
    excerpt = replace(excerpt, answers=last_answers(excerpt.answers))
    incident = _incident(excerpt, part)
    for sentence in incident.left_out:
        warn(f"left out {sentence}")
    models = {
        function: Recorded(
            (arguments, _value_of_outcome(outcome)) for arguments, outcome in pairs
        ).answer
        for function, pairs in incident.answers.items()
        if calls.get(function) is None
    }
    case = Case(
        program,
        incident.definitions,
        tuple(incident.script),
        calls=calls.with_defaults(models),
        name=f"from #{excerpt.step}",
        restored=incident.restored,
        start=incident.start,
    )
    echo(outline(excerpt, len(incident.restored)), err=True)
    given = options_of_check(
        **options,
        calls=(),
        name=program.settings.operator,
        answers=answers_to_json(incident),
    )
    try:
        return Checking(paths, given, [case]).run()
    except ApplyProblem as problem:
        fail(str(problem), 2)


def _excerpt(
    recording: Recording, part: Part, program: Program | None, manager: str
) -> Excerpt:
    excerpt = excerpt_at(recording, part.step, part.until, manager)
    if part.about is not None:
        excerpt = about(excerpt, part.about)
    if program is not None:
        excerpt = without_others(excerpt, *_kinds(program.handlers), manager)
    return excerpt


def _kinds(handlers: Sequence[Handler]) -> tuple[list[Selector], list[Selector]]:
    """The kinds that are watched because of their owners, and all others."""
    selected = [each for each in handlers if each.selector is not None]
    owned = [selector for each in handlers for _, selector in each.owns]
    owned += [each.selector for each in selected if each.owner and each.selector]
    others = [each.selector for each in selected if not each.owner and each.selector]
    return owned, others


def _incident(excerpt: Excerpt, part: Part) -> Incident:
    from fnop.adapters.common.manifests import ManifestProblem, read_manifests

    try:
        manifests = read_manifests(part.crds)
    except ManifestProblem as problem:
        fail(str(problem), 2)
    for each in manifests:
        if each.get("kind") != _DEFINITION:
            fail(f"--crd takes definitions of kinds, and no {each.get('kind')}", 2)
    if manifests:
        _compare(excerpt, manifests)
    return incident_of(excerpt, manifests)


def _compare(excerpt: Excerpt, definitions: Sequence[dict[str, Any]]) -> None:
    """Report whether given definitions fit the kinds of the part.

    The command ends if the recorded objects could not be put into a cluster.
    """
    try:
        fit = fit_of(excerpt, definitions)
    except ValueError as problem:
        fail(f"--crd: {problem}", 2)
    if fit.others:
        fail(
            f"--crd: no definition serves {', '.join(fit.others)}, as which the "
            "recording has objects; give one that does, or none of that kind",
            2,
        )
    if fit.lacking:
        kinds = ", ".join(fit.lacking)
        warn(
            f"--crd has no definition of {kinds}: any field is allowed there; "
            "give its CustomResourceDefinition, too"
        )
    if fit.unused:
        kinds = listed(fit.unused)
        warn(f"--crd defines {kinds}: the recording has none of it")


def _value_of_outcome(outcome: Answer | Raised) -> Any:
    """The answer of a function, or the exception that it has raised."""
    if isinstance(outcome, Answer):
        return thaw_json(outcome.value)
    if outcome.type == TemporaryError.__name__:
        return TemporaryError(outcome.message, outcome.delay_seconds)
    if outcome.permanent:
        return PermanentError(outcome.message)
    return type(outcome.type, (Exception,), {})(outcome.message)
