"""A deployment that an autoscaler keeps at three."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, wait


def autoscaler(deployment):
    """A stub of the horizontal autoscaler: it wants three."""
    if deployment["spec"].get("replicas") == 3:
        return None
    return {"spec": {"replicas": 3}}


CRDS = [crd()]
RIVALS = {"deployments.apps": autoscaler}
SCRIPT = [
    apply(custom(image="server:1")),
    wait(60),
]
