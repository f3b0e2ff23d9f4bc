from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, edit


class Server(External):
    """Accounts, one for each token; without a token each one is new."""

    def __init__(self):
        self.accounts = []

    def create(self, name, token=None):
        if token is None or [name, token] not in self.accounts:
            self.created(name)
            self.accounts.append([name, token])

    def delete(self, token):
        self.accounts = [each for each in self.accounts if each[1] != token]

    def digest(self):
        return [name for name, _ in self.accounts]


SERVER = Server()
CALLS = {"create_account": SERVER.create, "delete_account": SERVER.delete}
CRDS = [crd()]
SCRIPT = [apply(custom(size=1)), edit("xs/x", spec={"size": 2})]
