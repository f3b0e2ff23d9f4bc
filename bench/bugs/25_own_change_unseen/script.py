from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, edit


class Server(External):
    """Accounts, one for each token; without a token each one is new."""

    def __init__(self):
        self.accounts = []
        self.tokens = []

    def create(self, name, token=None):
        if token is None or token not in self.tokens:
            self.created(name)
            self.accounts.append(name)
            self.tokens.append(token)

    def digest(self):
        return self.accounts


SERVER = Server()
CALLS = {"create_account": SERVER.create}
CRDS = [crd()]
SCRIPT = [apply(custom(size=1)), edit("xs/x", spec={"size": 2})]
