from bench.bugs.crds import crd, custom
from fnop.testing import External, apply


class Cloud(External):
    """Networks with ids of the cloud's own."""

    def __init__(self):
        self.made = 0
        self.vpcs = {}

    def find(self, tag):
        return [id for id, label in self.vpcs.items() if label == tag]

    def create(self, tag=""):
        self.made += 1
        id = f"vpc-{self.made}"
        self.vpcs[id] = tag
        return id

    def delete(self, id):
        self.vpcs.pop(id, None)

    def digest(self):
        return len(self.vpcs)

    def creations(self):
        return {"vpc": self.made}


CLOUD = Cloud()
CALLS = {
    "find_vpcs": CLOUD.find,
    "create_vpc": CLOUD.create,
    "delete_vpc": CLOUD.delete,
}
CRDS = [crd()]
SCRIPT = [apply(custom())]
