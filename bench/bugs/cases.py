"""The bugs as cases for the explorer."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from fnop.adapters.common.loading import handlers_of_file
from fnop.adapters.testing.models import models_for
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case
from fnop.interpreters.check.state.expectations import expectations_in

__all__ = ["BUGS", "Bug", "bug_in", "case_of"]

HERE = Path(__file__).parent
BUGS = sorted(path.parent for path in HERE.glob("*/meta.toml"))


class Bug(NamedTuple):
    """A bug: its source, the properties that show it, and the needed options."""

    slug: str
    folder: Path
    title: str
    source: str
    properties: tuple[str, ...] = ()
    severity: str = "R"
    depth: int = 1
    impossible: str = ""


def bug_in(folder: Path) -> Bug:
    """Read the description of a bug."""
    meta = tomllib.loads((folder / "meta.toml").read_text())
    return Bug(
        folder.name,
        folder,
        meta["title"],
        meta["source"],
        tuple(meta.get("properties", ())),
        meta.get("class", "R"),
        meta.get("depth", 1),
        meta.get("impossible", ""),
    )


def case_of(folder: Path, variant: str) -> Case:
    """The case of a bug's operator: `buggy` or `fixed`."""
    file = folder / f"{variant}.py"
    script = _module(folder / "script.py", f"bench_bugs_{folder.name}_script")
    names: dict[str, Any] = vars(script)
    calls = models_for(names.get("CALLS", {}))
    settings = names.get("SETTINGS", Settings())
    return Case(
        Program(handlers_of_file(file), settings),
        names.get("CRDS", ()),
        tuple(names["SCRIPT"]),
        names.get("GIVEN", ()),
        calls,
        names.get("RIVALS", {}),
        folder.name,
        expectations=expectations_in(names),
        history=tuple(names.get("HISTORY", ())),
    )


def _module(file: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
