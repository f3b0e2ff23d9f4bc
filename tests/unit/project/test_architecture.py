"""Which room, wing and test may import which: from the source, and at run time."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.simulations import ROOT
from tests.source_tree import WINGS, imports, names_imported

# What each room may import, beyond itself.
ALLOWED = {
    "effects": {"msgspec", "orjson", "pyrsistent"},
    "core": {"cronsim", "fnop.effects", "immutables", "msgspec", "orjson", "returns"},
    "interpreters": {
        "backports",  # Zstandard, before Python 3.14
        "cel_expr_python",
        "compression",  # the same, from there on
        "fnop.core",
        "fnop.effects",
        "google",  # protobuf
        "immutables",
        "jsonpatch",
        "jsonpointer",
        "msgspec",
        "orjson",
        "pyrsistent",
        "re2",
        "returns",
    },
    "adapters": {
        "PyInstaller",  # in its hook, which PyInstaller runs
        "aiohappyeyeballs",
        "aiohttp",
        "click",
        "cryptography",
        "fnop",  # the version and the facade's registry, for the command line
        "fnop.core",
        "fnop.effects",
        "fnop.interpreters",
        "httptools",
        "jsonpatch",
        "hypothesis",  # strategies, for authors' tests
        "msgspec",
        "opentelemetry",
        "orjson",
        "prometheus_client",
        "pyrsistent",
        "pytest",
        "python_socks",
        "returns",
        "uvloop",
        "yaml",
    },
}

# The files of new projects stand in a room and are not of it.
SCAFFOLD = ROOT / "adapters" / "generate" / "scaffold"

# The part of the standard library that a pure room may use.
PURE_STDLIB = {
    "__future__",
    "base64",
    "binascii",
    "bisect",
    "builtins",
    "collections",
    "contextlib",
    "copy",
    "contextvars",  # who watches a drive: set and reset within one step
    "dataclasses",
    "datetime",
    "decimal",
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

# Modules that no pure room may load, not even indirectly.
IMPURE = ("asyncio", "logging", "random", "socket", "kubernetes_asyncio", "click")


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
        if SCAFFOLD not in source.parents
        for line, module in imports(source)
        if not permitted(room, module)
    ]
    assert offences == []


def modules_of(house: str) -> dict[str, set[str]]:
    """The modules of a package, dotted below it, and the ones each imports of it."""
    root = ROOT / house
    sources = {
        source.relative_to(root).with_suffix(""): source
        for source in sorted(root.rglob("*.py"))
        if SCAFFOLD not in source.parents
    }
    known = {
        ".".join(at.parts).removesuffix(".__init__"): file
        for at, file in sources.items()
    }
    inside = f"fnop.{house.replace('/', '.')}."
    return {
        name: {
            found
            for each in names_imported(source)
            if each.startswith(inside)
            if (found := _module_in(known, each.removeprefix(inside))) != name
        }
        for name, source in known.items()
    }


def _module_in(known: Collection[str], name: str) -> str:
    """The module that something is imported from: `a.b` for `a.b.function`."""
    while name not in known:
        name = name.rpartition(".")[0]
        assert name
    return name


def folders_in(place: Path) -> set[str]:
    return {
        each.name
        for each in place.iterdir()
        if each.is_dir() and each.name != "__pycache__" and each != SCAFFOLD
    }


@pytest.mark.parametrize("house", sorted(WINGS))
def test_every_module_is_in_a_wing(house: str) -> None:
    assert folders_in(ROOT / house) == set(WINGS[house])
    alone = [each.name for each in (ROOT / house).glob("*.py")]
    assert alone == ["__init__.py"]


def test_every_package_of_packages_has_an_order() -> None:
    packages = [
        file.parent
        for room in ALLOWED
        for file in (ROOT / room).rglob("__init__.py")
        if SCAFFOLD not in file.parents
    ]
    nested = {str(each.relative_to(ROOT)) for each in packages if folders_in(each)}
    assert nested == set(WINGS)


@pytest.mark.parametrize("house", sorted(WINGS))
def test_wings_import_only_those_before_them(house: str) -> None:
    floors = {wing: floor for floor, wing in enumerate(WINGS[house])}
    offences = [
        f"{module} imports {needed}"
        for module, imported in modules_of(house).items()
        for needed in sorted(imported)
        if floors.get(needed.partition(".")[0], len(floors))
        > floors.get(module.partition(".")[0], len(floors))
    ]
    assert offences == []


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_no_modules_import_each_other(room: str) -> None:
    modules = modules_of(room)
    while ready := [
        each for each, needed in modules.items() if not needed & {*modules}
    ]:
        for each in ready:
            del modules[each]
    assert modules == {}, "in circles, or needing what is in one"


FILES_MAX = 25


def test_no_folder_has_more_modules_than_can_be_read_at_a_glance() -> None:
    folders = [
        file.parent for room in ALLOWED for file in (ROOT / room).rglob("__init__.py")
    ]
    large = [each for each in folders if len([*each.glob("*.py")]) > FILES_MAX]
    assert large == []


# Rooms of the interpreters that decide nothing and do nothing: pure functions of what
# was read or recorded.  The others in their folders are named.
PURE = {
    "interpreters/explain": {"reading.py"},
    "interpreters/plan": {
        "audit.py",
        "dry_run.py",
        "masking.py",
        "planner.py",
        "observations.py",
        "rehearsal.py",
        "source.py",
    },
    "interpreters/recording/comparison": set(),
    "interpreters/recording/identities": set(),
    "interpreters/recording/model": set(),
    "interpreters/recording/questions": set(),
}


@pytest.mark.parametrize("room", sorted(PURE))
def test_what_explains_is_as_pure_as_the_core(room: str) -> None:
    pure = tuple(f"fnop.{each.replace('/', '.')}." for each in PURE)
    offences = [
        f"{source.relative_to(ROOT)}:{line} imports {module}"
        for source in sorted((ROOT / room).glob("*.py"))
        if source.name not in PURE[room]
        for line, module in imports(source)
        if not permitted("core", module) and not f"{module}.".startswith(pure)
    ]
    assert offences == []


# The simulated cluster imports nothing else of fnop. `frozen` is about classes alone.
KNOWN_TO_THE_CLUSTER = (
    "fnop.core.kubernetes.",
    "fnop.effects.structs.",
    "fnop.interpreters.runtime.protocol.",
)


def test_the_simulated_cluster_knows_the_protocol_and_the_conventions() -> None:
    house = ROOT / "interpreters/cluster"
    needed = {
        name
        for source in house.rglob("*.py")
        for name in names_imported(source)
        if name.startswith("fnop") and not name.startswith("fnop.interpreters.cluster")
    }
    others = {name for name in needed if not name.startswith(KNOWN_TO_THE_CLUSTER)}
    assert others == set()
    # Nor does it know anything of fnop through these.
    known = [
        ROOT / "effects/structs.py",
        ROOT / "interpreters/runtime/protocol.py",
        *(ROOT / "core/kubernetes").glob("*.py"),
    ]
    imported = {name for source in known for name in names_imported(source)}
    ours = {name for name in imported if name.startswith("fnop")}
    assert {name for name in ours if not name.startswith(KNOWN_TO_THE_CLUSTER)} == set()


def test_only_the_clock_reads_the_clock() -> None:
    readers = {
        str(source.relative_to(ROOT))
        for room in ("core", "effects", "interpreters")
        for source in (ROOT / room).rglob("*.py")
        for _, module in imports(source)
        if module == "time"
    }
    assert readers == {"interpreters/runtime/clock.py"}


def test_core_contains_no_async_functions() -> None:
    found = [
        f"{source.name}:{node.lineno}"
        for room in ("core", "effects")
        for source in (ROOT / room).rglob("*.py")
        if re.search(r"\b(async|await)\b", text := source.read_text())
        for node in ast.walk(ast.parse(text))
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
        "import fnop.adapters.cli.main, fnop.adapters.common.manifests\n"
        "import fnop.interpreters.simulation.scenario\n"
        "import fnop.interpreters.simulation.simulation\n"
        "import fnop.interpreters.recording.replay.replay"
    )
    assert modules.isdisjoint({"kubernetes_asyncio", "aiohttp"})


PRINTING = re.compile(r"\bclick\.echo\(|^ +print\(", re.MULTILINE)


def test_what_commands_print_goes_through_one_function() -> None:
    """It may hold what others have written (`fnop.adapters.common.plain`)."""
    printing = {
        file.name: len(PRINTING.findall(file.read_text("utf-8")))
        for file in (ROOT / "adapters").rglob("*.py")
    }
    # The objects of a simulated run and definitions are YAML, and escaped as such.
    assert {name: n for name, n in printing.items() if n} == {
        "plain.py": 1,
        "manifests.py": 1,
    }


def test_no_test_file_is_imported_by_another_file_of_the_tests() -> None:
    """Code for several test files is in a helper module, which is named for it."""
    offences = [
        f"{source.relative_to(ROOT)} imports {name}"
        for source in sorted((ROOT / "tests").rglob("*.py"))
        for name in names_imported(source)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert offences == []


def test_each_unit_test_is_in_the_folder_of_its_room_or_feature() -> None:
    unit = ROOT / "tests" / "unit"
    assert [each.name for each in unit.glob("*.py")] == ["__init__.py"]


def test_the_folders_of_tests_mirror_the_rooms() -> None:
    for kind in ("unit", "property"):
        base = ROOT / "tests" / kind
        for file in base.rglob("test_*.py"):
            folder = file.parent.relative_to(base)
            is_room = folder.parts and (ROOT / folder).is_dir()
            assert is_room or folder.parts == ("project",), file


def test_a_run_on_a_cluster_starts_without_the_libraries_of_servers() -> None:
    modules = loaded_by(
        "import fnop.adapters.cli.run, fnop.adapters.running.embedding\n"
        "import fnop.adapters.kubernetes.client, fnop.adapters.kubernetes.oidc"
    )
    assert "httptools" in modules
    slow = {"aiohttp", "kubernetes_asyncio", "multidict", "python_socks", "yarl"}
    assert modules.isdisjoint(slow)
