"""Admission: what may be stored, decided before it is."""

from typing import Any

import fnop

from __package__ import kinds


@fnop.on.validate(kinds.__Kind__)
def image_has_a_version(
    spec: kinds.__Kind__Spec,
    warnings: fnop.Warnings,
    **_: Any,
) -> None:
    """Without a version it would be another image with each pull."""
    image = spec.image
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag == "latest":
        raise fnop.Denied("name a version, and not latest", field="spec.image")
    if not tag:
        warnings.append(f"the image {image} has no version, so it may change")
