from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete


class Server(External):
    """Accounts by name; an existing one is not created, a missing one not deleted."""

    def __init__(self):
        self.made = 0
        self.accounts = set()

    def create(self, name):
        self.made += name not in self.accounts
        self.accounts.add(name)

    def delete(self, name):
        self.accounts.discard(name)

    def digest(self):
        return len(self.accounts)

    def creations(self):
        return {"account": self.made}


SERVER = Server()
CALLS = {"create_account": SERVER.create, "delete_account": SERVER.delete}
CRDS = [crd()]
SCRIPT = [apply(custom()), delete("xs/x")]
