"""`fnop new`: any valid names give a project that parses."""

from __future__ import annotations

import ast
import re
import tomllib

import yaml
from hypothesis import assume, given, settings, strategies as st

from fnop.adapters.generate.project_names import NameProblem, Names, names_of
from fnop.adapters.generate.scaffolding import files_of

PROJECTS = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
KINDS = st.from_regex(r"[A-Z][A-Za-z0-9]{0,58}", fullmatch=True)
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
GROUPS = st.lists(LABELS, min_size=2, max_size=5).map(".".join)
WORDS_OF_PYTHON = {"__file__", "__init__", "__pycache__"}


@st.composite
def all_names(draw: st.DrawFn) -> Names:
    plural = draw(st.none() | PROJECTS)
    try:
        return names_of(
            draw(PROJECTS), kind=draw(KINDS), group=draw(GROUPS), plural=plural
        )
    except NameProblem:  # a word of Python or YAML, or too long together
        assume(False)
        raise


def texts(value: object) -> set[str]:
    """The texts in a document."""
    match value:
        case dict():
            return {*value} | texts([*value.values()])
        case list():
            return {found for each in value for found in texts(each)}
        case str():
            return {value}
        case _:
            return set()


@settings(max_examples=50, deadline=None)
@given(all_names())
def test_any_valid_names_give_a_project_that_parses(names: Names) -> None:
    files = files_of(names)
    left = {
        word
        for each in files.items()
        for word in re.findall(r"__[A-Za-z]+__", "\n".join(each))
    }
    assert left <= WORDS_OF_PYTHON
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert project["name"] == names.project

    documents = {
        path: [*yaml.safe_load_all(text)]
        for path, text in files.items()
        if path.endswith(".yaml")
    }
    (example,) = documents["example.yaml"]
    assert example["apiVersion"] == f"{names.group}/v1"
    assert example["kind"] == names.kind
    (deployment,) = documents["deploy/deployment.yaml"]
    assert deployment["metadata"]["name"] == names.project
    assert f"src/{names.package}/operator.py" in files
    definition = f'"{names.plural}.v1.{names.group}"'
    assert definition in files[f"src/{names.package}/kinds.py"]
    assert names.project in texts(documents["deploy/namespace.yaml"])


@settings(max_examples=300)
@given(st.text(), st.text(), st.text(), st.none() | st.text())
def test_any_other_text_is_refused_in_a_sentence(
    project: str, kind: str, group: str, plural: str | None
) -> None:
    told = ""
    try:
        names = names_of(project, kind=kind, group=group, plural=plural)
    except NameProblem as problem:
        told = str(problem)
    else:
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+", each) for each in names)
    assert told.isprintable()
