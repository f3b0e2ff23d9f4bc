"""The generated manifests are up to date; `make manifests` writes them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def fnop(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "fnop", *arguments], cwd=ROOT, check=True)


def test_the_definition_is_that_of_the_types() -> None:
    fnop(
        "crd",
        "src/__package__/kinds.py",
        "--check=deploy/crd.yaml",
    )


def test_the_role_has_the_least_rights() -> None:
    fnop(
        "rbac",
        "src/__package__/operator.py",
        "--crd=deploy/crd.yaml",
        "--object=example.yaml",
        "--verify",
        "--against=deploy/rbac.yaml",
    )
