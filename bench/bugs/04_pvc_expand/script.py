from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit

CRDS = [crd()]
# A bound volume, as no controller in the simulated cluster binds volumes.
GIVEN = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-x-0", "labels": {"cluster": "x"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
]
SCRIPT = [
    edit("persistentvolumeclaims/data-x-0", status={"phase": "Bound"}),
    apply(custom(storage=10)),
    edit("xs/x", spec={"storage": 15}),
]
