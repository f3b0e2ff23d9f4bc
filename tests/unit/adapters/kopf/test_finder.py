"""`import kopf` finds fnop, if it is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import fnop.kopf
from fnop.adapters.kopf.arguments.bodies import Body
from fnop.adapters.kopf.commands import cli, finder, testing
from fnop.adapters.kopf.commands.finder import install
from fnop.adapters.kopf.declaring import on, settings
from fnop.core.values import diff

pytestmark = pytest.mark.usefixtures("without_kopf")


def test_kopf_and_its_public_modules_are_those_of_fnop() -> None:
    install()
    kopf = importlib.import_module("kopf")
    assert kopf is fnop.kopf
    assert kopf.on is importlib.import_module("kopf.on") is on
    assert importlib.import_module("kopf.testing") is testing
    assert importlib.import_module("kopf.cli") is cli


def test_private_modules_that_operators_import_are_those_of_fnop() -> None:
    install()
    find = importlib.import_module
    assert find("kopf._cogs.structs.bodies").Body is Body
    assert find("kopf._cogs.structs.diffs") is diff
    assert find("kopf._cogs.structs").bodies.Body is Body
    assert find("kopf._cogs.configs.configuration") is settings
    assert find("kopf._cogs.structs.dicts").FieldSpec is fnop.kopf.FieldSpec
    assert find("kopf._cogs.structs.ids").HandlerId is fnop.kopf.HandlerId
    assert find("kopf._cogs.helpers.typedefs").Logger is fnop.kopf.Logger
    credentials = find("kopf._cogs.structs.credentials")
    assert credentials.ConnectionInfo is fnop.kopf.ConnectionInfo
    assert find("kopf._core.intents.callbacks").not_ is fnop.kopf.not_
    assert find("kopf._core.intents.callbacks").ChangingFn


def test_the_private_modules_are_attributes_after_import_kopf() -> None:
    changed_import: Any = fnop.kopf
    assert changed_import._cogs.structs.diffs.diff is diff.diff
    assert changed_import._core.intents.callbacks.not_ is fnop.kopf.not_
    install()
    kopf = importlib.import_module("kopf")
    assert kopf._cogs.structs.bodies.Body is Body
    assert importlib.import_module("kopf._cogs.structs") is kopf._cogs.structs
    assert not hasattr(kopf._cogs, "__wrapped__")


def test_a_program_loads_files_and_configures_its_log(tmp_path: Path) -> None:
    install()
    file = tmp_path / "handlers_of_program.py"
    file.write_text("import kopf\nkopf.on.startup()(lambda **_: None)\n")
    loaders = importlib.import_module("kopf._cogs.helpers.loaders")
    loggers = importlib.import_module("kopf._core.actions.loggers")
    assert loggers.configure is fnop.kopf.configure
    kept = fnop.kopf.get_default_registry()
    fnop.kopf.set_default_registry(fnop.kopf.OperatorRegistry())
    try:
        loaders.preload(paths=(str(file),), modules=())
        assert not fnop.kopf.get_default_registry().is_empty
    finally:
        fnop.kopf.set_default_registry(kept)


@pytest.mark.parametrize(
    "statement",
    [
        "from kopf._cogs.helpers import versions",
        "from kopf._core.actions import invocation",
        "import kopf; kopf._cogs.clients.patching",
    ],
)
def test_a_name_of_a_private_package_is_refused_with_the_remedy(statement: str) -> None:
    install()
    text = "is a private module of Kopf.*import the name from"
    with pytest.raises(ModuleNotFoundError, match=text):
        exec(statement, {})


def test_another_private_module_is_an_error_with_the_remedy() -> None:
    install()
    text = r"kopf\._core\.reactor is a private module of Kopf.*import the name from"
    with pytest.raises(ModuleNotFoundError, match=text) as found:
        importlib.import_module("kopf._core.reactor.queueing")
    assert found.value.name == "kopf._core.reactor"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("kopf.unknown")


def test_modules_keep_their_own_names() -> None:
    install()
    module = importlib.import_module("kopf.on")
    assert module.__name__ == "fnop.adapters.kopf.declaring.on"
    assert module.__spec__ is not None
    assert module.__spec__.name == "fnop.adapters.kopf.declaring.on"
    assert importlib.reload(module) is module


def test_other_modules_are_found_as_before() -> None:
    install()
    assert finder._KOPF.find_spec("json") is None
    assert finder._KOPF.find_spec("kopfkino") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("kopfkino")


def test_it_is_installed_once() -> None:
    before = len(sys.meta_path)
    install()
    importlib.import_module("kopf")
    install()
    assert len(sys.meta_path) == before + 1


def test_it_is_too_late_after_kopf_itself() -> None:
    pytest.importorskip("kopf")
    with pytest.raises(RuntimeError, match=r"imported already.*python -m fnop\.kopf"):
        install()
