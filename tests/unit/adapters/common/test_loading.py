"""Loading operator files as modules: names, reloads, and errors as sentences."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from fnop.adapters.common.loading import LoadProblem, load, resolve
from tests.simulations import ROOT


@pytest.fixture(autouse=True)
def interpreter_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    path = [*sys.path]
    monkeypatch.chdir(tmp_path)
    yield
    sys.path[:] = path
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return str(path)


def problem_of(path: Path | str, *modules: str) -> str:
    with pytest.raises(LoadProblem) as problem:
        load([str(path)] if path else [], modules)
    return str(problem.value)


# ----------------------------------------------------------------------- names


def test_a_file_is_loaded_under_its_own_name(tmp_path: Path) -> None:
    (module,) = load([write(tmp_path / "my-operator.py", "def f(): return 1")])
    assert module.__name__ == "fnop_script_my_operator"
    assert module.f.__module__ == module.__name__
    assert resolve("fnop_script_my_operator:f")() == 1


def test_it_is_run_once(tmp_path: Path) -> None:
    file = write(tmp_path / "op.py", "import sys; sys.ran = getattr(sys, 'ran', 0) + 1")
    first, second = load([file]), load([file])
    assert first == second
    assert sys.ran == 1  # type: ignore[attr-defined]
    del sys.ran  # type: ignore[attr-defined]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("line", ["import a", "from a import f", "import part.a as a"])
def test_a_file_that_another_one_imports_is_run_once(
    order: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    folder = tmp_path / "part" if "part" in line else tmp_path
    write(folder / "a.py", "import sys; sys.ran = getattr(sys, 'ran', 0) + 1; f = 1")
    write(folder / "b.py", f"import sys; sys.path.append({str(tmp_path)!r})\n{line}")
    try:
        found = load([str(folder / f"{each}.py") for each in order])
        assert sys.ran == 1  # type: ignore[attr-defined]
        names = [each.__name__ for each in found]
        assert names == [f"fnop_script_{each}" for each in order]
        specs = [each.__spec__.name for each in found if each.__spec__]
        assert specs == names
    finally:
        del sys.ran  # type: ignore[attr-defined]


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"{folder}.py", "")
        for folder in ("x/a/op", "x/b/op", "y/b/op", "y/b/other")
    ]
    expected = ["a_op", "x_b_op", "y_b_op", "other"]
    names = [module.__name__ for module in load(files)]
    assert names == [f"fnop_script_{name}" for name in expected]


def test_a_name_that_is_taken_by_another_file(tmp_path: Path) -> None:
    load([write(tmp_path / "a/op.py", "here = 'a'")])
    (module,) = load([write(tmp_path / "b/op.py", "here = 'b'")])
    assert (module.__name__, module.here) == ("fnop_script_b_op", "b")


def test_a_loaded_file_keeps_its_name(tmp_path: Path) -> None:
    files = [write(tmp_path / folder / "op.py", "") for folder in "ab"]
    (first,) = load(files[:1])
    again, second = load(files)
    assert again is first
    assert second.__name__ == "fnop_script_b_op"


def test_names_that_only_punctuation_tells_apart(tmp_path: Path) -> None:
    files = [write(tmp_path / name, "") for name in ("a-b.py", "a_b.py")]
    with pytest.raises(LoadProblem, match=r"a-b\.py and a_b\.py cannot be told apart"):
        load(files)


def run_python(code: str, folder: Path) -> str:
    root = str(ROOT)
    whole = f"import sys; sys.path.insert(0, {root!r})\n{dedent(code)}"
    command = [sys.executable, "-P", "-c", whole]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.strip()


@pytest.mark.parametrize("stem", ["operator", "queue", "yaml", "types", "wave"])
def test_no_file_stands_in_for_another_module(tmp_path: Path, stem: str) -> None:
    """In a fresh process, which may not have imported the other module yet."""
    write(tmp_path / f"{stem}.py", "def mine(): return 'mine'")
    code = f"""
        from fnop.adapters.common.loading import load, resolve
        load([{str(tmp_path / stem) + ".py"!r}])
        import {stem}, yaml, queue
        print(resolve("fnop_script_{stem}:mine")(), hasattr({stem}, "mine"))
    """
    assert run_python(code, tmp_path) == "mine False"


def test_the_name_is_the_same_in_every_process(tmp_path: Path) -> None:
    write(tmp_path / "operator.py", "import fnop\ndef f(): ...\ncall = fnop.call(f)")
    code = """
        from fnop.adapters.common.loading import load
        print(load(["operator.py"])[0].call.function)
    """
    assert run_python(code, tmp_path) == "fnop_script_operator:f"


# --------------------------------------------------------------------- imports


def test_modules_next_to_the_file_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path / "deep/cloud.py", "def ensure(): return 'ensured'")
    file = write(tmp_path / "deep/op.py", "import cloud")
    (module,) = load([file])
    assert module.cloud.ensure() == "ensured"
    assert resolve("cloud:ensure")() == "ensured"


def test_dataclasses_work_in_a_file(tmp_path: Path) -> None:
    file = write(
        tmp_path / "op.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass, field
        from typing import ClassVar

        @dataclass
        class A:
            b: ClassVar[int] = 1
        """,
    )
    assert load([file])


def test_modules_by_name_come_from_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "my_package/__init__.py", "")
    write(tmp_path / "my_package/operators.py", "a = 1")
    (module,) = load([], ["my_package.operators"])
    assert module.a == 1


# -------------------------------------------------------------------- problems


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert problem_of("nowhere.py") == "there is no file nowhere.py"
    assert "is a directory" in problem_of(tmp_path)


def test_a_syntax_error_is_one_line(tmp_path: Path) -> None:
    file = write(tmp_path / "op.py", "a = 1\nif a\n    b\n")
    assert problem_of(file) == "op.py:2: expected ':': if a"
    write(tmp_path / "helper.py", "a = (")
    file = write(tmp_path / "user.py", "import helper")
    assert problem_of(file) == "helper.py:1: '(' was never closed: a = ("


def test_a_module_that_is_missing(tmp_path: Path) -> None:
    file = write(tmp_path / "op.py", "\n\nimport not_there_at_all")
    assert problem_of(file) == (
        "No module named 'not_there_at_all' (imported at op.py:3); "
        "install it or put it next to the file"
    )
    assert problem_of("", "not_there_at_all") == (
        "No module named 'not_there_at_all'; install it or put it next to the file"
    )


def test_an_exception_shows_the_authors_line(tmp_path: Path) -> None:
    write(tmp_path / "helper.py", "import json\ndef f():\n    return json.loads('?')")
    file = write(tmp_path / "failing.py", "import helper\nhelper.f()")
    assert problem_of(file) == (
        "helper.py:3: JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
        "    return json.loads('?')"
    )
    assert "fnop_script_failing" not in sys.modules


def test_our_own_refusals_need_no_class(tmp_path: Path) -> None:
    file = write(
        tmp_path / "op.py",
        """
        import fnop

        @fnop.on.create("pods", timeout="soon")
        def create(**_): ...
        """,
    )
    first, second = problem_of(file).splitlines()
    assert first.startswith("op.py:4: ")
    assert "Error: " not in first
    assert second == '    @fnop.on.create("pods", timeout="soon")'


def test_a_file_that_ends_the_process(tmp_path: Path) -> None:
    file = write(tmp_path / "op.py", "import sys\nsys.exit(3)")
    assert problem_of(file) == "op.py:2: ends the process: sys.exit(3)"


def test_names_that_lead_nowhere(tmp_path: Path) -> None:
    load([write(tmp_path / "leading.py", "a = 1")])
    for name, sentence in (
        ("fnop_script_other:f", "load its file first"),
        ("not_there_at_all:f", "No module named 'not_there_at_all'"),
        ("fnop_script_leading:f", "has no attribute 'f'"),
        ("fnop_script_leading:a", "is not a function but 1"),
    ):
        with pytest.raises(LoadProblem, match=sentence):
            resolve(name)


def test_methods_are_found_too() -> None:
    assert resolve("pathlib:Path.exists") is Path.exists


def test_a_name_that_fnop_does_not_have_is_told_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "operators.py"
    file.write_text("import fnop\n\nfnop.TemporaryErr\n")
    with pytest.raises(LoadProblem) as found:
        load([str(file)])
    assert "operators.py:3" in str(found.value)
    assert "did you mean fnop.TemporaryError?" in str(found.value)
