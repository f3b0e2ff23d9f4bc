"""Kopf's API on fnop: `from fnop import kopf`, and the operator runs unchanged."""

from fnop.adapters.kopf import lifecycles as lifecycles, on as on
from fnop.adapters.kopf.names import *  # noqa: F403
from fnop.adapters.kopf.names import __all__ as __all__
