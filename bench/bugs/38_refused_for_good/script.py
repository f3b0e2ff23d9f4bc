"""A change of an immutable field of a stateful set."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(image="db:1", policy="OrderedReady")),
    edit("xs/x", spec={"policy": "Parallel"}),
]
