"""The documentation: the names in it exist, and its examples work."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from hypothesis import is_hypothesis_test, settings

import fnop
from fnop.adapters.cli.main import main
from fnop.adapters.kopf.commands.cli import run as run_of_kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.core.api import hierarchies
from fnop.core.handlers.declare.registry import default_registry
from fnop.effects import builders
from fnop.testing import Simulation
from tests.documentation import ALONE, PAGES, blocks, title
from tests.simulations import DEFINITION, ROOT, example

README = (ROOT / "README.md").read_text()


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    default_registry.clear()
    yield
    default_registry.clear()


# Pages of other folders have links to the documentation, too.
LINKED = sorted(
    {*PAGES, *(ROOT / name for name in ("bench/README.md", "changes/README.md"))}
    | {*ROOT.glob("examples/**/*.md"), *ROOT.glob(".github/**/*.md")}
)


@pytest.mark.parametrize("page", LINKED, ids=title)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    local = [link for link in links if not link.startswith("http")]
    assert [link for link in local if not (page.parent / link).exists()] == []


def anchor(heading: str) -> str:
    """The end of a link to a heading: words, with hyphens for the blanks."""
    plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w -]", "", plain).replace(" ", "-")


def headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {anchor(found) for found in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", LINKED, ids=title)
def test_links_to_parts_of_pages_lead_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    missing = [
        f"{where}#{part}"
        for where, part in links
        if part not in headings(page.parent / where if where else page)
    ]
    assert missing == []


_FILE = re.compile(
    r"`((?:adapters|bench|core|effects|examples|interpreters|tests)/[\w/.-]+)"
)
# The files of a project that `fnop new` makes, and the author's own.
_OF_PROJECTS = {
    *(each.name for each in (ROOT / "adapters/generate/scaffold").rglob("*")),
    "models.py",
}


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_files_that_it_names_exist(page: Path) -> None:
    named = [] if page.parent.name == "decisions" else _FILE.findall(page.read_text())
    missing = [each for each in named if not (ROOT / each).exists()]
    assert [each for each in missing if Path(each).name not in _OF_PROJECTS] == []


@pytest.mark.parametrize("page", ALONE, ids=title)
def test_the_operators_that_it_shows_are_accepted(
    page: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(ROOT)
    for block in blocks(page.read_text()):
        # One after the other, as files: their handlers are not mixed up.
        default_registry.clear()
        of_kopf = OperatorRegistry()
        monkeypatch.setattr(OperatorRegistry, "default", of_kopf)
        module = ModuleType("example_of_the_docs")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        names = vars(module)
        # As a file: without the imports from __future__ of this one.
        exec(compile(block, page.name, "exec", dont_inherit=True), names)
        tests = [each for name, each in names.items() if name.startswith("test_")]
        for test in tests:
            if is_hypothesis_test(test):
                # It is shown that it is a property.
                settings(max_examples=20)(test)()
                continue
            given = inspect.signature(test).parameters
            test(**{name: request.getfixturevalue(name) for name in given})
        assert tests or default_registry.handlers or of_kopf.entries


def names_in(file: Path) -> set[str]:
    """The functions of a module, and the methods of its classes as Class.method."""
    found: set[str] = set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, functions):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, functions)]
            found |= {f"{node.name}.{each.name}" for each in inner}
    return found


def test_the_workflow_of_the_readme_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_all_examples_are_on_their_page() -> None:
    page = (ROOT / "docs/examples.md").read_text()
    for file in (ROOT / "examples").glob("*/example.py"):
        assert f"(../examples/{file.parent.name})" in page


# Python that cannot run as it stands: another test does, or it needs more files.
_NOT_ALONE = {
    "write-scripts-and-expectations.md",  # test_expectations runs it
    "deploy.md",  # `make frozen` builds and runs such a program
}
_PYTHON = re.compile(
    r"^ {4}(?:(?:from|import|class|def|async def) \w|@\w)", re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_python_is_marked_so_that_it_is_run(page: Path) -> None:
    fences = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
    others = fences.sub("", page.read_text())
    assert page.name in _NOT_ALONE or not _PYTHON.search(others)


# A command alone in its line: of a block, after a prompt, or of a workflow.
_CALL = re.compile(r"^(?:    +|\$ |- run: )(fnop [a-z-]+ .*)$", re.MULTILINE)


def calls_in(page: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands that a page shows, with the options that they get."""
    for call in _CALL.findall(page.read_text().replace("\\\n", " ")):
        words = shlex.split(re.split(r" [#>|]", call)[0])
        command = main.get_command(click.Context(main), words[1])
        if command is not None:
            known = {each for param in command.params for each in param.opts}
            known |= {each for e in command.params for each in e.secondary_opts}
            given = [each.partition("=")[0] for each in words[2:] if each[0] == "-"]
            yield call, [each for each in given if each not in known | {"--help", "-"}]


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_the_commands_that_it_shows_have_these_options(page: Path) -> None:
    assert [(call, wrong) for call, wrong in calls_in(page) if wrong] == []


# The flags that need an extra.
EXTRAS = {"--metrics": "metrics", "--otel": "otel"}


@pytest.mark.parametrize("flag", EXTRAS)
def test_a_page_that_shows_how_to_use_a_flag_names_its_extra(flag: str) -> None:
    shown = re.compile(rf"{flag} http|\| .*`{flag}`|^ +fnop run .*{flag}", re.MULTILINE)
    for page in ROOT.glob("docs/how-to/*.md"):
        if shown.search(page.read_text()):
            assert f"fnop[{EXTRAS[flag]}]" in page.read_text(), title(page)
    for command in (main.get_command(click.Context(main), "run"), run_of_kopf):
        for each in command.params if command is not None else ():
            if isinstance(each, click.Option) and flag in each.opts:
                assert f"fnop[{EXTRAS[flag]}]" in (each.help or "")


HIERARCHIES = sorted(hierarchies.__all__)
BUILDERS: dict[str, Callable[..., Any]] = {
    **{f"fnop.{name}": getattr(fnop, name) for name in builders.__all__},
    "stopped.wait": fnop.Stopped.wait,
}
_PREFIXES: dict[Any, tuple[str, str]] = {
    inspect.Parameter.VAR_KEYWORD: ("**", ""),
    inspect.Parameter.KEYWORD_ONLY: ("", "="),
}


def arguments_of(function: Callable[..., Any]) -> list[str]:
    """A function's arguments, in the page's words: `where`, `name=`, `**fields`."""
    found = []
    for each in inspect.signature(function).parameters.values():
        before, after = _PREFIXES.get(each.kind, ("", ""))
        found.append(f"{before}{each.name}{after}")
    return found


def arguments_shown() -> dict[str, list[str]]:
    """The table of arguments in the page on effects, by what builds an effect."""
    page = (ROOT / "docs/reference/effect-arguments.md").read_text()
    section = page.partition("\n## Arguments\n")[2].partition("\n## ")[0]
    shown: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if not line.startswith("| ") or line.startswith("| effect |"):
            continue
        effects, arguments = (re.findall("`(.*?)`", c) for c in line.split("|")[1:3])
        names = effects or names
        for name in names:
            shown.setdefault(name, []).extend(arguments)
    return shown


def test_the_page_on_effects_shows_all_their_arguments_and_no_others() -> None:
    taken = {name: sorted(arguments_of(each)) for name, each in BUILDERS.items()}
    assert {name: sorted(each) for name, each in arguments_shown().items()} == taken


BEAT = "metadata.labels.example.com/beat"


@pytest.mark.parametrize(
    ("ignored", "attempts"), [((), [0] * 7 + [1, 2]), ((BEAT,), [0, 1, 2])]
)
def test_a_heartbeat_voids_retries_unless_it_is_ignored(
    ignored: tuple[str, ...], attempts: list[int]
) -> None:
    """As the page on handlers says about a label that another client writes."""
    seen: list[int] = []
    registry = fnop.Registry()

    @fnop.on.startup(registry=registry)
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(ignored_fields=ignored)

    @fnop.on.update("fnopexamples", retries=3, registry=registry)
    def fails(retry: int, **_: Any) -> None:
        seen.append(retry)
        raise fnop.TemporaryError("not yet", delay=10)

    sim = Simulation(registry, crds=DEFINITION, objects=example()).settle()
    sim.edit("fnopexamples/example-1", spec={"duration": "2m"})
    for beat in range(6):
        sim.wait(7)
        labels = {"example.com/beat": str(beat)}
        sim.edit("fnopexamples/example-1", metadata={"labels": labels})
    sim.wait(100)
    assert seen == attempts


def written(function: Callable[..., Any]) -> str:
    """A function as the page shows it: `label(manifests, labels, forced=False)`."""
    found = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in inspect.signature(function).parameters.values()
    ]
    return f"{function.__name__}({', '.join(found)})"


@pytest.mark.parametrize(
    "function", [fnop.owned, *(getattr(fnop, name) for name in HIERARCHIES)]
)
def test_the_page_on_effects_shows_what_functions_of_manifests_take(
    function: Callable[..., Any],
) -> None:
    page = (ROOT / "docs/reference/effects.md").read_text()
    assert f"`fnop.{written(function)}`" in page
