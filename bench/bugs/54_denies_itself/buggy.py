"""Only labelled ConfigMaps are admitted: the operator's own are not."""

import fnop


@fnop.on.validate("configmaps", operations=["CREATE"], own_writes=True)
def is_labelled(labels, **_):
    if "team" not in labels:
        raise fnop.Denied("a ConfigMap needs the label team")


@fnop.on.create("xs.example.com")
async def made(name, spec, **_):
    await fnop.adopt(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"team": spec["team"]},
        }
    )
