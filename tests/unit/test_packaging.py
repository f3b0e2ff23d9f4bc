"""What is on disk, what pyproject declares and what the links show must agree."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("adapters", "core", "effects", "interpreters")
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def dotted(directory: Path) -> str:
    return ".".join(("fnop", *directory.relative_to(ROOT).parts))


def test_every_package_on_disk_is_declared() -> None:
    inits = [init for room in ROOMS for init in (ROOT / room).rglob("__init__.py")]
    found = {dotted(init.parent) for init in inits}
    assert set(SETUPTOOLS["packages"]) == {"fnop"} | found


def test_every_data_file_is_declared() -> None:
    found = {
        (dotted(file.parent), file.name)
        for room in ROOMS
        for file in (ROOT / room).rglob("*.*")
        if file.is_file() and file.suffix not in (".py", ".pyc")
    }
    declared = {
        (package, name)
        for package, names in SETUPTOOLS["package-data"].items()
        for name in names
    }
    assert declared == found | {("fnop", "py.typed")}


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
