"""Certificates and keys of kubeconfigs as files that no disk has."""

from __future__ import annotations

import doctest
import os
import stat
import tempfile
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fnop.adapters import memory_files
from fnop.adapters.memory_files import path_of, with_files

CONTENT = b"a certificate, longer than any buffer" * 4000


def test_nothing_of_a_kubeconfig_is_written_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    section = with_files({"client-key-data": b64encode(CONTENT).decode()})
    assert Path(section["client-key"]).read_bytes() == CONTENT
    assert Path(section["client-key"]).read_bytes() == CONTENT  # once more
    assert not any(tmp_path.iterdir())


def test_who_learns_the_name_reads_the_whole_file() -> None:
    """Several operators of a process log in at once, in threads of their own."""

    def read(number: int) -> bytes:
        return Path(path_of(CONTENT + bytes([number // 8]))).read_bytes()

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(read, range(160))]
    assert found == [CONTENT + bytes([number // 8]) for number in range(160)]


def test_a_system_without_such_files_has_one_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    path = Path(path_of(b"another content"))
    assert path.read_bytes() == b"another content"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.parent == tmp_path


def test_the_examples_hold() -> None:
    assert doctest.testmod(memory_files).failed == 0
