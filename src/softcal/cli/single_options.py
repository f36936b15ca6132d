"""Options that take one value, refused when they are given twice."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from typer.core import TyperOption

from softcal.errors import InputError

if TYPE_CHECKING:
    from typer.core import TyperCommand


def refuse_repeated(command: TyperCommand, ctx: Any, line: list[str]) -> None:
    """Refuse a line that gives an option two values where the command takes one.

    Typer silently uses the last value. So the line is parsed once more with every option
    repeatable, which keeps all values.
    """
    keeping_all = copy(command)
    keeping_all.params = [_repeatable(param) for param in command.params]
    given, _, _ = keeping_all.make_parser(ctx).parse_args(list(line))
    for param in command.params:
        if isinstance(param, TyperOption) and not param.multiple:
            _refuse_several(param, given.get(param.name, []))


def _repeatable(param: Any) -> Any:
    changed = copy(param)
    changed.multiple = True
    return changed


def _refuse_several(option: TyperOption, values: list[Any]) -> None:
    """Refuse several values; a switch may be repeated, but not contradicted."""
    if len(values) > 1 and not (option.is_flag and len(set(values)) == 1):
        message = (
            f"{max(option.opts, key=len)} takes one value and was given {len(values)}: "
            f"{', '.join(map(repr, values))}. Give it once."
        )
        raise InputError(message)
