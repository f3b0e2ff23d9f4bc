"""`kopf.testing` on fnop: `from fnop.kopf.testing import KopfRunner`."""

from fnop.adapters.kopf.commands.testing import KopfRunner

__all__ = ["KopfRunner"]
