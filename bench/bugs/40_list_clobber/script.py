"""A secret that an object holds by a finalizer."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}

CRDS = [crd()]
SCRIPT = [apply(SECRET), apply(custom(secret="token")), delete("xs/x")]
