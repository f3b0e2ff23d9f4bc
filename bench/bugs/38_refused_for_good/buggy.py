"""A permanently refused update is retried forever, and blocks all later ones."""

import fnop


def stateful_set_of(name, spec):
    template = {"metadata": {"labels": {"app": name}}}
    template["spec"] = {"containers": [{"name": "db", "image": spec["image"]}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {
            "serviceName": name,
            "podManagementPolicy": spec["policy"],
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def settings_of(name, spec):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": {"owner": name}},
        "data": {"policy": spec["policy"]},
    }


@fnop.on.create("xs")
@fnop.on.update("xs")
async def run(body, name, spec, **_):
    for child in (stateful_set_of(name, spec), settings_of(name, spec)):
        await fnop.apply(fnop.owned(child, body), force=True)
