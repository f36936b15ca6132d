"""The reliability diagram: its artists show the numbers of the table, without side effects."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import softcal as sc
from softcal._display import clipped
from softcal.datasets import lidc_malignancy
from softcal.plot import draw_bins, draw_decision, draw_gaps, draw_reliability, draw_watch
from softcal.plot.diagram import draw_frame, log_odds_bins
from softcal.plot.figures import lines_of, parts_of
from softcal.plot.sheet import MARKS, Size, style_of
from softcal.report.charts import charts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

Display = sc.ReliabilityDisplay


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    mpl.use("agg")
    yield
    plt.close("all")


@pytest.fixture
def rel(rng: np.random.Generator) -> sc.Reliability:
    """Return a table of 300 soft labels with two of ten bins empty, between 0.4 and 0.6."""
    p = rng.random(300) * 0.4
    p = np.where(rng.random(300) < 0.5, p, 1 - p)
    return sc.reliability(np.clip(p + rng.normal(0, 0.1, 300), 0, 1), p)


@pytest.fixture
def axes() -> Axes:
    """Return axes that are not managed by pyplot."""
    return Figure(figsize=(4, 4)).add_subplot()


def texts(legend: Legend | None) -> list[str]:
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


# Numbers


def test_points_are_bin_means_and_empty_bins_are_omitted(rel: sc.Reliability) -> None:
    shown = rel.plot()
    x, y = shown.line_.get_data()
    np.testing.assert_array_equal(x, rel.mean_prob)
    np.testing.assert_array_equal(y, rel.mean_label)
    assert np.isnan(np.asarray(x, dtype=float)).nonzero()[0].tolist() == [4, 5]


def test_label_intervals_match_gap_intervals(rel: sc.Reliability) -> None:
    shown = rel.plot(level=0.8)
    assert shown.intervals_ is not None
    (bars,) = shown.intervals_[2]
    gap = sc.gap_intervals(rel, level=0.8)
    filled = rel.count > 0
    found = np.array(bars.get_segments())
    assert found.shape == (8, 2, 2)
    np.testing.assert_array_equal(found[:, 0, 0], rel.mean_prob[filled])
    low = np.maximum(rel.mean_prob - gap.high, 0)[filled]
    high = np.minimum(rel.mean_prob - gap.low, 1)[filled]
    np.testing.assert_allclose(found[:, 0, 1], low, atol=1e-15)
    np.testing.assert_allclose(found[:, 1, 1], high, atol=1e-15)


def test_band_follows_diagonal_and_omits_empty_bins(rel: sc.Reliability) -> None:
    shown = rel.plot(consistency=True)
    assert shown.band_ is not None
    paths = [path.vertices for path in shown.band_.get_paths()]
    assert len(paths) == 8
    low, high = sc.consistency_band(rel)
    filled = np.flatnonzero(rel.count)
    for b, vertices in zip(filled, paths, strict=True):
        corners = np.asarray(vertices)
        left, right = rel.bins.edges[b : b + 2]
        assert (corners[:, 0].min(), corners[:, 0].max()) == (left, right)
        at_left = corners[corners[:, 0] == left, 1]
        expected = np.clip([left - high[b], left - low[b]], 0, 1)
        np.testing.assert_allclose([at_left.min(), at_left.max()], expected, atol=1e-15)
    np.testing.assert_array_equal(shown.band_low, np.maximum(rel.mean_prob - high, 0))
    np.testing.assert_array_equal(shown.band_high, np.minimum(rel.mean_prob - low, 1))


def test_the_histogram_counts_rows(rel: sc.Reliability) -> None:
    shown = rel.plot()
    assert shown.histogram_ is not None
    values, edges, _ = shown.histogram_.get_data()
    np.testing.assert_array_equal(values[1::3], rel.count)
    np.testing.assert_array_equal(edges[::3], rel.bins.edges)


def test_histograms_of_several_models_do_not_overlap(rel: sc.Reliability, axes: Axes) -> None:
    bars = []
    for shown in [rel.plot(axes, legend=False) for _ in range(4)]:
        assert shown.histogram_ is not None
        values, edges, _ = shown.histogram_.get_data()
        np.testing.assert_array_equal(values[1::3], rel.count)
        np.testing.assert_array_equal(values[::3] + values[2::3], 0)
        bars.append((np.asarray(edges)[1::3], np.asarray(edges)[2::3]))
    for (_, end), (start, _) in itertools.pairwise(bars):
        np.testing.assert_allclose(end, start, atol=1e-12)
    np.testing.assert_allclose(bars[0][0], rel.bins.edges[:-1])
    np.testing.assert_allclose(bars[-1][1], rel.bins.edges[1:])


def test_legend_shows_smece_interval_bars_and_band(
    rel: sc.Reliability,
) -> None:
    found = sc.smece_interval(rel, level=0.9)
    smece = f"SMECE {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    shown = rel.plot(level=0.9, consistency=True)
    assert shown.smece == found
    assert texts(shown.legend_) == [
        "calibrated", smece, "90% consistency band", "90% interval of the mean label",
    ]  # fmt: skip
    together = rel.plot(name="m", simultaneous=True, consistency=True)
    assert texts(together.legend_)[1:] == [
        f"m: {sc_label(rel)}",
        "95% consistency band\n(simultaneous)",
        "95% interval of the mean label\n(simultaneous)",
    ]
    assert (together.label_high - together.label_low > shown.label_high - shown.label_low).sum() > 5


def sc_label(rel: sc.Reliability) -> str:
    found = sc.smece_interval(rel)
    error = "ECE" if rel.has_hard_labels else "SMECE"
    return f"{error} {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


@pytest.mark.parametrize("name", ["cost $", "$x^2$ and $", "_hidden", "$_{", r"\frac{", "l\nm"])
def test_names_are_shown_as_they_are(rel: sc.Reliability, name: str) -> None:
    shown = rel.plot(name=name)
    shown.figure_.draw_without_rendering()
    label = texts(shown.legend_)[1].replace(r"\$", "$")
    assert label.split() == f"{name}: {sc_label(rel)}".replace("\n", r"\n", 1).split()


def test_a_long_name_is_wrapped_and_the_number_kept_whole(rel: sc.Reliability) -> None:
    lines = str(rel.plot(name="a long name of a model, " * 4).line_.get_label()).splitlines()
    assert lines[-1] == sc_label(rel)
    assert max(map(len, lines)) <= 36


# Axes


def test_parts_can_be_switched_off(rel: sc.Reliability, axes: Axes) -> None:
    shown = rel.plot(axes, intervals=False, histogram=False, legend=False)
    parts = (shown.intervals_, shown.band_, shown.histogram_, shown.legend_, axes.get_legend())
    assert parts == (None,) * 5
    assert not axes.child_axes
    assert not axes.containers
    assert len(axes.lines) == 2
    made = rel.plot(histogram=False)
    assert made.figure_.axes == [made.ax_]


def test_given_axes_are_used_without_pyplot(rel: sc.Reliability, axes: Axes) -> None:
    shown = rel.plot(axes, consistency=True)
    assert shown.ax_ is axes
    assert shown.figure_ is axes.figure
    assert plt.get_fignums() == []
    assert axes.figure.axes == [axes]
    assert shown.histogram_ is not None
    assert shown.histogram_.axes in axes.child_axes


def test_plotting_changes_no_global_state(rel: sc.Reliability) -> None:
    before = dict(mpl.rcParams)
    rel.plot(consistency=True).plot(histogram=False)
    assert dict(mpl.rcParams) == before


def test_models_on_one_axes_differ_by_color_marker_and_line(rel: sc.Reliability) -> None:
    first = rel.plot(name="a", consistency=True)
    others = [rel.plot(first.ax_, name=name, consistency=True) for name in "bcde"]
    lines = [shown.line_ for shown in (first, *others)]
    for style in ("get_color", "get_marker", "get_linestyle"):
        assert len({str(getattr(line, style)()) for line in lines}) >= 4
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 5
    assert len({line.get_marker() for line in lines}) == 5
    labels = texts(others[-1].legend_)
    assert len(labels) == 8  # five models; diagonal, bars, and band once
    assert labels.count("calibrated") == 1
    histograms = {id(shown.histogram_.axes) for shown in (first, *others) if shown.histogram_}
    assert len(histograms) == 1
    assert len(first.figure_.axes) == 1


def test_models_share_a_histogram_strip_within_axes_only(rel: sc.Reliability) -> None:
    left, right = Figure().subplots(1, 2, sharex=True, sharey=True)
    drawn = [rel.plot(ax) for ax in (left, left, right)]
    strips = [shown.histogram_.axes for shown in drawn if shown.histogram_]
    assert strips[0] is strips[1]
    assert strips[2] is not strips[0]
    assert len(left.child_axes) == len(right.child_axes) == 1


def test_there_is_a_style_for_any_number_of_models(rel: sc.Reliability, axes: Axes) -> None:
    options: dict[str, Any] = {"intervals": False, "histogram": False, "legend": False}
    styles = [
        (line.get_color(), line.get_marker())
        for line in (rel.plot(axes, **options).line_ for _ in range(65))
    ]
    assert len(set(styles[:64])) == 64
    assert styles[64] == styles[0]


def test_custom_style_applies_to_all_parts(rel: sc.Reliability, axes: Axes) -> None:
    shown = rel.plot(axes, color="red", marker="*", linestyle=":", consistency=True)
    assert (shown.line_.get_color(), shown.line_.get_marker()) == ("red", "*")
    assert shown.intervals_ is not None
    assert shown.band_ is not None
    assert shown.histogram_ is not None
    red = (1.0, 0.0, 0.0)
    assert tuple(shown.intervals_[2][0].get_color()[0][:3]) == red
    assert tuple(shown.band_.get_facecolor()[0][:3]) == red  # type: ignore[index]
    assert mpl.colors.to_rgb(shown.histogram_.get_facecolor()[:3]) == red
    with pytest.raises(AttributeError, match="colour"):
        rel.plot(axes, colour="red")


def test_legend_is_above_the_axes_if_there_is_room(rel: sc.Reliability) -> None:
    def height(figure: Figure, title: str = "") -> float:
        ax = figure.add_subplot()
        ax.set_title(title)
        shown = rel.plot(ax, histogram=False)
        figure.draw_without_rendering()
        assert shown.legend_ is not None
        return float(shown.legend_.get_window_extent().y0 - ax.bbox.y1)

    assert height(Figure(figsize=(4, 5), layout="constrained")) >= 0
    assert height(Figure()) < 0


@pytest.mark.parametrize("title", ["", "title"])
def test_legend_is_beside_axes_with_a_title_or_a_wide_figure(
    rel: sc.Reliability, title: str
) -> None:
    figure = Figure(figsize=(5, 5) if title else (7, 4), layout="constrained")
    ax = figure.add_subplot()
    ax.set_title(title)
    shown = rel.plot(ax)
    figure.draw_without_rendering()
    assert shown.legend_ is not None
    assert shown.legend_.get_window_extent().x0 > ax.bbox.x1


def test_a_frame_is_drawn_once(axes: Axes) -> None:
    draw_frame(axes)
    axes.set_xlim(0.2, 0.4)
    draw_frame(axes)
    assert len(axes.lines) == 1
    assert axes.get_xlim() == (0.2, 0.4)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_figure_is_saved_in_every_format(rel: sc.Reliability, kind: str) -> None:
    shown = rel.plot(name="$_{", consistency=True)
    file = io.BytesIO()
    shown.figure_.savefig(file, format=kind)
    start = file.getvalue()[:200]
    assert {"pdf": b"%PDF", "svg": b"<svg", "png": b"\x89PNG"}[kind] in start or b"<?xml" in start
    assert len(file.getvalue()) > 5000


SIZES: tuple[Size | None, ...] = (None, "column", "page", "talk")


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_inside_the_figure_and_the_diagram_is_square(
    rel: sc.Reliability, size: Size | None
) -> None:
    shown = rel.plot(name="logistic regression", consistency=True, size=size)
    rel.plot(shown.ax_, name="random forest")
    figure = shown.figure_
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    assert shown.ax_.bbox.width == pytest.approx(shown.ax_.bbox.height)
    assert shown.legend_ is not None
    assert not shown.legend_.get_window_extent().overlaps(shown.ax_.bbox)
    assert shown.histogram_ is not None
    assert shown.histogram_.axes is not None
    assert shown.histogram_.axes.bbox.width == pytest.approx(shown.ax_.bbox.width)


def test_unknown_size_is_refused(rel: sc.Reliability) -> None:
    with pytest.raises(sc.InputError, match="size must be one of column, page, talk: got 'poster'"):
        rel.plot(size="poster")


def test_area_of_markers_is_proportional_to_rows() -> None:
    p = np.repeat([0.05, 0.25, 0.45, 0.95], [600, 200, 199, 1])
    shown = sc.reliability(p / 2, p).plot()
    area = shown.points_.get_sizes()
    assert area[0] == pytest.approx(3 * area[2])
    assert area[9] == 20  # a bin with few rows stays visible


@pytest.mark.parametrize("size", SIZES)
def test_drawn_gaps_are_those_of_the_table(rel: sc.Reliability, size: Size | None) -> None:
    figure = draw_gaps({"a": rel, "b": rel}, size=size)
    (ax,) = figure.axes
    filled = rel.count > 0
    for container, shift in zip(ax.containers, (1, 2), strict=True):
        x, gap = container[0].get_data()
        assert gap == pytest.approx(rel.gap[filled])
        assert x == pytest.approx((rel.bins.edges[:-1] + 0.1 * shift / 3)[filled])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(ax.bbox)


def test_smece_of_each_number_of_bins_is_drawn(rng: np.random.Generator) -> None:
    p, y = rng.uniform(size=(2, 300))
    tables = sc.scan(pd.DataFrame({"y": y, "p": p, "q": p**2}), y_true="y", y_prob=["p", "q"])
    (ax,) = draw_bins(tables, size="talk").axes
    for line, model in zip(ax.lines, ("p", "q"), strict=False):
        bins, smece = map(np.asarray, line.get_data())
        assert set(bins.tolist()) >= {2, 10, 100, 200}
        for k, found in zip(bins, smece, strict=True):
            assert found == pytest.approx(tables.coarsen(int(k))[model].smece)


def test_figure_over_bins_needs_bins_of_equal_width(rng: np.random.Generator) -> None:
    p, y = rng.uniform(size=(2, 30))
    tables = sc.scan(pd.DataFrame({"y": y, "p": p}), y_true="y", y_prob="p", bins=[0, 0.3, 1])
    with pytest.raises(sc.InputError, match=r"these tables have 2 bins of their own\. Scan"):
        draw_bins(tables)


# Few rows


def with_one_more(p: float, y: float, n: int = 1) -> sc.Reliability:
    """Return 3,000 rows below 0.3 with gaps of about 0.02, and n rows elsewhere."""
    rng = np.random.default_rng(1)
    q = rng.uniform(0, 0.3, 3000)
    labels = rng.binomial(3, 0.9 * q) / 3
    return sc.reliability(np.append(labels, [y] * n), np.append(q, [p] * n))


def test_bin_with_one_row_is_faint_without_interval_or_line() -> None:
    shown = with_one_more(0.75, 1.0).plot()
    assert shown.intervals_ is not None
    at = np.array(shown.intervals_[2][0].get_segments())[:, 0, 0]
    assert (at < 0.3).tolist() == [True] * 3
    alphas = np.asarray(shown.points_.get_facecolor())[:, 3]
    assert alphas[:3].tolist() == [1, 1, 1]
    assert alphas[7] < 0.5
    assert np.isnan(shown.line_.get_ydata()[7])  # type: ignore[index]
    two = with_one_more(0.75, 1.0, n=2).plot()
    assert two.intervals_ is not None
    assert len(two.intervals_[2][0].get_segments()) == 4


@pytest.mark.parametrize("n", [1, 5])
def test_few_rows_do_not_set_the_scale_of_gaps(n: int) -> None:
    alone, beside = (
        draw_gaps({"m": rel}) for rel in (with_one_more(0.25, 0), with_one_more(0.75, 1, n))
    )
    limit = alone.axes[0].get_ylim()[1]
    assert 0.02 < limit < 0.1
    assert beside.axes[0].get_ylim()[1] == pytest.approx(limit, rel=0.1)
    carets = [line for line in beside.axes[0].lines if line.get_marker() == "v"]
    (x,) = (x for line in carets for x in np.atleast_1d(line.get_xdata()))
    assert x == pytest.approx(0.75)


def test_only_few_rows_set_the_scale_themselves() -> None:
    rel = sc.reliability([0, 1, 0.5], [0.3, 0.4, 0.9])
    assert draw_gaps({"m": rel}).axes[0].get_ylim()[1] > 0.6


# Words and titles


def test_words_are_on_the_side_of_the_diagonal_that_they_name(rel: sc.Reliability) -> None:
    shown = rel.plot()
    shown.figure_.draw_without_rendering()
    places = {text.get_text(): text.get_position() for text in shown.ax_.texts}
    assert (
        places["predictions too high"][1] < places["predictions too high"][0]
    )  # label < prediction
    assert places["predictions too low"][1] > places["predictions too low"][0]


def two_models(rng: np.random.Generator, **options: Any) -> sc.TableSet:
    p = rng.uniform(size=2000)
    rows = {"p": p, "q": p**2, "y": rng.binomial(3, p) / 3, "site": np.arange(2000) % 8,
            "group": np.arange(2000) // 40}  # fmt: skip
    return sc.scan(rows, y_true="y", y_prob=["p", "q"], **options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("by", [None, "site"])
@pytest.mark.parametrize("draw", [draw_reliability, draw_gaps])
def test_a_title_and_long_names_are_inside_the_figure(
    rng: np.random.Generator, draw: Any, by: str | None, size: Size | None
) -> None:
    names = {"p": "first_" * 10, "q": "second name of sixty letters " * 2}
    tables = two_models(rng, by=["site"]).rename(names)
    figure = draw(tables, by=by, size=size, title="A title of many words " * 5)
    figure.draw_without_rendering()
    found = (*figure.legends, *(ax.get_legend() for ax in figure.axes))
    legends = [each for each in found if each is not None]
    texts = [text for each in legends for text in (*each.get_texts(), each.get_title())]
    written = "".join(text.get_text() for text in (*texts, *figure.texts))
    for expected in ("A title of many words", *map(clipped, names.values())):
        assert "".join(expected.split()) in "".join(written.split())
    boxes = [each.get_window_extent() for each in legends]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    width, height = figure.bbox.size
    for text in (*texts, *figure.texts):
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height


def test_names_that_differ_in_the_middle_alone_are_not_clipped(rng: np.random.Generator) -> None:
    same = "the same twenty letters and more"
    names = {"p": f"{same}, first, {same}", "q": f"{same}, second, {same}"}
    figure = draw_gaps(two_models(rng).rename(names))
    written = ["".join(text.get_text().split()) for text in figure.legends[0].get_texts()]
    assert written == ["".join(f"{name}, 95% interval".split()) for name in names.values()]


def test_a_long_legend_does_not_shrink_the_panel(rng: np.random.Generator) -> None:
    tables = two_models(rng)
    many = {f"a name of a model {k}, of thirty": tables["p"] for k in range(8)}
    heights = []
    for models in (dict(tables), many):
        figure = draw_gaps(models, size="column")
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_window_extent().height)
    assert heights[1] > 0.7 * heights[0]


def test_figure_of_a_watch_names_its_title_and_the_worst_stream() -> None:
    watch = sc.Watch()
    states = [watch.update(sc.reliability([0.5, 0.25], [0.4, 0.3])) for _ in range(3)]
    name = states[-1].worst.name
    for title, expected in ((None, name), ("Weekly", f"Weekly: {name}")):
        figure = draw_watch(states, tolerance=0.02, level=0.95, title=title)
        assert figure.legends[0].get_title().get_text() == expected


# Segments, ordered classes, and groups


def drawn_points(ax: Axes) -> list[Any]:
    return [each.get_offsets() for each in ax.collections if hasattr(each, "get_sizes")]


def test_each_segment_has_a_panel_with_its_tables(rng: np.random.Generator) -> None:
    tables = two_models(rng, by=["site"])
    figure = draw_reliability(tables, by="site")
    assert len(figure.axes) == 8
    for (value, segment), ax in zip(tables.by("site").items(), figure.axes, strict=True):
        legend = ax.get_legend()
        assert legend is not None
        assert legend.get_title().get_text() == f"site = {value}: SMECE"
        assert texts(legend)[0] == sc_label(segment["p"]).removeprefix("SMECE ")
        for points, model in zip(drawn_points(ax), "pq", strict=True):
            expected = np.column_stack([segment[model].mean_prob, segment[model].mean_label])
            np.testing.assert_array_equal(np.ma.filled(points, np.nan), expected)
    assert texts(figure.legends[0])[1:3] == ["p", "q"]
    for ax in figure.axes:  # one color per model in all panels
        assert [line.get_color() for line in ax.lines[1:]] == [style_of(k)["color"] for k in (0, 1)]


def test_more_than_eight_segments_or_lines_are_refused(rng: np.random.Generator) -> None:
    tables = two_models(rng, by=["group", "site"])
    with pytest.raises(sc.InputError, match="at most 8 segments, but group has 50"):
        draw_reliability(tables, by="group")
    with pytest.raises(sc.InputError, match=r"8 parts of 2 models are 16\. Select one model"):
        draw_bins(tables, by="site")
    assert [*lines_of(parts_of(tables.select(["p"]), "site"))] == [f"site = {k}" for k in range(8)]
    with pytest.raises(sc.InputTypeError, match="need a TableSet"):
        draw_gaps(dict(tables), by="site")
    with pytest.raises(sc.InputError, match="not both"):
        draw_gaps(tables, by="site", ordered=True)


def test_each_threshold_of_ordered_classes_has_a_panel(rng: np.random.Generator) -> None:
    shares = rng.dirichlet([1, 1, 1], size=500)
    rows = pd.DataFrame(shares, columns=["p_1", "p_2", "p_3"])
    rows["y"] = [rng.choice([1, 2, 3], p=each) for each in shares]
    label = sc.Classes("y", ordered=True)
    tables = sc.scan(rows, y_true=label, y_prob={"m": "p_*"})
    figure = draw_reliability(tables, ordered=True)
    for (name, rel), ax in zip(tables.cumulative("m").items(), figure.axes, strict=True):
        legend = ax.get_legend()
        assert legend is not None
        assert legend.get_title().get_text() == f"class {name}: ECE"
        assert texts(legend) == [sc_label(rel).removeprefix("ECE ")]
    with pytest.raises(sc.InputError, match="its classes are not ordered"):
        draw_reliability(two_models(rng), ordered=True)


def test_drawn_intervals_account_for_groups(rng: np.random.Generator) -> None:
    group = np.repeat(np.arange(50), 40)
    p = rng.uniform(size=2000)
    y = np.clip(p + rng.normal(0, 0.2, 50)[group], 0, 1)
    rows = {"y": y, "p": p, "group": group}
    grouped = sc.scan(rows, y_true="y", y_prob="p", groups="group")
    alone = sc.scan(rows, y_true="y", y_prob="p")
    heights = []
    for tables in (grouped, alone):
        (ax,) = draw_gaps(tables).axes
        ends = np.array(ax.containers[0][2][0].get_segments())[:, :, 1]
        np.testing.assert_allclose(ends.T, sc.gap_intervals(tables["p"]), atol=1e-12)
        heights.append(ends[:, 1] - ends[:, 0])
    assert (heights[0] > 1.5 * heights[1]).all()


# Rare events


def rare(rng: np.random.Generator, center: float) -> sc.TableSet:
    p = 1 / (1 + np.exp(-rng.normal(center, 1, 20_000)))
    return sc.scan({"p": p, "y": rng.binomial(1, 0.7 * p)}, y_true="y", y_prob="p")


@pytest.mark.parametrize(("center", "scale"), [(-6, "logit"), (-3, "linear")])
def test_axes_are_in_log_odds_if_most_predictions_are_rare(
    rng: np.random.Generator, center: float, scale: str
) -> None:
    tables = rare(rng, center)
    for draw in (draw_reliability, draw_gaps):
        assert draw(tables).axes[0].get_xscale() == scale
        for logit in (True, False):
            axes = draw(tables, logit=logit).axes[0]
            assert axes.get_xscale() == ("logit" if logit else "linear")


def test_log_odds_show_more_bins_and_the_same_smece(rng: np.random.Generator) -> None:
    p = 1 / (1 + np.exp(-rng.normal(-5, 1, 20_000)))
    y = rng.binomial(1, np.where(p < 0.01, 2.5 * p, 0.4 * p))  # gaps that cancel in one of 10 bins
    tables = sc.scan({"p": p, "y": y}, y_true="y", y_prob="p")
    curved, straight = (draw_reliability(tables, logit=logit).axes[0] for logit in (True, False))
    for ax in (curved, straight):
        assert f"p: {sc_label(tables['p'])}" in texts(ax.get_legend())
    drawn = tables.coarsen(log_odds_bins(tables.grid))["p"]
    assert sc_label(drawn) != sc_label(tables["p"])
    (points,) = drawn_points(curved)
    x, label = np.ma.filled(points, np.nan).T
    np.testing.assert_array_equal(x, np.where(np.isnan(label), x, drawn.mean_prob))
    events = (drawn.mean_label > 0) & (drawn.mean_label < 1)
    np.testing.assert_array_equal(label[events], drawn.mean_label[events])
    low, high = curved.get_xlim()
    assert ((x > low) & (x < high)).sum() >= 7
    assert curved.get_ylim() == (low, high)


def test_figures_in_log_odds_are_saved_without_warnings(rng: np.random.Generator) -> None:
    rel = rare(rng, -6)["p"]
    rel.plot(logit=True, consistency=True).figure_.savefig(io.BytesIO(), format="png")


# One list of colors and marks


def test_report_has_the_colors_and_marks_of_figures() -> None:
    names = [f"model {k}" for k in range(8)]
    rel = sc.reliability([0, 0.5, 1], [0.1, 0.4, 0.7])
    (ax,) = draw_reliability(dict.fromkeys(names, rel)).axes
    lines = ax.lines[1:]
    shapes = {mark.marker: mark.shape for mark in MARKS}
    specs = charts(names, [-0.1, 0.5])
    for name in ("diagram", "sweep"):
        found = [layer["encoding"] for layer in specs[name]["layer"] if "encoding" in layer]
        (marks,) = ([each["color"], each["shape"]] for each in found if "shape" in each)
        colors, given = (each["scale"]["range"] for each in marks)
        assert colors == [line.get_color() for line in lines]
        assert given == [shapes[str(line.get_marker())] for line in lines]
    assert len(set(shapes.values())) == len({mark.character for mark in MARKS}) == 8


def test_charts_that_can_be_saved_have_a_legend() -> None:
    specs = charts(["a", "b"], [-0.1, 0.5])
    for name in ("diagram", "contributions", "sweep", "decision"):
        found = [layer["encoding"] for layer in specs[name]["layer"] if "encoding" in layer]
        legends = [
            each["color"].get("legend") for each in found if "field" in each.get("color", {})
        ]
        assert legends
        assert None not in legends


def test_treating_all_is_drawn_for_each_segment() -> None:
    at = np.arange(1, 60) / 100
    same = {
        name: sc.net_benefit([0, 0.5, 1], [0.1, 0.4, p], at) for name, p in (("a", 0.7), ("b", 0.9))
    }
    other = same | {"b": sc.net_benefit([0, 0.5, 0.5], [0.1, 0.4, 0.9], at)}
    for curves, number in ((same, 1), (other, 2)):
        above = draw_decision(curves).axes[0]
        drawn = [np.asarray(line.get_ydata()) for line in above.lines]
        for curve in curves.values():
            assert any(len(y) == 59 and np.allclose(y, curve.treat_all) for y in drawn)
        assert len(above.lines) == 2 + number + 1


# Constructors


def test_from_predictions_accepts_the_arguments_of_reliability(rng: np.random.Generator) -> None:
    y, p, w = rng.random(200), rng.random(200), rng.random(200)
    votes, groups = rng.integers(100, 106, 200), rng.integers(0, 30, 200)
    options: dict[str, Any] = {
        "bins": 4, "sample_weight": w, "n_votes": votes, "groups": groups,
    }  # fmt: skip
    shown = Display.from_predictions(y, p, **options, name="m", level=0.9, simultaneous=True)
    rel = sc.reliability(y, p, **options)
    assert shown.rel == rel
    assert (shown.name, shown.level, shown.simultaneous) == ("m", 0.9, True)
    gap = sc.gap_intervals(rel, level=0.9, simultaneous=True)
    np.testing.assert_array_equal(shown.label_low, np.maximum(rel.mean_prob - gap.high, 0))
    band = sc.consistency_band(rel, level=0.9, simultaneous=True)
    np.testing.assert_array_equal(shown.band_low, np.maximum(rel.mean_prob - band.high, 0))


@pytest.mark.parametrize(
    "model", [LogisticRegression(), RandomForestClassifier(20, random_state=0)]
)
def test_from_estimator_uses_the_second_column(model: Any, axes: Axes) -> None:
    nodules = lidc_malignancy()
    share = nodules["soft_malignant"]
    x = np.column_stack([nodules["prob_rf_all"], nodules["prob_lr_geometry"]])
    model.fit(x[:700], share[:700] > 0.5)
    shown = Display.from_estimator(model, x[700:], share[700:], bins=5, ax=axes)
    assert shown.rel == sc.reliability(share[700:], model.predict_proba(x[700:])[:, 1], bins=5)
    assert shown.name == type(model).__name__
    assert shown.ax_ is axes
    assert Display.from_estimator(model, x, share, name="mine").name == "mine"


def test_estimators_without_two_probabilities_are_refused(rng: np.random.Generator) -> None:
    x, y = rng.random((30, 2)), np.arange(30) % 3
    with pytest.raises(sc.InputTypeError, match=r"LinearRegression has none\. Pass its"):
        Display.from_estimator(LinearRegression().fit(x, y), x, y)
    with pytest.raises(sc.InputError, match=r"got shape \(30, 3\)"):
        Display.from_estimator(LogisticRegression().fit(x, y), x, y)


def test_empty_table_is_refused() -> None:
    with pytest.raises(sc.InputError, match="the table has no rows"):
        Display(sc.Reliability.empty())


def test_few_rows_and_few_bins_are_drawn() -> None:
    for y, p, bins in (([0.5], [0.3], 10), ([0, 1], [0.0, 1.0], 1), ([1, 1], [1.0, 1.0], 3)):
        shown = sc.reliability(y, p, bins=bins).plot(consistency=True)
        shown.figure_.draw_without_rendering()


def test_missing_matplotlib_raises_only_when_plotting() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from softcal import *\n"
        "shown = ReliabilityDisplay(reliability([0.5], [0.4]))\n"
        "print(shown.smece.value)\n"
        "shown.plot()\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert float(result.stdout) == pytest.approx(0.1)
    assert "ModuleNotFoundError" in result.stderr
    assert "pip install matplotlib" in result.stderr
