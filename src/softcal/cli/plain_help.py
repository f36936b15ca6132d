"""Help in the words of whoever reads it: DATA and FILE, no `<list[Path]>` and no `<bool>`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup

from softcal.cli.single_options import refuse_repeated


class PlainCommand(TyperCommand):
    """A command that shows no type beside an argument or a switch, and no braces in its usage.

    It also refuses a line that gives an option twice where the command takes one value.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a line; first for `--help`, so that help is shown for a wrong line too."""
        line = list(args)  # typer empties `args`
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # the shell completes a line that is not finished
            refuse_repeated(self, ctx, line)
        return rest

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its parameters, fit to be shown."""
        return [_plain(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write DATA... where typer writes {DATA}...."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class PlainGroup(TyperGroup):
    """The same for `softcal` without a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its parameters, fit to be shown."""
        return [_plain(param) for param in super().get_params(ctx)]


def _plain(param: Any) -> Any:
    """Take away the type that stands beside a name; typer has no setting for it."""
    if isinstance(param, TyperArgument):
        param.display_type_rich = _nothing  # type: ignore[method-assign]
    elif param.is_flag:
        param.metavar = ""
    return param


def _nothing(ctx: Any) -> None:
    """Show no type."""
