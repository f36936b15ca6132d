"""Sets of tables equal the tables of their rows: whole, in parts, saved, and loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import saved_examples
from same_tables import assert_same_table

import softcal as sc
from softcal._validation import inputs
from softcal.bins import Bins
from softcal.table import build, files, tableset

SAVED_0_1 = sorted((Path(__file__).parent / "tables").glob("s*1*.json"))
MODELS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 3000
    p = rng.choice([0.0, 0.1, 0.3, 1 / 3, 0.7, 0.999, 1.0], n) * 0.5 + rng.beta(0.4, 0.4, n) * 0.5
    p[:50] = np.repeat([0.0, 1.0, 1e-9, 1 - 1e-9, 0.6], 10)
    votes = rng.integers(1, 6, n)
    return pd.DataFrame(
        {
            "a": p,
            "b": np.clip(p + rng.normal(0, 0.1, n), 0, 1),
            "c": 1 - p,
            "y": rng.binomial(votes, p) / votes,
            "votes": votes,
            "w": rng.integers(0, 4, n).astype(float),
            "country": rng.choice(["DE", "FR", "a\0b", ""], n),
            "device": rng.integers(0, 12, n),
            "patient": rng.integers(0, 400, n),
        }
    ).replace({"country": {"": None}})


def scanned(rows: pd.DataFrame, **options: Any) -> sc.TableSet:
    return sc.scan(rows, y_true="y", y_prob=MODELS, **options)


@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"n_votes": "votes"}])
@pytest.mark.parametrize("bins", [10, 15, 7, 1, [0, 0.2, 0.9, 1]])
def test_set_returns_the_tables_of_the_rows(
    rows: pd.DataFrame, options: dict[str, str], bins: Any
) -> None:
    tables = scanned(rows, bins=bins, **options)
    columns = {name: rows[column] for name, column in options.items()}
    for model in MODELS:
        expected = sc.reliability(rows["y"], rows[model], bins=bins, **columns)
        assert_same_table(tables[model], expected)


def test_set_coarsens_to_every_divisor_of_its_grid(rows: pd.DataFrame) -> None:
    tables = scanned(rows)
    for bins in (1, 2, 3, 4, 5, 6, 8, 12, 15, 20, 24, 25, 30, 40, 50, 60, 75, 100, 600):
        coarse = tables.coarsen(bins)
        assert_same_table(coarse["a"], sc.reliability(rows["y"], rows["a"], bins=bins))


def test_bins_that_do_not_fit_the_grid_are_refused_with_the_remedy(rows: pd.DataFrame) -> None:
    with pytest.raises(sc.BinMismatchError, match=r"cannot coarsen to 7 bins.*Scan the rows again"):
        scanned(rows).coarsen(7)


def test_hardened_table_is_that_of_hardened_labels(rows: pd.DataFrame) -> None:
    tables = scanned(rows, sample_weight="w")
    hard = (rows["y"] > 0.5).astype(float)
    expected = sc.reliability(hard, rows["a"], sample_weight=rows["w"])
    assert_same_table(tables["a"].hardened(), expected)


def test_segments_are_the_tables_of_their_rows(rows: pd.DataFrame) -> None:
    segments = scanned(rows, by="country").by("country")
    assert list(segments) == ["DE", "FR", "a\0b", None]
    for value, tables in segments.items():
        inside = rows[rows["country"].isna() if value is None else rows["country"] == value]
        assert_same_table(tables["b"], sc.reliability(inside["y"], inside["b"]))


def test_cells_of_two_columns_add_up_to_segments(rows: pd.DataFrame) -> None:
    tables = scanned(rows, by=["country", "device"])
    assert list(tables.by("device")) == [str(k) for k in range(12)]
    phone = tables.by("device")[3]  # a number is converted to text
    inside = rows[rows["device"] == 3]
    assert_same_table(phone["a"], sc.reliability(inside["y"], inside["a"]))
    cell = phone.by("country")["FR"]
    inside = inside[inside["country"] == "FR"]
    assert_same_table(cell["a"], sc.reliability(inside["y"], inside["a"]))
    assert cell.by_names == ()


def test_many_small_cells_equal_their_rows(rows: pd.DataFrame) -> None:
    tables = scanned(rows, by="patient")
    inside = rows[rows["patient"] == 17]
    assert_same_table(tables.by("patient")[17]["a"], sc.reliability(inside["y"], inside["a"]))
    assert_same_table(tables["a"], sc.reliability(rows["y"], rows["a"]))


@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"n_votes": "votes"}])
def test_sum_of_sets_is_the_set_of_all_rows(rows: pd.DataFrame, options: dict[str, str]) -> None:
    whole = scanned(rows, by=["country", "device"], **options)
    parts = [scanned(rows[k::3], by=["country", "device"], **options) for k in range(3)]
    for added in (sum(parts), sum(parts[::-1])):
        assert isinstance(added, sc.TableSet)
        assert added.n == whole.n
        assert added.about.rows_without_weight == whole.about.rows_without_weight
        assert_same_table(added["a"], whole["a"])
        assert_same_table(added.by("device")[5]["c"], whole.by("device")[5]["c"])
        one, other = added.pair("a", "b"), whole.pair("a", "b")
        np.testing.assert_allclose(one.cross, other.cross, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(one.log_loss, other.log_loss, rtol=1e-10)


@pytest.mark.parametrize("groups", [None, "patient"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_pair_is_the_joint_table_of_the_rows(
    rows: pd.DataFrame, groups: str | None, weight: str | None
) -> None:
    tables = scanned(rows, groups=groups, sample_weight=weight)
    for a, b in (("a", "c"), ("c", "b")):
        found = tables.pair(a, b)
        expected = sc.joint_table(
            rows["y"], {a: rows[a], b: rows[b]},
            groups=None if groups is None else rows[groups],
            sample_weight=None if weight is None else rows[weight],
        )  # fmt: skip
        assert found.names == (a, b)
        assert_same_table(found.a, expected.a)
        assert_same_table(found.b, expected.b)
        np.testing.assert_allclose(found.cross, expected.cross, rtol=1e-11, atol=1e-12)
        assert found.differing == expected.differing
        for mine, theirs in ((found.brier, expected.brier), (found.log_loss, expected.log_loss)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)
        assert (found.infinite_a, found.infinite_b) == (expected.infinite_a, expected.infinite_b)
        np.testing.assert_allclose(
            [found.log_loss_a, found.log_loss_b], [expected.log_loss_a, expected.log_loss_b]
        )


def test_groups_are_those_of_the_rows_in_each_segment(rows: pd.DataFrame) -> None:
    tables = scanned(rows, groups="patient", by=["country", "device"])
    inside = rows[rows["device"] == 4]
    for found, expected in (
        (tables["a"], sc.reliability(rows["y"], rows["a"], groups=rows["patient"])),
        (
            tables.by("device")[4]["a"],
            sc.reliability(inside["y"], inside["a"], groups=inside["patient"]),
        ),
    ):
        assert found.clusters is not None
        assert expected.clusters is not None
        assert found.clusters.count == expected.clusters.count
        np.testing.assert_allclose(found.clusters.residual, expected.clusters.residual, atol=1e-12)
        np.testing.assert_allclose(found.clusters.weight, expected.clusters.weight)
    both = tables.by("device")[4].by("country")["DE"]
    inside = inside[inside["country"] == "DE"]
    joint = sc.joint_table(
        inside["y"], {"a": inside["a"], "b": inside["b"]}, groups=inside["patient"]
    )
    np.testing.assert_allclose(both.pair("a", "b").cross, joint.cross, atol=1e-12)


def test_grouped_sets_without_common_groups_add(rows: pd.DataFrame) -> None:
    first = rows["patient"] < 200
    parts = [scanned(rows[which], groups="patient", by="country") for which in (first, ~first)]
    whole, added = scanned(rows, groups="patient", by="country"), parts[0] + parts[1]
    for one, other in ((added, whole), (added.by("country")["FR"], whole.by("country")["FR"])):
        assert one["a"].clusters is not None
        assert other["a"].clusters is not None
        np.testing.assert_allclose(
            one["a"].clusters.residual, other["a"].clusters.residual, atol=1e-11
        )
        np.testing.assert_allclose(one.pair("a", "b").brier, other.pair("a", "b").brier, rtol=1e-9)


def test_selected_models_keep_their_pairs(rows: pd.DataFrame) -> None:
    tables = scanned(rows, groups="patient")
    some = tables.select(["c", "a"])
    assert some.models == ("c", "a")
    assert_same_table(some["a"], tables["a"])
    for a, b in (("a", "c"), ("c", "a")):
        one, other = some.pair(a, b), tables.pair(a, b)
        np.testing.assert_allclose(one.cross, other.cross, rtol=1e-11, atol=1e-12)
        assert one.brier == other.brier
        assert (one.infinite_a, one.loss_b) == (other.infinite_a, other.loss_b)


@pytest.mark.parametrize("many", [10**9, 1])
@pytest.mark.parametrize("groups", [None, "patient"])
def test_saved_set_loads_unchanged(
    rows: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    many: int,
    groups: str | None,
) -> None:
    monkeypatch.setattr(files, "MANY", many)
    tables = scanned(rows, by=["country", "device"], groups=groups, date="2026-11-16", bins=15)
    path = tmp_path / "set.anything"
    tables.save(path)
    assert (path.read_bytes()[:4] == b"PAR1") is (many == 1)
    assert files.is_saved(path)
    loaded = sc.load(path)
    assert loaded == tables
    assert loaded.date == "2026-11-16"
    assert loaded + scanned(rows[:5], by=["country", "device"], groups=groups) != tables


def test_duckdb_queries_a_large_saved_set(
    rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr(files, "MANY", 1)
    tables = scanned(rows, by="country")
    tables.save(tmp_path / "set.softcal")
    query = (
        "select sum(residual) / sum(weight) from read_parquet(?) "
        "where kind = 'table' and model = 'a' and by_country = 'DE'"
    )
    with duckdb.connect() as connection:
        ((bias,),) = connection.execute(query, [str(tmp_path / "set.softcal")]).fetchall()
    assert bias == pytest.approx(tables.by("country")["DE"]["a"].bias, rel=1e-12)


@pytest.mark.parametrize("path", SAVED_0_1, ids=lambda path: path.name)
def test_files_of_0_1_still_load(path: Path, tmp_path: Path) -> None:
    saved = json.loads(path.read_text(encoding="utf-8"))
    saved = saved.get("table", saved)  # some files contain the expected results as well
    (tmp_path / path.name).write_text(json.dumps(saved))
    tables = sc.load(tmp_path / path.name)
    if saved["format"] == "softcal.scores":
        for one in saved["models"]:
            table = sc.Reliability.from_dict(one["table"])
            assert_same_table(tables[one["pred"]], table, hardened=False)
            hard = sc.Reliability.from_dict(one["hardened"])
            assert tables[one["pred"]].hardened().smece == pytest.approx(hard.smece, rel=1e-12)
    else:
        table = sc.Reliability.from_dict(saved)
        known = not np.isnan(table.sums.hard_residual).any()
        assert_same_table(tables["model"], table, hardened=known)


@pytest.mark.parametrize("name", ["tables2_by_pairs.json", "tables2_groups.json"])
def test_saved_sets_of_schema_2_still_load(name: str, tmp_path: Path) -> None:
    """Every schema must stay readable. Never edit these files; add one for each new schema."""
    saved = json.loads((Path(__file__).parent / "tables" / name).read_text(encoding="utf-8"))
    (tmp_path / name).write_text(json.dumps(saved["set"]))
    tables = sc.load(tmp_path / name)
    assert tables.n == saved["n"]
    found = {model: rel.smece for model, rel in tables.items()}
    assert found == pytest.approx(saved["smece"], rel=1e-15)
    assert tables.pair("a", "b").brier.total == saved["difference"]


def test_unknown_hardened_sums_stay_unknown(tmp_path: Path) -> None:
    saved = sc.reliability([0.4, 0.6], [0.3, 0.8]).to_dict()
    old = {**saved, "schema": 1}
    old["sums"] = {k: v for k, v in saved["sums"].items() if k[:4] not in ("hard", "outc")}
    (tmp_path / "old.json").write_text(json.dumps(old))
    tables = sc.load(tmp_path / "old.json")
    tables.save(tmp_path / "new.json")
    for each in (tables, sc.load(tmp_path / "new.json")):
        with pytest.raises(sc.InputError, match=r"has no sums of hardened labels"):
            each["model"].hardened()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "a saved set of tables"),
        ({"schema": 3}, "Upgrade softcal"),
        ({"models": ["a", "a"]}, "damaged"),
        ({"label": 3}, "damaged"),
        ({"bins": 7}, "damaged"),
        ({"cells": []}, "damaged"),
        ({"cells": [["x"]]}, "damaged"),
        ({"rows_without_weight": "x"}, "damaged"),
        ({"tables": {}}, "damaged"),
        ({"tables": None}, "damaged"),
    ],
)
def test_damaged_set_is_refused(
    rows: pd.DataFrame, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    saved = files.written(scanned(rows)) | change
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match=said):
        sc.load(tmp_path / "set.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", 9), ("bin", -1), ("cell", 0.5), ("sum_count", 0.5), ("sum_count", 1e300),
        ("sum_weight", -1.0),
        ("sum_residual", 1e9), ("sum_label", "x"), ("sum_prob_var", None), ("extra", 1),
    ],
)  # fmt: skip
def test_entry_that_no_rows_can_have_is_refused(
    rows: pd.DataFrame, tmp_path: Path, name: str, value: Any
) -> None:
    saved = files.written(scanned(rows))
    saved["tables"].setdefault(name, [0] * len(saved["tables"]["model"]))[0] = value
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match=r"damaged|unknown part|contradict"):
        sc.load(tmp_path / "set.json")


def test_set_is_a_mapping_of_its_models(rows: pd.DataFrame) -> None:
    tables = scanned(rows)
    assert list(tables) == MODELS
    assert len(tables) == 3
    assert dict(tables)["a"] == tables["a"]
    with pytest.raises(KeyError, match=r"^the set has no model 'x'. It has: 'a', 'b', 'c'.$"):
        tables["x"]
    assert "x" not in tables


def test_sets_of_different_columns_do_not_add(rows: pd.DataFrame) -> None:
    whole = scanned(rows)
    for other in (
        sc.scan(rows, y_true="y", y_prob="a"),
        sc.scan(rows, y_true="b", y_prob=["a", "y", "c"]),
        scanned(rows, sample_weight="w"),
        scanned(rows, by="country"),
        scanned(rows, groups="patient"),
    ):
        with pytest.raises(sc.InputError, match="cannot add sets with different"):
            whole + other
    with pytest.raises(sc.BinMismatchError, match="different grids"):
        whole + scanned(rows, bins=7)


def test_grid_is_fine_at_both_ends() -> None:
    edges = Bins.grid(10).edges
    assert len(edges) == 649
    assert edges[1] < 1.5e-7 < 1e-3 < edges[24]
    assert np.isin(np.arange(601) / 600, edges).all()
    assert Bins.grid([0, 0.3, 1]) == Bins([0, 0.3, 1])


@pytest.fixture
def large(rows: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a set saved as Parquet."""
    monkeypatch.setattr(files, "MANY", 1)
    path = tmp_path / "set.softcal"
    scanned(rows[:200], groups="patient", by="country", bins=[0, 0.5, 1]).save(path)
    return path


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def with_about(table: pa.Table, about: bytes) -> pa.Table:
    return table.replace_schema_metadata({b"softcal": about})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns(["keys"]), "a part of its entries is missing or invalid"),
        (
            lambda table: table.drop_columns(["residual"]),
            "a part of its entries is missing or invalid",
        ),
        (
            lambda table: with_column(table, "kind", ["other"] * len(table)),
            "a part of its entries is missing or invalid",
        ),
        (
            lambda table: with_column(table, "keys", [[0]] * len(table)),
            "a part of its entries is missing or invalid",
        ),
        (
            lambda table: with_column(table, "label", ["x"] * len(table)),
            "a part of its entries is missing or invalid",
        ),
        (
            lambda table: with_about(table, b"no JSON"),
            "a part of its entries is missing or invalid",
        ),
        (lambda table: with_about(table, b"[]"), "a saved set of tables"),
        (lambda table: table.replace_schema_metadata(None), "Read it with softcal.scan"),
    ],
)
def test_damaged_parquet_set_is_refused(large: Path, change: Any, said: str) -> None:
    assert sc.load(large).n == 200
    pq.write_table(change(pq.read_table(large)), large)
    with pytest.raises(sc.InputError, match=f"^cannot read .*{said}"):
        sc.load(large)


def test_truncated_parquet_set_is_refused(large: Path) -> None:
    large.write_bytes(large.read_bytes()[:-9])
    with pytest.raises(sc.InputError, match=r"^cannot read .*set\.softcal"):
        sc.load(large)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("losses", "sum_differing", -1.0), ("losses", "sum_brier_total", None),
        ("squares", "sum_weight", -1.0), ("counts", "segment", 99), ("cross", "place", -1),
        ("tables", "bin", 2**70), ("tables", "sum_label", 1e999), ("tables", "sum_label", True),
    ],
)  # fmt: skip
def test_damaged_entry_of_pairs_or_groups_is_refused(
    rows: pd.DataFrame, tmp_path: Path, part: str, name: str, value: Any
) -> None:
    saved = files.written(scanned(rows[:100], groups="patient", bins=[0, 0.5, 1]))
    saved[part][name][0] = value
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="damaged"):
        sc.load(tmp_path / "set.json")


def test_duplicate_entry_is_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    saved = files.written(scanned(rows[:100], pairs=False))
    saved["tables"] = {name: [*values, values[-1]] for name, values in saved["tables"].items()}
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="two entries have the same key"):
        sc.load(tmp_path / "set.json")


def test_entries_of_different_lengths_are_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("cell", "sum_label"):
        saved = files.written(scanned(rows[:100]))
        saved["tables"][name].pop()
        (tmp_path / "set.json").write_text(json.dumps(saved))
        with pytest.raises(sc.InputError, match="one per entry"):
            sc.load(tmp_path / "set.json")


@pytest.mark.parametrize("value", [None, "elsewhere"])
def test_groups_without_a_segment_that_has_rows_are_refused(
    rows: pd.DataFrame, value: str | None, tmp_path: Path
) -> None:
    saved = files.written(scanned(rows[:100], groups="patient", by="device"))
    saved["segments"][1] = {"device": value}
    (tmp_path / "bad.softcal").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="'segments' is invalid"):
        sc.load(tmp_path / "bad.softcal")


def test_groups_without_the_segment_of_all_rows_are_refused(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    saved = files.written(scanned(rows[:100], groups="patient")) | {"segments": []}
    for part in ("cross", "losses", "counts", "squares"):
        del saved[part]
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="'segments' is invalid"):
        sc.load(tmp_path / "set.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "Upgrade softcal"),
        ({"models": []}, "at least one model"),
        ({"models": [{"pred": "p"}]}, "a part of the saved scores is missing or invalid"),
        ({"models": 3}, "a part of the saved scores is missing or invalid"),
        ({"label": None}, "a part of the saved scores is missing or invalid"),
        ({"by": 3}, "a part of the saved scores is missing or invalid"),
        ({"by": "site"}, "must have segments of every model"),
    ],
)
def test_damaged_scores_of_0_1_are_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = Path(__file__).parent / "tables" / "scores1_weights.json"
    damaged = json.loads(path.read_text(encoding="utf-8")) | change
    (tmp_path / "scores.json").write_text(json.dumps(damaged))
    with pytest.raises(sc.InputError, match=said):
        sc.load(tmp_path / "scores.json")


def test_scores_of_0_1_with_different_bins_are_refused(tmp_path: Path) -> None:
    path = Path(__file__).parent / "tables" / "scores1_weights.json"
    saved = json.loads(path.read_text(encoding="utf-8"))
    other = sc.reliability([0.5], [0.4], bins=3).to_dict()
    saved["models"].append({"pred": "other", "table": other, "hardened": None, "slices": []})
    (tmp_path / "scores.json").write_text(json.dumps(saved | {"by": None}))
    with pytest.raises(sc.InputError, match="different bins"):
        sc.load(tmp_path / "scores.json")


@pytest.mark.parametrize("many", [files.MANY, 0], ids=["JSON", "Parquet"])
@pytest.mark.parametrize("number", range(len(saved_examples.whole_sets())))
def test_changed_digit_or_bit_of_a_saved_set_never_changes_a_number(
    number: int, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MANY", many)
    tables, path = saved_examples.whole_sets()[number], tmp_path / "set"
    tables.save(path)
    saved = path.read_bytes()
    tables.save(path)
    assert path.read_bytes() == saved  # the same set gives the same file
    rng, refused = np.random.default_rng(number), 0
    digits = np.flatnonzero(np.char.isdigit(np.array([*saved.decode("latin-1")])))
    for k in range(60):
        changed = bytearray(saved)
        at = int(rng.choice(digits) if k % 2 else rng.integers(len(saved)))
        changed[at] = ord("0") + (changed[at] + 1) % 10 if k % 2 else changed[at] ^ 1 << k // 2 % 8
        path.write_bytes(changed)
        try:
            assert sc.load(path) == tables
        except sc.InputError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1  # noqa: PT017 - every error must have one line
    assert refused > (50 if many else 10)  # Parquet also stores what load does not need


@pytest.mark.parametrize("many", [files.MANY, 0], ids=["JSON", "Parquet"])
def test_content_that_does_not_match_its_checksum_is_refused(
    many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, tables = tmp_path / "set", saved_examples.whole_sets()[2]
    saved = files.content(tables)
    path.write_text(json.dumps(saved, indent=1, sort_keys=True).replace("1.0,", "1,"))
    assert sc.load(path) == tables  # another layout of the same content
    monkeypatch.setattr(files, "MANY", many)
    monkeypatch.setattr("softcal._io.checksum", lambda *_: "0" * 64)
    tables.save(path)
    monkeypatch.undo()
    with pytest.raises(sc.InputError, match=r"does not match its checksum\. The file is damaged"):
        sc.load(path)
    others: list[Any] = [None, 1, [], saved["checksum"].upper()]
    for other in others:
        path.write_text(json.dumps(saved | {"checksum": other}))
        with pytest.raises(sc.InputError, match="does not match its checksum"):
            sc.load(path)
    del saved["checksum"]
    path.write_text(json.dumps(saved))
    assert sc.load(path) == tables  # as files of 0.2 are


def test_file_that_is_not_a_saved_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sc.InputError, match="no such file"):
        sc.load(tmp_path / "absent.json")
    assert not files.is_saved(tmp_path)
    path = tmp_path / "text.json"
    for text in ("no json", "[1, 2]", ""):
        path.write_text(text)
        assert not files.is_saved(path)
        with pytest.raises(sc.InputError, match=r"cannot read .*text\.json: "):
            sc.load(path)


def test_pair_of_a_set_without_pairs_is_refused(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:50])
    with pytest.raises(sc.InputError, match="a model cannot be compared with itself: both are 'a'"):
        tables.pair("a", "a")
    with pytest.raises(sc.InputError, match="build it with pairs=True"):
        scanned(rows[:50], pairs=False).pair("a", "b")
    with pytest.raises(KeyError, match=r"no target 'top'. It has: 'label'"):
        tables.pair("a", "b", "top")
    segments = scanned(rows[:50], by="country", pairs=False).by("country")
    assert segments["DE"].pairs is None


def test_sets_with_and_without_pairs_add_without(rows: pd.DataFrame) -> None:
    both = scanned(rows[:50]) + scanned(rows[50:90], pairs=False)
    assert both.n == 90
    assert both.pairs is None
    loaded = replace(scanned(rows[:50]), rows_without_weight=None)
    assert (loaded + loaded).about.rows_without_weight is None


def test_unknown_segments_are_refused(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:50], by="country")
    with pytest.raises(sc.InputError, match=r"no segments by 'x'. It has segments by: 'country'"):
        tables.by("x")
    with pytest.raises(KeyError, match=r"no rows have country = 'XX'. The values are: 'DE', 'FR'"):
        tables.by("country")["XX"]
    with pytest.raises(KeyError, match=r"The values are: '0', .*, \d+ more, .*'399'\.$"):
        scanned(rows, by="patient").by("patient")[400]
    assert repr(tables.by("country")) == "Segments(by='country', n=4)"


def test_set_prints_as_a_small_table(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:50], by="country")
    assert repr(tables) == "TableSet(n=50, models=['a', 'b', 'c'], bins=10, by=['country'])"
    assert "n = 50   label = y   cells = 4" in str(tables)
    assert "<table" in tables._repr_html_()


def test_set_compares_and_adds_only_to_sets(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:50])
    assert tables != 3
    with pytest.raises(TypeError):
        tables + 3  # type: ignore[operator]
    with pytest.raises(TypeError):
        3 + tables


@pytest.mark.parametrize("weight", [None, "w"])
def test_few_large_cells_equal_their_rows(rows: pd.DataFrame, weight: str | None) -> None:
    many = pd.concat([rows[["y", "a", "b", "c", "w"]]] * 4, ignore_index=True)
    many["half"] = np.arange(len(many)) % 2
    tables = scanned(many, by="half", sample_weight=weight, pairs=False)
    for half, found in tables.by("half").items():
        inside = many[many["half"] == int(str(half))]
        w = None if weight is None else inside[weight]
        assert_same_table(found["b"], sc.reliability(inside["y"], inside["b"], sample_weight=w))
    bad = many.assign(b=many["b"].where(many.index != 9000, 1.5))
    with pytest.raises(sc.InputError, match=r"b must be in .*the first is 1\.5 at position 9000"):
        scanned(bad, by="half")


def test_entries_of_many_batches_are_added_up_regularly(
    rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tableset, "_ENTRIES_WAITING", 10)
    batches = pa.Table.from_pandas(rows[[*MODELS, "y"]]).to_reader(max_chunksize=300)
    found = sc.scan(batches, y_true="y", y_prob=MODELS)
    assert_same_table(found["b"], sc.reliability(rows["y"], rows["b"]))
    np.testing.assert_allclose(
        found.pair("a", "b").cross, scanned(rows).pair("a", "b").cross, atol=1e-12
    )


def test_groups_without_pairs(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:300], groups="patient", by="country", pairs=False)
    assert tables.pairs is None
    inside = rows[:300][rows["country"][:300] == "DE"]
    expected = sc.reliability(inside["y"], inside["a"], groups=inside["patient"]).clusters
    found = tables.by("country")["DE"]["a"].clusters
    assert found is not None
    assert expected is not None
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-12)


def test_pairs_are_of_models_with_the_same_target() -> None:
    rows = inputs.rows([0.5, 1.0], [0.25, 0.75])
    bins = Bins.uniform(2)
    found = build.entries({(0, 0): rows, (0, 1): rows, (1, 0): rows}, bins, pairs=bins)
    assert found is not None
    assert found.losses.keys.T.tolist() == [[0, 1, 0, 0]]


def test_selected_models_of_a_set_without_pairs_and_groups(rows: pd.DataFrame) -> None:
    tables = scanned(rows[:100], pairs=False)
    some = tables.select(["c", "a"])
    assert some.n == 100
    assert_same_table(some["c"], tables["c"])


def test_grouped_sets_add_with_segments_that_one_of_them_lacks(rows: pd.DataFrame) -> None:
    rows = rows.assign(patient=rows["country"].astype(str) + rows["patient"].astype(str))
    parts = [
        scanned(rows[rows["country"] == country], groups="patient", by="country")
        for country in ("DE", "FR")
    ]
    added = parts[0] + parts[1]
    assert list(added.by("country")) == ["DE", "FR"]
    for part, country in zip(parts, ("DE", "FR"), strict=True):
        found, expected = added.by("country")[country]["a"].clusters, part["a"].clusters
        assert found is not None
        assert expected is not None
        assert found.count == expected.count
        np.testing.assert_allclose(found.residual, expected.residual, atol=1e-12)


def test_unknown_hardened_sums_of_a_table_stay_unknown(rows: pd.DataFrame) -> None:
    saved = sc.reliability(rows["y"], rows["a"]).to_dict()
    saved["sums"] |= dict.fromkeys(("hard_residual", "hard_residual_sq", "hard_residual_var"))
    again = sc.Reliability.from_dict(
        json.loads(json.dumps(sc.Reliability.from_dict(saved).to_dict()))
    )
    assert np.isnan(again.sums.hard_residual).all()


def test_pairs_and_groups_are_stored_on_fewer_bins(rows: pd.DataFrame) -> None:
    tables = scanned(rows)
    assert tables.pairs is not None
    assert len(tables.pairs.bins) == 60
    joint = sc.joint_table(rows["y"], {"a": rows["a"], "b": rows["b"]}, bins=15)
    np.testing.assert_allclose(tables.coarsen(15).pair("a", "b").cross, joint.cross, atol=1e-12)
    with pytest.raises(
        sc.BinMismatchError, match=r"cannot compare models on 25 bins .* on 60 bins"
    ):
        tables.coarsen(25).pair("a", "b")
    assert len(scanned(rows, groups="patient").grid) == 60
    with pytest.raises(sc.BinMismatchError, match="different grids: left has 60 bins"):
        tables + scanned(rows, bins=25)


# Scores of single multiclass items


@pytest.fixture
def items() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    p, q = rng.dirichlet([0.5, 0.5, 0.5], (2, 90))
    counts = rng.multinomial(4, [0.5, 0.3, 0.2], 90)
    p[0], counts[0] = [1, 0, 0], [3, 1, 0]  # an infinite log loss, in a row of weight 0
    p[1], counts[1] = [1, 0, 0], [0, 4, 0]
    columns = {f"{kind}_{k}": values[:, k] for kind, values in (("p", p), ("q", q), ("v", counts))
               for k in range(3)}  # fmt: skip
    weight = rng.integers(0, 3, 90)
    weight[:2] = 1, 0
    return pd.DataFrame(columns).assign(w=weight, site=rng.integers(0, 3, 90))


MODELS_OF_CLASSES = {"a": ["p_0", "p_1", "p_2"], "b": ["q_0", "q_1", "q_2"]}
VOTES_OF_CLASSES = ["v_0", "v_1", "v_2"]


def scanned_classes(items: pd.DataFrame, **options: Any) -> sc.TableSet:
    return sc.scan(items, vote_counts=VOTES_OF_CLASSES, y_prob=MODELS_OF_CLASSES, **options)


def assert_scores_of(tables: sc.TableSet, items: pd.DataFrame, weight: str | None = None) -> None:
    """Return each score from its public function."""
    votes = sc.Votes(items[VOTES_OF_CLASSES].to_numpy())
    w = None if weight is None else items[weight].to_numpy()
    for model in tables:
        p = items[MODELS_OF_CLASSES[model]].to_numpy()
        found = tables.item_scores(model)
        for metric in (
            sc.brier, sc.log_loss, sc.kl_divergence, sc.dist_ce, sc.ent_ce, sc.ent_ce_signed,
            sc.rank_cs, sc.brier_without_vote_noise,
        ):  # fmt: skip
            expected = metric(votes, p, sample_weight=w)
            assert getattr(found, metric.__name__) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        if w is None:
            floor = sc.vote_noise_floor(votes, p, metric="dist_ce")
            assert found.dist_ce_floor == pytest.approx(floor, rel=1e-12)
        ruled_out = ((p == 0) & (votes.shares > 0)).any(axis=1)
        assert found.infinite == int(
            np.count_nonzero(ruled_out if w is None else ruled_out & (w > 0))
        )


@pytest.mark.parametrize("weight", [None, "w"])
def test_item_scores_equal_those_of_the_rows(
    items: pd.DataFrame, weight: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = scanned_classes(items, by="site", sample_weight=weight)
    assert_scores_of(tables, items, weight)
    parts = [
        scanned_classes(part, by="site", sample_weight=weight) for part in (items[:35], items[35:])
    ]
    assert_scores_of(sum(parts[1:], start=parts[0]), items, weight)
    for value, part in tables.by("site").items():
        assert_scores_of(part, items[items.site == int(str(value))], weight)
    assert_scores_of(tables.select(["b", "a"]), items, weight)
    assert_scores_of(tables.coarsen(5), items, weight)
    for many in (files.MANY, 1):  # JSON, Parquet
        monkeypatch.setattr(files, "MANY", many)
        tables.save(tmp_path / "set.softcal")
        assert_scores_of(sc.load(tmp_path / "set.softcal"), items, weight)


def test_item_scores_the_rows_do_not_determine_are_none(
    items: pd.DataFrame, tmp_path: Path
) -> None:
    shares = items.assign(**{name: items[name] / 4 for name in VOTES_OF_CLASSES})
    tables = sc.scan(shares, y_true=VOTES_OF_CLASSES, y_prob=MODELS_OF_CLASSES)
    tables.save(tmp_path / "set.softcal")
    for each in (tables, sc.load(tmp_path / "set.softcal")):
        found = each.item_scores("b")
        assert (found.dist_ce_floor, found.brier_without_vote_noise) == (None, None)
    one = items.assign(v_0=1, v_1=0, v_2=0)[:1]
    found = scanned_classes(pd.concat([one, items])).item_scores("b")
    assert found.brier_without_vote_noise is None  # one vote gives no estimate of vote noise
    assert found.dist_ce_floor is not None


def test_set_without_item_scores_is_refused(items: pd.DataFrame) -> None:
    tables = scanned_classes(items)
    assert (replace(tables, scores=None) + tables).scores is None
    with pytest.raises(sc.InputError, match="the set has no item scores"):
        replace(tables, scores=None).item_scores("a")
    with pytest.raises(KeyError, match="the set has no model 'c'"):
        tables.item_scores("c")
    with pytest.raises(sc.InputError, match="compared by the class they predict, 'top', not by"):
        tables.pair("a", "b", tables.targets[1])


@pytest.mark.parametrize(
    ("name", "value"), [("weight", None), ("brier", -1.0), ("infinite", -1), ("model", 7)]
)
def test_damaged_item_scores_are_refused(
    items: pd.DataFrame, name: str, value: Any, tmp_path: Path
) -> None:
    saved = files.written(scanned_classes(items))
    key = name if name == "model" else f"sum_{name}"
    saved["scores"][key] = [value] * len(saved["scores"]["model"])
    (tmp_path / "set.softcal").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="The file is damaged"):
        sc.load(tmp_path / "set.softcal")


@pytest.mark.parametrize("far", [1, 2**40])
def test_entries_of_equal_keys_add_for_large_key_numbers(far: int) -> None:
    keys = np.array([[far, 0, far, 0], [far, 1, far, 0]])
    found = tableset.Sparse.of(keys, np.array([[1.0, 2.0, 4.0, 8.0]]))
    assert found.keys.T.tolist() == [[0, 0], [0, 1], [far, far]]
    assert found.values.tolist() == [[8.0, 2.0, 5.0]]


@pytest.mark.parametrize("count", [3, 2**15])
def test_entries_are_sorted_for_any_number_of_segments(count: int) -> None:
    entries = tableset.Sparse(np.arange(4)[None], np.arange(4.0)[None])
    found = tableset._BySegment(entries, np.array([2, -1, 0, 2]), count)
    assert [found.of(k).values[0].tolist() for k in range(3)] == [[2.0], [], [0.0, 3.0]]
