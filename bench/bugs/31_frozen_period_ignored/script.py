"""A change during a freeze, which ends."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete, edit, expect

FREEZE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "freeze"}}

CRDS = [crd()]
# A freeze keeps the state from its beginning: that is its purpose.
HISTORY = ("configmaps/x-settings",)
SCRIPT = [
    apply(custom(size=1)),
    apply(FREEZE),
    edit("xs/x", spec={"size": 2}),
    delete("configmaps/freeze"),
]


@expect("xs")
def is_configured(x, world):
    settings = world.get(f"configmaps/{x.name}-settings")
    return settings is not None and settings["data"]["size"] == str(x.spec["size"])
