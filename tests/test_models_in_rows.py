"""The command line on models in rows, models in files, votes on classes, and nested records."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import assert_same_card
from command_line import softcal_here as softcal

import softcal as sc

if TYPE_CHECKING:
    from pathlib import Path

LONG = ("--label", "correct", "--pred", "conf", "--model", "model")


@pytest.fixture
def rows(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Answers of two models to the same 150 questions, with their confidence."""
    found = []
    for item, base in enumerate(rng.random(150)):
        for model, power in (("gpt", 1), ("llama", 3)):
            p = round(float(np.clip(base + rng.normal() / 10, 0.01, 0.99)), 3)
            right = int(rng.random() < p**power)
            found.append(
                {"id": item, "model": model, "conf": p, "correct": right, "topic": "ab"[item % 2]}
            )
    return found


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)
    return path


@pytest.fixture
def long(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    return written(tmp_path / "long.csv", rows)


def card(*arguments: object) -> dict[str, Any]:
    done = softcal(*arguments, "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*arguments: object) -> str:
    done = softcal(*arguments)
    assert done.returncode == 2
    return done.stderr


def column(rows: list[dict[str, Any]], model: str, name: str) -> list[float]:
    return [row[name] for row in rows if row["model"] == model]


def test_score_is_that_of_each_model(long: Path, rows: list[dict[str, Any]]) -> None:
    found = card("score", long, *LONG)
    assert [model["pred"] for model in found["models"]] == ["gpt", "llama"]
    for model in found["models"]:
        y, p = (column(rows, model["pred"], name) for name in ("correct", "conf"))
        assert model["smece"] == pytest.approx(sc.smece(y, p), rel=1e-12)


def test_models_with_their_own_labels_are_compared_by_item(
    long: Path, rows: list[dict[str, Any]], rng: np.random.Generator
) -> None:
    found = card("compare", long, *LONG, "--item", "id")
    y, p = (
        [np.array(column(rows, model, name)) for model in ("gpt", "llama")]
        for name in ("correct", "conf")
    )
    losses = [(b - a) ** 2 for a, b in zip(y, p, strict=True)]
    (pair,) = found["pairs"]
    assert pair["brier"]["difference"] == pytest.approx(np.mean(losses[0] - losses[1]))
    smece = pair["smece"]
    assert smece["a"] - smece["b"] == pytest.approx(smece["difference"])
    shuffled = written(long.with_name("shuffled.csv"), [rows[k] for k in rng.permutation(300)])
    again = card("compare", shuffled, *LONG, "--item", "id")
    assert_same_card(again, found)


def test_one_file_per_model_is_the_same(
    long: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    files = [
        written(tmp_path / f"{name}.csv", [row for row in rows if row["model"] == name])
        for name in ("gpt", "llama")
    ]
    options = ("--label", "correct", "--pred", "conf", "--item", "id")
    for command in ("score", "compare"):
        ours = card(command, *files, *options, "--model-per-file")
        assert_same_card(ours, card(command, long, *options, "--model", "model"))


@pytest.mark.parametrize(
    "line",
    ["report -o r.html", "plot -o f.svg", "scan -o s.json", "audit --by topic --draws 200",
     "decide --threshold 0.3", "check --max-smece 0.5", "score --by topic --name A --name B"],
)  # fmt: skip
def test_every_command_takes_models_in_rows(
    long: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(long.parent)
    command, *options = line.split()
    done = softcal(command, long, *LONG, "--item", "id", *options)
    assert (done.returncode, done.stderr) == (0, "")


def test_saved_tables_compare_models_in_rows(long: Path, tmp_path: Path) -> None:
    saved = tmp_path / "s.json"
    assert softcal("scan", long, *LONG, "--item", "id", "-o", saved).returncode == 0
    assert_same_card(card("compare", saved), card("compare", long, *LONG, "--item", "id"))


def test_epochs_are_votes(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    own = [row for row in rows if row["model"] == "gpt"][:40]
    three = [row | {"correct": k % 2} for row in own for k in range(3)]
    path = written(tmp_path / "epochs.csv", three)
    found = card("score", path, *LONG, "--item", "id", "--epochs")
    assert found["n"] == 40
    p = [row["conf"] for row in own]
    assert found["models"][0]["smece"] == pytest.approx(sc.smece([1 / 3] * 40, p), rel=1e-12)
    said = refused("score", path, *LONG, "--item", "id")
    assert "each id must have one row of a model" in said
    assert "If these are repetitions, state it: --epochs." in said


def test_records_of_a_document_are_read_by_their_path(
    long: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    nested = [{"score": {"value": row["correct"]}, **row} for row in rows]
    path.write_text(json.dumps({"run": 1, "results": {"rows": nested}}))
    options = ("--label", "score.value", "--pred", "conf", "--model", "model")
    found = card("score", path, *options, "--records", "results.rows")
    expected = card("score", long, *LONG)
    for ours, other in zip(found["models"], expected["models"], strict=True):
        assert_same_card(ours, other)


def test_votes_on_classes_are_the_same_as_their_counts(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    votes, counted = [], []
    for item, p in enumerate(rng.dirichlet([1, 1, 1], 50).round(3)):
        probs = {"p_cat": p[0], "p_dog": p[1], "p_fox": round(1 - p[0] - p[1], 3)}
        said = rng.choice(["cat", "dog", "fox"], 3)
        votes += [
            {"id": item, "who": f"r{k}", "said": each, **probs} for k, each in enumerate(said)
        ]
        counts = {f"n_{name}": int((said == name).sum()) for name in ("cat", "dog", "fox")}
        counted.append({**counts, **probs})
    raw, table = written(tmp_path / "v.csv", votes), written(tmp_path / "n.csv", counted)
    options = ("--vote", "said", "--item", "id", "--pred-columns", "p_*")
    found = card("score", raw, *options)
    expected = card("score", table, "--vote-columns", "n_*", "--pred-columns", "p_*")
    assert found["classes"] == expected["classes"]
    for key in ("top_label_smece", "classwise_smece", "brier", "kl_divergence"):
        assert found["models"][0][key] == pytest.approx(expected["models"][0][key], rel=1e-12)
    assert card("check", raw, *options, "--max-smece", "0.9")["outcome"] == "pass"
    for command, output in (("report", "r.html"), ("scan", "s.json")):
        assert softcal(command, raw, *options, "-o", tmp_path / output).returncode == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model model --model-per-file --pred conf --label correct", "pass --model or --model-per-file, not both."),
        ("--epochs --pred conf --label correct", "--epochs needs models in rows: pass --model COL"),
        ("--epochs --model model --pred conf --label correct", "--epochs needs items: pass --item COL"),
        ("--item id --pred conf --label correct", "--item needs raw votes or models in rows"),
        ("--model model --pred conf --pred id --label correct", "have one column of predictions: pass --pred once."),
        ("--model model --item id --vote correct --pred conf", "leave --model and --model-per-file out with raw votes"),
        ("--model model --label-columns a,b --pred-columns c,d", "leave --model and --model-per-file out with raw votes"),
        ("--vote correct --pred conf", "--vote needs the item of each vote: pass --item COL"),
        ("--votes-file v.csv --item id --pred conf", "--votes-file needs the column of votes: pass --vote COL"),
        ("--vote correct --item id --raters --pred conf", "--raters needs the rater of each vote: pass --worker COL"),
        ("--worker who --label correct --pred conf", "--worker needs raw votes: pass --vote COL"),
        ("--label-low a --pred conf", "pass both ends of the labels: --label-low COL and --label-high COL."),
        ("--label correct --label-low a --pred conf", "the label is stated twice, by --label and --label-low"),
        ("--label-low a --label-high b --positive x --pred conf", "--positive needs one label in words"),
        ("--label correct --votes n --positive x --pred conf", "--positive needs one label in words"),
        ("--vote correct --item id --label-scale percent --pred conf", "--label-scale needs labels that are numbers"),
        ("--vote correct --item id --ordered --pred-columns a,b", "--ordered needs many classes that are not raw votes"),
        ("--label correct --pred conf --classes a,b", "--pred is for one probability per row"),
        ("--label correct --ordered --pred conf", "--ordered needs many classes"),
    ],
)  # fmt: skip
def test_contradictory_options_are_refused(long: Path, options: str, said: str) -> None:
    assert said in refused("score", long, *options.split())


def test_models_in_rows_are_compared_only_by_item(long: Path) -> None:
    assert "models in rows are compared by item: pass --item COL." in refused(
        "compare", long, *LONG
    )
