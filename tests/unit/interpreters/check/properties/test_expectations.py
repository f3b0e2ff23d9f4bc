"""An author's expectations see moments, deletions, requests, changes and models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import Result

from tests.checks import CRD, OBJECT, called, folder as folder, operator
from tests.simulations import ROOT

DOCS = ROOT / "docs/how-to/write-scripts-and-expectations.md"
# The words of the page for the kind and the object of these tests.
CLAIMS = json.loads(
    json.dumps(CRD)
    .replace('"xs', '"claims')
    .replace('"X"', '"Claim"')
    .replace('"singular": "x"', '"singular": "claim"')
)
CLAIM = {**OBJECT, "kind": "Claim"}

HEAD = f"""
from fnop.testing import External, apply, delete, edit, expect

CRDS = [{CLAIMS}]
CLAIM = {CLAIM}
SCRIPTS = {{"keep": [apply(CLAIM)], "drop": [apply(CLAIM), delete("claims/x")]}}

class Billing(External):
    keeps_records = True

    def __init__(self):
        self.charged = []

    def charge(self, who):
        if who not in self.charged:
            self.created(who)
            self.charged.append(who)

BILLING = Billing()
CALLS = {{"charge": BILLING.charge}}
"""

SERVES = """
import fnop

def charge(who): ...

VOLUME = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim",
    "spec": {"accessModes": ["ReadWriteOnce"],
             "resources": {"requests": {"storage": "1Gi"}}},
}
POD = {"apiVersion": "v1", "kind": "Pod",
       "spec": {"containers": [{"name": "a", "image": "a"}]}}

@fnop.on.create("claims.example.com")
@fnop.on.resume("claims.example.com")
async def serve(name, **_):
    await fnop.adopt({**VOLUME, "metadata": {"name": name}})
    await fnop.adopt({**POD, "metadata": {"name": name}})
    await fnop.call(charge, who=name)
    return fnop.patch(status={"phase": "Ready"})
"""
FIRST = '    await fnop.adopt({**VOLUME, "metadata": {"name": name}})\n'
SECOND = '    await fnop.adopt({**POD, "metadata": {"name": name}})\n'
CHARGES = "    await fnop.call(charge, who=name)\n"
TIDIES = """
@fnop.on.delete("claims.example.com")
async def tidy(name, **_):
    await fnop.delete("pvc", name=name)
"""


def documented() -> str:
    """The example of the page."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", DOCS.read_text(), re.MULTILINE)
    (found,) = (each for each in blocks if "is_charged_once" in each)
    return dedent(found)


def checked(folder: Path, source: str, expectations: str, *more: str) -> Result:
    file = f"own_{len([*folder.glob('own_*')])}.py"  # a file is loaded once
    (folder / file).write_text(HEAD + expectations)
    limits = ("--property", "matches", "--script", file, *more)
    return called(operator(folder, source), *limits)


def test_the_example_of_the_page_holds(folder: Path) -> None:
    found = checked(folder, SERVES, documented(), "--budget", "20")
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            SERVES + TIDIES,
            "is_ready_only_with_its_volume does not hold for claims/x, right after "
            "persistentvolumeclaims/x is deleted",
        ),
        (SERVES.replace(CHARGES, ""), "is_charged_once does not hold for claims/x"),
        (
            SERVES.replace(FIRST, "").replace(SECOND, SECOND + FIRST),
            "has_its_volume_before_its_pod does not hold for claims/x",
        ),
        (
            SERVES.replace(
                SECOND, SECOND + '    await fnop.delete("pvc", name=name)\n' + FIRST
            ),
            "deletes_no_volume does not hold for claims/x",
        ),
    ],
)
def test_each_expectation_of_the_page_finds_what_breaks_it(
    folder: Path, source: str, sentence: str
) -> None:
    found = checked(folder, source, documented(), "--budget", "2")
    assert found.exit_code == 1, found.output
    assert f"matches: {sentence}\n" in found.stdout


# ------------------------------------------------------------------------- moments

TWO = """
import fnop

@fnop.on.create("claims.example.com")
@fnop.on.resume("claims.example.com")
async def serve(name, **_):
    for each in "ab":
        await fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap",
                          "metadata": {"name": f"{name}-{each}"}})
    return fnop.patch(status={"ready": True})

@fnop.on.update("claims.example.com", field="spec.size")
async def roll(name, new, **_):
    for each in "ab":
        ROLL
"""
MAP = (
    'await fnop.apply({"apiVersion": "v1", "kind": "ConfigMap", '
    '"metadata": {"name": f"{name}-{each}"}, "data": {"size": str(new)}})'
)
IN_PLACE = TWO.replace("ROLL", MAP)
# It deletes an object before creating it again: at rest this is invisible.
REPLACES = TWO.replace(
    "ROLL", f'await fnop.delete("configmaps", name=f"{{name}}-{{each}}"); {MAP}'
)
SIZES = "SCRIPTS = {'it': [apply(CLAIM), edit('claims/x', spec={'size': 2})]}\n"
BOTH = """
@expect("claims", always=ALWAYS)
def has_two(claim, world):
    maps = [e for e in world.objects("configmaps") if e.name.startswith(claim.name)]
    return not claim.status.get("ready") or len(maps) >= 2
"""
ALWAYS = SIZES + BOTH.replace("ALWAYS", "True")


def test_what_holds_always_is_judged_at_each_change(folder: Path) -> None:
    found = checked(folder, REPLACES, ALWAYS, "--budget", "3")
    assert found.exit_code == 1, found.output
    words = "has_two does not hold for claims/x, right after configmaps/x-a is deleted"
    assert f"matches: {words}\n" in found.stdout
    at_rest = SIZES + BOTH.replace("ALWAYS", "False")
    assert checked(folder, REPLACES, at_rest, "--budget", "3").exit_code == 0


def test_what_holds_always_holds_under_faults_as_well(folder: Path) -> None:
    """A rival that deletes a child is not the operator's action."""
    found = checked(folder, IN_PLACE, ALWAYS, "--budget", "60")
    assert found.exit_code == 0, found.output


def test_an_error_at_a_moment_is_told_with_the_moment(folder: Path) -> None:
    raising = SIZES + (
        "@expect('claims', always=True)\n"
        "def first_map(claim, world):\n    return world['cm/x-a']\n"
    )
    found = checked(folder, IN_PLACE, raising, "--budget", "3")
    assert found.exit_code == 2, found.output
    words = "the expectation first_map itself raises KeyError: 'cm/x-a' (own_0.py, line"
    assert words in found.stderr
    assert (
        "for claims/x, right after claims/x is created; let it answer" in found.stderr
    )


# ------------------------------------------------------- requests, models, deletions


def test_objects_that_are_being_deleted_are_seen_if_asked_for(folder: Path) -> None:
    script = """
HELD = {**CLAIM, "metadata": {"name": "x", "finalizers": ["example.com/held"]}}
SCRIPTS = {"drop": [apply(HELD), delete("claims/x")]}
@expect("claims"DELETING)
def goes(claim, world):
    return "deletionTimestamp" not in claim["metadata"]
"""
    blind = checked(folder, IN_PLACE, script.replace("DELETING", ""), "--budget", "2")
    assert blind.exit_code == 0, blind.output
    seeing = script.replace("DELETING", ", deleting=True")
    found = checked(folder, IN_PLACE, seeing, "--budget", "2")
    assert "matches: goes does not hold for claims/x\n" in found.stdout


def test_requests_tell_how_they_were_answered(folder: Path) -> None:
    text = """
SCRIPTS = {'keep': [apply(CLAIM)]}
@expect("claims")
def never_loses_a_reply(claim, world):
    return all(e.answer != "unknown" for e in world.requests if e.target == "pods/x")
"""
    found = checked(folder, SERVES, text, "--budget", "12")
    assert found.exit_code == 1, found.output
    assert "never_loses_a_reply does not hold for claims/x" in found.stdout
    assert "without a reply" in found.stdout or "its reply is lost" in found.stdout


def test_a_call_without_a_model_of_that_name_is_told(folder: Path) -> None:
    text = (
        "@expect('claims')\ndef paid(claim, world):\n    return world.model('refund')\n"
    )
    found = checked(folder, SERVES, text, "--budget", "2")
    assert found.exit_code == 2, found.output
    assert "no model answers refund; name it in CALLS or --calls" in found.stderr


def test_a_moment_has_the_requests_the_models_and_the_time_of_then(
    folder: Path,
) -> None:
    """The status is written after the call, and no charge comes before the Pod."""
    text = """
SCRIPTS = {'keep': [apply(CLAIM)]}
@expect("claims", always=True)
def is_charged_in_time(claim, world):
    asked = [str(each) for each in world.requests]
    charged = world.model("charge").charged == ["x"]
    is_ready = claim.status.get("phase") == "Ready"
    return charged == ("call charge" in asked) == is_ready and world.wall >= claim.now
@expect("claims", always=True)
def is_older_than_its_pod(claim, world):
    made = [str(each) for each in world.changes() if each.verb == "create"]
    return "pods/x" not in world or made.index("create claims/x") < made.index(
        "create pods/x"
    )
"""
    found = checked(folder, SERVES, text, "--budget", "1")
    assert "nothing is known" in found.stdout, found.output
