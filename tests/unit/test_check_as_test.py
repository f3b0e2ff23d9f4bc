"""A failure of `fnop check`, written as a test: it fails alike, and passes once mended.

For a failing operator of each script, and of each part of an author's world.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands import fnop
from tests.unit.test_check_command import CRD, OBJECT

HEAD = """
import fnop

def child(name, size=0, kind="ConfigMap"):
    data = {"size": str(size)}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data}

"""
ONCE = """
@fnop.on.create("xs.example.com")
async def made(name, **_):
    if await fnop.get("configmaps", name=f"{name}-a") is None:
        await fnop.adopt(child(f"{name}-a"))
        await fnop.adopt(child(f"{name}-b"))
"""
LARGEST = 'max(spec["size"], ((old or {}).get("spec") or {}).get("size", 0))'
FOLLOWS = f"""
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def made(name, spec, old, **_):
    size = {LARGEST}
    await fnop.apply(child(f"{{name}}-a", size))
"""
# The second one may keep what it has: a volume does not shrink.
BOTH_FOLLOW = f"""{FOLLOWS}
    size = max(size, ((old or {{}}).get("spec") or {{}}).get("size", 0))
    await fnop.apply(child(f"{{name}}-kept", size))
"""
EDITED = """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def made(name, spec, **_):
    await fnop.apply(child(f"{name}-{spec['size']}"))
"""
LEFT = """
@fnop.on.create("xs.example.com")
async def made(name, **_):
    await fnop.create(child(f"{name}-a"))
"""
RECREATED = """
@fnop.on.create("xs.example.com")
async def made(name, **_):
    if await fnop.get("configmaps", name=f"{name}-a") is None:
        await fnop.adopt(child(f"{name}-a"))
"""
AWAITS = """
@fnop.on.create("xs.example.com")
async def made(name, **_):
    await fnop.adopt(child(f"{name}-0"))
    found = await fnop.get("configmaps", name=f"{name}-0")
    if found["data"]["size"] != "5":
        return fnop.again(1, because="another controller has to set the size")
    if await fnop.get("configmaps", name=f"{name}-a") is None:
        await fnop.adopt(child(f"{name}-a"))
        await fnop.adopt(child(f"{name}-b"))
"""
UPGRADED = """
@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def made(name, **_):
    await fnop.adopt(child(f"{name}-new"))
"""
NEEDS = """
@fnop.on.create("xs.example.com")
async def made(name, spec, **_):
    await fnop.adopt(child(f"{name}-a", spec["size"]))
    raise RuntimeError("no disk")
"""
TELLS = """
import fnop

@fnop.on.create("xs.example.com")
def told(patch, **_):
    patch.status["told"] = True
"""


class Bug(NamedTuple):
    """An operator with a fault, what mends it, and the actions that show it."""

    property: str
    source: str
    mends: tuple[str, str]
    actions: str
    # More of the script's file; other files; options, and the operator's first files.
    more: str = ""
    files: Mapping[str, str] = {}
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


def script_of(bug: Bug) -> str:
    return f"""
from fnop.testing import apply, delete, edit, expect, wait

X = {OBJECT!r}
SCRIPTS = {{"the script": [{bug.actions}]}}
{bug.more}
"""


CREATE, DELETE = "apply(X)", "delete('xs/x')"
EDIT, REVERT = "edit('xs/x', spec={'size': 3})", "edit('xs/x', spec={'size': 1})"
FOLLOWING = f"{CREATE}, {EDIT}, {REVERT}"
IS_THERE = """
@expect("xs")
def has_a_child(obj, world):
    return "configmaps/x-a" in world
"""
RIVAL = """
def sets_size(found):
    is_set = found.get("data", {}).get("size") != "0"
    return None if is_set else {"data": {"size": "5"}}

RIVALS = {"configmaps": sets_size}
"""
NEVER = ('if await fnop.get("configmaps", name=f"{name}-a") is None', "if True")
CLEANS = 'await fnop.delete("configmaps", name=f"{name}-old")'
KEEPS = ("async def made(name, **_):", f"async def made(name, **_):\n    {CLEANS}")
BUGS = {
    "create": Bug("same_end", ONCE, NEVER, CREATE),
    "edit": Bug(
        *("history", EDITED, ("-{spec['size']}", "-a"), f"{CREATE}, {EDIT}"),
    ),
    "edit and revert": Bug("history", FOLLOWS, (LARGEST, 'spec["size"]'), FOLLOWING),
    "a field that is needed": Bug(
        *("settles", NEEDS, ("raise RuntimeError", "print"), CREATE),
    ),
    "delete": Bug(
        *("no_orphans", LEFT, ("fnop.create", "fnop.adopt"), f"{CREATE}, {DELETE}"),
    ),
    "delete and recreate": Bug(
        *("same_end", RECREATED, NEVER, f"{CREATE}, {DELETE}, {CREATE}"),
    ),
    "what may depend on the history": Bug(
        *("history", BOTH_FOLLOW, (LARGEST, 'spec["size"]'), FOLLOWING),
        more='HISTORY = ("configmaps/x-kept",)',
    ),
    "an expectation": Bug(
        *("matches", LEFT, ("-a", "-b"), CREATE),
        more=IS_THERE.replace("x-a", "x-b"),
    ),
    "a rival": Bug("same_end", AWAITS, NEVER, CREATE, more=RIVAL),
    "an upgrade": Bug(
        *("same_end", UPGRADED, KEEPS, CREATE),
        files={"former.py": HEAD + UPGRADED.replace("-new", "-old")},
        options=("--former", "former.py"),
    ),
    "another name": Bug("same_end", ONCE, NEVER, CREATE, options=("--name", "shop")),
    "two files": Bug(
        *("same_end", ONCE, NEVER, CREATE),
        files={"tells.py": TELLS},
        before=("tells.py",),
    ),
}


def pytest_of(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_found.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def failures(bug: Bug, folder: Path) -> list[Path]:
    """The recordings of the failures of a bug."""
    (folder / "crd.yaml").write_text(json.dumps(CRD))
    (folder / "op.py").write_text(HEAD + bug.source)
    (folder / "script.py").write_text(script_of(bug))
    for name, text in bug.files.items():
        (folder / name).write_text(text)
    done = fnop(
        *("check", *bug.before, "op.py", "--crd", "crd.yaml", "--script", "script.py"),
        *("--property", bug.property, "--save", "found", *bug.options),
        folder=folder,
        limit=120,
    )
    assert "recording" in done.out, done
    return sorted((folder / "found").glob(f"{bug.property}-*"))


@pytest.mark.parametrize("name", BUGS)
def test_it_fails_alike_and_passes_once_mended(name: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    assert bug.mends[0] in bug.source
    recording = failures(bug, tmp_path)[0]
    test = fnop("check", "--as-test", recording, folder=tmp_path)
    (tmp_path / "test_found.py").write_text(test.out)
    status, told = pytest_of(tmp_path)
    assert status == 1, told
    assert f"{bug.property}: " in told, told
    (tmp_path / "op.py").write_text(HEAD + bug.source.replace(*bug.mends))
    status, told = pytest_of(tmp_path)
    assert status == 0, told
