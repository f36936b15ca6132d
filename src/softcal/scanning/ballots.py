"""Raw votes as labels: count them on their engine, and join them to the predictions by item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from softcal._display import did_you_mean, keyword
from softcal._validation.rules import MISSING
from softcal.exceptions import InputError
from softcal.scanning.checks import Check, refuse
from softcal.scanning.expressions import when
from softcal.scanning.rows import Joined, LabelRows, Uses
from softcal.scanning.source import Engine, Here, collected, kept, opened_to_join
from softcal.scanning.texts import plain_word
from softcal.votes import Votes, row_votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal.scanning.data import RawVotes
    from softcal.scanning.source import Frame, Source

CAUTION = (
    "labels are Dawid-Skene posteriors, which assume one true class per item. They are biased "
    "toward the overall rate, so a calibrated model can look overconfident. They are wrong if "
    "people differ in opinion. Vote shares are therefore the default."
)


class Counted(NamedTuple):
    """The labels of items, and the single votes behind them.

    `items` has the columns item, y0 (or the share of each class, y0, y1, ...), and m. `single` has
    the columns item, rater, v, and n, how many votes a rater has on an item.
    """

    name: str
    items: Frame
    votes: int
    raters: int
    single: Frame | None = None
    posterior: bool = False


def voted_rows(
    label: RawVotes, uses: Uses, con: Any, classes: Sequence[str] | None, *, drop: bool
) -> LabelRows:
    """Count votes, join them to predictions, and return what their label needs.

    `classes` are those of the predictions, if these are of many classes.
    """
    votes = None if label.counted else label.source
    own = uses.source if votes is None else opened_to_join(votes, con)
    # Texts take longer to compare than integers, which only DuckDB has on both sides.
    both = not label.counted and all(_has_integers(each, label.item) for each in (own, uses.source))
    item = uses.single(str(label.item)) if both else uses.text(str(label.item))
    ballots, dropped = None, 0
    if label.counted:
        found = _of_matrix(label, label.source, uses.source, con, classes)
    else:
        ballots, dropped = _ballots(label, own, con, integers=both, drop=drop)
        if label.rater is not None and not label.allow_repeated:
            _refuse_second_votes(ballots, label)
        if label.aggregate == "dawid-skene":
            matrix = _matrix(ballots, label, classes)
            found = _of_matrix(label, matrix, uses.source, con, classes)
            item = uses.text(str(label.item))
        else:
            if not _same_engine(own, uses.source):
                ballots = uses.source.given(collected(ballots), con)
            found = _counts(ballots, label, classes, con)
    rows, missing, without, alone = _matched(found, label, uses, item, con, drop=drop)
    return LabelRows(
        found.name, [Check(str(label.item), item, (MISSING,), names=True)],
        tuple(nw.col(f"y{c}") for c in range(len(classes or "y"))), nw.col("m"),
        of_votes=found.name,
        joined=Joined(
            rows, found.single, without + missing, _notes(label, found, dropped, without, alone)
        ),
    )  # fmt: skip


def _has_integers(source: Source, name: str | None) -> bool:
    source.refuse_unknown(str(name))
    return isinstance(source, Here) and source.has_integers(str(name))


def _notes(
    label: RawVotes, found: Counted, dropped: int, without: int, alone: int
) -> tuple[str, ...]:
    """Return notes on votes: which are left out, and whether raters recur."""
    notes = []
    if dropped:
        notes.append(f"left out: {dropped:,} votes with a missing value.")
    if without or alone:
        notes.append(
            f"left out: {without:,} rows of predictions without votes, and {alone:,} items "
            "with votes but without a prediction."
        )
    if found.posterior:
        notes.append(CAUTION)
    elif not label.raters and 0 < found.raters < found.votes:
        notes.append(
            f"{found.raters:,} raters gave {found.votes:,} votes, so raters recur. Intervals are "
            f"for these raters; {keyword('raters')} makes them hold for new raters too."
        )
    return tuple(notes)


def _same_engine(one: Source, two: Source) -> bool:
    engines = [each.implementation for each in (one, two) if isinstance(each, Engine)]
    return one is two or not engines or (len(engines) == 2 and engines[0] is engines[1])


def _ballots(
    label: RawVotes, source: Source, con: Any, *, integers: bool = False, drop: bool
) -> tuple[Frame, int]:
    """Return votes as columns of text: item, vote, rater, and kind, and how often each occurs, n.

    Items stay integers if asked, and raters if they are. Without raters, equal votes are one row.
    """
    uses = Uses(source)
    names = {"item": label.item, "vote": label.vote, "rater": label.rater, "kind": label.kind}
    columns = {as_: uses.single(name) for as_, name in names.items() if name is not None}
    rows = source.frame(uses.all).select(*(each.alias(as_) for as_, each in columns.items()))
    if label.rater is None:
        rows = rows.group_by(*columns).agg(nw.len().alias("n"))
        rows = rows.with_columns(nw.col("n").cast(nw.Float64))  # Dask casts no aggregate
    else:
        rows = rows.with_columns(nw.lit(1.0).alias("n"))
    own = {"item"} if integers else set()
    own |= {"rater"} if label.rater is not None and _has_integers(source, label.rater) else set()
    rows = rows.with_columns(nw.col(as_).cast(nw.String) for as_ in columns if as_ not in own)
    rows = kept(rows, con) if isinstance(source, Here) else rows  # used several times
    gaps = nw.any_horizontal(*(nw.col(as_).is_null() for as_ in columns), ignore_nulls=True)
    missing = int(_one(rows.filter(gaps).select(nw.col("n").sum())) or 0)
    if missing and not drop:
        checks = [Check(str(names[as_]), each, (MISSING,), names=True)
                  for as_, each in columns.items()]  # fmt: skip
        refuse(source, uses.all, checks, drop=False)
    return (rows.filter(~gaps) if missing else rows), missing


def _one(result: Frame) -> Any:
    """Return the only value of a result."""
    return collected(result).column(0)[0].as_py()


def _count(rows: Frame) -> int:
    return int(_one(rows.select(nw.len().alias("n"))))


def _refuse_second_votes(ballots: Frame, label: RawVotes) -> None:
    """Raise if a rater has two votes on an item, because most are duplicated rows."""
    pairs = ballots.group_by("item", "rater").agg(nw.len().alias("n")).filter(nw.col("n") > 1)
    found = counted_and_first(pairs, ["rater", "item"])
    if found is not None:
        count, (rater, item) = found
        message = (
            f"each {label.rater} must have one vote on an item: {count:,} have more, "
            f"the first is {rater!r:.60} on {label.item} {item!r:.60}. Drop the repeats, or pass "
            f"{keyword('allow_repeated')} to count each as a vote."
        )
        raise InputError(message)


def counted_and_first(rows: Frame, columns: Sequence[str]) -> tuple[int, list[Any]] | None:
    """Return how many rows there are, and the values of the lowest; None if there are none.

    Items and raters are shown as text, also if they are integers.
    """
    count = _count(rows)
    if not count:
        return None
    first = collected(rows.select(*columns).sort(*columns[::-1]).head(1)).to_pylist()[0]
    names = ("item", "rater")
    return count, [str(first[name]) if name in names else first[name] for name in columns]


def _words(ballots: Frame) -> list[str]:
    words = collected(ballots.select("vote").unique().head(1000))["vote"].to_pylist()
    return sorted(map(str, words))


def _positive(ballots: Frame, label: RawVotes) -> list[str]:
    """Return the texts of votes that count as 1; raise if no vote does."""
    words = _words(ballots)
    own = [word for word in words if label.positive in (word, plain_word(word))]
    if not words:
        message = f"there are no votes: {label.vote} has no values."
        raise InputError(message)
    if not own:
        problem = f"name the value of {label.vote} that counts as 1."
        if label.positive is not None:
            problem = (
                f"{label.vote} must have the value {label.positive!r:.60} in some row: it has it "
                "in none."
            )
        message = f"{problem}{_choices('Its values', label.positive, words)}"
        raise InputError(message)
    return own


def _choices(what: str, positive: str | None, words: list[str]) -> str:
    """Return the words that may count as 1, and one suggestion."""
    asked = did_you_mean(positive or "", words)
    shown = ", ".join(map(repr, words[:20])) + ", ..." * (len(words) > 20)
    example = "" if asked else f" Pass one, such as {keyword('positive', words[-1])}."
    return f"{asked} {what} are: {shown}.{example}"


def _counts(ballots: Frame, label: RawVotes, classes: Sequence[str] | None, con: Any) -> Counted:
    """Count the votes on each item by the engine."""
    if classes is None:
        texts, name = [_positive(ballots, label)], f"share of {label.positive}"
    else:
        _refuse_other_classes(ballots, label, classes)
        texts, name = [[each, f"{each}.0"] for each in classes], f"votes in {label.vote}"
    own = [f"y{c}" for c in range(len(texts))]
    marks = [when(nw.col("vote").is_in(each), nw.col("n"), 0) for each in texts]
    marked = ballots.with_columns(mark.alias(y) for y, mark in zip(own, marks, strict=True))
    items = marked.group_by("item").agg(*(nw.col(y).sum() for y in own), nw.col("n").sum())
    items = items.select("item", *(nw.col(y) / nw.col("n") for y in own), nw.col("n").alias("m"))
    items = kept(items, con) if items.implementation.is_duckdb() else items
    single = None
    if label.raters and classes is None:
        single = marked.select("item", "rater", nw.col("y0").alias("v"), "n")
        if label.allow_repeated:
            single = single.group_by("item", "rater").agg(nw.col("v").mean(), nw.col("n").sum())
    raters = _one(ballots.select(nw.col("rater").n_unique())) if label.rater is not None else 0
    return Counted(name, items, int(_one(ballots.select(nw.col("n").sum()))), int(raters), single)


def _refuse_other_classes(ballots: Frame, label: RawVotes, classes: Sequence[str]) -> None:
    known = {*classes, *(f"{name}.0" for name in classes)}
    other = [word for word in _words(ballots) if word not in known]
    if other:
        message = (
            f"{label.vote} must be one of the {len(classes)} classes "
            f"{', '.join(map(repr, classes[:20]))}: {len(other)} other values occur, the first is "
            f"{other[0]!r:.60}. Rename them, or leave those votes out."
        )
        raise InputError(message)


def _matrix(ballots: Frame, label: RawVotes, classes: Sequence[str] | None) -> Votes:
    """Bring all votes here."""
    if label.raters:
        message = (
            "raters need vote shares, because posteriors are estimated from all raters "
            f"together. Leave out {keyword('raters')}, or "
            f"{keyword('aggregate', label.aggregate)}."
        )
        raise InputError(message)
    if label.rater is None:
        message = "Dawid-Skene needs raters: pass rater=, the column of who voted (--worker)."
        raise InputError(message)
    return _votes_here(ballots, label, classes)


def _votes_here(ballots: Frame, label: RawVotes, classes: Sequence[str] | None = None) -> Votes:
    """Bring votes here as `Votes`; without classes, of the positive word and all others."""
    table = collected(ballots)
    columns = {name: list(map(str, table[name].to_pylist())) for name in ("item", "rater", "vote")}
    votes: list[Any] = list(map(plain_word, columns["vote"]))
    if classes is None:
        own = {plain_word(word) for word in _positive(ballots, label)}
        votes = [int(word in own) for word in votes]
    return Votes.from_long(
        {**columns, "vote": votes}, item="item", label="vote", worker="rater",
        classes=(0, 1) if classes is None else classes, allow_repeated=label.allow_repeated,
    )  # fmt: skip


def _of_matrix(
    label: RawVotes, votes: Votes, source: Source, con: Any, classes: Sequence[str] | None
) -> Counted:
    """Return the labels of counted votes, given to the engine of the source."""
    import pyarrow as pa

    if votes.items is None:
        message = "votes must name their items: pass Votes(counts, items=...) or Votes.from_long."
        raise InputError(message)
    items = [str(name) for name in votes.items]
    if len(set(items)) < len(items):
        message = "items of votes must have names that differ as text: 1 and '1' do not."
        raise InputError(message)
    posterior = label.aggregate == "dawid-skene"
    if classes is None and not (posterior and votes.n_classes == 2):
        votes = _binary(label, votes)
    totals = np.ones(len(items)) if posterior else votes.effective_totals.astype(np.float64)
    shares = votes.shares
    if posterior:
        from softcal.crowd import dawid_skene  # here, because SciPy's sparse matrices take long

        shares = dawid_skene(votes).posterior
    if classes is None:
        at = [1]
        positive = label.positive if label.positive is not None else str(votes.classes[1])
        name = f"{'posterior' if posterior else 'share'} of {positive}"
    else:
        at = [list(map(str, votes.classes)).index(name) for name in classes]
        name = "votes"
    columns = {f"y{k}": np.ascontiguousarray(shares[:, c]) for k, c in enumerate(at)}
    single = None
    if label.raters:
        each = row_votes(votes)
        single = source.given(
            pa.table({
                "item": [items[k] for k in each.row.tolist()],
                "rater": [each.names[k] for k in each.rater.tolist()],
                "v": each.vote, "n": each.part * totals[each.row],
            }),
            con,
        )  # fmt: skip
    found = source.given(pa.table({"item": items, "m": totals, **columns}), con)
    workers = 0 if votes.ballots is None else len(votes.ballots.workers)
    return Counted(name, found, int(votes.counts.sum()), workers, single, posterior)


def _binary(label: RawVotes, votes: Votes) -> Votes:
    positive = label.positive
    if positive is None and votes.n_classes == 2:
        return votes
    words = {str(name): name for name in votes.classes}
    if positive is None or positive not in words:
        problem = "name the class of the votes that counts as 1"
        if positive is not None:
            problem = f"votes must have the class {positive!r:.60}, which none has"
        message = f"{problem}.{_choices('The classes', positive, [*words])}"
        raise InputError(message)
    return votes.binary(words[positive])


def _matched(
    found: Counted, label: RawVotes, uses: Uses, item: nw.Expr, con: Any, *, drop: bool
) -> tuple[Frame, int, int, int]:
    """Join rows to the labels of their items; raise for items without a match.

    Also return how many rows have no item, how many rows have no votes, and how many items have
    no row.
    """
    rows = uses.source.frame(uses.all).with_columns(item.alias("item"))
    known = rows.filter(~nw.col("item").is_null())
    missing = 0  # of votes, these are counted already
    if label.source is None:
        known = _one_per_item(known, label, uses)
    else:
        missing = _count(rows) - _count(known)
    if missing and not drop:
        check = Check(str(label.item), item, (MISSING,), names=True)
        refuse(uses.source, uses.all, [check], drop=False)
    total, items = _count(known), _count(found.items)
    if _one(known.select(nw.col("item").n_unique())) != total:
        several = known.group_by("item").agg(nw.len().alias("n")).filter(nw.col("n") > 1)
        twice = counted_and_first(several, ["item"])
        assert twice is not None  # noqa: S101 - an item has several rows
        message = (
            f"each {label.item} must have one prediction: {twice[0]:,} have more, the first is "
            f"{twice[1][0]!r:.60}. Keep one row of each or, if rows are votes, name the column of "
            "the votes."
        )
        raise InputError(message)
    joined = known.join(found.items, on="item", how="inner")
    joined = kept(joined, con) if isinstance(uses.source, Here) else joined
    both = _count(joined)
    without, alone = total - both, items - both
    if (without or alone) and (not label.drop_unmatched or (without and not both)):
        one = counted_and_first(known.join(found.items, on="item", how="anti"), ["item"])
        two = counted_and_first(found.items.join(known, on="item", how="anti"), ["item"])
        _refuse_unmatched(str(label.item), one, two, total, items)
    return joined, missing, without, alone


def _one_per_item(rows: Frame, label: RawVotes, uses: Uses) -> Frame:
    """Return one row per item, for rows that are votes."""
    have = rows.collect_schema().names()
    names: dict[str, str] = {}
    for k, use in enumerate(uses.all):
        if use.name != label.item:
            names |= {c: use.name for c in (f"c{k}", f"t{k}") if c in have}
    at = next(k for k, use in enumerate(uses.all) if use.name == label.item)
    return one_per_item(rows, str(label.item), names).with_columns(nw.col("item").alias(f"c{at}"))


def _refuse_unmatched(item: str, without: Any, alone: Any, rows: int, items: int) -> None:
    problems = []
    if without:
        problems.append(
            f"{without[0]:,} of {rows:,} rows of predictions have no votes, the first is "
            f"{without[1][0]!r:.60}"
        )
    if alone:
        problems.append(
            f"{alone[0]:,} of {items:,} items with votes have no prediction, the first is "
            f"{alone[1][0]!r:.60}"
        )
    remedy = f"Pass {keyword('drop_unmatched')} to leave them out."
    if without and without[0] == rows:
        remedy = "Name the column of items that both sources share."
    if without and alone and plain_word(without[1][0]) == plain_word(alone[1][0]):
        remedy = (
            f"Items look like {without[1][0]!r:.60} in the predictions and like "
            f"{alone[1][0]!r:.60} in the votes: make them equal."
        )
    message = f"each {item} must have a prediction and votes: {'; '.join(problems)}. {remedy}"
    raise InputError(message)


def one_per_item(
    rows: Frame,
    item: str,
    names: dict[str, str],
    remedy: str = "If rows are not votes, do not name a column of votes.",
) -> Frame:
    """Return one row per item, for rows that are votes; raise if a value differs within an item."""
    rows = rows.with_columns(
        *(nw.col(c).alias(f"{c}_high") for c in names),
        *(nw.col(c).is_null().cast(nw.Int64).alias(f"{c}_gaps") for c in names),
    )
    grouped = rows.group_by("item").agg(
        *(nw.col(c).min() for c in names),
        *(nw.col(f"{c}_high").max() for c in names),
        *(nw.col(f"{c}_gaps").sum() for c in names),
        nw.len().alias("size"),
    )
    for c, name in names.items():
        gaps = nw.col(f"{c}_gaps")
        differ = (nw.col(c) != nw.col(f"{c}_high")) | ((gaps > 0) & (gaps < nw.col("size")))
        other = counted_and_first(grouped.filter(differ), [c, f"{c}_high", "item"])
        if other is not None:
            low, high, which = other[1]
            message = (
                f"{name} must be the same in all rows of an item: {item} {which!r:.60} has "
                f"{low!r:.60} and {high!r:.60}. {remedy}"
            )
            raise InputError(message)
    return grouped.select("item", *names)


def rated(plan: Any) -> tuple[Votes, tuple[str, ...], dict[str, Any]]:
    """Bring votes here with the kind of each rater, and the predictions of their items."""
    from softcal.scanning.stream import numbers

    label, roles = plan.data.y_true, plan.models[0].roles
    own = roles.source if label.source is None else opened_to_join(label.source, plan.con)
    ballots, _ = _ballots(label, own, plan.con, drop=plan.data.drop_missing)
    rows = collected(roles.rows.filter(nw.col("status") == 0))
    here = {str(name): k for k, name in enumerate(rows["item"].to_pylist())}
    votes = _votes_here(ballots, label)
    votes = votes.for_items([name for name in votes.items or () if str(name) in here])
    order = [here[str(name)] for name in votes.items or ()]
    predictions = {model.name: numbers(rows[model.p])[order] for model in plan.models}
    return votes, _kinds(ballots, votes, label), predictions


def _kinds(ballots: Frame, votes: Votes, label: RawVotes) -> tuple[str, ...]:
    """Return the kind of each rater; raise if one has several."""
    pairs = ballots.select("rater", "kind").unique()
    several = pairs.group_by("rater").agg(
        nw.len().alias("n"), nw.col("kind").min().alias("low"), nw.col("kind").max().alias("high")
    )
    other = counted_and_first(several.filter(nw.col("n") > 1), ["low", "high", "rater"])
    if other is not None:
        message = (
            f"{label.kind} must be the same in all votes of a rater: {other[0]:,} of "
            f"{_count(several):,} raters have several values, the first is {other[1][2]!r:.60} "
            f"with {other[1][0]!r:.60} and {other[1][1]!r:.60}. Correct them, or name a column "
            "that describes raters."
        )
        raise InputError(message)
    table = collected(pairs)
    kind = dict(zip(map(str, table["rater"].to_pylist()), table["kind"].to_pylist(), strict=True))
    assert votes.ballots is not None  # noqa: S101 - raters are known
    return tuple(kind[name] for name in votes.ballots.workers)
