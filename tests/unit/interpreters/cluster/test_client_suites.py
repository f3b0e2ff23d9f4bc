"""Suites of other clients on `fnop cluster`: results, and a reason for each gap."""

from __future__ import annotations

import doctest
import hashlib
import io
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.clients.suites import comparing, running
from tests.clients.suites.catalogue import SUITES, Suite
from tests.clients.suites.comparing import Outcome, outcomes_of, table, verdict
from tests.clients.suites.fetching import Archive, Unfetched, fetched
from tests.clients.suites.fixtures.running_a_suite import fits

PASSED, FAILED, SKIPPED = Outcome


@pytest.mark.parametrize("module", [comparing, running])
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


# ------------------------------------------------------------------- comparing


def test_what_passes_on_the_real_server_passes_here() -> None:
    found = verdict("s", {"a": PASSED, "b": PASSED}, {"a": PASSED})
    assert found.ok
    for here in (FAILED, SKIPPED):
        found = verdict("s", {"a": here}, {"a": PASSED})
        assert found.differing == ["a"]
        assert not found.ok


def test_what_is_not_left_out_passes_here_without_a_real_server() -> None:
    assert verdict("s", {"a": PASSED, "b": SKIPPED}, None).ok
    assert not verdict("s", {"a": FAILED}, None).ok


def test_a_test_that_was_not_reached_differs() -> None:
    assert verdict("s", {"a": PASSED}, {"a": PASSED, "b": PASSED}).differing == ["b"]


def test_a_failure_of_the_real_server_needs_a_reason() -> None:
    found = verdict("s", {"a": PASSED}, {"a": FAILED})
    assert (found.differing, found.unexplained) == ([], ["a"])
    assert not found.ok


def test_a_run_without_tests_is_no_success() -> None:
    assert not verdict("s", {}, {}).ok


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([("setup", "passed"), ("call", "passed"), ("teardown", "passed")], PASSED),
        ([("setup", "passed"), ("call", "failed"), ("teardown", "passed")], FAILED),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "failed")], FAILED),
        ([("setup", "failed"), ("teardown", "passed")], FAILED),
        ([("setup", "skipped"), ("teardown", "passed")], SKIPPED),
        ([("setup", "passed"), ("call", "skipped"), ("teardown", "passed")], SKIPPED),
        ([("setup", "passed")], FAILED),
    ],
)
def test_the_phases_of_a_test_make_its_outcome(
    phases: list[tuple[str, str]], expected: Outcome
) -> None:
    lines = [
        f'{{"node": "a", "phase": "{phase}", "outcome": "{outcome}"}}'
        for phase, outcome in phases
    ]
    assert outcomes_of(lines) == {"a": expected}


def test_the_table_counts() -> None:
    found = [
        verdict("one 1", {"a": PASSED, "b": FAILED}, {"a": PASSED}),
        verdict("two 2", {"a": PASSED, "b": SKIPPED}, None),
    ]
    assert table(found).splitlines()[2:] == [
        "| one 1 | 1 of 1 | 1 of 2 |",
        "| two 2 | not run | 1 of 1, 1 skipped |",
    ]


# --------------------------------------------------------------- the catalogue


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_everything_that_is_left_out_has_a_reason(suite: Suite) -> None:
    for reason in (*suite.left_out.values(), *suite.not_on_real.values()):
        assert len(reason.split()) > 3
    assert suite.left_out.keys().isdisjoint(suite.not_on_real)
    assert suite.test_seconds < suite.seconds <= 1800


def test_patterns_know_the_star_alone() -> None:
    assert fits("*::test_a[x*]", "tests/t.py::test_a[x-1]")
    assert not fits("*::test_a[x]", "tests/t.py::test_ax")
    assert not fits("test_a", "tests/t.py::test_a")


# -------------------------------------------------------------------- archives


def packed(folder: str, file: str = "a.py") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        entry = tarfile.TarInfo(f"{folder}/{file}")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"x = 1"))
    return content.getvalue()


class Local(Archive):
    """An archive that is already in its place."""

    def fetch(self, target: Path) -> None:
        raise AssertionError("it is there")


def at_hand(cache: Path, content: bytes, digest: str) -> Local:
    archive = Local("one-1.tar.gz", "one-1", digest)
    place = cache / "archives" / archive.file
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    return archive


def test_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    content = packed("one-1")
    archive = at_hand(tmp_path, content, hashlib.sha256(content).hexdigest())
    folder = fetched(archive, tmp_path)
    assert (folder / "a.py").read_text() == "x = 1"
    (tmp_path / "archives" / archive.file).unlink()
    assert fetched(archive, tmp_path) == folder


def test_another_archive_is_refused_and_thrown_away(tmp_path: Path) -> None:
    archive = at_hand(tmp_path, packed("one-1"), "0" * 64)
    with pytest.raises(Unfetched, match="another archive"):
        fetched(archive, tmp_path)
    assert not (tmp_path / "sources").exists()
    assert not (tmp_path / "archives" / archive.file).exists()
