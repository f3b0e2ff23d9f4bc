"""During an announced freeze, changes are dropped and never handled later."""

import fnop


def settings_of(name, size):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"size": str(size)},
    }


@fnop.on.create("xs")
@fnop.on.update("xs")
async def configure(body, name, spec, **_):
    if await fnop.get("configmaps", name="freeze") is not None:
        return
    await fnop.apply(fnop.owned(settings_of(name, spec["size"]), body), force=True)
