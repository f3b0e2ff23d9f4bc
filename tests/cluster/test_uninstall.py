"""An operator is gone, and nothing waits for it: on a real API server."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fnop.interpreters.runtime.reading import PAGE_LIMIT
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.commands import fnop
from tests.patience import eventually
from tests.simulations import example

MARKER = "fnop.dev/default"
OPERATOR = """
import fnop


@fnop.on.create("fnopexamples")
def create(spec, name, **_):
    if spec.get("bad"):
        raise fnop.PermanentError("never")
    return {"made": name}


@fnop.on.create("configmaps", labels={"mine": "yes"})
def labelled(**_): ...


@fnop.on.delete("fnopexamples")
def delete(**_):
    raise fnop.TemporaryError("not yet", delay=3600)
"""
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "map", "labels": {"mine": "yes"}},
}


def test_what_hangs_goes_and_what_stays_is_clean(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    file = tmp_path / "operator.py"
    file.write_text(OPERATOR)
    with operating(file, apiserver, namespace, tmp_path) as operator:
        operator.start()
        user.create(CONFIG_MAP)
        for name, spec in (("kept", {}), ("bad", {"bad": True}), ("leaving", {})):
            user.create(example(name, **spec))
        for kind, name in (
            *(("fnopexamples", each) for each in ("kept", "bad", "leaving")),
            ("configmaps", "map"),
        ):
            eventually(
                partial(has_state, user, kind, name),
                otherwise=operator.log.read_text,
            )
        assert operator.stop() == 0, operator.lines
    user.delete("fnopexamples", "leaving")
    assert user.get("fnopexamples", "leaving") is not None

    def uninstall(*options: str) -> tuple[int, str, str]:
        done = fnop(
            *("uninstall", "operator.py", "-n", namespace, *options),
            *("--kubeconfig", apiserver.kubeconfig),
            folder=tmp_path,
        )
        return done.status, done.out, done.err

    counted = uninstall("--dry-run")
    assert counted[0] == 0, counted
    assert (
        "3 of 3 objects carry marks: 3 finalizers, 3 states, 1 condition"
        in (counted[1])
    )
    assert user.get("fnopexamples", "leaving") is not None
    # No user can answer yes.
    assert uninstall()[0] == 1
    assert user.get("fnopexamples", "leaving") is not None

    done = uninstall("--yes")
    assert done[0] == 0, done
    assert done[2] == ""
    eventually(lambda: user.get("fnopexamples", "leaving") is None)
    kept, bad = user.get("fnopexamples", "kept"), user.get("fnopexamples", "bad")
    assert kept is not None
    assert bad is not None
    assert kept["status"] == {"create": {"made": "kept"}}
    assert bad["status"] == {"conditions": []}
    assert kept["spec"] == {}
    for kind, name in (("fnopexamples", "kept"), ("configmaps", "map")):
        found = user.get(kind, name)
        assert found is not None
        assert "finalizers" not in found["metadata"]
        assert MARKER not in found["metadata"].get("annotations", {})
    user.delete("fnopexamples", "kept")
    eventually(lambda: user.get("fnopexamples", "kept") is None)


def has_state(user: User, kind: str, name: str) -> bool:
    found = user.get(kind, name) or {}
    annotations = found.get("metadata", {}).get("annotations", {})
    return MARKER in annotations or MARKER in found.get("status", {})


def test_a_user_without_rights_is_told_so(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    User(apiserver, namespace).define()
    (tmp_path / "operator.py").write_text(OPERATOR)
    done = fnop(
        *("uninstall", "operator.py", "-n", namespace, "--yes"),
        *("--kubeconfig", apiserver.nobody_kubeconfig),
        folder=tmp_path,
    )
    assert done.status == 1, done
    assert "configmaps cannot be listed: " in done.err
    assert "fnopexamples.fnop.dev cannot be listed: " in done.err
    assert "Traceback" not in done.err


def test_more_objects_than_a_page(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    count = PAGE_LIMIT + 20
    user = User(apiserver, namespace)
    user.define()
    (tmp_path / "operator.py").write_text(OPERATOR)
    for number in range(count):
        found = example(f"example-{number}")
        found["metadata"]["finalizers"] = [MARKER]
        user.create(found)
    done = fnop(
        *("uninstall", "operator.py", "-n", namespace, "--yes"),
        *("--kubeconfig", apiserver.kubeconfig),
        folder=tmp_path,
    )
    assert done.status == 0, done
    assert f"taken off {count} objects" in done.out
    assert f"{PAGE_LIMIT} of {count}" in done.err
    assert all("finalizers" not in x["metadata"] for x in user.objects("fnopexamples"))
