"""Every operation on a set keeps all sums: the result is the set of the corresponding rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from same_tables import assert_same_set

import softcal as sc
from old_results import results
from softcal._validation import inputs
from softcal.bins import Bins
from softcal.table import blocks, build, files
from softcal.table.blocks import BLOCKS, Block, Sparse
from softcal.table.kernel import SUM_NAMES

N = 300
P, Q, SHARES, COUNTS = (["p_1", "p_2", "p_3"], ["q_1", "q_2", "q_3"], ["y_1", "y_2", "y_3"],
                        ["v_1", "v_2", "v_3"])  # fmt: skip


def _made() -> pd.DataFrame:
    """Return rows with all kinds of columns; three votes per row."""
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {"a": rng.random(N), "b": rng.random(N), "w": rng.integers(0, 4, N)}
    columns["a"][:6], columns["b"][:4] = [0, 1, 0, 1, 0.5, 0.5], [0, 1, 1, 0]
    for names, alpha in ((P, 1.0), (Q, 0.4), (SHARES, 2.0)):
        columns |= dict(zip(names, rng.dirichlet([alpha] * 3, N).T, strict=True))
    columns |= dict(zip(COUNTS, rng.multinomial(4, [0.5, 0.3, 0.2], N).T, strict=True))
    columns["low"] = rng.integers(0, 3, N) / 4
    columns["high"] = columns["low"] + rng.integers(0, 3, N) / 4
    return pd.DataFrame(columns).assign(
        m=rng.integers(1, 6, N), y=lambda d: rng.binomial(d["m"], 0.4) / d["m"],
        site=rng.choice(np.array(["x", "y", None]), N), device=rng.integers(0, 3, N),
        patient=[f"patient {k}" for k in rng.integers(0, 40, N)], item=np.arange(N),
    )  # fmt: skip


ROWS = _made()
_RNG = np.random.default_rng(6)
VOTES = pd.concat([ROWS] * 3).assign(
    who=[f"rater {k}" for k in _RNG.permuted(np.tile(np.arange(9), (N, 1)), axis=1).T[:3].ravel()],
    vote=_RNG.integers(0, 2, 3 * N),
)
TWO: dict[str, Any] = {"y_true": "y", "y_prob": ["a", "b"], "by": ["site", "device"]}
CLASSES: dict[str, Any] = {"y_prob": {"a": P, "b": Q}, "by": "site"}
NAMES = ["1", "2", "3"]
RAW = sc.RawVotes("vote", item="item", rater="who", positive=1, raters=True)
CASES: dict[str, dict[str, Any]] = {
    "pairs": TWO,
    "no pairs": TWO | {"pairs": False},
    "weights": TWO | {"sample_weight": "w"},
    "votes": TWO | {"y_true": sc.Shares("y", votes="m"), "date": "2026-11-16"},
    "groups": TWO | {"groups": "patient", "sample_weight": "w"},
    "other bins": TWO | {"bins": [0, 0.3, 0.5, 1]},
    "raters": {"y_true": RAW, "y_prob": ["a", "b"], "by": "device"},
    "bounds": {"y_true": sc.Bounds("low", "high"), "y_prob": ["a", "b"], "by": "site"},
    "classes": CLASSES | {
        "y_true": sc.Classes(COUNTS, names=NAMES, counts=True), "sample_weight": "w",
    },
    "ordered classes": CLASSES | {
        "y_true": sc.Classes(SHARES, names=NAMES, ordered=True), "groups": "patient",
    },
}  # fmt: skip


def rows_of(case: str) -> pd.DataFrame:
    return VOTES if case == "raters" else ROWS


def scanned(case: str, rows: pd.DataFrame | None = None, **other: Any) -> sc.TableSet:
    return sc.scan(rows_of(case) if rows is None else rows, **CASES[case] | other)


@pytest.mark.parametrize("case", CASES)
def test_sum_of_parts_is_the_set_of_all_rows(case: str) -> None:
    """Groups and raters have rows in all parts."""
    rows, whole = rows_of(case), scanned(case)
    parts = [scanned(case, rows[rows["item"] % 3 == k]) for k in (2, 0, 1)]
    assert_same_set(sum(parts[1:], start=parts[0]), whole, case)
    empty_cell = scanned(case, rows[rows["site"].isna() & (rows["device"] == 0)])
    rest = scanned(case, rows[~(rows["site"].isna() & (rows["device"] == 0))])
    assert_same_set(rest + empty_cell, whole, case)


@pytest.mark.parametrize("case", CASES)
def test_segment_is_the_set_of_its_rows(case: str) -> None:
    rows, by = rows_of(case), CASES[case]["by"]
    by = by if isinstance(by, list) else [by]
    segments = scanned(case).by(by[0])
    for value, found in segments.items():
        inside = rows[rows[by[0]].isna() if value is None else rows[by[0]].astype(str) == value]
        assert_same_set(found, _no_rows_known(scanned(case, inside, by=by[1:])), f"{case} {value}")
    whole = scanned(case, by=by[1:])
    assert_same_set(sum(segments.values(), start=0), _no_rows_known(whole), case)  # type: ignore[arg-type]


def _no_rows_known(tables: sc.TableSet) -> sc.TableSet:
    """Segments do not know how many of the rows without weight are theirs."""
    return replace(tables, about=tables.about._replace(rows_without_weight=None))


@pytest.mark.parametrize("case", CASES)
def test_selected_and_renamed_models_are_those_of_their_columns(case: str) -> None:
    models = CASES[case]["y_prob"]
    turned = dict(reversed(models.items())) if isinstance(models, dict) else models[::-1]
    whole = scanned(case)
    assert_same_set(whole.select(["b", "a"]), scanned(case, y_prob=turned), case)
    one = {"b": models["b"]} if isinstance(models, dict) else ["b"]
    alone = scanned(case, y_prob=one)
    assert_same_set(_alone(whole.select(["b"])), _alone(alone), case)
    renamed = whole.rename({"a": "c"})
    assert renamed.models == ("c", "b")
    assert renamed["c"] == whole["a"]
    assert renamed.rename({"c": "a"}) == whole


def _alone(tables: sc.TableSet) -> sc.TableSet:
    """Return the set without everything about pairs."""
    found = tables.without(*(name for name in BLOCKS if BLOCKS[name].is_of_pairs))
    return replace(found, axes=found.axes._replace(pair_bin=None))


@pytest.mark.parametrize("case", CASES)
def test_bins_stored_more_coarsely_give_the_same_tables(case: str) -> None:
    whole = scanned(case)
    bins = Bins([0, 0.5, 1])
    small = whole.coarsen(bins).stored_on(bins)
    assert (len(small.grid), small.by_names) == (2, ())
    for model in whole.models:
        for target in whole.targets:
            mine, theirs = small[model, target], whole.coarsen(bins)[model, target]
            np.testing.assert_allclose(
                np.array(list(mine.sums)), np.array(list(theirs.sums)), rtol=1e-12, atol=1e-12
            )
            assert (mine.clusters is None) == (theirs.clusters is None)


@pytest.mark.parametrize("many", [10**9, 1], ids=["JSON", "Parquet"])
@pytest.mark.parametrize("case", CASES)
def test_saved_set_loads_unchanged(
    case: str, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MANY", many)
    tables, path = scanned(case), tmp_path / "set.anything"
    tables.save(path)
    assert (path.read_bytes()[:4] == b"PAR1") is (many == 1)
    assert files.is_saved(path)
    loaded = sc.load(path)
    assert loaded == tables
    assert loaded.about == tables.about
    for model in tables.models:
        for target in tables.targets:
            mine, theirs = loaded[model, target], tables[model, target]
            np.testing.assert_array_equal(np.array(list(mine.sums)), np.array(list(theirs.sums)))
            assert sc.smece_interval(mine) == sc.smece_interval(theirs)
    if tables.has_pairs:
        assert sc.compare(loaded, "b", "a") == sc.compare(tables, "b", "a")
    if tables.classes:
        assert loaded.item_scores("a") == tables.item_scores("a")
    for one, other in zip(loaded.by(loaded.by_names[0]).values(),
                            tables.by(tables.by_names[0]).values(), strict=True):  # fmt: skip
        assert one == other
    again = tmp_path / "again"
    loaded.save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("many", [10**9, 1], ids=["JSON", "Parquet"])
@pytest.mark.parametrize("case", ["groups", "ordered classes"])
def test_names_of_groups_are_not_saved(
    case: str, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MANY", many)
    scanned(case).save(tmp_path / "set")
    saved = (tmp_path / "set").read_bytes()
    assert not [name for name in ROWS["patient"] if name.encode() in saved]
    assert sc.load(tmp_path / "set").about.group == "patient"


@pytest.mark.parametrize("swap", [False, True])
def test_pairs_of_models_change_signs_when_swapped(swap: bool) -> None:  # noqa: FBT001
    block = Block(
        ("model", "model", "cell", "pair_bin", "pair_bin"), ("x_a", "x_b", "y_total", "z")
    )
    entries = Sparse(np.array([[0], [1], [5], [2], [3]]), np.array([[1.0], [2.0], [4.0], [8.0]]))
    found = block.mapped(entries, "model", np.array([1, 0] if swap else [3, 4]))
    expected = [0, 1, 5, 3, 2] if swap else [3, 4, 5, 2, 3]
    assert found.keys[:, 0].tolist() == expected
    assert found.values[:, 0].tolist() == ([2.0, 1.0, -4.0, 8.0] if swap else [1.0, 2.0, 4.0, 8.0])


def test_every_block_is_declared_once_and_used() -> None:
    used = {name for case in CASES for name in scanned(case).blocks}
    of_0_2 = {name for name, block in BLOCKS.items() if "segment" in block.axes}
    assert used == set(BLOCKS) - of_0_2
    assert BLOCKS["tables"].sums == SUM_NAMES
    for block in BLOCKS.values():
        assert len(set(files.key_names(block))) == len(block.axes)


@pytest.mark.parametrize("far", [1, 2**40])
def test_entries_of_equal_keys_add_for_large_key_numbers(far: int) -> None:
    keys = np.array([[far, 0, far, 0], [far, 1, far, 0]])
    found = Sparse.of(keys, np.array([[1.0, 2.0, 4.0, 8.0]]))
    assert found.keys.T.tolist() == [[0, 0], [0, 1], [far, far]]
    assert found.values.tolist() == [[8.0, 2.0, 5.0]]


def test_entries_of_many_batches_are_added_up_regularly(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scanned("pairs")
    monkeypatch.setattr(blocks, "_ENTRIES_WAITING", 10)
    batches: Any = pa.Table.from_pandas(ROWS).to_reader(max_chunksize=30)
    assert_same_set(scanned("pairs", batches), whole)


def test_pairs_are_of_models_with_the_same_target() -> None:
    rows = inputs.rows([0.5, 1.0], [0.25, 0.75])
    bins = Bins.uniform(2)
    found = build.entries({(0, 0): rows, (0, 1): rows, (1, 0): rows}, bins, pairs=bins)
    assert found is not None
    assert found.blocks["losses"].keys.T.tolist() == [[0, 1, 0, 0]]


# Sets that softcal 0.2 saved


def old(name: str, tmp_path: Path) -> tuple[sc.TableSet, dict[str, Any]]:
    saved = json.loads((Path(__file__).parent / "tables" / name).read_text(encoding="utf-8"))
    (tmp_path / name).write_text(json.dumps(saved["set"]))
    return sc.load(tmp_path / name), saved


@pytest.mark.parametrize("name", ["tables2_by_pairs.json", "tables2_groups.json"])
def test_saved_sets_of_0_2_still_load(name: str, tmp_path: Path) -> None:
    """Every schema must stay readable. Never edit these files; add one for each new schema."""
    tables, saved = old(name, tmp_path)
    assert tables.n == saved["n"]
    found = {model: rel.smece for model, rel in tables.items()}
    assert found == pytest.approx(saved["smece"], rel=1e-15)
    assert tables.pair("a", "b").brier.total == saved["difference"]
    tables.save(tmp_path / "again")
    again = sc.load(tmp_path / "again")
    assert again == tables
    assert sc.compare(again, "a", "b") == sc.compare(tables, "a", "b")
    for column in tables.by_names:
        assert sum(part.n for part in again.by(column).values()) == tables.n
    assert (tables + again).n == 2 * tables.n


@pytest.mark.parametrize("name", ["groups_by", "raters", "ordered", "bounds"])
def test_sets_of_0_2_give_the_results_of_0_2(name: str, tmp_path: Path) -> None:
    tables, saved = old(f"tables2_{name}.json", tmp_path)
    tables.save(tmp_path / "again")
    for each in (tables, sc.load(tmp_path / "again")):
        _assert_close(json.loads(json.dumps(results(each))), saved["results"], name)
    assert_same_set(tables.select(tables.models[::-1]).select(tables.models), tables)
    for column in tables.by_names:
        parts = list(tables.by(column).values())
        assert sum(parts[1:], start=parts[0]).n == tables.n


def _assert_close(mine: Any, theirs: Any, path: str) -> None:
    if isinstance(theirs, dict):
        assert set(mine) == set(theirs), path
        for key in theirs:
            _assert_close(mine[key], theirs[key], f"{path}, {key}")
    else:
        assert mine == (theirs and pytest.approx(theirs, rel=1e-10, abs=1e-12)), path


def test_groups_of_0_2_do_not_add_to_newer_ones(tmp_path: Path) -> None:
    tables, _ = old("tables2_groups.json", tmp_path)
    rows = pd.DataFrame({"y": [0.5, 1], "a": [0.25, 0.5], "b": [0.75, 0.5], "who": ["x", "y"]})
    new = sc.scan(rows, y_true="y", y_prob=["a", "b"], groups="who", bins=[0, 0.25, 0.5, 1])
    for one, other in ((tables, new), (new, tables)):
        with pytest.raises(sc.InputError, match=r"groups \(who\) .*Scan the rows of the older set"):
            one + other


def test_groups_of_0_2_have_intervals_from_their_products(tmp_path: Path) -> None:
    tables, _ = old("tables2_groups_by.json", tmp_path)
    rel = tables["a"]
    found = sc.smece_interval(rel)
    assert "corrected by G/(G - 1) only" in found.note
    assert 0 <= found.low < found.high < 1
    low, high = sc.gap_intervals(rel)
    assert (low < rel.gap).all()
    assert (rel.gap < high).all()
    both = rel + rel
    assert both.clusters is not None
    assert rel.clusters is not None
    assert both.clusters.count == 2 * rel.clusters.count
    with pytest.raises(sc.InputError, match="new_group needs the sums of 3 groups"):
        sc.new_group(rel)


def test_damaged_groups_of_0_2_are_refused(tmp_path: Path) -> None:
    _, saved = old("tables2_groups.json", tmp_path)
    changed = {k: v for k, v in saved["set"].items() if k != "checksum"} | {"segments": []}
    (tmp_path / "changed").write_text(json.dumps(changed))
    with pytest.raises(sc.InputError, match="segments"):
        sc.load(tmp_path / "changed")
