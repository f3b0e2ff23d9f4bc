from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit, wait

CRDS = [crd()]
# From a backup: the Pods are older than their object, and not yet owned by it.
GIVEN = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"restored-{number}", "labels": {"cluster": "x"}},
        "spec": {"containers": [{"name": "main", "image": "machine"}]},
    }
    for number in range(2)
]
SCRIPT = [
    apply(custom(size=2, paused=True)),
    edit("xs/x", spec={"paused": False}),
    wait(90),
]
