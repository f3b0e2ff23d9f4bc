"""Outages, garbage and errors: nothing is lost, and no other object suffers."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.objects.attempt import attempts
from fnop.core.seam.commands import Command, Exit, Fetch, ListPage, Perform
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    ListItem,
    StopRequested,
    StreamEnded,
)
from fnop.effects import Create, Delete, Get, Outcome, Patch
from fnop.effects.outcomes import (
    Applied,
    Conflict,
    Missing,
    Refused,
    Unknown,
    Unreachable,
)
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import listed_page, outcome_of, page_inputs
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, WatchLine
from tests.live import operating
from tests.simulations import example
from tests.stories import Story, definition, outside

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def refuse_status(story: Story, command: Perform) -> Outcome | None:
    effect = command.effect
    if isinstance(effect, Patch) and effect.subresource == "status":
        return Refused(422, "status: Invalid value", "Invalid")
    return None


THREE_YEARS = 99_999_999.0


@pytest.mark.parametrize("written", ["own", "other"])
def test_an_advice_to_come_again_in_years_is_heeded_for_five_minutes(
    registry: Registry, written: str
) -> None:
    """Retry-After (RFC 9110) may say anything; a proxy's mistake parks no object."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"},
    }

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        return fnop.create(manifest) if written == "other" else {"done": True}

    story = Story(registry, [example()])
    told: list[float] = []

    def busy_once(story: Story, command: Perform) -> Outcome | None:
        is_other = isinstance(command.effect, Create)
        if told or is_other is not (written == "other"):
            return None
        if not isinstance(command.effect, (Create, Patch)):
            return None
        told.append(story.clock.elapsed)
        return Unreachable("too many requests", THREE_YEARS)

    story.fate = busy_once
    story.wait(250)
    assert told
    (line,) = story.said_at("warning")
    assert "too many requests" in line
    assert "again" in line
    assert story.sent_at[-1] < 250
    story.wait(60)
    if written == "other":
        assert story.get("configmaps", "a") is not None
    assert any("succeeded" in line for line in story.lines)


def test_a_state_that_is_refused_holds_up_neither_updates_nor_deletion(
    registry: Registry,
) -> None:
    seen: list[str] = []
    for role in ("create", "update", "delete"):
        handler = getattr(fnop.on, role)(KIND, registry=registry, id=role)
        handler(lambda role=role: seen.append(role))
    story = Story(registry, [example()])
    story.fate = refuse_status
    story.settle(seconds=100)
    story.edit(KIND, spec={"a": 1})
    story.settle(seconds=100)
    story.delete(KIND)
    story.settle(seconds=100)
    assert seen == ["create", "update", "delete"]
    assert story.get(KIND) is None


def test_32_waiting_calls_stop_nobody_else(registry: Registry) -> None:
    handled: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(spec: dict[str, Any], name: str, **_: Any) -> None:
        if spec.get("slow"):
            await fnop.call(outside)
        handled.append(name)

    story = Story(registry, [example(f"s{i}", slow=True) for i in range(32)])
    story.late_calls = True
    story.settle(seconds=5)
    story.apply(example("quick"))
    story.settle(seconds=5)
    assert handled == ["quick"]


def test_a_long_error_is_cut_before_it_is_stored(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, retries=3)
    def create(**_: Any) -> None:
        raise fnop.TemporaryError("x" * 300_000, delay=100)

    story = Story(registry, [example()])
    story.settle(seconds=50)
    assert len(story.sent) == 1
    assert story.said_at("error") == []


def test_what_nobody_foresaw_hurts_its_object_for_a_while(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    @fnop.on.create(KIND, registry=registry, id="create")
    def create(**_: Any) -> dict[str, int]:
        return {"x": 1}

    fine, failures = attempts._run_plan, [KeyError("unforeseen")]

    def fails_once(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return fine(*arguments)

    monkeypatch.setattr(attempts, "_run_plan", fails_once)
    story = Story(registry, [example()])
    story.settle(seconds=3600)
    assert any("it starts anew" in line for line in story.said_at("error"))
    assert story.status()["create"] == {"x": 1}


def test_a_late_spy_does_not_touch_a_namesake(registry: Registry) -> None:
    @fnop.on.event(KIND, registry=registry)
    async def spy(type: str | None, spec: dict[str, Any], **_: Any) -> fnop.Effect:
        await fnop.get("configmaps", name="x")
        return fnop.patch(status={f"{type}{spec['size']}": 1})

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.late_events = True
    story.edit(KIND, spec={"size": 2})
    story.delete(KIND)
    story.apply(example(size=3))
    story.let_events_through()
    story.settle(seconds=5)
    assert all(key.endswith("3") for key in story.status())


def test_only_the_guilty_author_of_a_refused_write_is_called_again(
    registry: Registry,
) -> None:
    seen: list[str] = []

    @fnop.on.create(KIND, registry=registry, id="good")
    def good(**_: Any) -> dict[str, int]:
        seen.append("good")
        return {"x": 1}

    @fnop.on.create(KIND, registry=registry, retries=2, backoff=1)
    def bad(**_: Any) -> fnop.Effect:
        seen.append("bad")
        return fnop.patch(labels={"a": "not valid!"})

    story = Story(registry, [example()])
    assert story.settle()
    assert seen == ["good", "bad", "bad"]
    assert story.status()["good"] == {"x": 1}


@pytest.mark.parametrize(
    "status",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {
            "type": "object",
            "maxProperties": 1,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    ],
    ids=["a map of integers", "one property"],
)
def test_r25_a_status_that_refuses_the_state_gets_it_as_an_annotation(
    registry: Registry, status: dict[str, Any]
) -> None:
    seen: list[int] = []

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        seen.append(1)
        return fnop.patch(status={"n": 1})

    story = Story(registry, [example()], crd=definition(status=status))
    assert story.settle()
    assert (seen, story.status()) == ([1], {"n": 1})


def test_a_raising_filter_leaves_out_its_own_handler_alone(registry: Registry) -> None:
    @fnop.on.update(KIND, registry=registry, when=lambda spec, **_: spec["size"] > 1)
    def update(**_: Any) -> None: ...

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None: ...

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": None})
    story.settle(seconds=5)
    story.delete(KIND)
    story.settle(seconds=5)
    assert story.get(KIND) is None
    assert any("a filter of" in line for line in story.said_at("error"))


def test_a_raising_filter_of_a_deletion_handler_keeps_the_object(
    registry: Registry,
) -> None:
    """It is unknown whether the object needed a cleanup."""

    @fnop.on.delete(KIND, registry=registry, when=lambda spec, **_: spec["size"] > 1)
    def delete(**_: Any) -> None: ...

    story = Story(registry, [example(size=2)])
    story.settle(seconds=5)
    story.edit(KIND, spec={"size": None})
    story.delete(KIND)
    story.settle(seconds=5)
    assert story.get(KIND) is not None
    (line, *_) = story.said_at("error")
    assert "delete failed, so the object is" in line
    assert "neither handled nor released" in line
    story.edit(KIND, spec={"size": 1})
    story.settle(seconds=5)
    assert story.get(KIND) is None


def test_the_errors_of_two_filters_of_one_function_are_both_logged(
    registry: Registry,
) -> None:
    """Stacked decorators give two handlers one id."""

    @fnop.on.create(KIND, registry=registry, when=lambda spec, **_: spec["missing"])
    @fnop.on.update(KIND, registry=registry, when=lambda spec, **_: spec["size"] > "1")
    def change(**_: Any) -> None: ...

    story = Story(registry, [example(size=1)])
    story.settle(seconds=5)
    lines = [line for line in story.said_at("error") if "a filter of" in line]
    assert sorted(line.rpartition(": ")[0].rpartition(" ")[2] for line in lines) == [
        "KeyError",
        "TypeError",
    ]


@pytest.mark.parametrize("name", ["?x=", "../secrets/x", "web/scale", "..", "a%2fb"])
def test_a_name_from_a_spec_cannot_lead_a_request_astray(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name"):
        fnop.delete("configmaps", name=name)


def test_a_kind_that_is_not_served_is_told_once(registry: Registry) -> None:

    @fnop.on.create("widgets.late.dev", registry=registry)
    def create(**_: Any) -> None: ...

    @fnop.on.update("widgets.late.dev", registry=registry)
    def update(**_: Any) -> None: ...

    story = Story(registry, [])
    story.settle(seconds=3)
    waits = [line for line in story.lines if "serves no 'widgets.late.dev' yet" in line]
    assert len(waits) == 1, "once for all handlers of the kind"


# ------------------------------------------------------------------- discovery


class Unwell(Story):
    """A story in which some paths are answered differently, for a while."""

    def __init__(self, *arguments: Any) -> None:
        self.answers: dict[str, ApiResponse] = {}
        super().__init__(*arguments)

    def request(self, request: ApiRequest) -> ApiResponse:
        return self.answers.get(request.path) or super().request(request)


AGGREGATED = "APIGroupDiscoveryList"
LISTED = {"kind": "APIGroupList", "groups": [{"name": "fnop.dev", "versions": [
    {"groupVersion": "fnop.dev/v1", "version": "v1"}]}]}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [None, [], {"resources": [{}]}, {"resources": "?"}, {"resources": [None]}],
    ids=["null", "a list", "a resource of nothing", "text", "a resource of null"],
)
def test_a_document_of_another_shape_ends_nothing(
    registry: Registry, document: Any
) -> None:
    answers = {"/apis": ApiResponse(200, LISTED)}
    answers["/apis/fnop.dev/v1"] = ApiResponse(200, document)
    _unwell_for_a_minute(registry, answers)


@pytest.mark.parametrize(
    "items",
    [
        "?",
        [None],
        [{}],
        [{"metadata": {"name": ".."}, "versions": [{"version": "v1"}]}],
        [{"metadata": {"name": "fnop.dev"}, "versions": [{}]}],
        [{"metadata": {"name": "fnop.dev"}, "versions": [
            {"version": "v1", "resources": [{"responseKind": {"kind": "X"}}]}]}],
    ],
    ids=["text", "null", "no name", "a name of a path", "no version", "no resource"],
)  # fmt: skip
def test_an_aggregated_document_of_another_shape_ends_nothing(
    registry: Registry, items: Any
) -> None:
    document = {"kind": AGGREGATED, "items": items}
    _unwell_for_a_minute(registry, {"/apis": ApiResponse(200, document)})


def _unwell_for_a_minute(registry: Registry, answers: dict[str, ApiResponse]) -> None:
    handled: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        handled.append(name)

    story = Unwell(registry, [example()])
    story.answers |= answers
    story.wait(60)
    assert handled == []
    story.answers.clear()
    story.wait(60)
    assert handled == ["example-1"]


# --------------------------------------------------------------- an unready server


class Unready(Story):
    """An API server that is not ready: it does not return its kinds."""

    def __init__(self, *arguments: Any, outcome: Outcome, until: float) -> None:
        self.outcome, self.until = outcome, until
        self.asked: list[float] = []
        super().__init__(*arguments)

    def perform(self, command: Command) -> None:
        if isinstance(command, Fetch) and self.clock.elapsed < self.until:
            self.asked.append(self.clock.elapsed)
            self.inbox.add(Answered(command.id, self.outcome))
        else:
            super().perform(command)


@pytest.mark.parametrize(
    "outcome",
    [
        Unreachable("Connection refused"),
        Unknown("HTTP status 500"),
        Unreachable("the server is currently unable to handle the request"),
        Unreachable("too many requests", 20.0),
    ],
    ids=["refused", "500", "503", "429"],
)
def test_an_operator_may_be_there_before_its_api_server(
    registry: Registry, outcome: Outcome
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"seen": True})

    story = Unready(registry, [example()], outcome=outcome, until=600.0)
    story.wait(600.0)
    assert story.exit is None
    problem = str(getattr(outcome, "message", ""))
    rounds = sorted(set(story.asked))
    pauses = [later - earlier for earlier, later in pairwise(rounds)]
    advice = getattr(outcome, "retry_after_seconds", None) or 0.0
    assert pauses[0] == pytest.approx(max(0.5, advice), rel=0.21)
    assert pauses[-1] == pytest.approx(max(5.0, advice), rel=0.21)
    told = [line for line in story.said_at("warning") if "cannot be reached" in line]
    assert len(told) == len(rounds), "one line for each"
    assert all(problem in line and "again in" in line for line in told)
    story.wait(max(6.0, advice) + 1.0)
    assert story.status()["seen"] is True


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_refused_at_the_start_ends(registry: Registry, status: int) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    refusal = Refused(status, "no")
    story = Unready(registry, [example()], outcome=refusal, until=600.0)
    story.wait(1.0)
    assert story.exit is not None
    assert story.exit.status == 1
    assert "refuses this operator" in story.exit.reason
    assert "credentials" in story.exit.reason


def test_who_waits_for_its_api_server_can_be_stopped(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    away = Unreachable("Connection refused")
    story = Unready(registry, [example()], outcome=away, until=600.0)
    story.wait(30.0)
    story.feed(StopRequested("SIGTERM"))
    story.wait(1.0)
    assert story.exit is not None
    assert story.exit.status == 0


def test_a_document_that_does_not_come_is_waited_for_ever_longer(
    registry: Registry,
) -> None:
    """A request that was swallowed costs seconds; a slow server is heard in the end."""

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    lost = Unknown("no answer")
    story = Unready(registry, [example()], outcome=lost, until=60.0)
    story.wait(70.0)
    assert patience(story)[:5] == [10.0, 20.0, 40.0, 60.0, 60.0]
    state = story.machine.state
    story.machine.state = replace(state, survey=replace(state.survey, due=0.0))
    story.feed(AlarmRang())
    story.wait(1.0)
    assert patience(story)[-1] == 10.0, "it has answered since"


def patience(story: Story) -> list[float | None]:
    return [
        command.seconds
        for _, _, commands in story.trace.steps
        for command in commands
        if isinstance(command, Fetch) and command.path == "/apis"
    ]


# ------------------------------------------------------------------- outages

LONG = 300.0


@pytest.mark.parametrize(
    "outcome", [Unreachable("away"), Unknown("reset"), Unreachable("busy", 7.0)]
)
def test_after_a_long_outage_all_is_handled_within_seconds(
    registry: Registry, outcome: Outcome
) -> None:
    """No attempt fails because the API server is away, and no loop polls it."""
    begun: list[str] = []

    @fnop.on.create(KIND, registry=registry, id="create", retries=1)
    async def create(name: str, **_: Any) -> dict[str, int]:
        begun.append(name)
        await fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap"})
        return {"x": 1}

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None: ...

    story = Story(registry)
    story.settle()
    story.fate = lambda story, command: outcome
    names = [f"s{number}" for number in range(4)]
    story.apply(*map(example, names[:2]))
    story.wait(LONG)
    assert begun == [], "the finalizer comes first"
    # Then they get as far as to their children.
    story.fate = lambda story, command: (
        outcome if "configmaps" in repr(command.resource) else None
    )
    story.apply(*map(example, names[2:]))
    story.wait(LONG)
    assert sorted(begun) == names
    assert len(story.sent_at) < 2 * LONG / 5 * len(names)
    assert not any(story.status(name) for name in names)
    story.fate = lambda story, command: None
    story.wait(15)
    assert [story.status(name).get("create") for name in names] == [{"x": 1}] * 4
    assert sorted(begun) == names
    assert len(story.objects("configmaps")) == len(names)


@pytest.mark.parametrize("kind", ["Create", "Adopt", "Patch", "Apply"])
def test_what_is_never_known_is_not_asked_in_a_loop(
    registry: Registry, kind: str
) -> None:
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    effects = {
        "Create": fnop.create(child),
        "Adopt": fnop.adopt(child),
        "Patch": fnop.patch({**child, "metadata": {"name": "d"}}, data={"a": "b"}),
        "Apply": fnop.apply(child),
    }

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        await effects[kind]

    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}
    story = Story(registry, [other, example()])
    story.fate = lambda story, command: (
        None if command.effect.kind == "Get" else Unknown("reset")
    )
    story.wait(60)
    assert 10 < len(story.sent_at) < 60


def test_what_vanished_between_two_first_listings_is_noticed(
    registry: Registry,
) -> None:
    """The first listing may break off: what its pages had may be gone by the next."""

    seen: list[tuple[str | None, str]] = []

    @fnop.on.event(KIND, registry=registry)
    def spy(type: str | None, name: str, **_: Any) -> None:
        seen.append((type, name))

    story = Story(registry, [example("a"), example("b")])
    story.late_lists = True
    story.wait(1)
    stream = story.streams["fnopexamples.v1.fnop.dev"]
    story.feed(
        *[each.input for each in story.lists if isinstance(each.input, ListItem)]
    )
    story.feed(StreamEnded(stream, "unreachable"))
    story.lists.clear()
    story.wait(0.1)
    assert {key.name for key in story.machine.state.objects.records} == {"a", "b"}
    story.delete(KIND, "a")
    story.wait(5)
    story.let_lists_through()
    story.wait(5)
    assert {key.name for key in story.machine.state.objects.records} == {"b"}
    assert seen == [(None, "a"), (None, "b"), (None, "b"), ("DELETED", "a")]


# ------------------------------------------------------------------ garbage

NOTHINGS = [
    WatchLine("ADDED", cast(Any, None)),
    WatchLine("ADDED", cast(Any, "text")),
    WatchLine("MODIFIED", {}),
    WatchLine("DELETED", {"metadata": {"name": "example-1"}}),
    WatchLine("DELETED", {"metadata": {"resourceVersion": "1"}}),
    WatchLine("DELETED", {"metadata": {"name": 1, "resourceVersion": 1}}),
    WatchLine("MODIFIED", {"metadata": None}),
    WatchLine("BOOKMARK", cast(Any, None)),
    WatchLine("BOOKMARK", {"metadata": {}}),
    WatchLine("BOOKMARK", {"metadata": {"resourceVersion": ""}}),
    WatchLine("ERROR", cast(Any, None)),
    WatchLine("ERROR", cast(Any, "text")),
    WatchLine("ERROR", {"code": "many"}),
    WatchLine("UNHEARD-OF", example()),
]


@pytest.mark.parametrize("line", NOTHINGS, ids=str)
async def test_a_line_that_is_no_change_changes_nothing(
    registry: Registry, line: WatchLine
) -> None:
    seen: list[tuple[str | None, str]] = []

    @fnop.on.event(KIND, registry=registry)
    def spy(type: str | None, name: str, **_: Any) -> None:
        seen.append((type, name))

    async with operating(registry, [example("a")]) as run:
        await run.until(lambda: seen and run.api.watches)
        ((_, lines),) = run.api.watches
        lines.put_nowait(line)
        await run.until(lambda: not run.api.watches)
        run.create(example("b"))
        await run.until(lambda: "b" in {name for _, name in seen})
        known = {key.name for key in run.runner.state.objects.records}
        versions = [each.version for each in run.runner.state.streams.followed.values()]
    assert known == {"a", "b"}
    assert "DELETED" not in {type for type, _ in seen}
    assert all(version and version.isdecimal() for version in versions)


@pytest.mark.parametrize(
    "page",
    [
        None,
        [],
        {},
        {"metadata": {"resourceVersion": "9"}},
        {"metadata": {}, "items": []},
        {"metadata": {"resourceVersion": "9"}, "items": [None]},
        {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {}}]},
        {"kind": "Status", "status": "Success", "metadata": {}},
    ],
    ids=str,
)
def test_what_is_no_list_is_not_an_empty_one(page: Any) -> None:
    assert listed_page(page).failure().startswith("no ")


def test_a_list_without_a_version_is_not_followed() -> None:
    """It would not show which objects are gone."""
    resource = Resource("", "v1", "componentstatuses", "ComponentStatus")
    body = {"kind": "ComponentStatusList", "metadata": {}, "items": []}
    command = ListPage(1, resource, None, 500)
    (end,) = page_inputs(command, ApiResponse(200, body))
    assert isinstance(end, StreamEnded)
    assert end.reason == "undecodable"


@pytest.mark.parametrize("body", [None, [], "text", {}, {"kind": "Status"}], ids=str)
@pytest.mark.parametrize(
    "effect",
    [
        fnop.patch({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}, a=1),
        fnop.apply({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}),
        fnop.get("pods", name="a"),
        fnop.list("pods"),
    ],
    ids=lambda effect: effect.kind,
)
def test_a_success_of_another_form_is_none(effect: Any, body: Any) -> None:
    assert isinstance(outcome_of(effect, ApiResponse(200, body)), Unknown)


@pytest.mark.parametrize(
    "effect",
    [
        fnop.create(example()),
        fnop.delete("pods", name="a"),
        fnop.patch({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}, a=1),
    ],
    ids=lambda effect: effect.kind,
)
def test_a_failure_with_the_status_of_a_success_is_none(effect: Any) -> None:
    body = {"kind": "Status", "status": "Failure", "metadata": {}, "message": "no"}
    assert isinstance(outcome_of(effect, ApiResponse(200, body)), Unknown)
    done = {"kind": "Status", "status": "Success", "metadata": {}}
    if isinstance(effect, Delete):
        assert isinstance(outcome_of(effect, ApiResponse(200, done)), Applied)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, Refused),
        (401, Unreachable),
        (403, Refused),
        (404, Missing),
        (408, Unreachable),
        (409, Conflict),
        (410, Missing),
        (422, Refused),
        (429, Unreachable),
        (500, Unknown),
        (502, Unknown),
        (503, Unreachable),
        (504, Unknown),
    ],
)
def test_what_a_status_means_for_an_effect(status: int, expected: type) -> None:
    outcome = outcome_of(fnop.get("pods", name="a"), ApiResponse(status, None, 7.0))
    assert type(outcome) is expected
    if isinstance(outcome, Unreachable):
        assert outcome.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger "
        "than max (2500350 vs. 2097152)",
    ],
)
def test_what_is_too_large_for_etcd_is_refused(message: str) -> None:
    """The server says 500 then, which elsewhere may be all right a moment later."""
    status = {"kind": "Status", "message": message}
    for effect in (fnop.patch(status={"x": "y"}), fnop.create(example())):
        found = outcome_of(effect, ApiResponse(500, status))
        assert isinstance(found, Refused)
        assert (found.status, found.reason) == (413, "RequestEntityTooLarge")
        assert found.message.startswith(f"{message}; the largest field is ")


@pytest.mark.parametrize("others", [0, 1])
def test_only_two_handlers_collide(registry: Registry, others: int) -> None:
    """A timer may have several turns before what it has set can be written."""

    @fnop.timer(KIND, registry=registry, interval=2)
    def ticks(now: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"tick": now.second})

    for number in range(others):

        @fnop.timer(KIND, registry=registry, interval=2, id=f"other{number}")
        def other(**_: Any) -> fnop.Effect:
            return fnop.patch(status={"tick": "none"})

    def busy(story: Story, command: Perform) -> Outcome | None:
        if isinstance(command.effect, Patch) and story.clock.elapsed < 30:
            return Unreachable("too many requests", 25.0)
        return None

    story = Story(registry, [example()])
    story.fate = busy
    story.wait(60)
    assert "tick" in story.status()
    told = [line for line in story.said_at("warning") if "several handlers" in line]
    assert bool(told) is bool(others)


def test_a_write_that_ends_in_errors_of_the_server_is_told(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(patch: Any, **_: Any) -> None:
        patch.status["phase"] = "Ready"

    def fails(story: Story, command: Perform) -> Outcome | None:
        effect = command.effect
        is_write = isinstance(effect, Patch) and effect.subresource == "status"
        return Unknown("a webhook is away") if is_write else None

    story = Story(registry)
    story.fate = fails
    story.apply(example())
    story.settle(seconds=120)
    told = [line for line in story.said_at("warning") if "a webhook is away" in line]
    assert 1 <= len(told) < 5


def test_a_stop_that_is_passed_on_twice_is_one(registry: Registry) -> None:
    """However far it has come by then; a person who asks again is in earnest."""

    @fnop.on.cleanup(registry=registry)
    async def slow(**_: Any) -> None:
        await fnop.sleep(30)

    def stopping(*pauses: float) -> Story:
        story = Story(registry, [example()])
        story.settle(seconds=10)
        story.stop("SIGTERM")
        for pause in pauses:
            story.settle(seconds=pause)
            story.stop("SIGTERM")
        story.settle(seconds=100)
        return story

    assert stopping(0.5).exit == Exit(0, "stopped")
    assert stopping(0.5, 2).exit == Exit(1, "stopped at once: SIGTERM came again")


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


class _Foreign(BaseException):
    """Like those in gevent and in pytest."""


ODD = [_Mute(), _Foreign("x"), SystemExit(3), GeneratorExit(), OSError("caf\udce9")]


def odd_named(problem: BaseException) -> str:
    return type(problem).__name__


Raising = Callable[..., Any]


def declare_raising(registry: Registry, place: str, raises: Raising) -> None:
    def refuses(value: Any, **_: Any) -> Any:
        raises()

    def chooses(resource: fnop.Resource) -> Any:
        raises()

    def handle(**_: Any) -> None:
        raise AssertionError("it is not called")

    on: Any = fnop.on
    match place:
        case "when":
            on.create(KIND, registry=registry, when=raises)(handle)
        case "label":
            on.create(KIND, registry=registry, labels={"a": refuses})(handle)
        case "event":
            on.event(KIND, registry=registry, when=raises)(handle)
        case "index":
            fnop.index(KIND, registry=registry, id="names")(raises)
        case _:
            on.create(chooses, registry=registry)(handle)


@pytest.mark.parametrize("problem", ODD, ids=odd_named)
@pytest.mark.parametrize("place", ["when", "label", "event", "index", "kind"])
def test_whatever_a_function_raises_ends_no_operator(
    registry: Registry, place: str, problem: BaseException
) -> None:
    called: list[str] = []

    def raises(**_: Any) -> Any:
        raise problem

    declare_raising(registry, place, raises)

    @fnop.on.create(KIND, registry=registry)
    def other(**_: Any) -> None:
        called.append("other")

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert called == ["other"]
    lines = story.said_at("error")
    assert lines
    assert all(type(problem).__name__ in line for line in lines)


@pytest.mark.parametrize("problem", ODD, ids=odd_named)
def test_whatever_a_handler_raises_is_its_failure(
    registry: Registry, problem: BaseException
) -> None:
    calls: list[str] = []

    @fnop.on.create(KIND, registry=registry, retries=2, backoff=1)
    def create(**_: Any) -> None:
        calls.append("create")
        raise problem

    @fnop.on.create(KIND, registry=registry)
    def other(**_: Any) -> None:
        calls.append("other")

    story = Story(registry, [example()])
    story.settle(seconds=5)
    assert calls == ["create", "other", "create"]


# ------------------------------------------------------------------ namespaces


@pytest.mark.parametrize("kept", [True, False])
def test_a_namespace_that_is_not_there_is_told_and_served_later(
    registry: Registry, kept: bool
) -> None:
    created: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> None:
        created.append(name)

    settings = fnop.Settings(namespaces=("default", "later"))
    story = Story(registry, [example()], settings=settings)
    refusal = Refused(403, "namespaces is forbidden", "Forbidden")
    if not kept:
        story.fate = lambda story, command: (
            refusal if isinstance(command.effect, Get) else None
        )
    story.settle()
    told = [each for each in story.said_at("warning") if "namespace" in each]
    assert len(told) == kept, "who may not ask says nothing"
    assert all("there is no namespace 'later'" in each for each in told)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}
    late = example("late")
    late["metadata"]["namespace"] = "later"
    story.apply(namespace, late)
    story.settle()
    assert created == ["example-1", "late"]


def test_an_empty_namespace_is_none_that_is_missing(registry: Registry) -> None:
    fnop.on.create(KIND, registry=registry, id="made")(lambda **_: None)
    story = Story(registry, [], settings=fnop.Settings(namespaces=("default",)))
    story.settle()
    assert story.said_at("warning") == []
