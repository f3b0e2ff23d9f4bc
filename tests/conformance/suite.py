"""Run the same requests on the simulated and on a real API server, and compare.

A case is a list of steps. The expected answer to a step is written down, so the
simulated cluster is checked without a real one, too. If a real one is available, the
whole answers of both are compared, after renaming the parts that cannot be equal: uids,
resource versions, times, generated suffixes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from fnop.interpreters.cluster import (
    Cluster,
    Off,
    answer,
    backlog,
    due,
    empty_cluster,
    impersonated,
    is_watch,
    paced,
    tick,
)
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse
from tests.conformance.hooks import Answered, Answers
from tests.conformance.renaming import Renaming, differences
from tests.patience import happens, patience

__all__ = [
    "ABSENT",
    "Case",
    "Raw",
    "Scope",
    "Simulated",
    "Step",
    "assert_alike",
    "check_step",
    "declared",
    "kept",
    "normalized",
    "play",
    "widest",
]

# What of an answer is compared: "all", "code", dotted paths, or "old": its code,
# which is another one there.
Scope = str | tuple[str, ...]

# The garbage collector looks each 30 s for kinds that came or went, and stands
# still until it has seen the objects of each, or for 30 s: twice, and some more.
# `patience` makes at least 120 s of this.
COLLECTED_SECONDS = 20.0
# What controllers plan to do sooner than this is waited for.
PLANNED_SECONDS = 10.0
TRUE = ("true", "1")


class Raw(Protocol):
    """Anything that answers requests."""

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]: ...


@runtime_checkable
class Reviewing(Protocol):
    """A server whose webhooks are the test's."""

    @property
    def warnings(self) -> list[str]: ...

    def asked(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Step:
    """One request, and what must come back.

    Strings like "$0.metadata.uid" stand for a part of an earlier answer of the
    same case; "{ns}" in strings for the case's own namespace.

    Two methods ask the test and not the server: `ASKED` shows the reviews that
    webhooks got since the last one, `WARNED` the warnings of the last answer.
    """

    method: str
    path: str
    body: Any = None
    type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    code: int = 200
    # Parts of the answer: a dotted path and the value there (ABSENT: nothing).
    has: Mapping[str, Any] = field(default_factory=dict)
    # The parts of the answers to compare: "all", "code", or the dotted paths. If the
    # transcript has the whole answer, all of it is compared.
    compare: str | tuple[str, ...] = "all"
    # Repeat until `code` and `has` are met: controllers are at work.
    eventually: bool = False
    # The answer of Kubernetes 1.20 if it differs from a current one's.
    old: tuple[int, Mapping[str, Any]] | None = None
    # Headers: Accept and User-Agent; and the user and groups to impersonate.
    accept: str = JSON
    agent: str = "conformance/1"
    user: str = ""
    groups: tuple[str, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        """The request headers in addition to the content type."""
        found = {"Accept": self.accept, "User-Agent": self.agent}
        if self.user:
            found["Impersonate-User"] = self.user
        if self.groups:  # one: the plain client sends each header once
            found["Impersonate-Group"] = ",".join(self.groups)
        return found


ABSENT = object()


@dataclass(frozen=True)
class Case:
    """A story with the same answers on every API server.

    `servers` are the real ones that it is compared with: "1.20", the whole one, and
    "1.36", which has custom kinds only, and takes any namespace for granted. A case
    without any is written from the documentation.
    """

    name: str
    steps: tuple[Step, ...]
    servers: tuple[str, ...] = ("1.20",)
    # Takes a real server many seconds: played there by `make long` alone.
    slow: bool = False
    # The answers of admission webhooks.
    hooks: Answers = field(default_factory=dict)


class Simulated:
    """The simulated cluster, spoken to as a real one."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        # The real servers to compare with have no kubelet.
        self.cluster = cluster or paced(empty_cluster(rbac=True), {"kubelet": Off()})
        self.now = 1_700_000_000.0
        self.hooks = Answered({})
        self.warnings: list[str] = []

    def asked(self) -> list[dict[str, Any]]:
        """The reviews that webhooks got since the last call."""
        return self.hooks.asked()

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        self.now += 0.25
        pairs = tuple((query or {}).items())
        given = headers or {}
        user = impersonated(self.cluster, None, each_header(given))
        if isinstance(user, ApiResponse):
            return user.status, user.body
        request = ApiRequest(
            method,
            path,
            pairs,
            body,
            content_type,
            given.get("Accept", JSON),
            given.get("User-Agent", ""),
            user,
        )
        if is_watch(request):
            return self._watch(request)
        self.cluster, response, _ = answer(self.cluster, request, self.now, self.hooks)
        self.warnings = [*response.warnings]
        # What a client sees has been through JSON.
        return response.status, json.loads(json.dumps(response.body))

    def _watch(self, request: ApiRequest) -> tuple[int, Any]:
        found = backlog(self.cluster, request, self.now)
        if isinstance(found, ApiResponse):
            return found.status, found.body
        lines = [json.dumps({"type": e.type, "object": e.object}) for e in found]
        return 200, "\n".join(lines)

    def settle(self) -> None:
        """Let the controllers finish."""
        while True:
            self.now += 1
            self.cluster, events = tick(self.cluster, self.now)
            if events:
                continue
            planned = due(self.cluster)
            if planned is None or planned > self.now + PLANNED_SECONDS:
                return
            self.now = max(self.now, planned)


def each_header(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers as they are sent: one for each group to impersonate."""
    return [
        (name, each)
        for name, value in headers.items()
        for each in (value.split(",") if name == "Impersonate-Group" else [value])
    ]


# ------------------------------------------------------------------- playing


def resolved(value: Any, answers: list[Any], namespace: str) -> Any:
    """A step's data with its references filled in."""
    if isinstance(value, dict):
        return {k: resolved(v, answers, namespace) for k, v in value.items()}
    if isinstance(value, list):
        return [resolved(item, answers, namespace) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith("$") and value[1:2].isdigit():
        index, _, path = value[1:].partition(".")
        return part_of(answers[int(index)], path)
    return value.replace("{ns}", namespace)


def part_of(value: Any, path: str) -> Any:
    """The part of a JSON value at a dotted path, or ABSENT."""
    for name in path.split(".") if path else ():
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return ABSENT
    return value


def play(case: Case, server: Raw, namespace: str) -> list[tuple[int, Any]]:
    """Send the requests of a case; its answers."""
    answers: list[tuple[int, Any]] = []
    if isinstance(server, Simulated):
        server.hooks = Answered(case.hooks)
    for step in case.steps:
        bodies = [body for _, body in answers]
        send = sender(step, server, bodies, namespace)
        answers.append(awaited(step, send, server) if step.eventually else send())
    return answers


def sender(
    step: Step, server: Raw, bodies: list[Any], namespace: str
) -> Callable[[], tuple[int, Any]]:
    path = step.path.replace("{ns}", namespace)
    body = resolved(step.body, bodies, namespace)
    query = resolved(dict(step.query), bodies, namespace)
    is_stream = query.get("watch") in TRUE
    if is_stream:
        query.setdefault("timeoutSeconds", "1")

    def sent(query: Mapping[str, str]) -> tuple[int, Any]:
        status, found = server.raw(
            step.method, path, body, step.type, query, step.headers
        )
        if is_stream and status == 200:
            return status, events_of(found)
        return status, found

    def send() -> tuple[int, Any]:
        if isinstance(server, Reviewing) and step.method == "ASKED":
            return 200, server.asked()
        if isinstance(server, Reviewing) and step.method == "WARNED":
            return 200, server.warnings
        answer = sent(query)
        if not is_stream or isinstance(server, Simulated) or not faults(step, *answer):
            return answer
        # A server under load may have had no time for all lines.
        return sent({**query, "timeoutSeconds": str(round(patience(1)))})

    return send


def events_of(found: Any) -> list[Any]:
    """The lines of a watch; of bookmarks only the one that ends the initial list."""
    lines = [found] if isinstance(found, dict) else map(json.loads, found.splitlines())
    return [
        line
        for line in lines
        if line["type"] != "BOOKMARK" or "annotations" in line["object"]["metadata"]
    ]


def awaited(
    step: Step, send: Callable[[], tuple[int, Any]], server: Raw
) -> tuple[int, Any]:
    if isinstance(server, Simulated):
        server.settle()
        return send()
    answer: tuple[int, Any] = (0, None)

    def is_as_written() -> bool:
        nonlocal answer
        answer = send()
        return not faults(step, *answer)

    happens(is_as_written, COLLECTED_SECONDS, every=0.1)
    return answer


# ------------------------------------------------------------------ comparing


def faults(step: Step, status: int, body: Any) -> list[str]:
    """The differences between an answer and the recorded one."""
    found = [] if status == step.code else [f"{status}, not {step.code}: {body}"]
    for path, wanted in step.has.items():
        got = part_of(body, path)
        if got is not wanted and got != wanted:
            found.append(f"{path} is {got!r}, not {wanted!r}: {body}")
    return found


def is_old(step: Step, server: str) -> bool:
    """Whether that server is known to answer this step otherwise."""
    return server == "1.20" and step.old is not None


def check_step(step: Step, status: int, body: Any, *, server: str = "") -> None:
    """Compare an answer with what is written down."""
    if server == "1.20" and step.old is not None:
        code, has = step.old
        step = replace(step, code=code, has=has)
    found = faults(step, status, body)
    assert not found, f"{step.method} {step.path}: {found}, {body}"


def normalized(
    case: Case,
    answers: list[tuple[int, Any]],
    namespace: str,
    server: str,
    scopes: Sequence[Scope] = (),
) -> list[Any]:
    """The common parts of two servers' answers to one case, step by step.

    The scopes are the steps' own, unless others are given.
    """
    names = Renaming(namespace, server)
    return [
        shown(status, body, scope, names)
        for (status, body), scope in zip(
            answers, scopes or declared(case, server), strict=True
        )
    ]


def declared(case: Case, server: str) -> list[Scope]:
    """The parts of the steps that are compared.

    For a step that this server is known to answer differently, it is the code.
    """
    return ["old" if is_old(step, server) else step.compare for step in case.steps]


def kept(case: Case, server: str, golden: Sequence[Any] | None) -> list[Scope]:
    """The part that is compared with a transcript: the whole answer if it has that."""
    scopes = declared(case, server)
    if golden is None:
        return scopes
    return [
        "all" if scope != "old" and "answer" in step else scope
        for scope, step in zip(scopes, golden, strict=True)
    ]


def shown(status: int, body: Any, scope: Scope, names: Renaming) -> dict[str, Any]:
    """One answer as it is compared."""
    if scope == "all":
        return {"code": status, "answer": names.of(body)}
    if scope == "old":
        return {"code": status, "old": True}
    if scope == "code":
        return {"code": status}
    parts = {path: part_of(body, path) for path in scope}
    return {
        "code": status,
        "parts": {
            path: names.part_of(path, part)
            for path, part in parts.items()
            if part is not ABSENT
        },
    }


CONTROLLED = re.compile(
    "/(customresourcedefinitions|deployments|replicasets|statefulsets|daemonsets|jobs"
    "|cronjobs|poddisruptionbudgets|endpoints|serviceaccounts)"
)


def widest(
    case: Case,
    server: str,
    ours: tuple[list[tuple[int, Any]], str],
    theirs: tuple[list[tuple[int, Any]], str],
) -> list[Scope]:
    """Choose whole answers if those of the simulated and the real server are equal.

    Both are given with the namespaces that they were played in. Parts that controllers
    change meanwhile stay as the case has them: equality there would be luck.
    """
    least = declared(case, server)
    scopes: list[Scope] = [
        scope if scope == "old" or CONTROLLED.search(step.path) else "all"
        for step, scope in zip(case.steps, least, strict=True)
    ]
    while True:
        mine = normalized(case, *ours, server, scopes)
        other = normalized(case, *theirs, server, scopes)
        # One less: if an answer is omitted, names may become equal.
        for number, scope in enumerate(scopes):
            is_unlike = differences(mine[number], other[number])
            if scope == "all" and least[number] != "all" and is_unlike:
                scopes[number] = least[number]
                break
        else:
            return scopes


def assert_alike(case: Case, ours: list[Any], theirs: list[Any], whose: str) -> None:
    """Compare the normalized answers of two servers; `whose` names the other one."""
    for number, (step, mine, other) in enumerate(
        zip(case.steps, ours, theirs, strict=True)
    ):
        if other.get("old"):
            continue
        found = differences(mine, other)
        where = f"{case.name!r}, step {number}: {step.method} {step.path}"
        assert not found, f"{where}\nis not as {whose}:\n{found}"
