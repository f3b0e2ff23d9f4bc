"""Each turn writes the whole deployment, with a number that an autoscaler sets."""

import fnop


def deployment_of(name, image):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"owner": name}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "server", "image": image}]},
            },
        },
    }


@fnop.timer("xs", interval=10)
async def serve(body, name, spec, **_):
    desired = deployment_of(name, spec["image"])
    await fnop.apply(fnop.owned(desired, body), force=True)
