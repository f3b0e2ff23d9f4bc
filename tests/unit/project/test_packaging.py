"""Packaging: the rooms on disk, in pyproject.toml and in the links are the same."""

import tomllib
from pathlib import Path

import pytest

from fnop.adapters import scaffolding
from tests.simulations import ROOT

ROOMS = ("adapters", "core", "effects", "interpreters")
# The files of new projects are data, whatever their names.
SCAFFOLD = ROOT / "adapters" / "scaffold"
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def dotted(directory: Path) -> str:
    return ".".join(("fnop", *directory.relative_to(ROOT).parts))


def test_every_package_on_disk_is_declared() -> None:
    inits = [init for room in ROOMS for init in (ROOT / room).rglob("__init__.py")]
    found = {dotted(each.parent) for each in inits if SCAFFOLD not in each.parents}
    assert set(SETUPTOOLS["packages"]) == {"fnop"} | found


def test_every_data_file_is_declared() -> None:
    found = {
        (dotted(file.parent), file.name)
        for room in ROOMS
        for file in (ROOT / room).rglob("*.*")
        if file.is_file() and file.suffix not in (".py", ".pyc")
        if SCAFFOLD not in file.parents
    }
    declared = {
        (package, name)
        for package, names in SETUPTOOLS["package-data"].items()
        for name in names
        if not name.startswith("scaffold/")
    }
    assert declared == found | {("fnop", "py.typed")}


def test_every_file_of_new_projects_is_declared_and_filled_in() -> None:
    found = {
        file.relative_to(SCAFFOLD)
        for file in SCAFFOLD.rglob("*")
        if file.is_file() and not {"__pycache__", ".ruff_cache"} & {*file.parts}
    }
    with_webhooks = (f"webhooks/{each}" for each in scaffolding.WEBHOOK_FILES)
    assert {Path(each) for each in (*scaffolding.FILES, *with_webhooks)} == found
    hidden = {each for each in found if any(p.startswith(".") for p in each.parts)}
    declared = {
        name
        for name in SETUPTOOLS["package-data"]["fnop.adapters"]
        if name.startswith("scaffold/")
    }
    assert declared == {"scaffold/**", *(f"scaffold/{each}" for each in hidden)}


@pytest.mark.parametrize("room", ROOMS)
def test_link_and_mapping_lead_to_the_same_room(room: str) -> None:
    assert SETUPTOOLS["package-dir"][f"fnop.{room}"] == room
    seen = ROOT / "fnop" / room
    if not seen.is_dir():
        pytest.skip("checked out without symlinks; only static tools miss them")
    for source in (ROOT / room).rglob("*.py"):
        assert (
            seen / source.relative_to(ROOT / room)
        ).read_bytes() == source.read_bytes()
