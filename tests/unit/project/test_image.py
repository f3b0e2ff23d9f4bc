"""The image of fnop: small, not root, of existing files; built if a builder exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

import fnop
from tests.patience import patience
from tests.simulations import ROOT

FILES = ("Dockerfile", "examples/deployment/Dockerfile")
BUILDERS = ("docker", "podman", "buildah")


class Instruction(NamedTuple):
    """An instruction of a Dockerfile, and its arguments in one line."""

    name: str
    text: str


def instructions(file: str) -> list[Instruction]:
    lines = (ROOT / file).read_text("utf-8").splitlines()
    text = "\n".join(each for each in lines if not each.lstrip().startswith("#"))
    joined = text.replace("\\\n", " ").splitlines()
    parts = (each.split(maxsplit=1) for each in joined if each.strip())
    return [Instruction(name, " ".join(rest.split())) for name, rest in parts]


def named(file: str, name: str) -> list[str]:
    return [each.text for each in instructions(file) if each.name == name]


def last_stage(file: str) -> list[Instruction]:
    """The instructions of the image itself, without those that build it."""
    found = instructions(file)
    begins = [at for at, each in enumerate(found) if each.name == "FROM"]
    return found[begins[-1] :]


def copied(file: str) -> Iterator[str]:
    """The files and folders that an image takes from its context."""
    for text in named(file, "COPY"):
        if not text.startswith("--from="):
            yield from text.split()[:-1]


def is_sent(context: Path, name: str) -> bool:
    """Whether .dockerignore sends a file or folder: the last match counts."""
    found = True
    for line in (context / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch(name, pattern):
            found = line.startswith("!")
    return found


@pytest.mark.parametrize("file", FILES)
def test_the_user_is_a_number_and_not_root(file: str) -> None:
    (user,) = (each.text for each in last_stage(file) if each.name == "USER")
    number, group = user.split(":")
    assert int(number) > 0
    assert int(group) > 0


@pytest.mark.parametrize("file", FILES)
def test_bases_have_a_version_and_nothing_is_downloaded_unchecked(file: str) -> None:
    arguments = dict(each.split("=") for each in named(file, "ARG"))
    for text in named(file, "FROM"):
        base = re.sub(r"\$\{(\w+)\}", lambda f: arguments[f[1]], text.split()[0])
        assert re.fullmatch(r"[a-z/]+:\d[\w.-]+", base), base
    assert named(file, "ADD") == []
    assert not re.search(r"\b(curl|wget)\b", " ".join(named(file, "RUN")))


@pytest.mark.parametrize("file", FILES)
def test_what_is_copied_exists_and_is_sent_to_the_builder(file: str) -> None:
    context = (ROOT / file).parent
    names = [*copied(file)]
    assert names
    assert [each for each in names if not (context / each).exists()] == []
    assert [each for each in names if not is_sent(context, each)] == []


@pytest.mark.parametrize("file", FILES)
def test_nothing_private_or_large_is_sent_to_the_builder(file: str) -> None:
    context = (ROOT / file).parent
    private = (".git", ".venv", ".ci", "build", "dist", "tests", "fnop-failures", "kc")
    assert [each for each in private if is_sent(context, each)] == []
    assert is_sent(context, next(copied(file)))


def test_the_entry_point_is_fnop_run_without_a_shell() -> None:
    (entry,) = named("Dockerfile", "ENTRYPOINT")
    assert entry == '["fnop", "run"]'
    for file in FILES:
        assert all(each.startswith("[") for each in named(file, "CMD"))


def test_the_image_has_no_cache_and_names_this_release() -> None:
    installs = [each for each in named("Dockerfile", "RUN") if "install" in each]
    assert installs
    assert all("--no-cache-dir" in each for each in installs)
    (labels,) = named("Dockerfile", "LABEL")
    assert f'image.version="{fnop.__version__}"' in labels
    assert 'image.licenses="MIT"' in labels


def test_the_last_stage_installs_nothing() -> None:
    assert [each for each in last_stage("Dockerfile") if each.name == "RUN"] == []


@pytest.mark.parametrize("file", FILES)
def test_hadolint_finds_nothing(file: str) -> None:
    if (command := shutil.which("hadolint")) is None:
        pytest.skip("hadolint is not on the PATH: the image is checked without it")
    found = subprocess.run(
        [command, str(ROOT / file)], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")


def builder() -> str:
    """A builder that works here; the test is skipped without one."""
    tried = []
    for name in BUILDERS:
        if (command := shutil.which(name)) is None:
            tried.append(f"{name} is not on the PATH")
            continue
        asked = (command, "info")
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return command
        tried.append(f"{name} is there, but has no daemon or rights")
    pytest.skip(f"the image is not built: {'; '.join(tried)}")


@pytest.mark.long
def test_the_image_is_built_and_its_operator_begins() -> None:
    command = builder()
    tag = f"fnop:{fnop.__version__}"
    build = (command, "build", "--quiet", "--tag", tag, str(ROOT))
    subprocess.run(build, check=True, timeout=patience(600), stdout=subprocess.DEVNULL)
    if Path(command).name == "buildah":
        return  # it starts no containers from images
    run = (command, "run", "--rm", "--read-only", "--cap-drop", "ALL", tag)
    done = subprocess.run(
        run, capture_output=True, text=True, check=False, timeout=patience(60)
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: fnop run" in done.stdout
