"""The settings of Kopf: the same tree with the same defaults."""

from __future__ import annotations

import dataclasses
import doctest
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fnop.adapters.kopf.declaring import settings, storages
from fnop.adapters.kopf.declaring.settings import ExecutionSettings, OperatorSettings

theirs = pytest.importorskip("kopf")


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(settings)
    assert found.attempted
    assert found.failed == 0


GROUPS = [each.name for each in dataclasses.fields(theirs.OperatorSettings)]


def test_the_tree_has_the_groups_of_kopf() -> None:
    assert [each.name for each in dataclasses.fields(OperatorSettings)] == GROUPS


@pytest.mark.parametrize("group", GROUPS)
def test_each_setting_has_the_default_of_kopf(group: str) -> None:
    ours, kopf = (
        getattr(OperatorSettings(), group),
        getattr(theirs.OperatorSettings(), group),
    )
    for name in (each.name for each in dataclasses.fields(kopf)):
        if name.startswith("_"):
            continue
        wanted, found = getattr(kopf, name), getattr(ours, name)
        if name.endswith("_storage"):
            assert type(found) is getattr(storages, type(wanted).__name__)
        elif isinstance(wanted, Mapping):
            assert dict(found) == dict(wanted)
        elif name != "executor":
            assert _plain(found) == _plain(wanted), name


def _plain(value: Any) -> Any:
    return [*value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("group", GROUPS)
def test_each_property_of_a_group_exists(group: str) -> None:
    ours = getattr(OperatorSettings(), group)
    kopf = getattr(theirs.OperatorSettings(), group)
    names = [n for n, v in vars(type(kopf)).items() if isinstance(v, property)]
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            wanted = getattr(kopf, name)
        assert getattr(ours, name) == wanted


def test_two_operators_share_no_setting() -> None:
    first, second = OperatorSettings(), OperatorSettings()
    for name in GROUPS:
        assert getattr(first, name) is not getattr(second, name)
    first.watching.label_selectors["pods"] = "a=b"
    assert second.watching.label_selectors == {}


def test_the_former_name_of_queueing() -> None:
    found = OperatorSettings()
    found.batching.worker_limit = 3
    assert found.queueing.worker_limit == 3


def test_peering_is_namespaced_or_cluster_wide() -> None:
    peering = OperatorSettings().peering
    for value in (True, False):
        peering.clusterwide = value
        assert peering.namespaced is not value
        peering.namespaced = value
        assert peering.clusterwide is not value


@pytest.mark.parametrize("module", [settings, None], ids=["fnop", "kopf"])
def test_the_number_of_workers_is_that_of_the_executor(module: Any) -> None:
    found = (module or theirs).OperatorSettings().execution
    assert found.max_workers is None
    found.max_workers = 3
    assert found.max_workers == 3
    assert found.executor._max_workers == 3
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=r"max_workers|limit"):
            found.max_workers = wrong
    assert found.max_workers == 3


def test_an_executor_of_the_author_is_kept() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert ExecutionSettings(executor=pool).executor is pool


def test_an_executor_without_a_number_of_workers_is_refused() -> None:
    found = ExecutionSettings(executor=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="object has no number of workers"):
        found.max_workers = 2
