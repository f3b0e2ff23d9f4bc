"""Acts on the world by code that only decides: refused, permitted, or reported."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.values.errors import NotPure
from fnop.testing import Simulation, matches, plan_of
from tests.commands import Done, fnop as command
from tests.live import COLLECTION, LiveCluster
from tests.patience import patience
from tests.simulations import DEFINITION, ROOT, Scenario, example

KIND = "fnopexamples"
REMEDY = "let fnop.call(function, ...) do it, or declare the handler with impure=True"


def connect(place: Path) -> None:
    with socket.socket() as mine:
        mine.connect(("127.0.0.1", 9))


def datagram(place: Path) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as mine:
        mine.sendto(b"x", ("127.0.0.1", 9))


def bound(place: Path) -> None:
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))


def written_by_descriptor(place: Path) -> None:
    os.close(os.open(place / "new", os.O_CREAT | os.O_WRONLY))


def started(place: Path) -> None:
    threading.Thread(target=(place / "new").touch).start()


def submitted(place: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit((place / "new").touch)


def on_a_loop(place: Path) -> None:
    async def resolved() -> None:
        await asyncio.get_running_loop().getaddrinfo("localhost", 80)

    asyncio.run(resolved())


def stored(place: Path) -> None:
    sqlite3.connect(place / "new").close()


ACTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "connect": (connect, "connects to 127.0.0.1:9"),
    "datagram": (datagram, "sends to 127.0.0.1:9"),
    "bind": (bound, "binds a socket to 127.0.0.1:0"),
    "lookup": (lambda _: socket.getaddrinfo("localhost", 80), "looks up the host loc"),
    "lookup by name": (lambda _: socket.gethostbyname("localhost"), "looks up the ho"),
    "write": (lambda place: (place / "new").write_text("x"), "new for writing"),
    "append": (lambda place: (place / "old").open("a").close(), "old for writing"),
    "update": (lambda place: (place / "old").open("rb+").close(), "old for writing"),
    "by descriptor": (written_by_descriptor, "new for writing"),
    "temporary": (lambda place: tempfile.mkdtemp(dir=place), "makes the folder"),
    "database": (stored, "opens the database"),
    "remove": (lambda place: (place / "old").unlink(), "removes"),
    "rename": (lambda place: (place / "old").rename(place / "new"), "renames"),
    "mkdir": (lambda place: (place / "new").mkdir(), "makes the folder"),
    "rmdir": (lambda place: (place / "sub").rmdir(), "removes the folder"),
    "symlink": (lambda place: (place / "new").symlink_to("old"), "makes a link to"),
    "rights": (lambda place: (place / "old").chmod(0o777), "changes the rights of"),
    "program": (lambda _: subprocess.run(["true"], check=True), "starts the program"),
    "shell": (lambda _: os.system("true"), "starts the command true"),
    "spawn": (lambda _: os.spawnlp(os.P_WAIT, "true", "true"), "forks the process"),
    "signal": (lambda _: os.kill(os.getpid(), signal.SIGCONT), "sends a signal to"),
    "thread": (started, "starts a thread"),
    "pool": (submitted, "starts a thread"),
    "loop": (on_a_loop, "starts a thread"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o600)
    (tmp_path / "sub").mkdir()
    return tmp_path


def looks_of(place: Path) -> list[tuple[str, int]]:
    return sorted((each.name, each.stat().st_mode) for each in place.iterdir())


def simulated(registry: Registry, **options: Any) -> Simulation:
    crds = [DEFINITION, example()]
    return Simulation(registry, crds=crds, **options).settle()


@pytest.mark.parametrize("name", ACTS)
def test_a_handler_that_acts_on_the_world_fails_for_good(
    name: str, place: Path
) -> None:
    act, deed = ACTS[name]
    registry, before = Registry(), looks_of(place)

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        act(place)

    sim = simulated(registry)
    assert len(sim.errors) == 1
    assert sim.errors[0].startswith("create handler created failed for good")
    assert looks_of(place) == before
    failure = plan_of(created, registry=registry).failure
    assert failure is not None
    assert failure.message.endswith(REMEDY)
    assert deed in failure.message
    assert "test_guard.py, line " in failure.message
    assert looks_of(place) == before


@pytest.mark.parametrize("name", ["shell", "write", "lookup", "remove", "loop"])
def test_without_a_guard_it_acts(name: str, place: Path) -> None:
    act, _ = ACTS[name]
    registry, done = Registry(), []

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        act(place)
        done.append(name)

    assert simulated(registry, guard=False).errors == []
    (place / "old").touch()
    assert plan_of(created, registry=registry, guard=False).succeeded
    (place / "old").touch()
    unguarded = Settings(guard=False)
    assert plan_of(created, registry=registry, settings=unguarded).succeeded
    assert len(done) == 3


def test_startup_can_put_the_guard_away(place: Path) -> None:
    registry = Registry()

    @fnop.on.startup(registry=registry)
    def configure(settings: Settings, **_: Any) -> Settings:
        return settings.replace(guard=False)

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        (place / "new").touch()

    assert simulated(registry).errors == []
    assert (place / "new").exists()


# ------------------------------------------------------------ what is let pass


def read(place: Path) -> None:
    assert (place / "old").read_text() == "old"
    assert list(place.iterdir())
    with sqlite3.connect(":memory:") as database:
        database.execute("create table a (b)")
    database.close()


def printed(place: Path) -> None:
    print("seen")
    with Path(os.devnull).open("w") as nothing:
        print("unseen", file=nothing)


def imported(place: Path) -> None:
    """A module that is compiled, and writes a file while it is imported."""
    assert importlib.import_module("lazy_module_of_a_test").DONE


def logged(place: Path) -> None:
    logging.getLogger("operators.own").warning("seen")


def signalled(place: Path) -> None:
    """A signal handler of another library writes a file while the handler runs."""

    def heard(number: int, frame: Any) -> None:
        (place / "heard").touch()

    before = signal.signal(signal.SIGUSR1, heard)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (place / "heard").exists()


def collected(place: Path) -> None:
    """Another library's temporary folder is deleted while the handler runs."""
    gc.collect(0)  # it has just been made


@pytest.mark.parametrize("act", [read, printed, imported, logged, signalled, collected])
def test_what_does_not_act_on_the_world_is_let_pass(
    act: Callable[[Path], None], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()
    # For `imported`: bytecode is written, and so is what the module itself writes.
    name = "lazy_module_of_a_test"
    text = "import pathlib\npathlib.Path(__file__).with_suffix('.txt').touch()\n"
    (place / f"{name}.py").write_text(f"{text}DONE = True\n")
    monkeypatch.syspath_prepend(place)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    # For `logged`: a file that is opened, and one that is truncated, by a line.
    own = logging.getLogger("operators.own")
    rotating = RotatingFileHandler(place / "log", maxBytes=1, backupCount=1, delay=True)
    own.addHandler(rotating)
    # For `collected`.
    cycle: list[Any] = []
    if act is collected:
        temporary = tempfile.NamedTemporaryFile(dir=place)  # noqa: SIM115
        cycle += [cycle, temporary]
        temporary.file.close()  # it is still to be removed
        del temporary
        gc.disable()
        del cycle

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        act(place)

    assert simulated(registry).errors == []
    gc.enable()
    own.removeHandler(rotating)
    rotating.close()
    match act.__name__:
        case "imported":
            assert (place / f"{name}.txt").exists()
            assert list((place / "__pycache__").glob(f"{name}*.pyc"))
        case "logged":
            assert (place / "log").read_text()
        case "collected":
            assert not list(place.glob("tmp*"))
        case _:
            assert looks_of(place)


def test_other_threads_are_not_watched(place: Path) -> None:
    registry = Registry()
    asked, written = threading.Event(), threading.Event()

    def beside() -> None:
        asked.wait(patience(20))
        (place / "new").touch()
        written.set()

    thread = threading.Thread(target=beside)
    thread.start()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        asked.set()
        assert written.wait(patience(20))

    assert simulated(registry).errors == []
    thread.join()
    assert (place / "new").exists()


def test_after_a_step_nothing_is_refused(place: Path) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        (place / "new").touch()

    simulated(registry)
    (place / "new").touch()
    assert (place / "new").exists()


IMPURE = Registry()


@fnop.on.create(KIND, registry=IMPURE, impure=True)
def acts(spec: Any, **_: Any) -> None:
    Path(spec["path"]).touch()


def test_an_impure_handler_acts(place: Path) -> None:
    plan = plan_of(acts, {"spec": {"path": str(place / "new")}}, registry=IMPURE)
    assert plan.succeeded
    assert (place / "new").exists()


# ---------------------------------------------------- errors that are caught


class Swallowing:
    """Handlers that go on as if nothing had been refused."""

    @staticmethod
    def exceptions(place: Path) -> str:
        try:
            (place / "new").touch()
        except Exception:
            return "caught"
        return "done"

    @staticmethod
    def everything(place: Path) -> str:
        try:
            (place / "new").touch()
        except:  # noqa: E722 (as authors write it)
            return "caught"
        return "done"

    @staticmethod
    def another(place: Path) -> str:
        try:
            (place / "new").touch()
        except BaseException as problem:
            raise fnop.TemporaryError("the disk is full") from problem
        return "done"

    @staticmethod
    def finally_(place: Path) -> str:
        try:
            (place / "new").touch()
        finally:
            return "gone on"  # noqa: B012


@pytest.mark.parametrize(
    "act",
    [
        Swallowing.exceptions,
        Swallowing.everything,
        Swallowing.another,
        Swallowing.finally_,
    ],
)
@pytest.mark.parametrize("form", ["plain", "conversation", "generator"])
def test_who_catches_the_error_fails_all_the_same(
    act: Callable[[Path], str], form: str, place: Path
) -> None:
    registry = Registry()
    effect = fnop.patch(status={"reached": "yes"})

    def plain(**_: Any) -> Any:
        return {"found": act(place)}

    async def conversation(**_: Any) -> Any:
        found = act(place)
        await effect
        return {"found": found}

    def generator(**_: Any) -> Any:
        found = act(place)
        yield effect
        return {"found": found}

    forms: dict[str, Any] = {
        "plain": plain,
        "conversation": conversation,
        "generator": generator,
    }
    fnop.on.create(KIND, registry=registry, id="created")(forms[form])
    sim = simulated(registry)
    status = dict(sim["fnopexamples/example-1"].status)
    assert {"reached", "created"}.isdisjoint(status)
    assert [error for error in sim.errors if "failed for good" in error]
    assert len(sim.errors) == 1
    assert not (place / "new").exists()


def test_a_cancelled_conversation_may_not_act_either(place: Path) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def created(**_: Any) -> None:
        try:
            await fnop.sleep(60)
        finally:
            (place / "new").touch()

    sim = Simulation(registry, crds=[DEFINITION, example()]).wait(1)
    sim.delete("fnopexamples/example-1").settle()
    assert not (place / "new").exists()
    assert len([line for line in sim.log if REMEDY in line]) == 1
    assert sim.errors == [], "it was to end anyway"


def test_what_a_cancelled_conversation_catches_is_told_of(place: Path) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def created(**_: Any) -> None:
        try:
            await fnop.sleep(60)
        finally:
            with suppress(BaseException):
                (place / "new").touch()

    sim = Simulation(registry, crds=[DEFINITION, example()]).wait(1)
    sim.delete("fnopexamples/example-1").settle()
    assert not (place / "new").exists()
    (error,) = sim.errors
    assert REMEDY in error


def test_a_refusal_is_told_once_however_long_it_is() -> None:
    """Of a long error the middle is left out."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        Path("a" * 5000).write_text("x")

    (error,) = simulated(registry).errors
    assert "characters left out" in error


# ------------------------------------------------- filters, indices and others


def test_filters_and_indices_are_refused_in_words_of_their_own(place: Path) -> None:
    registry = Registry()

    def is_wanted(**_: Any) -> bool:
        (place / "new").touch()
        return True

    @fnop.on.create(KIND, registry=registry, when=is_wanted)
    def created(**_: Any) -> None: ...

    @fnop.index(KIND, registry=registry, id="indexed")
    def index(name: str, **_: Any) -> Any:
        (place / "other").touch()
        return {name: 1}

    sim = simulated(registry)
    assert len(sim.errors) == 2
    for error, name in zip(sorted(sim.errors), ("is_wanted", "index"), strict=True):
        assert f"{name} changes the times of" in error
        assert "this function only decides: leave it to a handler" in error
    assert {name for name, _ in looks_of(place)} == {"old", "sub"}
    with pytest.raises(NotPure, match="only decides"):
        matches(created, {}, registry=registry)


def test_a_filter_that_catches_the_error_is_told_of() -> None:
    registry = Registry()

    def is_wanted(**_: Any) -> bool:
        try:
            socket.gethostbyname("localhost")
        except BaseException:
            return True
        return True

    @fnop.on.create(KIND, registry=registry, when=is_wanted)
    def created(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle()
    errors = [say for say in run.said if say.level == "error"]
    assert len(errors) == 1
    assert "is_wanted looks up the host localhost" in errors[0].message
    assert run.failures == 1
    with pytest.raises(NotPure, match="only decides"):
        matches(created, {}, registry=registry)


# -------------------------------------------------------------- on a cluster


async def test_on_a_cluster_there_is_one_warning_for_each_handler(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    cluster = LiveCluster()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    cluster.request(fnop_request("POST", path, DEFINITION))
    done = asyncio.Event()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(name: str, **_: Any) -> Any:
        (place / name).touch()
        socket.gethostbyname("localhost")
        return {"found": "it"}

    @fnop.on.event(KIND, registry=registry)
    def spied(status: Any, name: str, **_: Any) -> None:
        if status.get("created") and name == "b":
            done.set()

    for name in ("a", "b"):
        cluster.request(fnop_request("POST", COLLECTION, example(name)))
    with caplog.at_level(logging.WARNING):
        async with fnop.operator(registry=registry, api=cluster):
            async with asyncio.timeout(patience(20)):
                await done.wait()
    told = [record.getMessage() for record in caplog.records]
    assert len([each for each in told if "created " in each]) == 1, told
    assert REMEDY in told[0]
    assert "told once for each handler" in told[0]
    assert (place / "a").exists()
    assert (place / "b").exists()


def fnop_request(method: str, path: str, body: dict[str, Any]) -> Any:
    from fnop.interpreters.runtime.protocol import ApiRequest

    return ApiRequest(method, path, (), body)


# ------------------------------------------------------------------- commands

MAKING = """
import pathlib
import fnop

@fnop.on.create("fnopexamples")
def make(name):
    with pathlib.Path("made.txt").open("a") as file:
        file.write(name)
    return {"made": True}
"""

CALLING = """
import pathlib
import fnop

def made(name):
    pathlib.Path("made.txt").write_text(name)
    return True

@fnop.on.create("fnopexamples")
async def make(name):
    return {"made": await fnop.call(made, name=name)}

@fnop.on.create("fnopexamples", impure=True)
def other(name):
    pathlib.Path("other.txt").write_text(name)
"""


def ran(folder: Path, *options: str, text: str = MAKING) -> Done:
    (folder / "making.py").write_text(text)
    objects = ROOT / "examples" / "01-minimal" / "object.yaml"
    return command("run", "making.py", "--simulate", objects, *options, folder=folder)


def test_a_simulated_run_is_refused(tmp_path: Path) -> None:
    done = ran(tmp_path)
    assert done.status == 1
    assert REMEDY in done.err
    assert not (tmp_path / "made.txt").exists()


def test_a_replay_of_an_operator_that_acts_does_not_act(tmp_path: Path) -> None:
    """The run was one without a guard, as one on a cluster is."""
    done = ran(tmp_path, "--no-guard", "--record", "run.fnop")
    assert (done.status, (tmp_path / "made.txt").read_text()) == (0, "example-1")
    again = command("replay", "run.fnop", "making.py", folder=tmp_path)
    assert again.status == 1
    assert "identical" not in again.out
    deed = "make opens made.txt for writing (making.py, line 7)"
    assert f"refused: {deed}: {REMEDY}" in again.err
    assert (tmp_path / "made.txt").read_text() == "example-1"
    let = command("replay", "--no-guard", "run.fnop", "making.py", folder=tmp_path)
    assert (let.status, (tmp_path / "made.txt").read_text()) == (0, "example-1" * 2)


def test_the_replay_of_a_refusal_is_identical_and_tells_it(tmp_path: Path) -> None:
    assert ran(tmp_path, "--record", "run.fnop").status == 1
    again = command("replay", "run.fnop", "making.py", folder=tmp_path)
    assert (again.status, again.err.count(REMEDY)) == (0, 1)
    assert not (tmp_path / "made.txt").exists()


def test_real_calls_and_impure_handlers_act(tmp_path: Path) -> None:
    done = ran(tmp_path, "--real-calls", text=CALLING)
    assert (done.status, done.err.count("ERROR")) == (0, 0), done.err
    assert (tmp_path / "made.txt").read_text() == "example-1"
    assert (tmp_path / "other.txt").read_text() == "example-1"
