"""Whatever kubectl reaches, fnop reaches, as the same user: and nothing else."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fnop.adapters.kubernetes import ConfigurationProblem, connect
from fnop.interpreters.protocol import ApiRequest, Unreachable
from tests.clients.reach import Case, World, cases, serving, write

VERSION = ApiRequest("GET", "/version")
# Where nothing tells who one is, kubectl asks at the terminal, and there is none.
_ASKS = "error: EOF"
_OF_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl is installed, with which fnop is compared")
    with serving(tmp_path_factory.mktemp("reach")) as found:
        yield found


def kubectl() -> str:
    """The command itself: one distribution has another in front of several of them."""
    found = Path(shutil.which("kubectl") or "").resolve()
    several = sorted(found.parent.glob("kubectl.1.[0-9][0-9]"))
    return str(several[-1] if several else found)


def by_kubectl(environment: Mapping[str, str]) -> tuple[bool, str]:
    command = [kubectl(), "get", "--raw", "/version"]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0, done.stderr.strip()


async def by_fnop() -> tuple[bool, str]:
    try:
        api = await connect(kubeconfig=None, context=None)
    except ConfigurationProblem as problem:
        return False, str(problem)
    try:
        status = (await api.send(VERSION)).status
        return status == 200, f"HTTP {status}"
    except Unreachable as problem:
        return False, str(problem)
    finally:
        await api.close()


def compared(
    world: World, case: Case, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """The differences, and the two sentences."""
    kept = {"PATH": os.environ["PATH"], "HOME": str(world.folder / "home")}
    environment = {**kept, **case.environment, "KUBECONFIG": write(world, case)}
    with monkeypatch.context() as patch:
        for name in _OF_PROXIES:
            for each in (name, name.upper()):
                patch.delenv(each, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        theirs, their_text = by_kubectl(environment)
        they = world.seen()
        ours, our_text = asyncio.run(by_fnop())
        we = world.seen()
    assert ours or our_text, "a failure has a sentence"
    if their_text == _ASKS:
        return ()
    assert "\n" not in our_text
    if theirs != ours or (ours and they != we):
        return (*case.told, f"{theirs} {they} {their_text}", f"{ours} {we} {our_text}")
    return ()


@pytest.mark.parametrize(
    ("count", "seed"),
    [(40, 1), pytest.param(400, 2, marks=pytest.mark.long)],
    ids=["some", "many"],
)
def test_kubectl_and_fnop_reach_the_same_as_the_same(
    world: World, count: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [compared(world, each, monkeypatch) for each in cases(world, count, seed)]
    assert [each for each in found if each] == []
