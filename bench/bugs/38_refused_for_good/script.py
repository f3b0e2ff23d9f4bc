"""A change of a field that a stateful set never changes."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(image="db:1", policy="OrderedReady")),
    edit("xs/x", spec={"policy": "Parallel"}),
]
