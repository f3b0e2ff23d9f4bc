"""One image, then another one."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
SCRIPT = [
    apply(custom(image="server:1")),
    edit("xs/x", spec={"image": "server:2"}),
]
