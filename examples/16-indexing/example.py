"""An index of all objects of a kind, at hand for every handler."""

from typing import Any

import fnop


@fnop.index("configmaps", labels={"colour": fnop.PRESENT})
def maps_by_colour(labels: fnop.Labels, name: str, **_: Any) -> dict[str, str]:
    return {labels["colour"]: name}


@fnop.on.create("fnopexamples")
@fnop.on.update("fnopexamples")
def count(
    patch: fnop.Patch, maps_by_colour: fnop.Index[str, str] = fnop.INDEX, **_: Any
) -> None:
    """The index is full before this is called, and stays as it is during the call."""
    for colour, names in maps_by_colour.items():
        patch.status["maps"][colour] = list(names)
