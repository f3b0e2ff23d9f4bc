"""Handlers of logs: which lines they get, once each, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.effects.structs import replace
from fnop.interpreters.cluster.storage.logs import Log
from fnop.testing import Off, Simulation
from tests.simulations import ROOT

Lines = list[str]
SELECTED = {"read": "yes"}


def pod(name: str = "p", *containers: str, **more: Any) -> dict[str, Any]:
    names = containers or ("c",)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": SELECTED, **more},
        "spec": {"containers": [{"name": each, "image": "i"} for each in names]},
    }


def reading(
    handler: Callable[..., Any] | None = None, **options: Any
) -> tuple[Registry, Lines]:
    """A handler that keeps the lines that it gets, each with its container."""
    registry, found = Registry(), Lines()

    def read(line: str, container: str, **_: Any) -> None:
        found.append(f"{container}: {line}")

    on = fnop.on.log("pods", labels=SELECTED, registry=registry, **options)
    on(handler or read)
    return registry, found


def begun(registry: Registry, *pods: dict[str, Any]) -> Simulation:
    """A simulation whose operator has read all that there is."""
    simulation = Simulation(registry, objects=[*pods] or [pod()])
    simulation.settle()
    assert simulation.settled, simulation.unsettled
    return simulation


def instance(number: int, **state: Any) -> dict[str, Any]:
    """The status of a container's instance."""
    before = {"terminated": {"exitCode": 1, "containerID": f"x://{number - 1}"}}
    return {
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": number,
        "containerID": f"x://{number}",
        "state": state or {"running": {}},
        "lastState": before if number else {},
    }


def by_hand(registry: Registry) -> Simulation:
    """A simulation in which only the test runs pods."""
    simulation = Simulation(registry).pace("kubelet", Off())
    found = pod()
    found["spec"]["nodeName"] = "n"
    simulation.apply(found).settle()
    return simulation


def runs(simulation: Simulation, number: int, **state: Any) -> None:
    found = instance(number, **state)
    simulation.edit("pods/p", status={"containerStatuses": [found]})


# --------------------------------------------------------------- which lines there are


def test_lines_of_new_containers_come_in_order() -> None:
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "one\ntwo").settle()
    simulation.log_line("pods/p", "three").settle()
    assert found == ["c: one", "c: two", "c: three"]
    assert simulation.settled


def test_many_lines_at_once_all_come() -> None:
    """No more are asked for than are handled."""
    registry, found = reading()
    simulation = begun(registry)
    lines = [f"line {number}" for number in range(1234)]
    simulation.log_line("pods/p", "\n".join(lines)).settle()
    assert found == [f"c: {each}" for each in lines]


def test_only_lines_with_a_match_come() -> None:
    seen = []

    def read(match: Any, line: str, **_: Any) -> None:
        seen.append((match[1], line))

    registry, _ = reading(read, regex=r"loss=(\d+)")
    simulation = begun(registry)
    simulation.log_line("pods/p", "a\nloss=5 b\nloss=\nloss=6").settle()
    assert seen == [("5", "loss=5 b"), ("6", "loss=6")]


def test_when_is_asked_about_each_line() -> None:
    registry, found = reading(when=lambda line, container, **_: line == container)
    simulation = begun(registry)
    simulation.log_line("pods/p", "a\nc\nd").settle()
    assert found == ["c: c"]


def test_a_when_that_fails_hurts_its_own_lines_alone() -> None:
    registry, found = reading(when=lambda line, **_: bool(1 / int(line)))
    simulation = begun(registry)
    simulation.log_line("pods/p", "1\n0\n2").settle()
    assert found == ["c: 1", "c: 2"]
    assert "a filter of" in "\n".join(simulation.log)


def test_a_handler_that_fails_gets_the_next_line_all_the_same() -> None:
    found = []

    def read(line: str, **_: Any) -> None:
        found.append(line)
        assert int(line)

    registry, _ = reading(read)
    simulation = begun(registry)
    simulation.log_line("pods/p", "0\n1").settle()
    assert found == ["0", "1"]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (None, {"app", "app-2", "side"}),
        ("app", {"app"}),
        ("app*", {"app", "app-2"}),
        (["side", "app"], {"app", "side"}),
        ("none", set()),
    ],
)
def test_containers_are_chosen_by_patterns(container: Any, expected: set[str]) -> None:
    registry, found = reading(container=container)
    simulation = begun(registry, pod("p", "app", "app-2", "side"))
    for name in ("app", "app-2", "side"):
        simulation.log_line("pods/p", "x", container=name)
    simulation.settle()
    assert {each.partition(":")[0] for each in found} == expected


def test_pods_that_are_not_selected_are_not_read() -> None:
    registry, found = reading()
    other = pod("q")
    other["metadata"]["labels"] = {}
    simulation = begun(registry, pod(), other)
    simulation.log_line("pods/q", "x").log_line("pods/p", "y").settle()
    assert found == ["c: y"]
    simulation.edit("pods/p", metadata={"labels": {"read": None}}).settle()
    simulation.log_line("pods/p", "z").settle()
    assert found == ["c: y"]


def test_a_container_that_has_ended_is_not_asked_about_from_now_on() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "one").settle()
    runs(simulation, 0, terminated={"exitCode": 0, "containerID": "x://0"})
    simulation.settle()
    found.clear()
    simulation.restart()
    asked = list[Any]()
    simulation._run.listener = asked.append
    simulation.settle()
    assert not [each for each in asked if type(each).__name__ == "FollowLog"]
    assert found == []
    runs(simulation, 1)
    simulation.settle().log_line("pods/p", "two").settle()
    assert found == ["c: two"]


def test_a_frozen_operator_reads_nothing() -> None:
    registry, found = reading()

    @fnop.on.event("configmaps", registry=registry)
    def freezing(name: str, type: Any, **_: Any) -> Any:
        frozen = name == "x" and type == "ADDED"
        return fnop.freeze("for a test") if frozen else None

    simulation = begun(registry)
    simulation.log_line("pods/p", "one").settle()
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    simulation.apply(manifest).settle()
    simulation.log_line("pods/p", "two").wait(60)
    assert found == ["c: one"]
    assert not simulation._run.state.logs.numbers


def test_two_handlers_get_a_line_each() -> None:
    registry, found = reading(regex="a")
    others: Lines = []

    @fnop.on.log("pods", regex="b", registry=registry)
    def other(line: str, **_: Any) -> None:
        others.append(line)

    simulation = begun(registry)
    simulation.log_line("pods/p", "a\nb\nab\nc").settle()
    assert (found, others) == (["c: a", "c: ab"], ["b", "ab"])


def test_effects_of_a_handler_are_done() -> None:
    def read(line: str, patch: fnop.Patch, **_: Any) -> fnop.Effect:
        patch.meta["annotations"] = {"last": line}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"line": line}}
        return fnop.create({**manifest, "metadata": {"name": "told"}})

    registry, _ = reading(read)
    simulation = begun(registry)
    simulation.log_line("pods/p", "x").settle()
    told, found = simulation.get("configmaps/told"), simulation.get("pods/p")
    assert told is not None
    assert found is not None
    assert told["data"] == {"line": "x"}
    assert found["metadata"]["annotations"] == {"last": "x"}


def test_time_is_that_of_the_line() -> None:
    times: list[datetime] = []

    def read(time: datetime, **_: Any) -> None:
        times.append(time)

    registry, _ = reading(read)
    simulation = begun(registry)
    before = simulation.now
    simulation.log_line("pods/p", "x").wait(60)
    (time,) = times
    assert before <= time < before + timedelta(seconds=1)


# -------------------------------------------------------------------- the beginning


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, ["new"]),
        ("now", ["new"]),
        ("start", ["first", "second", "third", "new"]),
        (90, ["second", "third", "new"]),
        (lambda **_: 30, ["third", "new"]),
        (lambda labels, **_: labels["read"] == "yes" and "start", None),
        (datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC), ["third", "new"]),
        (lambda **_: "2026-01-01T01:01:30+01:00", ["third", "new"]),
    ],
)
def test_a_running_container_is_read_since(
    since: Any, expected: list[str] | None
) -> None:
    """A restart of the operator begins there, too."""
    registry, found = reading(since=since)
    simulation = begun(registry)
    simulation.log_line("pods/p", "first").wait(60)
    simulation.log_line("pods/p", "second").wait(60)
    simulation.log_line("pods/p", "third").wait(1)
    found.clear()
    simulation.restart()
    simulation.settle().log_line("pods/p", "new").settle()
    expected = expected or ["first", "second", "third", "new"]
    assert found == [f"c: {each}" for each in expected]


def test_a_pod_that_is_selected_later_is_read_since_then() -> None:
    registry, found = reading()
    other = pod()
    other["metadata"]["labels"] = {}
    simulation = begun(registry, other)
    simulation.log_line("pods/p", "before").settle()
    simulation.edit("pods/p", metadata={"labels": SELECTED}).settle()
    simulation.log_line("pods/p", "after").settle()
    assert found == ["c: after"]


def test_a_since_that_fails_is_told_and_the_log_is_not_read() -> None:
    registry, found = reading(since=lambda **_: "never")
    simulation = begun(registry)
    simulation.restart()
    simulation.settle().log_line("pods/p", "x").settle()
    assert found == []
    assert "the function in its since= failed" in "\n".join(simulation.log)


# ---------------------------------------------------------------- what may interrupt it


def test_an_outage_loses_and_repeats_no_line() -> None:
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "one\ntwo").settle()
    simulation.outage(20).log_line("pods/p", "three")
    simulation.wait(10).log_line("pods/p", "four").wait(30).settle()
    assert found == ["c: one", "c: two", "c: three", "c: four"]


def test_the_end_of_a_log_is_read_before_that_of_the_next_instance() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "zero").settle().outage(30)
    simulation.log_line("pods/p", "the end")
    runs(simulation, 1)
    simulation.log_line("pods/p", "one").wait(60)
    assert found == ["c: zero", "c: the end", "c: one"]


def test_two_restarts_while_nobody_reads_are_told() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "zero").settle().outage(30)
    runs(simulation, 1)
    simulation.log_line("pods/p", "one")
    runs(simulation, 2)
    simulation.log_line("pods/p", "two").wait(60)
    # kubelet keeps the log of the instance before, but not the one before that.
    assert found == ["c: zero", "c: one", "c: two"]
    assert "the end of a log of container c is lost" in "\n".join(simulation.log)


def test_a_log_that_kubelet_lost_is_given_up_and_told() -> None:
    """It answers with fewer lines than were seen, or with a text of its own."""
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "one\ntwo").settle()
    run = simulation._run
    (uid,) = run.cluster.logs
    lost = run.cluster.logs[uid]["c"]._replace(present=Log(0))
    logs = run.cluster.logs.set(uid, run.cluster.logs[uid].set("c", lost))
    run.cluster = replace(run.cluster, logs=logs)
    runs(simulation, 1)
    simulation.log_line("pods/p", "three").wait(60)
    assert found == ["c: one", "c: two", "c: three"]
    assert "is lost" in "\n".join(simulation.log)


def test_a_container_that_its_status_lacks_for_a_moment_is_read_once() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "one").settle()
    simulation.edit("pods/p", status={"containerStatuses": []}).settle()
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "two").settle()
    assert found == ["c: one", "c: two"]


def test_a_pod_that_is_selected_again_is_read_on() -> None:
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "one").settle()
    simulation.edit("pods/p", metadata={"labels": {"read": None}}).wait(2)
    simulation.edit("pods/p", metadata={"labels": SELECTED}).wait(2)
    for number in range(3):
        simulation.log_line("pods/p", str(number)).wait(40)
    assert found == ["c: one", "c: 0", "c: 1", "c: 2"]


def test_lines_that_wait_do_not_pile_up_by_reopening() -> None:
    registry, _ = reading()

    @fnop.on.log("pods", labels=SELECTED, registry=registry)
    async def slow(**_: Any) -> None:
        await fnop.sleep(10_000)

    @fnop.on.log("pods", annotations={"b": "1"}, registry=registry)
    def other(**_: Any) -> None: ...

    simulation = begun(registry)
    simulation.log_line("pods/p", "\n".join(map(str, range(3000)))).wait(5)
    for number in range(6):
        noted = {"annotations": {"b": str(number % 2)}}
        simulation.edit("pods/p", metadata=noted).wait(5)
    (record,) = [
        each
        for key, each in simulation._run.state.objects.records.items()
        if key.name == "p"
    ]
    assert record.work is not None
    assert len(record.work.pending_events) < 300


@pytest.mark.parametrize(
    "since",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
    ids=range(3),
)
def test_any_time_may_be_a_mark(since: datetime) -> None:
    registry, _ = reading(since=lambda **_: since)
    simulation = begun(registry)
    simulation.restart()
    simulation.settle().log_line("pods/p", "x").settle()
    assert simulation.settled


def test_a_container_that_ends_is_read_to_its_end_and_no_more() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "one").log_line("pods/p", "two")
    runs(simulation, 0, terminated={"exitCode": 0, "containerID": "x://0"})
    simulation.settle()
    assert simulation.settled
    assert found == ["c: one", "c: two"]
    asked = [each for each in simulation.log if "cannot be read" in each]
    assert asked == []


LOG = "the log of default/p/c"


def test_a_connection_of_kubelet_that_breaks_within_a_line_loses_nothing() -> None:
    """The API server ends its answer in order then."""
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "one").settle()
    simulation._run.reads.logs.cut(LOG)
    simulation.log_line("pods/p", "two\nthree\nfour").settle()
    simulation.log_line("pods/p", "five").settle()
    assert found == ["c: one", "c: two", "c: three", "c: four", "c: five"]


@pytest.mark.parametrize("multiline", [False, "^-"])
def test_the_last_look_at_a_log_may_be_cut_off_too(multiline: Any) -> None:
    registry, found = reading(multiline=multiline)
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "- one\n- two\n- three")
    simulation._run.reads.logs.breaks(simulation._run.clock.now())
    simulation.log_line("pods/p", "- four\n- five")
    runs(simulation, 0, terminated={"exitCode": 0, "containerID": "x://0"})
    simulation._run.reads.logs.cut(LOG)
    simulation.settle()
    assert simulation.settled
    assert found == [f"c: - {each}" for each in ("one", "two", "three", "four", "five")]


def test_lines_that_wait_for_more_come_when_the_pod_is_gone() -> None:
    registry, found = reading(multiline="^-")
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "- one\n- two\nof it").wait(0.1)
    simulation.delete("pods/p")
    simulation.settle()
    assert found == ["c: - one", "c: - two\nof it"]


def test_a_container_that_waits_for_its_restart_is_not_read_twice() -> None:
    registry, found = reading()
    simulation = by_hand(registry)
    runs(simulation, 0)
    simulation.settle().log_line("pods/p", "one").settle()
    waiting = {"reason": "CrashLoopBackOff"}
    status = {**instance(1), "state": {"waiting": waiting}}
    simulation.edit("pods/p", status={"containerStatuses": [status]}).settle()
    runs(simulation, 1)
    simulation.settle().log_line("pods/p", "two").settle()
    assert found == ["c: one", "c: two"]


def test_a_pod_that_is_gone_is_forgotten() -> None:
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "last").delete("pods/p").settle()
    assert found == ["c: last"]
    assert simulation.settled
    assert not simulation._run.state.logs.read


def test_a_pod_of_the_same_name_is_another_one() -> None:
    registry, found = reading()
    simulation = begun(registry)
    simulation.log_line("pods/p", "old").settle()
    simulation.delete("pods/p").settle().apply(pod()).settle()
    simulation.log_line("pods/p", "new").settle()
    assert found == ["c: old", "c: new"]


# ----------------------------------------------------------------------- its limits


def test_lines_beyond_the_rate_are_counted() -> None:
    registry, found = reading(rate=2)
    simulation = begun(registry)
    simulation.log_line("pods/p", "\n".join("abcdefg")).settle()
    assert found == ["c: a", "c: b"]
    assert "left out 5 lines of container c" in "\n".join(simulation.log)
    simulation.wait(1).log_line("pods/p", "h").settle()
    assert found == ["c: a", "c: b", "c: h"]


def test_long_lines_are_cut_with_a_warning() -> None:
    registry, found = reading()

    @fnop.on.startup(registry=registry)
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(log_line_bytes=256)

    simulation = begun(registry)
    simulation.log_line("pods/p", "x" * 1000 + "\ny").settle()
    assert found == ["c: " + "x" * 256, "c: y"]
    assert "lines are cut behind 256 bytes" in "\n".join(simulation.log)


def test_more_logs_than_may_be_read_wait_for_a_place() -> None:
    registry, found = reading()

    @fnop.on.startup(registry=registry)
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(log_streams=1)

    simulation = Simulation(registry, objects=[pod("a"), pod("b")])
    simulation.wait(1).log_line("pods/a", "a").log_line("pods/b", "b").wait(1)
    assert found == ["c: a"]
    assert "more than 1 logs are to be read" in "\n".join(simulation.log)
    simulation.delete("pods/a").wait(60)
    assert found == ["c: a", "c: b"]


def test_a_traceback_is_one_event() -> None:
    registry, found = reading(multiline=True)
    text = 'Traceback (most recent call last):\n  File "a"\nKeyError: 1'
    simulation = begun(registry)
    simulation.log_line("pods/p", f"before\n{text}\nafter").wait(5)
    assert found == ["c: before", f"c: {text}", "c: after"]


def test_an_event_that_nobody_wants_holds_nothing_up() -> None:
    registry, found = reading(multiline="^-", regex="wanted")
    simulation = begun(registry)
    simulation.log_line("pods/p", "- a\nb").wait(5)
    simulation.log_line("pods/p", "- wanted").settle()
    assert found == ["c: - wanted"]


def test_an_event_is_complete_after_a_second_of_silence() -> None:
    registry, found = reading(multiline="^-")
    simulation = begun(registry)
    simulation.log_line("pods/p", "- a\nb").wait(0.5)
    simulation.log_line("pods/p", "c").wait(0.5)
    assert found == []
    simulation.wait(1)
    assert found == ["c: - a\nb\nc"]


# ------------------------------------------------------------------------ declarations


def handler(**_: Any) -> None: ...


MISTAKES = [
    ({"regex": "("}, "is not a regular expression"),
    ({"regex": 3}, "is a regular expression, not"),
    ({"rate": 0}, "above zero"),
    ({"rate": True}, "above zero"),
    ({"container": 3}, "container= is a name"),
    ({"container": []}, "names no container"),
    ({"container": "a-[0-9]"}, "fits no container"),
    ({"since": "never"}, 'since= is "now", "start", seconds or a time'),
    ({"since": -1}, "since="),
    ({"since": "2026-01-01T00:00"}, "a time with its zone"),
    ({"since": lambda line, **_: line}, "only the when= of on.log is asked about"),
    ({"multiline": "("}, "is not a regular expression"),
    ({"labels": {"a": lambda v, line, **_: v}}, "only the when= of on.log is asked"),
    ({"retries": 3}, "retries"),
]


@pytest.mark.parametrize(("options", "text"), MISTAKES, ids=range(len(MISTAKES)))
def test_impossible_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RegistrationError, match=text.replace("(", r"\(")):
        fnop.on.log("pods", registry=Registry(), **options)(handler)


@pytest.mark.parametrize("words", [("configmaps",), ("pods.metrics.k8s.io",), ("all",)])
def test_only_pods_have_logs(words: tuple[str, ...]) -> None:
    with pytest.raises(RegistrationError, match="only pods have logs"):
        fnop.on.log(*words, registry=Registry())(handler)


@pytest.mark.parametrize("words", [(), ("pods",), ("v1", "pods"), ("Pod",), ("po",)])
def test_pods_may_be_named_in_any_way(words: tuple[str, ...]) -> None:
    registry = Registry()
    fnop.on.log(*words, registry=registry)(handler)
    assert len(registry.handlers) == 1


def test_other_filters_have_no_lines() -> None:
    with pytest.raises(RegistrationError, match="only the when= of on"):
        fnop.on.event("pods", when=lambda line, **_: line, registry=Registry())(handler)


def test_the_documentation_names_all_options() -> None:
    page = (ROOT / "docs/how-to/handle-logs-of-pods.md").read_text()
    for name in ("container", "regex", "when", "since", "rate", "multiline"):
        assert f"`{name}`" in page
