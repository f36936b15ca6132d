"""Sections on tests, comparisons, gaps, raters, scores, and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulations.intervals import BIT_LOW
from simulations.markdown import lowest_mean, percent, range_mean, read, table

if TYPE_CHECKING:
    import pandas as pd

HIGH, SMALL = 0.07, 0.03
CUMULATIVE = ["ecce_mad", "ecce_range"]


def by(cells: pd.DataFrame, tests: list[str]) -> pd.DataFrame:
    """Return the cells of some tests."""
    return cells[cells.test.isin(tests)]


def test_level() -> str:
    """Describe how often the tests reject calibrated models, and others."""
    cells = read("test_level")
    levels, powers, running = [], [], []
    for label in [*cells.label.unique(), ""]:
        chosen = cells[cells.label == label] if label else cells
        shown = label or "**all**"
        ours, others = (by(chosen, test) for test in (["calibration_test"], CUMULATIVE))
        rates = ours[ours.curve == "calibrated"]["at_5%"]
        levels.append([
            shown, len(rates), range_mean(rates), (rates > HIGH).sum(), (rates < SMALL).sum(),
        ])  # fmt: skip
        powers.append([shown] + [
            percent(ours[ours.curve == curve]["at_5%"].mean(), 0)
            for curve in ("half", "overconfident", "wave")
        ])  # fmt: skip
        others = others[others.curve == "calibrated"]
        ranges = [range_mean(by(others, [test])["at_5%"]) for test in CUMULATIVE]
        running.append([shown, *ranges, percent(others["at_0.0001"].max(), 2)])
    # The last label is all of them.
    inside = ((rates >= SMALL) & (rates <= 0.06)).sum()
    both, low = others["at_5%"], ours[ours.curve == "calibrated"]["at_0.0001"]
    return f"""## Test level

`calibration_test` at 5% rejects {percent(rates.mean())} of calibrated models on average, and at most {percent(rates.max())} in any of
{len(rates)} cells.

`benchmarks/test_level.py` ([test_level.csv](test_level.csv)) counts how often tests reject at 5% and at 0.0001. Cells combine twelve
kinds of label and five distributions of predictions: spread, rare, confident, ten values, one value. They have 5, 15, or 50 bins and
n = 100 to 5,000. Each calibrated cell has 400 data sets, so the standard error of a rate of 5% is 1.1 percentage points. The seeds and
settings are not those on which the method was chosen. q is the true rate.

{table(["labels", "cells", "rejects calibrated, range / mean", "above 7%", "below 3%"], levels)}

Of {len(rates)} cells, {inside} are from 3% to 6%, {(rates > 0.06).sum()} above, and {(rates < SMALL).sum()} below. At a level of 0.0001,
{percent(low.mean(), 3)} of all calibrated data sets were rejected.

The power of `calibration_test` is the mean over predictions and bins, with n = 400 and 200 data sets per cell. Models have labels of half
the predicted rate, are overconfident (slope 0.7), or have gaps of alternating sign ("wave").

{table(["labels", "half the rate", "overconfident", "wave"], powers)}

The cumulative tests reject at most {percent(both.max())} of calibrated models of a cell at 5%. They are conservative for few events and
for few distinct predictions.

{table(["labels", "`ecce_mad` at 5%, range / mean", "`ecce_range` at 5%, range / mean", "highest at 0.0001"], running)}
"""


def comparison() -> str:
    """Describe the intervals of differences of two models."""
    cells, losses = read("paired"), read("paired_losses")
    cells["ratio"] = (cells.width / cells.oracle).where(cells.oracle >= 1e-4)
    names = {"hard": "0/1", "votes": "3 votes", "soft": "soft, Beta(6q, 6 - 6q)"}
    equal = cells.true.abs() < 0.0005
    rows = []
    for label in [*cells.labels.unique(), "all"]:
        part = cells[cells.labels == label] if label != "all" else cells
        same = part[equal[part.index]].excludes_0
        rows.append([
            names.get(label, label), len(part), percent(part.coverage.min()),
            percent(part.coverage.mean()), percent((part.coverage >= BIT_LOW).mean()),
            f"{part.ratio.mean():.2f} / {part.ratio.median():.2f}",
            f"{percent(same.mean())} / {percent(same.max())}",
        ])  # fmt: skip
    noisy = cells[cells.labels != "exact"]
    calm = noisy[(noisy.a == "c") & (noisy.b == "c")]
    widths = noisy.groupby("n").ratio.mean()
    wrong = max(losses.brier_wrong_model.max(), losses.log_loss_wrong_model.max())
    heads = [
        "labels", "cells", "lowest coverage", "mean", "at least 94.5%", "width, mean / median",
        "equal models told apart, mean / highest",
    ]  # fmt: skip
    return f"""## Model comparison

The 95% interval of a difference contains the true difference in {percent(cells.coverage.mean())} of data sets on average, and in
{percent(cells.coverage.min())} in the lowest of {len(cells)} cells.

`benchmarks/paired.py` ([paired.csv](paired.csv)) draws 0/1 labels, 3 votes, skewed soft labels, and exact labels; 200, 800, and 3,500
rows; 6, 10, 14, and 18 bins; 29 pairs of models. Predictions have one value or ten, are spread, confident, rare, or have few events. Cells
have 600, 400, and 300 data sets, so the standard error of a coverage of 95% is 0.9 to 1.3 percentage points. Widths are divided by 3.92
standard deviations of the plug-in difference ("oracle"), except where that is below 0.0001. Scenarios and seeds were chosen before any
result was seen.

{table(heads, rows)}

- **Width.** Without exact labels, the mean is {noisy.ratio.mean():.2f} and the median {noisy.ratio.median():.2f}. The mean is
  {widths[200]:.2f} with 200 rows and {widths[3500]:.2f} with 3,500. For exact labels and gaps of opposite sign, the interval is up to
  {cells.ratio.max():.0f} oracle widths wide.
- **Equal models.** In {equal.sum()} cells the true difference is below 0.0005. Two calibrated models were told apart in at most
  {percent(calm.excludes_0.max())} of data sets ({len(calm)} cells without exact labels), and their interval is {calm.ratio.mean():.2f} oracle
  widths wide. Noise hides gaps of up to one standard error per bin. An interval that holds for all such gaps is too wide for a size of 3%
  there.
- **Bootstrap.** A paired percentile bootstrap of the bins covers {percent(noisy.bootstrap_coverage.mean(), 0)} on average, over the cells
  without exact labels, with 40 data sets each. Its lowest coverage is {percent(noisy.bootstrap_coverage.min(), 0)}.
- **Losses.** In {len(losses)} cells of 100 data sets with rare or few 0/1 events ([paired_losses.csv](paired_losses.csv)), the intervals
  cover {percent(losses.brier_coverage.mean())} (Brier score) and {percent(losses.log_loss_coverage.mean())} (log loss) on average, and
  {percent(losses.brier_coverage.min(), 0)} and {percent(losses.log_loss_coverage.min(), 0)} in the lowest cell (standard error 2.2
  percentage points). The worse model was called better in at most {percent(wrong, 0)} of data sets.
"""


GAP_KINDS = {
    "0/1": ("0/1", "0/1, predictions vary", "0/1, weighted"),
    "votes": ("2 votes", "5 votes", "1 to 6 votes of panels"),
    "0/1 and soft": ("a third 0/1, others exact", "half 0/1, half Beta"),
    "Beta": ("Beta, 1", "Beta, 4", "Beta, 25", "Beta, 4, weighted"),
    "nearly exact, exponential": ("nearly exact", "exponential"),
}


def gaps() -> str:
    """Describe the intervals of gaps, false passes of `check`, and the consistency band."""
    cells = read("gap_intervals")
    wide = (cells.width / cells.student_width)[cells.student_coverage_1 >= BIT_LOW]
    rows = []
    for name, kinds in GAP_KINDS.items():
        part = cells[cells.labels.isin(kinds)]
        rows.append([
            name, len(part), lowest_mean(part.coverage_1), lowest_mean(part.student_coverage_1),
            lowest_mean(part.coverage_20), lowest_mean(part.student_coverage_20),
            percent(part.false_pass.max()), percent(part.student_false_pass.max()),
            f"{wide[wide.index.intersection(part.index)].median():.2f}",
        ])  # fmt: skip
    by_rows = wide.groupby(cells.rows).median()
    bins = np.minimum(2000, 1_000_000 // cells.rows)  # as benchmarks/gap_intervals.py draws them
    far = (cells.coverage_1 < BIT_LOW - 2 * np.sqrt(BIT_LOW * (1 - BIT_LOW) / bins)).sum()
    passes = cells.false_pass.dropna()
    band, every = cells.band.dropna(), cells.band_5.dropna()
    heads = [
        "labels", "cells", "coverage, lowest / mean", "Student's", "20 bins simultaneously",
        "Student's", "false passes, highest", "Student's", "width",
    ]  # fmt: skip
    return f"""## Gap intervals

The 95% interval of a gap covers {percent(cells.coverage_1.mean())} on average. {(cells.coverage_1 < BIT_LOW).sum()} of {len(cells)} cells cover
less than 94.5%, {far} of them by two standard errors.

`benchmarks/gap_intervals.py` ([gap_intervals.csv](gap_intervals.csv)) measures `gap_intervals`, `check(max_gap=...)`, and
`consistency_band`: 14 kinds of label, ten combinations of true mean label (0.001 to 0.9995) and prediction, and 6 to 2,000 rows per bin. Each
cell has 2,000 bins (500 with 2,000 rows), which are judged alone, as tables of 5 bins, and as tables of 20 bins. Student's interval is
measured on the same bins. False passes are those of a bin whose gap equals the limit, with at least 100 rows; at most 2.5% are promised.

{table(heads, rows)}

The width is relative to Student's, as a median over the cells in which Student's interval covers at least 94.5%. It is
{", ".join(f"{ratio:.2f} for {n:,} rows" for n, ratio in by_rows.items())}.

- **Simultaneously.** Tables of 20 bins are few (100, or 25 with 2,000 rows), so the lowest values have standard errors of 2.3 to 4.6
  points. {(cells.coverage_20 < BIT_LOW).sum()} cells are below 94.5%.
- **False passes.** {(passes > SMALL).sum()} of {len(passes)} cells are above 3%, and the highest is {percent(passes.max())}.
- **Consistency band.** In the {len(band)} calibrated cells, the 95% band contained {percent(band.min())} to {percent(band.max())} of the gaps,
  {percent(band.mean())} on average. The simultaneous band contained all gaps in {percent(every.min(), 0)} of tables or more,
  {percent(every.mean())} on average.
"""


def raters() -> str:
    """Describe intervals and tests with raters who vote on many items."""
    cells, kinds = read("raters"), read("rater_difference")
    rows = []
    for name, part in (
        ("30 to 1,000", cells[cells.raters > 10]), ("10", cells[cells.raters == 10])
    ):  # fmt: skip
        level = part[part.curve == "calibrated"].rejected
        rows.append([
            name, len(part), lowest_mean(part.coverage), lowest_mean(part.coverage_items_only),
            f"{part.width_in_errors.mean():.2f}", f"{percent(level.min())} to {percent(level.max())}",
        ])  # fmt: skip
    sizes = cells.groupby("items").width_in_errors.mean()
    heads = [
        "raters", "cells", "`raters=True`, lowest / mean", "items only, lowest / mean",
        "width, in 3.92 standard deviations", "test rejects calibrated",
    ]  # fmt: skip
    null = kinds[kinds.twist == 0]
    few = (null["items"] < 30) | (null.raters < 10)
    levels = [
        [name, len(part), range_mean(part.rejected), percent(part["rejected_at_0.001"].max())]
        for name, part in (
            ("30 to 1,200 items, 10 to 250 raters", null[~few]),
            ("fewer items or raters", null[few]),
        )
    ]
    lean = kinds[kinds.twist == 0.5]
    power = ", ".join(
        f"{percent(row.rejected, 0)} with {row.items} items, {row.raters} raters, and {row.votes} votes"
        for row in lean.itertuples()
    )
    return f"""## Raters

With recurring raters, the 95% interval of `raters=True` covers {percent(cells.coverage.min())} or more, and that of items only as little
as {percent(cells.coverage_items_only.min())}.

`benchmarks/raters.py` ([raters.csv](raters.csv)) simulates raters whose votes differ by a standard deviation of 0 to 1.5 on the logit
scale. The true value is SMECE over new items and new raters. Of 396 cells, the table has {len(cells)} in random order, with
{cells.samples.max():,} samples each (standard error {100 * np.sqrt(0.0475 / cells.samples.max()):.1f} percentage points at 95%). Cells have 200 to 20,000 items, 10 to 1,000 raters, and 2 to 10 votes per item.

{table(heads, rows)}

The width is relative to the standard deviation of SMECE over samples: {sizes[200]:.2f} with 200 items and {sizes[20000]:.2f} with 20,000.

### Kinds of raters

`benchmarks/rater_difference.py` ([rater_difference.csv](rater_difference.csv)) tests kinds of raters that do not differ. Each cell has
{kinds.samples.max():,} studies (standard error {100 * np.sqrt(0.0475 / kinds.samples.max()):.1f} percentage points for a rate near 5%). The numbers of items, raters, and votes, and the seeds,
are not those on which the method was chosen. Raters are equally and unequally active (log-normal, Zipf), they lean, rates are rare or
extreme, and kinds rate different items in some cells.

{table(["studies", "cells", "p-value below 0.05, range / mean", "below 0.001, highest"], levels)}

For power, one kind votes more often above a prediction of 0.5 and less often below, by 0.5 on the logit scale. The test detects it in
{power}.
"""


def brier() -> str:
    """Describe the interval of the Brier score."""
    cells = read("brier_coverage")
    kinds = {"10 votes": "votes", "3 votes": "votes", "0/1": "0/1"}
    kinds["half 0/1, half soft"] = "half 0/1, half soft"
    cells["kind"] = cells.labels.map(kinds).fillna("soft")
    sizes = {20: "20, 50", 50: "20, 50", 100: "100", 300: "300, 1,000", 1000: "300, 1,000"}
    cells["size"] = cells.rows.map(sizes)
    cells["ratio"] = cells.width / cells.student_width
    rows = []
    for kind in ("0/1", "votes", "soft", "half 0/1, half soft"):
        for size in ("20, 50", "100", "300, 1,000"):
            part = cells[(cells.kind == kind) & (cells["size"] == size)]
            rows.append([
                kind, size, range_mean(part.coverage), range_mean(part.student_coverage),
                f"{part.ratio.median():.2f}",
            ])  # fmt: skip
    low = cells[cells.coverage < 0.93]
    heads = [
        "labels", "rows", "coverage, range / mean", "Student's coverage, range / mean",
        "width, median",
    ]  # fmt: skip
    return f"""## Brier score

Coverage of the Brier score's 95% interval is below 93% in {len(low)} of {len(cells)} cells, and that of Student's interval in
{(cells.student_coverage < 0.93).sum()}. The lowest is {percent(cells.coverage.min(), 0)}, for labels of which half are outcomes and half nearly
exact, with rare predictions.

`benchmarks/brier.py` ([brier_coverage.csv](brier_coverage.csv)) counts how often the interval in `calibration_summary` contains the value on
unlimited data. Each cell has 1,000 data sets of 20 to 1,000 rows. Models are calibrated, overconfident, or too low. The width is relative
to Student's interval of the mean loss.

{table(heads, rows, left=2)}
"""


def plans() -> str:
    """Describe how planned widths and powers compare with simulated studies."""
    widths, powers, pilots = (read(f"planning_{name}") for name in ("width", "power", "pilot"))
    off = (widths.ratio - 1).abs()
    large, small = powers[powers["items"] >= 150].power, powers[powers["items"] < 150].power
    right, wrong = pilots[pilots.better == 0], pilots[pilots.better > 0]
    return f"""## Study planning

`benchmarks/planning.py` compares plans with simulated studies.

- **Widths.** Planned widths were {percent(off.mean())} off simulated widths on average in {len(widths)} settings, and more than 10% off in
  {(off > 0.1).sum()}, by up to {percent(off.max(), 0)} ([planning_width.csv](planning_width.csv): 0/1 labels, 3 to 10 votes, exact; n = 200 to
  20,000; 10 and 15 bins).
- **Power.** Differences of 0.02 and 0.05 were planned for a power of 80%, from pilots of 100,000 items
  ([planning_power.csv](planning_power.csv)). For the {len(large)} plans of 150 items or more, `compare` detected the difference in
  {percent(large.min(), 0)} to {percent(large.max(), 0)} of simulated studies, {percent(large.mean(), 0)} on average (standard error 2.5
  percentage points). The {len(small)} smaller plans, all with exact labels, had a power of {percent(small.min(), 0)} to {percent(small.max(), 0)}.
- **Small pilots.** Plans for a difference of 0.04 from pilots of 200, 500, and 2,000 items, 0/1 labels and 3 votes
  ([planning_pilot.csv](planning_pilot.csv): {len(pilots)} settings, 5 pilots each, 40 studies per plan). If the better model is calibrated,
  the mean power is {percent(right.power.min(), 0)} to {percent(right.power.max(), 0)}, and the lowest power of a plan is
  {percent(right.lowest_power.min(), 0)}. If it is not, the mean power is {percent(wrong.power.min(), 0)} to {percent(wrong.power.max(), 0)}, because
  the plan allows for a calibrated model that the pilot does not exclude.
"""


def weaknesses() -> str:
    """List known weaknesses, without numbers of their own."""
    return """## Weaknesses

- **Conservative intervals.** Coverage is nearly 100% with sparse bins. At SMECE = 0, the upper limit is of the order of the summed
  standard errors of the bins. It therefore grows with the square root of the number of bins. No method can be exact everywhere, because
  the absolute value is not smooth at 0.
- **Votes near 0 and 1.** For 0/1 labels the upper limit is at least the Poisson limit. Vote shares have such a limit only if `n_votes` is
  given.
- **Few rows with skewed soft labels.** With noisy soft labels near 0 and fewer than about 30 rows, the lower limit is too high too often.
- **Few groups.** Groups are assumed to be a sample of many. Fewer than 8 were not simulated, and `found.note` warns below 4 effective
  groups. `compare` has no correction for few or unequal groups, and its coverage may be lower ([above](#groups-and-weights)). For a new
  group, τ is uncertain ([above](#new-groups)).
- **Unseen regions.** A kind of row that is too rare to be sampled can add up to about 3/n. `found.note` states this where it matters.
- **Test.** The test is conservative with many bins and few rows. It has little power if soft labels are rare and too low
  ([above](#rare-events-and-mixed-labels)).
- **Comparisons.** Intervals of differences are [wide](#model-comparison) for two calibrated models. Intersecting two intervals, each
  with 0.9α, is supported by simulation, not by a theorem. The intervals of `compare_many` agree with Holm's p-values, but they do not
  all hold simultaneously at `level`.
- **Segments of skewed labels.** `audit` hardly finds predictions that are too high if most labels are just below p and few are far
  above it.
- **Constants** were set by looking at other rounds of such simulations, with other draws. The assumed distance between two models'
  predictions in `plan_difference` was fitted to models like those of planning_power.csv, so that file is not an independent check.
"""
