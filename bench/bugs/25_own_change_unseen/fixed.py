"""An account for each object: its uid is the token by which it is created once."""

import fnop


def create_account(name, token):
    raise NotImplementedError("the server's client")


def delete_account(token):
    raise NotImplementedError("the server's client")


@fnop.on.create("xs.example.com")
async def welcome(name, uid, **_):
    await fnop.call(create_account, name=name, token=uid)
    await fnop.patch(annotations={"example.com/welcomed": "yes"})


@fnop.on.delete("xs.example.com")
async def farewell(uid, **_):
    await fnop.call(delete_account, token=uid)
