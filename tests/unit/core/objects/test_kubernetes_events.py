"""Kubernetes Events: counted, limited, and harmless when refused."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.objects.report.events import event_manifest
from fnop.core.seam.commands import Perform, Subject
from fnop.core.values.now import Now
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def events(run: Scenario) -> list[dict[str, Any]]:
    return run.objects("events.v1.")


def reporting(registry: Registry, text: str = "again", **options: Any) -> None:
    @fnop.timer(KIND, registry=registry, **options)
    def tick(**_: Any) -> Any:
        return fnop.event("Ticked", text)


def test_the_same_report_counts_up_one_event(registry: Registry) -> None:
    reporting(registry, interval=60)
    run = Scenario(registry, [example()])
    run.settle(seconds=250)
    (event,) = events(run)
    assert event["count"] == 5
    assert event["firstTimestamp"] < event["lastTimestamp"]


def test_after_ten_minutes_it_is_another_one(registry: Registry) -> None:
    reporting(registry, interval=700)
    run = Scenario(registry, [example()])
    run.settle(seconds=1500)
    assert [each["count"] for each in events(run)] == [1, 1, 1]


def test_different_reports_are_different_events(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> Any:
        return [fnop.event("A", "x"), fnop.event("A", "y"), fnop.warn("A", "x")]

    run = Scenario(registry, [example()])
    run.settle()
    found = sorted((each["type"], each["message"]) for each in events(run))
    assert found == [("Normal", "x"), ("Normal", "y"), ("Warning", "x")]


def test_an_object_gets_so_many_reports_and_no_more(registry: Registry) -> None:
    @fnop.timer(KIND, registry=registry, interval=1)
    def tick(now: Any, **_: Any) -> Any:
        return fnop.event("Ticked", f"at {now}")

    run = Scenario(registry, [example(), example("example-2")])
    run.settle(seconds=200)
    about = [each["involvedObject"]["name"] for each in events(run)]
    assert about.count("example-1") == about.count("example-2") == 25
    assert any("too many" in line for line in run.lines)
    run.settle(seconds=301)
    assert len(events(run)) == 52  # one more for each, after five minutes


def test_an_event_that_is_gone_is_made_anew(registry: Registry) -> None:
    reporting(registry, interval=60)
    run = Scenario(registry, [example()])
    run.settle(seconds=70)
    (event,) = events(run)
    name = event["metadata"]["name"]
    run.request(ApiRequest("DELETE", f"/api/v1/namespaces/default/events/{name}"))
    run.settle(seconds=120)
    (event,) = events(run)
    assert event["metadata"]["name"] != name


def test_events_that_are_refused_hurt_nobody(registry: Registry) -> None:
    handled: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(name: str, **_: Any) -> Any:
        handled.append(name)
        lost = fnop.target("unicorns", name="u")
        return [fnop.event("Lost", "no such kind", about=lost), fnop.event("Kept")]

    run = Scenario(registry, [example()])
    assert run.settle()
    assert handled == ["example-1"]
    assert "Kept" in [each["reason"] for each in events(run)]


# -------------------------------------------------------------- info, exception


def test_k_10_1_the_types_of_events(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        return [
            fnop.event("Made", "one"),
            fnop.info("Made", "two"),
            fnop.warn("Made", "three"),
        ]

    run = Scenario(registry, [example()])
    assert run.settle()
    found = sorted((each["type"], each["message"]) for each in events(run))
    assert found == [("Normal", "one"), ("Normal", "two"), ("Warning", "three")]


def test_k_10_1_an_exception_is_a_warning_with_its_class_and_text(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        try:
            raise OSError("the disk is full")
        except OSError:
            await fnop.exception(message="no volume")
            await fnop.exception("Broken")

    run = Scenario(registry, [example()])
    assert run.settle()
    found = [(each["type"], each["reason"], each["message"]) for each in events(run)]
    assert sorted(found) == [
        ("Warning", "Broken", "the disk is full"),
        ("Warning", "OSError", "no volume: the disk is full"),
    ]


def test_k_10_1_an_exception_can_be_given_and_may_say_nothing() -> None:
    other = fnop.target("pods", name="p")
    report = fnop.exception(exc=KeyError(), about=other)
    assert (report.type, report.reason) == ("Warning", "KeyError")
    assert (report.message, report.target) == ("KeyError", other)


def test_k_10_1_without_an_exception_there_is_nothing_to_report() -> None:
    with pytest.raises(ValueError, match="give exc="):
        fnop.exception("Odd", "nothing is handled")


# -------------------------------------------------------------- log lines as Events


def talkative(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="create", retries=2)
    def create(logger: fnop.Logger, retry: int, **_: Any) -> fnop.Effect:
        logger.debug("looking")
        logger.warning("it is large")
        if not retry:
            raise fnop.TemporaryError("not yet", delay=1)
        return fnop.log("info", "it is made")

    @fnop.on.event(KIND, registry=registry)
    def spy(logger: fnop.Logger, **_: Any) -> None:
        logger.error("seen")

    @fnop.on.startup(registry=registry)
    def start(logger: fnop.Logger, **_: Any) -> None:
        logger.error("begun")


def lines_posted(registry: Registry, level: str | None) -> list[tuple[str, str, int]]:
    talkative(registry)
    settings = fnop.Settings(posting_level=level)
    run = Scenario(registry, [example()], settings=settings)
    assert run.settle()
    assert {each["reason"] for each in events(run)} <= {"Logging"}
    found = [(each["type"], each["message"], each["count"]) for each in events(run)]
    return sorted(found)


def test_k_10_10_log_lines_are_no_events_unless_asked_for(registry: Registry) -> None:
    assert lines_posted(registry, None) == []


def test_k_10_10_lines_from_a_level_on_are_events(registry: Registry) -> None:
    found = lines_posted(registry, "info")
    assert ("Warning", "it is large", 2) in found
    assert ("Normal", "it is made", 1) in found
    assert ("Normal", "create handler create succeeded", 1) in found
    assert any("not yet" in message for _, message, _ in found)
    assert not {"looking", "seen", "begun"} & {message for _, message, _ in found}


def test_k_10_10_a_higher_level_is_fewer_of_them(registry: Registry) -> None:
    messages = {message for _, message, _ in lines_posted(registry, "warning")}
    assert "it is large" in messages
    assert "it is made" not in messages


def test_k_10_10_there_are_four_levels() -> None:
    with pytest.raises(ValueError, match="posting_level= is one of debug, info"):
        fnop.Settings(posting_level="INFO")


def test_a_request_for_an_event_names_the_handler_that_reports(
    registry: Registry,
) -> None:
    """A replay shows who has decided otherwise: no Event has decided anything."""

    class Authors:
        def __init__(self) -> None:
            self.found: list[str | None] = []

        def observe(self, now: Any, input: Any, commands: Any) -> None:
            for each in commands:
                if isinstance(each, Perform) and "events" in (each.resource or ()):
                    self.found.append(each.handler)

    reporting(registry, id="ticking", interval=60)

    @fnop.on.create(KIND, registry=registry, id="logging")
    def create(logger: Any, **_: Any) -> None:
        logger.warning("careful")

    authors = Authors()
    settings = fnop.Settings(posting_level="warning")
    run = Scenario(registry, [example()], settings=settings, observers=[authors])
    run.settle(seconds=130)
    assert sorted(map(str, authors.found)) == ["logging", *["ticking"] * 3]


def test_an_event_about_a_cluster_scoped_object_is_one_that_old_servers_take() -> None:
    """Those before 1.21 refuse it in `default` if it has `eventTime`."""
    now, settings = Now(0.0, 0.0), Settings()
    manifests = [
        event_manifest(
            fnop.event("Repaired", "it"),
            Subject("namespaces.v1.", place, "n", "u", "Namespace", "v1"),
            settings,
            now,
            "x",
        )
        for place in (None, "default")
    ]
    assert [each["metadata"]["namespace"] for each in manifests] == ["default"] * 2
    assert ["eventTime" in each for each in manifests] == [False, True]
