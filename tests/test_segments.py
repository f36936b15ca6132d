"""`audit` and `softcal audit`: segments that are off, with p-values over all of them together."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import softcal_here
from hypothesis import given, settings
from hypothesis import strategies as st

import softcal as sc
from softcal.inference import segments as module
from softcal.report.audit import write_audit_page
from softcal.scanning.ranges import Numbers, ranges_of
from softcal.scanning.source import Session, opened
from softcal.table.blocks import BLOCKS

if TYPE_CHECKING:
    from pathlib import Path

BY = ["device", "country"]


def rows(seed: int = 0, n: int = 4000, off: float = 0.0, *, votes: int = 1) -> pd.DataFrame:
    """Return calibrated rows, except that phones in FR are too high by `off`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"p": rng.uniform(0.2, 0.8, size=n)})
    frame["device"] = rng.choice(["phone", "laptop"], size=n)
    frame["country"] = rng.choice(["DE", "FR", "US"], size=n)
    there = (frame.device == "phone") & (frame.country == "FR")
    frame["y"] = rng.binomial(votes, np.clip(frame.p - off * there, 0, 1)) / votes
    return frame


def audited(source: Any, by: Any = BY, **options: Any) -> Any:
    return sc.audit(source, **described(**options), by=by)


def described(n_votes: int | None = None, **options: Any) -> dict[str, Any]:
    label = "y" if n_votes is None else sc.Shares("y", votes=n_votes)
    return {"y_true": label, "y_prob": "p", "draws": 200, **options}


def by_where(found: Any) -> dict[tuple[tuple[str, str | None], ...], Any]:
    return {tuple(each.where.items()): each for each in found.segments}


def test_segments_equal_the_rows_they_name() -> None:
    frame = rows(off=0.2)
    frame.loc[::7, "country"] = None
    frame["w"] = np.random.default_rng(1).exponential(size=len(frame))
    found = audited(frame, sample_weight="w", min_rows=1)
    assert len(found.segments) == 2 + 4 + 2 * 4
    for each in (found.overall, *found.segments):
        mine = np.ones(len(frame), dtype=bool)
        for column, value in each.where.items():
            mine &= frame[column].isna() if value is None else frame[column] == value
        part = frame[mine]
        assert each.n == len(part)
        assert each.gap == pytest.approx(np.average(part.p - part.y, weights=part.w), abs=1e-12)
    assert "country missing" in {each.name for each in found.segments}


@pytest.mark.parametrize("votes", [1, 4])
def test_planted_segment_is_found_first(votes: int) -> None:
    known: dict[str, Any] = {"n_votes": votes} if votes > 1 else {}
    found = audited(rows(off=0.2, votes=votes), **known)
    worst = found.segments[0]
    assert worst.where == {"device": "phone", "country": "FR"}
    assert worst.direction == "too high"
    assert worst.sentence.startswith("device = phone and country = FR: ")
    assert worst.sentence.endswith(f" percentage points too high, {worst.n} rows")
    assert worst.pvalue == 1 / 201
    assert worst.low < 0.2 < worst.high
    assert found.found[0] is worst
    assert found.explained.segments == min(len(found.found), 5)
    assert found.explained.error > 0.9
    assert f"of {len(found.segments)} segments are off" in found.summary


def test_predictions_that_are_too_low_are_named_as_such() -> None:
    worst = audited(rows(off=-0.2)).segments[0]
    assert worst.direction == "too low"
    assert worst.high <= 0


@given(
    st.sampled_from(["outcomes", "votes", "soft", "skewed", "rare", "certain"]),
    st.floats(-0.3, 0.3), st.integers(30, 600), st.integers(1, 400), st.floats(0.5, 0.99),
    st.sampled_from([0.0, 1.0]), st.integers(0, 10**6),
)  # fmt: skip
def test_interval_excludes_zero_exactly_where_the_pvalue_rejects(
    kind: str, off: float, n: int, draws: int, level: float, spread: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"p": rng.uniform(0.0, 1.0, size=n)})
    if kind == "rare":
        frame["p"] = rng.beta(0.3, 20, size=n)
    if kind == "certain":
        frame["p"] = np.round(frame.p)
    frame["s"] = rng.integers(0, 4, size=n)
    frame["t"] = rng.integers(0, 3, size=n)
    mean = np.clip(frame.p - off * (frame.s == 0), 1e-9, 1 - 1e-9)
    frame["y"] = {
        "outcomes": rng.binomial(1, mean),
        "votes": rng.binomial(4, mean) / 4,
        "skewed": np.clip(mean + 0.1 * (rng.uniform(size=n) < 0.1) - 0.01, 0, 1),
    }.get(kind, rng.beta(5 * mean, 5 * (1 - mean)))
    frame["w"] = np.exp(spread * rng.normal(size=n))
    found = audited(
        frame, ["s", "t"], sample_weight="w", min_rows=3, draws=draws, level=level,
        n_votes=4 if kind == "votes" else None,
    )  # fmt: skip
    for each in (found.overall, *found.segments):
        assert -1 <= each.low <= each.gap <= each.high <= 1
        assert (each.low <= 0 <= each.high) == (each.pvalue > 1 - level)


def test_segments_are_in_order_of_the_gap_that_is_certain() -> None:
    found = audited(rows(off=0.3))
    certain = [max(each.low, -each.high) for each in found.found]
    assert certain == sorted(certain, reverse=True)
    rest = [each.pvalue for each in found.segments[len(found.found) :]]
    assert rest == sorted(rest)
    assert all(each.pvalue <= 0.05 for each in found.found)
    assert all(pvalue > 0.05 for pvalue in rest)


def test_labels_equal_to_predictions_are_not_found() -> None:
    frame = rows()
    frame["y"] = frame.p
    found = audited(frame)
    assert found.found == ()
    assert found.explained is None
    assert found.summary.startswith("Nothing found: chance explains the gaps of all 11 segments")
    assert {each.gap for each in found.segments} == {0.0}
    assert {each.pvalue for each in found.segments} == {1.0}
    assert found.overall.sentence == "all rows: no gap, 4,000 rows"
    assert "Nothing found" in str(found)
    assert "segment" in found._repr_html_()


def test_labels_that_contradict_certain_predictions_are_found() -> None:
    frame = rows()
    frame["p"] = frame.y
    frame.loc[(frame.device == "phone") & (frame.country == "FR"), "p"] = 0.0
    for soft in (False, True):
        if soft:  # one row whose label is neither 0 nor 1
            frame.loc[0, ["p", "y"]] = 0.5
        found = audited(frame)
        assert found.segments[0].where == {"device": "phone", "country": "FR"}
        assert found.segments[0].pvalue == 1 / 201


def test_certain_soft_predictions_that_are_right_are_not_found() -> None:
    frame = rows()
    frame["p"] = (frame.p > 0.5) * 1.0
    frame["y"] = frame.p
    frame.loc[0, "y"] = 0.5
    found = audited(frame)
    assert found.overall.n == 4000


def test_tables_and_rows_give_the_same_audit(tmp_path: Path) -> None:
    frame = rows(off=0.1, votes=3)
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    tables = sc.scan(frame, y_true=sc.Shares("y", votes=3), y_prob="p", by=BY)
    tables.save(tmp_path / "saved.softcal")
    half = [sc.scan(frame[k::2], y_true=sc.Shares("y", votes=3), y_prob="p", by=BY) for k in (0, 1)]
    expected = by_where(audited(frame, n_votes=3))
    for source in (tables, sc.load(tmp_path / "saved.softcal"), half[0] + half[1]):
        found = by_where(sc.audit(source, by=BY, draws=200))
        assert found.keys() == expected.keys()
        for key, each in found.items():
            assert each.gap == pytest.approx(expected[key].gap, abs=1e-12)
            assert each.low == pytest.approx(expected[key].low, abs=1e-9)
    from_file = sc.audit(path, y_true=sc.Shares("y", votes=3), y_prob="p", by=BY, draws=200)
    assert from_file.segments[0].where == audited(frame, n_votes=3).segments[0].where
    assert sc.audit(tables, by="country", draws=50).by == ("country",)
    assert sc.audit(tables, draws=50).by == tuple(BY)


def test_scale_of_weights_does_not_matter() -> None:
    frame = rows(off=0.1)
    frame["w"] = np.random.default_rng(1).integers(1, 4, size=len(frame))
    frame["w8"] = 8 * frame.w
    first, second = (audited(frame, sample_weight=name) for name in ("w", "w8"))
    for a, b in zip(first.segments, second.segments, strict=True):
        assert a.where == b.where
        assert (b.gap, b.low, b.high) == pytest.approx((a.gap, a.low, a.high), abs=1e-12)
        assert a.pvalue == b.pvalue


@pytest.mark.parametrize("labels", ["hit", "soft"])
@pytest.mark.parametrize("prob", [0.5, 0.1])
def test_pvalues_do_not_depend_on_row_order_or_scale_of_weights(labels: str, prob: float) -> None:
    rng = np.random.default_rng(0)
    n = 400
    rows = pd.DataFrame({"s": rng.choice(list("abcd"), n), "t": rng.choice(list("xyz"), n)})
    rows["p"] = prob
    rows["y"] = rng.random(n) < prob if labels == "hit" else rng.integers(1, 10, n) / 10
    rows["w"] = rng.choice([0.1, 0.3, 0.7], n)

    def audited(rows: pd.DataFrame) -> list[tuple[Any, float]]:
        found = sc.audit(
            rows, y_true="y", y_prob="p", by=["s", "t"], sample_weight="w", min_rows=5, draws=500
        )
        return [(each.where, each.pvalue) for each in found.segments]

    expected = audited(rows)
    for order in range(8):
        assert audited(rows.sample(frac=1, random_state=order)) == expected
    for scale in (2.0, 2.0**-40, 3.0, 1e12, 1e-12):
        assert audited(rows.assign(w=rows["w"] * scale)) == expected


def test_observed_ties_count_as_at_least_as_extreme() -> None:
    """Two rows of 0.5: every outcome has a gap of 0 or 0.5, and half of them have 0.5."""
    rows = pd.DataFrame({"s": ["a", "a"], "p": [0.5, 0.5], "y": [1, 1]})
    found = sc.audit(rows, y_true="y", y_prob="p", by=["s"], min_rows=1, draws=4000)
    assert found.overall.pvalue == pytest.approx(0.5, abs=0.03)


def test_seed_fixes_the_result_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows(off=0.05)
    assert audited(frame, rng=3).segments == audited(frame, rng=3).segments
    whole = by_where(audited(frame))
    monkeypatch.setattr(module, "_NUMBERS", 1000)
    for key, each in by_where(audited(frame)).items():
        assert each.pvalue == pytest.approx(whole[key].pvalue, abs=0.15)


def test_depth_and_small_segments_limit_what_is_tested() -> None:
    frame = rows()
    frame["language"] = frame.country.map({"DE": "de", "FR": "fr", "US": "en"})  # same rows
    frame["always"] = "x"
    by = [*BY, "language", "always"]
    assert len(audited(frame, by=by, depth=1).segments) == 2 + 3 + 3
    deep = audited(frame, by=by, depth=4)
    assert all("always" not in each.where for each in deep.segments)
    assert {"country", "language"} not in [set(each.where) for each in deep.segments]
    few = audited(frame, min_rows=1000)
    assert all(each.n >= 1000 for each in few.segments)
    assert few.too_small == 6
    assert "6 segments of fewer than 1000 rows were not tested." in few.note
    one = audited(frame.iloc[: frame.index[frame.country == "DE"][1]], by="country", min_rows=2)
    assert "1 segment of fewer than 2 rows was not tested." in one.note


@pytest.mark.parametrize("kind", ["outcomes", "votes", "shares"])
def test_familywise_error_holds_for_rare_events(kind: str) -> None:
    false = 0
    for seed in range(30):
        rng = np.random.default_rng([3, seed])
        frame = pd.DataFrame({"p": rng.beta(0.5, 20, size=1500)})
        for k in range(3):
            frame[f"c{k}"] = rng.integers(0, 5, size=1500)
        m = 1 if kind == "outcomes" else 4
        frame["y"] = rng.binomial(m, frame.p) / m
        known: dict[str, Any] = {"n_votes": 4} if kind == "votes" else {}
        found = audited(frame, by=["c0", "c1", "c2"], **known)
        false += bool(found.found)
    assert false <= 5  # 1.5 expected; more than 5 has a probability below 0.004


def test_long_results_are_shortened_and_escaped() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"p": np.full(3000, 0.5), "y": np.zeros(3000)})
    frame["a"] = rng.choice([f"\x1b{k}" for k in range(30)], size=3000)
    found = audited(frame, by="a")
    assert len(found.found) == 30
    assert "... 6 more" in str(found)
    assert "\x1b" not in str(found)
    assert repr(found) == "Audit(segments=30, found=30)"
    assert "The worst 5 explain" in found.summary
    assert found.overall.pvalue <= 0.05


def test_small_gaps_are_never_written_as_zero() -> None:
    small = module.Segment({"a": "b"}, 1, 0.0002, 0.0, 1.0, 1.0)
    assert small.sentence == "a = b: 0.02 percentage points too high, 1 row"


def test_summary_names_one_segment_and_leaves_out_what_is_unknown() -> None:
    found = audited(rows(off=0.2))
    first = found.segments[0]
    one = replace(found, segments=(first,), explained=module.Explained(1, 0.5, 0.25))
    assert one.summary == (
        "1 of 1 segment is off by more than chance explains. The worst one explains 50% of the "
        "error with 25% of the rows."
    )
    assert "explain " not in replace(found, explained=None).summary


def test_impossible_audits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = rows(n=200)
    frame["q"] = frame.p
    both = sc.scan(frame, y_true="y", y_prob=["p", "q"], by=BY)
    assert sc.audit(both, model="q", draws=10).model == "q"
    with pytest.raises(sc.InputError, match="pass model=, one of 'p', 'q'"):
        sc.audit(both)
    with pytest.raises(KeyError, match="no model 'r'"):
        sc.audit(both, model="r")
    tables = both.select(["p"])
    with pytest.raises(sc.InputError, match="y_prob is for rows"):
        sc.audit(tables, y_prob="p")
    with pytest.raises(sc.InputError, match="needs y_prob="):
        sc.audit(frame, y_true="y", by=BY)
    with pytest.raises(sc.InputError, match="pass by= "):
        sc.audit(frame, y_true="y", y_prob="p")
    with pytest.raises(sc.InputError, match="no segments by 'x'"):
        sc.audit(tables, by="x")
    with pytest.raises(sc.InputError, match="'device' is named twice"):
        sc.audit(tables, by=["device", "device"])
    for name in ("depth", "min_rows", "draws"):
        wrong: dict[str, Any] = {name: 0}
        with pytest.raises(
            sc.InputError, match=f"{name} must be a whole number from 1 to .*: got 0"
        ):
            sc.audit(tables, **wrong)
    with pytest.raises(sc.InputError, match="no rows"):
        sc.audit(replace(tables, blocks={"tables": BLOCKS["tables"].empty()}))
    frame["low"], frame["high"] = 0.0, 1.0
    bounds = sc.scan(frame, y_true=sc.Bounds("low", "high"), y_prob="p", by=BY)
    with pytest.raises(sc.InputError, match="these are intervals"):
        sc.audit(bounds)
    monkeypatch.setattr(module, "MOST_CELLS", 6)
    with pytest.raises(sc.InputError, match="at most 6 segments"):
        sc.audit(tables, min_rows=1)
    monkeypatch.setattr(module, "MOST_CELLS", 5)
    with pytest.raises(sc.InputError, match=r"at most 5 cells: .* have 6 combinations"):
        sc.audit(tables)


def test_features_are_cut_into_ranges_of_about_equal_size(tmp_path: Path) -> None:
    frame = rows(off=0.2)
    rng = np.random.default_rng(1)
    frame["age"] = rng.integers(18, 90, size=len(frame))
    frame["dose"] = rng.normal(size=len(frame))
    frame.loc[:39, "dose"] = np.nan
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    options: dict[str, Any] = {"by": ["device", sc.Cut("age", 4), sc.Cut("dose", 3)]}
    found = audited(frame, **options)
    assert found.by == ("device", "age", "dose")
    single = {
        column: [e for e in found.segments if set(e.where) == {column}] for column in found.by
    }
    assert [len(each) for each in single.values()] == [2, 4, 4]
    for column, count in (("age", 4), ("dose", 3)):
        assert sum(each.n for each in single[column]) == len(frame)
        for each in single[column]:
            value = each.where[column]
            if value is None:
                assert each.n == 40
                continue
            assert abs(each.n - len(frame) / count) < 0.02 * len(frame)
            low, high = map(float, value.split(" to "))
            values = frame[column]
            inside = (values >= low) & (values < high + (high == values.max()))
            if column == "age":  # whole numbers, so that the edges are exact
                assert each.n == inside.sum()
    command = ["--label", "y", "--pred", "p", "--by", "device", "--feature", "age:4"]
    done = softcal_here(
        "audit", path, *command, "--feature", "dose:3", "--draws", 200, "--format", "json"
    )
    [model] = json.loads(done.stdout)["models"]
    from_file = audited(path, **options)
    for segments in (model["segments"], [{"where": e.where} for e in from_file.segments]):
        assert [each["where"] for each in segments] == [each.where for each in found.segments]


def test_names_of_ranges_differ() -> None:
    frame = rows(n=300)
    frame["big"] = 1e9 + np.arange(300) % 3
    found = audited(frame, by=sc.Cut("big", 3))
    assert {each.where["big"] for each in found.segments} == {
        "1000000000.0 to 1000000001.0",
        "1000000001.0 to 1000000002.0",
    }
    frame["big"] = 7
    assert audited(frame, by=sc.Cut("big", 3)).segments == ()


def test_features_that_cannot_be_cut_are_refused(tmp_path: Path) -> None:
    frame = rows(n=200)
    frame["none"], frame["endless"] = np.nan, np.inf
    for features, words in (
        ({"p": 1}, "2 to 1,000,000 ranges: 'p' has 1"),
        ({"p": [0.5, 0.5]}, "increasing numbers to cut at, such as .* 'p' has .0.5, 0.5"),
        ({"p": []}, "increasing numbers to cut at"),
        ({"p": "0.5"}, "increasing numbers to cut at"),
        ({"p": ["x"]}, "increasing numbers to cut at"),
        ({"p": [np.inf]}, "increasing numbers to cut at"),
        ({"p": [[0.5]]}, "increasing numbers to cut at"),
        ({"country": [3]}, "country must hold numbers"),
        ({"country": 3}, "country must hold numbers"),
        ({"none": 3}, "none cannot be cut into ranges: it needs finite numbers"),
        ({"endless": 3}, "endless cannot be cut into ranges: it needs finite numbers"),
    ):
        with pytest.raises((sc.InputError, sc.InputTypeError), match=words):
            audited(frame, by=["device", *(sc.Cut(*each) for each in features.items())])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    columns = ["--label", "y", "--pred", "p", "--by", "country"]
    for feature in ("p", "p:x", ":3"):
        refused = softcal_here("audit", path, *columns, "--feature", feature)
        assert refused.returncode == 2
        assert f"a column and a number, such as age:10: got {feature}." in refused.stderr
    for cut in ("p", "p:", "p:x", ":3", "p:0.5,0.5", "p:0.5,inf", "p:nan"):
        refused = softcal_here("audit", path, *columns, "--cut", cut)
        assert refused.returncode == 2
        assert f"a column and increasing numbers, such as age:40,60: got {cut}." in refused.stderr
    twice = softcal_here("audit", path, *columns, "--cut", "p:0.5", "--feature", "p:2")
    assert "each 'by' column must be named once" in twice.stderr
    saved = tmp_path / "saved.softcal"
    softcal_here("scan", path, *columns, "-o", saved)
    for option, value in (("--feature", "p:3"), ("--cut", "p:0.5")):
        refused = softcal_here("audit", saved, option, value)
        assert f"{option} is for rows: leave it out with saved tables." in refused.stderr


def test_features_are_cut_at_given_numbers(tmp_path: Path) -> None:
    frame = rows()
    frame["age"] = np.random.default_rng(1).integers(18, 90, size=len(frame)) / 2
    frame.loc[:39, "age"] = np.nan
    found = audited(frame, by=sc.Cut("age", [20, 30.5]))
    age = frame.age
    expected = {
        "below 20": (age < 20).sum(),
        "20 to 30.5": ((age >= 20) & (age < 30.5)).sum(),
        "30.5 and above": (age >= 30.5).sum(),
        None: age.isna().sum(),
    }
    assert {each.where["age"]: each.n for each in found.segments} == expected
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",")  # as in German spreadsheets
    how = ["--label", "y", "--pred", "p", "--sep", ";", "--decimal", ","]
    for option, value in (("--cut", "age:20,30.5"), ("--feature", "age:3")):
        done = softcal_here("audit", path, *how, option, value, "--format", "json")
        assert done.returncode == 0, done.stderr
        [model] = json.loads(done.stdout)["models"]
        names = {each["where"]["age"]: each["n"] for each in model["segments"]}
        assert len(names) == 4
        assert (names == expected) == (option == "--cut")


@settings(max_examples=30)
@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.integers(-3, 3) | st.just(math.nan), min_size=2, max_size=50
    ),
    st.integers(2, 7),
    st.booleans(),
)
def test_quantiles_are_exact(values: list[float], count: int, lazy: bool) -> None:  # noqa: FBT001
    known = sorted(each for each in values if not math.isnan(each))
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Float64}, strict=False)
    source: Any = frame.lazy() if lazy else frame
    if not known:
        with pytest.raises(sc.InputError, match="needs finite numbers"):
            ranges_of(sc.Cut("x", count), opened(source, con := Session()), con)
        return
    counted = frame.drop_nans().group_by("x").len("n").to_arrow()
    found = Numbers((con := Session()).from_arrow(counted), con)
    ranks = [math.ceil(Fraction(k * len(known), count)) for k in range(1, count)]
    exact = sorted({known[rank - 1] + 0.0 for rank in ranks})
    assert found.quantiles(count).tolist() == exact
    assert (found.ends, found.rows) == ([known[0], known[-1]], len(known))
    below = [sum(each < cut for each in known) for cut in exact]
    assert found.rows_below(np.array(exact)).tolist() == below
    made = ranges_of(sc.Cut("x", count), opened(source, con), con)
    assert len(made.cuts) == sum(known[0] < cut < known[-1] for cut in exact)


def test_recurring_raters_are_refused() -> None:
    rng = np.random.default_rng(0)
    votes = pd.DataFrame({"item": np.repeat(np.arange(40), 3), "who": np.tile(list("abc"), 40)})
    votes["vote"] = rng.integers(0, 2, size=120)
    items = pd.DataFrame({"item": np.arange(40), "p": rng.uniform(size=40), "a": ["x", "y"] * 20})
    label = sc.RawVotes("vote", item="item", source=votes, rater="who", positive="1", raters=True)
    tables = sc.scan(items, y_true=label, y_prob="p", by="a")
    with pytest.raises(sc.InputError, match="cannot take recurring raters"):
        sc.audit(tables)


def test_command_prints_the_worst_segments_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    frame = rows(off=0.2)
    frame["q"] = rows().p
    frame.to_csv(path, index=False)
    options = ["--label", "y", "--pred", "p", "--by", "device", "--by", "country"]
    done = softcal_here("audit", path, *options, "--draws", 200)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("all rows", "device ="))]
    assert lines[0].startswith("all rows")
    assert lines[1].startswith("device = phone and country = FR")
    assert max(map(len, done.stdout.splitlines())) <= 80
    card = json.loads(softcal_here("audit", path, *options, "--format", "json").stdout)
    [model] = card["models"]
    expected = sc.audit(frame, y_true="y", y_prob="p", by=BY)
    assert [each["where"] for each in model["segments"]] == [e.where for e in expected.segments]
    assert model["segments"][0]["sentence"] == expected.segments[0].sentence
    assert expected.explained is not None
    assert model["explained"]["segments"] == expected.explained.segments
    saved = tmp_path / "saved.softcal"
    softcal_here("scan", path, *options, "--pred", "q", "-o", saved)
    both = json.loads(softcal_here("audit", saved, "--format", "json").stdout)
    assert [each["pred"] for each in both["models"]] == ["p", "q"]
    assert both["models"][0] == model


def test_command_reports_that_nothing_was_found_or_how_many_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows().to_csv(path, index=False)
    options = ["--label", "y", "--pred", "p", "--by"]
    calm = softcal_here("audit", path, *options, "country", "--draws", 100)
    assert "Nothing found" in calm.stdout
    calm_card = softcal_here("audit", path, *options, "country", "--format", "json").stdout
    assert json.loads(calm_card)["models"][0]["explained"] is None
    many = pd.DataFrame({"p": np.full(3000, 0.5), "y": np.zeros(3000)})
    many["a"] = np.arange(3000) % 30
    many.to_csv(path, index=False)
    done = softcal_here("audit", path, *options, "a", "--draws", 100)
    assert "10 more segments: a page (-o HTML) or --format json has all." in done.stdout
    refused = softcal_here("audit", path, "--label", "y", "--pred", "p")
    assert refused.returncode == 2
    assert "--by" in refused.stderr


def test_page_shows_segments_as_sentences_worst_first(tmp_path: Path) -> None:
    path, page = tmp_path / "rows.csv", tmp_path / "audit.html"
    frame = rows(off=0.2)
    frame["country"] = frame.country.replace({"US": "<b>\x1b"})
    frame["q"] = rows().p
    frame.to_csv(path, index=False)
    options = ["--label", "y", "--pred", "p", "--pred", "q", "--by", "device", "--by", "country"]
    done = softcal_here("audit", path, *options, "--min-rows", 700, "-o", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "<b>\x1b" not in text
    assert "&lt;b&gt;\\x1b" in text
    tables = sc.scan(frame, y_true="y", y_prob=["p", "q"], by=BY)
    places = []
    for each in sc.audit(tables, model="p", min_rows=700).found:
        name, rest = each.name, each.sentence[len(each.name) :]
        shown = name.replace("<b>\x1b", "&lt;b&gt;\\x1b")
        places.append(text.index(f"<strong>{shown}</strong>{rest}</th>"))
    assert places == sorted(places)
    assert "of the error" in text
    assert "A segment needs at least 700 rows to be tested; 6 segments had fewer." in text
    assert "at most 1,000,000 cells" in text
    assert "These data have 6 cells." in text


def test_page_states_that_nothing_was_found(tmp_path: Path) -> None:
    found = audited(rows())
    page = tmp_path / "audit.html"
    write_audit_page(page, [found], source="rows.csv", label="y")
    text = page.read_text()
    assert '<span class="verdict">Nothing found</span>' in text
    assert "11 segments whose gap chance explains" in text
    assert "Worst first" not in text


def test_page_draws_no_point_for_a_gap_outside_its_scale(tmp_path: Path) -> None:
    big = {"a": "x", "p": np.full(20_000, 0.5), "y": np.full(20_000, 0.4)}
    few = {"a": "y", "p": np.full(40, 0.5), "y": np.repeat([0.0, 1.0], [26, 14])}
    frame = pd.concat([pd.DataFrame(big), pd.DataFrame(few)])
    found = audited(frame, by="a")
    assert [each.name for each in found.found] == ["a = x"]
    assert found.segments[1].gap > found.found[0].high
    page = tmp_path / "audit.html"
    write_audit_page(page, [found], source="rows", label="y")
    text = page.read_text()
    rest = text[text.index("a = y</strong>") :]
    assert '<b style="left' in text
    assert '<b style="left' not in rest.partition("</tr>")[0]


def test_page_folds_many_segments_and_counts_those_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": np.full(21_000, 0.5), "y": np.zeros(21_000)})
    frame["a"] = np.arange(21_000) % 600
    page = tmp_path / "audit.html"
    write_audit_page(page, [audited(frame, by="a")], source="rows", label="y")
    text = page.read_text()
    assert "480 more segments</summary>" in text.replace(" off</summary>", "</summary>")
    assert "100 more segments off: not on this page" in text
    assert text.count("<strong>a = ") == 500
    rng = np.random.default_rng(0)
    frame["y"] = rng.integers(0, 2, size=21_000)
    write_audit_page(page, [audited(frame, by="a")], source="rows", label="y")
    text = page.read_text()
    assert "600 segments whose gap chance explains" in text
    assert "580 more segments: in the output" in text


def test_page_name_must_be_html_and_page_does_not_replace_the_data(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows().to_csv(path, index=False)
    options = ["--label", "y", "--pred", "p", "--by", "country"]
    refused = softcal_here("audit", path, *options, "-o", tmp_path / "audit.pdf")
    assert "the name of the page must end in .html: got audit.pdf." in refused.stderr
    before = path.read_bytes()
    assert softcal_here("audit", path, *options, "-o", path).returncode == 2
    assert path.read_bytes() == before


def test_audit_of_predictions_next_to_0_and_1() -> None:
    rows = pd.DataFrame(
        {"p": [1 - 2**-53, 5e-324] * 20, "y": [1.0, 0.25] * 20, "s": ["a", "b"] * 20}
    )
    found = sc.audit(rows, y_true="y", y_prob="p", by="s", draws=20)
    assert np.isfinite([each.low for each in found.segments]).all()


def test_audit_refuses_odd_columns_and_endless_draws() -> None:
    rows = pd.DataFrame({"p": [0.5], "y": [1.0], "s": ["a"]})
    odd: Any = {"x": 3}
    with pytest.raises(sc.InputTypeError, match="by must be"):
        sc.audit(rows, y_true="y", y_prob="p", by=["s", odd])
    with pytest.raises(sc.InputError, match="draws must be"):
        sc.audit(rows, y_true="y", y_prob="p", by="s", draws=10**400)


def test_audit_without_segments_has_nothing_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p,s,t\n1,0.5,a,b\n0,0.25,a,b\n")
    one = softcal_here("audit", path, "--label", "y", "--pred", "p", "--by", "s", "--by", "t")
    assert "Nothing to compare: all rows have the same value of s and t." in one.stdout
    path.write_text("y,p,s\n1,0.5,a\n0,0.25,b\n")
    few = softcal_here("audit", path, "--label", "y", "--pred", "p", "--by", "s")
    assert "Nothing to compare: no segment has 30 rows or more." in few.stdout


def test_audit_of_one_segment_is_in_the_singular() -> None:
    frame = pd.DataFrame({"y": [1.0, 0.0] * 30, "p": 0.5, "s": ["a"] * 40 + ["b"] * 20})
    found = sc.audit(frame, y_true="y", y_prob="p", by="s", draws=20)
    assert "chance explains the gap of the 1 segment" in found.summary


def in_groups(rng: np.random.Generator, groups: int, size: int, gap: float = 0.0) -> Any:
    """Return rows of groups whose labels vary together, with a gap where `a` is 1."""
    group = np.repeat(np.arange(groups), size)
    p = rng.uniform(0.1, 0.9, group.size)
    shift = 0.8 * rng.choice([-1, 1], groups)[group] * np.minimum(p, 1 - p)
    a = rng.integers(0, 2, group.size)
    y = (p + shift - gap * a).clip(0, 1)
    return pd.DataFrame({"y": y, "p": p, "g": group, "a": a, "b": rng.integers(0, 3, group.size)})


@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_groups_of_rows_that_vary_together_are_not_mistaken_for_errors(gap: float) -> None:
    rng = np.random.default_rng(3)
    found = {"rows": 0, "groups": 0}
    for seed in range(20):
        rows = in_groups(rng, 40, 12, gap)
        for name, groups in (("rows", None), ("groups", "g")):
            options: dict[str, Any] = {"y_true": "y", "y_prob": "p", "groups": groups}
            audit = sc.audit(rows, by=["a", "b"], draws=200, rng=seed, **options)
            for each in (audit.overall, *audit.segments):
                assert (each.low > 0 or each.high < 0) == (each.pvalue <= 0.05)
                assert each.low <= each.gap <= each.high
            found[name] += bool(audit.found)
    assert found["groups"] == (0 if gap == 0 else 20)
    assert found["rows"] >= 5


def test_audit_of_groups_is_the_same_from_rows_and_a_saved_set(tmp_path: Path) -> None:
    rows = in_groups(np.random.default_rng(4), 30, 8, 0.2)
    options: dict[str, Any] = {"y_true": "y", "y_prob": "p", "by": ["a", "b"], "groups": "g"}
    tables = sc.scan(rows, **options)
    tables.save(tmp_path / "s.softcal")
    of_rows, of_set = sc.audit(tables), sc.audit(sc.load(tmp_path / "s.softcal"))
    assert [each.where for each in of_rows.segments] == [each.where for each in of_set.segments]
    for mine, other in zip(of_rows.segments, of_set.segments, strict=True):
        assert (mine.low, mine.high) == pytest.approx((other.low, other.high), rel=1e-9)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = softcal_here(
        "audit", tmp_path / "rows.csv", *["--label", "y", "--pred", "p", "--by", "a", "--by", "b", "--group", "g"],
        "--format", "json",
    )  # fmt: skip
    (model,) = json.loads(done.stdout)["models"]
    assert model["segments"][0]["low"] == pytest.approx(of_rows.segments[0].low, abs=1e-9)


def test_flips_of_few_groups_have_exact_p_values() -> None:
    """Of three equal groups, flips leave |sum| largest in 2 of 8 cases."""
    rows = pd.DataFrame({"y": [0.2] * 90, "p": [0.5] * 90, "g": np.repeat([0, 1, 2], 30), "a": 1})
    audit = sc.audit(rows, y_true="y", y_prob="p", by="a", groups="g", draws=4000)
    assert audit.overall.pvalue == pytest.approx(0.25, abs=0.03)
    assert (audit.overall.low, audit.overall.high) == pytest.approx((-0.5, 0.5))
