from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [apply(custom(config="a")), edit("xs/x", spec={"config": "b"})]
