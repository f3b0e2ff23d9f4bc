"""Two handlers, each for one transition: a merged change matches neither."""

import fnop


def settings_of(name, mode):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"mode": mode},
    }


@fnop.on.create("xs")
async def start(body, name, spec, **_):
    await fnop.apply(fnop.owned(settings_of(name, spec["mode"]), body), force=True)


@fnop.on.field("xs", field="spec.mode", old="single", new="replicated")
async def replicate(body, name, new, patch, **_):
    await fnop.apply(fnop.owned(settings_of(name, new), body), force=True)
    patch.status["replicated"] = True


@fnop.on.field("xs", field="spec.mode", old="replicated", new="sharded")
async def shard(body, name, new, patch, **_):
    await fnop.apply(fnop.owned(settings_of(name, new), body), force=True)
    patch.status["sharded"] = True
