"""The dependency rules between rooms, read from the source and seen at run time."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What each room may import, beyond itself.
ALLOWED = {
    "effects": {"orjson", "pyrsistent"},
    "core": {"cronsim", "fnop.effects", "immutables", "orjson", "returns"},
    "interpreters": {
        "cel_expr_python",
        "fnop.core",
        "fnop.effects",
        "google",  # protobuf
        "jsonpatch",
        "jsonpointer",
        "orjson",
        "pyrsistent",
        "re2",
        "returns",
    },
    "adapters": {
        "aiohttp",
        "click",
        "cryptography",
        "fnop",  # the version and the facade's registry, for the command line
        "fnop.core",
        "fnop.effects",
        "fnop.interpreters",
        "httptools",
        "hypothesis",  # strategies, for authors' tests
        "kubernetes_asyncio",
        "orjson",
        "prometheus_client",
        "pyrsistent",
        "pytest",
        "returns",
        "uvloop",
        "yaml",
        "yarl",
    },
}

# The part of the standard library that a pure room may use.
PURE_STDLIB = {
    "__future__",
    "base64",
    "binascii",
    "builtins",
    "collections",
    "contextlib",
    "contextvars",  # who watches a drive: set and reset within one step
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "hmac",
    "inspect",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "sys",
    "types",
    "typing",
    "urllib.parse",
    "zlib",
}

# What no pure room may load, not even through somebody else.
IMPURE = ("asyncio", "logging", "random", "socket", "kubernetes_asyncio", "click")


def imports(source: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source.read_text(), source.name)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}:{node.lineno} relative import"
            yield node.lineno, node.module or ""


def permitted(room: str, module: str) -> bool:
    top = module.partition(".")[0]
    if top == "fnop":
        target = ".".join(module.split(".")[:2])
        return target in ALLOWED[room] | {f"fnop.{room}"}
    if top in sys.stdlib_module_names:
        is_pure = not PURE_STDLIB.isdisjoint((top, module))
        return is_pure or room not in ("core", "effects")
    return top in ALLOWED[room]


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_room_imports_only_what_it_may(room: str) -> None:
    offences = [
        f"{source.relative_to(ROOT)}:{line} imports {module}"
        for source in sorted((ROOT / room).rglob("*.py"))
        for line, module in imports(source)
        if not permitted(room, module)
    ]
    assert offences == []


# The wings of core: each may import those before it, and itself.
WINGS = (
    "values",
    "api",
    "seam",
    "memory",
    "peers",
    "handlers",
    "streams",
    "state",
    "objects",
    "operator",
)


def core_modules() -> dict[str, set[str]]:
    """The modules of core as `wing.module`, and what each imports of core.

    Imports for type checking count.
    """
    found = {}
    for source in sorted((ROOT / "core").rglob("*.py")):
        if source.parent == ROOT / "core":
            continue
        needed = set()
        for node in ast.walk(ast.parse(source.read_text())):
            match node:
                case ast.ImportFrom(module=str(module), names=names):
                    parts = module.split(".")
                    if parts[:2] == ["fnop", "core"] and len(parts) == 3:
                        needed |= {f"{parts[2]}.{each.name}" for each in names}
                    elif parts[:2] == ["fnop", "core"]:
                        needed.add(".".join(parts[2:4]))
                case _:
                    pass
        found[f"{source.parent.name}.{source.stem}"] = needed
    return found


def test_every_module_of_core_is_in_a_wing() -> None:
    folders = {each.name for each in (ROOT / "core").iterdir() if each.is_dir()}
    assert folders - {"__pycache__"} == set(WINGS)
    alone = [each.name for each in (ROOT / "core").glob("*.py")]
    assert alone == ["__init__.py"]


def test_wings_import_only_those_before_them() -> None:
    offences = [
        f"{module} imports {needed}"
        for module, imported in core_modules().items()
        for needed in sorted(imported)
        if WINGS.index(needed.partition(".")[0]) > WINGS.index(module.partition(".")[0])
    ]
    assert offences == []


def test_no_modules_of_core_import_each_other() -> None:
    modules = core_modules()
    while ready := [
        each for each, needed in modules.items() if not needed & {*modules}
    ]:
        for each in ready:
            del modules[each]
    assert modules == {}, "in circles, or needing what is in one"


def test_only_the_clock_reads_the_clock() -> None:
    readers = {
        str(source.relative_to(ROOT))
        for room in ("core", "effects", "interpreters")
        for source in (ROOT / room).rglob("*.py")
        for _, module in imports(source)
        if module == "time"
    }
    assert readers == {"interpreters/clock.py"}


def test_core_contains_no_async_functions() -> None:
    found = [
        f"{source.name}:{node.lineno}"
        for room in ("core", "effects")
        for source in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await))
    ]
    assert found == []


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import fnop",
        "import fnop.core.operator.step, fnop.core.seam.wire",
        "import fnop.effects.builders, fnop.effects.wire",
    ],
)
def test_the_pure_rooms_load_nothing_impure(statement: str) -> None:
    assert loaded_by(statement).isdisjoint(IMPURE)


def test_replay_and_simulation_never_load_the_client_library() -> None:
    modules = loaded_by(
        "import fnop.adapters.cli, fnop.adapters.scenario, fnop.adapters.manifests\n"
        "import fnop.interpreters.simulation, fnop.interpreters.replay"
    )
    assert modules.isdisjoint({"kubernetes_asyncio", "aiohttp"})


def test_what_commands_print_goes_through_one_function() -> None:
    """It may hold what others have written (`fnop.adapters.plain`)."""
    printing = {
        file.name: file.read_text().count("click.echo(")
        for file in (ROOT / "adapters").glob("*.py")
    }
    # The objects of a simulated run are YAML, and escaped as such.
    assert {name: n for name, n in printing.items() if n} == {
        "plain.py": 1,
        "cli.py": 1,
    }
