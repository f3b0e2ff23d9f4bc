"""Handlers whose annotations are classes get objects of these."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Annotated, Any, TypedDict

import pydantic
import pytest

import fnop
from fnop.adapters.definitions.classes import definitions_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from fnop.testing import Simulation, review


class Engine(Enum):
    POSTGRES = "postgres"
    MYSQL = "mysql"


@dataclass(frozen=True)
class Backup:
    schedule: str
    every: timedelta = timedelta(days=1)


@dataclass(frozen=True)
class Spec:
    replicas: int = 1
    engine: Engine = Engine.POSTGRES
    backup: Backup | None = None
    from_: Annotated[str, fnop.schema(name="from")] = ""
    labels: dict[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    ready: int
    since: datetime | None = None


@fnop.definition("databases.v1.example.com", conditions=True)
@dataclass(frozen=True)
class Database:
    spec: Spec
    status: Status | None = None


@fnop.definition("users.v1.example.com")
@dataclass(frozen=True)
class User:
    spec: dict[str, str]
    metadata: dict[str, Any] = field(default_factory=dict)


class Model(pydantic.BaseModel):
    model_config = {"frozen": True}
    replicas: int = pydantic.Field(1, alias="replicas")


class Mapped(TypedDict, total=False):
    replicas: int


LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crds(*, loose: bool = False) -> list[dict[str, Any]]:
    """The definitions; loose ones accept what older versions of them have accepted."""
    found = definitions_of([Database, User])
    for each in found if loose else ():
        for version in each["spec"]["versions"]:
            version["schema"] = {"openAPIV3Schema": LOOSE}
    return found


def database(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def outside(spec: Spec, patch: fnop.Patch, **_: Any) -> None:
    patch.status["engine"] = spec.engine.name


def run(registry: Registry, *objects: Any, loose: bool = False) -> Simulation:
    given, calls = crds(loose=loose), {outside: outside}
    return Simulation(registry, crds=given, objects=[*objects], calls=calls).settle()


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_the_annotation_decides(registry: Registry) -> None:
    seen: dict[str, Any] = {}

    @fnop.on.create(Database, registry=registry)
    def made(
        spec: Spec, obj: Database, status: Status | None, body: Any, **_: Any
    ) -> None:
        seen.update(spec=spec, obj=obj, body=body)

    @fnop.on.create(Database, registry=registry)
    def as_model(spec: Model, **_: Any) -> None:
        seen["model"] = spec

    @fnop.on.create(Database, registry=registry)
    def as_mapping(spec: Mapped, meta: fnop.Meta, **_: Any) -> None:
        seen["mapping"] = spec

    run(
        registry,
        database(
            replicas=3,
            engine="mysql",
            labels={"a": "b"},
            backup={"schedule": "0 0 * * *", "every": "1h30m"},
            hosts=["a", "b"],
            **{"from": "x"},
        ),
    )
    backup = Backup("0 0 * * *", timedelta(minutes=90))
    wanted = Spec(3, Engine.MYSQL, backup, "x", {"a": "b"}, ("a", "b"))
    assert seen["spec"] == wanted
    assert seen["obj"].spec == wanted
    assert seen["body"]["spec"]["replicas"] == 3
    assert seen["model"].replicas == 3
    assert seen["mapping"]["engine"] == "mysql"


def test_what_is_given_cannot_be_changed(registry: Registry) -> None:
    found: list[Any] = []

    @fnop.on.create(Database, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def made(spec: Spec, **_: Any) -> None:
        found.append(spec)
        spec.labels["a"] = "c"

    run(registry, database(labels={"a": "b"}))
    assert found[0].labels == {"a": "b"}


def test_an_older_object_fails_its_own_handler_alone(registry: Registry) -> None:
    handled: list[str] = []

    @fnop.reconcile(Database, registry=registry)
    def keep(spec: Spec, name: str, **_: Any) -> fnop.Desired:
        handled.append(name)
        return fnop.desired(status=Status(ready=spec.replicas))

    @fnop.on.create(Database, registry=registry)
    def untyped(**_: Any) -> None: ...

    simulation = run(
        registry,
        database("old", replicas="three", backup={}),
        database("new", replicas=2),
        loose=True,
    )
    assert set(handled) == {"new"}
    old = simulation["databases/old"]
    texts = [each["message"] for each in old["status"]["conditions"]]
    assert any("spec.replicas: 'three' is not a whole number" in e for e in texts), (
        texts
    )
    assert simulation["databases/new"]["status"]["ready"] == 2
    # An edit mends it.
    simulation.edit("databases/old", spec={"replicas": 3, "backup": None}).settle()
    assert simulation["databases/old"]["status"]["ready"] == 3


def test_fields_of_a_value_have_its_type(registry: Registry) -> None:
    seen: list[Any] = []

    @fnop.on.field(Database, field="spec.backup", registry=registry)
    def changed(old: Backup | None, new: Backup | None, **_: Any) -> None:
        seen.append((old, new))

    simulation = run(registry, database(replicas=1))
    simulation.edit("databases/a", spec={"backup": {"schedule": "1"}}).settle()
    later = {"schedule": "2", "every": "2s"}
    simulation.edit("databases/a", spec={"backup": later}).settle()
    one, two = Backup("1"), Backup("2", timedelta(seconds=2))
    assert seen == [(None, one), (one, two)]


def test_filters_indices_and_timers_get_them_too(registry: Registry) -> None:
    seen: list[Any] = []

    def is_large(spec: Spec, **_: Any) -> bool:
        return spec.replicas > 1

    @fnop.index(Database, registry=registry)
    def by_engine(spec: Spec, name: str, **_: Any) -> dict[str, str]:
        return {spec.engine.name: name}

    @fnop.timer(Database, interval=60, when=is_large, registry=registry)
    def tick(obj: Database, by_engine: Any = fnop.INDEX, **_: Any) -> None:
        seen.append((obj.spec.replicas, dict(by_engine)))

    run(registry, database("a", replicas=1), database("b", replicas=2))
    assert seen[0] == (2, {"POSTGRES": ("a", "b")})


def test_an_impure_handler_gets_them_where_it_runs(registry: Registry) -> None:
    fnop.on.create(Database, impure=True, registry=registry)(outside)
    simulation = run(
        registry, database(engine="mysql"), database("b", engine="x"), loose=True
    )
    assert simulation["databases/a"]["status"]["engine"] == "MYSQL"
    assert "engine" not in (simulation["databases/b"].get("status") or {})


def test_a_review_of_an_object_that_does_not_fit_names_the_field(
    registry: Registry,
) -> None:
    @fnop.on.validate(Database, registry=registry)
    def judge(spec: Spec, **_: Any) -> None: ...

    found = review(registry, None, database(hosts=["a", 3]))
    assert (found.code, found.message) == (422, "spec.hosts[1]: 3 is not a text")
    assert found.denials[0].field == "spec.hosts[1]"
    assert review(registry, None, database(hosts=["a"])).allowed


def test_typed_status_changes_only_its_own_fields(registry: Registry) -> None:
    @fnop.on.create(Database, registry=registry)
    def other(patch: fnop.Patch, **_: Any) -> None:
        patch.status["foreign"] = {"kept": True}
        patch.status["since"] = "2020-01-01T00:00:00Z"

    @fnop.on.update(Database, registry=registry)
    def update(status: Status, **_: Any) -> fnop.Effect:
        return fnop.patch(status=replace(status, ready=status.ready + 1, since=None))

    @fnop.reconcile(Database, registry=registry)
    def first(spec: Spec, **_: Any) -> fnop.Desired:
        return fnop.desired(status={"nested": Backup("x")})

    simulation = run(registry, database())
    simulation.edit("databases/a", status={"ready": 1}).settle()
    simulation.edit("databases/a", spec={"replicas": 2}).settle()
    status = simulation["databases/a"]["status"]
    assert status["ready"] == 2
    assert "since" not in status
    assert status["foreign"] == {"kept": True}
    assert status["nested"] == {"schedule": "x", "every": "24h"}


def test_children_are_objects_of_a_defined_class(registry: Registry) -> None:
    @fnop.reconcile(Database, owns=User, registry=registry)
    def users(obj: Database, **_: Any) -> fnop.Desired:
        return fnop.desired(
            [User({"of": host}, {"name": host}) for host in obj.spec.hosts]
        )

    seen: list[Any] = []

    @fnop.reconcile(Database, owns=User, registry=registry)
    def look(children: fnop.Children, **_: Any) -> None:
        found = children[User]
        seen.append({name: each.spec["of"] for name, each in found.items()})

    simulation = run(registry, database(hosts=["x", "y"]))
    assert seen[-1] == {"x": "x", "y": "y"}
    assert simulation["users/x"]["spec"] == {"of": "x"}
    assert simulation["users/y"]["metadata"]["ownerReferences"]


def test_children_are_resources_of_lightkube(registry: Registry) -> None:
    core = pytest.importorskip("lightkube.resources.core_v1")
    meta = pytest.importorskip("lightkube.models.meta_v1")
    seen: list[Any] = []

    @fnop.reconcile(Database, owns=core.ConfigMap, registry=registry)
    def keep(obj: Database, children: fnop.Children, **_: Any) -> fnop.Desired:
        seen.append({k: v.data for k, v in children[core.ConfigMap].items()})
        data = {"replicas": str(obj.spec.replicas)}
        about = meta.ObjectMeta(name="settings")
        return fnop.desired(core.ConfigMap(metadata=about, data=data))

    simulation = run(registry, database(replicas=2))
    assert simulation["configmaps/settings"]["data"] == {"replicas": "2"}
    simulation.edit("databases/a", spec={"replicas": 3}).settle()
    assert seen[0] == {}
    assert {"settings": {"replicas": "2"}} in seen


@pytest.mark.parametrize("hint", [str, int, list[str], "tuple[int, ...]", bytes | None])
def test_an_annotation_that_no_object_fits_is_refused(
    registry: Registry, hint: Any
) -> None:
    def made(spec: Any, **_: Any) -> None: ...

    made.__annotations__["spec"] = hint
    with pytest.raises(RegistrationError, match=r"has 'spec: .*', and it is given an"):
        fnop.on.create(Database, registry=registry)(made)


def test_an_annotation_for_type_checkers_alone_changes_nothing(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    def made(spec: "NotThere", status: fnop.Status, **_: Any) -> None:  # type: ignore[name-defined]  # noqa: F821
        seen.append((spec, status))

    fnop.on.create(Database, registry=registry)(made)
    run(registry, database(replicas=1))
    assert seen[0][0]["replicas"] == 1


def test_a_validation_does_not_deny_the_repair_of_an_object_that_did_not_fit(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.validate(Database, registry=registry, operations=["UPDATE"])
    def strictly(spec: Spec, old: Database, **_: Any) -> None:
        raise fnop.Denied("nothing can be read before")

    @fnop.on.validate(Database, registry=registry)
    def leniently(spec: Spec, old: Database | None, **_: Any) -> None:
        seen.append(old)

    def is_filtered(old: Database, **_: Any) -> bool:
        raise AssertionError(old)

    fnop.on.mutate(
        Database, registry=registry, id="m", operations=["UPDATE"], when=is_filtered
    )(lambda **_: None)
    broken, mended = database(replicas="three"), database(replicas=3)
    found = review(registry, broken, mended)
    assert found.allowed, found.message
    assert seen == [None]
    *not_asked, lenient = found.warnings
    assert "leniently judges without the stored object" in lenient
    for text, handler in zip(not_asked, ("m", "strictly"), strict=True):
        assert f"{handler} is not asked, as it cannot read the stored object" in text
        assert "old.spec.replicas: 'three' is not a whole number" in text
    # What is stored stays updatable, what is written has to fit.
    assert review(registry, broken, database(replicas="three", hosts=["x"])).allowed
    assert not review(registry, broken, database(replicas="four")).allowed


def test_an_update_handler_may_do_without_what_it_cannot_read(
    registry: Registry,
) -> None:
    seen: list[Any] = []

    @fnop.on.update(Database, registry=registry)
    def lenient(spec: Spec, old: Database | None, **_: Any) -> None:
        seen.append((spec.replicas, old))

    @fnop.on.update(Database, registry=registry)
    def strict(spec: Spec, old: Database, **_: Any) -> None:
        raise AssertionError(old)

    simulation = run(registry, database(replicas="three"), loose=True)
    simulation.edit("databases/a", spec={"replicas": 3}).settle()
    assert seen == [(3, None)]
    lines = [line for line in simulation.log if "strict" in line]
    assert any("annotated as '... | None', old is None then" in line for line in lines)


@pytest.mark.parametrize(
    ("argument", "hint", "why"),
    [
        ("spec", Status, "that is the class of Database.status"),
        ("spec", Database, "that is the class of the whole object"),
        ("status", Spec | None, "that is the class of Database.spec"),
        ("obj", Spec, "that is the class of Database.spec"),
        ("body", Status, "that is the class of Database.status"),
        ("old", Spec | None, "that is the class of Database.spec"),
        ("old", Database, r"annotate it as 'Database \| None'"),
    ],
)
def test_an_annotation_of_another_part_is_refused(
    registry: Registry, argument: str, hint: Any, why: str
) -> None:
    def judge(spec: Any, status: Any, obj: Any, body: Any, old: Any, **_: Any) -> None:
        """Annotated below."""

    judge.__annotations__[argument] = hint
    with pytest.raises(RegistrationError, match=why):
        fnop.on.validate(Database, registry=registry)(judge)


def test_a_patch_takes_the_values_of_typed_fields(registry: Registry) -> None:
    @fnop.on.mutate(Database, registry=registry)
    def fill(spec: Spec, patch: fnop.Patch, **_: Any) -> None:
        patch.spec["engine"] = Engine.MYSQL
        patch.spec["backup"] = {"schedule": "1", "every": timedelta(minutes=5)}

    @fnop.on.mutate(Database, registry=registry)
    def change(patch: fnop.Patch, **_: Any) -> None:
        def grow(body: dict[str, Any]) -> None:
            body["spec"]["backup"]["every"] = timedelta(hours=1)

        patch.fns.append(grow)

    @fnop.on.create(Database, registry=registry)
    def made(**_: Any) -> fnop.Effect:
        since = datetime(2030, 1, 1, tzinfo=UTC)
        return fnop.patch(status={"ready": 1, "since": since})

    simulation = run(registry, database())
    found = simulation["databases/a"]
    assert found["spec"]["engine"] == "mysql"
    assert found["spec"]["backup"] == {"schedule": "1", "every": "1h"}
    assert found["status"]["since"] == "2030-01-01T00:00:00.000000Z"


def test_all_misfits_are_told_and_each_is_weighed_for_itself(
    registry: Registry,
) -> None:
    @fnop.on.validate(Database, registry=registry)
    def judge(spec: Spec, **_: Any) -> None: ...

    class Listed(pydantic.BaseModel):
        ports: list[int] = []

    @fnop.on.validate(Database, registry=registry)
    def judge_model(spec: Listed, **_: Any) -> None: ...

    both = database(replicas="three", hosts=["a", 3])
    found = review(registry, None, both)
    fields = {each.field for each in found.denials}
    assert fields == {"spec.replicas", "spec.hosts[1]"}
    # A repair of one of two passes, a further misfit does not.
    one = review(registry, both, database(replicas=3, hosts=["a", 3]))
    assert one.allowed
    assert len(one.warnings) == 1
    worse = review(registry, database(replicas="three"), both)
    assert [each.field for each in worse.denials] == ["spec.hosts[1]"]
    ports = database(ports=["x"]), database(ports=["x", "y"])
    assert [each.field for each in review(registry, *ports).denials] == [
        "spec.ports[1]"
    ]


def is_small(spec: Spec, **_: Any) -> bool:
    return spec.replicas < 9


@pytest.mark.parametrize(
    "options",
    [{}, {"operations": ["DELETE"]}, {"when": is_small}],
    ids=["all", "deletions", "filtered"],
)
def test_a_stored_misfit_neither_stays_for_ever_nor_is_frozen(
    registry: Registry, options: dict[str, Any]
) -> None:
    @fnop.on.validate(Database, registry=registry, **options)
    def judge(spec: Spec, userinfo: Any, **_: Any) -> None: ...

    @fnop.on.mutate(Database, registry=registry)
    def change(spec: Spec, **_: Any) -> None: ...

    broken = database(replicas="three")
    labelled = {**broken, "metadata": {**broken["metadata"], "labels": {"a": "b"}}}
    assert review(registry, broken, labelled).allowed
    assert review(registry, broken, None).allowed
    assert review(registry, broken, database(replicas=2)).allowed
    assert not review(registry, None, broken).allowed


@pytest.mark.parametrize("error", [ValueError, KeyError, AssertionError, fnop.Denied])
def test_whatever_a_class_raises_is_a_misfit(
    registry: Registry, error: type[Exception]
) -> None:
    @dataclass(frozen=True)
    class Picky:
        replicas: int = 1

        def __post_init__(self) -> None:
            if self.replicas == 13:
                raise error("unlucky")

    @dataclass(frozen=True)
    class Whole:
        spec: Picky

    def judge(spec: Any, old: Any, **_: Any) -> None: ...

    judge.__annotations__ |= {"spec": Picky, "old": Whole | None}
    fnop.on.validate(Database, registry=registry)(judge)
    assert review(registry, database(replicas=13), database(replicas=2)).allowed
    found = review(registry, None, database(replicas=13))
    assert (found.code, found.denials[0].field) == (422, "spec")
    assert "unlucky" in found.message


@pytest.mark.parametrize("spec", ["x", ["a"], 3])
def test_a_spec_that_is_no_mapping_is_a_misfit(registry: Registry, spec: Any) -> None:
    @fnop.on.validate(Database, registry=registry)
    def untyped(spec: Any, **_: Any) -> None: ...

    found = review(registry, None, {**database(), "spec": spec})
    assert (found.code, found.denials[0].field) == (422, "spec")
    seen: list[Any] = []
    others = Registry()

    @fnop.on.create(Database, registry=others)
    def typed(spec: Spec, **_: Any) -> None:
        seen.append(spec)

    @fnop.on.create(Database, registry=others)
    def plain(spec: Any, **_: Any) -> None:
        seen.append(dict(spec))

    run(others, {**database(), "spec": spec}, loose=True)
    assert seen == [{}]


def test_with_a_field_old_and_new_of_a_review_are_whole_objects(
    registry: Registry,
) -> None:
    def judge(old: Any, new: Any, **_: Any) -> None: ...

    judge.__annotations__["new"] = Spec
    with pytest.raises(RegistrationError, match=r"the class of Database\.spec"):
        fnop.on.validate(Database, field="spec", registry=registry)(judge)
    judge.__annotations__["new"] = timedelta
    with pytest.raises(RegistrationError, match="it is given an object"):
        fnop.on.validate(Database, field="spec.every", registry=registry)(judge)


def test_parts_of_a_common_class_and_subresources_are_no_mistakes(
    registry: Registry,
) -> None:
    @dataclass(frozen=True)
    class Common:
        a: int = 0

    @dataclass(frozen=True)
    class Own(Common):
        b: int = 0

    @fnop.definition("parts.v1.example.com")
    @dataclass(frozen=True)
    class Part:
        spec: Own
        status: Common = Common()

    def judge(spec: Any, old: Any, **_: Any) -> None: ...

    judge.__annotations__ |= {"spec": Common, "old": Part}
    fnop.on.validate(Part, subresource="status", registry=registry)(judge)


def test_a_handler_that_cannot_read_what_was_stored_says_so(
    registry: Registry,
) -> None:
    @fnop.on.validate(Database, registry=registry)
    def shrinks_not(spec: Spec, old: Database | None, **_: Any) -> None:
        if old is not None and spec.replicas < old.spec.replicas:
            raise fnop.Denied("it must not shrink", field="spec.replicas")

    stored = {**database(replicas=5), "status": {"ready": "x"}}
    found = review(registry, stored, {**database(replicas=1), "status": {"ready": 1}})
    assert found.allowed
    (text,) = found.warnings
    assert "judges without the stored object, which it cannot read: old.status" in text
    assert not review(registry, database(replicas=5), database(replicas=1)).allowed


@pytest.mark.parametrize("lasts", [False, True])
def test_daemons_and_timers_begin_again_when_the_object_fits(
    registry: Registry, lasts: bool
) -> None:
    seen: list[int] = []

    if lasts:

        @fnop.daemon(Database, registry=registry)
        async def watch(spec: Spec, stopped: fnop.Stopped, **_: Any) -> None:
            seen.append(spec.replicas)
            await stopped.wait(10_000)

    else:

        @fnop.timer(Database, interval=600, registry=registry)
        def tick(spec: Spec, **_: Any) -> None:
            seen.append(spec.replicas)

    simulation = run(registry, database(replicas="three"), loose=True)
    simulation.wait(30)
    assert seen == []
    simulation.edit("databases/a", spec={"replicas": 3}).wait(30)
    assert seen == [3]


def test_marks_that_cannot_be_hashed_are_for_others(registry: Registry) -> None:
    @dataclass(frozen=True)
    class Marked:
        replicas: Annotated[int, {"doc": "how many"}] = 1

    def judge(spec: Any, **_: Any) -> None:
        assert spec.replicas == 2

    judge.__annotations__["spec"] = Annotated[Marked, {"doc": "all"}]
    fnop.on.validate(Database, registry=registry)(judge)
    assert review(registry, None, database(replicas=2)).allowed


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (timedelta.max, "292 years"),
        (-timedelta(days=200_000), "292 years"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "year"),
    ],
    ids=["long", "negative", "late"],
)
def test_values_that_cannot_be_written_are_refused_with_their_place(
    value: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=rf"merge\.spec\.at: .*{why}"):
        fnop.patch(spec={"at": value})


def test_values_alone_are_as_in_classes() -> None:
    class Deep(Enum):
        ONE = Engine.MYSQL
        SPAN = timedelta(hours=1)

    found = fnop.patch(
        spec={"set": frozenset(("b", "a")), "deep": [Deep.ONE, Deep.SPAN]},
        metadata={"labels": {"engine": Engine.MYSQL}},
    )
    assert found.merge == {
        "spec": {"set": ["a", "b"], "deep": ["mysql", "1h"]},
        "metadata": {"labels": {"engine": "mysql"}},
    }
