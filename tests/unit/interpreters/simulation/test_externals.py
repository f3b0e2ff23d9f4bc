"""Models of external systems: their answers, and that they are values."""

from __future__ import annotations

import doctest
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.testing.models import Models, models_of
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.simulation import externals
from fnop.interpreters.simulation.externals import externals_of, forked, set_now
from fnop.testing import (
    External,
    JobService,
    PostService,
    PutService,
    Simulation,
    load,
)
from tests.effort import calls_in
from tests.simulations import DEFINITION, example

WHERE = "fnopexamples/example-1"


def test_the_examples_hold() -> None:
    assert doctest.testmod(externals).failed == 0


# ---------------------------------------------------------------- the three models


def test_to_put_twice_is_to_put_once() -> None:
    service = PutService()
    for size in (1, 2, 2):
        service.put("a", {"size": size})
    assert (service.get("a"), service.keys()) == ({"size": 2}, ["a"])
    service.delete("a")
    assert service.keys() == []
    service.put("a")
    assert service.creations() == {"a": 2}, "it was created anew"


@pytest.mark.parametrize("verb", ["get", "delete"])
@pytest.mark.parametrize("service", [PutService(), PostService(), JobService()])
def test_there_is_nothing_of_another_name(service: Any, verb: str) -> None:
    if isinstance(service, JobService):
        verb = {"get": "poll", "delete": "cancel"}[verb]
    with pytest.raises(LookupError, match="Service has no x"):
        getattr(service, verb)("x")


def test_a_service_that_is_down_refuses_every_call() -> None:
    puts, posts, jobs = PutService(), PostService(), JobService()
    puts.put("a")
    id, job = posts.create()["id"], jobs.submit()
    calls: list[Any] = [
        partial(puts.put, "a"),
        partial(puts.get, "a"),
        partial(puts.delete, "a"),
        puts.keys,
        posts.create,
        partial(posts.get, id),
        partial(posts.update, id, 1),
        partial(posts.delete, id),
        posts.find,
        posts.list,
        jobs.submit,
        partial(jobs.poll, job),
        partial(jobs.cancel, job),
        jobs.jobs,
    ]
    before = [each.digest() for each in (puts, posts, jobs)]
    puts.down = posts.down = jobs.down = True
    for call in calls:
        with pytest.raises(ConnectionError, match="Service is down"):
            call()
    assert [each.digest() for each in (puts, posts, jobs)] == before
    posts.down = False
    assert posts.get(id)["id"] == id


def test_to_post_twice_is_to_create_two_things() -> None:
    cloud = PostService("vpc")
    ids = [cloud.create({"cidr": "10.0.0.0/8"})["id"] for _ in range(2)]
    assert ids == ["vpc-00000001", "vpc-00000002"]
    assert cloud.creations() == {'{"cidr":"10.0.0.0/8"}': 2}
    cloud.delete(ids[0])
    assert cloud.create()["id"] == "vpc-00000003", "an id is never given twice"


def test_a_token_makes_a_second_request_harmless() -> None:
    cloud = PostService()
    first = cloud.create({"size": 1}, token="t")
    assert cloud.create({"size": 1}, token="t") == first
    assert cloud.creations() == {"t": 1}
    with pytest.raises(ValueError, match="the token t is that of another request"):
        cloud.create({"size": 2}, token="t")
    with pytest.raises(ValueError, match="another request"):
        cloud.create({"size": 1}, token="t", tags={"a": "b"})
    cloud.update(first["id"], {"size": 2})
    cloud.delete(first["id"])
    assert cloud.create({"size": 1}, token="t")["id"] != first["id"]


def test_what_was_updated_still_has_its_token() -> None:
    """The token is compared with what was sent, not with what has become of it."""
    cloud = PostService()
    first = cloud.create({"size": 1}, token="t")
    cloud.update(first["id"], {"size": 2})
    assert cloud.create({"size": 1}, token="t")["body"] == {"size": 2}
    with pytest.raises(ValueError, match="another request"):
        cloud.create({"size": 2}, token="t")


def test_a_new_thing_is_listed_late_and_read_at_once() -> None:
    cloud = PostService(lag=5)
    cloud.now = 100.0
    made = cloud.create({}, tags={"owner": "a"})
    cloud.now = 104.9
    assert (cloud.list(), cloud.find(owner="a")) == ([], [])
    assert cloud.get(made["id"]) == made
    cloud.now = 105.0
    assert cloud.list() == cloud.find(owner="a") == [made]
    assert cloud.find(owner="b") == cloud.find(owner="a", more="c") == []
    cloud.delete(made["id"])
    assert cloud.list() == []


@pytest.mark.parametrize(
    ("after", "state"),
    [
        (0, "pending"),
        (4.9, "pending"),
        (5, "running"),
        (34.9, "running"),
        (35, "succeeded"),
    ],
)
def test_a_job_goes_its_way_in_virtual_time(after: float, state: str) -> None:
    jobs = JobService(work=lambda request: request["n"] * 2)
    jobs.now = 1000.0
    id = jobs.submit({"n": 4})
    jobs.now += after
    result = 8 if state == "succeeded" else None
    assert jobs.poll(id) == {"id": id, "state": state, "result": result, "error": None}
    cancelled = jobs.cancel(id)["state"]
    assert cancelled == (state if state == "succeeded" else "cancelled")
    jobs.now += 1000
    assert jobs.poll(id)["state"] == cancelled


def test_a_job_whose_work_raises_has_failed() -> None:
    def work(request: Any) -> Any:
        raise ValueError("no such volume")

    jobs = JobService(pending=0, running=0, work=work)
    found = jobs.poll(jobs.submit())
    assert (found["state"], found["error"]) == ("failed", "no such volume")


def test_a_job_with_a_token_is_submitted_once() -> None:
    jobs = JobService("backup")
    assert jobs.submit({"v": 1}, token="t") == jobs.submit({"v": 1}, token="t")
    assert (jobs.jobs(), jobs.creations()) == (["backup-00000001"], {"t": 1})
    with pytest.raises(ValueError, match="another request"):
        jobs.submit({"v": 2}, token="t")


def test_answers_and_arguments_are_nobodys_to_change() -> None:
    cloud, body = PostService(), {"list": [1]}
    made = cloud.create(body)
    body["list"].append(2)
    made["body"]["list"].append(3)
    cloud.get(made["id"])["body"]["list"].append(4)
    assert cloud.get(made["id"])["body"] == {"list": [1]}


def test_what_is_no_json_is_refused_before_anything_is_stored() -> None:
    puts, posts, jobs = PutService(), PostService(), JobService()
    for call in (partial(puts.put, "a"), posts.create, jobs.submit):
        with pytest.raises(TypeError):
            call({1, 2})
    assert puts.creations() == posts.creations() == jobs.creations() == {}
    assert (puts.keys(), posts.list(), jobs.jobs()) == ([], [], [])


# --------------------------------------------------------------------- the digest


def test_ids_that_were_drawn_in_another_order_make_no_difference() -> None:
    one, other = PostService("net"), PostService("net")
    for cloud, owners in ((one, "ab"), (other, "ba")):
        ids = {each: cloud.create({}, tags={"owner": each})["id"] for each in owners}
        cloud.create({"peers": [ids["a"], f"arn/{ids['b']}"]}, token="peering")
    assert one.digest() == other.digest()
    assert "net-0000" not in json.dumps(one.digest())
    assert one.aliases() != other.aliases()
    assert set(one.aliases().values()) == set(other.aliases().values())


def test_twins_are_told_apart_by_their_bodies_and_not_by_their_order() -> None:
    one, other = PostService(), PostService()
    for cloud, zones in ((one, "ab"), (other, "ba")):
        for zone in zones:
            cloud.create({"zone": zone}, tags={"owner": "x"})
    assert one.digest() == other.digest()
    other.create({"zone": "a"}, tags={"owner": "x"})
    assert one.digest() != other.digest()


def test_what_is_gone_is_not_in_the_digest_and_counts_as_created() -> None:
    cloud = PostService()
    before = cloud.digest()
    id = cloud.create({}, token="t")["id"]
    assert cloud.digest() != before
    cloud.delete(id)
    assert (cloud.digest(), cloud.creations()) == (before, {"t": 1})
    cloud.create({"of": id})
    assert "<thing t gone>" in json.dumps(cloud.digest())


def test_what_was_updated_is_visible_as_if_it_had_been_made_so() -> None:
    updated, made = PostService(), PostService()
    id = updated.create({"host": "a", "token": 1}, token="t", tags={"of": "u"})["id"]
    updated.update(id, {"host": "b", "token": 1})
    made.create({"host": "b", "token": 1}, token="t", tags={"of": "u"})
    assert updated.visible() == made.visible()
    assert made.visible()[0]["body"] == {"host": "b", "token": 1}
    assert updated.digest() != made.digest(), "the token is answered otherwise"
    updated.update(id, {"host": "c", "token": 1})
    assert updated.visible() != made.visible()


def test_a_digest_tells_what_is_still_to_come_and_no_clock() -> None:
    def at(now: float) -> tuple[PostService, JobService]:
        cloud, jobs = PostService(lag=10), JobService()
        cloud.now = jobs.now = now
        cloud.create(token="t")
        jobs.submit(token="t")
        return cloud, jobs

    early, late = at(0), at(500)
    assert [each.digest() for each in early] == [each.digest() for each in late]
    late[0].now = late[1].now = 503.0
    assert early[0].digest() != late[0].digest()
    assert early[1].digest() != late[1].digest()
    for each in (*early, *late):
        each.now = 10_000.0
    assert [each.digest() for each in early] == [each.digest() for each in late]


class Mail(External):
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, to: str) -> None:
        self.created(to)
        self.sent.append([to, self.now])


def test_a_model_of_ones_own_needs_attributes_alone() -> None:
    mail = Mail()
    fork = mail.fork()
    mail.send("a")
    assert mail.digest() == {"sent": [["a", 0.0]]}
    assert (fork.digest(), fork.creations()) == ({"sent": []}, {})
    assert mail.creations() == {"a": 1}
    mail.sent.append({1})
    with pytest.raises(TypeError, match="give the class a method digest"):
        mail.digest()


class Counting(JobService):
    """Its work is a method of its own, and changes it."""

    def __init__(self) -> None:
        super().__init__(work=self.compute, running=0, pending=0)
        self.done: list[str] = []

    def compute(self, request: str) -> int:
        self.done.append(request)
        return len(self.done)


class Recursive(External):
    def __init__(self) -> None:
        self.done: list[str] = []
        self.act = self.record

    def record(self, text: str) -> None:
        self.done.append(text)

    def digest(self) -> Any:
        return [*self.done]


def test_a_method_that_a_model_holds_is_the_forks_own() -> None:
    jobs, own = Counting(), Recursive()
    fork, twin = jobs.fork(), own.fork()
    assert fork.poll(fork.submit("a"))["result"] == 1
    twin.act("b")
    assert (jobs.done, fork.done) == ([], ["a"])
    assert (own.digest(), twin.digest()) == ([], ["b"])


# ---------------------------------------------------------------- a whole mapping


CLOUD = PostService()


def uses_a_global() -> Any:
    return CLOUD.list()


def test_a_mapping_is_forked_with_what_its_methods_share() -> None:
    cloud, mail = PostService(), Mail()
    calls: dict[str, Any] = {
        "make": cloud.create,
        "small": partial(cloud.create, {"size": 1}),
        "send": mail.send,
        "other": len,
        "all": cloud.list,
    }
    assert externals_of(calls) == [cloud, mail]
    apart = forked(calls)
    assert [*apart] == [*calls]
    apart["make"]()
    apart["small"]()
    apart["send"]("a")
    assert len(apart["all"]()) == 2
    assert (cloud.list(), mail.sent) == ([], [])
    assert apart["other"] is len
    own, own_mail = externals_of(apart)
    assert own.creations() == {"null": 1, '{"size":1}': 1}
    assert own_mail.digest() == {"sent": [["a", 0.0]]}


MODELS = """
from fnop.testing import PostService

CLOUD = PostService()
CALLS = {"operator:make": CLOUD.create}
every = CLOUD.list
"""


def test_a_file_of_models_is_forked_with_those_that_it_names_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "cloud_models.py").write_text(MODELS)
    models = models_of([load(tmp_path / "cloud_models.py")])
    (cloud,) = externals_of(models)
    apart = forked(models)
    assert isinstance(apart, Models)
    make, every = (apart.get(f"operator:{each}") for each in ("make", "every"))
    make()
    assert len(every()) == 1
    assert cloud.creations() == {}
    assert externals_of(apart)[0].creations() == {"null": 1}
    assert models.unused == "", "what answers a fork has answered"


def test_a_function_that_uses_a_model_is_refused() -> None:
    cloud = PostService()

    def uses_an_outer_one() -> Any:
        return cloud.list()

    def by_default(service: PostService = cloud) -> Any:
        return service.list()

    for function, name in (
        (uses_a_global, "CLOUD"),
        (uses_an_outer_one, "cloud"),
        (by_default, "service"),
    ):
        with pytest.raises(TypeError, match=f"uses {name}: make it a method of"):
            forked({"list": function})


def test_a_model_that_holds_another_one_is_refused() -> None:
    mail = Mail()
    mail.sent = PostService()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="the model Mail holds another one in sent"):
        forked({"send": mail.send})


def test_the_time_is_set_where_there_is_a_model() -> None:
    mail = Mail()
    set_now(partial(mail.send, "a"), 7.0)
    assert (mail.now, External.now) == (7.0, 0.0)
    set_now(len, 8.0)


@pytest.mark.parametrize("things", [10, 1_000])
def test_a_fork_costs_little_however_much_there_is(things: int) -> None:
    cloud = PostService()
    for number in range(things):
        cloud.create({"number": number})
    assert calls_in(cloud.fork) <= 25


# ----------------------------------------------------------------- in a simulation


def submit(volume: str, token: str) -> str:
    raise AssertionError("the model answers")


def poll(id: str) -> dict[str, Any]:
    raise AssertionError("the model answers")


class Backups(JobService):
    def begin(self, volume: str, token: str) -> str:
        return self.submit({"volume": volume}, token=token)


def test_a_simulation_sets_the_time_of_its_models() -> None:
    registry = Registry()
    states: list[str] = []

    @fnop.on.create("fnopexamples", registry=registry, id="backup")
    async def backup(uid: str, **_: Any) -> Any:
        id = await fnop.call(submit, volume="v", token=uid)
        while True:
            found = await fnop.call(poll, id=id)
            states.append(found["state"])
            if found["state"] not in ("pending", "running"):
                return {"file": found["result"]}
            await fnop.sleep(10)

    jobs = Backups(work=lambda request: request["volume"] + ".tar")
    calls: dict[Any, Any] = {submit: jobs.begin, poll: jobs.poll}
    sim = Simulation(registry, crds=[DEFINITION, example()], calls=calls).settle()
    assert sim.errors == []
    assert sim[WHERE].status["backup"] == {"file": "v.tar"}
    assert list(dict.fromkeys(states)) == ["pending", "running", "succeeded"]
    assert jobs.now == pytest.approx(sim.now.timestamp(), abs=100)
    assert list(jobs.creations().values()) == [1]


def watching(stopped: Any, **_: Any) -> None:
    raise AssertionError("the model watches")


class Watched(External):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def watching(self, stopped: Any) -> None:
        self.seen.append(self.now)
        while not stopped.wait(10):
            self.seen.append(self.now)


def test_a_daemon_sees_the_time_of_its_model_go_by() -> None:
    registry, model = Registry(), Watched()
    fnop.daemon("fnopexamples", registry=registry, impure=True)(watching)
    calls: dict[Any, Any] = {watching: model.watching}
    sim = Simulation(registry, crds=[DEFINITION, example()], calls=calls)
    begun = sim.now.timestamp()
    sim.wait(25)
    assert [round(each - begun) for each in model.seen] == [0, 10, 20]


def test_an_error_of_a_model_is_the_error_of_the_call() -> None:
    registry = Registry()
    cloud = Backups()
    cloud.down = True
    found: list[str] = []

    @fnop.on.create("fnopexamples", registry=registry, retries=1)
    async def backup(**_: Any) -> None:
        try:
            await fnop.call(submit, volume="v", token="t")
        except fnop.CallFailed as problem:
            found.append(str(problem))

    calls = {submit: cloud.begin}
    Simulation(registry, crds=[DEFINITION, example()], calls=calls).settle()
    assert found
    assert "Backups is down" in found[0]
