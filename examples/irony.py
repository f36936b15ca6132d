"""Irony in nine languages: about five votes per text, from annotators who vote on many texts.

Run as `python examples/irony.py ITEMS VOTES [FOLDER]`. ITEMS has one text per row (`item`,
`lang`, `prob_ironic_lr`), and VOTES has one vote of MultiPICo (Casola et al. 2024) per row
(`item`, `annotator`, `vote`). Neither is bundled with softcal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

import softcal as sc


def main(items: Path, answers: Path, folder: Path) -> None:
    """Print the results and write the figure to the folder."""
    table, raw = pq.read_table(items), pq.read_table(answers)
    every = sc.Votes.from_long(raw, item="item", worker="annotator", label="vote")
    names, language = table["item"].to_numpy(), np.array(table["lang"].to_pylist())
    votes, p = every.for_items(names), table["prob_ironic_lr"].to_numpy()
    print(f"{'':24}SMECE   95% interval, same raters   new raters")
    line("regression", votes, p)
    # Each half is recalibrated with the other.
    share, half = votes.shares[:, 1], np.arange(len(p)) % 2 == 0
    repaired = np.empty_like(p)
    for part in (half, ~half):
        fitted = sc.calibrators.BetaCalibrator().fit(p[~part], share[~part])
        repaired[part] = fitted.predict(p[part])
    line("recalibrated (beta)", votes, repaired)

    print()
    print(f"recalibrated{'':9}texts  raters     bias   p-value, same raters   new raters")
    figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    kinds = np.unique(language)
    for k, kind in enumerate(kinds):
        of_kind = language == kind
        own, q = every.for_items(names[of_kind]), repaired[of_kind]
        same, new = (sc.reliability(own, q, raters=raters) for raters in (False, True))
        chances = [sc.calibration_test(rel).pvalue for rel in (same, new)]
        raters = 0 if new.raters is None else new.raters.count
        about = f"  {kind:19}{len(q):5}{raters:8}{same.bias:+9.3f}"
        print(f"{about}{chances[0]:23.3f}{chances[1]:13.3f}")
        for with_new, color, shift in ((False, "C0", -0.13), (True, "C1", 0.13)):
            one = sc.reliability(own, q, bins=1, raters=with_new)
            low, high = sc.gap_intervals(one)
            label = ("new raters" if with_new else "same raters") if k == 0 else None
            ax.plot([low[0], high[0]], [k + shift] * 2, color=color, lw=2.5, label=label)
            ax.plot(one.gap[0], k + shift, "o", color=color)
    ax.axvline(0, color="0.6", lw=1, zorder=0)
    ax.set_yticks(range(len(kinds)), kinds)
    ax.set_xlabel("mean prediction minus mean share of votes, 95% interval")
    ax.invert_yaxis()
    ax.legend(frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "irony.png", dpi=110)


def line(name: str, votes: sc.Votes, p: np.ndarray) -> None:
    """Print SMECE with both intervals."""
    same, new = (sc.smece_interval(votes, p, raters=raters) for raters in (False, True))
    limits = (f"{found.low:.4f} to {found.high:.4f}" for found in (same, new))
    print(f"{name:22}{same.value:7.4f}   {next(limits):27}{next(limits)}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        Path(sys.argv[3] if len(sys.argv) > 3 else "examples/out"),
    )
