"""A parent with a Pod, as 02-children, that also tells of changes and of its end."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
async def create_pod(spec: fnop.Spec, **_: Any) -> dict[str, str]:
    container = {"name": "main", "image": spec["image"], "command": spec["command"]}
    pod = await fnop.adopt(
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    )
    return {"pod": pod.name}


@fnop.on.update("fnopexamples")
def tell(**_: Any) -> fnop.Effect:
    return fnop.event("Changed", "a Pod that runs stays as it is")


@fnop.on.delete("fnopexamples")
def take_leave(name: str, logger: fnop.Logger, **_: Any) -> None:
    logger.info("%s goes, and its Pod with it", name)


@fnop.on.event("pods", labels={"somelabel": fnop.PRESENT})
def pod_changed(
    name: str, status: fnop.Status, logger: fnop.Logger, type: str | None, **_: Any
) -> None:
    logger.info("pod %s was seen (%s): %s", name, type, status.get("phase"))
