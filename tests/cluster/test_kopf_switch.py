"""A Kopf operator: run by Kopf, then by fnop, and back by Kopf, on one API server.

Each framework is killed with work under way, and the other goes on. No handler that
has succeeded runs again, and no finalizer stays.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import PROGRAMS, Operator, User, operating
from tests.commands import fnop
from tests.patience import eventually
from tests.simulations import example

pytest.importorskip("kopf")

KIND = "fnopexamples"
OPERATOR = '''
import os
from pathlib import Path

import kopf

FOLDER = Path(__file__).parent


class Own(kopf.AnnotationsProgressStorage):
    """A storage of the author's."""


@kopf.on.startup()
def configure(settings, **_):
    found = settings.persistence
    annotations = kopf.AnnotationsDiffBaseStorage(prefix="my.example.com")
    match os.environ["STORAGE"]:
        case "status":
            found.progress_storage = kopf.StatusProgressStorage(name="mine")
            found.diffbase_storage = kopf.StatusDiffBaseStorage(name="mine")
        case "multi":
            found.progress_storage = kopf.MultiProgressStorage(
                [Own(prefix="my.example.com"), kopf.StatusProgressStorage(name="mine")]
            )
            found.diffbase_storage = kopf.MultiDiffBaseStorage(
                [annotations, kopf.StatusDiffBaseStorage(name="mine")]
            )
        case "annotations":
            found.progress_storage = Own(prefix="my.example.com")
            found.diffbase_storage = annotations
            found.finalizer = "my.example.com/held"


def note(what, name):
    with (FOLDER / "calls").open("a") as file:
        file.write(f"{what} {name}\\n")


def wait_for(what, name):
    if not (FOLDER / what).exists():
        note(f"{what} waits", name)
        raise kopf.TemporaryError(f"no {what} yet", delay=1)


@kopf.on.create("fnopexamples")
def first(name, **_):
    note("first", name)
    return "done"


@kopf.on.create("fnopexamples")
def second(name, spec, **_):
    if spec.get("waits"):
        wait_for("go", name)
    note("second", name)


@kopf.on.update("fnopexamples")
async def updated(name, diff, **_):
    note("updated", name)


@kopf.on.delete("fnopexamples")
def deleted(name, spec, **_):
    if spec.get("stays"):
        wait_for("leave", name)
    note("deleted", name)


@kopf.daemon("fnopexamples")
async def daemon(name, stopped, **_):
    note("daemon", name)
    await stopped.wait()
'''
# `make kopf-switch` plays all storages, with many objects in each phase.
STORAGES = ("smart", "annotations", "status", "multi")
PLAYED = STORAGES if os.environ.get("FNOP_KOPF_STORAGES") == "all" else STORAGES[:2]
COUNT = int(os.environ.get("FNOP_KOPF_OBJECTS", "1"))


def many(phase: str) -> tuple[str, ...]:
    """The names of the objects of one phase."""
    return tuple(f"{phase}-{number}" for number in range(COUNT))


# The phases in which the framework is killed, and objects that come after it.
DONE, WAITS, STAYS, LATER = map(many, ("done", "waits", "stays", "later"))


class Story:
    """The user's part, and what the handlers have noted."""

    def __init__(self, user: User, folder: Path) -> None:
        self.user, self.folder = user, folder

    @property
    def calls(self) -> Counter[str]:
        file = self.folder / "calls"
        return Counter(file.read_text().splitlines() if file.exists() else ())

    def wait(self, holds: Callable[[], object]) -> None:
        eventually(holds, otherwise=lambda: f"{self.calls}")

    def wait_for_calls(self, what: str, names: tuple[str, ...]) -> None:
        self.wait(lambda: self.calls.keys() >= {f"{what} {name}" for name in names})

    def wait_until_handled(self, names: tuple[str, ...]) -> None:
        self.wait(lambda: all(map(self.is_handled, names)))

    def wait_for_daemons(self, names: tuple[str, ...], before: Counter[str]) -> None:
        """Daemons are in the process: they begin again, for all that stay."""
        wanted = [f"daemon {name}" for name in names]
        self.wait(lambda: all(self.calls[each] > before[each] for each in wanted))

    def is_handled(self, name: str) -> bool:
        """Whether the last-handled object is stored, and no progress is."""
        found = self.user.get(KIND, name) or {}
        status = found.get("status", {}).get("mine", {})
        notes = found.get("metadata", {}).get("annotations", {})
        names = {key.partition("/")[2] for key in notes} | {*status}
        progress = {"first", "second", "updated"} & names or status.get("progress")
        return "last-handled-configuration" in names and not progress


def planned(
    file: Path, api: ApiServer, namespace: str, storage: str
) -> set[tuple[str, str]]:
    """The handlers that fnop would call, with their objects."""
    done = fnop(
        *("plan", "--kopf", file, "-n", namespace, "--takeover", "-o", "json"),
        *("--kubeconfig", api.kubeconfig),
        folder=file.parent,
        variables={"STORAGE": storage},
    )
    assert done.status == 0, done
    found = json.loads(done.out)
    assert all(each["bookkeeping_only"] for each in found["changes"])
    return {
        (each["handler"], place["name"])
        for each in found["due"]
        for place in each["objects"]
    }


@pytest.mark.parametrize("storage", PLAYED)
def test_kopf_and_fnop_go_on_where_the_other_was_killed(
    storage: str, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    file = tmp_path / "operator.py"
    file.write_text(OPERATOR)
    story = Story(user, tmp_path)
    folders = {name: tmp_path / name for name in ("kopf", "fnop", "again")}
    for each in folders.values():
        each.mkdir()

    @contextmanager
    def by(program: str, folder: str) -> Iterator[Operator]:
        with operating(
            file, apiserver, namespace, folders[folder], program=PROGRAMS[program]
        ) as operator:
            operator.variables["STORAGE"] = storage
            operator.start()
            yield operator

    with by("kopf", "kopf") as operator:
        for done, waits, stays in zip(DONE, WAITS, STAYS, strict=True):
            user.create(example(done, size=1))
            user.create(example(waits, waits=True))
            user.create(example(stays, stays=True))
        story.wait_for_calls("second", (*DONE, *STAYS))
        story.wait_for_calls("go waits", WAITS)
        story.wait_until_handled((*DONE, *STAYS))
        for name in STAYS:
            user.delete(KIND, name)
        story.wait_for_calls("leave waits", STAYS)
        operator.kill()
    plan = planned(file, apiserver, namespace, storage)
    assert plan == {
        *(("second", name) for name in WAITS),
        *(("deleted", name) for name in STAYS),
        *(("daemon", name) for name in (*DONE, *WAITS)),
    }
    before = story.calls
    with by("fnop.kopf", "fnop") as operator:
        story.wait_for_daemons(DONE, before)
        (tmp_path / "go").touch()
        (tmp_path / "leave").touch()
        story.wait_for_calls("second", WAITS)
        story.wait_for_calls("deleted", STAYS)
        story.wait(lambda: not any(user.get(KIND, name) for name in STAYS))
        story.wait_until_handled(WAITS)
        for done, later in zip(DONE, LATER, strict=True):
            user.edit(KIND, done, {"spec": {"size": 2}})
            user.create(example(later))
        story.wait_for_calls("updated", DONE)
        story.wait_until_handled((*DONE, *LATER))
        operator.kill()
    before = story.calls
    with by("kopf", "again"):
        story.wait_for_daemons((*DONE, *LATER), before)
        for name in (*DONE, *WAITS, *LATER):
            user.delete(KIND, name)
        story.wait(lambda: user.objects(KIND) == [])
    everything = (*DONE, *WAITS, *STAYS, *LATER)
    once = {
        *(f"{what} {name}" for what in ("first", "second") for name in everything),
        *(f"updated {name}" for name in DONE),
        *(f"deleted {name}" for name in everything),
    }
    assert {each: story.calls[each] for each in once} == dict.fromkeys(once, 1)
