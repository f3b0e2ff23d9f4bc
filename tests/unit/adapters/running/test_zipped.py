"""fnop and an operator from an archive, and the names in PyInstaller's hook.

`make frozen` builds programs, which takes minutes; these tests show what breaks them.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import fnop as fnop_api
from fnop.adapters import pyinstaller
from fnop.adapters.generate import scaffolding
from tests.commands import MINIMAL, manifest
from tests.patience import patience
from tests.simulations import DEFINITION, ROOT, example

# One process for all: modules from an archive are compiled each time.
MAIN = """
import sys
from fnop.adapters.cli.main import main
from fnop.adapters.generate.project_names import names_of
from fnop.adapters.generate.scaffolding import files_of

names = names_of("shop", kind="Shop", group="shops.example.com")
print(len(files_of(names)), "files")
for line in sys.stdin:
    try:
        main(line.split())
    except SystemExit as end:
        print(end.code, "is the status", flush=True)
"""
ONLY = """
import sys
sys.path.insert(0, "app.pyz")
from fnop.adapters.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zipped")
    with zipfile.ZipFile(folder / "app.pyz", "w") as target:
        for room in ("adapters", "core", "effects", "interpreters"):
            for file in (ROOT / room).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    target.write(file, Path("fnop") / file.relative_to(ROOT))
        for file in (ROOT / "fnop").glob("*.py"):
            target.write(file, Path("fnop") / file.name)
        target.writestr("minimal.py", MINIMAL)
        target.writestr("__main__.py", MAIN)
    manifest(folder, "object.yaml", DEFINITION, example())
    return folder / "app.pyz"


def test_an_operator_runs_from_an_archive(archive: Path) -> None:
    commands = """
        run -m minimal --record run.fnop --simulate object.yaml
        replay run.fnop --html run.html
    """
    done = subprocess.run(
        [sys.executable, archive.name],
        cwd=archive.parent,
        input=commands.strip(),
        capture_output=True,
        encoding="utf-8",
        timeout=patience(60),
        check=False,
    )
    assert done.stdout.count("0 is the status") == 2, done
    assert f"{len(scaffolding.FILES)} files" in done.stdout
    assert "seen: example-1" in done.stdout
    assert "<html" in (archive.parent / "run.html").read_text("utf-8")


@pytest.mark.long
def test_a_project_is_made_from_an_archive(archive: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", ONLY, "new", "shop"],
        cwd=archive.parent,
        timeout=patience(60),
        check=True,
    )
    assert (archive.parent / "shop" / "deploy" / "crd.yaml").is_file()


def test_the_hook_names_what_is_imported_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def submodules(package: str, filter: object) -> list[str]:
        asked.append(package)
        return []

    hooks = ModuleType("PyInstaller.utils.hooks")
    monkeypatch.setattr(hooks, "collect_submodules", submodules, raising=False)
    monkeypatch.setattr(
        hooks, "collect_data_files", lambda _, excludes: [], raising=False
    )
    for name in ("PyInstaller", "PyInstaller.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hooks.__name__, hooks)
    (folder,) = pyinstaller.hook_dirs()
    found = runpy.run_path(str(Path(folder) / "hook-fnop.py"))
    assert asked == [fnop_api.__name__]
    assert isinstance(found["hiddenimports"], list)
