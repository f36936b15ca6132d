"""`softcal inspect`: what the columns of files hold, which roles they could have, what to type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from softcal import terminal
from softcal._io import place_of, written_whole
from softcal.cli import options as opt
from softcal.cli.describe import Described, describes

if TYPE_CHECKING:
    from softcal.scanning.inspection import Inspection


@describes(only=("sep", "decimal", "encoding", "input_format", "sheet", "records"))
def inspect(
    data: opt.DataFiles,
    output: Annotated[
        Path | None, opt.asks("Write the first suggestion here.", "TOML", "-o", "--output")
    ] = None,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:
    """Show what columns hold, and the commands to type next.

    Roles and commands are suggestions: check them. `--output data.toml` writes the first one as a
    file for `softcal score --data data.toml`.

    Example: softcal inspect data.csv
    """
    from softcal.cards.inspect import InspectionCard, toml_of

    found = _inspected(data, how)
    if output is not None:
        with written_whole(output) as beside:
            beside.write_text(toml_of(data, found, output.parent), encoding="utf-8")
    opt.print_card(InspectionCard.of(data, found), format_)


def suggested_lines(data: list[str], how: Described) -> list[str]:
    """Return the suggested commands, one per line, for the message on missing options."""
    from softcal._display import quoted
    from softcal.cards.inspect import InspectionCard

    lines = [each.command for each in InspectionCard.of(data, _inspected(data, how)).suggestions]
    look = f"softcal inspect {' '.join(quoted(place_of(Path(path))) for path in data)}"
    return ["To see what the columns hold and why these commands fit:", f"  {look}",
            *(["To try next:"] if lines else []), *(f"  {line}" for line in lines)]  # fmt: skip


def _inspected(data: list[str], how: Described) -> Inspection:
    from softcal.scanning.inspection import inspected

    with terminal.working("Reading"):
        return inspected(how.files(data))
