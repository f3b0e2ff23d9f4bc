"""One mode after the other."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(mode="single")),
    edit("xs/x", spec={"mode": "replicated"}),
    edit("xs/x", spec={"mode": "sharded"}),
]
