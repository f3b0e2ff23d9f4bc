"""Two objects of a kind share nothing: neither pods, nor what has one name for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from fnop.adapters.common.loading import load
from fnop.adapters.testing.models import models_of
from tests.unit.interpreters.check.made_up import TEXT, alarms, cases, definition, x

SERVED = """
def named(kind, version, name, spec):
    return {{"apiVersion": version, "kind": kind, "metadata": {{"name": name}},
            "spec": spec}}

@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def serve(name, spec, body, **_):
    labels = {labels}
    template = {{"metadata": {{"labels": labels}},
                "spec": {{"containers": [{{"name": "main", "image": spec["image"]}}]}}}}
    service = {{"selector": labels, "ports": [{{"port": 80}}]}}
    workload = {{"selector": {{"matchLabels": labels}}, "template": template}}
    for each in (named("Deployment", "apps/v1", name, workload),
                 named("Service", "v1", name, service)):
        await fnop.apply(fnop.owned(each, body))
"""


def shared(folder: Path, labels: str) -> dict[str, set[str]]:
    crd = definition(("image",), image=TEXT, group=TEXT)
    several, _ = cases(
        folder, SERVED.format(labels=labels), x(image="a", group="all"), crd
    )
    return alarms(several[:1])


def test_equal_selectors_mix_the_pods_of_two_owners(tmp_path: Path) -> None:
    assert shared(tmp_path, '{"app": "web"}') == {"create": {"apart"}}


@pytest.mark.parametrize(
    "labels", ['{"app": "web", "of": name}', '{"group": spec["group"]}']
)
def test_a_label_of_its_own_or_of_a_group_is_no_mistake(
    labels: str, tmp_path: Path
) -> None:
    assert shared(tmp_path, labels) == {}


ELSEWHERE = """
@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def grant(name, namespace, spec, **_):
    await fnop.apply({{
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {{"name": {name}}},
        "rules": [{{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"],
                   "resourceNames": [spec["image"]]}}],
    }})

@fnop.on.delete("xs.example.com")
async def revoke(name, namespace, **_):
    role = fnop.target("clusterroles.rbac.authorization.k8s.io", name={name})
    await fnop.delete(role)
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [('f"{namespace}-{name}"', set[str]()), ("name", {"apart"})],
)
def test_a_namesake_in_another_namespace(
    name: str, expected: set[str], tmp_path: Path
) -> None:
    crd = definition(("image",), image=TEXT)
    several, _ = cases(tmp_path, ELSEWHERE.format(name=name), x(image="a"), crd)
    assert alarms(several[:1]).get("create", set()) == expected


OUTSIDE = """
def put(key, body): ...
def drop(key): ...

@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
@fnop.on.resume("xs.example.com")
async def register(name, namespace, spec, **_):
    await fnop.call(put, key={name}, body=spec["image"])

@fnop.on.delete("xs.example.com")
async def release(name, namespace, **_):
    await fnop.call(drop, key={name})
"""


MODELS = """
from fnop.testing import PutService

register = PutService()
put, drop = register.put, register.delete
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [('f"{namespace}/{name}"', set[str]()), ("name", {"apart"})],
)
def test_what_has_one_name_outside_goes_with_the_namesake(
    name: str, expected: set[str], tmp_path: Path
) -> None:
    models = tmp_path / "models.py"
    models.write_text(MODELS)
    calls = models_of(load([str(models)]))
    crd = definition(("image",), image=TEXT)
    code = OUTSIDE.replace("{name}", name)
    several, _ = cases(tmp_path, code, x(image="a"), crd, calls=calls)
    assert alarms(several[:1]).get("create", set()) == expected
