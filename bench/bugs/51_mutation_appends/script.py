"""An object whose environment the user changes."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(env=[{"name": "MODE", "value": "fast"}])),
    edit("xs/x", metadata={"labels": {"team": "a"}}),
]
