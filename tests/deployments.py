"""The manifests of examples/deployment."""

from __future__ import annotations

from typing import Any

import yaml

from tests.simulations import ROOT

FOLDER = ROOT / "examples" / "deployment"


def manifests(file: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((FOLDER / file).read_text()) if each]


def one(file: str, kind: str) -> dict[str, Any]:
    (found,) = [each for each in manifests(file) if each["kind"] == kind]
    return found


SPEC = {"image": "busybox", "command": ["sleep", "1"], "duration": "1m"}
