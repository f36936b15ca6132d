"""Figures of tables: diagrams, gaps, the error by the number of bins, and decision curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import error_name
from softcal._optional import naming_the_extra
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.gaps import gap_intervals
from softcal.inference.smece import smece_interval
from softcal.plot import diagram, sheet
from softcal.plot.sheet import FAINT, Sheet, style_of
from softcal.table.tableset import MISSING, TableSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softcal._validation.inputs import FloatArray
    from softcal.decision import NetBenefit, NetBenefitDifference
    from softcal.inference.routing import Route
    from softcal.plot.sheet import Size
    from softcal.table.reliability import Reliability

MOST_PARTS = 8
"""The number of segments or thresholds that a figure can show."""

RARE = 0.02
"""If most predictions are below, the axis of a diagram is in log odds by default."""

_MOST_BINS = 200  # of a curve over the number of bins


def error_of(tables: Mapping[str, Reliability]) -> str:
    """Return what the error of tables is called."""
    if isinstance(tables, TableSet):
        return error_name(hard_labels=tables.has_hard_labels)
    return error_name(hard_labels=all(rel.has_hard_labels for rel in tables.values()))


def parts_of(
    tables: Mapping[str, Reliability], by: str | None = None, *, ordered: bool = False
) -> dict[str, Mapping[str, Reliability]]:
    """Return the tables of each segment of a column, or of each threshold of ordered classes.

    Parameters
    ----------
    tables : mapping from str to Reliability
        The table of each model; a `TableSet` for segments or thresholds.
    by : str, optional
        The column of segments.
    ordered : bool
        Whether to return the tables of the probabilities of a class above each threshold.

    Returns
    -------
    dict from str to mapping
        The tables of each part by its name; without parts, those of all rows by "".
    """
    if by is None and not ordered:
        return {"": tables}
    if not isinstance(tables, TableSet):
        message = "by and ordered need a TableSet: pass what `scan` returns."
        raise InputTypeError(message)
    parts: dict[str, Mapping[str, Reliability]]
    if by is None:
        found = {model: tables.cumulative(model) for model in tables}
        parts = {
            f"class {name}": {model: each[name] for model, each in found.items()}
            for name in tables.thresholds
        }
    elif ordered:
        message = "a figure shows segments or thresholds of ordered classes, not both: choose one."
        raise InputError(message)
    else:
        parts = {
            f"{by} = {MISSING if value is None else value}": segment
            for value, segment in tables.by(by).items()
            if segment.n
        }
    if len(parts) > MOST_PARTS:
        what = f"segments, but {by} has" if by else "thresholds, but the classes have"
        remedy = "a column with fewer values, such as ranges" if by else "fewer classes"
        message = f"a figure shows at most {MOST_PARTS} {what} {len(parts)}. Use {remedy}."
        raise InputError(message)
    return parts


def lines_of(parts: Mapping[str, Mapping[str, Reliability]]) -> dict[str, Reliability]:
    """Return the table of each line of a figure that shows all parts on the same axes."""
    alone = len(next(iter(parts.values()))) == 1
    lines = {
        part if part and alone else ", ".join(filter(None, (model, part))): rel
        for part, tables in parts.items()
        for model, rel in tables.items()
    }
    if len(parts) > 1 and len(lines) > MOST_PARTS:
        message = (
            f"this figure shows at most {MOST_PARTS} lines: {len(parts)} parts of "
            f"{len(lines) // len(parts)} models are {len(lines)}. Select one model."
        )
        raise InputError(message)
    return lines


def _drawn(
    tables: Mapping[str, Reliability], *, logit: bool | None
) -> tuple[bool, Mapping[str, Reliability]]:
    """Return whether an axis is in log odds, and the tables on bins for this axis.

    It is in log odds as asked, else if most predictions are rare.
    """
    if logit is None:
        fine = tables.coarsen(tables.grid) if isinstance(tables, TableSet) else tables
        rare = sum(rel.count[rel.bins.edges[1:] <= RARE].sum() for rel in fine.values())
        logit = bool(rare > 0.5 * sum(rel.n for rel in fine.values()))
    if logit and isinstance(tables, TableSet) and tables.bins.is_uniform:
        return logit, tables.coarsen(diagram.log_odds_bins(tables.grid))
    return logit, tables


@naming_the_extra()
def draw_reliability(
    tables: Mapping[str, Reliability], *, by: str | None = None, ordered: bool = False,
    logit: bool | None = None, level: float = 0.95, size: Size | None = None,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw the reliability diagrams of models on the same axes, or in one panel per part.

    Parameters
    ----------
    tables : mapping from str to Reliability
        The table of each model, such as a `TableSet`.
    by : str, optional
        Column of segments, each in a panel; at most 8.
    ordered : bool
        Whether to draw the cumulative probabilities of ordered classes, with a panel for each
        threshold.
    logit : bool, optional
        Whether the axes are linear in log odds. Default: if most predictions are below 0.02. The
        bins of a `TableSet` are then of about equal width in log odds; SMECE is not affected.
    level : float
        Confidence level of the intervals.
    size : {"column", "page", "talk"}, optional
        As in `ReliabilityDisplay.plot`.
    title : str, optional
        Title of the figure.

    Examples
    --------
    >>> from softcal import reliability
    >>> rel = reliability([0, 0.5, 1], [0.1, 0.4, 0.7])
    >>> draw_reliability({"model": rel}, size="column").get_size_inches().round(1)
    array([3.3, 4.2])
    """
    from matplotlib.figure import Figure

    logit, on_axis = _drawn(tables, logit=logit)
    parts = parts_of(tables, by, ordered=ordered)
    drawn = parts_of(on_axis, by, ordered=ordered)
    error, alone, short = error_of(tables), [*parts] == [""], sheet.short_names(tables)
    page = None if alone else Sheet(size, title, 6.4, len(parts))
    panels = page.panels if page else [diagram.diagram_axes(Figure, size, title)]
    for ax, (part, models) in zip(panels, parts.items(), strict=True):
        for name, rel in models.items():
            named = short[name] if alone else None
            shown = diagram.ReliabilityDisplay(drawn[part][name], name=named, level=level)
            shown.error = error
            shown.smece = smece_interval(rel, level=level)  # on the bins that were asked for
            shown.plot(ax, logit=logit, legend=alone, histogram=alone)
    if page is None:
        return sheet.figure_of(panels[0])
    for ax, (part, models) in zip(panels, parts.items(), strict=True):
        ax.grid(visible=False)
        ax.set_anchor("W")
        diagram.write_sides(ax)
        lines = ax.lines[1:]  # without the diagonal
        labels = [str(line.get_label()).removeprefix(f"{error} ") for line in lines]
        page.name(ax, f"{part}: {error}", labels)
        for line, name in zip(lines, models, strict=True):
            line.set_label(sheet.legend_name(short[name]))  # for the legend of the figure
    low, high = zip(*(ax.get_xlim() for ax in panels), strict=True)
    for ax in panels:
        ax.set(xlim=(min(low), max(high)), ylim=(min(low), max(high)))
    figure = page.finish("mean prediction", "mean label")
    if size != "talk":  # whose height is fixed
        figure.set_layout_engine("compressed")
        sheet.fit_height(figure)
    return figure


def draw_gaps(
    tables: Mapping[str, Reliability], *, by: str | None = None, ordered: bool = False,
    logit: bool | None = None, level: float = 0.95, size: Size | None = None,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw the gap of each bin, mean prediction minus mean label, with its interval.

    Bins with few rows do not set the scale: a caret at the edge marks a gap that is outside. A bin
    with one row is faint, without an interval.

    Parameters
    ----------
    tables : mapping from str to Reliability
        The table of each model; all have the same bins.
    by, ordered, logit, size, title
        As in `draw_reliability`.
    level : float
        Confidence level of the intervals, each for one bin.

    Examples
    --------
    >>> from softcal import reliability
    >>> rel = reliability([0, 0.5, 1], [0.1, 0.4, 0.7])
    >>> draw_gaps({"model": rel}).axes[0].get_ylabel()
    'gap: ← too low · too high →'
    """
    logit, on_axis = _drawn(tables, logit=logit)
    parts = parts_of(on_axis, by, ordered=ordered)
    rows = -(-len(parts) // sheet.columns_of(size, len(parts)))
    height = 3.9 if len(parts) == 1 else 1.2 + 2.2 * rows
    page = Sheet(size, title, height, len(parts), sharex=True, sharey=True)
    limit, short = 0.01, sheet.short_names(tables)
    for ax, (part, models) in zip(page.panels, parts.items(), strict=True):
        ax.axhline(0, color="0.3", linewidth=0.9)
        for k, (name, rel) in enumerate(models.items()):
            limits = gap_intervals(rel, level=level)
            limit = max(limit, gap_scale(rel.gap, *limits, sheet.with_many_rows(rel.count)))
            if logit:
                diagram.use_log_odds(ax, rel, labels=False)
            # At a place in each bin where no interval hides another.
            at = rel.bins.edges[:-1] + np.diff(rel.bins.edges) * (k + 1) / (len(models) + 1)
            style, many = style_of(k), len(rel.bins) > diagram.MANY_BINS
            looks = {
                "fmt": style["marker"], "color": style["color"], "markeredgecolor": "white",
                "markeredgewidth": 0.5, "markersize": (0.3 if many else 0.55) * page.points,
                "elinewidth": 0.8 if many else 1.3, "label": _with_level(short[name], level),
            }  # fmt: skip
            draw_intervals(ax, rel.mean_prob if logit else at, rel.gap, limits, rel.count, **looks)
        if part:
            page.name(ax, part)
    for ax in page.panels:
        mark_outside(ax, limit)
    if not logit:
        page.panels[0].set_xlim(0, 1)
    page.panels[0].yaxis.set_major_formatter(_signed_tick)
    return page.finish("prediction", "gap: ← too low · too high →")


def draw_intervals(
    ax: Axes, at: FloatArray, value: FloatArray, limits: tuple[FloatArray, FloatArray],
    rows: npt.NDArray[Any], **looks: Any,
) -> None:  # fmt: skip
    """Draw values and their intervals; a value of one row is faint, without an interval."""
    reach = np.maximum([value - limits[0], limits[1] - value], 0)
    several, single = rows > 1, rows == 1
    ax.errorbar(at[several], value[several], reach[:, several], **looks)
    if single.any():
        ax.errorbar(at[single], value[single], alpha=FAINT, **looks | {"label": "_"})


def gap_scale(
    gap: FloatArray, low: FloatArray, high: FloatArray, known: npt.NDArray[np.bool_]
) -> float:
    """Return the end of a scale of gaps and their intervals, which the known bins set."""
    reach = np.maximum(-low, high)[known].max()
    return float(min(reach, 4 * np.abs(gap[known]).max()))


def mark_outside(ax: Axes, limit: float) -> None:
    """Set the scale of gaps, and mark those outside it by a caret at the edge."""
    ax.set_ylim(-1.08 * limit, 1.08 * limit)
    for points in [container[0] for container in ax.containers]:
        at, gap = map(np.asarray, points.get_data())
        for sign, caret in ((1, "^"), (-1, "v")):
            outside = at[sign * gap > limit]
            ax.plot(
                outside, np.full(outside.size, sign * limit), caret, alpha=FAINT,
                color=points.get_color(), markersize=points.get_markersize(),
            )  # fmt: skip


def _with_level(name: str, level: float) -> str:
    """Return the name of a model in the legend of a figure that also draws its intervals."""
    return f"{sheet.legend_name(name)}, {100 * level:g}% interval"


def _signed_tick(value: float, _: float) -> str:
    return f"{value:+.3g}".replace("-", "\N{MINUS SIGN}") if value else "0"


def bin_choices(tables: TableSet) -> list[Bins]:
    """Return the equal-width bins that the grid of a set gives, and the set's own bins."""
    if not tables.bins.is_uniform:
        return [tables.bins]
    uniform = [Bins.uniform(k) for k in range(2, _MOST_BINS + 1)]
    given = [bins for bins in uniform if np.isin(bins.edges, tables.grid.edges).all()]
    return sorted({*given, tables.bins}, key=len)


def draw_bins(
    tables: TableSet, *, by: str | None = None, ordered: bool = False, level: float = 0.95,
    size: Size | None = None, title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw the error and its interval for each number of bins that the grid of the set gives.

    Parameters
    ----------
    tables : TableSet
        The tables, on bins of equal width.
    by, ordered
        As in `draw_reliability`, but with lines instead of panels; at most 8.
    level : float
        Confidence level of the intervals.
    size, title
        As in `draw_reliability`.

    Examples
    --------
    >>> import pandas as pd
    >>> from softcal import scan
    >>> rows = pd.DataFrame({"y": [0, 0.5, 1], "p": [0.1, 0.4, 0.7]})
    >>> draw_bins(scan(rows, y_true="y", y_prob="p")).axes[0].get_xlabel()
    'number of bins'
    """
    choices = bin_choices(tables)
    if len(choices) == 1:
        message = (
            "a figure over the number of bins needs bins of equal width, as many as the grid of "
            f"the tables gives: these tables have {len(tables.bins)} bins of their own. Scan the "
            "rows again without edges of your own."
        )
        raise InputError(message)
    lines = lines_of(parts_of(tables.coarsen(tables.grid), by, ordered=ordered))
    page, short = Sheet(size, title, 3.9), sheet.short_names(lines)
    (ax,), numbers = page.panels, [len(bins) for bins in choices]
    for k, (name, fine) in enumerate(lines.items()):
        found = [smece_interval(fine.coarsen(bins), level=level) for bins in choices]
        sheet.draw_curve(
            ax, numbers, *([getattr(each, end) for each in found] for end in sheet.ENDS),
            **style_of(k), linewidth=1.4, markersize=0.5 * page.points, markeredgecolor="white",
            markeredgewidth=0.5, label=_with_level(short[name], level), curves=len(lines),
        )  # fmt: skip
    ax.axvline(len(tables.bins), color="0.55", linestyle=":", linewidth=1)
    ax.set(xscale="log", xlim=(numbers[0], numbers[-1]))
    ax.set_ylim(bottom=0)
    shown = [k for k in (2, 5, 10, 20, 50, 100, 200) if k <= numbers[-1]]
    ax.set_xticks(shown, [str(k) for k in shown], minor=False)
    ax.set_xticks([], minor=True)
    return page.finish("number of bins", error_of(tables))


def draw_decision(
    curves: Mapping[str, NetBenefit], *, differences: Sequence[NetBenefitDifference] = (),
    marked: Sequence[float] = (), size: Size | None = None, title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw decision curves: net benefit over the threshold, and what miscalibration costs.

    Parameters
    ----------
    curves : mapping from str to NetBenefit
        The net benefit of each model, at the thresholds to draw.
    differences : sequence of NetBenefitDifference
        Differences of pairs of these models, in a panel of their own.
    marked : sequence of float
        Thresholds to mark by a vertical line.
    size, title
        As in `draw_reliability`.

    Returns
    -------
    Figure
        Two panels: net benefit of each model with its interval, of treating all and of treating
        none; the cost of miscalibration of each model. A third panel has the differences.

    Examples
    --------
    >>> import numpy as np
    >>> from softcal import net_benefit
    >>> curve = net_benefit([0, 0.5, 1], [0.1, 0.4, 0.7], np.arange(1, 60) / 100)
    >>> len(draw_decision({"model": curve}, marked=[0.2]).axes)
    2
    """
    height, mosaic, ratios = (7.2, "a;b;c", (3, 1.3, 1)) if differences else (5.6, "a;b", (3, 1))
    page = Sheet(size, title, height, mosaic=mosaic, height_ratios=ratios, sharex=True)
    above, below = page.panels[0], page.panels[-1]
    alike = all(
        np.allclose(a.treat_all, b.treat_all) for a in curves.values() for b in curves.values()
    )
    treat_all = "treat all" if alike else "treat all: thin lines"  # parts of the data differ
    styles, short = {}, sheet.short_names(curves)
    for k, (name, curve) in enumerate(curves.items()):
        styles[name] = style_of(k) | {"marker": "", "linewidth": 1.6}
        label = _with_level(short[name], curve.level)
        looks = {"label": label, "zorder": 3, "curves": len(curves)}
        _draw_benefit(above, curve, **styles[name], **looks)
        at, cost = _in_order(curve, "threshold", "cost")
        below.plot(at, cost, **styles[name])
    for k, (name, curve) in enumerate([*curves.items()][: 1 if alike else None]):
        above.plot(
            *_in_order(curve, "threshold", "treat_all"), linewidth=1.1 if alike else 0.7,
            label="_" if k else treat_all, color="0.45" if alike else styles[name]["color"],
        )  # fmt: skip
    above.axhline(0, color="0.2", linewidth=0.9, linestyle=":", label="treat none")
    for pair in differences:
        _draw_benefit(page.panels[1], pair, **styles[pair.names[1]])
    if differences:
        page.panels[1].axhline(0, color="0.2", linewidth=0.9)
        page.panels[1].set_ylabel("first model\nminus other")
    for ax in page.panels:
        for t in marked:
            ax.axvline(t, color="0.55", linestyle=":", linewidth=1, zorder=1)
    # Treating all falls without limit, so models decide the height.
    top = max(0.01, *(max(each.value.max(), each.treat_all.max()) for each in curves.values()))
    above.set(ylabel="net benefit", ylim=(-0.25 * top, 1.12 * top))
    below.set(ylabel="cost of\nmiscalibration", xlabel="threshold", xlim=(at[0], at[-1]))
    below.set_ylim(bottom=0)
    below.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")
    page.figure.align_ylabels()
    return page.finish()


def draw_routes(
    routes: Mapping[str, Route], *, size: Size | None = None, title: str | None = None
) -> Figure:
    """Draw risk-coverage curves: how many people disagree with the surest share of the rows.

    Parameters
    ----------
    routes : mapping from str to Route
        The results of `softcal.route` of models or scores, with the same limit.
    size, title
        As in `draw_reliability`.

    Returns
    -------
    Figure
        The risk of every share of accepted rows with its interval, the limit, the rule that is
        promised (a filled mark), and the one that hardened labels would have given (an open mark).

    Examples
    --------
    >>> from softcal import route
    >>> found = route([0.9, 0.2, 0.6, 0.0] * 100, [0.8, 0.1, 0.7, 0.05] * 100)
    >>> draw_routes({"model": found}).axes[0].get_xlabel()
    'rows accepted, the surest first'
    """
    page, short = Sheet(size, title, 4.2), sheet.short_names(routes)
    (ax,) = page.panels
    for k, (name, found) in enumerate(routes.items()):
        style, curve = style_of(k), found.curve
        many = curve.n >= min(FEW_ACCEPTED, int(curve.n[-1]))
        at, *ends = (each[many] for each in (curve.share, curve.low, curve.risk, curve.high))
        said = "no rule" if found.rule is None else f"{found.rule.share:.0%} accepted"
        if found.hardened is not None:
            said += f" (hardened labels: {found.hardened.share:.0%})"
        sheet.draw_curve(
            ax, at, *ends, color=style["color"], curves=len(routes), linewidth=1.6,
            linestyle=style["linestyle"], label=f"{_with_level(short[name], found.level)}: {said}",
        )  # fmt: skip
        for rule, filled in ((found.rule, style["color"]), (found.hardened, "white")):
            if rule is not None:
                ax.plot(
                    rule.share, rule.risk, marker=style["marker"], markersize=8, zorder=4,
                    color=style["color"], markerfacecolor=filled, clip_on=False,
                )  # fmt: skip
    limit = next(iter(routes.values())).max_disagreement
    ax.axhline(limit, color="0.2", linewidth=0.9, linestyle=":", label="largest disagreement")
    top = max(float(each.curve.risk.max()) for each in routes.values())
    ax.set(xlim=(0, 1.02), ylim=(0, 1.15 * max(top, limit)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")
    return page.finish("rows accepted, the surest first", "people who disagree")


FEW_ACCEPTED = 30  # rows: with fewer, the curve is mostly noise


def _in_order(found: NetBenefit | NetBenefitDifference, *names: str) -> list[FloatArray]:
    """Return fields in the order of the thresholds."""
    order = found.threshold.argsort()
    return [getattr(found, name)[order] for name in names]


def _draw_benefit(ax: Axes, found: NetBenefit | NetBenefitDifference, **style: Any) -> None:
    sheet.draw_curve(ax, *_in_order(found, "threshold", *sheet.ENDS), **style)
