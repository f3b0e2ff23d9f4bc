"""Kopf's API on fnop: `from fnop import kopf`, and the operator runs unchanged."""

from fnop.adapters.kopf.commands.names import *  # noqa: F403
from fnop.adapters.kopf.commands.names import __all__ as __all__
from fnop.adapters.kopf.declaring import lifecycles as lifecycles, on as on
