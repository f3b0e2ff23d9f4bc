"""Lines of logs in recordings: shown, decided again, and repeated in the shadow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import fnop
from tests.simulations import ROOT

OPERATOR = """
import fnop


@fnop.on.log("pods", regex=r"loss=(\\d+)", since="start", multiline=True)
def loss(match, line, container, time, name, **_):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return fnop.apply({**manifest, "data": {"loss": match[1], "by": container}})
"""

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: train
  annotations:
    simulated.fnop.dev/log: "epoch 1\\nloss=7 of it\\ntoken s3cr3tT0kenThatIsLong42"
spec:
  containers:
  - {name: main, image: train}
"""

SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {token: s3cr3tT0kenThatIsLong42}
"""

WATCHER = """
import fnop


@fnop.on.event("secrets")
def seen(**_): ...


@fnop.on.log("pods", regex="token", since="start")
def told(line, **_):
    return fnop.event("Told", line)
"""


def run(*arguments: str) -> str:
    done = fnop(*arguments, folder=ROOT)
    assert done.status == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of two operators, and their code."""
    found = tmp_path_factory.mktemp("logs")
    (found / "operator.py").write_text(OPERATOR)
    (found / "watcher.py").write_text(WATCHER)
    (found / "other.py").write_text(OPERATOR.replace('{"loss": match[1]', '{"l": line'))
    (found / "objects.yaml").write_text(f"{SECRET}---{POD}")
    for name in ("operator", "watcher"):
        run(
            *("run", str(found / f"{name}.py"), "--for", "10s"),
            *("--simulate", str(found / "objects.yaml")),
            *("--record", str(found / f"{name}.fnop")),
        )
    return found


def test_lines_are_handled_again(folder: Path) -> None:
    told = run("replay", str(folder / "operator.fnop"), str(folder / "operator.py"))
    assert "identical" in told


def test_the_story_tells_the_line(folder: Path) -> None:
    told = run("replay", str(folder / "operator.fnop"))
    assert "loss is called for a line of main: loss=7 of it" in told


def test_another_version_is_asked_about_the_lines(folder: Path) -> None:
    told = run(
        *("replay", str(folder / "operator.fnop")),
        *(str(folder / "other.py"), "--shadow"),
    )
    assert "1 of 1 recorded decisions changes" in told
    assert 'plan[0].manifest.data.l: nothing -> "loss=7 of it"' in told


def test_each_step_tells_what_it_has_read(folder: Path) -> None:
    page = folder / "page.html"
    run("replay", str(folder / "operator.fnop"), "--html", str(page))
    run("replay", str(folder / "operator.fnop"), "--changes-only")
    assert page.stat().st_size > 10_000


def test_a_secret_in_a_line_is_a_token(folder: Path) -> None:
    """A decision with a secret cannot be repeated, and is not reported as changed."""
    told = run("replay", str(folder / "watcher.fnop"))
    assert "s3cr3tT0kenThatIsLong42" not in told
    assert "token redacted-" in told
    told = run(
        *("replay", str(folder / "watcher.fnop")),
        *(str(folder / "watcher.py"), "--shadow"),
    )
    assert "0 of" in told
    assert "its line is not in the recording as it was" in told
