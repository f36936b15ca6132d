"""Bugs that fuzzing found: each of these crashed, warned, gave NaN or raised another's error."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import softcal as sc
from softcal.torchmetric import (
    ClasswiseSoftCalibrationError,
    SoftCalibrationError,
    TopLabelSoftCalibrationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = {"y": [0.1, 0.9, 0.5], "p": [0.2, 0.8, 0.5]}
NAMES: Any = {"y_true": "y", "y_prob": "p"}


# Files


@pytest.mark.parametrize("first", ["null\n", " \n\tnull", "[]\n", "1\n"])
def test_a_line_that_is_no_object_is_refused(first: str, tmp_path: Path) -> None:
    """Arrow crashes on null."""
    path = tmp_path / "a.jsonl"
    path.write_text(first + '{"y": 1, "p": 0.5}\n')
    with pytest.raises(sc.InputError, match=r"every line must be an object, \{\.\.\.\}"):
        sc.scan(path, **NAMES)


def test_lines_of_any_length_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"y": 1, "p": 0.5, "text": "x" * 3_000_000}) + "\n")
    assert sc.scan(path, **NAMES).n == 1


def test_slices_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"y": 1, "p": 0.5, "s": "\xff"}\n')
    no_text = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    pq.write_table(pa.table({**ROWS, "s": no_text}), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        with pytest.raises(sc.InputError, match=r"cannot read .*UTF-?8"):
            sc.scan_by(tmp_path / name, **NAMES, by="s")


def test_a_damaged_arrow_file_is_refused(tmp_path: Path) -> None:
    """Its texts lie outside the file: Arrow would read whatever is in memory there."""
    table, sink = pa.table({**ROWS, "s": ["a", "b", "c"]}), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.arange(4, dtype="<i4")
    assert sink.getvalue().count(offsets.tobytes()) == 1
    damaged = sink.getvalue().replace(offsets.tobytes(), (offsets * 2**24).tobytes())
    (tmp_path / "a.arrow").write_bytes(damaged)
    with pytest.raises(sc.InputError, match="cannot read"):
        sc.scan_by(tmp_path / "a.arrow", **NAMES, by="s")


@pytest.mark.parametrize("path", ["a" * 5000 + ".csv", "\ud800.csv"])
def test_a_name_no_file_can_have_is_refused(path: str) -> None:
    with pytest.raises(sc.InputError, match="cannot read"):
        sc.scan(path, **NAMES)


# Frames


@pytest.mark.parametrize(
    "names",
    [
        {"y_true": 0, "y_prob": 1},
        {"y_true": "y", "y_prob": None},
        {"y_true": ["y"], "y_prob": "p"},
        {**NAMES, "sample_weight": [1.0, 1.0, 1.0]},
    ],
)
def test_names_of_columns_are_text(names: dict[str, Any]) -> None:
    frame = pd.DataFrame(ROWS).assign(**{"0": 0.1, "1": 0.2}).rename(columns={"0": 0, "1": 1})
    with pytest.raises(sc.InputTypeError, match="must be the name of a column, which is text"):
        sc.scan(frame, **names)
    assert sc.scan(frame.rename(columns=str), y_true="0", y_prob="1").n == 3


@pytest.mark.parametrize("by", [None, ["s"], 3])
def test_the_name_of_slices_is_text(by: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="by must be the name of a column"):
        sc.scan_by(pd.DataFrame(ROWS), **NAMES, by=by)


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame(ROWS)
    for twice in (pd.concat([frame, frame], axis=1), pa.table([[0.5]] * 3, names=["y", "p", "p"])):
        with pytest.raises(sc.InputError, match="no two columns of the frame may have one name"):
            sc.scan(twice, **NAMES)


def test_a_column_is_no_frame() -> None:
    with pytest.raises(sc.InputTypeError, match="cannot scan a Series"):
        sc.scan(pd.Series([0.5]), **NAMES)


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2020", periods=3),
        pd.interval_range(0, 3),
    ],
)
def test_slices_arrow_cannot_tell_apart_are_refused(values: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="s must hold single values to slice by"):
        sc.scan_by(pd.DataFrame({**ROWS, "s": values}), **NAMES, by="s")


def test_lists_are_no_slices_in_an_engine() -> None:
    frame = pl.DataFrame({**ROWS, "s": [[1], [2], [2]]}).lazy()
    with pytest.raises(sc.InputTypeError, match="s must hold single values to slice by"):
        sc.scan_by(frame, **NAMES, by="s")


def test_a_time_beyond_all_calendars_is_refused() -> None:
    late = pa.array([2**62] * 3, pa.timestamp("s"))
    with pytest.raises(sc.InputError, match="s must hold values that Python can hold"):
        sc.scan_by(pa.table({**ROWS, "s": late}), **NAMES, by="s")


@pytest.mark.parametrize("by", [[["a", "b", "c"]] * 3, pd.DataFrame(ROWS), 3])
def test_a_report_is_sliced_by_one_column(by: Any, tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="by must be one column: it has shape"):
        sc.write_report(tmp_path / "r.html", ROWS["y"], {"m": ROWS["p"]}, by=by)


# Saved tables


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """A saved table of five rows in three groups, changed."""
    rel = sc.reliability(
        [0.0, 0.5, 1.0, 0.25, 0.75], [0.2, 0.4, 0.9, 0.9, 0.0],
        bins=2, sample_weight=[1, 2, 1, 1, 1], n_votes=4, groups=list("aabcc"),
    )  # fmt: skip
    saved = rel.to_dict()
    assert sc.Reliability.from_dict(saved) == rel
    change(saved)
    return saved


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: saved["sums"].pop("weight_sq"),
        lambda saved: saved["sums"].update(weight_sq=[1e300, 2.0]),
        lambda saved: saved["sums"].update(weight_sq=[1e-300, 2.0]),
        lambda saved: saved["sums"].update(residual=[1e155, 0.5]),
        lambda saved: saved["sums"].update(residual_var=[1e300, 0.1]),
        lambda saved: saved["sums"].pop("residual_var"),
        lambda saved: saved["sums"].update(prob_var=[10.0, 10.0]),
        lambda saved: saved["sums"].update(label_var=[1.4, 0.7]),
        lambda saved: saved["sums"].update(repeated=[9.0, 9.0]),
        lambda saved: saved["sums"].update(votes=[0.0, 0.0]),
        lambda saved: saved["sums"].update(vote_floor=[1.0, 1.0]),
        lambda saved: saved["sums"].update(vote_noise=[1.0, 1.0]),
        lambda saved: saved["sums"].update(count=[2**53, 2]),
    ],
)
def test_sums_no_rows_have_are_refused(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(sc.InputError, match="contradict each other"):
        sc.Reliability.from_dict(changed(change))


@pytest.mark.parametrize(
    ("square", "values"),
    [
        ("residual", [[1e300, 0.0], [0.0, 1.0]]),
        ("residual", [[0.0, 0.0], [0.0, 0.0]]),
        ("residual", [[0.1, 0.9], [0.9, 0.1]]),
        ("weight", [[0.0, 0.0], [0.0, 0.0]]),
        ("weight", [[10.0, -1.0], [-1.0, 2.0]]),
        ("weight", [[1e300, 0.0], [0.0, 2.0]]),
    ],
)
def test_squares_no_groups_have_are_refused(square: str, values: list[list[float]]) -> None:
    saved = changed(lambda saved: saved["clusters"].update({square: values}))
    with pytest.raises(sc.InputError, match="'clusters' contradict its sums"):
        sc.Reliability.from_dict(saved)


def test_extreme_rows_make_tables_that_can_be_read_again() -> None:
    rel = sc.reliability(
        [0.0, 0.0, 1.0],
        [1e-170, 5e-324, 0.7],
        sample_weight=[1e30, 1e100, 1e-100],
        groups=[1, 1, 2],
    )
    assert sc.Reliability.from_dict(json.loads(json.dumps(rel.to_dict()))) == rel


def test_infinite_edges_are_refused_without_a_warning() -> None:
    with pytest.raises(sc.InputError, match="edges must increase strictly"):
        sc.Bins([0, -np.inf, -np.inf, 1])


# Numbers


def test_a_bin_that_is_one_row_but_for_rounding_adds_nothing() -> None:
    found = sc.squared_gap_debiased([0.1, 0.2], [0.5, 0.5], bins=1, sample_weight=[1, 1e-20])
    assert found == 0


def test_a_walk_that_hardly_moves_is_chance() -> None:
    rel = sc.reliability([0.0, 0.0, 1.0], [1e-301, 0.95, 0.05], bins=[0, 0.01, 1])
    for test in (sc.ecce_mad, sc.ecce_range):
        assert test(rel).pvalue == 1.0


# Arguments of another kind

wrong: Any = sc  # these calls are wrong on purpose, and mypy would say so
column: Any = SoftCalibrationError
top: Any = TopLabelSoftCalibrationError
classwise: Any = ClasswiseSoftCalibrationError
REL = sc.reliability([0.5] * 60, [0.4] * 60)
GUESS = sc.planning.Assumptions.from_pilot(REL)
VOTES = sc.Votes.from_long(
    {"i": [1, 1, 2], "l": ["a", "b", "a"], "w": [1, 2, 1]}, item="i", label="l", worker="w"
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wrong.smece_interval(REL, level="0.95"), "level must be a number"),
        (lambda: wrong.smece([0.5], [0.5], bins=np.timedelta64(3, "s")), "whole number, Bins or"),
        (lambda: wrong.calibrators.TemperatureCalibrator().fit([[0.5, 0.5]], [[0.5], [0.5, 0.5]]), "NumPy cannot read it"),
        (lambda: column().update([0.5], [0.5]), "preds must be a tensor: got list"),
        (
            lambda: top(2).update(torch.tensor([[0.5, 0.5]]), [0]),
            r"target must be a tensor: got list\. Pass torch\.as_tensor",
        ),
        (lambda: classwise(2).update([[0.5, 0.5]], [0]), "must be a tensor"),
        (lambda: wrong.Votes([[1, 2]], classes=3), "classes must be a list of names"),
        (lambda: wrong.Votes([[1, 2]], classes=[[1], [2]]), "classes must be a list of names"),
        (lambda: wrong.Votes([[1, 2]]).smoothed("1"), "pseudo_votes must be above 0"),
        (lambda: wrong.dawid_skene(VOTES, tolerance="small"), "tolerance 0 or more"),
        (lambda: wrong.compare(REL), "must map names of models to predictions"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, methods=3), "must be a list of names"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, methods="platt"), "a list of names"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, rng=-1), "rng must be a numpy.random.Generator or a seed"),
        (lambda: wrong.calibrators.repair_preview([0.5] * 9, [0.4] * 9, rng="x"), "rng must be a numpy.random.Generator or a seed"),
        (lambda: wrong.planning.plan(REL, half_width=0.1), "starts from assumptions: got Reliability"),
        (lambda: wrong.planning.plan(GUESS, half_width=0.1, item_cost=10**400), "item_cost must be at least 0"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(sc.SoftcalError, match=message):
        call()


def test_a_ragged_batch_is_refused() -> None:
    with pytest.raises(sc.InputTypeError, match="y_prob must be a column of numbers"):
        sc.StreamingReliability().update([0.0, 0.5], [[], 0.5])  # type: ignore[arg-type]
