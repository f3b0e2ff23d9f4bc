"""Operators of recordings, in this process: as they are, and with other code."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from fnop.adapters.common.loading import SCRIPT
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.replay.replay import recorded_settings
from fnop.interpreters.shadow.attempts import Shadow, shadow
from tests.replays.corpus import Recorded

__all__ = ["UNTOLD", "shadowed"]

# Of an object that goes no author's function is asked; an impure one never is.
UNTOLD = frozenset(
    (
        "fnop ends it without the author's function",
        "it is impure: it would act again",
    )
)


def shadowed(recorded: Recorded, file: Path, monkeypatch: pytest.MonkeyPatch) -> Shadow:
    """All decisions of a recording, asked again of the handlers of a file."""
    with recorded.file.open("rb") as opened:
        records = read_records(opened)
        header = read_header(records)
        settings = recorded_settings(header)
        name = f"{SCRIPT}{Path(recorded.operator).stem}"
        with default_registry.set_aside():
            _load(name, file, monkeypatch)
            program = Program(default_registry.handlers, settings)
        return shadow(records, header, program)


def _load(name: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a file under the name that the recorded run gave it.

    Calls of its functions have that name.
    """
    loader = SourceFileLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(file.parent)  # it may import files next to it
    loader.exec_module(module)
