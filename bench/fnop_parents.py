"""Each object has four ConfigMaps, and then its result: written with fnop.

fnop also watches the ConfigMaps, and repairs them.
"""

from typing import Any

import fnop

CHILDREN = 4


@fnop.reconcile("benchobjects", owns="configmaps")
def keep(name: str, spec: fnop.Spec, children: Any, **_: Any) -> fnop.Desired:
    wanted = [config_map(f"{name}-{part}", spec) for part in range(CHILDREN)]
    is_done = len(children["configmaps"]) == CHILDREN
    result = {"create": {"doubled": spec["number"] * 2}}
    return fnop.desired(wanted, status=result if is_done else None)


def config_map(name: str, spec: fnop.Spec) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"number": str(spec["number"])},
    }
