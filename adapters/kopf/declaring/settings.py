"""The settings of Kopf: a mutable tree, which becomes the settings of an operator."""

from __future__ import annotations

import concurrent.futures
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fnop.adapters.kopf.declaring.storages import (
    AnnotationsDiffBaseStorage,
    DiffBaseStorage,
    ProgressStorage,
    SmartProgressStorage,
)
from fnop.core.memory.takeover import KOPF_FINALIZER

__all__ = ["OperatorSettings"]


@dataclass
class ProcessSettings:
    ultimate_exiting_timeout: float | None = 10 * 60


@dataclass
class PostingSettings:
    enabled: bool = True
    loggers: bool = False
    level: int = logging.INFO
    default_backoffs: float | Iterable[float] = (1, 1, 2, 3, 5, 8, 13, 21)
    logging_backoffs: float | Iterable[float] = (1, 1, 2, 3, 5)
    worker_limit: int | None = None
    idle_timeout: float = 1.0
    reporting_component: str = "kopf"
    reporting_instance: str = "dev"
    event_name_prefix: str = "kopf-event-"


@dataclass
class PeeringSettings:
    name: str = "default"
    stealth: bool = False
    priority: int = 0
    lifetime: int = 60
    mandatory: bool = False
    standalone: bool = False
    clusterwide: bool = False

    @property
    def namespaced(self) -> bool:
        return not self.clusterwide

    @namespaced.setter
    def namespaced(self, value: bool) -> None:
        self.clusterwide = not value


@dataclass
class WatchingSettings:
    server_timeout: float | None = None
    client_timeout: float | None = None
    connect_timeout: float | None = None
    reconnect_backoff: float = 0.1
    inactivity_timeout: float | None = 70.0
    initial_streaming: bool = False
    chunk_size: int | None = None
    label_selectors: dict[Any, str] = field(default_factory=dict)
    field_selectors: dict[Any, str] = field(default_factory=dict)
    shard_selectors: dict[Any, str] = field(default_factory=dict)


@dataclass
class QueueingSettings:
    worker_limit: int | None = None
    idle_timeout: float = 5.0
    exit_timeout: float = 2.0
    batch_window: float = 0.1
    error_delays: Iterable[float] = (
        *(1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610),
    )


@dataclass
class ScanningSettings:
    disabled: bool = False


@dataclass
class AdmissionSettings:
    server: Any = None
    managed: str | None = None


@dataclass
class ExecutionSettings:
    """The `executor` runs handlers that are not coroutines."""

    default_backoff: float = 60
    executor: concurrent.futures.Executor = field(
        default_factory=concurrent.futures.ThreadPoolExecutor
    )
    _max_workers: int | None = None

    @property
    def max_workers(self) -> int | None:
        return self._max_workers

    @max_workers.setter
    def max_workers(self, value: int | None) -> None:
        if value is not None and value < 1:
            raise ValueError("max_workers is at least one, or None")
        if not hasattr(self.executor, "_max_workers"):
            raise TypeError(
                f"{type(self.executor).__name__} has no number of workers to change"
            )
        self._max_workers = value
        if value is not None:
            self.executor._max_workers = value


@dataclass
class BackgroundSettings:
    cancellation_polling: float = 60
    instant_exit_timeout: float | None = None
    instant_exit_zero_time_cycles: int | None = 10


@dataclass
class NetworkingSettings:
    request_timeout: float | None = 5 * 60
    connect_timeout: float | None = None
    error_backoffs: float | Iterable[float] | None = (1, 1, 2, 3, 5, 8, 13, 21)
    enforce_retry_after: bool = False
    trust_env: bool = False


@dataclass
class PersistenceSettings:
    finalizer: str = KOPF_FINALIZER
    progress_storage: ProgressStorage = field(default_factory=SmartProgressStorage)
    diffbase_storage: DiffBaseStorage = field(
        default_factory=AnnotationsDiffBaseStorage
    )
    consistency_timeout: float | None = 5.0


@dataclass
class OperatorSettings:
    """The settings of one operator; startup handlers change them in place.

    >>> settings = OperatorSettings()
    >>> settings.persistence.finalizer = "example.com/held"
    >>> settings.batching is settings.queueing
    True
    """

    process: ProcessSettings = field(default_factory=ProcessSettings)
    posting: PostingSettings = field(default_factory=PostingSettings)
    peering: PeeringSettings = field(default_factory=PeeringSettings)
    watching: WatchingSettings = field(default_factory=WatchingSettings)
    queueing: QueueingSettings = field(default_factory=QueueingSettings)
    scanning: ScanningSettings = field(default_factory=ScanningSettings)
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    background: BackgroundSettings = field(default_factory=BackgroundSettings)
    networking: NetworkingSettings = field(default_factory=NetworkingSettings)
    persistence: PersistenceSettings = field(default_factory=PersistenceSettings)

    @property
    def batching(self) -> QueueingSettings:
        """The former name of `queueing`."""
        return self.queueing
