from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

CRDS = [crd()]
SCRIPT = [apply(custom()), delete("xs/x"), apply(custom())]
