"""Distillation: calibration of a small model to the probabilities of its teacher.

Run as `python examples/distillation.py [FOLDER]`; both models are trained on simulated data.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import softcal as sc


def main(folder: Path) -> None:
    """Print the results and write the figure to the folder."""
    X, y = make_classification(
        30_000, n_features=12, n_informative=8, flip_y=0.15, class_sep=0.7, random_state=0
    )
    own, transfer, test = slice(0, 10_000), slice(10_000, 20_000), slice(20_000, 30_000)
    teacher = HistGradientBoostingClassifier(random_state=0).fit(X[own], y[own])
    soft = teacher.predict_proba(X)[:, 1]

    student = sc.calibrators.SoftLabelClassifier(LogisticRegression(max_iter=1000)).fit(
        X[transfer], soft[transfer]
    )
    p = student.predict_proba(X)[:, 1]
    rel = sc.reliability(soft[test], p[test])
    found = sc.smece_interval(rel)
    hard = sc.ece(soft[test], p[test], threshold=0.5)
    print(f"ECE against the teacher's hardened labels    {hard:.4f}")
    print(f"SMECE against the teacher's probabilities    {found.value:.4f}", end="")
    print(f"  (95% interval {found.low:.4f} to {found.high:.4f})")
    kl = sc.kl_divergence(soft[test], p[test])
    print(f"KL divergence from the teacher, per row      {kl:.4f}")

    print("recalibrated on the transfer rows, evaluated on the test rows")
    shown = sc.ReliabilityDisplay(rel, name="student").plot()
    for calibrator in (
        sc.calibrators.TemperatureCalibrator(),
        sc.calibrators.BetaCalibrator(),
        sc.calibrators.IsotonicCalibrator(),
    ):
        after = calibrator.fit(p[transfer], soft[transfer]).predict(p[test])
        table = sc.reliability(soft[test], after)
        name = type(calibrator).__name__.removesuffix("Calibrator")
        kl = sc.kl_divergence(soft[test], np.clip(after, 1e-6, 1 - 1e-6))
        print(f"  {name:<12}SMECE {table.smece:.4f}   KL {kl:.4f}")
        if name == "Isotonic":
            sc.ReliabilityDisplay(table, name="isotonic").plot(shown.ax_)
    folder.mkdir(parents=True, exist_ok=True)
    shown.figure_.savefig(folder / "distillation.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/out"))
