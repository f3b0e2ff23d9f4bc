"""A part of a recording as a test for pytest: what others did, and the outcome."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from fnop.adapters.check.tests import (
    action_call,
    answers_source,
    has_fnop,
    literal,
    start_source,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.effects.wire import to_wire
from fnop.interpreters.check.incidents.incidents import Incident
from fnop.interpreters.check.state.scripts import script_to_json
from fnop.interpreters.recording.comparison.ends import expected_of, is_named_anew
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.times import stamp

__all__ = ["answers_to_json", "incident_test", "settings_source"]

_HEAD = '''"""What {recording} shows from #{step} on, {stamp}.

The objects are those that the operator had been shown by then; secrets are tokens.
"""

from datetime import UTC, datetime

{imports}from fnop.testing import {names}

DEFINITIONS = {definitions}
# ... at #{step}
RESTORED = {restored}
# ... at the end of the recording, as the operator has made them.  Put right here what
# was wrong, and leave out what does not matter.
EXPECTED = {expected}


def test_incident():
    sim = Simulation(
        {operator},
        crds=DEFINITIONS,
        restored=RESTORED,
        start={start},{more}
    )
'''


def incident_test(
    incident: Incident,
    step: int,
    recording: str,
    paths: Sequence[str],
    settings: Settings,
    derived: Container[str] = (),
) -> str:
    """The source of a test that replays a recorded part of a run in simulation.

    `paths` are the operator's files, `settings` come from the command line, and
    `derived` are texts that differ in each run.
    """
    manager, given = settings.marker, settings_source(settings)
    answers = answers_to_json(incident)
    names = {"Simulation", *(["Recorded"] if answers else ())}
    script = script_to_json(incident.script)
    names |= {each["pace"] for each in script if each["do"] == "pace"}
    head = _HEAD.format(
        recording=recording,
        step=step,
        stamp=stamp(incident.start),
        imports="import fnop\n" if given or has_fnop(answers) else "",
        names=", ".join(sorted(names)),
        definitions=literal([*incident.definitions]),
        restored=literal([*incident.restored]),
        expected=literal([*_expected_objects(incident, manager, derived)]),
        operator=repr(paths[0] if len(paths) == 1 else [*paths]),
        start=start_source(incident.start),
        more="".join(
            f"\n        {each},"
            for each in (
                f"calls={answers_source(answers)}" if answers else "",
                f"settings={given}" if given else "",
            )
            if each
        ),
    )
    return head + "".join(f"    {each}\n" for each in _body(incident))


def settings_source(settings: Settings) -> str:
    """The settings that a command line has given, as Python source; "" without any.

    >>> settings_source(Settings(operator="billing", namespaces=("prod",)))
    "fnop.Settings(operator='billing', namespaces=('prod',))"
    """
    names = ("operator", "namespaces", "selector")
    told = {name: getattr(settings, name) for name in names}
    usual = Settings()
    others = (
        f"{name}={value!r}"
        for name, value in told.items()
        if value != getattr(usual, name)
    )
    found = ", ".join(others)
    return f"fnop.Settings({found})" if found else ""


def answers_to_json(incident: Incident) -> dict[str, list[Any]]:
    """The recorded answers of called functions: arguments and outcomes, in JSON."""
    return {
        function: [[arguments, to_wire(outcome)] for arguments, outcome in pairs]
        for function, pairs in incident.answers.items()
    }


def _expected_objects(
    incident: Incident, manager: str, derived: Container[str]
) -> Iterator[dict[str, Any]]:
    begun = {Place.of(each) for each in incident.restored}
    for place, found in incident.end.items():
        if is_named_anew(found) and place not in begun:
            continue
        expected = expected_of(found, manager, derived)
        if expected.keys() > {"apiVersion", "kind", "metadata"} or (
            expected["metadata"].keys() > {"name", "namespace"}
        ):
            yield expected


def _body(incident: Incident) -> Iterator[str]:
    script = script_to_json(incident.script)
    if not script or script[0]["do"] != "pace":
        yield "sim.settle()"
    for each in script:
        yield action_call(each)
        if each["do"] != "wait":
            yield "sim.settle()"
    if incident.left:
        # fnop calls functions again and again, and their answers change over time.
        yield f"sim.wait({incident.left!r})"
        yield "sim.settle()"
    yield "assert sim.settled, sim.unsettled"
    yield "sim.must_have(EXPECTED)"
    for place in _missing_places(incident):
        group = place.api_version.rpartition("/")[0]
        where = f"{place.kind.lower()}.{group}".rstrip(".") + f"/{place.name}"
        more = f", namespace={place.namespace!r}" if place.namespace else ""
        yield f"assert sim.get({where!r}{more}) is None"


def _missing_places(incident: Incident) -> list[Place]:
    begun = (Place.of(each) for each in incident.restored)
    return [each for each in begun if each not in incident.end]
