"""Admission handlers that create, change, deny and warn."""

from typing import Any

import fnop

KIND = "claims.admission.fnop.dev"


@fnop.on.mutate(KIND, operations=["CREATE"])
def sized(spec: fnop.Spec, patch: fnop.Patch, **_: Any) -> None:
    if "size" not in spec:
        patch.spec["size"] = 1


@fnop.on.validate(KIND)
def shrinks_not(
    spec: fnop.Spec, old: fnop.Body | None, warnings: list[str], **_: Any
) -> None:
    size = spec.get("size", 0)
    if size > 100:
        warnings.append("claims of more than 100 take an hour")
    if old is not None and size < old["spec"]["size"]:
        raise fnop.Denied("it must not shrink", field="spec.size")
