"""Many classes: the predictions of each class, and labels of classes, with their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw

from softcal._validation.rules import (
    CLASS_COUNT,
    CLASS_SHARE,
    LOGIT,
    MISSING,
    NO_VOTE,
    ROW_SUM,
    class_values,
    known_rule,
    length_rule,
    scaled_rules,
)
from softcal.scanning.checks import Check
from softcal.scanning.data import Classes
from softcal.scanning.expressions import added, divided, scaled, when
from softcal.scanning.patterns import ClassSpec, class_spec, text_of_spec
from softcal.scanning.rows import LabelRows, stated, with_votes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal._validation.rules import Rule, Scale
    from softcal.scanning.data import Label, Model
    from softcal.scanning.rows import Uses
    from softcal.scanning.source import Source


def spec_of(label: Label | None, models: Mapping[str, Model], source: Source) -> ClassSpec:
    """Find the columns of classes of a label and of models."""
    preds = [model.pred for model in models.values() if isinstance(model.pred, Classes)]
    own = label if isinstance(label, Classes) else None
    return class_spec(
        None if own is None else own.columns, [each.columns for each in preds], source,
        counts=own is not None and own.counts, classes=(own or preds[0]).names,
        ordered=own is not None and own.ordered,
    )  # fmt: skip


def class_preds(
    name: str, pred: Classes, columns: Sequence[str], spec: ClassSpec, uses: Uses,
    *, keep_logits: bool,
) -> tuple[list[nw.Expr], list[Check]]:  # fmt: skip
    """Return the predictions of a model for each class, and their checks."""
    if keep_logits and pred.scale == "logit":
        return _values(columns, LOGIT, spec, uses)
    return _probabilities(name, columns, pred.scale, "classes:pred_scale", spec, uses)


def class_label(label: Classes, spec: ClassSpec, uses: Uses) -> LabelRows:
    """Return what a label of many classes needs."""
    text = text_of_spec(label.columns)
    made = LabelRows(text, [], (), targets=spec.targets)
    if spec.named:
        made = _named(made, spec, uses)
    elif label.counts:
        counts, checks = _values(spec.label, CLASS_COUNT, spec, uses)
        total = added(counts)
        checks.append(Check(f"rows of {text}", total, (NO_VOTE,), shown="sums to {}"))
        shares = tuple(when(total >= 1, x / total, 0.0) for x in counts)
        made = made._replace(checks=checks, y=shares, votes=total, of_votes=text)
    else:
        y, checks = _probabilities(text, spec.label, label.scale, "classes:label_scale", spec, uses)
        plain = {"y": spec.label} if label.scale == "probability" else None
        made = made._replace(checks=checks, y=tuple(y), plain=plain)
    return made if label.votes is None else with_votes(made, label.votes, uses, named=spec.named)


def _named(made: LabelRows, spec: ClassSpec, uses: Uses) -> LabelRows:
    """Return the rows of a label of class names. 3.0 is also the class 3."""
    name = spec.label[0]
    text = uses.text(name)
    rule = known_rule(spec.names)
    known = when(text.is_in([*spec.names, *(f"{each}.0" for each in spec.names)]), 0, -1)
    checks = [
        Check(name, text, (MISSING,), names=True),
        Check(name, known, (rule,), raw=text, names=True),
    ]
    return made._replace(checks=checks, y=(text,))


def _probabilities(
    name: str, columns: Sequence[str], scale: Scale, option: str, spec: ClassSpec, uses: Uses
) -> tuple[list[nw.Expr], list[Check]]:
    """Return the probabilities of classes on a scale, and the checks of values and sums."""
    rules, of_sums = class_rules(scale, option)
    note = stated(", ".join(columns), option, scale)
    values, checks = _values(columns, rules, spec, uses, note, percent=scale == "percent")
    if scale == "logit":
        most = nw.max_horizontal(*values)
        parts = [(x - most).exp() for x in values]
        whole = added(parts)
        return [part / whole for part in parts], checks
    found = [scaled(x, scale) for x in values]
    summed = values if scale == "percent" else found
    assert of_sums is not None  # noqa: S101 - logits have been returned
    total = added(summed)
    checks.append(Check(f"rows of {name}", total, (of_sums,), shown="sums to {}"))
    return found, checks


def _values(
    columns: Sequence[str], rules: tuple[Rule, ...], spec: ClassSpec, uses: Uses,
    stated: tuple[str, str] | None = None, *, percent: bool = False,
) -> tuple[list[nw.Expr], list[Check]]:  # fmt: skip
    """Return the number of each class, of columns or of one column of lists, and their checks."""
    if len(columns) > 1:
        found = [uses.number(each, percent=percent) for each in columns]
        pairs = zip(columns, found, strict=True)
        return found, [Check(each, x, rules, stated=stated) for each, x in pairs]
    (name,) = columns
    size = len(spec.names)
    lists = uses.value(name)
    length = Check(name, lists.list.len().cast(nw.Float64), (MISSING, length_rule(size)))
    fits = lists.list.len() == size
    fitting = nw.when(fits).then(lists)  # first, because Polars refuses a place after the end
    found = [fitting.list.get(c).cast(nw.Float64) for c in range(size)]
    # A list of another length has a rule of its own.
    checks = [Check(f"values of {name}", when(fits, x, 0.5), rules) for x in found]
    return found, [length, *checks]


def class_rules(scale: Scale, option: str) -> tuple[tuple[Rule, ...], Rule | None]:
    """Return what the values of classes must be on a scale, and what their sums must be."""
    if scale == "logit":
        return LOGIT, None
    if scale == "logprob":
        return scaled_rules(CLASS_SHARE, scale, option), ROW_SUM
    if scale == "percent":
        of_sums = ROW_SUM._replace(
            must=ROW_SUM.must.replace("1 within", "100% within"),
            broken=lambda sums: ROW_SUM.broken(divided(sums, 100)),
        )
        return scaled_rules(CLASS_SHARE, scale, option), of_sums
    missing, outside = CLASS_SHARE
    hint = outside._replace(remedy=lambda column, spread: class_values(column, spread, option))
    return (missing, hint), ROW_SUM
