"""A parent that is deleted after its children; one of them needs a minute."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

CRDS = [crd()]
SCRIPT = [
    apply(custom(host="x.example.com")),
    delete("xs/x", propagation="Foreground"),
]
