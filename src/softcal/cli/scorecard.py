"""Several models against the same labels, side by side, as plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal._validation import inputs
from softcal.cli.saved_scores import Scored, Scores, plain
from softcal.inference.intervals import smece_interval
from softcal.inference.tests import calibration_test
from softcal.metrics import binned
from softcal.sources.columns import SLICES, Batch, rows_of
from softcal.table.reliability import from_rows

if TYPE_CHECKING:
    from softcal.bins import Bins
    from softcal.sources.columns import Roles
    from softcal.table.reliability import Reliability


def scorecard(scores: Scores, level: float = 0.95) -> dict[str, Any]:
    """Score each model against the labels as they are and, for contrast, hardened at 0.5.

    The result holds plain numbers only, ready for JSON; `softcal score --format json` prints it.
    """
    tables = [scored.soft for scored in scores.models.values()]
    card: dict[str, Any] = {
        "n": max(table.n for table in tables),
        **({} if scores.weight is None else {"rows_without_weight": scores.without_weight}),
        "bins": len(tables[0].bins),
        "label": scores.label,
        "models": [
            {"pred": pred, **_numbers(scored, level)} for pred, scored in scores.models.items()
        ],
    }
    if scores.by is not None:
        card["by"] = scores.by
        for model in card["models"]:
            model["slices"] = [
                {"value": plain(value), "n": one.soft.n, **_numbers(one, level)}
                for value, one in scores.slices[model["pred"]].items()
                if one.soft.n
            ]
    return card


def grouped_scores(columns: Batch, roles: Roles, bins: Bins) -> Scores:
    """Score columns held in memory whose rows belong together in groups, under `SLICES`."""
    models = {}
    for pred in roles.y_prob:
        rows = roles.rows(columns, pred)
        soft = from_rows(rows, bins, inputs.group_numbers(columns[SLICES], rows))
        hard = from_rows(rows._replace(y_true=binned.harden(rows.y_true)), bins)
        models[pred] = Scored(soft, hard)
    return Scores.named(roles, models, rows_of(columns))


def _numbers(scored: Scored, level: float) -> dict[str, Any]:
    soft = scored.soft
    interval = smece_interval(soft, level=level)
    return {
        "smece": soft.smece,
        "debiased": interval.debiased,
        "low": interval.low,
        "high": interval.high,
        "level": level,
        "note": interval.note,
        "pvalue": calibration_test(soft).pvalue,
        "ece_hardened": None if scored.hard is None else scored.hard.smece,
        "max_gap": soft.max_gap,
        "rms_gap": soft.rms_gap,
        "bias": soft.bias,
        "brier": soft.brier,
        "table": _table(soft),
    }


def _table(rel: Reliability) -> list[dict[str, float | int | None]]:
    """List the bins; an empty one has no means, which JSON calls null."""
    return [
        {
            "low": low,
            "high": high,
            "count": count,
            "mean_prob": p if count else None,
            "mean_label": y if count else None,
            "gap": gap if count else None,
        }
        for low, high, count, p, y, gap in rel.per_bin()
    ]
