"""Lung nodules and their radiologists: what a hospital would have decided wrongly with ECE.

Run as `python examples/radiologists.py [FOLDER]`; the data comes with softcal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import softcal as sc
from softcal.datasets import lidc_malignancy

RULE = 0.05  # send home without a second look below this


def main(folder: Path) -> None:
    """Tell the story, and leave its figure and report in the folder."""
    d = lidc_malignancy()
    share, forest, patient = d["soft_malignant"], d["prob_rf_all"], d["patient"]
    ece = sc.ece(share, forest, threshold=0.5)
    rel = sc.reliability(share, forest, n_votes=d["n_readers"], groups=patient)
    found = sc.smece_interval(rel)
    print(f"against the majority of radiologists, ECE    {ece:.3f}")
    print(f"against their shares, SMECE                  {found.value:.3f}", end="")
    print(f"  (95 % interval {found.low:.3f} to {found.high:.3f}, patients as groups)")

    home = forest < RULE
    print(f"the rule 'below {RULE:.0%} goes home' sends home      {home.sum()} of {home.size}")
    print(f"  the forest says of them                    {forest[home].mean():.1%} malignant")
    print(f"  the radiologists say                       {share[home].mean():.1%}")

    preview = sc.calibrators.repair_preview(share, forest, n_votes=d["n_readers"], groups=patient)
    best = next(trial for trial in preview.after if trial.method == preview.best)
    print(f"repaired on other patients ({preview.best}), SMECE      {best.smece.value:.3f}", end="")
    print(f"  ({best.smece.low:.3f} to {best.smece.high:.3f})")
    repaired = sc.calibrators.BetaCalibrator().fit(forest, share).predict(forest)
    print(f"  the same rule would send home              {(repaired < RULE).sum()}")

    folder.mkdir(parents=True, exist_ok=True)
    shown = sc.ReliabilityDisplay(rel, name="as it is").plot()
    sc.ReliabilityDisplay(best.table, name=f"repaired, {best.method}").plot(shown.ax_)
    shown.figure_.savefig(folder / "radiologists.png", dpi=110)
    models = {"random forest": forest, "logistic regression": d["prob_lr_geometry"]}
    sc.write_report(folder / "radiologists.html", share, models, n_votes=d["n_readers"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/out"))
