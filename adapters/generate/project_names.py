"""The names of a new project, as Kubernetes, Python and YAML allow them.

Each check raises `NameProblem`, whose text is a sentence with the remedy.
"""

from __future__ import annotations

import keyword
import re
import sys
from typing import NamedTuple

__all__ = ["TAKEN", "NameProblem", "Names", "names_of", "plural_of"]

# DNS labels (RFC 1123) that begin with a letter, as the package's name must.
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
# Kubernetes requires that the kind in lower case is a DNS label, also with "list"
# appended.
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,58}")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_DEFINITION_LENGTH_MAX = 253
# Groups that need the annotation api-approved.kubernetes.io (KEP-1111).
_PROTECTED = ("k8s.io", "kubernetes.io")

# YAML 1.1 does not read these as text.
_YAML_WORDS = frozenset(("false", "n", "no", "null", "off", "on", "true", "y", "yes"))
# The kind is a class in a module that has these names.
_NAMES_IN_MODULE = frozenset(("Annotated",))

TAKEN = frozenset(
    (
        *("fnop", "kinds", "tests"),
        *(
            "aiohappyeyeballs",
            "aiohttp",
            "backports",
            "click",
            "cronsim",
            "httptools",
            "immutables",
        ),
        *(
            "jsonpatch",
            "kubernetes_asyncio",
            "msgspec",
            "orjson",
            "pyrsistent",
            "python_socks",
            "pyyaml",
        ),
        *("returns", "yaml"),
        *("cel_expr_python", "google_re2", "hypothesis", "lightkube", "mypy"),
        *("protobuf", "pytest", "ruff", "setuptools", "uvloop"),
    )
)
"""Names that a project needs for its own modules, or for what it depends on."""


class NameProblem(ValueError):
    """A name that a project cannot have; the text is for its author."""


class Names(NamedTuple):
    """The names in a project: its own, its package's, and those of its kind."""

    project: str
    package: str
    kind: str
    plural: str
    group: str


def names_of(
    project: str, *, kind: str, group: str, plural: str | None = None
) -> Names:
    """The names of a project; raises `NameProblem` for one that it cannot have.

    >>> names_of("my-operator", kind="Website", group="example.com")
    Names(project='my-operator', package='my_operator', kind='Website',
          plural='websites', group='example.com')
    """
    plural = plural_of(kind) if plural is None else plural
    _check_kind(kind)
    _check_plural(plural)
    _check_group(group, plural)
    return Names(project, _package_of(project), kind, plural, group)


def plural_of(kind: str) -> str:
    """The usual plural of a kind, in lower case.

    >>> [plural_of(kind) for kind in ("Website", "Proxy", "Gateway", "Redis", "Box")]
    ['websites', 'proxies', 'gateways', 'redises', 'boxes']
    """
    word = kind.lower()
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(s|x|z|ch|sh)$", word) else f"{word}s"


def _package_of(project: str) -> str:
    """
    >>> _package_of("My_Operator")
    Traceback (most recent call last):
        ...
    fnop.adapters.generate.project_names.NameProblem: 'My_Operator' cannot be the name
    ...
    """
    if not _LABEL.fullmatch(project):
        raise NameProblem(
            f"{project!a:.80} cannot be the name of a project: one has 1 to 63 small "
            f"letters and digits, with - between them, and begins with a letter"
            f"{_hint(project)}"
        )
    package = re.sub(r"-+", "_", project)
    if package in TAKEN:
        raise NameProblem(
            f"{project!r} cannot be the name of a project: the project itself needs "
            f"the name {package}; write {project}-operator"
        )
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise NameProblem(
            f"{project!r} cannot be the name of a project: {package} is a word of "
            f"Python or one of its modules; write {project}-operator"
        )
    _check_word(project, "name of a project", f"{project}-operator")
    return package


def _hint(project: str) -> str:
    """A valid name close to the given one.

    >>> _hint("My_Operator"), _hint("!")
    ('; write my-operator', '')
    """
    near = re.sub(r"[^a-z0-9]+", "-", project.lower()).strip("-")[:63].strip("-")
    return f"; write {near}" if _LABEL.fullmatch(near) else ""


def _check_kind(kind: str) -> None:
    """
    >>> _check_kind("website")
    Traceback (most recent call last):
        ...
    fnop.adapters.generate.project_names.NameProblem: --kind 'website' cannot be a kind:
    ...
    """
    if not _KIND.fullmatch(kind):
        raise NameProblem(
            f"--kind {kind!a:.80} cannot be a kind: one has 1 to 59 letters and "
            "digits, and begins with a capital, such as Website"
        )
    if keyword.iskeyword(kind) or kind in _NAMES_IN_MODULE:
        raise NameProblem(
            f"--kind {kind!r} cannot be a kind here: its class would be in the way of "
            f"Python's own {kind}; choose another one, such as My{kind}"
        )
    _check_word(kind, "kind", f"My{kind}")


def _check_plural(plural: str) -> None:
    if not _LABEL.fullmatch(plural):
        raise NameProblem(
            f"--plural {plural!a:.80} cannot be the plural of a kind: one has 1 to 63 "
            "small letters and digits, with - between them, such as websites"
        )
    _check_word(plural, "plural", f"{plural}s")


def _check_group(group: str, plural: str) -> None:
    """
    >>> _check_group("apps", "websites")
    Traceback (most recent call last):
        ...
    fnop.adapters.generate.project_names.NameProblem: --group 'apps' cannot be the group
    of ...
    """
    if not _GROUP.fullmatch(group):
        raise NameProblem(
            f"--group {group!a:.80} cannot be the group of a kind: it is a domain in "
            "small letters, such as example.com"
        )
    name = f"{plural}.{group}"
    if len(name) > _DEFINITION_LENGTH_MAX:
        raise NameProblem(
            f"the definition's name {name:.40}... has {len(name)} characters, and may "
            f"have {_DEFINITION_LENGTH_MAX}; choose a shorter --group"
        )
    if group.endswith(tuple(f".{each}" for each in _PROTECTED)) or group in _PROTECTED:
        raise NameProblem(
            f"--group {group!r} belongs to the Kubernetes project, whose groups need "
            "an approval; choose a domain of your own"
        )


def _check_word(text: str, what: str, remedy: str) -> None:
    """Refuse a text that YAML reads as a boolean or as null."""
    if text.lower() in _YAML_WORDS:
        raise NameProblem(
            f"{text!r} cannot be the {what}: YAML reads it as another value than a "
            f"text; write {remedy}"
        )
