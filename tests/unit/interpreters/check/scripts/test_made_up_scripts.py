"""The generated scripts: the users' actions, and the mistakes that they show.

Each operator here exists twice, with a mistake and without it. The generated scripts
distinguish them without an author's script, and without a fault.
"""

from __future__ import annotations

import doctest
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import pytest

from fnop.interpreters.check.scripts import changes
from tests.unit.interpreters.check.made_up import (
    NUMBER,
    TEXT,
    Manifest,
    alarms,
    cases,
    definition,
    x,
)


def config(name: str, labels: Manifest | None = None, **data: str) -> Manifest:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


class Pair(NamedTuple):
    """An operator with a mistake, the lines that mend it, and who shows the mistake."""

    name: str
    code: str
    wrong: str
    right: str
    found: Manifest
    crd: Manifest
    script: str
    given: tuple[Manifest, ...] = ()


CHILD = """
def child(name, data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": data}

async def keep(body, name, data):
    await fnop.apply(fnop.owned(child(name, data), body))
"""

PAIRS = [
    Pair(
        "an optional part is unset",
        CHILD
        + """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def serve(name, body, spec, **_):
    await keep(body, name, {"host": spec["host"]})
    if "ingress" in spec:
        await keep(body, f"{name}-ingress", {"host": spec["ingress"]})
    {}
""",
        "pass",
        """
else:
    found = await fnop.get("configmaps", name=f"{name}-ingress")
    if found is not None:
        await fnop.delete(found)
""",
        x(host="a", ingress="b"),
        definition(("host",), host=TEXT, ingress=TEXT),
        "unset all fields",
    ),
    Pair(
        "a key of a map is removed",
        CHILD
        + """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def serve(name, body, spec, **_):
    data = {key: str(value) for key, value in spec["settings"].items()}
    {}
""",
        """
found = await fnop.get("configmaps", name=name)
if found is None:
    await fnop.adopt(child(name, data))
else:
    await fnop.patch(found, data=data)
""",
        "await keep(body, name, data)",
        x(settings={"a": "1", "b": "2"}),
        definition(
            ("settings",),
            settings={"type": "object", "additionalProperties": TEXT},
        ),
        "unset all fields",
    ),
    Pair(
        "an absent part is set",
        CHILD
        + """
@fnop.on.create("xs.example.com")
async def make(name, body, spec, **_):
    await keep(body, name, {"host": spec["host"]})
    if "backup" in spec:
        await keep(body, f"{name}-backup", {"at": spec["backup"]})

{}
""",
        """
@fnop.on.field("xs.example.com", field="spec.host", old=fnop.PRESENT)
async def move(name, body, new, **_):
    await keep(body, name, {"host": new})
""",
        """
@fnop.on.update("xs.example.com")
async def follow(name, body, spec, **_):
    await keep(body, name, {"host": spec["host"]})
    backup = await fnop.get("configmaps", name=f"{name}-backup")
    if "backup" in spec:
        await keep(body, f"{name}-backup", {"at": spec["backup"]})
    elif backup is not None:
        await fnop.delete(backup)
""",
        x(host="a"),
        definition(("host",), host=TEXT, backup=TEXT),
        "set all absent fields",
    ),
    Pair(
        "a deep field is forgotten",
        CHILD
        + """
@fnop.on.create("xs.example.com")
async def make(name, body, spec, **_):
    cpu = spec["resources"]["limits"]["cpu"]
    await keep(body, name, {"a": spec["a"], "b": spec["b"], "cpu": cpu})

@fnop.on.update("xs.example.com")
async def follow(name, body, spec, old, **_):
    cpu = {}["resources"]["limits"]["cpu"]
    await keep(body, name, {"a": spec["a"], "b": spec["b"], "cpu": cpu})
""",
        'old["spec"]',
        "spec",
        x(a="1", b="2", resources={"limits": {"cpu": "100m"}}),
        definition(),
        "change all fields",
    ),
    Pair(
        "a field beside a switch is forgotten",
        CHILD
        + """
@fnop.on.create("xs.example.com")
async def make(name, body, spec, **_):
    if spec["enabled"]:
        await keep(body, name, {"size": str(spec["size"])})

@fnop.on.update("xs.example.com")
async def follow(name, body, old, spec, **_):
    found = await fnop.get("configmaps", name=name)
    if spec["enabled"]:
        await keep(body, name, {"size": str({}["size"])})
    elif found is not None:
        await fnop.delete(found)
""",
        'old["spec"]',
        "spec",
        x(enabled=True, size=1),
        definition(("enabled", "size"), enabled={"type": "boolean"}, size=NUMBER),
        "edit spec.size",
    ),
    Pair(
        "a mistake is corrected in vain",
        CHILD
        + """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def serve(name, body, spec, status, patch, **_):
    {}
    if spec["size"] < 1:
        patch.status["phase"] = "Failed"
        raise fnop.PermanentError("size is below 1")
    patch.status["phase"] = "Ready"
    await keep(body, name, {"size": str(spec["size"])})
""",
        """
if status.get("phase") == "Failed":
    return
""",
        "pass",
        x(size=1),
        definition(("size",), size=NUMBER),
        "correct a mistake in spec.size",
    ),
    Pair(
        "a namespace loses a label",
        CHILD
        + """
@fnop.index("namespaces", labels={"inject": "yes"})
def injected(name, **_):
    return {"all": name}

@fnop.index("xs.example.com")
def users(name, namespace, **_):
    return {"all": f"{namespace}/{name}"}

{}
@fnop.reconcile("xs.example.com", owns=["configmaps"])
def serve(name, spec, injected=fnop.INDEX, **_):
    spaces = " ".join(sorted(injected.get("all", ())))
    return fnop.desired([child(name, {"spaces": spaces, "host": spec["host"]})])
""",
        "",
        """
@fnop.maps("namespaces", to="xs.example.com")
def users_of(users=fnop.INDEX, **_):
    return users.get("all", ())
""",
        x(host="a"),
        definition(("host",), host=TEXT),
        "namespaces/another loses what it has",
    ),
    Pair(
        "a source comes later",
        CHILD
        + """
@fnop.index("xs.example.com")
def users(name, namespace, spec, **_):
    return {spec["source"]: f"{namespace}/{name}"}

@fnop.maps("configmaps", to="xs.example.com"{})
def users_of(name, users=fnop.INDEX, **_):
    return users.get(name, ())

@fnop.reconcile("xs.example.com", owns=["configmaps"])
async def serve(name, spec, **_):
    found = await fnop.get("configmaps", name=spec["source"])
    data = {"host": spec["host"], **(found["data"] if found else {})}
    return fnop.desired([child(name, data)])
""",
        ', labels={"app": fnop.PRESENT}',
        "",
        x(host="a", source="source"),
        definition(("source", "host"), source=TEXT, host=TEXT),
        "configmaps/source comes later",
        (config("source", None, user="u"),),
    ),
]


def both(pair: Pair, lines: str) -> str:
    """The operator with some lines in the place that is left open."""
    head, _, tail = pair.code.partition("{}")
    if head.endswith("\n    "):
        head, lines = head.removesuffix("    "), indent(lines.strip("\n"), "    ")
    return head + lines + tail


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name.replace(" ", "_"))
def test_what_users_do_shows_the_mistake(pair: Pair, tmp_path: Path) -> None:
    several, _ = cases(
        tmp_path, both(pair, pair.wrong), pair.found, pair.crd, *pair.given
    )
    (shown,) = [each for each in several if each.name == pair.script]
    assert pair.script in alarms([shown])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name.replace(" ", "_"))
def test_the_mended_operator_raises_no_alarm(pair: Pair, tmp_path: Path) -> None:
    several, _ = cases(
        tmp_path, both(pair, pair.right), pair.found, pair.crd, *pair.given
    )
    assert alarms(several) == {}


def test_the_examples_hold() -> None:
    assert doctest.testmod(changes).failed == 0
