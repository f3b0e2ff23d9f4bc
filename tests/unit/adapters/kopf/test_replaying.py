"""`fnop replay --kopf`, and the options of fnop for programs that start themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.commands.planning import author_loop
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running.handlers import handlers_of
from fnop.adapters.kopf.running.operator import Operator
from fnop.interpreters.recording.format.digests import digests_of
from tests.commands import Done, fnop, manifest, write
from tests.patience import patience
from tests.simulations import DEFINITION, ROOT, example

OPERATOR = """
import os, signal
import kopf

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "my.example.com/finalizer"
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix="my.example.com"
    )

@kopf.index("fnopexamples")
def sizes(name, spec, **_):
    return {name: spec.get("size")}

def is_known(name, sizes, **_):
    return name in sizes

@kopf.on.create("fnopexamples", when=is_known)
async def made(spec, patch, **_):
    patch.fns.append(lambda body: body["metadata"].update(labels={"made": "yes"}))

    @kopf.subhandler(id="one")
    async def one(retry, **_):
        if not retry:
            raise kopf.TemporaryError("not yet", delay=0.01)

        @kopf.subhandler(id="inner")
        def inner(retry, **_):
            if not retry:
                raise kopf.TemporaryError("nor this", delay=0.01)
            return "inner result"

    @kopf.subhandler(id="two")
    def two(**_):
        return {"made": True}

@kopf.on.create("fnopexamples")
def told(body, retry, **_):
    kopf.info(body, reason="Told", message="it is there")
    if retry < 2:
        raise kopf.TemporaryError("again", delay=0.01)

@kopf.on.event("fnopexamples")
def seen(memo, **_):
    memo.seen = True

@kopf.daemon("fnopexamples")
async def waiting(stopped, **_):
    await stopped.wait()

@kopf.timer("fnopexamples", interval=0.05)
def ticking(status, body, **_):
    is_over = "my.example.com/last-handled-configuration" in body.metadata.annotations
    if is_over:
        os.kill(os.getpid(), signal.SIGTERM)
    return len(status)
"""
# Its second handler of changes is called only because of what another one has kept.
KEEPING = """
import os, signal
import kopf

@kopf.on.create("fnopexamples")
def made(memo, patch, **_):
    memo.is_made = True
    patch.spec["size"] = 5

@kopf.on.update("fnopexamples", when=lambda memo, **_: memo.get("is_made", False))
def updated(**_):
    os.kill(os.getpid(), signal.SIGTERM)
"""
PROGRAM = """
import argparse, asyncio, threading
import kopf

def operator(kind, name):
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.persistence.finalizer = f"my.example.com/{name}"
    over = threading.Event()

    @kopf.on.create(kind, id=name, registry=registry)
    def made(memo, patch, **_):
        memo.names.append(name)
        patch.metadata.labels["made-by"] = name

    @kopf.on.event(kind, registry=registry)
    def ends(annotations, **_):
        if "kopf.zalando.org/last-handled-configuration" in annotations:
            over.set()

    return kopf.operator(
        registry=registry, settings=settings, clusterwide=True, standalone=True,
        memo=kopf.Memo(names=[]), stop_flag=over,
    )

async def main(names):
    kinds = {"one": "fnopexamples", "two": "configmaps"}
    await asyncio.gather(*(operator(kinds[name], name) for name in names))

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", default="one,two")
    asyncio.run(main(parser.parse_args().names.split(",")))
"""
SERVED = ("--simulate", "objects.yaml", "--served")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "with_kopf.py", OPERATOR)
    write(tmp_path, "keeping.py", KEEPING)
    write(tmp_path, "program.py", PROGRAM)
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}}
    manifest(tmp_path, "objects.yaml", DEFINITION, example("x", size=1), data)
    return tmp_path


def recorded(folder: Path, file: str = "with_kopf.py") -> None:
    """Record a run of an operator, in `run.fnop`, until it stops itself."""
    given = ("--kopf", file, "--record", "run.fnop", *SERVED)
    done = fnop("run", *given, folder=folder)
    assert done.status == 0, done


def replayed(folder: Path, file: str, *more: str, name: str = "run.fnop") -> Done:
    return fnop("replay", "--kopf", name, file, *more, folder=folder)


def started(
    folder: Path, *given: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that was run by Python to its end."""
    found = subprocess.run(
        [sys.executable, "-P", *given],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONPATH": str(ROOT), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found


# -------------------------------------------------------------------- digests of code


def digest(handler: Any, **options: Any) -> str:
    """The digest of a handler's code, as recordings have it."""
    registry = OperatorRegistry()
    kopf.on.update("fnopexamples", id="made", registry=registry, **options)(handler)
    with author_loop() as loop:
        mine = Operator(registry, kopf.OperatorSettings(), None, loop)
        (found,) = digests_of(handlers_of(mine)).values()
    return found


def one(**_: Any) -> int:
    return 1


def two(**_: Any) -> int:
    return 2


async def three(**_: Any) -> int:
    return 1


def test_digests_are_those_of_the_authors_code() -> None:
    options: list[dict[str, Any]] = [
        {},
        *({"when": each} for each in (one, two)),
        *({"when": kopf.all_([each])} for each in (one, two)),
        *({"labels": {"a": each}} for each in (one, two)),
        *({"field": "spec", "value": each} for each in (one, two)),
    ]
    found = [digest(each, **given) for each in (one, two, three) for given in options]
    assert len({*found}) == len(found)
    assert found == [
        digest(each, **given) for each in (one, two, three) for given in options
    ]


# ------------------------------------------------------------------------- replays


def test_a_recording_of_an_unchanged_operator_has_no_difference(folder: Path) -> None:
    recorded(folder)
    done = replayed(folder, "with_kopf.py")
    assert (done.status, done.err) == (0, ""), done
    assert re.fullmatch(r"identical: \d+ steps\n", done.out)


CHANGES = {
    "a filter": ("return name in sizes", "return name not in sizes"),
    "an id": ("def told(", "def said("),
    "an index": ("return {name: spec", "return {'no': spec"),
    "a role": ('on.create("fnopexamples")', 'on.update("fnopexamples")'),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_operator_decides_differently(folder: Path, what: str) -> None:
    recorded(folder)
    before, after = CHANGES[what]
    assert before in OPERATOR
    write(folder, "with_kopf.py", OPERATOR.replace(before, after))
    done = replayed(folder, "with_kopf.py")
    assert done.status == 1, done
    assert done.out.startswith("different at step ")
    if what == "an id":
        assert "handlers of the recording are missing now: told" in done.err


def test_a_change_of_the_startup_is_not_comparable(folder: Path) -> None:
    recorded(folder)
    changed = OPERATOR.replace("my.example.com/finalizer", "my.example.com/other")
    write(folder, "with_kopf.py", changed)
    done = replayed(folder, "with_kopf.py")
    assert done.status == 4, done
    assert done.out.startswith("cannot be compared at step ")
    assert "depends on what the recording lacks: startup" in done.out


def test_what_handlers_keep_in_their_process_is_not_comparable(folder: Path) -> None:
    recorded(folder, "keeping.py")
    done = replayed(folder, "keeping.py")
    assert done.status == 4, done
    assert "a value that a handler keeps, as in a memo" in done.out
    assert "--shadow" not in done.out


def test_a_filter_cannot_act(folder: Path) -> None:
    acting = "name in sizes and bool(open('touched', 'w'))"
    changed = OPERATOR.replace("name in sizes", acting)
    write(folder, "with_kopf.py", changed)
    recorded(folder)
    (folder / "touched").unlink()
    done = replayed(folder, "with_kopf.py")
    assert done.status == 4, done
    assert "refused: is_known opens touched for writing (with_kopf.py" in done.err
    assert "--no-guard" in done.err
    assert not (folder / "touched").exists()


def test_the_error_names_the_option(folder: Path) -> None:
    recorded(folder)
    done = fnop("replay", "run.fnop", "with_kopf.py", folder=folder)
    assert done.status == 2
    assert "write: fnop replay --kopf run.fnop with_kopf.py" in done.err


@pytest.mark.parametrize("mode", ["--as-test", "--shadow", "--explore", "--from=1"])
@pytest.mark.parametrize("given", [(), ("with_kopf.py",), ("--kopf", "with_kopf.py")])
def test_what_would_call_handlers_again_is_refused(
    folder: Path, mode: str, given: tuple[str, ...]
) -> None:
    if not given and mode != "--as-test":
        return  # these need files in any case
    recorded(folder)
    done = fnop("replay", "run.fnop", *given, mode, folder=folder)
    assert (done.status, done.out) == (2, "")
    assert "to run them again, use fnop check --kopf" in done.err


def test_a_recording_of_another_operator_is_refused(folder: Path) -> None:
    write(folder, "pure.py", "import fnop\n@fnop.on.create('pods')\ndef f(): ...")
    run = ("run", "pure.py", "--simulate", "objects.yaml", "--record", "pure.fnop")
    fnop(*run, folder=folder)
    done = replayed(folder, "pure.py", name="pure.fnop")
    assert done.status == 2
    assert "is not a recording of a Kopf operator: leave out --kopf" in done.err


@pytest.mark.parametrize(
    ("startup", "words"),
    [
        ("raise kopf.PermanentError('no server')", "configure has failed: no server"),
        ("raise ValueError('no server')", "run the replay where it succeeds"),
    ],
)
def test_a_startup_that_fails_is_named(folder: Path, startup: str, words: str) -> None:
    recorded(folder)
    start = "def configure(settings, **_):\n"
    changed = OPERATOR.replace(start, f"{start}    {startup}\n")
    write(folder, "with_kopf.py", changed)
    done = replayed(folder, "with_kopf.py")
    assert (done.status, done.out) == (2, "")
    assert words in done.err


# ------------------------------------------------------------------------ programs

ONE = ("--", "program.py", "--names", "one")


def test_a_program_is_recorded_and_replayed(folder: Path) -> None:
    found = started(folder, "-m", "fnop.kopf", "--record", "run.fnop", *SERVED, *ONE)
    assert "made-by: one" in found.stdout, "the objects are printed at the end"
    done = replayed(folder, "program.py")
    assert (done.status, done.err) == (0, ""), done
    assert done.out.startswith("identical: ")


def test_each_operator_of_a_program_has_a_recording(folder: Path) -> None:
    started(
        folder, "-m", "fnop.kopf", "--record", "run.fnop", *SERVED, "--", "program.py"
    )
    for name in ("run.fnop", "run-2.fnop"):
        done = replayed(folder, "program.py", name=name)
        assert (done.status, done.err) == (0, ""), (name, done)


def test_a_variable_records_an_embedded_operator(folder: Path) -> None:
    program = PROGRAM.replace("import kopf", "from fnop import kopf")
    write(folder, "embedded.py", f"{program}    print('ended')\n")
    start = (
        "import runpy\n"
        "from fnop.adapters.serving.live_cluster import served_here\n"
        "from fnop.adapters.kopf.commands.cli import populate\n"
        "with served_here() as live:\n"
        "    populate(live, ['objects.yaml'])\n"
        "    runpy.run_path('embedded.py', run_name='__main__')\n"
    )
    write(folder, "start.py", start)
    found = started(folder, "start.py", variables={"KOPF_RUN_RECORD": "run.fnop"})
    assert "ended" in found.stdout
    for name in ("run.fnop", "run-2.fnop"):
        assert replayed(folder, "embedded.py", name=name).status == 0


def test_operators_of_a_program_cannot_share_an_endpoint(folder: Path) -> None:
    given = ("--metrics", "http://127.0.0.1:0", *SERVED, "--", "program.py")
    found = subprocess.run(
        [sys.executable, "-P", "-m", "fnop.kopf", *given],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert found.returncode == 1
    assert "another operator of this program serves metrics at" in found.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--served", "--", "program.py"), "--served needs --simulate"),
        (("--for", "1s", "program.py"), "--for needs --served"),
        (("--record", "no/such/folder/x", *ONE), "cannot write the recording"),
        (("--record", "x.fnop"), "usage: python -m fnop.kopf"),
    ],
)
def test_a_wrong_call_of_a_program(
    folder: Path, given: tuple[str, ...], words: str
) -> None:
    found = subprocess.run(
        [sys.executable, "-P", "-m", "fnop.kopf", *given],
        cwd=folder,
        env={
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "KUBECONFIG": str(folder / "none"),
        },
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert found.returncode in (1, 2)
    assert words in found.stderr
    assert "Traceback" not in found.stderr
