"""A network in a cloud: its id is only in the status."""

import fnop


def create_vpc():
    raise NotImplementedError("the cloud's client")


def delete_vpc(id):
    raise NotImplementedError("the cloud's client")


@fnop.on.create("xs.example.com")
async def provide(**_):
    vpc = await fnop.call(create_vpc)
    await fnop.patch(status={"vpc": vpc})


@fnop.on.delete("xs.example.com")
async def release(status, **_):
    if "vpc" in status:
        await fnop.call(delete_vpc, id=status["vpc"])
