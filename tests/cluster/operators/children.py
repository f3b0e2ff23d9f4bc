"""Keeps the ConfigMaps that the spec names: `children: [{name, namespace, data}]`.

Those that are called handled-... it handles as objects, too.
"""

import os
from typing import Any

import fnop


@fnop.reconcile(
    "fnopexamples", owns="configmaps", id=os.environ.get("HANDLER_ID", "keep")
)
def keep(spec: fnop.Spec, **_: Any) -> fnop.Desired:
    return fnop.desired([config_map(**each) for each in spec.get("children", ())])


def is_handled(name: str, **_: Any) -> bool:
    return name.startswith("handled-")


@fnop.on.create("configmaps", when=is_handled)
@fnop.on.update("configmaps", when=is_handled)
@fnop.on.delete("configmaps", when=is_handled)
def handled(**_: Any) -> None:
    """Its finalizer and its state are on the child."""


def config_map(
    name: str, namespace: str | None = None, data: Any = None
) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
