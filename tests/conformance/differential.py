"""Play a random sequence on the simulated and on a real server, and compare.

Compared are the answers, the objects that are left, and what watches have shown,
all of them after renaming.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from fnop.interpreters.cluster import Cluster
from fnop.interpreters.runtime.protocol import APPLY_PATCH, JSON, STRATEGIC_PATCH
from tests.cluster.envtest import ApiServer
from tests.conformance.renaming import Renaming, differences
from tests.conformance.sequences import KINDS, NAMES, Kind, Memory, Op, resource_of
from tests.conformance.servers import fork
from tests.conformance.suite import Raw, Simulated, events_of
from tests.patience import happens, patience

__all__ = ["FAMILY", "Arena", "Difference", "arena"]

Json = dict[str, Any]
Answer = tuple[int, Any]
S = TypeVar("S", bound="Sequence")

VERBS = {
    "create": "POST",
    "get": "GET",
    "list": "GET",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
LAST = "zz-last"  # the object whose appearance ends every watch
MOST_PAGES = 20
# The end of a watch whose last line does not come; else that line is its end.
WATCH_SECONDS = str(round(patience(5)))


# A JSON patch with an operation that there is not, and a merge patch that is a list.
UNREADABLE = ([{"op": "jump"}], [1])


class Difference(AssertionError):
    """The two servers differ."""


# -------------------------------------------------------------------- playing


def paths_of(op: Op, namespace: str) -> str:
    kind = KINDS[op.plural]
    parts = [kind.collection]
    if op.name:
        parts.append(kind.called(op.name))
    if op.sub:
        parts.append(op.sub)
    return "/".join(parts).replace("{ns}", namespace)


def perform(op: Op, server: Raw, memory: Memory, *, old: bool) -> list[Answer]:
    """Send the request of an operation, or the requests for all pages of a list."""
    path = paths_of(op, memory.namespace)
    body = memory.filled(op.body)
    seen = memory.seen.get(f"{resource_of(op.plural)}/{op.name}", {})
    if old:
        body = without_novelties(op, body)
    if old and op.type == STRATEGIC_PATCH:
        body = without_vain_nulls(seen, body)
    if op.onto:
        body = merged(seen, body)
    query = memory.query(op.query)
    if old and query.get("resourceVersionMatch") == "NotOlderThan":
        # It answered from a cache without an order.
        query = {k: v for k, v in query.items() if not k.startswith("resourceVersion")}
    answers: list[Answer] = []
    while len(answers) < MOST_PAGES:
        headers = {"Accept": op.accept}
        status, found = server.raw(VERBS[op.verb], path, body, op.type, query, headers)
        answers.append((status, found))
        metadata = found.get("metadata") if isinstance(found, dict) else None
        if op.verb != "list" or not metadata or not metadata.get("continue"):
            break
        query["continue"] = metadata["continue"]
    if status in (200, 201) and not is_dry(op) and op.accept == JSON:
        memory.learn(op.plural, found)
    return answers


def is_dry(op: Op) -> bool:
    """A deletion's body hides its query."""
    is_hidden = op.verb == "delete" and op.body is not None
    return ("dryRun", "All") in op.query and not is_hidden


def without_novelties(op: Op, body: Any) -> Any:
    """The body without what 1.20 is known to answer otherwise."""
    if isinstance(body, list):
        # It added what JSON patches were to replace.
        return [{**one, "op": "add"} if is_replacement(one) else one for one in body]
    if not isinstance(body, dict):
        return body
    if KINDS[op.plural].status is not None and not op.sub:
        # It took status in the wrong place for a change of managed fields.
        body = without(body, "status")
    metadata = body.get("metadata")
    if op.sub == "status" and isinstance(metadata, dict):
        # And labels in the place of status, too.
        body = {**body, "metadata": without(metadata, "labels")}
    status = body.get("status")
    if isinstance(status, dict) and status.get("phase") == "":
        # Its validator took the empty text for null.
        body = {**body, "status": {**status, "phase": "-"}}
    return body


def without_vain_nulls(seen: Any, patch: Any) -> Any:
    """Without nulls in maps that are not there: it took them for empty texts."""
    if not isinstance(patch, dict):
        return patch
    below = seen if isinstance(seen, dict) else {}
    return {
        name: without_vain_nulls(below.get(name), part)
        for name, part in patch.items()
        if part is not None or below
    }


def without(parts: Json, name: str) -> Json:
    return {key: part for key, part in parts.items() if key != name}


def one_generated(ops: list[Op]) -> list[Op]:
    """Only one generated name of each kind: the order of two in a list is unknown."""
    found: dict[str, Op] = {}
    return [
        op
        for op in ops
        if not generated_prefix(op)
        or found.setdefault(resource_of(op.plural), op) is op
    ]


def is_replacement(operation: Any) -> bool:
    return isinstance(operation, dict) and operation.get("op") == "replace"


def merged(below: Any, above: Any) -> Any:
    """Objects are merged, anything else is replaced."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{k: merged(below.get(k), v) for k, v in above.items()}}


def last_objects(plurals: Iterable[str]) -> Iterator[Op]:
    for plural in plurals:
        kind = KINDS[plural]
        meta = {"name": kind.called(LAST), "labels": {"app": "a"}}
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        yield Op("create", plural, body={**head, "metadata": meta, **kind.sample})


def final_reads(plurals: Iterable[str]) -> Iterator[Op]:
    """The requests that show everything that is left."""
    for plural in plurals:
        if KINDS[plural].cluster:
            yield from (Op("get", plural, name) for name in NAMES)
        else:
            yield Op("list", plural)


# -------------------------------------------------------------------- watches


class Streams:
    """Open watches of every kind on a real server, for many sequences."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], list[Json]] = {}
        self.news = threading.Condition()

    def follow(self, kind: Kind, lines: Iterator[Json]) -> None:
        """Take the lines of one watch until it ends; runs in a thread."""
        for line in lines:
            if line["type"] == "BOOKMARK":
                continue
            metadata = line["object"]["metadata"]
            space = metadata.get("namespace") or metadata["name"].partition("-")[0]
            with self.news:
                self.events.setdefault((kind.plural, space), []).append(line)
                self.news.notify_all()

    def until_last(self, plural: str, namespace: str) -> list[Json]:
        """All events of one sequence, up to its last object."""
        key = (plural, namespace)
        with self.news:
            self.news.wait_for(lambda: has_last(self.events.get(key, ())), patience(10))
            return self.events.pop(key, [])


def has_last(events: Iterable[Json]) -> bool:
    return any(event["object"]["metadata"]["name"].endswith(LAST) for event in events)


# ---------------------------------------------------------------------- arena


@dataclass
class Arena:
    """A real server with open watches, and the simulated cluster next to it."""

    real: ApiServer
    base: Cluster
    streams: Streams
    # Whether it is Kubernetes 1.20: namespaces have to be made there.
    old: bool
    # A version before the next sequence.
    version: str
    counter: Iterator[int]
    # How much has been compared so far.
    sequences: int = 0
    requests: int = 0
    events: int = 0

    def told(self) -> str:
        """The number of comparisons, in words."""
        return (
            f"{self.sequences} sequences, {self.requests} requests, "
            f"{self.events} watch events"
        )

    def play(self, ops: tuple[Op, ...]) -> None:
        """Raises `Difference`."""
        self._sequence(Sequence).play(ops)

    def play_family(self, ops: tuple[Op, ...]) -> Family:
        """Raises `Difference`."""
        family = self._sequence(Family)
        family.play(ops)
        return family

    def _sequence(self, of: type[S]) -> S:
        namespace = f"space{next(self.counter)}"
        self.sequences += 1
        simulated = fork(self.base)
        make_namespace(simulated, namespace)
        if self.old:
            make_namespace(self.real, namespace)
        return of(self, simulated, namespace)


def make_namespace(server: Raw, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    status, found = server.raw("POST", "/api/v1/namespaces", body)
    assert status == 201, found


class Sequence:
    """One sequence on both servers."""

    def __init__(self, arena: Arena, simulated: Simulated, namespace: str) -> None:
        self.arena, self.simulated, self.namespace = arena, simulated, namespace
        self.ours, self.theirs = Memory(namespace), Memory(namespace)
        server = "1.20" if arena.old else "1.36"
        self.our_names = Renaming(namespace, server)
        self.their_names = Renaming(namespace, server)
        self.our_start = str(simulated.cluster.version)
        self.their_start = arena.version

    def play(self, ops: tuple[Op, ...]) -> None:
        try:
            self._play(ops)
        finally:
            self.arena.version = max(
                [self.arena.version, *itertools.chain(*self.theirs.versions.values())],
                key=int,
            )

    def _play(self, ops: tuple[Op, ...]) -> None:
        plurals = sorted({op.plural for op in ops})
        requests = one_generated([op for op in ops if op.verb != "watch"])
        if self.arena.old:  # its server-side apply was a beta version
            requests = [op for op in requests if op.type != APPLY_PATCH]
        requests += [*last_objects(plurals), *final_reads(plurals)]
        for op in requests:
            self._request(op)
        for plural in plurals:
            self._followed(plural)
        for op in ops:
            if op.verb == "watch":
                self._watch(op)

    def _compare(self, what: str, ours: Any, theirs: Any, *, kept: bool = True) -> None:
        """Compare after renaming; names that are not `kept` are for this once."""
        our_names, their_names = self.our_names, self.their_names
        if not kept:
            our_names, their_names = deepcopy(our_names), deepcopy(their_names)
        found = differences(our_names.of(ours), their_names.of(theirs))
        if found:
            raise Difference(f"{what}\n{found}\nsimulated: {ours}\nreal: {theirs}")

    def _request(self, op: Op) -> None:
        old = self.arena.old
        ours = perform(op, self.simulated, self.ours, old=old)
        theirs = perform(op, self.arena.real, self.theirs, old=old)
        self.arena.requests += len(theirs)
        self._compare(
            str(op),
            [comparable(op, answer, old=old) for answer in ours],
            [comparable(op, answer, old=old) for answer in theirs],
            # What a dry run would have made is made up, and gone.
            kept=not is_dry(op),
        )

    def _followed(self, plural: str) -> None:
        """Compare what the watches that were open all the time have shown."""
        path = KINDS[plural].everywhere
        query = {"watch": "true", "resourceVersion": self.our_start}
        _, text = self.simulated.raw("GET", path, query=query)
        theirs = self.arena.streams.until_last(plural, self.namespace)
        self.arena.events += len(theirs)
        self._compare(f"the watch of {plural}", events_of(text), theirs)

    def _watch(self, op: Op) -> None:
        path = paths_of(op, self.namespace)
        start = dict(op.query)["resourceVersion"]
        query = self._watch_query(op, self.ours, self.our_start)
        status, text = self.simulated.raw("GET", path, query=query)
        ours = events_of(text) if status == 200 else []
        query = self._watch_query(op, self.theirs, self.their_start)
        their_status, theirs = watched(self.arena.real, path, query, len(ours))
        self.arena.events += len(theirs)
        if start in ("", "0"):  # what is there comes in any order
            ours, theirs = by_name(ours), by_name(theirs)
        self._compare(str(op), [status, ours], [their_status, theirs])

    def _watch_query(self, op: Op, memory: Memory, start: str) -> dict[str, str]:
        query = {"watch": "true", "timeoutSeconds": WATCH_SECONDS, **dict(op.query)}
        what, _, key = query["resourceVersion"].partition(":")
        if what == "@start" or (what == "@stale" and key not in memory.versions):
            query["resourceVersion"] = start
        return {name: memory.filled(value) for name, value in query.items()}


class Family(Sequence):
    """A sequence after each of whose requests the collector has its time."""

    def play(self, ops: tuple[Op, ...]) -> None:
        for op in ops:
            self._request(op)
            self._settle(op)

    def _settle(self, op: Op) -> None:
        self.simulated.settle()
        if not happens(lambda: not self.unlike(), 10, every=0.02):
            raise Difference(f"the state after {op}\n{self.unlike()}")

    def unlike(self) -> str:
        """The differences of the present objects."""
        ours = deepcopy(self.our_names).of(self._state(self.simulated))
        theirs = deepcopy(self.their_names).of(self._state(self.arena.real))
        return differences(ours, theirs)

    def _state(self, server: Raw) -> list[Any]:
        """All objects, without the number of writes that led to them."""
        found = []
        for plural in FAMILY:
            path = KINDS[plural].collection.replace("{ns}", self.namespace)
            _, body = server.raw("GET", path)
            for item in body["items"]:
                if is_made_by_controllers(item):
                    continue
                metadata = {**item["metadata"], "resourceVersion": ""}
                found.append({**item, "metadata": metadata})
        return found


FAMILY = ("configmaps", "secrets")


def is_made_by_controllers(obj: Json) -> bool:
    """The first things in every namespace of a whole cluster."""
    name = str(obj["metadata"]["name"])
    return name == "kube-root-ca.crt" or name.startswith("default-token-")


def watched(
    api: ApiServer, path: str, query: Mapping[str, str], count: int
) -> tuple[int, list[Json]]:
    """This number of lines of a watch."""
    with api.watching(path, query, timeout=patience(20)) as (status, lines):
        found = lines if status == 200 else iter(())
        return status, list(itertools.islice(found, count))


def by_name(events: list[Json]) -> list[Json]:
    return sorted(events, key=lambda event: str(event["object"]["metadata"]["name"]))


# Words of Go's decoders: they show types of Go and the bytes of the body.
DECODER = re.compile(
    r"cannot be handled as a|object provided is unrecognized|cannot unmarshal"
    r"|is invalid: patch: Invalid value"
)
UNTYPED = "failed to create typed patch object"
UNDECLARED = "field not declared in schema"
# What 1.20 put into other words than a current server.
OLD_WORDS = (
    (re.compile(r"\b(kind|name|uid) must not be empty"), "must not be empty"),
    (re.compile(r"unable to parse requirement: .*?\""), 'unable to parse: ..."'),
    (re.compile(r"Invalid value: 0x0: "), "Invalid value: 0: "),
    # It showed the addresses of pointers, and names without their kinds.
    (
        re.compile(
            r"Invalid value: \[.*?Only one reference can have Controller set to true\. "
            r'Found \\"true\\" in references for [^",\]]*'
        ),
        "Only one reference can have Controller set to true",
    ),
)


# The CRD-only server has a prefix of its own in the store, dry runs have none.
PREFIX = re.compile(r"(?<=Key: )(/registry)?(/apiextensions\.kubernetes\.io)?/")


def comparable(op: Op, answer: Answer, *, old: bool) -> Any:
    """The common part of two servers' answers."""
    status, body = answer
    if status < 400 or not isinstance(body, dict):
        return {"code": status, "answer": body}
    if old and op.verb == "update" and is_nowhere(status, body):
        return {"code": 404}
    is_unread = op.verb == "patch" and op.body in UNREADABLE
    if old and is_unread and status in (400, 422):
        return {"code": 400}  # it was 422, without the reason
    if old and status == 415:
        return {"code": 415}  # in fewer words then
    message = str(body.get("message"))
    # It walks maps in any order, and ends at what is not declared.
    if UNTYPED in message:
        return {"code": status, "message": UNTYPED}
    if message.endswith(UNDECLARED):
        return {"code": status, "message": message.rpartition(": .")[0]}
    wordless = status in (400, 422) and DECODER.search(str(body.get("message")))
    if wordless or (old and op.plural == "things" and status == 422):
        # 1.20 had other words for what does not fit a schema, and found less.
        return {"code": status, "reason": body["reason"]}
    text = PREFIX.sub("/registry/", json.dumps(with_each_cause_once(body)))
    if prefix := generated_prefix(op):  # a name that no object got
        text = re.sub(rf"{re.escape(prefix)}[a-z0-9]{{5}}", f"{prefix}...", text)
    for pattern, words in OLD_WORDS if old else ():
        text = pattern.sub(words, text)
    return {"code": status, "answer": json.loads(text)}


def is_nowhere(status: int, body: Json) -> bool:
    """Whether the object is missing: 1.20 reported a different uid."""
    message = str(body.get("message"))
    return status == 404 or message.endswith("UID in object meta: ")


def with_each_cause_once(body: Json) -> Json:
    """Ignore the number of times that a validator reports the same fault."""
    causes = (body.get("details") or {}).get("causes")
    if not causes:
        return body
    unique = {json.dumps(cause): cause for cause in causes}
    return {**body, "details": {**body["details"], "causes": list(unique.values())}}


def generated_prefix(op: Op) -> str:
    metadata = op.body.get("metadata") if isinstance(op.body, dict) else None
    found = metadata.get("generateName") if isinstance(metadata, dict) else None
    return found.replace("{ns}-", "") if isinstance(found, str) else ""


@contextmanager
def arena(
    real: ApiServer, base: Cluster, plurals: Iterable[str], *, old: bool
) -> Iterator[Arena]:
    """Open the watches; close them on the way out."""
    streams = Streams()
    threads: list[threading.Thread] = []
    version = "0"
    with ExitStack() as stack:
        for plural in plurals:
            kind = KINDS[plural]
            _, found = real.raw("GET", kind.everywhere)
            version = found["metadata"]["resourceVersion"]
            status, lines = stack.enter_context(
                real.watching(
                    kind.everywhere,
                    {"resourceVersion": version, "timeoutSeconds": "3600"},
                    timeout=None,
                )
            )
            assert status == 200
            threads.append(
                threading.Thread(target=streams.follow, args=(kind, lines), daemon=True)
            )
        for thread in threads:
            thread.start()
        names = itertools.count(time.time_ns() % 10**9 * 1000)
        yield Arena(real, base, streams, old, version, names)
    for thread in threads:
        thread.join(patience(10))
