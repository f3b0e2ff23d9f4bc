"""A bucket in a cloud: a mark says that its creation has begun, to create it once."""

import fnop

PENDING, SUCCEEDED = "example.com/create-pending", "example.com/create-succeeded"


def create_bucket(name):
    raise NotImplementedError("the cloud's client")


def delete_bucket(name):
    raise NotImplementedError("the cloud's client")


@fnop.on.create("xs.example.com")
async def provide(uid, annotations, **_):
    if PENDING in annotations and SUCCEEDED not in annotations:
        raise fnop.PermanentError("the bucket may exist already; look for it by hand")
    await fnop.patch(annotations={PENDING: "true"})
    try:
        await fnop.call(create_bucket, name=f"x-{uid}")
    except fnop.CallFailed:
        await fnop.patch(annotations={PENDING: None})
        raise
    await fnop.patch(annotations={SUCCEEDED: "true"})


@fnop.on.delete("xs.example.com")
async def release(uid, **_):
    await fnop.call(delete_bucket, name=f"x-{uid}")
