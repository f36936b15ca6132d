"""What miscalibration costs at decision thresholds, for the panel of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal.decision import net_benefit
from softcal.report.template import six_digits
from softcal.scanning.sample import basis
from softcal.table.tableset import LABEL

if TYPE_CHECKING:
    from softcal.decision import NetBenefit
    from softcal.table.tableset import TableSet

_FIRST_SHOWN = 0.05  # or the next threshold above it with this share of the rows below it:
_SHARE = 0.05


def decision_panel(tables: TableSet, level: float) -> dict[str, Any] | None:
    """Return net benefit and its sentences at every percent that is an edge of the grid.

    It is that of the grid for rows too, so that both have the same numbers. Return None for many
    classes, and for one row, which has no interval.
    """
    percents = np.arange(1, 100) / 100
    at = percents[np.isin(percents, tables.grid.edges)]
    if tables.targets != (LABEL,) or at.size < 2 or tables.n < 2:
        return None
    source = basis(tables, None)
    found = {
        model: net_benefit(**data, thresholds=at, level=level)
        for model, data in source.models.items()
    }
    first = next(iter(found.values()))
    start = np.flatnonzero((at > _FIRST_SHOWN - 1e-9) & (first.rows_below >= _SHARE * tables.n))
    return {
        "source": source.text,
        "thresholds": at.tolist(),
        "start": int(start[0] if start.size else np.abs(at - _FIRST_SHOWN).argmin()),
        "ends": _ends([*found.values()]),
        "all": six_digits(first.treat_all),
        "models": [{"name": model} | _curve(each) for model, each in found.items()],
    }


def _ends(found: list[NetBenefit]) -> list[float]:
    """Return the ends of the axis; net benefit falls without limit, so the chart cuts lines off."""
    highest, lowest, everyone = (
        np.concatenate([getattr(each, name) for each in found])
        for name in ("value", "low", "treat_all")
    )
    top = max(0.01, float(highest.max()), float(everyone.max()))
    low = max(-0.25 * top, min(float(lowest.min()), float(everyone.min()), 0.0))
    return [low, max(top, *(float(each.high.max()) for each in found))]


def _curve(found: NetBenefit) -> dict[str, Any]:
    """Return the lines of a model, and its numbers as text, which the chart does not cut off."""
    columns = (found.value, found.low, found.high)
    texts = (
        [f"{x:z.4f}".replace("-", "\N{MINUS SIGN}") for x in each.tolist()] for each in columns
    )
    return {
        **{name: six_digits(getattr(found, name)) for name in ("value", "low", "high")},
        "shown": [[value, f"{low} to {high}"] for value, low, high in zip(*texts, strict=True)],
        "cost": [f"{x:.4f}" for x in found.cost.tolist()],
        "sentences": found.sentences,
    }
