from bench.bugs.crds import crd, custom
from fnop.testing import External, apply


class Cloud(External):
    """Buckets, each under a name of its own."""

    def __init__(self):
        self.made = 0
        self.buckets = set()

    def find(self, name):
        return name in self.buckets

    def create(self, name):
        if name in self.buckets:
            raise ValueError("BucketAlreadyExists")
        self.made += 1
        self.buckets.add(name)

    def delete(self, name):
        self.buckets.discard(name)

    def digest(self):
        return len(self.buckets)

    def creations(self):
        return {"bucket": self.made}


CLOUD = Cloud()
CALLS = {
    "find_bucket": CLOUD.find,
    "create_bucket": CLOUD.create,
    "delete_bucket": CLOUD.delete,
}
CRDS = [crd()]
SCRIPT = [apply(custom())]
