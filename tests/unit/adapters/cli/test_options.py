"""Options of all commands: the same flag has the same meaning and words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import click
import pytest

from fnop.adapters.cli.main import main
from fnop.adapters.cli.options import SHARED
from fnop.adapters.common.durations import duration
from fnop.adapters.kopf.commands.cli import main as kopf

# Flags that mean different things, as the reason says; the commands that differ.
EXCEPTIONS: dict[str, tuple[str, set[str]]] = {
    "--version": ("of fnop, as of any command; an operator's own", {"fnop", "olm"}),
    "--output": ("where, as other makers of bundles have it; -o is a form", {"olm"}),
    "--kubeconfig": ("it is written, not read", {"cluster"}),
    "--namespace": ("the one of one object, as for kubectl", {"explain"}),
    "-n": ("the one of one object, as for kubectl", {"explain"}),
    "--peering": (
        "whether there are peers at all: rights are for all",
        {"olm", "rbac"},
    ),
    "--record": ("one writes what the other reads", {"run", "explain"}),
    "--object": ("a file, of a kind to be tried; an object that exists", {"replay"}),
    "--fail-on": ("of decisions that change; of what a plan has", {"plan"}),
    "--as-test": ("of a failure; of a part of any recording", {"replay"}),
    "--crd": ("nothing stands beside a recording", {"replay"}),
    "--seed": ("of schedules; of a cluster's uids", {"check", "cluster"}),
    "--service": ("where one listens; where one is called", {"cluster"}),
    "--webhooks": ("whether they are served; whether a project has some", {"new"}),
    "-m": ("a message, as for git", {"freeze"}),
}


def commands(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for inner in group.list_commands(context):
            each = group.get_command(context, inner)
            assert each is not None
            yield from commands(each, inner)


def flags() -> dict[str, dict[str, click.Option]]:
    """The options by flag, of each by command."""
    found: dict[str, dict[str, click.Option]] = defaultdict(dict)
    for name, command in commands(main, "fnop"):
        for each in command.params:
            if isinstance(each, click.Option):
                for flag in (*each.opts, *each.secondary_opts):
                    found[flag][name] = each
    return found


FLAGS = flags()
SEVERAL = sorted(flag for flag, options in FLAGS.items() if len(options) > 1)


def text_of(flag: str) -> str | None:
    """The beginning of the text that is everywhere the same."""
    return next((text for words, text, _ in SHARED.values() if flag in words), None)


@pytest.mark.parametrize("flag", SEVERAL)
def test_a_flag_of_several_commands_has_one_text(flag: str) -> None:
    _, others = EXCEPTIONS.get(flag, ("", set()))
    rest = {name: option for name, option in FLAGS[flag].items() if name not in others}
    texts = {name: option.help or "" for name, option in rest.items()}
    assert all(texts.values())
    shared = text_of(flag)
    if shared is None:
        assert len({*texts.values()}) <= 1, texts
    else:
        assert all(each.startswith(shared) for each in texts.values()), texts
    kinds = {(each.is_flag, each.multiple, each.name) for each in rest.values()}
    assert len(kinds) <= 1, kinds


def test_the_exceptions_are_needed() -> None:
    for flag, (_, others) in EXCEPTIONS.items():
        texts = {option.help for option in FLAGS[flag].values()}
        assert len(texts) > 1
        assert others <= FLAGS[flag].keys()
        shared = text_of(flag)
        assert not shared or not any(
            (FLAGS[flag][name].help or "").startswith(shared) for name in others
        )


def test_what_is_shared_is_of_several_commands() -> None:
    lonely = [name for name, (words, *_) in SHARED.items() if words[0] not in SEVERAL]
    assert lonely == []


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_every_option_is_explained(flag: str) -> None:
    for name, option in FLAGS[flag].items():
        text = option.help or ""
        assert option.hidden or text.endswith("."), (name, flag, text)


# Words of flags that are about lengths of time.
TIMES = ("time", "for", "lifetime", "timeout", "wait", "interval", "seconds", "grace")


def durations() -> Iterator[tuple[str, str, click.Option]]:
    """The options whose value is a length of time; also those of Kopf's commands."""
    for name, command in (*commands(main, "fnop"), *commands(kopf, "kopf")):
        for each in command.params:
            if isinstance(each, click.Option) and not each.is_flag:
                flag = each.opts[-1]
                if {*flag.strip("-").split("-")} & {*TIMES}:
                    yield name, flag, each


DURATIONS = [*durations()]


def test_the_options_that_are_durations_are_found() -> None:
    assert {flag for _, flag, _ in DURATIONS} == {
        *("--for", "--lifetime", "--peering-lifetime", "--time")
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1d", 86400)],
)
@pytest.mark.parametrize(
    "option", [each for *_, each in DURATIONS], ids=[f"{a}{b}" for a, b, _ in DURATIONS]
)
def test_all_durations_are_written_alike(
    option: click.Option, text: str, seconds: int
) -> None:
    context = click.Context(click.Command("any"))
    assert option.type_cast_value(context, text) == seconds
    assert option.make_metavar(context) == "DURATION"
    assert "(90s, 15m, 1h30m)" in (option.help or "")


@pytest.mark.parametrize(
    "text", ["", "soon", "nan", "inf", "-5s", "5x", "s", "1h30", "1.5.5s", "5 s"]
)
@pytest.mark.parametrize(
    "option", [each for *_, each in DURATIONS], ids=[f"{a}{b}" for a, b, _ in DURATIONS]
)
def test_what_is_no_duration_is_refused(option: click.Option, text: str) -> None:
    context = click.Context(click.Command("any"))
    with pytest.raises(click.BadParameter, match="write 90, 90s, 15m or 1h30m"):
        option.type_cast_value(context, text)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (duration(more_than=0), "0s", "0s is not more than 0s"),
        (duration(least=5), "4999ms", "4999ms is less than 5s"),
        (duration(is_whole=True), "1.5", "1.5 is not a whole number of seconds"),
        (duration(is_whole=True), "9" * 400, "is not a whole number of seconds"),
    ],
)
def test_durations_have_limits(
    kind: Callable[[str], float], text: str, message: str
) -> None:
    with pytest.raises(click.BadParameter, match=message):
        kind(text)
