"""Which objects a handler is for: broad selectors, owners, combined filters."""

from __future__ import annotations

import doctest
from collections import deque
from typing import Any

import pytest

import fnop
from fnop.core.api import resources
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import EVERYTHING, Resource, Selector
from fnop.core.handlers.declare import filters
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from tests.simulations import Scenario, example
from tests.stories import Story

KIND = "fnopexamples"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("module", [filters, resources])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# ------------------------------------------------------------ broad selectors

VERBS = ("get", "list", "watch", "patch")


def served(group: str, plural: str, *, version: str = "v1", **more: Any) -> Resource:
    kind = plural[:-1].title()
    return Resource(group, version, plural, kind, kind.lower(), verbs=VERBS, **more)


PODS = served("", "pods", categories=("all",))
MAPS = served("", "configmaps")
EVENTS = served("", "events")
DEPLOYMENTS = served("apps", "deployments", categories=("all",))
FOOS = served("foo.example.com", "foos")
FOOS_OLD = served("foo.example.com", "foos", version="v1beta1", preferred=False)
BARS = served("bar.example.com", "bars", categories=("mine",))
# A kind has the name of a category, and a category the name of a kind.
SEVERAL = served("several.example.com", "bars")
OTHER = served("other.example.com", "others", categories=("bars",))
SERVED = (PODS, MAPS, EVENTS, DEPLOYMENTS, FOOS, FOOS_OLD, BARS)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        (Selector.of(EVERYTHING), {PODS, MAPS, DEPLOYMENTS, FOOS, BARS}),
        (Selector.of(EVERYTHING, group="apps"), {DEPLOYMENTS}),
        (Selector.of(category="all"), {PODS, DEPLOYMENTS}),
        (Selector.of("*.*.example.com"), {FOOS, BARS}),
        (Selector.of("*.foo.example.com"), {FOOS}),
        (Selector.of("*.v1beta1.foo.example.com"), {FOOS_OLD}),
        (Selector.of("*s.apps"), {DEPLOYMENTS}),
        (Selector.of("???s"), {PODS, FOOS, BARS}),
        (Selector.of("event?"), set()),
        (Selector.of("events"), {EVENTS}),
        (Selector.of(lambda resource: resource.group == ""), {PODS, MAPS}),
        # A predicate sees every version.
        (Selector.of(lambda resource: resource.plural == "foos"), {FOOS, FOOS_OLD}),
    ],
    ids=lambda value: str(value) if isinstance(value, Selector) else "",
)
def test_k_2_broad_selectors(selector: Selector, found: set[Resource]) -> None:
    assert set(Catalogue(SERVED).find(selector)) == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("all", {PODS, DEPLOYMENTS}),
        ("mine", {BARS}),
        ("MINE", set()),
        ("mine.bar.example.com", set()),  # a category is of no group
        ("bars", {BARS, SEVERAL}),
    ],
)
def test_a_name_that_no_kind_has_may_be_that_of_a_category(
    name: str, found: set[Resource]
) -> None:
    """As in `kubectl get all`."""
    catalogue, selector = Catalogue((*SERVED, SEVERAL, OTHER)), Selector.of(name)
    assert set(catalogue.find(selector)) == found
    assert catalogue.is_broad(selector) == (name in ("all", "mine"))


def test_a_handler_of_a_category_sees_its_kinds(registry: Registry) -> None:
    seen: set[str] = set()

    @fnop.on.event("all", registry=registry)
    def spy(resource: Resource, **_: Any) -> None:
        seen.add(resource.plural)

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    run = Scenario(registry, [example(), pod])
    run.settle()
    assert "pods" in seen
    assert "fnopexamples" not in seen
    assert run.exit is None
    assert not any("ambiguous" in line for line in run.lines)


@pytest.mark.parametrize("words", [(EVERYTHING, "pods"), (len, "pods"), ()])
def test_a_broad_selector_stands_alone(words: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Selector.of(*words)


def test_a_handler_of_everything_sees_every_kind(registry: Registry) -> None:
    seen: set[str] = set()

    @fnop.on.event(EVERYTHING, registry=registry)
    def spy(resource: Resource, **_: Any) -> None:
        seen.add(resource.plural)

    run = Scenario(registry, [example()])
    run.settle()
    assert {"fnopexamples", "namespaces", "customresourcedefinitions"} <= seen
    assert "events" not in seen


def test_a_predicate_chooses_kinds(registry: Registry) -> None:
    seen: set[str] = set()

    @fnop.on.event(
        lambda resource: resource.plural.startswith("fnop"), registry=registry
    )
    def spy(resource: Resource, **_: Any) -> None:
        seen.add(resource.plural)

    Scenario(registry, [example()]).settle()
    assert seen == {"fnopexamples"}


def test_a_kind_that_cannot_be_watched_is_left_out(registry: Registry) -> None:
    reviews = Resource("", "v1", "reviews", "Review", verbs=("create",))

    @fnop.on.create(EVERYTHING, registry=registry)
    def create(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle()
    assert all(reviews.plural not in line for line in run.lines)


# --------------------------------------------------------------------- owners


def config_map(name: str, *owners: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def reference(kind: str, name: str, **more: Any) -> dict[str, Any]:
    version = "fnop.dev/v1" if kind == "FnopExample" else "v1"
    return {"apiVersion": version, "kind": kind, "name": name, "uid": "u-1", **more}


def test_owner_is_for_children_of_a_kind_alone(registry: Registry) -> None:
    seen: list[tuple[str, str]] = []

    @fnop.on.event("configmaps", owner=KIND, registry=registry)
    def spy(name: str, owner: fnop.Target | None, **_: Any) -> None:
        seen.append((name, owner.name if owner else ""))

    @fnop.on.event(KIND, registry=registry)
    def known(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    found = run.get(KIND)
    assert found is not None
    uid = found["metadata"]["uid"]
    run.apply(
        config_map("child", reference("FnopExample", "example-1", uid=uid)),
        config_map("other", reference("Secret", "s")),
        config_map("orphan"),
    )
    run.settle()
    assert [pair for pair in seen if pair[0] in ("child", "other", "orphan")] == [
        ("child", "example-1")
    ]


def test_a_spy_on_children_can_patch_their_owner(registry: Registry) -> None:
    @fnop.on.event("configmaps", owner=KIND, registry=registry)
    def spy(body: Any, owner: fnop.Target | None, **_: Any) -> Any:
        return fnop.patch(owner, status={"seen": body["data"]["word"]})

    run = Scenario(registry, [example()])
    found = run.get(KIND)
    assert found is not None
    owner = reference("FnopExample", "example-1", uid=found["metadata"]["uid"])
    run.apply({**config_map("child", owner), "data": {"word": "hello"}})
    run.settle()
    found = run.get(KIND)
    assert found is not None
    assert found["status"] == {"seen": "hello"}


def test_without_owner_the_argument_is_the_controller(registry: Registry) -> None:
    seen: list[fnop.Target | None] = []

    @fnop.on.event("configmaps", labels={"mine": "yes"}, registry=registry)
    def spy(owner: fnop.Target | None, **_: Any) -> None:
        seen.append(owner)

    run = Scenario(registry, [example()])
    found = run.get(KIND)
    assert found is not None
    uid = found["metadata"]["uid"]
    mine = {"labels": {"mine": "yes"}}
    for name, references in (
        ("none", []),
        ("plain", [reference("FnopExample", "example-1", uid=uid)]),
        ("led", [reference("FnopExample", "example-1", uid=uid, controller=True)]),
    ):
        child = config_map(name, *references)
        run.apply({**child, "metadata": {**child["metadata"], **mine}})
    run.settle()
    names = [target.name if target else None for target in seen]
    assert sorted(names, key=str) == [None, None, "example-1"]


def test_a_change_handler_can_ask_for_an_owner(registry: Registry) -> None:
    created: list[str] = []

    @fnop.on.create("configmaps", owner=("fnop.dev", "fnopexamples"), registry=registry)
    def create(name: str, **_: Any) -> None:
        created.append(name)

    run = Scenario(registry, [example()])
    found = run.get(KIND)
    assert found is not None
    uid = found["metadata"]["uid"]
    run.apply(
        config_map("child", reference("FnopExample", "example-1", uid=uid)),
        config_map("orphan"),
    )
    run.settle()
    assert created == ["child"]


def test_an_owner_of_a_kind_that_is_not_served_is_waited_for(
    registry: Registry,
) -> None:
    @fnop.on.event("configmaps", owner="unicorns", registry=registry)
    def spy(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle(seconds=1)
    assert any("unicorns" in line for line in run.lines)


def test_an_owner_that_names_no_kind_is_refused(registry: Registry) -> None:
    def fn(**_: Any) -> None: ...

    with pytest.raises(RegistrationError, match="owner="):
        fnop.on.event("pods", owner="", registry=registry)(fn)


# ------------------------------------------------------------------- combined


def is_small(value: Any, **_: Any) -> bool:
    return isinstance(value, int) and value < 10


def is_even(value: Any, **_: Any) -> bool:
    return isinstance(value, int) and value % 2 == 0


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        (fnop.all_([is_small, is_even]), [4]),
        (fnop.any_([is_small, is_even]), [3, 4, 12]),
        (fnop.none_([is_small, is_even]), [13]),
        (fnop.not_(is_small), [12, 13]),
        (fnop.all_([is_small, fnop.not_(is_even)]), [3]),
    ],
)
def test_k_2b_1_combinations_of_values(
    registry: Registry, wanted: Any, seen: list[int]
) -> None:
    found: list[int] = []

    @fnop.on.create(KIND, field="spec.size", value=wanted, registry=registry)
    def create(spec: Any, **_: Any) -> None:
        found.append(spec["size"])

    objects = [example(f"e{size}", size=size) for size in (3, 4, 12, 13)]
    Scenario(registry, objects).settle()
    assert sorted(found) == seen


def test_k_2b_1_combinations_of_when(registry: Registry) -> None:
    found: list[str] = []

    def is_named(name: str, **_: Any) -> bool:
        return name.startswith("a")

    def has_size(spec: Any) -> bool:
        return "size" in spec

    wanted = fnop.all_([is_named, fnop.not_(has_size)])

    @fnop.on.create(KIND, when=wanted, registry=registry)
    def create(name: str, **_: Any) -> None:
        found.append(name)

    Scenario(registry, [example("a1"), example("a2", size=1), example("b1")]).settle()
    assert found == ["a1"]


def test_a_selector_that_fails_is_its_handler_s_error_alone() -> None:
    registry = Registry()
    seen: list[str] = []

    @fnop.on.event(lambda resource: 1 / 0 > 0, registry=registry)
    def never(**_: Any) -> None: ...

    @fnop.on.create("fnopexamples", registry=registry)
    def create(name: str, **_: Any) -> None:
        seen.append(name)

    story = Story(registry, [example()])
    assert story.settle()
    assert seen == ["example-1"]
    (line,) = story.said_at("error")
    assert "never is called for no kind: its selector failed: ZeroDivisionError" in line


# ------------------------------------------- further arguments of filters


@pytest.fixture
def indexed(registry: Registry) -> Registry:
    """With an index of config maps: filters can ask for it as `maps`."""

    @fnop.index("configmaps", registry=registry)
    def maps(name: str, **_: Any) -> dict[str, int]:
        return {name: 1}

    return registry


def is_mapped(name: str, maps: Any = fnop.INDEX, **_: Any) -> bool:
    return name in maps


def test_k_3_1_a_filter_sees_the_memo_of_the_operator_and_of_the_object(
    registry: Registry,
) -> None:
    called: list[str] = []

    @fnop.on.startup(registry=registry)
    def startup(**_: Any) -> fnop.Effect:
        return fnop.remember(served=("a", "b"))

    @fnop.on.create(
        KIND, when=lambda memo, name, **_: name in memo.served, registry=registry
    )
    def create(name: str, **_: Any) -> fnop.Effect:
        called.append(name)
        return fnop.remember(created=True)

    @fnop.on.event(
        KIND,
        labels={"seen": lambda value, memo, **_: bool(value and memo.get("created"))},
        registry=registry,
    )
    def spy(name: str, **_: Any) -> None:
        called.append(f"spy {name}")

    run = Scenario(registry, [example(name) for name in "abc"])
    assert run.settle()
    assert called == ["a", "b"]
    for name in "ac":
        run.edit(KIND, name, metadata={"labels": {"seen": "yes"}})
    assert run.settle()
    assert called == ["a", "b", "spy a"]


def test_k_3_1_the_memo_of_a_filter_is_read_only(registry: Registry) -> None:
    def change(memo: Any, **_: Any) -> bool:
        memo["a"] = 1
        return True

    @fnop.on.create(KIND, when=change, registry=registry)
    def create(**_: Any) -> None:
        raise AssertionError("its filter fails")

    run = Scenario(registry, [example()])
    assert run.settle()
    (line,) = [line for line in run.lines if "a filter of" in line]
    assert "read-only" in line


def test_k_3_1_a_filter_sees_indices_that_are_full(indexed: Registry) -> None:
    """However late their kind is listed; no object passes before."""
    called: list[str] = []

    @fnop.on.create(KIND, when=is_mapped, registry=indexed)
    def create(name: str, **_: Any) -> None:
        called.append(f"create {name}")

    @fnop.on.event(KIND, when=is_mapped, registry=indexed)
    def spy(name: str, **_: Any) -> None:
        called.append(f"spy {name}")

    @fnop.daemon(KIND, when=is_mapped, finalizer=False, registry=indexed)
    async def daemon(name: str, **_: Any) -> None:
        called.append(f"daemon {name}")

    story = Story(indexed, [example("a"), example("b"), config_map("a")])
    story.late_lists = True
    story.settle(seconds=1)
    (stream,) = (number for key, number in story.streams.items() if "configmap" in key)
    maps = [
        each for each in story.lists if getattr(each.input, "stream", None) == stream
    ]
    assert maps, "the listing of config maps is late"
    story.lists = deque(each for each in story.lists if each not in maps)
    story.let_lists_through().settle(seconds=1)
    assert len(story.machine.state.objects.records) == 2
    assert called == []
    story.feed(*maps)
    assert story.settle()
    assert sorted(set(called)) == ["create a", "daemon a", "spy a"]


def test_k_3_1_a_change_of_an_index_counts_from_the_object_s_next_event(
    indexed: Registry,
) -> None:
    called: list[int] = []

    @fnop.on.create(KIND, registry=indexed)
    def create(**_: Any) -> None: ...

    @fnop.on.update(KIND, when=is_mapped, registry=indexed)
    def update(new: Any, **_: Any) -> None:
        called.append(new["spec"]["size"])

    run = Scenario(indexed, [example("a", size=0)])
    assert run.settle()
    for size, mapped in enumerate((False, True, True, False), 1):
        if mapped and not run.get("configmaps", "a"):
            run.apply(config_map("a"))
        elif not mapped and run.get("configmaps", "a"):
            run.delete("configmaps", "a")
        assert run.settle()
        assert called == [each for each in (2, 3) if each < size]
        run.edit(KIND, "a", spec={"size": size})
        assert run.settle()
    assert called == [2, 3]


def test_k_3_1_a_daemon_ends_when_it_is_looked_at_again(indexed: Registry) -> None:
    called: list[str] = []

    @fnop.daemon(KIND, when=is_mapped, registry=indexed)
    async def daemon(stopped: fnop.Stopped, **_: Any) -> None:
        called.append("begins")
        while not stopped:
            await fnop.sleep(1000)
        called.append(stopped.reason)

    run = Scenario(indexed, [config_map("a"), example("a")])
    run.settle(seconds=10)
    run.delete("configmaps", "a")
    run.settle(seconds=10)
    assert called == ["begins"]
    run.edit(KIND, "a", spec={"size": 1})
    run.settle(seconds=10)
    assert called == ["begins", "filters_mismatch"]
    found = run.get(KIND, "a")
    assert found is not None
    assert "finalizers" not in found["metadata"]


def test_k_3_1_a_filter_of_changes_sees_their_reason(registry: Registry) -> None:
    called: list[tuple[str, str]] = []

    def only(*reasons: str) -> Any:
        return lambda reason, type, **_: reason in reasons and type is None

    def note(param: str, reason: str, **_: Any) -> None:
        called.append((param, reason))

    options: dict[str, Any] = {"registry": registry, "param": "field", "id": "f"}
    fnop.on.field(KIND, field="spec.size", when=only("update"), **options)(note)
    options |= {"param": "resume", "id": "r"}
    fnop.on.resume(KIND, when=only("update"), **options)(note)
    for name in ("create", "update", "delete"):
        options |= {"param": name, "id": name}
        getattr(fnop.on, name)(KIND, when=only(name), **options)(note)
    run = Scenario(registry, [example(size=1)])
    assert run.settle()
    assert called == [("create", "create")]
    found = run.get(KIND)
    assert found is not None
    assert found["metadata"]["finalizers"], "for the deletion to come"
    run.crash()
    assert run.settle()
    assert called == [("create", "create")]
    run.edit(KIND, spec={"size": 2})
    run.crash()
    assert run.settle()
    assert called[1:] == [
        ("field", "update"),
        ("resume", "update"),
        ("update", "update"),
    ]
    run.delete(KIND)
    assert run.settle()
    assert called[4:] == [("delete", "delete")]
    assert run.get(KIND) is None


def test_k_3_1_an_object_of_which_no_reason_fits_is_not_touched(
    registry: Registry,
) -> None:
    @fnop.on.field(
        KIND,
        field="spec.size",
        when=lambda reason, **_: reason == "none",
        registry=registry,
    )
    def changed(**_: Any) -> None:
        raise AssertionError("it is for nothing")

    run = Scenario(registry, [example(size=1)])
    assert run.settle()
    assert run.writes == []


def test_k_3_1_parts_and_delays_ask_for_the_same(indexed: Registry) -> None:
    called: list[Any] = []

    @fnop.on.create(KIND, registry=indexed)
    def create(**_: Any) -> None:
        @fnop.subhandler(
            id="one",
            when=lambda reason, maps=fnop.INDEX, **_: (
                reason == "create" and "a" in maps
            ),
        )
        def one(**_: Any) -> None:
            called.append("one")

        @fnop.subhandler(id="other", when=fnop.not_(is_mapped))
        def other(**_: Any) -> None:
            called.append("other")

    @fnop.timer(
        KIND,
        initial_delay=lambda memo, maps=fnop.INDEX, **_: 60 * len(maps) + len(memo),
        registry=indexed,
    )
    def late(**_: Any) -> None:
        called.append(round(run.clock.elapsed / 60))

    run = Scenario(indexed, [config_map("a"), config_map("b"), example("a")])
    maps = len(run.objects("configmaps")) + 1  # the ConfigMap of every namespace
    assert maps == 3
    assert run.settle()
    assert called[0] == "one"
    assert called[1] >= 2


def test_k_3_1_kwargs_of_a_filter_get_all_that_there_is(indexed: Registry) -> None:
    seen: list[set[str]] = []

    def all_of_it(**kwargs: Any) -> bool:
        seen.append(set(kwargs))
        return True

    fnop.on.create(KIND, when=all_of_it, registry=indexed, id="x")(is_mapped)
    filters = indexed.handlers[-1].filters
    assert filters.asks_reason
    assert filters.asks_indices
    assert Scenario(indexed, [example()]).settle()
    assert seen
    for names in seen:
        assert names >= {"memo", "reason", "maps", "spec", "name", "now", "param"}
        assert names.isdisjoint(("logger", "patch", "retry", "stopped"))


def test_k_3_1_filters_that_do_not_ask_are_no_others(indexed: Registry) -> None:
    @fnop.on.event(KIND, when=lambda spec, memo, **_: True, registry=indexed)
    @fnop.on.create(KIND, labels={"a": "b"}, registry=indexed)
    def handler(**_: Any) -> None: ...

    for each in indexed.handlers:
        assert not each.filters.asks_reason
        assert not each.filters.asks_indices
