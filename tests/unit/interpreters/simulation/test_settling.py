"""Runs that never settle: given up soon, with a sentence about the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.simulation.settling import REPEATS_MAX, STEPS_MAX
from fnop.testing import Simulation
from tests.commands import Done, fnop as command
from tests.simulations import DEFINITION, ROOT, example

KIND = "fnopexamples"
WHERE = f"{KIND}/example-1"
OBJECT = ROOT / "examples" / "01-minimal" / "object.yaml"


def simulation(registry: Registry, *objects: dict[str, Any]) -> Simulation:
    return Simulation(registry, crds=[DEFINITION], objects=objects or [example()])


# ------------------------------------------------------------------- circles


def counts(registry: Registry) -> None:
    """Changes what it is called for."""

    @fnop.on.create(KIND, registry=registry, id="counts")
    @fnop.on.update(KIND, registry=registry, id="counts")
    def count(spec: Any, patch: Any, **_: Any) -> None:
        patch.spec["count"] = spec.get("count", 0) + 1


def to_and_fro(registry: Registry) -> None:
    """Two handlers, each of which changes the field that triggers the other one."""

    @fnop.on.field(KIND, field="spec.one", registry=registry, id="one")
    def one(new: Any, patch: Any, **_: Any) -> None:
        patch.spec["two"] = new

    @fnop.on.field(KIND, field="spec.two", registry=registry, id="two")
    def two(new: Any, patch: Any, **_: Any) -> None:
        patch.spec["one"] = new + 1


def spies(registry: Registry) -> None:
    """Writes with each watch event, even for its own writes."""

    @fnop.on.event(KIND, registry=registry, id="spy")
    def spy(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"seen": status.get("seen", 0) + 1})


def elsewhere(registry: Registry) -> None:
    """Two objects, each of which has the other one changed."""

    @fnop.on.create(KIND, registry=registry, id="other")
    @fnop.on.update(KIND, registry=registry, id="other")
    def other(name: str, spec: Any, **_: Any) -> fnop.Effect:
        target = fnop.target(KIND, name="b" if name == "a" else "a")
        return fnop.patch(target, spec={"count": spec.get("count", 0) + 1})


CIRCLES = {
    "counts": (counts, "counts changes spec.count of fnopexamples/example-1"),
    "to and fro": (to_and_fro, "one and two change spec.one, spec.two of fnopex"),
    "spies": (spies, "spy changes status.seen of fnopexamples/example-1 in default"),
    "elsewhere": (elsewhere, "other changes spec.count of fnopexamples/"),
}


def circling(name: str) -> tuple[Simulation, str]:
    declare, sentence = CIRCLES[name]
    registry = Registry()
    declare(registry)
    objects = [example(each, one=1) for each in ("a", "b", "example-1")]
    return simulation(registry, *(objects if name == "elsewhere" else objects[2:])), (
        sentence
    )


@pytest.mark.parametrize("name", CIRCLES)
def test_a_circle_is_given_up_and_its_handlers_and_fields_are_named(name: str) -> None:
    sim, sentence = circling(name)
    sim.settle()
    assert not sim.settled
    assert sentence.split(" of ")[0] in in_one_order(sim.unsettled)
    assert sentence.split(" of ")[1] in sim.unsettled
    assert sim._run.steps < 5_000
    assert sentence.split(" of ")[1] in repr(sim)


def in_one_order(sentence: str) -> str:
    sentence = sentence.replace("/spec.one", "").replace("/spec.two", "")
    sentence = sentence.replace("two and one", "one and two")
    return sentence.replace("spec.two, spec.one", "spec.one, spec.two")


def test_who_writes_beside_a_circle_or_is_done_is_not_blamed() -> None:
    """Their writes share the requests of the one that goes in a circle."""
    registry = Registry()
    counts(registry)

    @fnop.on.create(KIND, registry=registry, id="done")
    def done(patch: Any, **_: Any) -> None:
        patch.spec["made"] = True

    @fnop.on.create(KIND, registry=registry, id="same")
    @fnop.on.update(KIND, registry=registry, id="same")
    def same(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["seen"] = spec.get("count", 0)

    sim = simulation(registry).settle()
    assert sim.unsettled.startswith("counts changes spec.count of fnopexamples/exa")
    (line,) = [each for each in sim.log if "whenever it is called" in each]
    assert line.startswith("counts changes /spec/count whenever it is called, and is")


def test_who_has_given_up_is_not_the_one_that_fails() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="brief", retries=40, backoff=1)
    def brief(**_: Any) -> None:
        raise ValueError("for a while")

    @fnop.on.create(KIND, registry=registry, id="lasting", backoff=5)
    def lasting(**_: Any) -> None:
        raise ValueError("for ever")

    sim = simulation(registry).settle()
    assert "lasting fails for fnopexamples/example-1" in sim.unsettled
    assert "brief" not in sim.unsettled
    assert "other" not in sim.unsettled


def test_who_tells_something_before_each_failure_fails_as_often() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="broken")
    def broken(logger: Any, **_: Any) -> None:
        logger.info("it begins")
        raise KeyError("x")

    sim = simulation(registry).settle()
    assert f"the same {REPEATS_MAX} times in a row" in sim.unsettled


def test_a_plan_that_is_refused_each_time_is_given_up_early() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="fails", backoff=1)
    def fails(**_: Any) -> Any:
        return fnop.patch(fnop.target("configmaps", name="gone"), data={"a": "b"})

    sim = simulation(registry).settle()
    often = re.search(r"the same (\d+) times in a row: Missing: ", sim.unsettled)
    assert often
    assert int(often[1]) == REPEATS_MAX


def test_what_the_author_foresees_may_have_the_name_of_a_refusal() -> None:
    """It is waited for, longer than for what the API server refuses."""
    registry = Registry()

    class Refused(fnop.TemporaryError): ...

    @fnop.on.create(KIND, registry=registry, id="waits")
    def waits(retry: int, **_: Any) -> None:
        if retry < 2 * REPEATS_MAX:
            raise Refused("by another system", delay=1)

    sim = simulation(registry).settle()
    assert sim.unsettled == ""


def test_others_that_fail_are_counted_in_good_english() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="lasting", backoff=5)
    def lasting(**_: Any) -> None:
        raise ValueError("for ever")

    def sentence(number: int) -> str:
        objects = [example(f"e{each}") for each in range(number)]
        return simulation(registry, *objects).settle().unsettled

    assert sentence(2).endswith("for ever, and so does 1 other")
    assert sentence(3).endswith("for ever, and so do 2 others")


def test_one_that_was_done_in_the_same_run_is_not_the_busiest() -> None:
    registry, asked = Registry(), STEPS_MAX // 5

    @fnop.on.create(KIND, registry=registry, id="thorough")
    async def thorough(retry: int, **_: Any) -> None:
        for _number in range(asked):
            await fnop.get("nodes", name="stub-node")
        if retry < 2:
            raise fnop.TemporaryError("once more", delay=0)
        await fnop.patch(spec={"colour": "red"})

    @fnop.on.update(KIND, registry=registry, id="endless")
    async def endless(**_: Any) -> None:
        while True:
            await fnop.get("nodes", name="stub-node")

    sim = simulation(registry).settle()
    assert "endless is the busiest" in sim.unsettled


def test_who_had_much_to_do_goes_in_no_circle() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def build(**_: Any) -> None:
        for number in range(20):
            await fnop.patch(spec={"size": number})
            await fnop.sleep(5)
        await fnop.sleep(3600)

    @fnop.on.event(KIND, registry=registry, id="mirror")
    def mirror(spec: Any, status: Any, patch: Any, **_: Any) -> None:
        if status.get("size") != spec.get("size"):
            patch.status["size"] = spec.get("size")

    run = simulation(registry)._run
    assert not run.settle(seconds=600)
    assert max(each.times for each in run.prospects.restless._writes.values()) >= 20
    assert run.prospects.restless.circling() == ""


@pytest.mark.parametrize("name", CIRCLES)
def test_a_bound_in_time_ends_a_circle_too(name: str) -> None:
    sim, _ = circling(name)
    assert not sim._run.settle(seconds=3600)
    assert sim.unsettled
    assert sim._run.steps < 2 * STEPS_MAX


def test_what_comes_to_an_end_is_no_circle() -> None:
    registry, rounds = Registry(), 150

    @fnop.on.create(KIND, registry=registry)
    @fnop.on.update(KIND, registry=registry)
    def count(spec: Any, patch: Any, **_: Any) -> None:
        if spec.get("count", 0) < rounds:
            patch.spec["count"] = spec.get("count", 0) + 1

    sim = simulation(registry).settle()
    assert sim.settled
    assert sim.unsettled == ""
    assert sim[WHERE].spec["count"] == rounds


def test_a_conversation_may_write_a_thousand_times() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def count(**_: Any) -> None:
        for number in range(1_000):
            await fnop.patch(status={"done": number})

    sim = simulation(registry).settle()
    assert sim.settled
    assert sim[WHERE].status["done"] == 999


def test_many_objects_are_not_taken_for_a_circle() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def count(**_: Any) -> None:
        for number in range(50):
            await fnop.patch(status={"done": number})

    sim = simulation(registry, *(example(f"e{each}") for each in range(80))).settle()
    assert sim.settled
    assert sim._run.steps > STEPS_MAX


def test_many_objects_may_change_one_and_make_others_of_one_kind() -> None:
    registry, number = Registry(), 230
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}

    @fnop.on.create(KIND, registry=registry)
    def share(name: str, **_: Any) -> list[fnop.Effect]:
        target = fnop.target("configmaps", name="shared")
        child = {**shared, "metadata": {"name": f"of-{name}"}}
        return [fnop.patch(target, data={name: "yes"}), fnop.adopt(child)]

    parents = [example(f"e{each}") for each in range(number)]
    sim = simulation(registry, shared, *parents).settle()
    assert sim.settled, sim
    assert len(sim["configmaps/shared"]["data"]) == number


def test_who_tells_an_event_at_each_attempt_is_waited_for() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def patient(retry: int, **_: Any) -> None:
        await fnop.event("Waiting", "not yet")
        if retry < 250:
            raise fnop.TemporaryError("not yet", delay=60)

    assert simulation(registry).settle().settled


# ------------------------------------------------------------- waiting in vain


def daemon(registry: Registry) -> None:
    @fnop.daemon(KIND, registry=registry, id="waits")
    async def busy(stopped: Any, **_: Any) -> None:
        number = 0
        while not stopped:
            number += 1
            await fnop.patch(status={"number": number})


def poll(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="waits")
    async def polling(**_: Any) -> None:
        while await fnop.get("pods", name="never") is None:
            await fnop.sleep(1)


def again(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="waits")
    def not_yet(**_: Any) -> fnop.Effect:
        return fnop.again(after=1, because="there is none")


def temporary(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry, id="waits")
    def not_yet(**_: Any) -> None:
        raise fnop.TemporaryError("not yet", delay=1)


@pytest.mark.parametrize(
    "declare",
    [
        daemon,
        temporary,
        *(pytest.param(each, marks=pytest.mark.long) for each in (poll, again)),
    ],
)
def test_what_waits_in_vain_is_given_up(declare: Callable[[Registry], None]) -> None:
    registry = Registry()
    declare(registry)
    sim = simulation(registry).settle()
    assert not sim.settled
    assert "waits" in sim.unsettled
    assert f"{WHERE} in default" in sim.unsettled
    assert sim._run.steps < 2 * STEPS_MAX


def test_time_that_does_not_pass_is_an_error_of_the_test() -> None:
    registry = Registry()
    daemon(registry)
    sim = simulation(registry)
    with pytest.raises(AssertionError, match=r"not pass: .* waits is the busi"):
        sim.wait(timedelta(hours=1))


def test_an_hour_of_a_busy_timer_passes() -> None:
    registry = Registry()

    @fnop.timer(KIND, interval=1, registry=registry)
    def tick(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"ticks": status.get("ticks", 0) + 1})

    sim = simulation(registry).wait(timedelta(hours=1))
    assert sim.elapsed == timedelta(hours=1)
    assert sim[WHERE].status["ticks"] >= 3_600


def test_no_time_passes_for_turns_that_are_due_much_later() -> None:
    """Decision 6: they are not waited for, and the operator need not look for kinds."""
    registry = Registry()
    calls: list[str] = []

    @fnop.reconcile(KIND, registry=registry)
    def keep(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired([], again=30 * 86_400)

    sim = simulation(registry).settle().settle()
    assert (sim.unsettled, sim.elapsed) == ("", timedelta())
    assert set(calls) == {"example-1"}


def test_a_timer_that_always_writes_is_named() -> None:
    registry = Registry()

    @fnop.timer(KIND, interval=30, registry=registry, id="ticks")
    def tick(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"count": status.get("count", 0) + 1})

    sim = simulation(registry).settle()
    assert "ticks changes status.count of fnopexamples/example-1" in sim.unsettled


def test_a_timer_is_blamed_for_the_fields_that_it_goes_on_writing() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="begins")
    async def begin(patch: Any, **_: Any) -> None:
        await fnop.sleep(45)
        patch.status["phase"] = "begun"
        patch.status["version"] = 1

    @fnop.timer(KIND, interval=30, registry=registry, id="ticks")
    def tick(status: Any, **_: Any) -> fnop.Effect:
        return fnop.patch(status={"count": status.get("count", 0) + 1})

    sim = simulation(registry).settle()
    assert "ticks changes status.count of fnopexamples/example-1" in sim.unsettled


# ------------------------------------------------------------------- commands


def run(folder: Path, text: str, *options: str, objects: int = 1) -> Done:
    (folder / "operator.py").write_text(f"import fnop\n{text}")
    definition, _, manifest = OBJECT.read_text().partition("\n---\n")
    several = [
        manifest.replace("example-1", f"example-{n + 1}") for n in range(objects)
    ]
    (folder / "object.yaml").write_text("\n---\n".join([definition, *several]))
    return command(
        *("run", "operator.py", "--simulate", "object.yaml", *options), folder=folder
    )


QUIET = """
@fnop.timer("fnopexamples", interval=10)
def tick(**_): ...
"""
COUNTING = """
@fnop.timer("fnopexamples", interval=10)
def tick(status, patch, **_):
    patch.status["n"] = status.get("n", 0) + 1
"""
SLEEPING = """
@fnop.daemon("fnopexamples")
async def tick(stopped, **_):
    while not stopped:
        await fnop.sleep(10)
"""
FAILING = """
@fnop.timer("fnopexamples", interval=10)
def tick(**_):
    raise fnop.TemporaryError("no", delay=10)
"""
WAITING = """
@fnop.timer("fnopexamples", interval=10)
def tick(**_): ...

@fnop.on.create("fnopexamples")
def wait(**_):
    return fnop.again(after=60)
"""


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        pytest.param(QUIET, 0, "", id="quiet"),
        pytest.param(COUNTING, 0, "", id="counting"),
        pytest.param(SLEEPING, 0, "", id="a daemon"),
        pytest.param(FAILING, 3, "tick fails for fnopexamples/exam", id="failing"),
        pytest.param(WAITING, 3, "wait of fnopexamples/example-1 in", id="waiting"),
    ],
)
def test_with_timers_a_bounded_run_ends_well_where_nothing_else_is_left(
    text: str, status: int, why: str, tmp_path: Path
) -> None:
    done = run(tmp_path, text, "--for", "10m")
    assert done.status == status, done
    assert why in done.err
    assert ("not settled after 600 s" in done.err) is bool(why)


LOOPING = """
@fnop.on.create("fnopexamples")
@fnop.on.update("fnopexamples")
def count(spec, patch, **_):
    patch.spec["count"] = spec.get("count", 0) + 1
"""


@pytest.mark.parametrize("options", [(), ("--for", "1h")])
def test_a_run_in_a_circle_ends_with_status_3_and_the_reason(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(tmp_path, LOOPING, *options)
    assert done.status == 3
    assert "fnop: not settled after " in done.complaint
    assert "count" in done.complaint
    assert len(done.documents) == 1


UNMODELLED = """
def price_of(item): ...

@fnop.on.create("fnopexamples")
async def order(name):
    {}
    return {{"price": await fnop.call(price_of, item=name)}}

@fnop.on.create("fnopexamples", impure=True)
def notify(name): ...
"""
CAUGHT = """
def price_of(item): ...

@fnop.on.create("fnopexamples")
async def order(name):
    try:
        return {"price": await fnop.call(price_of, item=name)}
    except Exception:
        return {"price": 0}
"""


def test_a_missing_model_is_one_sentence_and_an_end(tmp_path: Path) -> None:
    done = run(tmp_path, UNMODELLED.format(""), objects=40)
    assert done.status == 1
    assert "Traceback" not in done.err
    lines = [line for line in done.err.splitlines() if "order failed for good" in line]
    assert len(lines) == 2
    assert re.search("is not simulated; give a model of it", lines[0])
    assert lines[1].endswith("(40 times in all, of 40 objects)")
    assert "80 handlers failed for good" in done.complaint


def test_a_missing_model_is_told_where_the_handler_catches_it(tmp_path: Path) -> None:
    done = run(tmp_path, CAUGHT)
    assert done.status == 1
    assert "price_of is not simulated" in done.err


REPEATING = """
@fnop.on.create("fnopexamples", backoff=10)
def fails(**_):
    raise ValueError("no")

@fnop.on.create("fnopexamples")
def waits(retry, **_):
    raise fnop.TemporaryError("not yet", delay=10 + retry)
"""


def test_what_fails_again_and_again_is_shown_once_with_a_count(tmp_path: Path) -> None:
    done = run(tmp_path, REPEATING, "--for", "5m")
    assert done.status == 3
    assert done.err.count("Traceback") == 1
    fails, waits = (
        [line for line in done.err.splitlines() if f"handler {name} failed" in line]
        for name in ("fails", "waits")
    )
    assert len(fails) == len(waits) == 2
    assert re.search(r"\(\d+ times in all\)$", fails[1])
    assert re.search(r"\(\d+ times in all\)$", waits[1])
    in_full = run(tmp_path, REPEATING, "--for", "5m", "-v")
    assert in_full.err.count("Traceback") > 10
    assert "times in all" not in in_full.err


# ------------------------------------------- texts that differ each time in an address

ADDRESSED = """
class Client: ...

def kept(error):
    ALIVE.append(error)
    return error

ALIVE = []  # so that no address comes twice

@fnop.on.create("fnopexamples", backoff=10)
def fails(**_):
    raise kept(ValueError(f"no {Client()!r}", Client()))

@fnop.on.create("fnopexamples", backoff=10, impure=True)
def fails_outside(**_):
    raise kept(ValueError(Client()))

@fnop.on.create("fnopexamples", backoff=10)
def told(logger, **_):
    logger.warning("the client is %s", kept(Client()))
    yield fnop.log("warning", f"it is {kept(Client())!r}")
    yield fnop.warn("Lost", f"without {kept(Client())!r}")
    return fnop.again(10, because=f"of {kept(Client())!r}")
"""


def test_an_address_in_an_error_does_not_keep_a_run_from_being_given_up(
    tmp_path: Path,
) -> None:
    first, _, _ = ADDRESSED.partition(", impure=True")
    done = run(tmp_path, first.rpartition("@fnop")[0])
    assert done.status == 3
    assert re.search(r"fails fails for .* the same \d+ times in a row", done.complaint)


def test_what_differs_in_an_address_is_the_same(tmp_path: Path) -> None:
    recorded = ("--for", "2m", "--real-calls", "--record", "run.fnop")
    done = run(tmp_path, ADDRESSED, *recorded)
    assert done.status == 3
    told = [line for line in done.err.splitlines() if line.startswith("[")]
    for what in ("fails failed", "fails_outside failed", "the client is", "it is <"):
        lines = [each for each in told if what in each]
        assert len(lines) == 2, lines
        assert "at 0x...>" in lines[0]
    again = command("replay", "run.fnop", "operator.py", folder=tmp_path)
    assert (again.status, again.err) == (0, "")
    assert again.out.startswith("identical: ")
