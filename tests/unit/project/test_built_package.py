"""The built package: it has all files, and its command works without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

import fnop
from tests.patience import patience
from tests.simulations import ROOT

ROOMS = ("adapters", "core", "effects", "interpreters")
# A package is built from these; tests, docs and examples stay in the repository.
SOURCES = ("LICENSE", "README.md", "fnop", "pyproject.toml", *ROOMS)
CACHES = shutil.ignore_patterns("__pycache__", ".ruff_cache", "*.pyc")


class Built(NamedTuple):
    """The archives of a release, and a wheel that is built from the checkout."""

    sdist: Path
    wheel: Path
    direct: Path


def done(*command: str | Path, folder: Path, **variables: str) -> str:
    """The output of a command that succeeds, in an environment without the checkout."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    shown = {name: text for name, text in os.environ.items() if name not in hidden}
    found = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=shown | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=patience(120),
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:]
    return found.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build a copy: a folder `build` in the checkout would add the files of before."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            options = {"symlinks": True, "ignore": CACHES}
            shutil.copytree(ROOT / name, source / name, **options)  # type: ignore[arg-type]
        else:
            shutil.copy(ROOT / name, source)
    if not (source / "fnop" / "core").is_symlink():
        pytest.skip("checked out without symlinks; setuptools needs them")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir")
    done(*build, folder / "release", source, folder=folder)
    done(*build, folder / "direct", "--wheel", source, folder=folder)
    (sdist,) = (folder / "release").glob("*.tar.gz")
    (wheel,) = (folder / "release").glob("*.whl")
    (direct,) = (folder / "direct").glob("*.whl")
    return Built(sdist, wheel, direct)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel, which borrows its dependencies.

    A `.pth` file leads to the packages of this environment, which a test may not
    download. Python does not read the `.pth` files there, such as that of the
    editable fnop.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    options = ("--quiet", "--no-index", "--no-deps")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", *options)
    done(*pip, built.wheel, folder=folder)
    (packages,) = folder.glob("lib/*/site-packages")
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "borrowed.pth").write_text("\n".join(sorted(paths)), "utf-8")
    return folder / "bin"


def in_checkout() -> set[str]:
    """The files of fnop in the checkout, by their place in the package."""
    files = {
        Path("fnop", file.relative_to(ROOT))
        for room in ROOMS
        for file in (ROOT / room).rglob("*")
        if file.is_file()
    }
    files |= {
        file.relative_to(ROOT)
        for place in ("*", "kopf/*")
        for file in (ROOT / "fnop").glob(place)
        if file.is_file()
    }
    return {
        each.as_posix()
        for each in files
        if not {"__pycache__", ".ruff_cache"} & {*each.parts}
    }


def in_wheel(file: Path) -> set[str]:
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    return {each for each in names if not each.partition("/")[0].endswith(".dist-info")}


def in_sdist(file: Path) -> set[str]:
    with tarfile.open(file) as archive:
        names = [each.name for each in archive.getmembers() if each.isfile()]
    return {each.partition("/")[2] for each in names}


def metadata(file: Path) -> Message:
    with zipfile.ZipFile(file) as archive:
        (name,) = (e for e in archive.namelist() if e.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_wheel_has_the_files_of_the_checkout_and_no_others(built: Built) -> None:
    files = in_checkout()
    # Without these the comparison would show nothing: hidden files, data, the marker.
    assert {
        "fnop/py.typed",
        "fnop/adapters/generate/scaffold/.dockerignore",
        "fnop/adapters/generate/scaffold/.github/workflows/ci.yaml",
        "fnop/adapters/recordings/page.html",
        "fnop/adapters/serving/protobuf_fields.json",
        "fnop/interpreters/cluster/kinds/builtin_types.json",
    } <= files
    assert in_wheel(built.wheel) == files


def test_a_wheel_of_the_checkout_has_the_same_files(built: Built) -> None:
    assert in_wheel(built.direct) == in_wheel(built.wheel)


def test_the_sdist_has_all_that_a_build_needs(built: Built) -> None:
    files = in_sdist(built.sdist)
    assert in_checkout() | {"LICENSE", "README.md", "pyproject.toml"} <= files


def test_the_metadata_has_the_version_and_the_licence(built: Built) -> None:
    found = metadata(built.wheel)
    assert found["Version"] == fnop.__version__
    assert found["License-Expression"] == "MIT"
    assert found["License-File"] == "LICENSE"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Description-Content-Type"] == "text/markdown"


def test_the_command_runs_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = "import fnop; print(fnop.__file__)"
    file = done(installed / "python", "-c", where, folder=tmp_path).strip()
    assert Path(file).is_relative_to(installed.parent)
    assert "Usage: fnop" in done(installed / "fnop", "--help", folder=tmp_path)
    module = (installed / "python", "-m", "fnop", "--version")
    assert done(*module, folder=tmp_path) == f"fnop, version {fnop.__version__}\n"


def test_a_new_project_is_made_and_simulated(installed: Path, tmp_path: Path) -> None:
    command = installed / "fnop"
    assert "files" in done(command, "new", "my-operator", folder=tmp_path)
    project = tmp_path / "my-operator"
    operator = ("run", "src/my_operator/operator.py")
    objects = ("--simulate", "deploy/crd.yaml", "example.yaml")
    # In simulation the example's Deployment becomes available.
    modules = {"PYTHONPATH": str(project / "src")}
    assert "Ready" in done(command, *operator, *objects, folder=project, **modules)
