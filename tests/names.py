"""The page of all public names, made of their docstrings: `python -m tests.names`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import GenericAlias, ModuleType
from typing import Any

import fnop
import fnop.testing
from tests.simulations import ROOT

PAGE = ROOT / "docs" / "reference" / "names.md"
HEAD = """# Public names

With this page you find a name of `fnop` or `fnop.testing`, and its meaning in one line.
Editors show the whole docstrings. The [glossary](glossary.md) has the words of fnop
next to those of client-go, controller-runtime and Kopf.

The page is made of the docstrings: `python -m tests.names` writes it again.
"""
# Names without a docstring: constants, and aliases of types.
OTHERS = {
    "ABSENT": "In filters: the label, annotation or field does not exist.",
    "Annotations": "The argument `annotations`: a read-only mapping of texts.",
    "Diff": "The argument `diff`: a tuple of `DiffItem`.",
    "EVERYTHING": "In declarations: all kinds.",
    "Effect": "Any effect, as a type.",
    "EventType": "The argument `type` of event handlers, as a type.",
    "INDEX": "In typed handlers: the argument is an index.",
    "Index": "An index, as handlers get it: values by key.",
    "IntOrString": "A field that is a number or a text, as ports are.",
    "JSON": "A JSON value, as a type.",
    "Labels": "The argument `labels`: a read-only mapping of texts.",
    "PRESENT": "In filters: the label, annotation or field exists.",
    "Quantity": "A field that is a Kubernetes quantity, such as `500m`.",
    "Reason": "The argument `reason` of change handlers, as a type.",
    "Result": "The values that a handler may return, as a type.",
    "Spec": "The argument `spec`: a read-only mapping.",
    "Status": "The argument `status`: a read-only mapping.",
    "UNCHANGED": "For `fnop.desired`: the children stay as they are.",
    "Warnings": "The argument `warnings` of admission handlers: a list of texts.",
    "keep_data": "A property for `explore`: claims, Secrets and replicas survive.",
    "leave_no_orphans": "A property for `explore`: no child is left behind its owner.",
    "never_create_twice": "A property for `explore`: nothing is created twice.",
    "on": "The decorators of handlers: `@fnop.on.create` and others.",
    "stabilise": "A property for `explore`: everything settles.",
}
_INNER = ("Any", "TYPE_CHECKING", "import_module")


def names_of(module: ModuleType) -> list[str]:
    """The public names of a facade, without its rooms."""
    names = getattr(module, "__all__", None) or dir(module)
    rooms = ("adapters", "core", "effects", "interpreters", "testing", "kopf")
    return sorted(
        (each for each in names if each[0].isalpha() and each not in (*_INNER, *rooms)),
        key=str.casefold,
    )


def meaning_of(name: str, value: Any) -> str:
    """The meaning of a name in one line: the first sentence of its docstring."""
    if name in OTHERS:
        return OTHERS[name]
    described = inspect.isclass(value) or inspect.isfunction(value)
    described |= inspect.ismodule(value) or callable(value)
    if not described or isinstance(value, GenericAlias):
        return ""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def page() -> str:
    """The page as it has to be."""
    return "\n".join(
        [HEAD, *_table("fnop", fnop), *_table("fnop.testing", fnop.testing)]
    )


def _table(title: str, module: ModuleType) -> Iterator[str]:
    yield f"## `{title}`\n"
    yield "| name | meaning |\n|---|---|"
    for name in names_of(module):
        meaning = meaning_of(name, getattr(module, name)).replace("|", "\\|")
        yield f"| `{name}` | {meaning} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
