"""All public names of Kopf 1.45, each from the room that has it.

Names that are there for annotations alone are here, too. A name that fnop cannot serve
raises an error with the remedy when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fnop.adapters.kopf.arguments.bodies import Body, Meta, Spec, Status
from fnop.adapters.kopf.arguments.connections import ConnectionInfo
from fnop.adapters.kopf.arguments.indices import Index, Store
from fnop.adapters.kopf.arguments.memos import Memo
from fnop.adapters.kopf.arguments.patches import Patch, PatchFn
from fnop.adapters.kopf.arguments.stopping import DaemonStopped, DaemonStoppingReason
from fnop.adapters.kopf.arguments.types import (
    Annotations,
    BodyEssence,
    Diff,
    DiffItem,
    FieldPath,
    FieldSpec,
    HandlerId,
    Headers,
    Labels,
    Logger,
    ObjectReference,
    Operation,
    OwnerReference,
    RawBody,
    RawEvent,
    RawEventType,
    SSLPeer,
    UserInfo,
)
from fnop.adapters.kopf.commands.private_modules import PACKAGES, package
from fnop.adapters.kopf.declaring import lifecycles, on
from fnop.adapters.kopf.declaring.lifecycles import (
    get_default_lifecycle,
    set_default_lifecycle,
)
from fnop.adapters.kopf.declaring.on import daemon, index, register, subhandler, timer
from fnop.adapters.kopf.declaring.registry import (
    OperatorRegistry,
    get_default_registry,
    set_default_registry,
)
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.declaring.storages import (
    AnnotationsDiffBaseStorage,
    AnnotationsProgressStorage,
    DiffBaseStorage,
    MultiDiffBaseStorage,
    MultiProgressStorage,
    ProgressRecord,
    ProgressStorage,
    SmartProgressStorage,
    StatusDiffBaseStorage,
    StatusProgressStorage,
)
from fnop.adapters.kopf.running.embedding import operator, run, run_tasks, spawn_tasks
from fnop.adapters.kopf.running.events import event, exception, info, warn
from fnop.adapters.kopf.running.hierarchies import (
    adjust_namespace,
    adopt,
    append_owner_reference,
    build_object_reference,
    build_owner_reference,
    harmonize_naming,
    label,
    remove_owner_reference,
)
from fnop.adapters.kopf.running.logins import (
    AiohttpSession,
    login_via_async_client,
    login_via_client,
    login_via_pykube,
    login_with_kubeconfig,
    login_with_service_account,
)
from fnop.adapters.kopf.running.logs import (
    LocalObjectLogger,
    LogFormat,
    ObjectLogger,
    configure,
)
from fnop.adapters.kopf.running.subhandlers import execute
from fnop.adapters.webhooks.protocol import (
    WebhookClientConfig,
    WebhookClientConfigService,
    WebhookFn,
    WebhookServerProtocol,
)
from fnop.core.api.resources import EVERYTHING, Resource
from fnop.core.handlers.declare.connection import LoginError
from fnop.core.handlers.declare.filters import (
    ABSENT,
    PRESENT,
    all_,
    any_,
    none_,
    not_,
)
from fnop.core.values.cause import Reason
from fnop.core.values.diff import DiffOperation
from fnop.core.values.errors import (
    AdmissionError,
    ErrorsMode,
    HandlerRetriesError,
    HandlerTimeoutError,
    PermanentError,
    TemporaryError,
)

if TYPE_CHECKING:
    from fnop.adapters.kopf.commands.webhooks import (
        WebhookAutoServer,
        WebhookAutoTunnel,
        WebhookDockerDesktopServer,
        WebhookK3dServer,
        WebhookMinikubeServer,
        WebhookNgrokTunnel,
        WebhookServer,
    )

__all__ = [
    "ABSENT",
    "EVERYTHING",
    "PRESENT",
    "AdmissionError",
    "AiohttpSession",
    "Annotations",
    "AnnotationsDiffBaseStorage",
    "AnnotationsProgressStorage",
    "AsyncDaemonStopperChecker",
    "Body",
    "BodyEssence",
    "ConnectionInfo",
    "DaemonStopped",
    "DaemonStoppingReason",
    "Diff",
    "DiffBaseStorage",
    "DiffItem",
    "DiffOperation",
    "ErrorsMode",
    "FieldPath",
    "FieldSpec",
    "HandlerId",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "Headers",
    "Index",
    "Labels",
    "LocalObjectLogger",
    "LogFormat",
    "Logger",
    "LoginError",
    "Memo",
    "Meta",
    "MultiDiffBaseStorage",
    "MultiProgressStorage",
    "ObjectLogger",
    "ObjectReference",
    "Operation",
    "OperatorRegistry",
    "OperatorSettings",
    "OwnerReference",
    "Patch",
    "PatchFn",
    "PermanentError",
    "ProgressRecord",
    "ProgressStorage",
    "RawBody",
    "RawEvent",
    "RawEventType",
    "Reason",
    "Resource",
    "SSLPeer",
    "SmartProgressStorage",
    "Spec",
    "Status",
    "StatusDiffBaseStorage",
    "StatusProgressStorage",
    "Store",
    "SyncDaemonStopperChecker",
    "TemporaryError",
    "UserInfo",
    "WebhookAutoServer",
    "WebhookAutoTunnel",
    "WebhookClientConfig",
    "WebhookClientConfigService",
    "WebhookDockerDesktopServer",
    "WebhookFn",
    "WebhookK3dServer",
    "WebhookMinikubeServer",
    "WebhookNgrokTunnel",
    "WebhookServer",
    "WebhookServerProtocol",
    "adjust_namespace",
    "adopt",
    "all_",
    "any_",
    "append_owner_reference",
    "build_object_reference",
    "build_owner_reference",
    "configure",
    "daemon",
    "event",
    "exception",
    "execute",
    "get_default_lifecycle",
    "get_default_registry",
    "harmonize_naming",
    "index",
    "info",
    "label",
    "lifecycles",
    "login_via_async_client",
    "login_via_client",
    "login_via_pykube",
    "login_with_kubeconfig",
    "login_with_service_account",
    "none_",
    "not_",
    "on",
    "operator",
    "register",
    "remove_owner_reference",
    "run",
    "run_tasks",
    "set_default_lifecycle",
    "set_default_registry",
    "spawn_tasks",
    "subhandler",
    "timer",
    "warn",
]

# Former names.
SyncDaemonStopperChecker = AsyncDaemonStopperChecker = DaemonStopped

# The servers of webhooks need aiohttp, which takes a third of an operator's start. They
# are imported when one is first used.
SERVERS = frozenset(
    (
        *("WebhookAutoServer", "WebhookAutoTunnel", "WebhookDockerDesktopServer"),
        *("WebhookK3dServer", "WebhookMinikubeServer", "WebhookNgrokTunnel"),
        "WebhookServer",
    )
)

if not TYPE_CHECKING:  # a type checker reads the names itself

    def __getattr__(name: str) -> Any:
        if f"kopf.{name}" in PACKAGES:
            return package(f"kopf.{name}")
        if name not in SERVERS:
            raise AttributeError(f"module 'kopf' has no attribute {name!r}")
        return getattr(import_module("fnop.adapters.kopf.commands.webhooks"), name)
