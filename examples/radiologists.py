"""Lung nodules rated by radiologists: a decision rule that ECE would have approved.

Run as `python examples/radiologists.py [FOLDER]`; the data is bundled with softcal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import softcal as sc
from softcal.datasets import lidc_malignancy

RULE = 0.05  # no follow-up below this prediction


def main(folder: Path) -> None:
    """Print the results and write the figure and the report to the folder."""
    d = lidc_malignancy()
    share, forest, patient = d["soft_malignant"], d["prob_rf_all"], d["patient"]
    ece = sc.ece(share, forest, threshold=0.5)
    rel = sc.reliability(share, forest, n_votes=d["n_readers"], groups=patient)
    found = sc.smece_interval(rel)
    print(f"ECE against the majority label            {ece:.3f}")
    print(f"SMECE against the share of radiologists   {found.value:.3f}", end="")
    print(f"  (95% interval {found.low:.3f} to {found.high:.3f}, grouped by patient)")

    home = forest < RULE
    print(f"no follow-up below {RULE:.0%}                     {home.sum()} of {home.size} nodules")
    print(f"  mean prediction                         {forest[home].mean():.1%}")
    print(f"  mean share of radiologists              {share[home].mean():.1%}")

    preview = sc.calibrators.repair_preview(share, forest, n_votes=d["n_readers"], groups=patient)
    best = next(trial for trial in preview.after if trial.method == preview.best)
    print(f"SMECE after {preview.best}, other patients          {best.smece.value:.3f}", end="")
    print(f"  ({best.smece.low:.3f} to {best.smece.high:.3f})")
    repaired = sc.calibrators.BetaCalibrator().fit(forest, share).predict(forest)
    print(f"  no follow-up below {RULE:.0%}                   {(repaired < RULE).sum()} nodules")

    folder.mkdir(parents=True, exist_ok=True)
    shown = sc.ReliabilityDisplay(rel, name="original").plot()
    sc.ReliabilityDisplay(best.table, name=f"recalibrated, {best.method}").plot(shown.ax_)
    shown.figure_.savefig(folder / "radiologists.png", dpi=110)
    models = {"random forest": forest, "logistic regression": d["prob_lr_geometry"]}
    sc.write_report(folder / "radiologists.html", share, models, n_votes=d["n_readers"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "examples/out"))
