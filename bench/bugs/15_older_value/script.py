from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(maxUnavailable=1)),
    edit("xs/x", spec={"maxUnavailable": 2}),
    edit("xs/x", spec={"maxUnavailable": 3}),
]
