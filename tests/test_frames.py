"""Every engine gives the same tables as NumPy."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_tables import assert_same_table
from strategies import UNIT

import softcal as sc
from softcal.table import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Constructor = Callable[[dict[str, Any]], Any]


def from_chunks(data: dict[str, Any]) -> pa.Table:
    """Return an Arrow table with chunks that differ between columns."""
    whole = pa.table(data)
    cuts = [len(whole) * (k + 1) // (k + 3) for k in range(whole.num_columns)]
    columns = [
        pa.chunked_array(
            [column.slice(0, cut).combine_chunks(), column.slice(cut).combine_chunks()]
        )
        for column, cut in zip(whole.columns, cuts, strict=True)
    ]
    return pa.table(dict(zip(whole.column_names, columns, strict=True)))


EAGER: dict[str, Constructor] = {
    "pandas": lambda data: pa.table(data).to_pandas(),
    "pandas nullable": lambda data: pa.table(data).to_pandas().convert_dtypes(),
    "polars": lambda data: pl.from_arrow(pa.table(data)),
    "pyarrow": pa.table,
    "pyarrow chunked": from_chunks,
    "pyarrow dataset": lambda data: ds.dataset(pa.table(data)),
    "pyarrow stream": lambda data: pa.table(data).to_reader(max_chunksize=100),
}
LAZY: dict[str, Constructor] = {
    "polars lazy": lambda data: pl.from_arrow(pa.table(data)).lazy(),  # type: ignore[union-attr]
    "duckdb": lambda data: duckdb.from_arrow(pa.table(data)),
    "dask": lambda data: dd.from_pandas(pa.table(data).to_pandas(), npartitions=3),  # type: ignore[no-untyped-call]
}


@pytest.fixture(params=EAGER | LAZY)
def frame(request: pytest.FixtureRequest) -> Constructor:
    return (EAGER | LAZY)[request.param]


def hard_places(n: int) -> list[float]:
    """Return edges, and the doubles next to them."""
    edges = np.arange(n + 1) / n
    near = [edges, np.nextafter(edges, 0), np.nextafter(edges, 1)]
    return [*np.unique(np.concatenate(near)).tolist(), 5e-324, 0.29, 0.3, 1 - 2**-53]


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    p = np.concatenate([hard_places(10), hard_places(100), hard_places(7), rng.random(500)])
    n = p.size
    weight = rng.random(n)
    weight[:7] = 0
    votes = rng.integers(1, 6, n)
    return {
        "y": rng.integers(0, votes + 1) / votes,
        "p": p,
        "q": p**2,
        "w": weight,
        "m": votes,
        "segment": np.array(["north", "south", "west"])[rng.integers(0, 3, n)],
    }


def assert_same(tables: sc.TableSet, model: str, data: dict[str, Any], **options: Any) -> None:
    """Compare the tables of a model with those of arrays, on the bins and on the grid."""
    for each in (tables, tables.coarsen(tables.grid)):
        expected = sc.reliability(data["y"], data[model], bins=each.bins, **options)
        assert_same_table(each[model], expected)


@pytest.mark.parametrize(
    "bins",
    [
        1,
        7,
        10,
        100,
        3600,
        [0, 0.1, 0.29, 0.3, 0.7, 1],
        [0, 0.2, 0.25, 0.4, 0.6, 0.65, 0.8, 1],
        [0, 0.1, 0.25, 0.5, 0.75, 1],
    ],
)
def test_frames_give_the_tables_of_arrays(
    frame: Constructor, data: dict[str, Any], bins: Any
) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob="p", bins=bins)
    assert found.bins == sc.Bins.of(bins)
    assert_same(found, "p", data)


def test_weights_and_votes_match_arrays(frame: Constructor, data: dict[str, Any]) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob="p", sample_weight="w", n_votes="m")
    assert_same(found, "p", data, sample_weight=data["w"], n_votes=data["m"])
    assert found.about.rows_without_weight == 7
    assert (found.about.weight, found.about.votes) == ("w", "m")


def test_one_number_of_votes_for_all_rows(frame: Constructor, data: dict[str, Any]) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob="p", n_votes=60)
    assert_same(found, "p", data, n_votes=60)
    assert found.about.votes == "60"


def test_several_models_in_one_pass(frame: Constructor, data: dict[str, Any]) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob=["q", "p"], sample_weight="w")
    assert list(found) == ["q", "p"]
    for name in ("p", "q"):
        assert_same(found, name, data, sample_weight=data["w"])


def test_labels_of_exactly_0_and_1_among_soft_ones(
    frame: Constructor, data: dict[str, Any]
) -> None:
    mixed = {**data, "y": np.round(data["y"] * 4) / 4, "m": 4 * data["m"]}
    some: list[dict[str, Any]] = [{}, {"sample_weight": "w"}, {"n_votes": "m"}]
    for options in some:
        found = sc.scan(frame(mixed), y_true="y", y_prob="p", **options)
        assert_same(found, "p", mixed, **{name: mixed[column] for name, column in options.items()})


def test_segments_are_the_tables_of_their_rows(frame: Constructor, data: dict[str, Any]) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob="p", by="segment", n_votes="m")
    assert list(found.by("segment")) == ["north", "south", "west"]
    for value, tables in found.by("segment").items():
        here = data["segment"] == value
        rows = {name: values[here] for name, values in data.items()}
        assert_same(tables, "p", rows, n_votes=rows["m"])
    assert_same(found, "p", data, n_votes=data["m"])


def test_segments_of_two_columns_match_arrays(frame: Constructor, data: dict[str, Any]) -> None:
    found = sc.scan(frame(data), y_true="y", y_prob=["p", "q"], by=["segment", "m"])
    assert list(found.by("m")) == ["1", "2", "3", "4", "5"]
    here = (data["segment"] == "south") & (data["m"] == 3)
    rows = {name: values[here] for name, values in data.items()}
    for cell in (
        found.by("m")["3"].by("segment")["south"],
        found.by("segment")["south"].by("m")[3],
    ):
        for name in ("p", "q"):
            assert_same(cell, name, rows)


def test_missing_values_are_a_segment_of_their_own(frame: Constructor) -> None:
    rows: dict[str, Any] = {
        "y": [0.5, 0.25, 1.0, 0.0],
        "p": [0.5, 0.75, 0.5, 0.25],
        "by": ["b", None, "a", None],
        "number": [1.5, 2.0, None, 1.5],
    }
    tables = sc.scan(frame(rows), y_true="y", y_prob="p", by=["by", "number"])
    assert list(tables.by("by")) == ["a", "b", None]
    assert list(tables.by("number")) == ["1.5", "2.0", None]
    assert tables.by("by")[None]["p"].smece == pytest.approx(0.375)
    assert tables.by("number")[None].n == 1
    assert tables.n == 4


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.bool_])
def test_float32_and_integers_are_binned_exactly(frame: Constructor, kind: Any) -> None:
    p = np.array([0.7, 0.1, 0.3, 1.0, 0.0]).astype(kind)
    y = np.array([1, 0, 1, 0, 1], dtype=np.int64)
    found = sc.scan(frame({"y": y, "p": p}), y_true="y", y_prob="p")
    assert_same(found, "p", {"y": y, "p": p})


@settings(max_examples=8)
@given(p=st.lists(UNIT, min_size=1, max_size=100), n=st.integers(1, 4000))
@pytest.mark.parametrize("lazy", LAZY.values(), ids=LAZY)
def test_every_prediction_is_in_its_bin(lazy: Constructor, p: list[float], n: int) -> None:
    found = sc.scan(lazy({"y": p, "p": p}), y_true="y", y_prob="p", bins=n)
    fine = found.coarsen(found.grid)["p"]
    np.testing.assert_array_equal(fine.count, sc.reliability(p, p, bins=found.grid).count)
    assert fine.smece == 0  # exactly, because labels equal predictions


FAULTS = [
    ("p", 1.5, "p must be in [0, 1]: 1 of 4 values is not"),
    ("p", -0.5, "p must be in [0, 1]: 1 of 4 values is not"),
    ("p", np.inf, "p must be in [0, 1]: 1 of 4 values is not"),
    ("p", np.nan, "p must have no missing values: 1 of 4 are NaN or null"),
    ("p", None, "p must have no missing values: 1 of 4 are NaN or null"),
    ("q", 7.0, "q must be in [0, 1]: 1 of 4 values is not"),
    ("y", 40.0, 'If these are percentages, pass label_scale="percent"'),
    ("y", 1 + 1e-9, "If this is rounding noise, clip y to [0, 1]"),
    ("y", -40.0, 'If these are logits, pass label_scale="logit"'),
    ("y", None, "y must have no missing values: 1 of 4 are NaN or null"),
    ("w", -1.0, "w must be 0 or more: 1 of 4 values is not"),
    ("w", 1e200, "w must be 0 or between 1e-100 and 1e+100: 1 of 4 values is not"),
    ("w", None, "w must have no missing values: 1 of 4 are NaN or null"),
    ("m", 0.0, "m must be whole numbers of 1 or more: 1 of 4 values is not"),
    ("m", 2.5, "m must be whole numbers of 1 or more: 1 of 4 values is not"),
    ("m", None, "m must have no missing values: 1 of 4 are NaN or null"),
]


@pytest.mark.parametrize(
    ("make", "column", "value", "message"),
    [
        pytest.param(make, *fault, id=f"{name}-{fault[0]}-{fault[1]}")
        for name, make in (EAGER | LAZY).items()
        # Dask gets a third of the cases, because each takes it more than a second to plan.
        for fault in (FAULTS[::3] if name == "dask" else FAULTS)
    ],
)
def test_a_value_that_breaks_a_rule_is_refused_with_column_and_count(
    make: Constructor, column: str, value: float | None, message: str
) -> None:
    rows: dict[str, list[float | None]] = {
        "y": [0.5] * 4, "p": [0.5] * 4, "q": [0.5] * 4, "w": [1.0] * 4, "m": [2.0] * 4}  # fmt: skip
    rows[column][2] = value
    with pytest.raises(sc.InputError) as caught:
        sc.scan(make(rows), y_true="y", y_prob=["p", "q"], sample_weight="w", n_votes="m")
    assert message in str(caught.value)
    assert str(caught.value).startswith(column)


def test_minus_1_labels_are_refused_with_a_hint(frame: Constructor) -> None:
    rows = {"y": [-1.0, 1.0, -1.0], "p": [0.5] * 3}
    with pytest.raises(sc.InputError, match=r"2 of 3 .* use \(y \+ 1\) / 2"):
        sc.scan(frame(rows), y_true="y", y_prob="p")


def test_all_zero_weights_give_an_empty_set(frame: Constructor) -> None:
    rows = {"y": [0.5] * 3, "p": [0.5] * 3, "w": [0.0] * 3}
    found = sc.scan(frame(rows), y_true="y", y_prob="p", sample_weight="w")
    assert (found.n, found.about.rows_without_weight) == (0, 3)


def test_empty_frame_gives_an_empty_set(frame: Constructor) -> None:
    rows = pa.table({"y": [0.5], "p": [0.5]}).slice(0, 0).to_pydict()
    empty = {name: np.array(values, dtype=np.float64) for name, values in rows.items()}
    assert sc.scan(frame(empty), y_true="y", y_prob="p").n == 0


def test_text_columns_are_refused(frame: Constructor) -> None:
    rows = {"y": ["0.5", "1"], "p": [0.5, 0.5]}
    with pytest.raises(sc.InputTypeError, match="y must hold real numbers"):
        sc.scan(frame(rows), y_true="y", y_prob="p")


def test_an_unknown_column_is_refused_with_those_there_are(frame: Constructor) -> None:
    with pytest.raises(
        sc.InputError, match=r"the frame has no column 'z'\. Its columns are: 'y', 'p'"
    ):
        sc.scan(frame({"y": [0.5], "p": [0.5]}), y_true="y", y_prob="z")


def test_unsupported_source_is_refused() -> None:
    with pytest.raises(sc.InputTypeError, match=r"cannot scan a list: .* a dict of columns"):
        sc.scan([[0.5], [0.5]], y_true="y", y_prob="p")


def test_dict_of_columns_is_the_frame_of_these_columns() -> None:
    rows = {"y": [0.5, 1.0], "p": np.array([0.25, 0.5]), "g": pd.Series(["a", "b"])}
    found = sc.scan(rows, y_true="y", y_prob="p", groups="g")
    assert found == sc.scan(pd.DataFrame(rows), y_true="y", y_prob="p", groups="g")
    for wrong in ([0.5], np.ones((2, 2)), 3):
        with pytest.raises(sc.InputError, match="a dict of columns must map names to lists"):
            sc.scan(rows | {"q": wrong}, y_true="y", y_prob="p")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"y_true": "y", "y_prob": "y"}, "must be different columns: both are 'y'"),
        ({"y_true": "y", "y_prob": ["p", "p"]}, "each prediction must be named once: 'p'"),
        ({"y_true": "y", "y_prob": []}, "y_prob must name at least one column"),
        ({"y_true": "y", "y_prob": "p", "n_votes": 0}, "n_votes must be 1 or more: got 0"),
        ({"y_true": "y", "y_prob": "p", "by": ["p", "p"]}, "each 'by' column must be named once"),
    ],
)
def test_contradicting_arguments_are_refused(names: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"y": [0.5], "p": [0.5]})
    with pytest.raises(sc.InputError, match=message):
        sc.scan(frame, **names)


@pytest.mark.parametrize("make", [EAGER["polars"], EAGER["pandas"], LAZY["duckdb"]])
def test_too_many_segments_are_refused(make: Constructor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MAX_CELLS", 50)
    rows = {"y": np.full(51, 0.5), "p": np.full(51, 0.5), "by": np.arange(51)}
    with pytest.raises(sc.InputError, match="by must have at most 50 different values"):
        sc.scan(make(rows), y_true="y", y_prob="p", by="by")


def test_a_date_is_kept(frame: Constructor) -> None:
    day = dt.date(2026, 11, 16)
    tables = sc.scan(frame({"y": [0.5], "p": [0.5]}), y_true="y", y_prob="p", date=day)
    assert tables.about.date == "2026-11-16"


ROWS: dict[str, Any] = {"y": [0.1, 0.9, 0.5], "p": [0.2, 0.8, 0.5]}


def test_frames_in_memory_are_not_copied(data: dict[str, Any]) -> None:
    """The loop reads the memory of the caller."""
    import narwhals.stable.v2 as nw

    from softcal.sources.columns import Wanted
    from softcal.sources.frames import frame_pieces

    for make in (EAGER["pandas"], EAGER["polars"], EAGER["pyarrow"]):
        frame = make(data)
        (piece,) = frame_pieces(nw.from_native(frame), Wanted(("y", "p")))
        (batch,) = piece.batches()
        own = frame["p"].to_numpy()
        assert np.shares_memory(batch["p"], own)


@pytest.fixture
def votes(rng: np.random.Generator) -> pd.DataFrame:
    m = rng.integers(1, 4, 300)
    p = rng.uniform(0.02, 0.1, 300)
    return pd.DataFrame({"p": p, "m": m, "y": rng.binomial(m, p) / m, "w": m / 2})


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb", "csv", "parquet"])
def test_segments_may_be_the_numbers_of_votes(
    votes: pd.DataFrame, kind: str, tmp_path: Path
) -> None:
    votes.to_csv(tmp_path / "v.csv", index=False)
    pl.from_pandas(votes).write_parquet(tmp_path / "v.parquet")
    source: Any = {
        "pandas": votes, "polars": pl.from_pandas(votes), "lazy": pl.from_pandas(votes).lazy(),
        "duckdb": duckdb.sql("SELECT * FROM votes"), "csv": tmp_path / "v.csv",
        "parquet": tmp_path / "v.parquet",
    }[kind]  # fmt: skip
    found = sc.scan(source, y_true="y", y_prob="p", n_votes="m", sample_weight="w", by="m")
    for value, tables in found.by("m").items():
        part = votes[votes.m == float(str(value))]
        own = sc.reliability(part.y, part.p, n_votes=part.m, sample_weight=part.w)
        assert sc.smece_interval(tables["p"]).high == pytest.approx(sc.smece_interval(own).high)
    assert len(sc.scan(source, y_true="y", y_prob="p", by="y").by("y")) == votes.y.nunique()


def test_number_of_votes_may_be_of_any_integer_type(votes: pd.DataFrame) -> None:
    right = sc.scan(votes, y_true="y", y_prob="p", n_votes=60)
    assert sc.scan(votes, y_true="y", y_prob="p", n_votes=np.int64(60)) == right  # type: ignore[arg-type]
    with pytest.raises(sc.InputTypeError, match=r"whole number: got 2\.5"):
        sc.scan(votes, y_true="y", y_prob="p", n_votes=2.5)  # type: ignore[arg-type]


def test_nan_is_a_missing_value_of_a_segment() -> None:
    frame = pl.DataFrame({"y": [0.1, 0.9], "p": [0.1, 0.9], "s": [float("nan"), 1.0]})
    for source in (frame, frame.lazy(), frame.to_pandas()):
        assert list(sc.scan(source, y_true="y", y_prob="p", by="s").by("s")) == ["1.0", None]


@pytest.mark.parametrize("values", [["a", 1, "b"], [(1, 2)] * 3, [[1], [2], [3]]])
def test_segment_values_of_mixed_types_are_refused(values: list[Any]) -> None:
    frame = pd.DataFrame({"y": [0.1, 0.9, 0.5], "p": [0.1, 0.9, 0.5], "s": pd.Series(values)})
    with pytest.raises(sc.InputTypeError, match="s must hold"):
        sc.scan(frame, y_true="y", y_prob="p", by="s")


def test_several_models_from_a_separate_duckdb_connection() -> None:
    """narwhals unpivots in the default connection, where such a relation cannot be read."""
    data = pa.table({"y": [0.1, 0.2, 0.9], "p": [0.1, 0.5, 0.8], "q": [0.3, 0.3, 0.3]})
    with duckdb.connect() as connection:
        connection.register("rows", data)
        found = sc.scan(connection.table("rows"), y_true="y", y_prob=["p", "q"])
        for name, table in found.items():
            assert table.smece == pytest.approx(sc.smece(data["y"], data[name]), abs=1e-15)
        connection.register("rows", data.set_column(1, "p", pa.array([0.1, None, 0.8])))
        with pytest.raises(sc.InputError, match=r"p must have no missing values: 1 of 3 are"):
            sc.scan(connection.table("rows"), y_true="y", y_prob=["q", "p"])


@pytest.mark.parametrize(
    "names",
    [
        {"y_true": 0, "y_prob": 1},
        {"y_true": "y", "y_prob": None},
        {"y_true": ["y"], "y_prob": "p"},
        {"y_true": "y", "y_prob": "p", "sample_weight": [1.0, 1.0, 1.0]},
    ],
)
def test_column_names_other_than_text_are_refused(names: dict[str, Any]) -> None:
    frame = pd.DataFrame(ROWS).assign(**{"0": 0.1, "1": 0.2}).rename(columns={"0": 0, "1": 1})
    with pytest.raises(sc.InputTypeError, match="must be the name of a column, as text"):
        sc.scan(frame, **names)
    assert sc.scan(frame.rename(columns=str), y_true="0", y_prob="1").n == 3


@pytest.mark.parametrize("by", [None, 3, [None], ["s", 3]])
def test_segment_values_are_text(by: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="by must be the name of a column"):
        sc.scan(pd.DataFrame(ROWS), y_true="y", y_prob="p", by=by)


def test_duplicate_column_names_are_refused() -> None:
    frame = pd.DataFrame(ROWS)
    for twice in (pd.concat([frame, frame], axis=1), pa.table([[0.5]] * 3, names=["y", "p", "p"])):
        with pytest.raises(sc.InputError, match="column names of the frame must differ"):
            sc.scan(twice, y_true="y", y_prob="p")


def test_series_is_refused() -> None:
    with pytest.raises(sc.InputTypeError, match="cannot scan a Series"):
        sc.scan(pd.Series([0.5]), y_true="y", y_prob="p")


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2020", periods=3),
        pd.interval_range(0, 3),
    ],
)
def test_nested_segment_values_are_refused(values: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="s must hold single values"):
        sc.scan(pd.DataFrame({**ROWS, "s": values}), y_true="y", y_prob="p", by="s")


def test_list_columns_are_refused_as_segments_in_engines() -> None:
    frame = pl.DataFrame({**ROWS, "s": [[1], [2], [2]]}).lazy()
    with pytest.raises(sc.InputTypeError, match="s must hold single values"):
        sc.scan(frame, y_true="y", y_prob="p", by="s")


def test_timestamp_out_of_python_range_is_refused() -> None:
    late = pa.array([2**62] * 3, pa.timestamp("s"))
    with pytest.raises(sc.InputError, match="s must hold values that Python can hold"):
        sc.scan(pa.table({**ROWS, "s": late}), y_true="y", y_prob="p", by="s")


def test_categorical_values_are_segments(tmp_path: Path) -> None:
    kinds = pd.Categorical(["a", "b", "a"], categories=["a", "b", "never"])
    frame = pd.DataFrame({"y": [0.1, 0.9, 0.5], "p": [0.1, 0.9, 0.5], "s": kinds})
    frame.to_parquet(tmp_path / "c.parquet")
    arrow = frame.assign(s=frame.s.astype(str).astype("string[pyarrow]"))
    for source in (frame, tmp_path / "c.parquet", arrow):
        assert list(sc.scan(source, y_true="y", y_prob="p", by="s").by("s")) == ["a", "b"]


def test_segments_of_text_and_of_numbers_are_the_same(votes: pd.DataFrame, tmp_path: Path) -> None:
    votes.to_csv(tmp_path / "v.csv", index=False)
    votes.to_parquet(tmp_path / "v.parquet")
    found = sc.scan(tmp_path, y_true="y", y_prob="p", by="m").by("m")
    assert list(found) == ["1", "2", "3"]
    assert [one.n for one in found.values()] == [2 * int((votes.m == k).sum()) for k in (1, 2, 3)]


def test_segments_are_sorted_numbers_before_names() -> None:
    values = ["10", "nan", "9", "2", "b", "1", None]
    frame = pl.DataFrame({"y": [0.5] * 7, "p": [0.4] * 7, "s": values})
    found = sc.scan(frame, y_true="y", y_prob="p", by="s").by("s")
    assert list(found) == ["1", "2", "9", "10", "b", "nan", None]
