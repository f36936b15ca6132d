"""`scan`: one pass over rows of any source into a set of tables."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal._display import did_you_mean, keyword
from softcal._optional import naming_the_extra
from softcal._validation.inputs import refuse_zeros, unlikely_scale
from softcal.exceptions import InputError, warn
from softcal.table.build import Builder
from softcal.table.reliability import warn_if_hard

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from softcal._validation.inputs import Coded, Rows
    from softcal.bins import BinsLike
    from softcal.scanning.data import Cut, Data, Days, Label, Long
    from softcal.scanning.plan import Plan
    from softcal.scanning.stream import Streamed
    from softcal.table.tableset import TableSet

    Look = Callable[[int, Mapping[str, Rows], Coded | None], None]

DROP = keyword("drop_missing", True)  # noqa: FBT003
_MOST_WORDS = 20


@naming_the_extra()
def scan(
    source: Any,
    *,
    y_true: str | Label | None = None,
    y_prob: str | Sequence[str] | Mapping[str, Any] | Long,
    by: str | Cut | Days | Sequence[str | Cut | Days] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
    bins: BinsLike = 10,
    pairs: bool = True,
    drop_missing: bool = False,
    date: str | dt.date | None = None,
) -> TableSet:
    """Compute the tables of files or of a frame in one pass over the rows."""
    from softcal.scanning.data import Data

    data = Data.of(
        source, y_true=y_true, y_prob=y_prob, by=by, sample_weight=sample_weight, groups=groups,
        bins=bins, pairs=pairs, drop_missing=drop_missing, date=date,
    )  # fmt: skip
    with opened_plan(data) as plan:
        return collect(plan).tables


@contextmanager
def opened_plan(data: Data) -> Iterator[Plan]:
    """Open the sources of a description; close DuckDB afterwards."""
    from softcal.scanning.plan import planned
    from softcal.scanning.source import connected, naming_the_place

    con = connected()
    try:
        with naming_the_place("the source"):
            yield planned(data, con)
    finally:
        con.close()


class Scanned(NamedTuple):
    """The set of a plan, and what else was found."""

    tables: TableSet
    words: dict[str, int]
    notes: tuple[str, ...] = ()
    positive: str | None = None

    def is_positive(self, word: str) -> bool:
        """Return whether a word of a label counts as 1."""
        from softcal.scanning.ballots import plain_word

        return self.positive in (word, plain_word(word))


def scanned(data: Data, look: Look | None = None) -> Scanned:
    """Add up the rows of a description. `look` then gets the rows, a bounded number at a time."""
    with opened_plan(data) as plan:
        found = collect(plan)
        if look is not None and plan.classes is None and plan.shared:
            from softcal.scanning.stream import rows_in_batches

            for k, (rows, groups) in enumerate(rows_in_batches(plan)):
                look(k, rows, groups)
        return found


def collect(plan: Plan) -> Scanned:
    """Add up the rows of a plan; raise if a value breaks a rule."""
    from softcal.scanning.cells import Cells
    from softcal.scanning.checks import refuse
    from softcal.scanning.stream import stream_classes

    data = plan.data
    builder = Builder(
        [model.name for model in plan.models], data.columns_of_segments, bins=data.bins,
        grid=plan.grid, pairs=plan.pair_grid, group=data.groups, rater=plan.rater,
    )  # fmt: skip
    cells = Cells(plan)
    if plan.classes is not None:
        streamed = stream_classes(plan, builder, cells)
    else:
        streamed = _scalar(plan, builder, cells)
    if streamed is None:
        for model in plan.models:
            roles = model.roles
            refuse(roles.source, roles.uses, roles.checks, drop=data.drop_missing)
    assert streamed is not None  # noqa: S101 - refused otherwise
    words = _words(plan)
    tables = _finished(plan, builder, streamed, words)
    return Scanned(tables, words, plan.notes, getattr(data.y_true, "positive", None))


def _scalar(plan: Plan, builder: Builder, cells: Any) -> Streamed | None:
    """Add up rows with one prediction each: streamed into the kernel, or by queries."""
    from softcal.scanning.queries import Queries
    from softcal.scanning.stream import stream_tables

    queries = Queries(plan, builder, cells)
    here = all(model.roles.source.is_here for model in plan.models)
    if plan.by or not here:
        queries.refuse_many_cells()
        streamed = queries.tables()
    else:
        streamed = None
        for k in _firsts(plan):
            models = [j for j, m in enumerate(plan.models) if m.roles is plan.models[k].roles]
            found = stream_tables(plan, builder, models)
            if found is None:
                return None
            streamed = found if streamed is None else streamed
    if streamed is None:
        return None
    if data_groups(plan):
        queries.groups()
    if plan.pair_grid is not None:
        queries.pairs()
    if plan.rater is not None:
        queries.raters()
    return streamed


def data_groups(plan: Plan) -> bool:
    """Return whether rows have groups."""
    return plan.data.groups is not None


def _firsts(plan: Plan) -> list[int]:
    """Return the first model of each frame."""
    seen: dict[int, int] = {}
    for k, model in enumerate(plan.models):
        seen.setdefault(id(model.roles), k)
    return list(seen.values())


def _words(plan: Plan) -> dict[str, int]:
    """Return how many rows have each of the most frequent words of labels."""
    import narwhals.stable.v2 as nw

    from softcal.scanning.source import collected

    if plan.words is None:
        return {}
    counted = plan.words.group_by("word").agg(nw.len().alias("n"))
    found = collected(counted.filter(~nw.col("word").is_null())).to_pylist()
    often = sorted(found, key=lambda each: -each["n"])
    return {each["word"]: each["n"] for each in often}


def _finished(plan: Plan, builder: Builder, streamed: Streamed, words: dict[str, int]) -> TableSet:
    data = plan.data
    rows, dropped = streamed.rows - streamed.dropped, streamed.dropped + plan.unmatched
    if not rows and streamed.dropped:
        message = (
            f"every one of the {streamed.dropped:,} rows has a missing value, so {DROP} leaves "
            "nothing to measure. Name other columns, or impute the values first."
        )
        raise InputError(message)
    if rows:
        _refuse_unseen(plan, words)
    bounds = plan.targets == ("low", "high")
    tables = builder.finish(
        plan.label, plan.targets, weight=data.sample_weight, votes=plan.of_votes, date=data.date,
        label_high=data.y_true.high if bounds else None,  # type: ignore[union-attr]
        ordered=plan.classes is not None and plan.classes.ordered,
    )  # fmt: skip
    if rows and not tables.n:
        refuse_zeros(str(data.sample_weight), rows)
    if tables.n:
        for note in _unlikely_scales(plan):
            warn(note)
        for model in plan.models:
            from softcal.scanning.stream import Names

            names = Names(plan.label, model.name, data.sample_weight or "", plan.of_votes or "")
            warn_if_hard(tables[model.name], names)
    drops = data.drop_missing or getattr(data.y_true, "drop_unmatched", False)
    about = tables.about._replace(rows_dropped=dropped if drops else None)
    return replace(tables, about=about)


def _refuse_unseen(plan: Plan, words: Mapping[str, int]) -> None:
    """Raise if no row has the positive label, which may be misspelled."""
    from softcal.scanning.ballots import plain_word

    positive = getattr(plan.data.y_true, "positive", None)
    if plan.words is None or any(positive in (word, plain_word(word)) for word in words):
        return
    some = dict(list(words.items())[:_MOST_WORDS])
    often = ", ".join(f"{word!r} ({count:,})" for word, count in some.items())
    message = (
        f"{plan.label} must have the value {positive!r:.60}, which counts as 1, in some row: it "
        f"has it in none.{did_you_mean(positive, [*words])} Its values are: {often}."
    )
    raise InputError(message)


def _unlikely_scales(plan: Plan) -> Iterator[str]:
    """Yield notes on percentages and logits that are all in [0, 1]."""
    from softcal.scanning.scales import stated_scales

    for names, stated, outside in stated_scales(plan):
        if not outside:
            yield unlikely_scale(names, stated)
