"""One host, then another one."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(host="a.example.com")),
    edit("xs/x", spec={"host": "b.example.com"}),
]
