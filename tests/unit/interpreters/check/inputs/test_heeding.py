"""The reports of `fnop check` about decisions repeated with other inputs.

Each property has an operator that violates it, and one that holds it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from bench.bugs.crds import crd, custom
from fnop import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import Campaign
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.check.inputs.input_variation import Heeding
from fnop.interpreters.simulation.actions import Action, apply, delete, edit
from fnop.testing import wait

XS = "xs.example.com"


def config(name: str, **data: Any) -> dict[str, Any]:
    texts = {key: str(value) for key, value in data.items()}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": texts}


def told(
    registry: Registry, *script: Action, given: Any = (), **more: Any
) -> dict[str, list[str]]:
    """The violations of the benign run, confirmed: sentences by property."""
    case = Case(Program(registry.handlers), [crd()], script, given, **more)
    explorer = Explorer(case)
    found: dict[str, list[str]] = {}
    for each in explorer.confirmed(explorer.benign):
        found.setdefault(each.property, []).extend(each.details or (each.message,))
    return found


def heeds(registry: Registry, *script: Action, **more: Any) -> list[str]:
    return told(registry, *script, **more).get("heeds", [])


# ------------------------------------------------------------------ heeds: the object


def sized(*, writes: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="scale", registry=registry)
    async def scale(name: str, uid: str, spec: fnop.Spec, **_: Any) -> None:
        wanted = [f"{name}-{number}" for number in range(spec["size"])]
        for each in wanted if writes else ():
            await fnop.adopt(config(each))
        for found in await fnop.list("configmaps"):
            owners = [each["uid"] for each in found.meta.get("ownerReferences", ())]
            if uid in owners and found.name not in wanted:
                await fnop.delete(found)

    return registry


def test_objects_are_looked_at_for_those_that_are_not_wanted() -> None:
    """The run has none, and the other requests distinguish the specs."""
    registry = Registry()

    @fnop.on.create(XS, id="scale", registry=registry)
    async def scale(name: str, spec: fnop.Spec, **_: Any) -> None:
        wanted = [f"{name}-{number}" for number in range(spec["size"])]
        await fnop.patch(status={"wanted": wanted})
        for each in wanted:
            await fnop.adopt(config(each))
        for found in await fnop.list("configmaps"):
            if found.name not in wanted:
                await fnop.delete(found)

    assert heeds(registry, apply(custom(size=2))) == []


def test_a_field_of_which_nothing_comes_is_told_with_handler_and_line() -> None:
    (sentence,) = heeds(sized(writes=False), apply(custom(size=2)))
    assert sentence.startswith("scale looks at spec.size (test_heeding.py, line ")
    assert "nothing ever comes of it" in sentence


def test_what_matters_in_another_script_is_heeded() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="limits", registry=registry)
    async def limits(spec: fnop.Spec, **_: Any) -> None:
        found = await fnop.get("configmaps", name="wanted")
        wanted = 0 if found is None else int(found["data"]["number"])
        if wanted > 3:
            await fnop.patch(status={"number": min(wanted, spec["size"])})
        else:
            spec["size"]

    program, create = Program(registry.handlers), apply(custom(size=5))
    alone = Case(program, [crd()], (create,), name="alone")
    script = (apply(config("wanted", number=9)), create)
    both = alone._replace(name="both", script=script)
    assert "looks at spec.size" in "".join(benign_heeds(Campaign([alone])))
    assert benign_heeds(Campaign([both])) == []
    assert benign_heeds(Campaign([alone, both])) == []


def benign_heeds(campaign: Campaign) -> list[str]:
    found = [each.benign.violations for each in campaign.explorers]
    return [e.message for each in found for e in each if e.property == "heeds"]


def test_a_field_of_which_children_come_is_heeded() -> None:
    assert heeds(sized(writes=True), apply(custom(size=2))) == []


def test_a_field_that_is_fetched_for_what_is_thrown_away_is_told() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    def made(name: str, spec: fnop.Spec, **_: Any) -> dict[str, int]:
        config(name, image=spec["image"])  # it is not applied
        return {"size": spec["size"]}

    (sentence,) = heeds(registry, apply(custom(size=2, image="a")))
    assert "made looks at spec.image" in sentence


Use = Callable[[fnop.Spec], Any]
USES: dict[str, tuple[Use, dict[str, Any]]] = {
    "a bound": (lambda spec: spec["size"] > 5000, {"size": 1}),
    "a length": (lambda spec: len(spec["title"]) > 63, {"title": "a"}),
    "a prefix": (lambda spec: spec["engine"].startswith("pg-"), {"engine": "my"}),
    "a pattern": (
        lambda spec: bool(re.match("^pg-", spec["engine"])),
        {"engine": "my"},
    ),
    "a date": (lambda spec: spec["until"] > "2050", {"until": "2026-01-01T00:00:00Z"}),
    "a quantity": (lambda spec: spec["disk"].endswith("Ti"), {"disk": "5Gi"}),
    "a version": (
        lambda spec: tuple(map(int, spec["version"].split("."))) >= (1, 20),
        {"version": "1.3"},
    ),
    "one of several": (
        lambda spec: spec["tier"] in ("gold", "silver"),
        {"tier": "bronze"},
    ),
    "a flag that is off": (
        lambda spec: spec["colour"] if spec.get("is_coloured") else None,
        {"colour": "red"},
    ),
    "two at once": (
        lambda spec: spec.get("mode") == "strict" and min(spec["limit"], 10) > 5,
        {"limit": 3, "mode": "lax"},
    ),
    "truth": (lambda spec: bool(spec["size"]), {"size": 3}),
    "an element": (lambda spec: "c" in spec["names"], {"names": ["a", "b"]}),
    "a field of an element": (
        lambda spec: [each["port"] for each in spec["ports"]],
        {"ports": [{"port": 1}, {"port": 2}]},
    ),
}


@pytest.mark.parametrize("name", USES)
def test_a_rare_use_of_a_field_is_found(name: str) -> None:
    use, spec = USES[name]
    registry = Registry()

    @fnop.on.create(XS, id="used", registry=registry)
    def used(spec: fnop.Spec, **_: Any) -> dict[str, Any]:
        first = {**spec}[next(iter(spec))]  # a whole copy does not count as reading
        return {"used": use(spec), "kind": type(first).__name__}

    assert heeds(registry, apply(custom(**spec))) == []


SCALARS = st.one_of(st.booleans(), st.integers(0, 9), st.text("ab1", max_size=4))


@settings(max_examples=15)
@given(st.dictionaries(st.sampled_from("pqrs"), SCALARS, min_size=1))
def test_exactly_what_is_dropped_is_told(spec: dict[str, Any]) -> None:
    dropped = min(spec)
    registry = Registry()

    @fnop.on.create(XS, id="shown", registry=registry)
    def shown(spec: fnop.Spec, **_: Any) -> dict[str, Any]:
        found = {key: spec[key] for key in spec}
        del found[dropped]
        return found

    told = [each.partition(" (")[0] for each in heeds(registry, apply(custom(**spec)))]
    assert told == [f"shown looks at spec.{dropped}"]


# ------------------------------------------------------- heeds: who shares a look


@dataclasses.dataclass
class Parsed:
    size: int
    image: str


def parsed(spec: fnop.Spec) -> Parsed:
    return Parsed(int(spec["size"]), spec["image"].strip())


def two_handlers(*, uses_image: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="begun", registry=registry)
    def begun(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        return {"size": parsed(spec).size}

    @fnop.on.delete(XS, id="ended", registry=registry)
    def ended(spec: fnop.Spec, logger: fnop.Logger, **_: Any) -> None:
        found = parsed(spec)
        logger.info("ended %s", found.image if uses_image else found.size)

    return registry


def test_what_a_helper_looks_at_is_for_all_who_call_it() -> None:
    """Also for handlers that the script does not call."""
    assert heeds(two_handlers(uses_image=True), apply(custom(size=1, image="a"))) == []


def test_what_a_helper_looks_at_for_nobody_is_told() -> None:
    script = (apply(custom(size=1, image="a")), delete("xs/x"))
    (sentence,) = heeds(two_handlers(uses_image=False), *script)
    assert "spec.image" in sentence


# ------------------------------------------------------------------ heeds: the answers


def collector(*, deletes: bool) -> Registry:
    registry = Registry()

    @fnop.timer(
        "configmaps", labels={"of": fnop.PRESENT}, interval=60, registry=registry
    )
    async def collect(body: fnop.Body, labels: fnop.Labels, **_: Any) -> None:
        owner = await fnop.get(XS, name=labels["of"])
        if owner is None and deletes:
            await fnop.delete(body)

    return registry


LABELLED = {**config("route"), "metadata": {"name": "route", "labels": {"of": "x"}}}


def test_an_answer_of_which_nothing_comes_is_told() -> None:
    (sentence,) = heeds(collector(deletes=False), apply(custom()), apply(LABELLED))
    assert "collect looks at the answer to `get xs.example.com`" in sentence


def test_an_answer_whose_absence_matters_is_heeded() -> None:
    assert heeds(collector(deletes=True), apply(custom()), apply(LABELLED)) == []


def test_of_an_answer_that_comes_to_nothing_only_the_whole_is_told() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="hold", registry=registry)
    async def hold(spec: fnop.Spec, **_: Any) -> dict[str, bool]:
        secret = await fnop.get("secrets", name=spec["secret"])
        if secret is not None and "held" not in secret["metadata"].get("labels", {}):
            secret["metadata"].get("finalizers")  # it was to be held
        return {"done": True}

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    secret["metadata"] = {"name": "token", "labels": {"a": "b"}}
    (sentence,) = heeds(registry, apply(custom(secret="token")), given=[secret])
    assert "the answer to `get secrets` (" in sentence


# ---------------------------------------------------------------- heeds: arguments


def test_a_patch_that_is_asked_for_and_not_used_is_told() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    def made(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> dict[str, Any]:
        return {"size": spec["size"]}

    (sentence,) = heeds(registry, apply(custom(size=1)))
    assert "made asks for `patch`, and never uses it" in sentence


def test_a_patch_that_an_inner_function_uses_is_used() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    def made(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
        def show(key: str) -> None:
            patch.status[key] = spec[key]

        show("size")

    assert heeds(registry, apply(custom(size=1))) == []


def retried(*, raises: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="tried", registry=registry)
    def tried(spec: fnop.Spec, retry: int, **_: Any) -> dict[str, int] | None:
        if retry < spec["fails"]:
            if raises:
                raise fnop.TemporaryError("not yet", delay=1)
            return None
        return {"attempts": retry + 1}

    return registry


def test_a_retry_that_nothing_ever_asks_for_is_told() -> None:
    (sentence,) = heeds(retried(raises=False), apply(custom(fails=2)))
    assert "tried asks for `retry`, and is never to be tried again" in sentence


def test_a_retry_that_an_error_asks_for_is_heeded() -> None:
    assert heeds(retried(raises=True), apply(custom(fails=0))) == []


def test_a_handler_neither_prints_nor_acts_when_it_decides_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry = Registry()
    calls: list[int] = []

    @fnop.on.create(XS, id="made", registry=registry)
    def made(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        calls.append(1)
        print("made", spec["size"])
        return {"size": 1}

    assert heeds(
        registry, apply(custom(size=1))
    )  # printing is nothing that comes of it
    lines = capsys.readouterr().out.splitlines()
    assert 0 < len(lines) < 20 < len(calls)


# -------------------------------------------------------------------------- total


def cleaner(*, careful: bool) -> Registry:
    registry = Registry()

    @fnop.on.delete(XS, id="forgotten", registry=registry)
    async def forgotten(name: str, **_: Any) -> None:
        found = await fnop.get("configmaps", name="shared")
        if not careful or found is not None:
            await fnop.patch(found, data={name: found["data"].get(name, "") + "x"})

    return registry


SHARED = config("shared", colour="red")


def test_an_object_that_is_gone_one_day_is_to_be_foreseen() -> None:
    script = (apply(custom()), delete("xs/x"))
    found = told(cleaner(careful=False), *script, given=[SHARED])
    (sentence,) = found["total"]
    assert sentence.startswith("forgotten raises TypeError")
    assert sentence.endswith("where `get configmaps` finds nothing")
    assert "total" not in told(cleaner(careful=True), *script, given=[SHARED])


# -------------------------------------------------------------------------- serves


def test_an_operator_that_never_starts_serves_nobody() -> None:
    registry = Registry()

    @fnop.on.startup(id="prepared", registry=registry, retries=2)
    def prepared(retry: int, **_: Any) -> None:
        raise fnop.TemporaryError(f"no database at {retry}", delay=1)

    @fnop.on.create(XS, id="made", registry=registry)
    def made(**_: Any) -> dict[str, int]:
        return {"size": 1}

    found = told(registry, apply(custom()))["serves"]
    assert "the operator does not start" in found[0]


def taking(**sizes: int) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    @fnop.on.update(XS, id="made", registry=registry)
    def made(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        if spec["size"] not in sizes:
            raise fnop.PermanentError(f"there is no size {spec['size']}")
        return {"size": sizes[spec["size"]]}

    return registry


def test_a_handler_that_takes_nothing_of_the_script_is_told() -> None:
    (sentence,) = told(taking(big=3), apply(custom(size="small")))["serves"]
    assert "made fails for good on what the script creates" in sentence
    assert "there is no size small" in sentence


def test_a_handler_that_refuses_an_edit_serves() -> None:
    script = (apply(custom(size="big")), edit("xs/x", spec={"size": "small"}))
    assert "serves" not in told(taking(big=3), *script)


def waiting(*, looks: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        found = await fnop.get("secrets", name="token") if looks else None
        if spec["size"] < 3 and found is None:
            raise fnop.TemporaryError("it is too small", delay=5)
        return {"size": spec["size"]}

    return registry


def test_a_handler_that_waits_for_an_edit_alone_is_told() -> None:
    (sentence,) = told(waiting(looks=False), apply(custom(size=1)))["serves"]
    assert "made is tried again for ever: TemporaryError: it is too small" in sentence
    assert "raise fnop.PermanentError" in sentence


def test_a_handler_that_waits_for_what_others_make_serves() -> None:
    assert "serves" not in told(waiting(looks=True), apply(custom(size=1)))


# --------------------------------------------------------------------------- apart


def pruner(*, asks_whose: bool) -> Registry:
    """It deletes the surplus: its own, or whatever has its labels."""
    registry = Registry()

    @fnop.timer(XS, interval=60, id="prune", registry=registry)
    async def prune(name: str, uid: str, spec: fnop.Spec, **_: Any) -> None:
        made = config(f"{name}-data", size=spec["size"])
        made["metadata"]["labels"] = {"of": name}
        await fnop.adopt(made)
        for each in await fnop.list("configmaps", labels={"of": name}):
            owners = [e["uid"] for e in each.meta.get("ownerReferences", ())]
            is_own = uid in owners or not asks_whose
            if is_own and each.name != f"{name}-data":
                await fnop.delete(each)

    return registry


def test_a_stranger_with_the_labels_of_a_child_is_let_alone() -> None:
    found = told(pruner(asks_whose=False), apply(custom(size=1)))["apart"]
    assert found[0].startswith("configmaps/other-x-data is gone after `apply ConfigMap")
    assert "handler prune" in found[0]
    assert "owner references" in found[0]
    assert "apart" not in told(pruner(asks_whose=True), apply(custom(size=1)))


def keeper(*, asks_whose: bool) -> Registry:
    """It keeps the last two of what it makes for each slot of time.

    These are its own, or whatever has its label; a handler of them never succeeds.
    """
    registry = Registry()

    @fnop.timer(XS, interval=600, id="tick", registry=registry)
    async def tick(name: str, uid: str, spec: fnop.Spec, now: Any, **_: Any) -> None:
        slot = str(int(now.timestamp()) // 600)
        made = config(f"{name}-{slot}", size=spec["size"])
        made["metadata"]["labels"] = {"slot": slot, "is": "kept"}
        await fnop.adopt(made)
        found = [
            each
            for each in await fnop.list("configmaps", labels={"is": "kept"})
            if not asks_whose
            or uid in [e["uid"] for e in each.meta.get("ownerReferences", ())]
        ]
        for each in sorted(found, key=lambda each: each.meta.labels["slot"])[:-2]:
            await fnop.delete(each)

    @fnop.on.create("configmaps", labels={"is": "kept"}, registry=registry)
    def known(**_: Any) -> None:
        raise KeyError("size")

    return registry


def test_what_goes_with_time_is_not_gone_by_another_object() -> None:
    assert "apart" not in told(keeper(asks_whose=True), apply(custom(size=1)))
    found = told(keeper(asks_whose=False), apply(custom(size=1)))["apart"]
    assert "is gone after `apply X x-twin` by `delete configmaps/x-29" in found[0]


def namer(*, by_object: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, body: fnop.Body, spec: fnop.Spec, **_: Any) -> None:
        found = config(name if by_object else "settings", size=spec["size"])
        await fnop.apply(fnop.owned(found, body), force=True)

    return registry


def test_a_child_of_a_fixed_name_is_taken_by_the_next_object() -> None:
    found = told(namer(by_object=False), apply(custom(size=1)))["apart"]
    assert "configmaps/settings has another owner after `apply X x-twin`" in found[0]
    assert "apart" not in told(namer(by_object=True), apply(custom(size=1)))


def test_a_script_without_a_deletion_is_judged_by_one() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, spec: fnop.Spec, **_: Any) -> None:
        await fnop.apply(config(name, size=spec["size"]))

    sentence, story = told(registry, apply(custom(size=1)))["no_orphans"]
    assert sentence.startswith("configmaps/x-twin is left, its object is gone")
    assert story == ("the script goes on: apply X x-twin; delete xs.example.com/x-twin")


# -------------------------------------------------------------------------- refers


def mounting(*, makes: bool) -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, **_: Any) -> None:
        if makes:
            await fnop.adopt(config(f"{name}-settings", colour="red"))
        reference = {"name": f"{name}-settings", "key": "colour"}
        value = {"name": "COLOUR", "valueFrom": {"configMapKeyRef": reference}}
        container = {"name": "main", "image": "main", "env": [value]}
        spec = {"containers": [container]}
        meta = {"name": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        await fnop.adopt(pod)

    return registry


def test_a_pod_that_needs_what_nobody_makes_is_told() -> None:
    (sentence,) = told(mounting(makes=False), apply(custom()))["refers"]
    assert "pods/x needs configmaps/x-settings, which is not there" in sentence
    assert "handler made" in sentence
    assert "refers" not in told(mounting(makes=True), apply(custom()))
    given = {**config("x-settings"), "data": {"color": "red"}}
    (sentence,) = told(mounting(makes=False), apply(custom()), given=[given])["refers"]
    assert "needs colour of configmaps/x-settings" in sentence


def serving(*, app: str, role: str | None = None, key: str = "app") -> Registry:
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, **_: Any) -> None:
        labels = {"app": name}
        container = {"name": "main", "image": "main"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        deployment = {"selector": {"matchLabels": labels}, "template": template}
        selector = {key: app, **({"role": role} if role else {})}
        for version, kind, spec in (
            ("apps/v1", "Deployment", deployment),
            ("v1", "Service", {"selector": selector, "ports": [{"port": 80}]}),
        ):
            meta = {"name": name}
            await fnop.adopt(
                {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
            )

    return registry


def test_a_service_that_selects_none_of_its_owners_pods_is_told() -> None:
    (sentence,) = told(serving(app="web"), apply(custom()))["refers"]
    assert "services/x of `create services/x" in sentence
    assert "selects app=web, and pods of the same owner are labelled" in sentence
    assert sentence.endswith("otherwise: app=x")
    assert "refers" not in told(serving(app="x"), apply(custom()))
    assert "refers" in told(serving(app="x", key="name"), apply(custom()))


def test_a_label_may_be_put_on_pods_later() -> None:
    assert "refers" not in told(serving(app="x", role="primary"), apply(custom()))
    assert "refers" in told(serving(app="web", role="primary"), apply(custom()))


CONTAINERS = [{"name": "main", "image": "main"}]
SERVICE = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
WORKLOAD = {
    "selector": {"matchLabels": {"app": "x"}},
    "template": {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": CONTAINERS},
    },
}


def made_of(*wanted: tuple[str, str, dict[str, Any]]) -> Registry:
    """An operator that makes an object of each of these versions, kinds and specs."""
    registry = Registry()

    @fnop.on.create(XS, id="made", registry=registry)
    async def made(name: str, **_: Any) -> None:
        for version, kind, spec in wanted:
            meta = {"name": name}
            await fnop.adopt(
                {"apiVersion": version, "kind": kind, "metadata": meta, **spec}
            )

    return registry


Made = tuple[str, str, dict[str, Any]]


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        (
            (
                "networking.k8s.io/v1",
                "Ingress",
                {
                    "spec": {
                        "defaultBackend": {
                            "service": {"name": "x", "port": {"number": 80}}
                        }
                    }
                },
            ),
            ("v1", "Service", {"spec": SERVICE}),
            "ingresses.networking.k8s.io/x needs services/x",
        ),
        (
            (
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                {"spec": {"scaleTargetRef": SCALED, "maxReplicas": 2}},
            ),
            ("apps/v1", "Deployment", {"spec": WORKLOAD}),
            "horizontalpodautoscalers.autoscaling/x needs deployments/x",
        ),
        (
            (
                "v1",
                "Pod",
                {"spec": {"containers": CONTAINERS, "serviceAccountName": "x"}},
            ),
            ("v1", "ServiceAccount", {}),
            "pods/x needs serviceaccounts/x",
        ),
    ],
    ids=lambda each: each[1] if isinstance(each, tuple) else "",
)
def test_what_an_object_leads_to_by_its_name_is_there(
    one: Made, other: Made, sentence: str
) -> None:
    (found,) = told(made_of(one), apply(custom()))["refers"]
    assert found.startswith(f"{sentence}, which is not there")
    assert "refers" not in told(made_of(other, one), apply(custom()))


@pytest.mark.parametrize(("app", "is_told"), [("x", False), ("web", True)])
def test_a_budget_is_for_the_pods_of_its_owner(app: str, is_told: bool) -> None:
    budget = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
    operator = made_of(
        ("apps/v1", "Deployment", {"spec": WORKLOAD}),
        ("policy/v1", "PodDisruptionBudget", {"spec": budget}),
    )
    assert ("refers" in told(operator, apply(custom()))) is is_told


# ------------------------------------------------------------------ history and idle


def reporting(*, forgets: bool) -> Registry:
    registry = Registry()

    @fnop.timer(XS, interval=10, id="report", registry=registry)
    def report(
        spec: fnop.Spec, status: fnop.Status, patch: fnop.Patch, **_: Any
    ) -> None:
        ready = "True" if spec["size"] else "False"
        known = {each["type"]: each["status"] for each in status.get("conditions", ())}
        if not forgets or known.get("Ready") != "True":
            patch.status["conditions"] = [{"type": "Ready", "status": ready}]

    return registry


def test_a_condition_tells_what_is_and_not_what_was() -> None:
    script = (apply(custom(size=1)), edit("xs/x", spec={"size": 0}))
    (sentence,) = told(reporting(forgets=True), *script)["history"]
    assert "xs.example.com/x says Ready=True, and Ready=False" in sentence
    assert "history" not in told(reporting(forgets=False), *script)


def test_a_daemon_that_does_nothing_but_sleep_is_idle() -> None:
    registry = Registry()

    @fnop.daemon(XS, id="follow", registry=registry)
    async def follow(spec: fnop.Spec, **_: Any) -> None:
        while True:
            await fnop.sleep(1)

    assert "idle" in told(registry, apply(custom()), wait(5))


def test_a_handler_that_only_reads_is_idle() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="look", registry=registry)
    async def look(**_: Any) -> None:
        await fnop.get("configmaps", name="shared")

    assert "idle" in told(registry, apply(custom()), given=[config("shared")])


# ------------------------------------------------------------------------ what is heard


def test_impure_handlers_are_not_decided_again() -> None:
    registry = Registry()
    fnop.on.create(XS, registry=registry, impure=True)(impure)
    heeding = Heeding(registry.handlers)
    case = Case(Program(registry.handlers), [crd()], (apply(custom()),))
    explorer = Explorer(case._replace(calls={"impure": lambda **_: None}))
    assert explorer.reference.benign.heeding.unheeded == ()
    assert heeding.unheeded == heeding.unforeseen == heeding.fruitless == ()


def impure(spec: fnop.Spec, **_: Any) -> None:
    raise AssertionError(f"it acts on {spec}")


def test_a_loop_that_another_input_makes_endless_is_left() -> None:
    registry = Registry()

    @fnop.on.create(XS, id="counted", registry=registry)
    def counted(spec: fnop.Spec, **_: Any) -> dict[str, int]:
        number = turns = 0
        while number < 10:
            number += spec["step"]  # with 0 it would not end
            turns += 1
        return {"turns": turns}

    assert heeds(registry, apply(custom(step=2))) == []
