"""An account at an external server: a failed removal is only logged."""

import fnop


def create_account(name):
    raise NotImplementedError("the server's client")


def delete_account(name):
    raise NotImplementedError("the server's client")


@fnop.on.create("xs.example.com")
async def grant(uid, **_):
    await fnop.call(create_account, name=f"x-{uid}")


@fnop.on.delete("xs.example.com")
async def revoke(uid, logger, **_):
    try:
        await fnop.call(delete_account, name=f"x-{uid}")
    except fnop.CallFailed as error:
        logger.warning("the account is not deleted: %s", error)
