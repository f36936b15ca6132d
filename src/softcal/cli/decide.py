"""`softcal decide`: the net benefit of models at thresholds, and the cost of miscalibration."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import percent, printable
from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Figure,
    Format,
    Level,
    Output,
    RowsOrTables,
    given,
    limits_text,
    print_result,
    rows_text,
    source_name,
)
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from softcal._validation.inputs import FloatArray, Rows
    from softcal.decision import NetBenefit, NetBenefitDifference, PairedDecisions
    from softcal.inference.summary import CalibrationSummary
    from softcal.table.tableset import TableSet


@describes(without=("by", "group", *RATERS, *BOUNDS, *CLASSES))
def decide(
    data: RowsOrTables,
    threshold: Annotated[
        list[float] | None,
        typer.Option(help="Act where the prediction is at least T; may be repeated.", metavar="T"),
    ] = None,
    level: Level = DEFAULT_LEVEL,
    plot: Figure = None,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Compute net benefit at decision thresholds, and the cost of miscalibration there.

    Net benefit is the share of rows that are cases and acted on, minus needless actions times the
    odds of the threshold. Rows whose prediction is at least the threshold are acted on. With
    several models, the first is compared with each other one on the same rows.

    For rows, any threshold is possible, and all numbers are those of the rows; above 1,000,000
    rows, of a grid of bins. For saved tables, a threshold must be an edge of their grid: a multiple
    of 1/600.

    Example: softcal decide data.csv --label y --pred p --threshold 0.2
    """
    import numpy as np

    from softcal._validation.rules import refuse_bad_level
    from softcal.bins import Bins
    from softcal.decision import checked_thresholds, net_benefit
    from softcal.scanning.sample import Sample, basis

    refuse_bad_level(level)
    at = np.unique(checked_thresholds(given(threshold, "pass a threshold: --threshold T.")))
    if plot is not None:
        from softcal.plot import refuse_format

        refuse_format(plot)
    # The grid of saved tables, cut at the thresholds as well.
    bins = None if saved_files(data) else Bins(np.union1d(Bins.grid().edges, at))
    drawn = None if bins is None or plot is None else _drawn(bins.edges, at)
    pairs, sample = _Pairs(at if drawn is None else np.union1d(drawn, at)), Sample()

    def look(piece: int, rows: Mapping[str, Rows], _groups: object) -> None:
        pairs.add(piece, rows)
        sample.add(piece, rows)

    tables = load_tables(data, how, bins=bins, look=look)
    refuse_other_tables(tables, at)
    source = basis(tables, None if bins is None or how.is_long else sample)

    def benefits(thresholds: FloatArray) -> dict[str, NetBenefit]:
        return {
            model: net_benefit(**data, thresholds=thresholds, level=level)
            for model, data in source.models.items()
        }

    found = benefits(at)
    summaries = {model: _summary(data, level) for model, data in source.models.items()}
    differences = pairs.differences(level) if bins is not None else _without_limits(found, level)
    if plot is not None:
        from softcal.plot import draw_decision, save_figure

        curves = benefits(_drawn(tables.grid.edges, at))
        between = _without_limits(curves, level) if bins is None else differences
        save_figure(draw_decision(curves, differences=between, marked=at.tolist()), plot)
    card = _card(tables, found, summaries, level) | {
        "computed_from": source.name,
        "differences": [
            _difference_card(
                each, at, _NO_LIMITS if bins is None else _ONE_ROW if tables.n < 2 else ""
            )
            for each in differences
        ],
    }
    if format_ is Format.JSON:
        print_result(card)
    else:
        _show(card, source_name(data), source.text)


class _Pairs:
    """The rows on which the first model and another decide differently, as the rows are read."""

    def __init__(self, at: FloatArray) -> None:
        self._at = at
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], PairedDecisions] = {}

    def add(self, piece: int, rows: Mapping[str, Rows]) -> None:
        """Add rows of a piece; threads may add pieces in any order."""
        from softcal._validation.inputs import columns
        from softcal.decision import PairedDecisions

        (first, of_first), *others = rows.items()
        p, y, w = columns(of_first)
        for name, each in others:
            with self._lock:
                pair = self._found.setdefault((first, name), PairedDecisions(self._at))
                pair.add(p, columns(each)[0], y, w, part=piece)

    def differences(self, level: float) -> list[NetBenefitDifference]:
        """Return the difference of each pair."""
        return [pair.difference(names, level) for names, pair in self._found.items()]


def _without_limits(found: Mapping[str, NetBenefit], level: float) -> list[NetBenefitDifference]:
    """Return the differences of saved tables, which do not store what two models do together."""
    import numpy as np

    from softcal.decision import NetBenefitDifference

    (first, one), *others = found.items()
    wide = np.full(one.value.size, np.inf)
    return [
        NetBenefitDifference(one.threshold, one.value - b.value, -wide, wide, (first, name), level)
        for name, b in others
    ]


def refuse_other_tables(tables: TableSet, at: FloatArray) -> None:
    """Raise if saved tables do not have net benefit with its interval at these thresholds."""
    import numpy as np

    from softcal.bins import meant
    from softcal.table.tableset import LABEL

    if tables.targets != (LABEL,):
        message = (
            "net benefit needs one label and one prediction per row: these tables have many "
            "classes, or labels that are intervals. Scan one column of each."
        )
        raise InputError(message)
    if tables.about.group is not None:
        message = (
            "the interval of net benefit needs rows if there are groups "
            f"({tables.about.group}). In Python, call net_benefit(y_true, y_prob, thresholds, "
            "groups=...). If the rows are independent, scan them without --group."
        )
        raise InputError(message)
    edges = tables.grid.edges
    off = at[~np.isin(meant(at, edges[:-1]), edges)]
    if off.size:
        first = float(off[0])
        k = int(edges.searchsorted(first))
        near = [float(edge) for edge in edges[k - 1 : k + 1] if edge < 1]
        message = (
            f"--threshold must be an edge of the saved tables' grid: {off.size} of {at.size} are "
            f"not, the first is {first!r}. Nearest: {' and '.join(map(repr, near))}. Pass "
            "one of these, or pass the rows, for which any threshold is possible."
        )
        raise InputError(message)


def _drawn(edges: FloatArray, at: FloatArray) -> FloatArray:
    """Return all edges up to somewhat above the highest threshold."""
    return edges[edges <= min(max(1.5 * float(at[-1]), 0.1), 0.99)]


def _summary(data: dict[str, Any], level: float) -> CalibrationSummary | str:
    """Return the calibration summary, or why there is none."""
    from softcal.inference.summary import calibration_summary

    try:
        return calibration_summary(**data, level=level)
    except InputError as error:
        return str(error)


def _card(
    tables: TableSet,
    found: dict[str, NetBenefit],
    summaries: dict[str, CalibrationSummary | str],
    level: float,
) -> dict[str, Any]:
    """Return the numbers of each model, ready for JSON."""
    from softcal.cli.display import about

    return {
        **about(tables),
        "label": tables.about.label,
        "level": level,
        "models": [
            {
                "pred": model,
                "thresholds": _thresholds(found[model]),
                **_summary_card(summaries[model], _ONE_ROW if tables.n < 2 else ""),
            }
            for model in found
        ],
    }


def _thresholds(found: NetBenefit) -> list[dict[str, Any]]:
    columns = {
        "threshold": found.threshold, "net_benefit": found.value, "low": found.low,
        "high": found.high, "treat_all": found.treat_all,
        "treat_none": 0 * found.value, "cost_of_miscalibration": found.cost,
        "rows_below": found.rows_below, "mean_prob_below": found.prob_below,
        "mean_label_below": found.label_below,
    }  # fmt: skip
    each = zip(*(column.tolist() for column in columns.values()), found.sentences, strict=True)
    cards = [dict(zip([*columns, "sentence"], numbers, strict=True)) for numbers in each]
    for card in cards:
        if not card["rows_below"]:  # means of no rows
            card |= {"mean_prob_below": None, "mean_label_below": None}
    return cards


def _difference_card(found: NetBenefitDifference, at: FloatArray, note: str) -> dict[str, Any]:
    here = found.threshold.searchsorted(at)
    columns = (found.threshold, found.value, found.low, found.high)
    names = ("threshold", "difference", "low", "high")
    return {
        "pred": found.names[0], "other": found.names[1],
        "thresholds": [
            dict(zip(names, numbers, strict=True))
            for numbers in zip(*(column[here].tolist() for column in columns), strict=True)
        ],
        "note": note,
    }  # fmt: skip


def _summary_card(summary: CalibrationSummary | str, also: str) -> dict[str, Any]:
    if isinstance(summary, str):
        return {"calibration": None, "note": f"{summary} {also}".strip()}
    estimates = {name: number._asdict() for name, number in summary.estimates.items()}
    return {"calibration": estimates, "note": f"{summary.note} {also}".strip()}


def _show(card: dict[str, Any], name: str, computed: str) -> None:
    console = terminal.console()
    interval = f"{percent(card['level'])} interval"
    console.print(Text(printable(f"{name}: {rows_text(card)}"), style="bold"))
    console.print(Text(computed))
    for model in card["models"]:
        console.print()
        table = terminal.table(
            "threshold", "net benefit", interval, "treat all", "treat none",
            "cost of mis-\ncalibration",
        )  # fmt: skip
        for each in model["thresholds"]:
            table.add_row(
                percent(each["threshold"]), f"{each['net_benefit']:.4f}",
                limits_text(each, ".4f"), f"{each['treat_all']:.4f}", "0",
                f"{each['cost_of_miscalibration']:.4f}",
            )  # fmt: skip
        terminal.print_titled(console, model["pred"], table)
        for each in model["thresholds"]:
            console.print(Text(each["sentence"]))
        console.print()
        if model["calibration"] is not None:
            console.print(_summary_table(model["calibration"], interval))
        if model["note"]:
            console.print(Text(f"Note: {model['note']}", style="dim"))
    _show_differences(console, card["differences"], interval)
    console.print()
    console.print(_HOW_TO_READ, style="dim")


def _show_differences(console: Console, differences: list[dict[str, Any]], interval: str) -> None:
    for pair in differences:
        console.print()
        limits = [] if pair["note"] else [interval]
        table = terminal.table("threshold", "difference", *limits)
        for each in pair["thresholds"]:
            cells = [percent(each["threshold"]), f"{each['difference']:+.4f}"]
            if limits:
                cells.append(limits_text(each, "+.4f"))
            table.add_row(*cells)
        title = f"Net benefit of {pair['pred']} minus that of {pair['other']}, on the same rows"
        console.print(Text(printable(title), style="bold"))
        console.print()
        console.print(table)
    if differences and differences[0]["note"]:  # the same for all pairs
        console.print(Text(f"Note: {differences[0]['note']}", style="dim"))


def _summary_table(numbers: dict[str, Any], interval: str) -> Table:
    table = terminal.table("calibration", "value", interval)
    for what, number in numbers.items():
        name = _NAMES.get(what, what.replace("_", " "))
        table.add_row(name, f"{number['value']:.4f}", limits_text(number, ".4f"))
    return table


_NO_LIMITS = (
    "saved tables do not store the rows on which two models decide differently, so the difference "
    "has no interval. Pass the rows."
)
_ONE_ROW = "One row does not show how much rows vary, so net benefit has no interval."
_NAMES = {
    "observed_expected": "observed : expected",
    "auroc": "AUROC",
    "ici": "ICI: mean distance from curve",
    "e50": "E50: median distance",
    "e90": "E90: 90% quantile",
    "emax": "Emax: largest distance",
    "brier": "Brier score",
    "miscalibration": "= miscalibration",
    "discrimination": "- discrimination",
    "uncertainty": "+ uncertainty",
}
_HOW_TO_READ = (
    "A model is useful at a threshold if its net benefit is above that of treating all rows and of "
    "treating none. The cost of miscalibration is what the best increasing recalibration would add "
    "on the same rows. ICI, E50, E90, and Emax are distances from a smooth curve (loess). The "
    "parts of the Brier score use the isotonic curve. With few rows, the cost, the distances, and "
    "the miscalibration are too high."
)
