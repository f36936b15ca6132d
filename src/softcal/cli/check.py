"""`softcal check`: one exit code for a pipeline: pass, fail, or undecided."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.describe import BOUNDS, Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Format,
    Level,
    MaybeBins,
    Output,
    RowsOrTables,
    print_result,
    source_name,
)
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.inference.checks import Check

_CODES = {"pass": 0, "fail": 1, "undecided": 3}
_STYLES = {"pass": "bold green", "fail": "bold red", "undecided": "bold yellow"}


Undecided = StrEnum("Undecided", ["pass", "fail"])
"""What an undecided check counts as."""


@describes(without=("by_rater", "ordered", *BOUNDS))
def check(
    data: RowsOrTables,
    max_smece: Annotated[
        float | None, typer.Option(help="Largest acceptable SMECE.", metavar="X")
    ] = None,
    max_gap: Annotated[
        float | None, typer.Option(help="Largest acceptable gap of a bin.", metavar="X")
    ] = None,
    min_rows: Annotated[
        int, typer.Option(help="Rows a bin needs to be judged by --max-gap.", metavar="N")
    ] = 100,
    undecided: Annotated[
        Undecided | None,
        typer.Option(help="If undecided, exit with 0 (pass) or 1 (fail).", metavar="pass|fail"),
    ] = None,
    bins: MaybeBins = None,
    level: Level = DEFAULT_LEVEL,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Check calibration against a limit: exit code 0 (pass), 1 (fail), or 3 (undecided).

    A model passes if the upper limit of its interval is at most the maximum. It fails if the lower
    limit is above the maximum. With --by, every segment must pass, and the intervals of all
    segments hold simultaneously.

    Example: softcal check data.csv --label y --pred p --max-smece 0.05
    """
    from softcal._validation.rules import refuse_bad_level
    from softcal.inference.checks import check as judge

    refuse_bad_level(level)
    if max_smece is None and max_gap is None:
        message = "pass a limit: --max-smece X, --max-gap X, or both."
        raise InputError(message)
    tables = load_tables(data, how, bins=bins)
    parts: list[tuple[dict[str, Any], Any]] = [({}, tables)]
    for column in how.by or ():
        parts += [
            ({"by": column, "value": value}, part)
            for value, part in tables.by(column).items()
            if part.n
        ]
    together = 1 - (1 - level) / (len(parts) * len(tables))
    found = [
        (
            {"pred": model, **named, "n": part.n},
            judge(
                part[model], max_smece=max_smece, max_gap=max_gap, min_rows=min_rows,
                level=together,
            ),
        )
        for model in tables
        for named, part in parts
    ]  # fmt: skip
    outcome = next(
        each for each in ("fail", "undecided", "pass") if any(c.outcome == each for _, c in found)
    )
    if format_ is Format.JSON:
        limits = {"max_smece": max_smece, "max_gap": max_gap, "level": level}
        checks = [
            {
                **named, "outcome": c.outcome, "reasons": list(c.reasons),
                "more_rows": c.more_rows, "more_groups": c.more_groups,
                "more_raters": c.more_raters,
            }
            for named, c in found
        ]  # fmt: skip
        print_result({"outcome": outcome, **limits, "checks": checks})
    else:
        _show(source_name(data), outcome, found)
    chosen = outcome if outcome != "undecided" or undecided is None else undecided.value
    raise typer.Exit(_CODES[chosen])


def _show(name: str, outcome: str, found: list[tuple[dict[str, Any], Check]]) -> None:
    console = terminal.console()
    console.print(
        Text.assemble((f"{printable(name)}: ", "bold"), (outcome.upper(), _STYLES[outcome]))
    )
    for named, result in found:
        title = named["pred"]
        if "by" in named:
            value = "(missing)" if named["value"] is None else named["value"]
            title += f", {named['by']} = {value}"
        console.print(
            Text.assemble(
                f"  {printable(title)}, {named['n']:,} rows: ",
                (result.outcome, _STYLES[result.outcome]),
            )
        )
        for reason in result.reasons:
            console.print(Padding(Text(reason, style="dim"), (0, 0, 0, 4)))
