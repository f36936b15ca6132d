"""Draw the soft reliability diagram of a table, in the style of scikit-learn's Display classes.

Global state stays unchanged: no rcParams, and no pyplot if axes are given. Models differ by marker
and line as well as by color, so that a diagram is readable in gray.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypedDict, Unpack, cast, get_args

import numpy as np

from softcal._display import printable
from softcal._io import written_whole
from softcal._optional import naming_the_extra, refuse_other_bins
from softcal._validation.days import day_of
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.gaps import consistency_band, gap_intervals
from softcal.inference.smece import smece_interval
from softcal.table.reliability import Reliability, reliability
from softcal.table.tableset import MISSING, TableSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    from softcal._validation.days import Day
    from softcal._validation.inputs import FloatArray
    from softcal.bins import BinsLike
    from softcal.decision import NetBenefit, NetBenefitDifference
    from softcal.inference.gaps import GapIntervals
    from softcal.inference.sequential import StreamState, WatchState

# The colors, marks, and lines of models in figures, in the report, and in the terminal: the
# color-blind palette of Okabe and Ito, and two more. Its yellow is too pale for lines, and a dark
# page hides its black.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, _BROWN, _WINE = COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F6000", "#882255",
)  # fmt: skip


class Mark(NamedTuple):
    """The mark of a model: the names of matplotlib and of Vega, and a character."""

    marker: str
    shape: str
    character: str


MARKS = (
    Mark("o", "circle", "●"), Mark("s", "square", "■"), Mark("^", "triangle-up", "▲"),
    Mark("D", "diamond", "◆"), Mark("P", "cross", "✚"), Mark("v", "triangle-down", "▼"),
    Mark("<", "triangle-left", "◀"), Mark(">", "triangle-right", "▶"),
)  # fmt: skip
LINES = {"-": (1, 0), "--": (6, 3), "-.": (8, 3, 2, 3), ":": (2, 2)}
"""The lines of models: matplotlib's name, and the dashes for Vega."""

MOST_PARTS = 8
"""The number of segments or thresholds that a figure can show."""

RARE = 0.02
"""If most predictions are below, the axis of a diagram is in log odds by default."""

_HISTOGRAM = "softcal histogram"  # the label by which later models find the axes to share
_DIAGRAM = "softcal diagram"  # of a narrow figure made here, whose height may change
_DIAGONAL = "calibrated"
_WIDEST = 36  # characters per line of the legend, to fit the column width of a paper
_AREA = 200.0  # square points of the marker of a bin that has all rows
_MOST_BINS = 200  # of a curve over the number of bins
_FAINT = 0.35  # the opacity of a bin with one row

Size = Literal["column", "page", "talk"]


class _Paper(NamedTuple):
    """The width of a figure in inches, its height as a share of the usual one, and its font."""

    width: float
    shape: float
    points: float


# A slide shows a figure of 6.4 inches at about twice its size, so 10 points become 20.
_SIZES = {
    None: _Paper(6.4, 1.0, 10.0), "column": _Paper(3.3, 1.25, 8.0), "page": _Paper(6.9, 0.9, 9.0),
    "talk": _Paper(6.4, 0.0, 10.0),
}  # fmt: skip
_WIDE_SCREEN = 9 / 16


def _paper(size: Size | None) -> _Paper:
    if size not in _SIZES:
        message = f"size must be one of {', '.join(get_args(Size))}: got {size!r}."
        raise InputError(message)
    return _SIZES[size]


class Drawing(TypedDict, total=False):
    """Keyword arguments of `ReliabilityDisplay.plot`."""

    intervals: bool
    consistency: bool
    histogram: bool
    legend: bool
    logit: bool
    size: Size | None
    color: Any
    marker: str
    linestyle: Any


def with_many_rows(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which bins may set the scale of a figure: 10 rows, and a tenth of the mean number.

    If no bin has so many, those with the most rows are returned.

    Examples
    --------
    >>> with_many_rows(np.array([2, 60, 400, 0])), with_many_rows(np.array([1, 3, 0]))
    (array([False,  True,  True, False]), array([False,  True, False]))
    """
    least = max(10.0, 0.1 * float(rows.sum()) / max(int((rows > 0).sum()), 1))
    return rows >= min(least, float(rows.max()))


def style_of(k: int) -> dict[str, Any]:
    """Return the color, marker, and line of model number k, all different from k - 1."""
    return {
        "color": COLORS[k % len(COLORS)],
        # After all colors, shifted by one, so that all pairs appear.
        "marker": MARKS[(k + k // len(COLORS)) % len(MARKS)].marker,
        "linestyle": [*LINES][k % len(LINES)],
    }


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
        SMECE and its interval, as in the legend.
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
        self,
        rel: Reliability,
        *,
        name: str | None = None,
        level: float = 0.95,
        simultaneous: bool = False,
    ) -> None:
        self.rel = rel
        self.name = name
        self.level = level
        self.simultaneous = simultaneous
        self.smece = smece_interval(rel, level=level)
        # The gap is prediction minus label, so its upper limit gives the lower limit of the label.
        gap = gap_intervals(rel, level=level, simultaneous=simultaneous)
        self.label_low = np.maximum(rel.mean_prob - gap.high, 0.0)
        self.label_high = np.minimum(rel.mean_prob - gap.low, 1.0)
        chance = consistency_band(rel, level=level, simultaneous=simultaneous)
        self.band_low = np.maximum(rel.mean_prob - chance.high, 0.0)
        self.band_high = np.minimum(rel.mean_prob - chance.low, 1.0)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        bins: BinsLike = 10,
        sample_weight: npt.ArrayLike | None = None,
        n_votes: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        level: float = 0.95,
        simultaneous: bool = False,
        name: str | None = None,
        ax: Axes | None = None,
        **drawing: Unpack[Drawing],
    ) -> Self:
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
        cls,
        estimator: Any,
        X: Any,  # noqa: N803  scikit-learn's name for it
        y_true: npt.ArrayLike,
        **options: Any,
    ) -> Self:
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
        self,
        ax: Axes | None = None,
        *,
        intervals: bool = True,
        consistency: bool = False,
        histogram: bool = True,
        legend: bool = True,
        logit: bool = False,
        size: Size | None = None,
        **style: Any,
    ) -> Self:
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

            ax = _diagram_axes(plt.figure, size, below=histogram)
        self.ax_ = ax
        self.figure_ = cast("Figure", ax.get_figure(root=True))
        style = _next_style(ax) | style
        draw_frame(ax)
        if logit:
            _use_log_odds(ax, self.rel)
        self.line_, self.points_ = self._draw_line(style)
        self.band_ = self._draw_band(style["color"]) if consistency else None
        self.intervals_ = self._draw_intervals(style["color"]) if intervals else None
        self.histogram_ = self._draw_histogram(style) if histogram else None
        self.legend_ = _write_legend(ax) if legend else None
        if ax.get_label() == _DIAGRAM:
            _fit_height(self.figure_)
        return self

    def _draw_line(self, style: dict[str, Any]) -> tuple[Line2D, PathCollection]:
        from matplotlib.colors import to_rgba

        # Many bins get smaller points; the line breaks at empty bins, which are NaN.
        many = len(self.rel.bins) > 22
        looks: dict[str, Any] = {
            "linewidth": 0.8 if many else 1.3,
            "markersize": 4 if many else 6.5,
            "markeredgecolor": style["color"] if many else "white",
            "zorder": 3,
            "label": self._label(),
        }
        looks |= style
        count, label = self.rel.count, self.rel.mean_label
        if self.ax_.get_yscale() == "logit":
            label = np.where((label > 0) & (label < 1), label, np.nan)
        # The line has its marker only in the legend, because its markers have one size.
        through = np.where(count > 1, label, np.nan)
        (line,) = self.ax_.plot(self.rel.mean_prob, through, markevery=[], **looks)
        opacity = (line.get_alpha() or 1) * np.where(count > 1, 1.0, _FAINT)
        face, edge = (
            [to_rgba(color, each) for each in opacity]
            for color in (line.get_markerfacecolor(), line.get_markeredgecolor())
        )
        points = self.ax_.scatter(
            self.rel.mean_prob, label, np.maximum(_AREA * count / self.rel.n, 5 if many else 20),
            marker=line.get_marker(), facecolors=face, edgecolors=edge, plotnonfinite=False,
            linewidths=0.3 if many else 0.6, zorder=line.get_zorder() + 0.1,
        )  # fmt: skip
        return line, points

    def _label(self) -> str:
        smece = f"SMECE {self.smece.value:.3f} ({self.smece.low:.3f} to {self.smece.high:.3f})"
        if self.name is None:
            return smece
        name = f"{_legend_name(self.name)}:"
        if len(name) + len(smece) < _WIDEST:
            return f"{name} {smece}"
        return f"{_wrapped(name, _WIDEST)}\n{smece}"

    def _draw_intervals(self, color: Any) -> ErrorbarContainer:
        several = self.rel.count > 1
        label, ends = self.rel.mean_label, np.stack([self.label_low, self.label_high])
        if self.ax_.get_yscale() == "logit":
            label, ends = _inside(label), _inside(ends)
        label, reach = label[several], (np.array([[-1], [1]]) * (ends - label))[:, several]
        return self.ax_.errorbar(
            self.rel.mean_prob[several], label, np.maximum(reach, 0.0), fmt="none", ecolor=color,
            elinewidth=0.8 if len(self.rel.bins) > 22 else 1.4, alpha=0.6, zorder=2.5,
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
        axes = _histogram_axes(self.ax_) or _strip(self.ax_)
        first = not axes.patches  # only the first is filled, so that all are visible
        return axes.stairs(
            self.rel.count, self._edges(), fill=True,
            facecolor=(style["color"], 0.25 if first else 0.0), edgecolor=style["color"],
            linewidth=0.9, linestyle=style["linestyle"],
        )  # fmt: skip


def _legend_name(name: str) -> str:
    """Return a name for a legend: a dollar would start a formula, and _ at its start hides it."""
    name = printable(name).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


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


def _use_log_odds(ax: Axes, rel: Reliability, *, labels: bool = True) -> None:
    """Make axes linear in log odds, with limits that include these bins.

    Without `labels`, only the axis of predictions is.
    """
    known = with_many_rows(rel.count)
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


def bare(ax: Axes) -> None:
    """Hide the top and right sides of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def _diagram_axes(
    new_figure: Callable[..., Figure], size: Size | None, *, below: bool, title: str | None = None
) -> Axes:
    """Return the axes of a diagram in a new figure, with axes for a histogram below.

    The height of a narrow figure follows from its legend (`_fit_height`).
    """
    paper, narrow = _paper(size), size in (None, "column")
    width = 4.2 if size is None else paper.width
    height = {"page": 4.4, "talk": _WIDE_SCREEN * width}.get(str(size), 1.3 * width)
    figure = new_figure(figsize=(width, height), layout="constrained")
    _write_title(figure, title, paper.points)
    ax = figure.add_subplot(label=_DIAGRAM if narrow else "")
    set_fonts(ax, paper.points)
    _write_sides(ax, "predictions ")
    if below:
        # Attached to the diagram, whose aspect is fixed, so that both have the same width.
        histogram = ax.inset_axes((0, -0.22, 1, 0.17), sharex=ax, label=_HISTOGRAM)
        histogram.set_ylabel("rows")
        histogram.locator_params(axis="y", nbins=2, integer=True)
        set_fonts(histogram, paper.points)
        bare(histogram)
        ax.tick_params(labelbottom=False)
    return ax


def _title(figure: Figure, title: str | None, points: float) -> str:
    """Return a title in as many lines as it needs."""
    return _wrapped(_legend_name(title or ""), int(figure.get_figwidth() * 72 / (0.72 * points)))


def _write_title(figure: Figure, title: str | None, points: float) -> None:
    if title:
        text = _title(figure, title, points)
        figure.suptitle(text, x=0.01, ha="left", fontsize=1.1 * points, weight="bold")


def _wrapped(text: str, widest: int) -> str:
    lines = (textwrap.wrap(line, widest, drop_whitespace=False) for line in text.split("\n"))
    return "\n".join(line for parts in lines for line in parts)


def _write_sides(ax: Axes, start: str) -> None:
    """Write on which side of the diagonal predictions are too low, and on which too high."""
    looks: dict[str, Any] = {
        "transform": ax.transAxes, "color": "0.45", "fontsize": 0.85 * _points(ax), "zorder": 1,
    }  # fmt: skip
    ax.text(0.02, 0.98, f"{start}too low", va="top", **looks)
    ax.text(0.98, 0.02, f"{start}too high", ha="right", **looks)


def set_fonts(ax: Axes, points: float) -> None:
    """Set the font size of axis labels and ticks; the legend follows that of the axis labels."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(points)
        axis.get_offset_text().set_fontsize(0.9 * points)
    ax.tick_params(labelsize=0.9 * points)


def _strip(ax: Axes) -> Axes:
    """Return new axes for the histogram along the bottom of `ax`, behind everything."""
    strip = ax.inset_axes((0, 0, 1, 0.16), sharex=ax, zorder=0, label=_HISTOGRAM)
    strip.set_axis_off()
    return strip


def _histogram_axes(ax: Axes) -> Axes | None:
    """Return the axes of the histogram, inside or below `ax`, or None."""
    shared = ax.get_shared_x_axes()
    places = [*ax.child_axes, *(axes for axes in ax.figure.axes if shared.joined(ax, axes))]
    found = (axes for axes in places if axes.get_label() == _HISTOGRAM)
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
    small = 0.85 * _points(ax)
    figure = cast("Figure", ax.get_figure(root=True))
    if figure.get_layout_engine() is None:
        return ax.legend(loc="best", fontsize=small, framealpha=0.85, edgecolor="none")
    width, height = figure.get_size_inches()
    if ax.get_title() or (figure.axes == [ax] and width > 1.2 * height):
        return ax.legend(
            loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=small, frameon=False, borderpad=0
        )
    return legend_above(ax, fontsize=small, ncols=1)


def _points(ax: Axes) -> float:
    """Return the font size of the axis labels, which other text follows."""
    return float(ax.yaxis.label.get_fontsize())


def legend_above(ax: Axes, **options: Any) -> Legend:
    """Draw the legend above the axes, where it covers no data."""
    options = _fitted(ax, 0.9 * _points(ax), left=45) | options
    return ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderpad=0, **options)


def _fitted(ax: Axes, points: float, left: float = 0) -> dict[str, Any]:
    """Return the entries of a legend in lines and columns that fit the figure, from `left` on."""
    handles, labels = ax.get_legend_handles_labels()
    room = 72 * cast("Figure", ax.get_figure(root=True)).get_figwidth() - left - 5 * points
    labels = [_wrapped(label, int(room / (0.62 * points))) for label in labels]
    widest = max(len(line) for label in labels for line in label.split("\n"))
    ncols = int(np.clip(room // (points * (0.58 * widest + 4)), 1, 4))
    return {"handles": handles, "labels": labels, "ncols": ncols, "fontsize": points}


@naming_the_extra()
def _panels(
    size: Size | None, height: float, mosaic: str = "a", title: str | None = None, **grid: Any
) -> tuple[Figure, list[Axes], float]:
    """Return a new figure outside pyplot, its panels in the order of their letters, and its font.

    `height` is that of the usual size, in inches.
    """
    from matplotlib.figure import Figure

    paper = _paper(size)
    inches = height * paper.width / _paper(None).width * paper.shape or _WIDE_SCREEN * paper.width
    figure = Figure(figsize=(paper.width, inches), layout="constrained")
    _write_title(figure, title, paper.points)
    places = figure.subplot_mosaic(mosaic, **grid)
    panels = [places[letter] for letter in sorted(places)]
    for ax in panels:
        set_fonts(ax, paper.points)
        bare(ax)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, panels, paper.points


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


def _on_log_odds(tables: Mapping[str, Reliability], logit: bool | None) -> bool:  # noqa: FBT001
    """Return whether an axis is in log odds: as asked, else if most predictions are rare."""
    if logit is not None:
        return logit
    fine = tables.coarsen(tables.grid) if isinstance(tables, TableSet) else tables
    rare = sum(rel.count[rel.bins.edges[1:] <= RARE].sum() for rel in fine.values())
    return bool(rare > 0.5 * sum(rel.n for rel in fine.values()))


def _with_log_odds_bins(tables: Mapping[str, Reliability]) -> Mapping[str, Reliability]:
    """Return tables on bins for an axis in log odds, if their grid gives them."""
    if not isinstance(tables, TableSet) or not tables.bins.is_uniform:
        return tables
    return tables.coarsen(log_odds_bins(tables.grid))


def _mosaic(parts: int, columns: int) -> str:
    """Return the places of panels in rows of equal length.

    >>> _mosaic(5, 3)
    'abc;de.'
    """
    rows = -(-parts // columns)
    letters = "abcdefgh"[:parts].ljust(rows * columns, ".")
    return ";".join(letters[k * columns : (k + 1) * columns] for k in range(rows))


def _columns(parts: int, size: Size | None) -> int:
    most = 2 if size == "column" else 4
    return min(most, 3 if parts in (5, 6) else parts)


@naming_the_extra()
def draw_reliability(
    tables: Mapping[str, Reliability],
    *,
    by: str | None = None,
    ordered: bool = False,
    logit: bool | None = None,
    level: float = 0.95,
    size: Size | None = None,
    title: str | None = None,
) -> Figure:
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
    >>> rel = reliability([0, 0.5, 1], [0.1, 0.4, 0.7])
    >>> draw_reliability({"model": rel}, size="column").get_size_inches().round(1)
    array([3.3, 4.2])
    """
    from matplotlib.figure import Figure

    logit = _on_log_odds(tables, logit)
    parts = parts_of(tables, by, ordered=ordered)
    drawn = parts_of(_with_log_odds_bins(tables), by, ordered=ordered) if logit else parts

    def draw(ax: Axes, part: str, *, named: bool) -> None:
        for name, rel in parts[part].items():
            shown = ReliabilityDisplay(drawn[part][name], name=name if named else None, level=level)
            shown.smece = smece_interval(rel, level=level)  # on the bins that were asked for
            shown.plot(ax, logit=logit, legend=named, histogram=named)

    if [*parts] == [""]:
        ax = _diagram_axes(Figure, size, below=True, title=title)
        draw(ax, "", named=True)
        return cast("Figure", ax.figure)
    return _draw_diagrams(parts, draw, size, title)


def _draw_diagrams(
    parts: Mapping[str, Mapping[str, Reliability]],
    draw: Callable[..., None],
    size: Size | None,
    title: str | None,
) -> Figure:
    """Draw a diagram of each part in a panel of its own, all on the same scale."""
    columns = _columns(len(parts), size)
    figure, panels, _ = _panels(size, 6.4, _mosaic(len(parts), columns))
    for ax, part in zip(panels, parts, strict=True):
        ax.grid(visible=False)
        ax.set_anchor("W")
        draw(ax, part, named=False)
        _write_sides(ax, "")
        lines = ax.lines[1:]  # without the diagonal
        _name_panel(ax, f"{part}: SMECE", columns, [str(line.get_label()) for line in lines])
        for line, name in zip(lines, parts[part], strict=True):
            line.set_label(_legend_name(name))  # for the legend of the figure
    low, high = zip(*(ax.get_xlim() for ax in panels), strict=True)
    for ax in panels:
        ax.set(xlim=(min(low), max(high)), ylim=(min(low), max(high)))
    _label_outer(panels, columns, "mean prediction", "mean label")
    _write_figure_legend(figure, title)
    if size != "talk":  # whose height is fixed
        figure.set_layout_engine("compressed")
        _fit_height(figure)
    return figure


def _name_panel(ax: Axes, part: str, columns: int, labels: Sequence[str] = ()) -> None:
    """Write the name of a panel above it, and SMECE of each model from its label."""
    width = 72 * cast("Figure", ax.figure).get_figwidth() / columns - 24  # points
    points = min(0.8 * _points(ax), width / 16)
    name = _wrapped(_legend_name(part), int(width / (0.62 * points)))
    if not labels:
        ax.set_title(name, loc="left", fontsize=points, weight="bold")
        return
    # An empty title keeps the room above, because the width of a legend would shrink the panel.
    lines = len(labels) + name.count("\n")
    ax.set_title("\n" * lines + " ", loc="left", fontsize=points, linespacing=1.3)
    legend_above(
        ax, handles=ax.lines[1:], labels=[each.removeprefix("SMECE ") for each in labels], ncols=1,
        fontsize=points, alignment="left", handlelength=1.5, handletextpad=0.4, labelspacing=0.2,
        title=name, title_fontproperties={"size": points, "weight": "bold"},
    ).set_in_layout(False)  # fmt: skip


def _label_outer(panels: Sequence[Axes], columns: int, x: str, y: str) -> None:
    """Label the axes of all panels together, or those of the only one."""
    if len(panels) == 1:
        panels[0].set(xlabel=x, ylabel=y)
        return
    figure, points = cast("Figure", panels[0].figure), _points(panels[0])
    figure.supxlabel(x, fontsize=points)
    figure.supylabel(y, fontsize=points)
    for k, ax in enumerate(panels):
        ax.set(xlabel="", ylabel="")
        ax.tick_params(labelbottom=k + columns >= len(panels), labelleft=k % columns == 0)


def _write_figure_legend(figure: Figure, title: str | None) -> None:
    """Draw the legend of all panels at the top."""
    points = _points(figure.axes[0])
    figure.legend(
        **_fitted(figure.axes[0], 0.9 * points), loc="outside upper left", frameon=False,
        borderpad=0, alignment="left", title=_title(figure, title, points),
        title_fontproperties={"size": 1.1 * points, "weight": "bold"},
    )  # fmt: skip


def _fit_height(figure: Figure) -> None:
    """Set the height to what diagrams of the figure's width, their legends, and texts need."""
    width = figure.get_figwidth()
    figure.set_size_inches(width, 4 * width)
    beyond = [*figure.legends, *(text for text in figure.texts if not text.get_rotation())]
    for _ in range(3):  # the layout of axes with a fixed aspect converges
        figure.draw_without_rendering()
        boxes = [box for ax in figure.axes if (box := ax.get_tightbbox())]
        heights = [max(box.y1 for box in boxes) - min(box.y0 for box in boxes)]
        heights += [each.get_window_extent().height for each in beyond]
        figure.set_size_inches(width, sum(heights) / figure.dpi + 0.1 * len(heights))
    figure.draw_without_rendering()


def draw_gaps(
    tables: Mapping[str, Reliability],
    *,
    by: str | None = None,
    ordered: bool = False,
    logit: bool | None = None,
    level: float = 0.95,
    size: Size | None = None,
    title: str | None = None,
) -> Figure:
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
    >>> rel = reliability([0, 0.5, 1], [0.1, 0.4, 0.7])
    >>> draw_gaps({"model": rel}).axes[0].get_ylabel()
    'gap: ← too low · too high →'
    """
    logit = _on_log_odds(tables, logit)
    parts = parts_of(_with_log_odds_bins(tables) if logit else tables, by, ordered=ordered)
    columns = _columns(len(parts), size)
    mosaic = _mosaic(len(parts), columns)
    height = 3.9 if len(parts) == 1 else 1.2 + 2.2 * (mosaic.count(";") + 1)
    above = title if len(parts) == 1 else None  # else in the legend of the figure
    figure, panels, points = _panels(size, height, mosaic, above, sharex=True, sharey=True)
    limit = 0.01
    for ax, (part, of_part) in zip(panels, parts.items(), strict=True):
        ax.axhline(0, color="0.3", linewidth=0.9)
        for k, (name, rel) in enumerate(of_part.items()):
            limits = gap_intervals(rel, level=level)
            limit = max(limit, gap_scale(rel.gap, *limits, with_many_rows(rel.count)))
            if logit:
                _use_log_odds(ax, rel, labels=False)
            looks = {"label": _with_level(name, level), **style_of(k)}
            _draw_model_gaps(ax, rel, limits, (k + 1) / (len(of_part) + 1), points, **looks)
        if part:
            _name_panel(ax, part, columns)
    for ax in panels:
        _mark_outside(ax, limit)
    if not logit:
        panels[0].set_xlim(0, 1)
    panels[0].yaxis.set_major_formatter(_signed_tick)
    _label_outer(panels, columns, "prediction", "gap: ← too low · too high →")
    if len(parts) > 1:
        _write_figure_legend(figure, title)
    else:
        legend_above(panels[0])
    return figure


def _draw_model_gaps(
    ax: Axes,
    rel: Reliability,
    limits: GapIntervals,
    place: float,
    points: float,
    *,
    marker: str,
    linestyle: str,  # noqa: ARG001  points have no line
    **looks: Any,
) -> None:
    """Draw the gaps of one model, at a place in each bin where no interval hides another."""
    many, (left, right) = len(rel.bins) > 22, (rel.bins.edges[:-1], rel.bins.edges[1:])
    at = left + (right - left) * place
    if ax.get_xscale() == "logit":
        at = rel.mean_prob
    looks |= {
        "fmt": marker, "markersize": (0.3 if many else 0.55) * points, "markeredgewidth": 0.5,
        "elinewidth": 0.8 if many else 1.3, "markeredgecolor": "white",
    }  # fmt: skip
    several, single = rel.count > 1, rel.count == 1
    reach = np.maximum([rel.gap - limits.low, limits.high - rel.gap], 0)
    ax.errorbar(at[several], rel.gap[several], reach[:, several], **looks)
    if single.any():
        ax.errorbar(at[single], rel.gap[single], alpha=_FAINT, **looks | {"label": "_"})


def gap_scale(
    gap: FloatArray, low: FloatArray, high: FloatArray, known: npt.NDArray[np.bool_]
) -> float:
    """Return the end of a scale of gaps and their intervals, which the known bins set."""
    reach = np.maximum(-low, high)[known].max()
    return float(min(reach, 4 * np.abs(gap[known]).max()))


def _mark_outside(ax: Axes, limit: float) -> None:
    """Set the scale of gaps, and mark those outside it by a caret at the edge."""
    ax.set_ylim(-1.08 * limit, 1.08 * limit)
    for points in [container[0] for container in ax.containers]:
        at, gap = map(np.asarray, points.get_data())
        for outside, sign, caret in ((gap > limit, 1, "^"), (gap < -limit, -1, "v")):
            ax.plot(
                at[outside], np.full(outside.sum(), sign * limit), caret, alpha=_FAINT,
                color=points.get_color(), markersize=points.get_markersize(),
            )  # fmt: skip


def _with_level(name: str, level: float) -> str:
    """Return the name of a model in the legend of a figure that also draws its intervals."""
    return f"{_legend_name(name)}, {100 * level:g}% interval"


def _draw_curve(
    ax: Axes, at: Any, low: Any, value: Any, high: Any, *, color: str, curves: int = 1, **style: Any
) -> None:
    """Draw one of some curves and the band of its interval."""
    ax.fill_between(at, low, high, color=color, alpha=min(0.18, 0.6 / curves), linewidth=0)
    ax.plot(at, value, color=color, **style)


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
    tables: TableSet,
    *,
    by: str | None = None,
    ordered: bool = False,
    level: float = 0.95,
    size: Size | None = None,
    title: str | None = None,
) -> Figure:
    """Draw SMECE and its interval for each number of bins that the grid of the set gives.

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
    figure, (ax,), points = _panels(size, 3.9, title=title)
    numbers = [len(bins) for bins in choices]
    for k, (name, fine) in enumerate(lines.items()):
        found = [smece_interval(fine.coarsen(bins), level=level) for bins in choices]
        _draw_curve(
            ax, numbers, [each.low for each in found], [each.value for each in found],
            [each.high for each in found], **style_of(k), linewidth=1.4,
            markersize=0.5 * points, markeredgecolor="white", markeredgewidth=0.5,
            label=_with_level(name, level), curves=len(lines),
        )  # fmt: skip
    ax.axvline(len(tables.bins), color="0.55", linestyle=":", linewidth=1)
    ax.set(xscale="log", xlabel="number of bins", ylabel="SMECE", xlim=(numbers[0], numbers[-1]))
    ax.set_ylim(bottom=0)
    shown = [k for k in (2, 5, 10, 20, 50, 100, 200) if k <= numbers[-1]]
    ax.set_xticks(shown, [str(k) for k in shown], minor=False)
    ax.set_xticks([], minor=True)
    legend_above(ax)
    return figure


def draw_decision(
    curves: Mapping[str, NetBenefit],
    *,
    differences: Sequence[NetBenefitDifference] = (),
    marked: Sequence[float] = (),
    size: Size | None = None,
    title: str | None = None,
) -> Figure:
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
    shape = (7.2, "a;b;c", (3, 1.3, 1)) if differences else (5.6, "a;b", (3, 1))
    figure, panels, _ = _panels(size, *shape[:2], title, height_ratios=shape[2], sharex=True)
    above, below = panels[0], panels[-1]
    styles = {name: style_of(k) | {"marker": ""} for k, name in enumerate(curves)}
    for name, curve in curves.items():
        order = curve.threshold.argsort()
        at = curve.threshold[order]
        _draw_curve(
            above, at, curve.low[order], curve.value[order], curve.high[order], **styles[name],
            linewidth=1.6, label=_with_level(name, curve.level), zorder=3, curves=len(curves),
        )  # fmt: skip
        below.plot(at, curve.cost[order], **styles[name], linewidth=1.6)
    alike = all(np.allclose(each.treat_all, curve.treat_all) for each in curves.values())
    treat_all = "treat all" if alike else "treat all: thin lines"  # parts of the data differ
    for k, (name, curve) in enumerate(curves.items()):
        order = curve.threshold.argsort()
        if not (alike and k):
            above.plot(
                curve.threshold[order], curve.treat_all[order], linewidth=1.1 if alike else 0.7,
                color="0.45" if alike else styles[name]["color"], label="_" if k else treat_all,
            )  # fmt: skip
    above.axhline(0, color="0.2", linewidth=0.9, linestyle=":", label="treat none")
    for pair in differences:
        order = pair.threshold.argsort()
        _draw_curve(
            panels[1], pair.threshold[order], pair.low[order], pair.value[order], pair.high[order],
            **styles[pair.names[1]], linewidth=1.6,
        )  # fmt: skip
    if differences:
        panels[1].axhline(0, color="0.2", linewidth=0.9)
        panels[1].set_ylabel("first model\nminus other")
    for ax in panels:
        for t in marked:
            ax.axvline(t, color="0.55", linestyle=":", linewidth=1, zorder=1)
    # Treating all falls without limit, so models decide the height.
    top = max(
        0.01, *(float(max(each.value.max(), each.treat_all.max())) for each in curves.values())
    )
    above.set(ylabel="net benefit", ylim=(-0.25 * top, 1.12 * top))
    legend_above(above)
    below.set(ylabel="cost of\nmiscalibration", xlabel="threshold", xlim=(at[0], at[-1]))
    below.set_ylim(bottom=0)
    below.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")
    figure.align_ylabels()
    return figure


def refuse_format(path: Path) -> None:
    """Raise if a figure cannot be saved under this name."""
    if path.suffix.lower() not in (".svg", ".pdf", ".png"):
        message = (
            f"a figure is saved as .svg, .pdf, or .png: got {path.name!r}. Name it "
            f"{path.stem + '.pdf'!r}, for example."
        )
        raise InputError(message)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format that the name ends in."""
    refuse_format(path)
    with written_whole(path) as beside:
        figure.savefig(beside, format=path.suffix.removeprefix(".").lower(), dpi=300)


def draw_watch(
    states: Sequence[WatchState],
    *,
    tolerance: float,
    level: float,
    size: Size | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the states of a `Watch`: SMECE by day, the evidence, and gaps of the worst stream.

    Parameters
    ----------
    states : sequence of WatchState
        What each update returned, in order.
    tolerance, level : float
        Those of the `Watch`.
    size : {"column", "page", "talk"}, optional
        As in `ReliabilityDisplay.plot`.
    title : str, optional
        Title of the figure, before the name of the worst stream.

    Returns
    -------
    Figure
        Three panels. The first shows SMECE of each day, and of all rows so far with its band. The
        second shows the evidence on a log scale with the alarm line. The third shows the gap of
        each bin with its band.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from softcal import Watch, reliability
    >>> watch = Watch()
    >>> states = [watch.update(reliability([0.5, 0.25], [0.4, 0.3])) for _ in range(3)]
    >>> len(draw_watch(states, tolerance=0.02, level=0.95).axes)
    3
    """
    last = states[-1]
    heading = f"{title}: {last.worst.name}" if title else last.worst.name
    grid: dict[str, Any] = {"mosaic": "a;b;c", "height_ratios": (3, 2, 2)}
    if size == "talk":  # the gaps beside the days, because a slide is wide
        grid = {"mosaic": "ac;bc", "height_ratios": (3, 2), "width_ratios": (3, 2)}
    figure, (above, middle, below), points = _panels(size, 6.6, title=heading, **grid)
    # A `Watch` refuses other dates, so every state has a place on an axis that is linear in time.
    at = np.array([cast("Day", day_of(str(state.date))).position for state in states])
    by_name = [{each.name: each for each in state.streams} for state in states]
    shown = [streams.get(last.worst.name) for streams in by_name]  # None before it appeared
    _draw_smece(above, at, shown, tolerance, level)
    middle.sharex(above)
    _draw_evidence(middle, at, states, level)
    most = 5 if size in (None, "page") else 3
    labels = [printable(str(state.date)) for state in states]
    apart = (at[-1] - at[0]) / (most - 0.5) * max(4, *map(len, labels)) / 10  # 10 in a date
    ticks = [0]
    for k, place in enumerate(at):
        if place - at[ticks[-1]] > apart:
            ticks.append(k)
    middle.set_xticks(at[ticks], [labels[k] for k in ticks])
    above.tick_params(labelbottom=False)
    if last.alarm:
        began = next(k for k, state in enumerate(states) if state.date == last.since)
        half = np.diff(at).min() / 2 if at.size > 1 else 0.5
        for ax in (above, middle):
            ax.axvspan(at[began] - half, at[-1] + half, color=VERMILLION, alpha=0.08, linewidth=0)
        above.annotate(
            f"since {last.since}", (1, 1), (-3, -4), xycoords="axes fraction", ha="right",
            textcoords="offset points", va="top", fontsize=0.9 * points, color=VERMILLION,
        )  # fmt: skip
    _draw_stream_gaps(below, last.worst, tolerance)
    return figure


def _draw_smece(
    ax: Axes, at: npt.NDArray[Any], shown: list[StreamState | None], tolerance: float, level: float
) -> None:
    def line(name: str) -> list[float]:
        return [np.nan if each is None else getattr(each, name) for each in shown]

    ax.plot(at, line("smece_new"), "o", color="0.6", markersize=3.5, label="new rows")
    label = f"so far, with its {100 * level:g}% band"
    _draw_curve(ax, at, line("low"), line("smece"), line("high"), color=BLUE, label=label)
    ax.axhline(tolerance, color="0.3", linestyle="--", linewidth=1, label="tolerance")
    new, rows = np.array(line("smece_new")), np.diff(np.nan_to_num(line("n")), prepend=0)
    known = new[with_many_rows(rows)]
    highest = np.nanmax([*known, *line("smece"), 2 * tolerance, 0.01])
    ax.set(ylabel="SMECE", ylim=(0, 1.25 * highest))
    outside = new > 1.25 * highest
    ax.plot(at[outside], np.full(outside.sum(), 1.2 * highest), "^", color="0.6", alpha=_FAINT)
    legend_above(ax)


def _draw_evidence(
    ax: Axes, at: npt.NDArray[Any], states: Sequence[WatchState], level: float
) -> None:
    alarm = -np.log10(1 - level)
    tenths = np.array([state.log_evidence for state in states]) / np.log(10)
    ax.axhline(alarm, color=VERMILLION, linestyle="--", linewidth=1)
    ax.annotate(
        f"alarm at {1 / (1 - level):.4g}", (0, alarm), (3, 2), textcoords="offset points",
        xycoords=ax.get_yaxis_transform(), fontsize=0.9 * _points(ax), color=VERMILLION,
    )  # fmt: skip
    ax.plot(at, tenths, color="black", linewidth=1.4)
    ax.set(ylabel="evidence\n(log10)", ylim=(min(tenths.min(), -0.5), None))
    ax.set_ylim(top=max(tenths.max(), alarm) * 1.15 + 0.3)


def _draw_stream_gaps(ax: Axes, stream: StreamState, tolerance: float) -> None:
    gap, low, high = stream.gap, stream.gap_low, stream.gap_high
    middle = (stream.edges[:-1] + stream.edges[1:]) / 2
    ax.axhspan(-tolerance, tolerance, color="0.9", linewidth=0)
    ax.axhline(0, color="0.3", linewidth=0.8)
    off = (low > tolerance) | (high < -tolerance)
    for chosen, color in ((~off, "0.45"), (off, VERMILLION)):
        reach = np.array([gap - low, high - gap])[:, chosen]
        ax.errorbar(
            middle[chosen], gap[chosen], reach, fmt="o", color=color, markersize=4, linewidth=1.2
        )
    filled = ~np.isnan(gap)
    gap, low, high = gap[filled], low[filled], high[filled]
    if gap.size:
        # The number of rows is not known, but few have wide intervals.
        known = high - low <= max(1.0, (high - low).min())
        _mark_outside(ax, max(tolerance, gap_scale(gap, low, high, known)))
    ax.set(xlim=(0, 1), xlabel="prediction")
    ax.set_ylabel("gap so far\n← too low · too high →")
