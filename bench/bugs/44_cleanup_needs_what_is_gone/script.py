"""The credentials are deleted before the object that needs them for its end."""

from bench.bugs.crds import crd, custom
from fnop.testing import External, apply, delete


class Service(External):
    """The service that has issued things, by token."""

    def __init__(self):
        self.given = {"c2VjcmV0": 3}

    def revoke(self, token):
        self.given.pop(token, None)


SERVICE = Service()
CALLS = {"revoke": SERVICE.revoke}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token"},
    "data": {"token": "c2VjcmV0"},
}

CRDS = [crd()]
GIVEN = [SECRET]
SCRIPT = [apply(custom(secret="token")), delete("secrets/token"), delete("xs/x")]
