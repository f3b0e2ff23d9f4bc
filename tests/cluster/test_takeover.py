"""A Kopf operator's live objects go over to its successor, on a real API server."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer, dying_with_us, end
from tests.cluster.operating import User, operating
from tests.patience import eventually
from tests.simulations import example

HANDLERS = """
@{name}.on.create("fnopexamples")
def create(name, logger, **_):
    logger.info("created %s", name)


@{name}.on.resume("fnopexamples")
def resume(name, logger, **_):
    logger.info("resumed %s", name)


@{name}.on.update("fnopexamples")
def update(name, old, new, logger, **_):
    logger.info("updated %s: %s -> %s", name, old["spec"], new["spec"])


@{name}.on.delete("fnopexamples")
def delete(name, logger, **_):
    logger.info("deleted %s", name)
"""
TAKING_OVER = """
import fnop


@fnop.on.startup()
def configure(settings):
    return settings.replace(takes_over="kopf.zalando.org")
"""
LAST = "kopf.zalando.org/last-handled-configuration"


def test_nothing_is_created_twice_and_nothing_hangs(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    pytest.importorskip("kopf")
    user = User(apiserver, namespace)
    user.define()
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text("import kopf\n" + HANDLERS.format(name="kopf"))
    new.write_text(TAKING_OVER + HANDLERS.format(name="fnop"))
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", str(old), "--standalone"]
    with log.open("wb") as output:
        kopf = subprocess.Popen(
            [*dying_with_us(), *command, "-n", namespace],
            env={"KUBECONFIG": str(apiserver.kubeconfig), "HOME": str(tmp_path)},
            stdout=output,
            stderr=output,
        )
    try:
        for name in ("kept", "leaving"):
            user.create(example(name, size=1))
            eventually(partial(is_handled, user, name), otherwise=log.read_text)
    finally:
        end(kopf)
    user.delete("fnopexamples", "leaving")
    with operating(new, apiserver, namespace, tmp_path) as operator:
        operator.start()

        def said(line: str) -> bool:
            return any(line in each for each in operator.lines)

        for line in ("resumed kept", "deleted leaving"):
            eventually(partial(said, line), otherwise=operator.log.read_text)
        eventually(lambda: user.get("fnopexamples", "leaving") is None)
        user.edit("fnopexamples", "kept", {"spec": {"size": 2}})
        update = "updated kept: {'size': 1} -> {'size': 2}"
        eventually(partial(said, update), otherwise=operator.log.read_text)
        assert not said("created")
        kept = user.get("fnopexamples", "kept")
        assert kept is not None
        assert kept["metadata"]["finalizers"] == ["fnop.dev/default"]


def is_handled(user: User, name: str) -> bool:
    found = user.get("fnopexamples", name)
    return found is not None and LAST in found["metadata"].get("annotations", {})
