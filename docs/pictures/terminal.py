"""Pictures of a terminal, from real runs: `make pictures`.

Each picture is the output of a command in a folder beside this file. Long outputs are
shortened, with an ellipsis for what is left out.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
PICTURES = HERE.parent / "_static" / "pictures"

WIDTH = 108
# The pictures use the reader's own font: the site loads nothing from elsewhere.
_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)
STYLES = {
    r"^\$ .*": "bold",
    r"\bFAIL\b|!$": "bold red",
    r"\bpass\b": "green",
    r"^\d+\. .*": "bold",
    r"^ +(?:schedule|script|story|as well|recording|as a page|as a test)\b": "cyan",
    r"^…$": "dim",
}

Lines = Sequence[str]


class Picture(NamedTuple):
    """A command, its folder, and the lines of its output to show."""

    name: str
    folder: str
    command: str
    shown: Callable[[Lines], Lines]


def _first_failure(lines: Lines) -> Lines:
    """The properties around the violated ones, and the first failure."""
    start = next(n for n, each in enumerate(lines) if each.startswith("1. "))
    end = next(n for n, each in enumerate(lines) if each.startswith("2. "))
    fails = [each for each in lines[:start] if " FAIL " in each]
    block = [each for each in lines[start:end] if "fnop diff" not in each]
    return [lines[0], lines[1], lines[2], "…", *fails, "…", "", *block]


def _all_lines(lines: Lines) -> Lines:
    return lines


PICTURES_MADE = (
    Picture("check", "orders", "fnop check shop.py --calls models.py", _first_failure),
    Picture(
        "simulate",
        "orders",
        "fnop run shop.py --simulate crd.yaml --simulate object.yaml --calls models.py",
        _all_lines,
    ),
)


def output_of(picture: Picture) -> Lines:
    """The lines that the command prints, with the command before them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / picture.folder
        shutil.copytree(HERE / picture.folder, place)
        done = subprocess.run(
            [sys.executable, "-m", *picture.command.split()],
            capture_output=True,
            cwd=place,
            check=False,
            text=True,
        )
    lines = picture.shown(done.stdout.splitlines())
    return [f"$ {picture.command}", *lines]


def drawn(picture: Picture) -> str:
    """The picture as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for line in output_of(picture):
        text = Text(line)
        for pattern, style in STYLES.items():
            text.highlight_regex(pattern, style)
        console.print(text, soft_wrap=False)
    title = " ".join(picture.command.split()[:2])
    found = console.export_svg(title=title, unique_id=f"fnop-{picture.name}")
    plain = _FONTS.sub("", found)
    return plain.replace("Fira Code", "ui-monospace, Menlo, Consolas")


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in PICTURES_MADE:
        (PICTURES / f"{each.name}.svg").write_text(drawn(each) + "\n")


if __name__ == "__main__":
    main()
