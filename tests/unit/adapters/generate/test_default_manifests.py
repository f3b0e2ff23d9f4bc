"""Manifests that `fnop check` and others find next to an operator by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import Done, fnop
from tests.simulations import DEFINITION, example

OPERATOR = """
import fnop

@fnop.on.create("fnopexamples")
def made(name, **_):
    return fnop.patch(status={"made": name})
"""
WIDGETS: dict[str, Any] = {
    **DEFINITION,
    "metadata": {"name": "widgets.other.dev"},
    "spec": {
        **DEFINITION["spec"],
        "group": "other.dev",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
    },
}
WIDGET = {"apiVersion": "other.dev/v1", "kind": "Widget", "metadata": {"name": "w"}}
COMMANDS = {
    # Its runs under other hash seeds are processes, and have no part in this.
    "check": ("--budget", "9", "--without", "pure"),
    "rbac": ("--budget", "0"),
    "olm": ("--budget", "0", "--version", "1.0.0"),
}
MADE_UP = "fnop: made up a definition of fnopexamples that takes any spec"


def told(
    command: str, folder: Path, *options: str, **files: dict[str, Any] | list[Any]
) -> Done:
    (folder / "operator.py").write_text(OPERATOR)
    for name, manifests in files.items():
        found = manifests if isinstance(manifests, list) else [manifests]
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(found))
    return fnop(command, "operator.py", *COMMANDS[command], *options, folder=folder)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_definition_of_another_kind_is_none(command: str, tmp_path: Path) -> None:
    done = told(command, tmp_path, crd=WIDGETS)
    why = "crd.yaml defines widgets.other.dev alone; give"
    assert f"{MADE_UP}: {why} --crd\n" in done.err
    if command == "olm":
        assert f"no definition of fnopexamples: {why} it with --crd" in done.err
        assert done.status == 2
    else:
        assert done.status == 0, done


@pytest.mark.parametrize("command", COMMANDS)
def test_a_definition_is_used_for_the_kind_that_it_defines(
    command: str, tmp_path: Path
) -> None:
    both = [WIDGETS, DEFINITION]
    done = told(command, tmp_path, crd=both, object=example("one"))
    assert done.status == 0, done
    assert "made up" not in done.err
    assert "with crd.yaml, object.yaml" in done.err
    if command == "olm":
        names = [each.name for each in (tmp_path / "bundle/manifests").iterdir()]
        assert "fnopexamples.fnop.dev.crd.yaml" in names
        assert "widgets.other.dev.crd.yaml" not in names


@pytest.mark.parametrize("command", COMMANDS)
def test_an_object_of_an_unknown_kind_is_left_out(command: str, tmp_path: Path) -> None:
    done = told(command, tmp_path, crd=DEFINITION, object=[WIDGET, example("one")])
    assert done.status == 0, done
    assert "left out Widget w beside the operator: nobody defines its kind" in done.err


def test_one_that_was_named_is_not_left_out(tmp_path: Path) -> None:
    options = ("--crd", "kinds.yaml", "--object", "things.yaml")
    things = [WIDGET, example("one")]
    done = told("check", tmp_path, *options, kinds=DEFINITION, things=things)
    assert done.status == 2
    assert "the cluster serves no Widget of other.dev/v1" in done.err


def test_the_files_that_were_named_are_told(tmp_path: Path) -> None:
    done = told("check", tmp_path, "--crd", "kinds.yaml", kinds=WIDGETS, crd=DEFINITION)
    assert f"{MADE_UP}: kinds.yaml defines widgets.other.dev alone" in done.err


def test_where_there_is_nothing_no_file_is_named(tmp_path: Path) -> None:
    assert f"{MADE_UP}; give --crd\n" in told("check", tmp_path).err
