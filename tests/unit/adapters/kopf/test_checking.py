"""`fnop check --kopf`: Kopf operators that meet faults, and their processes."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from fnop.adapters.kopf.checking import door, strands
from fnop.adapters.kopf.checking.processes import checked_operator
from fnop.adapters.testing.cases import CheckProblem
from fnop.interpreters.check.campaign.explore import Case, prepared
from fnop.interpreters.check.state.worlds import world_of
from fnop.interpreters.check.trials.aftermath import aftermath_of
from fnop.interpreters.check.trials.differences import Volatile
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.simulation.actions import Apply
from fnop.interpreters.simulation.simulation import CannotFork
from tests.commands import Done, fnop, write
from tests.simulations import DEFINITION, Scenario, example

pytestmark = pytest.mark.usefixtures("without_kopf")

NAME = "operator_with_kopf.py"
OBJECT = json.dumps(example("x", size=1))
# One script alone, which has few schedules.
SCRIPT = f"from fnop.testing import apply\nSCRIPTS = {{'create': [apply({OBJECT})]}}"

# A client as authors have it: it finds the cluster by KUBECONFIG.
CLIENT = '''
import json, os, urllib.error, urllib.request

def send(method, path, body=None):
    """The answer of the cluster; None if the object is there already."""
    with open(os.environ["KUBECONFIG"]) as file:
        config = json.load(file)
    token = config["users"][0]["user"]["token"]
    request = urllib.request.Request(
        config["clusters"][0]["cluster"]["server"] + path,
        json.dumps(body).encode() if body else None,
        {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            if problem.code != 409:
                raise
'''
MAPS = "/api/v1/namespaces/default/configmaps"


def checked(folder: Path, operator: str, *more: str, script: str = SCRIPT) -> Done:
    """The end of a check of one creation, or of another script."""
    write(folder, NAME, dedent(operator))
    write(folder, "script.py", script)
    write(folder, "crd.yaml", json.dumps(DEFINITION))
    files = ("--crd", "crd.yaml", "--script", "script.py")
    return fnop("check", "--kopf", NAME, *files, "--depth", "1", *more, folder=folder)


@contextmanager
def living(
    folder: Path, operator: str, seconds: float | None = None
) -> Iterator[Scenario]:
    """A run of an operator that lives in this process, with an object."""
    # A process of Python has one operator of each name.
    name = f"{folder.name}.py"
    write(folder, name, dedent(operator))
    with checked_operator([str(folder / name)]) as processes:
        run = Scenario((), begin=processes.begin)
        run.settle()
        run.apply(example("x", size=1))
        run.settle(seconds=seconds)
        yield run


def status_in(run: Scenario) -> dict[str, Any]:
    """The status of the object."""
    found = run.get("fnopexamples", "x")
    assert found is not None
    status: dict[str, Any] = found.get("status") or {}
    return status


# ---------------------------------------------------------------------- findings


def test_a_handler_that_repeats_its_effect_after_a_crash_is_found(
    tmp_path: Path,
) -> None:
    done = checked(
        tmp_path,
        """
        import kopf

        @kopf.on.create("fnopexamples")
        def made(status, patch, **_):
            patch.status["log"] = [*status.get("log", []), "made"]
        """,
    )
    assert done.status == 1, done
    assert 'same_end: fnopexamples.fnop.dev/x status.log is ["made","made"]' in done.out
    assert "crash after `patch fnopexamples/x` (1st, handler made)" in done.out
    assert "fnop check --as-test" not in done.out, "there are no tests for Kopf's API"
    recording = next((tmp_path / "fnop-failures").glob("same_end-*.fnop"))
    refused = fnop("check", "--as-test", recording, folder=tmp_path)
    assert refused.status == 2, refused
    assert "a failure of a Kopf operator has no test" in refused.complaint


def test_a_handler_that_only_a_restart_calls_follows_no_edit(tmp_path: Path) -> None:
    edit = "edit('fnopexamples/x', spec={'duration': '2m'})"
    done = checked(
        tmp_path,
        f"""{CLIENT}
import kopf

@kopf.on.create("fnopexamples")
@kopf.on.resume("fnopexamples")
def made(spec, body, name, **_):
    child = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": name}},
             "data": {{"duration": spec.get("duration", "")}}}}
    kopf.append_owner_reference(child, body)
    send("POST", "{MAPS}", child) or send("PUT", f"{MAPS}/{{name}}", child)
""",
        *("--property", "history", "--budget", "1"),
        script=SCRIPT.replace("import apply", "import apply, edit").replace(
            ")]}", f"), {edit}]}}"
        ),
    )
    assert done.status == 1, done
    assert "until the operator restarts" in done.out
    assert (
        "edit fnopexamples/x spec.duration='2m': no handler of changes is called "
        "(`made` is for on.resume; `made` is for on.create)"
    ) in done.out


def test_a_correct_operator_passes_and_the_report_says_what_is_not_judged(
    tmp_path: Path,
) -> None:
    done = checked(
        tmp_path,
        """
        import kopf

        @kopf.on.create("fnopexamples")
        @kopf.on.update("fnopexamples")
        def made(spec, patch, body, **_):
            kopf.info(body, reason="Seen")
            patch.status["size"] = spec.get("size")

        @kopf.on.validate("fnopexamples")
        def judge(**_):
            raise kopf.AdmissionError("it is never called")
        """,
    )
    assert done.status == 0, done
    assert "not judged: pure, idle and heeds" in done.out
    assert "  pure " not in done.out
    assert "admission handlers of a Kopf operator are not called" in done.err


@pytest.mark.parametrize(
    ("name", "status"), [("{'generateName': 'x-'}", 1), ("{'name': 'x'}", 0)]
)
def test_what_clients_of_the_operator_create_is_compared(
    tmp_path: Path, name: str, status: int
) -> None:
    """A crash after the creation repeats it: under one name, nothing comes of that."""
    write(tmp_path, "client.py", CLIENT)
    done = checked(
        tmp_path,
        f"""
        import kopf
        from client import send

        @kopf.on.create("fnopexamples")
        def made(**_):
            child = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {name}}}
            kopf.adopt(child)
            send("POST", "{MAPS}", child)
        """,
    )
    assert done.status == status, done
    assert ("creates_once: " in done.out) == bool(status), done.out
    assert ("crash after `call made`" in done.out) == bool(status), done.out


def test_a_crash_strikes_between_two_requests_of_a_client(tmp_path: Path) -> None:
    """The second object is never made: the handler takes the first one for both."""
    write(tmp_path, "client.py", CLIENT)
    child = {"apiVersion": "v1", "kind": "ConfigMap"}
    one, two = ({**child, "metadata": {"name": name}} for name in ("one", "two"))
    done = checked(
        tmp_path,
        f"""
        import kopf
        from client import send

        @kopf.on.create("fnopexamples")
        def made(**_):
            found = send("GET", "{MAPS}")["items"]
            if "one" not in [each["metadata"]["name"] for each in found]:
                send("POST", "{MAPS}", {one})
                send("POST", "{MAPS}", {two})
        """,
    )
    assert done.status == 1, done
    assert "same_end: configmaps/two is missing" in done.out, done.out
    assert "crash after `create configmaps/one` (1st, a client of made)" in done.out


def test_the_records_of_attempts_are_not_compared(tmp_path: Path) -> None:
    """A handler that waits may have tried more often after a fault."""
    operator = """
        import kopf

        @kopf.on.startup()
        def configure(settings, **_):
            settings.persistence.progress_storage = kopf.StatusProgressStorage(
                field="status.progress"
            )

        @kopf.on.create("fnopexamples", retries=3)
        def waits(patch, retry, **_):
            patch.status["waits"] = True
            raise kopf.TemporaryError("not yet", delay=10)
        """
    with living(tmp_path, operator, seconds=5) as run:
        assert "waits" in status_in(run)["progress"]
        storage = run.machine.settings.storage
        world = world_of(run.cluster, empty_cluster(), None, (), storage)
    found = json.loads(world["fnopexamples.fnop.dev/x"])
    assert found["status"] == {"waits": True}


@pytest.mark.parametrize(
    ("change", "status"), [("", 0), ("patch.meta.labels['n'] =", 1)]
)
def test_notes_of_several_resuming_handlers_are_no_writes(
    tmp_path: Path, change: str, status: int
) -> None:
    """Kopf notes the end of the first one, calls the second, and removes the note."""
    done = checked(
        tmp_path,
        f"""
        import random
        import kopf

        @kopf.on.resume("fnopexamples")
        def first(patch, **_):
            {change} str(random.random())

        @kopf.on.resume("fnopexamples")
        def second(**_):
            pass
        """,
    )
    assert done.status == status, done
    assert ("no_more_writes: a restart at the end" in done.out) == bool(status)


def test_equal_checks_give_equal_reports(tmp_path: Path) -> None:
    operator = """
        import random
        import time
        import kopf

        @kopf.on.create("fnopexamples")
        def made(patch, **_):
            time.sleep(random.randint(1, 9))
            patch.status["drawn"] = random.random()
        """
    one, two = (checked(tmp_path, operator, "-o", "json") for _ in range(2))
    assert one.status == 0, one
    assert one.out == two.out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--property", "pure"), "pure is not judged for a Kopf operator"),
        (("--calls", "script.py"), "a check of a Kopf operator has no --calls"),
        (("--leader-elect",), "a check of a Kopf operator has no --leader-elect"),
        (("--jobs", "2"), "with --shard 1/N to N/N"),
    ],
)
def test_options_without_a_use_are_refused(
    tmp_path: Path, more: tuple[str, ...], words: str
) -> None:
    operator = "import kopf\nkopf.on.create('fnopexamples')(print)"
    done = checked(tmp_path, operator, *more)
    assert done.status == 2, done
    assert words in done.err


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("import fnop", "declares no handlers with Kopf's decorators"),
        (
            """
            import kopf
            kopf.on.create("fnopexamples")(print)

            @kopf.on.startup()
            def start(**_):
                raise kopf.PermanentError("no licence")
            """,
            "the startup handler start has failed: no licence",
        ),
        (
            """
            import kopf
            kopf.on.create("fnopexamples")(print)

            @kopf.on.mutate("fnopexamples")
            def widen(patch, **_):
                patch.spec["width"] = 2
            """,
            "the admission handler widen changes objects",
        ),
        (
            """
            import kopf
            kopf.on.create("fnopexamples")(print)

            @kopf.on.startup()
            def start(**_):
                raise ValueError("the port is not set")
            """,
            "the startup handler start fails again and again: ValueError: the port is",
        ),
    ],
)
def test_an_operator_that_does_not_start_is_refused(
    tmp_path: Path, operator: str, words: str
) -> None:
    done = checked(tmp_path, operator)
    assert done.status == 2, done
    assert words in done.complaint


def test_without_kopf_there_are_no_modules(tmp_path: Path) -> None:
    done = fnop("check", "-m", "operator", folder=tmp_path)
    assert (done.status, "-m needs --kopf" in done.err) == (2, True), done


# ---------------------------------------------------------------------- programs

PROGRAM = """
    import asyncio
    import signal
    import threading
    import kopf

    class Bank:
        def __init__(self, registry):
            kopf.on.create("fnopexamples", registry=registry)(self.made)

        def made(self, memo, patch, **_):
            patch.status["sum"] = memo.sum
"""
SERVING = """
    async def serve():
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
            prefix="bank.example.com"
        )
        Bank(registry)
        memo = kopf.Memo(sum=7)
        options = dict(registry=registry, settings=settings, memo=memo)
"""


@pytest.mark.parametrize(
    "start",
    [
        """
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await kopf.operator(clusterwide=True, stop_flag=stop, **options)

    if __name__ == "__main__":
        asyncio.run(serve())
        """,
        """
        tasks = await kopf.spawn_tasks(clusterwide=True, **options)
        await kopf.run_tasks(tasks)

    def main():
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        stop.wait()
        thread.join()

    if __name__ == "__main__":
        main()
        """,
    ],
)
def test_a_program_starts_by_itself_in_each_process(tmp_path: Path, start: str) -> None:
    """Its memo, its settings and its registry are those that it gives to Kopf."""
    before = {*threading.enumerate()}
    with living(tmp_path, PROGRAM + SERVING + start) as run:
        assert status_in(run) == {"sum": 7}
        run.crash()
        run.apply(example("y"))
        run.settle()
        found = run.get("fnopexamples", "y")
        assert found is not None
        assert found["status"] == {"sum": 7}
        stored = found["metadata"]["annotations"]
        assert "bank.example.com/last-handled-configuration" in stored
    assert {*threading.enumerate()} <= before, "the programs have ended"


def test_a_program_may_run_kopfs_command_line(tmp_path: Path) -> None:
    operator = """
        import kopf.cli

        @kopf.on.create("fnopexamples")
        def made(patch, **_):
            patch.status["made"] = True

        if __name__ == "__main__":
            kopf.cli.main(["run", "--verbose", "--all-namespaces"])
        """
    with living(tmp_path, operator) as run:
        assert status_in(run) == {"made": True}


TWICE = """
async def main():
    run = lambda: kopf.operator(clusterwide=True)
    await asyncio.gather(run(), run())

if __name__ == "__main__":
    import asyncio
    asyncio.run(main())"""


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("def main():\n    kopf.run(memo={})", ":5: kopf.run gets memo= here"),
        (
            "from fnop import kopf as k\ndef main():\n    k.run(memo={})",
            ":6: kopf.run gets memo= here",
        ),
        (
            "from fnop.kopf import run\ndef main():\n    run(memo={})",
            ":6: kopf.run gets memo= here",
        ),
        (
            'if __name__ == "__main__":\n    print(os.environ["NO"])\n    kopf.run()',
            ":5: KeyError: 'NO'; a check starts the operator at",
        ),
        (
            'if __name__ == "__main__":\n    if __doc__:\n        kopf.run()',
            ":5: it ends without a call of kopf.run or the like; a check starts",
        ),
        (TWICE, ": TypeError: a check knows one operator in each process; a check"),
        (
            TWICE.replace("(run(), run())", "(run(), run(), return_exceptions=True)"),
            ": TypeError: a check knows one operator in each process; a check",
        ),
    ],
)
def test_a_program_that_a_check_cannot_start_is_refused(
    tmp_path: Path, start: str, words: str
) -> None:
    head = "import os\nimport kopf\nkopf.on.create('fnopexamples')(print)\n"
    done = checked(tmp_path, head + start)
    assert done.status == 2, done
    # Python may complain later of a coroutine of the program, which has ended early.
    first = done.err.partition("\n")[0]
    assert first.startswith(f"fnop: {NAME}:")
    assert words in first


# --------------------------------------------------------------------- processes


def test_each_process_has_new_modules_memos_and_registries(tmp_path: Path) -> None:
    write(tmp_path, "own_counts.py", "seen = []")
    operator = """
        import kopf
        from own_counts import seen

        @kopf.on.resume("fnopexamples")
        @kopf.on.create("fnopexamples")
        def made(memo, patch, **_):
            seen.append(1)
            memo.count = memo.get("count", 0) + 1
            patch.status["counts"] = [len(seen), memo.count]
        """
    with living(tmp_path, operator) as run:
        assert status_in(run) == {"counts": [1, 1]}
        run.crash()
        run.settle()
        assert status_in(run) == {"counts": [1, 1]}
        assert "own_counts" in sys.modules
        with pytest.raises(CannotFork, match="lives in this process"):
            run.fork()
    assert "own_counts" not in sys.modules


def test_sleeps_and_clocks_of_handlers_are_virtual(tmp_path: Path) -> None:
    operator = """
        import asyncio
        import datetime
        import time
        import uuid
        from datetime import datetime as moment, timezone

        import kopf

        @kopf.on.create("fnopexamples")
        def waits(patch, **_):
            begun = time.time()
            time.sleep(3600)
            patch.status["took"] = time.time() - begun
            patch.status["is"] = [
                moment.now(timezone.utc).isoformat(),
                datetime.date.today().isoformat(),
                isinstance(moment(2026, 1, 1), datetime.datetime),
                uuid.uuid4().version,
            ]

        @kopf.on.create("fnopexamples")
        async def awaits(patch, **_):
            await asyncio.gather(asyncio.sleep(60), asyncio.sleep(90))
            patch.status["awaited"] = True

        @kopf.on.event("fnopexamples")
        def seen(memo, **_):
            memo.events = memo.get("events", 0) + 1
        """
    with living(tmp_path, operator) as run:
        status = status_in(run)
        assert status["took"] == 3600
        assert status["is"] == ["2026-01-01T01:00:00+00:00", "2026-01-01", True, 4]
        assert status["awaited"]
        assert run.clock.elapsed >= 3690


def test_daemons_and_timers_run_on_virtual_time(tmp_path: Path) -> None:
    operator = """
        import kopf

        @kopf.daemon("fnopexamples")
        def rings(stopped, patch, **_):
            for count in range(3):
                stopped.wait(100)
            patch.status["rung"] = True

        @kopf.daemon("fnopexamples")
        async def waits(stopped, patch, **_):
            await stopped.wait(50)
            patch.status["waited"] = True

        @kopf.timer("fnopexamples", interval=40)
        def ticks(patch, **_):
            patch.status["ticked"] = True
        """
    with living(tmp_path, operator) as run:
        run.wait(400)
        assert status_in(run) == {"rung": True, "waited": True, "ticked": True}
        run.delete("fnopexamples", "x")
        run.settle()
        assert run.get("fnopexamples", "x") is None, "the daemons have ended"


@pytest.mark.parametrize(
    ("options", "tries"),
    [
        ("retries=2, backoff=5", [0, 1, 0, 1]),
        ("errors=kopf.ErrorsMode.PERMANENT", [0, 0, 0, 0]),
    ],
)
def test_a_timer_that_has_failed_is_called_at_its_next_interval(
    tmp_path: Path, options: str, tries: list[int]
) -> None:
    operator = f"""
        import kopf

        @kopf.timer("fnopexamples", interval=5, {options})
        def ticks(retry, status, patch, **_):
            patch.status["tries"] = [*status.get("tries", []), retry]
            raise ValueError("no")
        """
    with living(tmp_path, operator, seconds=16) as run:
        assert status_in(run)["tries"] == tries


def test_a_daemon_that_lasts_after_failures_lets_a_check_go_on(tmp_path: Path) -> None:
    """Its last try never ends, and no try follows."""
    done = checked(
        tmp_path,
        """
        import asyncio
        import kopf

        @kopf.daemon("fnopexamples", cancellation_timeout=1.0)
        async def pings(retry, **_):
            if retry < 3:
                raise kopf.TemporaryError("not yet", delay=1)
            while True:
                await asyncio.sleep(5)
        """,
        "--budget",
        "4",
    )
    assert done.status == 0, done
    assert "4 schedules of 1 script tried: no property is violated" in done.out


SLOW = """
    import asyncio
    import time
    import kopf

    @kopf.on.create("fnopexamples")
    {kind} slow(logger, patch, **_):
        {sleep}
        patch.status["done"] = True

    @kopf.on.create("fnopexamples")
    def second(**_):
        pass

    @kopf.on.delete("fnopexamples")
    def gone(body, status, **_):
        kopf.info(body, reason="Gone", message=f"done: {{status.get('done')}}")
    """
BOTH_FORMS = pytest.mark.parametrize(
    "operator",
    [
        SLOW.format(kind="async def", sleep="await asyncio.sleep(10)"),
        SLOW.format(kind="def", sleep="time.sleep(10)"),
    ],
    ids=["coroutine", "thread"],
)


@BOTH_FORMS
def test_a_handler_ends_before_its_object_is_deleted(
    tmp_path: Path, operator: str
) -> None:
    """As under Kopf, the deletion handler knows all that it has done."""
    with living(tmp_path, operator) as run:
        run.apply(example("y"))
        run.wait(5)
        run.delete("fnopexamples", "y")
        run.settle()
        assert run.get("fnopexamples", "y") is None
        (event,) = run.objects("events")
        assert event["message"] == "done: True"


@BOTH_FORMS
@pytest.mark.parametrize(("left", "done"), [(1.5, True), (2.5, None)])
def test_a_stop_lets_handlers_end(
    tmp_path: Path, operator: str, left: float, done: bool | None
) -> None:
    """At most for `settings.queueing.exit_timeout`; their ends are stored."""
    with living(tmp_path, operator) as run:
        run.apply(example("y"))
        run.wait(10 - left)
        run.stop()
        assert run.wait(60)
        assert run.exit is not None
        found = run.get("fnopexamples", "y")
        assert found is not None
        assert found.get("status", {}).get("done") is done
        notes = found["metadata"].get("annotations", {})
        assert ("kopf.zalando.org/slow" in notes) is bool(done)


COUNTING = """
    import asyncio
    import kopf

    @kopf.daemon("fnopexamples", cancellation_timeout=1.0)
    async def polls(stopped, **_):
        while not stopped:
            await asyncio.sleep(5)

    @kopf.timer("fnopexamples", interval=30)
    def counts(status, patch, **_):
        patch.status["ticks"] = status.get("ticks", 0) + 1
    """


def test_a_run_settles_beside_a_daemon_that_polls_and_a_timer(tmp_path: Path) -> None:
    done = checked(tmp_path, COUNTING, "--budget", "4")
    assert done.status == 0, done
    assert "4 schedules of 1 script tried: no property is violated" in done.out


def test_time_alone_explains_what_a_timer_counts(tmp_path: Path) -> None:
    """Each fault costs time, in which the timer ticks: that is no failure."""
    write(tmp_path, f"{tmp_path.name}.py", dedent(COUNTING))
    with checked_operator([str(tmp_path / f"{tmp_path.name}.py")]) as processes:
        case = Case(
            processes.declared(),
            [DEFINITION],
            (Apply(example("x", size=1)),),
            begin=processes.begin,
        )
        trial = Trial(prepared(case)).play()
        aftermath = aftermath_of(trial, Volatile())
        assert aftermath.explains("fnopexamples.fnop.dev/x", "status.ticks")
        assert not aftermath.explains("fnopexamples.fnop.dev/x", "spec.size")


def test_a_daemon_that_waits_for_its_cancellation_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strands, "QUIET_SECONDS", 0.01)
    operator = """
        import asyncio
        import kopf

        @kopf.daemon("fnopexamples", cancellation_timeout=1.0)
        async def listens(**_):
            await asyncio.Event().wait()
        """
    with living(tmp_path, operator) as run:
        run.delete("fnopexamples", "x")
        run.settle()
        assert run.get("fnopexamples", "x") is None


def test_a_handler_that_waits_for_something_outside_ends_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strands, "PATIENCE_SECONDS", 0.05)
    operator = """
        import threading
        import kopf

        @kopf.on.create("fnopexamples")
        def waits(**_):
            threading.Event().wait(5)
        """
    problem = pytest.raises(CheckProblem, match="waits has neither ended nor asked")
    with problem, living(tmp_path, operator):
        pass


def test_clients_of_former_processes_and_watches_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "own_client.py", CLIENT)
    operator = f"""
        import kopf
        from own_client import send

        @kopf.on.create("fnopexamples")
        def reads(patch, **_):
            patch.status["before"] = len(send("GET", "{MAPS}")["items"])
            try:
                send("GET", "{MAPS}?watch=true")
            except Exception as problem:
                patch.status["watch"] = problem.code
        """
    before = os.environ.get("KUBECONFIG"), random.getstate()
    with living(tmp_path, operator) as run:
        assert status_in(run)["watch"] == 405
        config = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
        url = config["clusters"][0]["cluster"]["server"]
        token = config["users"][0]["user"]["token"]
        run.crash()
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{url}{MAPS}", headers=headers)
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(request)
        refused.value.close()
    assert (os.environ.get("KUBECONFIG"), random.getstate()) == before


def test_startup_and_cleanup_handlers_run_in_each_process(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    operator = f"""
        import kopf

        def note(word):
            with open({str(notes)!r}, "a") as file:
                file.write(word + " ")

        @kopf.on.startup(backoff=600)
        def start(retry, **_):
            note("start")
            if not retry:
                raise ValueError("the first attempt fails")

        @kopf.on.cleanup()
        def stop(**_):
            note("stop")

        @kopf.on.create("fnopexamples")
        def made(**_):
            note("made")
        """
    with living(tmp_path, operator) as run:
        run.crash()
        run.settle()
    assert notes.read_text() == "start start made stop start start stop "


def test_sleeps_of_startup_handlers_and_logins_take_no_time(tmp_path: Path) -> None:
    operator = """
        import asyncio
        import time
        import kopf

        @kopf.on.startup()
        def waits(**_):
            time.sleep(600)

        @kopf.on.login()
        async def logs_in(**_):
            await asyncio.sleep(600)

        @kopf.on.create("fnopexamples")
        def made(patch, **_):
            patch.status["made"] = True
        """
    with living(tmp_path, operator) as run:
        assert status_in(run) == {"made": True}
        assert run.clock.elapsed < 600


def test_a_door_does_what_is_asked_in_order() -> None:
    asked: list[int] = []
    found = door.Door()
    for number in range(3):
        found.ask(partial(asked.append, number))
    assert found.serve(lambda: len(asked) == 2)
    assert asked == [0, 1]
    assert not found.serve(lambda: False, 0.01), "nothing comes any longer"
