"""Groups from any source, in any number of parts, give the sums of their rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_tables import assert_same_set

import softcal as sc
from softcal.table import owners
from softcal.table.owners import MAX_GROUPS, merged

if TYPE_CHECKING:
    from pathlib import Path

    from softcal.table.tableset import TableSet

MODELS = ["a", "b"]


def made(n: int, groups: int, seed: int = 0, cells: int = 3) -> pd.DataFrame:
    """Return rows whose sums are exact in floating point: all values have few binary digits."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 257, (3, n)) / 256
    return pd.DataFrame(
        {
            "y": p[0],
            "a": p[1],
            "b": p[2],
            "w": rng.integers(0, 5, n) / 4,
            "patient": rng.integers(0, groups, n) * 7919 - 5,
            "country": rng.integers(0, cells, n).astype(str),
            "device": rng.integers(0, 2, n).astype(str),
        }
    )


def scanned(rows: Any, **options: Any) -> TableSet:
    return sc.scan(rows, y_true="y", y_prob=MODELS, groups="patient", **options)


def assert_exact(tables: TableSet, rows: pd.DataFrame, weight: str | None = None) -> None:
    """Compare with outer products of each group's sums, computed group by group."""
    rows = rows.assign(w=1.0 if weight is None else rows["w"])
    rows = rows[rows["w"] > 0]
    bins = sc.Bins.uniform(10)
    size = len(bins)
    squares = {name: np.zeros((size, size)) for name in (*MODELS, "weight a", "cross")}
    count, brier = 0, np.zeros(3)
    for _, part in rows.groupby("patient"):
        count += 1
        w, sums = part["w"], {}
        for name in MODELS:
            at = bins.locate(part[name])
            sums[name] = np.bincount(at, w * (part[name] - part["y"]), size)
            sums[f"weight {name}"] = np.bincount(at, w, size)
        for name in (*MODELS, "weight a"):
            squares[name] += np.outer(sums[name], sums[name])
        squares["cross"] += np.outer(sums["a"], sums["b"])
        loss = float((w * ((part["a"] - part["y"]) ** 2 - (part["b"] - part["y"]) ** 2)).sum())
        brier += loss, w.sum() * loss, loss * loss
    for name in MODELS:
        clusters = tables[name].clusters
        assert clusters is not None
        assert clusters.count == count
        np.testing.assert_array_equal(clusters.residual, squares[name])
    np.testing.assert_array_equal(tables["a"].clusters.weight, squares["weight a"])  # type: ignore[union-attr]
    joint = tables.pair("a", "b")
    np.testing.assert_array_equal(joint.cross, squares["cross"])
    np.testing.assert_array_equal(joint.brier, brier)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("n", "groups"), [(700, 30), (700, 400), (900, 1)])
def test_sums_equal_outer_products(n: int, groups: int, weight: str | None) -> None:
    rows = made(n, groups)
    tables = scanned(rows, by=["country", "device"], sample_weight=weight)
    assert_exact(tables, rows, weight)
    for column in ("country", "device"):
        for value, part in tables.by(column).items():
            assert_exact(part, rows[rows[column] == value], weight)
    inside = rows[(rows["country"] == "1") & (rows["device"] == "0")]
    assert_exact(tables.by("device")["0"].by("country")["1"], inside, weight)


def test_files_streams_and_frames_give_the_same_groups(tmp_path: Path) -> None:
    rows = made(600, 200)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for source in (
        tmp_path / "rows.parquet",
        tmp_path / "rows.csv",
        table.to_reader(max_chunksize=170),
        table,
        rows,
    ):
        assert_exact(scanned(source), rows)


def test_thousands_of_segments_equal_their_rows() -> None:
    rows = made(6000, 500, cells=2000)
    tables = scanned(rows, by="country")
    parts = tables.by("country")
    assert len(parts) > 1800
    for value in ("0", "1999"):
        assert_exact(parts[value], rows[rows["country"] == value])


KINDS = {
    "int64": pa.array([3, -4, 3, 0, 5, 0]),
    "uint64": pa.array([2**64 - 1, 1, 2**64 - 1, 0, 5, 0], pa.uint64()),
    "far": pa.array([2**62, -(2**62), 2**62, 0, 5, 0]),
    "text": pa.array(["ann", "ben", "ann", "7", "007", "7"]),
    "text of numbers": pa.array(["12", "-3", "12", "7", "0", "7"]),
    "large text": pa.array(["ann", "ben", "ann", "é", "nan", "é"], pa.large_string()),
    "float": pa.array([0.5, -0.5, 0.5, 1.0, 1e300, 1.0]),
    "date": pa.array([dt.date(2026, 1, k) for k in (1, 2, 1, 3, 4, 3)]),
    "bool and category": pa.array(["x", "y", "x", "z", "w", "z"]).dictionary_encode(),
    "decimal": pa.array([0.5, 1.5, 0.5, 2.5, 3.5, 2.5]).cast(pa.decimal128(5, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_of_every_dtype(kind: str) -> None:
    rows = made(6, 1).assign(patient=[0, 1, 0, 2, 3, 2])
    table = pa.Table.from_pandas(rows, preserve_index=False)
    table = table.set_column(table.schema.get_field_index("patient"), "patient", KINDS[kind])
    found = scanned(table)
    assert_exact(found, rows)
    assert len(found.axes.owner) == 4


@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_without_a_group_are_refused(missing: Any) -> None:
    rows = made(6, 1).assign(patient=[1, 2, missing, 1, missing, 2])
    with pytest.raises(sc.InputError, match=r"patient must have no missing values: 2 of 6"):
        scanned(rows)


def test_a_group_has_the_same_name_in_files_of_different_types(tmp_path: Path) -> None:
    rows = made(9, 1).assign(patient=[7, 8, 2**63 - 1] * 3)
    pq.write_table(pa.Table.from_pandas(rows[:3], preserve_index=False), tmp_path / "0.parquet")
    named = rows[3:6].assign(patient=["7", "8", str(2**63 - 1)])
    pq.write_table(pa.Table.from_pandas(named, preserve_index=False), tmp_path / "1.parquet")
    mixed = pd.concat([rows[6:], made(1, 1).assign(patient="x")])
    mixed.to_csv(tmp_path / "2.csv", index=False)
    paths = [tmp_path / name for name in ("0.parquet", "1.parquet", "2.csv")]
    expected = pd.concat([rows, mixed[3:].assign(patient=-1)])
    assert_exact(scanned(paths), expected)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=200, max_size=200).filter(lambda of: len(set(of)) == 3),
    st.permutations(range(3)),
    st.sampled_from(["", "p"]),
)
def test_sets_whose_groups_have_rows_in_several_parts_add(
    part_of: list[int], order: list[int], prefix: str
) -> None:
    rows = made(200, 8)
    if prefix:
        rows["patient"] = prefix + rows["patient"].astype(str)
    parts = [scanned(rows[np.array(part_of) == k], by="country") for k in order]
    added = sum(parts[1:], start=parts[0])
    assert_exact(added, rows)
    for value, segment in added.by("country").items():
        assert_exact(segment, rows[rows["country"] == value])
    assert_exact(sum(added.by("country").values(), start=0), rows)  # type: ignore[arg-type]


def test_a_number_and_its_text_are_the_same_group() -> None:
    rows = made(60, 5)
    parts = [scanned(rows[:30]), scanned(rows[30:].astype({"patient": str}))]
    assert_exact(parts[0] + parts[1], rows)
    assert merged(["1", "x"], np.array([1, 2])).names == ("1", "x", 1, 2)  # only groups are texts
    both = merged(["1", "x"], np.array([1, 2]), most=MAX_GROUPS)
    assert (both.names, both.theirs.tolist()) == (("1", "x", "2"), [0, 2])
    ends = np.array([-(2**63), 2**63 - 1, 0, -7])
    np.testing.assert_array_equal(owners.places_of(ends), owners.places_of(list(map(str, ends))))


def test_loaded_groups_count_as_different(tmp_path: Path) -> None:
    rows = made(200, 8)
    for k, part in enumerate((rows[:100], rows[100:])):
        scanned(part).save(tmp_path / str(k))
    added = sc.load(tmp_path / "0") + sc.load(tmp_path / "1")
    assert len(added.axes.owner) == 16
    apart = rows.assign(patient=rows["patient"] * 2 + (rows.index < 100))
    assert_exact(added, apart)
    assert len((sc.load(tmp_path / "0") + scanned(rows[100:])).axes.owner) == 16
    one = sc.load(tmp_path / "0")
    assert len((one + one).axes.owner) == 8  # the same groups


# More groups than a set keeps


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    """Return rows of 12,000 groups whose rows vary together."""
    rng = np.random.default_rng(0)
    size = 12_000
    group = np.concatenate([np.arange(size), rng.integers(0, size, 2 * size)])
    lean = rng.normal(0, 1, size)[group]
    a, b = np.clip(rng.beta(1, 1, (2, group.size)), 0.01, 0.99)
    y = 1 / (1 + np.exp(-np.log(a / (1 - a)) - lean))
    return pd.DataFrame({"y": y, "a": a, "b": b, "patient": group * 7919 - 5}).sample(
        frac=1, random_state=0
    )


def exact_clusters(rows: pd.DataFrame) -> owners.Clusters:
    """Return the products of the sums of all groups, per pair of ten bins."""
    names, group = np.unique(rows["patient"], return_inverse=True)
    place = sc.Bins.uniform(10).locate(rows["a"])
    sums = np.zeros((2, names.size, 10))
    np.add.at(sums[0], (group, place), rows["a"] - rows["y"])
    np.add.at(sums[1], (group, place), 1.0)
    return owners.Clusters(names.size, *(each.T @ each for each in sums))


def named(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    return rows if kind == "numbers" else rows.assign(patient="p" + rows["patient"].astype(str))


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_groups_that_share_places_keep_variances(many: pd.DataFrame, kind: str) -> None:
    found = scanned(named(many, kind))["a"]
    assert found.clusters is not None
    assert 0.9 * MAX_GROUPS < found.clusters.count <= MAX_GROUPS
    plain = sc.reliability(many["y"], many["a"])
    apart = sc.Reliability(plain.bins, plain.sums, exact_clusters(many))
    widths = [(i := sc.smece_interval(each)).high - i.low for each in (found, apart, plain)]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)
    assert widths[1] > 1.05 * widths[2]  # the groups matter


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("cut", [5, 3000, 18_000])
def test_parts_of_shared_places_add_up_to_the_whole(
    many: pd.DataFrame, kind: str, cut: int
) -> None:
    """One part may have few groups, each with its own place."""
    rows = named(many, kind)
    assert_same_set(scanned(rows[:cut]) + scanned(rows[cut:]), scanned(rows))


def test_arrays_share_the_places_of_scanned_rows(many: pd.DataFrame) -> None:
    found = sc.reliability(many["y"], many["a"], groups=many["patient"]).clusters
    scanned_ = scanned(many)["a"].clusters
    assert found is not None
    assert scanned_ is not None
    np.testing.assert_allclose(found.residual, scanned_.residual, atol=1e-9)


def test_shared_places_are_saved_and_added(many: pd.DataFrame, tmp_path: Path) -> None:
    tables = scanned(many)
    tables.save(tmp_path / "set")
    loaded = sc.load(tmp_path / "set")
    assert loaded == tables
    both = loaded + loaded.select(["a", "b"])
    assert len(both.axes.owner) == MAX_GROUPS


def test_too_many_bins_with_groups_are_refused() -> None:
    with pytest.raises(sc.InputError, match="with groups there can be at most 2000 bins: got 2003"):
        scanned(made(50, 5), bins=2003, pairs=False)
    for bins in (7, 49, 600, 601, 1800, 2000):  # also those without a small common multiple with 60
        assert len(scanned(made(50, 5), bins=bins, pairs=False).grid) <= 2000


def test_groups_that_become_too_many_in_a_later_batch_share_places(
    rng: np.random.Generator,
) -> None:
    p = rng.random(9000)
    rows = pa.table({
        "y": (rng.random(9000) < p).astype(float), "p": p, "q": rng.random(9000),
        "who": [f"patient {k}" for k in range(9000)],
    })  # fmt: skip
    options: dict[str, Any] = {"y_true": "y", "y_prob": ["p", "q"], "groups": "who"}
    parts = sc.scan(
        pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=3000)),
        **options,
    )
    whole = sc.scan(rows, **options)
    assert len(parts.axes.owner) == 4096
    assert_same_set(parts, whole)
    assert "4096" not in sc.smece_interval(whole["p"]).note  # the number of groups is not known
