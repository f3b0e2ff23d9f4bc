"""Reconcile handlers that cause their own next call, or are in each other's way."""

import itertools
from typing import Any

import fnop

turns = itertools.count(1)
problems = iter([fnop.TemporaryError("not yet", delay=1)])


def config(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@fnop.reconcile("fnopexamples", owns="configmaps", labels={"case": "restless"})
def restless(**_: Any) -> fnop.Desired:
    return fnop.desired(config("restless", turn=str(next(turns)), same="x"))


@fnop.reconcile("fnopexamples", labels={"case": "requeues"})
def requeues(name: str, **_: Any) -> Any:
    return [fnop.requeue("fnopexamples", name=name), fnop.desired()]


@fnop.reconcile("fnopexamples", owns="configmaps", labels={"case": "two"})
def first(**_: Any) -> fnop.Desired:
    return fnop.desired(config("shared", by="first"))


@fnop.reconcile("fnopexamples", owns="configmaps", labels={"case": "two"})
def second(**_: Any) -> fnop.Desired:
    return fnop.desired(config("shared", by="second"))


@fnop.index("configmaps", labels={"template": fnop.PRESENT})
def templates(name: str, body: fnop.Body, **_: Any) -> dict[str, str]:
    return {name: body["data"]["value"]}


@fnop.reconcile("fnopexamples", labels={"case": "mapped"})
def mapped(templates: fnop.Index[str, str] = fnop.INDEX, **_: Any) -> fnop.Desired:
    return fnop.desired(status={"value": next(iter(templates.get("template", ())), "")})


@fnop.maps("configmaps", to="fnopexamples", labels={"template": fnop.PRESENT})
def users(**_: Any) -> str:
    for each in problems:
        raise each
    return "mapped"
