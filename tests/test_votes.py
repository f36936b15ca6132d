"""Votes: their input, their attributes, and their use as labels in every function."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import softcal_here
from hypothesis import given
from hypothesis import strategies as st

import softcal as sc

if TYPE_CHECKING:
    from pathlib import Path

LONG: dict[str, list[Any]] = {
    "text": ["b", "a", "a", "c", "b", "a"],
    "who": [3, 1, 2, 1, 1, 3],
    "says": ["yes", "no", "yes", "no", "yes", "no"],
}
COUNTS = [[2, 1], [0, 2], [1, 0]]


def from_long(frame: Any, **more: Any) -> sc.Votes:
    return sc.Votes.from_long(frame, item="text", worker="who", label="says", **more)


@pytest.fixture
def binary(rng: np.random.Generator) -> tuple[sc.Votes, Any]:
    totals = rng.integers(1, 9, 400)
    p = rng.random(400)
    k = rng.binomial(totals, p**1.3)
    return sc.Votes(np.column_stack([totals - k, k])), p


# What goes in


@pytest.mark.parametrize(
    "frame",
    [
        LONG,
        {name: np.array(values) for name, values in LONG.items()},
        pd.DataFrame(LONG),
        pd.DataFrame(LONG).astype({"says": "category", "who": "Int64"}),
        pl.DataFrame(LONG),
        pa.table(LONG),
    ],
    ids=["lists", "arrays", "pandas", "pandas nullable", "polars", "arrow"],
)
def test_long_votes_of_any_table_are_the_same(frame: Any) -> None:
    votes = from_long(frame, positive="yes")
    assert votes.items == ("a", "b", "c")
    assert votes.classes == ("no", "yes")
    assert votes.counts.tolist() == COUNTS
    assert votes.ballots is not None
    assert votes.ballots.workers == (1, 2, 3)


@given(st.permutations(range(6)))
def test_the_order_of_the_votes_does_not_matter(order: list[int]) -> None:
    shuffled = from_long(
        {name: [values[k] for k in order] for name, values in LONG.items()}, positive="yes"
    )
    assert shuffled.counts.tolist() == COUNTS


def test_classes_can_be_put_in_order_and_unvoted_ones_added() -> None:
    votes = from_long(LONG, classes=["yes", "maybe", "no"])
    assert votes.counts.tolist() == [[1, 0, 2], [2, 0, 0], [0, 0, 1]]
    with pytest.raises(
        sc.InputError, match=r"says must be one of classes: 1 are not, the first is 'no'"
    ):
        from_long(LONG, classes=["yes", "maybe"])


def test_names_that_cannot_be_compared_come_in_order_of_appearance() -> None:
    names = np.array(["a", 3, "a"], dtype=object)
    votes = from_long({"text": names, "who": [1, 1, 2], "says": [0, 1, 1]})
    assert votes.items == ("a", 3)
    assert votes.counts.tolist() == [[1, 1], [0, 1]]


def test_without_workers_the_same_vote_may_repeat() -> None:
    votes = sc.Votes.from_long({"i": [1, 1, 1], "l": [0, 1, 1]}, item="i", label="l")
    assert votes.counts.tolist() == [[1, 2]]
    assert votes.ballots is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({**LONG, "who": [3, 1, 1, 1, 1, 3]}, "1 have more, the first is rater 1 on item 'a'. Drop the repeats"),
        ({**LONG, "who": [3, 1]}, "text and who must have the same length: text has 6 rows, who has 2"),
        ({**LONG, "says": ["no"] * 6}, "says must have two or more classes: every vote is for 'no'"),
        ({**LONG, "says": ["no"] * 5 + [None]}, "says must have no missing values: 1 of 6"),
        ({**LONG, "who": [1, 2, 3, 4, 5, float("nan")]}, "who must have no missing values: 1 of 6"),
        ({"text": [1], "who": [1]}, "frame has no column 'says'. Its columns are: 'text', 'who'."),
        ({f"c{k}": [1] for k in range(30)}, "(30 in all)"),
    ],
)  # fmt: skip
def test_long_votes_that_are_refused(frame: Any, message: str) -> None:
    with pytest.raises(sc.InputError) as error:
        from_long(frame)
    assert message in str(error.value)


def test_input_that_is_not_a_table_is_refused() -> None:
    with pytest.raises(sc.InputTypeError, match="frame must be a pandas, Polars, or Arrow table"):
        from_long([1, 2])
    with pytest.raises(sc.InputTypeError, match=r"got LazyFrame\. Collect or load it first"):
        from_long(pl.LazyFrame(LONG).select("text"))


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, -1], [1, 1]], "1 of 4 are not, the first is counts[0, 1] = -1.0. If these are vote shares"),
        ([[0.5, 0.5]], "counts must be whole numbers of 0 or more: 2 of 2 are not"),
        ([[1, float("nan")]], "counts[0, 1] = nan"),
        ([[1, 0], [0, 0], [0, 0]], "every item must have a vote: 2 of 3 have none, the first is counts[1]"),
        ([3, 4], "one row per item and one column per class: it has shape (2,). Pass one column"),
        ([[1], [2]], "it has shape (2, 1). Pass one column"),
        ([[[1, 2]]], "it has shape (1, 1, 2)."),
        (np.zeros((0, 2)), "counts is empty"),
    ],
)  # fmt: skip
def test_counts_that_are_refused(counts: Any, message: str) -> None:
    with pytest.raises(sc.InputError) as error:
        sc.Votes(counts)
    assert message in str(error.value)


def test_names_must_fit() -> None:
    with pytest.raises(sc.InputError, match="classes must be 2 different names: got 3"):
        sc.Votes([[1, 2]], classes=["a", "b", "c"])
    with pytest.raises(
        sc.InputError, match=r"items must be 2 different names.*of which 1 are different"
    ):
        sc.Votes([[1, 2], [3, 4]], items=["x", "x"])


# Attributes


def test_votes_are_immutable_and_survive_pickling() -> None:
    given_counts = np.array([[1, 2], [3, 4]])
    votes = sc.Votes(given_counts)
    given_counts[0, 0] = 99
    assert votes.counts[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        votes.counts[0, 0] = 5
    with pytest.raises(AttributeError):
        votes.counts = given_counts  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(votes)).counts.tolist() == votes.counts.tolist()  # noqa: S301
    assert len(votes) == 2
    np.testing.assert_array_equal(np.asarray(votes), votes.shares)


def test_columns_of_a_frame_name_the_classes() -> None:
    frame = pd.DataFrame({"cat": [1, 0], "dog": [1, 3]})
    for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.table(frame.to_dict("list"))):
        assert sc.Votes(table).classes == ("cat", "dog")
        assert sc.Votes(table).shares.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert sc.Votes([[1, 2]]).classes == (0, 1)


def test_majority_ties_and_smoothing() -> None:
    votes = sc.Votes([[2, 2, 1], [0, 1, 3]])
    assert votes.majority().tolist() == [0, 2]
    assert votes.tied.tolist() == [True, False]
    np.testing.assert_allclose(votes.smoothed(1.0)[0], [3 / 8, 3 / 8, 2 / 8])
    np.testing.assert_allclose(votes.smoothed(1e-12), votes.shares, atol=1e-11)
    for wrong in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(sc.InputError, match="pseudo_votes must be above 0"):
            votes.smoothed(wrong)


def test_one_class_against_the_rest() -> None:
    votes = from_long(LONG, classes=["no", "maybe", "yes"]).binary("yes")
    assert votes.classes == ("not yes", "yes")
    assert votes.counts.tolist() == COUNTS
    assert votes.items == ("a", "b", "c")
    assert votes.ballots is not None
    assert votes.ballots.label.tolist() == [1, 0, 1, 0, 1, 0]
    with pytest.raises(
        sc.InputError, match="there is no class 'si': the classes are 'not yes', 'yes'"
    ):
        votes.binary("si")


def test_votes_are_aligned_with_other_tables() -> None:
    votes = from_long(LONG, positive="yes")
    assert votes.for_items(pd.Series(["c", "a", "a"])).counts.tolist() == [[1, 0], [2, 1], [2, 1]]
    with pytest.raises(
        sc.InputError, match="items must have votes: 1 of 2 names have none, the first is 'z'"
    ):
        votes.for_items(["a", "z"])
    with pytest.raises(sc.InputError, match="these votes have no item names"):
        sc.Votes([[1, 2]]).for_items(["a"])


# Everything that takes labels takes votes


def test_the_table_of_votes_is_that_of_shares_with_their_number(
    binary: tuple[sc.Votes, Any],
) -> None:
    votes, p = binary
    share, m = votes.shares[:, 1], votes.totals
    assert sc.reliability(votes, p) == sc.reliability(share, p, n_votes=m)
    assert sc.reliability(votes, p, groups=m) == sc.reliability(share, p, n_votes=m, groups=m)
    assert sc.compare(votes, {"a": p, "b": p**2}) == sc.compare(
        share, {"a": p, "b": p**2}, n_votes=m
    )
    assert sc.compare_many(votes, {"a": p, "b": p**2}) == sc.compare_many(
        share, {"a": p, "b": p**2}, n_votes=m
    )


@pytest.mark.parametrize(
    "metric", [sc.smece, sc.max_gap, sc.rms_gap, sc.bias, sc.brier, sc.log_loss, sc.kl_divergence]
)
def test_metrics_of_votes_are_those_of_shares(metric: Any, binary: tuple[sc.Votes, Any]) -> None:
    votes, p = binary
    w = np.arange(p.size) % 5
    assert metric(votes, p, sample_weight=w) == metric(votes.shares[:, 1], p, sample_weight=w)


def test_other_functions_accept_votes(binary: tuple[sc.Votes, Any]) -> None:
    votes, p = binary
    share = votes.shares[:, 1]
    assert sc.label_entropy(votes) == sc.label_entropy(share)
    assert sc.ece(votes, p, threshold=0.5) == sc.ece(share, p, threshold=0.5)
    np.testing.assert_array_equal(sc.harden(votes), share > 0.5)
    with pytest.raises(sc.InputError, match="y_true must be 0 or 1 for ece"):
        sc.ece(votes, p)


def test_votes_that_cannot_be_one_label_are_refused(binary: tuple[sc.Votes, Any]) -> None:
    votes, p = binary
    with pytest.raises(sc.InputError, match="n_votes must be omitted when y_true is Votes"):
        sc.reliability(votes, p, n_votes=3)
    with pytest.raises(
        sc.InputError,
        match=r"votes of two classes: these are of 3. Choose one with y_true.binary\('cat'\)",
    ):
        sc.smece(sc.Votes([[1, 2, 3]], classes=["cat", "dog", "fox"]), [0.5])
    with pytest.raises(sc.InputError, match="y_true has 400 rows, y_prob has 3"):
        sc.smece(votes, p[:3])
    with pytest.raises(sc.InputError, match="y_prob must be one column"):
        sc.smece(p, votes)


def test_votes_of_a_frame_keep_its_index() -> None:
    frame = pd.DataFrame({"no": [1, 2], "yes": [3, 0]}, index=[7, 8])
    p = pd.Series([0.5, 0.25], index=[7, 8])
    assert sc.smece(sc.Votes(frame), p) == 0.25
    with pytest.raises(sc.InputError, match="y_true and y_prob must have the same pandas index"):
        sc.smece(sc.Votes(frame), p[::-1])
    with pytest.raises(sc.InputError, match="y_true and y_prob must have the same pandas index"):
        sc.smece(sc.Votes(frame).binary("no"), p[::-1])


def test_names_that_cannot_be_told_apart_are_refused() -> None:
    frame = {"item": [1, {}, 2], "label": ["x", "y", "x"]}
    with pytest.raises(sc.InputTypeError, match=r"item\[1\] must be text or a number: got a dict"):
        sc.Votes.from_long(frame, item="item", label="label")


def test_pseudo_votes_that_are_a_span_of_time_are_refused() -> None:
    with pytest.raises(sc.InputError, match="pseudo_votes must be"):
        sc.Votes([[1, 2]]).smoothed(np.timedelta64(1, "s"))  # type: ignore[arg-type]


def test_odd_classes_and_populations_are_refused() -> None:
    votes = sc.Votes.from_long(
        {"i": [0, 0], "w": ["u", "v"], "a": [0, 1]}, item="i", worker="w", label="a"
    )
    odd: Any = 0.5
    with pytest.raises(sc.InputTypeError, match="population must map"):
        votes.weighted(by={"u": "a", "v": "a"}, population=odd)
    for odd in (pd.NA, 10**400, np.float16(0.1)):
        with pytest.raises(sc.InputError, match="there is no class"):
            votes.binary(odd)


def test_pseudo_votes_may_have_half_precision() -> None:
    votes = sc.Votes([[3, 1], [0, 2]])
    half: Any = np.float16(0.5)
    assert np.allclose(votes.smoothed(half), votes.smoothed(0.5))


OPINIONS = {
    "text": ["a", "a", "a", "b", "b"],
    "says": ["offensive", "ok", "ok", "offensive", "offensive"],
}


def test_two_words_need_the_positive_one() -> None:
    with pytest.raises(sc.InputError) as caught:
        sc.Votes.from_long(OPINIONS, item="text", label="says")
    said = str(caught.value)
    assert "says has two classes, 'offensive' and 'ok': name the one that counts as 1" in said
    assert "positive='offensive'" in said
    votes = sc.Votes.from_long(OPINIONS, item="text", label="says", positive="offensive")
    assert votes.classes == ("ok", "offensive")
    assert votes.shares[:, 1].tolist() == [1 / 3, 1.0]
    other = sc.Votes.from_long(OPINIONS, item="text", label="says", positive="ok")
    assert other.shares[:, 1].tolist() == [2 / 3, 0.0]
    assert sc.smece(votes, [1 / 3, 1.0]) == sc.smece(other, [2 / 3, 0.0]) == 0
    given = sc.Votes.from_long(OPINIONS, item="text", label="says", classes=["offensive", "ok"])
    assert given.shares[:, 1].tolist() == [2 / 3, 0.0]


def test_numbers_need_no_positive_class() -> None:
    for kind in (int, float, bool):
        votes = {"text": ["a", "a"], "says": [kind(0), kind(1)]}
        assert sc.Votes.from_long(votes, item="text", label="says").shares.tolist() == [[0.5, 0.5]]


def test_positive_of_many_classes_is_one_against_the_rest() -> None:
    frame = {"text": ["a"] * 4, "says": ["no", "maybe", "yes", "yes"], "who": [1, 2, 3, 4]}
    votes = sc.Votes.from_long(frame, item="text", label="says", worker="who", positive="yes")
    assert (votes.classes, votes.counts.tolist()) == (("not yes", "yes"), [[2, 2]])
    with pytest.raises(sc.InputError, match="there is no class 'Yes'"):
        sc.Votes.from_long(frame, item="text", label="says", positive="Yes")
    with pytest.raises(sc.InputError, match="ordered=True and positive"):
        sc.Votes.from_long(frame, item="text", label="says", positive="yes", ordered=True)


@pytest.mark.parametrize("spec", ["a,b,c", "v_*"])
def test_vote_counts_beside_one_prediction_need_the_positive_column(
    spec: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 0], "c": [1, 1], "v_x": [1, 2], "v_y": [3, 1]})
    frame["p"] = [0.5, 0.2]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(sc.InputError, match="name the column of counts that counts as 1"):
        sc.scan(frame, y_true=sc.Counts(spec), y_prob="p")
    refused = softcal_here("score", tmp_path / "rows.csv", "--vote-columns", spec, "--pred", "p")
    assert refused.returncode == 2
    assert "--positive" in refused.stderr
    name = "b" if "," in spec else "y"
    assert sc.scan(frame, y_true=sc.Counts(spec, positive=name), y_prob="p").n == 2
    found = sc.scan(frame, y_true=sc.Counts("a,b"), y_prob="p")
    assert found.about.label == "share of b among a, b"
