from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete


class Server(External):
    """Accounts by name; what is there is not made again, what is not is not deleted."""

    def __init__(self):
        self.made = 0
        self.accounts = {}

    def create(self, name, role):
        self.made += name not in self.accounts
        self.accounts[name] = role

    def delete(self, name):
        self.accounts.pop(name, None)

    def digest(self):
        return sorted(self.accounts.values())

    def creations(self):
        return {"account": self.made}


SERVER = Server()
CALLS = {"create_account": SERVER.create, "delete_account": SERVER.delete}
CRDS = [crd()]
SCRIPT = [apply(custom(role="view")), delete("xs/x")]
