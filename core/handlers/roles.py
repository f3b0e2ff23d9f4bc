"""What a handler is called for, and all that follows from that: one table.

`ROLES` has a row for each role.  A new kind of handlers begins with a role and its row;
what differs between roles elsewhere is asked of the row (`Handler.rule`).  The columns
have no defaults: what a role does is said, and not forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from fnop.core.handlers.checks import (
    Declared,
    check_daemon,
    check_index,
    check_outside,
    unchecked,
)
from fnop.core.handlers.options import (
    ActivityOptions,
    CreateOptions,
    DaemonOptions,
    DeleteOptions,
    EventOptions,
    FieldOptions,
    IndexOptions,
    LoginOptions,
    ProbeOptions,
    ResumeOptions,
    TimerOptions,
    UpdateOptions,
)
from fnop.core.handlers.signatures import (
    ChangeHandler,
    CleanupHandler,
    DaemonHandler,
    EventHandler,
    IndexHandler,
    LoginHandler,
    ProbeHandler,
    StartupHandler,
    TimerHandler,
    names_in,
)
from fnop.core.values.cause import Reason
from fnop.core.values.errors import ErrorsMode

__all__ = [
    "ACTIVITIES",
    "BACKGROUND",
    "CHANGES",
    "EVENTS",
    "INDICES",
    "OUTSIDE",
    "ROLES",
    "Family",
    "Finalizer",
    "Role",
    "RoleRule",
    "kwargs_of",
    "roles_of",
]


class Role(Enum):
    """What a handler is called for."""

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


class Family(Enum):
    """How handlers are called, and what becomes of what they answer.

    - ACTIVITY: by the operator, in a phase of its life; about no object
    - OUTSIDE: by adapters, outside of every step; answers no effects
    - CHANGE: for a cause, until it has succeeded; has progress and sub-handlers
    - EVENT: for each watch event, once
    - INDEX: while an object is taken in; answers values at once
    - BACKGROUND: beside all others, for as long as the object lives
    """

    ACTIVITY = "activity"
    OUTSIDE = "outside"
    CHANGE = "change"
    EVENT = "event"
    INDEX = "index"
    BACKGROUND = "background"


class Finalizer(Enum):
    """When a handler needs its objects to stay until it is done with them.

    An option decides, but for NEVER: `optional=` or `finalizer=`.  A daemon is to be
    told of the end unless it declines; a timer needs nothing to be done at the end.
    """

    NEVER = "never"
    UNLESS_OPTIONAL = "unless optional"
    UNLESS_DECLINED = "unless declined"
    IF_ASKED = "if asked"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoleRule:
    """What follows from a role.

    - family: how its handlers are called
    - decorator: as authors write it
    - protocol: the arguments that its handlers may ask for
    - options: the type of its decorator's options
    - needs: those options that have to be given
    - check: refuses a handler that cannot work; raises `RegistrationError`
    - errors: the mode of those that name none
    - reasons: for which causes a handler of changes is called
    - compares: whether it is called for a difference between what it observes and what
      it has acted upon
    - remembers: whether what was handled is kept on the object for it
    - finalizer: when its objects are held
    - tells_ends: whether it matters to it why an object is not seen any more
    - lasts: whether one call may take as long as its object lives
    - posts: whether its log lines become Kubernetes Events
    - verbs: what its kinds have to support, beside being listed and watched
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
    verbs: tuple[str, ...]

    @property
    def is_about_objects(self) -> bool:
        """Whether its handlers name a kind, and are called about its objects."""
        return self.family not in (Family.ACTIVITY, Family.OUTSIDE)

    @property
    def has_past(self) -> bool:
        """Whether what an object was can matter: nothing was before a creation."""
        return not {*self.reasons} <= {Reason.CREATE}

    @property
    def is_for_new(self) -> bool:
        """Whether it is called for objects that are new to this operator."""
        return Reason.CREATE in self.reasons

    @property
    def is_for_resuming(self) -> bool:
        """Whether it is called once in a process, whatever the object is."""
        return Reason.RESUME in self.reasons


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
        verbs=("patch",),
    ),
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

_KWARGS = {role: names_in(ROLES[role].protocol) for role in Role}


def kwargs_of(role: Role) -> frozenset[str]:
    """The arguments that a handler of this role may ask for."""
    return _KWARGS[role]
