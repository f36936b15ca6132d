"""Add up pieces of rows into one set of tables, and validate every value in the same pass."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from softcal import _parallel
from softcal._display import did_you_mean, keyword
from softcal._validation.inputs import (
    Coded,
    as_float64,
    refuse_changed,
    refuse_zeros,
    votes_fit,
    warn_if_swapped,
)
from softcal._validation.rules import (
    AT_MOST,
    CLASS_COUNT,
    DROPPED,
    MISFIT,
    MISSING,
    NO_VOTE,
    Rule,
    Spread,
    misfit,
)
from softcal.bins import Bins
from softcal.exceptions import InputError, warn
from softcal.metrics.item_scores import score_entries
from softcal.metrics.ordinal import cumulative_rows
from softcal.sources.class_columns import class_checks, classes_of_batch, matrix, matrix_checks
from softcal.sources.columns import (
    Check,
    Named,
    Outcomes,
    Piece,
    Words,
    coded,
    coded_groups,
    missing_values,
    plain_word,
    rows_of,
    scaled,
)
from softcal.sources.files import AS_IT_IS, all_pieces, batches_of, files_of, joined
from softcal.sources.votes import Joined
from softcal.table.blocks import Sparse
from softcal.table.build import Builder, DenseSums, Entries, dense_sums, entries, hardened_by
from softcal.table.kernel import is_majority, top_label_rows
from softcal.table.reliability import warn_if_hard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from softcal._validation.arrays import Column
    from softcal._validation.inputs import FloatArray, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.sources.columns import Batch, ClassRoles, Roles
    from softcal.sources.files import Paths, Reading
    from softcal.table.tableset import TableSet

    Look = Callable[[int, Mapping[str, Rows], Coded | None], None]


_ENTRIES_AT_ONCE = 1 << 19
DROP = keyword("drop_missing", True)  # noqa: FBT003


class Found(NamedTuple):
    """The sums of one piece; None if a value in this or another piece breaks a rule."""

    piece: Piece
    rows: int  # including dropped rows
    dropped: int
    words: Words
    joined: Joined
    entries: list[Entries] | None
    classes: FloatArray | None  # the sums of `dense_sums`


class _Batch(NamedTuple):
    """The sums of one batch, and the rows of the first target of each model."""

    entries: Entries
    rows: Mapping[str, Rows]
    groups: Coded | None
    classes: FloatArray | None = None


class Part(NamedTuple):
    """The sums of a source, or of a partition that another process reads."""

    rows: int  # without dropped rows
    tables: TableSet | None  # None if all rows are dropped or a value breaks a rule
    broken: Counted | None = None
    dropped: int = 0
    words: Words = Words()
    joined: Joined = Joined()

    def with_(self, other: Part) -> Part:
        """Add the rows of another part."""
        tables, broken = self.tables or other.tables, self.broken or other.broken
        if self.tables is not None and other.tables is not None:
            tables = self.tables + other.tables
        if self.broken is not None and other.broken is not None:
            broken = self.broken.with_(other.broken)
        dropped, words = self.dropped + other.dropped, self.words.with_(other.words)
        items = self.joined.with_(other.joined)
        return Part(self.rows + other.rows, tables, broken, dropped, words, items)

    def finished(self, roles: Roles) -> TableSet:
        """Return the set of all rows; raise if a rule is broken.

        A source without rows, or without weight, gives a set without rows, which adds as 0.
        """
        if self.broken is not None:
            refuse_broken(self.broken, checks_of(roles), self.rows)
        if roles.votes is not None:
            roles.votes.refuse_unmatched(self.joined, self.rows + self.dropped)
        if self.tables is None:
            refuse_no_rows(self.dropped)
        if self.rows:
            refuse_unseen(roles, self.words)
        if self.tables.n:
            _warn_of_slips(roles, self.words)
            for model in self.tables:
                warn_if_hard(self.tables[model], roles.names(roles.y_true, model))
        dropped = self.dropped if roles.values.drop_missing or roles.drops_unmatched else None
        return replace(self.tables, about=self.tables.about._replace(rows_dropped=dropped))


def collect(
    pieces: Iterable[Piece],
    roles: Roles,
    bins: Bins,
    *,
    pairs: bool = False,
    date: str | None = None,
    at_most: int | None = None,
    report: Callable[[Piece, int], None] | None = None,
    look: Look | None = None,
    tell: Callable[[Part], None] | None = None,
) -> TableSet:
    """Add up all pieces on all cores into one set of tables.

    If a value breaks a rule, the remaining rows are still read, to count such values. `look` is
    called from the threads with the number of each piece, the rows of its models, and their groups.
    For many classes, these are the rows of the predicted class. `tell` is called with what was
    found besides the tables: words of labels, and items without votes.
    """
    part = part_of(
        pieces, roles, bins, pairs=pairs, date=date, at_most=at_most, report=report, look=look,
    )  # fmt: skip
    tables = part.finished(roles)
    if tell is not None:
        tell(part)
    return tables


def part_of(
    pieces: Iterable[Piece],
    roles: Roles,
    bins: Bins,
    *,
    pairs: bool,
    date: str | None,
    at_most: int | None = None,
    report: Callable[[Piece, int], None] | None = None,
    look: Look | None = None,
    alone: bool = False,
) -> Part:
    """Add up pieces as `collect` does, for all rows or a part of them; `alone` uses one core."""
    broken = threading.Event()
    census = Census(roles)
    tied = pairs and len(roles.y_prob) > 1 and roles.bounds is None
    builder = Builder(
        roles.y_prob, roles.by, bins=bins, grid=roles.grid(bins),
        pairs=Bins.tie_grid(bins) if tied else None, group=roles.group, rater=roles.rater,
    )  # fmt: skip
    classes = DenseSums()
    rows: Counter[str | None] = Counter()  # of each file
    dropped, words, items = 0, Words(), Joined()

    def add_up(numbered: tuple[int, Piece]) -> Found:
        return _add_up(*numbered, roles, builder, broken, look)

    # Sums of many classes or groups are large, so only few are computed ahead.
    ahead = 8 if roles.classes is None and roles.group is None else 1
    if roles.group is not None:
        pieces, at_most = _cut(pieces, len(roles.y_prob) * len(roles.targets)), None
    if alone:
        at_most = 1
    for found in _parallel.in_order(add_up, enumerate(pieces), at_most=at_most, ahead=ahead):
        if found.entries is None or census.started:
            census.add(found.piece, rows[found.piece.place])
        else:
            builder.add_all(found.entries)
            classes.add(found.classes)
        rows[found.piece.place] += found.rows
        dropped, words = dropped + found.dropped, words.with_(found.words)
        items = items.with_(found.joined)
        if report is not None:
            report(found.piece, found.rows)
    total = rows.total() - dropped
    if census.started:
        return Part(total, None, census.found, dropped, words, items)
    builder.add_all(classes.entries())
    without = 0 if roles.drops_unmatched else items.without
    remains = total > without or not rows.total()
    tables = _finished(builder, roles, date) if remains else None
    return Part(total, tables, None, dropped, words, items)


def part_of_sums(found: Entries, roles: Roles, bins: Bins, date: str | None) -> Part:
    """Return the part of all rows from sums that an engine has computed."""
    builder = Builder(roles.y_prob, roles.by, bins=bins, grid=roles.grid(bins))
    builder.add(found)
    return Part(found.rows, _finished(builder, roles, date) if found.rows else None)


def _cut(pieces: Iterable[Piece], tables: int) -> Iterator[Piece]:
    """Split data in memory into pieces with a bounded number of entries of groups."""
    rows = max(_ENTRIES_AT_ONCE // tables, 1)
    for piece in pieces:
        if piece.place:
            yield piece
            continue
        for batch in piece.batches():
            for start in range(0, rows_of(batch), rows):
                part = {key: column[start : start + rows] for key, column in batch.items()}
                yield Piece(piece.place, 0, partial(iter, [part]))


class AllRows(NamedTuple):
    """All rows of files, validated, and how many were dropped for a missing value."""

    columns: Batch
    dropped: int
    joined: Joined | None = None
    words: Words = Words()


def read_rows(source: Paths, roles: Roles, reading: Reading = AS_IT_IS) -> AllRows:
    """Return all rows of files, validated, for computations that need the rows.

    An error counts the values of all files that break a rule, and names the file and row of the
    first.
    """

    def again() -> Iterator[Piece]:
        return all_pieces(files_of(source), roles.wanted, reading)

    return validated(list(batches_of(source, roles.wanted, reading)), again, roles)


def validated(found: list[Batch], again: Callable[[], Iterable[Piece]], roles: Roles) -> AllRows:
    """Return all rows of some batches as `read_rows` does; read them again if a rule is broken."""
    if not found:
        refuse_no_rows()
    columns, dropped, words, items = roles.ready(joined(found))
    if roles.votes is not None:
        roles.votes.refuse_unmatched(items, sum(map(rows_of, found)))
    if not rows_of(columns):
        refuse_no_rows(dropped)
    for check in checks_of(roles):
        values = check.values(columns)
        if any(rule.broken(values).any() for rule in check.rules):
            census = Census(roles)
            rows: Counter[str | None] = Counter()  # of each file
            for piece in again():
                census.add(piece, rows[piece.place])
                rows[piece.place] += sum(map(rows_of, piece.batches()))
            refuse_broken(census.found, checks_of(roles), rows.total() - dropped)
    refuse_unseen(roles, words)
    _warn_of_slips(roles, words)
    _warn_of_swapped(roles, columns)
    if roles.sample_weight is not None and not columns[roles.sample_weight].any():
        refuse_zeros(roles.sample_weight, rows_of(columns))
    return AllRows(columns, dropped, items, words)


def refuse_no_rows(dropped: int = 0) -> NoReturn:
    """Raise because no row remains."""
    message = "the source has no rows, so there is nothing to measure."
    if dropped:
        message = (
            f"every one of the {dropped:,} rows has a missing value, so {DROP} leaves nothing to "
            "measure. Name other columns, or impute the values first."
        )
    raise InputError(message)


def refuse_unseen(roles: Roles, words: Words) -> None:
    """Raise if no row has the positive label, which may be misspelled."""
    positive = roles.values.positive
    if positive is None or any(positive in (word, plain_word(word)) for word in words.counts):
        return
    often = ", ".join(f"{word!r} ({count:,})" for word, count in words.counts.items())
    message = (
        f"{roles.y_true} must have the value {positive!r:.60}, which counts as 1, in some row: it "
        f"has it in none.{did_you_mean(positive, [*words.counts])} Its values are: {often}."
    )
    raise InputError(message)


def _warn_of_slips(roles: Roles, words: Words) -> None:
    """Warn of scales that the values make unlikely."""
    for note in roles.notes(words):
        warn(note)


def _warn_of_swapped(roles: Roles, columns: Batch) -> None:
    """Warn if predictions, one per row, are all 0 or 1 and labels are not."""
    if not (roles.classes or roles.logits):
        for rows in (roles.rows(columns, pred) for pred in roles.y_prob):
            warn_if_swapped(rows.y_true, rows.y_prob, rows.names)


def _finished(builder: Builder, roles: Roles, date: str | None) -> TableSet:
    votes = None if roles.n_votes is None else str(roles.n_votes)
    if roles.votes is not None or roles.counts:
        votes = roles.y_true
    if roles.classes is not None and roles.classes.kind == "counts":
        votes = roles.y_true
    return builder.finish(
        roles.y_true,
        roles.targets,
        weight=roles.sample_weight,
        votes=votes,
        date=date,
        label_high=None if roles.bounds is None else roles.bounds[1],
        ordered=roles.classes is not None and roles.classes.ordered,
    )


def _add_up(
    number: int,
    piece: Piece,
    roles: Roles,
    builder: Builder,
    broken: threading.Event,
    look: Look | None,
) -> Found:
    found, rows, dropped, words, items = [], 0, 0, Words(), Joined()
    classes = DenseSums()
    for raw in piece.batches():
        rows += rows_of(raw)
        batch, without, of_batch, looked_up = roles.ready(raw)
        dropped, words = dropped + without, words.with_(of_batch)
        items = items if looked_up is None else items.with_(looked_up)
        if not rows_of(batch):
            continue
        valid = not (broken.is_set() or _has_misfits(batch, roles))
        each = _added(batch, roles, builder) if valid else None
        if each is None:
            broken.set()
            continue
        found.append(each.entries)
        classes.add(each.classes)
        if look is not None:
            look(number, each.rows, each.groups)
    entries = None if broken.is_set() else found
    return Found(piece, rows, dropped, words, items, entries, classes.sums)


def _added(batch: Batch, roles: Roles, builder: Builder) -> _Batch | None:
    """Add up one batch; None if a value breaks a rule."""
    segments = {name: roles.segment(batch, name) for name in roles.by}
    needed = [] if roles.group is None else [batch[Named(roles.group)]]
    needed += [] if roles.days is None else [segments[roles.days.column]]
    if any(missing_values(values).any() for values in needed):
        return None
    groups = None if roles.group is None else coded_groups(needed[0], roles.group)
    cells = coded_cells(segments) if segments else None
    if roles.classes is not None:
        return _added_classes(batch, roles, roles.classes, builder, cells, groups)
    labels: tuple[str, ...] = (roles.y_true,)
    if roles.bounds is not None:
        low, high = labels = roles.bounds
        if (batch[low] > batch[high]).any():
            return None
    rows = {
        (k, target): roles.rows(batch, pred, label)
        for k, pred in enumerate(roles.y_prob)
        for target, label in enumerate(labels)
    }
    votes = None
    if roles.votes is not None and roles.rater is not None:
        at = batch[Outcomes(roles.y_true, "item")]
        if (at < 0).any():
            return None
        votes = roles.votes.of_raters(at)
    found = entries(rows, builder.grid, cells, groups, pairs=builder.pairs, votes=votes)
    first = {pred: rows[k, 0] for k, pred in enumerate(roles.y_prob)}
    return None if found is None else _Batch(found, first, groups)


def _added_classes(
    batch: Batch,
    roles: Roles,
    found: ClassRoles,
    builder: Builder,
    cells: Coded | None,
    groups: Coded | None,
) -> _Batch | None:
    """Add up one batch of many classes: the predicted class, each class, and row scores."""
    models = classes_of_batch(batch, roles, found)
    if models is None:
        return None
    try:
        added = class_entries(models, builder, cells, groups, ordered=found.ordered)
    except InputError:  # the census finds it again and counts such values over all files
        return None
    if added is None:
        return None
    first = dict(zip(roles.y_prob, added.tops, strict=True))
    return _Batch(added.entries, first, groups, added.dense)


class ClassEntries(NamedTuple):
    """The sums of rows of many classes: entries, sums per class, and rows of predicted classes."""

    entries: Entries
    dense: FloatArray | None  # None with cells or groups, whose entries include the classes
    tops: list[Rows]


def class_entries(
    models: Sequence[ClassRows],
    builder: Builder,
    cells: Coded | None,
    groups: Coded | None,
    *,
    ordered: bool = False,
) -> ClassEntries | None:
    """Add up rows of many classes for each model; return None if a weight breaks a rule.

    Raises
    ------
    InputError
        If a label or prediction breaks a rule.
    """
    tops = [top_label_rows(data) for data in models]
    dense = dense_sums(models, builder.grid) if cells is None and groups is None else None
    rows = {(k, 0): top for k, top in enumerate(tops)}
    if dense is None:
        of_classes = range(len(models[0].classes))
        rows |= {(k, c + 1): data.column(c) for k, data in enumerate(models) for c in of_classes}
    if ordered:
        size = len(models[0].classes)
        for k, data in enumerate(models):
            rows |= {(k, size + 1 + t): each for t, each in enumerate(cumulative_rows(data))}
    added = entries(rows, builder.grid, cells, groups, pairs=builder.pairs)
    majority = entries(
        {
            (k, 0): top._replace(y_true=is_majority(data, top.y_true))
            for k, (top, data) in enumerate(zip(tops, models, strict=True))
        },
        builder.grid,
        cells,
    )
    if added is None or majority is None:
        return None
    tables = hardened_by(added.blocks["tables"], majority.blocks["tables"])
    scores = _scores(models, cells, ordered=ordered)
    blocks = {**added.blocks, "tables": tables, **scores}
    return ClassEntries(added._replace(blocks=blocks), dense, tops)


def _scores(
    models: Sequence[ClassRows], cells: Coded | None, *, ordered: bool
) -> dict[str, Sparse]:
    """Add up the scores of single rows, with keys (model, cell), by block."""
    parts = [score_entries(data, cells, ordered=ordered) for data in models]
    return {
        name: Sparse.added([each[name].under(k) for k, each in enumerate(parts)])
        for name in parts[0]
    }


def coded_cells(columns: Mapping[str, Any]) -> Coded:
    """Return the combination of values of each row, as numbers, and the combinations."""
    whole = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    each = [coded(values, name) for name, values in columns.items()]
    for one in each:
        whole = whole * max(len(one.names), 1) + one.numbers
    different, numbers = np.unique(whole, return_inverse=True)
    cells = []
    for code in different.tolist():
        cell: list[str | None] = []
        for one in reversed(each):
            code, k = divmod(code, len(one.names))  # noqa: PLW2901
            cell.insert(0, one.names[k])
        cells.append(tuple(cell))
    return Coded(numbers.astype(np.int64), cells)


def checks_of(roles: Roles) -> list[Check]:
    """Return the checks of the values of a source, in the order in which they are applied."""
    found = [] if roles.classes is None else class_checks(roles, roles.classes)
    if roles.counts:
        found += matrix_checks(roles.y_true, roles.counts, len(roles.counts), CLASS_COUNT, NO_VOTE)
    found += [_of_column(column, rules) for column, rules in roles.rules]
    if roles.bounds is not None:
        found.append(_in_order(*roles.bounds))
    if roles.days is not None:
        found.append(roles.days.check)
    if roles.states_votes:
        found.append(_whole_votes(roles))
    return [check._replace(rules=tuple(map(_of_source, check.rules))) for check in found]


def _of_source(rule: Rule) -> Rule:
    """Return the rule of missing values with a remedy for sources; other rules unchanged."""
    return DROPPED if rule is MISSING else rule


def _of_column(column: str | Named, rules: tuple[Rule, ...]) -> Check:
    name = column.column if isinstance(column, Named) else column
    return Check(name, rules, lambda batch: _to_check(batch, column))


def _to_check(batch: Batch, column: str | Named) -> Column:
    """Return the values of a column for a check; names are checked only for missing values."""
    values = batch[column]
    if isinstance(column, Named):
        values = np.where(missing_values(values), np.nan, 0.0)
    return as_float64(values)


def _in_order(low: str, high: str) -> Check:
    """Return the check that no lower end of a label is above its upper end."""

    def above(batch: Batch) -> Column:
        return as_float64(batch[low]) - as_float64(batch[high])

    def shown(batch: Batch, row: int, _above: float) -> str:
        return f"is {float(batch[low][row])!r} with {high} = {float(batch[high][row])!r}"

    rule = AT_MOST._replace(must=AT_MOST.must.format(high))
    return Check(low, (rule,), above, shown)


def stated_votes(batch: Batch, roles: Roles) -> tuple[Column, Column]:
    """Return the shares of each row, one or one per class, and the stated number of votes."""
    _, votes = roles.weights_and_votes(batch, rows_of(batch))
    assert votes is not None  # noqa: S101 - it is stated
    if roles.classes is None:
        return scaled(batch[roles.y_true], roles.values.label_scale)[:, None], votes
    found = matrix(batch, roles.classes.label, len(roles.classes.names))
    if found is None:  # another rule refuses lists of another length
        found = np.zeros((votes.size, 1))
    return scaled(found, roles.values.label_scale), votes


def _has_misfits(batch: Batch, roles: Roles) -> bool:
    """Return whether a label is not a whole number of the stated votes."""
    return roles.states_votes and not votes_fit(*stated_votes(batch, roles))


def _whole_votes(roles: Roles) -> Check:
    """Return the check that labels are whole numbers of the stated votes."""

    def off(batch: Batch) -> Column:
        shares, votes = stated_votes(batch, roles)
        worst: Column = misfit(shares, votes[:, None]).max(axis=1)
        return worst

    def shown(batch: Batch, row: int, _off: float) -> str:
        if not batch:  # in Spark
            return ""
        shares, votes = (each[row] for each in stated_votes(batch, roles))
        return f"is {float(shares[misfit(shares, votes).argmax()])!r} times {votes:g}"

    return Check(f"{roles.y_true} times {roles.n_votes}", (MISFIT,), off, shown)


class Broken(NamedTuple):
    """The number of values that break a rule, and the first of them."""

    number: int = 0
    first: str = ""


class Counted(NamedTuple):
    """The result of a census, by the names of checks and by rules."""

    broken: dict[tuple[str, str], Broken]
    spread: dict[str, Spread]

    def with_(self, other: Counted) -> Counted:
        """Add the result for a later part of the rows."""
        broken, spread = dict(self.broken), dict(self.spread)
        for key, (number, first) in other.broken.items():
            before = broken[key]
            broken[key] = Broken(before.number + number, before.first or first)
        for name, each in other.spread.items():
            spread[name] = spread[name].with_(each)
        return Counted(broken, spread)


class Census:
    """A count of the values that break each rule, over all pieces that are added."""

    def __init__(self, roles: Roles) -> None:
        self._roles, self._checks = roles, checks_of(roles)
        self.found = Counted({}, {})

    @property
    def started(self) -> bool:
        """Whether anything was added."""
        return bool(self.found.spread)

    def add(self, piece: Piece, rows_before: int) -> None:
        """Count values that break a rule in the next piece of a file, after `rows_before` rows."""
        rows = rows_before
        for batch in piece.batches():
            dropped = self._roles.missing(batch) if self._roles.values.drop_missing else None
            for check in self._checks:
                self._add_values(check, batch, rows, piece.place, dropped)
            rows += rows_of(batch)

    def _add_values(
        self, check: Check, batch: Batch, rows: int, place: str | None, dropped: Column | None
    ) -> None:
        values, name = check.values(batch), check.name
        broken, spreads = self.found
        spread = Spread.of(values)
        spreads[name] = spreads.get(name, spread).with_(spread)
        for rule in check.rules:
            marks = rule.broken(values)
            if dropped is not None:  # dropped rows are not counted
                marks &= ~np.repeat(dropped, check.per_row)
            count, first = broken.get((name, rule.must), Broken())
            if not count and marks.any():
                at = int(marks.argmax())
                row = at // check.per_row
                value = float(values[at])
                shown = [] if np.isnan(value) else [check.shown(batch, row, value)]
                if place is not None:
                    shown.append(_where(rows + row, place))
                first = f", the first {' '.join(shown)}" if shown else ""
            broken[name, rule.must] = Broken(count + int(marks.sum()), first)


def refuse_broken(found: Counted, checks: Sequence[Check], rows: int) -> NoReturn:
    """Raise for the first broken rule, from the result of a census."""
    for check in checks:
        for rule in check.rules:
            count, first = found.broken[check.name, rule.must]
            if count:
                total, spread = rows * check.per_row, found.spread[check.name]
                raise InputError(rule.message(check.name, count, total, first, spread))
    refuse_changed()


def _where(row: int, place: str) -> str:
    return f"in {place}, row {row + 1}" if place else f"at position {row}"
