"""Streaming lists: a watch begins with the objects that there are (KEP-3157)."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peers import Member, record_of
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import (
    Bookmark,
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.core.state.lifecycle import Phase
from fnop.core.streams.stream import (
    Stream,
    StreamPhase,
    answered_version,
    ended,
    heard_at,
    lacks_initial_events,
    listed,
    opened,
)
from fnop.core.values.backoff import BACKOFF_SECONDS
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import watch_input
from fnop.interpreters.runtime.requests import watch_request
from fnop.interpreters.simulation.watches import Delivery
from fnop.testing import Simulation
from tests.peerings import PEERING_OBJECT, peering_definition
from tests.simulations import DEFINITION, example
from tests.stories import Story
from tests.streamed import PAGES, REFUSALS, STREAMING, Streamed, things

KIND = "fnopexamples"
PODS = Resource("", "v1", "pods", "Pod")
LONG_AGO, AT = Now(4000.0, 1000.0), Now(5000.0, 2000.0)


# ------------------------------------------------------------- the state machine


def beginning() -> Stream:
    """A watch that has not shown all objects yet."""
    stream, _ = opened(Stream(PODS, "ns"), 1, 7, LONG_AGO, STREAMING)
    return stream


def watching() -> Stream:
    return heard_at(listed(beginning(), "100"), "105")


def end(reason: str, status: int | None = None) -> StreamEnded:
    return StreamEnded(1, reason, status, "words")


def test_a_watch_of_no_version_takes_the_place_of_the_first_page() -> None:
    stream, command = opened(Stream(PODS, "ns"), 1, 7, AT, STREAMING)
    silence = STREAMING.watch_silence_seconds
    seconds = STREAMING.watch_timeout_seconds
    assert command == Watch(1, PODS, "ns", "", seconds, silence)
    assert (stream.phase, stream.begun) == (StreamPhase.LISTING, 7)
    assert (stream.listings, stream.lists, stream.is_asking) == (1, 0, False)


def test_nobody_streams_without_the_setting() -> None:
    _, command = opened(Stream(PODS, "ns"), 1, 7, AT, Settings())
    assert command == ListPage(1, PODS, "ns", Settings().list_page_limit)


def test_it_asks_for_initial_events_and_names_no_version() -> None:
    _, command = opened(Stream(PODS, "ns"), 1, 7, AT, STREAMING)
    assert isinstance(command, Watch)
    asked = dict(watch_request(command).query)
    assert asked["sendInitialEvents"] == "true"
    assert asked["resourceVersionMatch"] == "NotOlderThan"
    assert asked["allowWatchBookmarks"] == "true"
    assert "resourceVersion" not in asked
    _, command = opened(watching(), 2, 8, AT, STREAMING)
    assert isinstance(command, Watch)
    asked = dict(watch_request(command).query)
    assert asked["resourceVersion"] == "105"
    assert not {"sendInitialEvents", "resourceVersionMatch"} & {*asked}


def test_after_the_last_initial_event_the_same_watch_goes_on() -> None:
    stream = listed(beginning(), "100")
    assert (stream.phase, stream.version) == (StreamPhase.WATCHING, "100")
    assert (stream.id, stream.lists, stream.begun) == (1, 1, 7)


# reason, HTTP status → whether pages follow, and whether it waits before.
ENDS = [
    ("eof", None, True, False),
    ("silent", None, True, False),
    ("unreachable", None, False, True),
    ("undecodable", None, False, True),
    ("refused", None, False, True),  # an ERROR line that says nothing
    ("refused", 400, True, False),
    ("refused", 401, False, True),
    ("refused", 403, False, True),
    ("refused", 404, False, True),
    ("refused", 408, False, True),
    ("refused", 410, False, False),
    ("refused", 422, True, False),
    ("refused", 429, False, True),
    ("refused", 500, False, True),
    ("refused", 503, False, True),
    ("refused", 504, False, True),
]


@pytest.mark.parametrize(("reason", "status", "pages", "waits"), ENDS)
def test_the_end_before_all_objects_are_shown(
    reason: str, status: int | None, pages: bool, waits: bool
) -> None:
    assert lacks_initial_events(beginning(), end(reason, status)) is pages
    if pages:
        return  # it is opened again at once
    after = ended(beginning(), end(reason, status), AT, 0.0)
    assert (after.phase, after.version) == (StreamPhase.WAITING, None)
    assert (after.lists, after.doubted, after.in_pages) == (0, False, False)
    assert after.due == AT.mono + (BACKOFF_SECONDS[0] if waits else 0.0)
    again, command = opened(after, 2, 9, AT, STREAMING)
    assert isinstance(command, Watch)
    assert command.version == "", "it begins anew"
    assert (again.listings, again.begun) == (2, 9)


@pytest.mark.parametrize(("reason", "status", "pages", "waits"), ENDS)
def test_other_ends_tell_nothing_about_streaming_lists(
    reason: str, status: int | None, pages: bool, waits: bool
) -> None:
    in_pages, _ = opened(Stream(PODS, "ns"), 1, 7, AT, Settings())
    resumed, _ = opened(watching(), 2, 8, AT, STREAMING)
    doubted = ended(watching(), end("unreachable"), AT, 0.0)
    asking, _ = opened(doubted, 3, 9, AT, STREAMING)
    closed = replace(beginning(), phase=StreamPhase.PAUSED)
    for stream in (in_pages, watching(), resumed, asking, closed):
        assert not lacks_initial_events(stream, end(reason, status))


@pytest.mark.parametrize(
    ("status", "pages"),
    [
        *((None, True), (401, False), (403, False), (404, False), (405, True)),
        *((429, False), (500, True), (501, True), (503, False), (504, True)),
    ],
)
def test_what_fails_again_and_again_is_done_without(
    status: int | None, pages: bool
) -> None:
    """Any reason may keep a server from streaming; few keep it from listing."""
    stream, given_up = beginning(), list[bool]()
    for number in range(6):
        given_up.append(lacks_initial_events(stream, end("refused", status)))
        stream = ended(stream, end("refused", status), AT, 0.0)
        stream, _ = opened(stream, 2 + number, 9, AT, STREAMING)
    assert given_up == [*[False] * 4, pages, pages]


def test_an_etcd_without_progress_notifications_cannot_stream() -> None:
    """Kubernetes says it in a line of type ERROR."""
    said = (
        "a watch stream was requested by the client but the required storage feature "
        "RequestWatchProgress is disabled"
    )
    status = {"kind": "Status", "code": 500, "message": said}
    found = watch_input(1, "ERROR", status, initial=True)
    assert isinstance(found, StreamEnded)
    assert lacks_initial_events(beginning(), found)
    assert not lacks_initial_events(watching(), found)


def test_a_server_without_them_is_asked_for_pages_ever_after() -> None:
    stream = replace(beginning(), in_pages=True)
    for number in range(3):
        stream, command = opened(stream, 2 + number, 9, AT, STREAMING)
        assert isinstance(command, ListPage)
        assert not stream.streamed
        stream, command = opened(listed(stream, "100"), 20, 9, AT, STREAMING)
        assert isinstance(command, Watch)
        assert command.version == "100"
        stream = ended(stream, end("refused", 410), AT, 0.0)


@pytest.mark.parametrize("version", ["105", "200", "104"])
def test_who_doubts_looks_at_one_object_before_it_resumes(version: str) -> None:
    stream = ended(watching(), end("unreachable"), AT, 0.0)
    stream, command = opened(stream, 3, 9, AT, STREAMING)
    assert command == ListPage(3, PODS, "ns", 1)
    assert not lacks_initial_events(stream, end("refused", 400))
    after = answered_version(stream, version)
    stream, command = opened(after, 4, 9, AT, STREAMING)
    assert isinstance(command, Watch)
    assert command.version == ("105" if version != "104" else "")
    assert stream.streamed is (version == "104")


@pytest.mark.parametrize(
    ("type", "annotations", "initial", "input"),
    [
        ("ADDED", None, True, ListItem),
        ("MODIFIED", None, True, ListItem),
        ("DELETED", None, True, WatchEvent),
        ("BOOKMARK", {"k8s.io/initial-events-end": "true"}, True, ListDone),
        ("BOOKMARK", {"other": "true"}, True, Bookmark),
        ("BOOKMARK", {}, True, Bookmark),
        ("BOOKMARK", None, True, Bookmark),
        ("BOOKMARK", "k8s.io/initial-events-end", True, Bookmark),
        ("BOOKMARK", ["k8s.io/initial-events-end"], True, Bookmark),
        ("ERROR", None, True, StreamEnded),
        ("OTHER", None, True, StreamEnded),
        ("ADDED", None, False, WatchEvent),
        ("MODIFIED", None, False, WatchEvent),
        ("BOOKMARK", {"k8s.io/initial-events-end": "true"}, False, Bookmark),
    ],
)
def test_lines_up_to_the_end_are_those_of_a_list(
    type: str, annotations: Any, initial: bool, input: type
) -> None:
    meta = {"name": "a", "resourceVersion": "7", "annotations": annotations}
    found = watch_input(1, type, {"metadata": meta}, initial=initial)
    assert isinstance(found, input)


# ------------------------------------------------------------------- the stories


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def registry(diary: list[str]) -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, **_: Any) -> None:
        diary.append(f"created {name}")

    @fnop.on.update(KIND, registry=registry, id="update", field="spec")
    def update(name: str, spec: Any, **_: Any) -> None:
        diary.append(f"updated {name} to {spec['size']}")

    @fnop.on.event(KIND, registry=registry)
    def see(type: str | None, name: str, **_: Any) -> None:
        if type == "DELETED":
            diary.append(f"gone {name}")

    return registry


def test_present_objects_are_handled_and_later_changes_too(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("ab"))
    assert run.settle()
    assert sorted(diary) == ["created a", "created b"]
    diary.clear()
    run.edit(KIND, "a", spec={"size": 2})
    run.apply(*things("c"))
    run.delete(KIND, "b")
    assert run.settle()
    assert sorted(diary) == ["created c", "gone b", "updated a to 2"]
    run.wait(3600)
    assert run.asked[0] == "begin"
    assert {*run.asked[1:]} <= {"watch"}, "no page, and no second beginning"
    assert run.names == ["a", "c"]
    assert run.said_at("warning") == []


def test_an_empty_collection_is_complete_at_once(registry: Registry) -> None:
    run = Streamed(registry)
    assert run.settle()
    assert run.asked == ["begin"]
    assert run.ready


@pytest.mark.parametrize(
    ("reason", "status", "asked"),
    [
        ("refused", 410, ["begin"]),
        ("undecodable", None, ["begin"]),
        ("unreachable", None, ["look", "watch"]),
        ("eof", None, ["watch"]),
    ],
)
def test_what_happens_while_nobody_watches_is_noticed(
    registry: Registry,
    diary: list[str],
    reason: str,
    status: int | None,
    asked: list[str],
) -> None:
    run = Streamed(registry, things("abc"))
    assert run.settle()
    run.wait(60)
    diary.clear()
    before = len(run.asked)
    run.loses(reason, status)
    run.delete(KIND, "b")
    run.edit(KIND, "a", spec={"size": 2})
    run.apply(*things("d"))
    run.wait(30)
    assert run.asked[before:] == asked
    assert sorted(diary) == ["created d", "gone b", "updated a to 2"]
    assert run.names == ["a", "c", "d"]


def test_a_restored_storage_is_read_anew(registry: Registry, diary: list[str]) -> None:
    run = Streamed(registry, things("ab"))
    assert run.settle()
    backup = run.cluster
    run.apply(*things("c")).settle()
    for size in range(2, 20):
        run.edit(KIND, "a", spec={"size": size})
    run.settle()
    diary.clear()
    before = len(run.asked)
    run.restore(backup)
    run.wait(30)
    assert run.asked[before:] == ["look", "begin"]
    assert sorted(diary) == ["gone c", "updated a to 1"]
    told = [line for line in run.said_at("warning") if "has gone back" in line]
    assert len(told) == 1
    run.edit(KIND, "b", spec={"size": 3})
    run.wait(10)
    assert diary[-1] == "updated b to 3", "it is not deaf"


# Whole beginnings are "again"; a server that closes has none.
CUTS = [("unreachable", "begin"), ("undecodable", "begin"), ("eof", "page")]


@pytest.mark.parametrize(("reason", "again"), CUTS)
@pytest.mark.parametrize("lines", [0, 1, 2, 3])
def test_a_break_among_the_initial_events_loses_nothing(
    registry: Registry, diary: list[str], lines: int, reason: str, again: str
) -> None:
    run = Streamed(registry, things("abc"))
    run.fates.append(lines)
    run.take_all()
    assert not run.ready
    run.loses(reason)
    run.wait(30)
    rest = [] if again == "begin" else ["watch"]
    assert run.asked == ["begin", again, *rest]
    assert sorted(diary) == ["created a", "created b", "created c"]
    assert run.ready


@pytest.mark.parametrize(("reason", "again"), CUTS)
@pytest.mark.parametrize("lines", [0, 1, 2])
def test_a_break_among_later_initial_events_deletes_nothing(
    registry: Registry, diary: list[str], lines: int, reason: str, again: str
) -> None:
    run = Streamed(registry, things("abc"))
    assert run.settle()
    run.wait(60)
    diary.clear()
    run.loses("refused", 410)
    run.delete(KIND, "c")
    run.fates.append(lines)
    run.take_all()
    assert diary == []
    assert run.names == ["a", "b", "c"], "half a list says nothing of the rest"
    run.loses(reason)
    run.wait(30)
    assert diary == ["gone c"]
    assert run.names == ["a", "b"]
    assert again in run.asked


def test_an_object_that_a_broken_beginning_has_shown_may_be_gone_by_the_next(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("abc"))
    run.fates.append(3)
    run.take_all()
    run.delete(KIND, "b")  # before its handler's write has arrived, or behind it
    run.loses("unreachable")
    run.wait(30)
    assert run.names == ["a", "c"]
    assert [each for each in diary if each.startswith("gone")] == ["gone b"]


def test_changes_before_the_end_are_taken_in(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("abc"))

    def meanwhile() -> None:
        run.edit(KIND, "a", spec={"size": 2})
        run.delete(KIND, "b")
        run.apply(*things("d"))

    run.fates.append(meanwhile)
    assert run.settle()
    kinds = [
        (type(each).__name__, each.body.name)
        for _, each, _ in run.trace.steps
        if isinstance(each, ListItem | WatchEvent)
    ][:6]
    assert kinds == [
        *(("ListItem", name) for name in "abca"),
        ("WatchEvent", "b"),
        ("ListItem", "d"),
    ]
    assert run.names == ["a", "c", "d"]
    assert {*diary} >= {"created a", "created c", "created d", "gone b"}
    sizes = {name: run.get(KIND, name) for name in "acd"}
    assert [each and each["spec"]["size"] for each in sizes.values()] == [2, 1, 1]
    diary.clear()
    run.loses("refused", 410)
    run.wait(30)
    assert diary == [], "nobody is gone twice, and nobody has changed"
    run.edit(KIND, "d", spec={"size": 5})
    run.wait(5)
    assert diary == ["updated d to 5"]


def test_an_object_that_was_replaced_before_the_end_is_another_one(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("ab"))
    assert run.settle()
    run.wait(60)
    diary.clear()

    def meanwhile() -> None:
        run.delete(KIND, "a")
        run.apply(*things("a", size=3))

    run.loses("refused", 410)
    run.fates.append(meanwhile)
    run.wait(30)
    assert diary == ["gone a", "created a"]
    assert run.names == ["a", "b"]


def test_an_own_write_among_the_initial_events_is_not_undone(diary: list[str]) -> None:
    """A line that is older than the answer to an own write changes nothing."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="create")
    def create(name: str, **_: Any) -> dict[str, str]:
        diary.append(f"created {name}")
        return {"of": name}

    run = Streamed(registry, things("ab"))
    run.fates.append(2)
    run.take_all()
    assert sorted(diary) == ["created a", "created b"]
    number, resource = run.streams[run.resource], run.resource
    for body in things("ab"):  # as they were before
        found = run.get(KIND, body["metadata"]["name"])
        assert found is not None
        meta = {**found["metadata"], "resourceVersion": "1"}
        stale = {**found, "metadata": meta, "status": {}}
        run.feed(Delivery(resource, ListItem(number, Body(stale))))
    run.let_rest_through()
    run.wait(30)
    assert sorted(diary) == ["created a", "created b"], "nobody is created again"


def test_a_bookmark_before_the_end_is_no_place_to_resume_from(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("abc"))
    run.fates.append(1)
    run.take_all()
    number = run.streams[run.resource]
    run.feed(Bookmark(number, str(run.cluster.version)))
    run.take_all()
    (stream,) = run.machine.state.streams.followed.values()
    assert (stream.phase, stream.version) == (StreamPhase.LISTING, None)
    assert (stream.lists, run.ready) == (0, False)
    run.loses("unreachable")
    run.wait(30)
    assert run.asked == ["begin", "begin"]
    assert sorted(diary) == ["created a", "created b", "created c"]


def test_a_watch_that_breaks_after_a_long_beginning_was_not_well(
    registry: Registry,
) -> None:
    """A long list says nothing about the watch after it: no relisting in a loop."""
    run = Streamed(registry, things("ab"))
    phases = []
    for _ in range(3):
        run.fates.append(1)
        run.take_all()
        (stream,) = run.machine.state.streams.followed.values()
        phases.append(stream.phase)
        run.wait(20)
        run.let_rest_through()
        run.take_all()
        run.loses("refused", 410)
    # The third time it waits before it lists again.
    assert phases == [*[StreamPhase.LISTING] * 2, StreamPhase.WAITING]


# ------------------------------------------------------------------- the fallback


@pytest.mark.parametrize("how", REFUSALS)
def test_a_server_without_streaming_lists_is_asked_for_pages(
    registry: Registry, diary: list[str], how: str
) -> None:
    run = Streamed(registry, things("abc"))
    run.lacks = REFUSALS[how]
    run.wait(60)
    assert run.asked == ["begin", "page", "watch"]
    assert sorted(diary) == ["created a", "created b", "created c"]
    told = [line for line in run.said_at("info") if line.startswith(PAGES)]
    assert len(told) == 1
    assert not run.said_at("warning") + run.said_at("error")
    diary.clear()
    run.loses("refused", 410)
    run.delete(KIND, "b")
    run.wait(30)
    assert run.asked[3:] == ["page", "watch"], "it is asked once"
    assert diary == ["gone b"]
    assert [line for line in run.said_at("info") if line.startswith(PAGES)] == told


def test_a_server_that_fails_to_stream_is_asked_for_pages_in_the_end(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("a"))
    run.lacks = ("refused", 504, "Too large resource version")
    run.wait(30)
    assert run.asked == [*["begin"] * 5, "page", "watch"]
    assert diary == ["created a"]
    assert len([line for line in run.said_at("info") if line.startswith(PAGES)]) == 1
    (line,) = run.said_at("warning")
    assert line.endswith("broke: refused Too large resource version")


def test_a_server_that_ignores_the_options_shows_objects_and_ends(
    registry: Registry, diary: list[str]
) -> None:
    """Before 1.19: the objects come, their end is never reported, and time is up."""
    run = Streamed(registry, things("abc"))
    run.fates.append(3)  # all, without the bookmark
    run.take_all()
    run.wait(290)
    run.loses("eof")
    run.wait(30)
    assert run.asked == ["begin", "page", "watch"]
    assert sorted(diary) == ["created a", "created b", "created c"]
    assert not run.said_at("warning")


def test_it_is_said_once_for_a_kind_in_many_namespaces(registry: Registry) -> None:
    settings = STREAMING.replace(namespaces=("one", "two", "three"))
    run = Streamed(registry, settings=settings)
    run.lacks = REFUSALS["422"]
    run.wait(10)
    assert run.asked.count("begin") == 3
    assert run.asked.count("page") == 3
    assert len([line for line in run.said_at("info") if line.startswith(PAGES)]) == 1


def test_a_server_that_refuses_pages_as_well_is_not_asked_in_a_loop(
    registry: Registry,
) -> None:
    """A 400 that is about something else."""

    class Refusing(Streamed):
        def _list(self, command: ListPage) -> None:
            self.feed(StreamEnded(command.stream, *REFUSALS["400"]))

    run = Refusing(registry, things("a"))
    run.lacks = REFUSALS["400"]
    run.wait(120)
    assert run.asked[:2] == ["begin", "page"]
    assert {*run.asked[2:]} == {"page"}
    assert 10 < len(run.asked) < 40
    assert any("broke" in line for line in run.said_at("warning"))


def test_unknown_fields_are_dropped_and_then_it_streams_again(diary: list[str]) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, fields={"spec.size": "1"})
    def create(name: str, **_: Any) -> None:
        diary.append(f"created {name}")

    run = Streamed(registry, [*things("a"), *things("b", size=2)])
    run.wait(10)
    assert run.asked == ["begin", "begin"]
    assert diary == ["created a"]
    told = [line for line in run.said_at("info") if "does not select" in line]
    assert len(told) == 1
    assert not any(line.startswith(PAGES) for line in run.lines)
    assert not run.said_at("warning")


def test_fields_that_are_unknown_beside_no_streaming_lists(diary: list[str]) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, fields={"spec.size": "1"})
    def create(name: str, **_: Any) -> None:
        diary.append(f"created {name}")

    run = Streamed(registry, [*things("a"), *things("b", size=2)])
    run.lacks = REFUSALS["400"]
    run.wait(10)
    assert run.asked == ["begin", "page", "page", "watch"]
    assert diary == ["created a"]
    assert not run.said_at("warning")


def test_who_may_not_follow_a_kind_is_told_the_verbs(registry: Registry) -> None:
    run = Streamed(registry, things("a"))
    run.lacks = ("refused", 403, "no")
    run.wait(10)
    assert "page" not in run.asked
    (line,) = [each for each in run.said_at("error") if "may not follow" in each]
    assert "grant the verbs list and watch" in line


# -------------------------------------------- namespaces, peers, kinds, what is asked


def space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def inside(where: str, name: str = "x") -> dict[str, Any]:
    made = example(name)
    made["metadata"]["namespace"] = where
    return made


def followed(run: Story) -> set[tuple[str, str | None]]:
    streams = run.machine.state.streams.followed.values()
    return {(each.resource.plural, each.namespace) for each in streams}


def test_namespaces_are_streamed_for_patterns(
    registry: Registry, diary: list[str]
) -> None:
    given = [space("team-a"), space("other"), inside("team-a", "a"), inside("other")]
    settings = STREAMING.replace(namespaces=("team-*",))
    run = Streamed(registry, given, settings=settings)
    assert run.settle()
    run.apply(space("team-b"), inside("team-b", "b"))
    assert run.settle()
    assert diary == ["created a", "created b"]
    asked = [
        (type(each).__name__, each.resource.plural)
        for _, _, commands in run.trace.steps
        for each in commands
        if isinstance(each, ListPage | Watch)
    ]
    assert asked == [("Watch", "namespaces"), ("Watch", KIND), ("Watch", KIND)]
    assert followed(run) == {("namespaces", None), (KIND, "team-a"), (KIND, "team-b")}


def gone(run: Streamed, name: str) -> None:
    """Delete a namespace, and let the cluster's controller end it."""
    run.delete("namespaces", name)
    while run.control():
        pass
    assert run.get("namespaces", name) is None


@pytest.mark.parametrize("first", [True, False])
def test_a_namespace_that_goes_among_the_initial_events_is_not_served(
    registry: Registry, diary: list[str], first: bool
) -> None:
    settings = STREAMING.replace(namespaces=("team-*",))
    given = [space("team-a"), space("team-b"), inside("team-b", "b")]
    run = Streamed(registry, given, settings=settings, plural="namespaces")
    if not first:
        assert run.settle()
        assert (KIND, "team-a") in followed(run)
        run.loses("refused", 410)
    seen = list[Any]()

    def meanwhile() -> None:
        gone(run, "team-a")
        seen.append(run.machine.state.survey.namespaces)

    run.fates.append(meanwhile)
    run.take_all()
    run.wait(20)
    names = [
        each.body.name
        for _, each, _ in run.trace.steps
        if isinstance(each, WatchEvent) and each.type == "DELETED"
    ]
    assert "team-a" in names
    assert followed(run) == {("namespaces", None), (KIND, "team-b")}
    assert diary == ["created b"]


def test_a_namespace_that_goes_while_nobody_watches_is_served_no_more(
    registry: Registry,
) -> None:
    settings = STREAMING.replace(namespaces=("team-*",))
    given = [space("team-a"), space("team-b")]
    run = Streamed(registry, given, settings=settings, plural="namespaces")
    assert run.settle()
    run.loses("refused", 410)
    gone(run, "team-a")
    run.wait(20)
    assert run.asked == ["begin", "begin"]
    assert followed(run) == {("namespaces", None), (KIND, "team-b")}


def test_peers_are_seen_and_heeded_and_all_is_listed_again_after(
    registry: Registry, diary: list[str]
) -> None:
    settings = STREAMING.replace(peering=Member("me"))
    given = [peering_definition(), PEERING_OBJECT, *things("abc")]
    run = Streamed(registry, given, settings=settings)
    run.wait(30)
    assert sorted(diary) == ["created a", "created b", "created c"]
    plurals = {
        each.resource.plural
        for _, _, commands in run.trace.steps
        for each in commands
        if isinstance(each, Watch) and not each.version
    }
    assert plurals == {KIND, "clusterkopfpeerings"}
    assert not pages_in(run)
    diary.clear()
    record = record_of(100, 600, run.clock.now().wall)
    run.edit("clusterkopfpeerings", "default", status={"boss": record})
    run.wait(5)
    assert phase(run) is Phase.FROZEN
    run.delete(KIND, "b")
    run.edit(KIND, "c", spec={"size": 7})
    run.wait(5)
    assert diary == []
    run.edit("clusterkopfpeerings", "default", status={"boss": None})
    run.wait(5)
    assert phase(run) is Phase.SERVING
    assert run.asked == ["begin", "begin"]
    assert sorted(diary) == ["gone b", "updated c to 7"]


def phase(run: Story) -> Phase:
    return run.machine.state.lifecycle.phase


def pages_in(run: Story) -> list[ListPage]:
    """The pages that were asked for; not those that only ask for a version."""
    commands = (each for _, _, found in run.trace.steps for each in found)
    return [e for e in commands if isinstance(e, ListPage) and e.limit > 1]


def test_who_freezes_among_the_initial_events_begins_anew(
    registry: Registry, diary: list[str]
) -> None:
    settings = STREAMING.replace(peering=Member("me"))
    given = [peering_definition(), PEERING_OBJECT, *things("abc")]
    run = Streamed(registry, given, settings=settings)
    run.fates.append(1)
    run.wait(5)
    assert diary == ["created a"]
    record = record_of(100, 600, run.clock.now().wall)
    run.edit("clusterkopfpeerings", "default", status={"boss": record})
    run.wait(5)
    run.let_rest_through()  # too late
    run.wait(5)
    assert diary == ["created a"]
    run.edit("clusterkopfpeerings", "default", status={"boss": None})
    run.wait(5)
    assert run.asked == ["begin", "begin"]
    assert sorted(diary) == ["created a", "created b", "created c"]


def test_a_replica_that_takes_the_lead_begins_anew(
    registry: Registry, diary: list[str]
) -> None:
    settings = STREAMING.replace(election=Candidate("me", "default", "operator"))
    run = Streamed(registry, things("ab"), settings=settings)
    run.wait(30)
    assert phase(run) is Phase.SERVING
    assert not pages_in(run)
    assert sorted(diary) == ["created a", "created b"]


LATE = {
    **DEFINITION,
    "metadata": {"name": "gadgets.late.dev"},
    "spec": {
        **DEFINITION["spec"],
        "group": "late.dev",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
    },
}


def gadget(name: str) -> dict[str, Any]:
    made = example(name, size=1)
    return {**made, "apiVersion": "late.dev/v1", "kind": "Gadget"}


def test_a_kind_that_comes_goes_and_comes_again(diary: list[str]) -> None:
    registry = Registry()

    @fnop.on.event("*.late.dev", registry=registry)
    def see(type: str | None, name: str, **_: Any) -> None:
        diary.append(f"{type or 'LISTED'} {name}")

    run = Streamed(registry, plural="gadgets")
    assert run.settle()
    asked = [e for _, _, found in run.trace.steps for e in found]
    (definitions,) = [e for e in asked if isinstance(e, Watch)]
    assert (definitions.resource.plural, definitions.version) == (
        *("customresourcedefinitions", ""),
    )
    run.apply(LATE, gadget("a"))
    assert run.settle()
    assert run.asked[:1] == ["begin"]
    assert diary[0] in ("ADDED a", "LISTED a")
    run.delete("customresourcedefinitions", "gadgets.late.dev")
    assert run.settle()
    assert diary[-1] == "DELETED a"
    run.apply(LATE, gadget("b"))
    assert run.settle()
    assert diary[-1] in ("ADDED b", "LISTED b")
    assert not pages_in(run)
    assert run.clock.elapsed < 60


def test_a_definition_that_changes_ends_the_watch_and_no_more(
    registry: Registry, diary: list[str]
) -> None:
    run = Streamed(registry, things("ab"))
    assert run.settle()
    version = {**DEFINITION["spec"]["versions"][0]}
    schema = {**version["schema"]["openAPIV3Schema"], "description": "other"}
    version["schema"] = {"openAPIV3Schema": schema}
    spec = {**DEFINITION["spec"], "versions": [version]}
    run.edit("customresourcedefinitions", DEFINITION["metadata"]["name"], spec=spec)
    run.edit(KIND, "a", spec={"size": 2})
    run.wait(30)
    assert run.asked[:2] == ["begin", "watch"]
    assert not pages_in(run)
    assert diary[2:] == ["updated a to 2"]


def test_a_kind_moves_to_another_version_without_pages(diary: list[str]) -> None:
    """Even if the server had none: it does not get a second request."""
    registry = Registry()

    @fnop.on.event(KIND, registry=registry)
    def see(type: str | None, name: str, **_: Any) -> None:
        diary.append(f"{type or 'LISTED'} {name}")

    spec = DEFINITION["spec"]
    (version,) = spec["versions"]
    former = {**version, "name": "v1beta1", "storage": False}
    both = {**DEFINITION, "spec": {**spec, "versions": [version, former]}}
    only_v1beta1 = [{**version, "served": False}, former]
    for lacks in (None, REFUSALS["422"]):
        diary.clear()
        run = Streamed(registry, things("a"), crd=both)
        run.lacks = lacks
        run.wait(30)
        change = {"versions": only_v1beta1}
        run.edit(
            "customresourcedefinitions", DEFINITION["metadata"]["name"], spec=change
        )
        run.wait(60)
        told = [each for each in run.said_at("info") if "no longer in v1" in each]
        assert len(told) == 1
        assert run.asked.count("begin") == (2 if lacks is None else 1)
        assert diary == ["LISTED a", "LISTED a"]


def test_metadata_alone_is_streamed(diary: list[str]) -> None:
    registry = Registry()

    @fnop.on.event("configmaps", registry=registry)
    def see(name: str, type: str | None, labels: Any, **_: Any) -> None:
        if name in ("a", "b"):
            diary.append(f"{type or 'LISTED'} {name} {labels['n']}")

    def config(name: str) -> dict[str, Any]:
        meta = {"name": name, "labels": {"n": "1"}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}

    run = Streamed(registry, [config("a")], plural="configmaps")
    assert run.settle()
    run.apply(config("b"))
    assert run.settle()
    assert diary == ["LISTED a 1", "ADDED b 1"]
    watches = [
        each
        for _, _, found in run.trace.steps
        for each in found
        if isinstance(each, Watch) and each.resource.plural == "configmaps"
    ]
    assert [(each.version, each.metadata_only) for each in watches] == [("", True)]
    (kind,) = {
        each.body.data["kind"]
        for _, each, _ in run.trace.steps
        if isinstance(each, ListItem | WatchEvent)
    }
    assert kind == "ConfigMap"


def test_an_index_is_full_before_any_handler_runs(diary: list[str]) -> None:
    registry = Registry()

    @fnop.index("configmaps", labels={"n": fnop.PRESENT}, registry=registry)
    def by_n(name: str, labels: Any, **_: Any) -> Any:
        return {labels["n"]: name}

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, by_n: Any = fnop.INDEX, **_: Any) -> None:
        diary.append(f"{name} sees {len(by_n)}")

    def config(name: str) -> dict[str, Any]:
        meta = {"name": name, "labels": {"n": name}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    given = [*map(config, "abc"), *things("x")]
    run = Streamed(registry, given, plural="configmaps")
    run.fates.append(3)  # all objects: only their end is missing
    run.wait(30)
    assert diary == []
    run.feed(Bookmark(run.streams[run.resource], str(run.cluster.version)))
    run.wait(30)
    assert diary == []
    run.let_rest_through()
    run.wait(30)
    assert diary == ["x sees 3"]


def test_objects_that_were_handled_before_are_resumed(diary: list[str]) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        diary.append(f"created {name}")

    @fnop.on.resume(KIND, registry=registry)
    def resume(name: str, **_: Any) -> None:
        diary.append(f"resumed {name}")

    run = Streamed(registry, things("ab"))
    assert run.settle()
    before = {*diary}
    diary.clear()
    run.crash()
    run.fates.append(lambda: run.edit(KIND, "a", metadata={"labels": {"x": "y"}}))
    assert run.settle()
    assert sorted(diary) == ["resumed a", "resumed b"], before
    diary.clear()
    run.apply(*things("c"))
    run.loses("refused", 410)
    run.wait(30)
    assert diary == ["created c"], "who comes later is not resumed"


def test_a_startup_handler_sets_it(registry: Registry, diary: list[str]) -> None:
    @fnop.on.startup(registry=registry)
    def configure(settings: Settings, **_: Any) -> Settings:
        return settings.replace(initial_streaming=True)

    sim = Simulation(registry, crds=DEFINITION, objects=things("ab")).settle()
    assert sorted(diary) == ["created a", "created b"]
    sim.delete(f"{KIND}/a").settle()
    assert diary[2:] == ["gone a"]
    (stream,) = sim._run.state.streams.followed.values()
    assert (stream.streamed, stream.phase) == (True, StreamPhase.WATCHING)
    sim.outage(60).apply(things("c")).settle()
    assert diary[3:] == ["created c"]
