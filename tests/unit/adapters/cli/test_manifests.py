"""Manifests: read as kubectl reads them, and printed so that kubectl can read them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.common.manifests import (
    ManifestProblem,
    dump_yaml,
    parse_yaml,
    read_manifests,
)
from tests.simulations import ROOT
from tests.thorough import examples

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str) -> str:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    return path


def names(*paths: str) -> list[str]:
    return [each["metadata"]["name"] for each in read_manifests(paths)]


def named(name: str) -> str:
    return HEAD.replace("x", name)


def problem_of(text: str, file: str = "m.yaml") -> str:
    with pytest.raises(ManifestProblem) as problem:
        read_manifests([write(file, text)])
    return str(problem.value)


# ---------------------------------------------------------------------- sources


def test_documents_come_in_order_without_the_empty_ones() -> None:
    text = f"# a comment\n---\n{named('a')}---\n---\n# nothing\n---\n{named('b')}---\n"
    assert names(write("m.yaml", text)) == ["a", "b"]


def test_directories_hold_manifests() -> None:
    for file, name in (("b.yaml", "b"), ("a.yml", "a"), ("notes.txt", "no")):
        write(f"d/{file}", named(name))
    body = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "c"}}
    write("d/c.json", json.dumps(body, indent="\t"))
    assert names("d") == ["a", "b", "c"]
    assert names("d/b.yaml", "d/a.yml") == ["b", "a"]


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(HEAD))
    assert names("-") == ["x"]


def test_lists_are_taken_apart() -> None:
    item = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}
    inner = {"apiVersion": "v1", "kind": "AList", "items": [item, item]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [item, inner]}
    empty = {"apiVersion": "v1", "kind": "List", "items": None}
    text = json.dumps(outer) + "\n" + json.dumps(empty)
    assert names(write("m.json", text)) == ["a", "a", "a"]


def test_json_may_follow_json_and_braces_may_be_yaml() -> None:
    one = json.dumps({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}})
    assert names(write("m.yaml", f"{one}\n{one}")) == ["a", "a"]
    assert names(write("m.yaml", "{apiVersion: v1, kind: A, metadata: {name: b}}"))


def test_a_name_may_be_generated() -> None:
    text = HEAD.replace("name:", "generateName:")
    assert len(read_manifests([write("m.yaml", text)])) == 1


# ----------------------------------------------------------------------- values

# As kubectl 1.32 turned them into JSON.
KUBECTL: list[tuple[str, Any]] = [
    *[(text, text) for text in ("1:30", "22:22", "-1:30", "190:20:30.15", "=", "<<")],
    *[(text, text) for text in ("1e400", "0x", "_1", "2001-01-01", "b")],
    ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
    ("!!timestamp 2001-01-01", "2001-01-01"),
    *[(text, True) for text in ("y", "Y", "yes", "on", "True")],
    *[(text, False) for text in ("n", "off", "No")],
    *[(text, None) for text in ("~", "null", "Null", "", "!!null ''")],
    *[("012", 10), ("0o14", 12), ("0x1F", 31), ("0b11", 3), ("+1", 1), ("-0", 0)],
    *[("1_000", 1000), ("1__0", 10), ("08", 8), ("09.5", 9.5), ("1_0.5", 10.5)],
    *[("1e3", 1000), ("1E3", 1000), ("-1.5e+3", -1500), ("12e03", 12000), ("1e0", 1)],
    *[("1.0", 1), ("1.", 1), (".5", 0.5), ("+.5", 0.5), ("5.e1", 50), ("1e21", 1e21)],
    *[("0.1e-7", 1e-8), ("!!float 1", 1), ("!!int '3'", 3), ("!!str 1", "1")],
    ("123456789012345678901234567890", 1.2345678901234568e29),
    *[("!!binary aGVsbG8=", "hello"), ("!foo b", "b"), ("!!set {x}", {"x": None})],
    *[("!!omap [a: 1]", [{"a": 1}]), ("[1, &x [2], *x]", [1, [2], [2]])],
    *[("{1: b}", {"1": "b"}), ("{true: b}", {"true": "b"}), ("{on: 1}", {"true": 1})],
    *[("{1.5: b}", {"1.5": "b"}), ("{=: 1}", {"=": 1}), ("{1e3: 1}", {"1000": 1})],
    *[("{2001-01-01: 1}", {"2001-01-01": 1}), ("{a: 1, a: 2}", {"a": 2})],
    ("{<<: {a: 1}, b: 2}", {"a": 1, "b": 2}),
]


@pytest.mark.parametrize(("text", "value"), KUBECTL)
def test_values_are_what_kubectl_makes_of_them(text: str, value: Any) -> None:
    (manifest,) = read_manifests([write("m.yaml", f"{HEAD}value: {text}")])
    found = manifest["value"]
    assert (found, type(found)) == (value, type(value))
    assert json.loads(json.dumps(found)) == value


def test_what_is_shared_in_yaml_is_not_shared_in_json() -> None:
    (manifest,) = read_manifests([write("m.yaml", f"{HEAD}a: &x {{}}\nb: *x")])
    assert manifest["a"] is not manifest["b"]


# --------------------------------------------------------------------- problems


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [1\nb: 2", "m.yaml:2 is not YAML: did not find expected ',' or ']'"),
        ("a:\n\t- 1", "m.yaml:2 is not YAML: found character that cannot start"),
        ("kind: A", "m.yaml has no apiVersion"),
        ("apiVersion: v1", "m.yaml has no kind"),
        ("{apiVersion: v1, kind: A}", "m.yaml has no metadata.name"),
        (HEAD.replace("{name: x}", ""), "m.yaml has no metadata.name"),
        (HEAD.replace("{name: x}", "x"), "m.yaml has metadata that is not a mapping"),
        (named("12"), "m.yaml has the name 12; put it in quotes"),
        (HEAD.replace("v1", "1"), "m.yaml has a apiVersion that is not a text"),
        ("- 1", "m.yaml is not a manifest but [1]"),
        (f"{HEAD}---\nkind: A\n", "document 2 of m.yaml has no apiVersion"),
        (f"---\na: 1\n---\n{HEAD}", "document 1 of m.yaml has no apiVersion"),
        ("{kind: List, items: [{}]}", "item 1 of m.yaml has no apiVersion"),
        ("{kind: List, items: 1}", "m.yaml has items that are not a list"),
        (f"{HEAD}a: .inf", "m.yaml holds inf, which JSON cannot say"),
        (f"{HEAD}a: .NaN", "m.yaml holds nan, which JSON cannot say"),
        (f"{HEAD}a: &x [*x]", "m.yaml has an anchor that contains itself"),
        (f"{HEAD}a: {{null: x}}", "m.yaml has a mapping with an empty key"),
        (f"{HEAD}a: !!int x", "m.yaml is not YAML: invalid literal"),
        (f"{HEAD}a: {{[1]: x}}", "m.yaml:4 is not YAML: found unhashable key"),
    ],
)
def test_what_is_wrong_is_said(text: str, sentence: str) -> None:
    assert problem_of(text).startswith(sentence)


def test_json_is_held_to_json() -> None:
    text = '{"kind":\n A}'
    assert problem_of(text, "m.json") == "m.json:2 is not JSON: Expecting value"


def test_files_that_cannot_be_read() -> None:
    Path("empty").mkdir()
    Path("m.yaml").write_bytes(b"a: \xff")
    for path, sentence in (
        ("nowhere.yaml", "there is no file nowhere.yaml"),
        ("m.yaml", "m.yaml is not text in UTF-8"),
        ("empty", "there is no .yaml, .yml or .json file in empty"),
    ):
        with pytest.raises(ManifestProblem) as problem:
            read_manifests([path])
        assert str(problem.value) == sentence


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read() -> None:
    Path("m.yaml").touch(mode=0o000)
    with pytest.raises(ManifestProblem, match=r"m\.yaml cannot be read: Permission"):
        read_manifests(["m.yaml"])


# --------------------------------------------------------------------- printing


PRINTED = """\
apiVersion: v1
kind: A
metadata:
  name: x
  namespace: here
  labels:
    app: 'y'
spec:
  b:
  - a
  empty: {}
data:
  script: |
    one
    two
status:
  a:
  - a
  z: 1
---
kind: B
"""


def test_objects_are_printed_in_the_usual_order() -> None:
    shared = ["a"]
    body = {
        "status": {"z": 1, "a": shared},
        "data": {"script": "one\ntwo\n"},
        "spec": {"b": shared, "empty": {}},
        "metadata": {"labels": {"app": "y"}, "namespace": "here", "name": "x"},
        "kind": "A",
        "apiVersion": "v1",
    }
    assert dump_yaml([body, {"kind": "B"}]) == PRINTED


def test_nothing_is_printed_as_nothing() -> None:
    assert dump_yaml([]) == ""


TEXTS = st.text() | st.sampled_from([text for text, _ in KUBECTL])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9).filter(
    lambda value: not value.is_integer()
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@settings(max_examples=examples(50))
@given(VALUES)
def test_what_is_printed_can_be_read(value: Any) -> None:
    body = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}, "value": value}
    Path("m.yaml").write_bytes(dump_yaml([body]).encode())
    assert read_manifests(["m.yaml"]) == [body]


def test_it_is_imported_without_the_cluster() -> None:
    code = "import fnop.adapters.common.manifests, sys; print('aiohttp' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 600 + "]" * 600, "- " * 100_000])
def test_a_text_that_is_nested_too_deep_is_refused(text: str) -> None:
    """Its reader would take the whole process down.

    libyaml reads ahead, and may refuse such a text (PyYAML 6.0.4) before fnop counts.
    """
    refused = "nested more than 500 levels deep|exceeded maximum nesting depth"
    with pytest.raises(ManifestProblem, match=refused):
        parse_yaml(text)


# -------------------------------------------------------- keys that come twice

TWICE = {
    "at the top": (f"{HEAD}data: {{}}\ndata: {{}}\n", 5, "data"),
    "deep": (f"{HEAD}data:\n  - a: 1\n    b: 2\n    a: 3\n", 7, "a"),
    "in quotes": (f"{HEAD}data:\n  a: 1\n  'a': 2\n", 6, "a"),
    "in another document": (f"{HEAD}---\n{HEAD}kind: ConfigMap\n", 8, "kind"),
    "in JSON": (
        '{"apiVersion": "v1", "kind": "A", "metadata":\n {"name": "a", "name": "b"}}',
        2,
        "name",
    ),
}


@pytest.mark.parametrize("case", TWICE)
def test_a_key_that_comes_twice_is_told(case: str) -> None:
    text, line, key = TWICE[case]
    said: list[str] = []
    read_manifests([write("m.yaml", text)], said.append)
    assert said == [f"m.yaml:{line}: the key {key!r} comes twice; the last one counts"]


def test_json_that_is_no_yaml_is_read_without_a_word() -> None:
    text = '{"apiVersion": "v1", "kind": "A",\n\t"metadata": {"name":\t"a\\/b"}}'
    said: list[str] = []
    (found,) = read_manifests([write("m.json", text)], said.append)
    assert (found["metadata"]["name"], said) == ("a/b", [])


def test_equal_keys_of_different_mappings_are_no_matter() -> None:
    shared = "x: &x {a: 1}\ny: *x\nz: {<<: *x, a: 1}\n"
    said: list[str] = []
    read_manifests([write("m.yaml", f"{HEAD}{shared}---\n{HEAD}")], said.append)
    assert said == []
