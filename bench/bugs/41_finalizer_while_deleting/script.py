"""A deleted object that somebody else holds for a while."""

from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete, edit


class Tenants(External):
    """The tenants of a service, by the uid of their objects."""

    def __init__(self):
        self.live = {}
        self.made = {}

    def add(self, uid, name):
        if uid not in self.live:
            self.live[uid] = name
            self.made[name] = self.made.get(name, 0) + 1

    def remove(self, uid):
        self.live.pop(uid, None)

    def digest(self):
        return sorted(self.live.values())

    def creations(self):
        return dict(self.made)


TENANTS = Tenants()
CALLS = {"add_tenant": TENANTS.add, "remove_tenant": TENANTS.remove}

HELD = custom(plan="small")
HELD["metadata"]["finalizers"] = ["rival.example.com/backup"]

CRDS = [crd()]
SCRIPT = [
    apply(HELD),
    delete("xs/x"),
    edit("xs/x", metadata={"finalizers": None}),
]
