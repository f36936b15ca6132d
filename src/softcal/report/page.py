"""Write the report as one self-contained HTML file: no network, no server, no other file."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._display import RANGE, clipped, ends, error_name, percent, printable
from softcal._validation.days import day_of
from softcal.cards.card import chance, limit, plain
from softcal.cards.classes import ClassScoreCard
from softcal.cards.parts import Off, class_scores, outer_columns, segment_scores
from softcal.cards.verdict import (
    TOLERANCE,
    TOO_LARGE_TO_LEAVE_OPEN,
    points,
    signed,
    signed_limit,
    verdict,
)
from softcal.exceptions import InputError
from softcal.inference.comparison import compare_pairs
from softcal.inference.gaps import gap_intervals
from softcal.inference.smece import ABOVE_ITS_INTERVAL, smece_interval
from softcal.plot.figures import bin_choices
from softcal.plot.sheet import COLORS
from softcal.report.answers import line_of, next_command, worst_part
from softcal.report.charts import SHAPES, charts, vega_script
from softcal.report.commands import Commands
from softcal.report.costs import decision_panel
from softcal.report.diagrams import class_panel
from softcal.report.recalibration import recalibration_panel, table_panel
from softcal.report.routes import route_panel
from softcal.report.template import own_text, six_digits, write_html
from softcal.table.files import content
from softcal.table.tableset import BOUNDS, MISSING, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from markupsafe import Markup

    from softcal.cards.parts import PartScore
    from softcal.cards.verdict import Verdict
    from softcal.inference.comparison import Comparison
    from softcal.scanning.sample import Sample
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

MAX_MODELS = 8
MAX_SEGMENTS = 200
_SEGMENTS_SHOWN = 20  # the others are folded
_BINS_SHOWN = 5  # of those that stand out; the others are folded
_MOST_CLASSES = 200  # per model that the page lists; the CSV download has all
_MOST_CLASSES_SAVED = 100  # in the tables that a reader can download
_USUAL_LEVEL = 0.95  # of every command
_NEARLY_0 = 1e-6  # the end of the first bin of a grid
_MARKS = {
    "circle": "M0,-5A5,5 0 1 1 0,5A5,5 0 1 1 0,-5Z",
    "square": "M-5,-5H5V5H-5Z",
    "diamond": "M0,-6L6,0L0,6L-6,0Z",
    "triangle-up": "M0,-6L6,5H-6Z",
    "cross": "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "triangle-down": "M0,6L6,-5H-6Z",
    "triangle-left": "M-6,0L5,-6V6Z",
    "triangle-right": "M6,0L-5,-6V6Z",
}


class About(NamedTuple):
    """The title of the page, its source, its label, and the commands it shows."""

    title: str
    source: str
    label: str
    commands: Commands = Commands()  # if empty, the page shows one with placeholders
    notes: tuple[str, ...] = ()  # on how the data were read


class _Model(NamedTuple):
    """One model on the page: its tables on the grid, its verdict, and its color and mark."""

    name: str
    fine: Reliability
    hardened: Reliability | None  # if labels are soft
    verdict: Verdict
    color: str
    mark: str


def refuse_impossible(path: Path, models: int) -> None:
    """Raise if the path is not one of an HTML file, or if there are too many models."""
    if path.suffix.lower() not in ("", ".html", ".htm"):
        message = (
            f"the name of a report must end in .html: got {path.name}. For a PDF, open the report "
            "in a browser and print it to a file."
        )
        raise InputError(message)
    if not 1 <= models <= MAX_MODELS:
        message = (
            f"a report shows 1 to {MAX_MODELS} models: got {models}. Select some, or use "
            "`softcal score`."
        )
        raise InputError(message)


def write_page(
    path: Path,
    tables: TableSet,
    about: About,
    *,
    by: Sequence[str] | None = None,
    level: float = 0.95,
    tolerance: float = TOLERANCE,
    sample: Sample | None = None,
) -> dict[str, Verdict]:
    """Write the report on a set of tables, and return the verdict of each model.

    `by` names the columns of segments to show, by default all. Recalibration is evaluated on the
    sample of the rows; without a sample, a map is fitted to the tables.
    """
    refuse_impossible(path, len(tables.models))
    if not 0 <= tolerance < 1:  # also refuses NaN
        message = f"tolerance must be at least 0 and below 1: got {tolerance!r}."
        raise InputError(message)
    if tables.targets == BOUNDS:
        message = (
            "a report needs labels, but these are known only as intervals: `softcal score` prints "
            "the bounds of SMECE."
        )
        raise InputError(message)
    columns = tables.by_names if by is None else tuple(by)
    for column in columns:
        _refuse_many_segments(tables, column)
    segments = _segments(tables, columns, level)
    panels = {
        kind: class_panel(tables, class_scores(tables, names, level), level) if names else []
        for kind, names in (("class", tables.classes), ("threshold", tables.thresholds))
    }
    parts = _parts_off(segments, panels)
    models = _models(tables, level, tolerance, parts)
    error = error_name(hard_labels=tables.has_hard_labels)
    drawn = _drawn(tables, models, segments, level)
    drawn["decision"] = decision_panel(tables, level)
    drawn["route"] = route_panel(tables, level)
    drawn["classes"] = [
        {"name": part["name"], "rows": [_csv_of_class(row) for row in part["rows"]]}
        for part in panels["class"]
    ]
    _trends(segments)
    said = _said(tables, models, segments, about, level, tolerance)
    # A map of the predicted class's probability alone does not give probabilities of all classes.
    if said["top"]:
        repairs = []
    elif sample is not None:
        repairs = recalibration_panel(sample, tables.models, tables.bins, level, error)
    else:
        fine = {model.name: model.fine for model in models}
        repairs = table_panel(fine, tables.bins, level, error)
    own = len(about.commands.recalibrate) == len(models)
    commands = about.commands.recalibrate if own else said["commands"] * len(models)
    said |= {
        "answers": [
            {
                "part": worst_part(found := model.verdict, off := parts[model.name]),
                "command": next_command(tables, found, off, command, tolerance),
                "line": line_of(tables, model.name, level),
            }
            for model, command in zip(models, commands, strict=True)
        ],
        "extremes": [_extremes(model.fine) for model in models],
        "repairs": repairs, "from_rows": sample is not None,
        "classes": panels["class"], "thresholds": panels["threshold"],
        "class_reach": _reach([each for panel in panels.values() for each in panel]),
        "most_classes": _MOST_CLASSES,
        "scores": ClassScoreCard.of(tables, about.source, (), level) if said["top"] else None,
        "sweep_above": any(
            value > high for model in drawn["models"] for value, _, high, *_ in model["soft"]
        ),
    }  # fmt: skip
    _write(path, said, drawn | {"error": error})
    return {model.name: model.verdict for model in models}


def _refuse_many_segments(tables: TableSet, column: str) -> None:
    found = len(tables.by(column))
    if found > MAX_SEGMENTS:
        message = (
            f"a report shows at most {MAX_SEGMENTS} segments per column, but {column} has {found} "
            "different values. Use a column with fewer values, such as ranges of this one."
        )
        raise InputError(message)


def _parts_off(
    segments: list[dict[str, Any]], panels: dict[str, list[dict[str, Any]]]
) -> dict[str, list[Off]]:
    """Return the segments, classes, and thresholds of each model whose intervals exclude 0."""
    named = [("segment", each["by"], each["models"]) for each in segments]
    named += [(kind, "", panel) for kind, panel in panels.items()]
    out: dict[str, list[Off]] = defaultdict(list)
    for kind, column, models in named:
        for model in models:
            out[model["name"]] += Off.of(kind, model["rows"], column)
    return out


def _models(
    tables: TableSet, level: float, tolerance: float, parts: dict[str, list[Off]]
) -> list[_Model]:
    out = []
    on_grid = dict(tables.coarsen(tables.grid))
    soft = not tables.has_hard_labels
    for i, (name, fine) in enumerate(on_grid.items()):
        hardened = fine.hardened() if soft else None
        found = verdict(
            fine, hardened, tables.bins, level, tolerance=tolerance,
            top_label=tables.targets[0] == TOP, parts=parts[name],
            measure=error_name(hard_labels=not soft),
        )  # fmt: skip
        mark = _MARKS[SHAPES[i % len(SHAPES)]]
        out.append(_Model(name, fine, hardened, found, COLORS[i % len(COLORS)], mark))
    return out


def _write(path: Path, said: dict[str, Any], drawn: dict[str, Any]) -> None:
    """Fill the template with text, the data of the script, and the script itself."""
    from markupsafe import Markup

    decision, route = drawn["decision"], drawn["route"]
    names = [model["name"] for model in drawn["models"]]
    specs = charts(names, decision and decision["ends"], route and route["ends"])
    said |= {
        "decision": decision,
        "route": route,
        "saves_tables": drawn["tables"] is not None,
        "choices": drawn["choices"],
        "start": drawn["choices"].index(len(said["tables"].bins)),
        # Not escaped, because these are ours; `_in_script` keeps data from ending the script.
        "data": Markup(_in_script(drawn)),  # noqa: S704
        "charts": Markup(_in_script(specs)),  # noqa: S704
        "licenses": own_text("vega_licenses.txt"),
        "vega": Markup(vega_script().replace("</script", "<\\/script")),  # noqa: S704
        "script": own_text("page.js"),
    }
    filters = {
        "breakable": _breakable, "clipped": clipped, "command": _command, "listed": _listed,
        "limit": limit, "points": points, "signed": signed, "signed_limit": signed_limit,
        "chance": chance,
    }  # fmt: skip
    write_html(path, "page", said, filters, drawn["error"])


def _said(
    tables: TableSet,
    models: list[_Model],
    segments: list[dict[str, Any]],
    about: About,
    level: float,
    tolerance: float,
) -> dict[str, Any]:
    """Return the texts and numbers of the page that do not depend on the reader's choices."""
    from softcal import __version__

    top = tables.targets[0] == TOP
    pairs = _pairs(tables, level)
    columns = "--label-columns … --pred-columns …" if top else "--label … --pred …"
    return {
        "about": about,
        "tables": tables,
        "top": top,
        "version": __version__,
        "today": datetime.now(UTC).strftime("%Y-%m-%d"),
        "level": percent(level),
        "significance": 1 - level,
        "tolerance": tolerance,
        "leave_open": max(tolerance, TOO_LARGE_TO_LEAVE_OPEN),
        "hardened": _hardened(tables),
        "models": models,
        "above": ABOVE_ITS_INTERVAL,
        "pairs": pairs,
        "pair_reach": max((max(abs(c.low), abs(c.high)) for c, _ in pairs), default=1) or 1,
        "commands": about.commands.recalibrate
        or (f"softcal recalibrate ROWS {columns} -o calibrator.json",),
        "route_command": (about.commands.route or f"softcal route ROWS {columns}")
        + (f" --level {level:g}" if level != _USUAL_LEVEL else ""),
        "segments": segments,
        "repeating": _repeating(models, segments),
        "n_segment_intervals": sum(len(m["rows"]) for each in segments for m in each["models"]),
        "segment_reach": max((_reach(each["models"]) for each in segments), default=1),
        "segments_shown": _SEGMENTS_SHOWN,
        "bins_shown": _BINS_SHOWN,
        "bin_reach": _bin_reach(models),
    }


def _repeating(models: list[_Model], segments: list[dict[str, Any]]) -> list[str]:
    """Return the models that are off as a whole, and in no segment by more than that for sure."""
    return [
        model.name
        for k, model in enumerate(models)
        if segments
        and model.verdict.state == "miscalibrated"
        and all(row.against != "worse" for each in segments for row in each["models"][k]["rows"])
    ]


def _extremes(fine: Reliability) -> str:
    """Return how many predictions are 0 and 1, as far as the table tells.

    All rows of a bin without variance p(1 - p) are 0, or 1.
    """
    zeros, ones = int(fine.count[0]), int(fine.count[-1])
    if len(fine.bins) > 1 and not fine.sums.prob_var[[0, -1]].any():
        return f"{zeros:,} and {ones:,}"
    return f"{zeros:,} and {ones:,} within 0.000001" if fine.bins.edges[1] <= _NEARLY_0 else ""


def _hardened(tables: TableSet) -> str:
    """Return the name of the metric against hardened labels."""
    return f"ECE against {'the majority class' if tables.targets[0] == TOP else 'hardened labels'}"


def _reach(parts: list[dict[str, Any]]) -> float:
    """Return the upper end of the scale for the intervals of all rows."""
    return max((row.high for part in parts for row in part["rows"]), default=1) or 1


def _bin_reach(models: list[_Model]) -> float:
    """Return the upper end of the scale for the gaps of all bins that stand out."""
    means = (bin_.mean for model in models for bin_ in model.verdict.bins)
    return max((max(-mean.low, mean.high) for mean in means), default=1)


def _drawn(
    tables: TableSet, models: list[_Model], segments: list[dict[str, Any]], level: float
) -> dict[str, Any]:
    """Return the data that the script draws and offers for download."""
    choices, whole = bin_choices(tables), _without_segments(tables)
    return {
        "choices": [len(bins) for bins in choices],
        "edges": None if tables.bins.is_uniform else tables.bins.edges.tolist(),
        "hardened": _hardened(tables),
        "models": [
            {
                "name": model.name,
                "bins": [_predictions(model.fine.coarsen(bins)) for bins in choices],
                "soft": [_errors(model.fine.coarsen(bins), level) for bins in choices],
                "hard": model.hardened
                and [_errors(model.hardened.coarsen(bins), level) for bins in choices],
            }
            for model in models
        ],
        "segments": [{"by": each["by"], "models": plain(each["models"])} for each in segments],
        "tables": None if whole is None else content(whole),
    }


def _predictions(rel: Reliability) -> list[list[float]]:
    """Return the filled bins with their rows, shares of the weight, and mean predictions."""
    share = rel.sums.weight / rel.sums.weight.sum()
    here = np.flatnonzero(rel.count)
    columns = (six_digits(each[here]) for each in (share, rel.mean_prob))
    return [here.tolist(), rel.count[here].tolist(), *columns]


def _errors(rel: Reliability, level: float) -> list[Any]:
    """Return SMECE and its interval, and the mean label, gap, and interval of each filled bin."""
    found = smece_interval(rel, level=level)
    columns = (rel.mean_label, rel.gap, *gap_intervals(rel, level=level))
    of_bins = (six_digits(each[rel.count > 0]) for each in columns)
    return [found.value, found.low, found.high, *of_bins]


def _csv_of_class(row: PartScore) -> list[str | float]:
    numbers = (row.share, row.smece, row.debiased, row.low, row.high, row.bias)
    return [row.value, *six_digits(np.array(numbers))]


def _without_segments(tables: TableSet) -> TableSet | None:
    """Return the set without segments and pairs, which would make the page large.

    Groups, raters, and classes are kept on the bins of the report instead of the grid, for the same
    reason. Return None if there are too many classes even so.
    """
    if len(tables.targets) > _MOST_CLASSES_SAVED:
        return None
    fine = not tables.has_owners and len(tables.targets) == 1
    return tables.stored_on(tables.grid if fine else tables.bins)


def _breakable(name: str) -> Markup:
    """Allow a name to break after _ - . and /."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[_\-./])(?=\w)", printable(name))
    return Markup("<wbr>").join(escape(part) for part in parts)


def _command(text: str) -> Markup:
    """Keep each option of a command on one line."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<= )(--?[a-z-]+)(?= )", printable(text))
    options = Markup('<span class="option">{}</span>')
    return Markup("").join(options.format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


def _in_script(data: Any) -> str:
    """Write data as JSON in which no text can end the enclosing script."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _pairs(tables: TableSet, level: float) -> list[tuple[Comparison, float]]:
    if not tables.has_pairs:
        return []
    return compare_pairs([tables.pair(a, b) for a, b in combinations(tables.models, 2)], level)


def _segments(tables: TableSet, columns: Sequence[str], level: float) -> list[dict[str, Any]]:
    """Return the segments of each column and model, and the column that this one divides."""
    outer = outer_columns(tables, columns)
    return [
        {
            "by": column,
            "inside": outer.get(column),
            "models": [{"name": model, "rows": rows} for model, rows in found.items()],
        }
        for column, found in segment_scores(tables, columns, level).items()
    ]


_FEWEST_IN_ORDER = 3


def in_order(values: Sequence[str]) -> dict[str, float]:
    """Return numbers, dates, or ranges in order; nothing if the values have no order.

    Each has a place on a chart that is 360 wide: numbers and dates on an axis that is linear in
    time, ranges in equal steps.

    >>> in_order(["9", "10", "7"])
    {'7': 60.0, '9': 220.0, '10': 300.0}
    >>> in_order(["40 to 60", "below 40", "60 and above"])
    {'below 40': 60.0, '40 to 60': 180.0, '60 and above': 300.0}
    >>> in_order(["a", "b", "c"])
    {}
    """
    given = [value for value in values if value != MISSING]
    if len(given) < _FEWEST_IN_ORDER:
        return {}
    days = {value: day for value in given if (day := day_of(value)) is not None}
    if len(days) == len(given) and len({day.kind for day in days.values()}) == 1:
        order = sorted(days, key=days.__getitem__)
        at = np.array([days[value].position for value in order])
    else:
        starts: dict[str, tuple[float, bool]] = {}
        for value in given:
            found = RANGE.fullmatch(value)
            try:
                start = float(found["start"] if found else value)
            except ValueError:
                return {}
            starts[value] = (start, not (found and found["below"]))
        if not np.isfinite([start for start, _ in starts.values()]).all():
            return {}
        order = sorted(starts, key=starts.__getitem__)
        at = np.arange(len(order))
    step = 360 / len(order)
    places = step / 2 + (360 - step) * (at - at[0]) / max(at[-1] - at[0], np.finfo(float).tiny)
    return dict(zip(order, places.tolist(), strict=True))


def _trends(segments: list[dict[str, Any]]) -> None:
    """Add the largest error that is sure, and the places of ordered segments on a chart."""
    for each in segments:
        order = in_order([row.value for row in each["models"][0]["rows"]])
        nearest = np.diff([*order.values()]).min(initial=360)
        each |= {"order": order, "nearest": float(nearest), "ticks": _ticks(order)}
        each["sure"] = max(row.low for part in each["models"] for row in part["rows"])


def _ticks(order: dict[str, float]) -> list[dict[str, Any]]:
    """Return as many of the values as fit under a chart that is 360 wide, each at its place."""
    width = 6.5 * max(map(len, order), default=0) + 8  # of a text of 10 px, with space beside it
    ticks: list[dict[str, Any]] = []
    for value, x in order.items():
        if not ticks or ticks[-1]["x"] + width <= x <= 370 - width / 2:
            ticks.append({"x": x, "text": value})
    return ticks


def _listed(names: Sequence[str]) -> str:
    """Return the names of classes as text; only the first and last if there are many."""
    first, left_out, last = ends(list(names))
    between = [f"{left_out:,} more"] if left_out else []
    return ", ".join([*first, *between, *last])
