"""The option `--simulate MANIFEST...`, which takes all files that follow it."""

from __future__ import annotations

import click

__all__ = ["SpreadingCommand"]


class SpreadingCommand(click.Command):
    """A command whose `--simulate` takes all following files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option for each file, as click knows options with one value."""
        spread: list[str] = []
        spreading = False
        for arg, following in zip(args, [*args, "--"][1:], strict=True):
            if arg == "--simulate":
                spreading = True
                if _is_option(following):
                    raise click.UsageError("--simulate needs a manifest", ctx)
                continue
            spreading = spreading and not _is_option(arg)
            spread += ["--simulate", arg] if spreading else [arg]
        return super().parse_args(ctx, spread)


def _is_option(arg: str) -> bool:
    return arg.startswith("-") and arg != "-"
