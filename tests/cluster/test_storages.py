"""Two operators on one kind, each with its state in a place of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator, User, operating
from tests.commands import fnop
from tests.patience import eventually
from tests.simulations import example

KIND = "fnopexamples"
OPERATOR = """
import fnop


@fnop.on.startup()
def configure(settings, **_):
    return settings.replace(operator={name!r}, {settings})


@fnop.on.create("fnopexamples", id="{name}-create")
def create(logger, **_):
    logger.info("{name} creates")
    return "created"


@fnop.on.update("fnopexamples", id="{name}-update")
def update(diff, logger, **_):
    fields = [".".join(each.field) for each in diff]
    logger.info("{name} updates " + " ".join(fields))
    return "updated"


@fnop.on.resume("fnopexamples", id="{name}-resume")
def resume(logger, **_):
    logger.info("{name} resumes")
"""
BY_PREFIX = 'storage=fnop.AnnotationStorage("example.com")'
BY_FIELD = 'storage=fnop.StatusStorage("status.example.state")'
MOVED = (
    'storage=fnop.StatusStorage("status.other.state"), '
    'former_storages=(fnop.AnnotationStorage("example.com"),)'
)


def said(operator: Operator, line: str) -> int:
    return sum(line in each for each in operator.lines)


def places(user: User) -> dict[str, Any]:
    found = user.get(KIND, "shared")
    assert found is not None
    status = found.get("status") or {}
    annotations = found["metadata"].get("annotations") or {}
    texts = {
        "annotation": annotations.get("example.com/one"),
        "other": (status.get("other") or {}).get("state"),
        "example": (status.get("example") or {}).get("state"),
    }
    return {name: text for name, text in texts.items() if text}


def test_two_operators_keep_their_states_apart_and_one_moves(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    folders = {name: tmp_path / name for name in ("one", "two")}
    files = {}
    for name, settings in (("one", BY_PREFIX), ("two", BY_FIELD)):
        folders[name].mkdir()
        files[name] = folders[name] / "operator.py"
        files[name].write_text(OPERATOR.format(name=name, settings=settings))
    with (
        operating(files["one"], apiserver, namespace, folders["one"]) as one,
        operating(files["two"], apiserver, namespace, folders["two"]) as two,
    ):
        both = {"one": one, "two": two}

        def everywhere(what: str) -> bool:
            return all(said(each, f"{name} {what}") for name, each in both.items())

        def logs() -> str:
            return "\n".join([*one.lines, *two.lines, str(places(user))])

        one.start()
        two.start()
        user.create(example("shared", size=1))
        eventually(partial(everywhere, "creates"), otherwise=logs)
        eventually(lambda: set(places(user)) == {"annotation", "example"})
        user.edit(KIND, "shared", {"spec": {"size": 2}})
        eventually(partial(everywhere, "updates spec.size"), otherwise=logs)
        # One moves, and resumes what it had handled.
        assert one.stop() == 0
        files["one"].write_text(OPERATOR.format(name="one", settings=MOVED))
        one.start()
        eventually(lambda: said(one, "one resumes"), otherwise=logs)
        assert set(places(user)) == {"annotation", "example"}
        user.edit(KIND, "shared", {"spec": {"size": 3}})
        eventually(lambda: set(places(user)) == {"other", "example"}, otherwise=logs)
        eventually(lambda: said(two, "two updates") == 2, otherwise=logs)
        assert (one.stop(), two.stop()) == (0, 0), logs()
        for name, each in both.items():
            assert said(each, f"{name} creates") == 1, logs()
            assert said(each, f"{name} updates") == 2, logs()

    def uninstall(name: str) -> str:
        done = fnop(
            *("uninstall", "operator.py", "-n", namespace, "--yes"),
            *("--kubeconfig", apiserver.kubeconfig),
            folder=folders[name],
        )
        assert done.status == 0, done
        return done.out

    assert "1 of 1 object carries marks: 1 state" in uninstall("one")
    assert set(places(user)) == {"example"}
    uninstall("two")
    assert places(user) == {}
