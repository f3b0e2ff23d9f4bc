"""One member, three, one again."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(size=1)),
    edit("xs/x", spec={"size": 3}),
    edit("xs/x", spec={"size": 1}),
]
