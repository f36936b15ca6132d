"""What `scan` accepts and refuses beside the values: sources, names, segments, and classes."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from same_tables import assert_same_table

import softcal as sc
from softcal.scanning import queries
from softcal.scanning.patterns import class_columns, class_spec
from softcal.table import build

if TYPE_CHECKING:
    from pathlib import Path

ROWS: dict[str, Any] = {"y": [0.1, 0.9, 0.5], "p": [0.2, 0.8, 0.5]}
ONE: dict[str, Any] = {"y_true": "y", "y_prob": "p"}


def parts_of(source: Any, by: Any = "s") -> dict[Any, sc.TableSet]:
    return dict(sc.scan(source, **ONE, by=by).by("s"))


# Sources


def test_dict_of_columns_is_the_frame_of_these_columns() -> None:
    rows = {"y": [0.5, 1.0], "p": np.array([0.25, 0.5]), "g": pd.Series(["a", "b"])}
    assert sc.scan(rows, **ONE, groups="g") == sc.scan(pd.DataFrame(rows), **ONE, groups="g")
    for wrong in ([0.5], np.ones((2, 2)), 3):
        with pytest.raises(sc.InputError, match="a dict of columns must map names to lists"):
            sc.scan(rows | {"q": wrong}, **ONE)


@pytest.mark.parametrize("source", [[[0.5], [0.5]], pd.Series([0.5]), 3, None])
def test_other_objects_are_not_sources(source: Any) -> None:
    with pytest.raises(sc.InputTypeError, match=r"cannot scan a .* a dict of columns"):
        sc.scan(source, **ONE)


def test_iterators_of_frames_are_read_once_in_bounded_memory() -> None:
    whole = sc.scan(ROWS, **ONE)
    parts = [pd.DataFrame(ROWS)[:1], pl.DataFrame(ROWS)[1:2], {k: v[2:] for k, v in ROWS.items()}]
    assert sc.scan(iter(parts), **ONE) == whole
    with pytest.raises(sc.InputError, match="yields no rows"):
        sc.scan(iter([]), **ONE)
    batch = pa.RecordBatch.from_pydict(ROWS)
    stream = pa.RecordBatchReader.from_batches(batch.schema, [batch.slice(0, 0), batch])
    assert sc.scan(stream, **ONE) == whole


def test_relations_of_another_duckdb_connection_are_read() -> None:
    rows = pa.table({**ROWS, "q": [0.3] * 3})
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        found = sc.scan(connection.table("rows"), y_true="y", y_prob=["p", "q"])
    for name, table in found.items():
        assert table.smece == pytest.approx(sc.smece(rows["y"], rows[name]), abs=1e-15)


def test_paths_patterns_folders_and_lists_are_sources(tmp_path: Path) -> None:
    folder = tmp_path / "day=1"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet", "_c.parquet", ".d.parquet"):
        pq.write_table(pa.table({"y": [0.5], "p": [0.5]}), folder / name)
    (folder / "_SUCCESS").touch()
    (tmp_path / "e.csv").write_text("y,p\n1,0.5\n0,0.5")
    (tmp_path / "e.csv.gz.bak").write_text("in a folder, only files with known suffixes count")
    for source, n in (
        (tmp_path, 4),
        (str(tmp_path / "*" / "*.parquet"), 3),  # a pattern does not match a leading dot
        (str(tmp_path / "**" / "a.parquet"), 1),
        (str(tmp_path / "day=*"), 2),
        ([folder / "a.parquet", str(tmp_path / "e.csv")], 3),
    ):
        assert sc.scan(source, **ONE).n == n
    for name in ("absent.parquet", "*.txt", "x", "day=2"):
        with pytest.raises(sc.InputError, match=r"no such file|no data in"):
            sc.scan(tmp_path / name, **ONE)
    (tmp_path / "link.csv").symlink_to(tmp_path / "e.csv")
    for twice in ([tmp_path], [tmp_path / "e.csv"] * 2, [tmp_path / "*.csv"]):
        with pytest.raises(sc.InputError, match="named twice, so its rows would count twice"):
            sc.scan(twice, **ONE)


def test_files_of_models_are_named_by_the_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("y,p,id\n1,0.5,1\n0,0.25,2\n")
    found = sc.scan(tmp_path, y_true="y", y_prob=sc.Long("p", item="id"))
    assert list(found) == ["a", "b"]
    assert found.pair("a", "b").brier[0] == 0


def test_hundreds_of_classes_are_read() -> None:
    """A chain of sums or conditions this long was too deep to evaluate."""
    columns: dict[str, Any] = {"class": ["3", "7"]}
    columns |= {f"prob_{c}": [1 / 450, float(c == 7)] for c in range(450)}
    tables = sc.scan(columns, y_true=sc.Classes("class"), y_prob={"model": "prob_*"})
    assert tables["model", "7"].bias == pytest.approx(1 / 900)


def test_epochs_of_an_item_are_votes() -> None:
    rows = {"y": [1, 0, 1, 1], "p": [0.5, 0.5, 0.8, 0.8], "id": [1, 1, 2, 2], "m": ["a"] * 4}
    long = sc.Long("p", model="m", item="id")
    with pytest.raises(sc.InputError, match=r"each id must have one row of a model: 2 .* epochs"):
        sc.scan(rows, y_true="y", y_prob=long)
    found = sc.scan(rows, y_true="y", y_prob=sc.Long("p", model="m", item="id", epochs=True))
    assert_same_table(found["a"], sc.reliability([0.5, 1], [0.5, 0.8], n_votes=[2, 2]))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_reading_numbers_does_not_import_pandas(name: str, tmp_path: Path) -> None:
    (csv.write_csv if name.endswith("csv") else pq.write_table)(pa.table(ROWS), tmp_path / name)
    code = (
        "import sys, softcal; tables = softcal.scan(sys.argv[1], y_true='y', y_prob='p'); "
        "print(tables.n, 'pandas' in sys.modules)"
    )
    line = [sys.executable, "-c", code, str(tmp_path / name)]
    ran = subprocess.run(line, capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout == "3 False\n"


PEAK = """
import re, sys, softcal as sc
n = sc.scan(sys.argv[1], y_true="y", y_prob="p").n
# Not getrusage, which includes the memory of the parent process.
print(n, int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's mark of the peak memory")
@pytest.mark.parametrize("kind", ["one row group", "csv"])
def test_memory_is_bounded(kind: str, tmp_path: Path) -> None:
    """A row group of 640 MB and a CSV file of 600 MB."""
    if kind == "csv":
        path, n, most = tmp_path / "large.csv", 15_000_000, 580
        block = "".join(f"{k % 997 / 997:.16f},{k % 89 / 89:.16f}\n" for k in range(100_000))
        with path.open("w") as out:
            out.write("y,p\n")
            for _ in range(n // 100_000):
                out.write(block)
    else:
        path, n, most = tmp_path / "large.parquet", 40_000_000, 500
        p = np.tile(np.random.default_rng(0).random(1_000_000), n // 1_000_000)
        pq.write_table(pa.table({"y": p, "p": p}), path, row_group_size=n, use_dictionary=False)
    line = [sys.executable, "-c", PEAK, str(path)]
    ran = subprocess.run(line, capture_output=True, text=True, check=True)  # noqa: S603
    rows, peak = map(int, ran.stdout.split())
    path.unlink()
    assert rows == n
    assert peak < most, f"{peak} MB"


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_interrupt_keeps_the_previously_saved_file(tmp_path: Path) -> None:
    parts, saved = tmp_path / "parts", tmp_path / "day.json"
    parts.mkdir()
    rng = np.random.default_rng(0)
    first = parts / "0.parquet"
    pq.write_table(pa.table({"y": rng.random(1_000_000), "p": rng.random(1_000_000)}), first)
    for k in range(1, 3000):
        (parts / f"{k}.parquet").hardlink_to(first)
    saved.write_text("yesterday")
    command = [sys.executable, "-m", "softcal", "score", str(parts), "--label", "y",
               "--pred", "p", "--save", str(saved)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:  # noqa: S603
        time.sleep(4)  # well within the pass over three billion rows
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=60)
    assert (running.returncode, out, errors) == (130, b"", b"softcal: stopped by SIGINT\n")
    assert saved.read_text() == "yesterday"
    assert sorted(os.listdir(tmp_path)) == ["day.json", "parts"]  # noqa: PTH208


# Descriptions that contradict themselves

PAIR = {"y_a": [0.5], "y_b": [0.5], "p_a": [0.25], "p_b": [0.75], "t": ["x"]}
BOTH: dict[str, Any] = {"y_true": sc.Classes("y_*"), "y_prob": {"m": "p_*"}}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y_prob": "y_a"}, "both are 'y_a'"),
        ({"y_prob": ["p_a", "p_a"]}, "'p_a'"),
        ({"y_prob": []}, "y_prob must name at least one column"),
        ({"y_prob": {}}, "y_prob must name at least one column"),
        ({"y_true": None}, "y_true must name the label"),
        ({"by": ["t", "t"]}, "named once"),
        ({"by": ["t", sc.Cut("t", 3)]}, "named once"),
        ({"y_prob": {"m": "p_*"}}, "need a label of classes"),
        ({"y_prob": "p_*"}, "need a label of classes"),
        ({"y_true": sc.Classes("y_*")}, "must hold a list of numbers per row|needs predictions"),
        ({"y_true": sc.Bounds("y_a", "p_a")}, "both are 'p_a'"),
        ({"y_true": sc.Bounds("y_a", "y_b"), "y_prob": {"m": "p_*"}}, "need a label of classes"),
        ({"y_true": sc.Counts(["y_a", "y_b"], positive="z")}, "got 'z'"),
        ({**BOTH, "y_prob": {"m": "p_*", "k": "p_a"}}, "'p_a'"),
        ({**BOTH, "y_true": sc.Classes("y_*", names=["a", "top"])}, "no class may be named 'top'"),
        (
            {**BOTH, "y_true": sc.Classes("y_*", names=["a", "> a"], ordered=True)},
            "called '> a'",
        ),
    ],
)
def test_contradicting_descriptions_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(sc.InputError, match=words):
        sc.scan(pd.DataFrame(PAIR), **{"y_true": "y_a", "y_prob": "p_a", **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"y_true": 0},
        {"y_true": ["y"]},
        {"y_prob": None},
        {"y_prob": 1},
        {"sample_weight": [1.0, 1.0, 1.0]},
        {"groups": 3},
        {"by": 3},
        {"by": [None]},
        {"by": ["s", 3]},
        {"drop_missing": 1},
    ],
)
def test_arguments_of_another_type_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(sc.InputTypeError, match=f"{next(iter(changed))} must be .*got "):
        sc.scan(pd.DataFrame(ROWS), **{**ONE, **changed})


def test_numbers_of_votes_are_whole_numbers_of_any_type() -> None:
    rows = {"y": [0.5, 0.25], "p": [0.5, 0.5]}
    right = sc.scan(rows, y_true=sc.Shares("y", votes=60), y_prob="p")
    wide: Any = np.int64(60)
    assert sc.scan(rows, y_true=sc.Shares("y", votes=wide), y_prob="p") == right
    for wrong in (2.5, 0, -1, True):
        with pytest.raises((sc.InputError, sc.InputTypeError), match=f"got {wrong}"):
            sc.Shares("y", votes=wrong)  # type: ignore[arg-type]


def test_duplicate_column_names_are_refused_if_used() -> None:
    frame = pd.DataFrame(ROWS)
    for twice in (pd.concat([frame, frame], axis=1), pa.table([[0.5]] * 3, names=["y", "p", "p"])):
        with pytest.raises(sc.InputError, match=r"names of the frame must differ|more than one"):
            sc.scan(twice, **ONE)


def test_dates_are_kept_in_the_set() -> None:
    assert sc.scan(ROWS, **ONE, date=dt.date(2026, 11, 16)).about.date == "2026-11-16"


# Segments


@pytest.mark.parametrize(
    "values",
    [
        ["a", 1, "b"],
        [(1, 2)] * 3,
        [[1], [2], [3]],
        pd.period_range("2020", periods=3),
        pd.interval_range(0, 3),
    ],
)
def test_segments_must_hold_single_values_of_one_type(values: Any) -> None:
    frame = pd.DataFrame({**ROWS, "s": pd.Series(values)})
    with pytest.raises(sc.InputTypeError, match="s must hold"):
        parts_of(frame)


def test_lists_are_refused_as_segments_in_engines() -> None:
    with pytest.raises(sc.InputTypeError, match="s must hold single values"):
        parts_of(pl.DataFrame({**ROWS, "s": [[1], [2], [2]]}).lazy())


def test_timestamp_out_of_python_range_is_refused() -> None:
    late = pa.array([2**62] * 3, pa.timestamp("s"))
    with pytest.raises(sc.InputError, match=r"s must hold values that Python can hold|cannot read"):
        parts_of(pa.table({**ROWS, "s": late}))


def test_names_of_segments_are_the_same_for_all_types(tmp_path: Path) -> None:
    numbers = pd.DataFrame({**ROWS, "s": [3, 10, 3]})
    numbers.to_csv(tmp_path / "v.csv", index=False)
    numbers.to_parquet(tmp_path / "v.parquet")
    assert {k: part.n for k, part in parts_of(tmp_path).items()} == {"3": 4, "10": 2}
    kinds = pd.Categorical(["a", "b", "a"], categories=["a", "b", "never"])
    frame = pd.DataFrame({**ROWS, "s": kinds})
    frame.to_parquet(tmp_path / "v.parquet")
    for source in (
        frame,
        tmp_path / "v.parquet",
        frame.assign(s=frame.s.astype("string[pyarrow]")),
    ):
        assert list(parts_of(source)) == ["a", "b"]
    for real in (pl.DataFrame({**ROWS, "s": [float("nan"), 1.0, None]}),):
        for source in (real, real.lazy(), real.to_pandas()):
            assert list(parts_of(source)) == ["1.0", None]


def test_segments_are_sorted_numbers_before_names() -> None:
    values = ["10", "nan", "9", "2", "b", "1", None]
    found = parts_of(pl.DataFrame({"y": [0.5] * 7, "p": [0.4] * 7, "s": values}))
    assert list(found) == ["1", "2", "9", "10", "b", "nan", None]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.LazyFrame, lambda rows: rows])
def test_too_many_segments_are_refused(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (build, queries):
        monkeypatch.setattr(module, "MAX_CELLS", 50)
    rows = {"y": np.full(51, 0.5), "p": np.full(51, 0.5), "s": np.arange(51)}
    with pytest.raises(sc.InputError, match="s must have at most 50 different values"):
        parts_of(make(rows))


# Columns of classes

PRESENT = ["y_cat", "y_dog", "p_dog_lr", "p_cat_lr", "p_cat", "q_cat", "q_bat", "name", "list"]


def spec(label: Any, *models: Any, **options: Any) -> Any:
    source: Any = SimpleNamespace(
        names=PRESENT,
        kind=lambda name: {"list": "list", "name": "text"}.get(name, "number"),
        list_length=lambda _name: 2,
    )
    return class_spec(label, models, source, **options)


def test_columns_of_classes_are_named_by_a_list_a_pattern_or_a_prefix() -> None:
    assert class_columns("y_", PRESENT).classes == ("cat", "dog")
    found = spec("y_", "p_*_lr", "p_cat_lr, p_dog_lr", ["p_dog_lr", "p_cat_lr"], "list")
    assert (found.names, found.label) == (("cat", "dog"), ("y_cat", "y_dog"))
    assert found.models == (("p_cat_lr", "p_dog_lr"),) * 3 + (("list",),)
    for wrong, words in (
        ("y_cat", "it matches only the column of that name"),
        ("z_", "it matches none"),
        ("y_cat,y_cat", "two or more different columns"),
    ):
        with pytest.raises(sc.InputError, match=words):
            class_columns(wrong, PRESENT)
    for model, words in (
        ("p_cat,p_cat_lr,p_dog_lr", "one column per class of the label, 2 in total"),
        ("q_", "missing dog; unknown bat"),
        ("name", "'name' must hold a list of numbers per row"),
    ):
        with pytest.raises(sc.InputError, match=words):
            spec("y_", model)


def test_classes_are_named_by_the_star_the_columns_or_numbers() -> None:
    assert spec("name", "p_*_lr").names == ("dog", "cat")
    assert spec("name", ["p_dog_lr", "p_cat_lr"]).names == ("p_dog_lr", "p_cat_lr")
    assert spec("name", "list").names == ("0", "1")
    assert spec(["list"], "p_*_lr", counts=True).names == ("dog", "cat")
    with pytest.raises(sc.InputError, match=r"'name' holds one value per row.*RawVotes"):
        spec("name", "p_*_lr", counts=True)


@pytest.mark.parametrize("label", ["y_dog,y_cat", "y_*", ["y_cat", "y_dog"]])
@pytest.mark.parametrize("model", ["p_*_lr", "p_dog_lr,p_cat_lr", ["p_cat_lr", "p_dog_lr"]])
@pytest.mark.parametrize("classes", [None, ["dog", "cat"], ["cat", "dog"]])
def test_columns_are_matched_by_class_in_any_order(label: Any, model: Any, classes: Any) -> None:
    """The order of a list and that of a pattern, which is the order of the file, may differ."""
    found = spec(label, model, "list", classes=classes)
    pairs = {(y[2:5], p[2:5]) for y, p in zip(found.label, found.models[0], strict=True)}
    assert pairs == {("cat", "cat"), ("dog", "dog")}
    if classes is not None:
        assert found.label == tuple(f"y_{name}" for name in classes)


def test_given_class_names_rename_columns_in_their_order() -> None:
    found = spec("y_", "p_*_lr", classes=["one", "two"])
    assert (found.label, found.models) == (("y_cat", "y_dog"), (("p_cat_lr", "p_dog_lr"),))
    assert spec("name", "p_*_lr", classes=[7, 9]).names == ("7", "9")
    assert spec("name", "p_*_lr", classes=["hound", "cat"]).names == ("hound", "cat")
    with pytest.raises(sc.InputError, match="'cat' is the name of another column"):
        spec("name", "p_*_lr", classes=["cat", "hound"])
    for bad in ("ab", ["a"], ["a", "a"]):
        with pytest.raises(sc.InputError, match="classes must be 2 different names"):
            spec("name", "p_*_lr", classes=bad)


def test_columns_without_lists_of_numbers_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"y_true": sc.Classes("y"), "y_prob": {"model": "p"}}
    for wrong in ([["a", "b"], ["a", "b"]], [[0.5, 0.5], "a"], [0.5, 0.5], ["a", "b"]):
        with pytest.raises((sc.InputError, sc.InputTypeError), match=r"p'? must hold"):
            sc.scan(pd.DataFrame({"y": [0, 1], "p": wrong}), **options)
    empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.list_(pa.float64()))})
    pq.write_table(empty, tmp_path / "empty.parquet")
    for source in (empty, empty.to_reader(), tmp_path / "empty.parquet"):
        with pytest.raises(sc.InputError, match="'p' must hold lists of two or more classes"):
            sc.scan(source, **options)


def test_many_classes_are_summed_on_a_coarser_grid(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(120, 0.1), 6_000)
    number = rng.integers(0, 120, 6_000)
    frame = pd.DataFrame(p, columns=[f"p_{k}" for k in range(120)]).assign(name=number)
    frame.to_parquet(tmp_path / "wide.parquet", row_group_size=900)
    y = np.eye(120)[number]
    for source in (frame, tmp_path / "wide.parquet"):
        tables = sc.scan(source, y_true=sc.Classes("name"), y_prob={"m": "p_*"})
        assert len(tables.grid) == len(sc.Bins.grid(10, coarse=True)) < 150
        assert_same_table(tables["m"], sc.top_label_reliability(y, p), hardened=False)
        for name, table in sc.classwise_reliability(y, p).items():
            assert_same_table(tables["m", str(name)], table)


def test_set_of_many_classes_prints_its_first_and_last_tables() -> None:
    shares = np.eye(40) * 0.5 + 0.5 / 40
    names = [f"class {k}" if k else "odd\nname" for k in range(40)]
    frame = pd.DataFrame(shares, columns=[f"y_{name}" for name in names])
    frame[[f"p_{name}" for name in names]] = shares
    shown = str(sc.scan(frame, y_true=sc.Classes("y_*"), y_prob={"model": "p_*"})).splitlines()
    assert len(shown) == 2 + 25
    assert shown[14].strip() == "... 17 more"
    assert shown[3].split()[1:3] == ["odd\\nname", "0.0000"]
    assert shown[-1].split()[1:3] == ["class", "39"]


def test_bounds_are_rows_two_tables_or_a_set_of_one_model() -> None:
    frame = pd.DataFrame({"low": [0.0, 0.5], "high": [0.2, 0.5], "p": [0.1, 0.8], "q": [0.3, 0.4]})
    tables = sc.scan(frame, y_true=sc.Bounds("low", "high"), y_prob=["p", "q"])
    assert tables.about.label == "low to high"
    assert not tables.has_pairs
    one = tables.select(["q"])
    wanted = sc.smece_bounds(frame["low"], frame["high"], frame["q"])
    assert sc.smece_bounds(one) == wanted
    assert sc.smece_bounds(sc.reliability_bounds(one)) == wanted
    assert sc.smece_bounds(one["q", "low"], one["q", "high"]) == wanted
    plain = sc.scan(frame, y_true="low", y_prob="p")
    known = sc.scan(frame, y_true=sc.Bounds("low", "low"), y_prob="p")
    assert sc.smece_bounds(known) == (plain["p"].smece, plain["p"].smece)
    for arguments, options, words in (
        ((tables,), {}, r"must have one model: it has 2.*tables.select\(\['p'\]\)"),
        ((plain,), {}, "its targets are 'label'. Make it with scan"),
        ((one, [0.5]), {}, "does not take y_high"),
        ((one,), {"bins": 5}, "does not take bins"),
        ((one["q", "low"],), {}, "y_high must be the table of the upper ends"),
        (([0.5], [0.5]), {}, "got list, list, NoneType"),
        (([0.5], one["q", "high"], [0.5]), {}, "got list, Reliability, list"),
    ):
        with pytest.raises((sc.InputError, sc.InputTypeError), match=words):
            sc.smece_bounds(*arguments, **options)
