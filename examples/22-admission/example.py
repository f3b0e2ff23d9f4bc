"""Admission: sizes and hosts of sites, judged before they are stored."""

from typing import Any

import fnop

BIG = 20


@fnop.index("sites")
def hosts(spec: fnop.Spec, name: str, namespace: str, **_: Any) -> dict[str, str]:
    return {spec["host"]: f"{namespace}/{name}"}


@fnop.on.mutate("sites", operations=["CREATE", "UPDATE"])
def complete(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
    """Fill in the fields that a user may leave out; asked again, it changes nothing."""
    if "size" not in spec:
        patch.spec["size"] = 1
    if spec["host"] != spec["host"].lower():
        patch.spec["host"] = spec["host"].lower()


@fnop.on.validate("sites", operations=["CREATE", "UPDATE"])
def fits(
    spec: fnop.Spec, old: dict[str, Any] | None, warnings: fnop.Warnings, **_: Any
) -> None:
    if spec["size"] > BIG:
        warnings.append(f"a site of more than {BIG} takes an hour to come up")
    if old is not None and spec["size"] < old["spec"].get("size", 1):
        raise fnop.Denied("a site must not shrink", field="spec.size")


@fnop.on.validate("sites", operations=["CREATE", "UPDATE"])
def has_the_host_alone(
    spec: fnop.Spec,
    name: str,
    namespace: str,
    hosts: fnop.Index[str, str] = fnop.INDEX,
    **_: Any,
) -> None:
    others = {*hosts.get(spec["host"], ())} - {f"{namespace}/{name}"}
    if others:
        owner = min(others)
        raise fnop.Denied(f"the host belongs to {owner}", field="spec.host")


@fnop.on.validate("sites", operations=["DELETE"], labels={"keep": "true"})
def is_not_kept(name: str, **_: Any) -> None:
    """A protection that its user can lift: without the label the site goes."""
    raise fnop.Denied(f"{name} is kept; remove its label `keep` to delete it")


@fnop.reconcile("sites", owns=["configmaps"])
def site(spec: fnop.Spec, name: str, **_: Any) -> fnop.Desired:
    """Sites from before the webhook may lack what it completes."""
    data = {"host": spec["host"].lower(), "size": str(spec.get("size", 1))}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }
    return fnop.desired([config])
