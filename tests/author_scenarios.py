"""Code that authors write of their own accord: for simulated and real clusters."""

from __future__ import annotations

from typing import Any

import yaml

from tests.simulations import example

OPERATOR = """
import copy
import json

import fnop
import yaml


@fnop.index("configmaps", labels={"role": lambda value, **_: value == "speed"})
def speeds(name, body, **_):
    return {name: float(body["data"]["seconds"])}


@fnop.on.create("fnopexamples", when=lambda **kwargs: "spec" in kwargs)
async def create(spec, body, **_):
    mine = copy.deepcopy(spec)
    mine["seen"] = True
    data = {"spec.yaml": yaml.safe_dump(spec), "mine.json": json.dumps(mine)}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    made = await fnop.adopt({**child, "metadata": {"name": "adopted"}})
    applied = {**child, "metadata": {"name": "applied"}}
    await fnop.apply(fnop.owned(applied, body, labels=["app", "helm.sh/*"]))
    try:
        await fnop.get("confgmaps", name="adopted")
    except fnop.Refused as problem:
        return {"labels": dict(made.meta.labels), "told": str(problem)}


@fnop.timer("fnopexamples", interval=lambda speeds=fnop.INDEX, **_: speeds["slow"][0])
def tick(status, **_):
    return fnop.patch(status={"ticks": status.get("ticks", 0) + 1})
"""


LABELS = {
    "app": "shop",
    "app.kubernetes.io/instance": "shop",
    "argocd.argoproj.io/instance": "shop",
    "helm.sh/chart": "shop-1",
}


SPEED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "slow", "labels": {"role": "speed"}},
    "data": {"seconds": "0.5"},
}


TOLD = "the API server serves no kind 'confgmaps' (did you mean 'configmaps'?)"
SPEC: dict[str, Any] = {"size": 1, "hosts": ["a", {"name": "b"}]}


def subject() -> dict[str, Any]:
    found = example(**SPEC)
    found["metadata"]["labels"] = LABELS
    return found


def check(found: dict[str, Any], adopted: Any, applied: Any) -> None:
    assert found["status"]["create"] == {"labels": {"app": "shop"}, "told": TOLD}
    assert yaml.safe_load(adopted["data"]["spec.yaml"]) == SPEC
    assert adopted["metadata"]["labels"] == {"app": "shop"}
    labels = {"app": "shop", "helm.sh/chart": "shop-1"}
    assert applied["metadata"]["labels"] == labels
    assert found["status"]["ticks"] >= 3


# Parts that authors forget, or mistake; fnop reports each with the same words
# everywhere.
SLIPS = """
import fnop

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap"}


@fnop.on.create("fnopexamples")
async def create(**_):
    told = []
    try:
        await fnop.create({**CONFIG, "metadata": {"generateName": "x-"}})
    except ValueError as problem:
        told.append(str(problem))
    labels = {"op": "add", "path": "/metadata/labels", "value": {"n": 5}}
    try:
        await fnop.patch(json=[labels])
    except fnop.Refused as problem:
        told.append(str(problem))
    return {"told": told}


async def make():
    await fnop.create({**CONFIG, "metadata": {"name": "lost"}})


@fnop.on.create("fnopexamples", retries=1)
def drops(**_):
    make()
"""


def long_subject() -> dict[str, Any]:
    return example(text="to be quoted " * 300)


def check_slips(found: dict[str, Any]) -> None:
    named, refused = found["status"]["create"]["told"]
    assert "generateName would make a new object at every run" in named
    assert "Invalid value: " in refused
    assert "to be quoted" not in refused[300:]
    assert len(refused) < 500
    (condition,) = found["status"]["conditions"]
    assert "make(...) at " in condition["message"]
    assert "was not awaited, so it has done nothing" in condition["message"]
