"""Several models against the same labels, side by side, as plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from softcal import inputs, metrics
from softcal.bins import Bins, BinsLike
from softcal.chance import calibration_test
from softcal.errors import InputError
from softcal.inference import smece_interval
from softcal.inputs import Names, Rows
from softcal.reliability import from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from softcal.reliability import Reliability


class Named(NamedTuple):
    """A column and what the user calls it, so that messages can say where a bad value is."""

    name: str
    values: npt.ArrayLike


def scorecard(
    label: Named,
    predictions: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike = 10,
    weight: Named | None = None,
    votes: Named | None = None,
    groups: Named | None = None,
    level: float = 0.95,
) -> dict[str, Any]:
    """Score each model against the labels as they are and, for contrast, hardened at 0.5.

    The result holds plain numbers only, ready for JSON; `softcal score --format json` prints it.
    """
    binned = Bins.of(bins)
    tables = {}
    models = []
    for pred, y_prob in predictions.items():
        if pred == label.name:
            message = f"label and prediction must be different columns: both are {pred!r}."
            raise InputError(message)
        rows = _rows(label, Named(pred, y_prob), weight, votes)
        group = None if groups is None else inputs.group_numbers(groups.values, rows)
        tables[pred] = soft = from_rows(rows, binned, group)
        hard = from_rows(rows._replace(y_true=metrics.harden(rows.y_true)), binned)
        interval = smece_interval(soft, level)
        models.append(
            {
                "pred": pred,
                "smece": soft.smece,
                "debiased": interval.debiased,
                "low": interval.low,
                "high": interval.high,
                "level": level,
                "pvalue": calibration_test(soft).pvalue,
                "ece_hardened": hard.smece,
                "max_gap": soft.max_gap,
                "rms_gap": soft.rms_gap,
                "bias": soft.bias,
                "brier": soft.brier,
                "table": _table(soft),
            }
        )
    return {
        "n": max(table.n for table in tables.values()),
        "bins": len(binned),
        "label": label.name,
        "models": models,
    }


def _rows(label: Named, pred: Named, weight: Named | None, votes: Named | None) -> Rows:
    names = Names(y_true=label.name, y_prob=pred.name)
    if weight is not None:
        names = names._replace(sample_weight=weight.name)
    if votes is not None:
        names = names._replace(n_votes=votes.name)
    return inputs.rows(
        label.values,
        pred.values,
        None if weight is None else weight.values,
        None if votes is None else votes.values,
        names,
    )


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
