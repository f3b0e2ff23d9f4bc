"""`fnop plan` shows that secrets change, and never their values."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

import fnop
from fnop.adapters.reports.plan_report import as_json, as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.plan.facts import Plan
from fnop.interpreters.plan.masking import CHANGED_SECRET, SECRET, Masking
from fnop.interpreters.plan.planner import PlanProblem
from fnop.interpreters.recording.redaction import MARK, Redaction
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.plans import Served, planned, planner_of, sent_as_planned
from tests.simulations import Scenario, example

KIND = "fnopexamples"
PASSWORD = "correct horse battery staple"
TOKEN, OTHER = "9f86d081884c7d659a2feaa0", "2c26b46b68ffc68ff99b453c"
PLANTED = (PASSWORD, TOKEN, OTHER)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def made(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def masking(*fields: str) -> Masking:
    return Masking(Redaction(b"key", Program((), Settings()), fields))


def plan_of(
    registry: Registry,
    run: Scenario,
    masking: Masking | None = None,
    rounds: int = 1,
) -> Plan:
    wall = run.clock.now().wall
    served = Served(run.cluster, wall)
    return planned(planner_of(registry, served, wall, masking=masking), rounds)


def printed(plan: Plan) -> str:
    return json.dumps(as_json(plan)) + "\n".join(as_lines(plan, own=True))


def leaks(text: str, *planted: str) -> list[str]:
    """The secrets found in a text, in any form."""
    forms = {each: (each, encoded(each), each.encode().hex()) for each in planted}
    return [each for each in planted for form in forms[each] if form in text]


@pytest.fixture
def writer(registry: Registry) -> Registry:
    """An operator that copies secrets, changes them, and fails of them."""

    @fnop.index("secrets", id="known", registry=registry)
    def known(name: str, body: fnop.Body, **_: Any) -> dict[str, str]:
        return {name: body["data"]["password"]}

    @fnop.on.create(KIND, id="create", registry=registry)
    async def create(
        name: str,
        spec: fnop.Spec,
        patch: fnop.Patch,
        known: Any = fnop.INDEX,
        **_: Any,
    ) -> None:
        (kept,) = known["db"]
        password = base64.b64decode(kept).decode()
        data = {
            "dsn": f"postgres://u:{password}@db",
            "header": encoded(f"user {spec['apiToken']}"),
            "hex": spec["apiToken"].encode().hex(),
            "plain": "blue",
        }
        await fnop.apply(made("ConfigMap", name, data=data), force=True)
        await fnop.event("Made", f"with {password}")
        patch.spec["apiToken"] = OTHER
        patch.status["connection"] = {"password": "pet"}
        raise fnop.PermanentError(f"no login with {password} at {spec['apiToken']}")

    @fnop.on.update(KIND, id="update", field="spec", registry=registry)
    def update(**_: Any) -> None:
        pass

    return registry


def world(registry: Registry) -> Scenario:
    thing = example("a", apiToken=TOKEN, pin="1234", colour="red")
    thing["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(thing)}
    data = {"password": encoded(PASSWORD)}
    there = made("ConfigMap", "a", data={"dsn": f"postgres://u:{TOKEN}@db"})
    return Scenario(registry, [made("Secret", "db", data=data), thing, there])


def test_no_place_of_a_secret_and_no_copy_is_printed(writer: Registry) -> None:
    plan = plan_of(writer, world(writer), rounds=2)
    text = printed(plan)
    assert leaks(text, *PLANTED) == []
    assert '"pet"' not in text
    assert MARK not in text
    assert 'apiToken: "(secret)" → "(another secret)"' in text
    dsn = 'data.dsn: "postgres://u:(secret)@db" → "postgres://u:(another secret)@db"'
    assert dsn in text
    assert "PermanentError: no login with (secret) at (secret)" in text
    assert "with (secret)" in [each.message for each in plan.events]
    assert 'data.plain: "blue"' in text


def test_what_the_state_keeps_of_an_object_is_masked(writer: Registry) -> None:
    changes = as_json(plan_of(writer, world(writer)))["changes"]
    texts = [
        text
        for each in changes
        for text in (each["after"].get("status") or {}).values()
        if isinstance(text, str) and "seen" in text
    ]
    assert texts
    for text in texts:
        was = json.loads(text).get("was")
        assert (
            was is None
            or leaks(zlib.decompress(base64.b64decode(was)).decode(), *PLANTED) == []
        )


def test_fields_that_are_named_are_masked_too(writer: Registry) -> None:
    run = world(writer)
    text = printed(plan_of(writer, run, masking("spec.pin", "spec.colour")))
    assert '"pin": "(secret)"' in text
    assert '"pin": "1234"' in printed(plan_of(writer, run))
    assert '"colour": "(secret)"' in text
    with pytest.raises(ValueError, match="names no field"):
        masking("")


def test_everything_is_shown_on_request(writer: Registry) -> None:
    text = printed(plan_of(writer, world(writer), Masking(None)))
    assert set(leaks(text, *PLANTED)) == set(PLANTED)
    assert SECRET not in text


def test_what_is_sent_is_not_masked(writer: Registry) -> None:
    run = world(writer)
    wall = run.clock.now().wall
    planner = planner_of(writer, Served(run.cluster, wall), wall)
    planned(planner)
    run.settle(seconds=1)
    assert sent_as_planned(planner, run.requests) == []


def test_an_operator_that_does_not_start_tells_no_secret(writer: Registry) -> None:
    @fnop.on.startup(id="start", registry=writer)
    async def start(**_: Any) -> None:
        found = await fnop.get("secrets", name="db", namespace="default")
        password = base64.b64decode(found["data"]["password"]).decode()
        raise fnop.PermanentError(f"no login with {password}")

    with pytest.raises(PlanProblem, match=r"no login with \(secret\)$"):
        plan_of(writer, world(writer))


def test_the_answers_of_a_dry_run_are_masked(registry: Registry) -> None:
    @fnop.on.create(KIND, registry=registry)
    async def create(spec: fnop.Spec, **_: Any) -> None:
        await fnop.apply(made("ConfigMap", "refused", data={"x": spec["apiToken"]}))
        await fnop.apply(made("ConfigMap", "other", data={"x": "y"}))
        await fnop.apply(made("Secret", "s", data={"x": encoded(OTHER)}))

    run = Scenario(registry, [example("a", apiToken=TOKEN)])
    wall = run.clock.now().wall
    served = Served(run.cluster, wall)
    send = served.send

    async def admitting(request: ApiRequest) -> Any:
        response = await send(request)
        if request.method == "GET":
            return response
        if request.path.endswith("/refused"):
            message = f"not with {TOKEN}, nor with {PASSWORD}"
            return type(response)(422, {"kind": "Status", "message": message})
        if request.path.endswith("/other"):
            response.body["data"]["password"] = PASSWORD
        if request.path.endswith("/s"):
            response.body["data"]["x"] = encoded(TOKEN)
        return response

    served.send = admitting  # type: ignore[method-assign]
    plan = planned(planner_of(registry, served, wall), dry_run=True)
    assert plan.tried is not None
    assert leaks(printed(plan), *PLANTED) == []
    found = {each.place.name: each for each in plan.tried}
    assert found["refused"].refusal == "not with (secret), nor with (secret)"
    (added,) = found["other"].fields
    assert (added.path, added.old, added.new) == ("data.password", None, SECRET)
    (changed,) = found["s"].fields
    assert (changed.old, changed.new) == (SECRET, CHANGED_SECRET)


def test_annotations_of_a_secret_are_masked_whatever_they_are() -> None:
    secret = made("Secret", "s", data={"a": "eA=="})
    secret["metadata"]["annotations"] = {"backup": "a: x", "same": "1"}
    other = json.loads(json.dumps(secret))
    other["metadata"]["annotations"]["backup"] = "a: y"
    before, after = masking().shown(secret, other)
    assert before is not None
    assert after is not None
    assert before["metadata"]["annotations"] == {"backup": SECRET, "same": SECRET}
    assert after["metadata"]["annotations"] == {
        "backup": CHANGED_SECRET,
        "same": SECRET,
    }


def test_a_variable_that_is_renamed_does_not_tell_its_value() -> None:
    def pod(name: str) -> dict[str, Any]:
        container = {"name": "c", "env": [{"name": name, "value": "pet"}]}
        return made("Pod", "p", spec={"containers": [container]})

    for names in (("PASSWORD", "COLOUR"), ("COLOUR", "PASSWORD")):
        shown = masking().shown(*map(pod, names))
        assert "pet" not in json.dumps(shown)
        one, other = (each["spec"]["containers"][0]["env"][0] for each in shown if each)
        assert one["value"] == other["value"] == SECRET
