from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [apply(custom(size=2)), edit("xs/x", spec={"size": 3})]
