"""The tutorial, page after page, as a reader does it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulations import ROOT

TUTORIAL = ROOT / "docs/tutorial"
# The reader's `fnop check` tries all schedules; these find the same.
FEW = {"FNOP_CHECK_BUDGET": "40", "FNOP_CHECK_FAST": "1"}
ORDERS = ROOT / "docs/pictures/orders"
_STEP = re.compile(r"^```(yaml|python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(\w+\.(?:py|yaml))`[^`]*\Z")


class Reader:
    """Somebody who does what the pages say, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def follow(self, page: str) -> None:
        """Write each file, and run each command, in the order of the page."""
        text = (TUTORIAL / page).read_text()
        for found in _STEP.finditer(text):
            kind, block = found.groups()
            if kind == "console":
                self.run(block)
                continue
            name = _FILE.search(text[: found.start()])
            assert name is not None, block
            self.write(name[1], block)

    def write(self, name: str, block: str) -> None:
        """Write a file; a further part of the operator is added to it."""
        file = self.folder / name
        adds = name == "shop.py" and not block.startswith("import")
        file.write_text(f"{file.read_text()}\n\n{block}" if adds else block)

    def run(self, block: str) -> None:
        """Run the commands of a block; they print the lines that it shows."""
        for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = each.splitlines()
            tool, *arguments = command.split()
            module = {"fnop": "fnop", "pytest": "pytest"}[tool]
            done = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                capture_output=True,
                cwd=self.folder,
                env={**os.environ, **FEW},
                check=False,
                text=True,
            )
            place = 0
            for line in shown:
                if line != "…":
                    # With FEW it tries fewer schedules than a reader's machine.
                    sought = re.sub(r"^\d+(?= schedules)", "", line)
                    place = done.stdout.find(sought, place)
                    assert place >= 0, (command, line, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("shop"))


@pytest.mark.parametrize(
    "page", ["first-handler.md", "check.md", "reconcile.md", "test.md"]
)
@pytest.mark.xdist_group("tutorial")
def test_the_steps_of_the_tutorial(reader: Reader, page: str) -> None:
    reader.follow(page)


@pytest.mark.parametrize("name", ["shop.py", "models.py"])
def test_the_picture_shows_the_operator_of_the_tutorial(name: str) -> None:
    assert (ORDERS / name).read_text() in (TUTORIAL / "check.md").read_text()


def test_the_readme_shows_the_operator_of_its_picture() -> None:
    assert (ORDERS / "shop.py").read_text() in (ROOT / "README.md").read_text()
