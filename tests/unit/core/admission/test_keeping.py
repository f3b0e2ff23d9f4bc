"""Keepers of webhook configurations: their writes, with other writers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.admission.configurations import (
    Group,
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.keeping import (
    DOUBT_SECONDS,
    LOOK_SECONDS,
    MANAGED_BY,
    OWNER,
    RETURN_SECONDS,
    SERVED_BY,
    Keeper,
    Move,
    farewell,
    unreached,
)
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.values.merge import applied
from fnop.effects import Create, Patch
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json

CLAIMS = Resource("example.com", "v1", "claims", "Claim", "claim", namespaced=True)
SERVED = Catalogue((CLAIMS,))
NAME = "default.fnop.dev"
ROLE = Role.VALIDATE


def groups(registry: Registry | None = None, **how: Any) -> tuple[Group, ...]:
    registry = registry or Registry()

    @fnop.on.validate("claims.example.com", registry=registry, id="kept", **how)
    def kept(**_: Any) -> None:
        pass

    return groups_of(registry.handlers)


def wanted(url: str = "https://one", **how: Any) -> dict[str, Any]:
    about = Registration(NAME, {"url": url})
    return configurations_of(groups(**how), SERVED, about)[ROLE]


class Server:
    """One configuration on an API server, which adds defaults and drops fields."""

    def __init__(self, *, drops: Sequence[str] = ()) -> None:
        self.object: dict[str, Any] | None = None
        self.version = self.made = 0
        self.drops = drops

    def put(self, found: dict[str, Any]) -> dict[str, Any]:
        """Store it; what changes nothing has no new version."""
        found = copy.deepcopy(found)
        for each in found.get("webhooks") or ():
            for name in self.drops:
                each.pop(name, None)
            each.setdefault("matchPolicy", "Equivalent")
            if (service := each["clientConfig"].get("service")) is not None:
                service.setdefault("port", 443)
        if self.object is None:
            self.made += 1
            found["metadata"]["uid"] = str(self.made)
        if found != self.object:
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
        self.object = found
        return copy.deepcopy(found)

    def perform(self, effect: Create | Patch) -> dict[str, Any] | None:
        """The answer; None for a conflict."""
        if isinstance(effect, Create):
            return self.put(thaw_json(effect.manifest)) if self.object is None else None
        merge = thaw_json(effect.merge)
        version = merge["metadata"].pop("resourceVersion")
        if self.object is None or self.object["metadata"]["resourceVersion"] != version:
            return None
        return self.put(applied(merge, self.object))

    @property
    def urls(self) -> list[str]:
        found = self.object or {}
        return [each["clientConfig"]["url"] for each in found["webhooks"]]

    @property
    def listed(self) -> list[str]:
        found = (self.object or {})["metadata"].get("annotations") or {}
        return (found.get(SERVED_BY) or "").split()


class Process:
    """A process that keeps the configuration, and the moves that it makes."""

    def __init__(
        self, server: Server, id: str, wish: dict[str, Any], namespace: str = ""
    ) -> None:
        self.server, self.wish = server, wish
        self.keeper = Keeper("default", id, ROLE, namespace)
        self.groups = groups()
        self.problem = self.note = self.mended = ""
        self.stays: tuple[str, ...] = ()

    def look(self, now: float, living: Sequence[str] | None = None) -> bool:
        """Look once; whether it has written.

        `living` are the addresses that answer; None for all.
        """
        stored = copy.deepcopy(self.server.object)
        rival = self.keeper.rival(self.wish, stored, now)
        answers = rival is None or living is None or rival["url"] in living
        move = self.keeper.look(self.wish, stored, now, answers=answers)
        return self._make(move)

    def leave(self, now: float) -> bool:
        """Make a move of the end; whether that was the last one."""
        move = self.keeper.leave(self.groups, copy.deepcopy(self.server.object), now)
        self._make(move)
        return move.last

    def _make(self, move: Move) -> bool:
        self.problem, self.note, self.mended = move.problem, move.note, move.mended
        self.stays = move.stays
        if move.effect is None:
            self.keeper = move.keeper
            return False
        answer = self.server.perform(move.effect)
        assert answer is not None
        self.keeper = move.keeper
        if move.writes:
            self.keeper = self.keeper.wrote(self.wish, answer)
        return True


@pytest.fixture
def server() -> Server:
    return Server()


def of_another_kind(url: str) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(wanted(url))
    found["webhooks"][0]["rules"][0]["resources"] = ["orders"]
    return found


def test_an_operator_of_other_kinds_is_not_a_newer_version() -> None:
    server = Server()
    first = Process(server, "1", wanted("https://a"))
    other = Process(server, "2", of_another_kind("https://b"))
    first.look(0.0)
    for second in range(1, 20):
        first.look(float(second))
        other.look(float(second))
    assert server.urls == ["https://a/kept"]
    assert server.listed == ["1"]
    assert "another operator 'default', whose webhooks are about" in other.problem
    first.leave(20.0)
    first.leave(20.0 + RETURN_SECONDS)
    other.look(30.0)
    assert server.urls == ["https://b/kept"]


def test_versions_behind_one_service_may_be_of_other_kinds() -> None:
    server = Server()
    service = {"namespace": "prod", "name": "claims", "path": "/kept"}
    first, second = copy.deepcopy(wanted()), of_another_kind("https://b")
    for each in (first, second):
        each["webhooks"][0]["clientConfig"] = {"service": dict(service)}
    Process(server, "1", first, "prod").look(0.0)
    other = Process(server, "2", second, "prod")
    assert other.look(1.0)
    assert not other.problem
    assert server.object is not None
    assert server.object["webhooks"][0]["rules"][0]["resources"] == ["orders"]


def test_what_a_killed_operator_of_other_kinds_has_left_is_taken_over() -> None:
    server = Server()
    Process(server, "1", wanted("https://killed")).look(0.0)
    other = Process(server, "2", of_another_kind("https://b"))
    assert other.look(1.0)
    assert "another operator" in other.problem
    assert not other.look(1.0 + RETURN_SECONDS / 2)
    assert other.look(2.0 + RETURN_SECONDS)
    assert not other.problem
    assert server.urls == ["https://b/kept"]


@pytest.mark.parametrize("is_alive", [True, False])
def test_without_handlers_only_what_nobody_keeps_is_cleared(is_alive: bool) -> None:
    server = Server()
    first = Process(server, "1", wanted("https://a"))
    first.look(0.0)
    bare = Process(server, "2", wanted("https://b"))
    for second in range(1, 12):
        if is_alive:
            first.look(float(second))
        move = bare.keeper.clear(copy.deepcopy(server.object), float(second))
        bare._make(move)
        if move.last:
            break
    assert move.last
    assert server.urls == (["https://a/kept"] if is_alive else [])


def test_two_installations_do_not_take_a_configuration_from_each_other() -> None:
    server = Server()
    first = Process(server, "1", wanted("https://a"), "a")
    second = Process(server, "2", wanted("https://b"), "b")
    on_a_laptop = Process(server, "3", wanted("https://c"))
    assert first.look(0.0)
    before = copy.deepcopy(server.object)
    assert not second.look(1.0)
    assert "is that of the operator 'default' in the namespace a" in second.problem
    assert second.leave(2.0)
    assert server.object == before
    assert not on_a_laptop.look(3.0)
    assert "in the namespace a" in on_a_laptop.problem
    first.leave(5.0)
    first.leave(5.0 + RETURN_SECONDS)
    assert server.object is not None
    assert not server.object["webhooks"]
    assert second.look(60.0)
    assert not second.problem
    assert not first.look(61.0)
    assert "in the namespace b" in first.problem


def test_what_is_missing_is_created_and_then_left_in_peace(server: Server) -> None:
    one = Process(server, "1", wanted())
    assert one.look(0)
    assert server.object is not None
    assert server.object["metadata"]["labels"] == {MANAGED_BY: "fnop"}
    assert server.object["metadata"]["annotations"] == {
        OWNER: "default",
        SERVED_BY: "1",
    }
    assert server.urls == ["https://one/kept"]
    assert not any(one.look(now) for now in range(1, 100))


@pytest.mark.parametrize("drops", [(), ("matchConditions",), ("reinvocationPolicy",)])
def test_what_the_server_adds_or_drops_is_written_once(drops: Sequence[str]) -> None:
    server = Server(drops=drops)
    how: dict[str, Any] = {"match_conditions": {"spec": "has(object.spec)"}}
    about = Registration(NAME, {"service": {"namespace": "ns", "name": "svc"}})
    wish = configurations_of(groups(**how), SERVED, about)[ROLE]
    one, two = Process(server, "1", wish), Process(server, "2", wish)
    one.look(0)
    two.look(1)
    assert one.look(2)  # it returns to the list
    writes = [each.look(now) for now in range(3, 200) for each in (one, two)]
    assert not any(writes)
    assert not one.note
    assert server.listed == ["1", "2"]


def edits() -> st.SearchStrategy[Any]:
    """Changes of the webhooks by another client."""

    def changed(name: str, value: Any) -> Any:
        def change(found: dict[str, Any]) -> None:
            found["webhooks"][0][name] = value

        return change

    def emptied(found: dict[str, Any]) -> None:
        found["webhooks"] = []

    def doubled(found: dict[str, Any]) -> None:
        found["webhooks"].append({**found["webhooks"][0], "name": "other.fnop.dev"})

    def disowned(found: dict[str, Any]) -> None:
        del found["metadata"]["annotations"]

    def replaced(found: dict[str, Any]) -> None:
        found["metadata"] = {"name": NAME, "uid": found["metadata"]["uid"]}
        emptied(found)

    return st.sampled_from(
        [
            disowned,
            replaced,
            changed("failurePolicy", "Ignore"),
            changed("objectSelector", {"matchLabels": {"a": "b"}}),
            changed("clientConfig", {"url": "https://elsewhere"}),
            changed("matchConditions", []),
            changed("rules", []),
            emptied,
            doubled,
        ]
    )


@given(edits(), st.booleans())
def test_an_edit_is_healed_at_the_next_look(edit: Any, is_old: bool) -> None:
    server = Server(drops=("matchConditions",) if is_old else ())
    one = Process(server, "1", wanted())
    one.look(0)
    before = copy.deepcopy(server.object)
    assert server.object is not None
    assert before is not None
    edited = copy.deepcopy(server.object)
    edit(edited)
    server.put(edited)
    is_edited = server.object != before
    one.look(1)
    sentence = (
        "somebody has changed ValidatingWebhookConfiguration default.fnop.dev; it is "
        "as before"
    )
    assert one.mended == (sentence if is_edited else "")
    assert server.object["webhooks"] == before["webhooks"]
    annotations = {OWNER: "default", SERVED_BY: "1"}
    assert server.object["metadata"]["annotations"] == annotations
    assert not one.look(2)


def test_what_somebody_has_deleted_is_there_again(server: Server) -> None:
    one = Process(server, "1", wanted())
    one.look(0)
    server.object = None
    one.look(1)
    assert one.mended == (
        "somebody has deleted ValidatingWebhookConfiguration default.fnop.dev; it is "
        "there again"
    )


def test_a_change_of_the_client_configuration_is_written(server: Server) -> None:
    one = Process(server, "1", wanted())
    one.look(0)
    assert not one.mended
    one.wish = wanted("https://other")
    assert one.look(1)
    assert not one.mended  # no other client has changed it
    assert server.urls == ["https://other/kept"]
    assert not one.look(2)


def test_an_injected_authority_is_kept(server: Server) -> None:
    one = Process(server, "1", wanted())
    one.look(0)
    for bundle in ("QQ==", "Qg=="):
        injected = copy.deepcopy(server.object)
        assert injected is not None
        injected["webhooks"][0]["clientConfig"]["caBundle"] = bundle
        server.put(injected)
        one.look(1)
        one.wish = wanted("https://other" if bundle == "QQ==" else "https://third")
        one.look(2)
        assert server.object is not None
        assert server.object["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    assert not one.look(3)


# ------------------------------------------------------------------ others'


def test_what_somebody_else_puts_in_its_place_is_theirs(server: Server) -> None:
    one = Process(server, "1", wanted())
    one.look(0)
    server.object = None
    theirs = {**wanted("https://theirs"), "metadata": {"name": NAME}}
    server.put(theirs)
    assert not one.look(1)
    assert "is somebody else's" in one.problem


@pytest.mark.parametrize("owner", [None, "billing"])
def test_somebody_else_s_is_left_alone(server: Server, owner: str | None) -> None:
    theirs = wanted("https://theirs")
    theirs["metadata"] = {"name": NAME}
    if owner is not None:
        theirs["metadata"]["annotations"] = {OWNER: owner}
    server.put(theirs)
    before = copy.deepcopy(server.object)
    one = Process(server, "1", wanted())
    for now in range(3):
        assert not one.look(now)
        assert "is left as it is" in one.problem
        assert "--webhook-name" in one.problem
    assert one.leave(4)
    assert server.object == before
    # Once it is gone, the operator's own is created.
    server.object = None
    assert one.look(5)
    assert not one.problem


@pytest.mark.parametrize("webhooks", [[], wanted("https://theirs")["webhooks"]])
def test_what_a_predecessor_has_left_unmarked_is_taken_over(
    server: Server, webhooks: list[Any]
) -> None:
    """Kopf marks nothing. It empties its configuration unless it is killed."""
    left = {**wanted("https://theirs"), "webhooks": webhooks}
    left["metadata"] = {"name": NAME}
    server.put(left)
    one = Process(server, "1", wanted("https://ours"))
    one.keeper = replace(one.keeper, adopts=True)
    assert one.look(0)
    assert (one.problem, server.urls) == ("", ["https://ours/kept"])
    # What another operator of fnop has marked stays that one's.
    left["metadata"]["annotations"] = {OWNER: "billing"}
    server.put(left)
    assert not one.look(1)
    assert "is that of the operator 'billing'" in one.problem


def test_without_webhooks_nothing_is_created_and_nobody_complained_about(
    server: Server,
) -> None:
    none = {**wanted(), "webhooks": []}
    one = Process(server, "1", none)
    assert not one.look(0)
    server.put({**none, "metadata": {"name": NAME}})
    assert not one.look(1)
    assert not one.problem
    assert one.leave(2)


def test_without_handlers_of_a_sort_its_former_webhooks_are_removed(
    server: Server,
) -> None:
    Process(server, "1", wanted()).look(0)
    one = Process(server, "2", {**wanted(), "webhooks": []})
    assert one.look(1)  # is the former one alive?
    assert one.look(1 + RETURN_SECONDS)
    assert server.urls == []
    assert not one.look(2)


# ------------------------------------------------------- processes side by side


def test_the_newest_process_decides_and_an_older_one_says_so_once_it_differs(
    server: Server,
) -> None:
    other = wanted("https://n", timeout=5)
    old, new = Process(server, "1", wanted()), Process(server, "2", other)
    old.look(0)
    new.look(1)
    written = 0
    now = 2.0
    while now < DOUBT_SECONDS:
        written += old.look(now)
        assert "another --name" in old.note
        assert not old.problem
        written += new.look(now + 1)
        assert not new.note
        assert server.urls == ["https://n/kept"]
        now += LOOK_SECONDS
    assert written <= 3  # it has doubted once, and both have returned


def local(server: Server, number: int) -> Process:
    """A replica that is at an address of its own."""
    return Process(server, str(number), wanted(f"https://{number}"))


def address(process: Process) -> str:
    """The address of its webhook."""
    url: str = process.wish["webhooks"][0]["clientConfig"]["url"]
    return url


def test_an_address_of_its_own_needs_one_that_all_have(server: Server) -> None:
    old, new = local(server, 1), local(server, 2)
    old.look(0)
    new.look(1)
    old.look(2)
    assert "has another address" in old.note
    assert "--webhook-service" in old.note
    assert "another --name" not in old.note


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(2, 4))
def test_a_killed_address_leads_to_a_living_process_within_seconds(
    data: st.DataObject, count: int
) -> None:
    server = Server()
    world = World(data, server)
    world.living = [local(server, number) for number in range(count)]
    every = [address(each) for each in world.living]
    for _ in range(data.draw(st.integers(1, 30), "rounds before")):
        world.round(every)
    killed = data.draw(st.integers(1, count - 1), "killed")
    world.living = data.draw(st.permutations(world.living), "who")[killed:]
    addresses = [address(each) for each in world.living]
    since = world.now
    while not {*server.urls} <= {*addresses}:
        world.round(addresses)
        assert world.now - since <= 3 * LOOK_SECONDS
    for _ in range(5):
        world.round(addresses)
    assert server.urls == [max(addresses)]


def test_who_cannot_reach_a_living_process_leaves_it_the_webhooks(
    server: Server,
) -> None:
    old, new = local(server, 1), local(server, 2)
    old.look(0)
    new.look(0)
    written = 0
    for now in range(1, int(DOUBT_SECONDS)):
        written += old.look(now, [])
        written += new.look(now + 0.5, [])
        assert server.urls == [address(new)]
    assert written <= 3


def test_nobody_is_asked_behind_a_service_or_at_an_address_of_all(
    server: Server,
) -> None:
    old, new = Process(server, "1", wanted()), Process(server, "2", wanted(timeout=5))
    old.look(0)
    new.look(0)
    assert old.keeper.rival(old.wish, server.object, 1) is None
    assert server.object is not None
    client = {"service": {"namespace": "a", "name": "b"}}
    server.object["webhooks"][0]["clientConfig"] = client
    assert old.keeper.rival(old.wish, server.object, 1) is None


def test_nobody_is_asked_where_somebody_has_edited_it(server: Server) -> None:
    one = local(server, 1)
    one.look(0)
    assert server.object is not None
    server.object["webhooks"][0]["clientConfig"] = {"url": "https://else"}
    assert one.keeper.rival(one.wish, server.object, 1) is None


def test_the_survivor_heals_what_a_killed_one_would_have(server: Server) -> None:
    one, killed = Process(server, "1", wanted()), Process(server, "2", wanted())
    one.look(0)
    killed.look(0)
    one.look(1)
    edited = copy.deepcopy(server.object)
    assert edited is not None
    edited["webhooks"] = []
    server.put(edited)
    now = 1.0
    while server.urls != ["https://one/kept"]:
        now += LOOK_SECONDS
        one.look(now)
        assert now < 15
    assert server.listed == ["1"]


def test_the_last_one_empties_it(server: Server) -> None:
    one = Process(server, "1", wanted())
    one.look(0)
    assert one.leave(1)
    assert server.urls == []
    assert server.listed == []


def test_persistent_webhooks_stay(server: Server) -> None:
    one = Process(server, "1", wanted(persistent=True))
    one.groups = groups(persistent=True)
    one.look(0)
    assert one.leave(1)
    assert server.urls == ["https://one/kept"]
    assert one.stays == ("kept.default.fnop.dev",)
    assert farewell(["X a"], one.stays) == (
        "webhooks are unregistered: X a; persistent webhooks stay registered, and "
        "their failure policies decide: kept.default.fnop.dev"
    )


def test_one_that_ends_leaves_the_webhooks_to_those_that_live(server: Server) -> None:
    one, two = Process(server, "1", wanted()), Process(server, "2", wanted())
    one.look(0)
    two.look(0)
    one.look(1)
    assert not two.leave(2)
    assert "waits up to 7.5 s for other processes" in two.note
    assert server.urls == ["https://one/kept"]
    assert not two.leave(3)
    one.look(4)
    assert two.leave(5)
    assert "stay registered, as other processes" in two.note
    assert server.urls == ["https://one/kept"]
    assert server.listed == ["1"]


def test_one_that_ends_does_not_wait_for_killed_ones(server: Server) -> None:
    killed, one = Process(server, "1", wanted()), Process(server, "2", wanted())
    killed.look(0)
    one.look(1)
    killed.look(2)
    assert not one.leave(3)
    assert not one.leave(4)
    assert one.leave(3 + RETURN_SECONDS)
    assert server.urls == []


class World:
    """Processes that start, end and are killed, with another client that edits."""

    def __init__(self, data: st.DataObject, server: Server) -> None:
        self.data, self.server = data, server
        self.living: list[Process] = []
        self.started, self.now = 0, 0.0

    def act(self, act: str) -> None:
        self.now += self.data.draw(st.floats(0, 10), "later")
        found = self.server.object
        match act:
            case "start":
                self.started += 1
                url = self.data.draw(st.sampled_from(["https://a", "https://b"]))
                process = Process(self.server, f"{self.started:03}", wanted(url))
                self.living.append(process)
            case "delete":
                self.server.object = None
            case "edit" if found is not None:
                self.server.put({**found, "webhooks": []})
            case "kill" | "look" if self.living:
                each = self.data.draw(st.sampled_from(self.living), "which")
                if act == "kill":
                    self.living.remove(each)
                else:
                    each.look(self.now)

    def round(self, addresses: Sequence[str] | None = None) -> list[Process]:
        """Let all look; those that have written."""
        self.now += LOOK_SECONDS
        return [each for each in self.living if each.look(self.now, addresses)]

    def end(self) -> None:
        """End one after the other, while the others look."""
        while self.living:
            self.now += LOOK_SECONDS
            first, *rest = self.living
            if first.leave(self.now):
                self.living = rest
            for each in rest:
                each.look(self.now)


ACTS = st.sampled_from(["start", "kill", "look", "look", "edit", "delete"])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans(), st.lists(ACTS, max_size=20))
def test_whatever_has_happened_the_living_agree_and_come_to_rest(
    data: st.DataObject, is_old: bool, acts: list[str]
) -> None:
    server = Server(drops=("matchConditions",) if is_old else ())
    world = World(data, server)
    for act in ("start", *acts, "start"):
        world.act(act)
    rounds = int((DOUBT_SECONDS + 2 * RETURN_SECONDS) / LOOK_SECONDS) + 5
    for _ in range(rounds):
        world.round()
    newest = world.living[-1]
    assert server.urls == [newest.wish["webhooks"][0]["clientConfig"]["url"]]
    assert {each.keeper.process for each in world.living} == {*server.listed}
    if all(each.wish == newest.wish for each in world.living):
        assert not any(world.round() for _ in range(rounds))
        assert not any(each.note for each in world.living)
    world.end()
    assert server.urls == []


# ---------------------------------------------------------------------- unreached


def test_handlers_that_no_webhook_leads_to_are_named() -> None:
    registry = Registry()

    @fnop.on.mutate("others.example.com", registry=registry, id="alone")
    def alone(**_: Any) -> None:
        pass

    assert unreached(groups_of(registry.handlers), SERVED) == (
        "there are admission handlers, and none will be called: alone; the API server "
        "serves no kind for them; are their definitions missing?"
    )
    found = groups(registry)
    assert "no webhook leads to the admission handlers alone: " in unreached(
        found, SERVED
    )
    assert unreached(groups(), SERVED) == ""
