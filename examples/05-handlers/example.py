"""All causes of one object, and in which order handlers see them."""

from typing import Any

import fnop


@fnop.on.startup()
def started(logger: fnop.Logger, **_: Any) -> None:
    logger.info("the operator starts")


@fnop.on.cleanup()
def ended(logger: fnop.Logger, **_: Any) -> None:
    logger.info("the operator ends")


@fnop.on.resume("fnopexamples")
@fnop.on.create("fnopexamples")
def known(reason: fnop.Reason, patch: fnop.Patch, **_: Any) -> None:
    patch.status["seen"] = reason


@fnop.on.create("fnopexamples")
def create_fn(spec: fnop.Spec, **_: Any) -> dict[str, Any]:
    return {"field": spec["field"]}


@fnop.on.update("fnopexamples")
def update_fn(diff: fnop.Diff, logger: fnop.Logger, **_: Any) -> fnop.Effect:
    changed = [".".join(item.field) for item in diff]
    logger.info("changed: %s", ", ".join(changed))
    return fnop.patch(status={"changed": changed})


@fnop.on.field("fnopexamples", field="spec.field")
def field_fn(old: str | None, new: str | None, **_: Any) -> dict[str, str | None]:
    return {"old": old, "new": new}


@fnop.on.delete("fnopexamples")
def delete_fn(name: str, logger: fnop.Logger, **_: Any) -> None:
    logger.info("%s is cleaned up", name)
