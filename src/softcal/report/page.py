"""Write the report as one self-contained HTML file: no network, no server, no other file."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._display import RANGE, ends, printable
from softcal._io import written_whole
from softcal._validation.days import day_of
from softcal.exceptions import InputError
from softcal.inference.comparison import compare_pairs
from softcal.inference.gaps import gap_intervals
from softcal.inference.ordinal import ORDERED_METRICS, cumulative_smece_interval, score_interval
from softcal.inference.smece import ABOVE_ITS_INTERVAL, smece_interval
from softcal.plot import COLORS, bin_choices
from softcal.report.charts import SHAPES, charts, vega_script
from softcal.report.classes import MOST_ROWS, class_panel, surest
from softcal.report.costs import decision_panel
from softcal.report.sample import recalibration_panel, table_panel
from softcal.report.verdict import (
    TOLERANCE,
    Part,
    chance,
    criterion,
    limit,
    percent,
    signed,
    signed_limit,
    verdict,
)
from softcal.table.files import content
from softcal.table.tableset import BOUNDS, MISSING, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from markupsafe import Markup

    from softcal._validation.inputs import FloatArray
    from softcal.inference.ordinal import ItemMetric
    from softcal.inference.smece import Interval
    from softcal.report.verdict import Verdict
    from softcal.scanning.sample import Sample
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

MAX_MODELS = 8
MAX_SEGMENTS = 200
_SEGMENTS_SHOWN = 20  # the others are folded
_BINS_SHOWN = 5  # of those that stand out; the others are folded
_MOST_CLASSES_SAVED = 100  # in the tables that a reader can download
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
    """The title of the page, its source, its label, and the commands that recalibrate.

    A command names the file of the rows, or `ROWS` if this file is not known.
    """

    title: str
    source: str
    label: str
    commands: tuple[str, ...] = ()  # if empty, the page shows one with placeholders
    apply: tuple[str, ...] = ()  # the same
    notes: tuple[str, ...] = ()  # on how the data were read


class _Model(NamedTuple):
    """One model on the page: its tables on the grid, its verdict, and its color and mark."""

    name: str
    fine: Reliability
    hardened: Reliability | None  # if labels are soft
    verdict: Verdict
    color: str
    mark: str


def commands_of(
    tables: TableSet,
    data: str,
    class_label: str | None = None,
    labeled: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Return the commands that recalibrate each model of a set.

    `class_label` is the option for the labels of many classes. A set does not store whether these
    were shares or names, so without the option there may be no commands. `labeled` are the
    options for labels from votes, because a set does not store the columns of votes.
    """
    label, pred = "--label", "--pred"
    if tables.targets[0] == TOP:
        if class_label is None and tables.about.votes != tables.about.label:
            return ()
        label, pred = class_label or "--vote-columns", "--pred-columns"
    elif labeled is None and tables.about.votes == tables.about.label:
        return ()
    options = [label, tables.about.label] if labeled is None else [*labeled]
    if tables.about.weight is not None:
        options += ["--weight", tables.about.weight]
    if tables.about.group is not None:
        options += ["--group", tables.about.group]
    models = tables.models
    saved = [f"calibrator_{k}.json" for k in range(1, len(models) + 1)]
    return tuple(
        f"softcal recalibrate {data} {shlex.join([*options, pred, model, '-o', output])}"
        for model, output in zip(
            models, saved if len(models) > 1 else ["calibrator.json"], strict=True
        )
    )


def apply_commands(models: Sequence[str], data: str) -> tuple[str, ...]:
    """Return the commands that apply what `commands_of` saves to the rows of a file."""
    numbers = [f"_{k}" for k in range(1, len(models) + 1)] if len(models) > 1 else [""]
    return tuple(
        f"softcal apply calibrator{k}.json {data} "
        f"{shlex.join(['--pred', model, '-o', f'recalibrated{k}.csv'])}"
        for model, k in zip(models, numbers, strict=True)
    )


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
    sample of the rows, and omitted without a sample.
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
    classes = class_panel(tables, tables.classes, level) if tables.classes else []
    thresholds = class_panel(tables, tables.thresholds, level) if tables.ordered else []
    parts = _parts_off(segments, {"class": classes, "threshold": thresholds})
    models = _models(tables, level, tolerance, parts)
    drawn_segments = [{"by": each["by"], "models": list(each["models"])} for each in segments]
    _trends(segments, models)
    panel: list[dict[str, Any]] = []
    # A map of the predicted class's probability alone does not give probabilities of all classes.
    top = tables.targets[0] == TOP
    if sample is not None and not top:
        panel = recalibration_panel(sample, tables.models, tables.bins, level)
    fitted = []
    if sample is None and not top:
        fitted = table_panel({model.name: model.fine for model in models}, tables.bins, level)
    said = _said(tables, models, segments, about, level, tolerance)
    said["extremes"] = _extremes(models, sample)
    said |= {
        "repairs": panel, "repair_reach": _reach(panel), "from_rows": sample is not None,
        "table_repairs": fitted,
        "classes": classes, "class_reach": _reach([*classes, *thresholds]),
        "most_classes": MOST_ROWS, "thresholds": thresholds,
        "cumulative": _cumulative(tables, level) if thresholds else [],
        "item_scores": _item_scores(tables, level),
    }  # fmt: skip
    said["decision"] = decision_panel(tables, level, sample)
    drawn = _drawn(tables, models, drawn_segments, level)
    drawn["decision"] = said["decision"]
    said["sweep_above"] = any(
        value > high for model in drawn["models"] for value, _, high, *_ in model["soft"]
    )
    drawn["classes"] = [
        {"name": part["name"], "rows": [_six_digits(row) for row in part["rows"]]}
        for part in classes
    ]
    page = _page(said, drawn)
    with written_whole(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="backslashreplace")
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
) -> dict[str, list[Part]]:
    """Return the segments, classes, and thresholds of each model whose intervals exclude 0."""
    named = [("segment", f"{each['by']} = ", each["models"]) for each in segments]
    named += [(kind, "", panel) for kind, panel in panels.items()]
    out: dict[str, list[Part]] = defaultdict(list)
    for kind, start, models in named:
        for model in models:
            off = (row for row in model["rows"] if row["low"] > 0)
            out[model["name"]] += [Part(kind, start + row["value"], row["low"]) for row in off]
    return out


def _models(
    tables: TableSet, level: float, tolerance: float, parts: dict[str, list[Part]]
) -> list[_Model]:
    out = []
    on_grid = dict(tables.coarsen(tables.grid))
    soft = not all(fine.has_hard_labels for fine in on_grid.values())
    for i, (name, fine) in enumerate(on_grid.items()):
        hardened = fine.hardened() if soft else None
        found = verdict(
            fine, hardened, tables.bins, level, tolerance=tolerance,
            top_label=tables.targets[0] == TOP, parts=parts[name],
        )  # fmt: skip
        mark = _MARKS[SHAPES[i % len(SHAPES)]]
        out.append(_Model(name, fine, hardened, found, COLORS[i % len(COLORS)], mark))
    return out


def _page(said: dict[str, Any], drawn: dict[str, Any]) -> str:
    """Fill the template with text, the data of the script, and the script itself."""
    import jinja2
    from markupsafe import Markup

    own = files("softcal.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters |= {
        "breakable": _breakable, "command": _command, "limit": limit, "signed": signed,
        "signed_limit": signed_limit,
    }  # fmt: skip
    template = environment.from_string((own / "page.html.jinja").read_text(encoding="utf-8"))
    decision = drawn["decision"]
    specs = charts([model["name"] for model in drawn["models"]], decision and decision["ends"])
    return template.render(
        **said,
        saves_tables=drawn["tables"] is not None,
        choices=drawn["choices"],
        start=drawn["choices"].index(said["bins"]),
        # Not escaped, because these are ours; `_in_script` keeps data from ending the script.
        data=Markup(_in_script(drawn)),  # noqa: S704
        charts=Markup(_in_script(specs)),  # noqa: S704
        css=Markup((own / "page.css").read_text(encoding="utf-8")),  # noqa: S704
        licenses=Markup((own / "vega_licenses.txt").read_text(encoding="utf-8")),  # noqa: S704
        vega=Markup(vega_script().replace("</script", "<\\/script")),  # noqa: S704
        script=Markup((own / "page.js").read_text(encoding="utf-8")),  # noqa: S704
    )


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
        "title": about.title,
        "notes": about.notes,
        "top": top,
        "version": __version__,
        "n": tables.n,
        "label": about.label,
        "soft_labels": not all(model.fine.has_hard_labels for model in models),
        "hardened_known": models[0].hardened is not None,
        "group": tables.about.group,
        "rater": tables.about.rater,
        "level": percent(level),
        "criterion": criterion(level, tolerance),
        "tolerance": f"{tolerance:.4g}",
        "facts": _facts(tables, models),
        "hardened": _hardened(tables),
        "models": models,
        "mean_predictions": [f"{model.fine.coarsen(1).mean_prob[0]:.4f}" for model in models],
        "chances": [chance(model.verdict.pvalue) for model in models],
        "hardened_errors": [
            model.hardened and model.hardened.coarsen(tables.bins).smece for model in models
        ],
        "above": ABOVE_ITS_INTERVAL,
        "bins": len(tables.bins),
        "pairs": pairs,
        "no_pairs": len(models) > 1 and not pairs,
        "pair_reach": max((max(abs(p["low"]), abs(p["high"])) for p in pairs), default=1) or 1,
        "commands": about.commands or (f"softcal recalibrate ROWS {columns} -o calibrator.json",),
        "apply": about.apply,
        "any_material": any(model.verdict.severity == "material" for model in models),
        "any_off": any(model.verdict.state == "miscalibrated" for model in models),
        "segments": segments,
        "n_segment_intervals": sum(len(m["rows"]) for each in segments for m in each["models"]),
        "segment_reach": max((_reach(each["models"]) for each in segments), default=1),
        "segments_shown": _SEGMENTS_SHOWN,
        "bins_shown": _BINS_SHOWN,
        "bin_reach": _bin_reach(models),
        "how": _how(tables, about),
    }


def _facts(tables: TableSet, models: list[_Model]) -> list[tuple[str, str]]:
    """Return what the data are: rows, votes, the mean label, and whether labels are 0 or 1."""
    sums = models[0].fine.sums
    votes, mean = int(sums.votes.sum()), float(sums.label.sum() / sums.weight.sum())
    hard = all(model.fine.has_hard_labels for model in models)
    facts = [
        ("rows", f"{tables.n:,}"),
        ("votes", f"{votes:,}" if votes else ""),
        ("mean label", f"{mean:.4f}"),
        ("labels", "0 or 1 in every row" if hard else "probabilities"),
    ]
    return [(term, text) for term, text in facts if text]


def _extremes(models: list[_Model], sample: Sample | None) -> list[str]:
    """Return how many predictions of each model are 0 and 1, as far as it is known.

    All rows of a bin without variance p(1 - p) are 0, or 1. Otherwise only the rows tell.
    """
    out = []
    for name, fine, *_ in models:
        zeros, ones = int(fine.count[0]), int(fine.count[-1])
        if sample is not None and sample.sees(name):
            out.append(f"{sample.zeros[name]:,} and {sample.ones[name]:,}")
        elif len(fine.bins) > 1 and not fine.sums.prob_var[[0, -1]].any():
            out.append(f"{zeros:,} and {ones:,}")
        elif fine.bins.edges[1] <= _NEARLY_0:
            out.append(f"{zeros:,} and {ones:,} within 0.000001")
        else:
            out.append("unknown")
    return out


def _hardened(tables: TableSet) -> str:
    """Return the name of the metric against hardened labels."""
    return f"ECE against {'the majority class' if tables.targets[0] == TOP else 'hardened labels'}"


def _reach(parts: list[dict[str, Any]]) -> float:
    """Return the upper end of the scale for the intervals of all rows."""
    return max((row["high"] for part in parts for row in part["rows"]), default=1) or 1


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
        "segments": segments,
        "tables": None if whole is None else content(whole),
    }


def _predictions(rel: Reliability) -> list[list[float]]:
    """Return the filled bins with their rows, shares of the weight, and mean predictions."""
    share = rel.sums.weight / rel.sums.weight.sum()
    filled = np.flatnonzero(rel.count)
    return [filled.tolist(), rel.count[filled].tolist(), *_short(rel, share, rel.mean_prob)]


def _errors(rel: Reliability, level: float) -> list[Any]:
    """Return SMECE and its interval, and the mean label, gap, and interval of each filled bin."""
    found = smece_interval(rel, level=level)
    columns = _short(rel, rel.mean_label, rel.gap, *gap_intervals(rel, level=level))
    return [found.value, found.low, found.high, *columns]


def _six_digits(row: dict[str, Any]) -> list[str | float]:
    return [x if isinstance(x, str) else float(f"{x:.6g}") for x in row.values()]


def _short(rel: Reliability, *columns: FloatArray) -> list[list[float]]:
    """Return the columns of filled bins with six digits, because the page shows four."""
    return [[float(f"{x:.6g}") for x in column[rel.count > 0].tolist()] for column in columns]


def _without_segments(tables: TableSet) -> TableSet | None:
    """Return the set without segments and pairs, which would make the page large.

    Groups, raters, and classes are kept on the bins of the report instead of the grid, for the same
    reason. Return None if there are too many classes even so.
    """
    if len(tables.targets) > _MOST_CLASSES_SAVED:
        return None
    fine = not tables.has_owners and len(tables.targets) == 1
    return tables.stored_on(tables.grid if fine else tables.bins)


def _cumulative(tables: TableSet, level: float) -> list[dict[str, Any]]:
    """List the cumulative SMECE of each model, with its interval."""
    each = [(m, cumulative_smece_interval(tables.cumulative(m), level=level)) for m in tables]
    return [{"name": m, "value": e.value, "low": e.low, "high": e.high} for m, e in each]


def _item_scores(tables: TableSet, level: float) -> list[tuple[str, list[str]]]:
    """Return the scores of single items of many classes, each with one text per model."""
    if "scores" not in tables.blocks:
        return []
    found = [tables.item_scores(model) for model in tables]
    rows = []
    for name, key in _ITEM_SCORES.items():
        values = [getattr(each, key) for each in found]
        if any(value is not None for value in values):
            shown = partial(signed, digits=4) if key == "ent_ce_signed" else _score
            rows.append((name, ["unknown" if v is None else shown(v) for v in values]))
            if key in ORDERED_METRICS and tables.about.group is None:
                rows.append((f"{name}, {percent(level)} interval", _limits(tables, key, level)))
    return rows


def _limits(tables: TableSet, metric: ItemMetric, level: float) -> list[str]:
    """Return the interval of an item score of ordered classes, one text per model."""
    each = (score_interval(tables, model, metric=metric, level=level) for model in tables)
    return [f"{found.low:.4f} to {found.high:.4f}" for found in each]


def _score(value: float) -> str:
    return "infinite" if np.isinf(value) else f"{value:.4f}"


_ITEM_SCORES = {
    "Wasserstein distance, in classes": "wasserstein",
    "Wasserstein distance of a perfect model, from vote noise alone": "wasserstein_floor",
    "ranked probability score": "ranked_probability_score",
    "ranked probability score without vote noise": "ranked_probability_score_without_vote_noise",
    "Manhattan distance": "manhattan",
    "Manhattan distance of a perfect model, from vote noise alone": "manhattan_floor",
    "Brier score": "brier",
    "Brier score without vote noise": "brier_without_vote_noise",
    "log loss": "log_loss",
    "KL divergence": "kl_divergence",
    "DistCE (total variation distance)": "dist_ce",
    "DistCE of a perfect model, from vote noise": "dist_ce_floor",
    "EntCE (absolute difference of entropies)": "ent_ce",
    "difference of entropies (above 0: less certain than the labels)": "ent_ce_signed",
    "RankCS (share of rows with classes in the right order; higher is better)": "rank_cs",
}


def _shown(value: object) -> object:
    """Escape control characters in text; `Markup` is our own and stays as it is."""
    return printable(value) if type(value) is str else value


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


def _pairs(tables: TableSet, level: float) -> list[dict[str, Any]]:
    if not tables.has_pairs:
        return []
    joints = [tables.pair(a, b) for a, b in combinations(tables.models, 2)]
    out = []
    for c, pvalue in compare_pairs(joints, level):
        a, b = c.a, c.b
        better, worse = (a, b) if c.difference < 0 else (b, a)
        text = f"{better} is better calibrated than {worse}: the difference is significant."
        if pvalue >= 1 - level:
            text = f"These data do not show whether {a} or {b} is better calibrated."
        out.append(
            {
                "a": a, "b": b, "difference": c.difference, "low": c.low, "high": c.high,
                "chance": chance(pvalue), "text": text,
            }
        )  # fmt: skip
    return out


def _segments(tables: TableSet, columns: Sequence[str], level: float) -> list[dict[str, Any]]:
    """Return the segments of each column and model, worst first, with simultaneous intervals."""
    found = {
        column: {
            MISSING if value is None else value: segment
            for value, segment in tables.by(column).items()
            if segment.n
        }
        for column in columns
    }
    intervals = sum(map(len, found.values())) * len(tables)
    wholes = {model: smece_interval(tables[model], level=level) for model in tables if found}
    together = 1 - (1 - level) / max(intervals, 1)
    return [
        {
            "by": column,
            "models": [
                {"name": model, "rows": _segment_rows(segments, model, whole, together)}
                for model, whole in wholes.items()
            ],
        }
        for column, segments in found.items()
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


def _trends(segments: list[dict[str, Any]], models: list[_Model]) -> None:
    """Add the points of a chart over the segments to each column whose values have an order."""
    for each in segments:
        order = in_order([row["value"] for row in each["models"][0]["rows"]])
        highest = _reach(each["models"])
        nearest = np.diff([*order.values()]).min(initial=360)  # models are side by side
        each["trend"] = order and [
            {
                "name": model.name, "color": model.color, "mark": model.mark,
                "points": _trend_points(
                    part["rows"], order, highest, nearest * ((k + 1) / (len(models) + 1) - 0.5)
                ),
            }
            for k, (model, part) in enumerate(zip(models, each["models"], strict=True))
        ]  # fmt: skip
        each["ticks"] = _ticks(order)
        each["highest"] = highest


def _ticks(order: dict[str, float]) -> list[dict[str, Any]]:
    """Return as many of the values as fit under a chart that is 360 wide, each at its place."""
    width = 6.5 * max(map(len, order), default=0) + 8  # of a text of 10 px, with space beside it
    ticks: list[dict[str, Any]] = []
    for value, x in order.items():
        if not ticks or ticks[-1]["x"] + width <= x <= 370 - width / 2:
            ticks.append({"x": x, "text": value})
    return ticks


def _trend_points(
    rows: list[dict[str, Any]], order: dict[str, float], highest: float, shift: float
) -> list[dict[str, Any]]:
    """Return the segments in order as points of a chart of 360 by 100."""
    found = {row["value"]: row for row in rows}
    return [
        {
            "x": x + shift,
            **{name: 100 - 100 * found[value][name] / highest for name in ("smece", "low", "high")},
            "text": f"{value}: SMECE {found[value]['smece']:.3f}, {limit(found[value]['low'])} to "
            f"{limit(found[value]['high'])}, {found[value]['n']:,} rows",
        }
        for value, x in order.items()
    ]


def _segment_rows(
    segments: dict[str, TableSet], model: str, whole: Interval, level: float
) -> list[dict[str, Any]]:
    """Return the segments of one column and model by the SMECE that is sure, largest first."""
    rows: list[dict[str, Any]] = []
    for value, segment in segments.items():
        rel = segment[model]
        found = smece_interval(rel, level=level)
        against = "unclear"
        if found.low > whole.high:
            against = "worse"
        elif found.high < whole.low:
            against = "better"
        rows.append(
            {
                "value": value, "n": rel.n, "smece": rel.smece, "debiased": found.debiased,
                "low": found.low, "high": found.high, "bias": rel.bias, "against": against,
            }
        )  # fmt: skip
    return sorted(rows, key=surest)


def _listed(names: Sequence[str]) -> str | None:
    """Return the names of classes as text; only the first and last if there are many."""
    first, left_out, last = ends(list(names))
    between = [f"{left_out:,} more"] if left_out else []
    return ", ".join([*first, *between, *last]) or None


def _raters(tables: TableSet) -> str | None:
    if tables.about.rater is None:
        return None
    return f"{len(tables.axes.owner):,}, by {tables.about.rater}"


def _how(tables: TableSet, about: About) -> list[tuple[str, str]]:
    from softcal import __version__

    bins, grid = tables.bins, tables.grid
    weightless, dropped = tables.about.rows_without_weight, tables.about.rows_dropped
    width = "of equal width" if bins.is_uniform else "of unequal width"
    how: list[tuple[str, Any]] = [
        ("source", about.source),
        ("date", tables.about.date),
        ("rows", f"{tables.n:,}" + (f"; {weightless:,} more with weight 0" if weightless else "")),
        ("dropped rows", dropped and f"{dropped:,}, left out on purpose"),
        ("label", about.label),
        ("ordered classes" if tables.ordered else "classes", _listed(tables.classes)),
        (
            "probability of the predicted class" if tables.targets[0] == TOP else "predictions",
            ", ".join(tables.models),
        ),
        ("segments", ", ".join(tables.by_names) or None),
        ("groups", tables.about.group),
        ("raters", _raters(tables)),
        ("weights", tables.about.weight or "none: all rows have equal weight"),
        (
            "votes",
            "counted in the labels"
            if tables.about.votes == tables.about.label
            else tables.about.votes or "not given",
        ),
        ("bins", f"{len(bins)} {width} on [0, 1]; the last one includes 1"),
        ("fine grid", f"{len(grid)} bins, which are merged into the bins shown"),
        ("softcal", __version__),
        ("created on", datetime.now(UTC).strftime("%Y-%m-%d")),
    ]
    return [(term, text) for term, text in how if text]
