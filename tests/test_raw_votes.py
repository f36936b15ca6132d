"""Raw votes as labels: in another file, in the same file, and as counts per class."""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from command_line import softcal_here, text_of_page, without_source
from same_tables import assert_same_table

import softcal as sc
from softcal.planning import Assumptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

N, WORKERS = 120, 15
NAMES: dict[str, Any] = {"vote": "answer", "item": "q.id", "rater": "who", "positive": "yes"}
OPTIONS = ("--item", "q.id", "--vote", "answer", "--worker", "who", "--positive", "yes")


def _made() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(18)
    p = rng.random(N)
    preds = pd.DataFrame(
        {
            "q.id": [f"q{k}" for k in range(N)],
            "p": p,
            "p2": rng.random(N),
            "kind": np.array(["a", "b"])[rng.integers(0, 2, N)],
            "w": rng.random(N),
        }
    )
    rows = [
        (f"q{k}", f"w{who}", "yes" if rng.random() < p[k] else str(rng.choice(["no", "maybe"])))
        for k in range(N)
        for who in rng.choice(WORKERS, rng.integers(1, 5), replace=False)
    ]
    votes = pd.DataFrame(rows, columns=["q.id", "who", "answer"])
    return preds, votes.sample(frac=1, random_state=3, ignore_index=True)


PREDS, VOTES = _made()
LONG = VOTES.merge(PREDS, on="q.id")
COUNTED = sc.Votes.from_long(VOTES, item="q.id", label="answer", worker="who")
SHARES = COUNTED.binary("yes").for_items(PREDS["q.id"])
TWO: dict[str, Any] = {"y_prob": ["p", "p2"], "by": "kind", "sample_weight": "w"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PREDS.iloc[:70].to_csv(tmp_path / "preds1.csv", index=False)
    pl.DataFrame(PREDS.iloc[70:]).write_ndjson(tmp_path / "preds2.jsonl")  # with all digits
    VOTES.to_csv(tmp_path / "answers.csv", index=False, sep=";")
    VOTES.to_csv(tmp_path / "votes.csv", index=False)
    LONG.to_csv(tmp_path / "long.csv", index=False)
    PREDS.to_csv(tmp_path / "preds.csv", index=False)
    counts = pd.DataFrame(SHARES.counts, columns=["no", "yes"])
    pd.concat([PREDS, counts], axis=1).to_csv(tmp_path / "counts.csv", index=False)
    return tmp_path


def card(*line: object) -> dict[str, Any]:
    found = softcal_here(*line, "--format", "json")
    assert found.returncode == 0, found.stderr
    loaded: dict[str, Any] = json.loads(found.stdout)
    return loaded


def test_command_line_scores_votes_in_one_or_two_files(folder: Path) -> None:
    separate = ("score", folder / "preds.csv", "--pred", "p", "--votes-file", folder / "votes.csv")
    mine = card(*separate, *OPTIONS)
    assert mine["models"][0]["smece"] == pytest.approx(sc.smece(SHARES, PREDS["p"]), abs=1e-12)
    long = card("score", folder / "long.csv", "--pred", "p", *OPTIONS)
    assert without_source(long) == without_source(mine)
    with_raters = card(*separate, *OPTIONS, "--raters")
    expected = sc.smece_interval(SHARES, PREDS["p"], raters=True)
    assert expected.high != pytest.approx(mine["models"][0]["high"], rel=1e-6)
    assert with_raters["models"][0]["high"] == pytest.approx(expected.high, rel=1e-9)
    counts = card("score", folder / "counts.csv", "--pred", "p", "--vote-columns", "no,yes")
    assert counts["models"][0]["high"] == pytest.approx(mine["models"][0]["high"], abs=1e-12)


def test_recurring_raters_are_noted_once(folder: Path) -> None:
    line = ("score", folder / "preds.csv", "--pred", "p", "--votes-file", folder / "votes.csv")
    said = softcal_here(*line, *OPTIONS).stderr
    assert said == (
        f"softcal: note: 15 raters gave {len(VOTES)} votes, so raters recur. Intervals are for "
        "these raters; --raters makes them hold for new raters too.\n"
    )
    assert softcal_here(*line, *OPTIONS, "--raters").stderr == ""
    assert softcal_here(*line, *OPTIONS[:4], *OPTIONS[6:]).stderr == ""


def test_every_command_that_reads_rows_takes_votes(folder: Path) -> None:
    source = (folder / "preds.csv", "--pred", "p", "--votes-file", folder / "votes.csv", *OPTIONS)
    saved, page = folder / "t.softcal", folder / "r.html"
    assert softcal_here("scan", *source, "--raters", "-o", saved).returncode == 0
    of_rows = card("score", *source, "--raters")
    assert without_source(card("score", saved)) == without_source(of_rows)
    assert card("compare", *source, "--pred", "p2", "--raters")["n"] == N
    made = softcal_here("report", *source, "--raters", "-o", page)
    assert made.returncode == 0, made.stderr
    assert softcal_here("report", saved, "-o", page).returncode == 0
    plan = card("plan", *source, "--half-width", "0.02")
    assert plan["items"] > 0
    cal = folder / "cal.json"
    fitted = card("recalibrate", *source, "--method", "platt", "-o", cal)
    long = card("recalibrate", folder / "long.csv", "--pred", "p", *OPTIONS, "--method", "platt",
                "-o", cal)  # fmt: skip
    platt = sc.calibrators.preview.fit_map("platt", SHARES.shares[:, 1], PREDS["p"].to_numpy())
    for found in (fitted, long):
        for part in ("slope", "intercept"):
            expected = platt.to_dict()["parameters"][part]
            assert found["calibrator"]["parameters"][part] == pytest.approx(expected, rel=1e-9)
    said = softcal_here("recalibrate", *source, "--raters", "-o", cal).stderr
    assert "No such option: --raters" in said


def test_plan_of_new_raters_equals_python(folder: Path) -> None:
    pilot = (
        "plan", folder / "preds.csv", "--pred", "p", "--votes-file",
        folder / "votes.csv", *OPTIONS, "--raters", "--half-width", "0.1",
    )  # fmt: skip
    table = sc.reliability(SHARES, PREDS["p"], raters=True)
    expected = sc.planning.plan(Assumptions.from_pilot(table), half_width=0.1, raters=60)
    found = card(*pilot, "--n-raters", "60")
    assert (found["items"], found["votes"], found["raters"]) == (
        expected.items, expected.votes, 60
    )  # fmt: skip
    assert found["half_width"] == pytest.approx(expected.half_width, rel=1e-9)
    shown = " ".join(softcal_here(*pilot, "--n-raters", "60").stdout.split())
    assert "by 60 raters." in shown
    assert "for new raters." in shown
    stated = ("plan", "--smece", "0.05", "--label-spread", "0.1", "--half-width", "0.03")
    wide = card(*stated, "--n-raters", "200", "--rater-spread", "0.1", "--votes-per-item", "2")
    assert wide["items"] > card(*stated, "--votes-per-item", "2")["items"]
    for line, message in {
        pilot: "--raters has no effect without --n-raters",
        (*pilot, "--n-raters", "1"): "--n-raters must be a whole number of at least 2",
        (*pilot, "--n-raters", "9", "--rater-spread", "0.1"): "DATA, or --rater-spread, not",
        (*stated, "--n-raters", "9"): "--n-raters needs to know how raters differ",
        (*stated, "--rater-spread", "0.1"): "--rater-spread has no effect without --n-raters",
        (*stated[:-2], "--budget", "9", "--n-raters", "9"): "no effect without --half-width",
    }.items():
        assert message in softcal_here(*line).stderr


def test_comparison_of_new_raters_states_it(folder: Path) -> None:
    line = ("compare", folder / "preds.csv", "--pred", "p", "--pred", "p2", "--votes-file",
            folder / "votes.csv", *OPTIONS)  # fmt: skip
    assert "new raters" not in softcal_here(*line).stdout
    said = " ".join(softcal_here(*line, "--raters").stdout.split())
    assert "The interval rests on 15 raters; with fewer than 30 it may be too narrow." in said
    assert "Intervals are for new items and new raters." in said


def test_commands_of_a_report_name_the_votes(folder: Path) -> None:
    page = folder / "r.html"
    line = (folder / "long.csv", "--pred", "p2", *OPTIONS, "--raters", "-o", page)
    assert softcal_here("report", *line).returncode == 0
    words = "long.csv --positive yes --item q.id --vote answer --worker who --pred p2"
    assert words in text_of_page(page)
    counts = (folder / "counts.csv", "--pred", "p2", "--vote-columns", "no,yes", "-o", page)
    assert softcal_here("report", *counts).returncode == 0
    assert "counts.csv --vote-columns no,yes --pred p2" in text_of_page(page)


# Kinds of raters

KIND = {f"w{k}": "abc"[k % 3] for k in range(WORKERS)}
KINDS = VOTES.assign(side=["left" if KIND[who] == "a" else "right" for who in VOTES["who"]],
                     kind=VOTES["who"].map(KIND))  # fmt: skip
ALL_KINDS = [KIND[str(who)] for who in SHARES.workers]


@pytest.fixture
def kinds(folder: Path) -> tuple[object, ...]:
    KINDS.to_csv(folder / "kinds.csv", index=False)
    return ("score", folder / "preds.csv", "--pred", "p", "--votes-file", folder / "kinds.csv",
            *OPTIONS)  # fmt: skip


def test_two_kinds_of_raters_have_a_table_each_and_a_difference(
    folder: Path, kinds: tuple[object, ...]
) -> None:
    sides = ["left" if kind == "a" else "right" for kind in ALL_KINDS]
    tables = sc.reliability_by_rater(SHARES, PREDS["p"], by=sides)
    both = sc.rater_difference(SHARES, PREDS["p"], by=sides, level=0.9)
    found = card(*kinds, "--by-rater", "side", "--level", "0.9")
    assert found["models"] == card(*kinds, "--raters", "--level", "0.9")["models"]
    mine = found["by_rater"]
    assert mine["column"] == "side"
    (model,) = mine["models"]
    assert [one["value"] for one in model["kinds"]] == ["left", "right"] == list(tables)
    for one, (kind, rel) in zip(model["kinds"], tables.items(), strict=True):
        assert rel.raters is not None
        chosen = KINDS["side"] == kind
        assert (one["n"], one["raters"], one["votes"]) == (
            rel.n, rel.raters.count, int(chosen.sum()),
        )  # fmt: skip
        interval = sc.smece_interval(rel, level=0.9)
        assert [one["smece"], one["low"], one["high"]] == pytest.approx(
            [rel.smece, interval.low, interval.high], abs=1e-12
        )
    (difference,) = model["differences"]
    assert (difference["a"], difference["b"], difference["level"]) == ("left", "right", 0.9)
    assert difference["pvalue_holm"] is None
    for name in ("difference", "low", "high", "pvalue"):
        assert difference[name] == pytest.approx(getattr(both, name), abs=1e-12)
    KINDS.merge(PREDS, on="q.id").assign(p=lambda rows: 100 * rows["p"]).to_csv(
        folder / "one.csv", index=False
    )
    one_file = ("score", folder / "one.csv", "--pred", "p", *OPTIONS, "--pred-scale", "percent")
    named = card(*one_file, "--by-rater", "side", "--level", "0.9", "--name", "mine")["by_rater"]
    assert named["models"][0]["pred"] == "mine"
    again = named["models"][0]["differences"][0]
    assert again["low"] == pytest.approx(both.low, abs=1e-9)


def test_each_of_several_kinds_is_compared_with_all_others(kinds: tuple[object, ...]) -> None:
    found = card(*kinds, "--pred", "p2", "--by-rater", "kind")["by_rater"]["models"]
    assert [model["pred"] for model in found] == ["p", "p2"]
    for model in found:
        assert [(one["a"], one["b"]) for one in model["differences"]] == [
            ("a", None), ("b", None), ("c", None),
        ]  # fmt: skip
        expected = [
            sc.rater_difference(SHARES, PREDS[model["pred"]], by=[kind == k for kind in ALL_KINDS])
            for k in "abc"
        ]
        for one, both in zip(model["differences"], expected, strict=True):
            assert one["difference"] == pytest.approx(-both.difference, abs=1e-12)
            assert one["pvalue"] == pytest.approx(both.pvalue, abs=1e-12)
        smallest = min(one["pvalue"] for one in model["differences"])
        assert min(one["pvalue_holm"] for one in model["differences"]) == pytest.approx(
            min(3 * smallest, 1)
        )


def test_kinds_of_raters_fit_a_terminal_of_80_columns(kinds: tuple[object, ...]) -> None:
    two = softcal_here(*kinds, "--by-rater", "side")
    assert two.returncode == 0, two.stderr
    assert two.stderr == ""
    assert max(map(len, two.stdout.splitlines())) <= 80
    assert "p, by side of the raters" in two.stdout
    assert re.search(r"left +5 +\d+ +\d+ +0\.\d{4} ", two.stdout)
    assert re.search(r"left minus right +[+-]0\.\d{3} +[+-]0\.\d{3} to [+-]0", two.stdout)
    assert "Holm" not in two.stdout
    words = " ".join(two.stdout.split())
    assert "left: The interval rests on 5 raters; with fewer than 30 it may be too" in words
    several = softcal_here(*kinds, "--by-rater", "kind").stdout
    assert max(map(len, several.splitlines())) <= 80
    assert "b minus all others" in several
    assert "(Holm)" in several


def test_kinds_with_one_rater_are_scored_and_not_compared(
    folder: Path, kinds: tuple[object, ...]
) -> None:
    alone = KINDS.assign(side=np.where(KINDS["who"] == "w4", "alone", "other"))
    alone.to_csv(folder / "kinds.csv", index=False)
    (model,) = card(*kinds, "--by-rater", "side")["by_rater"]["models"]
    assert [one["raters"] for one in model["kinds"]] == [1, WORKERS - 1]
    assert model["differences"] == []
    said = " ".join(softcal_here(*kinds, "--by-rater", "side").stdout.split())
    assert "A kind with one rater, or with one other rater, is not compared." in said
    assert " minus " not in said.split("of the raters")[1].split("Each kind")[0]
    alone.assign(side="all").to_csv(folder / "kinds.csv", index=False)
    (model,) = card(*kinds, "--by-rater", "side")["by_rater"]["models"]
    assert [one["votes"] for one in model["kinds"]] == [len(VOTES)]
    assert model["differences"] == []


def test_kinds_without_votes_on_the_items_left_are_absent(
    folder: Path, kinds: tuple[object, ...]
) -> None:
    extra = pd.DataFrame({"q.id": ["none"], "who": ["new"], "answer": ["no"], "side": ["x"]})
    pd.concat([KINDS, extra]).to_csv(folder / "kinds.csv", index=False)
    found = card(*kinds, "--by-rater", "side", "--drop-unmatched")["by_rater"]
    assert found["models"][0]["differences"][0]["a"] == "left"
    assert [one["value"] for one in found["models"][0]["kinds"]] == ["left", "right"]
    with_one_vote = VOTES["q.id"].value_counts().idxmin()
    some = COUNTED.for_items([with_one_vote])
    (present,) = VOTES["who"][VOTES["q.id"] == with_one_vote].map(KIND)
    assert list(some.by_kind(KIND)) == [present]
    with pytest.raises(sc.InputError, match="population has a kind without raters"):
        some.weighted(by=KIND, population=dict.fromkeys("abc", 1 / 3))


BAD_KINDS: list[tuple[pd.DataFrame, tuple[str, ...], str]] = [
    (KINDS.assign(side=KINDS["side"].where(KINDS.index != 7, "up")), (),
     "side must be the same in all votes of a rater: 1 of 15 raters have several values, the "),
    (KINDS.assign(side=KINDS["side"].where(KINDS.index != 7)), (),
     "side must have no missing values: 1 of 306"),
    (KINDS, ("--weight", "w"), "weights cannot be combined with kinds of raters"),
    (KINDS, ("--group", "kind"), "--raters cannot be combined with groups"),
    (KINDS, ("--aggregate", "dawid-skene"), "raters need vote shares"),
]  # fmt: skip


@pytest.mark.parametrize(("votes", "options", "message"), BAD_KINDS)
def test_impossible_kinds_are_refused(
    folder: Path,
    kinds: tuple[object, ...],
    votes: pd.DataFrame,
    options: tuple[str, ...],
    message: str,
) -> None:
    votes.to_csv(folder / "kinds.csv", index=False)
    said = softcal_here(*kinds, "--by-rater", "side", *options)
    assert message in said.stderr
    assert said.returncode != 0


# Unmatched and invalid votes


def scanned(preds: Any = PREDS, votes: Any = VOTES, **changed: Any) -> sc.TableSet:
    other = {k: changed.pop(k) for k in ("by", "groups", "drop_missing", "y_prob") if k in changed}
    label = sc.RawVotes(**{**NAMES, "source": votes, **changed})
    return sc.scan(preds, y_true=label, **{"y_prob": "p", **other})


def test_unmatched_items_are_counted_and_refused_or_dropped(folder: Path) -> None:
    fewer, some = PREDS.iloc[5:], VOTES[VOTES["q.id"] != "q7"]
    with pytest.raises(sc.InputError) as caught:
        scanned(fewer, some)
    assert re.fullmatch(
        r"each q\.id must have a prediction and votes: 1 of 115 rows of predictions have no votes, "
        r"the first is 'q7'; 5 of 119 items with votes have no prediction, the first is 'q[0-4]'\. "
        r"Pass RawVotes\(\.\.\., drop_unmatched=True\) to leave them out\.",
        str(caught.value),
    )
    found = scanned(fewer, some, drop_unmatched=True)
    assert (found.n, found.about.rows_dropped) == (114, 1)
    kept = PREDS.iloc[5:][PREDS.iloc[5:]["q.id"] != "q7"]
    assert_same_table(found["p"], scanned(kept, VOTES[VOTES["q.id"].isin(kept["q.id"])])["p"])
    fewer.to_csv(folder / "fewer.csv", index=False)
    some.to_csv(folder / "some.csv", index=False)
    line = ("score", folder / "fewer.csv", "--pred", "p", "--votes-file", folder / "some.csv")
    assert "Pass --drop-unmatched to leave them out." in softcal_here(*line, *OPTIONS).stderr
    dropped = softcal_here(*line, *OPTIONS, "--drop-unmatched")
    assert "114 rows (1 dropped)" in dropped.stdout
    assert "left out: 1 rows of predictions without votes, and 5 items" in dropped.stderr
    with pytest.raises(sc.InputError, match="1 of 115 rows of predictions have no votes"):
        scanned(dd.from_pandas(fewer, npartitions=2), some)  # type: ignore[no-untyped-call]
    again = softcal_here("recalibrate", *line[1:], *OPTIONS, "--drop-unmatched", "-o", folder / "c")
    assert "114 rows (1 dropped)" in again.stdout


def _numbers(frame: pd.DataFrame, kind: type) -> pd.DataFrame:
    return frame.assign(**{"q.id": frame["q.id"].str[1:].astype(kind)})


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: scanned(positive="Yes"),
     "answer must have the value 'Yes' in some row: it has it in none. Did you mean 'yes'"),
    (lambda: scanned(positive=None), "name the value of answer that counts as 1. Its values are: 'may"),
    (lambda: scanned(votes=pd.concat([VOTES, VOTES.iloc[:1]])),
     "each who must have one vote on an item: 1 have more, the first is 'w.* on q.id 'q"),
    (lambda: scanned(votes=VOTES.assign(who=VOTES["who"].where(VOTES["who"] != "w3"))),
     r"who must have no missing values: 30 of 306 .* pass drop_missing=True"),
    (lambda: scanned(votes=VOTES.iloc[:0]), "there are no votes"),
    (lambda: scanned(_numbers(PREDS, float), _numbers(VOTES, int)),
     "Items look like '0.0' in the predictions and like '.*' in the votes: make them equal"),
    (lambda: scanned(PREDS.assign(**{"q.id": "x" + PREDS["q.id"]}), drop_unmatched=True),
     "120 of 120 rows of predictions have no votes.* Name the column of items that both sources share"),
    (lambda: scanned(pd.concat([PREDS, PREDS.iloc[:2]])),
     "each q.id must have one prediction: 2 have more, the first is 'q[01]'"),
    (lambda: scanned(LONG.assign(p=LONG["p"].where(LONG.index != 3, 0.5)), None),
     "p must be the same in all rows of an item: q.id 'q\\d+' has"),
    (lambda: scanned(LONG.assign(kind=LONG["who"]), None, by="kind"),
     "kind must be the same in all rows of an item: q.id 'q\\d+' has 'w"),
    (lambda: scanned(raters=True, rater=None), r"raters=True\) needs rater="),
    (lambda: scanned(raters=True, groups="kind"), r"raters=True\) cannot be combined with groups"),
    (lambda: scanned(item=None), "votes need items: pass item="),
    (lambda: scanned(vote=None), "pass vote=, the column of the votes"),
    (lambda: scanned(votes=COUNTED), "leave vote and rater out: Votes already"),
    (lambda: scanned(votes=COUNTED, vote=None, rater=None, positive="ja"),
     "votes must have the class 'ja', which none has. The classes are: 'maybe', 'no', 'yes'"),
    (lambda: scanned(votes=COUNTED, vote=None, rater=None, positive=None),
     "name the class of the votes that counts as 1"),
    (lambda: scanned(votes=sc.Votes([[1, 2]]), vote=None, rater=None, positive=None),
     "votes must name their items"),
    (lambda: scanned(votes=sc.Votes([[1, 2], [1, 0]], items=[1, "1"]), vote=None, rater=None,
                     positive=None), "names that differ as text"),
    (lambda: scanned(votes=sc.Votes([[1, 2]], items=["q0"]), vote=None, rater=None,
                     positive=None, raters=True), "raters=True needs votes with"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_votes_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        call()


def test_missing_values_of_votes_are_dropped_with_drop_missing(folder: Path) -> None:
    votes = VOTES.assign(who=VOTES["who"].where(VOTES.index != 4))
    found = scanned(votes=votes, drop_missing=True, drop_unmatched=True)
    assert_same_table(found["p"], scanned(votes=VOTES.drop(4), drop_unmatched=True)["p"])
    votes.to_csv(folder / "gaps.csv", index=False)
    line = ("score", folder / "preds.csv", "--pred", "p", "--votes-file", folder / "gaps.csv")
    found_here = softcal_here(*line, *OPTIONS, "--drop-missing", "--drop-unmatched")
    assert "left out: 1 votes with a missing value." in found_here.stderr
    items = PREDS.assign(**{"q.id": PREDS["q.id"].where(PREDS.index != 2)})
    with pytest.raises(sc.InputError, match=r"q.id must have no missing values: 1 of 120"):
        scanned(items, raters=True, drop_unmatched=True)
    dropped = scanned(items, drop_missing=True, drop_unmatched=True)
    assert (dropped.n, dropped.about.rows_dropped) == (N - 1, 1)
    long = LONG.assign(**{"q.id": LONG["q.id"].where(LONG.index != 2)})
    assert scanned(long, None, drop_missing=True).n == N


def test_repeated_votes_count_with_allow_repeated() -> None:
    twice = pd.concat([VOTES, VOTES.iloc[:3]])
    found = scanned(votes=twice, allow_repeated=True)
    assert found["p"].sums.votes.sum() == len(VOTES) + 3


def test_unanimous_votes_are_accepted() -> None:
    found = scanned(votes=VOTES.assign(answer="yes"))
    assert found["p"].sums.label.sum() == N


# Vote counts with one prediction per row


def test_vote_counts_with_one_prediction_become_shares(folder: Path) -> None:
    rows = pd.read_csv(folder / "counts.csv")
    for positive, k in ((None, 1), ("yes", 1), ("no", 0)):
        found = sc.scan(rows, y_true=sc.Counts(["no", "yes"], positive=positive), y_prob="p")
        share = SHARES.shares[:, k]
        assert_same_table(found["p"], sc.reliability(share, rows["p"], n_votes=SHARES.totals))
    named = rows.rename(columns={"no": "votes_no", "yes": "votes_yes"})
    found = sc.scan(named, y_true=sc.Counts("votes_*", positive="no"), y_prob="p")
    assert found.about.label == "share of no among no, yes"
    said = softcal_here("score", folder / "counts.csv", "--vote-columns", "no,yes", "--pred", "p")
    assert said.stderr == (
        "softcal: note: the label is the share of yes among no, yes; --positive selects another "
        "column.\n"
    )


BAD_COUNTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"positive": "ja"}, {}, "positive must be one of the columns of counts: got 'ja'. These are"),
    ({"columns": ["no", "p"]}, {}, "p must be whole numbers of 0 or more: 2 of 2"),
    ({}, {"no": [0.5, 1.0]}, "no must be whole numbers of 0 or more: 1 of 2"),
    ({}, {"no": [0, 1], "yes": [0, 1]}, "must have one vote or more: 1 of 2 have none"),
    ({}, {"no": [None, 1]}, "no must have no missing values: 1 of 2"),
]


@pytest.mark.parametrize(("options", "changed", "message"), BAD_COUNTS)
def test_bad_counts_are_refused(
    options: dict[str, Any], changed: dict[str, Any], message: str
) -> None:
    rows = pd.DataFrame({"no": [1, 2], "yes": [3, 0], "p": [0.5, 0.25], **changed})
    with pytest.raises(sc.InputError, match=message):
        sc.scan(rows, y_true=sc.Counts(**{"columns": ["no", "yes"], **options}), y_prob="p")


CONTRADICTIONS = [
    (("--vote", "answer"), "pass --item COL"),
    (("--votes-file", "votes.csv", "--item", "q.id"), "needs the column of votes: pass --vote COL"),
    (("--vote", "answer", "--item", "q.id", "--raters"), "pass --worker COL"),
    (
        ("--vote", "answer", "--item", "q.id", "--label", "p2"),
        "stated twice, by --label and --vote",
    ),
    (("--label", "p2", "--raters"), "--raters needs raw votes: pass --vote COL"),
    (
        ("--label", "p2", "--item", "q.id"),
        "--item needs raw votes or models in rows: pass --vote COL",
    ),
    (("--label", "p2", "--by-rater", "kind"), "--by-rater needs raw votes: pass --vote COL"),
    (
        ("--vote", "no", "--item", "q.id", "--by-rater", "kind"),
        "needs the rater of each vote: pass --worker COL",
    ),
    (
        ("--vote-columns", "no,yes", "--label", "p2"),
        "stated twice, by --label and --vote-columns",
    ),
]


@pytest.mark.parametrize(("options", "message"), CONTRADICTIONS)
def test_contradicting_vote_options_are_refused(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in softcal_here("score", folder / "counts.csv", "--pred", "p", *options).stderr


def test_votes_that_are_all_missing_are_refused() -> None:
    rows = pd.DataFrame({"i": ["a"], "p": [0.5], "v": [None]})
    label = sc.RawVotes("v", item="i", positive="yes")
    with pytest.raises(sc.InputError, match="there are no votes"):
        sc.scan(rows, y_true=label, y_prob="p", drop_missing=True)


def noted(done: Any) -> list[str]:
    """Return the notes on stderr."""
    start = "softcal: note: "
    return [line.removeprefix(start) for line in done.stderr.splitlines() if line.startswith(start)]


@pytest.fixture
def noteworthy(tmp_path: Path) -> Path:
    """Write rows whose reading gives a note of every kind, and change to their folder."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 0.9, size=200)
    votes = [
        {"id": k, "who": f"w{j}", "said": ["no", "yes"][int(rng.random() < p[k])]}
        for k in range(199)
        for j in rng.choice(8, 4, replace=False)
    ]
    votes[0]["said"] = None
    pd.DataFrame(votes).to_csv(tmp_path / "votes.csv", index=False)
    rows = pd.DataFrame({"id": np.arange(200), "p": p, "q": p**2, "site": np.arange(200) % 2})
    rows["y"] = np.where(rng.random(200) < p, "yes", "no")
    rows.loc[5, "y"] = "No"
    rows["day"] = [f"2026-01-{1 + k % 4:02d}" for k in range(200)]
    rows["gap"] = rows.p.where(rows.index > 2)
    rows["yes"], rows["no"] = rng.integers(1, 4, size=(2, 200))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


RAW = ["--votes-file", "votes.csv", "--item", "id", "--worker", "who", "--vote", "said"]
RAW += ["--positive", "yes", "--drop-missing", "--drop-unmatched", "--pred", "p"]
WORDS = ["--label", "y", "--positive", "yes", "--pred", "gap", "--drop-missing"]
COUNTS = ["--vote-columns", "no,yes", "--pred", "p", "--positive", "yes"]


@pytest.mark.parametrize(
    "command",
    [
        ["score"], ["check", "--max-smece", 0.1], ["watch", "--day", "day"], ["decide", "--threshold", 0.5],
        ["audit", "--by", "site"], ["plan", "--half-width", 0.1], ["compare", "--pred", "q"],
        ["recalibrate", "-o", "map.json"],
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RAW, ["left out: 1 votes with a missing value", "rows of predictions without votes"]),
        (WORDS, ["counts as 1 if it is 'yes', and as 0 if it is", "3 rows were left out"]),
        (COUNTS, ["--positive selects another column"]),
    ],
)
def test_notes_of_stderr_are_in_json_too(
    noteworthy: Path, monkeypatch: pytest.MonkeyPatch,
    command: list[Any], options: list[Any], words: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(noteworthy)
    name, *more = command
    done = softcal_here(name, "rows.csv", *options, *more, "--format", "json")
    notes = json.loads(done.stdout)["notes"]
    assert set(noted(done)) <= set(notes)  # `recalibrate` has notes on its choice as well
    for each in words:
        assert any(each in note for note in notes), notes
    if options is RAW and name != "recalibrate":
        assert any("so raters recur" in note for note in notes)


def test_notes_are_not_those_of_the_command_before(
    noteworthy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(noteworthy)
    softcal_here("score", "rows.csv", *WORDS)
    options = ["--label", "yes", "--label-scale", "percent", "--pred", "p", "--format", "json"]
    assert json.loads(softcal_here("score", "rows.csv", *options).stdout)["notes"] == []


@pytest.mark.parametrize(
    "command", [["report"], ["audit", "--by", "site"], ["watch", "--day", "day"]]
)
@pytest.mark.parametrize("options", [RAW, WORDS, COUNTS])
def test_notes_of_stderr_are_on_the_page_too(
    noteworthy: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], options: list[str]
) -> None:
    monkeypatch.chdir(noteworthy)
    done = softcal_here(*command[:1], "rows.csv", *options, *command[1:], "-o", "page.html")
    notes = noted(done)
    assert notes
    text = text_of_page(noteworthy / "page.html")
    for note in notes:
        assert note in text


def test_note_on_groups_of_several_files_is_in_json_too(
    noteworthy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(noteworthy)
    rows = pd.read_csv("rows.csv")
    for name, part in (("a", rows[:100]), ("b", rows[100:])):
        part.to_csv(f"{name}.csv", index=False)
        options = ["--label", "p", "--pred", "q", "--group", "site", "-o", f"{name}.softcal"]
        assert softcal_here("scan", f"{name}.csv", *options).returncode == 0
    done = softcal_here("merge", "a.softcal", "b.softcal", "--format", "json")
    assert json.loads(done.stdout)["notes"] == noted(done)
    assert "count as independent" in noted(done)[0]


def test_warning_of_dawid_skene_is_a_note(
    noteworthy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(noteworthy)
    short = partial(sc.dawid_skene, max_iterations=1)
    monkeypatch.setattr("softcal.crowd.dawid_skene", short)
    line = ["score", "rows.csv", *RAW, "--aggregate", "dawid-skene", "--format", "json"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = softcal_here(*line)
    assert json.loads(done.stdout)["notes"] == noted(done)
    assert any("did not converge in 1 iterations" in note for note in noted(done))
