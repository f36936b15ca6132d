"""Many classes and labels known as intervals, from every source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import softcal as sc
from softcal.sources import columns, files
from softcal.sources.class_columns import Present, class_columns, class_roles, classes_of_batch
from softcal.sources.collect import read_rows
from softcal.sources.columns import ClassRoles, Roles
from softcal.table.build import tables_of_models

if TYPE_CHECKING:
    from collections.abc import Callable

PRESENT = ["y_cat", "y_dog", "p_dog_lr", "p_cat_lr", "p_cat", "q_cat", "q_bat", "name", "list"]


def _roles(label: Any, *models: Any, **options: Any) -> ClassRoles:
    present = Present(PRESENT, lambda name: 2 if name == "list" else None)
    specs = {f"m{k}": spec for k, spec in enumerate(models)}
    return class_roles(label, specs, present, **options)


def test_columns_of_classes_are_named_by_a_list_a_pattern_or_a_prefix() -> None:
    assert class_columns("y_", PRESENT).classes == ("cat", "dog")
    roles = _roles("y_", "p_*_lr", "p_cat_lr, p_dog_lr", ["p_cat_lr", "p_dog_lr"][::-1], "list")
    assert roles == ClassRoles(
        ("cat", "dog"),
        "shares",
        ("y_cat", "y_dog"),
        (("p_cat_lr", "p_dog_lr"),) * 3 + (("list",),),
    )
    for spec, said in (
        ("y_cat", "it matches only the column of that name"),
        ("z_", "it matches none"),
        ("y_cat,y_cat", "two or more different columns"),
    ):
        with pytest.raises(sc.InputError, match=said):
            class_columns(spec, PRESENT)
    with pytest.raises(sc.InputError, match="one column per class of the label, 2 in total"):
        _roles("y_", "p_cat,p_cat_lr,p_dog_lr")
    with pytest.raises(sc.InputError, match="missing dog; unknown bat"):
        _roles("y_", "q_")
    with pytest.raises(sc.InputError, match="'name' must hold a list of numbers per row"):
        _roles("y_", "name")


def test_classes_are_named_by_the_star_the_columns_or_numbers() -> None:
    assert _roles("name", "p_*_lr").names == ("dog", "cat")
    assert _roles("name", ["p_dog_lr", "p_cat_lr"]).names == ("p_dog_lr", "p_cat_lr")
    assert _roles("name", "list") == ClassRoles(("0", "1"), "names", ("name",), (("list",),))
    assert _roles(["list"], "p_*_lr", counts=True).names == ("dog", "cat")
    assert _roles("list", ["list"]).names == ("0", "1")


def test_lists_of_columns_are_matched_by_class_like_patterns() -> None:
    """The order of a list and that of a pattern, which is the order of the file, may differ."""
    for label in ("y_dog,y_cat", "y_*", ["y_cat", "y_dog"]):
        for model in ("p_*_lr", "p_dog_lr,p_cat_lr", ["p_cat_lr", "p_dog_lr"]):
            for classes in (None, ["dog", "cat"]):
                found = _roles(label, model, "list", classes=classes)
                pairs = {
                    (y[2:5], p[2:5]) for y, p in zip(found.label, found.models[0], strict=True)
                }
                assert pairs == {("cat", "cat"), ("dog", "dog")}
                if classes is not None:
                    assert found.label == ("y_dog", "y_cat")
    assert _roles("y_dog,y_cat", "q_cat,q_bat").models == (("q_cat", "q_bat"),)


def test_given_class_names_reorder_matching_patterns_and_rename_others() -> None:
    same = _roles("y_", "p_*_lr", "list", classes=["dog", "cat"])
    assert same.names == ("dog", "cat")
    assert same.label == ("y_dog", "y_cat")
    assert same.models == (("p_dog_lr", "p_cat_lr"), ("list",))
    turned = _roles("y_", "p_*_lr", classes=["one", "two"])
    assert (turned.label, turned.models) == (("y_cat", "y_dog"), (("p_cat_lr", "p_dog_lr"),))
    new = _roles("name", "p_*_lr", classes=[7, 9])
    assert new.names == ("7", "9")
    assert new.models == (("p_dog_lr", "p_cat_lr"),)
    assert _roles("name", "p_*_lr", classes=["hound", "cat"]).names == ("hound", "cat")
    with pytest.raises(sc.InputError, match="'cat' is the name of another column"):
        _roles("name", "p_*_lr", classes=["cat", "hound"])
    for bad in ("ab", ["a"], ["a", "a"]):
        with pytest.raises(sc.InputError, match="classes must be 2 different names"):
            _roles("name", "p_*_lr", classes=bad)


def test_a_class_called_top_is_refused_with_the_remedy() -> None:
    with pytest.raises(sc.InputError, match=r"no class may be named 'top'.*classes= \(--classes"):
        _roles("y_", "p_*_lr", classes=["top", "cat"])
    with pytest.raises(sc.InputError, match="and rename that class in the column of labels"):
        _roles("name", "p_*_lr", classes=["top", "cat"])


def test_counts_of_votes_need_a_column_per_class() -> None:
    assert _roles("y_", "p_*_lr", counts=True).kind == "counts"
    with pytest.raises(sc.InputError, match=r"'name' holds one value per row.*from_long"):
        _roles("name", "p_*_lr", counts=True)


ROWS = {"y_a": [0.5], "y_b": [0.5], "p_a": [0.25], "p_b": [0.75], "t": ["x"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"y_prob": "p_a"}, "pass one of y_true, vote_counts .*: got 0 of them"),
        ({"y_true": "y_a", "vote_counts": "y_*", "y_prob": {"m": "p_*"}}, "got 2 of them"),
        ({"y_true": ["y_a", "y_b"], "y_prob": "p_a"}, "several columns in y_true needs"),
        ({"y_true": "y_a", "y_prob": "p_a", "classes": ["a"]}, "classes needs"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": {"m": "p_*"}}, "needs one prediction"),
        ({"label_bounds": "y_a", "y_prob": "p_a"}, "label_bounds must be two columns"),
        ({"label_bounds": ("y_a", "p_a"), "y_prob": "p_a"}, "both are 'p_a'"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": "p_a", "n_votes": 3}, "leave n_votes out"),
        ({"label_bounds": ("y_a", "y_b"), "y_prob": "p_a", "groups": "t"}, "leave groups out"),
        ({"y_true": "y_*", "y_prob": {}}, "y_prob must name at least one column"),
        ({"y_true": "y_*", "y_prob": {"m": "y_*"}}, "different columns: both are 'y_a'"),
        ({"y_true": "y_*", "y_prob": {"m": "p_*", "k": "p_"}}, "'m' and 'k' have the same"),
        ({"vote_counts": "y_*", "y_prob": {"m": "p_*"}, "n_votes": 3}, "leave n_votes out"),
    ],
)
def test_contradicting_arguments_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(sc.InputError, match=said):
        sc.scan(pd.DataFrame(ROWS), **options)


@pytest.mark.parametrize("options", [{"y_true": "y_*", "y_prob": {3: "p_*"}}])
def test_names_other_than_text_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(sc.InputTypeError, match="must be the name of a column, as text"):
        sc.scan(pd.DataFrame(ROWS), **options)


def test_targets_of_classes_and_bounds() -> None:
    found = ClassRoles(("a", "b"), "shares", ("y_a", "y_b"), (("p_a", "p_b"),))
    assert Roles("y_*", ("m",), classes=found).targets == ("top", "a", "b")
    assert Roles("l to h", ("m",), bounds=("l", "h")).targets == ("low", "high")
    assert Roles("y", ("m",)).targets == ("label",)


# One fixture through every source: ties, edges, weights of 0, hostile names

NAMES = ('cät, "é"', "b'b", "c *_ c")
SIZE = 240
MODELS = ("m", 'k, "k"')


def _fixture() -> dict[str, Any]:
    rng = np.random.default_rng(15)
    p = rng.dirichlet(np.ones(3), SIZE)
    p[:40] = [0.4, 0.4, 0.2]  # a tie: the first class is the predicted one
    p[40:80] = [0.1, 0.3, 0.6]  # on the edges of bins
    p[80:90] = [0.0, 1.0, 0.0]
    q = rng.dirichlet(np.ones(3), SIZE)
    votes = rng.multinomial(rng.integers(1, 6, SIZE)[:, None][:, 0], [0.5, 0.3, 0.2])
    number = rng.integers(0, 3, SIZE)
    return {
        "p": p,
        "q": q,
        "votes": votes,
        "shares": rng.dirichlet([0.3, 0.3, 0.3], SIZE),
        "number": number,
        "name": np.array(NAMES)[number],
        "w": rng.integers(0, 3, SIZE) / 2.0,
        "m": rng.choice([1, 100, 101], SIZE),
        "segment": rng.choice(["u", "v, w"], SIZE),
    }


DATA = _fixture()


def _frame() -> pa.Table:
    found: dict[str, Any] = {name: DATA[name] for name in ("number", "name", "w", "m", "segment")}
    for name in ("p", "q", "votes", "shares"):
        found |= {f"{name}_{c}": DATA[name][:, k] for k, c in enumerate(NAMES)}
        found[f"list {name}"] = list(DATA[name])
    found["whole"] = DATA["number"].astype(float)
    found["fixed"] = pa.FixedSizeListArray.from_arrays(DATA["p"].ravel(), 3)
    found["kind"] = pa.array(DATA["name"]).dictionary_encode()
    return pa.table(found)


FRAME = _frame()
PLAIN = [f.name for f in FRAME.schema if not pa.types.is_nested(f.type)]


def _pandas(_folder: Path) -> Any:
    return FRAME.to_pandas()


def _pandas_of_arrow(_folder: Path) -> Any:
    return FRAME.to_pandas(types_mapper=pd.ArrowDtype)


def _polars(_folder: Path) -> Any:
    return pl.from_arrow(FRAME)


def _arrow(_folder: Path) -> Any:
    return FRAME


def _stream(_folder: Path) -> Any:
    empty = FRAME.schema.empty_table().to_batches()
    batches = [*empty, *FRAME.to_batches(max_chunksize=70)]
    return pa.RecordBatchReader.from_batches(FRAME.schema, batches)


def _dataset(folder: Path) -> Any:
    pq.write_table(FRAME, folder / "rows.parquet")
    return pa.dataset.dataset(folder)


def _parquet(folder: Path) -> Any:
    pq.write_table(FRAME.slice(0, 100), folder / "a.parquet", row_group_size=33)
    pq.write_table(FRAME.slice(100), folder / "b.parquet")
    return folder


def _csv(folder: Path) -> Any:
    plain = FRAME.select(PLAIN)
    plain = plain.set_column(plain.column_names.index("kind"), "kind", FRAME["name"])
    for name in set(FRAME.column_names) - set(PLAIN):  # as text, because CSV files have no lists
        plain = plain.append_column(name, pa.array(map(str, FRAME[name].to_pylist())))
    pa.csv.write_csv(plain.slice(0, 100), folder / "a.csv")
    pa.csv.write_csv(plain.slice(100), folder / "b.csv")
    return [folder / "a.csv", folder / "b.csv"]


def _json(folder: Path) -> Any:
    lines = [json.dumps(row) for row in FRAME.to_pylist()]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return folder / "rows.jsonl"


def _feather(folder: Path) -> Any:
    path = folder / "rows.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, FRAME.schema) as writer:
        writer.write_table(FRAME, max_chunksize=100)
    return path


SOURCES = [
    _pandas, _pandas_of_arrow, _polars, _arrow, _stream, _dataset, _parquet, _csv, _json, _feather,
]  # fmt: skip

COLUMNS = {"m": "p_*", MODELS[1]: [f"q_{name}" for name in NAMES]}
LISTS = {"m": "list p", MODELS[1]: ["list q"]}
ONE_HOT = np.eye(3)[DATA["number"]]
VOTES = sc.Votes(DATA["votes"])

# The options of a label, the same label as an array, and the resulting class names.
LABELS: dict[str, tuple[dict[str, Any], Any, tuple[str, ...]]] = {
    "shares": ({"y_true": "shares_*", "y_prob": COLUMNS}, DATA["shares"], NAMES),
    "list": ({"y_true": "list shares", "y_prob": LISTS}, DATA["shares"], ("0", "1", "2")),
    "fixed list": (
        {"y_true": "shares_*", "y_prob": {"m": "fixed", MODELS[1]: "list q"}},
        DATA["shares"],
        NAMES,
    ),
    "counts": ({"vote_counts": "votes_", "y_prob": COLUMNS}, VOTES, NAMES),
    "list of counts": ({"vote_counts": ["list votes"], "y_prob": LISTS}, VOTES, ("0", "1", "2")),
    "name": ({"y_true": "name", "y_prob": COLUMNS}, ONE_HOT, NAMES),
    "category": ({"y_true": "kind", "y_prob": LISTS, "classes": NAMES}, ONE_HOT, NAMES),
    "number": ({"y_true": "number", "y_prob": LISTS}, ONE_HOT, ("0", "1", "2")),
    "whole": ({"y_true": "whole", "y_prob": LISTS}, ONE_HOT, ("0", "1", "2")),
    "numbers for columns": (
        {"y_true": "whole", "y_prob": COLUMNS, "classes": [0, 1, 2]},
        ONE_HOT,
        ("0", "1", "2"),
    ),
}


def _same(found: sc.Reliability, wanted: sc.Reliability, *, top: bool = False) -> None:
    """Compare all sums; for the predicted class, a set hardens labels to the majority class."""
    for name, sums in vars(wanted.sums).items():
        if not (top and name.startswith("hard_")):
            np.testing.assert_allclose(
                getattr(found.sums, name), sums, rtol=1e-12, atol=1e-12, err_msg=name
            )


def _same_as_arrays(
    tables: sc.TableSet, label: Any, names: tuple[str, ...], rows: npt.NDArray[np.bool_], **of: Any
) -> None:
    """Compare a set with the functions of arrays on a part of the rows."""
    y = sc.Votes(label.counts[rows]) if isinstance(label, sc.Votes) else label[rows]
    about = {name: values[rows] for name, values in of.items()}
    assert tables.targets == ("top", *names)
    models = dict(zip(MODELS, (DATA["p"][rows], DATA["q"][rows]), strict=True))
    for model, p in models.items():
        _same(tables[model], sc.top_label_reliability(y, p, **about), top=True)
        by_class = sc.classwise_reliability(y, p, **about)
        for name, table in zip(names, by_class.values(), strict=True):
            _same(tables[model, name], table)
    joint = tables.pair(*MODELS)
    wanted = tables_of_models(y, models, bins=10, **about).pair(*MODELS)
    np.testing.assert_allclose(joint.cross, wanted.cross, rtol=1e-12, atol=1e-12)
    assert joint.differing == wanted.differing
    np.testing.assert_allclose(joint.brier, wanted.brier, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(joint.log_loss, wanted.log_loss, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("source", SOURCES)
def test_classes_of_every_source_are_those_of_arrays(
    source: Callable[[Path], Any], label: str, tmp_path: Path
) -> None:
    options, y, names = LABELS[label]
    if source is _csv and any(
        "list" in str(each) or "fixed" in str(each) for each in options.values()
    ):
        with pytest.raises(sc.InputError, match="must hold a list of numbers per row"):
            sc.scan(source(tmp_path), **options)
        return
    every = np.ones(SIZE, dtype=bool)
    votes: dict[str, Any] = {} if isinstance(y, sc.Votes) else {"n_votes": "m"}
    more = {name: DATA[column] for name, column in votes.items()}
    _same_as_arrays(sc.scan(source(tmp_path), **options, **votes), y, names, every, **more)
    weighted = sc.scan(source(tmp_path), **options, sample_weight="w", by="segment")
    weighted.save(tmp_path / "set.softcal")
    assert sc.load(tmp_path / "set.softcal") == weighted
    assert weighted.about.rows_without_weight == int((DATA["w"] == 0).sum())
    _same_as_arrays(weighted, y, names, every, sample_weight=DATA["w"])
    for value, part in weighted.by("segment").items():
        _same_as_arrays(part, y, names, DATA["segment"] == value, sample_weight=DATA["w"])


# Labels known as intervals


@pytest.mark.parametrize("source", SOURCES)
def test_bounds_of_every_source_are_those_of_arrays(
    source: Callable[[Path], Any], tmp_path: Path
) -> None:
    low, high = f"shares_{NAMES[0]}", "high"
    ends = DATA["shares"][:, 0], np.minimum(DATA["shares"][:, 0] + DATA["q"][:, 1], 1)
    whole = FRAME
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "FRAME", whole.append_column(high, pa.array(ends[1])))
        patch.setitem(globals(), "PLAIN", [*PLAIN, high])
        tables = sc.scan(
            source(tmp_path), label_bounds=(low, high), y_prob=[f"p_{name}" for name in NAMES[:2]],
            by="segment", sample_weight="w",
        )  # fmt: skip
    assert tables.targets == ("low", "high")
    assert tables.about.label == f"{low} to high"
    assert not tables.has_pairs
    tables.save(tmp_path / "set.softcal")
    assert sc.load(tmp_path / "set.softcal") == tables
    for k, model in enumerate(tables):
        rows = (*ends, DATA["p"][:, k])
        wanted = sc.reliability_bounds(*rows, sample_weight=DATA["w"])
        for end in ("low", "high"):
            _same(tables[model, end], getattr(wanted, end))
        found = sc.smece_bounds(tables[model, "low"], tables[model, "high"])
        np.testing.assert_allclose(found, wanted.smece, rtol=1e-12)
        for value, part in tables.by("segment").items():
            here = DATA["segment"] == value
            alone = sc.smece_bounds(part.select([model]))
            some = sc.smece_bounds(*(each[here] for each in rows), sample_weight=DATA["w"][here])
            np.testing.assert_allclose(alone, some, rtol=1e-12)


def test_bounds_take_rows_two_tables_or_a_set_of_one_model() -> None:
    frame = pd.DataFrame({"low": [0.0, 0.5], "high": [0.2, 0.5], "p": [0.1, 0.8], "q": [0.3, 0.4]})
    tables = sc.scan(frame, label_bounds=("low", "high"), y_prob=["p", "q"])
    one = tables.select(["q"])
    wanted = sc.smece_bounds(frame["low"], frame["high"], frame["q"])
    assert sc.smece_bounds(one) == wanted
    assert sc.smece_bounds(sc.reliability_bounds(one)) == wanted
    plain = sc.scan(frame, y_true="low", y_prob="p")
    known = sc.scan(frame, label_bounds=("low", "low"), y_prob="p")
    assert sc.smece_bounds(known) == (plain["p"].smece, plain["p"].smece)
    with pytest.raises(sc.InputError, match="low must have no missing values: 1 of 2"):
        sc.scan(frame.assign(low=[0.5, None]), label_bounds=("low", "low"), y_prob="p")
    for arguments, options, said in (
        ((tables,), {}, r"must have one model: it has 2.*tables.select\(\['p'\]\)"),
        ((plain,), {}, "its targets are 'label'. Make it with scan"),
        ((one, [0.5]), {}, "does not take y_high"),
        ((one,), {"bins": 5}, "does not take bins"),
        ((one["q", "low"],), {}, "y_high must be the table of the upper ends"),
        (([0.5], [0.5]), {}, "got list, list, NoneType"),
        (([0.5], one["q", "high"], [0.5]), {}, "got list, Reliability, list"),
    ):
        with pytest.raises((sc.InputError, sc.InputTypeError), match=said):
            sc.smece_bounds(*arguments, **options)


# Errors, counted over all files


def _two_files(folder: Path, kind: str, table: pa.Table) -> list[Path]:
    paths = [folder / f"{name}.{kind}" for name in "ab"]
    for path, part in zip(paths, (table.slice(0, 2), table.slice(2)), strict=True):
        if kind == "csv":
            pa.csv.write_csv(part, path)
        else:
            pq.write_table(part, path)
    return paths


GOOD = {
    "y_a": [1.0, 0.0, 0.5, 0.5],
    "y_b": [0.0, 1.0, 0.5, 0.5],
    "p_a": [0.5, 0.5, 0.5, 0.5],
    "p_b": [0.5, 0.5, 0.5, 0.5],
    "name": ["a", "b", "a", "b"],
}
SHARES = {"y_true": "y_*", "y_prob": {"model": "p_*"}}
COUNTS = {"vote_counts": "y_*", "y_prob": {"model": "p_*"}}
NAMED = {"y_true": "name", "y_prob": {"model": "p_*"}}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        (
            {"p_b": [0.5, 0.5, 1.5, -2.0]},
            SHARES,
            r"p_b must be in \[0, 1\]: 2 of 4 values are not, the first is 1.5 in .*b\.\w+, row 1. "
            "If these are logits, pass",
        ),
        (
            {"p_a": [0.5, 0.5, 0.5, None]},
            SHARES,
            r"p_a must have no missing values: 1 of 4 are NaN or null, the first in .*b\.\w+, row 2",
        ),
        (
            {"p_a": [0.5, 0.4, 0.5, 0.25]},
            SHARES,
            r"rows of model must sum to 1 within 0.001: 2 of 4 do not, the first sums to 0.9 in "
            r".*a\.\w+, row 2",
        ),
        (
            {"y_a": [1.0, 0.0, 0.5, 0.25]},
            SHARES,
            r"rows of y_\* must sum to 1 within 0.001: 1 of 4 do not, the first sums to 0.75 in",
        ),
        ({}, COUNTS, r"y_a must be whole numbers of 0 or more: 2 of 4 .* 0.5 in .*b\.\w+, row 1"),
        (
            {"y_a": [1, 0, 0, 1], "y_b": [1, 2, 0, 1]},
            COUNTS,
            r"rows of y_\* must have one vote or more: 1 of 4 have none, .* in .*b\.\w+, row 1",
        ),
        (
            {"name": ["a", "b", "c", "d"]},
            NAMED,
            r"name must be one of the 2 classes 'a', 'b': 2 of 4 values are not, the first is 'c' in "
            r".*b\.\w+, row 1. .* classes= \(--classes\)",
        ),
        ({"name": ["a", "b", None, "b"]}, NAMED, "name must have no missing values: 1 of 4"),
        ({"w": [1.0, 1.0, -1.0, 1.0]}, SHARES | {"sample_weight": "w"}, "w must be 0 or more: 1"),
        (
            {"w": [1.0, 1.0, -1.0, 1.0], "name": ["a", "b", "a", "a"]},
            SHARES | {"sample_weight": "w", "by": "name"},
            "w must be 0 or more: 1",
        ),
        (
            {},
            {"label_bounds": ("y_a", "p_a"), "y_prob": "p_b"},
            r"y_a must be at most p_a: 1 of 4 rows are not, the first is 1.0 with p_a = 0.5 in "
            r".*a\.\w+, row 1. Swap the ends",
        ),
        (
            {"y_a": [0.0, 0.0, 2.0, 0.5]},
            {"label_bounds": ("y_a", "p_a"), "y_prob": "p_b"},
            r"y_a must be in \[0, 1\]: 1 of 4",
        ),
    ],
)
def test_values_that_break_a_rule_are_counted_over_all_files(
    changed: dict[str, Any], options: dict[str, Any], said: str, kind: str, tmp_path: Path
) -> None:
    paths = _two_files(tmp_path, kind, pa.table(GOOD | changed))
    with pytest.raises(sc.InputError, match=said):
        sc.scan(paths, **options)


@pytest.mark.parametrize("inside", [pa.list_(pa.float64()), pa.large_list(pa.float32())])
@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (
            [[0.5, 0.5], [1, 0], [1], [1, 0, 0]],
            r"p must hold lists of 2 values, one per class: 2 of",
        ),
        ([[0.5, 0.5], None, [1, 0], [1, 0]], "p must have no missing values: 1 of 4"),
        (
            [[0.5, 0.5], [1, 0], [None, 1], [1, 0]],
            "values of p must have no missing values: 1 of 8 are NaN or null, the first at position 2",
        ),
        (
            [[0.5, 0.5], [1, 0], [1, 0], [0, 2]],
            r"values of p must be in \[0, 1\]: 1 of 8 values is not, the first is 2.0 at position 3",
        ),
        (
            [[0.5, 0.5], [1, 0.5], [1, 0], [0, 1]],
            "rows of model must sum to 1 within 0.001: 1 of 4 do not, the first sums to 1.5",
        ),
    ],
)
def test_lists_that_break_a_rule_are_refused(lists: list[Any], said: str, inside: Any) -> None:
    table = pa.table({"y": ["0", "1", "0", "1"], "p": pa.array(lists, inside)})
    with pytest.raises(sc.InputError, match=said):
        sc.scan(table, y_true="y", y_prob={"model": "p"})


def test_columns_that_hold_no_lists_of_numbers_are_refused(tmp_path: Path) -> None:
    texts = pd.DataFrame({"y": [0, 1], "p": [["a", "b"], ["a", "b"]]})
    with pytest.raises(sc.InputTypeError, match=r"p must hold real numbers: .* list<"):
        sc.scan(texts, y_true="y", y_prob={"model": "p"})
    mixed = pd.DataFrame({"y": [0, 1], "p": [[0.5, 0.5], "a"]})
    with pytest.raises(sc.InputTypeError, match="p must hold values of one simple type"):
        sc.scan(mixed, y_true="y", y_prob={"model": "p"})
    things = pd.DataFrame({"y": [object()], "p_a": [0.5], "p_b": [0.5]})
    with pytest.raises(sc.InputTypeError, match="y must hold values of one simple type"):
        sc.scan(things, y_true="y", y_prob={"model": "p_*"})
    empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.list_(pa.float64()))})
    pq.write_table(empty, tmp_path / "empty.parquet")
    for source in (empty, empty.to_reader(), tmp_path / "empty.parquet"):
        with pytest.raises(sc.InputError, match="'p' must hold lists of two or more classes"):
            sc.scan(source, y_true="y", y_prob={"model": "p"})
    pq.write_table(pa.table({"y": [0], "p": [0.5]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"y": [0], "p": [[0.5, 0.5]]}), tmp_path / "first.parquet")
    with pytest.raises(sc.InputTypeError, match="p must hold lists of real numbers, one per class"):
        sc.scan(
            [tmp_path / "first.parquet", tmp_path / "other.parquet"],
            y_true="y", y_prob={"model": "p"},
        )  # fmt: skip


def test_a_pattern_without_a_mapping_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        sc.InputError, match=r"no column 'p_\*'.*pass it as y_prob=\{'model': 'p_\*'"
    ):
        sc.scan(pd.DataFrame(ROWS), y_true="y_a", y_prob="p_*")


def test_lists_of_integers_may_have_fractions_later_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", 64)
    lines = ['{"y": 1, "p": [0, 1]}'] * 9 + ['{"y": 0, "p": [0.25, 0.75]}']
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    tables = sc.scan(tmp_path / "rows.jsonl", y_true="y", y_prob={"m": "p"})
    assert tables["m", "1"].smece == 0.075
    assert tables["m"].n == 10


# Many classes, in bounded memory


def test_wide_rows_are_split_and_give_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(120, 0.1), 60_000)
    number = rng.integers(0, 120, 60_000)
    frame = pd.DataFrame(p, columns=[f"p_{k}" for k in range(120)]).assign(name=number)
    tables = sc.scan(frame, y_true="name", y_prob={"m": "p_*"})
    wanted = Roles("", (), classes=class_roles("name", {"m": "p_*"}, in_frame_of(frame))).wanted
    assert [size for _, size in wanted.cut(60_000)] == [17331, 17331, 17331, 8007]
    assert len(tables.grid) == len(sc.Bins.grid(10, coarse=True)) < 150
    y = np.eye(120)[number]
    _same(tables["m"], sc.top_label_reliability(y, p), top=True)
    for name, table in sc.classwise_reliability(y, p).items():
        _same(tables["m", str(name)], table)
    path = tmp_path / "wide.parquet"
    frame.iloc[:2000].to_parquet(path, row_group_size=900)
    some = sc.scan(frame.iloc[:2000], y_true="name", y_prob={"m": "p_*"})
    # First some columns of whole row groups, then batches of all columns.
    for most in (files._WIDE_VALUES, 0):
        monkeypatch.setattr(files, "_WIDE_VALUES", most)
        monkeypatch.setattr(files, "_GROUP_VALUES", most)
        monkeypatch.setattr(files, "BATCH_VALUES", 121 * 400)
        found = sc.scan(path, y_true="name", y_prob={"m": "p_*"})
        for target in some.targets:
            _same(found["m", target], some["m", target])


@pytest.mark.parametrize("source", SOURCES)
def test_small_parts_of_large_batches_give_the_same_tables(
    source: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "BATCH_VALUES", 250)
    monkeypatch.setattr(files, "BATCH_VALUES", 250)
    label = "shares" if source is _csv else "fixed list"
    options, y, names = LABELS[label]
    _same_as_arrays(sc.scan(source(tmp_path), **options), y, names, np.ones(SIZE, dtype=bool))


def test_rows_of_classes_are_read_whole_from_files_whose_lists_differ(tmp_path: Path) -> None:
    single = pa.table({"y": ["a"], "p": pa.array([[0.25, 0.75]], pa.list_(pa.float32(), 2))})
    pq.write_table(single, tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text('{"y": "b", "p": [0.5, 0.5]}\n')
    found = ClassRoles(("a", "b"), "names", ("y",), (("p",),))
    roles = Roles("y", ("m",), classes=found)
    rows = classes_of_batch(read_rows(tmp_path, roles).columns, roles, found)
    assert rows is not None
    assert rows[0].y_true.tolist() == [[1, 0], [0, 1]]
    assert rows[0].y_prob.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def in_frame_of(frame: Any) -> Present:
    return Present(list(frame.columns), lambda _name: None)


def test_groups_are_supported_with_classes() -> None:
    frame = FRAME.append_column("group", pa.array(np.arange(SIZE) // 4))
    tables = sc.scan(frame, y_true="shares_*", y_prob=COLUMNS, groups="group")
    for k, name in enumerate(NAMES):
        wanted = sc.reliability(
            DATA["shares"][:, k], DATA["p"][:, k], groups=np.arange(SIZE) // 4, bins=10
        )
        _same(tables["m", name], wanted)
        found, alone = sc.smece_interval(tables["m", name]), sc.smece_interval(wanted)
        np.testing.assert_allclose((found.low, found.high), (alone.low, alone.high), rtol=1e-12)


def test_a_set_of_many_classes_prints_its_first_and_last_tables() -> None:
    shares = np.eye(40) * 0.5 + 0.5 / 40
    names = [f"class {k}" if k else "odd\nname" for k in range(40)]
    frame = pd.DataFrame(shares, columns=[f"y_{name}" for name in names])
    frame[[f"p_{name}" for name in names]] = shares
    shown = str(sc.scan(frame, y_true="y_*", y_prob={"model": "p_*"})).splitlines()
    assert len(shown) == 2 + 25
    assert shown[14].strip() == "... 17 more"
    assert shown[3].split()[1:3] == ["odd\\nname", "0.0000"]
    assert shown[-1].split()[1:3] == ["class", "39"]


def test_lists_of_another_length_are_refused_with_a_number_of_votes() -> None:
    table = pa.table({"y": [[0.5, 0.5], [1.0]], "p": [[0.5, 0.5], [0.3, 0.7]], "m": [2, 2]})
    with pytest.raises(sc.InputError, match="y must hold lists of 2 values, one per class: 1 of 2"):
        sc.scan(table, y_true="y", y_prob={"one": "p"}, n_votes="m")
