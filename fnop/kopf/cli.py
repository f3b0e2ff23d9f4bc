"""`kopf.cli` on fnop: programs call `main` and `run`."""

from fnop.adapters.kopf.commands.cli import CliControls, main, run

__all__ = ["CliControls", "main", "run"]
