"""Each object has four ConfigMaps; they are applied, watched and repaired."""

from typing import Any

import fnop


@fnop.reconcile("benchobjects", owns="configmaps")
def keep(name: str, spec: fnop.Spec, children: Any, **_: Any) -> fnop.Desired:
    wanted = [config_map(f"{name}-{part}", spec) for part in range(4)]
    found = len(children["configmaps"])
    return fnop.desired(wanted, conditions=fnop.condition("Ready", found == 4))


def config_map(name: str, spec: fnop.Spec) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"number": str(spec["number"]), "padding": spec["padding"]},
    }
