"""Every `--format json` and every saved file validates against its schema, which allows no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import saved_examples
from command_line import softcal_here
from jsonschema import Draft202012Validator

import softcal as sc
from softcal.cli.schema import schema_names, schema_of
from softcal.table.files import content

N = 240
CLASSES = ("cat", "dog", "fox")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write rows of every kind: soft, 0/1, votes, classes, bounds, raters, and missing values."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("schemas")
    p = rng.uniform(size=N)
    truth = rng.dirichlet([1, 1, 1], N)
    counts = np.array([rng.multinomial(5, each) for each in truth])
    rows = pd.DataFrame({
        "y": rng.binomial(4, p) / 4, "hit": rng.binomial(1, p), "p": p, "q": p**2, "r": p**0.5,
        "sure": rng.choice([0.0, 1.0, 0.5], N), "gap": np.where(np.arange(N) % 9, p, np.nan),
        "w": rng.choice([0, 1, 2], N), "m": 4, "patient": np.arange(N) // 3,
        "one_group": "all",
        "site": rng.choice(np.array(["a", "b", None], dtype=object), N),
        "device": rng.choice(["x", "z"], N), "low": p / 2, "high": (p + 1) / 2,
        "day": [f"2026-03-{k:02d}" for k in 1 + np.arange(N) % 12],
        **{f"n_{name}": counts[:, k] for k, name in enumerate(CLASSES)},
        **{f"p_{name}": truth[:, k] for k, name in enumerate(CLASSES)},
        **{f"q_{name}": truth[:, k] ** 2 / (truth**2).sum(1) for k, name in enumerate(CLASSES)},
        **{f"r_{name}": 0.5 * truth[:, k] + 1 / 6 for k, name in enumerate(CLASSES)},
    })  # fmt: skip
    rows.to_csv(path / "rows.csv", index=False)
    rows.iloc[1:2].to_csv(path / "one.csv", index=False)
    votes = [
        {"id": k, "who": f"w{j}", "kind": "ab"[j % 2], "said": int(rng.random() < p[k])}
        for k in range(N)
        for j in rng.choice(8, 4, replace=False)
    ]
    pd.DataFrame(votes).to_csv(path / "votes.csv", index=False)
    pd.DataFrame({"id": np.arange(N), "p": p, "p2": p**2}).to_csv(path / "preds.csv", index=False)
    return path


SOFT = "rows.csv --label y --pred p"
TWO = f"{SOFT} --pred q"
THREE = f"{TWO} --pred r"
OF_CLASSES = "rows.csv --vote-columns n_* --pred-columns p_*"
RATED = "preds.csv --pred p --votes-file votes.csv --item id --worker who --vote said --positive 1"
DECIDE = "decide one.csv --label y --pred p --pred q"
LINES = [
    "inspect rows.csv",
    f"score {SOFT}",
    f"score {THREE} --by site --by device --bins 5 --level 0.9",
    f"score {SOFT} --by site --weight w",
    f"score {SOFT} --votes m --group patient",
    "score rows.csv --label hit --pred p",
    "score rows.csv --label y --pred gap --drop-missing",
    "score rows.csv --label y --pred sure",
    f"score {RATED} --raters",
    f"score {RATED} --by-rater kind",
    "score rows.csv --label-low low --label-high high --pred p --by site",
    f"score {OF_CLASSES} --pred-columns q_* --by site --by device",
    f"score {OF_CLASSES} --ordered --by site",
    "score rows.csv --label-columns p_* --pred-columns q_*",
    f"compare {TWO}",
    f"compare {TWO} --by site",
    f"compare {THREE} --by site --by device",
    f"compare {SOFT} --pred sure --group patient",
    f"compare {RATED} --pred p2 --raters",
    f"compare {OF_CLASSES} --pred-columns q_* --by site",
    f"compare {OF_CLASSES} --pred-columns q_* --pred-columns r_*",
    "plan --smece 0.05 --label-spread 0.2 --half-width 0.01",
    "plan rows.csv --label y --pred gap --drop-missing --item-cost 2 --budget 1000",
    f"plan {SOFT} --votes m --difference 0.02 --correlation 0.5",
    f"check {TWO} --max-smece 0.03",
    f"check {SOFT} --max-smece 0.5 --max-gap 0.5 --by site --group patient",
    f"check {OF_CLASSES} --max-smece 0.5",
    f"watch {SOFT} --day day",
    f"watch {TWO} --day day --by site --tolerance 0 --level 0.9",
    "watch rows.csv --label y --pred sure --day day --weight w --max-weight 2",
    f"decide {TWO} --threshold 0.2 --threshold 0.5",
    "decide rows.csv --label hit --pred p --threshold 0.001 --weight w",
    "decide rows.csv --label y --pred sure --threshold 0.5",
    f"route {SOFT} --max-disagreement 0.4 --by site",
    f"route {SOFT} --crowd q",
    f"route {OF_CLASSES} --pred-columns q_* --at-every-look",
    f"audit {TWO} --by site --by device --draws 200",
    "audit rows.csv --label y --pred p --feature low:3 --draws 200 --min-rows 10",
    f"recalibrate {SOFT} -o cal.json",
    "recalibrate rows.csv --label y --pred gap --drop-missing --method isotonic -o iso.json",
    f"recalibrate {OF_CLASSES} -o classes.json",
    "apply cal.json rows.csv --pred p -o out.csv",
    "audit rows.csv --label y --pred p --by m",
    "merge rows.softcal",
    "merge groups.softcal",
    "paper",
    "score one.csv --label y --pred p --by site --group patient",
    "compare one.csv --label y --pred p --pred q",
    "compare one.csv --label hit --pred p --pred sure",
    "compare one.csv --label y --pred p --pred q --pred r --by site",
    "compare one.csv --vote-columns n_* --pred-columns p_* --pred-columns q_*",
    f"compare {TWO} --group one_group",
    "check one.csv --label y --pred p --max-smece 0.03 --max-gap 0.1",
    "watch one.csv --label y --pred p --day day",
    f"{DECIDE} --threshold 0.2 --threshold 0.9",
    "audit one.csv --label y --pred p --by site --draws 200 --min-rows 1",
]


def complaints(card: Any, name: str) -> list[str]:
    found = Draft202012Validator(schema_of(name)).iter_errors(card)
    return [f"{each.json_path}: {each.message:.300}" for each in found]


@pytest.mark.parametrize("line", LINES)
def test_output_of_each_command_validates(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(folder)
    if line.startswith("apply"):
        calibrator = sc.calibrators.PlattCalibrator().fit([0.2, 0.8, 0.5], [0.1, 0.9, 0.4])
        Path("cal.json").write_text(json.dumps(calibrator.to_dict()), encoding="utf-8")
    if line.startswith("merge"):
        group = ("--group", "patient") if "groups" in line else ()
        softcal_here("scan", *SOFT.split(), *group, "-o", line.split()[-1])
    done = softcal_here(*line.split(), "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    card = json.loads(done.stdout)
    name = line.split()[0]
    assert complaints(card, name) == []
    assert complaints({**card, "unknown": 1}, name)
    for key in card:
        if key != "by_rater":  # without it, the scores are those of other commands
            assert complaints({k: v for k, v in card.items() if k != key}, name)
    if name == "recalibrate":
        saved = json.loads(Path(line.split()[-1]).read_text(encoding="utf-8"))
        assert complaints(saved, "calibrator") == []


@pytest.mark.parametrize("data", ["one.csv", "rows.csv --group one_group"])
def test_comparison_without_limits_has_nulls_and_a_note(
    folder: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    monkeypatch.chdir(folder)
    line = f"compare {data} --label y --pred p --pred q".split()
    card = json.loads(softcal_here(*line, "--format", "json").stdout)
    what = "group" if "group" in data else "row"
    note = f"One {what} does not show how much {what}s vary, so intervals are the whole range."
    (pair,) = card["pairs"]
    assert pair["note"] == note
    assert pair["log_loss"]["difference"] is not None
    assert (pair["log_loss"]["low"], pair["log_loss"]["high"]) == (None, None)
    shown = softcal_here(*line).stdout
    assert "inf" not in shown
    assert note in " ".join(shown.split())
    of_segments = " ".join(softcal_here(*line, "--by", "device").stdout.split())
    parts = 1 if data == "one.csv" else 2
    assert of_segments.count(note) == 1 + parts


def test_net_benefit_of_one_row_has_nulls_and_a_note(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    line = f"{DECIDE} --threshold 0.2".split()
    card = json.loads(softcal_here(*line, "--format", "json").stdout)
    note = "One row does not show how much rows vary, so net benefit has no interval."
    for each in (*card["models"], *card["differences"]):
        assert note in each["note"]
        assert each["thresholds"][0]["low"] is None
    shown = softcal_here(*line).stdout
    assert "inf" not in shown
    assert note in " ".join(shown.split())


def test_saved_sets_and_calibrators_validate() -> None:
    for saved in (*saved_examples.sets(), *saved_examples.tables()):
        assert complaints(saved, "tables") == []
        assert complaints({**saved, "unknown": 1}, "tables")
        for key in saved:
            assert complaints({k: v for k, v in saved.items() if k != key}, "tables")
    for saved in saved_examples.calibrators():
        assert complaints(saved, "calibrator") == []
        assert complaints({**saved, "parameters": {}}, "calibrator")


@pytest.mark.parametrize(
    "options",
    [
        SOFT, f"{TWO} --by site --weight w --date 2026-03-01", f"{TWO} --group patient --by site",
        f"{OF_CLASSES} --pred-columns q_* --ordered", "rows.csv --label y --pred gap --drop-missing",
        "rows.csv --label-low low --label-high high --pred p", f"{RATED} --pred p2 --raters",
    ],
)  # fmt: skip
def test_saved_sets_validate(folder: Path, monkeypatch: pytest.MonkeyPatch, options: str) -> None:
    monkeypatch.chdir(folder)
    done = softcal_here("scan", *options.split(), "-o", "set.softcal")
    assert done.returncode == 0, done.stderr
    saved = content(sc.load("set.softcal"))
    assert complaints(json.loads(json.dumps(saved)), "tables") == []
    assert complaints({**saved, "unknown": 1}, "tables")


def test_every_schema_is_valid_and_tested() -> None:
    names = schema_names()
    for name in names:
        schema = schema_of(name)
        Draft202012Validator.check_schema(schema)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    tested = {line.split()[0] for line in LINES}
    assert set(names) == tested | {"tables", "calibrator"}


def test_command_lists_schemas_and_prints_one() -> None:
    assert [line.split()[0] for line in softcal_here("schema").stdout.splitlines()] == list(
        schema_names()
    )
    assert json.loads(softcal_here("schema", "score").stdout) == schema_of("score")
    done = softcal_here("schema", "scores")
    assert done.returncode == 2
    assert "no schema is named 'scores': choose one of apply, audit" in done.stderr
