"""An object of which a ConfigMap is made."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply

CRDS = [crd()]
SCRIPT = [apply(custom(team="a"))]
