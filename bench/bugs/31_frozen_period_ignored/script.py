"""A change in the time of a freeze, which ends."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete, edit

FREEZE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "freeze"}}

CRDS = [crd()]
SCRIPT = [
    apply(custom(size=1)),
    apply(FREEZE),
    edit("xs/x", spec={"size": 2}),
    delete("configmaps/freeze"),
]
