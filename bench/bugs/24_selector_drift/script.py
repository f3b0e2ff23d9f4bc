from bench.bugs.crds import crd, custom
from fnop.testing import apply


def policy(pod):
    """The labels that the policy of another controller forbids."""
    labels = pod["metadata"].get("labels", {})
    return {"metadata": {"labels": {"owner": None}}} if "owner" in labels else None


CRDS = [crd()]
RIVALS = {"pods": policy}
SCRIPT = [apply(custom(size=2))]
