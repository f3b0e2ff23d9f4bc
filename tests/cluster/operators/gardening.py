"""Gardens with beds in another namespace: a custom kind, and a set that changes."""

from typing import Any

import fnop


@fnop.reconcile("gardens.fnop.dev", owns="beds.fnop.dev")
def garden(spec: fnop.Spec, name: str, namespace: str | None, **_: Any) -> fnop.Desired:
    beds = [
        fnop.child(
            {
                "apiVersion": "fnop.dev/v1",
                "kind": "Bed",
                "metadata": {"name": f"{name}-{bed}", "namespace": f"{namespace}-beds"},
                "spec": {
                    "soil": spec["soil"],
                    "flowers": [{"name": bed, "count": count}],
                    "tags": {"by": name},
                },
            },
            on_immutable="replace",
        )
        for bed, count in sorted(spec.get("beds", {}).items())
    ]
    return fnop.desired(beds, conditions=fnop.condition("Ready", True, "Planted"))
