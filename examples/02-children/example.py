"""A parent with a Pod: adopted, so that it is found again and goes with its parent."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
async def create_pod(spec: fnop.Spec, **_: Any) -> dict[str, str]:
    pod = await fnop.adopt(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": spec["image"],
                        "command": spec["command"],
                    }
                ]
            },
        }
    )
    return {"pod": pod.name}


@fnop.on.event("pods", labels={"somelabel": fnop.PRESENT})
def pod_changed(
    name: str, status: fnop.Status, logger: fnop.Logger, type: str | None, **_: Any
) -> None:
    logger.info("pod %s was seen (%s): %s", name, type, status.get("phase"))
