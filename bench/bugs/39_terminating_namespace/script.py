"""An object in a namespace that is deleted."""

from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete


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

CRDS = [crd()]
GIVEN = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}]
SCRIPT = [apply(custom(namespace="team", plan="small")), delete("namespaces/team")]
