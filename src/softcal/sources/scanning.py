"""`scan`: compute tables from files of any size or from frames of any engine."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._display import keyword
from softcal._optional import naming_the_extra
from softcal.bins import Bins, BinsLike
from softcal.exceptions import InputError, InputTypeError
from softcal.sources.class_columns import class_roles, counts_beside, in_file, text_of_spec
from softcal.sources.collect import collect
from softcal.sources.columns import Roles, Values, Wanted, text_of
from softcal.sources.files import AS_IT_IS, Reading, all_pieces, batches_of, files_of
from softcal.sources.ranges import Distributions, Features, distributions
from softcal.sources.votes import VoteColumns, counted, long_form, long_wanted, votes_of
from softcal.votes import Votes

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence

    from softcal._validation.rules import Scale
    from softcal.sources.class_columns import Present
    from softcal.sources.columns import Batch
    from softcal.sources.votes import ItemVotes
    from softcal.table.tableset import TableSet


@naming_the_extra()
def scan(
    source: Any,
    *,
    y_true: str | Sequence[str] | None = None,
    y_prob: str | Sequence[str] | Mapping[str, str | Sequence[str]],
    vote_counts: str | Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    ordered: bool = False,
    label_bounds: tuple[str, str] | None = None,
    by: str | Sequence[str] = (),
    features: Mapping[str, int | Sequence[float]] | None = None,
    sample_weight: str | None = None,
    n_votes: str | int | None = None,
    groups: str | None = None,
    bins: BinsLike = 10,
    pairs: bool = True,
    date: str | dt.date | None = None,
    pred_scale: Scale = "probability",
    label_scale: Scale = "probability",
    positive: Any = None,
    drop_missing: bool = False,
    votes: Any = None,
    item: str | None = None,
    vote: str | None = None,
    worker: str | None = None,
    drop_unmatched: bool = False,
    allow_repeated: bool = False,
    raters: bool = False,
    aggregate: str = "shares",
    sep: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    input_format: str | None = None,
    sheet: str | None = None,
) -> TableSet:
    """Compute the tables of files or of a frame in one pass over the rows.

    Files are read in bounded memory on all cores. Frames in memory are not copied. DuckDB relations
    and lazy Polars frames are streamed. Spark runs a query for one probability per row. Otherwise
    Dask and Spark workers, which need softcal, add up their own rows and return only tables.

    Parameters
    ----------
    source : path, glob pattern, folder, several of these, frame, or dict
        Parquet, CSV, TSV, JSON, JSON-lines, Excel (.xlsx), or Arrow files, or "-" for standard
        input. Or a frame of pandas, Polars, PyArrow (also a dataset or a stream of batches),
        DuckDB, Dask, or PySpark. Or a dict from names to columns in memory, lists or arrays.
    y_true : str or sequence of str
        The column of labels. For many classes, there are three forms: one column of shares per
        class, as names or as a pattern ("share_*"), one column of lists of shares, or one column
        of class names or numbers.
    y_prob : str, sequence of str, or mapping
        The column of predictions of each model. For many classes: a mapping from the name of each
        model to its columns, one per class ("prob_*" or names), or to one column of lists.
    vote_counts : str or sequence of str, optional
        Instead of `y_true`: one column of vote counts per class, or one column of lists of counts.
        All intervals then use the numbers of votes. With one prediction per row, the label is the
        share of the column that `positive` names, or of the second of two named columns.
    classes : sequence of str, optional
        Names of the classes in the order of the columns. Default: the texts that the star of the
        pattern matches, else the names of the columns, else 0, 1, ...
    ordered : bool, default=False
        Whether the classes are in order, lowest first, as ratings from 1 to 5 are. The set then
        also has the thresholds between them (`tables.cumulative("a")`), for `cumulative_smece`.
    label_bounds : (str, str), optional
        Instead of `y_true`: the columns of the lower and upper ends of labels known as intervals,
        for `smece_bounds`.
    sample_weight, n_votes : str
        Names of the columns, as in `reliability`. `n_votes` may be a number.
    by : str or sequence of str, optional
        Columns whose values define segments; rows without a value are a separate segment. There
        may be 100,000 combinations of values.
    features : mapping from str to int or to sequence of float, optional
        Columns of numbers that also define segments. Each has how many ranges it is cut into, as in
        {"age": 10}, or the numbers to cut it at, as in {"age": [40, 60]}. A number of ranges needs
        a source that can be read twice. The ranges then have about the same number of rows: exactly
        the quantiles of a column with up to 131,072 different numbers, else close to them.
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
    date : str or date, optional
        The date of the rows, stored in the set.
    pred_scale, label_scale : {"probability", "percent", "logit", "logprob"}
        The scale of the numbers; "probability" by default. Percentages are divided by 100. A logit
        z becomes 1 / (1 + exp(-z)), and logits of many classes become their softmax. The natural
        logarithm of a probability, one per row or per class, becomes its exponential.
    positive : value, optional
        For labels in words: the value that counts as 1. Every other value counts as 0.
    drop_missing : bool, default=False
        Whether to leave out rows in which a label, prediction, weight, number of votes, or group
        is missing. `TableSet.about.rows_dropped` counts them. Otherwise they are refused.
    votes : Votes, path, or frame, optional
        Instead of `y_true`: votes on items, one per row, or `Votes` that name their items. They
        are held in memory. Without it, `vote` is a column of the source itself, whose rows are
        then votes. Predictions must be the same in all rows of an item.
    item, vote, worker : str, optional
        The columns of items (of votes and of predictions), of votes, and of who voted. `positive`
        is the vote that counts as 1.
    drop_unmatched : bool, default=False
        Whether to leave out items without votes, and votes on items without a prediction.
        Otherwise they are refused.
    allow_repeated : bool, default=False
        Whether a worker may have several votes on an item, as in `Votes.from_long`.
    raters : bool, default=False
        Whether intervals and tests hold for new raters too; needs `worker`.
    aggregate : {"shares", "dawid-skene"}, default="shares"
        The label of an item: the share of its votes, or the posterior of `dawid_skene`, which needs
        `worker` and assumes one true class per item.
    sep, decimal, encoding : str, optional
        For text files: the separator of cells ("tab" for tabs), the decimal mark ("." or ","), and
        the encoding if it is not UTF-8.
    input_format : str, optional
        The format of the files, if content and name do not determine it: "csv", "tsv", "json",
        "jsonl", "parquet", "arrow", or "xlsx". A JSON document is held in memory as a whole.
    sheet : str, optional
        The sheet of an Excel workbook that has several.

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
        If a value is missing or breaks a rule, with the column and the count, or if a column or
        file does not exist. No row is dropped without `drop_missing` or `drop_unmatched`.

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
    _refuse_other_flags(
        drop_missing=drop_missing, drop_unmatched=drop_unmatched, allow_repeated=allow_repeated,
        raters=raters, ordered=ordered,
    )  # fmt: skip
    columns_of_votes = None
    positive = None if positive is None else text_of(positive)
    if votes is not None or vote is not None:
        columns_of_votes = VoteColumns(
            _item(item), vote, worker, positive, drop_unmatched, allow_repeated, raters, aggregate
        )
        refuse_beside_votes(votes, columns_of_votes, isinstance(y_prob, Mapping))
        positive = None
    else:
        _refuse_without_votes(item=item, worker=worker, drop_unmatched=drop_unmatched,
                              allow_repeated=allow_repeated, raters=raters,
                              aggregate=None if aggregate == "shares" else aggregate)  # fmt: skip
    asked = _Asked(
        label=_label(y_true, vote_counts, label_bounds, by_votes=columns_of_votes is not None),
        models=y_prob,
        counts=vote_counts is not None,
        bounds=label_bounds is not None,
        classes=classes,
        ordered=ordered,
        positive=positive if vote_counts is not None else None,
    )
    asked.refuse_impossible()
    cut = Features.of({} if features is None else features)
    columns = (*listed(by), *cut.counts, *cut.cuts)
    optional = (
        ("sample_weight", sample_weight), ("groups", groups), ("item", item), ("vote", vote),
        ("worker", worker),
    )  # fmt: skip
    refuse_other_names(
        [
            *asked.named,
            *(("by", name) for name in columns),
            *(each for each in optional if each[1] is not None),
        ]
    )
    if n_votes is not None and not isinstance(n_votes, str):
        n_votes = _whole(n_votes)
    word = None if vote_counts is not None else positive
    values = Values(pred_scale, label_scale, word, drop_missing)
    roles = Roles("", (), sample_weight, n_votes, columns, groups, values=values)
    reading = Reading(sep, decimal, encoding, input_format, sheet).checked()
    if features:
        if cut.counts:
            source = _read_twice(source)
        found = _distributions(source, Distributions.none(cut.counts), reading)
        roles = roles._replace(ranges=cut.ranges(found, reading.decimal))
    if columns_of_votes is not None:
        roles = roles._replace(y_prob=listed(y_prob))
        if votes is None:
            wanted = long_wanted(roles, columns_of_votes)
            batches = list(_batches_here(source, wanted, reading))
            roles, pieces = long_form(batches, roles, columns_of_votes)
            roles.refuse_impossible()
            day = None if date is None else str(date)
            return collect(pieces, roles, Bins.of(bins), pairs=pairs, date=day)
        counts = _item_votes(votes, columns_of_votes, reading, drop_missing=drop_missing)
        roles = roles._replace(y_true=counts.label, votes=counts)
        asked = asked._replace(label=counts.label)
    return _tables(
        source, asked, roles, reading, Bins.of(bins), pairs=pairs,
        date=None if date is None else str(date),
    )  # fmt: skip


def _read_twice(source: Any) -> Any:
    """Return a source that can be read twice; raise if it is a stream of batches."""
    if _are_paths(source):
        return files_of(source)  # with a copy of standard input
    import narwhals.stable.v2 as nw

    is_frame = isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)
    if not is_frame and not hasattr(source, "scanner"):  # an Arrow dataset has one
        message = (
            "a number of ranges needs a source that can be read twice, and this stream cannot. "
            'Pass the numbers to cut at, as in features={"age": [40, 60]}.'
        )
        raise InputError(message)
    return source


def _distributions(source: Any, nothing: Distributions, reading: Reading) -> Distributions:
    """Return the distributions of columns of any source, in bounded memory."""
    if not nothing.of:
        return nothing
    if not _are_paths(source):
        import narwhals.stable.v2 as nw

        from softcal.sources.engines import engine_distributions

        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            return engine_distributions(frame, nothing)
    batches = _batches_here(source, nothing.wanted, reading)
    return distributions(batches, nothing, reading.decimal)


def _item(item: str | None) -> str:
    if item is None:
        message = "votes need items: pass item=, the column of the item of each vote."
        raise InputError(message)
    return item


def _refuse_without_votes(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and value is not False:
            message = f"{name} needs votes: pass votes= or vote=, or leave {name} out."
            raise InputError(message)


def refuse_beside_votes(votes: Any, columns: VoteColumns, many: bool) -> None:  # noqa: FBT001
    """Raise if arguments contradict raw votes."""
    if many:
        message = (
            "raw votes need one prediction per row: pass y_prob as a name or several. For many "
            "classes, count them with Votes.from_long and use the functions for classes."
        )
        raise InputError(message)
    if isinstance(votes, Votes) and (columns.vote or columns.worker):
        message = "leave vote and worker out: Votes already have them."
        raise InputError(message)
    if not isinstance(votes, Votes) and columns.vote is None:
        message = "pass vote=, the column of the votes."
        raise InputError(message)
    if columns.raters and columns.worker is None and not isinstance(votes, Votes):
        message = f"{keyword('raters', True)} needs worker=, the column of who voted."  # noqa: FBT003
        raise InputError(message)


def _item_votes(
    votes: Any, columns: VoteColumns, reading: Reading, *, drop_missing: bool
) -> ItemVotes:
    """Count the votes of `Votes`, files, or a frame."""
    if isinstance(votes, Votes):
        return counted(votes, columns)
    # The file of votes may have another format than the predictions.
    plain = reading._replace(input_format=None, sheet=None)
    batches = list(_batches_here(votes, Wanted((), columns.named), plain))
    return votes_of(batches, columns, drop_missing=drop_missing)


def _batches_here(source: Any, wanted: Wanted, reading: Reading) -> Iterator[Batch]:
    """Yield the columns of any source in this process."""
    if _are_paths(source):
        yield from batches_of(source, wanted, reading)
        return
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    from softcal.sources.engines import collected
    from softcal.sources.frames import Stream, frame_pieces

    frame = nw.from_native(
        pa.table(source) if isinstance(source, dict) else source, pass_through=True
    )
    if isinstance(frame, nw.LazyFrame):
        frame = collected(frame, wanted)
    pieces = frame_pieces(frame, wanted) if isinstance(frame, nw.DataFrame) else None
    for piece in Stream(source).pieces(wanted) if pieces is None else pieces:
        yield from piece.batches()


class _Asked(NamedTuple):
    """The arguments about labels and predictions, before the source is inspected."""

    label: Any
    models: Any
    counts: bool
    bounds: bool
    classes: Sequence[str] | None
    ordered: bool
    positive: str | None = None  # of counts with one prediction per row

    @property
    def many(self) -> bool:
        """Whether there are many classes."""
        return isinstance(self.models, Mapping)

    @property
    def named(self) -> list[tuple[str, Any]]:
        """The names of all columns, each with its argument."""
        what = "vote_counts" if self.counts else "label_bounds" if self.bounds else "y_true"
        models = self.models
        if isinstance(models, Mapping):
            models = [name for model in models.items() for each in model for name in listed(each)]
        several = self.many or self.bounds or self.counts
        labels = listed(self.label) if several else (self.label,)
        return [
            *((what, name) for name in labels),
            *(("y_prob", name) for name in listed(models)),
        ]

    def refuse_impossible(self) -> None:
        """Raise if arguments contradict each other."""
        several = len(listed(self.label)) > 1
        for what, given in (
            ("classes", self.classes is not None),
            ("ordered=True", self.ordered),
            ("several columns in y_true", several and not self.bounds and not self.counts),
        ):
            if given and not self.many:
                message = (
                    f"{what} needs predictions of many classes: pass y_prob as a mapping, "
                    'such as y_prob={"model": "prob_*"}.'
                )
                raise InputError(message)
        if self.bounds and self.many:
            message = (
                "label_bounds needs one prediction per row: pass y_prob as the name of a column, "
                "or several names."
            )
            raise InputError(message)
        if self.bounds and len(listed(self.label)) != 2:
            message = (
                f"label_bounds must be two columns, of lower and upper ends: got "
                f"{self.label!r:.60}."
            )
            raise InputError(message)

    def roles(self, others: Roles, present: Callable[[], Present]) -> Roles:
        """Return the role of each column; `present` returns the columns of the source."""
        if not isinstance(self.models, Mapping):
            bounds = tuple(self.label) if self.bounds else None
            label = " to ".join(bounds) if bounds else self.label
            if self.counts:
                return counts_beside(
                    others._replace(y_prob=listed(self.models)), self.label, present().names,
                    self.positive,
                )  # fmt: skip
            found = others._replace(y_true=label, y_prob=listed(self.models), bounds=bounds)
        else:
            found = others._replace(y_true=text_of_spec(self.label), y_prob=tuple(self.models))
            if self.models:
                classes = class_roles(
                    self.label,
                    self.models,
                    present(),
                    counts=self.counts,
                    classes=self.classes,
                    ordered=self.ordered,
                )
                found = found._replace(classes=classes)
        found.refuse_impossible()
        return found


def _label(y_true: Any, vote_counts: Any, label_bounds: Any, *, by_votes: bool) -> Any:
    """Return the one argument for labels that is given; raise if there is not exactly one."""
    given = [each for each in (y_true, vote_counts, label_bounds) if each is not None]
    given += ["votes"] * by_votes
    if len(given) != 1:
        message = (
            "pass one of y_true, vote_counts (counts of votes), label_bounds (labels known as "
            f"intervals), and votes or vote (raw votes): got {len(given)} of them."
        )
        raise InputError(message)
    return given[0]


def listed(names: Any) -> tuple[Any, ...]:
    """Return one name or several as a tuple."""
    several = isinstance(names, Iterable) and not isinstance(names, str)
    return tuple(names) if several else (names,)


def _tables(
    source: Any,
    asked: _Asked,
    others: Roles,
    reading: Reading,
    bins: Bins,
    *,
    pairs: bool,
    date: str | None,
) -> TableSet:
    if _are_paths(source):
        paths = files_of(source)
        roles = asked.roles(others, lambda: in_file(paths[0], reading))
        found = all_pieces(paths, roles.wanted, reading)
        return collect(found, roles, bins, pairs=pairs, date=date)
    if reading != AS_IT_IS:
        message = "leave sep, decimal, encoding, input_format, and sheet out: they are for files."
        raise InputError(message)
    # Imported here, because paths do not need narwhals.
    import narwhals.stable.v2 as nw

    from softcal.sources.engines import engine_tables, in_engine
    from softcal.sources.frames import Stream, frame_pieces, in_frame, of_columns

    if isinstance(source, Mapping):
        source = of_columns(source)
    try:
        frame = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        message = f"column names of the frame must differ: {' '.join(str(error).split())}"
        raise InputError(message) from error
    if isinstance(frame, nw.LazyFrame):
        roles = asked.roles(others, lambda: in_engine(frame))
        return engine_tables(frame, roles, bins, pairs=pairs, date=date)
    if isinstance(frame, nw.DataFrame):
        roles = asked.roles(others, lambda: in_frame(frame))
        parts = frame_pieces(frame, roles.wanted)
        return collect(parts, roles, bins, pairs=pairs, date=date, at_most=len(parts))
    stream = Stream(source)
    roles = asked.roles(others, lambda: stream.present)
    return collect(stream.pieces(roles.wanted), roles, bins, pairs=pairs, date=date)


def _refuse_other_flags(**flags: object) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            message = f"{name} must be True or False: got {flag!r:.60}."
            raise InputTypeError(message)


def refuse_other_names(named: Iterable[tuple[str, Any]]) -> None:
    """Raise if the name of a column is not text, given its role."""
    for what, name in named:
        if not isinstance(name, str):
            message = (
                f"{what} must be the name of a column, as text: got {name!r:.60}. For a frame with "
                "other names, pass frame.rename(columns=str); for arrays, use reliability."
            )
            raise InputTypeError(message)


def _whole(n_votes: Any) -> int:
    try:
        return operator.index(n_votes)
    except TypeError as error:
        message = f"n_votes must be a column or a whole number: got {n_votes!r:.60}."
        raise InputTypeError(message) from error


def _are_paths(source: Any) -> bool:
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(one, str | os.PathLike) for one in source)
    return isinstance(source, str | os.PathLike)
