"""An account for each object: a mark on the object says that it has been created."""

import fnop

WELCOMED = "example.com/welcomed"


def create_account(name):
    raise NotImplementedError("the server's client")


@fnop.on.event("xs.example.com")
async def welcome(name, annotations, type, **_):
    if type != "DELETED" and WELCOMED not in annotations:
        await fnop.call(create_account, name=name)
        await fnop.patch(annotations={WELCOMED: "yes"})
