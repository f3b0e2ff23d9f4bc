"""`fnop replay --why`: why a field has its value, in recordings of the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fnop.core.values.paths import FieldPath, names_of
from fnop.interpreters.recording.model.contents import Contents, NoSuchObject
from fnop.interpreters.recording.model.effects import covers
from fnop.interpreters.recording.model.refs import Named
from fnop.interpreters.recording.questions.provenance import Provenance, Why
from tests.commands import fnop
from tests.histories import leaves
from tests.pages import read_recording
from tests.recorded_examples import EXAMPLES, record
from tests.simulations import ROOT

Records = list[dict[str, Any]]
OURS = "fnop.dev/default"
# The API server manages these, and no manager is named for them.
SERVERS = frozenset(("uid", "resourceVersion", "generation", "creationTimestamp"))


def followed(records: Records, named: Named) -> Provenance:
    found = Provenance(*named, OURS)
    for each in records:
        found.add(each)
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_field_of_every_object_has_its_writer(name: str, tmp_path: Path) -> None:
    """The managed fields, which the API server keeps, say the same."""
    records = read_recording(record(name, tmp_path))[1]
    contents = Contents()
    for each in records:
        contents.add(each)
    assert contents.objects
    ours = 0
    for named in contents.objects:
        provenance = followed(records, named)
        for path in leaves(provenance.shown[-1].body.data):
            if path[:2] == ("metadata", "managedFields") or len(path) < 2:
                continue
            why = provenance.why(path)
            if why is None:
                continue  # null
            ours += _is_right(named, path, why)
    assert ours, "the operator has written something"


def _is_right(named: Named, path: FieldPath, why: Why) -> bool:
    about = f"{named} {path}: {why}"
    is_ours = why.write is not None and bool(why.author or why.is_own)
    if path[0] == "metadata" and path[1] in SERVERS:
        assert why.is_servers, about
        assert not is_ours, about
    elif why.managers == (OURS,):
        # Defaults of an object that we create count as ours for the server.
        names = names_of(path)
        assert is_ours or (why.write and not covers(why.write.effect, names)), about
    elif why.managers and OURS not in why.managers:
        assert not is_ours, about
    if why.author:
        assert why.attempt is not None, about
        assert why.attempt.handler == why.author
        assert why.sights, about
        assert all(each.step is not None for each in why.sights), about
        assert why.write is not None
        assert why.attempt.step <= why.write.step < why.shown.step
    return is_ours


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record("19-database", tmp_path_factory.mktemp("why"))


def test_the_chain_is_told(database: Path, tmp_path: Path) -> None:
    asked = ("--object", "default/example-1", "--why", "status.endpoint")
    done = fnop("replay", database, *asked, folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    value, since, written, decided, shown, answered = done.out.splitlines()
    assert value == (
        "databases.fnop.dev default/example-1: status.endpoint = "
        '"example-1.default.svc:5432"'
    )
    assert since.startswith("  since version 113, first shown at #")
    assert since.endswith("it was not there before")
    assert "for handler database (example.py:" in written
    assert decided.startswith("  decided by the call of database begun at #")
    assert "it was shown databases default/example-1 in version 108" in shown
    assert answered.strip().startswith("it was answered at #")
    assert answered.endswith(": Random")


def test_what_others_have_written_names_their_managers(
    database: Path, tmp_path: Path
) -> None:
    asked = ("--object", "databases/example-1", "--why", "spec.disk")
    done = fnop("replay", database, *asked, folder=tmp_path)
    assert done.status == 0
    assert "written by somebody else; managers of the field: " in done.out


@pytest.mark.parametrize(
    ("about", "why", "sentence"),
    [
        (
            "nobody",
            "spec.a",
            "shows no object 'nobody'; handlers were called for databases.fnop.dev",
        ),
        (
            *("example-1", "spec.no"),
            "has no field spec.no at the end of the recording, nor had it before",
        ),
    ],
)
def test_what_is_not_there(
    database: Path, tmp_path: Path, about: str, why: str, sentence: str
) -> None:
    done = fnop("replay", database, "--object", about, "--why", why, folder=tmp_path)
    assert done.status == 1
    assert sentence in done.complaint


@pytest.mark.parametrize(
    ("at", "status", "sentence"),
    [
        ("1000", 2, "--at 1000: the recording has 35 steps, and no step 1000"),
        ("1", 1, "handlers were called for none, up to #1"),
    ],
)
def test_a_step_at_which_it_is_not_there(
    database: Path, tmp_path: Path, at: str, status: int, sentence: str
) -> None:
    asked = ("--object", "example-1", "--why", "spec.disk", "--at", at)
    done = fnop("replay", database, *asked, folder=tmp_path)
    assert (done.status, done.out) == (status, "")
    assert sentence in done.complaint
    last = fnop("replay", database, *asked[:-1], "31", folder=tmp_path)
    assert (last.status, last.err) == (0, "")


def test_a_name_of_several_kinds_is_asked_back() -> None:
    contents = Contents()
    recording = ROOT / "tests" / "replays" / "format-2" / "simulated-19-database.fnop"
    for each in read_recording(recording)[1]:
        contents.add(each)
    found = {each.resource.plural for each in contents.objects}
    assert {"databases", "services", "statefulsets"} <= found
    assert str(contents.named("svc/example-1")) == "services default/example-1"
    assert contents.named("service/default/example-1") == contents.named(
        "services/example-1"
    )
    with pytest.raises(NoSuchObject, match=r"may be .*; write KIND/NAMESPACE/NAME"):
        contents.named("example-1")


@pytest.mark.parametrize("field", ["", "status..phase", "status.conditions["])
def test_what_is_no_path_is_refused(database: Path, tmp_path: Path, field: str) -> None:
    done = fnop(
        "replay", database, "--object", "example-1", "--why", field, folder=tmp_path
    )
    assert done.status == 2
    assert f"--why {field!r} is not a path of a field" in done.complaint


def test_elements_of_lists_are_asked_about(database: Path, tmp_path: Path) -> None:
    asked = ("--object", "databases/example-1", "--why")
    by_key = "status.conditions[type=Synced].status"
    done = fnop("replay", database, *asked, by_key, folder=tmp_path)
    assert done.status == 0
    assert f"example-1: {by_key} = " in done.out
