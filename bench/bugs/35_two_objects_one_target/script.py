"""Two objects that name the same secret."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply

CRDS = [crd()]
SCRIPT = [
    apply(custom(target="certificate", host="x.example.com")),
    apply(custom("y", target="certificate", host="y.example.com")),
]
