"""An object that needs a ConfigMap."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply

CRDS = [crd()]
SCRIPT = [apply(custom(team="a"))]
