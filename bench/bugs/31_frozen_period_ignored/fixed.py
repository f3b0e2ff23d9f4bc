"""During an announced freeze, changes wait; the handler checks them repeatedly."""

import fnop


def settings_of(name, size):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"size": str(size)},
    }


@fnop.timer("xs", interval=10)
async def configure(body, name, spec, **_):
    if await fnop.get("configmaps", name="freeze") is not None:
        return
    await fnop.apply(fnop.owned(settings_of(name, spec["size"]), body), force=True)
