"""The names of Kopf that fnop lacks or has with another meaning, and the advice."""

from __future__ import annotations

from collections.abc import Mapping

import fnop
from fnop.adapters.kopf.commands import names
from fnop.adapters.kopf.declaring import on
from fnop.adapters.kopf.porting.findings import Verdict
from fnop.adapters.kopf.porting.rules import Rule

__all__ = [
    "CALLS",
    "DECORATORS",
    "OTHER_MEANING",
    "SETTINGS",
    "SUBHANDLERS",
    "advice_for",
    "advice_for_setting",
    "sort_of",
]

# The decorators by their paths, with the names that reports use.
SUBHANDLERS = ("subhandler", "register")
_SHORT = ("daemon", "timer", "index", *SUBHANDLERS)
DECORATORS: Mapping[str, str] = {
    **{f"kopf.on.{name}": f"on.{name}" for name in on.__all__ if name not in _SHORT},
    **{f"kopf.{name}": name for name in _SHORT},
    **{f"kopf.on.{name}": name for name in _SHORT},
}

_EFFECT = (
    "it returns an effect: return fnop.{0}(reason, message) from the handler, or await "
    "it; about= names another object"
)
_IN_PLACE = "it changes nothing in place: write child = fnop.{0}(child, {1})"
_REFERENCE = (
    "it changes nothing in place, and needs the owner: child = fnop.{0}(child, body)"
)
# Functions of Kopf that exist under fnop, and work differently there.
OTHER_MEANING: Mapping[str, str] = {
    **{name: _EFFECT.format(name) for name in ("event", "info", "warn", "exception")},
    "adopt": "it returns an effect that creates the child: return fnop.adopt(child), "
    "or await it, without a client",
    "label": _IN_PLACE.format("label", "labels"),
    "harmonize_naming": _IN_PLACE.format("harmonize_naming", "name"),
    "adjust_namespace": _IN_PLACE.format("adjust_namespace", "namespace"),
    "append_owner_reference": _REFERENCE.format("append_owner_reference"),
    "remove_owner_reference": _REFERENCE.format("remove_owner_reference"),
    "Memo": "it is read-only, and holds JSON: fnop.remember(key=value) keeps a value",
    "run": "it runs handlers of fnop, and its options are those of fnop.operator",
    "operator": "it is used as `async with fnop.operator(...)`, with other options",
}
CALLS: Mapping[str, Rule] = {
    f"kopf.{name}": Rule(Verdict.CHANGES, OTHER_MEANING[name])
    for name in OTHER_MEANING
    if name != "Memo"
}

_STORAGE = (
    "settings.replace(storage=fnop.AnnotationStorage(...)), or fnop.StatusStorage"
)
_NO_TUNNEL = "fnop opens no tunnel: give fnop run --webhook-url the address"
_NO_LOCAL = "fnop.WebhookServer(...), and --webhook-url for the cluster's way to it"
_NO_LOGIN = "write no login handler: fnop finds the cluster as kubectl does"
_MAPPING = "annotate it as Mapping[str, Any]"
_TASKS = "async with fnop.operator(...)"
_REGISTRY = "fnop.Registry()"
_LIFECYCLE = "settings.replace(lifecycle=fnop.lifecycles...) in a startup handler"
_WITHOUT: Mapping[str, str] = {
    "AiohttpSession": "return fnop.ConnectionInfo from the login handler",
    "AnnotationsDiffBaseStorage": _STORAGE,
    "AnnotationsProgressStorage": _STORAGE,
    "AsyncDaemonStopperChecker": "fnop.Stopped",
    "BodyEssence": _MAPPING,
    "DaemonStopped": "fnop.Stopped",
    "DiffBaseStorage": _STORAGE,
    "FieldPath": "annotate it as tuple[str, ...]",
    "FieldSpec": "annotate it as str",
    "HandlerId": "annotate it as str",
    "Headers": _MAPPING,
    "LocalObjectLogger": "fnop.Logger",
    "LogFormat": "the option --log-format of fnop run",
    "MultiDiffBaseStorage": "settings.replace(storage=..., former_storages=...)",
    "MultiProgressStorage": "settings.replace(storage=..., former_storages=...)",
    "ObjectLogger": "fnop.Logger",
    "ObjectReference": _MAPPING,
    "Operation": "annotate it as str",
    "OperatorRegistry": _REGISTRY,
    "OperatorSettings": "fnop.Settings, which is one flat and immutable value",
    "OwnerReference": _MAPPING,
    "PatchFn": "annotate it as Callable[[Any], None]",
    "ProgressRecord": _MAPPING,
    "ProgressStorage": _STORAGE,
    "RawBody": _MAPPING,
    "RawEvent": _MAPPING,
    "RawEventType": "fnop.EventType | None",
    "SSLPeer": _MAPPING,
    "SmartProgressStorage": _STORAGE,
    "StatusDiffBaseStorage": "settings.replace(storage=fnop.StatusStorage(...))",
    "StatusProgressStorage": "settings.replace(storage=fnop.StatusStorage(...))",
    "Store": "the values of an index are tuples: annotate tuple[Any, ...]",
    "SyncDaemonStopperChecker": "fnop.Stopped",
    "UserInfo": _MAPPING,
    "WebhookAutoServer": _NO_LOCAL,
    "WebhookAutoTunnel": _NO_TUNNEL,
    "WebhookDockerDesktopServer": _NO_LOCAL,
    "WebhookK3dServer": _NO_LOCAL,
    "WebhookMinikubeServer": _NO_LOCAL,
    "WebhookNgrokTunnel": _NO_TUNNEL,
    "configure": "the options --verbose and --log-format of fnop run",
    "get_default_lifecycle": _LIFECYCLE,
    "get_default_registry": _REGISTRY,
    "login_via_async_client": _NO_LOGIN,
    "login_via_client": _NO_LOGIN,
    "login_via_pykube": _NO_LOGIN,
    "run_tasks": _TASKS,
    "set_default_lifecycle": _LIFECYCLE,
    "set_default_registry": _REGISTRY,
    "spawn_tasks": _TASKS,
    "cli": "start the operator by fnop run, or by fnop.run()",
    "testing": "fnop.testing has simulations for tests",
    **{f"on.{name}": f"fnop.{name}" for name in _SHORT},
}
_OURS = frozenset(dir(fnop)) | {f"on.{name}" for name in dir(fnop.on)}
_THEIRS = frozenset((*names.__all__, "cli", "testing"))
_PACKAGE = frozenset(("on", "lifecycles"))


def advice_for(name: str) -> str | None:
    """The replacement of a name that fnop lacks; None if fnop has it.

    `name` is relative to Kopf, such as `DaemonStopped` or `on.daemon`.

    >>> advice_for("DaemonStopped"), advice_for("TemporaryError")
    ('fnop.Stopped', None)
    """
    top, _, rest = name.partition(".")
    if top.startswith("_"):
        return "a private module of Kopf: import the name from kopf, or from fnop"
    name = f"on.{rest.partition('.')[0]}" if top == "on" and rest else top
    if name in _WITHOUT:
        return _WITHOUT[name]
    if name in _OURS or name in _PACKAGE:
        return None
    return "fnop has no such name"


def sort_of(name: str) -> str | None:
    """The sort of a name in the report: missing, private, other; None for the rest."""
    if name.startswith("_"):
        return "private"
    if advice_for(name) is not None:
        return "missing"
    return "other" if name in OTHER_MEANING else None


_NONE = "fnop has no such setting: leave it out"
# The settings of Kopf by their paths, with what a startup handler returns instead.
SETTINGS: Mapping[str, str] = {
    "process": _NONE,
    "posting": "return settings.replace(posting_level=...), which is about log lines",
    "posting.enabled": _NONE,
    "peering": "the options --peering, --priority and --standalone of fnop run",
    "watching": _NONE,
    "watching.server_timeout": "return settings.replace(watch_timeout_seconds=...)",
    "watching.inactivity_timeout": "return settings.replace(watch_silence_seconds=...)",
    "watching.initial_streaming": "return settings.replace(initial_streaming=...)",
    "queueing": _NONE,
    "batching": _NONE,
    "queueing.worker_limit": "return settings.replace(request_concurrency=...)",
    "batching.worker_limit": "return settings.replace(request_concurrency=...)",
    "scanning": _NONE,
    "admission": "return settings.replace(admission_server=..., admission_managed=...)",
    "execution": _NONE,
    "execution.default_backoff": "return settings.replace(default_backoff=...)",
    "execution.max_workers": "return settings.replace(call_threads=...)",
    "execution.executor": "return settings.replace(call_threads=...)",
    "background": "fnop polls nothing: daemons have options of their own",
    "networking": "fnop has constants and growing delays: leave it out",
    "persistence": f"return {_STORAGE}",
    "persistence.finalizer": "return settings.replace(finalizer=...)",
    "persistence.consistency_timeout": "return settings.replace("
    "echo_timeout_seconds=...)",
}
_FLAT = "settings are one flat value: return settings.replace(...)"


def advice_for_setting(path: str) -> str:
    """The replacement of a setting of Kopf, such as `execution.default_backoff`.

    >>> advice_for_setting("execution.default_backoff")
    'return settings.replace(default_backoff=...)'
    """
    while path:
        if path in SETTINGS:
            return SETTINGS[path]
        path = path.rpartition(".")[0]
    return _FLAT
