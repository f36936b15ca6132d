"""The charts of the report as Vega-Lite specifications, made with Altair.

The script of the page passes data to them. Field names are fixed (`model`, `x`, ...); names from
the data are only values. The script replaces "SMECE" and "label" in titles if the reader chooses
hardened labels.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from softcal._display import HEAD, LONGEST_NAME, TAIL
from softcal._io import written_whole
from softcal.exceptions import InputError
from softcal.plot.sheet import COLORS, LINES, MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

SHAPES = [mark.shape for mark in MARKS]


def charts(
    models: list[str], net_benefit: list[float] | None = None, risk: list[float] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the specification of each chart, by the id of its element on the page.

    `net_benefit` and `risk` hold the ends of the axes of the decision curves and the risk-coverage
    curves; without them that chart is left out.
    """
    found = {
        "diagram": _diagram(models),
        "histogram": _histogram(models),
        "contributions": _contributions(models),
        "sweep": _sweep(models),
    }
    if net_benefit is not None:
        found["decision"] = _decision(models, net_benefit)
    return found if risk is None else found | {"route": _route(models, risk)}


def _finished(chart: Any, height: int) -> dict[str, Any]:
    """Return a specification that fills its element at any screen width."""
    fitted = chart.properties(
        width="container", height=height, autosize=alt.AutoSizeParams(type="fit-x", resize=True)
    ).configure(
        background="transparent",
        font="inherit",
        view={"stroke": None},
        axis={
            "gridColor": "#8884", "domainColor": "#888", "tickColor": "#888", "labelFontSize": 12,
            "titleFontSize": 12.5, "titleFontWeight": "normal", "titlePadding": 8,
        },
    )  # fmt: skip
    spec: dict[str, Any] = fitted.to_dict(validate=False)  # tests validate them
    return spec


def _styled(
    channel: Any, models: list[str], styles: Sequence[Any], *, legend: bool = True, **looks: Any
) -> Any:
    """Return a channel that shows the model, in the legend above the chart too.

    Channels of the same models share one legend. It is part of a chart that a reader saves. Names
    are clipped as in cards, to fit a phone; the tables have whole names.
    """
    given = alt.Legend(
        orient="top", columns=1, title=None, labelFontSize=12, labelLimit=alt.ExprRef("width - 30"),
        labelExpr=f"length(datum.label) > {LONGEST_NAME} ? slice(datum.label, 0, {HEAD}) + '…' "
        f"+ slice(datum.label, -{TAIL}) : datum.label",
        symbolOpacity=1, **looks,
    )  # fmt: skip
    styles = [styles[k % len(styles)] for k in range(len(models))]
    scale = alt.Scale(domain=models, range=styles)
    return channel("model:N", scale=scale, legend=given if legend else None)


def _color(models: list[str], *, legend: bool = True) -> alt.Color:
    color: alt.Color = _styled(alt.Color, models, COLORS, legend=legend)
    return color


def _shape(models: list[str]) -> alt.Shape:
    shape: alt.Shape = _styled(alt.Shape, models, SHAPES)
    return shape


_SIDES: tuple[tuple[Any, ...], ...] = (
    ("predictions too low", "left", "top", "6", "6"),
    ("predictions too high", "right", "bottom", "width - 6", "height - 6"),
)
_UNIT = alt.Scale(domain=[0, 1], nice=False)
_LEFT = 46  # the width of the y axis, so that all charts align
_BIN_TOOLTIP = [
    alt.Tooltip("model:N", title="model"),
    alt.Tooltip("range:N", title="predictions"),
    alt.Tooltip("rows:Q", title="rows", format=","),
    alt.Tooltip("x:Q", title="mean prediction", format=".3f"),
    alt.Tooltip("y:Q", title="mean label", format=".3f"),
    alt.Tooltip("gap:Q", title="gap", format="+.3f"),
    alt.Tooltip("interval:N", title="interval of the gap"),
]


def _prediction_axis(title: str | None = "prediction") -> alt.X:
    axis = alt.Axis(title=title, tickCount=6, format=".1f")
    return alt.X("x:Q", scale=_UNIT, axis=axis)


def _diagram(models: list[str]) -> dict[str, Any]:
    diagonal = (
        alt.Chart(alt.NamedData("diagonal"))
        .mark_line(strokeDash=[5, 4], color="#888", strokeWidth=1.2, tooltip=None)
        .encode(x=alt.X("x:Q", scale=_UNIT), y=alt.Y("y:Q", scale=_UNIT))
    )
    bins = alt.Chart(alt.NamedData("bins"))
    x = _prediction_axis("mean prediction in the bin")
    y = alt.Y(
        "y:Q", scale=_UNIT,
        axis=alt.Axis(
            title="mean label in the bin", tickCount=6, format=".1f", minExtent=_LEFT,
            maxExtent=_LEFT,
        ),
    )  # fmt: skip
    color = _color(models)
    line = bins.mark_line(strokeWidth=1.2, opacity=0.45).encode(x=x, y=y, color=color)
    several = alt.datum.rows > 1  # one row says little: its point is faint, without a bar
    bars = (
        bins.mark_rule(strokeWidth=1.6, opacity=0.75)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
        .transform_filter(several)
    )
    area = alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[45, 420]), legend=None)
    points = bins.mark_point(filled=True).encode(
        x=x, y=y, color=color, shape=_shape(models), size=area, tooltip=_BIN_TOOLTIP,
        opacity=alt.when(several).then(alt.value(1)).otherwise(alt.value(0.35)),
    )  # fmt: skip
    sides = alt.layer(
        *(
            alt.Chart(alt.NamedData("diagonal"))
            .transform_filter(alt.datum.x == 0)
            .mark_text(text=text, align=align, baseline=baseline, color="#888", fontSize=12)
            .encode(x=alt.value(alt.ExprRef(at)), y=alt.value(alt.ExprRef(top)))
            for text, align, baseline, at, top in _SIDES
        )
    )
    return _finished(alt.layer(diagonal, sides, line, bars, points), 400)


def _histogram(models: list[str]) -> dict[str, Any]:
    chart = (
        alt.Chart(alt.NamedData("bins"))
        .mark_rect(opacity=0.6)
        .encode(
            x=alt.X("start:Q", scale=_UNIT, axis=alt.Axis(title="prediction", tickCount=6)),
            x2="stop:Q",
            y2=alt.datum(0),
            y=alt.Y(
                "share:Q",
                axis=alt.Axis(
                    title="share of rows", tickCount=3, format=".0%", minExtent=_LEFT,
                    maxExtent=_LEFT,
                ),
            ),
            color=_color(models, legend=False),  # the diagram above has it
            tooltip=_BIN_TOOLTIP[:3],
        )
    )  # fmt: skip
    return _finished(chart, 90)


def _contributions(models: list[str]) -> dict[str, Any]:
    zero = alt.Chart(alt.NamedData("diagonal")).mark_rule(color="#888").encode(y="zero:Q")
    bars = (
        alt.Chart(alt.NamedData("bins"))
        .mark_rect(opacity=0.85)
        .encode(
            x=alt.X("start:Q", scale=_UNIT, axis=alt.Axis(title="prediction", tickCount=6)),
            x2="stop:Q",
            y2=alt.datum(0),
            y=alt.Y(
                "part:Q",
                axis=alt.Axis(
                    title=["part of SMECE", "← too low · too high →"],
                    format="+.3~f", tickCount=5, minExtent=_LEFT,
                ),
            ),
            color=_color(models),
            tooltip=[
                *_BIN_TOOLTIP, alt.Tooltip("part:Q", title="contribution to SMECE", format="+.4f"),
            ],
        )
    )  # fmt: skip
    return _finished(alt.layer(zero, bars), 220)


def _sweep(models: list[str]) -> dict[str, Any]:
    curve = alt.Chart(alt.NamedData("sweep"))
    x = alt.X(
        "bins:Q", scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(title="number of bins", values=[2, 5, 10, 20, 50, 100, 200], format="d"),
    )  # fmt: skip
    y = alt.Y("smece:Q", axis=alt.Axis(title="SMECE", tickCount=5, minExtent=_LEFT))
    color = _color(models)
    band = curve.mark_area(opacity=0.15).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
    line = curve.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=color)
    points = curve.mark_point(filled=True, size=36).encode(
        x=x, y=y, color=color, shape=_shape(models),
        tooltip=[
            alt.Tooltip("model:N", title="model"),
            alt.Tooltip("bins:Q", title="bins"),
            alt.Tooltip("smece:Q", title="SMECE", format=".4f"),
            alt.Tooltip("interval:N", title="interval"),
        ],
    )  # fmt: skip
    chosen = (
        alt.Chart(alt.NamedData("chosen")).mark_rule(strokeDash=[3, 3], color="#888").encode(x=x)
    )
    return _finished(alt.layer(chosen, band, line, points), 240)


def _lines(models: list[str], *gray: str) -> tuple[alt.Color, alt.StrokeDash]:
    """Return the colors and dashes of the lines of models, and of a gray one."""
    dashes, all_names = [*LINES.values()], [*models, *gray]
    looks: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2}
    colors = [COLORS[k % len(COLORS)] for k in range(len(models))]
    patterns = [dashes[k % len(dashes)] for k in range(len(models))]
    color = _styled(alt.Color, all_names, [*colors, *["#888"] * len(gray)], **looks)
    dash = _styled(alt.StrokeDash, all_names, [*patterns, *dashes[:1] * len(gray)], **looks)
    return color, dash


def _decision(models: list[str], ends: list[float]) -> dict[str, Any]:
    x = alt.X(
        "threshold:Q", scale=alt.Scale(nice=False),
        axis=alt.Axis(title="threshold", format=".0%", tickCount=8, labelSeparation=6),
    )  # fmt: skip
    y = alt.Y(
        "value:Q", scale=alt.Scale(domain=ends),
        axis=alt.Axis(title="net benefit", tickCount=5, minExtent=_LEFT),
    )  # fmt: skip
    curve = alt.Chart(alt.NamedData("decision"))
    color, dash = _lines(models, "treat all")
    band = curve.mark_area(opacity=0.15, clip=True).encode(
        x=x, y=alt.Y("low:Q"), y2="high:Q", color=color
    )
    line = curve.mark_line(strokeWidth=1.9, clip=True).encode(
        x=x, y=y, color=color, strokeDash=dash
    )
    everyone = alt.Chart(alt.NamedData("everyone"))
    all_rows = everyone.mark_line(strokeWidth=1.2, clip=True).encode(
        x=x, y=y, color=alt.datum("treat all")
    )
    zero = alt.Chart(alt.NamedData("diagonal")).mark_rule(color="#888").encode(y="zero:Q")
    chosen = (
        alt.Chart(alt.NamedData("threshold"))
        .mark_rule(strokeDash=[3, 3], color="#888", strokeWidth=1.4)
        .encode(x=x)
    )
    return _finished(alt.layer(zero, chosen, band, all_rows, line), 260)


def _route(models: list[str], ends: list[float]) -> dict[str, Any]:
    x = alt.X(
        "share:Q", scale=_UNIT,
        axis=alt.Axis(
            title="rows accepted, the surest first", format=".0%", tickCount=6, labelSeparation=6
        ),
    )  # fmt: skip
    y = alt.Y(
        "risk:Q", scale=alt.Scale(domain=ends),
        axis=alt.Axis(title="people who disagree", format="~%", tickCount=5, minExtent=_LEFT),
    )  # fmt: skip
    color, dash = _lines(models)
    curve = alt.Chart(alt.NamedData("route"))
    band = curve.mark_area(opacity=0.15, clip=True).encode(
        x=x, y=alt.Y("low:Q"), y2="high:Q", color=color
    )
    line = curve.mark_line(strokeWidth=1.9).encode(x=x, y=y, color=color, strokeDash=dash)
    marks = [
        alt.Chart(alt.NamedData("rules"))
        .transform_filter(alt.datum.kind == kind)
        .mark_point(size=110, strokeWidth=2, opacity=1, filled=filled)
        .encode(
            x=x, y=y, color=color,
            tooltip=[
                alt.Tooltip("model:N", title="model"),
                alt.Tooltip("kind:N", title="by"),
                alt.Tooltip("share:Q", title="rows accepted", format=".1%"),
                alt.Tooltip("risk:Q", title="people who disagree", format=".1%"),
            ],
        )
        for kind, filled in (("the rule", True), ("hardened labels", False))
    ]  # fmt: skip
    limit = (
        alt.Chart(alt.NamedData("limit"))
        .mark_rule(strokeDash=[3, 3], color="#888", strokeWidth=1.4, clip=True)
        .encode(y=y)
    )
    return _finished(alt.layer(limit, band, line, *marks), 260)


_NEEDED = "window.vegaEmbed = vegaEmbed;"
_USUAL = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")


def vega_script() -> str:
    """Return the script that draws the charts, cached in a file.

    vl-convert takes three seconds to make the script, longer than the rest of a report.
    """
    import vl_convert

    with suppress(OSError, UnicodeError, RuntimeError):  # RuntimeError without a home directory
        return _cached().read_text(encoding="utf-8")
    script: str = vl_convert.javascript_bundle(_NEEDED)
    # If it cannot be cached, the next report makes it again.
    with suppress(InputError, RuntimeError), written_whole(_cached()) as path:
        path.write_text(script, encoding="utf-8")
    return script


def _cached() -> Path:
    """Return the path of the file in the user's cache directory."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / _USUAL
    return Path(cache) / "softcal" / f"vega-embed-{version('vl-convert-python')}.js"
