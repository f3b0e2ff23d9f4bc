"""The command `kopf run` on fnop: its options, variables and mistakes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click.testing
import pytest

from fnop.adapters.kopf.commands import cli
from fnop.adapters.kopf.commands.cli import CliControls, main
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.startup import ActivityError
from fnop.core.handlers.declare.registry import default_registry

pytest.importorskip("kopf")
from kopf.cli import main as kopf_main

pytestmark = pytest.mark.usefixtures("restored_log", "without_kopf")

OPERATOR = """
import kopf

@kopf.on.create("pods")
def created(**_):
    pass
"""
Given = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> str:
    found = tmp_path / "operator.py"
    found.write_text(OPERATOR)
    return str(found)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """The arguments of each operator that a command has run."""
    found: list[Given] = []

    async def operator(**given: Any) -> None:
        found.append(given)

    monkeypatch.setattr(cli, "operator", operator)
    return found


def invoke(
    *arguments: str, env: dict[str, str] | None = None, obj: Any = None
) -> click.testing.Result:
    return click.testing.CliRunner().invoke(main, [*arguments], env=env, obj=obj)


def test_it_has_the_options_of_kopf() -> None:
    def options(command: Any) -> set[str]:
        return {each for option in command.params for each in option.opts}

    wanted = options(kopf_main.commands["run"])
    assert wanted - options(main.commands["run"]) == set()
    assert "--record" in options(main.commands["run"])


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]], ids=range(2))
def test_help_is_printed(arguments: list[str]) -> None:
    found = invoke(*arguments)
    assert found.exit_code == 0
    assert "written with Kopf" in found.output


def test_the_operator_of_a_file_is_run(file: str, calls: list[Given]) -> None:
    found = invoke("run", "-n", "shop", "-n", "team-*", file)
    assert found.exit_code == 0, found.output
    (given,) = calls
    assert given["namespaces"] == ["shop", "team-*"]
    assert not given["clusterwide"]
    assert [each.id for each in given["registry"].entries] == ["created"]


@pytest.mark.parametrize("arguments", [[], ["-A"]], ids=["none", "all"])
def test_the_whole_cluster_is_served(
    file: str, calls: list[Given], arguments: list[str]
) -> None:
    assert invoke("run", *arguments, file).exit_code == 0
    assert calls[0]["clusterwide"]
    assert calls[0]["namespaces"] == []


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--dev"], {"priority": 666}),
        (["--priority", "5"], {"priority": 5}),
        ([], {"priority": None, "standalone": None, "peering_name": None}),
        (["--standalone"], {"standalone": True}),
        (["--peering", "ours"], {"peering_name": "ours"}),
        (["--liveness", "http://:8080"], {"liveness_endpoint": "http://:8080"}),
        (["--record", "x.fnop"], {"record": "x.fnop"}),
        (["--metrics", "http://:9090"], {"metrics": "http://:9090"}),
        (["--context", "c", "--kubeconfig", "k"], {"context": "c", "kubeconfig": "k"}),
    ],
    ids=range(9),
)
def test_options_are_arguments_of_the_operator(
    file: str, calls: list[Given], arguments: list[str], wanted: Given
) -> None:
    assert invoke("run", *arguments, file).exit_code == 0
    assert {name: calls[0][name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"KOPF_RUN_NAMESPACES": "shop"}, {"namespaces": ["shop"]}),
        ({"KOPF_RUN_NAMESPACE": "shop"}, {"namespaces": ["shop"]}),
        (
            {"KOPF_RUN_LIVENESS_ENDPOINT": "http://:1"},
            {"liveness_endpoint": "http://:1"},
        ),
        ({"KOPF_RUN_PEERING": "ours"}, {"peering_name": "ours"}),
        ({"KOPF_RUN_CLUSTERWIDE": "1"}, {"clusterwide": True}),
        ({"KOPF_RUN_PRIORITY": "7"}, {"priority": 7}),
        ({"KOPF_RUN_STANDALONE": "1"}, {"standalone": True}),
    ],
    ids=range(7),
)
def test_variables_are_options(
    file: str, calls: list[Given], variables: dict[str, str], wanted: Given
) -> None:
    assert invoke("run", file, env=variables).exit_code == 0
    assert {name: calls[0][name] for name in wanted} == wanted


def test_a_namespace_and_all_of_them_exclude_each_other(
    file: str, calls: list[Given]
) -> None:
    found = invoke("run", "-n", "shop", "-A", file)
    assert found.exit_code == 2
    assert "either --namespace or --all-namespaces" in found.output
    assert calls == []


def test_an_expression_as_a_namespace_is_a_wrong_call(
    file: str, calls: list[Given]
) -> None:
    done = invoke("run", file, "-n", "prod-(a|b)")
    assert done.exit_code == 2
    assert (
        "'prod-(a|b)' is neither the name of a namespace nor a pattern" in done.output
    )
    assert not calls


def test_a_missing_file_is_named(calls: list[Given]) -> None:
    found = invoke("run", "-A", "nowhere.py")
    assert found.exit_code == 1
    assert "nowhere.py" in found.output
    assert calls == []


def test_a_file_without_handlers_is_refused(tmp_path: Path, calls: list[Given]) -> None:
    file = tmp_path / "empty.py"
    file.write_text("import kopf\n")
    found = invoke("run", "-A", str(file))
    assert found.exit_code == 2
    assert f"{file} declares no handlers with Kopf's decorators" in found.output
    assert calls == []


def test_a_module_is_imported(
    tmp_path: Path, calls: list[Given], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_operator_of_cli.py").write_text(OPERATOR)
    monkeypatch.syspath_prepend(tmp_path)
    assert invoke("run", "-A", "-m", "my_operator_of_cli").exit_code == 0
    assert [each.id for each in calls[0]["registry"].entries] == ["created"]


def test_each_run_executes_its_files(
    file: str, calls: list[Given], default_registry: OperatorRegistry
) -> None:
    for _ in range(2):
        assert invoke("run", "-A", file).exit_code == 0
    assert [each.id for each in default_registry.entries] == ["created"] * 2


def test_a_test_may_give_its_own_values(file: str, calls: list[Given]) -> None:
    registry = OperatorRegistry()
    settings, flag = OperatorSettings(), object()
    from fnop.adapters.kopf.declaring.on import create

    create("pods", registry=registry)(lambda **_: None)
    controls = CliControls(
        registry=registry, settings=settings, stop_flag=flag, ready_flag=flag
    )
    assert invoke("run", "-A", file, obj=controls).exit_code == 0
    (given,) = calls
    assert given["registry"] is registry
    assert given["settings"] is settings
    assert given["stop_flag"] is given["ready_flag"] is flag


def test_an_operator_that_fails_is_reported(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def operator(**_: Any) -> None:
        raise ActivityError("the startup handler x has failed: y")

    monkeypatch.setattr(cli, "operator", operator)
    found = invoke("run", "-A", file)
    assert found.exit_code == 1
    assert "the startup handler x has failed: y" in found.output


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ([], logging.INFO),
        (["-v"], logging.DEBUG),
        (["--debug"], logging.DEBUG),
        (["-q"], logging.WARNING),
    ],
    ids=range(4),
)
@pytest.mark.usefixtures("calls")
def test_the_log_is_configured(file: str, arguments: list[str], level: int) -> None:
    assert invoke("run", "-A", *arguments, file).exit_code == 0
    assert logging.getLogger().level == level


def test_a_wrong_format_is_refused(file: str) -> None:
    found = invoke("run", "--log-format", "xml", file)
    assert found.exit_code == 2
    assert "plain" in found.output


def test_a_file_with_handlers_of_fnop_can_run_again(
    tmp_path: Path, calls: list[Given]
) -> None:
    """As tests with a `KopfRunner` do: each run executes the file anew."""
    file = tmp_path / "both.py"
    file.write_text(f"import fnop\n{OPERATOR}\n@fnop.on.create('pods')\ndef f(): ...\n")
    with default_registry.set_aside():
        for _ in range(2):
            found = invoke("run", str(file))
            assert found.exit_code == 0, found.output
            assert [each.id for each in default_registry.handlers] == ["f"]
    assert len(calls) == 2
