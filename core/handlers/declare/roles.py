"""The roles of handlers, and a table of the rules of each role.

`ROLES` has a row for each role. A new kind of handlers begins with a role and its row.
All other modules read the differences between roles from the row (`Handler.rule`). The
columns have no defaults, so that no rule of a new role is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from msgspec import Struct

from fnop.core.handlers.declare.checks import (
    Declared,
    check_daemon,
    check_index,
    check_map,
    check_outside,
    check_reconcile,
    unchecked,
)
from fnop.core.handlers.declare.options import (
    ActivityOptions,
    AdmissionOptions,
    CreateOptions,
    DaemonOptions,
    DeleteOptions,
    EventOptions,
    FieldOptions,
    IndexOptions,
    LoginOptions,
    LogOptions,
    MapOptions,
    ProbeOptions,
    ReachOptions,
    ReconcileOptions,
    ResumeOptions,
    TimerOptions,
    UpdateOptions,
)
from fnop.core.handlers.declare.signatures import (
    AdmissionHandler,
    ChangeHandler,
    CleanupHandler,
    DaemonHandler,
    EventHandler,
    IndexHandler,
    KindHandler,
    LogHandler,
    LoginHandler,
    MapHandler,
    ProbeHandler,
    ReachHandler,
    ReconcileHandler,
    StartupHandler,
    TimerHandler,
    UpgradeHandler,
    names_in,
)
from fnop.core.values.cause import Reason
from fnop.core.values.errors import ErrorsMode

__all__ = [
    "ACTIVITIES",
    "ADMISSION",
    "BACKGROUND",
    "CHANGES",
    "CLUSTER",
    "EVENTS",
    "INDICES",
    "INFORMING",
    "LOGS",
    "OUTSIDE",
    "RECONCILERS",
    "ROLES",
    "Family",
    "Finalizer",
    "Role",
    "RoleRule",
    "kwargs_of",
    "roles_of",
]


class Role(Enum):
    """The roles of handlers, one for each decorator."""

    STARTUP = "startup"
    CLEANUP = "cleanup"
    LOGIN = "login"
    PROBE = "probe"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESUME = "resume"
    FIELD = "field"
    EVENT = "event"
    INDEX = "index"
    DAEMON = "daemon"
    TIMER = "timer"
    RECONCILE = "reconcile"
    MAP = "map"
    LOG = "log"
    MUTATE = "mutate"
    VALIDATE = "validate"
    UPGRADED = "upgraded"
    KIND_ADDED = "kind_added"
    KIND_REMOVED = "kind_removed"
    KIND_CHANGED = "kind_changed"
    UNREACHABLE = "unreachable"
    REACHED = "reached"


class Family(Enum):
    """The families of roles, by the time of their calls and their results.

    - ACTIVITY: in a phase of the operator's life; not about an object
    - OUTSIDE: by adapters, outside of every step; returns no effects
    - CHANGE: for a cause, until it has succeeded; has progress and sub-handlers
    - EVENT: for each watch event, once
    - LOG: for each line of a pod's log, once
    - INDEX: for each state of an object that is stored; returns values at once
    - BACKGROUND: concurrently with all others, for as long as the object exists
    - RECONCILER: whenever the object, or anything it owns, has changed since the last
    call
    - CLUSTER: for a change of the cluster itself; not about an object
    - ADMISSION: before a write is stored, concurrently with every step; decides, and
      waits for nothing
    """

    ACTIVITY = "activity"
    OUTSIDE = "outside"
    CHANGE = "change"
    EVENT = "event"
    LOG = "log"
    INDEX = "index"
    BACKGROUND = "background"
    RECONCILER = "reconciler"
    CLUSTER = "cluster"
    ADMISSION = "admission"


class Finalizer(Enum):
    """The rules for a finalizer, which keeps objects until a handler is done with them.

    Except for NEVER, an option decides: `optional=` or `finalizer=`. A daemon is
    stopped before its object is gone, unless it declines. A timer is stopped first only
    if its option asks for it.
    """

    NEVER = "never"
    UNLESS_OPTIONAL = "unless optional"
    UNLESS_DECLINED = "unless declined"
    IF_ASKED = "if asked"


class RoleRule(Struct, frozen=True, kw_only=True, eq=False):
    """The rules of a role.

    - family: its family
    - decorator: the decorator's name
    - protocol: the arguments that its handlers may have
    - options: the type of its decorator's options
    - needs: the required options
    - check: refuses a handler that cannot work; raises `RegistrationError`
    - errors: the default mode of errors
    - reasons: the causes that lead to a call of a handler of changes
    - compares: whether a difference between the observed fields and the state that it
      has acted upon leads to a call
    - remembers: whether fnop stores the last-handled state on the object for it
    - finalizer: the rule for the finalizer
    - tells_ends: whether it distinguishes deleted objects from unselected ones
    - lasts: whether one call may take as long as its object exists
    - posts: whether its log lines become Kubernetes Events
    - mutates: whether its handlers may change the object that is about to be stored
    - follows: whether the objects of its kinds are listed and watched
    - verbs: the verbs that its kinds must support, in addition to list and watch
    - is_about_kinds: whether its handlers may select kinds, and not objects
    """

    family: Family
    decorator: str
    protocol: type
    options: type
    needs: tuple[str, ...]
    check: Callable[[Declared], None]
    errors: ErrorsMode
    reasons: tuple[Reason, ...]
    compares: bool
    remembers: bool
    finalizer: Finalizer
    tells_ends: bool
    lasts: bool
    posts: bool
    mutates: bool
    follows: bool
    verbs: tuple[str, ...]
    is_about_kinds: bool = False

    @property
    def is_about_objects(self) -> bool:
        """Whether its handlers are for objects of a kind."""
        return self.family not in (Family.ACTIVITY, Family.OUTSIDE, Family.CLUSTER)

    @property
    def ignores_failures(self) -> bool:
        """Whether fnop only logs a failure, and does nothing else."""
        return self.errors is ErrorsMode.IGNORED

    @property
    def has_past(self) -> bool:
        """Whether there can be a previous state; a creation has none."""
        return not {*self.reasons} <= {Reason.CREATE}

    @property
    def is_for_new(self) -> bool:
        """Whether it is called for objects that are new to this operator."""
        return Reason.CREATE in self.reasons

    @property
    def is_for_resuming(self) -> bool:
        """Whether it is called once in a process for each known object."""
        return Reason.RESUME in self.reasons


def _rule_of_cluster(
    name: str,
    protocol: type,
    options: type = ActivityOptions,
    *,
    is_about_kinds: bool = False,
) -> RoleRule:
    """The row of a change of the cluster; the rows differ only in their content."""
    return RoleRule(
        family=Family.CLUSTER,
        decorator=f"@fnop.on.cluster.{name}",
        protocol=protocol,
        options=options,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
        is_about_kinds=is_about_kinds,
    )


ROLES: Mapping[Role, RoleRule] = {
    Role.STARTUP: RoleRule(
        family=Family.ACTIVITY,
        decorator="@fnop.on.startup",
        protocol=StartupHandler,
        options=ActivityOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
    ),
    Role.CLEANUP: RoleRule(
        family=Family.ACTIVITY,
        decorator="@fnop.on.cleanup",
        protocol=CleanupHandler,
        options=ActivityOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
    ),
    Role.LOGIN: RoleRule(
        family=Family.OUTSIDE,
        decorator="@fnop.on.login",
        protocol=LoginHandler,
        options=LoginOptions,
        needs=(),
        check=check_outside,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
    ),
    Role.PROBE: RoleRule(
        family=Family.OUTSIDE,
        decorator="@fnop.on.probe",
        protocol=ProbeHandler,
        options=ProbeOptions,
        needs=(),
        check=check_outside,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
    ),
    Role.CREATE: RoleRule(
        family=Family.CHANGE,
        decorator="@fnop.on.create",
        protocol=ChangeHandler,
        options=CreateOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(Reason.CREATE,),
        compares=False,
        remembers=True,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.UPDATE: RoleRule(
        family=Family.CHANGE,
        decorator="@fnop.on.update",
        protocol=ChangeHandler,
        options=UpdateOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(Reason.UPDATE,),
        compares=True,
        remembers=True,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.DELETE: RoleRule(
        family=Family.CHANGE,
        decorator="@fnop.on.delete",
        protocol=ChangeHandler,
        options=DeleteOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(Reason.DELETE,),
        compares=False,
        remembers=False,
        finalizer=Finalizer.UNLESS_OPTIONAL,
        tells_ends=True,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.RESUME: RoleRule(
        family=Family.CHANGE,
        decorator="@fnop.on.resume",
        protocol=ChangeHandler,
        options=ResumeOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(Reason.RESUME, Reason.UPDATE, Reason.DELETE),
        compares=False,
        remembers=True,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.FIELD: RoleRule(
        family=Family.CHANGE,
        decorator="@fnop.on.field",
        protocol=ChangeHandler,
        options=FieldOptions,
        needs=("field",),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(Reason.CREATE, Reason.UPDATE, Reason.DELETE),
        compares=True,
        remembers=True,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.EVENT: RoleRule(
        family=Family.EVENT,
        decorator="@fnop.on.event",
        protocol=EventHandler,
        options=EventOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.IGNORED,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=True,
        lasts=False,
        posts=False,
        mutates=False,
        follows=True,
        verbs=(),
    ),
    Role.INDEX: RoleRule(
        family=Family.INDEX,
        decorator="@fnop.index",
        protocol=IndexHandler,
        options=IndexOptions,
        needs=(),
        check=check_index,
        errors=ErrorsMode.IGNORED,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.DAEMON: RoleRule(
        family=Family.BACKGROUND,
        decorator="@fnop.daemon",
        protocol=DaemonHandler,
        options=DaemonOptions,
        needs=(),
        check=check_daemon,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.UNLESS_DECLINED,
        tells_ends=True,
        lasts=True,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.TIMER: RoleRule(
        family=Family.BACKGROUND,
        decorator="@fnop.timer",
        protocol=TimerHandler,
        options=TimerOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.IF_ASKED,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.RECONCILE: RoleRule(
        family=Family.RECONCILER,
        decorator="@fnop.reconcile",
        protocol=ReconcileHandler,
        options=ReconcileOptions,
        needs=(),
        check=check_reconcile,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=True,
        mutates=False,
        follows=True,
        verbs=("patch",),
    ),
    Role.MAP: RoleRule(
        family=Family.EVENT,
        decorator="@fnop.maps",
        protocol=MapHandler,
        options=MapOptions,
        needs=("to",),
        check=check_map,
        errors=ErrorsMode.TEMPORARY,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=True,
        lasts=False,
        posts=False,
        mutates=False,
        follows=True,
        verbs=(),
    ),
    Role.LOG: RoleRule(
        family=Family.LOG,
        decorator="@fnop.on.log",
        protocol=LogHandler,
        options=LogOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.IGNORED,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=True,
        verbs=(),
    ),
    Role.MUTATE: RoleRule(
        family=Family.ADMISSION,
        decorator="@fnop.on.mutate",
        protocol=AdmissionHandler,
        options=AdmissionOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.PERMANENT,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=True,
        follows=False,
        verbs=(),
    ),
    Role.VALIDATE: RoleRule(
        family=Family.ADMISSION,
        decorator="@fnop.on.validate",
        protocol=AdmissionHandler,
        options=AdmissionOptions,
        needs=(),
        check=unchecked,
        errors=ErrorsMode.PERMANENT,
        reasons=(),
        compares=False,
        remembers=False,
        finalizer=Finalizer.NEVER,
        tells_ends=False,
        lasts=False,
        posts=False,
        mutates=False,
        follows=False,
        verbs=(),
    ),
    Role.UPGRADED: _rule_of_cluster("upgraded", UpgradeHandler),
    Role.KIND_ADDED: _rule_of_cluster("kind_added", KindHandler, is_about_kinds=True),
    Role.KIND_REMOVED: _rule_of_cluster(
        "kind_removed", KindHandler, is_about_kinds=True
    ),
    Role.KIND_CHANGED: _rule_of_cluster(
        "kind_changed", KindHandler, is_about_kinds=True
    ),
    Role.UNREACHABLE: _rule_of_cluster("unreachable", ReachHandler, ReachOptions),
    Role.REACHED: _rule_of_cluster("reached", ReachHandler, ReachOptions),
}


def roles_of(family: Family) -> frozenset[Role]:
    """The roles of a family."""
    return frozenset(role for role, rule in ROLES.items() if rule.family is family)


ACTIVITIES = roles_of(Family.ACTIVITY)
OUTSIDE = roles_of(Family.OUTSIDE)
CHANGES = roles_of(Family.CHANGE)
EVENTS = roles_of(Family.EVENT)
INDICES = roles_of(Family.INDEX)
BACKGROUND = roles_of(Family.BACKGROUND)
RECONCILERS = roles_of(Family.RECONCILER)
LOGS = roles_of(Family.LOG)
ADMISSION = roles_of(Family.ADMISSION)
CLUSTER = roles_of(Family.CLUSTER)
# Their handlers act upon nothing: their results are for other handlers.
INFORMING = INDICES | {Role.MAP}

_KWARGS = {role: names_in(ROLES[role].protocol) for role in Role}


def kwargs_of(role: Role) -> frozenset[str]:
    """The arguments that a handler of this role may take."""
    return _KWARGS[role]
