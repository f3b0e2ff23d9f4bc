"""Nothing, something, nothing again."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(size=0)),
    edit("xs/x", spec={"size": 1}),
    edit("xs/x", spec={"size": 0}),
]
