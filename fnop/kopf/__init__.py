"""Kopf's API on fnop: `from fnop import kopf`, and the operator runs unchanged."""

from typing import TYPE_CHECKING, Any

from fnop.adapters.kopf.commands import names as _names
from fnop.adapters.kopf.commands.names import __all__ as __all__
from fnop.adapters.kopf.declaring import lifecycles as lifecycles, on as on

if TYPE_CHECKING:
    from fnop.adapters.kopf.commands.names import *  # noqa: F403
else:
    _first = set(__all__) - _names.SERVERS
    globals().update({name: getattr(_names, name) for name in _first})

    def __getattr__(name: str) -> Any:
        return getattr(_names, name)

    def __dir__() -> Any:
        return sorted({*globals(), *__all__})
