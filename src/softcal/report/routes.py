"""Which predictions to accept, and on which to ask a person, for the panel of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal._display import percent
from softcal.inference.routing import RouteOptions, route
from softcal.plot.figures import FEW_ACCEPTED
from softcal.report.template import six_digits
from softcal.table.tableset import TOP

if TYPE_CHECKING:
    from softcal.inference.routing import Route, Rule
    from softcal.table.tableset import TableSet

_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
_FIRST_SHOWN = 0.05  # or the lowest limit with a rule
_NONE = "\N{EN DASH}"


def route_panel(tables: TableSet, level: float) -> dict[str, Any] | None:
    """Return the rule of each model for limits that a reader can choose, and its curve.

    Return None for bins without an edge at 0.5, where the decision changes.
    """
    top = tables.targets[0] == TOP
    if not top and 0.5 not in tables.grid.edges:
        return None
    # One table for all limits, because that of raters computes its covariance once.
    fine = dict(tables.coarsen(tables.grid))
    found = {
        model: [
            route(rel, max_disagreement=limit, level=level, options=RouteOptions(top_label=top))
            for limit in _LIMITS
        ]
        for model, rel in fine.items()
    }
    by_limit = dict(zip(_LIMITS, zip(*found.values(), strict=True), strict=True))
    ruled = [limit for limit, routes in by_limit.items() if any(each.rule for each in routes)]
    first = _FIRST_SHOWN if _FIRST_SHOWN in ruled or not ruled else ruled[0]
    models = [
        {"name": model} | _of_model(routes, hard_labels=tables.has_hard_labels)
        for model, routes in found.items()
    ]
    # The axis contains every limit below which rows are left out.
    complete = (
        limit
        for limit, routes in by_limit.items()
        if all(each.rule is not None and each.rule.share == 1 for each in routes)
    )
    highest = max(next(complete, _LIMITS[-1]), *(max(model["risk"]) for model in models))
    return {
        "limits": list(_LIMITS),
        "names": [percent(limit) for limit in _LIMITS],
        "start": _LIMITS.index(first),
        "ends": [0.0, 1.1 * highest],
        "models": models,
    }


def _of_model(routes: list[Route], *, hard_labels: bool) -> dict[str, Any]:
    """Return the curve of a model, and its sentence, cells, and marks for each limit."""
    curve = routes[0].curve
    many = curve.n >= min(FEW_ACCEPTED, int(curve.n[-1]))
    return {
        **{
            name: six_digits(getattr(curve, name)[many])
            for name in ("share", "risk", "low", "high")
        },
        "sentences": [each.sentence for each in routes],
        "shown": [
            _cells(each.rule) + ([] if hard_labels else _hardened(each.hardened)) for each in routes
        ],
        "rules": [
            [
                {"kind": kind, "share": rule.share, "risk": rule.risk}
                for kind, rule in (("the rule", each.rule), ("hardened labels", each.hardened))
                if rule is not None
            ]
            for each in routes
        ],
    }


def _cells(rule: Rule | None) -> list[str]:
    if rule is None:
        return [_NONE] * 3
    disagree = f"{rule.risk:.1%} (at most {rule.high:.1%})"
    return [f"{rule.threshold:.4g}", f"{rule.share:.1%}", disagree]


def _hardened(rule: Rule | None) -> list[str]:
    return [_NONE] * 2 if rule is None else [f"{rule.share:.1%}", f"{rule.risk:.1%}"]
