"""The actions of a user in a simulated cluster, as values.

`act` sends the requests of one action. Objects are named as in kubectl: `claims/c`, or
`claims.example.com/c`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource, path_of
from fnop.interpreters.cluster import Pace, logged, paced, release_of, upgraded
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest, ApiResponse
from fnop.interpreters.simulation.scenario import catalogue_of
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = [
    "Action",
    "ActionRefused",
    "Apply",
    "Delete",
    "Edit",
    "Outage",
    "SetPace",
    "Upgrade",
    "Wait",
    "WriteLog",
    "act",
    "address_of",
    "apply",
    "delete",
    "edit",
    "log_line",
    "outage",
    "pace",
    "upgrade",
    "wait",
]


# The server refuses a field that the kind does not have, as for kubectl's own requests.
_STRICT = (("fieldValidation", "Strict"),)


class ActionRefused(Exception):
    """The cluster refuses an action; `status` is the HTTP status, 0 if unknown."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Apply(Struct, frozen=True):
    """Create the object of a manifest, or merge it into the one that exists."""

    manifest: dict[str, Any]

    def __str__(self) -> str:
        meta = self.manifest.get("metadata") or {}
        name = meta.get("name") or f"{meta.get('generateName')}..."
        return f"apply {self.manifest.get('kind')} {name}"


class Edit(Struct, frozen=True):
    """Merge changes, by top-level stanza, into an object; None removes a field."""

    where: str
    changes: dict[str, Any]
    namespace: str | None = None

    def __str__(self) -> str:
        return f"edit {self.where} {', '.join(_changed_leaves(self.changes))}"


class Delete(Struct, frozen=True):
    """Delete an object; `propagation` is Background, Foreground, Orphan or None."""

    where: str
    namespace: str | None = None
    propagation: str | None = None

    def __str__(self) -> str:
        how = f" ({self.propagation.lower()})" if self.propagation else ""
        return f"delete {self.where}{how}"


class Wait(Struct, frozen=True):
    """Let this number of virtual seconds pass."""

    seconds: float

    def __str__(self) -> str:
        return f"wait {self.seconds:g} s"


class SetPace(Struct, frozen=True):
    """Set the pace of one of the cluster's controllers."""

    controller: str
    pace: Pace

    def __hash__(self) -> int:  # a pace has none
        return hash(self.controller)

    def __str__(self) -> str:
        return f"let {self.controller} be {self.pace!r}"


class Upgrade(Struct, frozen=True):
    """Upgrade the API server: it restarts with another release, such as 1.37."""

    release: str

    def __str__(self) -> str:
        return f"upgrade the API server to {self.release}"


class Outage(Struct, frozen=True):
    """Make the API server not answer the operator for some virtual seconds."""

    seconds: float

    def __str__(self) -> str:
        return f"no API server for {self.seconds:g} s"


class WriteLog(Struct, frozen=True):
    """Make a container write lines to its log; None stands for the only container."""

    where: str
    text: str
    container: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        count = self.text.rstrip("\n").count("\n") + 1
        what = repr(self.text) if count == 1 else f"{count} lines"
        return f"{self.where} logs {what:.60}"


Action = Apply | Edit | Delete | Wait | SetPace | Upgrade | Outage | WriteLog


def apply(manifest: Mapping[str, Any]) -> Apply:
    """A user applies a manifest: creates the object, or merges into the existing one.

    >>> print(apply({"kind": "Claim", "metadata": {"name": "c"}}))
    apply Claim c

    Raises TypeError for anything but one manifest.
    """
    if not isinstance(manifest, Mapping):
        kind = type(manifest).__name__
        raise TypeError(f"apply(...) takes one manifest, a dict, not a {kind}")
    return Apply(dict(manifest))


def edit(where: str, *, namespace: str | None = None, **changes: Any) -> Edit:
    """A user merges changes into an object; None removes a field.

    `where` is kind/name, `namespace` by default the scenario's namespace, and `changes`
    are top-level stanzas.

    >>> print(edit("claims/c", spec={"size": 2}))
    edit claims/c spec.size=2
    """
    return Edit(where, changes, namespace)


def delete(
    where: str, *, namespace: str | None = None, propagation: str | None = None
) -> Delete:
    """A user deletes an object.

    `where` is kind/name, `namespace` by default the scenario's namespace, and
    `propagation` is "Background", "Foreground" or "Orphan".

    >>> print(delete("claims/c", propagation="Foreground"))
    delete claims/c (foreground)
    """
    return Delete(where, namespace, propagation)


def wait(seconds: float) -> Wait:
    """Let `seconds` of virtual time pass.

    >>> print(wait(90))
    wait 90 s

    Raises ValueError for a time in the past.
    """
    if not seconds >= 0:
        raise ValueError(f"wait({seconds!r}): no time goes back; seconds are >= 0")
    return Wait(seconds)


def pace(controller: str, pace: Pace) -> SetPace:
    """The cluster's `controller`, such as "deployment", gets a `pace` of fnop.testing.

    >>> from fnop.interpreters.cluster import Stuck
    >>> print(pace("deployment", Stuck()))
    let deployment be Stuck()
    """
    return SetPace(controller, pace)


def upgrade(release: str) -> Upgrade:
    """A user upgrades the API server to a `release`, which restarts it.

    >>> print(upgrade("1.37"))
    upgrade the API server to 1.37

    Raises ValueError for any other text.
    """
    release_of(release)
    return Upgrade(release)


def outage(seconds: float) -> Outage:
    """The API server does not answer the operator for `seconds`.

    >>> print(outage(40))
    no API server for 40 s

    Raises ValueError for a time that is not positive.
    """
    if not seconds > 0:
        raise ValueError(f"outage({seconds!r}): it lasts for more than 0 seconds")
    return Outage(seconds)


def log_line(
    where: str,
    text: str,
    *,
    container: str | None = None,
    namespace: str | None = None,
) -> WriteLog:
    """A container of the pod in `where` writes `text`, one or more lines, to its log.

    `container` may be omitted if the pod has only one, `namespace` is by default the
    scenario's namespace.

    >>> print(log_line("pods/web-0", "loss=0.3"))
    pods/web-0 logs 'loss=0.3'
    """
    return WriteLog(where, text, container, namespace)


def _changed_leaves(changes: Mapping[str, Any], path: str = "") -> list[str]:
    found: list[str] = []
    for key, value in changes.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            found += _changed_leaves(value, where)
        else:
            found.append(f"{where}={value!r}")
    return found


def act(run: SimulatedRun, action: Action, namespace: str = "default") -> Any:
    """Perform the user's action; return the object after it, if any.

    `namespace` applies to objects without one. Raises `ActionRefused` if the cluster
    refuses the action, or does not know the kind. `Wait` only asks the caller to turn
    the clock: nothing is done here.
    """
    match action:
        case Apply(manifest):
            return _apply_manifest(run, manifest, namespace)
        case Edit(where, changes, place):
            return _edit(run, address_of(run, where), changes, place or namespace)
        case Delete(where, place, propagation):
            resource, name = address_of(run, where)
            options = {"kind": "DeleteOptions", "apiVersion": "v1"}
            if propagation is not None:
                options["propagationPolicy"] = propagation
            path = path_of(resource, place or namespace, name)
            return _send(run, ApiRequest("DELETE", path, (), options))
        case SetPace(controller, pace):
            run.cluster = paced(run.cluster, {controller: pace})
            return None
        case Upgrade(release):
            run.cluster = upgraded(run.cluster, release)
            run.reads.restart_server()
            return None
        case Outage(seconds):
            run.reads.stop_server(seconds)
            return None
        case WriteLog(where, text, container, place):
            _write_log(run, where, text, container, place or namespace)
            return None
        case Wait():
            return None


def _write_log(
    run: SimulatedRun, where: str, text: str, container: str | None, namespace: str
) -> None:
    resource, name = address_of(run, where)
    if resource.key != "pods.v1.":
        raise ActionRefused(f"only pods have logs, and not {where}")
    now = run.clock.now()
    try:
        run.cluster = logged(run.cluster, namespace, name, container, text, now.wall)
    except ValueError as problem:
        raise ActionRefused(str(problem)) from None
    run.reads.logs.feed(run.cluster, now)


def _apply_manifest(
    run: SimulatedRun, manifest: Mapping[str, Any], namespace: str
) -> Any:
    catalogue = catalogue_of(run)
    resource = catalogue.of_manifest(manifest)
    if resource is None:
        raise ActionRefused(
            f"{catalogue.absence_of(manifest, 'the cluster')}; give its definition "
            "with crds= (--crd)"
        )
    meta = manifest.get("metadata") or {}
    place = (meta.get("namespace") or namespace) if resource.namespaced else None
    if "name" in meta:
        path = path_of(resource, place, meta["name"])
        if run.request(ApiRequest("GET", path)).status == 200:
            return _merge(run, resource, path, manifest)
    whole = {**meta, **({"namespace": place} if place else {})}
    body = {**manifest, "metadata": whole}
    return _send(run, ApiRequest("POST", path_of(resource, place), _STRICT, body))


def _merge(
    run: SimulatedRun, resource: Resource, path: str, change: Mapping[str, Any]
) -> Any:
    found = _send(run, ApiRequest("PATCH", path, _STRICT, dict(change), MERGE_PATCH))
    if resource.has_status and "status" in change:
        status = {"status": change["status"]}
        path = f"{path}/status"
        request = ApiRequest("PATCH", path, _STRICT, status, MERGE_PATCH)
        found = _send(run, request)
    return found


def _edit(
    run: SimulatedRun,
    address: tuple[Resource, str],
    changes: Mapping[str, Any],
    namespace: str,
) -> Any:
    resource, name = address
    path = path_of(resource, namespace, name)
    if resource.has_status and set(changes) == {"status"}:
        path = f"{path}/status"
        request = ApiRequest("PATCH", path, _STRICT, dict(changes), MERGE_PATCH)
        return _send(run, request)
    return _merge(run, resource, path, changes)


def address_of(run: SimulatedRun, where: str) -> tuple[Resource, str]:
    """The kind and the name of `kind/name`. Raises `ActionRefused` for others."""
    kind, slash, name = where.partition("/")
    if not slash or not name:
        raise ActionRefused(f"name an object as in kubectl, kind/name, not {where!r}")
    catalogue = catalogue_of(run)
    found = catalogue.lookup(kind)
    if found is None:
        remedy = "; give its definition with crds= (--crd)"
        raise ActionRefused(catalogue.absence(kind, "the cluster", remedy))
    return found, name


def _send(run: SimulatedRun, request: ApiRequest) -> Any:
    response: ApiResponse = run.request(request)
    if response.status >= 300:
        # The refusal of a patch shows the whole object before the actual errors.
        _, strict, fields = message_of(response).rpartition("strict decoding error: ")
        raise ActionRefused(
            f"{request.method} {request.path} is refused: {strict}{fields}",
            response.status,
        )
    return response.body
