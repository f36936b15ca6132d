"""Raw votes as labels: one vote per row, in the source of the predictions or another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._display import did_you_mean, keyword
from softcal.crowd import dawid_skene
from softcal.exceptions import InputError
from softcal.sources.columns import (
    Named,
    Piece,
    Wanted,
    coded,
    kept_rows,
    missing_values,
    plain_word,
    rows_of,
    text_of,
)
from softcal.sources.files import joined
from softcal.votes import RowVotes, Votes, row_votes

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from softcal._validation.inputs import Coded
    from softcal.sources.columns import Batch, Roles

    IntArray = npt.NDArray[np.int64]
    FloatArray = npt.NDArray[np.float64]


_CAUTION = (
    "labels are Dawid-Skene posteriors, which assume one true class per item. They are biased "
    "toward the overall rate, so a calibrated model can look overconfident. They are wrong if "
    "people differ in opinion. Vote shares are therefore the default."
)


class VoteColumns(NamedTuple):
    """The columns of votes, and how to handle votes and predictions without a match."""

    item: str
    vote: str | None = None  # None if the votes are already counted
    worker: str | None = None
    positive: str | None = None
    drop_unmatched: bool = False
    allow_repeated: bool = False
    raters: bool = False
    aggregate: str = "shares"  # or "dawid-skene"
    kind: str | None = None  # of the worker

    @property
    def named(self) -> tuple[str, ...]:
        """The columns of the votes, each once."""
        names = (self.item, self.vote, self.worker, self.kind)
        return tuple(dict.fromkeys(name for name in names if name is not None))


class Joined(NamedTuple):
    """The items found in the predictions, and the number of rows whose item has no votes."""

    seen: IntArray | None = None  # how often each item of the votes was found
    without: int = 0
    first: str = ""

    def with_(self, other: Joined) -> Joined:
        """Add the result of a later part of the rows."""
        seen = self.seen if other.seen is None else other.seen
        if self.seen is not None and other.seen is not None:
            seen = self.seen + other.seen
        return Joined(seen, self.without + other.without, self.first or other.first)


class ItemVotes(NamedTuple):
    """Votes for two classes, the second of which counts as 1, by the names of their items."""

    votes: Votes
    columns: VoteColumns
    place: dict[str, int]
    positive: str
    raters: tuple[str, ...]  # the names of workers, in the order of their numbers
    dropped: int = 0  # votes with a missing value
    posterior: FloatArray | None = None  # of the second class, where votes are not just counted
    kinds: tuple[str, ...] = ()  # of each worker

    @property
    def label(self) -> str:
        """The name of the label."""
        kind = "share" if self.posterior is None else "posterior"
        return f"{kind} of {self.positive}"

    @property
    def labels(self) -> tuple[FloatArray, FloatArray]:
        """The label of each item, and its effective number of votes."""
        if self.posterior is None:
            return self.votes.shares[:, 1], self.votes.effective_totals.astype(np.float64)
        # A posterior of one true class has at most the information of one outcome.
        return self.posterior, np.ones(self.posterior.size)

    def aggregated(self) -> ItemVotes:
        """Return these votes with labels by the given method.

        Raises
        ------
        InputError
            If workers are unknown, or if intervals are to hold for new raters.
        """
        method = self.columns.aggregate
        if isinstance(method, str) and method == "shares":
            return self
        if not isinstance(method, str) or method != "dawid-skene":
            message = f'aggregate must be "shares" or "dawid-skene": got {method!r:.60}.'
            raise InputError(message)
        if self.columns.raters:
            message = (
                "raters need vote shares, because posteriors are estimated from all raters "
                f"together. Leave out {keyword('raters', True)}, or "  # noqa: FBT003
                f"{keyword('aggregate', method)}."
            )
            raise InputError(message)
        if self.votes.ballots is None:
            message = "Dawid-Skene needs workers: pass worker=, the column of who voted (--worker)."
            raise InputError(message)
        return self._replace(posterior=dawid_skene(self.votes).posterior[:, 1])

    def at(self, items: Any) -> IntArray:
        """Return the row of each item of an Arrow column among the votes; -1 if it has no votes."""
        found = coded(items, self.columns.item)
        rows = [-1 if name is None else self.place.get(name, -1) for name in found.names]
        return np.array(rows, dtype=np.int64)[found.numbers]

    def on_rows(self, at: IntArray) -> Votes:
        """Return the votes on the items of some rows, in the order of the rows."""
        items = self.votes.items or ()
        return self.votes.for_items([items[k] for k in at.tolist()])

    def of_raters(self, at: IntArray) -> RowVotes:
        """Return the single votes on some rows."""
        return row_votes(self.on_rows(at))._replace(names=self.raters)

    def refuse_unmatched(self, found: Joined, rows: int) -> None:
        """Raise if items have several predictions or, unless dropped, no votes or no prediction."""
        names = list(self.place)
        seen = np.zeros(len(names), dtype=np.int64) if found.seen is None else found.seen
        item = self.columns.item
        if (seen > 1).any():
            several = int((seen > 1).sum())
            message = (
                f"each {item} must have one prediction: {several:,} have more, the first is "
                f"{names[int((seen > 1).argmax())]!r:.60}. Keep one row of each or, if rows are "
                "votes, name the column of the votes."
            )
            raise InputError(message)
        alone = int((seen == 0).sum())
        if self.columns.drop_unmatched and found.without < rows:
            return
        problems = []
        if found.without:
            problems.append(
                f"{found.without:,} of {rows:,} rows of predictions have no votes, the first is "
                f"{found.first!r:.60}"
            )
        if alone:
            problems.append(
                f"{alone:,} of {len(names):,} items with votes have no prediction, the first is "
                f"{names[int((seen == 0).argmax())]!r:.60}"
            )
        if problems:
            remedy = f"Pass {keyword('drop_unmatched', True)} to leave them out."  # noqa: FBT003
            plain = {plain_word(name) for name in names}
            if found.without == rows:
                remedy = "Name the column of items that both sources share."
            if found.without and plain_word(found.first) in plain:
                other = next(name for name in names if plain_word(name) == plain_word(found.first))
                remedy = (
                    f"Items look like {found.first!r:.60} in the predictions and like "
                    f"{other!r:.60} in the votes: make them equal."
                )
            message = (
                f"each {item} must have a prediction and votes: {'; '.join(problems)}. {remedy}"
            )
            raise InputError(message)

    def note(self, found: Joined) -> str:
        """Return a note on rows and items without a match; empty if all match."""
        alone = 0 if found.seen is None else int((found.seen == 0).sum())
        if not (found.without or alone):
            return ""
        return (
            f"left out: {found.without:,} rows of predictions without votes, and {alone:,} items "
            "with votes but without a prediction."
        )

    @property
    def about_raters(self) -> str:
        """Return the note that raters recur, or on the assumptions of posteriors; else empty."""
        votes, workers = int(self.votes.counts.sum()), len(self.raters)
        if self.posterior is not None:
            return _CAUTION
        if self.columns.raters or not 0 < workers < votes:
            return ""
        return (
            f"{workers:,} raters gave {votes:,} votes, so raters recur. Intervals are for these "
            f"raters; {keyword('raters', True)} makes them hold for new raters too."  # noqa: FBT003
        )


def counted(votes: Votes, columns: VoteColumns) -> ItemVotes:
    """Return the votes of `Votes`, by the names of its items."""
    if votes.items is None:
        message = "votes must name their items: pass Votes(counts, items=...) or Votes.from_long."
        raise InputError(message)
    own = _of_two_classes(votes, columns.positive)
    place = {str(text_of(name)): k for k, name in enumerate(votes.items)}
    if len(place) < len(votes.items):
        message = "items of votes must have names that differ as text: 1 and '1' do not."
        raise InputError(message)
    # Raises if votes have no workers.
    raters = row_votes(own).names if columns.raters else ()
    return ItemVotes(own, columns, place, str(own.classes[1]), raters).aggregated()


def _of_two_classes(votes: Votes, positive: str | None) -> Votes:
    if positive is None and votes.n_classes == 2:
        return votes
    words = {str(text_of(name)): name for name in votes.classes}
    if positive is None or positive not in words:
        problem = "name the class of the votes that counts as 1"
        if positive is not None:
            problem = f"votes must have the class {positive!r:.60}, which none has"
        message = f"{problem}.{_choices('The classes', positive, [*words])}"
        raise InputError(message)
    return votes.binary(words[positive])


def votes_of(batches: list[Batch], columns: VoteColumns, *, drop_missing: bool) -> ItemVotes:
    """Count votes from a table with one vote per row."""
    assert columns.vote is not None  # noqa: S101 - or there would be no rows of votes
    if not batches:
        message = "the votes have no rows, so there are no labels."
        raise InputError(message)
    whole = joined(
        [{Named(name): batch[Named(name)] for name in columns.named} for batch in batches]
    )
    missing = _missing(whole, columns, drop_missing=drop_missing)
    dropped = int(missing.sum())
    if dropped:
        whole = {key: kept_rows(column, ~missing) for key, column in whole.items()}
    found = {name: coded(whole[Named(name)], name) for name in columns.named}
    items, label = found[columns.item], found[columns.vote]
    names = [str(name) for name in items.names]
    words, positive = sorted(map(str, label.names)), columns.positive
    if positive is None or positive not in words:
        _refuse_class(columns.vote, positive, words)
    # Two classes, so that unanimous votes are valid. Numbers, because names are slow.
    own = np.array([int(word == positive) for word in label.names])
    frame = {"item": items.numbers, "vote": own[label.numbers]}
    raters: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    if columns.worker is not None:
        workers = found[columns.worker]
        if not columns.allow_repeated:
            _refuse_second_votes(items, workers, columns)
        frame["worker"], raters = workers.numbers, tuple(map(str, workers.names))
        if columns.kind is not None:
            kinds = _kinds(workers, found[columns.kind], columns.kind)
    votes = Votes.from_long(
        frame, item="item", label="vote", worker=None if columns.worker is None else "worker",
        classes=(0, 1), allow_repeated=columns.allow_repeated,
    )  # fmt: skip
    place = {name: k for k, name in enumerate(names)}
    found_votes = ItemVotes(votes, columns, place, str(positive), raters, dropped, kinds=kinds)
    return found_votes.aggregated()


def _missing(votes: Batch, columns: VoteColumns, *, drop_missing: bool) -> npt.NDArray[np.bool_]:
    """Mark votes with a missing value, refusing them unless they are dropped on purpose."""
    total = rows_of(votes)
    missing = np.zeros(total, dtype=bool)
    for name in columns.named:
        gaps = missing_values(votes[Named(name)])
        if gaps.any() and not drop_missing:
            message = (
                f"{name} must have no missing values: it is missing in {int(gaps.sum()):,} of "
                f"{total:,} votes, the first in row {int(gaps.argmax()) + 1}. Impute it, or pass "
                f"{keyword('drop_missing', True)} to leave those votes out."  # noqa: FBT003
            )
            raise InputError(message)
        missing |= gaps
    return missing


def _kinds(workers: Coded, kinds: Coded, name: str) -> tuple[str, ...]:
    """Return the kind of each worker, refusing workers of several."""
    _, first = np.unique(workers.numbers, return_index=True)
    own = kinds.numbers[first]
    other = kinds.numbers != own[workers.numbers]
    if other.any():
        row = int(other.argmax())
        worker = int(workers.numbers[row])
        several = np.unique(workers.numbers[other]).size
        message = (
            f"{name} must be the same in all votes of a worker: {several:,} of "
            f"{len(workers.names):,} workers have several values, the first is "
            f"{workers.names[worker]!r:.60} with {kinds.names[own[worker]]!r:.60} and "
            f"{kinds.names[kinds.numbers[row]]!r:.60}. Correct them, or name a column that "
            "describes workers."
        )
        raise InputError(message)
    return tuple(str(kinds.names[k]) for k in own)


def _refuse_second_votes(items: Coded, workers: Coded, columns: VoteColumns) -> None:
    """Raise if a worker has two votes on an item, because most are duplicated rows."""
    pair = items.numbers * len(workers.names) + workers.numbers
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    again = count > 1
    if again.any():
        row = int(first[again].min())
        message = (
            f"each {columns.worker} must have one vote on an item: {int(again.sum()):,} have more, "
            f"the first is {workers.names[workers.numbers[row]]!r:.60} on {columns.item} "
            f"{items.names[items.numbers[row]]!r:.60}. Drop the repeats, or pass "
            f"{keyword('allow_repeated', True)} to count each as a vote."  # noqa: FBT003
        )
        raise InputError(message)


def _refuse_class(vote: str, positive: str | None, words: list[str]) -> None:
    problem = f"name the value of {vote} that counts as 1."
    if positive is not None:
        problem = f"{vote} must have the value {positive!r:.60} in some row: it has it in none."
    if not words:
        message = f"there are no votes: {vote} has no values."
        raise InputError(message)
    message = f"{problem}{_choices('Its values', positive, words)}"
    raise InputError(message)


def _choices(what: str, positive: str | None, words: list[str]) -> str:
    """Return the words that may count as 1, and one suggestion."""
    asked = did_you_mean(positive or "", words)
    shown = ", ".join(map(repr, words[:20])) + ", ..." * (len(words) > 20)
    example = "" if asked else f" Pass one, such as {keyword('positive', words[-1])}."
    return f"{asked} {what} are: {shown}.{example}"


def long_form(
    batches: list[Batch], roles: Roles, columns: VoteColumns
) -> tuple[Roles, list[Piece]]:
    """Return the roles and the rows of items, for rows that are votes with predictions."""
    found = votes_of(batches, columns, drop_missing=roles.values.drop_missing)
    rows = one_per_item(batches, columns.item, columns.named)
    return roles._replace(y_true=found.label, votes=found), rows


def long_wanted(roles: Roles, columns: VoteColumns) -> Wanted:
    """Return the columns to read, for rows that are votes with predictions."""
    plain = roles._replace(counts=roles.y_prob)  # counts need no column of labels
    found = plain.wanted
    named = tuple(dict.fromkeys((*found.named, *columns.named)))
    return Wanted(tuple(dict.fromkeys(found.numbers)), named, percents=found.percents)


def one_per_item(batches: list[Batch], item: str, without: Iterable[str]) -> list[Piece]:
    """Return one row per item, for rows that are votes; raise if predictions differ within an item.

    `without` names the columns of the votes, which may differ.
    """
    whole = joined(batches)
    missing = missing_values(whole[Named(item)])
    if missing.any():  # with drop_missing, else `votes_of` raises
        whole = {key: kept_rows(column, ~missing) for key, column in whole.items()}
    found = coded(whole[Named(item)], item)
    _, first = np.unique(found.numbers, return_index=True)
    for key, column in whole.items():
        name = key.column if isinstance(key, Named) else key
        if name == item or (isinstance(key, Named) and name in without):
            continue
        own = column if isinstance(column, np.ndarray) else coded(column, name).numbers
        same = own[first][found.numbers]
        other = (own != same) & ~(np.isnan(own) & np.isnan(same))
        if other.any():
            row = int(other.argmax())
            texts = [kept_rows(column, np.arange(len(own)) == k)[0] for k in
                     (int(first[found.numbers[row]]), row)]  # fmt: skip
            message = (
                f"{name} must be the same in all rows of an item: {item} "
                f"{found.names[found.numbers[row]]!r:.60} has {_shown(texts[0])} and "
                f"{_shown(texts[1])}. If rows are not votes, do not name a column of "
                "votes."
            )
            raise InputError(message)
    chosen = np.zeros(len(found.numbers), dtype=bool)
    chosen[first] = True
    rows = {key: kept_rows(column, chosen) for key, column in whole.items()}
    return [Piece("", 0, partial(iter, [rows]))]


def _shown(value: Any) -> str:
    return repr(value.as_py() if hasattr(value, "as_py") else value.item())[:60]
