from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(tls=True)),
    edit("xs/x", spec={"tls": False}),
    edit("xs/x", spec={"tls": True}),
]
