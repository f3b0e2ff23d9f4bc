from bench.bugs.crds import crd, custom
from fnop.testing import apply

CRDS = [crd()]
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "password", "labels": {"example.com/owner": "x"}},
    "stringData": {"password": "a"},
}
SCRIPT = [apply(custom()), apply(SECRET)]
