"""`kopf.testing.KopfRunner`: tests of authors, with an operator in the background."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.commands.testing import KopfRunner
from fnop.adapters.kopf.declaring.registry import (
    get_default_registry,
    set_default_registry,
)
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from tests.patience import happens, patience
from tests.simulations import DEFINITION, example

pytestmark = pytest.mark.usefixtures("restored_log", "without_kopf")

OPERATOR = """
import kopf

@kopf.on.create("fnopexamples")
def create(name, logger, **_):
    logger.info(f"creates {name}")
    return {"made": name}

@kopf.on.delete("fnopexamples")
def delete(name, logger, **_):
    logger.info(f"deletes {name}")
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    """A cluster that `KUBECONFIG` names, as in an author's CI."""
    found = SimulatedCluster()
    found.apply(DEFINITION)
    with found.serve() as served:
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
        yield found


@pytest.fixture
def file(tmp_path: Path) -> str:
    found = tmp_path / "operator_under_test.py"
    found.write_text(OPERATOR)
    return str(found)


def status(cluster: SimulatedCluster, name: str) -> Any:
    return (cluster.get("fnopexamples", name) or {}).get("status", {}).get("create")


def test_an_operator_runs_for_a_block_and_is_judged_after_it(
    cluster: SimulatedCluster, file: str
) -> None:
    args = ["run", "-A", "--verbose", file]
    with KopfRunner(args, timeout=patience(20)) as runner:
        cluster.apply(example("x"))
        assert happens(lambda: status(cluster, "x") == {"made": "x"})
        cluster.delete("fnopexamples", "x")
        assert happens(lambda: cluster.get("fnopexamples", "x") is None)
    assert (runner.exit_code, runner.exception) == (0, None)
    assert "creates x" in runner.output
    assert "deletes x" in runner.output
    assert "Handler 'delete' succeeded." in runner.output


def test_tests_one_after_another_do_not_see_each_other(
    cluster: SimulatedCluster, file: str
) -> None:
    """As in suites that forget the registry, and load the operator again."""
    for name in ("x", "y"):
        set_default_registry(None)
        with KopfRunner(["run", "-A", file], timeout=patience(20)) as runner:
            cluster.apply(example(name))
            assert happens(partial(status, cluster, name))
        assert runner.exit_code == 0
        assert [each.id for each in get_default_registry().entries] == [
            "create",
            "delete",
        ]
    assert "creates x" not in runner.output


def test_a_file_declares_its_handlers_in_the_registry_of_the_test(
    cluster: SimulatedCluster, file: str
) -> None:
    registry = kopf.OperatorRegistry()
    args = ["run", "-A", file]
    with KopfRunner(args, registry=registry, timeout=patience(20)) as runner:
        cluster.apply(example("x"))
        assert happens(partial(status, cluster, "x"))
    assert runner.exit_code == 0
    assert [each.id for each in registry.entries] == ["create", "delete"]


def test_settings_are_those_of_the_test(cluster: SimulatedCluster, file: str) -> None:
    settings = OperatorSettings()
    settings.persistence.finalizer = "test.example.com/finalizer"
    args = ["run", "-A", file]
    with KopfRunner(args, settings=settings, timeout=patience(20)):
        cluster.apply(example("x"))
        assert happens(lambda: status(cluster, "x"))
        found = cluster.get("fnopexamples", "x")
        assert found is not None
        assert found["metadata"]["finalizers"] == ["test.example.com/finalizer"]
        cluster.delete("fnopexamples", "x")
        assert happens(lambda: cluster.get("fnopexamples", "x") is None)


@pytest.mark.parametrize("reraise", [True, False])
def test_an_error_of_the_operator_is_raised_after_the_block(
    tmp_path: Path, reraise: bool
) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import kopf\n1 / 0\n")
    runner = KopfRunner(["run", "-A", str(file)], timeout=patience(20), reraise=reraise)
    if reraise:
        with pytest.raises(ZeroDivisionError), runner:
            pass
    else:
        with runner:
            pass
    assert runner.future.result().exit_code == runner.exit_code == 1
    assert "division by zero" in runner.output


def test_an_error_of_a_startup_handler_is_raised_after_the_block(
    cluster: SimulatedCluster,
) -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    def broken(**_: Any) -> None:
        raise ValueError("no start")

    runner = KopfRunner(["run", "-A"], registry=registry, timeout=patience(20))
    with pytest.raises(Exception, match="failed"), runner:
        runner.future.exception(patience(20))
    assert runner.exit_code == 1


def test_a_wrong_command_line_is_an_exit_status() -> None:
    runner = KopfRunner(["run", "--no-such-option"], timeout=patience(20))
    with pytest.raises(SystemExit), runner:
        pass
    assert runner.exit_code == 2


def test_the_errors_of_the_block_win(cluster: SimulatedCluster, file: str) -> None:
    with (
        pytest.raises(LookupError, match="of the test"),
        KopfRunner(["run", "-A", file], timeout=patience(20)),
    ):
        raise LookupError("of the test")


def test_its_results_are_there_after_the_block(file: str) -> None:
    runner = KopfRunner(["run", "-A", file])
    with pytest.raises(RuntimeError, match="has not ended yet"):
        runner.output  # noqa: B018
