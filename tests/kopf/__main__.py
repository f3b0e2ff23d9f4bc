"""Play stories of operators that are written with Kopf, and compare what they leave.

    KUBEBUILDER_ASSETS=... python -m tests.kopf --python PYTHON [FIRST LETTERS ...]

PYTHON is an interpreter with fnop, `kubernetes` and `pykube-ng`. Without `--examples`
fnop plays the replicas, and their traces are compared with what Kopf has left
(`expected.json`). With `kopf==1.45.2` in PYTHON, `--write` stores what Kopf leaves.

`--examples FOLDER` plays stories of Kopf's own examples, which are in its sdist. Kopf
plays each first, next to the first server, and then fnop does. PYTHON needs Kopf, and
`pytest` for the tests that some examples have.

`--seeds 1-20` plays random operators and stories, by Kopf and by fnop; see
`tests/kopf/generated.py`.

`--on simulated` plays on `fnop cluster`, `--on real` on a real API server, which is
the default; both may be given. The exit status is 1 if there is a difference that no
page lists, see `listed.yaml`. `--keep FOLDER` keeps logs and traces.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.envtest import ApiServer
from tests.kopf.generated import write_story
from tests.kopf.player import Player
from tests.kopf.servers import SERVERS
from tests.kopf.trace import Judge, differences

HERE = Path(__file__).parent
# The traces of --keep have the whole texts.
WIDTH = 600
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Script:
    """What to play, and how."""

    python: Path
    examples: Path | None
    scratch: Path
    seeds: Sequence[int] = ()

    def stories(self, names: list[str]) -> list[Path]:
        """The folders of the stories whose names begin so, or all."""
        if self.seeds:
            return [self._generated(each) for each in self.seeds]
        root = HERE / ("replicas" if self.examples is None else "examples")
        folders = sorted(each.parent for each in root.glob("*/story.yaml"))
        chosen = tuple(names) or ("",)
        return [each for each in folders if each.name.startswith(chosen)]

    def _generated(self, seed: int) -> Path:
        folder = self.scratch / "stories" / f"seed-{seed}"
        if not folder.exists():
            write_story(seed, folder)
        return folder

    def trace(self, server: ApiServer, folder: Path, where: str, by: str) -> Any:
        """Play one story."""
        scratch = self.scratch / f"{where}-{by}"
        scratch.mkdir(exist_ok=True)
        player = Player(
            server,
            folder,
            self.python,
            scratch,
            by_fnop=by == "fnop",
            source=self.examples and self.examples / folder.name,
            definitions=[self.examples / "crd.yaml"] if self.examples else [],
        )
        try:
            player.install()
            player.play()
            found = player.trace()
        finally:
            player.uninstall()
        text = json.dumps(found, indent=1, sort_keys=True) + "\n"
        (scratch / f"{folder.name}.json").write_text(text)
        return json.loads(text)


@contextmanager
def _scratch(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def _server(where: str) -> Iterator[ApiServer]:
    with tempfile.TemporaryDirectory() as home, SERVERS[where](Path(home)) as api:
        yield api


class Comparison:
    """The traces of all stories, each compared with the first one of its story."""

    def __init__(self, judge: Judge, known: dict[str, Any]) -> None:
        self.known = known
        self.has_new = False
        self._judge = judge

    def add(self, name: str, player: str, trace: Any) -> None:
        """Compare what this player has left in a story, and print the differences."""
        if name not in self.known:
            self.known[name] = trace
            print(f"{name}, {player}: played", flush=True)
            return
        looks = "|".join(
            map(re.escape, sorted(trace["objects"], key=len, reverse=True))
        )
        # An object that differs does so in each look from then on.
        found = Counter(
            re.sub(f"^objects ({looks}) ", "objects ", each)
            for each in differences(self.known[name], trace)
        )
        rows = {each: self._judge.row_of(each) for each in found}
        new = sum(row is None for row in rows.values())
        self.has_new |= new > 0
        print(f"{name}, {player}: {new} new, {len(rows) - new} listed", flush=True)
        for each, row in rows.items():
            often = f" ({found[each]} times)" if found[each] > 1 else ""
            shown = each.replace("\n", " ")[:WIDTH]
            print(f"    {shown}{often}")
            if row:
                print(f"        listed: {row}")

    def fail(self, name: str, player: str, problem: Exception) -> None:
        """Note that a story has not come to its end."""
        self.has_new = True
        print(f"{name}, {player}: failed\n{str(problem)[:WIDTH]}", flush=True)


def _parsed() -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="the first letters of stories")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--examples", type=Path, help="Kopf's folder of examples")
    parser.add_argument("--seeds", help="random stories, such as 1-20")
    parser.add_argument("--on", action="append", choices=SERVERS)
    parser.add_argument("--by", action="append", choices=["kopf", "fnop"])
    parser.add_argument("--write", action="store_true", help="store what Kopf leaves")
    parser.add_argument("--keep", type=Path, help="a folder for logs and traces")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    """The seeds of `1-3,7`."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main() -> int:
    """Play what the command line asks for."""
    options = _parsed()
    has_examples = options.examples is not None
    seeds = _numbers(options.seeds or "")
    is_first = has_examples or seeds  # Kopf plays now, too
    by = options.by or (
        ["kopf"] if options.write else ["kopf", "fnop"] if is_first else ["fnop"]
    )
    with _scratch(options.keep) as scratch:
        examples = options.examples.resolve() if has_examples else None
        # Not resolved: the interpreter of a virtual environment is a link.
        script = Script(options.python.absolute(), examples, scratch, seeds)
        folders = script.stories(options.names)
        known = {
            each.name: json.loads((each / "expected.json").read_text())
            for each in (() if is_first or options.write else folders)
        }
        comparison = Comparison(Judge(HERE / "listed.yaml", ROOT), known)
        for where, player in itertools.product(options.on or ["real"], by):
            label = f"{player} on {where}"
            for folder in folders:
                try:
                    # No story sees what another one has left.
                    with _server(where) as api:
                        trace = script.trace(api, folder, where, player)
                except (AssertionError, RuntimeError, OSError) as problem:
                    comparison.fail(folder.name, label, problem)
                else:
                    comparison.add(folder.name, label, trace)
    if options.write:
        for folder in folders:
            if folder.name in comparison.known:  # else it has failed
                known = comparison.known[folder.name]
                text = json.dumps(known, indent=1, sort_keys=True)
                (folder / "expected.json").write_text(text + "\n")
    return int(comparison.has_new)


if __name__ == "__main__":
    sys.exit(main())
