"""A file for a moment, for what reads nothing else."""

from __future__ import annotations

import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fnop.adapters.kubernetes.memory_files import file_with

CONTENT = b"a certificate, longer than any buffer" * 4000


def test_it_is_in_memory_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with file_with(CONTENT) as path:
        assert Path(path).read_bytes() == CONTENT
        assert Path(path).read_bytes() == CONTENT  # once more
    assert not Path(path).exists()


def test_each_user_has_one_that_is_whole() -> None:
    """Several operators of a process log in at once, in threads of their own."""

    def read(number: int) -> bytes:
        with file_with(CONTENT + bytes([number])) as path:
            return Path(path).read_bytes()

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(read, range(160))]
    assert found == [CONTENT + bytes([number]) for number in range(160)]


def test_a_system_without_such_files_has_one_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with file_with(CONTENT) as path:
        assert Path(path).read_bytes() == CONTENT
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        assert Path(path).parent == tmp_path
    assert not any(tmp_path.iterdir())
