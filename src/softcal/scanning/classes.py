"""Many classes: the columns of each class in their roles, and the sums of batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw

from softcal._validation.rules import (
    CLASS_COUNT,
    CLASS_SHARE,
    LOGIT,
    MISSING,
    NO_VOTE,
    ROW_SUM,
    VOTES,
    class_values,
    known_rule,
    length_rule,
    scaled_rules,
)
from softcal.scanning.ballots import Counted, counted, matched
from softcal.scanning.checks import Check
from softcal.scanning.data import Classes, RawVotes
from softcal.scanning.expressions import divided, scaled, when
from softcal.scanning.patterns import ClassSpec, class_spec, text_of_spec
from softcal.scanning.rows import misfit_check
from softcal.table.tableset import TOP, thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal._validation.rules import Rule, Scale
    from softcal.scanning.data import Data
    from softcal.scanning.rows import Uses
    from softcal.scanning.source import Frame


class ClassPlan(NamedTuple):
    """The columns of classes in their roles: p0_0, p0_1, ... and y_0, y_1, ... or `label`."""

    names: tuple[str, ...]
    label: str
    columns: dict[str, nw.Expr]
    checks: list[Check]
    models: tuple[tuple[str, ...], ...]  # the columns of each model
    ordered: bool = False
    plain: dict[str, tuple[str, ...]] | None = None  # columns of roles, if none is converted
    votes: str | None = None
    of_votes: str | None = None
    named: bool = False  # whether the label is a class name
    rows: Frame | None = None  # joined to votes
    counted: Counted | None = None
    unmatched: int = 0
    notes: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the set."""
        return (TOP, *self.names, *(thresholds(self.names) if self.ordered else ()))


def class_plan(data: Data, preds: Mapping[str, Any], uses: Uses, con: Any) -> ClassPlan:
    """Find the columns of classes, and return them in their roles."""
    label = data.y_true
    own = label if isinstance(label, Classes) else None
    names = own.names if own is not None else next(iter(preds.values())).names
    spec = class_spec(
        None if own is None else own.columns, [each.columns for each in preds.values()],
        uses.source, counts=own is not None and own.counts, classes=names,
        ordered=own is not None and own.ordered,
    )  # fmt: skip
    columns: dict[str, nw.Expr] = {}
    checks: list[Check] = []
    for k, (model, pred) in enumerate(preds.items()):
        if data.keep_logits and pred.scale == "logit":
            found, more = _values(spec.models[k], LOGIT, spec, uses)
        else:
            found, more = _probabilities(
                model, spec.models[k], pred.scale, "classes:pred_scale", spec, uses
            )
        columns |= {f"p{k}_{c}": x for c, x in enumerate(found)}
        checks += more
    if isinstance(label, RawVotes):
        return _of_votes(data, label, spec, columns, checks, uses, con)
    assert own is not None  # noqa: S101 - the other kinds of labels are refused
    text = text_of_spec(own.columns)
    made = ClassPlan(spec.names, text, columns, checks, spec.models, own.ordered)
    if spec.named:
        made = _named(made, spec, uses)
    elif own.counts:
        made = _counts(made, spec, text, uses)
    else:
        y, more = _probabilities(text, spec.label, own.scale, "classes:label_scale", spec, uses)
        made = made._replace(checks=[*more, *checks])
        made.columns.update({f"y_{c}": x for c, x in enumerate(y)})
    if own.votes is not None:
        made = _with_votes(made, own.votes, uses)
    scales = {own.scale, *(each.scale for each in preds.values())}
    if scales == {"probability"} and not (own.counts or spec.named or isinstance(own.votes, int)):
        single = {"m": own.votes, "w": data.sample_weight}
        plain = {f"p{k}": each for k, each in enumerate(spec.models)} | {"y": spec.label}
        plain |= {role: (str(name),) for role, name in single.items() if name is not None}
        made = made._replace(plain=plain)
    return made


def _named(made: ClassPlan, spec: ClassSpec, uses: Uses) -> ClassPlan:
    """Return the plan of a label of class names. 3.0 is also the class 3."""
    name = spec.label[0]
    text = uses.text(name)
    rule = known_rule(spec.names)
    known = when(text.is_in([*spec.names, *(f"{each}.0" for each in spec.names)]), 0, -1)
    checks = [
        Check(name, text, (MISSING,), names=True),
        Check(name, known, (rule,), raw=text, names=True),
    ]
    made.columns["label"] = text
    return made._replace(checks=[*checks, *made.checks], named=True)


def _counts(made: ClassPlan, spec: ClassSpec, text: str, uses: Uses) -> ClassPlan:
    """Return the plan of vote counts."""
    counts, checks = _values(spec.label, CLASS_COUNT, spec, uses)
    total = sum(counts[1:], counts[0])
    checks.append(Check(f"rows of {text}", total, (NO_VOTE,), shown="sums to {}"))
    shares = {f"y_{c}": when(total >= 1, x / total, 0.0) for c, x in enumerate(counts)}
    made.columns.update({**shares, "m": total})
    return made._replace(checks=[*checks, *made.checks], votes="m", of_votes=text)


def _with_votes(made: ClassPlan, votes: str | int, uses: Uses) -> ClassPlan:
    m = uses.number(votes) if isinstance(votes, str) else nw.lit(float(votes))
    checks = [Check(votes, m, VOTES)] if isinstance(votes, str) else []
    if not made.named:
        shares = [made.columns[f"y_{c}"] for c in range(len(made.names))]
        checks += [misfit_check(made.label, y, votes, m) for y in shares]
    made.columns["m"] = m
    return made._replace(checks=[*made.checks, *checks], votes="m", of_votes=str(votes))


def _of_votes(
    data: Data,
    label: RawVotes,
    spec: ClassSpec,
    columns: dict[str, nw.Expr],
    checks: list[Check],
    uses: Uses,
    con: Any,
) -> ClassPlan:
    """Return the plan of raw votes for many classes."""
    from softcal.scanning.notes import of_votes

    item = uses.text(str(label.item))
    found = counted(label, uses.source, con, classes=spec.names, drop=data.drop_missing)
    joined = matched(found, label, uses, item, drop=data.drop_missing)
    columns = {**columns, "m": nw.col("m"), "item": nw.col("item")}
    whole = 1.0 if found.matrix is not None else nw.col("m")
    columns |= {f"y_{c}": nw.col(f"n{c}") / whole for c in range(len(spec.names))}
    checks = [Check(str(label.item), item, (MISSING,), names=True), *checks]
    return ClassPlan(
        spec.names, label=found.name, columns=columns, checks=checks, models=spec.models,
        votes="m", of_votes=found.name, rows=joined.rows, counted=found, unmatched=joined.dropped,
        notes=of_votes(label, found, joined.without, joined.alone),
    )  # fmt: skip


def _probabilities(
    name: str, columns: Sequence[str], scale: Scale, option: str, spec: ClassSpec, uses: Uses
) -> tuple[list[nw.Expr], list[Check]]:
    """Return the probabilities of classes on a scale, and the checks of values and sums."""
    rules, of_sums = class_rules(scale, option)
    values, checks = _values(columns, rules, spec, uses, percent=scale == "percent")
    if scale == "logit":
        most = nw.max_horizontal(*values)
        parts = [(x - most).exp() for x in values]
        whole = sum(parts[1:], parts[0])
        return [part / whole for part in parts], checks
    found = [scaled(x, scale) for x in values]
    summed = values if scale == "percent" else found
    assert of_sums is not None  # noqa: S101 - logits have been returned
    total = sum(summed[1:], summed[0])
    checks.append(Check(f"rows of {name}", total, (of_sums,), shown="sums to {}"))
    return found, checks


def _values(
    columns: Sequence[str], rules: tuple[Rule, ...], spec: ClassSpec, uses: Uses, *,
    percent: bool = False,
) -> tuple[list[nw.Expr], list[Check]]:  # fmt: skip
    """Return the number of each class, of columns or of one column of lists, and their checks."""
    if len(columns) > 1:
        found = [uses.number(each, percent=percent) for each in columns]
        return found, [Check(each, x, rules) for each, x in zip(columns, found, strict=True)]
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
            broken=lambda sums: ROW_SUM.broken(divided(sums, 100)),  # type: ignore[arg-type]
        )
        return scaled_rules(CLASS_SHARE, scale, option), of_sums
    missing, outside = CLASS_SHARE
    hint = outside._replace(remedy=lambda column, spread: class_values(column, spread, option))
    return (missing, hint), ROW_SUM
