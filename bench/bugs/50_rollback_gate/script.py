"""A good version, a bad one, the good one again."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(version="good")),
    edit("xs/x", spec={"version": "bad"}),
    edit("xs/x", spec={"version": "good"}),
]
