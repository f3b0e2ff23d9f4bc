from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

CRDS = [crd()]
X = custom(replicas=2)
SCRIPT = [apply(X), delete("xs/x"), apply(X)]
