"""The same files and commands on all systems: encodings, and names that some lack."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulations import ROOT

FILES = [
    file
    for room in ("adapters", "core", "effects", "interpreters")
    for file in sorted((ROOT / room).rglob("*.py"))
]

# Places of the encoding among the positional arguments, without the file itself.
ENCODING = {"read_text": 0, "write_text": 1, "fdopen": 3, "open": 3}
# The files whose methods `open` begin something else.
OTHERS_OPEN = {
    "api_server.py",
    "kubernetes.py",
    "machine.py",
    "traffic.py",
    "idleness.py",
    "purity.py",
    "explore.py",
}

# What Windows, or a Python without a system around it, does not have.
MISSING = {
    "fork",
    "forkpty",
    "getuid",
    "geteuid",
    "getgid",
    "getlogin",
    "getpgid",
    "killpg",
    "memfd_create",
    "setsid",
    "fchmod",
    "O_NONBLOCK",
    "SIGALRM",
    "SIGHUP",
    "SIGKILL",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "setitimer",
    "getuser",
}
# They raise for a user without a home.
HOMES = {"expanduser", "home"}
MODULES = {"fcntl", "grp", "locale", "pwd", "resource", "termios", "tty"}
# Each stands behind a guard of its own, which a test or a reader has seen.
GUARDED = {
    ("dump_signal.py", "SIGUSR1"),
    ("limits.py", "SIGALRM"),
    ("limits.py", "setitimer"),
    ("cluster.py", "resource"),
    ("kubeconfig_files.py", "expanduser"),
    ("kubeconfig_files.py", "home"),
    ("memory_files.py", "memfd_create"),
    ("recording_files.py", "fchmod"),
    ("recording_files.py", "fcntl"),
    ("redeciding.py", "SIGVTALRM"),
    ("redeciding.py", "setitimer"),
    ("identity.py", "getuid"),
    ("identity.py", "getuser"),
}


def without_encoding(tree: ast.AST, file: str) -> Iterator[int]:
    """The lines that open a text file in the encoding of the place."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        place = ENCODING.get(name)
        if place is None or any(each.arg == "encoding" for each in call.keywords):
            continue
        is_method = isinstance(call.func, ast.Attribute)
        if name != "open" and not is_method:
            continue  # a function of ours
        if name == "open" and is_method:
            if file in OTHERS_OPEN or _owner(call) == "os":
                continue
            place = 2  # the position of a path
        modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
        if len(call.args) <= place and not any("b" in str(mode) for mode in modes):
            yield call.lineno


def _owner(call: ast.Call) -> str:
    return getattr(getattr(call.func, "value", None), "id", "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open(a)", [1]),
        ("open(a, 'w')", [1]),
        ("path.open()", [1]),
        ("path.read_text()", [1]),
        ("path.write_text(a)", [1]),
        ("os.fdopen(1, 'w')", [1]),
        ("open(a, 'rb')", []),
        ("open(a, encoding='utf-8')", []),
        ("path.read_text('utf-8')", []),
        ("os.open(a, 1)", []),
    ],
)
def test_a_file_without_an_encoding_is_found(text: str, found: list[int]) -> None:
    assert [*without_encoding(ast.parse(text), "a.py")] == found


def test_text_files_have_an_encoding_of_their_own() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in FILES
        for line in without_encoding(ast.parse(file.read_text("utf-8")), file.name)
    ]
    assert found == []


def missing(tree: ast.AST) -> Iterator[str]:
    """The names of the modules and of the attributes that some systems lack."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
        if isinstance(node, ast.Attribute) and node.attr in MISSING | HOMES:
            owner = getattr(node.value, "id", "")
            if owner in {"getpass", "os", "signal"} or node.attr in HOMES:
                yield node.attr


def test_names_that_some_systems_lack_are_guarded() -> None:
    found = {
        (file.name, name)
        for file in FILES
        for name in missing(ast.parse(Path(file).read_text("utf-8")))
    }
    assert found == GUARDED


def test_data_files_are_read_as_resources() -> None:
    """An archive has no files (zipapp), which `importlib.resources` reads all the same.

    PyInstaller reads hooks, and only from folders.
    """
    found = [
        str(file.relative_to(ROOT))
        for file in FILES
        if "scaffold" not in file.parts and "Path(__file__)" in file.read_text("utf-8")
    ]
    assert found == ["adapters/pyinstaller/__init__.py"]
