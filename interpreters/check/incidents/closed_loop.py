"""Continue a recorded run differently: in a simulated cluster, from some step on.

The objects are those that the operator had seen by then. The operator starts again
there, and later changes by others are repeated at their times. Everything that follows
is simulated: the answers, the cluster's own controllers, and the durations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, path_of
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import Call, Log, Outcome
from fnop.interpreters import cluster as simulated
from fnop.interpreters.check.state.worlds import World, world_of
from fnop.interpreters.check.trials.differences import Difference, differences
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.recording.identities.volatile import CHOSEN
from fnop.interpreters.recording.model.calls import Replies
from fnop.interpreters.recording.model.excerpt import Excerpt, resource_of
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.world import Foreign, authors_of, change_of
from fnop.interpreters.recording.questions.story import Line, Story
from fnop.interpreters.recording.replay.concealed import has_secrets, with_other_tokens
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.assumed import assumed_definitions
from fnop.interpreters.simulation.calls import Model, SimulatedCalls, named
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Ended", "go_on", "without_kubelet"]

Query = tuple[tuple[str, str], ...]


class Ended(Struct, frozen=True):
    """The end: whether the run settled (else why not), and the differences.

    `refused` are the changes by others that the simulated cluster did not accept.
    `concealed` are the differences that prove nothing: they are in texts that are made
    of a secret, or of fresh randomness.
    """

    unsettled: str
    differences: Sequence[Difference]
    refused: Sequence[str]
    calls: Mapping[str, str]
    concealed: Sequence[Difference] = ()


class _RecordedCalls(SimulatedCalls):
    """Calls get their recorded answers if they have no model."""

    def __init__(self, models: Mapping[str, Model] | None, replies: Replies) -> None:
        super().__init__(models)
        self._replies = replies

    def answer(self, call: Call, wall: float, say: Callable[[Log], None]) -> Outcome:
        # Models remember their requests, and return the answer that was probably meant.
        if self.of(call) is None:
            found = self._replies.answer(call, wall)
            if found is not None:
                return found
        return super().answer(call, wall, say)

    def lack(self, function: str) -> str:
        if not self._replies.knows(function):
            return super().lack(function)
        return (
            f"the recording has no more answers of {named(function)} to these "
            "arguments; give a model of it with --calls FILE"
        )


class _Reporter:
    """An observer that reports the story of a run."""

    def __init__(self, manager: str, report: Callable[[list[Line]], None]) -> None:
        self._story, self._report = Story(manager=manager), report

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self._report(
            self._story.add(
                {
                    "wall": now.wall,
                    "mono": now.mono,
                    "input": input_to_wire(input),
                    "commands": [*map(command_to_wire, commands)],
                }
            )
        )


def go_on(
    excerpt: Excerpt,
    program: Program,
    *,
    calls: Mapping[str, Any] | None = None,
    pace: Callable[[Cluster], Cluster] = lambda cluster: cluster,
    report: Callable[[list[Line]], None] = lambda lines: None,
) -> Ended:
    """Run the operator from there; `report` receives the lines of its story.

    `pace` changes the behaviour of the cluster's own controllers.
    """
    base = pace(_base_cluster(excerpt.catalogue, excerpt.places))
    program = Program(program.handlers, program.settings.replace(traces=True))
    reporter = _Reporter(program.settings.marker, report)
    apart = [{} if calls is None else forked(calls) for _ in range(2)]
    run, refused, unsettled = _play_excerpt(
        excerpt, program, base, calls, observer=reporter
    )
    found = world_of(run.cluster, base)
    differing = _telling_differences(excerpt, base, found)
    made: set[_Where] = set()
    if any(map(_are_texts, differing)) and (run.draws.drawn or has_secrets(excerpt)):
        made = _fields_from_secrets(excerpt, program, base, apart, found)
    concealed = [e for e in differing if _are_texts(e) and (e.alias, e.path) in made]
    return Ended(
        unsettled,
        [each for each in differing if each not in concealed],
        refused,
        run.calls.unmodelled,
        concealed,
    )


def _play_excerpt(
    excerpt: Excerpt,
    program: Program,
    base: Cluster,
    calls: Mapping[str, Any] | None,
    *,
    observer: _Reporter | None = None,
    seed: str = "0",
) -> tuple[SimulatedRun, list[str], str]:
    """The run at its end, the refused changes, and the reason why it does not rest."""
    run = SimulatedRun(
        program,
        _cluster_with_objects(base, excerpt, excerpt.objects),
        seed=seed,
        clock=VirtualClock(excerpt.wall),
        observers=() if observer is None else [observer],
    )
    replies = Replies(excerpt.answers)
    run.calls = _RecordedCalls(calls, replies)
    refused = []
    run.wait(0)
    for each in excerpt.changes:
        run.wait(max(0.0, each.wall - excerpt.wall - run.clock.elapsed))
        refused += _repeat_change(run, excerpt.catalogue, each)
    end_of_time = max(excerpt.until, replies.until)
    run.wait(max(0.0, end_of_time - excerpt.wall - run.clock.elapsed))
    rests = run.settle()
    return run, refused, "" if rests else run.unsettled


def _telling_differences(
    excerpt: Excerpt, base: Cluster, found: World
) -> list[Difference]:
    """The differences from the recorded end, except those that differ in any run."""
    kinds = {resource_of(excerpt.catalogue, each) for each in excerpt.places} - {None}
    # The recording does not show the objects of other kinds.
    shown = tuple(_alias_prefix(each) for each in kinds if each is not None)
    expected = world_of(_cluster_with_objects(base, excerpt, excerpt.end), base)
    return [
        each
        for each in differences(expected, found)
        if each.alias.startswith(shown)
        and not _OWN.search(each.alias)
        and not _is_drawn(each)
        and not _is_chosen(each)
    ]


_Where = tuple[str, str]


def _fields_from_secrets(
    excerpt: Excerpt,
    program: Program,
    base: Cluster,
    calls: Sequence[Mapping[str, Any]],
    found: World,
) -> set[_Where]:
    """The fields that differ if other tokens stand for secrets.

    Fields that differ in a repetition of the same run are not made of secrets, but of
    something that the operator should not read.
    """
    same, _, _ = _play_excerpt(excerpt, program, base, calls[0])
    others = with_other_tokens(excerpt, program)
    other, _, _ = _play_excerpt(others, program, base, calls[1], seed="1")
    one, two = (
        {
            (each.alias, each.path)
            for each in differences(found, world_of(run.cluster, base))
        }
        for run in (same, other)
    )
    return two - one


def _are_texts(difference: Difference) -> bool:
    return isinstance(difference.expected, str) and isinstance(difference.found, str)


def without_kubelet(cluster: Cluster) -> Cluster:
    """The cluster without running pods."""
    return simulated.paced(cluster, {"kubelet": simulated.Off()})


# Objects that a cluster makes in every namespace (before 1.24 also a token's Secret).
_OWN = re.compile(
    r"^(configmaps/kube-root-ca\.crt|serviceaccounts/default"
    r"|secrets/default-token-[a-z0-9]{5})( |$)"
)


def _is_drawn(difference: Difference) -> bool:
    """Whether it is the value of a Secret: drawn again, or a token in the recording."""
    values = difference.expected, difference.found
    is_held = difference.path.startswith("data.") and None not in values
    return is_held and difference.alias.startswith("secrets/")


def _is_chosen(difference: Difference) -> bool:
    """Whether the API server has chosen it: an address or a port.

    >>> _is_chosen(Difference("services/web", "spec.clusterIPs[0]", "::1", "::2"))
    True
    >>> _is_chosen(Difference("services/web", "spec.ports[0].port", 80, 81))
    False
    """
    values = difference.expected, difference.found
    name = difference.path.rpartition(".")[2].partition("[")[0]
    is_addressed = difference.alias.startswith(("services/", "pods/"))
    return is_addressed and name in CHOSEN and None not in values


def _alias_prefix(resource: Resource) -> str:
    """The beginning of the aliases of a kind's objects (`world_of`)."""
    return f"{resource.plural}.{resource.group}".rstrip(".") + "/"


# ----------------------------------------------------------------- the world restored


def _base_cluster(catalogue: Catalogue, places: Iterable[Place]) -> Cluster:
    """A cluster with the recorded kinds, and the namespaces of the objects."""
    served = {(each.group, each.version, each.plural) for each in catalogue.resources}
    cluster = simulated.blank_cluster("loop", 0, served)
    cluster = simulated.describing(cluster, assumed_definitions(catalogue, cluster, ()))
    names = sorted({each.namespace for each in places} - {""})
    namespaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "uid": f"namespace-{name}"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in names
    ]
    return simulated.restored(cluster, ("", "v1", "namespaces"), namespaces)


def _cluster_with_objects(
    cluster: Cluster, excerpt: Excerpt, objects: Mapping[Place, dict[str, Any]]
) -> Cluster:
    for place, each in objects.items():
        resource = resource_of(excerpt.catalogue, place)
        path = resource and (resource.group, resource.version, resource.plural)
        if path and path in cluster.registry.by_path:
            cluster = simulated.restored(cluster, path, [each])
    return cluster


# ----------------------------------------------------------- what others have done


def _repeat_change(
    run: SimulatedRun, catalogue: Catalogue, change: Foreign
) -> list[str]:
    """Repeat another client's change; return sentences about the refusals."""
    place = change.place
    resource = resource_of(catalogue, place)
    if resource is None:
        return []
    path = path_of(resource, place.namespace or None)
    refused = []
    for request in _requests(run, resource, path, change):
        response = run.request(request)
        gone = response.status == 404 and request.method == "DELETE"
        if response.status >= 300 and not gone:
            what = f"{request.method} {resource.plural}/{place.name}"
            refused.append(f"#{change.step} {what}: {message_of(response)}")
    return refused


def _requests(
    run: SimulatedRun, resource: Resource, path: str, change: Foreign
) -> list[ApiRequest]:
    one = f"{path}/{change.place.name}"
    present = run.request(ApiRequest("GET", one))
    before, after = change.before, change.after
    if after is None:
        return [ApiRequest("DELETE", one)]
    if before is None and present.status == 404:
        return _creation_requests(resource, path, change)
    writer = _writer_query(change)
    main, status = change_of(before or present.body, after)
    found = []
    if "finalizers" in main.get("metadata", {}):
        main["metadata"]["finalizers"] = _finalizers(before, after, present.body)
    if any(main.values()) or None in main.values():
        found.append(ApiRequest("PATCH", one, writer, main, MERGE_PATCH))
    if status:
        found.append(_status_request(resource, one, writer, status))
    if _is_deleting(after) and not _is_deleting(before):
        found.append(ApiRequest("DELETE", one))
    return found


def _creation_requests(
    resource: Resource, path: str, change: Foreign
) -> list[ApiRequest]:
    """The object as another client created it, with its owners' present uids."""
    found, writer = change.after or {}, _writer_query(change)
    manifest, status = change_of({}, found)
    requests = [ApiRequest("POST", path, writer, manifest)]
    if status:
        one = f"{path}/{change.place.name}"
        requests.append(_status_request(resource, one, writer, status))
    return requests


def _status_request(
    resource: Resource, one: str, writer: Query, status: dict[str, Any]
) -> ApiRequest:
    tail = "/status" if resource.has_status else ""
    return ApiRequest("PATCH", f"{one}{tail}", writer, {"status": status}, MERGE_PATCH)


def _writer_query(change: Foreign) -> Query:
    """The query that names the writer of a change, by the managed fields."""
    if change.after is None:
        return ()
    before = None if change.before is None else Body(change.before)
    authors = authors_of(before, Body(change.after))
    return tuple(("fieldManager", each) for each in authors)[:1]


def _finalizers(
    before: dict[str, Any] | None, after: dict[str, Any], present: dict[str, Any]
) -> list[str]:
    """The present finalizers, with those that another client has added or removed."""
    old, new, now = (
        [*(((each or {}).get("metadata") or {}).get("finalizers") or ())]
        for each in (before, after, present)
    )
    kept = [each for each in now if each in new or each not in old]
    return [*kept, *(each for each in new if each not in old and each not in kept)]


def _is_deleting(found: dict[str, Any] | None) -> bool:
    return found is not None and bool(found["metadata"].get("deletionTimestamp"))
