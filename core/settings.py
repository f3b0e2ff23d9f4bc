"""What an operator can be tuned by: one immutable value."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fnop.core.lifecycles import Lifecycle, all_at_once
from fnop.core.namespaces import check_namespace

if TYPE_CHECKING:
    from fnop.core.election import Candidate
    from fnop.core.peers import Member

__all__ = ["Settings"]

# The operator's name becomes part of an annotation's name (63 characters of
# alphanumerics, `-`, `_`, `.`; Kubernetes: labels and annotations).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?")


def _no_setting(name: str) -> str:
    known = Settings.__slots__
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no setting {name!r}; {hint}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations are in seconds.

    `operator` tells several operators that serve one kind apart: the finalizer,
    the stored state and the field manager carry it as `fnop.dev/<operator>`.
    `namespaces`, names or patterns (`fnop.core.namespaces`), None serves the whole
    cluster.  `rediscovery_seconds` is how often is looked for kinds that have come or
    gone, where nothing tells, `requests_per_second` how many requests there may be on
    the average (None: as many as are needed).  `lifecycle` chooses which of several
    handlers that are due are called in one pass (`fnop.core.lifecycles`).
    `selector` is a label selector that all served objects have to fit.
    `takes_over` is the prefix of the annotations of a Kopf operator that this one
    succeeds, such as `kopf.zalando.org` (`fnop.core.takeover`), `takes_over_finalizer`
    that operator's finalizer.  `conditions` lets objects tell in their status what
    their handlers wait for, and which have failed for good.  `peering` is this operator
    among others that may serve the same (None: it does not look for them), `election`
    its candidacy among replicas of its own.
    """

    operator: str = "default"
    namespaces: tuple[str, ...] | None = None
    selector: str = ""
    default_backoff_seconds: float = 60.0
    request_concurrency: int = 32
    echo_timeout_seconds: float = 5.0
    list_page_limit: int = 500
    watch_timeout_seconds: int = 290
    watch_silence_seconds: float = 330.0
    rediscovery_seconds: float = 600.0
    requests_per_second: float | None = None
    lifecycle: Lifecycle = all_at_once
    conditions: bool = True
    takes_over: str | None = None
    takes_over_finalizer: str = "kopf.zalando.org/KopfFinalizerMarker"
    peering: Member | None = None
    election: Candidate | None = None

    def __post_init__(self) -> None:
        for namespace in self.namespaces or ():
            check_namespace(namespace)
        if not _NAME.fullmatch(self.operator):
            raise ValueError(
                f"the operator's name {self.operator!r} must be a short lower-case "
                "name of letters, digits, '-' and '.', such as 'billing'"
            )

    def replace(self, **changes: Any) -> Settings:
        """The same settings with these changed; a startup handler may return them.

        >>> Settings().replace(default_backoff_seconds=5.0).default_backoff_seconds
        5.0

        Raises `TypeError` for a setting that there is not.
        """
        for name in changes:
            if name not in self.__slots__:
                raise TypeError(_no_setting(name))
        return replace(self, **changes)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_no_setting(name))

    @property
    def finalizers(self) -> tuple[str, ...]:
        """This operator's finalizer, and those that it takes the place of."""
        taken = (self.takes_over_finalizer,) if self.takes_over else ()
        return (self.marker, *taken)

    @property
    def marker(self) -> str:
        """The operator's name on objects: finalizer, annotation, status field."""
        return f"fnop.dev/{self.operator}"
