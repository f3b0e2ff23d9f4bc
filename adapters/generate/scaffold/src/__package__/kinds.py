"""The kinds of the API; `make manifests` writes their definitions (CRDs)."""

from dataclasses import dataclass
from typing import Annotated

import fnop


@dataclass(frozen=True)
class __Kind__Spec:
    image: Annotated[str, fnop.schema(pattern="^[a-z0-9][A-Za-z0-9._/:@-]*$")]
    """The container image to run."""
    replicas: Annotated[int, fnop.schema(minimum=0, maximum=100)] = 1
    """The number of pods."""
    port: Annotated[int, fnop.schema(minimum=1, maximum=65535)] = 8080
    """The port that the container listens on."""


@dataclass(frozen=True)
class __Kind__Status:
    replicas: int = 0
    """The number of pods that exist."""


@fnop.definition(
    "__plural__.v1.__group__",
    columns=[
        fnop.column("Image", ".spec.image"),
        fnop.column("Ready", '.status.conditions[?(@.type=="Ready")].message'),
        fnop.column("Age", ".metadata.creationTimestamp", type="date"),
    ],
    scale=fnop.scale(spec=".spec.replicas", status=".status.replicas"),
    conditions=True,
)
@dataclass(frozen=True)
class __Kind__:
    """An application: pods of one image, behind a Service."""

    spec: __Kind__Spec
    status: __Kind__Status | None
