"""A machine for each object, under a name that is the same at every attempt."""

import fnop

MACHINE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"containers": [{"name": "main", "image": "machine"}]},
}


@fnop.on.create("xs.example.com")
@fnop.on.resume("xs.example.com")
async def provide(**_):
    await fnop.adopt(MACHINE, role="machine")
