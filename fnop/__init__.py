"""Kubernetes operators as pure functions from observed state to effects.

The rooms, from the inside out:

- `fnop.effects`: the effects that an operator can request;
- `fnop.core`: all decisions, from a watch event to effects; start at
  `fnop.core.operator.step.step`;
- `fnop.interpreters`: executing, on a real cluster, a simulated one, a record;
- `fnop.adapters`: translating, between fnop and everything else.

This facade re-exports the names that operators need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fnop.core.api.cluster_changes import (
    ServedKind as ServedKind,
    ServerVersion as ServerVersion,
)
from fnop.core.api.definitions import (
    IntOrString as IntOrString,
    Quantity as Quantity,
    column as column,
    definition as definition,
    rule as rule,
    scale as scale,
    schema as schema,
)
from fnop.core.api.hierarchies import (
    adjust_namespace as adjust_namespace,
    append_owner_reference as append_owner_reference,
    build_object_reference as build_object_reference,
    build_owner_reference as build_owner_reference,
    harmonize_naming as harmonize_naming,
    label as label,
    remove_owner_reference as remove_owner_reference,
)
from fnop.core.api.ownership import owned as owned
from fnop.core.api.resources import EVERYTHING as EVERYTHING, Resource as Resource
from fnop.core.children.owned import Children as Children
from fnop.core.handlers.declare import lifecycles as lifecycles
from fnop.core.handlers.declare.connection import (
    ConnectionInfo as ConnectionInfo,
    Impersonation as Impersonation,
    LoginError as LoginError,
)
from fnop.core.handlers.declare.decorators import (
    daemon as daemon,
    execute as execute,
    index as index,
    maps as maps,
    on as on,
    reconcile as reconcile,
    register as register,
    subhandler as subhandler,
    timer as timer,
)
from fnop.core.handlers.declare.filters import (
    ABSENT as ABSENT,
    PRESENT as PRESENT,
    all_ as all_,
    any_ as any_,
    none_ as none_,
    not_ as not_,
)
from fnop.core.handlers.declare.registry import Registry as Registry
from fnop.core.handlers.declare.settings import Settings as Settings
from fnop.core.handlers.declare.signatures import (
    INDEX as INDEX,
    JSON as JSON,
    AdmissionHandler as AdmissionHandler,
    Annotations as Annotations,
    Body as Body,
    ChangeHandler as ChangeHandler,
    CleanupHandler as CleanupHandler,
    DaemonHandler as DaemonHandler,
    EventHandler as EventHandler,
    EventType as EventType,
    Index as Index,
    IndexHandler as IndexHandler,
    KindHandler as KindHandler,
    Labels as Labels,
    Logger as Logger,
    LogHandler as LogHandler,
    LoginHandler as LoginHandler,
    MapHandler as MapHandler,
    Patch as Patch,
    ProbeHandler as ProbeHandler,
    ReachHandler as ReachHandler,
    Reason as Reason,
    ReconcileHandler as ReconcileHandler,
    Result as Result,
    Spec as Spec,
    StartupHandler as StartupHandler,
    Status as Status,
    TimerHandler as TimerHandler,
    UpgradeHandler as UpgradeHandler,
    Warnings as Warnings,
)
from fnop.core.handlers.declare.writers import (
    DaemonStoppingReason as DaemonStoppingReason,
    Stopped as Stopped,
)
from fnop.core.kubernetes.quantities import quantity as quantity
from fnop.core.memory.storage import (
    AnnotationStorage as AnnotationStorage,
    AutoStorage as AutoStorage,
    StatusStorage as StatusStorage,
    Storage as Storage,
)
from fnop.core.values.backoff import Backoff as Backoff
from fnop.core.values.body import (
    Memo as Memo,
    Meta as Meta,
    View as View,
)
from fnop.core.values.diff import (
    Diff as Diff,
    DiffItem as DiffItem,
    DiffOperation as DiffOperation,
)
from fnop.core.values.errors import (
    AdmissionError as AdmissionError,
    CallFailed as CallFailed,
    Cancelled as Cancelled,
    Denied as Denied,
    ErrorsMode as ErrorsMode,
    HandlerRetriesError as HandlerRetriesError,
    HandlerTimeoutError as HandlerTimeoutError,
    PermanentError as PermanentError,
    Refused as Refused,
    RegistrationError as RegistrationError,
    TemporaryError as TemporaryError,
)
from fnop.effects.builders import (
    adopt as adopt,
    again as again,
    apply as apply,
    call as call,
    create as create,
    delete as delete,
    event as event,
    exception as exception,
    freeze as freeze,
    get as get,
    info as info,
    list as list,
    log as log,
    patch as patch,
    random as random,
    rate as rate,
    remember as remember,
    requeue as requeue,
    result as result,
    resume as resume,
    sleep as sleep,
    target as target,
    warn as warn,
)
from fnop.effects.desired import (
    UNCHANGED as UNCHANGED,
    Child as Child,
    Desired as Desired,
    StatusCondition as StatusCondition,
    child as child,
    condition as condition,
    desired as desired,
)
from fnop.effects.effects import Effect as Effect, Rate as Rate, Target as Target

if TYPE_CHECKING:
    from fnop.adapters.kubernetes.credentials import (
        login_with_kubeconfig as login_with_kubeconfig,
        login_with_service_account as login_with_service_account,
    )
    from fnop.adapters.running.embedding import (
        OperatorFailed as OperatorFailed,
        Running as Running,
        operator as operator,
        run as run,
    )
    from fnop.adapters.webhooks.protocol import (
        WebhookClientConfig as WebhookClientConfig,
        WebhookClientConfigService as WebhookClientConfigService,
        WebhookFn as WebhookFn,
        WebhookServerProtocol as WebhookServerProtocol,
    )
    from fnop.adapters.webhooks.server import WebhookServer as WebhookServer

__version__ = "0.2.0.dev0"

# Names from the outer rooms, which are imported when one of these is first used.
_OUTER = {
    name: f"fnop.adapters.{module}"
    for module, names in (
        ("running.embedding", ("OperatorFailed", "Running", "operator", "run")),
        (
            "kubernetes.credentials",
            ("login_with_kubeconfig", "login_with_service_account"),
        ),
        (
            "webhooks.protocol",
            (
                *("WebhookClientConfig", "WebhookClientConfigService"),
                *("WebhookFn", "WebhookServerProtocol"),
            ),
        ),
        ("webhooks.server", ("WebhookServer",)),
    )
    for name in names
}


def _nearest(name: str) -> str | None:
    names = [each for each in (*globals(), *_OUTER) if not each.startswith("_")]
    near = import_module("difflib").get_close_matches(name, names, n=1)
    return near[0] if near else None


if not TYPE_CHECKING:  # a type checker reads the names itself

    def __getattr__(name: str) -> Any:
        if name == "testing":
            return import_module("fnop.testing")
        if name not in _OUTER:
            near = _nearest(name)
            hint = f"; did you mean fnop.{near}?" if near else ""
            raise AttributeError(f"module 'fnop' has no attribute {name!r}{hint}")
        return getattr(import_module(_OUTER[name]), name)

    def __dir__() -> Any:
        return sorted({*globals(), *_OUTER})
