"""An object that was stored before the rule, and one that keeps it."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
GIVEN = [custom("older")]
SCRIPT = [apply(custom(storage="s3")), edit("xs/x", spec={"storage": "nfs"})]
