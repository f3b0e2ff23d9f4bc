"""Fetch the pinned archives and set up the environment that the suites run in.

Everything is kept below one folder, and fetched once: `archives/` and `sources/` by
version, `venv/` for all suites.  The registries' own clients fetch: pip, and
apt-helper for the one archive that only Debian has whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Archive", "DebianSource", "Sdist", "Unfetched", "environment", "fetched"]

FETCH_SECONDS = 600
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
APT_HELPER = "/usr/lib/apt/apt-helper"


class Unfetched(Exception):
    """An archive cannot be had; the text is one sentence."""


@dataclass(frozen=True)
class Archive:
    """A packed source tree of one version; its digest is checked before it is used."""

    file: str
    folder: str
    """The one folder inside."""
    sha256: str

    def fetch(self, target: Path) -> None:
        """Put the archive at `target`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sdist(Archive):
    """A source distribution of PyPI."""

    requirement: str

    def fetch(self, target: Path) -> None:
        name = self.requirement.partition("==")[0]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        run(*command, "--no-binary", name, "-d", str(target.parent), self.requirement)


@dataclass(frozen=True)
class DebianSource(Archive):
    """The original archive of a Debian source package: a project's whole tree."""

    url: str

    def fetch(self, target: Path) -> None:
        if not os.access(APT_HELPER, os.X_OK):
            raise Unfetched(f"{self.file} is fetched with apt-helper, of Debian")
        digest = f"SHA256:{self.sha256}"
        run(APT_HELPER, "download-file", self.url, str(target), digest)


def run(*command: str) -> None:
    """Run a command in silence; Unfetched contains the end of its output."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=FETCH_SECONDS,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired:
        raise Unfetched(f"not done in {FETCH_SECONDS} s: {' '.join(command)}") from None
    if done.returncode:
        said = " ".join(done.stdout.split())[-500:]
        raise Unfetched(f"{' '.join(command)} has failed: {said}")


def fetched(archive: Archive, cache: Path) -> Path:
    """The unpacked source tree; raises Unfetched."""
    folder = cache / "sources" / archive.folder
    if folder.is_dir():
        return folder
    packed = cache / "archives" / archive.file
    packed.parent.mkdir(parents=True, exist_ok=True)
    if not packed.exists():
        archive.fetch(packed)
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    if digest != archive.sha256:
        packed.unlink()
        raise Unfetched(f"{archive.file} has the digest {digest}: another archive")
    unpacking = cache / "sources" / f"{archive.folder}.unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    with tarfile.open(packed) as tar:
        # Python 3.11.4 has the filter; the digest says what there is to unpack.
        safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(unpacking, **safe)
    (unpacking / archive.folder).rename(folder)
    unpacking.rmdir()
    return folder


def environment(cache: Path) -> Path:
    """The Python of the virtual environment with the pinned requirements."""
    folder = cache / "venv"
    python, ready = folder / "bin" / "python", folder / "ready.txt"
    wanted = REQUIREMENTS.read_text()
    if not ready.exists() or ready.read_text() != wanted:
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet"]
        run(*pip, "--disable-pip-version-check", "-r", str(REQUIREMENTS))
        ready.write_text(wanted)
    return python
