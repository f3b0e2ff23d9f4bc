"""Authors that mean harm, on the real API server."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, assert_replays, operating
from tests.patience import eventually
from tests.simulations import example

KIND = "fnopexamples"
MARK = "fnop.dev/default"
FORGED = "\n[2026-01-01 00:00:00,000] fnop [INFO] \x1b[31mforged\u202e"
OPERATOR = """
import fnop


@fnop.on.startup()
def configure(settings, **_):
    return settings.replace(storage=fnop.AnnotationStorage())


@fnop.on.create("fnopexamples", errors=fnop.ErrorsMode.PERMANENT)
async def removes(spec, **_):
    await fnop.delete("configmaps", name=spec["ref"])


@fnop.on.create("fnopexamples")
def tells(spec, logger, **_):
    logger.info("told: " + spec["text"])
    return fnop.patch(status={"told": True})


@fnop.on.update("fnopexamples")
def updates(logger, **_):
    logger.info("an update")


@fnop.on.create("roles")
def marks(**_):
    return fnop.patch(labels={"seen": "yes"})
"""


def test_what_authors_write_hurts_their_own_objects_alone(
    apiserver: ApiServer,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys, file = tmp_path / "keys", tmp_path / "operator.py"
    keys.write_text("k" * 32)
    file.write_text(OPERATOR)
    monkeypatch.setenv("FNOP_RUN_STATE_KEY_FILE", str(keys))
    user = User(apiserver, namespace)
    user.define()
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"
    name = "my role? #1"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
    }
    assert apiserver.raw("POST", roles, role)[0] == 201

    with operating(file, apiserver, namespace, tmp_path) as operator:

        def state() -> str:
            found = user.get(KIND, "shared") or {"metadata": {}}
            return str((found["metadata"].get("annotations") or {}).get(MARK, ""))

        def logs() -> str:
            return "\n".join([*operator.lines, state()])

        def told(line: str) -> bool:
            return any(line in each for each in operator.lines)

        def marked() -> bool:
            _, found = apiserver.raw("GET", f"{roles}/{quote(name)}")
            return (found["metadata"].get("labels") or {}) == {"seen": "yes"}

        operator.start(record=True)
        user.create(example("shared", ref="../secrets/x", text=FORGED))
        eventually(partial(told, "removes failed for good"), otherwise=logs)
        eventually(lambda: '"seen"' in state(), otherwise=logs)
        eventually(marked, otherwise=logs)
        assert told("cannot be a name")
        assert told(
            r"told: \n[2026-01-01 00:00:00,000] fnop [INFO] \x1b[31mforged\u202e"
        )
        assert not any(each.startswith("[2026-01-01") for each in operator.lines)
        assert operator.stop() == 0, logs()

        # A state that says that something else has been handled.
        found = json.loads(state())
        found["seen"] = {name: "1:0000" for name in found["seen"]}
        forged = json.dumps(found, separators=(",", ":"), sort_keys=True)
        user.edit(KIND, "shared", {"metadata": {"annotations": {MARK: forged}}})
        operator.start(record=True)
        eventually(partial(told, "no key of this operator has signed"), otherwise=logs)
        user.edit(KIND, "shared", {"spec": {"ref": "other"}})
        eventually(partial(told, "an update"), otherwise=logs)
        assert operator.stop() == 0, logs()
        assert sum("an update" in each for each in operator.lines) == 1, logs()
        assert state() == forged
    assert_replays(operator.recordings[0], file)
