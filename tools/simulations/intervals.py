"""Sections on the interval of SMECE: coverage, bootstrap, mixed labels, groups, new groups."""

from __future__ import annotations

import pandas as pd

from simulations.markdown import lowest_mean, percent, range_mean, read, table

KINDS = {
    "hard": "0/1", "votes of 3": "3 votes", "votes of 5": "5 votes",
    "mixed votes of 5": "5 votes, items that differ", "fixed panel of 5": "5 votes, fixed panel",
    "noisy soft": "noisy soft", "exact soft": "exact soft",
}  # fmt: skip
LOW = 0.93
BIT_LOW = 0.945


def coverage() -> str:
    """Describe how often the interval contains the true SMECE."""
    cells = read("coverage")
    rows = []
    for label, shown in [*KINDS.items(), ("", "**all**")]:
        of_kind = cells[cells.label == label] if label else cells
        off, right = of_kind[of_kind.theta > 0], of_kind[of_kind.theta == 0]
        counts = [
            [len(part), percent(part.coverage.min()), percent(part.coverage.mean()),
             (part.coverage < LOW).sum()]
            for part in (off, right)
        ]  # fmt: skip
        rows.append([shown, *counts[0], *counts[1], (of_kind.naive_coverage < LOW).sum()])
    heads = [
        "labels", "SMECE > 0: cells", "lowest", "mean", "below 93%", "SMECE = 0: cells", "lowest",
        "mean", "below 93%", "plug-in ± 1.96 se below 93%",
    ]  # fmt: skip
    by_curve = cells.groupby("curve").oracle.median()
    ratio = (cells.split_width / cells.width).median()
    lower = cells[cells.theta > 0].groupby("label").coverage_80.min()
    split = "wider" if ratio >= 1 else "narrower"
    return f"""## Coverage

The 95% interval contains the true SMECE in {percent(cells.coverage.mean())} of data sets on average. The lowest of {len(cells)} cells
is {percent(cells.coverage.min())}.

`benchmarks/interval_coverage.py` counts how often the interval contains the SMECE of unlimited data. It draws 300 data sets per cell,
with a seed on which no constant was tuned. Cells combine seven kinds of label, three shapes of prediction (uniform, U-shaped, rare),
and five kinds of miscalibration. They have 5, 15, or 50 bins and n = 100 or 1,000. Kinds of label and numbers of bins share
predictions, so cells are not independent. The standard error of a coverage of 95% is 1.3 percentage points, so the lowest of many
cells is below its true coverage. [coverage.csv](coverage.csv) has all cells.

{table(heads, rows)}

If SMECE is 0, the interval misses exactly as often as the [test](#test-level) rejects.

- **Width.** The median width is {cells.oracle.median():.2f} times 3.92 standard deviations of SMECE itself. No interval can reach 1.00,
  because it would need to know the bias. The median is {by_curve["overconfident"]:.2f} for overconfident models and
  {by_curve["calibrated"]:.2f} for calibrated ones. {percent((cells.coverage >= 0.99).mean(), 0)} of cells cover at least 99%.
- **Split signs.** A simple alternative takes the sign of each gap from one random half of the rows and its size from the other half.
  It covers {percent(cells.split_coverage.min())} or more, {percent(cells.split_coverage.mean())} on average, and is
  {percent(abs(ratio - 1))} {split} than softcal's interval (median of cells). It needs rows and random numbers.
- **80% intervals** cover at least {percent(lower.min(), 0)} if SMECE is above 0 (standard error 2.3 percentage points).

![Coverage of every cell: softcal's is between {percent(cells.coverage.min(), 0)} and {percent(cells.coverage.max(), 0)}, the plug-in interval's from {percent(cells.naive_coverage.min(), 0)} to {percent(cells.naive_coverage.max(), 0)}](made/coverage.svg)
"""


def bootstrap() -> str:
    """Describe the coverage of bootstrap intervals on the same kind of data."""
    cells, ours = read("coverage_bootstrap"), read("coverage")
    keys = ["label", "prediction", "curve", "n", "bins"]
    both = cells.merge(ours, on=keys)
    rows = [
        [
            f"{KINDS[row.label]}, {row.curve.replace('_', ' ')}, {row.n:,}",
            f"{percent(row.percentile_coverage, 0)}, {row.percentile_width:.2g}",
            f"{percent(row.bca_coverage, 0)}, {row.bca_width:.2g}",
            f"{percent(row.coverage, 0)}, {row.width:.2g}",
        ]
        for row in both.itertuples()
    ]
    noisy = both[both.label != "exact soft"]
    return f"""## Bootstrap

Bootstrap intervals of rows miss the true error of calibrated models with 0/1 labels or votes: the
percentile interval contains it in {percent(noisy[noisy.curve == "calibrated"].percentile_coverage.max(), 0)} of data sets. The table shows coverage and mean width
(U-shaped predictions, 15 bins; 200 data sets of 400 resamples each; [coverage_bootstrap.csv](coverage_bootstrap.csv), the last column
[coverage.csv](coverage.csv)).

{table(["labels, model, n", "percentile", "BCa", "softcal"], rows)}
"""


def mixed() -> str:
    """Describe coverage and level for rare events and mixed labels."""
    cells = read("mixed")
    names = {"outcomes": "0/1 outcomes", "skewed soft": "skewed soft, Beta(3q, 3 - 3q)"}
    rows = []
    for label, part in cells.groupby("label", sort=False):
        off, right = part[part.theta > 0], part[part.curve == "calibrated"]
        rows.append([
            names.get(str(label), label), len(part), percent(off.coverage.min()),
            f"{(off.coverage < BIT_LOW).sum()} of {len(off)}", percent(part.coverage.mean()),
            range_mean(right.rejected),
        ])  # fmt: skip
    off, right = cells[cells.theta > 0], cells[cells.curve == "calibrated"].rejected
    heads = [
        "labels", "cells", "SMECE above 0: lowest coverage", "below 94.5%", "mean, all cells",
        "test rejects calibrated, range / mean",
    ]  # fmt: skip
    few = cells[(cells.label == "skewed soft") & (cells.curve == "half") & (cells.n == 100)]
    few = few[few.prediction.str.startswith("Beta")]
    unknown = cells[(cells.label == "1 to 8 votes, number not given") & (cells.n == 100)]
    unknown = unknown[unknown.curve == "calibrated"]
    return f"""## Rare events and mixed labels

Coverage is at least 94.5% in {(off.coverage >= BIT_LOW).sum():,} of {len(off):,} cells whose SMECE is above 0. The test rejects 3% to 6% of
calibrated models in {((right >= 0.03) & (right <= 0.06)).sum()} of {len(right)} cells, fewer in {(right < 0.03).sum()}, and more in
{(right > 0.06).sum()}.

`benchmarks/mixed_labels.py` ([mixed.csv](mixed.csv)) simulates rare, clustered, discrete, and uniform predictions, and labels of several
kinds in one table, with n = 100 to 5,000 and 400 data sets per cell (standard error 1.1 percentage points).

{table(heads, rows)}

- **Few events.** With about one expected event, the test cannot reject in 5% of data sets, because most data sets show no event.
- **Votes whose number is not given.** Unanimous shares look like outcomes. With 100 rows the test then rejects as few as
  {percent(unknown.rejected.min())} of calibrated models. Pass `n_votes`.
- **Skewed soft labels.** Too few events look like precise labels, so the test has little power against rare soft labels that are too
  low. For labels of half the predicted rate and n = 100, it rejected {percent(few.rejected.min())} to {percent(few.rejected.max())} for
  rare predictions.
"""


def grouped() -> str:
    """Describe intervals, comparisons, and tests with groups."""
    cells = read("grouped")
    ratio = cells.width / cells.bootstrap_width
    calibrated = cells.calibrated_width / cells.calibrated_bootstrap_width
    first, second = [], []
    for n, part in cells.groupby("groups"):
        widths = pd.concat([ratio[part.index], calibrated[part.index]])
        first.append([
            f"{n} ({len(part)} cells)", lowest_mean(part.coverage),
            lowest_mean(part.calibrated_coverage), f"{widths.mean():.2f} / {widths.max():.2f}",
        ])  # fmt: skip
        second.append([
            n, lowest_mean(part.compare_coverage),
            f"{percent(part.rejected.mean())} / {percent(part.rejected.max())}",
        ])  # fmt: skip
    heads = ["groups", "overconfident, lowest / mean", "calibrated, lowest / mean"]
    lowest = min(cells.coverage.min(), cells.calibrated_coverage.min())
    return f"""## Groups and weights

With 8 or more groups, the 95% interval contains the true SMECE in {percent(lowest)} of data sets or more.

`benchmarks/grouped.py` ([grouped.csv](grouped.csv)) simulates groups with a mean of 40 rows. They have equal sizes, log-normal sizes, or
log-normal weights. Labels are 0/1 or soft. Gaps near p = 1/2 differ between groups by a standard deviation of 0, 0.05, or 0.1. Tables have
5 or 10 bins. Each cell has 200 data sets (standard error 1.5 percentage points at 95%). The width is relative to a percentile bootstrap
of groups.

{table([*heads, "width, mean / largest"], first)}

The bootstrap is narrower because it covers too little: {percent(cells.bootstrap_coverage.min(), 0)} to
{percent(cells.bootstrap_coverage.max(), 0)} of data sets for the overconfident model, {percent(cells.bootstrap_coverage.mean(), 0)} on average.

For every fifth data set, the file has `compare` and the test (40 data sets per cell, standard error 3.4 percentage points).

{table(["groups", "compare, lowest / mean", "test rejects at 5%, mean / largest"], second)}

Without `groups=`, intervals of the same data contain the true value in as few as {percent(cells.ungrouped_coverage.min(), 0)} of data sets,
and the test rejects the calibrated model in {percent(cells.ungrouped_rejected.mean(), 0)} of them on average.
"""


def new_groups() -> str:
    """Describe prediction intervals of a new group."""
    cells = read("new_group")
    rows = []
    for (n, labels), part in cells.groupby(["groups", "labels"]):
        rows.append([
            n, "0/1" if labels == "hard" else labels, lowest_mean(part.gap_coverage, 0),
            f"{part.gap_width.mean():.3f}", lowest_mean(part.smece_coverage, 0),
            f"{part.smece_width.mean():.3f}",
        ])  # fmt: skip
    differ = cells[(cells.labels == "hard") & (cells.spread > 0)]
    heads = ["groups", "labels", "gap, lowest / mean", "width", "SMECE, lowest / mean", "width"]
    return f"""## New groups

The interval of a new group's gap is too narrow for 0/1 labels: {percent(differ.gap_coverage.mean(), 0)} of new groups are inside the 95%
interval if groups differ. DerSimonian and Laird's τ is then often 0, because 40 outcomes have a standard error of 0.06. This weakness
of the estimator is known.

`benchmarks/new_group.py` ([new_group.csv](new_group.csv)) draws the groups of the section above, and one new group with unlimited rows.
Each of {len(cells)} cells has 100 data sets. Columns are the share of new groups inside the 95% prediction intervals of `new_group`, and
the mean widths.

{table(heads, rows, left=2)}
"""
