"""A good version, a bad one, the good one again."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, edit, expect

CRDS = [crd()]
SCRIPT = [
    apply(custom(version="good")),
    edit("xs/x", spec={"version": "bad"}),
    edit("xs/x", spec={"version": "good"}),
]


@expect("xs")
def has_its_version(x, world):
    pods = world.objects("pods")
    images = [pod.spec["containers"][0]["image"] for pod in pods]
    return images == [f"db:{x.spec['version']}"] * 2
