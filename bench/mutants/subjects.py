"""The operators that are mutated, and their users' actions.

The scripts of the catalogue of bugs are its own; the scripts of the examples are in
this module. Each script is also played with all objects deleted at its end, and created
once more.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bench.bugs.cases import BUGS, case_of
from fnop.adapters.common.loading import handlers_of_file, module_of_file
from fnop.adapters.testing.cases import heeded_in
from fnop.adapters.testing.models import models_for, models_of
from fnop.core.handlers.program.program import Program
from fnop.core.values.merge import applied
from fnop.interpreters.check.campaign.explore import Case
from fnop.interpreters.simulation.actions import Action, Apply, Delete, Edit
from fnop.testing import External, apply, edit, wait

__all__ = ["ON_PURPOSE", "WHOLE", "Subject", "cases_of", "subjects"]

# The scripts in which faults are tried; the others are played without any.
WHOLE = ("as it is", "deleted", "made anew")
EXAMPLES = Path(__file__).parents[2] / "examples"
# Operators whose handlers fail on purpose, and the properties that show it.
ON_PURPOSE = {"03-exceptions": {"total", "settles", "serves"}}


class Subject(NamedTuple):
    """An operator without a mistake, by its file, and its world without an operator."""

    name: str
    file: Path
    world: Callable[[Path], Case]


def subjects() -> list[Subject]:
    """The examples, then the operators of the catalogue that have no bug.

    The same operator fixes some of the catalogue's bugs: it counts once.
    """
    found = [
        Subject(folder, EXAMPLES / folder / file, _world_of(folder))
        for folder, file in _FILES.items()
    ]
    known = set()
    for folder in BUGS:
        file = folder / "fixed.py"
        code = _code(file) if file.exists() else None
        if code is not None and code not in known:
            known.add(code)
            found.append(Subject(folder.name, file, _catalogued(folder)))
    return found


def _code(file: Path) -> str:
    """The statements of a module, without docstrings."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def cases_of(subject: Subject, file: Path) -> list[Case]:
    """The cases of an operator in the world of a subject, one for each script.

    They are the script, its beginnings that end with an edit or before a deletion, the
    script with all objects of custom kinds deleted, and the script with these created
    again.
    """
    case = subject.world(file)
    program = Program(handlers_of_file(file), case.program.settings)
    kinds = {each["spec"]["names"]["kind"] for each in case.definitions}
    left = objects_left(case.script)
    own = [each for each in left if each["kind"] in kinds] or left
    gone = (*case.script, *(Delete(_where(each), _place(each)) for each in own))
    scripts = {"as it is": case.script, "deleted": gone}
    scripts["made anew"] = (*gone, *map(Apply, own))
    for length, (action, following) in enumerate(itertools.pairwise(case.script), 1):
        if isinstance(action, Edit) or isinstance(following, Delete):
            scripts[f"{length} actions"] = case.script[:length]
    plain = case._replace(program=program, expectations=())
    return [plain._replace(name=name, script=each) for name, each in scripts.items()]


def objects_left(script: Iterable[Action]) -> list[dict[str, Any]]:
    """The objects that a user has applied and not deleted, with all edits of them.

    >>> claim = {"kind": "Claim", "metadata": {"name": "c"}, "spec": {"size": 1}}
    >>> (only,) = objects_left([apply(claim), edit("claims/c", spec={"size": 2})])
    >>> only["spec"]
    {'size': 2}
    """
    left: dict[tuple[str, str | None], dict[str, Any]] = {}
    for action in script:
        match action:
            case Apply(manifest):
                key = (manifest["metadata"]["name"], _place(manifest))
                left[key] = applied(manifest, left.get(key, {}))
            case Edit(where, _, place) | Delete(where, place):
                for key in [each for each in left if _is(left, each, where, place)]:
                    if isinstance(action, Edit):
                        left[key] = applied(action.changes, left[key])
                    else:
                        del left[key]
            case _:
                pass
    return [*left.values()]


def _is(
    left: Mapping[tuple[str, str | None], Mapping[str, Any]],
    key: tuple[str, str | None],
    where: str,
    place: str | None,
) -> bool:
    """Whether a user names this object; names of a kind begin with the same letter."""
    kind, _, name = where.partition("/")
    same = left[key]["kind"][0].lower() == kind[0].lower()
    return same and key[0] == name and (place is None or key[1] in (None, place))


def _where(manifest: Mapping[str, Any]) -> str:
    group, _, version = manifest["apiVersion"].rpartition("/")
    return f"{manifest['kind']}.{version}.{group}/{manifest['metadata']['name']}"


def _place(manifest: Mapping[str, Any]) -> str | None:
    place = manifest["metadata"].get("namespace")
    return None if place is None else str(place)


# ------------------------------------------------------------------ the catalogue


def _catalogued(folder: Path) -> Callable[[Path], Case]:
    # Models by bare names answer the functions of any file.
    return lambda file: case_of(folder, "fixed")


# ------------------------------------------------------------------- the examples


def _objects(folder: str) -> Iterator[dict[str, Any]]:
    file = EXAMPLES / folder / "object.yaml"
    if not file.exists():
        file = EXAMPLES / "02-children" / "object.yaml"
    yield from (each for each in yaml.safe_load_all(file.read_text()) if each)


def _world_of(folder: str) -> Callable[[Path], Case]:
    def world(file: Path) -> Case:
        objects = [*_objects(folder)]
        crds = [e for e in objects if e["kind"] == "CustomResourceDefinition"]
        begin = [apply(each) for each in objects if each not in crds]
        script = (*begin, *_FURTHER.get(folder, ()))
        program = Program(handlers_of_file(file))
        beside = EXAMPLES / folder / "script.py"
        module = module_of_file(beside) if beside.exists() else None
        calls = _CALLS.get(folder, _beside(folder))(file)
        case = Case(program, crds, script, calls=calls)
        return case._replace(**heeded_in(module))

    return world


class Archive(External):
    """The place of volumes before their deletion, each once for a token."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}

    def keep(self, volume: str, token: str) -> str:
        if token not in self.kept:
            self.created(volume)
        self.kept[token] = volume
        return f"shelf {len(self.kept)}"

    def digest(self) -> list[str]:
        return sorted(self.kept.values())


def _archive(file: Path) -> Mapping[str, Any]:
    return models_for({"archive": Archive().keep})


def _beside(folder: str) -> Callable[[Path], Mapping[str, Any]]:
    """The models of an example's called functions."""
    file = EXAMPLES / folder / "models.py"
    return lambda _: models_of([module_of_file(file)]) if file.exists() else {}


_CALLS = {"09-testing": _archive}
_FEX = "fnopexamples/example-1"
# The actions of users on the examples' objects, in addition to applying them.
_FURTHER: dict[str, Sequence[Action]] = {
    "05-handlers": (edit(_FEX, spec={"field": "changed"}),),
    "06-peering": (edit(_FEX, spec={"field": "changed"}),),
    "07-subhandlers": (edit(_FEX, spec={"items": [{"name": "third"}]}),),
    "08-event-spies": (edit("pods/watched", metadata={"labels": {"app": "seen"}}),),
    "09-testing": (
        edit("pvc/example-1-data", status={"phase": "Bound"}),
        edit(_FEX, spec={"size": "3Gi"}),
        edit(_FEX, spec={"archived": True}),
    ),
    "10-builtins": (edit("configmaps/original", data={"colour": "red"}),),
    "11-filtering": (edit(_FEX, spec={"field": "changed"}),),
    "14-daemons": (edit(_FEX, spec={"field": "changed"}), wait(5)),
    "15-timers": (edit(_FEX, spec={"field": "changed"}), wait(10)),
    "16-indexing": (edit(_FEX, spec={"field": "changed"}),),
    "deployment": (edit(_FEX, metadata={"labels": {"somelabel": "another"}}),),
}
_FILES = {
    **{
        folder.name: "example.py"
        for folder in sorted(EXAMPLES.iterdir())
        if (folder / "example.py").exists()
    },
    "17-models": "orders.py",
    "deployment": "operator.py",
}
