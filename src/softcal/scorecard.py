"""Several models against the same labels, side by side, as plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal import inputs, metrics
from softcal.bins import Bins, BinsLike
from softcal.errors import InputError
from softcal.inputs import Names
from softcal.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt


def scorecard(
    label: tuple[str, npt.ArrayLike],
    predictions: Mapping[str, npt.ArrayLike],
    *,
    bins: BinsLike = 10,
    weight: tuple[str, npt.ArrayLike] | None = None,
) -> dict[str, Any]:
    """Score each model against the labels as they are and, for contrast, hardened at 0.5.

    Columns come with their names, so that a message about a bad value can say where it is.
    The result holds plain numbers only, ready for JSON; `softcal score --format json` prints it.
    """
    label_name, y_true = label
    weight_name, sample_weight = weight or (None, None)
    binned = Bins.of(bins)
    models = []
    for pred, y_prob in predictions.items():
        if pred == label_name:
            message = f"label and prediction must be different columns: both are {pred!r}."
            raise InputError(message)
        names = Names(y_true=label_name, y_prob=pred)
        if weight_name is not None:
            names = names._replace(sample_weight=weight_name)
        rows = inputs.rows(y_true, y_prob, sample_weight, names=names)
        soft = from_rows(rows, binned)
        hard = from_rows(rows._replace(y_true=metrics.harden(rows.y_true)), binned)
        models.append(
            {
                "pred": pred,
                "smece": soft.smece,
                "ece_hardened": hard.smece,
                "max_gap": soft.max_gap,
                "rms_gap": soft.rms_gap,
                "bias": soft.bias,
                "brier": soft.brier,
                "table": _table(soft),
            }
        )
    return {"n": soft.n, "bins": len(binned), "label": label_name, "models": models}


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
