"""A new project, as texts by their paths: the files of `scaffold/` with its names.

The files are complete and can be read and linted as they are; a name in them is a word
such as `__package__`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from fnop.adapters.generate.project_names import Names

__all__ = ["FILES", "WEBHOOK_FILES", "files_of", "generated_by"]

FOLDER = files("fnop.adapters.generate") / "scaffold"

FILES = (
    ".dockerignore",
    ".github/workflows/ci.yaml",
    ".gitignore",
    "AGENTS.md",
    "Dockerfile",
    "Makefile",
    "README.md",
    "deploy/deployment.yaml",
    "deploy/kustomization.yaml",
    "deploy/namespace.yaml",
    "example.yaml",
    "pyproject.toml",
    "src/__package__/__init__.py",
    "src/__package__/kinds.py",
    "src/__package__/operator.py",
    "src/__package__/py.typed",
    "tests/test_cluster.py",
    "tests/test_manifests.py",
    "tests/test_reconcile.py",
    "tests/test_simulation.py",
)

# In a project with webhooks these are added, or replace the others.
WEBHOOK_FILES = (
    "Dockerfile",
    "Makefile",
    "README.md",
    "deploy/kustomization.yaml",
    "deploy/service.yaml",
    "deploy/webhooks.yaml",
    "src/__package__/__init__.py",
    "src/__package__/admission.py",
    "tests/test_admission.py",
)

# `Template` asks for these groups; the last three never match.
_WORD = r"""
    __(?P<named> project | package | Kind | kind | plural | group )__
    | (?P<escaped> (?!) ) | (?P<braced> (?!) ) | (?P<invalid> (?!) )
"""


class Words(Template):
    """A template with placeholders that are words in any language: `__group__`.

    >>> Words("apiVersion: __group__/v1  # not __init__").substitute(group="e.com")
    'apiVersion: e.com/v1  # not __init__'
    """

    flags = re.NOFLAG  # letters are case-sensitive
    pattern = _WORD  # type: ignore[assignment]  # `Template` compiles it


def files_of(names: Names, *, webhooks: bool = False) -> dict[str, str]:
    """The texts of a project's files by path, without the generated files.

    With `webhooks` it has admission handlers, and serves them.

    >>> from fnop.adapters.generate.project_names import names_of
    >>> made = files_of(names_of("dns-operator", kind="Record", group="dns.dev"))
    >>> print(made["example.yaml"].partition("spec")[0])
    apiVersion: dns.dev/v1
    kind: Record
    metadata:
      name: example
    <BLANKLINE>
    """
    words = {
        "project": names.project,
        "package": names.package,
        "Kind": names.kind,
        "kind": names.kind.lower(),
        "plural": names.plural,
        "group": names.group,
    }
    sources = {path: path for path in FILES}
    if webhooks:
        sources |= {path: f"webhooks/{path}" for path in WEBHOOK_FILES}
    return {
        _fill_template(path, words): _fill_template(_text(source), words)
        for path, source in sources.items()
    }


def generated_by(names: Names) -> dict[str, tuple[str, ...]]:
    """The files that fnop's own commands print from the content of the others."""
    source = f"src/{names.package}"
    given = ("--crd", "deploy/crd.yaml", "--object", "example.yaml")
    account = ("--service-account", f"{names.project}/{names.project}")
    return {
        "deploy/crd.yaml": ("crd", f"{source}/kinds.py"),
        "deploy/rbac.yaml": ("rbac", f"{source}/operator.py", *given, *account),
    }


def _fill_template(text: str, words: Mapping[str, str]) -> str:
    return Words(text).substitute(words)


@cache
def _text(path: str) -> str:
    return FOLDER.joinpath(path).read_text(encoding="utf-8")
