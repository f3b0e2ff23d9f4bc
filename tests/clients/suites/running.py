"""Run one suite's pytest against one server, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from tests.clients.suites.catalogue import Suite
from tests.clients.suites.comparing import Outcome, outcomes_of
from tests.cluster.envtest import dying_with_us

__all__ = ["named_kubeconfig", "run"]

FIXTURES = Path(__file__).with_name("fixtures")
# What the suites may see of our environment: nothing that leads to another cluster.
KEPT = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE")


def named_kubeconfig(given: str, name: str) -> str:
    """A kubeconfig with one context, cluster and user, all of this name.

    >>> made = named_kubeconfig('''
    ... current-context: a
    ... contexts: [{name: a, context: {cluster: b, user: c, namespace: d}}]
    ... clusters: [{name: b, cluster: {server: "https://127.0.0.1:1"}}]
    ... users: [{name: c, user: {token: t}}]''', "kind")
    >>> json.loads(made)["contexts"]
    [{'name': 'kind', 'context': {'cluster': 'kind', 'user': 'kind'}}]
    """
    config = yaml.safe_load(given)

    def part(kind: str, wanted: str) -> Mapping[str, object]:
        (found,) = (e[kind] for e in config[f"{kind}s"] if e["name"] == wanted)
        return found  # type: ignore[no-any-return]

    context = part("context", config["current-context"])
    cluster = part("cluster", str(context["cluster"]))
    user = part("user", str(context["user"]))
    one = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user}],
    }
    return json.dumps(one, indent=1)  # JSON is YAML


def run(
    suite: Suite,
    source: Path,
    python: Path,
    kubeconfig: Path,
    folder: Path,
    patterns: Iterable[str],
) -> dict[str, Outcome]:
    """Each test's outcome by node id; what the suite prints is in `output.txt`.

    What fits one of the patterns does not run.
    The suite is ended when its time is over; the tests that have not run by then
    are not among the outcomes.
    """
    folder.mkdir(parents=True)
    left_out, told = folder / "left_out.json", folder / "outcomes.jsonl"
    left_out.write_text(json.dumps([*patterns]))
    told.touch()
    own = folder / "kubeconfig"
    own.write_text(named_kubeconfig(kubeconfig.read_text(), suite.context))
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    environment = {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "KUBECONFIG": str(own),
        "PYTHONPATH": os.pathsep.join(map(str, (FIXTURES, *suite.paths(source)))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SUITE_LEFT_OUT": str(left_out),
        "SUITE_OUTCOMES": str(told),
    }
    command = [*dying_with_us(), str(python), "-m", "pytest", *arguments(suite, source)]
    with (folder / "output.txt").open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=source / suite.within,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            child.wait(suite.seconds)
        except subprocess.TimeoutExpired:
            output.write(f"\nnot done in {suite.seconds} s\n".encode())
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    return outcomes_of(told.read_text().splitlines())


def arguments(suite: Suite, source: Path) -> list[str]:
    """Of pytest: what the suite configures counts, and nothing above its folder."""
    plugins = ("running_a_suite", *suite.plugins)
    found = source / "pyproject.toml"
    config = found if found.exists() else FIXTURES / "plain.ini"
    return [
        *("-c", str(config), "--rootdir", str(source / suite.within)),
        *(word for plugin in plugins for word in ("-p", plugin)),
        *("-p", "no:cacheprovider", "-o", "addopts=", "-o", "reruns=0", "-q"),
        *("-o", f"timeout={suite.test_seconds}", "--tb=short"),
        *suite.arguments,
    ]
