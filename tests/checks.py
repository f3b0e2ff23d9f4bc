"""Small operators, as `fnop check` is called for them."""

from __future__ import annotations

import atexit
import json
import re
from functools import cache
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.core.handlers.declare.registry import default_registry
from tests.commands import fnop

BUGGY = """
import fnop

@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def certify(name, **_):
    if await fnop.get("secrets", name=f"{name}-a") is None:
        for each in "ab":
            await fnop.adopt(
                {"apiVersion": "v1", "kind": "Secret",
                 "metadata": {"name": f"{name}-{each}"}}
            )
"""


FIXED = BUGGY.replace(
    '    if await fnop.get("secrets", name=f"{name}-a") is None:\n', "    if True:\n"
)


OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "X",
    "metadata": {"name": "x"},
    "spec": {"size": 1},
}


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "xs.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "xs", "singular": "x", "kind": "X"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": ANYTHING, "status": ANYTHING},
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an operator, whose name no other test uses, and its object."""
    (tmp_path / "object.yaml").write_text(json.dumps(OBJECT))
    (tmp_path / "crd.yaml").write_text(json.dumps(CRD))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*arguments: str) -> Result:
    with default_registry.set_aside():
        return CliRunner().invoke(main, ["check", *arguments])


def operator(folder: Path, source: str, prefix: str = "op") -> str:
    name = f"{prefix}_{folder.name}.py".replace("-", "_")
    (folder / name).write_text(source)
    return name


CALLING = """
import fnop

def charge(who): ...

@fnop.on.create("xs.example.com")
async def paid(name, **_):
    await fnop.call(charge, who=name)
    await fnop.adopt({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
"""


PASSWORD = "correct horse battery staple"


CERTIFY = BUGGY.replace(
    '"kind": "Secret",', f'"kind": "Secret", "stringData": {{"p": "{PASSWORD}"}},'
)


def failure(folder: Path, source: str = CERTIFY) -> Path:
    """The recording of the first failure that `fnop check` finds."""
    (folder / "op.py").write_text(source)
    (folder / "crd.yaml").write_text(yaml.safe_dump(CRD))
    (folder / "object.yaml").write_text(yaml.safe_dump(OBJECT))
    # Several modules look at it, each in a folder of its own.
    made, name = checked(source)
    copytree(made / "fnop-failures", folder / "fnop-failures")
    return folder / name


@cache
def checked(source: str) -> tuple[Path, str]:
    """A folder in which an operator was checked, and its first recording there."""
    folder = Path(mkdtemp(prefix="fnop-checked-"))
    atexit.register(rmtree, folder)
    (folder / "op.py").write_text(source)
    (folder / "crd.yaml").write_text(yaml.safe_dump(CRD))
    (folder / "object.yaml").write_text(yaml.safe_dump(OBJECT))
    limits = ("--property", "same_end", "--budget", "60")
    done = fnop("check", "op.py", *limits, folder=folder, limit=120)
    assert done.status == 1, done.err
    found = re.findall(r"recording (\S+)\n +as a page fnop replay (\S+) --", done.out)
    assert found
    assert all(one == other for one, other in found)
    return folder, str(found[0][0])
