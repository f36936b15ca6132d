"""The plan of a scan: the rows of each model in their roles, and how to pair them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw

from softcal._display import keyword
from softcal._validation.rules import MISSING
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.scanning.ballots import counted_and_first, one_per_item, voted_rows
from softcal.scanning.checks import BROKEN, Check, refuse
from softcal.scanning.class_sums import MANY_TARGETS
from softcal.scanning.classes import class_label, class_preds, spec_of
from softcal.scanning.data import Classes, Column, Cut, Data, Files, Long, Model, RawVotes
from softcal.scanning.ranges import ranges_of
from softcal.scanning.rows import (
    LabelRows,
    Roles,
    Uses,
    common_columns,
    in_roles,
    label_rows,
    scaled_check,
)
from softcal.scanning.source import collected, kept, opened, opened_to_join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from softcal.scanning.patterns import ClassSpec
    from softcal.scanning.ranges import Ranges
    from softcal.scanning.rows import Joined
    from softcal.scanning.source import Frame, Source


class ModelRows(NamedTuple):
    """Where the rows of a model are: in which columns of which frame."""

    name: str
    roles: Roles
    p: str
    y: tuple[str, ...]
    m: str | None


class Words(NamedTuple):
    """The texts of labels, in the column word, of which one counts as 1."""

    label: str
    positive: str
    rows: Frame


class Plan(NamedTuple):
    """What `scan` computes."""

    data: Data
    con: Any
    models: tuple[ModelRows, ...]
    targets: tuple[str, ...]
    label: str
    of_votes: str | None = None
    classes: ClassSpec | None = None
    ranges: tuple[Ranges, ...] = ()
    words: tuple[Words, ...] = ()
    joined: Joined | None = None
    unmatched: int = 0  # rows that are dropped because their items have no votes
    items: bool = False  # whether models are paired by item

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.data.sample_weight is not None

    @property
    def voted(self) -> bool:
        """Whether the numbers of votes are known."""
        return self.models[0].m is not None

    @property
    def rater(self) -> str | None:
        """The column of raters, if intervals are to hold for new raters."""
        label = self.data.y_true
        if not isinstance(label, RawVotes) or not label.raters:
            return None
        return label.rater or "raters"

    @property
    def by(self) -> list[str]:
        """The names of segments in the rows."""
        return [f"by_{k}" for k in range(len(self.data.by))]

    @property
    def shared(self) -> bool:
        """Whether all models have the same rows."""
        return len({id(model.roles) for model in self.models}) == 1

    @property
    def grid(self) -> Bins:
        """The bins of the set, which are coarser with groups or very many classes.

        The sums of 1,000 classes take 93 MB per model on the standard grid, and as much again
        in each thread. On 118 bins, they take 17 MB.
        """
        coarse = self.data.groups is not None or len(self.targets) > MANY_TARGETS
        return Bins.grid(self.data.bins, coarse=coarse)

    @property
    def pair_grid(self) -> Bins | None:
        """The bins of sums of pairs of models; None without pairs."""
        several = self.data.pairs and len(self.models) > 1 and len(self.targets) != 2
        possible = self.shared or self.items
        return Bins.tie_grid(self.data.bins) if several and possible else None

    def kept(self) -> Plan:
        """Return the plan with numbers that are parsed once, for several queries."""
        return self.with_rows(lambda own: kept(own.rows, self.con) if own.parsed else own.rows)

    def with_rows(self, change: Callable[[Roles], Frame]) -> Plan:
        """Return the plan with other rows."""
        different = {id(model.roles): model.roles for model in self.models}
        found = {key: roles._replace(rows=change(roles)) for key, roles in different.items()}
        models = tuple(model._replace(roles=found[id(model.roles)]) for model in self.models)
        return self._replace(models=models)

    def part(self, model: int, target: int = 0) -> Frame:
        """Return the rows of a model and target: p, y, w, m, keys, and status."""
        own = self.models[model]
        return own.roles.rows.select(
            *self._keys(own.roles), "status",
            nw.col(own.p).alias("p"), nw.col(own.y[target]).alias("y"),
            *([nw.col(own.m).alias("m")] if own.m else []),
        )  # fmt: skip

    def pair(self, one: int, two: int) -> Frame:
        """Return the rows that two models share and that count: pa, ya, pb, yb, w, and keys."""
        a, b = self.models[one], self.models[two]
        if a.roles is b.roles:
            rows = a.roles.rows.filter(nw.col("status") == 0)
            ends = {"pa": a.p, "ya": a.y[0], "pb": b.p, "yb": b.y[0]}
            more = [nw.col(a.m).alias("m")] if a.m else []
            return rows.select(
                *self._keys(a.roles), *(nw.col(c).alias(end) for end, c in ends.items()), *more
            )
        first, second = (each.roles.rows.filter(nw.col("status") == 0) for each in (a, b))
        first = first.select(
            *self._keys(a.roles), nw.col(a.p).alias("pa"), nw.col(a.y[0]).alias("ya")
        )
        second = second.select("item", nw.col(b.p).alias("pb"), nw.col(b.y[0]).alias("yb"))
        return first.join(second, on="item", how="inner")

    def _keys(self, roles: Roles) -> list[str]:
        have = roles.rows.collect_schema().names()
        return [*self.by, *(name for name in ("w", "group", "item") if name in have)]


def planned(data: Data, con: Any) -> Plan:
    """Open the sources of a description, and return its rows in their roles."""
    if isinstance(data.y_prob, Long):
        return _long(data, data.y_prob, con)
    joined = isinstance(data.y_true, RawVotes)
    source = opened_to_join(data.source, con) if joined else opened(data.source, con)
    models, ranges = data.y_prob, _ranges(data, source, con)
    uses = Uses(source)
    found = _found(data, models, uses, con, ranges)
    first, names = found.labels[0], dict.fromkeys(each.name for each in found.labels)
    return Plan(
        data, con, found.models, first.targets, ", ".join(names),
        first.of_votes, found.classes, ranges=ranges, joined=first.joined,
        words=tuple(_words(each, uses) for each in found.labels if each.words is not None),
        unmatched=0 if first.joined is None else first.joined.dropped,
    )  # fmt: skip


class _Found(NamedTuple):
    """The rows of models of one source, and their different labels."""

    models: tuple[ModelRows, ...]
    labels: list[LabelRows]
    classes: ClassSpec | None


def _found(
    data: Data, models: Mapping[str, Model], uses: Uses, con: Any, ranges: Sequence[Ranges],
    item: str | None = None, keep: tuple[str, str] | None = None,
) -> _Found:  # fmt: skip
    """Return the rows of models of one source in their roles.

    `keep` is a column, and its value in the rows to keep.
    """
    columns, others = common_columns(data, uses, ranges)
    spec = spec_of(data.y_true, models, uses.source) if data.is_of_classes else None
    checks: list[Check] = []
    for k, (name, model) in enumerate(models.items()):
        if spec is not None:
            assert isinstance(model.pred, Classes)  # noqa: S101
            values, more = class_preds(
                name, model.pred, spec.models[k], spec, uses, keep_logits=data.keep_logits
            )
            columns |= {f"p{k}_{c}": x for c, x in enumerate(values)}
            checks += more
        else:
            assert isinstance(model.pred, Column)  # noqa: S101 - not of classes
            check, columns[f"p{k}"] = scaled_check(
                model.pred.name, model.pred.scale, uses, "pred_scale", keep_logits=data.keep_logits
            )
            checks.append(check)
    labels, own = _labels(data, models, spec, uses, con)
    for k, label in enumerate(labels):
        columns |= {f"y{k}_{t}": y for t, y in enumerate(label.y)}
        if label.votes is not None:
            columns[f"m{k}"] = label.votes
    joined = labels[0].joined
    if item is not None:
        columns["item"] = uses.text(item)
        others.append(Check(item, columns["item"], (MISSING,), names=True))
    if joined is not None:
        columns["item"] = nw.col("item")
    of_labels = [check for label in labels for check in label.checks]
    roles = in_roles(
        uses, columns, [*of_labels, *checks, *others], drop=data.drop_missing,
        frame=None if joined is None else joined.rows,
        keep=None if keep is None else uses.text(keep[0]) == keep[1],
    )._replace(plain=_plain(data, models, labels, spec))  # fmt: skip
    rows = [
        ModelRows(
            name, roles, f"p{k}",
            tuple(f"y{own[k]}_{t}" for t in range(len(labels[own[k]].y))),
            None if labels[own[k]].votes is None else f"m{own[k]}",
        )
        for k, name in enumerate(models)
    ]  # fmt: skip
    return _Found(tuple(rows), labels, spec)


def _words(label: LabelRows, uses: Uses) -> Words:
    assert label.words is not None  # noqa: S101 - labels are words
    rows = uses.source.frame(uses.all).select(label.words.alias("word"))
    return Words(label.name, str(label.positive), rows)


def _labels(
    data: Data, models: Mapping[str, Model], spec: ClassSpec | None, uses: Uses, con: Any
) -> tuple[list[LabelRows], list[int]]:
    """Return the different labels of models, and the number of the label of each model."""
    same = [0] * len(models)
    if isinstance(data.y_true, RawVotes):
        classes = None if spec is None else spec.names
        made = voted_rows(data.y_true, uses, con, classes, drop=data.drop_missing)
        return [made if spec is None else made._replace(targets=spec.targets)], same
    if spec is not None:
        assert isinstance(data.y_true, Classes)  # noqa: S101 - others are refused
        return [class_label(data.y_true, spec, uses)], same
    given = [model.label or data.y_true for model in models.values()]
    different = list(dict.fromkeys(given))
    found = [label_rows(label, uses) for label in different]
    if any((each.votes is None) != (found[0].votes is None) for each in found):
        message = "either all labels must have numbers of votes, or none."
        raise InputError(message)
    if any(each.targets != found[0].targets for each in found):
        message = "either all labels must be intervals, or none."
        raise InputError(message)
    return found, [different.index(label) for label in given]


def _plain(
    data: Data, models: Mapping[str, Model], labels: Sequence[LabelRows], spec: ClassSpec | None
) -> dict[str, tuple[str, ...]] | None:
    """Return the columns of each role, if no value is converted and no row is dropped."""
    preds = [model.pred for model in models.values()]
    if data.drop_missing or any(pred.scale != "probability" for pred in preds):
        return None
    found: dict[str, tuple[str, ...]] = {}
    for k, pred in enumerate(preds):
        found[f"p{k}"] = (pred.name,) if isinstance(pred, Column) else spec.models[k]  # type: ignore[union-attr]
    for k, label in enumerate(labels):
        if label.plain is None:
            return None
        of_y = f"y{k}_0" if spec is None else f"y{k}"
        found |= {of_y if role == "y" else f"m{k}": own for role, own in label.plain.items()}
    if data.sample_weight is not None:
        found["w"] = (data.sample_weight,)
    return found


def _ranges(data: Data, source: Source, con: Any) -> tuple[Ranges, ...]:
    return tuple(ranges_of(each, source, con) for each in data.by if isinstance(each, Cut))


def _long(data: Data, long: Long, con: Any) -> Plan:
    """Plan rows of one model each: of a column of models, or of one source per model."""
    models: list[ModelRows] = []
    words: dict[Any, Words] = {}  # of each source
    ranges: tuple[Ranges, ...] = ()
    dropped = 0
    for name, (source, chosen) in _sources(data, long, con).items():
        uses = Uses(source)
        ranges = ranges or _ranges(data, source, con)
        own = {name: Model(long.column)}  # type: ignore[arg-type]
        keep = None if chosen is None else (str(long.model), chosen)
        found = _found(data, own, uses, con, ranges, long.item, keep)
        (model,), (label,) = found.models, found.labels
        if label.words is not None:
            words.setdefault(id(source), _words(label, uses))
        # Rows are chosen, so that columns of the source are not those of the model.
        roles = model.roles._replace(plain=None)
        if long.item is not None:
            roles = _one_row_each(roles, long, name, drop=data.drop_missing)
        models.append(model._replace(roles=roles, m="m0" if long.epochs else model.m))
    if long.item is not None and len(models) > 1 and (data.pairs or long.drop_unmatched):
        models, dropped = _matched_models(models, long)
    return Plan(
        data, con, tuple(models), label.targets, label.name,
        label.name if long.epochs else label.of_votes, ranges=ranges, items=long.item is not None,
        unmatched=dropped, words=_of_all(words),
    )  # fmt: skip


def _of_all(words: Mapping[Any, Words]) -> tuple[Words, ...]:
    """Return the texts of all sources as one, because a model may never be right."""
    each = list(words.values())
    return (each[0]._replace(rows=nw.concat([one.rows for one in each])),) if each else ()


def _matched_models(models: list[ModelRows], long: Long) -> tuple[list[ModelRows], int]:
    """Return models with the same items, and how many rows of the first were left out."""
    frames = [model.roles.rows for model in models]
    items = [rows.filter(nw.col("status") == 0).select("item") for rows in frames]
    dropped = 0
    for k, model in enumerate(models):
        rows = frames[k]
        for j, other in enumerate(items):
            if j == k:
                continue
            alone = counted_and_first(items[k].join(other, on="item", how="anti"), ["item"])
            if alone is not None and not long.drop_unmatched:
                message = (
                    f"models are compared on the same items: {alone[0]:,} values of {long.item} "
                    f"have a row of {model.name!r} and none of {models[j].name!r}, the first is "
                    f"{alone[1][0]!r:.60}. Pass "
                    f"{keyword('models:drop_unmatched', True)} to leave them out."  # noqa: FBT003
                )
                raise InputError(message)
            if alone is not None:
                rows = rows.join(other, on="item", how="semi")
                dropped += alone[0] if k == 0 else 0
        models[k] = model._replace(roles=model.roles._replace(rows=rows))
    return models, dropped


def _sources(data: Data, long: Long, con: Any) -> dict[str, tuple[Source, str | None]]:
    """Return the source of each model, and the value of its column of models."""
    if isinstance(data.y_true, RawVotes) or data.is_of_classes:
        message = (
            "one row per item and model needs one prediction and one label per row. Score the "
            "models of raw votes or of many classes as columns, or one at a time."
        )
        raise InputError(message)
    if long.model is not None:
        source = opened_to_join(data.source, con)
        uses = Uses(source)
        names = uses.text(long.model)
        found = collected(source.frame(uses.all).select(names.alias("model")).unique())
        models = found["model"].to_pylist()
        if None in models and not data.drop_missing:
            message = f"{long.model} must have no missing values: some rows have no model."
            raise InputError(message)
        known = sorted(name for name in models if name is not None)
        if not known:
            message = f"{long.model} names no model, so there is nothing to measure."
            raise InputError(message)
        return {name: (source, name) for name in known}
    given = data.source
    if isinstance(given, dict):
        return {str(name): (opened_to_join(each, con), None) for name, each in given.items()}
    from dataclasses import replace

    from softcal.scanning.files import files_of

    how = given if isinstance(given, Files) else Files(given)
    paths = files_of(how.paths)
    names_of = [path.name.partition(".")[0] for path in paths]
    if len(set(names_of)) < len(paths):
        names_of = [str(Path(path.parent.name) / path.name) for path in paths]
    return {
        name: (opened(replace(how, paths=path), con), None)
        for name, path in zip(names_of, paths, strict=True)
    }


def _one_row_each(roles: Roles, long: Long, model: str, *, drop: bool) -> Roles:
    """Return one row per item: refuse repeated items, or count repetitions as votes."""
    rows = roles.rows
    sizes = rows.group_by("item").agg(nw.len().alias("n"))
    twice = counted_and_first(sizes.filter(nw.col("n") > 1), ["item"])
    if twice is not None and not long.epochs:
        message = (
            f"each {long.item} must have one row of a model: {twice[0]:,} have more of {model!r}, "
            f"the first is {twice[1][0]!r:.60}. If these are repetitions, state it: "
            f"{keyword('epochs')}."
        )
        raise InputError(message)
    if not long.epochs:
        return roles
    if counted_and_first(rows.filter(nw.col("status") == BROKEN), ["item"]) is not None:
        refuse(roles.source, roles.uses, roles.checks, drop=drop)
    counts = rows.filter(nw.col("status") == 0)
    have = rows.collect_schema().names()
    others = [name for name in have if name not in ("item", "y0_0", "status", "m0")]
    shown = {"p0": getattr(long.column, "name", ""), "w": "the weight", "group": "the group"}
    own = one_per_item(
        counts, str(long.item), {name: shown.get(name, "a segment") for name in others},
        remedy="If each repetition has its own prediction, leave out item and epochs (--item, "
        "--epochs), and name the items as groups (--group).",
    )  # fmt: skip
    votes = counts.group_by("item").agg(nw.col("y0_0").mean(), nw.len().alias("m0"))
    votes = votes.with_columns(nw.col("m0").cast(nw.Float64))
    joined = own.join(votes, on="item", how="inner").with_columns(nw.lit(0).alias("status"))
    return roles._replace(rows=joined)
