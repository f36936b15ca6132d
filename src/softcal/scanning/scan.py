"""`scan`: one pass over rows of any source into a set of tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from softcal._display import did_you_mean, keyword
from softcal._optional import naming_the_extra
from softcal._validation.inputs import Names, unlikely_scale
from softcal.exceptions import InputError, warn
from softcal.table.build import Builder
from softcal.table.reliability import warn_if_hard

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from softcal._validation.inputs import Coded, Rows
    from softcal.bins import BinsLike
    from softcal.scanning.data import Column, Cut, Data, Days, Label, Long
    from softcal.scanning.plan import Plan, Words
    from softcal.scanning.stream import Streamed
    from softcal.table.tableset import TableSet

    Look = Callable[[int, Mapping[str, Rows], Coded | None], None]

DROP = keyword("drop_missing")
_MOST_WORDS = 20

Answer = TypeVar("Answer")


@naming_the_extra()
def scan(
    source: Any,
    *,
    y_true: str | Label | None = None,
    y_prob: str | Column | Sequence[str | Column] | Mapping[str, Any] | Long,
    by: str | Cut | Days | Sequence[str | Cut | Days] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
    bins: BinsLike = 10,
    pairs: bool = True,
    drop_missing: bool = False,
    date: str | dt.date | None = None,
) -> TableSet:
    """Compute the tables of files or of a frame in one pass over the rows.

    Tables without segments are streamed into a loop in C++. Segments, pairs of models, groups,
    raters, and votes are group-bys and joins: DuckDB computes them for files and frames in memory,
    and Spark, Polars, Dask, or Ibis for their own rows, without softcal on their workers.

    Parameters
    ----------
    source : path, glob pattern, folder, several of these, Files, frame, dict, or iterator
        Parquet, CSV, TSV, JSON, JSON-lines, Excel (.xlsx), or Arrow files, or "-" for standard
        input; `Files` has options for reading them. Or a frame of pandas, Polars, PyArrow (also a
        dataset or a stream of batches), DuckDB, Dask, PySpark, or Ibis. Or a dict from names to
        columns in memory, or an iterator of frames.
    y_true : str, Column, Shares, Counts, Bounds, RawVotes, or Classes
        The label. A name is a column of probabilities or of 0 and 1.
    y_prob : str, Column, sequence of these, mapping, or Long
        The column of predictions of each model. A mapping from the name of each model to its
        column or, for models with their own labels, to a pair (column, label); for many classes,
        to its columns ("prob_*" or names) or to one column of lists. `Long` is for rows of one
        item and model.
    by : str, Cut, Days, or sequence of these, optional
        Columns whose values define segments; rows without a value are a separate segment. There
        may be 100,000 combinations of values; memory grows with the filled bins of all of them.
        `Cut` cuts numbers into ranges, and `Days` groups dates.
    sample_weight : str, optional
        The column of weights, as in `reliability`.
    groups : str, optional
        The column of groups, as in `reliability`: integers, text, dates, or other single values.
        A set keeps the sums of at most 4,096 groups. More groups share places, by a hash of their
        names, so memory is bounded.
    bins : int, Bins, or edges, default=10
        The bins of the tables. The set keeps a finer grid (`Bins.grid`), so `coarsen` can return
        other bins.
    pairs : bool, default=True
        Whether to add up joint sums of each pair of models, which `compare` needs. For many
        classes, these are of the predicted class. For intervals, there are none.
    drop_missing : bool, default=False
        Whether to leave out rows in which a label, prediction, weight, number of votes, or group
        is missing. `TableSet.about.rows_dropped` counts them. Otherwise they are refused.
    date : str or date, optional
        The date of the rows, stored in the set.

    Returns
    -------
    TableSet
        `tables["a"]` is the table of model a, and `tables.by("country")` has the set of each
        country. For many classes, `tables["a"]` is the table of the predicted class, as in
        `top_label_reliability`, and `tables["a", "cat"]` is the table of one class. For intervals,
        `tables["a", "low"]` and `tables["a", "high"]` are the tables of their ends.

    Raises
    ------
    InputError, InputTypeError
        If a value is missing or breaks a rule, with the column, the count, and the first row, or
        if a column or file does not exist. No row is dropped without `drop_missing`.

    Notes
    -----
    Sums of the loop in C++ do not depend on the number of threads. Sums of an engine may differ in
    their last digits from run to run, by a relative error of about 1e-12.

    Examples
    --------
    >>> from importlib.resources import files
    >>> items = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    >>> models = ["prob_rf_all", "prob_lr_geometry"]
    >>> tables = scan(items, y_true="soft_malignant", y_prob=models, by="fold")
    >>> {name: round(rel.smece, 4) for name, rel in tables.items()}
    {'prob_rf_all': 0.0952, 'prob_lr_geometry': 0.1067}
    >>> tables.by("fold")["0"]
    TableSet(n=138, models=['prob_rf_all', 'prob_lr_geometry'], bins=10)
    """
    from softcal.scanning.data import Data

    data = Data.of(
        source, y_true=y_true, y_prob=y_prob, by=by, sample_weight=sample_weight, groups=groups,
        bins=bins, pairs=pairs, drop_missing=drop_missing, date=date,
    )  # fmt: skip
    return planned_and(data, collect).tables


def planned_and(data: Data, compute: Callable[[Plan], Answer]) -> Answer:
    """Open the sources of a description, compute something from its rows, and close DuckDB."""
    from softcal.scanning.plan import planned
    from softcal.scanning.source import Session, answered

    con = Session()
    try:
        return answered(con, lambda: compute(planned(data, con)))
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
        from softcal.scanning.texts import plain_word

        return self.positive in (word, plain_word(word))


def scanned(data: Data, look: Look | None = None) -> Scanned:
    """Add up the rows of a description. `look` then gets the rows, a bounded number at a time."""
    from softcal.scanning.stream import rows_in_batches

    def computed(plan: Plan) -> Scanned:
        found = collect(plan)  # raises if a file cannot be read, so `look` gets rows once
        if look is not None and plan.classes is None and plan.shared:
            for k, (rows, groups) in enumerate(rows_in_batches(plan)):
                look(k, rows, groups)
        return found

    return planned_and(data, computed)


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
    tables = _finished(plan, builder, streamed)
    words = [_words(each) for each in plan.words]
    positive = plan.words[0].positive if words else None
    notes = () if plan.joined is None else plan.joined.notes
    return Scanned(tables, words[0] if words else {}, notes, positive)


def _scalar(plan: Plan, builder: Builder, cells: Any) -> Streamed | None:
    """Add up rows with one prediction each: streamed into the kernel, or by queries."""
    from softcal.scanning.queries import Queries

    keyed = plan.by or plan.data.groups or plan.rater or plan.pair_grid is not None
    plan = plan.kept() if keyed else plan
    queries = Queries(plan, builder, cells)
    here = all(model.roles.source.is_here for model in plan.models)
    if plan.by or not here:
        queries.refuse_many_cells()
        streamed = queries.tables()
    else:
        streamed = _streamed(plan, builder)
    if streamed is None or (plan.data.groups is not None and queries.misses_groups()):
        return None
    if plan.data.groups is not None:
        queries.share_places()
        queries.groups()
    if plan.pair_grid is not None:
        queries.pairs()
    if plan.rater is not None:
        queries.raters()
    return streamed


def _streamed(plan: Plan, builder: Builder) -> Streamed | None:
    """Add up the tables of the models of each frame in the kernel, and count its rows."""
    from softcal.scanning.stream import stream_tables

    frames: dict[int, list[int]] = {}
    for k, model in enumerate(plan.models):
        frames.setdefault(id(model.roles), []).append(k)
    found = [stream_tables(plan, builder, models) for models in frames.values()]
    return None if None in found else found[0]


def _words(words: Words) -> dict[str, int]:
    """Return how many rows have each word of labels, most frequent first.

    Raise if none counts as 1, because the positive word may be misspelled.
    """
    import narwhals.stable.v2 as nw

    from softcal.scanning.source import collected
    from softcal.scanning.texts import plain_word

    counted = words.rows.group_by("word").agg(nw.len().alias("n"))
    rows = collected(counted.filter(~nw.col("word").is_null())).to_pylist()
    found = {each["word"]: each["n"] for each in sorted(rows, key=lambda each: -each["n"])}
    if not found or any(words.positive in (word, plain_word(word)) for word in found):
        return found
    some = list(found.items())[:_MOST_WORDS]
    often = ", ".join(f"{word!r} ({count:,})" for word, count in some)
    message = (
        f"{words.label} must have the value {words.positive!r:.60}, which counts as 1, in some "
        f"row: it has it in none.{did_you_mean(words.positive, [*found])} Its values are: {often}."
    )
    raise InputError(message)


def _finished(plan: Plan, builder: Builder, streamed: Streamed) -> TableSet:
    data = plan.data
    rows, dropped = streamed.rows - streamed.dropped, streamed.dropped + plan.unmatched
    if not rows and streamed.dropped:
        message = (
            f"every one of the {streamed.dropped:,} rows has a missing value, so {DROP} leaves "
            "nothing to measure. Name other columns, or impute the values first."
        )
        raise InputError(message)
    bounds = plan.targets == ("low", "high")
    tables = builder.finish(
        plan.label, plan.targets, weight=data.sample_weight, votes=plan.of_votes, date=data.date,
        label_high=data.y_true.high if bounds else None,  # type: ignore[union-attr]
        ordered=plan.classes is not None and plan.classes.ordered,
    )  # fmt: skip
    if tables.n:
        for note in _unlikely_scales(plan):
            warn(note)
        for model in plan.models:
            names = Names(plan.label, model.name, data.sample_weight or "", plan.of_votes or "")
            warn_if_hard(tables[model.name], names)
    unmatched = [getattr(each, "drop_unmatched", False) for each in (data.y_true, data.y_prob)]
    drops = data.drop_missing or any(unmatched)
    about = tables.about._replace(rows_dropped=dropped if drops else None)
    return replace(tables, about=about)


def _unlikely_scales(plan: Plan) -> Iterator[str]:
    """Yield notes on percentages and logits that are all in [0, 1]."""
    from softcal.scanning.source import collected

    roles = plan.models[0].roles
    for stated in dict.fromkeys(check.stated for check in roles.checks if check.stated):
        own = [check.value for check in roles.checks if check.stated == stated]
        ends = [x.max().alias(f"high{k}") for k, x in enumerate(own)]
        ends += [x.min().alias(f"low{k}") for k, x in enumerate(own)]
        found = collected(roles.source.frame(roles.uses).select(*ends)).to_pylist()[0].values()
        if all(end is None or 0 <= end <= 1 for end in found):
            yield unlikely_scale(*stated)
