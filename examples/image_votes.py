"""Images of ten classes with about fifty human votes each, and a network that looks calibrated.

Run as `python examples/image_votes.py DATA [FOLDER]`, where DATA is the joined file of the
CIFAR-10H votes (CC BY-NC-SA 4.0, so it is not bundled with softcal) and the published VGG16
probabilities: columns `votes_<class>` and `prob_<class>`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import softcal as sc

RULE = 0.95  # no human check at this confidence or above


def main(data: Path, folder: Path) -> None:
    """Print the results and write the figure to the folder."""
    table = pq.read_table(data)
    classes = [name[6:] for name in table.column_names if name.startswith("votes_")]
    votes = sc.Votes(table.select([f"votes_{c}" for c in classes]), classes=classes)
    probs = np.column_stack([table[f"prob_{c}"].to_numpy() for c in classes]).astype(float)
    probs /= probs.sum(axis=1, keepdims=True)  # a float32 softmax is off by rounding
    majority = np.eye(len(classes))[votes.majority()]

    ece = sc.top_label_smece(majority, probs)
    rel = sc.top_label_reliability(votes, probs)
    found = sc.smece_interval(rel)
    print(f"top-label ECE against the majority vote    {ece:.4f}")
    print(f"top-label SMECE against the votes          {found.value:.4f}", end="")
    print(f"  (95% interval {found.low:.3f} to {found.high:.3f})")

    top, confidence = probs.argmax(axis=1), probs.max(axis=1)
    sure = confidence >= RULE
    mass = votes.shares[np.arange(top.size), top]
    print(f"confidence of {RULE} and above               {sure.mean():.0%} of the images")
    print(f"  mean confidence                          {confidence[sure].mean():.3f}")
    print(f"  mean share of people who agree           {mass[sure].mean():.3f}")

    fit, held_out = np.arange(top.size) % 2 == 0, np.arange(top.size) % 2 == 1
    shares = votes.shares
    print("temperature fitted on half of the images, SMECE on the other half")
    before = _smece(shares, probs, held_out)
    print(f"  original                                 {before:.4f}")
    for name, labels in (("majority", majority), ("votes", shares)):
        calibrator = sc.calibrators.TemperatureCalibrator().fit(probs[fit], labels[fit])
        after = _smece(shares, calibrator.predict(probs), held_out)
        fitted = f"fitted on the {name + ',':<10}T = {calibrator.map_.temperature:.2f}"
        print(f"  {fitted:<41}{after:.4f}")

    folder.mkdir(parents=True, exist_ok=True)
    shown = sc.ReliabilityDisplay(rel, name="against votes").plot()
    hard = sc.top_label_reliability(majority, probs)
    sc.ReliabilityDisplay(hard, name="against the majority").plot(shown.ax_)
    shown.figure_.savefig(folder / "image_votes.png", dpi=110)


def _smece(y: np.ndarray, p: np.ndarray, rows: np.ndarray) -> float:
    return sc.top_label_smece(y[rows], p[rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "examples/out"))
