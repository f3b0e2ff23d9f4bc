"""Standard streams of any encoding, closed ones, and those without a reader."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, strategies as st

from fnop.adapters.common import streams
from fnop.adapters.common.manifests import dump_yaml, echo_yaml, parse_yaml
from tests.commands import write
from tests.patience import patience
from tests.simulations import ROOT

# Letters of one, two, three and four bytes of UTF-8; what acts on a terminal, or has no
# form in UTF-8.
HOSTILE = "é漢😀\u202e\x9b\x85\U000e0041\udc80"
CODECS = ("ascii", "latin-1", "cp1252", "cp932", "koi8-r", "iso2022_jp", "utf-8")

OPERATOR = f"""
import dataclasses
import fnop

@fnop.definition("cafes.v1.example.com")
@dataclasses.dataclass(frozen=True)
class Cafe:
    '''Un café, 漢字 😀.'''
    größe: str = "é"

@fnop.on.create("configmaps", labels={{"app": "café"[:3]}})
def made(name, logger):
    print({HOSTILE!r}, flush=True)
    logger.info({HOSTILE!r})
    yield fnop.log("info", "seen", letters={HOSTILE[:-1]!r})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cafe.py").write_text(OPERATOR, "utf-8")
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"app": "caf"}},
        "data": {"plain": "é漢😀", "key": "one\ntwo é\n"},
    }
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(obj), "utf-8")
    return tmp_path


SIMULATE = ("run", "cafe.py", "--log-format", "json", "--simulate", "object.yaml")


def begun(
    folder: Path, *arguments: str, encoding: str = "utf-8", **options: Any
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fnop", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    with process:
        found = process.communicate(timeout=patience(30))
    out, err = (each or b"" for each in found)
    assert b"Traceback" not in err, err.decode(errors="replace")
    return process.returncode, out, err


@contextmanager
def unread() -> Iterator[int]:
    """A pipe whose reader has closed it."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


# ------------------------------------------------------------------- encodings


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp932"])
def test_a_run_is_printed_and_logged_in_any_encoding(
    folder: Path, encoding: str
) -> None:
    status, out, err = ended(begun(folder, *SIMULATE, encoding=encoding))
    assert status == 0, err
    printed, _, text = out.decode(encoding).partition("apiVersion")
    assert printed
    found = yaml.safe_load("apiVersion" + text)
    assert found["data"] == {"plain": "é漢😀", "key": "one\ntwo é\n"}
    lines = [json.loads(each) for each in err.decode(encoding).splitlines()]
    assert [e["letters"] for e in lines if "letters" in e] == [HOSTILE[:-1]]


def test_definitions_are_the_same_in_any_encoding(folder: Path) -> None:
    texts = [
        ended(begun(folder, "crd", "cafe.py", encoding=each))[1].decode(each)
        for each in ("utf-8", "cp1252")
    ]
    assert "\\u6F22" in texts[1]
    assert yaml.safe_load(texts[0]) == yaml.safe_load(texts[1])


def test_manifests_on_standard_input_are_utf_8_in_any_encoding(folder: Path) -> None:
    content = (folder / "object.yaml").read_bytes()
    assert b"\\u" in content
    text = yaml.safe_dump(yaml.safe_load(content), allow_unicode=True).encode()
    (folder / "raw.yaml").write_bytes(text)
    with (folder / "raw.yaml").open("rb") as file:
        arguments = (*SIMULATE[:-1], "-")
        done = ended(begun(folder, *arguments, encoding="latin-1", stdin=file))
    assert "é漢" in yaml.safe_load(done[1][done[1].index(b"apiV") :])["data"]["plain"]


@given(st.text() | st.text(st.characters()), st.sampled_from(CODECS))
def test_json_stays_the_same_json(text: str, codec: str) -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, codec, "fnop.json-escapes", newline="")
    stream.write(json.dumps([text], ensure_ascii=False))
    stream.flush()
    assert json.loads(file.getvalue().decode(codec)) == json.loads(json.dumps([text]))


TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [HOSTILE[:-1], "a: é", "- é", "é\n漢\n", " é", "# é", "é: ", "!é", "'é"]
)


@given(
    st.recursive(
        TEXTS | st.booleans() | st.integers(-9, 9) | st.none(),
        lambda e: st.lists(e, max_size=3) | st.dictionaries(TEXTS, e, max_size=3),
    ),
    st.sampled_from(CODECS),
)
def test_yaml_stays_the_same_yaml(value: Any, codec: str) -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, codec, newline="")
    with redirect_stdout(stream):
        echo_yaml(dump_yaml([{"spec": value}]))
    text = file.getvalue().decode(codec)
    assert parse_yaml(text) == parse_yaml(dump_yaml([{"spec": value}]))


def test_reports_of_a_check_are_json_and_xml_whatever_is_in_them(
    folder: Path,
) -> None:
    write(
        folder,
        "bad.py",
        f"""
        import fnop

        @fnop.on.create("configmaps", labels={{"app": "caf"}})
        def made():
            raise ValueError({HOSTILE!r} + "\\x00\\x1b")
        """,
    )
    status, out, err = ended(
        begun(
            folder,
            *("check", "bad.py", "--object", "object.yaml", "--budget", "1", "--fast"),
            *("-q", "-o", "json", "--junit", "junit.xml", "--save", "saved"),
            encoding="cp1252",
        )
    )
    assert status == 1, err
    assert HOSTILE[:3] in str(json.loads(out.decode("cp1252"))["failures"])
    assert "é漢😀" in str(
        [each.attrib for each in ElementTree.parse(folder / "junit.xml").iter()]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text here")
def test_a_file_whose_name_is_no_text_is_recorded(folder: Path) -> None:
    name = "caf\udce9.py"
    (folder / "cafe.py").rename(folder / name)
    simulate = ("--record", "run.fnop", "--simulate", "object.yaml")
    assert ended(begun(folder, "run", name, *simulate))[0] == 0
    status, out, err = ended(begun(folder, "replay", "run.fnop", name))
    assert status == 0, err
    assert b"identical" in out


# ----------------------------------------------------------- closed, full, unread


@pytest.mark.parametrize("arguments", [("--help",), SIMULATE, ("crd", "cafe.py")])
def test_a_command_that_nobody_reads_ends_in_silence(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    with unread() as pipe:
        status, _, err = ended(begun(folder, *arguments, stdout=pipe))
    assert status == streams.EXIT_UNREAD == 141
    assert b"fail" not in err
    assert b"BrokenPipe" not in err


def test_a_log_that_nobody_reads_does_not_end_a_run(folder: Path) -> None:
    with unread() as pipe:
        status, out, _ = ended(begun(folder, *SIMULATE, stderr=pipe))
    assert status == 0
    assert b"kind: ConfigMap" in out


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_stream_may_be_closed_from_the_beginning(folder: Path, number: int) -> None:
    closed = begun(folder, *SIMULATE, preexec_fn=lambda: os.close(number))
    assert ended(closed)[0] == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_sentence(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        status, _, err = ended(begun(folder, "crd", "cafe.py", stdout=full))
    assert status == 1
    assert err == b"fnop: the output cannot be written: No space left on device\n"


class Former(io.TextIOWrapper):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, "utf-8", newline="")


def test_a_pipe_that_does_not_block_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    text = "é" * 300_000
    found: list[bytes] = []

    def read() -> None:
        with open(reading, "rb") as file:
            found.append(file.read())

    reader = threading.Thread(target=read)
    with open(writing, "wb") as file:
        monkeypatch.setattr(sys, "stdout", Former(file))
        with streams.prepared():
            reader.start()
            print(text, end="", flush=True)
    reader.join()
    assert found == [text.encode()]
