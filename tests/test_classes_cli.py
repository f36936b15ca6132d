"""Many classes on the command line: rows and saved tables give the same result."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_same_card
from command_line import softcal_here as softcal
from pyarrow import csv

import softcal as sc
from softcal import cli
from softcal.scanning.patterns import class_columns

CLASSES = ["cat", "dog", "fox"]
VOTES = ("--vote-columns", "votes_*")


def found(*arguments: object) -> dict[str, Any]:
    result = softcal(*arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    card: dict[str, Any] = json.loads(result.stdout)
    return card


@pytest.fixture
def data(rng: np.random.Generator) -> dict[str, Any]:
    """Votes and two models; the second model's columns are in another order."""
    truth = rng.dirichlet([1, 1, 1], 300)
    sharp = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    counts = np.array(
        [rng.multinomial(m, p) for m, p in zip(rng.integers(2, 8, 300), truth, strict=True)]
    )
    columns: dict[str, Any] = {"item": np.arange(300), "w": rng.integers(0, 3, 300)}
    columns |= {f"votes_{name}": counts[:, c] for c, name in enumerate(CLASSES)}
    shares = counts / counts.sum(axis=1, keepdims=True)
    columns |= {f"share_{name}": shares[:, c] for c, name in enumerate(CLASSES)}
    columns |= {f"prob_{name}_a": truth[:, c] for c, name in enumerate(CLASSES)}
    columns |= {f"prob_{name}_b": sharp[:, CLASSES.index(name)] for name in reversed(CLASSES)}
    return columns


@pytest.fixture(params=["csv", "tsv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path, data: dict[str, Any]) -> Path:
    path: Path = tmp_path / f"data.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table(data), path)
    else:
        mark = "," if request.param == "csv" else "\t"
        rows = zip(*(column.tolist() for column in data.values()), strict=True)
        path.write_text("\n".join(mark.join(map(str, row)) for row in [list(data), *rows]) + "\n")
    return path


@pytest.fixture
def parquet(tmp_path: Path, data: dict[str, Any]) -> Path:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(data), path)
    return path


def matrix(data: dict[str, Any], before: str, after: str = "") -> Any:
    return np.column_stack([data[f"{before}{name}{after}"] for name in CLASSES])


def test_score_of_classes_matches_library(file: Path, data: dict[str, Any]) -> None:
    """In every format; classes are matched by name, in any order of columns."""
    card = found(
        "score",
        file,
        *VOTES,
        "--pred-columns",
        "prob_*_a",
        "--pred-columns",
        "prob_*_b",
        "--bins",
        7,
    )
    assert (card["n"], card["bins"], card["label"], card["classes"]) == (300, 7, "votes_*", CLASSES)
    votes = sc.Votes(matrix(data, "votes_"))
    for model, after in zip(card["models"], ("_a", "_b"), strict=True):
        p = matrix(data, "prob_", after)
        top = sc.top_label_reliability(votes, p, bins=7)
        interval = sc.smece_interval(top)
        tables = sc.classwise_reliability(votes, p, bins=7).values()
        expected = {
            "pred": f"prob_*{after}",
            "top_label_smece": top.smece,
            "accuracy": top.sums.label.sum() / 300,
            "debiased": interval.debiased,
            "low": interval.low,
            "high": interval.high,
            "level": 0.95,
            "pvalue": sc.calibration_test(top).pvalue,
            "classwise_smece": sc.classwise_smece(votes, p, bins=7),
            "smece_by_class": dict(zip(CLASSES, (table.smece for table in tables), strict=True)),
            "dist_ce": sc.dist_ce(votes, p),
            "dist_ce_floor": sc.vote_noise_floor(votes, p, metric="dist_ce"),
            "ent_ce": sc.ent_ce(votes, p),
            "ent_ce_signed": sc.ent_ce_signed(votes, p),
            "rank_cs": sc.rank_cs(votes, p),
            "brier": sc.brier(votes, p),
            "brier_without_vote_noise": sc.brier_without_vote_noise(votes, p),
            "log_loss": sc.log_loss(votes, p),
            "rows_of_infinite_log_loss": 0,
            "kl_divergence": sc.kl_divergence(votes, p),
        }
        assert_same_card({name: model[name] for name in expected}, expected)


def test_shares_have_no_vote_noise_and_weights_count(parquet: Path, data: dict[str, Any]) -> None:
    card = found(
        "score", parquet, "--label-columns", "share_", "--pred-columns", "prob_*_b", "--weight", "w"
    )
    y, p, w = matrix(data, "share_"), matrix(data, "prob_", "_b"), data["w"]
    model = card["models"][0]
    assert_same_card(model["top_label_smece"], sc.top_label_smece(y, p, sample_weight=w))
    assert_same_card(model["dist_ce"], sc.dist_ce(y, p, sample_weight=w))
    assert (model["dist_ce_floor"], model["brier_without_vote_noise"]) == (None, None)
    weighted = found("score", parquet, *VOTES, "--pred-columns", "prob_*_b", "--weight", "w")[
        "models"
    ][0]
    votes = sc.Votes(matrix(data, "votes_"))
    without = sc.brier_without_vote_noise(votes, p, sample_weight=w)
    assert_same_card(weighted["brier_without_vote_noise"], without)
    each = [
        sc.vote_noise_floor(sc.Votes([k]), [q], metric="dist_ce")
        for k, q in zip(matrix(data, "votes_"), p, strict=True)
    ]
    assert_same_card(weighted["dist_ce_floor"], float(np.average(each, weights=w)))


def test_listed_columns_are_matched_by_class(parquet: Path, data: dict[str, Any]) -> None:
    lists = (
        "--vote-columns",
        "votes_fox, votes_cat,votes_dog",
        "--pred-columns",
        "prob_fox_a,prob_cat_a,prob_dog_a",
    )
    card = found("score", parquet, *lists)
    votes = sc.Votes(matrix(data, "votes_"))
    assert card["classes"] == ["votes_fox", "votes_cat", "votes_dog"]
    expected = sc.top_label_smece(votes, matrix(data, "prob_", "_a"))
    assert_same_card(card["models"][0]["top_label_smece"], expected)
    for turned in ("prob_*_a", "prob_dog_a,prob_fox_a,prob_cat_a"):
        mixed = found("score", parquet, *lists[:2], "--pred-columns", turned)
        assert_same_card(mixed["models"][0]["top_label_smece"], expected)


def test_score_of_classes_prints_a_table(parquet: Path) -> None:
    text = softcal("score", parquet, *VOTES, "--pred-columns", "prob_*_a").stdout
    assert "data.parquet: 300 rows, label votes_*, 3 classes, 10 bins" in text
    for name in (
        "top-label SMECE",
        "95% interval",
        "classwise SMECE",
        "floor from vote noise",
        "RankCS",
    ):
        assert name in text
    shares = softcal(
        "score", parquet, "--label-columns", "share_", "--pred-columns", "prob_*_a"
    ).stdout
    assert "vote noise" not in shares.partition("Top-label compares")[0]


def test_infinite_log_loss_is_null_in_json(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("y_a,y_b,p_a,p_b,q_a,q_b\n0.5,0.5,1,0,0.5,0.5\n1,0,1,0,0.5,0.5\n")
    arguments = ("score", path, "--label-columns", "y_", "--pred-columns", "p_")
    model = found(*arguments)["models"][0]
    assert (model["log_loss"], model["kl_divergence"]) == (None, None)
    assert model["rows_of_infinite_log_loss"] == 1
    lines = softcal(*arguments).stdout.splitlines()
    for name in ("log loss  ", "KL divergence"):
        assert [line.split()[-1] for line in lines if name in line] == ["inf"]
    assert "In 1 of 2 rows, p_ predicts exactly 0 or 1 and the label differs" in " ".join(lines)
    card = found("compare", *arguments[1:], "--pred-columns", "q_")
    assert card["pairs"][0]["log_loss"]["low"] is None


def test_rows_without_weight_have_no_infinite_log_loss(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("y_a,y_b,p_a,p_b,w\n0.5,0.5,1,0,0\n1,0,1,0,1\n1,0,0,1,2\n")
    arguments = ("score", path, "--label-columns", "y_", "--pred-columns", "p_", "--weight", "w")
    assert found(*arguments)["models"][0]["rows_of_infinite_log_loss"] == 1


def test_a_model_of_classes_named_twice_is_refused(parquet: Path) -> None:
    twice = ("--pred-columns", "prob_*_a") * 2
    for command in ("score", "compare"):
        result = softcal(command, parquet, *VOTES, *twice)
        assert result.returncode == 2
        assert "each model must be named once: 'prob_*_a' is given twice." in result.stderr


def test_single_votes_give_no_brier_without_vote_noise(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("v_a,v_b,p_a,p_b\n1,0,0.5,0.5\n1,2,0.7,0.3\n")
    model = found("score", path, "--vote-columns", "v_", "--pred-columns", "p_")["models"][0]
    assert model["brier_without_vote_noise"] is None
    assert model["dist_ce_floor"] > 0


def test_compare_names_better_top_label(parquet: Path, data: dict[str, Any]) -> None:
    models = ("--pred-columns", "prob_*_a", "--pred-columns", "prob_*_b")
    card = found("compare", parquet, *VOTES, *models, "--level", 0.9)
    votes = sc.Votes(matrix(data, "votes_"))
    expected = sc.compare(
        votes, {"a": matrix(data, "prob_", "_a"), "b": matrix(data, "prob_", "_b")}, level=0.9
    )
    (pair,) = card["pairs"]
    assert pair["level"] == 0.9
    for key in ("difference", "low", "high", "pvalue"):
        assert_same_card(pair["smece"][key], getattr(expected, key))
    assert [model["pred"] for model in card["models"]] == ["prob_*_a", "prob_*_b"]
    text = " ".join(softcal("compare", parquet, *VOTES, *models).stdout.split())
    assert "The top label of prob_*_a is better calibrated than that of prob_*_b" in text
    turned = " ".join(softcal("compare", parquet, *VOTES, *models[2:], *models[:2]).stdout.split())
    assert "The top label of prob_*_a is better calibrated than that of prob_*_b" in turned
    few = parquet.with_name("few.csv")
    few.write_text("y_a,y_b,p_a,p_b,q_a,q_b\n0.5,0.5,0.7,0.3,0.6,0.4\n1,0,0.7,0.3,0.8,0.2\n")
    columns = ("--label-columns", "y_*", "--pred-columns", "p_*", "--pred-columns", "q_*")
    same = softcal("compare", few, *columns)
    assert "These data do not show whether the top label of p_* or q_* is better" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "--pred-columns", "prob_*_a"), "pass one of --label-columns (shares), --vote-columns (counts), and --label (a column of class"),
        (("score", *VOTES, "--label-columns", "share_", "--pred-columns", "prob_*_a"), "the label is stated twice, by --label-columns and --vote-columns: leave one out."),
        (("score", *VOTES), "Missing option '--pred', or '--pred-columns' for many classes."),
        (("score", *VOTES, "--pred-columns", "prob_"), "'prob_' must match the classes of the label: missing cat, dog, fox; unknown cat_a, cat_b"),
        (("score", *VOTES, "--pred-columns", "q_*"), "'q_*' must match two or more different columns: it matches none."),
        (("score", *VOTES, "--pred-columns", "w,w"), "it matches 'w', 'w'."),
        (("score", *VOTES, "--pred-columns", "prob_cat_a,prob_dog_a"), "must match one column per class of the label, 3 in total: it matches 2."),
        (("score", *VOTES, "--pred-columns", "a,b,c"), "has no column 'a'"),
        (("score", "--label-columns", "votes_", "--pred-columns", "prob_*_a"), "votes_cat must be in [0, 1]: "),
        (("score", "--vote-columns", "share_", "--pred-columns", "prob_*_a"), "share_cat must be whole numbers of 0 or more"),
        (("score", *VOTES, "--pred-columns", "prob_*_a", "--label", "w"), "the label is stated twice, by --label and --vote-columns: leave one out."),
        (("score", *VOTES, "--pred-columns", "prob_*_a", "--label-low", "w"), "the label is stated twice, by --label-low and --vote-columns: leave one out."),
        (("score", *VOTES, "--pred", "w", "--positive", "cat"), "w must be in [0, 1]: "),
        (("score", *VOTES, "--pred-columns", "prob_*_a", "--votes", "w"), "--votes needs a label that is a share of votes: pass --label COL, or leave it out."),
        (("score", "--label", "w", "--pred-columns", "prob_*_a"), "w must be one of the 3 classes"),
        (("compare", *VOTES, "--pred-columns", "prob_*_a", "--pred", "w"), "--pred is for one probability per row"),
        (("compare", *VOTES, "--pred-columns", "prob_*_a"), "a comparison needs two models: pass --pred-columns two or more times."),
        (("score", "--label", "w"), "Missing option '--pred'."),
        (("compare", "--pred", "w", "--pred", "v"), "Missing option '--label'."),
        (("compare", *VOTES, "--pred-columns", "prob_*_a", "--pred-columns", "nowhere_*", "--bins", "2001"), "a comparison takes at most 2000 bins: got 2001"),
    ],
)  # fmt: skip
def test_invalid_class_options_are_refused(
    parquet: Path, arguments: tuple[str, ...], message: str
) -> None:
    command, *options = arguments
    result = softcal(command, parquet, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    options = ("--vote-columns", "v_", "--pred-columns", "p_")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1\0\1 no PAR1")
    text = tmp_path / "latin.csv"
    text.write_bytes(b"v_\xe9,v_b\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    for path, message in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path / "none.parquet", "no such file"),
        (broken, "cannot read"),
        (text, "cannot read"),
        (tmp_path / "folder.csv", "no data in"),
    ):
        result = softcal("score", path, *options)
        assert result.returncode == 2
        assert message in result.stderr


def test_a_pattern_names_the_classes() -> None:
    assert class_columns("p*", ["p", "p1", "p2"]).classes == ("1", "2")


_CLASSES = "y_a,y_b,p_a,p_b\n0.5,0.5,0.25,0.75\n1,0,0.75,0.25\n"
_CLASS_OPTIONS = ["--label-columns", "y_*", "--pred-columns", "p_*", "--format", "json"]


@pytest.mark.parametrize("name", ["c.csv.gz", "c.jsonl", "c.arrow"])
def test_damaged_file_of_classes_is_refused_by_its_content(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"ARROW1\0\0")
    assert cli.run(["score", str(tmp_path / name), *_CLASS_OPTIONS]) == 2
    assert f"{name}: File is too small" in capsys.readouterr().err


def test_blank_lines_above_the_names_are_skipped_for_classes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.csv").write_text("\n\n" + _CLASSES)
    assert cli.run(["score", str(tmp_path / "c.csv"), *_CLASS_OPTIONS]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2


def test_rows_of_weight_0_are_counted_with_classes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names, *rows = _CLASSES.splitlines()
    lines = [f"{names},w", *(f"{row},{w}" for row in rows for w in (0, 1, 2))]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    options = [str(tmp_path / "c.csv"), *_CLASS_OPTIONS, "--weight", "w"]
    assert cli.run(["score", *options]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["n"], card["rows_without_weight"]) == (4, 2)
    assert cli.run(["score", *options[:-4], "--weight", "w"]) == 0
    assert "c.csv: 4 rows (2 more with weight 0), label y_*" in capsys.readouterr().out


# Rows and saved tables

MODELS = ("--pred-columns", "prob_*_a", "--pred-columns", "prob_*_b", "--pred-columns", "prob_*_c")
LABELS = {
    "shares": ("--label-columns", "share_*"),
    "votes": ("--vote-columns", "votes_*"),
    "names": ("--label", "name"),
    "numbers": ("--label", "number", "--classes", "0,1,2"),
    "lists": ("--label-columns", "shares", "--classes", "cat,dog,fox"),
    "lists of votes": ("--vote-columns", "votes", "--classes", "cat,dog,fox"),
}
OTHERS = {
    "weights": ("--weight", "w"),
    "segments": ("--by", "site", "--by", "half"),
    "groups and segments": ("--group", "patient", "--by", "site"),
}


@pytest.fixture
def several(tmp_path: Path, data: dict[str, Any], rng: np.random.Generator) -> tuple[Path, ...]:
    """Every kind of label and three models, whole and in two files."""
    shares, counts = matrix(data, "share_"), matrix(data, "votes_")
    flat = 0.5 * matrix(data, "prob_", "_a") + 0.5 / 3
    top = counts.argmax(axis=1)
    columns = data | {f"prob_{name}_c": flat[:, c] for c, name in enumerate(CLASSES)}
    columns |= {
        "name": np.array(CLASSES)[top], "number": top, "shares": list(shares),
        "votes": list(counts), "probs_a": list(matrix(data, "prob_", "_a")),
        "site": rng.choice(["n", "s"], 300), "half": rng.integers(0, 2, 300),
        "patient": rng.integers(0, 40, 300),
    }  # fmt: skip
    table = pa.table(columns)
    paths = tuple(tmp_path / f"{name}.parquet" for name in ("whole", "first", "rest"))
    for path, part in zip(paths, (table, table[:120], table[120:]), strict=True):
        pq.write_table(part, path)
    return paths


def _both_ways(
    command: str, paths: tuple[Path, ...], options: tuple[str, ...], tmp_path: Path
) -> dict[str, Any]:
    """Return the result on one file; assert that two files and saved tables give the same."""
    card = found(command, paths[0], *options)
    saved = tmp_path / "saved.softcal"
    assert_same_card(found(command, *paths[1:], *options), card)
    assert softcal("scan", *paths[1:], *options, "-o", saved).returncode == 0
    by = [word for k, word in enumerate(options) if "--by" in options[max(k - 1, 0) : k + 1]]
    assert_same_card(found(command, saved, *by), card)
    assert_same_card(found(command, saved, *options), card)
    return card


@pytest.mark.parametrize("label", LABELS)
def test_score_of_saved_tables_is_that_of_the_rows(
    label: str, several: tuple[Path, ...], data: dict[str, Any], tmp_path: Path
) -> None:
    card = _both_ways("score", several, (*LABELS[label], *MODELS), tmp_path)
    shares = matrix(data, "share_")
    y = shares if "names" not in label else np.eye(3)[matrix(data, "votes_").argmax(axis=1)]
    if label == "numbers":
        y = np.eye(3)[matrix(data, "votes_").argmax(axis=1)]
    p = matrix(data, "prob_", "_b")
    model = card["models"][1]
    tables = sc.classwise_reliability(y, p).values()
    for key, value in {
        "top_label_smece": sc.top_label_smece(y, p),
        "classwise_smece": sc.classwise_smece(y, p),
        "smece_by_class": dict(zip(card["classes"], (t.smece for t in tables), strict=True)),
        "brier": sc.brier(y, p),
        "rank_cs": sc.rank_cs(y, p),
        "kl_divergence": sc.kl_divergence(y, p),
    }.items():
        assert_same_card(model[key], value)


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("command", ["score", "compare"])
def test_weights_segments_and_groups_of_classes_are_the_same_from_saved_tables(
    command: str, others: str, several: tuple[Path, ...], tmp_path: Path
) -> None:
    options = (*LABELS["votes"], *MODELS, *OTHERS[others])
    if command == "score" or "groups" not in others:
        _both_ways(command, several, options, tmp_path)
    else:  # a group in two files is one group
        card = found(command, several[0], *options)
        assert_same_card(found(command, *several[1:], *options), card)


def test_segments_of_classes_are_the_rows_with_that_value(
    several: tuple[Path, ...], tmp_path: Path
) -> None:
    options = (*LABELS["votes"], *MODELS[:4])
    table = pq.read_table(several[0])
    south = tmp_path / "south.parquet"
    pq.write_table(table.filter(pa.compute.equal(table["site"], "s")), south)
    alone = found("score", south, *options)
    part = found("score", several[0], *options, "--by", "site")["models"][1]["segments"][1]
    assert (part.pop("by"), part.pop("value"), part.pop("n")) == ("site", "s", alone["n"])
    assert_same_card(part | {"segments": []}, alone["models"][1])
    pair = found("compare", several[0], *options, "--by", "site")["segments"][1]
    assert (pair.pop("by"), pair.pop("value")) == ("site", "s")
    whole = found("compare", south, *options)
    assert_same_card(pair, {name: whole[name] for name in pair})


def test_lists_of_predictions_are_one_column_per_model(
    several: tuple[Path, ...], tmp_path: Path
) -> None:
    lists = _both_ways("score", several, ("--label", "name", "--pred-columns", "probs_a",
                                          "--classes", "cat,dog,fox"), tmp_path)  # fmt: skip
    columns = found("score", several[0], "--label", "name", "--pred-columns", "prob_*_a")
    lists["models"][0]["pred"] = "prob_*_a"
    assert_same_card(lists, columns)


def test_models_of_classes_are_compared_pairwise(several: tuple[Path, ...]) -> None:
    card = found("compare", several[0], *LABELS["names"], *MODELS)
    smece = [model["top_label_smece"] for model in card["models"]]
    assert smece == sorted(smece)
    assert len(card["pairs"]) == 3
    pair = card["pairs"][0]
    two = found("compare", several[0], *LABELS["names"], "--pred-columns", pair["a"],
                "--pred-columns", pair["b"], "--level", pair["level"])["pairs"][0]  # fmt: skip
    assert_same_card(pair["smece"], two["smece"])
    assert pair["pvalue_holm"] >= pair["smece"]["pvalue"]
    text = softcal("compare", several[0], *LABELS["names"], *MODELS, "--by", "site").stdout
    assert "p-value\n" in text.replace(" ", "") or "(Holm)" in text
    assert "site s: " in text


def test_merged_tables_of_classes_are_those_of_all_rows(
    several: tuple[Path, ...], tmp_path: Path
) -> None:
    options = (*LABELS["votes"], *MODELS, "--by", "site")
    parts = [tmp_path / "a.softcal", tmp_path / "b.softcal"]
    for path, part in zip(several[1:], parts, strict=True):
        shown = softcal("scan", path, *options, "-o", part)
        assert "3 models, 3 classes, by site" in " ".join(shown.stdout.split())
    whole = found("score", several[0], *options)
    assert_same_card(found("merge", *parts, "-o", tmp_path / "sum.softcal"), whole)
    assert_same_card(found("score", tmp_path / "sum.softcal", "--by", "site"), whole)


def test_one_model_of_saved_classes_is_selected_by_its_columns(
    several: tuple[Path, ...], tmp_path: Path
) -> None:
    saved = tmp_path / "saved.softcal"
    options = (*LABELS["votes"], *MODELS)
    assert found("score", several[0], *options, "--save", saved)["n"] == 300
    only = found("score", saved, "--pred-columns", "prob_*_b", "--bins", 5)
    expected = found("score", several[0], *LABELS["votes"], "--pred-columns", "prob_*_b",
                     "--bins", 5)  # fmt: skip
    assert_same_card(only, expected)
    for options, message in (
        (("--label-columns", "share_*"), "--label-columns must be as in the saved tables, which"),
        (("--classes", "a,b,c"), "made with 'cat,dog,fox': got 'a,b,c'"),
        (("--label-low", "a", "--label-high", "b"), "--label-low and --label-high must be as in"),
        (("--pred-columns", "q_*"), "the set has no model 'q_*'"),
    ):
        assert message in softcal("score", saved, *options).stderr


def test_only_worst_of_many_classes_are_printed(tmp_path: Path, rng: np.random.Generator) -> None:
    p = rng.dirichlet(np.ones(40), 50)
    columns = {f"p_{k}": p[:, k] for k in range(40)}
    pq.write_table(pa.table({"y": rng.integers(0, 40, 50), **columns}), tmp_path / "d.parquet")
    arguments = ("score", tmp_path / "d.parquet", "--label", "y", "--pred-columns", "p_*")
    text = softcal(*arguments).stdout
    assert "ECE by class, worst first: 5 of 40 (all with --format json)" in text
    assert len(found(*arguments)["models"][0]["smece_by_class"]) == 40
    assert max(map(len, text.splitlines())) <= 80


def test_tables_without_scores_of_items_are_shown_without_them(
    several: tuple[Path, ...], tmp_path: Path
) -> None:
    saved = tmp_path / "saved.softcal"
    softcal("scan", several[0], *LABELS["votes"], *MODELS, "--by", "site", "-o", saved)
    kept = json.loads(saved.read_text())
    del kept["blocks"]["scores"], kept["checksum"]
    saved.write_text(json.dumps(kept))
    card = found("score", saved)
    assert (card["models"][0]["brier"], card["models"][0]["log_loss"]) == (None, None)
    assert card["models"][0]["top_label_smece"] > 0
    text = softcal("score", saved, "--by", "site").stdout
    assert "log loss" not in text
    assert "DistCE  " not in text


def test_plan_takes_saved_classes_as_a_pilot(several: tuple[Path, ...], tmp_path: Path) -> None:
    saved = tmp_path / "saved.softcal"
    softcal("scan", several[0], *LABELS["votes"], *MODELS, "-o", saved)
    aim = (saved, "--half-width", "0.02", "--format", "json")
    assert softcal("plan", *aim, "--pred", "prob_*_b").returncode == 0
    assert "choose one with --pred." in softcal("plan", *aim).stderr


def test_commands_of_the_page_on_classes_run(
    several: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pq.read_table(several[0]).drop(["shares", "votes", "probs_a"])
    names = {"a": "lr", "b": "nb", "c": "rf"}
    csv.write_csv(
        table.rename_columns(
            [
                f"{name[:-1]}{names[name[-1]]}" if name.startswith("prob_") else name
                for name in table.column_names
            ]
        ).append_column("label", table["name"]),
        "items.csv",
    )
    page = (Path(__file__).parent.parent / "docs" / "multiclass.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    softcal (.*)$", page.replace("\\\n", ""), re.MULTILINE)
    assert len(commands) == 10
    for command in commands:
        result = softcal(*shlex.split(command))
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "classes.html").exists()
