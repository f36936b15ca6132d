"""A figure that knows its size, panels, title, and legend, and the styles of models."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

import numpy as np

from softcal._display import clipped, printable
from softcal._io import written_whole
from softcal._optional import naming_the_extra
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

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

FAINT = 0.35
"""The opacity of what few rows show."""

Size = Literal["column", "page", "talk"]


class Paper(NamedTuple):
    """The width of a figure in inches, its height as a share of the usual one, and its font."""

    width: float
    shape: float
    points: float


# A slide shows a figure of 6.4 inches at about twice its size, so 10 points become 20.
_SIZES = {
    None: Paper(6.4, 1.0, 10.0), "column": Paper(3.3, 1.25, 8.0), "page": Paper(6.9, 0.9, 9.0),
    "talk": Paper(6.4, 0.0, 10.0),
}  # fmt: skip
WIDE_SCREEN = 9 / 16
_USUAL_LINES = 4  # of the legend of a figure, for which its height has room


def paper_of(size: Size | None) -> Paper:
    """Return the paper of a size."""
    if size not in _SIZES:
        message = f"size must be one of {', '.join(get_args(Size))}: got {size!r}."
        raise InputError(message)
    return _SIZES[size]


def style_of(k: int) -> dict[str, Any]:
    """Return the color, marker, and line of model number k, all different from k - 1."""
    return {
        "color": COLORS[k % len(COLORS)],
        # After all colors, shifted by one, so that all pairs appear.
        "marker": MARKS[(k + k // len(COLORS)) % len(MARKS)].marker,
        "linestyle": [*LINES][k % len(LINES)],
    }


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


# Text


def legend_name(name: str) -> str:
    """Return a name for a legend: a dollar would start a formula, and _ at its start hides it."""
    name = printable(name).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the name of each model in a legend: clipped, unless two would then be the same.

    >>> first, second = "resnet_152_finetuned_on_chest_ct_scans", "logistic regression"
    >>> [*short_names([first, second]).values()]
    ['resnet_152_finetuned…st_ct_scans', 'logistic regression']
    """
    short = {name: clipped(name) for name in names}
    often = Counter(short.values())
    return {name: each if often[each] == 1 else name for name, each in short.items()}


def wrapped(text: str, widest: float) -> str:
    """Return a text in lines of at most so many characters."""
    lines = (textwrap.wrap(line, int(widest), drop_whitespace=False) for line in text.split("\n"))
    return "\n".join(line for parts in lines for line in parts)


def wrapped_title(figure: Figure, title: str | None, points: float) -> str:
    """Return a title in as many lines as it needs."""
    return wrapped(legend_name(title or ""), figure.get_figwidth() * 72 / (0.72 * points))


def bare(ax: Axes) -> None:
    """Hide the top and right sides of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def set_fonts(ax: Axes, points: float) -> None:
    """Set the font size of axis labels and ticks; the legend follows that of the axis labels."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_fontsize(points)
        axis.get_offset_text().set_fontsize(0.9 * points)
    ax.tick_params(labelsize=0.9 * points)


def points_of(ax: Axes) -> float:
    """Return the font size of the axis labels, which other text follows."""
    return float(ax.yaxis.label.get_fontsize())


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes are in."""
    return cast("Figure", ax.get_figure(root=True))


# Legends


def legend_above(ax: Axes, **options: Any) -> Legend:
    """Draw the legend above the axes, where it covers no data."""
    options = _fitted(ax, 0.9 * points_of(ax), left=45) | options
    return ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderpad=0, **options)


def _fitted(ax: Axes, points: float, left: float = 0) -> dict[str, Any]:
    """Return the entries of a legend in lines and columns that fit the figure, from `left` on."""
    handles, labels = ax.get_legend_handles_labels()
    room = 72 * figure_of(ax).get_figwidth() - left - 5 * points
    labels = [wrapped(label, room / (0.62 * points)) for label in labels]
    widest = max(len(line) for label in labels for line in label.split("\n"))
    ncols = int(np.clip(room // (points * (0.58 * widest + 4)), 1, 4))
    return {"handles": handles, "labels": labels, "ncols": ncols, "fontsize": points}


# Figures


class Sheet:
    """A new figure outside pyplot, with panels of the same style.

    Parameters
    ----------
    size : {"column", "page", "talk"} or None
        The size of the figure.
    title : str or None
        The title, above the legend.
    height : float
        The height of a figure of the usual size, in inches.
    parts : int
        The number of panels, in rows of equal length; `columns` is that length.
    **grid
        Arguments of `subplot_mosaic`; `mosaic` for panels in another order.
    """

    @naming_the_extra()
    def __init__(
        self, size: Size | None, title: str | None, height: float, parts: int = 1, **grid: Any
    ) -> None:
        from matplotlib.figure import Figure

        self._title, paper = title, paper_of(size)
        self.points, self._is_slide = paper.points, size == "talk"
        self.columns = columns_of(size, parts)
        inches = height * paper.width / paper_of(None).width * paper.shape
        self.figure = Figure(
            figsize=(paper.width, inches or WIDE_SCREEN * paper.width), layout="constrained"
        )
        places = self.figure.subplot_mosaic(**{"mosaic": mosaic(parts, self.columns)} | grid)
        self.panels: list[Axes] = [places[letter] for letter in sorted(places)]
        for ax in self.panels:
            set_fonts(ax, self.points)
            bare(ax)
            ax.grid(alpha=0.25, linewidth=0.6)
            ax.set_axisbelow(True)

    def name(self, ax: Axes, part: str, labels: Sequence[str] = ()) -> None:
        """Write the name of a part above its panel, and the labels of its lines if given."""
        width = 72 * self.figure.get_figwidth() / self.columns - 24  # points
        points = min(0.8 * self.points, width / 16)
        name = wrapped(legend_name(part), width / (0.62 * points))
        if not labels:
            ax.set_title(name, loc="left", fontsize=points, weight="bold")
            return
        # An empty title keeps the room above, because the width of a legend would shrink the panel.
        lines = len(labels) + name.count("\n")
        ax.set_title("\n" * lines + " ", loc="left", fontsize=points, linespacing=1.3)
        legend_above(
            ax, handles=ax.lines[1:], labels=labels, ncols=1, fontsize=points, alignment="left",
            handlelength=1.5, handletextpad=0.4, labelspacing=0.2, title=name,
            title_fontproperties={"size": points, "weight": "bold"},
        ).set_in_layout(False)  # fmt: skip

    def finish(self, x: str = "", y: str = "") -> Figure:
        """Label the axes of all panels together if asked, and draw the title and the legend."""
        if len(self.panels) == 1:
            self.panels[0].set(xlabel=x, ylabel=y)
        elif x:
            self.figure.supxlabel(x, fontsize=self.points)
            self.figure.supylabel(y, fontsize=self.points)
            for k, ax in enumerate(self.panels):
                ax.set(xlabel="", ylabel="")
                below = k + self.columns >= len(self.panels)
                ax.tick_params(labelbottom=below, labelleft=k % self.columns == 0)
        title = wrapped_title(self.figure, self._title, self.points)
        legend = self.figure.legend(
            **_fitted(self.panels[0], 0.9 * self.points), loc="outside upper left", frameon=False,
            borderpad=0, alignment="left", title=title,
            title_fontproperties={"size": 1.1 * self.points, "weight": "bold"},
        )  # fmt: skip
        if not self._is_slide:  # lines of a long legend do not shrink the panels
            self.figure.draw_without_rendering()
            usual = _USUAL_LINES * 1.4 * self.points
            more = legend.get_window_extent().height / self.figure.dpi - usual / 72
            self.figure.set_figheight(self.figure.get_figheight() + max(more, 0))
        return self.figure


def columns_of(size: Size | None, parts: int) -> int:
    """Return the number of columns of panels; a slide is wide, so it has as many as fit."""
    alike = 3 if parts in (5, 6) and size != "talk" else parts  # rows of about the same length
    return min(2 if size == "column" else 4, alike)


def mosaic(parts: int, columns: int) -> str:
    """Return the places of panels in rows of equal length.

    >>> mosaic(5, 3)
    'abc;de.'
    """
    rows = -(-parts // columns)
    letters = "abcdefgh"[:parts].ljust(rows * columns, ".")
    return ";".join(letters[k * columns : (k + 1) * columns] for k in range(rows))


def fit_height(figure: Figure) -> None:
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


ENDS = ("low", "value", "high")
"""The names of a number and its limits, in the order of `draw_curve`."""


def draw_curve(
    ax: Axes, at: Any, low: Any, value: Any, high: Any, *, color: str, curves: int = 1, **style: Any
) -> None:
    """Draw one of some curves and the band of its interval."""
    ax.fill_between(at, low, high, color=color, alpha=min(0.18, 0.6 / curves), linewidth=0)
    ax.plot(at, value, color=color, **style)


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
