"""The options that several commands have, with one meaning and one text each.

A command may append text about itself. A test of all commands requires that the
beginning is the same.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import click

from fnop.adapters.cli.option_fields import declared, option
from fnop.adapters.common.durations import duration
from fnop.core.handlers.declare.connection import Impersonation
from fnop.core.handlers.declare.settings import Settings
from fnop.effects.names import check_name, check_namespace, check_webhooks_name

if TYPE_CHECKING:
    from fnop.adapters.kubernetes.client import KubernetesApi
    from fnop.core.peers.lease import Candidate

__all__ = [
    "SHARED",
    "ClusterOptions",
    "Connection",
    "ElectionOptions",
    "ScopeOptions",
    "SelectionOptions",
    "a_name",
    "a_namespace",
    "a_webhooks_name",
    "files",
    "flag_of",
    "shared",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Check = Callable[[Any, str], None]
OptionCallback = Callable[[click.Context, click.Parameter, Any], Any]


def _checked(check: Check) -> OptionCallback:
    def callback(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
        given = value if isinstance(value, tuple) else (value,)
        try:
            for each in given:
                if each is not None:
                    check(each, f"--{parameter.name}".replace("_", "-"))
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem
        return value

    return callback


a_name = _checked(check_name)
a_namespace = _checked(check_namespace)
a_webhooks_name = _checked(check_webhooks_name)


_FILE = click.Path(exists=True, dir_okay=False)
_MANIFESTS = click.Path(exists=True)

files: Decorator = click.argument("paths", nargs=-1, type=_FILE, metavar="[FILE]...")
"""The operator's files."""

# The names of each option, the beginning of its text, and click's other attributes.
SHARED: dict[str, tuple[tuple[str, ...], str, dict[str, Any]]] = {
    "kopf": (
        ("--kopf",),
        "The operator is written with Kopf, and stays unchanged",
        {"is_flag": True},
    ),
    "module": (
        ("-m", "--module"),
        "Load an importable module, in addition to files or instead of them",
        {"multiple": True, "metavar": "NAME"},
    ),
    "name": (
        ("--name",),
        "The operator's name, which its marks on objects carry",
        {"default": "default", "show_default": True, "metavar": "NAME"},
    ),
    "namespace": (
        ("-n", "--namespace"),
        "Only this namespace",
        {"multiple": True, "metavar": "NAME"},
    ),
    "all_namespaces": (
        ("-A", "--all-namespaces"),
        "The whole cluster",
        {"is_flag": True},
    ),
    "context": (
        ("--context",),
        "The kubeconfig's context to use",
        {"metavar": "NAME"},
    ),
    "kubeconfig": (
        ("--kubeconfig",),
        "The kubeconfig file to use",
        {"type": click.Path(), "metavar": "FILE"},
    ),
    "as_user": (
        ("--as", "as_user"),
        "The user to impersonate, such as system:serviceaccount:NAMESPACE:NAME",
        {"metavar": "USER"},
    ),
    "as_groups": (
        ("--as-group", "as_groups"),
        "A group to impersonate; repeat it for several",
        {"multiple": True, "metavar": "GROUP"},
    ),
    "as_uid": (
        ("--as-uid", "as_uid"),
        "The uid to impersonate",
        {"metavar": "UID"},
    ),
    "peering": (
        ("-P", "--peering"),
        "The peering object in which operators meet",
        {"callback": a_name, "metavar": "NAME"},
    ),
    "priority": (
        ("-p", "--priority"),
        "The priority among peers: the highest serves, the others are frozen",
        {"type": int, "show_default": True},
    ),
    "leader_elect": (
        ("--leader-elect",),
        "Run as one of several replicas: the holder of the lease fnop-NAME serves",
        {"is_flag": True},
    ),
    "lease_namespace": (
        ("--lease-namespace",),
        "The namespace of the lease; by default the pod's",
        {"callback": a_namespace, "metavar": "NAME"},
    ),
    "webhook_name": (
        ("--webhook-name",),
        "The name of the webhook configurations. By default it is the operator's "
        "--name and .fnop.dev",
        {"callback": a_webhooks_name, "metavar": "NAME"},
    ),
    "webhook_events": (
        ("--webhook-events",),
        "Post each denial as a Kubernetes Event, too",
        {"is_flag": True},
    ),
    "state_key_file": (
        ("--state-key-file",),
        "The keys of the operator's state, one per line: fnop signs by the first key, "
        "and verifies by any key",
        {"type": _FILE, "metavar": "FILE"},
    ),
    "crds": (
        ("--crd", "crds"),
        "Definitions: a file or folder of manifests. Without --crd and --object, "
        "fnop reads crd.yaml and object.yaml next to the operator. A kind that is in "
        "no such file gets its definition from its Python class, if it has one",
        {"multiple": True, "type": _MANIFESTS, "metavar": "PATH"},
    ),
    "objects": (
        ("--object", "objects"),
        "Objects to try the operator with; by default fnop generates one",
        {"multiple": True, "type": _MANIFESTS, "metavar": "PATH"},
    ),
    "script": (
        ("--script",),
        "Python file with SCRIPTS (names and lists of actions), and expectations",
        {"type": _FILE, "metavar": "FILE"},
    ),
    "calls": (
        ("--calls",),
        "Python file with models, which answer fnop.call: functions of the same names, "
        "and CALLS",
        {"multiple": True, "type": _FILE, "metavar": "FILE"},
    ),
    "budget": (
        ("--budget",),
        "Try at most N schedules of faults",
        {"type": click.IntRange(min=1), "metavar": "N"},
    ),
    "seconds": (
        ("--time", "seconds"),
        "Stop after this time (90s, 15m, 1h30m), and report what was not tried",
        {"type": duration(more_than=0)},
    ),
    "jobs": (
        ("--jobs",),
        "Processes that try schedules",
        {"type": click.IntRange(min=1), "metavar": "N"},
    ),
    "save": (
        ("--save",),
        "Write recordings of failures here",
        {"type": click.Path(file_okay=False), "metavar": "DIR"},
    ),
    "output": (
        ("-o", "--output"),
        "The form of what is printed",
        {"default": "text", "show_default": True},
    ),
    "redact": (
        ("--redact",),
        "A field that holds a secret, such as spec.url",
        {"multiple": True, "metavar": "FIELD"},
    ),
    "trusted": (
        ("--trusted",),
        "Read recordings of any size. Use this only for your own recordings",
        {"is_flag": True},
    ),
    "quiet": (("-q", "--quiet"), "Print less", {"is_flag": True}),
}


def shared(name: str, more: str = "", **attributes: Any) -> Decorator:
    """An option that several commands have; `more` ends its text for this command.

    `attributes` are click's, and replace the usual ones.
    """
    words, text, usual = SHARED[name]
    return click.option(*words, help=f"{text}{more}.", **{**usual, **attributes})


def flag_of(name: str) -> str:
    """The flag of an option; a shared option's name may differ from its flag.

    >>> flag_of("as_groups"), flag_of("against")
    ('--as-group', '--against')
    """
    return SHARED[name][0][0] if name in SHARED else f"--{name}".replace("_", "-")


# --------------------------------------------------------------------- shared groups


class Connection(TypedDict):
    """The arguments of `fnop.adapters.kubernetes.client.connect`."""

    kubeconfig: str | None
    context: str | None
    impersonate: Impersonation | None


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The cluster and the user, as in kubectl."""

    context: str | None = declared(shared("context"))
    kubeconfig: str | None = declared(shared("kubeconfig"))
    as_user: str | None = declared(shared("as_user"))
    as_groups: tuple[str, ...] = declared(shared("as_groups"))
    as_uid: str | None = declared(shared("as_uid"))

    def connection(self) -> Connection:
        """The arguments that connect a client to the cluster.

        >>> given = {"context": None, "kubeconfig": None, "as_uid": None}
        >>> jane = ClusterOptions(**given, as_user="jane", as_groups=("dev",))
        >>> jane.connection()["impersonate"]
        Impersonation(user='jane', groups=('dev',), uid=None, extra=())
        """
        user, groups, uid = self.as_user, self.as_groups, self.as_uid
        who = Impersonation(user or "", groups, uid)
        return {
            "kubeconfig": self.kubeconfig,
            "context": self.context,
            "impersonate": who if user or groups or uid else None,
        }

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[KubernetesApi]:
        """A client of the cluster, which is closed afterwards.

        Raises `ConfigurationProblem`.
        """
        from fnop.adapters.kubernetes.client import connect

        api = await connect(**self.connection())
        try:
            yield api
        finally:
            await api.close()


@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """The namespaces that an operator serves."""

    namespace: tuple[str, ...] = declared(
        shared("namespace", ", or those of a pattern; repeat it for several")
    )
    all_namespaces: bool = declared(shared("all_namespaces", " (as without -n)"))

    def __post_init__(self) -> None:
        if self.namespace and self.all_namespaces:
            raise click.UsageError("use either -n/--namespace or -A/--all-namespaces")

    @property
    def namespaces(self) -> tuple[str, ...] | None:
        """The given namespaces and patterns; None is the whole cluster."""
        return self.namespace or None


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(ScopeOptions):
    """The objects that an operator serves, by namespace and labels."""

    selector: str = option(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="Serve only objects with these labels, as in kubectl: app=db,tier!=test.",
    )

    def settings(self, operator: str) -> Settings:
        """The settings of an operator that serves them. Raises `ValueError`."""
        return Settings(operator, self.namespaces, self.selector)


@dataclass(frozen=True, kw_only=True)
class ElectionOptions:
    """Whether only one of several replicas serves."""

    leader_elect: bool = declared(shared("leader_elect"))
    lease_namespace: str | None = declared(shared("lease_namespace"))

    def __post_init__(self) -> None:
        if self.lease_namespace and not self.leader_elect:
            raise click.UsageError("--lease-namespace needs --leader-elect")

    def candidate(self, settings: Settings) -> Candidate | None:
        """The operator as a candidate, if it is one of several replicas."""
        if not self.leader_elect:
            return None
        from fnop.adapters.kubernetes.identity import candidate_of

        where = self.lease_namespace
        return candidate_of(settings.operator, settings.namespaces, where)
