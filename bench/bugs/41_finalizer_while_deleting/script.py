"""A deleted object that another controller holds for a while."""

from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete, edit


class Tenants(External):
    """The tenants of a service, by the uid of their objects."""

    def __init__(self):
        self.live = {}

    def add(self, uid, name):
        if uid not in self.live:
            self.created(name)
        self.live[uid] = name

    def remove(self, uid):
        self.live.pop(uid, None)

    def digest(self):
        return sorted(self.live.values())


TENANTS = Tenants()
CALLS = {"add_tenant": TENANTS.add, "remove_tenant": TENANTS.remove}

BACKUP = "rival.example.com/backup"
HELD = custom(plan="small")
HELD["metadata"]["finalizers"] = [BACKUP]
SAVED = {"annotations": {"example.com/saved": "yes"}}


def backup(found):
    """A rival that releases saved objects, and removes only its own finalizers."""
    meta = found["metadata"]
    names = meta.get("finalizers", [])
    if "example.com/saved" not in meta.get("annotations", {}) or BACKUP not in names:
        return None
    return {"metadata": {"finalizers": [each for each in names if each != BACKUP]}}


CRDS = [crd()]
RIVALS = {"xs.example.com": backup}
SCRIPT = [apply(HELD), delete("xs/x"), edit("xs/x", metadata=SAVED)]
