"""`softcal score` and `compare` of many classes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import softcal_here as softcal

import softcal as sc
from softcal import cli
from softcal.sources.class_columns import class_columns, names_of_columns

if TYPE_CHECKING:
    from pathlib import Path

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


def test_score_gives_what_the_library_gives(file: Path, data: dict[str, Any]) -> None:
    """Of every format; classes are matched by name, whatever the order of the columns."""
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
    assert list(card) == ["n", "bins", "label", "classes", "models"]
    assert (card["n"], card["bins"], card["label"], card["classes"]) == (300, 7, "votes_*", CLASSES)
    votes = sc.Votes(matrix(data, "votes_"))
    for model, after in zip(card["models"], ("_a", "_b"), strict=True):
        p = matrix(data, "prob_", after)
        top = sc.top_label_reliability(votes, p, bins=7)
        interval = sc.smece_interval(top)
        tables = sc.classwise_reliability(votes, p, bins=7).values()
        assert model == {
            "pred": f"prob_*{after}",
            "top_label_smece": top.smece,
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


def test_shares_have_no_vote_noise_and_weights_count(parquet: Path, data: dict[str, Any]) -> None:
    card = found(
        "score", parquet, "--label-columns", "share_", "--pred-columns", "prob_*_b", "--weight", "w"
    )
    y, p, w = matrix(data, "share_"), matrix(data, "prob_", "_b"), data["w"]
    model = card["models"][0]
    assert model["top_label_smece"] == sc.top_label_smece(y, p, sample_weight=w)
    assert model["dist_ce"] == sc.dist_ce(y, p, sample_weight=w)
    assert (model["dist_ce_floor"], model["brier_without_vote_noise"]) == (None, None)
    weighted = found("score", parquet, *VOTES, "--pred-columns", "prob_*_b", "--weight", "w")[
        "models"
    ][0]
    assert weighted["dist_ce_floor"] is None
    assert weighted["brier_without_vote_noise"] is not None


def test_lists_of_columns_go_by_their_order(parquet: Path, data: dict[str, Any]) -> None:
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
    assert card["models"][0]["top_label_smece"] == expected
    mixed = found("score", parquet, *lists[:2], "--pred-columns", "prob_*_a")  # by order, too
    assert mixed["models"][0]["top_label_smece"] != expected


def test_the_table_is_for_people(parquet: Path) -> None:
    text = softcal("score", parquet, *VOTES, "--pred-columns", "prob_*_a").stdout
    assert "data.parquet: 300 rows, label votes_*, 3 classes, 10 bins" in text
    for name in (
        "top-label SMECE",
        "95% interval",
        "classwise SMECE",
        "floor by vote noise",
        "RankCS",
    ):
        assert name in text
    shares = softcal(
        "score", parquet, "--label-columns", "share_", "--pred-columns", "prob_*_a"
    ).stdout
    assert "vote noise" not in shares.partition("Top-label:")[0]


def test_what_is_infinite_is_null(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("y_a,y_b,p_a,p_b\n0.5,0.5,1,0\n1,0,1,0\n")
    arguments = ("score", path, "--label-columns", "y_", "--pred-columns", "p_")
    model = found(*arguments)["models"][0]
    assert (model["log_loss"], model["kl_divergence"]) == (None, None)
    assert model["rows_of_infinite_log_loss"] == 1
    lines = softcal(*arguments).stdout.splitlines()
    for name in ("log loss  ", "KL divergence"):
        assert [line.split()[-1] for line in lines if name in line] == ["inf"]
    assert "In 1 of 2 rows p_ predicts exactly 0 or 1 and the label differs" in " ".join(lines)
    card = found("compare", *arguments[1:], "--pred-columns", "y_")
    assert card["top_label"]["log_loss"]["low"] is None


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
        assert "each model must be named once: --pred-columns 'prob_*_a'" in result.stderr


def test_one_vote_leaves_the_brier_score_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("v_a,v_b,p_a,p_b\n1,0,0.5,0.5\n1,2,0.7,0.3\n")
    model = found("score", path, "--vote-columns", "v_", "--pred-columns", "p_")["models"][0]
    assert model["brier_without_vote_noise"] is None
    assert model["dist_ce_floor"] > 0


def test_compare_says_whose_top_label_is_better(parquet: Path, data: dict[str, Any]) -> None:
    models = ("--pred-columns", "prob_*_a", "--pred-columns", "prob_*_b")
    card = found("compare", parquet, *VOTES, *models, "--level", 0.9)
    votes = sc.Votes(matrix(data, "votes_"))
    expected = sc.compare(
        votes, {"a": matrix(data, "prob_", "_a"), "b": matrix(data, "prob_", "_b")}, level=0.9
    )
    for key in ("difference", "low", "high", "pvalue", "level"):
        assert card["top_label"][key] == getattr(expected, key)
    assert [model["pred"] for model in card["models"]] == ["prob_*_a", "prob_*_b"]
    text = " ".join(softcal("compare", parquet, *VOTES, *models).stdout.split())
    assert "The top label of prob_*_a is better calibrated than that of prob_*_b" in text
    turned = " ".join(softcal("compare", parquet, *VOTES, *models[2:], *models[:2]).stdout.split())
    assert "The top label of prob_*_a is better calibrated than that of prob_*_b" in turned
    same = softcal(
        "compare",
        parquet,
        *VOTES,
        "--pred-columns",
        "prob_*_a",
        "--pred-columns",
        "prob_cat_a,prob_dog_a,prob_fox_a",
    )
    assert "These data cannot tell whose top label is better calibrated" in same.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "--pred-columns", "prob_*_a"), "give one of --label-columns (shares) and --vote-columns (counts)."),
        (("score", *VOTES, "--label-columns", "share_", "--pred-columns", "prob_*_a"), "give one of --label-columns"),
        (("score", *VOTES), "Missing option '--pred-columns'."),
        (("score", *VOTES, "--pred-columns", "prob_"), "'prob_' must stand for the classes of the label: missing cat, dog, fox; beside them cat_a, cat_b"),
        (("score", *VOTES, "--pred-columns", "q_*"), "'q_*' must stand for two or more different columns: it stands for none."),
        (("score", *VOTES, "--pred-columns", "w,w"), "it stands for 'w', 'w'."),
        (("score", *VOTES, "--pred-columns", "prob_cat_a,prob_dog_a"), "as many columns as there are classes of the label, 3: it stands for 2."),
        (("score", *VOTES, "--pred-columns", "a,b,c"), "has no column 'a'"),
        (("score", "--label-columns", "votes_", "--pred-columns", "prob_*_a"), "the first is votes_[0, 0] = "),
        (("score", "--vote-columns", "share_", "--pred-columns", "prob_*_a"), "counts must be whole numbers of 0 or more"),
        (("score", *VOTES, "--pred-columns", "prob_*_a", "--label", "w"), "--label is for one probability per row: leave it out with many classes."),
        (("score", *VOTES, "--pred-columns", "prob_*_a", "--group", "item"), "--group is for one probability per row"),
        (("compare", *VOTES, "--pred-columns", "prob_*_a", "--pred", "w"), "--pred is for one probability per row"),
        (("compare", *VOTES, "--pred-columns", "prob_*_a"), "give --pred-columns twice, with different columns"),
        (("score", "--label", "w"), "Missing option '--pred'."),
        (("compare", "--pred", "w", "--pred", "v"), "Missing option '--label'."),
    ],
)  # fmt: skip
def test_refusals(parquet: Path, arguments: tuple[str, ...], message: str) -> None:
    command, *options = arguments
    result = softcal(command, parquet, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    options = ("--vote-columns", "v_", "--pred-columns", "p_")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no")
    text = tmp_path / "latin.csv"
    text.write_bytes(b"v_\xe9,v_b\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    for path, message in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path / "none.parquet", "no such file"),
        (broken, "cannot read"),
        (text, "cannot read"),
        (tmp_path / "folder.csv", "cannot read"),
    ):
        result = softcal("score", path, *options)
        assert result.returncode == 2
        assert message in result.stderr


def test_names_are_read_without_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('\ufeffa,"b,c"\n1\n')
    assert names_of_columns(path) == ["a", "b,c"]
    path.write_text("")
    with pytest.raises(sc.InputError, match="Empty CSV file"):
        names_of_columns(path)
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
    assert "c.csv: 4 rows (2 more have weight 0), label y_*" in capsys.readouterr().out
