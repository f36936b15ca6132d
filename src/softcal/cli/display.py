"""Scores as plain numbers, as tables in the terminal, and as a reliability diagram of text."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.text import Text

from softcal import terminal
from softcal._display import counted, printable
from softcal.cli.options import chance, rows_text
from softcal.inference.gaps import gap_intervals
from softcal.inference.smece import smece_interval
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

_HOW_TO_READ = (
    "SMECE is the error against the labels as they are. The interval is for its value on unlimited "
    "data. The p-value is how often a calibrated model would show gaps at least this extreme. ECE "
    "(hard) replaces labels above 0.5 by 1 and all others by 0."
)


def scorecard(tables: TableSet, by: Sequence[str] = (), level: float = 0.95) -> dict[str, Any]:
    """Score each model against the labels as they are and against labels hardened at 0.5.

    The result holds plain numbers only; `softcal score --format json` prints it. With `by`, each
    model also has a list of its segments.
    """
    return {
        **about(tables),
        "label": tables.about.label,
        **models_of(tables, by, lambda part, pred: numbers_of(part[pred], level)),
    }


def about(tables: TableSet) -> dict[str, Any]:
    """Return the numbers of rows and bins, for JSON."""
    weightless = (
        {}
        if tables.about.weight is None
        else {"rows_without_weight": tables.about.rows_without_weight}
    )
    dropped = (
        {} if tables.about.rows_dropped is None else {"rows_dropped": tables.about.rows_dropped}
    )
    return {"n": tables.n, **weightless, **dropped, "bins": len(tables.bins)}


def models_of(
    tables: TableSet, by: Sequence[str], numbers: Callable[[TableSet, str], dict[str, Any]]
) -> dict[str, Any]:
    """Return the numbers of each model and, with `by`, of each of its segments."""
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
    """Yield the segments that have rows, each with its name for JSON.

    With several columns, the name includes the column.
    """
    for column in by:
        of = {} if len(by) == 1 else {"by": column}
        for value, part in tables.by(column).items():
            if part.n:
                yield {**of, "value": value}, part


def segment_name(value: str | None) -> Text:
    """Return the value of a segment as text without markup."""
    return Text(MISSING if value is None else printable(value))


def numbers_of(rel: Reliability, level: float) -> dict[str, Any]:
    """Return the scores of one table, for JSON."""
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
        "pvalue": interval.pvalue,
        "ece_hardened": rel.hardened().smece,
        "max_gap": rel.max_gap,
        "rms_gap": rel.rms_gap,
        "bias": rel.bias,
        "brier": rel.brier,
        "table": _per_bin(rel),
        **raters,
        **_next_group(rel, level),
    }


def _next_group(rel: Reliability, level: float) -> dict[str, Any]:
    """Return the prediction intervals of a new group, for JSON; empty without groups."""
    from softcal.inference.new_group import new_group, shows_groups

    if not shows_groups(rel):
        return {}
    found = new_group(rel, level=level)
    ends = {"gap_low": found.gap.low, "gap_high": found.gap.high,
            "smece_low": found.smece.low, "smece_high": found.smece.high}  # fmt: skip
    return {"new_group": {**ends, "tau": found.gap.tau, "groups": found.gap.groups}}


def _per_bin(rel: Reliability) -> list[dict[str, float | int | None]]:
    """Return the bins as rows; the means of an empty bin are None, which is null in JSON."""
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


def show_table_scores(console: Console, tables: TableSet, card: dict[str, Any], name: str) -> None:
    """Print the scores of a set of tables, or those of each segment, and a diagram of text."""
    title = title_of(name, card, tables)
    if "by" not in card:
        terminal.print_titled(console, title, _models_table(card))
    else:
        console.print(Text(printable(title), style="bold"))
        console.print()
        for model in card["models"]:
            for column, parts in segments_of(card, model):
                terminal.print_titled(
                    console, f"{model['pred']}, by {column}", _segments_table(card, model, parts)
                )
    for model in card["models"]:
        if "new_group" in model:
            console.print(Text(_about_next_group(model, str(tables.about.group))))
    notes = dict.fromkeys(model["note"] for model in card["models"])
    raters = _about_raters(card["models"])
    console.print(" ".join(filter(None, (_HOW_TO_READ, raters, *notes))) + "\n", style="dim")
    show_sketch(console, tables, card["models"][0]["level"])


def _about_next_group(model: dict[str, Any], column: str) -> str:
    """Return the sentence on a new group, such as the next hospital."""
    new = model["new_group"]
    return (
        f"{printable(model['pred'])} in a new {printable(column)}: gap {new['gap_low']:+.3f} to "
        f"{new['gap_high']:+.3f}, SMECE {new['smece_low']:.3f} to {new['smece_high']:.3f} "
        f"(standard deviation between the {new['groups']} groups: {new['tau']:.3f}).\n"
    )


def title_of(name: str, card: dict[str, Any], tables: TableSet) -> str:
    """Return the title of a result: its source, rows, labels, classes, bins, and weights."""
    parts = [
        f"{name}: {rows_text(card)}",
        f"label{'s' if 'label_low' in card else ''} {tables.about.label}",
        f"{len(card['classes']):,} {'ordered ' * ('ordered' in card)}classes"
        if "classes" in card
        else "",
        counted(card["bins"], "bin"),
        f"weighted by {tables.about.weight}" if tables.about.weight else "",
    ]
    return ", ".join(filter(None, parts))


def segments_of(
    card: dict[str, Any], model: dict[str, Any]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each column of segments with the numbers of its segments for one model."""
    by = card.get("by", [])
    for column in [by] if isinstance(by, str) else by:
        yield column, [one for one in model["slices"] if one.get("by", column) == column]


def _about_raters(models: list[dict[str, Any]]) -> str:
    """Return a sentence on the raters' share of the intervals; empty without `--raters`."""
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
    """Lay out the scores, one model per line."""
    table = _table(card["models"][0], "model")
    for model in card["models"]:
        table.add_row(Text(printable(model["pred"])), *_cells(model))  # Text, because not markup
    return table


def _segments_table(
    card: dict[str, Any], model: dict[str, Any], parts: list[dict[str, Any]]
) -> Table:
    """Lay out the scores of one model and, below it, of each segment."""
    table = _table(model, "", "rows")
    table.add_row("all", f"{card['n']:,}", *_cells(model))
    for one in parts:
        table.add_row(segment_name(one["value"]), f"{one['n']:,}", *_cells(one))
    return table


def _table(model: dict[str, Any], *first: str) -> Table:
    table = terminal.table(
        *first, "SMECE", f"{100 * model['level']:g}%\ninterval", "p-value",
        "ECE\n(hard)", "max\ngap", "bias", "Brier",
    )  # fmt: skip
    table.columns[len(first)].style = "bold"
    for column in table.columns[1:]:
        column.no_wrap = True  # wrap a long name, never a number
    return table


def _cells(numbers: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{numbers['smece']:.4f}",
        f"{numbers['low']:.3f} to {numbers['high']:.3f}",
        chance(numbers["pvalue"]),
        "-" if numbers["ece_hardened"] is None else f"{numbers['ece_hardened']:.4f}",
        f"{numbers['max_gap']:.3f}",
        f"{numbers['bias']:+z.3f}",
        f"{numbers['brier']:.3f}",
    )


# A reliability diagram of a dozen lines of text. Each bin has a bar, to the left where the
# predictions are too low and to the right where they are too high. The interval of a full bar
# excludes 0; a light bar may be chance.

_MOST_BINS = 10
_FEWEST_BINS = 5
_SMALL = 0.05  # the smallest gap that gets a bar of full length
_WIDEST = 16  # characters of the longest bar


class _Glyphs(NamedTuple):
    """The characters of a bar. Halves make it half a character longer; ASCII has none."""

    sure: str
    unsure: str
    left_half: str
    right_half: str
    middle: str


_BLOCKS = _Glyphs("█", "░", "▐", "▌", "│")
_ASCII = _Glyphs("#", ".", "", "", "|")


def show_sketch(console: Console, models: Mapping[str, Reliability], level: float = 0.95) -> None:
    """Print the diagram of each model, all on one scale."""
    joined = {name: with_few_bins(rel) for name, rel in models.items()}
    scale = max(_SMALL, *(rel.max_gap for rel in joined.values()))
    glyphs = _glyphs(console.encoding)
    for name, rel in joined.items():
        fine = len(models[name].bins)
        note = f", {fine} bins merged into {len(rel.bins)}" if len(rel.bins) < fine else ""
        console.print(Text.assemble((printable(name), "bold"), note))
        for line in _lines(rel, level, scale, glyphs, console.width):
            console.print(line, no_wrap=True, overflow="crop", crop=True)
        console.print()
    console.print(
        f"Bars show mean prediction minus mean label: {glyphs.sure} if its {100 * level:g}% "
        f"interval excludes 0, {glyphs.unsure} if not.",
        style="dim",
    )


def with_few_bins(rel: Reliability) -> Reliability:
    """Merge adjacent bins until at most ten are left, in equal numbers if possible."""
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
            _line_start(widths, bin_, f"{count:,}", f"{p:.3f}", f"{y:.3f}", f"{gap:+z.3f}"),
            (f"{low:>{half}}", "blue"), glyphs.middle, (high, "yellow"),
        )  # fmt: skip


def _ranges(edges: FloatArray) -> list[str]:
    """Write each bin as its edges, with as few digits as needed, three at most."""
    digits = next((d for d in (1, 2) if np.array_equal(edges, edges.round(d))), 3)
    shown = [f"{edge:.{digits}f}" for edge in edges]
    return [f"{low} to {high}" for low, high in pairwise(shown)]


def _line_start(widths: tuple[int, int], bin_: str, rows: str, p: str, y: str, gap: str) -> str:
    return f"{bin_:>{widths[0]}}  {rows:>{widths[1]}}  {p:>10}  {y:>5}  {gap:>6}  "


def _bar(length: float, glyphs: _Glyphs, *, sure: bool) -> str:
    """Return a bar of the given length in characters; a negative one extends to the left."""
    if not (sure and glyphs.left_half):
        return (glyphs.sure if sure else glyphs.unsure) * round(abs(length))
    whole, half = divmod(round(2 * abs(length)), 2)
    if length < 0:
        return glyphs.left_half * half + glyphs.sure * whole
    return glyphs.sure * whole + glyphs.right_half * half
