"""A gateway and a route for it."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply

ROUTE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "route", "labels": {"gateway": "x"}},
    "data": {"host": "x.example.com"},
}

CRDS = [crd()]
SCRIPT = [apply(custom()), apply(ROUTE)]
