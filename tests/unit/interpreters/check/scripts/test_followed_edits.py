"""A failure of `history` names the handlers that were called for each edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fnop.adapters.common.loading import handlers_of_file
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, benign_run
from fnop.interpreters.check.properties.followed import calls_for_edits
from fnop.interpreters.simulation.actions import Edit
from fnop.testing import apply, edit
from tests.checks import CRD, OBJECT, called, folder as folder, operator

MAKES = """
import fnop

@fnop.on.create("xs.example.com")
async def make(name, spec, **_):
    await fnop.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
         "data": {"size": str(spec["size"]), "image": spec["image"]}}
    )
"""
FIELD = MAKES.replace(
    "\n@fnop", '\n@fnop.on.update("xs.example.com", field="spec.size")\n@fnop'
)
# It is called, and forgets one field.
FORGETS = (
    MAKES
    + """
@fnop.on.update("xs.example.com")
async def follow(name, spec, **_):
    await fnop.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
         "data": {"size": str(spec["size"]), "image": "a"}}
    )
"""
)
# It is called for no edit, but after the restart at the end.
RESUMES = MAKES.replace("\n@fnop", '\n@fnop.on.resume("xs.example.com")\n@fnop')
IGNORES = (
    MAKES
    + """
@fnop.on.update("xs.example.com", when=lambda spec, **_: spec["size"] > 5)
async def follow(**_):
    return fnop.patch(status={"seen": True})
"""
)
SCRIPT = f"""
from fnop.testing import apply, edit
X = {{**{OBJECT}, "spec": {{"size": 1, "image": "a"}}}}
SCRIPTS = {{"it": [apply(X), edit("xs/x", spec={{"size": 2}}),
                   edit("xs/x", spec={{"image": "b"}})]}}
"""
SIZE, IMAGE = "edit xs/x spec.size=2", "edit xs/x spec.image='b'"
NONE = "no handler of changes is called"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            FIELD,
            [
                f"{IMAGE}: {NONE} (`make/spec.size` has field=spec.size)",
                f"{SIZE}: make/spec.size",
            ],
        ),
        (
            MAKES,
            [f"{each}: {NONE} (`make` is for on.create)" for each in (SIZE, IMAGE)],
        ),
        (
            RESUMES,
            [
                f"{each}: {NONE} (`make` is for on.create; `make` is for on.resume)"
                for each in (SIZE, IMAGE)
            ],
        ),
        (FORGETS, [f"{SIZE}: follow", f"{IMAGE}: follow"]),
        (
            IGNORES,
            [
                f"{each}: {NONE} (the filters of `follow` exclude it)"
                for each in (SIZE, IMAGE)
            ],
        ),
    ],
)
def test_the_handlers_of_each_edit_are_named(
    folder: Path, source: str, expected: list[str]
) -> None:
    (folder / "own.py").write_text(SCRIPT)
    options = ("--script", "own.py", "--property", "history", "--budget", "1")
    found = called(operator(folder, source), *options, "-o", "json")
    (failure,) = json.loads(found.stdout)["failures"]
    assert "after the edits configmaps/x data." in failure["message"]
    assert failure["calls"] == expected


def test_people_read_them_beneath_the_failure(folder: Path) -> None:
    (folder / "own.py").write_text(SCRIPT)
    options = ("--script", "own.py", "--property", "history", "--budget", "1")
    results = ("--results", "results")
    found = called(operator(folder, FIELD), *options, *results)
    assert f"   called    {IMAGE}: {NONE} (`make/spec.size` has " in found.stdout
    assert f"             {SIZE}: make/spec.size\n" in found.stdout
    merged = called("--merge", "results")
    assert f"   called    {IMAGE}: {NONE} (" in merged.stdout


HANDLERS = {
    "update": '@fnop.on.update("xs.example.com")\nasync def it(**_): pass',
    "field": '@fnop.on.field("xs.example.com", field="spec.size")\n'
    "async def it(**_): pass",
    "reconcile": '@fnop.reconcile("xs.example.com", owns="configmaps")\n'
    "def it(name, spec, **_):\n"
    '    return fnop.desired({"apiVersion": "v1", "kind": "ConfigMap",\n'
    '        "metadata": {"name": name}, "data": {"size": str(spec["size"])}})',
    "sub-handlers": '@fnop.on.update("xs.example.com")\n'
    "async def it(**_):\n"
    "    async def part(**_): pass\n"
    '    fnop.register(part, id="part")',
    "an attempt that fails": '@fnop.reconcile("xs.example.com")\n'
    "def it(spec, **_):\n"
    "    if spec['size'] == 2: raise fnop.PermanentError('never')",
    "a second attempt": '@fnop.on.update("xs.example.com")\n'
    "async def it(retry, **_):\n"
    "    if not retry: raise fnop.TemporaryError('later', delay=5)",
}


@pytest.mark.parametrize("name", HANDLERS)
def test_handlers_of_every_kind_are_seen_to_be_called(folder: Path, name: str) -> None:
    with default_registry.set_aside():
        file = operator(folder, f"import fnop\n\n{HANDLERS[name]}\n")
        program = Program(tuple(handlers_of_file(file)), Settings())
    edits = (apply(OBJECT), edit("xs/x", spec={"size": 2}))
    trial = benign_run(Case(program, [CRD], edits)).trial
    (sentence,) = calls_for_edits(trial)
    assert sentence.startswith(f"{SIZE}: it")


OWNS = """
import fnop

def is_small(spec, **_):
    return spec["size"] < 3

@fnop.timer("xs.example.com", interval=1)
def tick(**_):
    pass

@fnop.reconcile("xs.example.com", owns="configmaps", when=is_small)
def it(name, spec, **_):
    return fnop.desired({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name}, "data": {"size": str(spec["size"])}})
"""


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (edit("configmaps/x", data={"size": "9"}), "it of xs/x"),
        (edit("xs/x", spec={"size": 5}), f"{NONE} (the filters of `it` exclude it)"),
    ],
)
def test_a_reconcile_handler_is_named_for_what_it_owns_and_with_its_filter(
    folder: Path, action: Edit, expected: str
) -> None:
    with default_registry.set_aside():
        program = Program(tuple(handlers_of_file(operator(folder, OWNS))), Settings())
    case = Case(program, [CRD], (apply(OBJECT), action))
    (sentence,) = calls_for_edits(benign_run(case).trial)
    assert sentence == f"{action}: {expected}"
