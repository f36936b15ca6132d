"""Hate speech: three to nine votes per tweet, and two text models.

Run as `python examples/hate_speech.py DATA [FOLDER]`, where DATA has the votes of Davidson et al.
2017 (`votes_hate`, `votes_offensive`, `votes_neither`) and out-of-fold predictions
(`prob_hate_lr`, `prob_hate_nb`). DATA is not bundled with softcal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import softcal as sc

MODELS = {"prob_hate_lr": "logistic regression", "prob_hate_nb": "naive Bayes"}


def main(data: Path, folder: Path) -> None:
    """Print the results and write the figure to the folder."""
    table = pq.read_table(data)
    classes = ["hate", "offensive", "neither"]
    votes = sc.Votes(table.select([f"votes_{c}" for c in classes]), classes=classes)
    hate, majority = votes.binary("hate"), votes.majority() == 0
    models = {name: table[column].to_numpy() for column, name in MODELS.items()}
    print(f"{'':22}ECE, majority   SMECE, votes   95% interval")
    shown = None
    for name, p in models.items():
        rel = sc.reliability(hate, p)
        found = sc.smece_interval(rel)
        limits = f"{found.low:.4f} to {found.high:.4f}"
        print(f"{name:22}{sc.ece(majority, p):13.4f}{found.value:15.4f}   {limits}")
        shown = sc.ReliabilityDisplay(rel, name=name).plot(shown.ax_ if shown else None)
    p = models["logistic regression"]
    quiet = p < 0.1
    share = hate.shares[:, 1]
    print("tweets with a prediction of the regression below 10%")
    print(f"  share of all tweets          {quiet.mean():.0%}")
    print(f"  mean prediction              {p[quiet].mean():.3f}")
    print(f"  mean share of votes          {share[quiet].mean():.3f}")
    print(f"  with at least one vote       {np.mean(share[quiet] > 0):.0%}")
    better = sc.compare(hate, models)
    limits = f"{better.low:+.4f} to {better.high:+.4f}"
    print(f"regression minus Bayes, SMECE  {better.difference:+.4f} ({limits})")
    folder.mkdir(parents=True, exist_ok=True)
    if shown is not None:
        shown.figure_.savefig(folder / "hate_speech.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "examples/out"))
