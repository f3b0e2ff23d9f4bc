"""`fnop replay`: which options go together."""

from __future__ import annotations

from typing import Any

import click
import pytest

from fnop.adapters.cli.replay import replay
from fnop.adapters.cli.replay_options import Mode, Wish, wish_of

VALUES: dict[str, Any] = {
    "at": 3,
    "about": "default/a",
    "begin": 4,
    "budget": 5,
    "calls": ("models.py",),
    "crds": ("crd.yaml",),
    "fail_on": "delete",
    "html": "a.html",
    "jobs": 2,
    "perfetto": "a.pb",
    "save": "failures",
    "seconds": 1.5,
    "until": 9,
    "why": "status.phase",
}
FLAGS = ("as_test", "changes_only", "every_line", "explore", "shadow", "step")
# Arguments of the command that are not options of a mode.
COMMON = {"recording", "paths", "module", "trusted", "guard", "help", "kopf"}


def wish(*given: str, files: bool = False) -> Wish:
    options: dict[str, Any] = dict.fromkeys(VALUES) | dict.fromkeys(FLAGS, False)
    options |= {"calls": (), "crds": ()}
    options |= {each: VALUES.get(each, True) for each in given}
    return wish_of(options, has_files=files)


def test_each_option_of_the_command_is_known() -> None:
    names = {each.name for each in replay.params} - COMMON
    assert names == {*VALUES, *FLAGS}


@pytest.mark.parametrize(
    ("given", "files", "mode"),
    [
        ((), False, Mode.STORY),
        (("about", "changes_only", "every_line"), False, Mode.STORY),
        (("about", "why"), False, Mode.WHY),
        (("about", "why", "at"), False, Mode.WHY),
        (("step", "about", "at"), False, Mode.STEP),
        (("html", "perfetto"), False, Mode.PICTURES),
        ((), True, Mode.VERIFY),
        (("shadow", "fail_on"), True, Mode.SHADOW),
        (("begin", "calls"), True, Mode.GO_ON),
        (("explore",), True, Mode.EXPLORE),
        (
            ("explore", "begin", "until", "about", "calls", "crds", "budget", "jobs"),
            True,
            Mode.EXPLORE,
        ),
        (("as_test", "at", "until", "about", "crds"), True, Mode.TEST),
        (("as_test",), False, Mode.TEST),
    ],
)
def test_what_goes_together(given: tuple[str, ...], files: bool, mode: Mode) -> None:
    found = wish(*given, files=files)
    assert found.mode is mode
    for each in {*given} & {"about", "at", "begin", "until", "calls", "budget"}:
        assert getattr(found, each) == VALUES[each]


@pytest.mark.parametrize(
    ("given", "files", "complaint"),
    [
        (("why",), False, "--why needs --object, as in --object default/orders"),
        (("why", "about"), True, "--why asks the recording alone: leave the files out"),
        (
            ("about",),
            True,
            "--object goes with --explore or --as-test; or leave the files out, for "
            "the story, --why or --step",
        ),
        (("changes_only",), True, "--changes-only goes with the story: leave the"),
        (("at",), False, "--at goes with --why, --step or --as-test"),
        (
            ("at",),
            True,
            "--at goes with --as-test; or leave the files out, for --why or --step",
        ),
        (("shadow",), False, "--shadow needs the files of an operator"),
        (("begin",), False, "--from needs the files of an operator"),
        (("explore",), False, "--explore needs the files of an operator"),
        (("explore", "shadow"), True, "use one of --shadow and --explore at a time"),
        (("explore", "at"), True, "--explore begins at the step of --from"),
        (("as_test", "begin"), True, "--as-test begins at the step of --at"),
        (("shadow", "begin"), True, "use one of --shadow and --from at a time"),
        (("step", "why", "about"), False, "use one of --why and --step at a time"),
        (
            ("until",),
            False,
            "--until goes with --as-test; or name the files of an operator, for "
            "--explore",
        ),
        (("until",), True, "--until goes with --explore or --as-test"),
        (
            ("jobs",),
            False,
            "--jobs goes with --explore: name the files of an operator",
        ),
        (("seconds", "begin"), True, "--time goes with --explore"),
        (("budget", "begin"), True, "--budget goes with --explore"),
        (("fail_on",), True, "--fail-on goes with --shadow"),
        (("calls",), True, "--calls goes with --from or --explore"),
        (
            ("html", "about"),
            False,
            "--object goes with the story, --why, --step or --as-test; or name the "
            "files of an operator, for --explore",
        ),
    ],
)
def test_what_does_not(given: tuple[str, ...], files: bool, complaint: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        wish(*given, files=files)
    assert complaint in str(raised.value.message)
