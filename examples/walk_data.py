"""Write the simulated data of a walk-through into the current folder.

Run as `python examples/walk_data.py NAME`, where NAME is hospitals, votes, days, or answers.
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FloatArray = npt.NDArray[np.float64]


def hospitals() -> None:
    """Simulate nine hospitals whose outcomes differ from a model's risks by hospital and age.

    A second workbook has the patients of 80 years and more.
    """
    from openpyxl import Workbook  # type: ignore[import-untyped]

    rng = np.random.default_rng(1)
    sizes = rng.integers(150, 1200, 9)
    effect = rng.normal(0, 0.4, 9)  # in log odds
    hospital = np.repeat(np.arange(9), sizes)
    age = rng.normal(66, 14, len(hospital)).clip(18, 98).round()
    sex = rng.choice(["f", "m"], len(hospital))
    score = rng.normal(-2.2, 1.1, len(hospital)) + 0.03 * (age - 66)
    true = -0.25 + 0.85 * score + effect[hospital] + 0.5 * (age >= 80)
    died = rng.random(len(hospital)) < expit(true)

    rows = [
        [i + 1, "ABCDEFGHI"[where], int(age[i]), str(sex[i]), _percent(score[i]), outcome]
        for i, (where, outcome) in enumerate(
            zip(hospital, np.where(died, "yes", "no"), strict=True)
        )
    ]
    aged = [row for row, years in zip(rows, age, strict=True) if years >= 80]
    for path, kept in (("hospitals.xlsx", rows), ("aged_80.xlsx", aged)):
        book = Workbook()
        book.active.append(["patient", "hospital", "age", "sex", "risk_percent", "died"])
        for row in kept:
            book.active.append(row)
        book.save(path)


def votes() -> None:
    """Simulate 600 comments, 48 raters who differ, and two models."""
    rng = np.random.default_rng(2)
    gender = rng.choice(["f", "m"], 48)
    lean = rng.normal(0, 0.6, 48) + 0.3 * (gender == "f")  # in log odds
    opinion = rng.normal(-0.8, 1.6, 600)
    models = {
        "large": 1.4 * opinion - 0.2 + rng.normal(0, 0.6, 600),
        "small": 0.9 * opinion + rng.normal(0, 1.1, 600),
    }
    cast = []
    for item, rate in enumerate(opinion):
        for who in rng.choice(48, rng.integers(3, 7), replace=False):
            vote = "toxic" if rng.random() < expit(rate + lean[who]) else "ok"
            cast.append([f"c{item:03}", f"r{who:02}", gender[who], vote])
    _write_csv("votes.csv", ["comment", "rater", "gender", "vote"], cast)
    rows = ([f"c{i:03}", *(f"{expit(x[i]):.3f}" for x in models.values())] for i in range(600))
    _write_csv("preds.csv", ["comment", *models], rows)


def days() -> None:
    """Simulate 28 days of a spam filter; from 18 March on, predictions for android are too low."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    Path("rows").mkdir(exist_ok=True)
    for number in range(28):
        day = date(2026, 3, 1) + timedelta(number)
        n = int(rng.integers(500, 900))
        device = rng.choice(["android", "ios", "web"], n, p=[0.3, 0.2, 0.5])
        opinion = rng.normal(-1.0, 1.5, n)
        score = opinion + rng.normal(0, 0.3, n)
        score[(device == "android") & (day >= date(2026, 3, 18))] -= 0.7
        share = rng.binomial(3, expit(opinion)) / 3
        columns: dict[str, Any] = {
            "spam": share, "reviewers": np.full(n, 3), "p": expit(score), "device": device,
        }  # fmt: skip
        pq.write_table(pa.table(columns), f"rows/{day}.parquet")


def answers() -> None:
    """Simulate logs of two language models, and votes of people on replies of the first."""
    rng = np.random.default_rng(4)
    ease = rng.normal(1.0, 1.5, 300)  # log odds of a correct answer
    skill = {"large": ease, "small": ease - 0.8 + rng.normal(0, 0.5, 300)}
    Path("logs").mkdir(exist_ok=True)
    for name, odds in skill.items():
        stated = _as_stated(0.6 * odds + 1.2 + rng.normal(0, 0.6, 300))
        samples = [
            {
                "id": f"q{i:03}",
                "epoch": epoch,
                "metadata": {"forecast": stated[i]},
                "score": {"grader": "C" if rng.random() < expit(odds[i]) else "I"},
            }
            for i in range(300)
            for epoch in range(1, 5)
        ]
        log = {"model": name, "task": "support", "samples": samples}
        Path(f"logs/{name}.json").write_text(json.dumps(log, indent=1), encoding="utf-8")
    confidence = _as_stated(0.6 * ease + 1.2 + rng.normal(0, 0.6, 300))
    with Path("replies.jsonl").open("w", encoding="utf-8") as file:
        rows = ({"id": f"q{i:03}", "confidence": p} for i, p in enumerate(confidence))
        file.writelines(json.dumps(row) + "\n" for row in rows)
    good = 0.8 * ease + rng.normal(0, 0.5, 300)
    strict = rng.normal(0, 0.4, 8)
    cast = []
    for i in np.sort(rng.choice(300, 240, replace=False)):
        for who in rng.choice(8, 3, replace=False):
            verdict = "good" if rng.random() < expit(good[i] - strict[who]) else "poor"
            cast.append([f"q{i:03}", f"colleague{who}", verdict])
    _write_csv("people.csv", ["id", "rater", "verdict"], cast)


def _percent(log_odds: float) -> float:
    return round(100 * float(expit(log_odds)), 1)


def _as_stated(log_odds: FloatArray) -> list[float]:
    """Return probabilities as language models state them: in steps of 5%."""
    steps: FloatArray = np.round(expit(log_odds) * 20) / 20
    return [round(float(p), 2) for p in steps]


def _write_csv(path: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(names)
        out.writerows(rows)


if __name__ == "__main__":
    made = {job.__name__: job for job in (hospitals, votes, days, answers)}
    if len(sys.argv) != 2 or sys.argv[1] not in made:
        sys.exit(f"usage: python examples/walk_data.py {'|'.join(made)}")
    made[sys.argv[1]]()
