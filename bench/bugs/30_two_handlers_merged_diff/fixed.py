"""One handler, which reads the present spec."""

import fnop

ORDER = ["single", "replicated", "sharded"]


def settings_of(name, mode):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"mode": mode},
    }


@fnop.timer("xs", interval=10)
async def converge(body, name, spec, patch, **_):
    await fnop.apply(fnop.owned(settings_of(name, spec["mode"]), body), force=True)
    reached = ORDER.index(spec["mode"])
    patch.status["replicated"] = reached >= ORDER.index("replicated")
    patch.status["sharded"] = reached >= ORDER.index("sharded")
