"""Two members, then one; then their owner is deleted."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete, edit

CRDS = [crd()]
SCRIPT = [apply(custom(size=2)), edit("xs/x", spec={"size": 1}), delete("xs/x")]
