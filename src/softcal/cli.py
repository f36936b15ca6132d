"""The command line: arguments in, one call, a table or JSON out."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer
from rich.text import Text
from typer.exceptions import TyperException

from softcal import terminal
from softcal.errors import InputError, SoftcalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from softcal.planning import Assumptions, DifferencePlan, Plan
    from softcal.reliability import Reliability

app = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Calibration of probabilistic predictions when the label is itself a probability."""
    if version:
        from softcal import __version__

        sys.stdout.write(f"softcal {__version__}\n")
        raise typer.Exit


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


DataFile = Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")]
Label = Annotated[str, typer.Option(help="Column of labels in [0, 1].", metavar="COL")]
NumberOfBins = Annotated[int, typer.Option(help="Number of equal-width bins.", metavar="N")]
Weight = Annotated[str | None, typer.Option(help="Column of row weights.", metavar="COL")]
Votes = Annotated[
    str | None,
    typer.Option(help="Column: how many votes each label is the share of.", metavar="COL"),
]
Level = Annotated[float, typer.Option(help="Confidence level.", metavar="P")]
Output = Annotated[Format, typer.Option("--format", help="What to print.")]


@app.command()
def score(
    data: DataFile,
    label: Label,
    pred: Annotated[
        list[str],
        typer.Option(help="Column of predictions in [0, 1]; once per model.", metavar="COL"),
    ],
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column: rows of one group are not independent.", metavar="COL"),
    ] = None,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Score predictions against probabilistic labels: SMECE, and what goes with it."""
    from softcal.files import read_columns
    from softcal.scorecard import Named, scorecard

    optional = {"weight": weight, "votes": votes, "groups": group}
    columns = read_columns(
        data, [label, *pred, *(name for name in optional.values() if name is not None)], group
    )
    card = scorecard(
        Named(label, columns[label]),
        {name: columns[name] for name in pred},
        bins=bins,
        level=level,
        **{
            role: None if name is None else Named(name, columns[name])
            for role, name in optional.items()
        },
    )
    if format_ is Format.JSON:
        _print_json(card)
    else:
        console = terminal.console()
        weighted = f", weighted by {weight}" if weight else ""
        title = f"{data.name}: {card['n']:,} rows, label {label}, {card['bins']} bins{weighted}"
        terminal.print_titled(console, title, score_table(card))
        console.print(_HOW_TO_READ, style="dim")


@app.command()
def compare(
    data: DataFile,
    label: Label,
    pred: Annotated[
        list[str],
        typer.Option(help="Column of predictions; twice, once per model.", metavar="COL"),
    ],
    bins: NumberOfBins = 10,
    weight: Weight = None,
    votes: Votes = None,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Compare the calibration of two models on the same rows."""
    from softcal.comparison import compare as compare_arrays
    from softcal.files import read_columns

    if len(pred) != 2 or pred[0] == pred[1]:
        message = f"give --pred twice, with two different columns: got {', '.join(pred)}."
        raise InputError(message)
    optional = [name for name in (weight, votes) if name is not None]
    columns = read_columns(data, [label, *pred, *optional])
    found = compare_arrays(
        columns[label],
        *(columns[name] for name in pred),
        bins=bins,
        sample_weight=None if weight is None else columns[weight],
        n_votes=None if votes is None else columns[votes],
        level=level,
    )
    card = {"n": len(columns[label]), "bins": bins, "label": label, "a": pred[0], "b": pred[1]}
    card |= asdict(found)
    if format_ is Format.JSON:
        _print_json(_without_infinities(card))
    else:
        _show_comparison(card)


@app.command()
def plan(
    pilot: Annotated[
        Path | None, typer.Option(help="A saved table (JSON) of a first sample.", metavar="FILE")
    ] = None,
    smece: Annotated[
        float | None, typer.Option(help="Without a pilot: the SMECE you expect.", metavar="X")
    ] = None,
    label_spread: Annotated[
        float | None,
        typer.Option(help="Without a pilot: SD of the items' true labels in a bin.", metavar="X"),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(help="Without a pilot: number of equal-width bins (10).", metavar="N"),
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Aim: measure SMECE to +- this.", metavar="X")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Aim: the narrowest interval for this.", metavar="X")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(help="Aim: see a difference this large.", metavar="X")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(help="For a difference: of the models' signed residuals.", metavar="R"),
    ] = None,
    power: Annotated[
        float, typer.Option(help="For a difference: how often to see it.", metavar="X")
    ] = 0.8,
    votes: Annotated[
        int | None, typer.Option(help="Votes per item; the best number if absent.", metavar="N")
    ] = None,
    item_cost: Annotated[float, typer.Option(help="Cost of an item.", metavar="X")] = 0.0,
    vote_cost: Annotated[float, typer.Option(help="Cost of a vote.", metavar="X")] = 1.0,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Plan how many items to collect, and how many votes on each."""
    from softcal.planning import plan as plan_width
    from softcal.planning import plan_budget, plan_difference

    aims = (half_width, budget, difference)
    if sum(aim is not None for aim in aims) != 1:
        message = "give one aim: --half-width, --budget or --difference."
        raise InputError(message)
    a = _assumptions(pilot, smece, label_spread, bins)
    costs = _Costs(level=level, votes=votes, item_cost=item_cost, vote_cost=vote_cost)
    found: Plan | DifferencePlan
    if half_width is not None:
        found = plan_width(a, half_width=half_width, **costs)
    elif budget is not None:
        found = plan_budget(a, budget=budget, **costs)
    elif difference is not None and correlation is not None:
        found = plan_difference(
            a, difference=difference, correlation=correlation, power=power, **costs
        )
    else:
        message = "--difference needs --correlation; pilot_correlation estimates it in Python."
        raise InputError(message)
    if format_ is Format.JSON:
        _print_json({**asdict(found), "assumed_smece": a.smece})
    else:
        terminal.console().print(plan_text(found, a.smece))


@app.command()
def demo() -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    from softcal.demo import show

    show(terminal.console())


@app.command()
def paper(
    format_: Output = Format.TABLE,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for CSV tables and figures.", metavar="DIR"),
    ] = None,
) -> None:
    """Reproduce the SMECE paper, digit for digit, with its errors shown."""
    from softcal.paper.report import reproduce
    from softcal.paper.reproduction import TOTAL_ROWS

    with terminal.progress("Reproducing the paper", TOTAL_ROWS) as step:
        report = reproduce(step)
    if output is not None:
        report.write(output)
    if format_ is Format.JSON:
        _print_json(report.as_json())
    else:
        report.show(terminal.console())


def _without_infinities(value: Any) -> Any:
    """Replace infinite numbers, which JSON lacks, by null."""
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value


def _show_comparison(card: dict[str, Any]) -> None:
    console = terminal.console()
    table = terminal.table("", card["a"], card["b"], "difference", "interval", "p-value")
    rows = {
        "SMECE": (card, f"{card['smece_a']:.4f}", f"{card['smece_b']:.4f}"),
        "Brier": (card["brier"], "", ""),
        "log loss": (card["log_loss"], "", ""),
    }
    for name, (part, *each) in rows.items():
        finite = math.isfinite(part["difference"])
        interval = f"{part['low']:+.3f} to {part['high']:+.3f}" if finite else "-"
        chance = _chance(part["pvalue"] if finite else None)
        table.add_row(name, *each, f"{part['difference']:+.4f}", interval, chance)
    title = f"{card['n']:,} rows, label {card['label']}, {card['bins']} bins"
    terminal.print_titled(console, title, table)
    console.print(Text(_verdict(card)))


def _verdict(card: dict[str, Any]) -> str:
    level = f"{100 * card['level']:g} %"
    if card["low"] <= 0 <= card["high"]:
        return (
            f"These data cannot tell which of {card['a']} and {card['b']} is better calibrated: "
            f"the {level} interval of the difference in SMECE contains 0."
        )
    better, worse = (card["a"], card["b"]) if card["high"] < 0 else (card["b"], card["a"])
    return (
        f"{better} is better calibrated than {worse}: the {level} interval of the difference in "
        "SMECE leaves out 0."
    )


class _Costs(TypedDict):
    """What all aims of a plan have in common."""

    level: float
    votes: int | None
    item_cost: float
    vote_cost: float


def _assumptions(
    pilot: Path | None, smece: float | None, label_spread: float | None, bins: int | None
) -> Assumptions:
    """Read a pilot or take what was stated, whichever was given."""
    from softcal.planning import Assumptions

    if pilot is not None:
        if not smece is label_spread is bins is None:
            message = "give --pilot, or --smece, --label-spread and --bins, not both."
            raise InputError(message)
        return Assumptions.from_pilot(_read_table(pilot))
    if smece is None or label_spread is None:
        message = "say what to expect: --pilot FILE, or --smece X and --label-spread X."
        raise InputError(message)
    return Assumptions.stated(
        smece=smece, label_spread=label_spread, bins=10 if bins is None else bins
    )


def _read_table(path: Path) -> Reliability:
    from softcal.reliability import Reliability

    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise InputError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"cannot read {path}: it is not JSON, as `Reliability.to_dict` makes it."
        raise InputError(message) from error
    return Reliability.from_dict(saved)


def plan_text(found: Plan | DifferencePlan, smece: float) -> str:
    """Say a plan in plain words."""
    from softcal.planning import Plan

    labels = "labelled as in the pilot" if found.votes == 0 else "with one vote each"
    if found.votes > 1:
        labels = f"with {found.votes:,} votes each, {found.items * found.votes:,} in all"
    collect = f"Collect {found.items:,} items {labels}. Cost: {found.cost:,.10g}."
    if isinstance(found, Plan):
        aim = f"SMECE, supposed to be {smece:.4f}, will be known to about ±{found.half_width:.4f}"
        return f"{collect}\n{aim}\n(half the mean width of its {found.level:.4g} interval)."
    worse = smece + found.difference
    return (
        f"{collect}\nA SMECE of {worse:.4f} will be told from one of {smece:.4f} in "
        f"{found.power:.0%} of such samples\n(the {found.level:.4g} interval of the difference "
        "excludes 0)."
    )


_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are; with unlimited data it would most "
    "likely lie in the interval. The p-value is how often a calibrated model would show gaps this "
    "odd by chance. The hardened ECE is what is left when every label above 0.5 is made 1 and "
    "every other 0."
)


def _chance(pvalue: float | None) -> str:
    if pvalue is None:
        return "-"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"


def _print_json(data: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")


def score_table(card: dict[str, Any]) -> Table:
    """Lay out a scorecard, models side by side."""
    level = card["models"][0]["level"]
    table = terminal.table(
        "model", "SMECE", f"{100 * level:g} %\ninterval", "p-value",
        "hardened\nECE", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[1].style = "bold"
    for model in card["models"]:
        table.add_row(
            Text(model["pred"]),  # Text: a name from the data is never read as markup
            f"{model['smece']:.4f}",
            f"{model['low']:.3f}-{model['high']:.3f}",
            _chance(model["pvalue"]),
            f"{model['ece_hardened']:.4f}",
            f"{model['max_gap']:.3f}",
            f"{model['bias']:+.3f}",
            f"{model['brier']:.3f}",
        )
    return table


def run(arguments: Sequence[str]) -> int:
    """Run one command; give its exit code. Refusals are one line on stderr."""
    try:
        code = app(list(arguments) or ["--help"], prog_name="softcal", standalone_mode=False)
        sys.stdout.flush()
    except (SoftcalError, TyperException, OSError) as error:
        text = error.format_message() if isinstance(error, TyperException) else str(error)
        sys.stderr.write(f"softcal: error: {' '.join(text.split())}\n")
        return 2
    return int(code or 0)  # typer gives 130 for an interruption, None when all went well
