"""Options as fields of a dataclass: names, groups, and what a command gets."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.testing import CliRunner

from fnop.adapters.cli.option_fields import declared, names_in, option, takes


@dataclass(frozen=True, kw_only=True)
class Where:
    place: str = option("-p", "--at", default="here")
    inside: bool = option("--inside", is_flag=True)

    def __post_init__(self) -> None:
        if self.inside and self.place == "sea":
            raise click.UsageError("nobody is inside of the sea")


@dataclass(frozen=True, kw_only=True)
class Greeting:
    names: tuple[str, ...] = declared(click.argument("names", nargs=-1))
    where: Where
    seconds: int = option("--for", parameter="for", type=int, default=1)


@click.command(context_settings={"auto_envvar_prefix": "X"})
@takes(Greeting)
def greet(given: Greeting) -> None:
    """Greet."""
    click.echo(repr(given))


def test_a_command_gets_its_options_as_one_value() -> None:
    where = Where(place="sea", inside=False)
    wanted = Greeting(names=("a", "b"), where=where, seconds=3)
    words = ["a", "b", "-p", "sea", "--for", "3"]
    assert CliRunner().invoke(greet, words).output == f"{wanted!r}\n"


def test_the_options_are_declared_in_the_order_of_the_fields() -> None:
    assert [each.name for each in greet.params] == ["names", "place", "inside", "for"]
    assert names_in(Greeting) == ("names", "place", "inside", "for")
    assert greet.help == "Greet."


def test_a_parameter_names_the_variable() -> None:
    found = CliRunner().invoke(greet, [], env={"X_FOR": "7", "X_PLACE": "there"})
    assert "seconds=7" in found.output
    assert "place='there'" in found.output


def test_a_group_refuses_its_options_as_a_wrong_call() -> None:
    found = CliRunner().invoke(greet, ["-p", "sea", "--inside"])
    assert found.exit_code == 2
    assert "nobody is inside of the sea" in found.output
