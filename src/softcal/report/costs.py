"""What miscalibration costs at decision thresholds, for the panel of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.decision import net_benefit
from softcal.scanning.sample import MOST_ROWS, basis
from softcal.table.tableset import LABEL

if TYPE_CHECKING:
    from softcal._validation.inputs import FloatArray
    from softcal.scanning.sample import Basis, Sample
    from softcal.table.tableset import TableSet

_FIRST_SHOWN = 0.05  # or the next threshold above it with this share of the rows below it:
_SHARE = 0.05


def basis_of(tables: TableSet, sample: Sample | None) -> Basis | None:
    """Return the rows of each model, with their groups, or its tables.

    Return None for one row, which has no interval, and for groups without rows, because tables lack
    the sums that the intervals need.
    """
    found = basis(tables, sample if tables.targets == (LABEL,) else None)
    if tables.about.group is not None and sample is not None and found.name == "rows":
        groups = {model: sample.rows(model, MOST_ROWS)[1] for model in tables}
        with_groups = {m: data | {"groups": groups[m]} for m, data in found.models.items()}
        return found._replace(models=with_groups)
    return None if tables.n < 2 or tables.about.group is not None else found


def decision_panel(source: Basis, tables: TableSet, level: float) -> dict[str, Any] | None:
    """Return net benefit and its sentences at every percent that is an edge of the grid.

    Return None for many classes.
    """
    percents = np.arange(1, 100) / 100
    at = percents[np.isin(percents, tables.grid.edges)]
    if tables.targets != (LABEL,) or at.size < 2:
        return None
    found = {
        model: net_benefit(**data, thresholds=at, level=level)
        for model, data in source.models.items()
    }
    first = next(iter(found.values()))
    everyone = first.treat_all
    start = np.flatnonzero((at > _FIRST_SHOWN - 1e-9) & (first.rows_below >= _SHARE * tables.n))
    top = max(0.01, *(float(max(each.value.max(), everyone.max())) for each in found.values()))
    # Net benefit falls without limit, so the chart cuts lines off below a part of their height.
    drawn = np.concatenate([everyone, *(each.low for each in found.values())])
    return {
        "source": source.text,
        "thresholds": at.tolist(),
        "start": int(start[0] if start.size else np.abs(at - _FIRST_SHOWN).argmin()),
        "ends": [
            max(-0.25 * top, min(float(drawn.min()), 0.0)),
            max(top, *(float(each.high.max()) for each in found.values())),
        ],
        "all": _short(everyone),
        "models": [
            {
                "name": model,
                "value": _short(each.value),
                "low": _short(each.low),
                "high": _short(each.high),
                "shown": _texts(each.value, each.low, each.high),
                "cost": [f"{x:.4f}" for x in each.cost.tolist()],
                "sentences": each.sentences,
            }
            for model, each in found.items()
        ],
    }


def _short(values: FloatArray) -> list[float]:
    return [float(f"{x:.6g}") for x in values.tolist()]


def _texts(value: FloatArray, low: FloatArray, high: FloatArray) -> list[list[str]]:
    """Return net benefit and its interval as text; the chart may cut its lines off."""
    columns = zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
    return [[f"{v:.4f}", f"{a:.4f} to {b:.4f}"] for v, a, b in columns]
