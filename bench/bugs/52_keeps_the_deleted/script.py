"""A console with its Secret, which is deleted."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete

CRDS = [crd()]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "default"},
}
GIVEN = [SECRET]
SCRIPT = [apply(custom(password="login")), delete("xs/x")]
