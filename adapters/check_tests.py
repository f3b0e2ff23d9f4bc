"""A failure that `fnop check` has found, as a test for pytest."""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fnop.interpreters.check.faults import Fault, Place, schedule_from_json

__all__ = ["test_of"]

_HEAD = '''"""A failure that fnop check has found: {property}.

{message}
"""

{imports}from fnop.testing import {names}

DEFINITIONS = {definitions}
GIVEN = {given}


def test_{property}():
    # {words}
    sim = Simulation(
        {operator},
        crds=DEFINITIONS,
        objects=GIVEN,
        namespace={namespace},{more}
        faults=[
{faults}        ],
    )
'''


def test_of(record: Mapping[str, Any], paths: Sequence[str]) -> str:
    """The source of a test that fails as long as the failure is there.

    `record` is what a failure's recording says about it, `paths` the operator's files
    if they are others than then.
    """
    schedule = schedule_from_json(record["schedule"])
    operator = [*paths] or record["operator"]
    actions = record["script"]
    names = {_builder(each).partition("(")[0].partition(".")[0] for each in schedule}
    names |= {"models"} if record.get("models") or record.get("models of") else set()
    names |= {each["pace"] for each in actions if each["do"] == "pace"}
    head = _HEAD.format(
        property=record["property"],
        message=record["message"],
        words=record["words"],
        definitions=_literal(record["definitions"]),
        given=_literal(record["given"]),
        operator=repr(operator[0] if len(operator) == 1 else operator),
        namespace=repr(record["namespace"]),
        faults="".join(f"            {_builder(each)},\n" for each in schedule),
        imports="import fnop\n" if record.get("name") else "",
        names=", ".join(sorted({"Simulation", *names})),
        more="".join(f"\n        {each}," for each in _world(record)),
    )
    lines = [f"    {_action(each)}\n" for each in actions]
    end = f"    sim.settle().heal().must_hold({record['property']!r})\n"
    return head + "".join(lines) + end


def _world(record: Mapping[str, Any]) -> Iterator[str]:
    """The further arguments of the world that the failure was found in."""
    words = [repr(str(each)) for each in record.get("models", ())]
    script = record.get("models of")
    if script:
        words.append(f"script={str(script)!r}")
    if words:
        yield f"calls=models({', '.join(words)})"
    if script:
        yield f"script={str(script)!r}"
    if record.get("former"):
        yield f"former={str(record['former'])!r}"
    if record.get("name"):
        yield f"settings=fnop.Settings(operator={str(record['name'])!r})"


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=88, sort_dicts=False)


def _action(found: Mapping[str, Any]) -> str:
    place = found.get("namespace")
    namespace = f", namespace={place!r}" if place else ""
    match found["do"]:
        case "apply":
            return f"sim.apply({_indented(found['manifest'])})"
        case "edit":
            changes = _indented(found["changes"])
            return f"sim.edit({found['where']!r}{namespace}, **{changes})"
        case "delete":
            how = found.get("propagation")
            more = f", propagation={how!r}" if how else ""
            return f"sim.delete({found['where']!r}{namespace}{more})"
        case "wait":
            return f"sim.wait({found['seconds']!r})"
        case _:
            seconds = found.get("seconds", "")
            pace = f"{found['pace']}({seconds})"
            return f"sim.pace({found['controller']!r}, {pace})"


def _indented(value: Any) -> str:
    return _literal(value).replace("\n", "\n        ")


def _builder(fault: Fault) -> str:
    """The call that builds a fault."""
    site, name = fault.site, fault.kind.name
    nth = f", nth={site.nth}" if site.nth != 1 else ""
    detail = f", detail={fault.detail!r}" if fault.detail else ""
    match site.place:
        case Place.WRITE | Place.OWN | Place.READ | Place.CALL:
            where = f"{json.dumps(site.handler)}, {site.verb}={json.dumps(site.target)}"
        case Place.EVENT:
            where = f'event="{site.verb} {site.target}"'
        case Place.REST:
            where = f"after={site.target}"
        case Place.RUN:
            where = f"run={site.target!r}"
    if name in ("F1:before", "F1:after"):
        return f"crash.{fault.kind.mode}({where}{nth})"
    return f"fault({name!r}, {where}{nth}{detail})"
