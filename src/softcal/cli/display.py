"""Score cards as plain numbers, as tables in the terminal, and as a reliability diagram of text."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import Format, chance, print_json, rows_text
from softcal.inference.intervals import gap_intervals, smece_interval
from softcal.inference.tests import calibration_test
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

_HOW_TO_READ = (
    "SMECE compares predictions with the labels as they are; with unlimited data it would most "
    "likely lie in the interval. The p-value is how often a calibrated model would show gaps at "
    "least this extreme. The hardened ECE is what is left when every label above 0.5 is made 1 and "
    "every other 0."
)


def scorecard(tables: TableSet, by: Sequence[str] = (), level: float = 0.95) -> dict[str, Any]:
    """Score each model against the labels as they are and, for contrast, hardened at 0.5.

    The result holds plain numbers only, ready for JSON; `softcal score --format json` prints it.
    Each model has a list of its segments where `by` names columns.
    """
    return {
        **about(tables),
        "label": tables.label,
        **models_of(tables, by, lambda part, pred: _numbers(part[pred], level)),
    }


def about(tables: TableSet) -> dict[str, Any]:
    """Return how many rows and bins there are, for JSON."""
    none = tables.rows_without_weight
    weightless = {} if tables.weight is None else {"rows_without_weight": none}
    return {"n": tables.n, **weightless, "bins": len(tables.bins)}


def models_of(
    tables: TableSet, by: Sequence[str], numbers: Callable[[TableSet, str], dict[str, Any]]
) -> dict[str, Any]:
    """List the numbers of each model and, where `by` names columns, of each of their segments."""
    models = [{"pred": pred, **numbers(tables, pred)} for pred in tables]
    if not by:
        return {"models": models}
    parts = list(segments(tables, by))
    for model in models:
        model["slices"] = [
            {**named, "n": part.n, **numbers(part, model["pred"])} for named, part in parts
        ]
    return {"models": models, "by": by[0] if len(by) == 1 else list(by)}


def segments(tables: TableSet, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], TableSet]]:
    """Walk through the segments of some columns that have rows, each with its name for JSON.

    Where there are several columns, the name says of which it is.
    """
    for column in by:
        of = {} if len(by) == 1 else {"by": column}
        for value, part in tables.by(column).items():
            if part.n:
                yield {**of, "value": value}, part


def segment_name(value: str | None) -> Text:
    """Return the value of a segment as it is shown; a name is never markup."""
    return Text(MISSING if value is None else printable(value))


def _numbers(rel: Reliability, level: float) -> dict[str, Any]:
    interval = smece_interval(rel, level=level)
    share = interval.rater_share
    raters = {} if share is None else {"rater_share": share}
    return {
        "smece": rel.smece,
        "debiased": interval.debiased,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "note": interval.note,
        "pvalue": calibration_test(rel).pvalue,
        "ece_hardened": _hardened(rel),
        "max_gap": rel.max_gap,
        "rms_gap": rel.rms_gap,
        "bias": rel.bias,
        "brier": rel.brier,
        "table": _per_bin(rel),
        **raters,
    }


def _hardened(rel: Reliability) -> float | None:
    """Return the ECE of hardened labels; None where a file of 0.1 lacks them."""
    return None if np.isnan(rel.sums.hard_residual).any() else rel.hardened().smece


def _per_bin(rel: Reliability) -> list[dict[str, float | int | None]]:
    """List the bins; an empty one has no means, which JSON calls null."""
    return [
        {
            "low": low,
            "high": high,
            "count": count,
            "mean_prob": p if count else None,
            "mean_label": y if count else None,
            "gap": gap if count else None,
        }
        for low, high, count, p, y, gap in rel.per_bin()
    ]


def show_table_scores(
    tables: TableSet,
    name: str,
    level: float,
    format_: Format,
    by: Sequence[str] = (),
    also: Mapping[str, Any] | None = None,
) -> None:
    """Print the scores of a set of tables as text or as JSON."""
    card = scorecard(tables, by, level)
    if format_ is Format.JSON:
        print_json(card | dict(also or {}))
        return
    console = terminal.console()
    weighted = f", weighted by {tables.weight}" if tables.weight else ""
    title = f"{name}: {rows_text(card)}, label {card['label']}, {card['bins']} bins{weighted}"
    if not by:
        terminal.print_titled(console, title, _models_table(card))
    else:
        console.print(Text(printable(title), style="bold"))
        for model in card["models"]:
            for column in by:
                parts = [one for one in model["slices"] if one.get("by", column) == column]
                console.print()
                terminal.print_titled(
                    console, f"{model['pred']}, by {column}", _segments_table(card, model, parts)
                )
    notes = dict.fromkeys(model["note"] for model in card["models"])
    raters = _about_raters(card["models"])
    console.print(" ".join(filter(None, (_HOW_TO_READ, raters, *notes))) + "\n", style="dim")
    show_sketch(console, tables, level)


def _about_raters(models: list[dict[str, Any]]) -> str:
    """Return what the raters have to do with the intervals; empty where they were not asked for."""
    shares = [
        f"{one['rater_share']:.0%} ({printable(one['pred'])})"
        for one in models
        if "rater_share" in one
    ]
    if not shares:
        return ""
    return (
        "Intervals are for new items and new raters; the raters account for "
        f"{', '.join(shares)} of their width."
    )


def _models_table(card: dict[str, Any]) -> Table:
    """Lay out a score card, models side by side."""
    table = _table(card["models"][0], "model")
    for model in card["models"]:
        table.add_row(Text(printable(model["pred"])), *_cells(model))  # a name is never markup
    return table


def _segments_table(
    card: dict[str, Any], model: dict[str, Any], parts: list[dict[str, Any]]
) -> Table:
    """Lay out one model and its segments below it, each with its number of rows."""
    table = _table(model, "", "rows")
    table.add_row("all", f"{card['n']:,}", *_cells(model))
    for one in parts:
        table.add_row(segment_name(one["value"]), f"{one['n']:,}", *_cells(one))
    return table


def _table(model: dict[str, Any], *first: str) -> Table:
    table = terminal.table(
        *first, "SMECE", f"{100 * model['level']:g}%\ninterval", "p-value",
        "hardened\nECE", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[len(first)].style = "bold"
    for column in table.columns[1:]:
        column.no_wrap = True  # a long name gives way, not a number
    return table


def _cells(numbers: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{numbers['smece']:.4f}",
        f"{numbers['low']:.3f}-{numbers['high']:.3f}",
        chance(numbers["pvalue"]),
        "-" if numbers["ece_hardened"] is None else f"{numbers['ece_hardened']:.4f}",
        f"{numbers['max_gap']:.3f}",
        f"{numbers['bias']:+.3f}",
        f"{numbers['brier']:.3f}",
    )


# A reliability diagram of a dozen lines of text. Each bin has a bar, to the left where the
# predictions are too low and to the right where they are too high. A full bar is one whose interval
# leaves out 0; a light one may be chance.

_MOST_BINS = 10
_FEWEST_BINS = 5
_SMALL = 0.05  # a gap that needs no long bar, even where it is the largest
_WIDEST = 16  # characters of the longest bar


class _Glyphs(NamedTuple):
    """What bars are made of. Halves make a bar half a character longer; ASCII has none."""

    sure: str
    unsure: str
    left_half: str
    right_half: str
    middle: str


_BLOCKS = _Glyphs("█", "░", "▐", "▌", "│")
_ASCII = _Glyphs("#", ".", "", "", "|")


def show_sketch(console: Console, models: Mapping[str, Reliability], level: float = 0.95) -> None:
    """Print the picture of each model, all on one scale."""
    joined = {name: joined_for_a_picture(rel) for name, rel in models.items()}
    scale = max(_SMALL, *(rel.max_gap for rel in joined.values()))
    glyphs = _glyphs(console.encoding)
    for name, rel in joined.items():
        fine = len(models[name].bins)
        note = f", {fine} bins joined into {len(rel.bins)}" if len(rel.bins) < fine else ""
        console.print(Text.assemble((printable(name), "bold"), note))
        for line in _lines(rel, level, scale, glyphs, console.width):
            console.print(line, no_wrap=True, overflow="crop", crop=True)
        console.print()
    console.print(
        f"Bars: mean prediction minus mean label, {glyphs.sure} where its {100 * level:g}% "
        f"interval leaves out 0, {glyphs.unsure} where it does not.",
        style="dim",
    )


def joined_for_a_picture(rel: Reliability) -> Reliability:
    """Join neighboring bins until few are left, all of the same number of bins if that works."""
    n = len(rel.bins)
    if n <= _MOST_BINS:
        return rel
    even = (step for step in range(2, n // _FEWEST_BINS + 1) if n % step == 0)
    step = next((step for step in even if n // step <= _MOST_BINS), -(-n // _MOST_BINS))
    return rel.coarsen([*rel.bins.edges[:-1:step], 1.0])


def _glyphs(encoding: str) -> _Glyphs:
    try:
        "".join(_BLOCKS).encode(encoding)
    except UnicodeEncodeError:
        return _ASCII
    return _BLOCKS


def _lines(
    rel: Reliability, level: float, scale: float, glyphs: _Glyphs, width: int
) -> Iterator[Text]:
    limits = gap_intervals(rel, level=level)
    sure = (limits.low > 0) | (limits.high < 0)
    bins = _ranges(rel.bins.edges)
    widths = (len(bins[0]), max(len("rows"), len(f"{rel.count.max():,}")))
    header = _line_start(widths, "bin", "rows", "prediction", "label", "gap")
    half = min(_WIDEST, max(4, (width - len(header) - 1) // 2))
    yield Text(f"{header}{'too low':>{half}} too high", style="dim")
    for bin_, (_, _, count, p, y, gap), certain in zip(bins, rel.per_bin(), sure, strict=True):
        if not count:
            yield Text(_line_start(widths, bin_, "0", "-", "-", "-") + " " * half + glyphs.middle)
            continue
        bar = _bar(gap / scale * half, glyphs, sure=bool(certain))
        low, high = (bar, "") if gap < 0 else ("", bar)
        yield Text.assemble(
            _line_start(widths, bin_, f"{count:,}", f"{p:.3f}", f"{y:.3f}", f"{gap:+.3f}"),
            (f"{low:>{half}}", "blue"), glyphs.middle, (high, "yellow"),
        )  # fmt: skip


def _ranges(edges: FloatArray) -> list[str]:
    """Say each bin by its edges, with as few digits as tell them, three at most."""
    digits = next((d for d in (1, 2) if np.array_equal(edges, edges.round(d))), 3)
    shown = [f"{edge:.{digits}f}" for edge in edges]
    return [f"{low}-{high}" for low, high in pairwise(shown)]


def _line_start(widths: tuple[int, int], bin_: str, rows: str, p: str, y: str, gap: str) -> str:
    return f"{bin_:>{widths[0]}}  {rows:>{widths[1]}}  {p:>10}  {y:>5}  {gap:>6}  "


def _bar(length: float, glyphs: _Glyphs, *, sure: bool) -> str:
    """Make a bar of so many characters, to the left where negative."""
    if not (sure and glyphs.left_half):
        return (glyphs.sure if sure else glyphs.unsure) * round(abs(length))
    whole, half = divmod(round(2 * abs(length)), 2)
    if length < 0:
        return glyphs.left_half * half + glyphs.sure * whole
    return glyphs.sure * whole + glyphs.right_half * half
