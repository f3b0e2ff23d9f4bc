"""A cluster with three nodes, which is watched."""

from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, wait


class Remote(External):
    """Another cluster, whose nodes can be listed."""

    def __init__(self):
        self.nodes = ["n1", "n2", "n3"]

    def list_nodes(self, cluster):
        return list(self.nodes)


REMOTE = Remote()
CALLS = {"list_nodes": REMOTE.list_nodes}

CRDS = [crd()]
SCRIPT = [apply(custom()), wait(30)]
