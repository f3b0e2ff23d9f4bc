"""A failure of `fnop check`, written as a test: it fails alike, and passes once mended.

For a failing operator of each script, and of each part of an author's world.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checks import CRD, OBJECT, called
from tests.commands import pytest_of
from tests.long import parameters

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
        options=("--budget", "20"),
    ),
    "delete": Bug(
        *("no_orphans", LEFT, ("fnop.create", "fnop.adopt"), f"{CREATE}, {DELETE}"),
    ),
    "delete and recreate": Bug(
        *("same_end", RECREATED, NEVER, f"{CREATE}, {DELETE}, {CREATE}"),
        options=("--budget", "40"),
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


# A script of one action and of two, what the author adds, and what the command adds.
AT_ONCE = ("create", "delete", "an expectation", "an upgrade", "two files")


@pytest.mark.parametrize("name", parameters(BUGS, AT_ONCE))
def test_it_fails_alike_and_passes_once_mended(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug = BUGS[name]
    assert bug.mends[0] in bug.source
    monkeypatch.chdir(tmp_path)
    test = called("--as-test", failure(bug)).stdout
    # Two files of the operator: a process runs each of its files once.
    Path("mended.py").write_text(HEAD + bug.source.replace(*bug.mends))
    Path("test_found.py").write_text(test)
    Path("test_mended.py").write_text(test.replace("'op.py'", "'mended.py'"))
    told = pytest_of("test_found.py", "test_mended.py", folder=tmp_path).out
    assert "1 failed, 1 passed" in told, told
    assert "FAILED test_found.py" in told, told
    assert f"{bug.property}: " in told, told


def failure(bug: Bug) -> str:
    """The recording of a failure of a bug, found in the working directory."""
    Path("crd.yaml").write_text(json.dumps(CRD))
    Path("op.py").write_text(HEAD + bug.source)
    Path("script.py").write_text(script_of(bug))
    for name, text in bug.files.items():
        Path(name).write_text(text)
    done = called(
        *(*bug.before, "op.py", "--crd", "crd.yaml", "--script", "script.py"),
        *("--property", bug.property, "--save", "found", *bug.options),
    )
    assert "recording" in done.stdout, done.output
    return str(min(Path("found").glob(f"{bug.property}-*")))
