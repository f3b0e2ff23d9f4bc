"""An account at an external server: the object is gone when the account is."""

import fnop


def create_account(name):
    raise NotImplementedError("the server's client")


def delete_account(name):
    raise NotImplementedError("the server's client")


@fnop.on.create("xs.example.com")
async def grant(uid, **_):
    await fnop.call(create_account, name=f"x-{uid}")


@fnop.on.delete("xs.example.com")
async def revoke(uid, **_):
    await fnop.call(delete_account, name=f"x-{uid}")
