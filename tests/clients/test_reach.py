"""fnop reaches all that kubectl reaches, as the same user, and nothing else."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from fnop.adapters.kubernetes.client import ConfigurationProblem, connect
from fnop.interpreters.runtime.protocol import ApiRequest, Unreachable
from tests.clients.reach import Case, World, cases, serving, write

VERSION = ApiRequest("GET", "/version")
# If the user is unknown, kubectl prompts at the terminal, and there is none.
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


def config(server: str, user: str = "{token: t}") -> str:
    return f"""\
apiVersion: v1
kind: Config
current-context: one
contexts: [{{name: one, context: {{cluster: one, user: one}}}}]
clusters: [{{name: one, cluster: {{server: "{server}"}}}}]
users: [{{name: one, user: {user}}}]
"""


# Changes of a kubeconfig's text.
TEXTS: Mapping[str, Callable[[str], str]] = {
    "two documents": lambda text: f"{text}---\n{text.replace('one', 'two')}",
    "the first is marked": lambda text: f"--- # one\n{text}",
    "the second is broken": lambda text: f"{text}---\n{{{{{{\n",
    "a tab in the second": lambda text: f"{text}---\n\tb: 1\n",
    "an end": lambda text: f"{text}...\n",
    "words after the end": lambda text: f"{text}...\nwords\n",
    "a second after the end": lambda text: f"{text}...\n---\n{text}",
    "a mark of order in the second": lambda text: f"{text}---\n\ufeff{text}",
    "a mark of order": lambda text: f"\ufeff{text}",
    "a mark of order before a comment": lambda text: f"\ufeff# one\n{text}",
    "lines of Windows": lambda text: f"{text}---\n{text}".replace("\n", "\r\n"),
    "a comment before": lambda text: f"# one\n---\n{text}",
    "a tab before a key": lambda text: f"{text}\tb: 1\n",
    "a tab alone": lambda text: f"{text}\t\n",
    "a tab within": lambda text: text.replace("kind: ", "kind:\t"),
    "a key twice": lambda text: f"{text}current-context: one\n",
    "a key twice, another": lambda text: f"{text}current-context: two\n",
    "an anchor": lambda text: text.replace("{token: t}", "&u {token: t}"),
    "a merge": lambda text: f"x: &u {{token: t}}\n{text}".replace(
        "{token: t}}]", "{<<: *u}}]"
    ),
    "a merge of no mapping": lambda text: text.replace("{token: t}", "{<<: 5}"),
    "no such anchor": lambda text: text.replace("{token: t}", "*u"),
    "a character that is none": lambda text: f"{text}# \x07\n",
    "a null among contexts": lambda text: text.replace("texts: [", "texts: [null, "),
    "two nulls": lambda text: text.replace("texts: [", "texts: [null, null, "),
    "a null among clusters": lambda text: text.replace("ters: [", "ters: [null, "),
    "two users without names": lambda text: text.replace(
        "users: [", "users: [{}, {}, "
    ),
    "a user without a name": lambda text: text.replace("users: [", "users: [{}, "),
    "a number among users": lambda text: text.replace("users: [", "users: [5, "),
    "a number for a name": lambda text: text.replace("users: [", "users: [{name: 5}, "),
    "a number for a context": lambda text: text.replace("context: one", "context: 1"),
    "a user that is null": lambda text: text.replace("{token: t}", "null"),
    "no contexts": lambda text: text.replace("contexts: [", "contexts: null\nx: ["),
}
USERS = (
    *("{token: t, as: ann, as-groups: [null]}", "{token: t, as: a, as-groups: null}"),
    *("{token: t, as: ann, as-groups: [dev, null]}", "{token: null, username: null}"),
    *("{token: t, as: a, as-user-extra: null}", "{token: t, as: a, as-groups: [5]}"),
    "{token: t, as: ann, as-user-extra: {k: null, l: [x, null]}}",
    "{token: t, as: ann, as-user-extra: {k: x}}",
)


@pytest.mark.parametrize("name", TEXTS)
def test_kubectl_and_fnop_read_the_same_text(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXTS[name](config(f"http://127.0.0.1:{world.ports['http']}"))
    case = Case({"text": text}, {}, (name,))
    assert compared(world, case, monkeypatch) == ()


@pytest.mark.parametrize("user", USERS)
def test_kubectl_and_fnop_read_the_same_nulls(
    world: World, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = config(f"http://127.0.0.1:{world.ports['http']}", user)
    case = Case({"text": text}, {}, (user,))
    assert compared(world, case, monkeypatch) == ()
