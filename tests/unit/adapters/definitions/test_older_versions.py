"""Commands find kinds that the preferred version of their group does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import fnop

GROUP = "mixed.dev"
OPERATOR = """
import fnop

@fnop.reconcile("wholes.mixed.dev", owns=["parts.mixed.dev"])
def keep(name, spec, **_):
    return fnop.desired({
        "apiVersion": "mixed.dev/v1",
        "kind": "Part",
        "metadata": {"name": name},
        "spec": {"size": spec["size"]},
    })

@fnop.on.create("parts.mixed.dev")
def created(patch, **_):
    patch.status["seen"] = True
"""


def definition(kind: str, *versions: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": number == 0,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
                for number, version in enumerate(versions)
            ],
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "operator.py").write_text(OPERATOR)
    whole = {
        "apiVersion": f"{GROUP}/v2",
        "kind": "Whole",
        "metadata": {"name": "one"},
        "spec": {"size": 1},
    }
    documents = [definition("Whole", "v2"), definition("Part", "v1", "v1beta1"), whole]
    (tmp_path / "object.yaml").write_text(yaml.safe_dump_all(documents))
    return tmp_path


def test_a_simulation_prints_them(folder: Path) -> None:
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 0, done.err
    found = {each["kind"]: each for each in yaml.safe_load_all(done.out) if each}
    assert found["Part"]["spec"] == {"size": 1}
    assert found["Part"]["apiVersion"] == f"{GROUP}/v1"
    assert found["Part"]["status"]["seen"] is True


def test_the_rights_to_them_are_found(folder: Path) -> None:
    done = fnop("rbac", "operator.py", folder=folder)
    assert done.status == 0, done.err
    rules = [
        rule
        for each in yaml.safe_load_all(done.out)
        for rule in each.get("rules") or ()
        if "parts" in rule["resources"]
    ]
    verbs = {verb for rule in rules for verb in rule["verbs"]}
    assert {"create", "delete", "get", "list", "patch", "watch"} <= verbs
    assert "not known here" not in done.out + done.err


def test_a_check_tries_them(folder: Path) -> None:
    done = fnop("check", "operator.py", "--budget", "20", folder=folder)
    assert done.status == 0, done.out + done.err
    for name in ("serves", "idle"):  # each handler is called, and does something
        assert f"  pass  {name} " in done.out


def test_the_kind_that_an_operator_creates_is_listed(folder: Path) -> None:
    done = fnop(
        *("olm", "operator.py", "--version", "1.0.0", "--image", "r.io/mixed:1"),
        *("--output", "bundle"),
        folder=folder,
    )
    assert done.status == 0, done.err
    (path,) = (folder / "bundle").rglob("*clusterserviceversion*.yaml")
    found = yaml.safe_load(path.read_text())
    owned = found["spec"]["customresourcedefinitions"]["owned"]
    (whole,) = (each for each in owned if each["kind"] == "Whole")
    assert "Part" in [each["kind"] for each in whole["resources"]]
