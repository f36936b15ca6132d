"""The report as one HTML file that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from softcal._display import printable
from softcal._io import written_whole
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.inference.comparison import compare, holm
from softcal.inference.intervals import ABOVE_ITS_INTERVAL, smece_interval
from softcal.report.charts import COLOURS, SHAPES, charts
from softcal.report.gather import fine_grid, gather
from softcal.report.repairs import repair_panel
from softcal.report.sample import Sample
from softcal.report.verdict import (
    chance,
    criterion,
    limit,
    percent,
    signed,
    signed_limit,
    verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from markupsafe import Markup

    from softcal.report.gather import Tables
    from softcal.report.parts import Part
    from softcal.report.verdict import Verdict
    from softcal.table.reliability import Reliability

TOP_LABEL = "probability of the predicted class"
_MOST_BINS = 200  # the page lets its reader choose
_SLICES_SHOWN = 20  # before the reader unfolds the rest
_BINS_SHOWN = 5  # of those that stand out, likewise
_SCRIPT_NEEDS = "window.vegaEmbed = vegaEmbed;"
_MARKS = {
    "circle": "M0,-5A5,5 0 1 1 0,5A5,5 0 1 1 0,-5Z",
    "square": "M-5,-5H5V5H-5Z",
    "diamond": "M0,-6L6,0L0,6L-6,0Z",
    "triangle-up": "M0,-6L6,5H-6Z",
    "cross": "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "triangle-down": "M0,6L6,-5H-6Z",
    "stroke": "M-6,-1H6V1H-6Z",
    "wedge": "M0,-6L3,6H-3Z",
}


class _Model(NamedTuple):
    """One model as the page shows it."""

    name: str
    colour: str
    mark: str
    verdict: Verdict
    hardened: float
    chance: str


class About(NamedTuple):
    """What the page says of itself."""

    title: str
    source: str
    label: str
    kind: str = "predictions"
    by: str | None = None
    weight: str | None = None
    votes: str | None = None
    classes: tuple[str, ...] = ()
    recalibrate: tuple[str, ...] = (
        "softcal recalibrate DATA --label … --pred … -o calibrator.json",
    )


def write_page(
    path: Path, parts: Iterable[Part], about: About, *, bins: int = 10, level: float = 0.95
) -> dict[str, Verdict]:
    """Write the report on these rows, and give each model's verdict."""
    _refuse_what_is_no_page(path)
    coarse = Bins.of(bins)
    sample = Sample()
    tables = gather(parts, Bins.of(fine_grid(len(coarse))), coarse, sample)
    models = _models(tables, coarse, level, about)
    page = _page(tables, models, sample, about, coarse, level)
    with written_whole(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="backslashreplace")
    return {model.name: model.verdict for model in models}


def _refuse_what_is_no_page(path: Path) -> None:
    """Refuse a name that says it is something else than HTML, which programs would believe."""
    if path.suffix.lower() not in ("", ".html", ".htm"):
        message = (
            f"the report is an HTML file, and {path.name} is not the name of one: give a name that "
            "ends in .html. For a PDF, open the report in a browser and print it to a file."
        )
        raise InputError(message)


def _models(tables: Tables, bins: Bins, level: float, about: About) -> list[_Model]:
    out = []
    for i, (name, fine) in enumerate(tables.soft.items()):
        hard = tables.hard[name].coarsen(bins)
        top_label = about.kind == TOP_LABEL
        found = verdict(fine, tables.hard[name], bins, level, top_label=top_label)
        shape = SHAPES[i % len(SHAPES)]
        out.append(
            _Model(
                name, COLOURS[i % len(COLOURS)], _MARKS[shape], found, hard.smece,
                chance(found.pvalue),
            )
        )  # fmt: skip
    return out


def _page(
    tables: Tables, models: list[_Model], sample: Sample, about: About, bins: Bins, level: float
) -> str:
    """Fill the template with words and numbers, tables for the script, and the script itself."""
    import jinja2
    import vl_convert
    from markupsafe import Markup

    own = files("softcal.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters |= {
        "breakable": _breakable, "limit": limit, "signed": signed, "signed_limit": signed_limit,
    }  # fmt: skip
    template = environment.from_string((own / "page.html.jinja").read_text(encoding="utf-8"))
    choices = _choices(len(next(iter(tables.soft.values())).bins), len(bins))
    script = "".join((own / n).read_text(encoding="utf-8") for n in ("interval.js", "page.js"))
    said = _said(tables, models, sample, about, bins, level)
    drawn = _drawn(tables, choices, level)
    drawn |= {"hardened": said["hardened"], "slices": said["slices"]}
    return template.render(
        **said,
        choices=choices,
        start=choices.index(len(bins)),
        # Not escaped, for they are ours; but no text from the data may end the script they are in.
        data=Markup(_in_script(json.dumps(drawn, allow_nan=False))),  # noqa: S704
        charts=Markup(_in_script(json.dumps(charts(list(tables.soft))))),  # noqa: S704
        css=Markup((own / "page.css").read_text(encoding="utf-8")),  # noqa: S704
        vega=Markup(vl_convert.javascript_bundle(_SCRIPT_NEEDS).replace("</script", "<\\/script")),  # noqa: S704
        script=Markup(script),  # noqa: S704
    )


def _said(
    tables: Tables, models: list[_Model], sample: Sample, about: About, bins: Bins, level: float
) -> dict[str, Any]:
    """Give the words and numbers of the page that do not change when its reader chooses."""
    from softcal import __version__

    first = next(iter(tables.soft.values()))
    pairs = _pairs(tables, level)
    slices = _slices(tables, bins, level)
    # A map of the predicted class's probability alone would not give probabilities of classes.
    repairs = (
        [] if about.kind == TOP_LABEL else repair_panel(sample, list(tables.soft), bins, level)
    )
    return {
        "title": about.title,
        "kind": about.kind,
        "version": __version__,
        "n": first.n,
        "label": about.label,
        "soft_labels": not first.has_hard_labels,
        "level": percent(level),
        "criterion": criterion(level),
        "hardened": _hardened(about),
        "models": models,
        "above": ABOVE_ITS_INTERVAL,
        "bins": len(bins),
        "pairs": pairs,
        "pair_reach": max((max(abs(p["low"]), abs(p["high"])) for p in pairs), default=1) or 1,
        "repairs": repairs,
        "recalibrate": about.recalibrate,
        "any_off": any(model.verdict.state == "miscalibrated" for model in models),
        "repair_reach": _reach(repairs),
        "by": about.by,
        "slices": slices,
        "n_slice_intervals": len(tables.slices) * len(tables.soft),
        "slice_reach": _reach(slices),
        "slices_shown": _SLICES_SHOWN,
        "bins_shown": _BINS_SHOWN,
        "bin_reach": _bin_reach(models),
        "how": _how(first, list(tables.soft), about, bins, sample.seen - first.n),
    }


def _hardened(about: About) -> str:
    """Name what the page measures once its reader has the labels hardened."""
    against = "the majority class" if about.kind == TOP_LABEL else "hardened labels"
    return f"ECE against {against}"


def _reach(parts: list[dict[str, Any]]) -> float:
    """Give the end of the scale on which the intervals of all rows are drawn."""
    return max((row["high"] for part in parts for row in part["rows"]), default=1) or 1


def _bin_reach(models: list[_Model]) -> float:
    """Give the end of the scale on which the gaps of all bins that stand out are drawn."""
    means = (bin_.mean for model in models for bin_ in model.verdict.bins)
    return max((max(-mean.low, mean.high) for mean in means), default=1)


def _drawn(tables: Tables, choices: list[int], level: float) -> dict[str, Any]:
    """Give what the script computes the pictures from."""
    return {
        "level": level,
        "choices": choices,
        "student": _student(level),
        "models": [
            {"name": name, "soft": soft.to_dict(), "hard": tables.hard[name].to_dict()}
            for name, soft in tables.soft.items()
        ],
    }


def _shown(value: object) -> object:
    """Escape what text from the data may hold and must not show; ours is marked as such."""
    return printable(value) if type(value) is str else value


def _breakable(name: str) -> Markup:
    """Let a name break after _ - . and /, where a reader expects it, rather than in a word."""
    from markupsafe import Markup, escape

    parts = re.split(r"(?<=[_\-./])(?=\w)", printable(name))
    return Markup("<wbr>").join(escape(part) for part in parts)


def _in_script(text: str) -> str:
    return text.replace("<", "\\u003c")


def _choices(fine: int, bins: int) -> list[int]:
    """List the numbers of bins a reader may choose: divisors of the fine one."""
    some = [k for k in range(2, _MOST_BINS + 1) if fine % k == 0]
    return sorted({*some, bins})


def _student(level: float) -> list[float]:
    """Tabulate Student's quantile by 1 / degrees of freedom, from 0 to 1."""
    inverse = np.linspace(0, 1, 401)
    freedom = 1 / np.maximum(inverse, 1e-9)
    out: list[float] = (-stdtrit(freedom, (1 - level) / 2)).tolist()
    return out


def _pairs(tables: Tables, level: float) -> list[dict[str, Any]]:
    found = [(a, b, compare(joint, level=level)) for (a, b), joint in tables.joint.items()]
    corrected = holm([comparison.pvalue for _, _, comparison in found])
    out = []
    for (a, b, c), pvalue in zip(found, corrected, strict=True):
        better, worse = (a, b) if c.difference < 0 else (b, a)
        text = f"{better} is better calibrated than {worse}, beyond what chance would explain."
        if pvalue >= 1 - level:
            text = f"These data cannot tell which of {a} and {b} is better calibrated."
        out.append(
            {
                "a": a, "b": b, "difference": c.difference, "low": c.low, "high": c.high,
                "chance": chance(pvalue), "text": text,
            }
        )  # fmt: skip
    return out


def _slices(tables: Tables, bins: Bins, level: float) -> list[dict[str, Any]]:
    """List each model's slices, worst first, with intervals that hold all at once."""
    intervals = len(tables.slices) * len(tables.soft)
    if not intervals:
        return []
    together = 1 - (1 - level) / intervals
    out = []
    for name, fine in tables.soft.items():
        whole = smece_interval(fine.coarsen(bins), level=level)
        rows: list[dict[str, Any]] = []
        for value, by_model in tables.slices.items():
            rel = by_model[name]
            found = smece_interval(rel, level=together)
            against = "not told apart"
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
        rows.sort(key=lambda row: -row["debiased"])
        out.append({"name": name, "rows": rows})
    return out


def _how(
    rel: Reliability, models: list[str], about: About, bins: Bins, without_weight: int
) -> list[tuple[str, str]]:
    from softcal import __version__

    how = [
        ("source", about.source),
        (
            "rows",
            f"{rel.n:,}" + (f"; {without_weight:,} more have weight 0" * bool(without_weight)),
        ),
        ("label", about.label),
        (about.kind, ", ".join(models)),
        ("weights", about.weight or "none: every row counts the same"),
        ("votes", about.votes or "not given"),
        ("bins", f"{len(bins)} of equal width on [0, 1], the last one closed"),
        ("fine table", f"{len(rel.bins)} bins of equal width, from which the others are joined"),
        ("softcal", __version__),
        ("made on", datetime.now(UTC).strftime("%Y-%m-%d")),
    ]
    if about.by is not None:
        how.insert(5, ("slices", about.by))
    if about.classes:
        how.insert(3, ("classes", ", ".join(about.classes)))
    return how
