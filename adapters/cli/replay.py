"""`fnop replay`: a recorded run, decided again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

import fnop
from fnop.adapters.cli.options import files, shared
from fnop.adapters.cli.replay_options import Mode, Wish, wish_of
from fnop.adapters.common.codes import Code, code_lines
from fnop.adapters.common.endings import (
    EXIT_DAMAGED,
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    EXIT_UNSUPPORTED,
    EXIT_USAGE,
    fail,
    warn,
)
from fnop.adapters.common.plain import echo
from fnop.adapters.common.programs import guarded, program_of
from fnop.adapters.recordings.damaged import as_far_as_it_goes
from fnop.adapters.recordings.pictures import (
    is_recording,
    picture,
    picture_together,
    pictured,
)
from fnop.adapters.recordings.recorded import (
    CUT_OFF,
    Recording,
    kopf_start_in,
    opened_recording,
    places_in,
    tell_what_lacks,
    understood,
)
from fnop.adapters.recordings.replay_report import (
    difference_lines,
    shadow_lines,
    sorts_of,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import number_of
from fnop.core.values.paths import FieldPath, path_text
from fnop.effects.structs import replace
from fnop.interpreters.recording.comparison.sorts import WORDS
from fnop.interpreters.recording.model.contents import Contents, NoSuchObject
from fnop.interpreters.recording.model.refs import Named
from fnop.interpreters.recording.questions.story import Line

if TYPE_CHECKING:
    from fnop.adapters.cli.incident import Part
    from fnop.interpreters.recording.replay.replay import Difference
    from fnop.interpreters.runtime.guard import Act
    from fnop.interpreters.runtime.machine import Machine

__all__ = ["replay"]


@click.command()
@click.argument("recording", type=click.Path(exists=True))
@files
@shared("module")
@shared(
    "kopf",
    ". Its startup handlers run; all other handlers answer as they are recorded",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="Repeat each recorded attempt with the handlers of these files, independently "
    "of the others, and report which decisions change.",
)
@click.option(
    "--fail-on",
    "fail_on",
    metavar="WHAT,...",
    help=f"With --shadow: exit with 1 if a change is one of these: {', '.join(WORDS)}.",
)
@click.option(
    "--object",
    "about",
    metavar="[KIND/][NAMESPACE/]NAME",
    help="Print the story of this object only. With --why: the object that has the "
    "field. With --step: the object to begin with. With --explore and --as-test: take "
    "no other object of this kind.",
)
@click.option(
    "--why",
    metavar="FIELD",
    help="Print why a field of the object has its value, such as status.phase, "
    "spec.ports[0].port, status.conditions[type=Ready] or "
    "metadata.labels[app.kubernetes.io/name]: who has written or removed the field, "
    "in which decision, and which inputs the decision had.",
)
@click.option(
    "--at",
    type=click.IntRange(min=0),
    metavar="STEP",
    help="The number of a step, as in the story (#412). With --why: the field's value "
    "at this step; by default at the end. With --step and --as-test: begin here.",
)
@pictured
@click.option(
    "--from",
    "begin",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="Continue the run from this step in a simulated cluster, with the handlers of "
    "these files and the recorded changes of other clients. fnop compares the end with "
    "the recorded end. With --explore: explore from this step on.",
)
@shared("calls", " (with --from and --explore)")
@click.option(
    "--explore",
    is_flag=True,
    help="Try faults around the run, as fnop check does, with the handlers of these "
    "files, from the step of --from on. By default it begins at the step at which the "
    "operator had seen all objects.",
)
@click.option(
    "--as-test",
    is_flag=True,
    help="Print a test for pytest: the objects at the step of --at, the later changes "
    "of other clients, and the fields that the operator wrote. The test loads these "
    "files, or else the recorded ones.",
)
@click.option(
    "--until",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="With --explore and --as-test: leave out the changes that other clients made "
    "after this step.",
)
@click.option(
    "--crd",
    "crds",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="With --explore and --as-test: definitions of kinds. A recording has no "
    "schemas; without them any field is allowed.",
)
@shared("save", " (with --explore; by default fnop-failures)")
@shared("budget", " (with --explore)")
@shared("seconds", " (with --explore)")
@shared("jobs", " (with --explore)")
@click.option(
    "--changes-only",
    is_flag=True,
    help="Print the story without the calls that end without any effect.",
)
@click.option(
    "--every-line",
    is_flag=True,
    help="Also print the lines that an operator repeats while it waits.",
)
@click.option(
    "--step",
    is_flag=True,
    help="Go through the recording by commands that you type, or from standard input: "
    "next, back, get, saw, why, who, when. The command help lists them.",
)
@shared("trusted")
@guarded
def replay(
    recording: str,
    paths: Sequence[str],
    module: Sequence[str],
    kopf: bool,
    trusted: bool,
    guard: bool,
    **options: Any,
) -> None:
    """Show a recorded run, call handlers with its inputs again, or ask about a field.

    With the recording alone fnop shows the run, and answers questions:

    \b
      fnop replay run.fnop --changes-only
      fnop replay run.fnop --object default/orders --why status.phase
      fnop replay run.fnop --step
      fnop replay run.fnop --html report.html
      fnop replay runs/ --html report.html
      fnop replay pod-a.fnop pod-b.fnop --html report.html
      fnop replay run.fnop --at 412 --as-test > test_incident.py

    With the files of an operator, fnop calls their handlers with the recorded inputs,
    or continues the run:

    \b
      fnop replay run.fnop operator.py
      fnop replay run.fnop new_operator.py --shadow --fail-on delete,raise
      fnop replay run.fnop new_operator.py --from 412
      fnop replay run.fnop operator.py --explore --from 412
      fnop replay --kopf run.fnop operator.py

    A folder of recordings is one story, of processes that ran one after another.  With
    --html, several recordings and folders are processes that ran at the same time.

    The story has each call of a handler with its cause, its effects, their answers, and
    its end.  It also has the changes that other clients made to the objects.

    With files, and no other mode, fnop prints "identical", or the first decision that
    differs from the recorded one.  It stops, too, at a decision that it cannot compare
    because a secret in it is a token in the recording.

    With --shadow, fnop repeats each recorded attempt independently, with its recorded
    inputs, and reports all decisions that a new version would change.  It also repeats
    recorded reviews.  If a handler that is not impure acts on the world, fnop refuses
    and reports the act.

    Exit status: 0 if the decisions are identical, or the run was shown (with --shadow:
    also with changes that --fail-on does not name); 1 if a decision differs (with
    --from: if the end differs; with --explore: if a property is violated); 2 for a
    wrong call; 3 if the file is damaged or is not a recording; 4 if fnop cannot
    compare, because a secret conceals a value, or the recording is cut off or has only
    the last part of a run, or lacks a value of a Kopf operator's process; 5 if another
    release of fnop has to read the recording.
    """
    from fnop.interpreters.recording.replay.replay import (
        UNLIMITED,
        RecordingLimits,
        RecordingProblem,
        Unsupported,
    )

    others = [each for each in paths if is_recording(each)]
    paths = [each for each in paths if each not in others]
    wish = wish_of(options, has_files=bool(paths or module))
    if others and (wish.html is None or wish.perfetto is not None):
        raise click.UsageError(
            "only --html takes several recordings; put those of processes that ran one "
            "after another into a folder"
        )
    limits = UNLIMITED if trusted else RecordingLimits()
    try:
        with (
            as_far_as_it_goes(limits) as limits,
            ExitStack() as stack,
        ):
            sources = [
                stack.enter_context(opened_recording(each, limits))
                for each in (recording, *others)
            ]
            if others and wish.html is not None:
                status = picture_together(sources, wish.html)
            else:
                _check_kopf(sources[0], wish, paths, module, kopf=kopf)
                given = _Given(paths, module, kopf, guard)
                status = _run_action(sources[0], wish, given)
    except Unsupported as problem:
        fail(str(problem), EXIT_UNSUPPORTED)
    except RecordingProblem as problem:
        fail(str(problem), EXIT_DAMAGED)
    sys.exit(status)


def _run_action(
    source: Recording,
    wish: Wish,
    given: _Given,
) -> int:
    """Do the requested action; return the exit status."""
    from fnop.interpreters.recording.replay.replay import recorded_settings

    paths, module = given.paths, given.modules
    if not (paths or module):
        return _answer_question(source, wish)
    if given.kopf:
        return _verify_kopf(source, given)
    header, records = source.opened(reviews=wish.mode is Mode.SHADOW)
    settings = recorded_settings(header).replace(guard=given.guard)
    # A status of 1 would mean that a decision differs.
    program = program_of(
        paths, module, settings, f"fnop replay {source.path}", broken=EXIT_USAGE
    )
    match wish.mode:
        case Mode.TEST:
            return _print_test(source, wish, program, paths)
        case Mode.EXPLORE:
            return _explore(source, wish, program, [*paths, *module])
        case Mode.GO_ON:
            return _go_on(source, program, wish.begin or 1, wish.calls)
        case Mode.SHADOW:
            return _run_shadow(source, records, header, program, wish.fail_on)
        case _:
            return _verify_each(source, _Own(program), guard=given.guard)


def _check_kopf(
    source: Recording,
    wish: Wish,
    paths: Sequence[str],
    modules: Sequence[str],
    *,
    kopf: bool,
) -> None:
    """Refuse what cannot be asked of a recording of a Kopf operator, or only of one."""
    start = kopf_start_in(source.header)
    has_files = bool(paths or modules)
    if start is None:
        if kopf:
            fail(
                f"{source.path} is not a recording of a Kopf operator: leave out "
                "--kopf",
                EXIT_USAGE,
            )
        return
    if wish.mode in _ACTING or (start == "check" and has_files):
        fail(
            f"{source.path} is a recording of a Kopf operator, whose handlers act by "
            "themselves: to run them again, use fnop check --kopf",
            EXIT_USAGE,
        )
    if has_files and not kopf:
        files = " ".join([*(f"-m {each}" for each in modules), *paths])
        fail(
            f"{source.path} is a recording of a Kopf operator; write: fnop replay "
            f"--kopf {source.path} {files}",
            EXIT_USAGE,
        )
    if kopf and not has_files:
        raise click.UsageError("--kopf needs the files of an operator")


# The modes that call handlers.
_ACTING = frozenset((Mode.SHADOW, Mode.GO_ON, Mode.EXPLORE, Mode.TEST))


class _Given(NamedTuple):
    """The operator of a call: its files and modules, and how it is loaded."""

    paths: Sequence[str]
    modules: Sequence[str]
    kopf: bool
    guard: bool


class _Operator(Protocol):
    """An operator that decides again; `begin` makes the machine of a process."""

    @property
    def program(self) -> Program: ...
    def begin(self, recorded: Settings) -> Machine: ...


class _Own(NamedTuple):
    """An operator of fnop: it is its program, in each process."""

    program: Program

    def begin(self, recorded: Settings) -> Machine:
        from fnop.interpreters.runtime.machine import Machine

        return Machine(Program(self.program.handlers, recorded))


def _verify_kopf(source: Recording, given: _Given) -> int:
    """Compare all decisions of a Kopf operator."""
    from fnop.adapters.kopf.checking.replaying import replayed_operator
    from fnop.interpreters.recording.replay.replay import recorded_settings

    header = source.header
    with replayed_operator(
        given.paths,
        given.modules,
        is_program=kopf_start_in(header) == "program",
        handlers=[str(each) for each in header.get("handlers") or ()],
        namespaces=recorded_settings(header).namespaces,
    ) as operator:
        return _verify_each(source, operator, guard=given.guard)


def _verify_each(source: Recording, operator: _Operator, *, guard: bool) -> int:
    """Compare the decisions of each process, up to the first recording that differs."""
    if not source.parts:
        return _verify(source, operator, guard=guard)
    for part in source.parts:
        echo(f"{part.path}:")
        goes_on = part != source.parts[-1]
        status = _verify(part, operator, guard=guard, goes_on=goes_on)
        if status:
            return status
    return 0


def _answer_question(source: Recording, wish: Wish) -> int:
    """Answer the question of a mode that needs only the recording."""
    about = wish.about
    match wish.mode:
        case Mode.TEST:
            return _print_test(source, wish, None, ())
        case Mode.STEP:
            from fnop.adapters.cli.step import stepped

            return stepped(source, about, wish.at)
        case Mode.PICTURES:
            return picture(source, wish.html, wish.perfetto)
        case Mode.WHY if wish.field is not None and about is not None:
            return _explain(source, about, wish.field, wish.at)
        case _:
            return _tell(source, wish)


def _verify(
    source: Recording,
    operator: _Operator,
    *,
    guard: bool,
    goes_on: bool = False,
) -> int:
    """Compare all decisions, up to the first that differs.

    If another process `goes_on`, the recording may lack its end.
    """
    from fnop.interpreters.recording.replay.replay import (
        recorded_settings,
        replay_file,
    )

    header, program = source.header, operator.program
    settings = recorded_settings(header).replace(guard=guard)
    dropped = header.get("dropped", 0)
    if dropped:
        fail(
            f"the recording has only the last of a run, without its first {dropped} "
            "steps, and cannot be decided again; ask it with --shadow or --why",
            EXIT_INCOMPLETE,
        )
    begin = partial(operator.begin, settings)
    found = replay_file(source.file, program, source.limits, begin)
    is_kopf = kopf_start_in(header) is not None
    for act in found.acts:
        warn(f"refused: {_of_kopf(act) if is_kopf else act.refusal}")
    if found.difference is not None:
        return _tell_difference(found.difference, header, program)
    asking = "--why" if is_kopf else "--shadow or --why"
    identical = f"identical for {number_of(found.steps, 'step')}, where the recording"
    if found.missing:
        fail(
            f"{identical} lacks {found.missing}: they came faster than its disk took "
            f"them; ask the rest with {asking}",
            EXIT_INCOMPLETE,
        )
    if found.truncated and not goes_on:
        end = "is damaged" if source.problem else CUT_OFF
        fail(f"{identical} {end}", EXIT_INCOMPLETE)
    if not found.steps:
        fail(
            "the recording holds no steps, and nothing was compared: the run ended "
            "before its first one; record another run",
            EXIT_INCOMPLETE,
        )
    echo(f"identical: {number_of(found.steps, 'step')}")
    return 0


def _of_kopf(act: Act) -> str:
    """The reason why the action of a filter is refused, and the remedies."""
    return f"{act}: a replay acts on nothing; leave it to a handler, or add --no-guard"


def _tell_difference(
    difference: Difference, header: dict[str, Any], program: Program
) -> int:
    """Print the first decision that differs; return the exit status."""
    from fnop.interpreters.recording.replay.replay import other_handlers

    codes = Code.recorded(header), Code.present(program, fnop.__version__)
    others = other_handlers(header, program)
    is_kopf = kopf_start_in(header) is not None
    if is_kopf and not others and not difference.doubt:
        difference = _with_doubt_of_process(difference, *codes)
    for line in difference_lines(difference, *codes, has_shadow=not is_kopf):
        echo(line)
    if not others and not difference.doubt:
        others = _surroundings(*codes, difference.handler)
    if others:
        warn(others)
    return EXIT_INCOMPLETE if difference.doubt else EXIT_ERROR


def _with_doubt_of_process(
    difference: Difference, before: Code, now: Code
) -> Difference:
    """The difference of a Kopf operator, in doubt if its code is as recorded.

    Filters and index functions may read what handlers have left in their process, and a
    replay calls no handler.
    """
    if now.fnop != before.fnop or now.others(before):
        return difference
    return replace(difference, doubt="process")


def _surroundings(before: Code, now: Code, handler: str | None) -> str:
    """The sentence about a difference outside the code; "" if it may be in the code."""
    is_same = handler is not None and now.is_other(before, handler) is False
    if not is_same or now.fnop != before.fnop:
        return ""
    return (
        f"the code of {handler} is the same, so what it takes from elsewhere may "
        "differ: the environment's variables, files, or what it imports; replay where "
        "these are as they were"
    )


def _go_on(source: Recording, program: Program, step: int, calls: Sequence[str]) -> int:
    """Continue the run from a step, in a simulated cluster."""
    from fnop.adapters.cli.closed_loop import gone_on
    from fnop.adapters.common.loading import LoadProblem, load
    from fnop.adapters.testing.models import models_of

    try:
        models = models_of(load(calls))
    except LoadProblem as problem:
        fail(str(problem))
    return gone_on(source, program, step, models)


def _print_test(
    source: Recording, wish: Wish, program: Program | None, paths: Sequence[str]
) -> int:
    """Print a test of a part of the run."""
    from fnop.adapters.cli.incident import printed_test

    part = _part(source, wish, wish.at)
    files = [*paths] or _files_in(source)
    return printed_test(source, part, program, files)


def _explore(
    source: Recording, wish: Wish, program: Program, paths: Sequence[str]
) -> int:
    """Try faults around a part of the run."""
    from fnop.adapters.cli.incident import explored
    from fnop.adapters.common.endings import EXIT_UNKNOWN
    from fnop.adapters.common.loading import LoadProblem, load
    from fnop.adapters.testing.models import models_of

    try:
        models = models_of(load(wish.calls))
    except LoadProblem as problem:
        fail(str(problem))
    names = ("budget", "jobs", "save", "seconds")
    given = {each: getattr(wish, each) for each in names}
    options = {name: value for name, value in given.items() if value is not None}
    part = _part(source, wish, wish.begin)
    status = explored(source, part, program, paths, models, options)
    return EXIT_INCOMPLETE if status == EXIT_UNKNOWN else status


def _part(source: Recording, wish: Wish, step: int | None) -> Part:
    from fnop.adapters.cli.incident import Part
    from fnop.interpreters.recording.model.refs import Place

    place = None
    if wish.about is not None:
        named = _find_object(source, wish.about, None)
        resource = named.resource
        names = named.namespace, named.name
        place = Place(resource.api_version, resource.kind, *names)
    return Part(step, wish.until, place, wish.crds)


def _files_in(source: Recording) -> list[str]:
    """The files of the recorded handlers."""
    places = places_in(source.header).values()
    files = dict.fromkeys(each.rpartition(":")[0] for each in places)
    return [*files] or ["operator.py"]


def _run_shadow(
    source: Recording,
    records: Iterator[dict[str, Any] | None],
    header: dict[str, Any],
    program: Program,
    wanted: frozenset[str],
) -> int:
    """Repeat each attempt and each review, and report the decisions that change."""
    from fnop.interpreters.shadow.attempts import shadow

    found = shadow(records, header, program)
    found.truncated = found.truncated and not source.problem
    for act in found.acts:
        warn(f"refused: {act.refusal}")
    with understood():
        codes = Code.recorded(header), Code.present(program, fnop.__version__)
        first, *rest = shadow_lines(found)
        lines, sorts = [first, *code_lines(*codes), *rest], sorts_of(found)
    for line in lines:
        echo(line)
    hits = sorts if "any" in wanted else sorts & wanted
    if hits:
        fail(f"decisions change that --fail-on names: {', '.join(sorted(hits))}")
    unasked = found.untold.total() + found.undecided.total()
    if wanted and 0 < found.attempts + found.reviews == unasked:
        fail(
            "no recorded decision could be asked again, so --fail-on has nothing to "
            "judge by",
            EXIT_INCOMPLETE,
        )
    if wanted & {"any", "deny"} and found.undecided:
        warn(
            f"--fail-on has not judged {number_of(found.undecided.total(), 'review')} "
            "that cannot be compared; fnop replay without --shadow decides them again"
        )
    return 0


def _tell(source: Recording, wish: Wish) -> int:
    """Print the story of a run, or of one object in it."""
    from fnop.adapters.recordings.story_report import is_shown, story_line
    from fnop.interpreters.recording.questions.busy import Busy
    from fnop.interpreters.recording.questions.folding import Folding
    from fnop.interpreters.recording.questions.story import Story

    named = None if wish.about is None else _find_object(source, wish.about, None)
    busy = None
    if wish.changes_only:
        found = Busy()
        source.into(found.add)
        busy = found.calls
    places = places_in(source.header)
    story, folding = Story(manager=source.manager, places=places), Folding()
    told = False

    def tell(lines: list[Line]) -> None:
        nonlocal told
        for line in lines:
            if is_shown(line, named, busy):
                for each in [line] if wish.every_line else folding.take(line):
                    echo(story_line(each, named))
                told = True

    read = source.into(story.add, then=tell, reviews=True)
    for each in folding.end():
        echo(story_line(each, named))
    if named is not None and not told:
        warn(
            f"the story has no line about {named}: no handler was called for it, "
            "and no request is about it; --why and --step tell how it was shown"
        )
    tell_what_lacks(source.header, truncated=read.truncated and not source.problem)
    return 0


def _explain(source: Recording, about: str, field: FieldPath, at: int | None) -> int:
    """Print why a field has its value; the recording is read twice."""
    from fnop.adapters.recordings.story_report import why_lines
    from fnop.interpreters.recording.questions.provenance import Provenance

    named = _find_object(source, about, at)
    provenance = Provenance(*named, source.manager)
    read = source.into(provenance.add, at)
    with understood():
        found = provenance.why(field)
    if found is None:
        fail(
            f"{named} has no field {path_text(field)} {_end_text(at)}, nor had it "
            "before"
        )
    header = source.header
    with understood():
        lines = [*why_lines(named, path_text(field), found, places_in(header))]
    for line in lines:
        echo(line)
    tell_what_lacks(header, truncated=read.truncated and not source.problem)
    return 0


def _find_object(source: Recording, about: str, at: int | None) -> Named:
    """The object of a recording that the user names, as of a step."""
    contents = Contents()
    read = source.into(contents.add, at)
    if at is not None and read.steps < at:
        steps = number_of(read.steps, "step")
        fail(f"--at {at}: the recording has {steps}, and no step {at}", EXIT_USAGE)
    try:
        return contents.named(about)
    except NoSuchObject as problem:
        fail(str(problem) if at is None else f"{problem}, up to #{at}")


def _end_text(at: int | None) -> str:
    return "at the end of the recording" if at is None else f"at step {at}"
