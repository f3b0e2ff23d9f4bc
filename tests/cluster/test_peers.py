"""Several operators of the same objects on a real API server, a Kopf one among them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.envtest import ApiServer, dying_with_us, end
from tests.cluster.operating import User
from tests.patience import eventually
from tests.simulations import ROOT, example

OPERATOR = """
import {name} as framework

@framework.on.create("fnopexamples"{options})
@framework.on.update("fnopexamples"{options})
def handle(name, spec, logger, **_):
    logger.info("handled %s %s", name, spec.get("size"))
"""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Rival:
    """One operator as a process, with its log."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*dying_with_us(), *command],
                cwd=ROOT,
                env=env,
                stdout=output,
                stderr=output,
            )

    @property
    def text(self) -> str:
        return self.log.read_text()

    def says(self, *words: str) -> bool:
        return any(
            all(word in line for word in words) for line in self.text.splitlines()
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


class Stage:
    """Starts operators in one namespace, and waits for what they say."""

    def __init__(self, api: ApiServer, namespace: str, folder: Path) -> None:
        self.user = User(api, namespace)
        self._api, self._folder = api, folder
        self._exits = ExitStack()

    def fnop(self, name: str, *options: str) -> Rival:
        file = self._file(name, "fnop", "")
        command = [sys.executable, "-m", "fnop", "run", str(file)]
        where = ["--kubeconfig", str(self._api.kubeconfig)]
        return self._start(name, [*command, *where, *options])

    def kopf(self, name: str, *options: str) -> Rival:
        file = self._file(name, "kopf", "")
        command = [sys.executable, "-m", "kopf", "run", str(file)]
        return self._start(name, [*command, *options])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        where = ["--kubeconfig", str(self._api.kubeconfig)]
        command = [sys.executable, "-m", "fnop", *words, *where]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        )

    def close(self) -> None:
        self._exits.close()

    def _file(self, name: str, framework: str, options: str) -> Path:
        file = self._folder / f"{name}_operator.py"
        file.write_text(OPERATOR.format(name=framework, options=options))
        return file

    def _start(self, name: str, command: list[str]) -> Rival:
        env = {
            "KUBECONFIG": str(self._api.kubeconfig),
            "HOME": str(self._folder),
            "POD_ID": name,
        }
        log = self._folder / f"{name}.log"
        rival = Rival([*command, "-n", self.user.namespace], log, env)
        self._exits.callback(end, rival.process)
        return rival


@contextmanager
def staged(api: ApiServer, namespace: str, folder: Path) -> Iterator[Stage]:
    stage = Stage(api, namespace, folder)
    stage.user.define()
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture
def stage(apiserver: ApiServer, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    with staged(apiserver, namespace, tmp_path) as found:
        yield found


def says(rival: Rival, *words: str) -> None:
    eventually(lambda: rival.says(*words), otherwise=lambda: rival.text)


@pytest.fixture
def peering(apiserver: ApiServer, namespace: str) -> str:
    """A peering object of fnop's own kind in the namespace; its path."""
    text = (ROOT / "examples" / "06-peering" / "peering.yaml").read_text()
    for manifest in yaml.safe_load_all(text):
        status, answer = apiserver.raw("POST", DEFINITIONS, manifest)
        assert status in (201, 409), answer
    thing = {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopPeering",
        "metadata": {"name": "default"},
    }
    return made(
        apiserver, f"/apis/fnop.dev/v1/namespaces/{namespace}/fnoppeerings", thing
    )


def made(api: ApiServer, path: str, thing: dict[str, Any]) -> str:
    eventually(lambda: api.raw("POST", path, thing)[0] in (201, 409))
    return f"{path}/{thing['metadata']['name']}"


def test_the_higher_priority_serves_until_it_is_gone(
    stage: Stage, peering: str, apiserver: ApiServer
) -> None:
    low = stage.fnop("low", "--priority", "1")
    stage.user.create(example("a", size=1))
    says(low, "handled a 1")
    high = stage.fnop("high", "--priority", "10")
    says(low, "frozen", "high")
    stage.user.create(example("b", size=1))
    says(high, "handled b 1")
    middle = stage.fnop("middle", "--priority", "5")
    says(middle, "frozen", "high")
    end(high.process)
    stage.user.edit("fnopexamples", "a", {"spec": {"size": 2}})
    says(middle, "handled a 2")
    assert not low.says("handled b")
    assert not low.says("handled a 2")
    end(middle.process)
    stage.user.edit("fnopexamples", "a", {"spec": {"size": 3}})
    says(low, "handled a 3")
    assert not low.says("handled a 2"), "others have handled it"
    end(low.process)
    found = apiserver.raw("GET", peering)[1]
    assert not found.get("status"), "who leaves takes its record away"


def test_equal_priorities_freeze_all_and_a_person_freezes_anybody(
    stage: Stage, peering: str
) -> None:
    one, two = stage.fnop("one"), stage.fnop("two")
    says(one, "frozen", "two", "--priority")
    says(two, "frozen", "one", "--priority")
    end(two.process)
    stage.user.create(example("a", size=1))
    says(one, "handled a 1")
    done = stage.run("freeze", "-n", stage.user.namespace, "-m", "upkeep")
    assert (done.returncode, done.stderr) == (0, "")
    says(one, "frozen", "upkeep")
    stage.user.create(example("b", size=1))
    done = stage.run("resume", "-n", stage.user.namespace)
    assert (done.returncode, done.stderr) == (0, "")
    says(one, "handled b 1")


def test_a_killed_operator_is_overcome(stage: Stage, peering: str) -> None:
    low = stage.fnop("low")
    says(low, "serving fnopexamples")
    high = stage.fnop("high", "--priority", "10", "--peering-lifetime", "10")
    says(low, "frozen", "high")
    high.process.kill()
    high.process.wait()
    stage.user.create(example("a", size=1))
    says(low, "handled a 1")  # within the lifetime of the dead one's record


def test_a_kopf_operator_is_a_peer(
    stage: Stage, apiserver: ApiServer, namespace: str
) -> None:
    pytest.importorskip("kopf")
    text = (ROOT / "examples" / "06-peering" / "peering.yaml").read_text()
    text = text.replace("fnop.dev", "kopf.dev").replace("FnopP", "KopfP")
    for manifest in yaml.safe_load_all(text.replace("fnopp", "kopfp")):
        status, answer = apiserver.raw("POST", DEFINITIONS, manifest)
        assert status in (201, 409), answer
    thing = {
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfPeering",
        "metadata": {"name": "default"},
    }
    made(apiserver, f"/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings", thing)
    kopf = stage.kopf("kopf", "--priority", "5")
    stage.user.create(example("a", size=1))
    says(kopf, "handled a 1")
    low = stage.fnop("low", "--priority", "1")
    says(low, "frozen", "kopf")
    high = stage.fnop("high", "--priority", "10")
    says(kopf, "Freezing" if kopf.says("Freezing") else "ausing")
    stage.user.create(example("b", size=1))
    says(high, "handled b 1")
    assert not kopf.says("handled b")
    end(high.process)
    stage.user.create(example("c", size=1))
    says(kopf, "handled c 1")
    end(kopf.process)
    stage.user.create(example("d", size=1))
    says(low, "handled d 1")


def test_of_several_replicas_one_serves(
    stage: Stage, apiserver: ApiServer, namespace: str
) -> None:
    replicas = [
        stage.fnop(f"replica-{number}", "--standalone", "--leader-elect")
        for number in range(3)
    ]
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/fnop-default"

    def holder() -> str:
        status, lease = apiserver.raw("GET", path)
        identity = lease["spec"].get("holderIdentity") if status == 200 else ""
        return str(identity or "").partition("_")[0]

    stage.user.create(example("a", size=1))
    eventually(lambda: sum(each.says("handled a 1") for each in replicas) == 1)
    leader = next(each for each in replicas if each.says("handled a 1"))
    assert leader.log.stem == holder()
    end(leader.process)
    others = [each for each in replicas if each is not leader]
    stage.user.create(example("b", size=1))
    eventually(lambda: any(each.says("handled b 1") for each in others))
    heir = next(each for each in others if each.says("handled b 1"))
    assert not heir.says("handled a"), "the first one has handled it"
    # Until its state is written, a crash repeats the handler.
    eventually(lambda: "fnop.dev/default" in str(stage.user.get("fnopexamples", "b")))
    heir.process.kill()
    heir.process.wait()
    stage.user.create(example("c", size=1))
    last = next(each for each in others if each is not heir)
    says(last, "handled c 1")
    assert not last.says("handled b")
