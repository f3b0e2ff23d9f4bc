"""A network in a cloud: a tag with the object's uid names its owner."""

import fnop


def find_vpcs(tag):
    raise NotImplementedError("the cloud's client")


def create_vpc(tag):
    raise NotImplementedError("the cloud's client")


def delete_vpc(id):
    raise NotImplementedError("the cloud's client")


@fnop.on.create("xs.example.com")
async def provide(uid, **_):
    found = await fnop.call(find_vpcs, tag=uid)
    vpc = found[0] if found else await fnop.call(create_vpc, tag=uid)
    await fnop.patch(status={"vpc": vpc})


@fnop.on.delete("xs.example.com")
async def release(uid, **_):
    for vpc in await fnop.call(find_vpcs, tag=uid):
        await fnop.call(delete_vpc, id=vpc)
