"""The logs of pods: containers write them, and clients read and follow them.

kube-apiserver checks the options and finds the node (`LogLocation`). kubelet decides
which instance of the container is read (`validateContainerLogStatus`), and which of its
lines (`ReadLogs`).

A cluster without a kubelet does not write logs. There the text of an annotation stands
for the log of a container, see `ANNOTATION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from immutables import Map
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.rbac import authorize
from fnop.interpreters.cluster.api.create import Answer
from fnop.interpreters.cluster.api.read import is_false
from fnop.interpreters.cluster.output.negotiation import form_of
from fnop.interpreters.cluster.requests.request import Call, call_of, route_of
from fnop.interpreters.cluster.storage.logs import (
    Line,
    Log,
    Logs,
    PodLogs,
    extended,
    instance,
)
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.numbers import query_integer
from fnop.interpreters.cluster.values.objects import Key, Object, Resource, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    invalid,
    method_not_allowed,
    not_found,
    quoted,
)
from fnop.interpreters.cluster.values.times import query_time
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse

__all__ = [
    "LogFollowed",
    "annotated",
    "answer_log",
    "container_of",
    "is_log",
    "is_log_follow",
    "log_followed",
    "log_more",
    "logged",
    "statuses_of",
]

PODS: Resource = ("", "pods")
# The lines that all containers of a pod write when they start. With `.NAME` at its end
# it applies only to that container.
ANNOTATION = "simulated.fnop.dev/log"
# The container that kubectl uses if the user names none.
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
STATUSES = (
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
)
NO_LOGS: PodLogs = Map()
# The first release with the option `stream`, which is off (PodLogsQuerySplitStreams).
STREAMS_SINCE = (1, 32)


# ------------------------------------------------------------------- containers


def container_of(pod: Object, wanted: str) -> str:
    """The container of a request (validateContainer in pkg/registry/core/pod)."""
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    names, inits, extra = _container_names(spec)
    if wanted:
        if wanted not in (*names, *inits, *extra):
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(names) == 1:
        return names[0]
    choice = f"choose one of: [{' '.join(names)}]"
    if inits:
        choice += f" or one of the init containers: [{' '.join(inits)}]"
    raise bad_request(f"a container name must be specified for pod {name}, {choice}")


def _container_names(spec: dict[str, Any]) -> Iterator[list[str]]:
    for group in ("containers", "initContainers", "ephemeralContainers"):
        yield [str(each["name"]) for each in spec.get(group) or ()]


def statuses_of(pod: Object) -> Iterator[dict[str, Any]]:
    """The statuses of all containers of a pod, of any sort."""
    status = pod.get("status") or {}
    for group in STATUSES:
        yield from status.get(group) or ()


def _status_of(pod: Object, container: str) -> dict[str, Any] | None:
    for each in statuses_of(pod):
        if each.get("name") == container:
            return each
    return None


def _state(status: dict[str, Any], name: str = "state") -> dict[str, Any]:
    return status.get(name) or {}


def _annotation(pod: Object, container: str) -> str | None:
    annotations = pod["metadata"].get("annotations") or {}
    found: str | None = annotations.get(
        f"{ANNOTATION}.{container}", annotations.get(ANNOTATION)
    )
    return found


# ---------------------------------------------------------------------- writing


def logged(
    cluster: Cluster,
    namespace: str,
    name: str,
    container: str | None,
    text: str,
    now: float,
) -> Cluster:
    """The cluster after a container has written lines to its log.

    None stands for the only container of the pod, or for the one in its annotation
    `kubectl.kubernetes.io/default-container`. A newline ends the text if it has none.
    The first line gets the time `now`, in Unix seconds; each further line gets a
    microsecond more.

    Raises ValueError if the pod or the container does not exist, or if the container
    does not run.
    """
    pod = lookup(cluster, PODS, (namespace, name))
    if pod is None:
        raise ValueError(f"there is no pod {name} in the namespace {namespace}")
    container = _writer(pod, container)
    status = _status_of(pod, container) or {}
    state = _state(status)
    if "running" not in state:
        what = "has terminated" if "terminated" in state else "has not started"
        raise ValueError(
            f"the container {container} of the pod {namespace}/{name} {what}: it "
            "cannot write to its log"
        )
    if text and not text.endswith("\n"):
        text += "\n"
    return _append_to_log(
        cluster, pod, container, status.get("restartCount", 0), text, now
    )


def _writer(pod: Object, wanted: str | None) -> str:
    """The container that writes; raises ValueError if there is none."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    where = f"the pod {metadata.get('namespace')}/{metadata['name']}"
    names, *others = _container_names(spec)
    if wanted is None and len(names) == 1:
        return names[0]
    known = [*names, *(name for group in others for name in group)]
    chosen = wanted or (metadata.get("annotations") or {}).get(DEFAULT_CONTAINER)
    if not chosen:
        raise ValueError(f"{where} has several containers; name one of {known}")
    if chosen not in known:
        raise ValueError(f"{where} has no container {chosen}; it has {known}")
    return str(chosen)


def annotated(
    cluster: Cluster, pod: Object, status: dict[str, Any], now: float
) -> Cluster:
    """The cluster after a container has written the text of the pod's annotation.

    A new instance writes all of it. A running instance writes only the lines that have
    been added. If the annotation has been replaced, a running container writes all of
    the new text. A newline ends the text if it has none.
    """
    state = _state(status)
    if "running" not in state and "terminated" not in state:
        return cluster
    container, restarts = status.get("name", ""), status.get("restartCount", 0)
    logs = _logs_of(cluster, pod["metadata"]["uid"], container)
    log = None if logs is None else logs.present
    if log is not None and log.restarts == restarts:
        if "running" not in state:
            return cluster
        before = log.annotated
    else:
        log, before = None, ""
    text = _annotation(pod, container) or ""
    if text and not text.endswith("\n"):
        text += "\n"
    if log is not None and text == before:
        return cluster
    added = text.removeprefix(before)
    return _append_to_log(
        cluster, pod, container, restarts, added, now, annotation=text
    )


def _append_to_log(
    cluster: Cluster,
    pod: Object,
    container: str,
    restarts: int,
    text: str,
    now: float,
    *,
    annotation: str | None = None,
) -> Cluster:
    """The cluster with more lines in a log."""
    uid = pod["metadata"]["uid"]
    found = cluster.logs.get(uid, NO_LOGS)
    log, former = found.get(container) or (None, None)
    if log is None or log.restarts != restarts:
        log, former = Log(restarts, last=log.last if log else 0), log
    log = extended(log, text, now)
    if annotation is not None:
        log = replace(log, annotated=annotation)
    found = found.set(container, Logs(log, former))
    return replace(cluster, logs=cluster.logs.set(uid, found))


def _logs_of(cluster: Cluster, uid: str, container: str) -> Logs | None:
    return cluster.logs.get(uid, NO_LOGS).get(container)


# ---------------------------------------------------------------------- options


class Options(Struct, frozen=True):
    """PodLogOptions, without the options that have no effect here."""

    container: str
    is_previous: bool
    timestamps: bool
    since: int | None  # Unix nanoseconds
    tail: int | None
    limit: int | None


def _options_of(request: ApiRequest) -> dict[str, str]:
    """The options of a request; the first value of a name counts."""
    return dict(reversed(request.query))


def _is_true(given: dict[str, str], name: str) -> bool:
    return name in given and not is_false(given[name])


def _options(call: Call, release: str) -> Options:
    """Read the options; raises a refusal for invalid ones (ValidatePodLogOptions)."""
    given = _options_of(call.request)
    seconds = _integer(given, "sinceSeconds")
    moment = _time(given.get("sinceTime"))
    tail, limit = _integer(given, "tailLines"), _integer(given, "limitBytes")
    faults = []
    if tail is not None and tail < 0:
        faults.append(_too_small("tailLines", tail, "than or equal to 0"))
    if limit is not None and limit < 1:
        faults.append(_too_small("limitBytes", limit, "than 0"))
    if seconds is not None and moment is not None:
        why = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        faults.append(Fault("[]", "FieldValueForbidden", f"Forbidden: {why}"))
    elif seconds is not None and seconds < 1:
        faults.append(_too_small("sinceSeconds", seconds, "than 0"))
    if "stream" in given and _number(release) >= STREAMS_SINCE:
        why = "Forbidden: may not be specified"
        faults.append(Fault("stream", "FieldValueForbidden", why))
    if faults:
        raise invalid("", "PodLogOptions", call.route.name or "", faults)
    since = None if moment is None else moment * 10**9
    if seconds is not None:
        since = round(call.now * 10**6) * 1_000 - seconds * 10**9
    return Options(
        given.get("container", ""),
        _is_true(given, "previous"),
        _is_true(given, "timestamps"),
        since,
        tail,
        limit,
    )


def _integer(given: dict[str, str], name: str) -> int | None:
    return query_integer(given[name]) if name in given else None


def _time(text: str | None) -> int | None:
    """The seconds of a time; an empty text is the first of all times (metav1.Time)."""
    if text in ("", "null"):
        text = "0001-01-01T00:00:00Z"
    return None if text is None else query_time(text)


def _too_small(name: str, number: int, bound: str) -> Fault:
    message = f"Invalid value: {number}: must be greater {bound}"
    return Fault(name, "FieldValueInvalid", message)


def _number(release: str) -> tuple[int, int]:
    major, minor, *_ = release.split(".")
    return int(major), int(minor)


# ---------------------------------------------------------------------- reading


class LogFollowed(Struct, frozen=True):
    """A reader of the log of one instance of a container, and its position."""

    pod: Key
    uid: str
    container: str
    restarts: int
    # The number of the next line to show, counted from the first line of the log.
    next: int
    # Lines before this time, in Unix nanoseconds, are not shown.
    since: int | None = None
    timestamps: bool = False
    # The number of bytes that may still be shown.
    left: int | None = None
    # Whether the reader is within a line: its beginning was shown, its end comes next.
    is_inside: bool = False
    # Lines from an annotation, which no container has written: they come first.
    given: tuple[Line, ...] = ()


def answer_log(cluster: Cluster, call: Call) -> Answer:
    """Answer GET `pods/NAME/log` with the lines so far, even with `follow`."""
    if call.request.method != "GET":
        raise method_not_allowed()
    found = _open_reader(cluster, call, needs_status=False)
    if found is None:
        return cluster, ApiResponse(204, ""), ()
    text, _, _ = log_more(cluster, found)
    return cluster, ApiResponse(200, text), ()


def is_log_follow(request: ApiRequest) -> bool:
    """Whether a request follows the log of a pod.

    >>> path = "/api/v1/namespaces/default/pods/p/log"
    >>> is_log_follow(ApiRequest("GET", path, (("follow", "true"),)))
    True
    """
    return (
        request.method == "GET"
        and _is_true(_options_of(request), "follow")
        and is_log(request.path)
    )


def is_log(path: str) -> bool:
    """Whether a path is the log of a pod."""
    route = route_of(path)
    if route is None:
        return False
    resource = route.group, route.version, route.plural, route.subresource
    return resource == ("", "v1", "pods", "log")


def log_followed(
    cluster: Cluster, request: ApiRequest, now: float
) -> LogFollowed | ApiResponse:
    """Begin to follow the log of a pod; or the response that refuses it.

    A request that is not about a log is refused with 400. Read the lines with
    `log_more`. Unlike `answer`, it refuses a container that has no status yet, even if
    an annotation has its log. A reader has to wait for it as on a real cluster.
    """
    try:
        authorize(cluster, request)
        call = call_of(cluster.registry, request, now)
        if call is None or not is_log(request.path):
            raise bad_request(f"{request.path} is not the log of a pod")
        if request.method != "GET":
            raise method_not_allowed()
        if request.accept != JSON:
            form_of(call.kind, request.accept)
        found = _open_reader(cluster, call, needs_status=True)
    except Refusal as refusal:
        return refusal.response
    return ApiResponse(204, "") if found is None else found


def _open_reader(
    cluster: Cluster, call: Call, *, needs_status: bool
) -> LogFollowed | None:
    """A reader at its first line; None if there is no kubelet to ask."""
    options = _options(call, cluster.release)
    pod = lookup(cluster, PODS, call.key)
    if pod is None:
        raise not_found("", "pods", call.route.name or "")
    container, uid = container_of(pod, options.container), pod["metadata"]["uid"]
    reader = LogFollowed(call.key, uid, container, 0, 0, options.since)
    reader = replace(reader, timestamps=options.timestamps, left=options.limit)
    given: tuple[Line, ...] = ()
    if _logs_of(cluster, uid, container) is None and not options.is_previous:
        given = _given_lines(pod, container)
    if not given or needs_status:
        if not (pod.get("spec") or {}).get("nodeName"):
            return None
        restarts = _instance_to_read(pod, container, is_previous=options.is_previous)
        reader = replace(reader, restarts=restarts)
    lines = given or _lines_since(cluster, reader)
    if options.tail is not None:
        lines = _tail(lines, options.tail)
    if given:
        return replace(reader, given=lines)
    return replace(reader, next=_end_of_log(cluster, reader) - len(lines))


def _given_lines(pod: Object, container: str) -> tuple[Line, ...]:
    """The lines of a pod's annotation, at the time of the pod's creation."""
    created = pod["metadata"].get("creationTimestamp")
    now = query_time(created) if created else 0
    return tuple(extended(Log(0), _annotation(pod, container) or "", now).lines)


def _instance_to_read(pod: Object, container: str, *, is_previous: bool) -> int:
    """The restart count of the instance that kubelet reads, or its refusal.

    If a container waits for its restart, the status counts one restart less.
    """
    who = f"container {quoted(container)} in pod {quoted(pod['metadata']['name'])}"
    status = _status_of(pod, container)
    if status is None:
        if not any(statuses_of(pod)):
            # As in kubelet's first status, which the stub does not write.
            raise bad_request(f"{who} is waiting to start: ContainerCreating")
        raise bad_request(f"{who} is not available")
    state, last = _state(status), _state(status, "lastState")
    present: int = status.get("restartCount", 0)
    is_waiting = "running" not in state and "terminated" not in state
    before = present if is_waiting else present - 1
    if is_previous:
        if "terminated" not in last:
            raise bad_request(f"previous terminated {who} not found")
        return before
    if not is_waiting:
        return present
    if "terminated" in last:
        return before
    raise bad_request(f"{who} {_reason(state)}")


# The errors of image pulls, in kubelet's words.
PULLS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def _reason(state: dict[str, Any]) -> str:
    if "waiting" not in state:
        return "is waiting to start - no logs yet"
    reason = (state["waiting"] or {}).get("reason", "")
    return f"is waiting to start: {PULLS.get(reason, reason)}"


def _tail(lines: tuple[Line, ...], count: int) -> tuple[Line, ...]:
    """The last lines; a line that was written in parts counts once.

    >>> _tail((Line(1, "a"), Line(2, "b\\n"), Line(3, "c")), 2)[0].text
    'a'
    """
    if not count:
        return ()
    starts = [
        index
        for index in range(len(lines))
        if not index or lines[index - 1].text.endswith("\n")
    ]
    return lines[starts[-count] :] if count < len(starts) else lines


def log_more(cluster: Cluster, followed: LogFollowed) -> tuple[str, LogFollowed, bool]:
    """The new text since the last call, the next reader, and whether the log is over.

    It is over when the instance of the container has ended, when the pod is gone, or
    when the requested number of bytes has been shown.
    """
    lines = followed.given + _lines_since(cluster, followed)
    text = ""
    if lines:
        text, followed = _format_lines(followed, lines)
        followed = replace(followed, next=_end_of_log(cluster, followed), given=())
    is_over = followed.left == 0 or not _is_running(cluster, followed)
    return text, followed, is_over


def _lines_since(cluster: Cluster, reader: LogFollowed) -> tuple[Line, ...]:
    """The lines that a reader has not shown yet, without dropped lines."""
    log = _log_of_reader(cluster, reader)
    if log is None:
        return ()
    lines, start = log.lines, max(reader.next - log.dropped, 0)
    return tuple(lines[index] for index in range(start, len(lines)))


def _end_of_log(cluster: Cluster, reader: LogFollowed) -> int:
    """The number of the line that is written next."""
    log = _log_of_reader(cluster, reader)
    return 0 if log is None else log.dropped + len(log.lines)


def _log_of_reader(cluster: Cluster, reader: LogFollowed) -> Log | None:
    return instance(_logs_of(cluster, reader.uid, reader.container), reader.restarts)


def _is_running(cluster: Cluster, reader: LogFollowed) -> bool:
    """Whether the instance of a reader may still write."""
    pod = lookup(cluster, PODS, reader.pod)
    if pod is None or pod["metadata"]["uid"] != reader.uid:
        return False
    status = _status_of(pod, reader.container) or {}
    is_same = status.get("restartCount", 0) == reader.restarts
    return is_same and "running" in _state(status)


def _format_lines(
    reader: LogFollowed, lines: Iterable[Line]
) -> tuple[str, LogFollowed]:
    """The text of lines in the requested form (logWriter.write in kubelet)."""
    since, left, is_inside = reader.since, reader.left, reader.is_inside
    shown = []
    for time, text in lines:
        if left == 0:
            break
        if since is None or time >= since:
            if reader.timestamps and not is_inside:
                text = f"{_moment(time)} {text}"
            if left is not None:
                raw = text.encode()
                text = raw[:left].decode(errors="ignore")
                left -= min(left, len(raw))
            shown.append(text)
        is_inside = not text.endswith("\n")
    return "".join(shown), replace(reader, left=left, is_inside=is_inside)


def _moment(time: int) -> str:
    """A time as kubelet writes it: RFC 3339 with nine digits.

    >>> _moment(1_000_000_000)
    '1970-01-01T00:00:01.000000000Z'
    """
    seconds, rest = divmod(time, 10**9)
    return f"{timestamp(seconds)[:-1]}.{rest:09}Z"
