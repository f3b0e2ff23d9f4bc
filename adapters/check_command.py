"""The command `fnop check`: an operator meets faults before production does."""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
import orjson

from fnop.adapters.options import files, shared
from fnop.adapters.plain import echo
from fnop.interpreters.clock import SystemClock

if TYPE_CHECKING:
    from fnop.adapters.check_report import Shown
    from fnop.interpreters.check.campaign import Campaign, Report, Result, Task
    from fnop.interpreters.check.explore import Case, Explorer, Failure
    from fnop.interpreters.check.properties.evidence import Violation

__all__ = ["Checking", "check", "options_of_check"]

EXIT_VIOLATION, EXIT_USAGE, EXIT_UNKNOWN = 1, 2, 3
# Schedules that a process is given at a time.
CHUNK = 8


def a_shard(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    """The numbers of `K/N`.

    >>> a_shard(None, None, "3/10")
    (3, 10)
    """
    first, slash, second = value.partition("/")
    if slash and first.isdecimal() and second.isdecimal():
        found = int(first), int(second)
        if 1 <= found[0] <= found[1]:
            return found
    raise click.BadParameter(
        f"{value!r} is no shard; write 3/10 for the third of ten", ctx, param
    )


def _fail(sentence: str, status: int = EXIT_USAGE) -> NoReturn:
    echo(f"fnop: {sentence}", err=True)
    sys.exit(status)


@click.command()
@files
@shared("crds")
@shared("objects")
@shared("script")
@shared("calls")
@click.option(
    "--former",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The code that this one replaces: upgrades are tried, too.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="1: all single faults; 2: also pairs that are near each other.",
)
@click.option(
    "--random",
    "randoms",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Also try N random schedules of two to six faults for each script.",
)
@shared("budget")
@shared("seconds")
@shared("jobs", default=1, show_default=True)
@click.option(
    "--shard",
    callback=a_shard,
    default="1/1",
    metavar="K/N",
    help="Try the K-th of N parts: for CI matrices, and indexed Jobs.",
)
@click.option("--seed", default=0, metavar="N", help="The seed of random schedules.")
@click.option(
    "--property", "only", multiple=True, metavar="NAME", help="Judge by this one alone."
)
@click.option(
    "--without", multiple=True, metavar="NAME", help="Do not judge by this property."
)
@shared("name")
@shared(
    "save",
    "; those there are tried again first",
    default="fnop-failures",
    show_default=True,
)
@shared("output", type=click.Choice(["text", "json", "github"]))
@click.option(
    "--junit",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also write the report as JUnit XML.",
)
@click.option(
    "--results",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Also write the results of this shard into DIR, for --merge.",
)
@click.option(
    "--merge",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Report the results of all shards in DIR, and try nothing.",
)
@click.option(
    "--as-test",
    "as_test",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FAILURE",
    help="Print the recording of a failure as a test for pytest.",
)
@click.option("--digests", is_flag=True, hidden=True)
@shared("quiet", ": show no progress")
def check(paths: Sequence[str], as_test: str | None, **options: Any) -> None:
    """Try an operator with every fault, one by one, and judge what becomes of it.

    It runs in a simulated cluster: a crash before and after each write, lost replies,
    conflicts, refused writes, late watches, gaps, a user who goes on at once. After the
    faults all comes to rest, the operator restarts twice, and the world is compared
    with that of the run without faults.

    \b
      fnop check operator.py
      fnop check operator.py --crd crd.yaml --object object.yaml --jobs 2
      fnop check operator.py --depth 2 --budget 5000 --shard 3/10

    Each option has a variable: FNOP_CHECK_SHARD for --shard.

    Exit status: 0 when no property is violated; 1 when one is; 2 for a wrong call, or
    an operator that cannot be checked; 3 when nothing is known: no fault came about, or
    the time was over before anything was tried.
    """
    if as_test is not None:
        _print_test(as_test, paths)
        return
    if options["merge"] is not None:
        sys.exit(_merged(options))
    if not paths:
        raise click.UsageError("name the operator's file: fnop check operator.py")
    checking = Checking(paths, options)
    if options["digests"]:
        echo(orjson.dumps(checking.digests()).decode())
    else:
        sys.exit(checking.run())


def options_of_check(**given: Any) -> dict[str, Any]:
    """The options of a call of the command that gives these alone."""
    context = check.make_context("check", ["operator.py"], resilient_parsing=True)
    usual = {key: each for key, each in context.params.items() if key != "paths"}
    return {**usual, "shard": (1, 1), **given}


class Checking:
    """One call of the command, of its own cases or of others."""

    def __init__(
        self,
        paths: Sequence[str],
        options: dict[str, Any],
        cases: list[Case] | None = None,
    ) -> None:
        self.paths, self.options = paths, options
        self._clock = SystemClock()
        self._results: list[Result] = []
        self._may_record = True
        self._benigns: dict[Path, str] = {}
        self._tries: float = (
            math.inf if options["budget"] is None else options["budget"]
        )
        self._end = None
        if options["seconds"] is not None:
            self._end = self._clock.now().mono + options["seconds"]
        self._is_own = cases is None
        self.cases = self._cases() if cases is None else cases
        self.campaign = self._campaign()

    def digests(self) -> dict[str, str]:
        """The digests of the benign runs, by case: the same in any process."""
        from fnop.interpreters.check.explore import digest_of

        return {
            each.case.name: digest_of(each.reference.benign.seen)
            for each in self.campaign.explorers
        }

    def run(self) -> int:
        """Try all, and report; the exit status."""
        tasks = self.campaign.tasks(self._known())
        other = self._begin_elsewhere()
        former = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with self._interruptible():
                self._try(tasks)
                self._results += self._differing(other)
            _stop(other)
            report = self.campaign.report(self._results, tasks)
            self._write(report, [*self._shown(report)])
        finally:
            signal.signal(signal.SIGTERM, former)
        return _status(report)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """A signal ends what is done within, and there is no more time."""
        try:
            yield
        except KeyboardInterrupt:
            self._end = self._clock.now().mono
            self._say("interrupted; what is known by now (again: without recordings):")

    # ------------------------------------------------------------------- preparing

    def _cases(self) -> list[Case]:
        from fnop.adapters.checking import (
            CheckProblem,
            cases_of,
            subjects_for,
        )
        from fnop.adapters.loading import LoadProblem, handlers_of_file, load
        from fnop.adapters.manifests import ManifestProblem
        from fnop.adapters.models import models_of
        from fnop.core.handlers.program import Program
        from fnop.core.handlers.settings import Settings
        from fnop.interpreters.actions import ActionRefused
        from fnop.interpreters.scenario import ApplyProblem

        options = self.options
        try:
            handlers = [h for path in self.paths for h in handlers_of_file(path)]
            if not handlers:
                _fail(f"{', '.join(self.paths)} declares no handlers")
            settings = Settings(operator=options["name"])
            program = Program(tuple(handlers), settings)
            modules = load([options["script"]]) if options["script"] else []
            calls = models_of(load(options["calls"]), modules)
            paths = [*options["crds"], *options["objects"]]
            subjects = subjects_for(program, self.paths[0], paths, modules)
            for note in subjects.notes:
                self._say(note)
            module = modules[0] if modules else None
            cases = cases_of(program, subjects, calls=calls, module=module)
            if options["former"]:
                former = Program(handlers_of_file(options["former"]), settings)
                cases = [each._replace(former=former) for each in cases]
            return cases
        except (CheckProblem, LoadProblem, ManifestProblem) as problem:
            _fail(str(problem))
        except (ActionRefused, ApplyProblem) as problem:
            _fail(f"{problem} (as --crd or --object)")

    def _campaign(self) -> Campaign:
        from fnop.interpreters.check.campaign import Campaign, Options
        from fnop.interpreters.check.properties import PROPERTIES

        options = self.options
        for name in (*options["only"], *options["without"]):
            if name not in PROPERTIES:
                raise click.UsageError(
                    f"there is no property {name}; choose from {', '.join(PROPERTIES)}"
                )
        found = Options(
            depth=options["depth"],
            budget=options["budget"],
            randoms=options["randoms"],
            seed=options["seed"],
            shard=options["shard"],
            only=frozenset(options["only"]),
            without=frozenset(options["without"]),
        )
        campaign = Campaign(self.cases, found)
        for explorer in campaign.explorers:
            for sentence in explorer.unmodelled:
                _fail(sentence)
        return campaign

    def _known(self) -> Iterator[Task]:
        """The failures of former calls, for cases that are still there."""
        from fnop.adapters.check_recordings import failure_in
        from fnop.interpreters.check.campaign import Task
        from fnop.interpreters.check.faults import schedule_from_json
        from fnop.interpreters.check.scripts import script_to_json

        scripts = {
            orjson.dumps(script_to_json(each.script)): number
            for number, each in enumerate(self.cases)
        }
        for file in sorted(Path(self.options["save"]).glob("*.fnop")):
            found = failure_in(file)
            number = scripts.get(orjson.dumps(found.get("script"))) if found else None
            if found and number is not None:
                yield Task(number, schedule_from_json(found["schedule"]))

    # ---------------------------------------------------------------------- trying

    def _try(self, tasks: Sequence[Task]) -> None:
        if self.options["jobs"] == 1:
            with self._progress(len(tasks), "schedules") as bar:
                self.campaign.run(tasks, lambda one, *_: self._goes_on(bar, one))
        else:
            self._in_processes(tasks)

    def _goes_on(self, bar: Any, result: Result) -> bool:
        self._results.append(result)
        bar.update(1)
        return self._has_time()

    def _has_time(self) -> bool:
        return self._end is None or self._clock.now().mono < self._end

    def _progress(self, length: int, label: str) -> Any:
        hidden = self.options["quiet"] or not sys.stderr.isatty()
        return click.progressbar(
            length=length, label=label, file=sys.stderr, hidden=hidden
        )

    def _in_processes(self, tasks: Sequence[Task]) -> None:
        """Let several processes try the tasks; they begin as copies of this one."""
        from fnop.interpreters.check.campaign import within

        places = [
            range(start, min(start + CHUNK, len(tasks)))
            for start in range(0, len(tasks), CHUNK)
        ]
        global _working  # what the copies are to have
        _working = self.campaign, tasks
        context = multiprocessing.get_context("fork")
        with (
            context.Pool(self.options["jobs"], _as_a_worker) as pool,
            self._progress(len(tasks), "schedules") as bar,
        ):
            found = chain.from_iterable(pool.imap(_tried_in_process, places))
            for result in within(found, self.options["budget"]):
                if not self._goes_on(bar, result):
                    break

    def _begin_elsewhere(self) -> subprocess.Popen[bytes] | None:
        """Do the benign runs in a process whose sets and dicts have another order."""
        is_wanted = "pure" in self.campaign.properties and self._is_own
        if self.options["shard"][0] != 1 or not is_wanted:
            return None
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        arguments = [each for each in sys.argv[1:] if each not in ("-q", "--quiet")]
        command = [sys.executable, "-m", "fnop", *arguments, "--digests", "--quiet"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def _differing(self, other: subprocess.Popen[bytes] | None) -> Iterator[Result]:
        """A violation for each case that ends otherwise in the other process."""
        from fnop.interpreters.check.campaign import Result, Task
        from fnop.interpreters.check.explore import Verdict
        from fnop.interpreters.check.properties.evidence import Violation

        if other is None:
            return
        text, _ = other.communicate()
        if other.returncode:
            echo("fnop: the run under another hash seed could not be done", err=True)
            return
        found, own = orjson.loads(text), self.digests()
        for number, explorer in enumerate(self.campaign.explorers):
            name = explorer.case.name
            if found.get(name) != own[name]:
                message = (
                    f"the script {name!r} goes otherwise under another PYTHONHASHSEED: "
                    "a handler depends on the order of a set, or on hash(); sort it"
                )
                violation = Violation("pure", message)
                yield Result(Task(number, ()), (Verdict((), (violation,)),))

    # ------------------------------------------------------------------- reporting

    def _shown(self, report: Report) -> Iterator[Shown]:
        from fnop.adapters.check_report import Shown
        from fnop.interpreters.check.campaign import SHOWN_MAX

        explorers = {each.case.name: each for each in self.campaign.explorers}
        told: set[tuple[str, ...]] = set()
        left = {_sentence(each.violation) for each, _ in report.failures}
        tries = SHOWN_MAX
        for failure, number in _each_property_first(report.failures):
            if not tries or _sentence(failure.violation) not in left:
                continue  # a run that is shown has it, too
            tries -= 1
            explorer = explorers[failure.case]
            if failure.violation.property == "pure":  # it takes two processes
                yield Shown(explorer.case, failure, number)
                continue
            explorer, smaller = self._shrunk(explorer, failure)
            same = smaller.violation.property, *smaller.violation.details
            if len(same) > 1 and same in told:
                continue  # another site shows the same
            told.add(same)
            files = self._saved(explorer, smaller)
            left -= {_sentence(failure.violation), _sentence(smaller.violation)}
            beside = self._beside(explorer, smaller, left)
            left -= {*map(_sentence, beside)}
            yield Shown(explorer.case, smaller, number, *files, beside)

    def _beside(
        self, explorer: Explorer, shown: Failure, left: Container[tuple[str, str]]
    ) -> tuple[Violation, ...]:
        """The other failures that are yet to be shown, and that this run has, too."""
        with self._interruptible():
            is_benign = not shown.schedule
            run = explorer.benign if is_benign else explorer.tried(shown.schedule)
            found = run.violations
        return tuple(each for each in found if _sentence(each) in left)

    def _shrunk(self, explorer: Explorer, failure: Failure) -> tuple[Explorer, Failure]:
        """The smallest failure that is found within the limits, with its story."""
        from fnop.interpreters.check.shrink import TRIES_MAX, shrinking, with_story

        if self._has_time() and self._tries > 0:
            name = failure.violation.property
            if not sys.stderr.isatty():
                self._say(f"looking for the smallest schedule that violates {name}")
            with (
                self._interruptible(),
                self._progress(TRIES_MAX, f"shrinking {name}") as bar,
            ):
                for found in shrinking(explorer, failure, self._may_shrink):
                    bar.update(1)
                    explorer, failure = found or (explorer, failure)
        with self._interruptible():
            failure = with_story(explorer, failure)
        return explorer, failure

    def _may_shrink(self) -> bool:
        """Whether one more try is within the limits: all have a budget of their own."""
        self._tries -= 1
        return self._tries >= 0 and self._has_time()

    def _saved(self, explorer: Explorer, failure: Failure) -> tuple[str, str]:
        """Write the recordings of a failure, and of the run without faults.

        The files; "" for one that is not there.
        """
        from fnop.adapters.check_recordings import digest_of, write_failure

        if not self._may_record:
            return "", ""
        record = self._record_of(explorer.case, failure)
        folder = Path(self.options["save"])
        file = folder / f"{failure.violation.property}-{digest_of(record)}.fnop"

        def write(file: Path) -> None:
            write_failure(file, explorer, failure, record, self._has_time)

        found = self._written(file, write)
        if not found or not failure.schedule:
            return found, ""
        return found, self._benign(explorer.case)

    def _benign(self, case: Case) -> str:
        """Write the recording of a case's run without faults, once; its file, or ""."""
        from fnop.adapters.check_recordings import place_of_benign, write_benign

        file = place_of_benign(Path(self.options["save"]), case)
        if file not in self._benigns:
            self._benigns[file] = self._written(file, partial(write_benign, case=case))
        return self._benigns[file]

    def _written(self, file: Path, write: Callable[[Path], None]) -> str:
        """Write a file as a whole, or not; its name, or ""."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file)
        except OSError as problem:
            echo(f"fnop: {file} cannot be written: {problem}", err=True)
            return ""
        except KeyboardInterrupt:
            file.unlink(missing_ok=True)
            self._may_record = False
            self._say("interrupted; no further recordings are written")
            return ""
        return str(file)

    def _record_of(self, case: Case, failure: Failure) -> dict[str, Any]:
        """The header of the recording of a failure: how it can be run again."""
        from fnop.adapters.check_report import failure_record
        from fnop.core.handlers.settings import Settings

        name = self.options["name"]
        return {
            **failure_record(case, failure),
            "operator": [*self.paths],
            "models": [*self.options["calls"]],
            "models of": self.options["script"],
            "former": self.options["former"],
            "name": None if name == Settings().operator else name,
            "answers": self.options.get("answers"),
        }

    def _write(self, report: Report, shown: Sequence[Shown]) -> None:
        from fnop.adapters import check_report

        options = self.options
        match options["output"]:
            case "json":
                whole = check_report.as_json(report)
                echo(orjson.dumps(whole, option=_PRETTY).decode())
            case "github":
                for line in check_report.for_github(report, self.paths[0]):
                    echo(line)
            case _:
                for line in check_report.as_lines(report, shown):
                    echo(line)
        if options["junit"]:
            text = check_report.as_junit(report, Path(self.paths[0]).name)
            Path(options["junit"]).write_text(text, "utf-8")
        if options["results"]:
            _keep(Path(options["results"]), report)

    def _say(self, sentence: str) -> None:
        if not self.options["quiet"]:
            echo(f"fnop: {sentence}", err=True)


_PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
_working: tuple[Campaign, Sequence[Task]] | None = None


def _as_a_worker() -> None:
    """Let the first process alone answer signals: it ends its workers."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tried_in_process(places: Iterable[int]) -> list[Result]:
    assert _working is not None
    campaign, tasks = _working
    return [campaign.tried(tasks[place]) for place in places]


def _stop(process: subprocess.Popen[bytes] | None) -> None:
    """End a process that may have been left alone."""
    if process is not None:
        with process:
            process.kill()


def _status(report: Report) -> int:
    if not report.is_clean:
        return EXIT_VIOLATION
    known = report.tried - report.unknown
    return 0 if known > 0 else EXIT_UNKNOWN


# ---------------------------------------------------------------------- failures


def _print_test(file: str, paths: Sequence[str]) -> None:
    from fnop.adapters.check_recordings import failure_in
    from fnop.adapters.check_tests import test_of

    found = failure_in(Path(file))
    if found is None:
        _fail(f"{file} is no recording of a failure: fnop check writes those")
    # Line by line: further lines of one text are indented, and this is Python.
    for line in test_of(found, paths).removesuffix("\n").split("\n"):
        echo(line)


# ---------------------------------------------------------------------- shards


def _keep(folder: Path, report: Report) -> None:
    """Write the results of a shard into a file that is named by its content."""
    from fnop.adapters.check_report import as_json

    text = orjson.dumps(as_json(report), option=_PRETTY)
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(text, digest_size=8).hexdigest()
    (folder / f"{digest}.json").write_bytes(text)


def _merged(options: Mapping[str, Any]) -> int:
    """Report all shards' results as one."""
    found = [
        orjson.loads(file.read_bytes())
        for file in sorted(Path(options["merge"]).glob("*.json"))
    ]
    if not found:
        _fail(f"there are no results in {options['merge']}; write them with --results")
    failures = [each for one in found for each in one["failures"]]
    unique = {orjson.dumps([e["property"], e["words"]]): e for e in failures}
    whole = {
        "version": 1,
        "shards": len(found),
        "scripts": found[0]["scripts"],
        "failures": [*unique.values()],
        **{key: sum(one[key] for one in found) for key in ("tried", "left", "unknown")},
    }
    if options["output"] == "json":
        echo(orjson.dumps(whole, option=_PRETTY).decode())
    else:
        for each in unique.values():
            echo(f"{each['property']}: {each['message']}\n   {each['words']}")
        echo(
            f"{whole['tried']} schedules in {len(found)} shards: "
            f"{len(unique)} failures, {whole['unknown']} unknown, {whole['left']} left"
        )
    if any(not each["special"] for each in unique.values()):
        return EXIT_VIOLATION
    return 0 if whole["tried"] > whole["unknown"] else EXIT_UNKNOWN


def _sentence(violation: Violation) -> tuple[str, str]:
    """A failure as it is told in one line."""
    return violation.property, violation.message


def _each_property_first(
    failures: Sequence[tuple[Failure, int]],
) -> list[tuple[Failure, int]]:
    """The first failure of each property, so that each verdict is explained; then all.

    The numbers are of those like it.
    """
    kinds = {each.violation.property: (each, number) for each, number in failures[::-1]}
    first = [*kinds.values()][::-1]
    return [*first, *(each for each in failures if each not in first)]
