"""An operator that keeps a config map for each example."""

from typing import Any

import fnop


@fnop.reconcile("fnopexamples", owns=["configmaps"])
def keep(name: str, namespace: str, spec: fnop.Spec, **_: Any) -> fnop.Desired:
    """Its size, as a text."""
    return fnop.desired(
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": {"size": str(spec["size"]), "colour": "blue"},
            }
        ],
        status={"size": spec["size"]},
    )
