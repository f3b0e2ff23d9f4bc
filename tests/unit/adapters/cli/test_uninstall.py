"""`fnop uninstall`: it removes the operator's marks, and nothing else."""

from __future__ import annotations

import copy
import doctest
import re
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

import fnop
from fnop.adapters.cli import uninstall as uninstall_command
from fnop.adapters.cli.uninstall import uninstalled
from fnop.core.admission.keeping import OWNER
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator import uninstalling
from fnop.core.operator.uninstalling import (
    alive_peers,
    kinds_named,
    marks_of,
    next_removal,
    settings_told,
)
from fnop.core.values.body import Body
from fnop.core.values.merge import applied
from fnop.core.values.now import Now
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    Unreachable,
)
from fnop.interpreters.runtime.reading import PAGE_LIMIT, ReadProblem
from fnop.interpreters.runtime.uninstalling import Uninstaller
from tests.commands import fnop as command
from tests.live import SpoiledCluster
from tests.peerings import PEERING_OBJECT, peering_definition
from tests.simulations import DEFINITION, Scenario, example
from tests.thorough import examples

MARKER = "fnop.dev/default"
SETTINGS = Settings()
KIND = "fnopexamples"
WITH_STATUS = Resource("e.com", "v1", "things", "Thing", subresources=("status",))
WITHOUT = Resource("e.com", "v1", "things", "Thing")


@pytest.mark.parametrize("module", [uninstalling, uninstall_command])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# ------------------------------------------------------------------ the decision

NAMES = st.sampled_from([MARKER, "fnop.dev/other", "example.com/x"])
CONDITIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": NAMES, "status": st.just("False")}),
        st.sampled_from([None, "text", {}]),
    ),
    max_size=3,
)
STATUSES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, [], "text", {"conditions": None}, {"conditions": "none"}]),
    st.fixed_dictionaries({}, optional={"phase": st.just("Ready")}),
    st.dictionaries(NAMES, st.sampled_from(["{}", {"v": 1}, 7]), max_size=2).flatmap(
        lambda own: CONDITIONS.map(lambda some: {**own, "conditions": some})
    ),
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("x"), "resourceVersion": st.just("7")},
    optional={
        "finalizers": st.lists(NAMES, max_size=3, unique=True),
        "annotations": st.dictionaries(NAMES, st.just("text"), max_size=3),
        "deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
        "labels": st.just({"a": "b"}),
    },
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": METADATA, "spec": st.just({"size": 1})}, optional={"status": STATUSES}
)


def taken_off(data: dict[str, Any], resource: Resource) -> list[tuple[str, Any]]:
    """The requests that free an object, done on a server of two endpoints."""
    requests = []
    while due := next_removal(Body(data), resource, SETTINGS):
        endpoint, patch = due
        requests.append(due)
        assert (
            patch["metadata"]["resourceVersion"] == data["metadata"]["resourceVersion"]
        )
        status = {key: patch[key] for key in patch if key == "status"}
        rest = {key: patch[key] for key in patch if key != "status"}
        if resource.has_status:
            assert bool(status) == (endpoint == "status")
            data = applied(status if endpoint == "status" else rest, data)
        else:
            data = applied(patch, data)
        version = str(int(data["metadata"]["resourceVersion"]) + 1)
        data = applied({"metadata": {"resourceVersion": version}}, data)
        assert len(requests) <= 2
    assert not marks_of(Body(data), SETTINGS).any
    return requests


@pytest.mark.parametrize("resource", [WITH_STATUS, WITHOUT])
@settings(max_examples=examples(40))
@given(data=OBJECTS)
def test_no_mark_is_left_and_all_else_is(
    resource: Resource, data: dict[str, Any]
) -> None:
    before = copy.deepcopy(data)
    marks = marks_of(Body(data), SETTINGS)
    requests = taken_off(data, resource)
    assert data == before
    assert bool(requests) == marks.any
    after = data
    for _, patch in requests:
        after = applied(patch, after)
    assert without_marks(after) == without_marks(before)
    if marks.finalizer:
        endpoint, patch = requests[-1]
        assert (endpoint, "finalizers" in patch["metadata"]) == ("", True)


def without_marks(data: dict[str, Any]) -> dict[str, Any]:
    """The parts that must stay, written down again from the definition of the marks."""
    found = copy.deepcopy(data)
    meta = found["metadata"]
    for names in (meta.get("annotations"), found.get("status")):
        if isinstance(names, dict):
            names.pop(MARKER, None)
    for holder, key in ((meta, "finalizers"), (found.get("status"), "conditions")):
        if isinstance(holder, dict) and isinstance(holder.get(key), list):
            holder[key] = [
                each
                for each in holder[key]
                if each != MARKER
                and not (isinstance(each, dict) and each.get("type") == MARKER)
            ]
    meta.pop("resourceVersion")
    if isinstance(found.get("status"), dict) and found["status"] == {
        "conditions": None
    }:
        found["status"] = {}
    return found


def test_an_endpoint_that_refuses_does_not_hold_the_other_up() -> None:
    data = {
        "metadata": {"resourceVersion": "7", "finalizers": [MARKER]},
        "status": {MARKER: "{}"},
    }
    first = next_removal(Body(data), WITH_STATUS, SETTINGS)
    assert first is not None
    assert first[0] == "status"
    second = next_removal(Body(data), WITH_STATUS, SETTINGS, without=("status",))
    assert second is not None
    assert second[1]["metadata"]["finalizers"] == []
    assert (
        next_removal(Body(data), WITH_STATUS, SETTINGS, without=("status", "")) is None
    )


def test_kinds_are_named_once_and_can_be_written() -> None:
    things = [
        Resource("e.com", "v1", "things", "Thing", verbs=("list", "patch")),
        Resource("e.com", "v2", "things", "Thing", verbs=("list", "patch")),
        Resource("e.com", "v2", "reviews", "Review", verbs=("create",)),
        Resource("e.com", "v2", "others", "Other"),
    ]
    registry = Registry()

    def handler(**_: Any) -> None: ...

    for words in (("things.v1.e.com",), ("things.v2.e.com",), ("nothings",)):
        fnop.on.create(*words, registry=registry)(handler)
    fnop.on.event("*.e.com", registry=registry)(handler)
    fnop.on.event("*.nowhere.com", registry=registry)(handler)
    kinds, unserved = kinds_named(registry.handlers, Catalogue(tuple(things)))
    assert [each.plural for each in kinds] == ["others", "things"]
    assert unserved == ("nothings",)


def test_peers_that_are_alive() -> None:
    status = {
        "now": {"lastseen": "1970-01-01T00:01:00", "lifetime": 60},
        "dead": {"lastseen": "1970-01-01T00:00:00", "lifetime": 60},
        "odd": "text",
        "timeless": {},
    }
    alive = alive_peers(Body({"status": status}), 100.0)
    assert [each.identity for each in alive] == ["now", "timeless"]


# ------------------------------------------------------------ a simulated cluster


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @fnop.on.create(KIND, id="create", registry=registry)
    def create(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        if spec.get("waits"):
            raise fnop.PermanentError("never")
        return {"size": 1}

    @fnop.on.update("configmaps", labels={"mine": "yes"}, registry=registry)
    def update(**_: Any) -> None: ...

    @fnop.on.delete(KIND, registry=registry)
    def delete(**_: Any) -> None:
        raise fnop.TemporaryError("not yet", delay=3600)

    return registry


class World(SpoiledCluster):
    """The remains of a stopped operator."""

    def __init__(
        self,
        registry: Registry,
        *objects: dict[str, Any],
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        run = Scenario(registry, objects, settings=settings)
        run.settle(seconds=60)
        run.stop()
        run.settle(seconds=60)
        self.cluster = run.cluster

    @property
    def writes(self) -> list[ApiRequest]:
        return [each for each in self.sent if each.method != "GET"]

    def object(
        self, name: str = "example-1", kind: str = KIND
    ) -> dict[str, Any] | None:
        root = "/apis/fnop.dev" if kind == KIND else "/api"
        path = f"{root}/v1/namespaces/default/{kind}/{name}"
        found = self.request(ApiRequest("GET", path))
        return None if found.status == 404 else found.body

    def change(
        self, method: str, body: Any = None, name: str = "example-1", kind: str = KIND
    ) -> None:
        root = "/apis/fnop.dev" if kind == KIND else "/api"
        path = f"{root}/v1/namespaces/default/{kind}/{name}"
        found = self.request(ApiRequest(method, path, (), body, MERGE_PATCH))
        assert found.status == 200, found


def config_map(name: str = "map") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "labels": {"mine": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def free(world: World, handlers: tuple[Handler, ...], **options: Any) -> int:
    options = {"yes": True, **options}
    names = options.pop("namespaces", None)
    return await uninstalled(world, handlers, Settings("default", names), **options)


def refusal(status: int, message: str = "no") -> ApiResponse:
    return ApiResponse(status, {"kind": "Status", "message": message})


async def test_nothing_hangs_afterwards(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry, example(), example("example-2", waits=True), config_map())
    world.change("PATCH", {"metadata": {"finalizers": [MARKER, "a.com/b"]}})
    world.change("DELETE", name="example-2")
    before = world.object()
    assert before is not None
    assert world.object("example-2") is not None
    assert (
        MARKER in (world.object("map", "configmaps") or {})["metadata"]["annotations"]
    )
    assert await free(world, registry.handlers) == 0
    after = world.object()
    assert after is not None
    assert after["metadata"]["finalizers"] == ["a.com/b"]
    assert after["status"] == {"create": {"size": 1}}
    assert after["spec"] == before["spec"]
    assert world.object("example-2") is None
    assert MARKER not in str(
        (world.object("map", "configmaps") or {})["metadata"].get("annotations")
    )
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "configmaps: 1 of 5 objects carries marks: 1 state\n" in printed.out
    assert (
        "fnopexamples.fnop.dev: 2 of 2 objects carry marks: 2 finalizers, 2 states, "
        "1 condition\n" in printed.out
    )
    assert "being deleted, and held back by the finalizer: 1;" in printed.out
    assert "fnopexamples.fnop.dev: taken off 2 objects\n" in printed.out
    # Again: there is nothing to do.
    world.sent.clear()
    assert await free(world, registry.handlers) == 0
    assert world.writes == []
    assert "nothing carries marks of fnop.dev/default" in capsys.readouterr().out


async def test_a_dry_run_and_a_no_change_nothing(
    registry: Registry,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(registry, example())
    assert await free(world, registry.handlers, dry_run=True) == 0
    answers = {"n": 1, "": 1}
    for answer, status in answers.items():
        monkeypatch.setattr("click.confirm", lambda text, answer=answer: answer == "y")
        assert await free(world, registry.handlers, yes=False) == status
    assert world.writes == []
    assert capsys.readouterr().out.count("nothing was changed") == 3
    monkeypatch.setattr("click.confirm", lambda text: "off 1 object?" in text)
    assert await free(world, registry.handlers, yes=False) == 0
    assert len(world.writes) == 2


async def test_marks_of_another_operator_stay(registry: Registry) -> None:
    world = World(registry, example())
    found = await uninstalled(world, registry.handlers, Settings("other"), yes=True)
    assert found == 0
    assert world.writes == []


@pytest.mark.parametrize(
    ("names", "freed"),
    [(("default",), True), (("def*",), True), (("kube-*",), False), (None, True)],
)
async def test_only_namespaces_that_are_meant(
    registry: Registry, names: tuple[str, ...] | None, freed: bool
) -> None:
    world = World(registry, example())
    assert await free(world, registry.handlers, namespaces=names) == 0
    assert bool(world.writes) is freed


async def test_a_pattern_that_means_nothing_is_told(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry, example())
    with pytest.raises(SystemExit):
        await free(world, registry.handlers, namespaces=("team-*",))
    assert "no namespace is meant by team-*" in capsys.readouterr().err


async def test_a_function_that_names_kinds_may_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry = Registry()

    def named(resource: Resource) -> bool:
        raise ValueError("unclear")

    @fnop.on.event(named, registry=registry)
    def handler(**_: Any) -> None: ...

    with pytest.raises(SystemExit):
        await free(World(Registry()), registry.handlers)
    assert "cannot be told: ValueError: unclear\n" in capsys.readouterr().err


async def test_a_conflict_is_decided_anew(registry: Registry) -> None:
    world = World(registry, example())
    edits = iter(range(3))

    def spoil(request: ApiRequest) -> ApiResponse | None:
        """Let another client be faster, three times."""
        if request.method == "PATCH" and (number := next(edits, None)) is not None:
            names = [MARKER, f"a.com/{number}"]
            world.change("PATCH", {"metadata": {"finalizers": names}})
        return None

    world.spoils = spoil
    assert await free(world, registry.handlers) == 0
    found = world.object()
    assert found is not None
    assert found["metadata"]["finalizers"] == ["a.com/2"]
    assert MARKER not in found["status"]


async def test_an_object_that_goes_meanwhile_is_done(registry: Registry) -> None:
    world = World(registry, example())

    def spoil(request: ApiRequest) -> ApiResponse | None:
        if request.method == "PATCH" and world.object() is not None:
            world.change("PATCH", {"metadata": {"finalizers": []}})
            world.change("DELETE")
        return None

    world.spoils = spoil
    assert await free(world, registry.handlers) == 0


async def test_what_is_refused_is_told_and_the_rest_goes_on(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"example-{number}" for number in range(8)]
    world = World(registry, *(example(name) for name in names))

    def spoil(request: ApiRequest) -> ApiResponse | None:
        is_status = request.path.endswith("/status") and "example-7" not in request.path
        return refusal(403) if is_status else None

    world.spoils = spoil
    assert await free(world, registry.handlers) == 1
    for name in names:
        found = world.object(name)
        assert found is not None
        assert "finalizers" not in found["metadata"]
        assert (MARKER in found["status"]) == (name != "example-7")
    told = capsys.readouterr()
    assert "taken off 1 object\n" in told.out
    assert told.err.count("keeps its marks: no\n") == 5
    assert "2 other objects likewise" in told.err


# ------------------------------------------------------- webhook configurations

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"


@pytest.fixture
def admitting(registry: Registry) -> Registry:
    @fnop.on.validate("services", registry=registry)
    def validates(**_: Any) -> None: ...

    return registry


def registered(world: World, name: str, owner: str | None) -> None:
    """A webhook for every example, without a server that answers."""
    webhook = {
        "name": "judge.fnop.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/judge"},
        "rules": [
            {
                "apiGroups": ["fnop.dev"],
                "apiVersions": ["*"],
                "operations": ["UPDATE"],
                "resources": ["*", "*/status"],
            }
        ],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": name,
            "annotations": {} if owner is None else {OWNER: owner},
        },
        "webhooks": [webhook],
    }
    assert world.request(ApiRequest("POST", VALIDATING, (), body)).status == 201


def configurations(world: World) -> list[str]:
    found = world.request(ApiRequest("GET", VALIDATING)).body["items"]
    return [each["metadata"]["name"] for each in found]


async def test_webhooks_of_the_operator_go_before_they_refuse_the_rest(
    admitting: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(admitting, example())
    registered(world, "of-any-name", "default")
    assert await free(world, admitting.handlers, dry_run=True) == 0
    assert configurations(world) == ["of-any-name"]
    assert await free(world, admitting.handlers) == 0
    assert configurations(world) == []
    assert "finalizers" not in (world.object() or {})["metadata"]
    told = capsys.readouterr()
    assert told.err == ""
    label = "ValidatingWebhookConfiguration of-any-name"
    assert told.out.count(f"{label}: 1 webhook\n") == 2
    assert f"{label}: deleted\n" in told.out
    # Kinds of admission handlers alone carry no marks.
    assert "services" not in told.out


async def test_only_webhooks_are_left_and_the_question_says_so(
    admitting: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(admitting)
    registered(world, "default.fnop.dev", "default")
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", asked.append)
    assert await free(world, admitting.handlers, yes=False) == 1
    assert configurations(world) == ["default.fnop.dev"]
    assert asked == [
        "The operator must not run any more. Delete 1 webhook configuration?"
    ]


@pytest.mark.parametrize("owner", ["other", None])
async def test_configurations_of_others_stay(
    admitting: Registry, owner: str | None
) -> None:
    world = World(admitting)
    registered(world, "default.fnop.dev", owner)
    assert await free(world, admitting.handlers) == 0
    assert configurations(world) == ["default.fnop.dev"]


async def test_configurations_that_cannot_be_listed_or_deleted_are_told(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry)
    registered(world, "default.fnop.dev", "default")
    world.spoils = lambda request: (
        refusal(403, "you may not") if request.path == VALIDATING else None
    )
    # An operator without such handlers should have none.
    assert await free(world, registry.handlers) == 0
    fnop.on.validate(KIND, id="judge", registry=registry)(lambda **_: None)
    assert await free(world, registry.handlers) == 1
    assert "cannot be listed: you may not" in capsys.readouterr().err
    world.spoils = lambda request: (
        refusal(403, "you may not") if request.method == "DELETE" else None
    )
    assert await free(world, registry.handlers) == 1
    told = capsys.readouterr().err
    assert told == (
        "fnop: ValidatingWebhookConfiguration default.fnop.dev stays: you may not\n"
    )


async def test_a_kind_that_cannot_be_listed_is_told(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry, example())
    world.spoils = lambda request: (
        refusal(403, "forbidden") if request.path == "/api/v1/configmaps" else None
    )
    assert await free(world, registry.handlers) == 1
    assert "configmaps cannot be listed: forbidden" in capsys.readouterr().err
    assert "finalizers" not in (world.object() or {})["metadata"]


async def test_an_operator_that_runs_is_told(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry, example(), peering_definition(), PEERING_OBJECT)
    path = "/apis/kopf.dev/v1/clusterkopfpeerings/default"
    alive = {"status": {"ann@desk": {"lifetime": 60}}}
    world.request(ApiRequest("PATCH", path, (), alive, MERGE_PATCH))
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    times = {"renewTime": "2100-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    for name in ("fnop-default", "fnop-other"):
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {**times, "holderIdentity": "pod-1"},
        }
        assert world.request(ApiRequest("POST", leases, (), body)).status == 201
    assert await free(world, registry.handlers, dry_run=True) == 0
    told = capsys.readouterr().err
    assert "pod-1 holds the lease fnop-default in default; stop the operator" in told
    assert "alive in the peering object default: ann@desk; stop the operator" in told
    assert "fnop-other" not in told
    # Without the right to read the whole cluster: the permitted namespaces.
    world.spoils = lambda request: (
        refusal(403) if request.path == "/apis/coordination.k8s.io/v1/leases" else None
    )
    names = ("default",)
    assert await free(world, registry.handlers, dry_run=True, namespaces=names) == 0
    assert "pod-1 holds the lease" in capsys.readouterr().err


@pytest.mark.parametrize("plural", ["leases", "fnopexamples"])
async def test_an_answer_that_is_no_list_is_told(
    registry: Registry, capsys: pytest.CaptureFixture[str], plural: str
) -> None:
    """Something in between has answered; nothing counts as found, or as gone."""
    world = World(registry, example())
    world.spoils = lambda request: (
        ApiResponse(200, {"status": "ok"}) if request.path.endswith(plural) else None
    )
    sentence = f"{plural}.* cannot be listed: no list: "
    if plural == "leases":
        with pytest.raises(ReadProblem, match=sentence):
            await free(world, registry.handlers)
    else:
        assert await free(world, registry.handlers) == 1
        assert re.search(sentence, capsys.readouterr().err)
    assert not world.writes


async def test_marks_that_come_back_are_told(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(registry, example())

    def spoil(request: ApiRequest) -> ApiResponse | None:
        """The operator runs: it puts its finalizer back at once."""
        found = world.object()
        assert found is not None
        if request.method == "GET" and "finalizers" not in found["metadata"]:
            world.change("PATCH", {"metadata": {"finalizers": [MARKER]}})
        return None

    world.spoils = spoil
    assert await free(world, registry.handlers) == 1
    assert "1 object carries marks again; stop the operator" in capsys.readouterr().err


# ----------------------------------------------------------------- in the large


class Big(World):
    """Many objects, visible only in pages, and an impatient server."""

    def __init__(self, registry: Registry, count: int) -> None:
        super().__init__(registry)
        definition = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"
        for number in range(count):
            body = example(f"example-{number}")
            body["metadata"]["finalizers"] = [MARKER]
            assert self.request(ApiRequest("POST", definition, (), body)).status == 201


async def test_pages_and_listings_that_expire(
    registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Big(registry, PAGE_LIMIT + 10)
    expired = iter([True])

    def spoil(request: ApiRequest) -> ApiResponse | None:
        again = any(name == "continue" for name, _ in request.query)
        if again and world.writes and next(expired, False):
            return refusal(410, "expired")
        return None

    world.spoils = spoil
    assert await free(world, registry.handlers) == 0
    assert len(world.writes) == PAGE_LIMIT + 10
    told = capsys.readouterr()
    assert f"fnopexamples.fnop.dev: {PAGE_LIMIT} of {PAGE_LIMIT + 10}" in told.err
    assert f"taken off {PAGE_LIMIT + 10} objects" in told.out


async def test_a_server_in_trouble_is_asked_again(registry: Registry) -> None:
    world = World(registry, example())
    waits: list[float] = []
    away = refusal(0)
    troubles = iter([refusal(503), ApiResponse(429, {}, 9.0), away] * 2)

    def spoil(request: ApiRequest) -> ApiResponse | None:
        trouble = next(troubles, None) if request.method == "PATCH" else None
        if trouble is away:
            world.request(request)  # it has arrived, but no answer comes
            raise Unreachable("no answer", sent=True)
        return trouble

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    world.spoils = spoil
    uninstaller = Uninstaller(world, SETTINGS, pause=pause)
    catalogue, _ = await uninstaller.reader.catalogue()
    kind = catalogue.lookup(KIND)
    assert kind is not None
    assert await uninstaller.strip(kind, None) == (1, {})
    assert await uninstaller.count(kind, None) == (1, 0, 0, 0, 0, 0)
    assert len(waits) == 6
    assert waits.count(9.0) == 2


async def test_a_server_that_stays_away_ends_it(registry: Registry) -> None:
    world = World(registry, example(), example("example-2"))

    async def pause(seconds: float) -> None: ...

    uninstaller = Uninstaller(world, SETTINGS, pause=pause)
    catalogue, _ = await uninstaller.reader.catalogue()
    kind = catalogue.lookup(KIND)
    assert kind is not None

    def spoil(request: ApiRequest) -> ApiResponse | None:
        raise Unreachable("cannot connect", sent=False)

    world.spoils = lambda request: spoil(request) if request.method == "PATCH" else None
    with pytest.raises(Unreachable, match="cannot connect"):
        await uninstaller.strip(kind, None)


async def test_a_server_that_lets_nobody_in_is_told(registry: Registry) -> None:
    world = World(registry)
    world.spoils = lambda request: refusal(401, "Unauthorized")
    with pytest.raises(ReadProblem, match=r"refuses this operator: /api.*Unauthorized"):
        await Uninstaller(world, SETTINGS).reader.catalogue()


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize(
    ("args", "status", "sentence"),
    [
        (["-n", "a", "-A", "op.py"], 2, "use either -n/--namespace or -A"),
        (["-n", "A b", "op.py"], 2, "is neither the name of a namespace"),
        (["--name", "A", "op.py"], 2, "the operator's name 'A'"),
        ([], 2, "name the operator's file"),
        (["none.py"], 2, "declares no handlers of objects"),
        (["broken.py"], 1, "broken.py:1: ZeroDivisionError"),
        (["op.py", "--kubeconfig", "missing"], 1, "missing"),
    ],
)
def test_wrong_calls_get_one_sentence(
    args: list[str], status: int, sentence: str, tmp_path: Any
) -> None:
    (tmp_path / "op.py").write_text(
        "import fnop\n@fnop.on.create('x')\ndef f(**_): ..."
    )
    (tmp_path / "none.py").write_text(
        "import fnop\n@fnop.on.startup()\ndef f(**_): ..."
    )
    (tmp_path / "broken.py").write_text("1 / 0\n")
    done = command("uninstall", *args, folder=tmp_path)
    assert (done.status, done.out) == (status, ""), done
    assert "Traceback" not in done.err
    assert sentence in done.err


def test_the_definition_that_the_examples_use_has_a_status() -> None:
    """Otherwise no test here would see two endpoints."""
    assert "status" in DEFINITION["spec"]["versions"][0]["subresources"]


# ------------------------------------------------------- a storage of its own

BY_PREFIX = fnop.AnnotationStorage("example.com")
BY_FIELD = fnop.StatusStorage("status.example.state")
ITS_OWN = fnop.Storage(
    lambda body: body["metadata"].get("annotations", {}).get("a.com/own"),
    lambda text: {"metadata": {"annotations": {"a.com/own": text}}},
)


@pytest.mark.parametrize("storage", [BY_PREFIX, BY_FIELD, ITS_OWN])
@pytest.mark.parametrize("former", [False, True])
async def test_the_state_is_found_where_the_storage_has_it(
    storage: Any, former: bool, registry: Registry
) -> None:
    settings = Settings(storage=storage)
    world = World(registry, example(), settings=settings)
    assert '"uid"' in str(world.object())
    if former:
        settings = Settings(former_storages=(storage,))
    assert await uninstalled(world, registry.handlers, settings, yes=True) == 0
    found = world.object()
    assert found is not None
    assert '"uid":' not in str([found["status"], found["metadata"].get("annotations")])
    assert found["status"].pop("example", {}) == {}
    assert found["status"] == {"create": {"size": 1}}


def test_startup_handlers_tell_the_storage_and_the_name() -> None:
    registry, called = Registry(), []

    @fnop.on.startup(registry=registry)
    def first(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(storage=BY_PREFIX)

    @fnop.on.startup(registry=registry)
    def another(**_: Any) -> None:
        called.append("one that does not ask for the settings")

    @fnop.on.startup(registry=registry)
    async def second(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(operator="other")

    @fnop.on.startup(registry=registry)
    async def talking(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        await fnop.sleep(1)
        raise AssertionError("it is not answered")

    @fnop.on.startup(registry=registry)
    def failing(settings: fnop.Settings, **_: Any) -> None:
        raise OSError("no disk")

    told, silent = settings_told(registry.handlers, Settings(), Now(0.0, 0.0))
    assert (told.operator, told.storage) == ("other", BY_PREFIX)
    assert [name.rpartition(".")[2] for name in silent] == ["talking", "failing"]
    assert called == []


def test_the_command_asks_the_startup_handlers(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "telling.py").write_text(
        "import fnop\n\n"
        "@fnop.on.startup()\n"
        "def configure(settings, **_):\n"
        "    storage = fnop.AnnotationStorage('example.com')\n"
        "    return settings.replace(storage=storage, namespaces=('elsewhere',))\n\n"
        "@fnop.on.startup()\n"
        "async def ask(settings, **_):\n"
        "    await fnop.sleep(1)\n\n"
        "@fnop.on.create('fnopexamples')\n"
        "def create(**_): ...\n"
    )
    given: list[Settings] = []

    async def connected(handlers: Any, settings: Settings, options: Any) -> int:
        given.append(settings)
        return 0

    monkeypatch.setattr(uninstall_command, "_connected", connected)
    places = ("--state", "former.com", "--state", "status.example.state")
    found = CliRunner().invoke(
        uninstall_command.uninstall,
        [str(tmp_path / "telling.py"), "-n", "here", *places],
    )
    assert found.exit_code == 0, found.output
    assert "the startup handler ask does not tell its settings" in found.output
    (settings,) = given
    assert settings.storage == BY_PREFIX
    assert settings.former_storages == (fnop.AnnotationStorage("former.com"), BY_FIELD)
    assert settings.namespaces == ("here",)
    wrong = CliRunner().invoke(
        uninstall_command.uninstall,
        [str(tmp_path / "telling.py"), "--state", "No Domain"],
    )
    assert wrong.exit_code == 2
    assert "must be a domain in lower case" in wrong.output
