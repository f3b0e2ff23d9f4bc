"""Packaging: the links in fnop/ lead setuptools to all packages and data files."""

import tomllib
from pathlib import Path

import pytest

from fnop.adapters.generate import scaffolding
from tests.simulations import ROOT

ROOMS = ("adapters", "core", "effects", "interpreters")
# The files of new projects are data, whatever their names.
SCAFFOLD = ROOT / "adapters" / "generate" / "scaffold"
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def dotted(directory: Path) -> str:
    return ".".join(("fnop", *directory.relative_to(ROOT).parts))


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {
        source.parent
        for room in ROOMS
        for source in (ROOT / room).rglob("*.py")
        if SCAFFOLD not in source.parents
    }
    assert [each for each in folders if not (each / "__init__.py").exists()] == []


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
        for name in SETUPTOOLS["package-data"]["fnop.adapters.generate"]
        if name.startswith("scaffold/")
    }
    assert declared == {"scaffold/**", *(f"scaffold/{each}" for each in hidden)}


@pytest.mark.parametrize("room", ROOMS)
def test_the_link_leads_to_the_room(room: str) -> None:
    seen = ROOT / "fnop" / room
    if not seen.is_dir():
        pytest.skip("checked out without symlinks; setuptools needs them, too")
    assert seen.resolve() == (ROOT / room).resolve()


def test_the_packages_are_found_under_the_links() -> None:
    assert SETUPTOOLS["packages"]["find"]["include"] == ["fnop", "fnop.*"]
