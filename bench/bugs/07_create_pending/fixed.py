"""A bucket in a cloud: its name follows from the object, and can be looked up."""

import fnop


def find_bucket(name):
    raise NotImplementedError("the cloud's client")


def create_bucket(name):
    raise NotImplementedError("the cloud's client")


def delete_bucket(name):
    raise NotImplementedError("the cloud's client")


@fnop.on.create("xs.example.com")
async def provide(uid, **_):
    if not await fnop.call(find_bucket, name=f"x-{uid}"):
        await fnop.call(create_bucket, name=f"x-{uid}")
    await fnop.patch(annotations={"example.com/create-succeeded": "true"})


@fnop.on.delete("xs.example.com")
async def release(uid, **_):
    await fnop.call(delete_bucket, name=f"x-{uid}")
