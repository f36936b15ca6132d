"""Scales that the values make unlikely: percentages and logits that are all in [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softcal._display import keyword
from softcal.scanning.data import Bounds, Classes, Column, Long, Shares
from softcal.scanning.patterns import class_spec
from softcal.scanning.rows import Uses
from softcal.scanning.source import collected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from softcal.scanning.plan import Plan

_STATED = ("percent", "logit")


def stated_scales(plan: Plan) -> Iterator[tuple[str, str, bool]]:
    """Yield columns, the option that states their scale, and whether a value is outside [0, 1]."""
    data = plan.data
    asked: list[tuple[str, Any, tuple[str, ...]]] = []
    label = data.y_true
    if isinstance(label, Column | Shares) and label.scale in _STATED:
        asked.append(("label_scale", label.scale, (label.name,)))
    if isinstance(label, Bounds) and label.scale in _STATED:
        asked.append(("label_scale", label.scale, (label.low, label.high)))
    preds = [data.y_prob.column] if isinstance(data.y_prob, Long) else [
        model.pred for model in data.y_prob.values()
    ]  # fmt: skip
    source = plan.models[0].roles.source
    for pred in preds:
        if isinstance(pred, Column) and pred.scale in _STATED:
            asked.append(("pred_scale", pred.scale, (pred.name,)))
        if isinstance(pred, Classes) and pred.scale in _STATED:
            spec = class_spec(None, [pred.columns], source, classes=pred.names)
            asked.append(("classes:pred_scale", pred.scale, spec.models[0]))
    for option, scale, columns in asked:
        if source.kind(columns[0]) == "list":
            continue
        uses = Uses(source)
        each = [uses.number(name, percent=scale == "percent") for name in columns]
        ends = [x.max().alias(f"high{k}") for k, x in enumerate(each)]
        ends += [x.min().alias(f"low{k}") for k, x in enumerate(each)]
        found = collected(source.frame(uses.all).select(*ends)).to_pylist()[0].values()
        outside = any(end is not None and not 0 <= end <= 1 for end in found)
        yield ", ".join(columns), keyword(option, scale), outside
