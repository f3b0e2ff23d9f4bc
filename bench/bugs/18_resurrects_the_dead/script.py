from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(racks=["a", "b"], image="cassandra:1")),
    edit("xs/x", spec={"racks": ["a"]}),
    edit("xs/x", spec={"image": "cassandra:2"}),
]
