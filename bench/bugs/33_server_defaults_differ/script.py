"""One port, then another one."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(port=80)),
    edit("xs/x", spec={"port": 81}),
]
