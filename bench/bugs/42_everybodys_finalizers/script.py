"""A secret that two objects and a backup need; one of the objects is deleted."""

from bench.bugs.crds import crd, custom
from fnop.testing import apply, delete, expect

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "finalizers": ["rival.example.com/backup"]},
}

CRDS = [crd()]
GIVEN = [SECRET]
SCRIPT = [
    apply(custom(secret="token")),
    apply(custom("y", secret="token")),
    delete("xs/x"),
]


@expect("secrets")
def is_held_by_the_others(secret, world):
    names = secret.metadata.get("finalizers", ())
    users = [f"example.com/{x.name}" for x in world.objects("xs")]
    return {"rival.example.com/backup", *users} <= set(names)
