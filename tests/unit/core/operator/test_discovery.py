"""Discovery: kinds and namespaces come, change and go while the operator runs."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from typing import Any

import pytest
from immutables import Map

import fnop
from fnop.core.api import discovery
from fnop.core.api.namespaces import served_namespaces
from fnop.core.api.resources import Selector
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Fetch
from fnop.effects.outcomes import Applied, Unreachable
from fnop.effects.structs import replace
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import read_records, replay_file
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.scenario import catalogue_of
from fnop.testing import Simulation
from tests.conformance.cases.discovery import CRDS
from tests.discoveries import FORMS, Server
from tests.simulations import DEFINITION, example
from tests.stories import Story, Trace, definition as story_definition

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def definition(plural: str, group: str = "late.dev") -> dict[str, Any]:
    kind = plural.rstrip("s").capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }


def behind(sim: Simulation, form: str, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The simulated cluster as a server of this form of discovery."""
    server = Server(sim._run.request, form)
    monkeypatch.setattr(sim._run, "request", server)
    return server


def thing(kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": "late.dev/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    }


@pytest.mark.parametrize("selector", [fnop.EVERYTHING, "*.late.dev"])
def test_a_broad_selector_sees_a_kind_that_comes_later(
    registry: Registry, selector: Any
) -> None:
    seen: set[str] = set()

    @fnop.on.event(selector, registry=registry)
    def see(body: Any, **_: Any) -> None:
        seen.add(f"{body['kind']} {body['metadata']['name']}")

    sim = Simulation(registry, crds=definition("widgets")).settle()
    sim.apply(definition("gadgets")).settle()
    sim.apply(thing("Gadget", "g")).settle()
    assert "Gadget g" in seen
    assert sim.elapsed.total_seconds() < 30, "it was told, and did not look by chance"


def test_a_kind_that_goes_and_comes_again_is_served_again(registry: Registry) -> None:
    told: list[str] = []

    @fnop.on.create("*.late.dev", registry=registry)
    def create(name: str, **_: Any) -> None:
        told.append(f"created {name}")

    @fnop.on.event("*.late.dev", registry=registry)
    def see(type: str | None, name: str, **_: Any) -> None:
        if type == "DELETED":
            told.append(f"gone {name}")

    sim = Simulation(registry, crds=definition("widgets"), objects=thing("Widget", "a"))
    sim.settle()
    sim.delete("customresourcedefinitions/widgets.late.dev").settle()
    sim.wait(60)
    assert told == ["created a", "gone a"]
    streams = [each.resource.plural for each in _followed(sim)]
    assert "widgets" not in streams, "nobody asks for what is not there"
    sim.apply(definition("widgets")).settle()
    sim.apply(thing("Widget", "b")).settle()
    assert told == ["created a", "gone a", "created b"]


def test_a_status_that_is_no_endpoint_any_more_is_no_missing_object(
    registry: Registry,
) -> None:
    """A definition is replaced without any event: its kind exists all the time."""
    ends: list[str] = []

    @fnop.on.create("fnopexamples", registry=registry)
    @fnop.on.update("fnopexamples", registry=registry)
    def note(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["size"] = spec["size"]

    @fnop.daemon("fnopexamples", registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.sleep(1000)
        ends.append(stopped.reason)

    sim = Simulation(registry, crds=DEFINITION, objects=example(size=1)).wait(10)
    assert sim["fnopexamples/example-1"].status["size"] == 1
    sim.apply(story_definition(subresource=False)).wait(10)
    sim.edit("fnopexamples/example-1", spec={"size": 2}).wait(60)
    sim.apply(example("example-2", size=3)).wait(60)
    sizes = [each["status"]["size"] for each in sim.objects("fnopexamples")]
    assert sizes == [2, 3]
    assert ends == []


def test_a_status_that_has_become_an_endpoint_is_found(registry: Registry) -> None:
    @fnop.on.create("fnopexamples", registry=registry)
    def note(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["size"] = spec["size"]

    without = story_definition(subresource=False)
    sim = Simulation(registry, crds=without, objects=example(size=1)).wait(10)
    sim.apply(DEFINITION).wait(10)
    # this one reports it at the latest
    sim.apply(example("example-2", size=2)).wait(60)
    sim.apply(example("example-3", size=3)).wait(60)
    assert sim["fnopexamples/example-3"].status["size"] == 3


def test_a_named_kind_that_is_there_needs_no_look_at_definitions(
    registry: Registry,
) -> None:
    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> None: ...

    sim = Simulation(registry, crds=DEFINITION, objects=example()).settle()
    assert {each.resource.plural for each in _followed(sim)} == {KIND}


@pytest.mark.parametrize("form", FORMS)
def test_a_group_that_cannot_be_read_keeps_its_kinds(
    form: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An aggregated API that is down says nothing about what it serves."""
    handled: list[str] = []

    @fnop.on.create("*.late.dev", registry=registry)
    def create(name: str, **_: Any) -> None:
        handled.append(name)

    sim = Simulation(registry, crds=definition("widgets")).settle()
    server = behind(sim, form, monkeypatch)
    server.unread = "late.dev"
    sim.apply(definition("others", "other.dev"))
    sim.wait(30)
    assert "widgets" in {each.resource.plural for each in _followed(sim)}
    server.unread = None
    sim.apply(thing("Widget", "a")).settle()
    assert handled == ["a"]


@pytest.mark.parametrize("form", FORMS)
def test_a_kind_that_could_not_be_read_is_waited_for(
    form: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler does not fail for long because discovery had a bad moment."""

    done: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    async def create(name: str, **_: Any) -> None:
        await fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap"})
        done.append(name)

    sim = Simulation(registry, crds=DEFINITION)
    server = behind(sim, form, monkeypatch)
    server.unread = ""
    sim.apply(example())
    sim.wait(5)
    assert done == []
    server.unread = None
    sim.wait(15)
    assert done == ["example-1"]


# ------------------------------------------------------------------ namespaces


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def inside(where: str, name: str = "x") -> dict[str, Any]:
    made = example(name)
    made["metadata"]["namespace"] = where
    return made


def test_namespaces_of_a_pattern_are_served_while_they_are_there(
    registry: Registry,
) -> None:
    told: list[str] = []

    @fnop.on.create(KIND, registry=registry)
    def create(namespace: str | None, **_: Any) -> None:
        told.append(f"created in {namespace}")

    @fnop.on.delete(KIND, registry=registry)
    def delete(namespace: str | None, **_: Any) -> None:
        told.append(f"deleted in {namespace}")

    spaces = [namespace("team-a"), namespace("team-a-test"), namespace("other")]
    things = [inside("team-a"), inside("team-a-test"), inside("other")]
    settings = Settings(namespaces=("team-*,!*-test",))
    sim = Simulation(
        registry, crds=DEFINITION, objects=[*spaces, *things], settings=settings
    ).settle()
    assert told == ["created in team-a"]
    sim.apply([namespace("team-b"), inside("team-b"), inside("other", "y")]).settle()
    assert told == ["created in team-a", "created in team-b"]
    sim.delete("namespaces/team-a").settle()
    assert told[2:] == ["deleted in team-a"]
    assert {each.namespace for each in _followed(sim)} == {None, "team-b"}
    sim.apply([namespace("team-a"), inside("team-a")]).settle()
    assert told[3:] == ["created in team-a"]


def test_named_namespaces_ask_the_cluster_for_nothing(registry: Registry) -> None:
    """It works with rights in these namespaces alone."""

    @fnop.on.event("*.fnop.dev", registry=registry)
    def see(**_: Any) -> None: ...

    settings = Settings(namespaces=("default", "absent"))
    sim = Simulation(registry, crds=DEFINITION, settings=settings).settle()
    assert {each.namespace for each in _followed(sim)} == {"default", "absent"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["a"], ("a",)),
        (["new"], ("new",)),
        (["a", "b"], ("a", "b")),
        (["a,b"], ("a", "b")),
        (["team-*"], ("team-x", "team-y")),
        (["team-?"], ("team-x", "team-y")),
        (["team-*,!team-y"], ("team-x",)),
        (["!team-*"], ("a", "b")),
        (["*,!a,!b"], ("team-x", "team-y")),
        (["!*,a"], ("a",)),
        (["team-*,!team-y", "team-y"], ("team-x", "team-y")),
        (["c*"], ()),
    ],
)
def test_what_namespaces_are_meant(given: list[str], meant: tuple[str, ...]) -> None:
    assert served_namespaces(given, ["a", "b", "team-x", "team-y"]) == meant


@pytest.mark.parametrize("given", ["", "A", "a b", "-", "a,", "!", "a/b", "[a]"])
def test_what_means_no_namespace_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="neither the name of a namespace"):
        Settings(namespaces=(given,))


def _followed(sim: Simulation) -> list[Any]:
    return list(sim._run.machine.state.streams.followed.values())


# ------------------------------------------------------------ kinds that are missing

DAY = 86_400.0


def looks(sim: Simulation) -> list[float]:
    """When was looked for kinds, in virtual seconds."""
    trace = sim._run.machine._observers[0]
    assert isinstance(trace, Trace)
    return [
        now.mono
        for now, _, commands in trace.steps
        for command in commands
        if isinstance(command, Fetch) and command.path == "/apis"
    ]


def waiting(registry: Registry, **settings: Any) -> Simulation:
    """An operator that may not follow definitions, or (None) may."""
    sim = Simulation(registry, crds=DEFINITION, settings=Settings(**settings))
    machine = sim._run.machine
    machine._observers = (Trace(), *machine._observers)
    return sim


@pytest.fixture
def missing() -> Registry:
    registry = Registry()

    @fnop.on.create("widgets.late.dev", registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"seen": True})

    return registry


def test_what_stays_missing_is_looked_for_ever_less(missing: Registry) -> None:
    sim = waiting(missing, namespaces=("default",))
    sim.wait(DAY)
    found = looks(sim)
    pauses = [later - before for before, later in pairwise(found)]
    assert 2.0 <= pauses[0] <= 2.4
    assert all(later > before - 0.001 for before, later in pairwise(pauses))
    assert pauses[-1] == pytest.approx(600.0)
    assert len(found) < DAY / 600 + 10


@pytest.mark.parametrize("after", [1.0, 30.0, 300.0])
def test_what_comes_is_found_in_about_the_time_that_it_was_missing(
    missing: Registry, after: float
) -> None:
    sim = waiting(missing, namespaces=("default",))
    sim.wait(after)
    sim.apply([definition("widgets"), thing("Widget", "a")])
    sim.wait(after + 10.0)
    assert sim["widgets/a"].status == {"seen": True}


def test_a_definition_that_comes_is_told_at_any_time(missing: Registry) -> None:
    sim = waiting(missing)
    sim.wait(DAY)
    sim.apply([definition("widgets"), thing("Widget", "a")])
    sim.wait(2.0)
    assert sim["widgets/a"].status == {"seen": True}


def test_a_definition_that_comes_or_goes_begins_anew(missing: Registry) -> None:
    """A missing kind may be about to come, too, possibly without an event."""
    sim = waiting(missing)
    sim.wait(DAY)
    sim.apply(definition("gadgets"))
    told = sim._run.clock.elapsed
    sim.wait(60.0)
    assert len([each for each in looks(sim) if each > told]) >= 4


def test_a_kind_that_an_effect_names_in_vain_is_looked_for_ever_less(
    registry: Registry,
) -> None:
    # Hundreds of attempts in an hour: far more than looks.
    @fnop.on.create(KIND, registry=registry, backoff=10.0, id="create")
    async def create(**_: Any) -> None:
        await fnop.get("widgets.late.dev", name="a")

    sim = waiting(registry)
    sim.wait(DAY / 2)
    before = len(looks(sim))
    assert before < DAY / 2 / 600 + 5
    sim.apply(example())
    began = sim._run.clock.elapsed
    sim.wait(5.0)
    first = looks(sim)[before]
    assert first - began < 2.5, "nobody has looked for it yet"
    sim.wait(3600.0)
    assert len(looks(sim)) - before < 20
    sim.apply([definition("widgets"), thing("Widget", "a")])
    sim.wait(620.0)
    assert any(line.endswith("handler create succeeded") for line in sim.log)


def test_a_kind_that_is_listed_but_not_there_is_looked_for_ever_less(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    @fnop.on.event(KIND, registry=registry)
    def see(**_: Any) -> None: ...

    sim = waiting(registry)
    request = sim._run.request

    def without_objects(asked: ApiRequest) -> ApiResponse:
        if asked.path.startswith("/apis/fnop.dev/v1/"):
            return ApiResponse(404, "404 page not found")
        return request(asked)

    monkeypatch.setattr(sim._run, "request", without_objects)
    sim.wait(10.0)
    soon = len(looks(sim))
    assert 3 <= soon <= 6
    sim.wait(DAY / 6)
    assert len(looks(sim)) < soon + DAY / 6 / 600 + 10


# ------------------------------------------------------------- forms of discovery


@pytest.mark.parametrize("form", FORMS)
def test_kinds_are_asked_for_at_once_where_the_server_can(
    form: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests to a server since 1.27, one more for each group version before."""

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"seen": True})

    sim = Simulation(registry, crds=DEFINITION, objects=example())
    server = behind(sim, form, monkeypatch)
    sim.settle()
    roots, rest = server.asked[:2], server.asked[2:]
    assert sim["fnopexamples/example-1"].status["seen"]
    assert roots == ["/api", "/apis"]
    assert len(rest) == len(set(rest))
    assert ("/apis/fnop.dev/v1" in rest) == (form == "listed")
    assert bool(rest) == (form == "listed")


@pytest.mark.parametrize("form", FORMS)
def test_a_recording_replays_whatever_the_form(
    form: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the requests, but not their form: the answer shows that."""

    @fnop.on.create(KIND, registry=registry)
    def create(**_: Any) -> fnop.Effect:
        return fnop.patch(status={"seen": True})

    story = Story(registry, [example()])
    file, program = BytesIO(), story.machine.program
    recorder = Recorder(file, header_of(program, "0"), Redaction(b"key", program))
    story.machine._observers = (recorder,)
    server = Server(story.request, form)
    monkeypatch.setattr(story, "request", server)
    assert story.settle()
    recorder.finish()
    records = list(read_records(BytesIO(file.getvalue())))
    asked = [
        command
        for record in records[1:]
        for command in (record or {})["commands"]
        if command["do"] == "Fetch" and discovery.lists_kinds(command["path"])
    ]
    assert [each["path"] for each in asked] == server.asked
    assert {*asked[0]} == {"do", "id", "path"}, "as earlier releases have written it"
    file.seek(0)
    replayed = replay_file(file, Program(program.handlers, program.settings))
    assert replayed.difference is None
    assert replayed.steps == len(records) - 1


@pytest.mark.parametrize("stale", [None, "order.conf.dev"])
def test_both_forms_of_discovery_say_the_same(
    stale: str | None, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several versions, subresources, other names, kinds of the whole cluster."""
    sim = Simulation(registry, crds=[DEFINITION, *CRDS])
    found = []
    for form in FORMS:
        with monkeypatch.context() as context:
            behind(sim, form, context).unread = stale
            found.append(catalogue_of(sim._run))
    aggregated, listed = found
    assert aggregated == listed
    names = {(each.plural, each.version) for each in aggregated.resources}
    assert {("pods", "v1"), ("wholes", "v1"), ("bares", "v1")} <= names
    assert (("manys", "v1beta1") in names) == (stale is None)
    assert ("manys", "v2") not in names, "it is not served"


def test_a_version_that_is_stale_stays_the_preferred_one() -> None:
    """No client is led to another version because an aggregated API is down."""
    many = {"resource": "manys", "responseKind": {"kind": "Many"}, "verbs": ["list"]}

    def round_of(freshness: str) -> discovery.Discovery:
        versions = [
            {"version": "v2", "resources": [many], "freshness": freshness},
            {"version": "v1", "resources": [many], "freshness": "Current"},
        ]
        items = [{"metadata": {"name": "many.dev"}, "versions": versions}]
        document = {"kind": "APIGroupDiscoveryList", "items": items}
        begun = discovery.begun({1: discovery.Document("/apis")})
        found, more = discovery.answered(begun, 1, Applied(document))
        assert more == ()
        return found

    before = round_of("Current").catalogue
    now = round_of("Stale")
    assert now.problem is not None
    assert [each.version for each in now.catalogue.resources] == ["v1"]
    after = now.after(before, 100.0)
    wanted = Selector.of("manys.many.dev")
    assert [each.version for each in after.find(wanted)] == ["v2"]
    assert not after.complete


def test_documents_that_are_the_same_are_read_once(registry: Registry) -> None:
    @fnop.on.event(KIND, registry=registry)
    def watch(**_: Any) -> None: ...

    sim = Simulation(registry, crds=DEFINITION).settle()
    run, first = sim._run, sim._run.machine.state.survey.catalogue
    run.crash()
    assert run.settle()
    assert run.machine.state.survey.catalogue is first
    assert catalogue_of(run) is first
    sim.apply(definition("lates"))
    assert catalogue_of(run).lookup("lates") is not None
    assert first.lookup("lates") is None


def group_document(group: str, *versions: tuple[str, tuple[str, ...]]) -> Any:
    """The aggregated document of one group: its versions with their kinds, in order."""
    items = [
        {
            "version": version,
            "freshness": "Current",
            "resources": [
                {
                    "resource": plural,
                    "responseKind": {"kind": plural.title()[:-1]},
                    "verbs": ["list"],
                }
                for plural in plurals
            ],
        }
        for version, plurals in versions
    ]
    found = {"metadata": {"name": group}, "versions": items}
    return {"kind": "APIGroupDiscoveryList", "items": [found]}


def read(document: Any) -> discovery.Discovery:
    begun = discovery.begun({1: discovery.Document("/apis")})
    found, _ = discovery.answered(begun, 1, Applied(document))
    return found


BATCH = group_document(
    "batch",
    ("v1", ("jobs",)),
    ("v1beta1", ("cronjobs",)),
    ("v2alpha1", ("cronjobs", "jobs")),
)


def test_a_kind_is_found_in_the_newest_version_that_has_it() -> None:
    """As kubectl finds it: the group's preferred version does not have all kinds."""
    catalogue = read(BATCH).catalogue
    for words, version in (
        (("cronjobs.batch",), "v1beta1"),
        (("cronjobs",), "v1beta1"),
        (("cronjobs.v2alpha1.batch",), "v2alpha1"),
        (("jobs.batch",), "v1"),
        (("batch/v2alpha1", "jobs"), "v2alpha1"),
    ):
        assert [e.version for e in catalogue.find(Selector.of(*words))] == [version]
    every = catalogue.find(Selector.of("*.batch"))
    assert sorted(e.key for e in every) == ["cronjobs.v1beta1.batch", "jobs.v1.batch"]


def test_a_kind_moves_to_the_preferred_version_when_that_has_it() -> None:
    before = read(BATCH).catalogue
    upgraded = group_document("batch", ("v1", ("jobs", "cronjobs")))
    after = read(upgraded).after(before, 100.0)
    # The old version disappeared a moment ago, and counts as served for some time.
    assert len([e for e in after.resources if e.plural == "cronjobs"]) == 3
    assert [e.version for e in after.find(Selector.of("cronjobs.batch"))] == ["v1"]


def test_a_version_that_cannot_be_read_hides_no_other() -> None:
    """As in kubectl: the aggregated API of the preferred version may be down."""
    begun = discovery.begun({1: discovery.Document("/apis")})
    groups = [
        {
            "name": "batch",
            "versions": [{"version": "v1"}, {"version": "v1beta1"}],
            "preferredVersion": {"version": "v1"},
        }
    ]
    found, more = discovery.answered(begun, 1, Applied({"groups": groups}))
    found = replace(found, pending=Map(dict(enumerate(more))))
    cronjobs = {"name": "cronjobs", "kind": "CronJob", "verbs": ["list"]}
    found, _ = discovery.answered(found, 1, Applied({"resources": [cronjobs]}))
    down, _ = discovery.answered(found, 0, Unreachable("no answer"))
    assert [e.version for e in down.catalogue.find(Selector.of("cronjobs"))] == [
        "v1beta1"
    ]
    jobs = {"name": "jobs", "kind": "Job", "verbs": ["list"]}
    both, _ = discovery.answered(found, 0, Applied({"resources": [cronjobs, jobs]}))
    assert [e.version for e in both.catalogue.find(Selector.of("cronjobs"))] == ["v1"]
    # Later the document cannot be read for once: it is known what was in it.
    after = down.after(both.catalogue, 100.0)
    assert [e.version for e in after.find(Selector.of("cronjobs"))] == ["v1"]
    assert after.lookup("jobs") is not None


@pytest.mark.parametrize("form", FORMS)
def test_versions_have_the_order_of_their_group(form: str) -> None:
    """Aggregated APIs choose it: it may differ from the order of their names."""
    order = ("v1", "v1alpha1", "v1beta1")
    entry = {"name": "boats", "kind": "Boat", "verbs": ["list"]}
    if form == "listed":
        groups = [
            {
                "name": "sea.dev",
                "versions": [{"version": version} for version in order],
                "preferredVersion": {"version": "v1"},
            }
        ]
        begun = discovery.begun({1: discovery.Document("/apis")})
        found, more = discovery.answered(begun, 1, Applied({"groups": groups}))
        found = replace(found, pending=Map({2: more[2], 3: more[1], 4: more[0]}))
        for number, entries in ((2, [entry]), (3, [entry]), (4, [])):
            answer = Applied({"resources": entries})
            found, _ = discovery.answered(found, number, answer)
    else:
        kinds = ((), ("boats",), ("boats",))
        found = read(group_document("sea.dev", *zip(order, kinds, strict=True)))
    [boats] = found.catalogue.find(Selector.of("boats"))
    assert boats.version == "v1alpha1"


@pytest.mark.parametrize("rest", [(), (("v1", ("ships",)),)], ids=["alone", "others"])
def test_a_version_that_has_disappeared_comes_last(rest: Any) -> None:
    """It counts as served for a while, and others are served in fact."""
    both = ("v1", ("boats", "ships")), ("v1alpha1", ("boats",))
    before = read(group_document("sea.dev", *both)).catalogue
    after = read(group_document("sea.dev", *rest, both[1])).after(before, 100.0)
    assert [e.version for e in after.find(Selector.of("boats"))] == ["v1alpha1"]
    assert after.lookup("boats.v1.sea.dev") is not None


@pytest.mark.parametrize("several", [False, True])
def test_what_a_startup_handler_looks_for_serves_no_objects_yet(
    several: bool,
) -> None:
    """Otherwise objects created before the operator serves would never be listed."""
    registry = Registry()
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default"},
    }

    @fnop.on.startup(registry=registry)
    def started(**_: Any) -> fnop.Effect:
        return fnop.apply(child)

    @fnop.on.create("secrets", registry=registry)
    def made(patch: fnop.Patch, **_: Any) -> None:
        patch.metadata.labels["seen"] = "yes"

    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "one", "namespace": "default"},
    }
    simulation = Simulation(registry, objects=[secret]).settle()
    if several:
        simulation.restart().settle()
    assert simulation["configmaps/settings"]
    assert simulation["secrets/one"].labels["seen"] == "yes"
