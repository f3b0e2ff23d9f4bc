"""The release: what refuses it, and the workflows that make it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import fnop
from tests.package.ready import ADDRESSES, obstacles
from tests.simulations import ROOT

READY: dict[str, Any] = {
    "version": "1.2.3",
    "tag": "v1.2.3",
    "project": {"urls": {name: "https://example.com" for name in ADDRESSES}},
    "changelog": "# Changelog\n\n## 1.2.3 (2030-01-31)\n\n- All.\n",
    "changes": (),
    "readme": "[a](https://example.com/a.md), ![b](https://example.com/b), [c](#c)",
}
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_what_is_ready_may_be_released() -> None:
    assert [*obstacles(**READY)] == []


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"version": "1.2.3.dev0", "tag": "v1.2.3.dev0"}, "is not the version of a"),
        ({"tag": "v1.2.4"}, "the tag v1.2.4 is not v1.2.3"),
        ({"tag": "1.2.3"}, "the tag 1.2.3 is not v1.2.3"),
        ({"changelog": "## 1.2.3 (not released yet)\n"}, "no section `## 1.2.3"),
        ({"changelog": "## 1.2.30 (2030-01-31)\n"}, "no section `## 1.2.3"),
        ({"changes": ("a.fixed.md",)}, "changes/a.fixed.md: not in the changelog"),
        ({"project": {}}, "[project.urls] has no address of Repository"),
        (
            {"readme": "![a](docs/a.svg)"},
            "README.md: relative links (1), such as docs/a",
        ),
        ({"readme": "[a](b.md) [c](./d)"}, "links (2), such as b.md, are dead on PyPI"),
        ({"project": {"urls": {"Repository": "../"}}}, "no address of Repository"),
    ],
)
def test_what_is_not_ready_is_refused(changed: dict[str, Any], reason: str) -> None:
    assert reason in "\n".join(obstacles(**{**READY, **changed}))


def test_the_first_section_of_the_changelog_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    titles = re.findall(r"(?m)^## (\S+) \((.*)\)$", text)
    version, date = titles[0]
    assert version == fnop.__version__.partition(".dev")[0]
    assert (date == "not released yet") is (".dev" in fnop.__version__)


def test_the_citation_is_of_this_version() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert found["version"] == fnop.__version__


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_the_questions_of_an_issue_have_names_of_their_own(name: str) -> None:
    file = ROOT / ".github/ISSUE_TEMPLATE" / f"{name}.yaml"
    form = yaml.safe_load(file.read_text("utf-8"))
    ids = [each["id"] for each in form["body"] if each["type"] != "markdown"]
    assert len({*ids}) == len(ids) > 2


def test_a_bug_is_reported_with_versions_and_a_recording() -> None:
    text = (ROOT / ".github/ISSUE_TEMPLATE/bug.yaml").read_text("utf-8")
    required = [
        each["id"]
        for each in yaml.safe_load(text)["body"]
        if each.get("validations", {}).get("required")
    ]
    assert {"version", "kubernetes"} <= {*required}
    for words in ("--record", "fnop check", "SECURITY.md"):
        assert words in text


def steps(file: Path) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(file.read_text("utf-8"))["jobs"].values():
        yield from job["steps"]


def test_there_are_workflows() -> None:
    names = [each.stem for each in WORKFLOWS]
    assert names == ["docs", "release", "tests", "wheels"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commits(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text("utf-8"))
    assert used
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [each for each in used if not pinned.fullmatch(each)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_jobs_have_limits_and_few_rights(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {}
    assert "group" in workflow["concurrency"]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        assert job["runs-on"] != "ubuntu-latest"
        if file.stem != "release":
            assert job["permissions"] == {"contents": "read"}
    for step in steps(file):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_only_the_job_that_publishes_has_a_token_for_pypi() -> None:
    file = ROOT / ".github/workflows/release.yaml"
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    able = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
    assert able == ["publish"]
    assert jobs["publish"]["environment"] == "pypi"
    # It runs no code of the repository.
    assert not any("run" in each for each in jobs["publish"]["steps"])
    assert "make release-check" in str(jobs["build"]["steps"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_the_targets_of_make_exist(file: Path) -> None:
    for step in steps(file):
        for line in step.get("run", "").splitlines():
            if line.startswith("make "):
                words = [each for each in line.split()[1:] if "=" not in each]
                targets = [each for each in words if re.fullmatch(r"[a-z./-]+", each)]
                assert targets
                assert [each for each in targets if f"\n{each}:" not in MAKEFILE] == []


def test_the_tests_run_on_each_python_of_the_classifiers() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    classified = re.findall(r"Python :: (3\.\d+)\"", text)
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yaml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == classified
