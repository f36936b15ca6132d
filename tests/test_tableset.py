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
from softcal.bins import Bins
from softcal.table import build, files

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
    return sc.scan(rows, **{"y_true": "y", "y_prob": MODELS, **options})


@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"n_votes": "votes"}])
@pytest.mark.parametrize("bins", [10, 15, 7, 1, [0, 0.2, 0.9, 1]])
def test_set_returns_the_tables_of_the_rows(
    rows: pd.DataFrame, options: dict[str, str], bins: Any
) -> None:
    votes = {"y_true": sc.Shares("y", votes="votes")} if "n_votes" in options else options
    tables = scanned(rows, bins=bins, **votes)
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


@pytest.mark.parametrize("groups", [None, "patient"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_pair_is_the_joint_table_of_the_rows(
    rows: pd.DataFrame, groups: str | None, weight: str | None
) -> None:
    tables = scanned(rows, groups=groups, sample_weight=weight)
    for a, b in (("a", "c"), ("c", "b")):
        found = tables.pair(a, b)
        expected = build.tables_of_models(
            rows["y"], {a: rows[a], b: rows[b]}, bins=10,
            groups=None if groups is None else rows[groups],
            sample_weight=None if weight is None else rows[weight],
        ).pair(a, b)  # fmt: skip
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "a saved set of tables"),
        ({"schema": 4}, "Upgrade softcal"),
        ({"models": ["a", "a"]}, "damaged"),
        ({"label": 3}, "damaged"),
        ({"bins": 7}, "damaged"),
        ({"cells": []}, "damaged"),
        ({"cells": [["x"]]}, "damaged"),
        ({"rows_without_weight": "x"}, "damaged"),
        ({"blocks": {}}, "damaged"),
        ({"blocks": None}, "damaged"),
        ({"blocks": {"tables": None}}, "damaged"),
        ({"owners": -1}, "damaged"),
        ({"segments": [{}, {}]}, "damaged"),
        ({"group": "x"}, "damaged"),
        ({"rater": "x"}, "damaged"),
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
        ("sum_weight", -1.0), ("sum_weight", 1e300),
        ("sum_residual", 1e9), ("sum_label", "x"), ("sum_prob_var", None), ("extra", 1),
    ],
)  # fmt: skip
def test_entry_that_no_rows_can_have_is_refused(
    rows: pd.DataFrame, tmp_path: Path, name: str, value: Any
) -> None:
    saved = files.written(scanned(rows))
    tables = saved["blocks"]["tables"]
    tables.setdefault(name, [0] * len(tables["model"]))[0] = value
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
        (lambda table: table.drop_columns(["keys"]), "a part is missing or invalid"),
        (
            lambda table: table.drop_columns(["residual"]),
            "a part is missing or invalid",
        ),
        (
            lambda table: with_column(table, "kind", ["other"] * len(table)),
            "a part is missing or invalid",
        ),
        (
            lambda table: with_column(table, "keys", [[0]] * len(table)),
            "a part is missing or invalid",
        ),
        (
            lambda table: with_column(table, "label", ["x"] * len(table)),
            "a part is missing or invalid",
        ),
        (
            lambda table: with_about(table, b"no JSON"),
            "a part is missing or invalid",
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
        ("group_sums", "sum_weight", -1.0), ("group_sums", "sum_residual", 0.9),
        ("group_sums", "owner", 999), ("group_losses", "model_a", -1), ("losses", "model_b", 0),
        ("tables", "bin", 2**70), ("tables", "sum_label", 1e999), ("tables", "sum_label", True),
    ],
)  # fmt: skip
def test_damaged_entry_of_pairs_or_groups_is_refused(
    rows: pd.DataFrame, tmp_path: Path, part: str, name: str, value: Any
) -> None:
    saved = files.written(scanned(rows[:100], groups="patient", bins=[0, 0.5, 1]))
    saved["blocks"][part][name][0] = value
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="damaged"):
        sc.load(tmp_path / "set.json")


def test_duplicate_entry_is_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    saved = files.written(scanned(rows[:100], pairs=False))
    tables = saved["blocks"]["tables"]
    saved["blocks"]["tables"] = {name: [*values, values[-1]] for name, values in tables.items()}
    (tmp_path / "set.json").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="two entries have the same key"):
        sc.load(tmp_path / "set.json")


def test_entries_of_different_lengths_are_refused(rows: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("cell", "sum_label"):
        saved = files.written(scanned(rows[:100]))
        saved["blocks"]["tables"][name].pop()
        (tmp_path / "set.json").write_text(json.dumps(saved))
        with pytest.raises(sc.InputError, match="one per entry"):
            sc.load(tmp_path / "set.json")


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
    assert not segments["DE"].has_pairs


def test_sets_with_and_without_pairs_add_without(rows: pd.DataFrame) -> None:
    both = scanned(rows[:50]) + scanned(rows[50:90], pairs=False)
    assert both.n == 90
    assert not both.has_pairs
    loaded = scanned(rows[:50])
    loaded = replace(loaded, about=loaded.about._replace(rows_without_weight=None))
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


def test_pairs_and_groups_are_stored_on_fewer_bins(rows: pd.DataFrame) -> None:
    tables = scanned(rows)
    assert tables.axes.pair_bin is not None
    assert len(tables.axes.pair_bin) == 60
    two = {"a": rows["a"], "b": rows["b"]}
    joint = build.tables_of_models(rows["y"], two, bins=15).pair("a", "b")
    np.testing.assert_allclose(tables.coarsen(15).pair("a", "b").cross, joint.cross, atol=1e-12)
    with pytest.raises(
        sc.BinMismatchError, match=r"cannot compare models on 25 bins .* on 60 bins"
    ):
        tables.coarsen(25).pair("a", "b")
    assert len(scanned(rows, groups="patient").grid) == 120
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
    return sc.scan(
        items, y_true=sc.Classes(VOTES_OF_CLASSES, counts=True), y_prob=MODELS_OF_CLASSES, **options
    )


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
    tables = sc.scan(shares, y_true=sc.Classes(VOTES_OF_CLASSES), y_prob=MODELS_OF_CLASSES)
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
    bare = tables.without("scores")
    assert "scores" not in (bare + tables).blocks
    with pytest.raises(sc.InputError, match="the set has no item scores"):
        bare.item_scores("a")
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
    saved["blocks"]["scores"][key] = [value] * len(saved["blocks"]["scores"]["model"])
    (tmp_path / "set.softcal").write_text(json.dumps(saved))
    with pytest.raises(sc.InputError, match="The file is damaged"):
        sc.load(tmp_path / "set.softcal")
