"""Which predictions to accept, and on which to ask a person, for the panel of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._display import percent
from softcal.cards.route import RouteCard
from softcal.plot.figures import FEW_ACCEPTED
from softcal.report.template import six_digits
from softcal.table.tableset import TOP

if TYPE_CHECKING:
    from softcal.cards.route import ModelRoute, RouteRow
    from softcal.table.tableset import TableSet

_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
_FIRST_SHOWN = 0.05  # or the lowest limit with a rule
_NONE = "\N{EN DASH}"


def route_panel(tables: TableSet, level: float) -> dict[str, Any] | None:
    """Return the rule of each model for limits that a reader can choose, and its curve.

    Return None for bins without an edge at 0.5, where the decision changes.
    """
    if tables.targets[0] != TOP and 0.5 not in tables.grid.edges:
        return None
    cards = [
        RouteCard.of(tables, source="", max_disagreement=limit, level=level) for limit in _LIMITS
    ]
    ruled = [
        limit
        for limit, card in zip(_LIMITS, cards, strict=True)
        if any(model.overall.threshold is not None for model in card.models)
    ]
    models = [
        _of_model([card.models[k] for card in cards], hard_labels=tables.has_hard_labels)
        for k in range(len(tables.models))
    ]
    first = _FIRST_SHOWN if _FIRST_SHOWN in ruled or not ruled else ruled[0]
    return {
        "limits": list(_LIMITS),
        "names": [percent(limit) for limit in _LIMITS],
        "start": _LIMITS.index(first),
        "ends": _ends(cards, models),
        "models": models,
    }


def _ends(cards: list[RouteCard], models: list[dict[str, Any]]) -> list[float]:
    """Return the ends of the axis, which contains every limit below which rows are left out."""
    accepts_all = (
        limit
        for limit, card in zip(_LIMITS, cards, strict=True)
        if all(model.overall.share == 1 for model in card.models)
    )
    highest = max(next(accepts_all, _LIMITS[-1]), *(max(model["risk"]) for model in models))
    return [0.0, 1.1 * highest]


def _of_model(found: list[ModelRoute], *, hard_labels: bool) -> dict[str, Any]:
    """Return the curve of a model, and its sentence, cells, and marks for each limit."""
    curve, rows = found[0].curve, [each.overall for each in found]
    enough = min(FEW_ACCEPTED, curve[-1].n)
    shown = [point for point in curve if point.n >= enough]
    return {
        "name": rows[0].pred,
        **{
            name: six_digits(np.array([getattr(point, name) for point in shown]))
            for name in ("share", "risk", "low", "high")
        },
        "sentences": [row.sentence for row in rows],
        "shown": [_cells(row) + ([] if hard_labels else _hardened(row)) for row in rows],
        "rules": [_marks(row) for row in rows],
    }


def _cells(row: RouteRow) -> list[str]:
    if row.threshold is None:
        return [_NONE] * 3
    return [
        f"{row.threshold:.4g}",
        f"{row.share:.1%}",
        f"{row.risk:.1%} (at most {row.risk_high:.1%})",
    ]


def _hardened(row: RouteRow) -> list[str]:
    if row.hardened_share is None:
        return [_NONE] * 2
    return [f"{row.hardened_share:.1%}", f"{row.hardened_risk:.1%}"]


def _marks(row: RouteRow) -> list[dict[str, Any]]:
    """Return the places of the rule and of that of hardened labels on the curve."""
    places = {"the rule": (row.share, row.risk),
              "hardened labels": (row.hardened_share, row.hardened_risk)}  # fmt: skip
    return [
        {"kind": kind, "share": share, "risk": risk}
        for kind, (share, risk) in places.items()
        if share is not None
    ]
