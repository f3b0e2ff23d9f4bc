"""Pictures of a terminal, from real runs: `make pictures`.

Each picture is the output of a command in a folder next to this file. Long outputs are
shortened, and an ellipsis stands for the skipped lines. `tests/unit/project` has a test
that compares the texts of the pictures with the outputs of today.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from fnop.adapters.testing.cluster_fixture import SimulatedCluster

__all__ = ["PICTURES", "PICTURES_MADE", "Picture", "drawn", "output_of", "texts_in"]

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
    r"^  \+ .*": "green",
    r"^  ~ .*": "yellow",
    r"#\d+": "cyan",
    r"^…$": "dim",
}

Lines = Sequence[str]


Variables = Mapping[str, str]
# Runs a command in a folder with further variables, and returns its output.
Runner = Callable[[str, Path, Variables], str]


def _all_lines(lines: Lines) -> Lines:
    return lines


class Picture(NamedTuple):
    """A command, its folder, and the lines of its output to show.

    The commands `before` prepare the folder. With `served`, the command has a simulated
    cluster with the objects of these files.
    """

    name: str
    folder: str
    command: str
    shown: Callable[[Lines], Lines] = _all_lines
    before: Sequence[str] = ()
    served: Sequence[str] = ()


def _first_failure(lines: Lines) -> Lines:
    """The properties around the violated ones, and the first failure."""
    start = next(n for n, each in enumerate(lines) if each.startswith("1. "))
    end = next(n for n, each in enumerate(lines) if each.startswith("2. "))
    fails = [each for each in lines[:start] if " FAIL " in each]
    block = [each for each in lines[start:end] if "fnop diff" not in each]
    return [lines[0], lines[1], lines[2], "…", *fails, "…", "", *block]


_SIMULATED = (
    "fnop run shop.py --simulate crd.yaml --simulate object.yaml --calls models.py"
)
PICTURES_MADE = (
    Picture("check", "orders", "fnop check shop.py --calls models.py", _first_failure),
    Picture("simulate", "orders", _SIMULATED),
    Picture(
        "why",
        "orders",
        "fnop replay run.fnop --object orders/default/order-1 --why status.receipt",
        before=[f"{_SIMULATED} --record run.fnop"],
    ),
    Picture(
        "plan",
        "slips",
        "fnop plan shop.py -n default",
        served=["crd.yaml", "orders.yaml"],
    ),
)


def run_process(command: str, folder: Path, variables: Variables) -> str:
    """Run a command as a process."""
    return subprocess.run(
        [sys.executable, "-m", *command.split()],
        capture_output=True,
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
        text=True,
    ).stdout


@contextmanager
def _cluster_of(picture: Picture, place: Path) -> Iterator[Variables]:
    """The variables by which a command finds the picture's cluster, if it needs one.

    The slip of the first order is older than the order's present amount.
    """
    if not picture.served:
        yield {}
        return
    cluster = SimulatedCluster(seed=picture.name)
    made = [each for file in picture.served for each in cluster.apply(place / file)]
    order = next(each for each in made if each["kind"] == "Order")
    owner = {name: order[name] for name in ("apiVersion", "kind")}
    owner |= {name: order["metadata"][name] for name in ("name", "uid")}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{owner['name']}-slip",
                "namespace": "default",
                "ownerReferences": [
                    {**owner, "controller": True, "blockOwnerDeletion": False}
                ],
            },
            "data": {"text": "ada pays 20"},
        }
    )
    with cluster.serve() as served:
        yield {"KUBECONFIG": str(served.kubeconfig)}


def output_of(picture: Picture, run: Runner = run_process) -> Lines:
    """The lines that the command prints, with the command before them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / picture.folder
        shutil.copytree(HERE / picture.folder, place)
        with _cluster_of(picture, place) as variables:
            for each in picture.before:
                run(each, place, variables)
            found = run(picture.command, place, variables)
    return [f"$ {picture.command}", *picture.shown(found.splitlines())]


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


_TEXT = re.compile(r'<text [^>]*-line-(\d+)\)">([^<]*)</text>')


def texts_in(svg: str) -> str:
    """The words of a picture, with single spaces between them."""
    found = groupby(_TEXT.findall(svg), key=lambda each: each[0])
    lines = ("".join(text for _, text in each) for _, each in found)
    return " ".join(html.unescape(" ".join(lines)).split())


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in PICTURES_MADE:
        (PICTURES / f"{each.name}.svg").write_text(drawn(each) + "\n")


if __name__ == "__main__":
    main()
