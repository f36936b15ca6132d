"""Groups of rows from any source, in bounded memory, give the sums of the rows in memory."""

from __future__ import annotations

import datetime as dt
import errno
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcal as sc
from softcal import terminal
from softcal.sources import collect
from softcal.sources.columns import Roles, coded_groups
from softcal.sources.files import all_pieces
from softcal.table import groups as group_names
from softcal.table import spill, ties
from softcal.table.groups import GroupNames

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


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs of entries short, and write most of them to the temporary file."""
    monkeypatch.setattr(spill, "IN_MEMORY", 150)
    monkeypatch.setattr(spill, "_RUN", 64)
    monkeypatch.setattr(collect, "_ENTRIES_AT_ONCE", 200)


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


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("n", "groups"), [(700, 30), (700, 400), (900, 1)])
def test_sums_on_disk_equal_outer_products(n: int, groups: int, weight: str | None) -> None:
    rows = made(n, groups)
    tables = scanned(rows, by=["country", "device"], sample_weight=weight)
    assert_exact(tables, rows, weight)
    for column in ("country", "device"):
        for value, part in tables.by(column).items():
            assert_exact(part, rows[rows[column] == value], weight)
    inside = rows[(rows["country"] == "1") & (rows["device"] == "0")]
    assert_exact(tables.by("device")["0"].by("country")["1"], inside, weight)


def test_dense_and_sparse_products_are_equal() -> None:
    """The matrix of two patients, who fill their bins, is dense; the others are sparse."""
    rows = made(9000, 2)
    rows.loc[8500:, "patient"] = np.arange(500)
    rows["country"] = np.where(rows.index < 8500, "dense", "sparse")
    assert_exact(scanned(rows, by="country"), rows)


def test_small_data_uses_no_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        pytest.fail("a temporary file was made")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    rows = made(2000, 300)
    assert_exact(scanned(rows), rows)


@pytest.mark.usefixtures("tiny")
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


@pytest.mark.parametrize("bad", ["value", "disk"])
@pytest.mark.usefixtures("tiny")
def test_no_temporary_file_is_left_after_an_error(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    opened = []
    make = tempfile.TemporaryFile

    def made_here() -> Any:
        opened.append(make())
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", made_here)
    rows = made(2000, 700)
    if bad == "value":
        rows.loc[1900, "b"] = 1.5
    else:

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(spill._Run, "move", full)
    message = r"b must be in \[0, 1\].*position 1900" if bad == "value" else "set TMPDIR to a fold"
    with pytest.raises(sc.InputError, match=message):
        scanned(rows)
    assert opened
    assert all(file.closed for file in opened)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("tiny")
def test_large_group_is_added_up_while_reading() -> None:
    """Otherwise the part with this group would be as large as the data."""
    rows = made(1500, 100)
    rows.loc[rows.index % 3 > 0, "patient"] = 1
    assert_exact(scanned(rows), rows)
    entries = spill.Spill()
    sizes = []
    for k in range(40):
        group = np.zeros(64, dtype=np.int64)
        entries.add(spill.Gathered(group, np.arange(64) % 8, np.full((1, 64), float(k))))
    for _, part in entries.parts():
        sizes.append(part.group.size)
        assert part.values.sum() == 64 * sum(range(40))
    assert max(sizes) <= 5 * 64
    entries.close()


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
    assert found.groups is not None
    assert found.groups.ids is not None
    assert np.unique(found.groups.ids.group).size == 4


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


@given(st.lists(st.text() | st.integers(-(2**63), 2**63 - 1).map(str), max_size=30, unique=True))
def test_no_two_names_have_the_same_number(names: list[str]) -> None:
    found = GroupNames()
    numbers = found.numbers(names)
    assert np.unique(numbers).size == len(names)
    np.testing.assert_array_equal(found.numbers(names[::-1])[::-1], numbers)
    for name, number in zip(names, numbers.tolist(), strict=True):
        if isinstance(coded_groups(pa.array([name]), "g").names, np.ndarray):
            assert found.numbers(np.array([int(name)])).tolist() == [number]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=8, max_size=8).filter(lambda of: len(set(of)) == 3),
    st.permutations(range(3)),
    st.sampled_from(["", "p"]),
)
def test_sets_of_different_groups_add_in_any_order(
    part_of: list[int], order: list[int], prefix: str
) -> None:
    rows = made(200, 8)
    rows["patient"] = (rows["patient"] + 5) // 7919
    part = rows["patient"].map(dict(enumerate(part_of)))
    if prefix:
        rows["patient"] = prefix + rows["patient"].astype(str)
    parts = [scanned(rows[part == k], by="country") for k in order]
    added = sum(parts[1:], start=parts[0])
    assert_exact(added, rows)
    for value, segment in added.by("country").items():
        assert_exact(segment, rows[rows["country"] == value])
    with pytest.raises(sc.InputError, match="cannot add sets with rows of the same group"):
        added + parts[0]


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ([3, 1, 2], [3, 4, 2], "2 values of patient in both, the first is '2'"),
        (["ann", "ben", "12"], ["ben", "cy", "dan"], "1 value of patient in both, .* 'ben'"),
        ([1, 12, 3], ["x", "12", "y"], "1 value of patient in both, the first is '12'"),
    ],
)
def test_sets_with_a_common_group_are_not_added(
    one: list[Any], other: list[Any], words: str
) -> None:
    a, b = (scanned(made(3, 1, k).assign(patient=v)) for k, v in enumerate((one, other)))
    with pytest.raises(sc.InputError, match=words + r".* scan\(\[a, b\]"):
        a + b
    with pytest.raises(sc.InputError, match=words):
        sum([a, b])


def test_saved_set_does_not_store_group_names(tmp_path: Path) -> None:
    tables = scanned(made(50, 5))
    tables.save(tmp_path / "day.softcal")
    loaded = sc.load(tmp_path / "day.softcal")
    assert loaded == tables
    assert loaded.groups is not None
    assert loaded.groups.ids is None
    added = loaded + tables  # the error cannot be detected
    assert added.groups is not None
    assert added.groups.ids is None


def test_segments_with_a_common_group_are_not_added() -> None:
    rows = made(60, 4).assign(patient=np.arange(60) % 4, country=[*"AB"] * 30)
    one, other = scanned(rows, by="country").by("country").values()
    assert_exact(one + other, rows)  # patients 0 and 2 are in A, 1 and 3 in B
    rows.loc[0, "country"] = "B"
    with pytest.raises(sc.InputError, match="1 value of patient in both, the first is '0'"):
        sum(scanned(rows, by="country").by("country").values())


def test_sets_with_too_many_groups_do_not_store_names(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (scanned(made(20, 5).assign(patient=np.arange(20) + start)) for start in (0, 20))
    monkeypatch.setattr(group_names, "MAX_KNOWN", 39)
    added = a + b
    assert added.groups is not None
    assert added.groups.ids is None
    monkeypatch.setattr("softcal.table.build.MAX_KNOWN", 19)
    many = scanned(made(20, 5).assign(patient=np.arange(20)))
    assert many.groups is not None
    assert many.groups.ids is None


def test_too_many_products_bins_or_models_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made(50, 5)
    with pytest.raises(sc.InputError, match="with groups there can be at most 2000 bins: got 2003"):
        scanned(rows, bins=2003, pairs=False)
    monkeypatch.setattr(ties, "MAX_PRODUCTS", 100)
    monkeypatch.setattr("softcal.table.tableset._ENTRIES_WAITING", 10)
    with pytest.raises(sc.InputError, match=r"can have 100 products of two bins .* Use fewer bins"):
        scanned(rows)
    with pytest.raises(sc.InputError, match="at most 1,024 models and 16,384 targets"):
        ties.table_number((1024, 0))


@pytest.mark.usefixtures("tiny")
def test_progress_of_the_groups_is_reported(tmp_path: Path) -> None:
    rows = made(2000, 700)
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet")
    roles = Roles("y", ("a", "b"), group="patient")
    shares: list[float] = []
    pieces = all_pieces([tmp_path / "rows.parquet"], roles.wanted)
    found = collect.collect(
        pieces, roles, sc.Bins.uniform(10), pairs=True, report_groups=shares.append
    )
    assert_exact(found, rows)
    assert shares[0] == 0
    assert len(shares) > 9
    assert shares == sorted(set(shares))
    with terminal.reading() as bar:  # shows nothing here, but accepts the shares
        for share in shares:
            bar.move_groups(share)


def test_coarsened_table_with_groups_can_be_saved_and_loaded() -> None:
    rng = np.random.default_rng(0)
    y, p, group = rng.random(400), rng.random(400), rng.integers(0, 20, 400)
    coarse = sc.reliability(y, p, bins=60, groups=group).coarsen(10)
    assert sc.Reliability.from_dict(coarse.to_dict()) == coarse
