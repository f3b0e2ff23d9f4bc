"""`python -m bench.diffs [NAME...]`: does `fnop diff` name the fault that struck?

It has three parts. First, the scripts of the examples are recorded twice, with another
seed, another clock and another key for secrets: nothing may differ.

Second, for each of bench/bugs the first schedule that shows the bug is recorded next to
the benign run, and the first difference is compared with the fault. The difference must
name the request, the object, the kind or the time of the fault. With ALL=1 that is done
for every single fault that violates a property.

Third, two runs of 10,000 events are compared.

One line is printed for each schedule whose fault is not named, and one for each bug.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import fnop
from bench.bugs.cases import BUGS, Bug, bug_in, case_of
from bench.bugs.crds import crd, custom
from bench.sweep import cases_named, operators
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import (
    OTHER_START,
    Case,
    Explorer,
    prepared,
)
from fnop.interpreters.check.state.kinds import Fault, Place, Schedule, Site, in_words
from fnop.interpreters.check.state.records import BOOT_SECONDS, Limits
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.recording.comparison.causes import Comparison, Told, compared
from fnop.interpreters.recording.comparison.divergence import Sort
from fnop.interpreters.recording.comparison.runs import Run
from fnop.interpreters.recording.format.reader import (
    UNLIMITED,
    read_header,
    read_records,
)
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.simulation.actions import Action, Apply, Delete, Edit, act
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun

SCHEDULES_MAX = 2_000
# Kinds that one of the cluster's controllers works for, by its name.
_WORKS_FOR = {
    "kubelet": ("pod", "statefulset", "deployment", "daemonset", "job"),
    "garbage": (),
}


# ---------------------------------------------------------------------- recording


class _Kept(io.BytesIO):
    def close(self) -> None:
        """Keep the written file readable."""


def traced(case: Case) -> Case:
    """The case with the traces that a recording has."""
    settings = case.program.settings.replace(traces=True)
    return case._replace(program=Program(case.program.handlers, settings))


def recorded(
    case: Case,
    schedule: Schedule = (),
    *,
    number: int = 0,
    key: bytes = b"fnop check",
    limits: Limits | None = None,
    into: Run | None = None,
) -> Run:
    """The recorded run of a script; `number` chooses a seed and a clock."""
    case, kept = traced(case), _Kept()
    header = header_of(case.program, fnop.__version__)
    recorder = Recorder(kept, header, Redaction(key, case.program))
    scene = prepared(case, seed=str(number), later=number * OTHER_START)
    run = scene.base.fork()
    run.machine = Machine(case.program, (recorder,))
    if not any(each.kind.name == "F18:backlog" for each in schedule):
        run.settle(seconds=BOOT_SECONDS)
    trial = Trial(scene, schedule, run=run, limits=limits or Limits())
    trial.whole = True  # recordings are compared process by process
    trial.play()
    recorder.finish()
    assert recorder.problem is None, recorder.problem
    records = read_records(io.BytesIO(kept.getvalue()), UNLIMITED)
    read_header(records)
    found = into or Run()
    for record in records:
        assert record is not None
        found.add(record)
    return found


# ------------------------------------------------------------------ what is named


def names_fault(told: Told, fault: Fault, script: tuple[Action, ...]) -> bool:
    """Whether a difference and its cause name the fault."""
    match fault.kind.code, fault.site.place:
        case "F1" | "F3" | "F11", Place.WRITE | Place.OWN | Place.READ | Place.CALL:
            if fault.kind.name == "F11:late":
                return _is_answer(told, fault.site)
            return told.found.sort is Sort.ENDED and any(
                _is_at(each, fault.site) for each in told.cause.open
            )
        case "F1" | "F3", Place.REST:
            return told.found.sort is Sort.ENDED and not told.cause.open
        case "F1", Place.EVENT:
            following = told.cause.following
            kind = "" if following is None else str(following.body.data["kind"])
            is_kind = kind.lower() == _kind_of(fault.site.target)
            return told.found.sort is Sort.ENDED and is_kind
        case "F8", _:
            own = _names(told, fault.site.target)
            return _is_answer(told, fault.site) or own
        case "F13", _:
            of_user = any(_names(told, each) for each in _targets(script))
            return _is_answer(told, fault.site) or of_user
        case "F12", _:
            return any(each.kind == "time" for each in told.cause.inputs)
        case "F14", _:
            kinds = _WORKS_FOR.get(fault.site.target, (fault.site.target,))
            return any(_names(told, f"{each}/*") for each in kinds)
        case "F19", _:
            return _names(told, fault.detail)
        case "F15" | "F18" | "F21", _:
            return any(_names(told, each) for each in _targets(script))
        case _, Place.EVENT:
            return _names(told, f"{_kind_of(fault.site.target)}/*")
        case _:
            return _is_answer(told, fault.site)


def _is_answer(told: Told, site: Site) -> bool:
    """Whether it is the answer to the request at the site."""
    requests = [each for each in told.cause.requests if each is not None]
    return told.found.sort is Sort.ANSWER and any(_is_at(e, site) for e in requests)


def _is_at(request: Request, site: Site) -> bool:
    verb = request.effect["is"].lower()
    same = (request.handler, verb) == (site.handler, site.verb)
    return same and fnmatchcase(_target_of(request), site.target)


def _target_of(request: Request) -> str:
    function = str(request.effect.get("function") or "").rpartition(":")[2]
    return function or f"{request.resource.partition('.')[0]}/{request.name}"


def _names(told: Told, target: str) -> bool:
    """Whether an object is named: `pods/x-*`."""
    kind, _, name = target.partition("/")
    kind = _kind_of(kind)
    return any(
        each_kind == kind and fnmatchcase(each_name, name)
        for each_kind, each_name in _objects_in(told)
    )


def _objects_in(told: Told) -> Iterator[tuple[str, str]]:
    """The kinds and names of the named objects."""
    found, cause = told
    for each in cause.inputs:
        for shown in (*each.shown, *each.same):
            if shown is not None:
                yield str(shown.body.data["kind"]).lower(), shown.body.name
    if found.lane.resource:
        yield _kind_of(found.lane.resource.partition(".")[0]), found.lane.name
    for request in cause.requests:
        if request is not None and request.resource:
            yield _kind_of(_target_of(request)), request.name
    for value in found.values:  # the API server's own sentence names an object
        message = value.get("message") if isinstance(value, dict) else None
        for kind, name in re.findall(r"(\w+) \"?([-\w.]+)\"?", str(message or "")):
            yield _kind_of(kind), name


def _kind_of(target: str) -> str:
    """The kind in a target: `pod` for `pods/x`."""
    return target.partition("/")[0].lower().removesuffix("s")


def _targets(script: tuple[Action, ...]) -> Iterator[str]:
    """The objects that a user changes."""
    for each in script:
        match each:
            case Apply(manifest):
                yield f"{manifest['kind'].lower()}/{manifest['metadata']['name']}"
            case Edit() | Delete():
                yield each.where
            case _:
                pass


# --------------------------------------------------------------------- the parts


class Named(NamedTuple):
    """A schedule next to the benign run; None for an invisible fault."""

    words: str
    found: Comparison
    is_named: bool
    open: int


def compare(explorer: Explorer, benign: Run, schedule: Schedule) -> Named:
    """Compare the run of a schedule with the benign one."""
    limits = explorer.reference.limits
    found = compared(benign, recorded(explorer.case, schedule, limits=limits))
    first = found.first
    script = explorer.case.script
    is_named = first is not None and names_fault(first, schedule[-1], script)
    open = 0 if first is None else len(first.cause.open)
    return Named(in_words(schedule), found, is_named, open)


def failing(explorer: Explorer, bug: Bug | None) -> Iterator[Schedule]:
    """The single faults that violate a property, also under another seed."""
    for schedule in explorer.singles()[:SCHEDULES_MAX]:
        verdict = explorer.tried(schedule)
        if not verdict.struck or not verdict.violations:
            continue
        names = {each.property for each in explorer.confirmed(verdict)}
        if names & {*bug.properties} if bug is not None else names:
            yield schedule


def shows_at_once(explorer: Explorer, bug: Bug) -> bool:
    """Whether the benign run shows the bug, without any fault."""
    names = {each.property for each in explorer.confirmed(explorer.benign)}
    return bool(names & {*bug.properties})


def examples(wanted: list[str]) -> tuple[int, list[str]]:
    """Compare each script with itself and under another seed; yield the differences."""
    wrong, count = [], 0
    for name in operators(examples_only=True):
        if wanted and not any(map(name.startswith, wanted)):
            continue
        for case in cases_named(name):
            one, other = (
                recorded(case, number=number, key=os.urandom(16)) for number in (0, 1)
            )
            count += 1
            for what, run in (("itself", one), ("another seed", other)):
                first = compared(one, run).first
                if first is not None:
                    wrong.append(f"{name} [{case.name}] and {what}: {first.found}")
    return count, wrong


def bugs(wanted: list[str], *, every: bool) -> Iterator[tuple[str, list[Named]]]:
    """The comparisons for each bug that needs a fault."""
    for folder in BUGS:
        bug = bug_in(folder)
        if wanted and not any(map(bug.slug.startswith, wanted)):
            continue
        explorer = Explorer(case_of(folder, "buggy"))
        benign = recorded(explorer.case)
        if every:
            schedules = list(failing(explorer, None))
        elif shows_at_once(explorer, bug):
            schedules = []
        else:
            schedules = [next(failing(explorer, bug))]
        yield bug.slug, [compare(explorer, benign, each) for each in schedules]


# ------------------------------------------------------------------ ten thousand events


def large(file: BinaryIO, number: int, objects: int, other: int | None = None) -> int:
    """Record a run in which objects change five times; return the number of its steps.

    The object with the number `other` gets another size in the middle of the run.
    """
    registry = Registry()

    @fnop.on.create("xs.example.com", registry=registry)
    @fnop.on.update("xs.example.com", registry=registry)
    async def follow(name: str, spec: Any, **_: Any) -> Any:
        data = {"size": str(spec["size"])}
        about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        await fnop.apply({**about, "data": data})
        return {"size": spec["size"]}

    program = Program(registry.handlers, Settings(traces=True))
    header = header_of(program, fnop.__version__)
    recorder = Recorder(file, header, Redaction(os.urandom(16), program))
    start, seed = EPOCH + number * OTHER_START, str(number)
    clock, cluster = VirtualClock(start), empty_cluster(seed, start)
    run = SimulatedRun(program, cluster, seed=seed, clock=clock, observers=(recorder,))
    apply_manifests(run, [crd()])
    for turn in range(5):
        for place in range(objects):
            size = 77 if (turn, place) == (2, other) else turn
            found = custom(name=f"x-{place}", size=size, text="a" * 1_000)
            act(run, Apply(found))
        run.settle()
    recorder.finish()
    assert recorder.problem is None, recorder.problem
    return run.steps


class Timed(NamedTuple):
    """Two large runs compared by `fnop diff`: steps of each, seconds, the output."""

    steps: int
    wall: float
    cpu: float
    text: str


def timed(folder: Path, objects: int = 490) -> Timed:
    """Compare two large runs that differ in one field of one object."""
    files = [folder / "a.fnop", folder / "b.fnop"]
    steps = []
    for number, file in enumerate(files):
        with file.open("wb") as opened:
            steps.append(
                large(opened, number, objects, objects // 2 if number else None)
            )
    begun, used = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "fnop", "diff", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, now = time.perf_counter() - begun, os.times()
    cpu = now.children_user + now.children_system
    cpu -= used.children_user + used.children_system
    return Timed(min(steps), wall, cpu, done.stdout + done.stderr)


# -------------------------------------------------------------------------- the report


def main(wanted: list[str]) -> int:
    """Print the deviations, a line for each bug, and the totals."""
    count, wrong = examples(wanted)
    for each in wrong:
        print(f"DIFFERS {each}")
    print(f"{count - len(wrong)} of {count} scripts of examples: no difference\n")
    total = named = alone = several = unseen = 0
    for slug, compared_ in bugs(wanted, every=bool(os.environ.get("ALL"))):
        for one in compared_:
            total += 1
            named += one.is_named
            unseen += one.found.first is None
            alone += one.is_named and one.open == 1
            several += one.is_named and one.open > 1
            if not one.is_named:
                print(f"    NOT NAMED {one.words}: {_first_of(one.found)}")
        good = sum(one.is_named for one in compared_)
        print(f"{slug:36} {good} of {len(compared_)} named", flush=True)
    print(f"\n{named} of {total} faults are named; {unseen} leave no trace in the run")
    print(f"crashes: {alone} with one request under way, {several} with several")
    with tempfile.TemporaryDirectory() as folder:
        found_ = timed(Path(folder))
    print(f"\n{found_.text}")
    print(
        f"two runs of {found_.steps} steps: {found_.wall:.2f} s, CPU {found_.cpu:.2f} s"
    )
    return 1 if wrong or named < total else 0


def _first_of(found: Comparison) -> str:
    if found.first is None:
        return "no difference"
    first = found.first.found
    return f"{first.sort.name} {first.lane.handler} {first.lane.where} {first.steps}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
