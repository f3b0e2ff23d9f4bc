"""The output of `fnop explain` about an operator's objects: simulated and real.

The operator runs as a process of its own; the command reads its objects from outside.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from click.testing import CliRunner

from fnop.adapters.cli.main import main
from tests.cluster.operating import Operator
from tests.commands import fnop
from tests.patience import eventually

__all__ = ["OPERATOR", "User", "play"]

OPERATOR = """
import fnop


@fnop.on.create("fnopexamples", labels={"app": "shop"})
def make(spec, name, **_):
    if name == "bad":
        raise fnop.PermanentError("quota exceeded\\nfor \\x1b[31mred\\x1b[0m projects")
    if name == "slow":
        raise fnop.TemporaryError("no price list", delay=900)
    return {"made": name}


@fnop.on.create("fnopexamples", labels={"app": "shop"})
def wait_for(name, **_):
    if name == "waiting":
        return fnop.again(900, because="the tenant is not ready")


@fnop.on.update("fnopexamples", labels={"app": "shop"})
def resize(old, new, **_):
    if new["spec"]["size"] > 5:
        raise fnop.TemporaryError("no room", delay=20)


@fnop.on.delete("fnopexamples", labels={"app": "shop"})
def drop(name, **_):
    if name == "going":
        raise fnop.TemporaryError("the backup still runs", delay=900)


@fnop.reconcile("fnopexamples", owns=["configmaps", "secrets"], labels={"app": "site"})
def site(name, spec, **_):
    data = {"key": "SGVsbG8tU2VjcmV0"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    text = "not a key" if spec.get("wrong") else "text"
    return fnop.desired(
        [{**secret, "data": data}, {**page, "data": {text: "hello"}}],
        conditions=fnop.condition("Ready", False, "Waiting", "for visitors"),
    )
"""


class User(Protocol):
    """A user with all rights in one namespace."""

    def create(self, manifest: dict[str, Any]) -> None: ...

    def edit(self, kind: str, name: str, change: dict[str, Any]) -> None: ...

    def delete(self, kind: str, name: str) -> None: ...


@dataclass(frozen=True)
class Told:
    """The expectations about an object: words for programs, and parts of the text."""

    about: tuple[str, ...]
    text: tuple[str, ...]
    absent: tuple[str, ...] = ()


SHOP, SITE = {"app": "shop"}, {"app": "site"}
OBJECTS: Mapping[str, tuple[dict[str, str], dict[str, Any]]] = {
    "bad": (SHOP, {"size": 1}),
    "slow": (SHOP, {"size": 1}),
    "waiting": (SHOP, {"size": 1}),
    "going": (SHOP, {"size": 1}),
    "fine": (SHOP, {"size": 1}),
    "changed": (SHOP, {"size": 1}),
    "site": (SITE, {}),
    "wrong": (SITE, {"wrong": True}),
    "foreign": ({}, {"size": 1}),
}
BEFORE = {
    "going": Told(("done",), ("Nothing to do: the object is handled as it is now",)),
    "changed": Told(("done",), ("as it is now",)),
}
AFTER = {
    "bad": Told(
        ("failed",),
        (
            "1 handler of its creation failed for good",
            r"make: PermanentError: quota exceeded for \x1b[31mred\x1b[0m projects",
            "delete the object, and create it anew",
        ),
        ("\x1b", "\nfor"),
    ),
    "slow": Told(
        ("waiting",),
        ("retry 1 of make in 14m (TemporaryError: no price list)", "wait_for  done"),
    ),
    "waiting": Told(
        ("waiting",),
        ("wait_for goes on in 14m (the tenant is not ready)", "CreateWaiting"),
    ),
    "going": Told(
        ("deleting",),
        (
            "held by fnop.dev/default (this operator)",
            "until its handlers are done:",
            "retry 1 of drop in 14m (TemporaryError: the backup still runs)",
        ),
    ),
    "fine": Told(("done",), ("Nothing to do: the object is handled as it is now",)),
    "changed": Told(
        ("pending",),
        ("A change of spec.size is not handled yet.", "changed since: spec.size"),
    ),
    "site": Told(
        ("not-ready",),
        (
            "Ready is False: for visitors",
            "configmap/site  applied",
            "secret/site     applied",
            "Synced  True",
        ),
        ("SGVsbG8tU2VjcmV0", "Hello-Secret"),
    ),
    "wrong": Told(
        ("children",),
        ("Children cannot be made as desired", "configmap/wrong", "not a key"),
    ),
    "foreign": Told(
        ("unmarked",), ("No operator named default has left a mark on it",)
    ),
}


def manifest(name: str) -> dict[str, Any]:
    labels, spec = OBJECTS[name]
    meta = {"name": name, "labels": labels}
    return {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": meta,
        "spec": spec,
    }


def play(user: User, kubeconfig: Path, namespace: str, folder: Path) -> None:
    """Let the operator run, fail and wait; explain each state and the next step."""
    file = folder / "operator.py"
    file.write_text(OPERATOR)

    asked = ("-n", namespace, "--kubeconfig", str(kubeconfig))

    def explain(name: str, *options: str) -> str:
        command = ["explain", f"fex/{name}", *asked, *options]
        done = CliRunner().invoke(main, command)
        assert (done.exit_code, done.stderr) == (0, ""), done
        return done.stdout

    def about(name: str) -> list[str]:
        story = json.loads(explain(name, "-o", "json"))
        assert story["version"] == 1
        return [each["about"] for each in story["advice"]]

    def expect(table: Mapping[str, Told]) -> None:
        for name, told in table.items():
            _expect(name, told, about, explain)

    options = ("--leader-elect", "--lease-namespace", namespace, "--standalone")
    operator = Operator(file, kubeconfig, namespace, folder, options)
    try:
        operator.start()
        for name in OBJECTS:
            user.create(manifest(name))
        expect(BEFORE)
        user.edit("fnopexamples", "changed", {"spec": {"size": 9}})
        user.delete("fnopexamples", "going")
        expect(AFTER)
        assert "held by " in explain("fine")
        # A process of its own: it runs the operator's file.
        fits = fnop("explain", "fex/foreign", *asked, "--operator", file, folder=folder)
        assert "make      create     its filters do not fit" in fits.out, fits
        assert operator.stop() == 0, operator.lines
    finally:
        operator.close()
    for name in ("fine", "going", "slow"):
        assert about(name)[0] == "no-operator", explain(name)


def _expect(
    name: str,
    told: Told,
    about: Callable[[str], list[str]],
    explain: Callable[[str], str],
) -> None:
    eventually(
        lambda: about(name) == [*told.about], otherwise=lambda: f"{explain(name)}"
    )
    text = explain(name)
    flat = " ".join(text.split())
    for part in told.text:
        assert part in text or part in flat, text
    for part in told.absent:
        assert part not in text, text
