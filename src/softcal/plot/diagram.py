"""Draw the soft reliability diagram of a table, in the style of scikit-learn's Display classes.

Global state stays unchanged: no rcParams, and no pyplot if axes are given. Models differ by marker
and line as well as by color, so that a diagram is readable in gray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from softcal._display import error_name
from softcal._optional import naming_the_extra, refuse_other_bins
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.gaps import consistency_band, gap_intervals
from softcal.inference.smece import smece_interval
from softcal.plot import sheet
from softcal.plot.sheet import COLORS, FAINT, MARKS, bare, style_of
from softcal.table.reliability import Reliability, reliability

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.plot.sheet import Size

_HISTOGRAM = "softcal histogram"  # the label by which later models find the axes to share
_DIAGRAM = "softcal diagram"  # of a narrow figure made here, whose height may change
_DIAGONAL = "calibrated"
_WIDEST = 36  # characters per line of the legend, to fit the column width of a paper
_AREA = 200.0  # square points of the marker of a bin that has all rows
MANY_BINS = 22  # more have smaller points and thinner lines


class ReliabilityDisplay:
    """Soft reliability diagram of one model: mean label against mean prediction per bin.

    Create it with `from_predictions`, with `from_estimator`, or from a table. Draw it with `plot`,
    on the axes of another model if desired. docs/diagram.md explains how to read it. It needs
    matplotlib.

    Parameters
    ----------
    rel : Reliability
        The table to draw.
    name : str, optional
        Name of the model in the legend.
    level : float, default=0.95
        Confidence level of all intervals and of the band.
    simultaneous : bool, default=False
        Whether intervals and band hold for all bins simultaneously (Bonferroni correction) or for
        each bin alone. Set it to select the worst bin.

    Attributes
    ----------
    smece : Interval
        The error and its interval, as in the legend.
    error : str
        What the legend calls the error: ECE if every label is 0 or 1, else SMECE.
    label_low, label_high : ndarray
        Per bin, the interval of the mean label; NaN if the bin is empty.
    band_low, band_high : ndarray
        Per bin, the range of mean labels of a calibrated model.
    ax_, figure_, line_, points_, intervals_, band_, histogram_, legend_
        After `plot`: the matplotlib objects; None for parts that were not requested.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from softcal import ReliabilityDisplay
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> shown = ReliabilityDisplay.from_predictions(
    ...     d["soft_malignant"], d["prob_rf_all"], n_votes=d["n_readers"], name="forest")
    >>> shown.line_.get_label()
    'forest: SMECE 0.095 (0.081 to 0.106)'
    """

    ax_: Axes
    figure_: Figure
    line_: Line2D
    points_: PathCollection
    intervals_: ErrorbarContainer | None
    band_: PolyCollection | None
    histogram_: StepPatch | None
    legend_: Legend | None

    def __init__(
        self, rel: Reliability, *, name: str | None = None, level: float = 0.95,
        simultaneous: bool = False,
    ) -> None:  # fmt: skip
        self.rel = rel
        self.name = name
        self.level = level
        self.simultaneous = simultaneous
        self.error = error_name(hard_labels=rel.has_hard_labels)
        self.smece = smece_interval(rel, level=level)
        self.label_low, self.label_high = self._labels(gap_intervals)
        self.band_low, self.band_high = self._labels(consistency_band)

    def _labels(self, limits_of_gaps: Callable[..., Any]) -> tuple[FloatArray, FloatArray]:
        # The gap is prediction minus label, so its upper limit gives the lower limit of the label.
        low, high = limits_of_gaps(self.rel, level=self.level, simultaneous=self.simultaneous)
        p = self.rel.mean_prob
        return np.maximum(p - high, 0.0), np.minimum(p - low, 1.0)

    @classmethod
    def from_predictions(
        cls, y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, bins: BinsLike = 10,
        sample_weight: npt.ArrayLike | None = None, n_votes: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None, level: float = 0.95, simultaneous: bool = False,
        name: str | None = None, ax: Axes | None = None, **drawing: Any,
    ) -> Self:  # fmt: skip
        """Draw the diagram of predictions against soft or hard labels.

        Parameters
        ----------
        y_true, y_prob, bins, sample_weight, n_votes, groups
            As in `reliability`.
        level, simultaneous, name
            As in `ReliabilityDisplay`.
        ax, **drawing
            As in `plot`.
        """
        refuse_other_bins(drawing)
        rel = reliability(
            y_true, y_prob, bins=bins, sample_weight=sample_weight, n_votes=n_votes, groups=groups
        )
        return cls(rel, name=name, level=level, simultaneous=simultaneous).plot(ax, **drawing)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y_true: npt.ArrayLike, **options: Any,  # noqa: N803
    ) -> Self:  # fmt: skip
        """Draw the diagram of a fitted binary classifier against soft or hard labels.

        Parameters
        ----------
        estimator : object with `predict_proba`
            The second column is the prediction; the default name is the class of the estimator.
        X : array-like
            The input of `predict_proba`.
        y_true : array-like of shape (n,)
            Labels in [0, 1]: the probability or the vote share of the second class.
        **options
            As in `from_predictions`.
        """
        if not hasattr(estimator, "predict_proba"):
            message = (
                f"estimator must have predict_proba: {type(estimator).__name__} has none. Pass its "
                "predicted probabilities to from_predictions."
            )
            raise InputTypeError(message)
        columns = np.asarray(estimator.predict_proba(X))
        if columns.ndim != 2 or columns.shape[1] != 2:
            message = (
                f"predict_proba must return two columns, one per class: got shape {columns.shape}. "
                "Pass the column of one class to from_predictions."
            )
            raise InputError(message)
        options.setdefault("name", type(estimator).__name__)
        return cls.from_predictions(y_true, columns[:, 1], **options)

    def plot(
        self, ax: Axes | None = None, *, intervals: bool = True, consistency: bool = False,
        histogram: bool = True, legend: bool = True, logit: bool = False,
        size: Size | None = None, **style: Any,
    ) -> Self:  # fmt: skip
        """Draw the diagram. Empty bins are omitted, and the area of a marker shows the rows.

        A bin with one row is a faint point without an interval, because one row says little.

        Parameters
        ----------
        ax : Axes, optional
            The axes to draw on, which may already show other models. Default: a new figure.
        intervals : bool, default=True
            Whether to draw the interval of each bin's mean label.
        consistency : bool, default=False
            Whether to draw the band around the diagonal that contains the points of a calibrated
            model.
        histogram : bool, default=True
            Whether to draw the number of rows per bin: below the diagram in a figure made here,
            else along the bottom of `ax`. Weights do not change these numbers.
        legend : bool, default=True
            Whether to draw the legend: above or beside the diagram if the figure has a layout
            engine (`layout="constrained"`), else inside, where it may cover points.
        logit : bool, default=False
            Whether the axes are linear in log odds, for rare events. A bin whose mean label is 0
            or 1 then has no point, and its interval extends to the edge. `log_odds_bins` returns
            bins for such axes.
        size : {"column", "page", "talk"}, optional
            Size of a figure made here: one column of a paper (3.3 inches wide), its full width
            (6.9 inches), or a slide (16:9). The size of given axes does not change.
        **style
            `color`, `marker`, `linestyle`, `label`, and other arguments of matplotlib's `plot`.
            Default: the first style that no other model on the axes has.

        Returns
        -------
        ReliabilityDisplay
            This object.
        """
        if ax is None:
            with naming_the_extra():
                from matplotlib import pyplot as plt

            ax = diagram_axes(plt.figure, size, below=histogram)
        self.ax_ = ax
        self.figure_ = sheet.figure_of(ax)
        style = _next_style(ax) | style
        draw_frame(ax)
        if logit:
            use_log_odds(ax, self.rel)
        self.line_, self.points_ = self._draw_line(style)
        self.band_ = self._draw_band(style["color"]) if consistency else None
        self.intervals_ = self._draw_intervals(style["color"]) if intervals else None
        self.histogram_ = self._draw_histogram(style) if histogram else None
        self.legend_ = _write_legend(ax) if legend else None
        if ax.get_label() == _DIAGRAM:
            sheet.fit_height(self.figure_)
        return self

    @property
    def _many(self) -> bool:
        return len(self.rel.bins) > MANY_BINS

    def _draw_line(self, style: dict[str, Any]) -> tuple[Line2D, PathCollection]:
        looks: dict[str, Any] = {
            "linewidth": 0.8 if self._many else 1.3, "markersize": 4 if self._many else 6.5,
            "markeredgecolor": style["color"] if self._many else "white", "zorder": 3,
            "label": self._label(),
        }  # fmt: skip
        count, label = self.rel.count, self.rel.mean_label
        if self.ax_.get_yscale() == "logit":
            label = np.where((label > 0) & (label < 1), label, np.nan)
        # The line breaks at empty bins, which are NaN, and at those with one row. It has its marker
        # only in the legend, because its markers have one size.
        through = np.where(count > 1, label, np.nan)
        (line,) = self.ax_.plot(self.rel.mean_prob, through, markevery=[], **looks | style)
        alpha: Any = (line.get_alpha() or 1) * np.where(count > 1, 1.0, FAINT)
        points = self.ax_.scatter(
            self.rel.mean_prob, label,
            np.maximum(_AREA * count / self.rel.n, 5 if self._many else 20),
            marker=line.get_marker(), color=line.get_markerfacecolor(),
            edgecolors=line.get_markeredgecolor(), plotnonfinite=False, alpha=alpha,
            linewidths=0.3 if self._many else 0.6, zorder=line.get_zorder() + 0.1,
        )  # fmt: skip
        return line, points

    def _label(self) -> str:
        found = self.smece
        smece = f"{self.error} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
        if self.name is None:
            return smece
        name = f"{sheet.legend_name(self.name)}:"
        if len(name) + len(smece) < _WIDEST:
            return f"{name} {smece}"
        return f"{sheet.wrapped(name, _WIDEST - 2)}\n{smece}"

    def _draw_intervals(self, color: Any) -> ErrorbarContainer:
        several = self.rel.count > 1
        label, ends = self.rel.mean_label, np.stack([self.label_low, self.label_high])
        if self.ax_.get_yscale() == "logit":
            label, ends = _inside(label), _inside(ends)
        reach = np.maximum([[-1], [1]] * (ends - label), 0.0)[:, several]
        return self.ax_.errorbar(
            self.rel.mean_prob[several], label[several], reach, fmt="none", ecolor=color,
            elinewidth=0.8 if self._many else 1.4, alpha=0.6, zorder=2.5,
            label=self._once("interval of the mean label") if several.any() else "_",
        )  # fmt: skip

    def _draw_band(self, color: Any) -> PolyCollection:
        edges = self._edges()
        # The part of each bin follows the diagonal between its edges; empty bins have none.
        x = np.column_stack([edges[:-1], edges[1:], np.full(edges.size - 1, np.nan)])
        low, high = (
            np.clip(x + (limit - self.rel.mean_prob)[:, None], edges[0], edges[-1]).ravel()
            for limit in (self.band_low, self.band_high)
        )
        return self.ax_.fill_between(
            x.ravel(), low, high, color=color, alpha=0.18, linewidth=0, zorder=1,
            label=self._once("consistency band"),
        )  # fmt: skip

    def _edges(self) -> FloatArray:
        edges = self.rel.bins.edges
        return _inside(edges) if self.ax_.get_xscale() == "logit" else edges

    def _once(self, what: str) -> str:
        """Return the legend label of intervals or band, or "_" if another model has it."""
        together = "\n(simultaneous)" if self.simultaneous else ""
        label = f"{100 * self.level:g}% {what}{together}"
        return "_" if label in self.ax_.get_legend_handles_labels()[1] else label

    def _draw_histogram(self, style: dict[str, Any]) -> StepPatch:
        axes = _histogram_axes(self.ax_)
        if axes is None:  # along the bottom of the given axes, behind everything
            axes = self.ax_.inset_axes((0, 0, 1, 0.16), sharex=self.ax_, zorder=0, label=_HISTOGRAM)
            axes.set_axis_off()
        edges = self._edges()
        # A bar between two spaces per bin, whose widths follow from the number of models.
        values = np.pad(self.rel.count[:, None], ((0, 0), (1, 1))).ravel()
        places = np.append(np.repeat(edges[:-1], 3), edges[-1])
        bars = axes.stairs(values, places, fill=True, color=style["color"], alpha=0.5, linewidth=0)
        _draw_side_by_side(axes)
        return bars


def _draw_side_by_side(axes: Axes) -> None:
    """Divide each bin of a histogram among the models."""
    histograms = cast("list[StepPatch]", list(axes.patches))
    for k, histogram in enumerate(histograms):
        values, places, _ = histogram.get_data()
        edges = np.asarray(places)[::3]
        starts = edges[:-1] + np.diff(edges) * np.array([[0], [k], [k + 1]]) / len(histograms)
        histogram.set_data(values, np.append(starts.T.ravel(), edges[-1]))


def _inside(values: FloatArray) -> FloatArray:
    """Move 0 and 1 into the range of an axis in log odds, by less than a figure shows."""
    return np.clip(values, 1e-9, 1 - 1e-9)


def draw_frame(ax: Axes) -> None:
    """Draw the diagonal, the limits, and the axis labels, unless they are already drawn."""
    if _DIAGONAL in ax.get_legend_handles_labels()[1]:
        return
    ends = _inside(np.array([0.0, 1.0]))  # also of axes in log odds
    ax.plot(ends, ends, color="0.55", linewidth=0.9, zorder=1.5, label=_DIAGONAL)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="mean label", aspect="equal")
    (_histogram_axes(ax) or ax).set_xlabel("mean prediction")
    bare(ax)


def log_odds_bins(grid: Bins) -> Bins:
    """Return bins of edges of a grid, each at least as wide as a factor of 2 of the odds.

    Examples
    --------
    >>> log_odds_bins(Bins.grid()).edges[15:19].round(4)
    array([0.0067, 0.0133, 0.0267, 0.0533])
    """
    kept = [0.0]
    for edge in grid.edges[1:-1].tolist():
        if edge / (1 - edge) >= 1.999 * kept[-1] / (1 - kept[-1]):
            kept.append(edge)
    return Bins([*kept, 1.0])


def use_log_odds(ax: Axes, rel: Reliability, *, labels: bool = True) -> None:
    """Make axes linear in log odds, with limits that include these bins.

    Without `labels`, only the axis of predictions is.
    """
    known = sheet.with_many_rows(rel.count)
    means = np.concatenate([rel.mean_prob[known], rel.mean_label[known & labels]])
    inside = means[(means > 0) & (means < 1)]
    low, high = 0.7 * inside.min(initial=0.3), 1 - 0.7 * (1 - inside.max(initial=0.1))
    if ax.get_xscale() == "logit":
        low, high = min(low, ax.get_xlim()[0]), max(high, ax.get_xlim()[1])
    ticks = np.outer(10.0 ** np.arange(-7, 0), [1] if 100 * low < high else [1, 2, 5]).ravel()
    axes: list[Any] = [(ax.xaxis, ax.set_xscale, ax.set_xlim)]
    axes += [(ax.yaxis, ax.set_yscale, ax.set_ylim)] * labels
    for axis, set_scale, set_limits in axes:
        set_scale("logit")
        set_limits(low, high)
        axis.set_ticks([*ticks, 0.5, *(1 - ticks)])
        axis.set_ticks([], minor=True)
        axis.set_major_formatter(lambda value, _: f"{100 * value:.8g}%")
        set_limits(low, high)  # again, because ticks widen them


def diagram_axes(
    new_figure: Callable[..., Figure], size: Size | None, title: str | None = None, *,
    below: bool = True,
) -> Axes:  # fmt: skip
    """Return the axes of a diagram in a new figure, with axes for a histogram below.

    The height of a narrow figure follows from its legend (`fit_height`).
    """
    paper, narrow = sheet.paper_of(size), size in (None, "column")
    width = 4.2 if size is None else paper.width
    height = {"page": 4.4, "talk": sheet.WIDE_SCREEN * width}.get(str(size), 1.3 * width)
    figure = new_figure(figsize=(width, height), layout="constrained")
    if title:
        text = sheet.wrapped_title(figure, title, paper.points)
        figure.suptitle(text, x=0.01, ha="left", fontsize=1.1 * paper.points, weight="bold")
    ax = figure.add_subplot(label=_DIAGRAM if narrow else "")
    sheet.set_fonts(ax, paper.points)
    write_sides(ax, "predictions ")
    if below:
        # Attached to the diagram, whose aspect is fixed, so that both have the same width.
        histogram = ax.inset_axes((0, -0.22, 1, 0.17), sharex=ax, label=_HISTOGRAM)
        histogram.set_ylabel("rows")
        histogram.locator_params(axis="y", nbins=2, integer=True)
        sheet.set_fonts(histogram, paper.points)
        bare(histogram)
        ax.tick_params(labelbottom=False)
    return ax


def write_sides(ax: Axes, start: str = "") -> None:
    """Write on which side of the diagonal predictions are too low, and on which too high."""
    for side, at in (("low", (0.02, 0.98)), ("high", (0.98, 0.02))):
        ax.text(
            *at, f"{start}too {side}", transform=ax.transAxes, color="0.45", zorder=1,
            fontsize=0.85 * sheet.points_of(ax), va="top" if side == "low" else "baseline",
            ha="left" if side == "low" else "right",
        )  # fmt: skip


def _histogram_axes(ax: Axes) -> Axes | None:
    """Return the axes of the histogram, inside or below `ax`, or None."""
    found = (axes for axes in ax.child_axes if axes.get_label() == _HISTOGRAM)
    return cast("Axes | None", next(found, None))


def _next_style(ax: Axes) -> dict[str, Any]:
    """Return the first style whose color and marker no line of the axes has."""
    used = {(line.get_color(), line.get_marker()) for line in ax.lines}
    unlike = map(style_of, range(len(COLORS) * len(MARKS)))
    free = (style for style in unlike if (style["color"], style["marker"]) not in used)
    return next(free, style_of(0))


def _write_legend(ax: Axes) -> Legend:
    """Draw the legend above the axes or, if there is more room, beside them.

    Without a layout engine it is inside, because it could be cut off outside.
    """
    options: dict[str, Any] = {"fontsize": 0.85 * sheet.points_of(ax)}
    figure = sheet.figure_of(ax)
    if figure.get_layout_engine() is None:
        return ax.legend(loc="best", framealpha=0.85, edgecolor="none", **options)
    width, height = figure.get_size_inches()
    if ax.get_title() or (figure.axes == [ax] and width > 1.2 * height):
        return ax.legend(
            loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, borderpad=0, **options
        )
    return sheet.legend_above(ax, ncols=1, **options)
