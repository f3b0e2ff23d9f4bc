"""A secret for another namespace."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

CRDS = [crd()]
GIVEN = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}]
SCRIPT = [apply(custom(namespaces=["team"])), delete("xs/x")]
