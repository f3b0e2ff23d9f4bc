"""What an operator can be tuned by: one immutable value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fnop.core.lifecycles import Lifecycle, all_at_once

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

__all__ = ["Settings"]

# The operator's name becomes part of an annotation's name (63 characters of
# alphanumerics, `-`, `_`, `.`; Kubernetes: labels and annotations).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are in seconds.

    `operator` tells several operators that serve one kind apart: the finalizer,
    the stored state and the field manager carry it as `fnop.dev/<operator>`.
    `namespaces` None serves the whole cluster.  `lifecycle` chooses which of several
    handlers that are due are called in one pass (`fnop.core.lifecycles`).
    """

    operator: str = "default"
    namespaces: tuple[str, ...] | None = None
    default_backoff_seconds: float = 60.0
    request_concurrency: int = 32
    echo_timeout_seconds: float = 5.0
    list_page_limit: int = 500
    watch_timeout_seconds: int = 290
    watch_silence_seconds: float = 330.0
    lifecycle: Lifecycle = all_at_once

    def __post_init__(self) -> None:
        for namespace in self.namespaces or ():
            if not _NAMESPACE.fullmatch(namespace):
                raise ValueError(
                    f"{namespace!r} is no name of a namespace; patterns are not "
                    "supported yet, so name each namespace, or serve all with -A"
                )
        if not _NAME.fullmatch(self.operator):
            raise ValueError(
                f"the operator's name {self.operator!r} must be a short lower-case "
                "name of letters, digits, '-' and '.', such as 'billing'"
            )

    @property
    def marker(self) -> str:
        """The operator's name on objects: finalizer, annotation, status field."""
        return f"fnop.dev/{self.operator}"
