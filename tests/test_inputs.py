"""Input validation: which inputs are accepted, and the error messages for the others."""

from __future__ import annotations

import tracemalloc
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import softcal as sc
from softcal._validation import inputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Y = [0.0, 0.25, 0.5, 1.0]
P = [0.125, 0.25, 0.75, 1.0]
EXPECTED = sc.reliability(np.array(Y), np.array(P))


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        lambda v: np.array(v, dtype=np.float16),
        lambda v: np.array(v, dtype=object),
        lambda v: [Fraction(x) for x in v],
        lambda v: [Decimal(x) for x in v],
        np.ma.masked_array,
        pd.Series,
        lambda v: pd.Series(v, dtype="Float64"),
        lambda v: pd.Series(v, dtype="float32"),
        lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.float64())),
        lambda v: pd.Series(v, index=list("abcd")),
        pl.Series,
        lambda v: pl.Series(v, dtype=pl.Float32),
        lambda v: pl.DataFrame({"v": v})["v"],
        pa.array,
        lambda v: pa.chunked_array([v[:1], v[1:]]),
        torch.tensor,
        lambda v: torch.tensor(v, requires_grad=True),
        lambda v: torch.tensor(v, dtype=torch.bfloat16),
        lambda v: torch.tensor(v, dtype=torch.float16),
    ],
)
def test_every_container_gives_the_same_table(make: Any) -> None:
    assert sc.reliability(make(Y), make(P)) == EXPECTED
    assert sc.reliability(make(Y), make(P), sample_weight=make([1.0, 1.0, 1.0, 1.0])) == EXPECTED


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda v: np.array(v, dtype=np.int8),
        lambda v: np.array(v, dtype=np.uint64),
        lambda v: np.array(v, dtype=bool),
        lambda v: np.array([np.bool_(x) for x in v], dtype=object),
        lambda v: pd.Series(v, dtype="Int64"),
        lambda v: pd.Series(v, dtype="boolean"),
        lambda v: pd.Series(v, dtype="category"),
        lambda v: pl.Series([bool(x) for x in v]),
        lambda v: pl.Series(v, dtype=pl.Int16),
        lambda v: pa.array([bool(x) for x in v]),
        lambda v: torch.tensor(v, dtype=torch.bool),
        torch.tensor,
    ],
)
def test_integer_and_boolean_columns_are_accepted_as_labels(make: Any) -> None:
    hard = [0, 1, 0, 1]
    assert sc.ece(make(hard), P) == sc.ece(hard, P)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8])
@pytest.mark.parametrize(
    "make",
    [
        torch.from_numpy,
        pa.array,
        lambda v: pa.chunked_array([pa.array(v)]),
        lambda v: pa.chunked_array([pa.array(v)]).slice(1),
        pl.Series,
        np.ndarray.view,
    ],
)
def test_columns_in_memory_are_read_without_a_copy(make: Any, dtype: type[Any]) -> None:
    column = make(np.array([0, 1, 1, 0], dtype=dtype))
    found = inputs.rows(column, column).y_prob
    own = column.to_numpy() if isinstance(column, pl.Series) else np.asarray(column)
    assert found.dtype == dtype
    assert np.shares_memory(found, own)


@pytest.mark.parametrize(
    ("metric", "make"),
    [
        (sc.smece, lambda v: torch.from_numpy(v[:, 0].copy())),
        (sc.smece, lambda v: pa.array(v[:, 0].copy())),
        (sc.smece, lambda v: v.astype(np.float32)[:, 0]),
        (sc.smece, lambda v: (v > 0.5).astype(np.int8)[::-1, 0]),
        (sc.smooth_ece, lambda v: torch.from_numpy(v[:, 0].astype(np.float16))),
        (sc.classwise_smece, torch.from_numpy),
        (sc.classwise_smece, np.asfortranarray),
    ],
)
def test_large_columns_are_added_up_without_a_copy(metric: Any, make: Any) -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(2), 500_000)
    p = make(p)
    metric(p, p)
    tracemalloc.start()
    metric(p, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400_000  # bytes; a copy of the smallest column takes 500,000


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(0,), (4,), (5,), (2, 2), (4, 1), ()])
@pytest.mark.parametrize("step", [1, -1])
def test_fast_path_of_plain_arrays_validates_like_the_general_path(
    dtype: type[Any], shape: tuple[int, ...], step: int
) -> None:
    y = np.zeros(4)
    p = np.ones(shape, dtype=dtype)
    p = p[::step] if p.ndim else p
    found = _result(inputs.rows, y, p)
    assert found == _result(inputs.rows, y.tolist(), p)
    assert (shape == (4,)) == isinstance(found, tuple)


def _result(call: Callable[..., Any], *arguments: Any) -> tuple[list[Any], ...] | str:
    try:
        y, p, *_ = call(*arguments)
    except sc.InputError as error:
        return str(error)
    return y.tolist(), p.tolist()


def test_input_arrays_are_not_modified() -> None:
    y, p, w = np.array(Y), np.array(P), np.ones(4)
    sc.reliability(y, p, sample_weight=w, n_votes=4)
    assert y.tolist() == Y
    assert p.tolist() == P
    assert w.tolist() == [1, 1, 1, 1]


REFUSED = [
    ([0.1, np.nan], "y_prob must have no missing values: 1 of 2 are NaN or null, the first at "
     "position 1. Drop or impute those rows first; softcal never drops rows itself."),
    ([None, 0.1], "y_prob must have no missing values: 1 of 2 are NaN or null, the first at position 0"),
    (pd.Series([0.1, None], dtype="Float64"), "1 of 2 are NaN or null, the first at position 1"),
    (pd.Series([None, pd.NA], dtype=object), "2 of 2 are NaN or null"),
    (pl.Series([0.1, None]), "1 of 2 are NaN or null"),
    (pl.Series([True, None]), "1 of 2 are NaN or null"),
    (pa.array([0.1, None]), "1 of 2 are NaN or null"),
    (pa.chunked_array([[0.1], [None]]), "1 of 2 are NaN or null"),
    (np.ma.masked_array([0.1, 0.2], mask=[False, True]), "1 of 2 are NaN or null"),
    ([0.5, np.inf], "y_prob must be in [0, 1]: 1 of 2 values is not, the first is y_prob[1] = inf."),
    ([0.5, -3.0], "1 of 2 values is not, the first is y_prob[1] = -3.0. If these are logits, use "
     "1 / (1 + exp(-y_prob))."),
    ([-0.1, -3.0], "2 of 2 values are not, the first is y_prob[0] = -0.1. If these are "
     "log-probabilities, use exp(y_prob); if logits, use 1 / (1 + exp(-y_prob))."),
    ([7.0, 70.0], "2 of 2 values are not, the first is y_prob[0] = 7.0. If these are percentages, "
     "use y_prob / 100"),
    ([0.5, 1 + 1e-7], "= 1.0000001. If this is rounding noise, clip y_prob to [0, 1]."),
    ([-1, 1], "If these are -1/+1 labels, use (y_prob + 1) / 2."),
    ([[0.1, 0.9], [0.2, 0.8]], "y_prob must be one column: it has shape (2, 2). Pass the column of "
     "one class (of an array, y_prob[:, 1])."),
    (np.zeros((2, 1)), "it has shape (2, 1). Pass that column itself (of an array, y_prob.ravel())."),
    (pd.DataFrame({"p": [0.1, 0.2]}), "it has shape (2, 1). Pass that column itself"),
    (pl.DataFrame({"p": [0.1, 0.2]}), "it has shape (2, 1). Pass that column itself"),
    (np.zeros((2, 1, 1)), "it has shape (2, 1, 1). Pass a list, an array, or a column, with one value per row."),
    (0.5, "it has shape (). Pass a list, an array, or a column"),
    (None, "it has shape (). Pass a list, an array, or a column"),
    ((x for x in (0.1, 0.2)), "it has shape (). Pass a list, an array, or a column"),
    ({0.1, 0.2}, "it has shape (). Pass a list, an array, or a column"),
    ([10**400, 0], "y_prob must hold numbers that fit a float64"),
    ([Fraction(10**400), 0], "y_prob must hold numbers that fit a float64"),
    ([Decimal("sNaN"), 0], "y_prob must hold numbers that fit a float64"),
    ([], "y_prob is empty: pass at least one row."),
    ([0.1], "y_true and y_prob must have the same length: y_true has 2 rows, y_prob has 1."),
]  # fmt: skip


@pytest.mark.parametrize(("y_prob", "message"), REFUSED)
def test_bad_predictions_are_refused_with_rule_count_position_and_remedy(
    y_prob: Any, message: str
) -> None:
    with pytest.raises(sc.InputError) as caught:
        sc.reliability([0, 1], y_prob)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("y_true", "message"), REFUSED[:15])
@pytest.mark.parametrize("metric", [sc.reliability, sc.log_loss, sc.kl_divergence])
def test_bad_labels_are_refused_with_the_same_messages(
    y_true: Any, message: str, metric: Any
) -> None:
    with pytest.raises(sc.InputError) as caught:
        metric(y_true, [0.5, 0.5])
    assert message.replace("y_prob", "y_true") in str(caught.value)


@pytest.mark.parametrize(
    ("y_prob", "message"),
    [
        (["0.1", "0.2"], "y_prob must hold real numbers: it holds text (dtype <U3)"),
        ([b"0.1", b"0.2"], "it holds text"),
        (np.array(["a", "b"], dtype=object), "y_prob[0] is 'a' (str). Convert it to float first."),
        (pd.Series(["0.1", "0.2"]), "(str). Convert it to float first."),
        (pl.Series(["0.1", "0.2"]), "it holds text"),
        (pa.array(["0.1", "0.2"]), "(str). Convert it to float first."),
        ([1j, 0], "it holds complex numbers (dtype complex128)"),
        (np.array([1j, 0], dtype=object), "y_prob[0] is 1j (complex)"),
        (np.zeros(2, dtype="M8[s]"), "it holds datetime64[s] (dtype datetime64[s])"),
        ([[0.1], [0.1, 0.2]], "y_prob must be a column of numbers: NumPy cannot read it ("),
        (torch.eye(2).to_sparse()[0], "NumPy cannot read it"),
        (torch.zeros(2, device="meta"), "y_prob must be on the CPU: this tensor is on meta. Pass "
         "y_prob.cpu()."),
    ],
)  # fmt: skip
def test_predictions_that_are_not_real_numbers_raise_type_error(y_prob: Any, message: str) -> None:
    with pytest.raises(sc.InputTypeError) as caught:
        sc.reliability([0, 1], y_prob)
    assert message in str(caught.value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -1], "sample_weight must be 0 or more: 1 of 2 values is not, the first is "
         "sample_weight[1] = -1.0. A weight of 0 leaves a row out."),
        ([0, 0], "sample_weight must have a positive value somewhere: all 2 are 0, so no row "
         "counts. Leave sample_weight out to count every row once."),
        ([1, np.nan], "sample_weight must have no missing values: 1 of 2"),
        ([1, np.inf], "sample_weight must be 0 or between 1e-100 and 1e+100: 1 of 2 values is not"),
        ([1e-200, 1], "the first is sample_weight[0] = 1e-200. Divide the weights by their mean."),
        ([1, 1, 1], "y_true and sample_weight must have the same length: y_true has 2 rows, "
         "sample_weight has 3."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("metric", [sc.reliability, sc.log_loss])
def test_bad_weights_are_refused(weight: list[float], message: str, metric: Any) -> None:
    with pytest.raises(sc.InputError) as caught:
        metric([0, 1], [0.5, 0.5], sample_weight=weight)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([1, 0], "n_votes must be whole numbers of 1 or more: 1 of 2 values is not, the first is "
         "n_votes[1] = 0.0. Pass the number of votes behind each label."),
        ([1, 2.5], "n_votes[1] = 2.5"),
        (-1, "2 of 2 values are not"),
        ([1, np.nan], "n_votes must have no missing values"),
        (True, "n_votes must be one column"),
        (10**400, "n_votes must hold numbers that fit a float64"),
        ([1], "y_true and n_votes must have the same length"),
    ],
)  # fmt: skip
def test_bad_numbers_of_votes_are_refused(votes: Any, message: str) -> None:
    with pytest.raises(sc.InputError) as caught:
        sc.reliability([0, 1], [0.5, 0.5], n_votes=votes)
    assert message in str(caught.value)


def test_pandas_columns_whose_indexes_differ_are_refused() -> None:
    y = pd.Series(Y, index=[0, 1, 2, 3])
    p = pd.Series(P, index=[3, 2, 1, 0])
    with pytest.raises(sc.InputError, match="y_true and y_prob must have the same pandas index"):
        sc.smece(y, p)
    with pytest.raises(sc.InputError, match="y_true and sample_weight must have the same pandas"):
        sc.smece(y, y, sample_weight=p)
    assert sc.smece(y, p.to_numpy()) == sc.smece(Y, P)
    assert sc.smece(y, p.sort_index()) == sc.smece(Y, P[::-1])


def test_errors_of_large_arrays_give_count_and_position() -> None:
    p = np.full(200_000, 0.5)
    p[123_456:123_460] = 2
    with pytest.raises(
        sc.InputError, match=r"4 of 200000 values are not, the first is y_prob\[123456\]"
    ):
        sc.smece(p * 0, p)


def test_data_that_changes_while_it_is_read_is_refused() -> None:
    """The kernel found a bad value, but the search for it finds none."""
    with pytest.raises(sc.InputError, match="changed while it was being read"):
        inputs.refuse(inputs.rows([0.5], [0.5], [1.0], [2]))
    with pytest.raises(sc.InputError, match="changed while it was being read"):
        inputs.refuse(inputs.rows([0.5], [0.5]))


def test_groups_in_another_order_are_refused() -> None:
    y, p = pd.Series([0.1, 0.9, 0.5]), pd.Series([0.2, 0.8, 0.5])
    groups = pd.Series([1, 1, 2], index=[2, 1, 0])
    for call in (
        lambda: sc.reliability(y, p, groups=groups),
        lambda: sc.compare(y, {"a": p, "b": p**2}, groups=groups),
        lambda: sc.compare_many(y, {"a": p, "b": p**2}, groups=groups),
        lambda: sc.calibrators.repair_preview(y, p, groups=groups),
    ):
        with pytest.raises(sc.InputError, match="same pandas index"):
            call()


def test_path_instead_of_a_saved_calibrator_is_refused_with_the_remedy() -> None:
    with pytest.raises(sc.InputTypeError, match=r"json\.load"):
        sc.calibrators.load_calibrator("cal.json")  # type: ignore[arg-type]


# Arguments of the wrong type

wrong: Any = sc  # these calls are wrong on purpose, which mypy would report
REL = sc.reliability([0.5] * 60, [0.4] * 60)
GUESS = sc.planning.Assumptions.from_pilot(REL)
VOTES = sc.Votes.from_long(
    {"i": [1, 1, 2], "l": ["a", "b", "a"], "w": [1, 2, 1]},
    item="i",
    label="l",
    worker="w",
    classes=["a", "b"],
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wrong.smece_interval(REL, level="0.95"), "level must be a number"),
        (lambda: wrong.smece([0.5], [0.5], bins=np.timedelta64(3, "s")), "whole number, Bins, or edges"),
        (lambda: wrong.calibrators.TemperatureCalibrator().fit([[0.5, 0.5]], [[0.5], [0.5, 0.5]]), "NumPy cannot read it"),
        (lambda: wrong.Votes([[1, 2]], classes=3), "classes must be a list of names"),
        (lambda: wrong.Votes([[1, 2]], classes=[[1], [2]]), "classes must be a list of names"),
        (lambda: wrong.Votes([[1, 2]]).smoothed("1"), "pseudo_votes must be above 0"),
        (lambda: wrong.dawid_skene(VOTES, tolerance="small"), "tolerance 0 or more"),
        (lambda: wrong.compare(REL), "must map names of models"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, methods=3), "must be a list of names"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, methods="platt"), "a list of names"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, rng=-1), "rng must be"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, rng="x"), "rng must be"),
        (lambda: wrong.planning.plan(REL, half_width=0.1), "must be Assumptions: got Reliability"),
        (lambda: wrong.planning.plan(GUESS, half_width=0.1, item_cost=10**400), "item_cost must be at least 0"),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(sc.SoftcalError, match=message):
        call()


# Slips that the values give away

FIFTHS = np.arange(6) / 5
THIRDS = np.arange(4) / 3
SPREAD = [0.1, 0.25, 0.4, 0.6, 0.7, 0.9]


@pytest.mark.parametrize(
    "metric",
    [
        sc.reliability,
        sc.smece_interval,
        sc.brier_without_vote_noise,
        lambda y, p, **votes: sc.compare(y, {"a": p, "b": p}, **votes),
        lambda y, p, **votes: sc.top_label_reliability(
            np.column_stack([1 - y, y]), np.column_stack([1 - p, p]), **votes
        ),
    ],
)
def test_shares_that_no_number_of_votes_gives_are_refused(metric: Any) -> None:
    p = np.array(SPREAD)
    with pytest.raises(sc.InputError) as caught:
        metric(FIFTHS, p, n_votes=3)
    said = str(caught.value)
    assert "times n_votes must be whole numbers of votes" in said
    assert "4 of 6 values are not, the first is y_true" in said
    assert "Pass the number of votes behind each label" in said
    metric(FIFTHS, p, n_votes=[5, 5, 10, 5, 15, 2])


def test_shares_may_be_rounded_to_two_digits() -> None:
    for votes in range(1, 30):
        shares = np.arange(votes + 1) / votes
        for y in (
            shares,
            shares.astype(np.float32),
            np.round(shares, 2),
            np.round(100 * shares) / 100,
        ):
            sc.reliability(y, y, n_votes=votes)
    with pytest.raises(
        sc.InputError, match=r"1 of 4 values is not, the first is y_true\[1\] = 0\.3 "
    ):
        sc.reliability([0.0, 0.3, 0.67, 1.0], THIRDS, n_votes=3)


def test_invalid_votes_and_labels_are_refused_before_misfits() -> None:
    with pytest.raises(sc.InputError, match="n_votes must be whole numbers of 1 or more"):
        sc.reliability(FIFTHS, SPREAD, n_votes=[3, 2.5, 3, 3, 3, 3])
    with pytest.raises(sc.InputError, match=r"y_true must be in \[0, 1\]"):
        sc.reliability([0.2, 1.5], [0.2, 0.5], n_votes=3)


def test_weighted_votes_are_no_misfit() -> None:
    votes = VOTES.weighted(by={1: "a", 2: "b"}, population={"a": 0.3, "b": 0.7})
    assert sc.reliability(votes, [0.2] * len(votes)).n == len(votes)


@pytest.mark.parametrize(
    "metric",
    [
        sc.smece,
        sc.reliability,
        sc.smece_interval,
        sc.calibration_summary,
        lambda y, p: sc.net_benefit(y, p, 0.5),
        lambda y, p: sc.compare(y, {"y_prob": p, "b": np.full(len(p), 0.4)}),
        lambda y, p: sc.top_label_smece(np.column_stack([1 - y, y]), np.column_stack([1 - p, p])),
        lambda y, p: sc.write_report("r.html", y, {"y_prob": p}),
    ],
)
def test_predictions_of_0_and_1_beside_soft_labels_give_a_warning(
    metric: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hard, soft = np.array([0, 1, 1, 0, 0, 1.0]), np.array(SPREAD)
    with pytest.warns(
        sc.SoftcalWarning, match="check that labels and predictions are not swapped"
    ) as found:
        metric(soft, hard)
    assert "every value of y_prob is 0 or 1" in str(found[0].message)
    assert {each.filename for each in found} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric(hard, soft)
