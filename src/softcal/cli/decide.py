"""`softcal decide`: the net benefit of models at thresholds, and the cost of miscalibration."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcal.cli.describe import BOUNDS, CLASSES, RATERS, Described, describes
from softcal.cli.options import (
    DEFAULT_LEVEL,
    Figure,
    Format,
    Level,
    Output,
    RowsOrTables,
    given,
    print_card,
    source_name,
)
from softcal.cli.tables import load_tables, saved_files
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softcal._validation.inputs import Coded, FloatArray, Rows
    from softcal.decision import NetBenefit, NetBenefitDifference, PairedDecisions
    from softcal.inference.summary import CalibrationSummary
    from softcal.table.tableset import TableSet


@describes(without=("by", *RATERS, *BOUNDS, *CLASSES))
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
    from softcal.cards.decide import DecisionCard
    from softcal.decision import checked_thresholds, net_benefit
    from softcal.scanning.sample import Sample, basis

    refuse_bad_level(level)
    at = np.unique(checked_thresholds(given(threshold, "pass a threshold: --threshold T.")))
    if plot is not None:
        from softcal.plot.sheet import refuse_format

        refuse_format(plot)
    # The grid of saved tables, cut at the thresholds as well.
    bins = None if saved_files(data) else Bins(np.union1d(Bins.grid().edges, at))
    drawn = None if bins is None or plot is None else _drawn(bins.edges, at)
    pairs, sample = _Pairs(at if drawn is None else np.union1d(drawn, at)), Sample()

    def look(piece: int, rows: Mapping[str, Rows], groups: Coded | None) -> None:
        if groups is None:
            pairs.add(piece, rows)
        sample.add(piece, rows, groups)

    tables = load_tables(data, how, bins=bins, look=look)
    refuse_other_tables(tables, at, of_rows=bins is not None and sample.complete)
    source = basis(tables, None if bins is None or how.is_long else sample)

    def benefits(thresholds: FloatArray) -> dict[str, NetBenefit]:
        return {
            model: net_benefit(**data, thresholds=thresholds, level=level)
            for model, data in source.models.items()
        }

    found = benefits(at)
    summaries = {model: _summary(data, level) for model, data in source.models.items()}
    if bins is None:
        differences = _without_limits(found, level)
    elif how.group is None:
        differences = pairs.differences(level)
    else:
        differences = _of_groups(source.models, pairs.at, level)
    if plot is not None:
        from softcal.plot import draw_decision
        from softcal.plot.sheet import save_figure

        curves = benefits(_drawn(tables.grid.edges, at))
        between = _without_limits(curves, level) if bins is None else differences
        save_figure(draw_decision(curves, differences=between, marked=at.tolist()), plot)
    card = DecisionCard.of(
        tables, found, summaries, differences, source=source_name(data), level=level,
        computed=(source.name, source.text), note=_NO_LIMITS if bins is None else "",
    )  # fmt: skip
    print_card(card, format_)


class _Pairs:
    """The rows on which the first model and another decide differently, as the rows are read."""

    def __init__(self, at: FloatArray) -> None:
        self.at = at
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
                pair = self._found.setdefault((first, name), PairedDecisions(self.at))
                pair.add(p, columns(each)[0], y, w, part=piece)

    def differences(self, level: float) -> list[NetBenefitDifference]:
        """Return the difference of each pair."""
        return [pair.difference(names, level) for names, pair in self._found.items()]


def _of_groups(
    models: Mapping[str, dict[str, Any]], at: FloatArray, level: float
) -> list[NetBenefitDifference]:
    """Return the difference of the first model and each other one, of rows in groups."""
    from softcal.decision import net_benefit_difference

    (first, one), *others = models.items()
    given = {name: one[name] for name in ("sample_weight", "groups")}
    return [
        net_benefit_difference(
            one["y_true"], {first: one["y_prob"], name: two["y_prob"]}, at, level=level, **given
        )
        for name, two in others
    ]


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


def refuse_other_tables(tables: TableSet, at: FloatArray, *, of_rows: bool = False) -> None:
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
        if of_rows:
            return
        message = (
            f"with groups ({tables.about.group}), the interval of net benefit needs the rows, at "
            "most 1,000,000 of them. If rows are independent, leave --group out."
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


_NO_LIMITS = (
    "saved tables do not store the rows on which two models decide differently, so the difference "
    "has no interval. Pass the rows."
)
