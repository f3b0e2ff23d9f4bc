"""`python -m fnop.kopf`: a program that uses Kopf itself, or a command of Kopf.

python -m fnop.kopf operator.py …        runs the file as a program
python -m fnop.kopf -m package …         runs a module as a program
python -m fnop.kopf run operator.py …    the commands of Kopf
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from fnop.adapters.kopf.commands.cli import main as commands
from fnop.adapters.kopf.commands.finder import install

__all__ = ["main"]

_USAGE = "usage: python -m fnop.kopf [FILE | -m MODULE | run | --help] ..."


def main() -> None:
    """Run the program that the command line names; `import kopf` finds fnop in it."""
    install()
    given = sys.argv[1:]
    if not given or given[0] in ("--help", "--version", *commands.commands):
        commands(prog_name="python -m fnop.kopf")
    elif given[0] == "-m":
        if len(given) < 2:
            sys.exit(_USAGE)
        sys.argv = given[1:]
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
    elif given[0].startswith("-"):
        sys.exit(_USAGE)
    else:
        sys.argv = given
        sys.path.insert(0, str(Path(given[0]).resolve().parent))
        runpy.run_path(given[0], run_name="__main__")
