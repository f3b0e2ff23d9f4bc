"""An operator that changes each object once, in the form given by its name."""

from __future__ import annotations

from typing import Any

import fnop
from tests.change_forms import FORMS


def changed(name: str, patch: Any) -> Any:
    form = FORMS[name.partition("-")[2]][0]
    if not callable(form):
        return form
    patch.fns.append(form)
    return None


@fnop.on.create("fnopexamples", labels={"kept": "1"})
def create(name: str, patch: Any, **_: Any) -> Any:
    return changed(name, patch) if name.startswith("create-") else None


@fnop.on.field("fnopexamples", field="metadata.labels.edited")
def update(name: str, patch: Any, new: Any, **_: Any) -> Any:
    return changed(name, patch) if new and name.startswith("update-") else None
