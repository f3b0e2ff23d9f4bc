"""Two objects may name one secret; each writes it as its own."""

import fnop


@fnop.timer("xs", interval=10)
async def issue(name, spec, **_):
    metadata = {"name": spec["target"], "annotations": {"example.com/owner": name}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    secret["stringData"] = {"host": spec["host"]}
    await fnop.apply(secret, force=True)
