"""The three operators of docs/explanation/causes-or-levels.md work by changes, too."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from bench.styles import (
    DATABASES,
    PAIRS,
    code_lines,
    counted,
    databases,
    declared,
    functions,
)
from fnop.adapters.testing.models import models_for
from tests.simulations import (
    ROOT,
    Scenario,
    example_handlers,
    handlers_in,
    is_definition,
    manifests_of,
)

CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "19-database": ("databases", {"size": 1, "settings": {"LOG_LEVEL": "debug"}}),
    "20-tenants": ("tenants", {"role": "view", "members": ["carl"]}),
    "21-records": ("records", {"hosts": ["www"], "address": "192.0.2.9"}),
}
CHILDREN = {
    "19-database": ["statefulsets", "services", "configmaps"],
    "20-tenants": ["resourcequotas", "networkpolicies", "rolebindings"],
    "21-records": ["configmaps"],
}
# What is of the style, and not of the operator.
STYLE = (
    *("labels", "annotations", "ownerReferences", "managedFields", "generation"),
    *("uid", "resourceVersion", "creationTimestamp"),
)


class Played:
    """An operator in one style: an object is created, changed and deleted."""

    def __init__(self, example: str, handlers: Any) -> None:
        self.example, self.zones = example, dict[str, Any]()

        def put_records(owner: str, records: dict[str, str]) -> None:
            self.zones = dict(records)

        given = manifests_of(example)
        self.run = Scenario(
            handlers,
            [each for each in given if is_definition(each)],
            calls=models_for({"put_records": put_records}),
        )
        self.run.apply(*(each for each in given if not is_definition(each)))

    def settled(self) -> dict[str, Any]:
        assert self.run.settle(), self.run.unsettled
        place = "default-example-1" if self.example == "20-tenants" else "default"
        name = "tenant" if self.example == "20-tenants" else "example-1"
        return {"outside": dict(self.zones)} | {
            kind: plain(self.run.get(kind, name, place))
            for kind in CHILDREN[self.example]
        }


def plain(found: dict[str, Any] | None) -> Any:
    if found is None:
        return None
    kept = {k: v for k, v in found["metadata"].items() if k not in STYLE}
    rest = {k: v for k, v in found.items() if k != "status"}
    return {**rest, "metadata": kept}


@pytest.mark.parametrize("example", PAIRS)
def test_both_styles_end_alike(example: str) -> None:
    kind, spec = CHANGES[example]
    former = handlers_in(ROOT / "bench" / "former" / PAIRS[example])
    both = [Played(example, example_handlers(example)), Played(example, former)]
    levels, causes = (each.settled() for each in both)
    assert levels == causes
    assert None not in levels.values()
    for each in both:
        each.run.edit(kind, spec=spec)
    levels, causes = (each.settled() for each in both)
    assert levels == causes
    for each in both:
        each.run.delete(kind)
    levels, causes = (each.settled() for each in both)
    assert levels == causes
    assert [value for value in levels.values() if value] == []


def defining(example: str) -> int:
    """The lines by levels that define the kind: its classes, with their decorators."""
    text = (ROOT / "examples" / example / "example.py").read_text()
    lines, found = text.splitlines(), 0
    for each in ast.parse(text).body:
        if isinstance(each, ast.ClassDef):
            first = min([each.lineno, *(above.lineno for above in each.decorator_list)])
            found += code_lines("\n".join(lines[first - 1 : each.end_lineno]) + "\n")
    return found


@pytest.mark.parametrize("example", PAIRS)
def test_by_levels_it_takes_at_most_three_fifths_of_the_lines(example: str) -> None:
    """Without the kind's definition: by causes it is YAML, and not counted either."""
    found = counted(example)
    assert (found.levels - defining(example)) / found.causes <= 0.6, found


def test_the_page_tells_the_lines_as_they_are() -> None:
    page = (ROOT / "docs/explanation/causes-or-levels.md").read_text()
    for example in PAIRS:
        found = counted(example)
        name = example.partition("-")[2]
        assert f"| {name} | {found.levels} | {found.causes} |" in page.replace(
            "databases", "database"
        )
    database, records = defining("19-database"), defining("21-records")
    assert f"{database} lines of database and {records} of records" in page
    assert not defining("20-tenants")


def test_the_page_tells_the_lines_of_other_frameworks_as_they_are() -> None:
    page = (ROOT / "docs/explanation/other-frameworks.md").read_text()
    found = databases()
    for row in (
        list(DATABASES),
        ["lines", *(str(lines) for lines, _ in found.values())],
        ["without what all have", *(str(own) for _, own in found.values())],
    ):
        assert f"| {' | '.join(row)} |" in page
    assert f"{declared()} lines of [YAML]" in page


def test_what_all_have_are_manifests_and_the_password() -> None:
    """They are the same text in each, so that the rest is what the framework asks."""
    names = {"config_map", "secret", "service", "workload", "password_in"}
    texts = [
        {
            name: text
            for file in files
            for name, text in functions(file.read_text()).items()
        }
        for files in DATABASES.values()
    ]
    for name in names:
        assert len({each[name] for each in texts}) == 1, name
    shared = sum(code_lines(texts[0][name] + "\n") for name in names)
    assert {lines - own for lines, own in databases().values()} == {shared}
