"""A failure that `fnop check` has found, as a test for pytest."""

from __future__ import annotations

import builtins
import json
import pprint
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from fnop.interpreters.check.state.kinds import Fault, Place
from fnop.interpreters.check.trials.catalogue import schedule_from_json

__all__ = [
    "action_call",
    "answers_source",
    "has_fnop",
    "literal",
    "start_source",
    "test_of",
]

_HEAD = '''"""A failure that fnop check has found: {property}.

{message}
"""

{imports}from fnop.testing import {names}

DEFINITIONS = {definitions}
GIVEN = {given}
{restored}

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
    """The source of a test that fails as long as the failure exists.

    `record` is the header of the failure's recording. `paths` are the operator's files
    if they have changed since then.
    """
    schedule = schedule_from_json(record["schedule"])
    operator = [*paths] or record["operator"]
    actions, restored = record["script"], record.get("restored")
    names = {_builder(each).partition("(")[0].partition(".")[0] for each in schedule}
    names |= {"models"} if record.get("models") or record.get("models of") else set()
    names |= {"Recorded"} if record.get("answers") and "models" not in names else set()
    names |= {each["pace"] for each in actions if each["do"] == "pace"} | {"near"}
    files = [_near_call(each) for each in operator]
    head = _HEAD.format(
        property=record["property"],
        message=record["message"],
        words=record["words"],
        definitions=literal(record["definitions"]),
        given=literal(record["given"]),
        restored=f"RESTORED = {literal(restored)}\n" if restored else "",
        operator=files[0] if len(files) == 1 else f"[{', '.join(files)}]",
        namespace=repr(record["namespace"]),
        faults="".join(f"            {_builder(each)},\n" for each in schedule),
        imports=_imports(record),
        names=", ".join(sorted({"Simulation", *names})),
        more="".join(f"\n        {each}," for each in _world(record)),
    )
    lines = [f"    {action_call(each)}\n" for each in actions]
    end = f"    sim.settle().heal().must_hold({record['property']!r})\n"
    return head + "".join(lines) + end


def _near_call(file: Any) -> str:
    """The call that finds a file from any place of the test."""
    return f"near(__file__, {str(file)!r})"


def _imports(record: Mapping[str, Any]) -> str:
    """The imports in addition to `fnop.testing`, in the usual order."""
    lines = []
    if record.get("restored"):
        lines.append("from datetime import UTC, datetime\n\n")
    if record.get("name") or has_fnop(record.get("answers") or {}):
        lines.append("import fnop\n")
    return "".join(lines)


def _world(record: Mapping[str, Any]) -> Iterator[str]:
    """The further arguments of the world in which the failure was found."""
    words = [*map(_near_call, record.get("models", ()))]
    script = record.get("models of")
    if script:
        words.append(f"script={_near_call(script)}")
    if words:
        yield f"calls=models({', '.join(words)})"
    elif record.get("answers"):
        yield f"calls={answers_source(record['answers'])}"
    if record.get("restored"):
        yield "restored=RESTORED"
        yield f"start={start_source(record['start'])}"
    if script:
        yield f"script={_near_call(script)}"
    if record.get("former"):
        yield f"former={_near_call(record['former'])}"
    if record.get("name"):
        yield f"settings=fnop.Settings(operator={str(record['name'])!r})"
    if record.get("leader_elect"):
        yield "leader_elect=True"


def literal(value: Any) -> str:
    """A value as Python source."""
    return pprint.pformat(value, width=88, sort_dicts=False)


def action_call(found: Mapping[str, Any]) -> str:
    """The call of a simulation that performs an action, which is given in JSON."""
    place = found.get("namespace")
    namespace = f", namespace={place!r}" if place else ""
    match found["do"]:
        case "apply":
            return f"sim.apply({_indent_literal(found['manifest'])})"
        case "edit":
            changes = _indent_literal(found["changes"])
            return f"sim.edit({found['where']!r}{namespace}, **{changes})"
        case "delete":
            how = found.get("propagation")
            more = f", propagation={how!r}" if how else ""
            return f"sim.delete({found['where']!r}{namespace}{more})"
        case "wait" | "outage" as verb:
            return f"sim.{verb}({found['seconds']!r})"
        case "upgrade":
            return f"sim.upgrade({found['release']!r})"
        case "log_line":
            named = found.get("container")
            which = f", container={named!r}" if named else ""
            text = found["text"]
            return f"sim.log_line({found['where']!r}, {text!r}{which}{namespace})"
        case _:
            seconds = found.get("seconds", "")
            pace = f"{found['pace']}({seconds})"
            return f"sim.pace({found['controller']!r}, {pace})"


def _indent_literal(value: Any) -> str:
    return literal(value).replace("\n", "\n        ")


def _builder(fault: Fault) -> str:
    """The call that builds a fault."""
    site, name = fault.site, fault.kind.name
    nth = f", nth={site.nth}" if site.nth != 1 else ""
    detail = f", detail={fault.detail!r}" if fault.detail else ""
    match site.place:
        case Place.WRITE | Place.OWN | Place.READ | Place.CALL | Place.CLIENT:
            where = f"{json.dumps(site.handler)}, {site.verb}={json.dumps(site.target)}"
        case Place.EVENT:
            where = f'event="{site.verb} {site.target}"'
        case Place.LOG:
            where = f'log="{site.target}"'
        case Place.REST:
            where = f"after={site.target}"
        case Place.RUN:
            where = f"run={site.target!r}"
    if name in ("F1:before", "F1:after"):
        return f"crash.{fault.kind.mode}({where}{nth})"
    return f"fault({name!r}, {where}{nth}{detail})"


# --------------------------------------------------------- what a recording has shown


def start_source(wall: float) -> str:
    """The time at which a simulation begins, as Python source.

    >>> start_source(1.5)
    'datetime.fromtimestamp(1.5, UTC)'
    """
    return f"datetime.fromtimestamp({wall!r}, UTC)"


def answers_source(answers: Mapping[str, Sequence[Any]]) -> str:
    """The recorded answers of called functions, as the models of a simulation.

    `answers` are pairs of arguments and outcomes in JSON, by function.
    """
    lines = ["{"]
    for function, pairs in answers.items():
        # A function in the operator's own file goes by its name alone: the file may be
        # renamed.
        name = function.removeprefix("fnop_script:")
        lines.append(f"            {name!r}: Recorded(")
        lines.append("                [")
        told = (f"({given!r}, {_outcome(outcome)})" for given, outcome in pairs)
        for pair, several in groupby(told):
            number = len([*several])
            again = f"*[{pair}] * {number}" if number > 1 else pair
            lines.append(f"                    {again},")
        lines += ["                ]", "            ).answer,"]
    return "\n".join((*lines, "        }"))


def has_fnop(answers: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the source of answers uses errors of fnop."""
    outcomes = (each for pairs in answers.values() for _, each in pairs)
    return any(_outcome(each).startswith("fnop.") for each in outcomes)


def _outcome(found: Mapping[str, Any]) -> str:
    if found["is"] != "Raised":
        return repr(found.get("value"))
    name, text = str(found["type"]), found.get("message", "")
    if name == "TemporaryError":
        return f"fnop.TemporaryError({text!r}, delay={found.get('delay_seconds')!r})"
    if found.get("permanent"):
        return f"fnop.PermanentError({text!r})"
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, Exception):
        return f"{name}({text!r})"
    return f"type({name!r}, (Exception,), {{}})({text!r})"
