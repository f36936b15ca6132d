"""Score cards as plain numbers, as tables in the terminal, and as a reliability diagram of text."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal._validation.multiclass import class_rows
from softcal._validation.votes import Votes
from softcal.cli.options import Format, chance, print_json, rows_text
from softcal.inference.intervals import gap_intervals, smece_interval
from softcal.inference.tests import calibration_test
from softcal.metrics import multiclass as scores
from softcal.metrics import proper
from softcal.metrics.multiclass import classwise_reliability, top_label_reliability
from softcal.metrics.vote_noise import brier_without_vote_noise, vote_noise_floor
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    from rich.console import Console
    from rich.table import Table

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
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
    card: dict[str, Any] = {
        "n": tables.n,
        **({} if tables.weight is None else {"rows_without_weight": tables.rows_without_weight}),
        "bins": len(tables.bins),
        "label": tables.label,
        "models": [{"pred": pred, **_numbers(rel, level)} for pred, rel in tables.items()],
    }
    if by:
        card["by"] = by[0] if len(by) == 1 else list(by)
        parts = list(segments(tables, by))
        for model in card["models"]:
            model["slices"] = [
                {**named, "n": part.n, **_numbers(part[model["pred"]], level)}
                for named, part in parts
            ]
    return card


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


def show_scores(
    tables: TableSet, name: str, level: float, format_: Format, by: Sequence[str] = ()
) -> None:
    """Print the scores of a set of tables as text or as JSON."""
    card = scorecard(tables, by, level)
    if format_ is Format.JSON:
        print_json(card)
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
    console.print(" ".join(filter(None, (_HOW_TO_READ, *notes))) + "\n", style="dim")
    show_sketch(console, tables, level)


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


def class_scorecard(
    y_true: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    classes: Sequence[str],
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> list[dict[str, Any]]:
    """Score each model by every metric of many classes; plain numbers, ready for JSON.

    What needs numbers of votes is None without them, as is what is infinite. Of the Brier score
    vote noise can be taken off only where every item has two votes.
    """
    return [
        {"pred": pred, **_class_scores(y_true, y_prob, classes, bins, sample_weight, level)}
        for pred, y_prob in predictions.items()
    ]


def _class_scores(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    classes: Sequence[str],
    bins: BinsLike,
    w: npt.ArrayLike | None,
    level: float,
) -> dict[str, Any]:
    tables = classwise_reliability(y_true, y_prob, bins=bins, sample_weight=w).values()
    by_class = {name: table.smece for name, table in zip(classes, tables, strict=True)}
    top = top_label_reliability(y_true, y_prob, bins=bins, sample_weight=w)
    interval = smece_interval(top, level=level)
    floor = without_noise = None
    if isinstance(y_true, Votes):
        if w is None:  # the floor is one of items, each as good as any other
            floor = vote_noise_floor(y_true, y_prob, metric="dist_ce")
        if y_true.totals.min() >= 2:
            without_noise = brier_without_vote_noise(y_true, y_prob, sample_weight=w)
    return {
        "top_label_smece": top.smece,
        "debiased": interval.debiased,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "pvalue": calibration_test(top).pvalue,
        "classwise_smece": math.fsum(by_class.values()) / len(by_class),
        "smece_by_class": by_class,
        "dist_ce": scores.dist_ce(y_true, y_prob, sample_weight=w),
        "dist_ce_floor": floor,
        "ent_ce": scores.ent_ce(y_true, y_prob, sample_weight=w),
        "ent_ce_signed": scores.ent_ce_signed(y_true, y_prob, sample_weight=w),
        "rank_cs": scores.rank_cs(y_true, y_prob, sample_weight=w),
        "brier": proper.brier(y_true, y_prob, sample_weight=w),
        "brier_without_vote_noise": without_noise,
        "log_loss": _finite(proper.log_loss(y_true, y_prob, sample_weight=w)),
        "rows_of_infinite_log_loss": _infinite_rows(y_true, y_prob, w),
        "kl_divergence": _finite(proper.kl_divergence(y_true, y_prob, sample_weight=w)),
    }


def _infinite_rows(y_true: npt.ArrayLike, y_prob: npt.ArrayLike, w: npt.ArrayLike | None) -> int:
    """Count the rows with weight whose label gives mass to a class of probability 0."""
    rows = class_rows(y_true, y_prob, w)
    ruled_out = ((rows.y_prob == 0) & (rows.y_true > 0)).any(axis=1)
    return int(np.count_nonzero(ruled_out if w is None else ruled_out & (np.asarray(w) > 0)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
