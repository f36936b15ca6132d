"""Sections on what follows from a result: alarms, checks, segments, decisions, accepted rows."""

from __future__ import annotations

from simulations.markdown import percent, read, table

DAYS = 60  # of the streams with groups


def alarms() -> str:
    """Describe false alarms of `Watch`, its delays, and groups."""
    cells, late, onsets, groups = (
        read(f"watch_{name}") for name in ("alarms", "delays", "onsets", "groups")
    )
    streams = []
    for row in cells.itertuples():
        name = row.labels + ", drifting mix of predictions" * row.drift
        name += f", days vary by {row.spread:g}" if row.spread else ""
        shares = [f"{share:.3f}" for share in (row.watch, row.daily, row.bonferroni)]
        streams.append([name, f"{row.tolerance:g}", *shares])
    still = cells[(cells.spread == 0) & (cells.tolerance == 0)]
    by_group = [
        [
            row.labels, row.groups, row.n, percent(row.false_groups, 0), percent(row.false_rows, 0),
            f"{row.day:g}" if row.day < DAYS else f"none in {DAYS}",
        ]
        for row in groups.set_axis(
            ["labels", "groups", "n", "runs", "false_groups", "false_rows", "day"], axis=1
        ).itertuples()
    ]  # fmt: skip
    heads = ["labels", "groups per day", "rows of each", "false alarms, groups"]
    return f"""## Alarms

`Watch` raises a false alarm in at most {percent(still.watch.max())} of {
        cells.runs.max()
    } calibrated streams of {cells.looks.max():,} looks, for each
kind of label; 5% are promised.

`benchmarks/monitoring.py` ([watch_alarms.csv](watch_alarms.csv)) counts streams that ever raised an alarm, with 100 rows per look. The
other columns use a chi-square test of all rows so far that knows the variance of the labels, with a tolerance of 0. In a drifting mix,
predictions grow from day to day.

{
        table(
            [
                "labels",
                "tolerance",
                "`Watch`",
                "a test each day at 5%",
                "with Bonferroni's correction",
            ],
            streams,
        )
    }

In the rows in which days vary, each day has an error of its own, normal with mean 0 and this standard deviation. The bound assumes that
the mean label is within the tolerance given everything before the day. An error of a day that exceeds the tolerance breaks the
assumption, even if errors cancel over days. Choose a tolerance above the errors of ordinary days.

**Delay.** The table has the median number of days from the error to the alarm in {
        late.runs.max()
    } runs, with 200 rows per day and a
tolerance of 0 ([watch_delays.csv](watch_delays.csv)). The CUSUM knows the size of the shift, the variance of the labels, and that there
will be 365 days: 5% of calibrated streams of that length raise an alarm. `Watch` knows none of these.

{
        table(
            ["labels", "shift", "from day", "`Watch`", "tuned CUSUM"],
            [
                [row.labels, f"{row.shift:g}", row.day, f"{row.watch:g}", f"{row.cusum:g}"]
                for row in late.itertuples()
            ],
        )
    }

The next table is from {
        onsets.runs.max()
    } runs of 60 days ([watch_onsets.csv](watch_onsets.csv)). Bonferroni's correction knows this number
of days. The oracle knows the day on which the error begins, and tests the rows since then once a day at 5%. For errors that begin later,
`Watch` is faster than the correction. The last column is the median of `since`, the estimated start.

{
        table(
            ["labels", "error", "`Watch`", "Bonferroni", "oracle", "estimated start"],
            [
                [
                    row.labels,
                    row.error,
                    *(f"{x:g}" for x in (row.watch, row.bonferroni, row.fresh, row.since)),
                ]
                for row in onsets.itertuples()
            ],
            left=2,
        )
    }

**Groups.** Calibrated streams of 60 days, whose groups have labels that are likelier or less likely than predicted, and streams with a
drift of 5 percentage points (2 if events are rare; {
        groups.runs.max()
    } runs, [watch_groups.csv](watch_groups.csv)). With few large
groups per day, an alarm takes many days, because each group is one step.

{table([*heads, "false alarms, rows as independent", "median day of the alarm"], by_group, left=3)}
"""


def checks() -> str:
    """Describe `check` at the limit, and the rows it asks for."""
    cells, advice = read("check_margins"), read("check_advice")
    rows = [
        [row[0], f"{row[1]:,}", f"{row[2]:g}", f"{row[4]:.3f}", f"{row[5]:.3f}"]
        for row in cells.itertuples(index=False)
    ]
    highest = max(cells["pass"].max(), cells["fail"].max())
    away = advice[advice.times_limit != 1]
    lines = []
    for n, part in advice.groupby("rows"):
        far = away[away.rows == n]
        given = part.with_number.sum()
        lines.append([
            f"{n:,}", f"{part.undecided.sum():,}", f"{given:,}",
            percent(part.decided.sum() / given, 0) if given else "-",
            percent(far.decided.sum() / far.with_number.sum(), 0) if far.with_number.sum() else "-",
        ])  # fmt: skip
    heads = ["rows", "undecided checks", "with a number", "decided by these rows"]
    return f"""## Checks

A model whose SMECE is exactly the limit should pass and fail `check` with a probability of at most 0.025 each. The highest share in
{cells.runs.max():,} runs is {highest:.3f} ([check_margins.csv](check_margins.csv), `benchmarks/monitoring.py`). For votes the check is
conservative here, because `check` did not get their number.

{table(["labels", "rows", "limit", "pass", "fail"], rows)}

An undecided check may state how many more rows would decide. `benchmarks/advice.py` ([check_advice.csv](check_advice.csv)) adds these
rows, with true errors from 0 to twice the limit. At the limit itself, no number of rows decides.

{table([*heads, "without errors at the limit"], lines)}
"""


AUDITED = {
    "0/1": "0/1, p from Beta(1, 2)",
    "rare 0/1": "rare 0/1, p from Beta(0.5, 20)",
    "soft": "soft, from a Beta distribution",
    "rare soft": "the same, p from Beta(0.5, 20)",
    "soft, symmetric": "soft, uniform around p",
    "soft, skewed": "soft, 1 in 10 far above p",
    "nearly exact": "nearly exact, 1 in 50 an outcome",
    "mixed": "outcomes and shares of 8 votes, mixed",
    "other labels in each segment": "another kind of label in some segments",
}


def segments() -> str:
    """Describe false findings and power of the audit."""
    false, power, groups = (read(f"audit_{name}") for name in ("false", "power", "groups"))
    false["hits"] = false.found * false.runs
    grids = false.groupby("rows", sort=False).agg({"segments": "median", "runs": "first"})
    rows = []
    for label, part in false.groupby("labels", sort=False):
        rows.append([
            AUDITED.get(str(label), label), *(f"{x:.3f}" for x in part.found),
            f"{part.hits.sum() / part.runs.sum():.3f}",
        ])  # fmt: skip
    shares = false.groupby("labels").hits.sum() / false.groupby("labels").runs.sum()
    zero_one = [name for name in shares.index if str(name).endswith("0/1")]
    others = shares.drop(zero_one)
    names = groups.set_axis(["labels", "groups", "n", "runs", "with_groups", "as_rows"], axis=1)
    by_group = [
        [row.labels, row.groups, row.n, percent(row.with_groups), percent(row.as_rows)]
        for row in names.itertuples()
    ]
    planted = [
        [
            AUDITED.get(row.inside, row.inside)
            + f"; elsewhere {row.labels}" * (row.inside != row.labels),
            f"{row.gap:g}", f"{row.audit:.3f}", f"{row.bonferroni_t:.3f}",
        ]
        for row in power.itertuples()
    ]  # fmt: skip
    columns = [
        f"{row.Index:,} rows, {row.segments:,.0f} segments ({row.runs} runs)"
        for row in grids.itertuples()
    ]
    heads = ["labels", "groups", "rows of each", "found, with groups", "found, rows as independent"]
    return f"""## Segments

At a level of 95%, `audit` finds something in {" and in ".join(f"{percent(shares[name])} of calibrated data sets of {name} labels" for name in zero_one)},
and in at most {percent(others.max())} of those of other labels.

`benchmarks/segments.py` ([audit_false.csv](audit_false.csv)) counts findings if the model is calibrated. The values of the second column
are halves of those of the first, so segments are nested. Each audit drew 199 data sets. A share of 0.05 in all
{grids.runs.sum()} runs has a standard error of 0.011.

{table(["labels", *columns, "all runs"], rows)}

The next table shows how often the audit finds a gap in one of 36 cells of two columns (3,000 rows, 240 segments, {power.runs.max()} runs,
[audit_power.csv](audit_power.csv)). Bonferroni's correction of t-tests assumes that labels are not skewed. A precise cell among noisy ones
is found less often, because its variance is shrunk toward theirs. The correction for skewness can remove all power.

{table(["labels", "gap", "audit", "Bonferroni, t-tests"], planted)}

With groups, so many of {names.runs.max()} calibrated data sets had a finding ([audit_groups.csv](audit_groups.csv)). Two columns vary within
groups and one between them. In half of the groups labels are up to 60% likelier than predicted, in half they are less likely. With few
groups, the test finds less than it could.

{table(heads, by_group, left=3)}
"""


def decisions() -> str:
    """Describe the coverage of net benefit and of the calibration summary."""
    cells = read("decision_coverage")
    sizes = sorted(cells.rows.unique())
    rows = []
    for number in cells.number.unique():
        parts = [cells[(cells.number == number) & (cells.rows == n)].coverage for n in sizes]
        rows.append([
            number.replace("_", " "), *(f"{part.min():.3f}, {part.median():.3f}" for part in parts)
        ])  # fmt: skip
    groups = read("summary_groups")
    names = [name.removesuffix("_width") for name in groups if name.endswith("_width")]
    with_groups = []
    for (number, size, unequal), part in groups.groupby(["groups", "size", "unequal"]):
        sizes_of = f"{number} of {'about ' * unequal}{size} rows"
        with_groups.append([
            sizes_of, *(f"{part[name].min():.3f}, {part[name].mean():.3f}" for name in names)
        ])  # fmt: skip
    return f"""## Decisions

95% intervals of net benefit and of the calibration summary cover {percent(cells.coverage.min())} or more in {len(cells):,} cells, with a median
of {percent(cells.coverage.median())}. Those of the distances from the curve are wider than needed, most of all that of E50.

`benchmarks/decision_coverage.py` ([decision_coverage.csv](decision_coverage.csv)) counts how often intervals contain the value of unlimited
rows. Each entry has the lowest and the median coverage over cells of {cells.runs.max()} data sets (standard error 0.015 for 0.95).
Predictions are even (Beta(1, 2)), rare (Beta(0.5, 15), 3% cases), U-shaped, or discrete (5 values). The model is calibrated,
overconfident, or too low. Labels are 0/1, 5 votes, or soft with 100 rows, 0/1 or 5 votes with 1,000, and 0/1 with 10,000. Net benefit
and its difference use thresholds of 0.05, 0.1, and 0.3. The target of Emax is the largest distance within the range of the
predictions. The rules were chosen on other draws of the same simulation.

{table(["number", *(f"{n:,} rows" for n in sizes)], rows)}

With groups, each entry has the lowest and the mean coverage over nine cells of {groups.sets.max()} data sets: 0/1, rare 0/1, and soft labels,
and groups that differ by a standard deviation of 0, 0.2, and 0.5 on the logit scale (`benchmarks/summary_groups.py`,
[summary_groups.csv](summary_groups.csv)).

{table(["groups", *(name.replace("_", " ") for name in names)], with_groups)}
"""


def accepted() -> str:
    """Describe the promise of `route` on real votes, and MAPIE on 0/1 labels."""
    cells = read("routing")
    people, rows, rival = cells[cells.labels == "people"], [], []
    for (name, limit), part in people.groupby(["data", "limit"], sort=False):
        ours, hardened = (
            part[part.rule == rule].iloc[0] for rule in ("route", "route, hardened labels")
        )
        rows.append([
            f"{name}, {percent(limit, 0)}", percent(ours.above_limit), percent(ours.accepted, 0),
            percent(ours.has_rule, 0), percent(hardened.above_limit, 0),
            percent(hardened.accepted, 0), percent(hardened.disagree),
        ])  # fmt: skip
    for (name, limit), part in cells[cells.labels == "majority"].groupby(
        ["data", "limit"], sort=False
    ):
        found = part.set_index("rule").accepted
        rules = ["route", "MAPIE, fixed_sequence from a tenth", "MAPIE, fixed_sequence"]
        shares = [percent(found[rule]) for rule in [*rules, "MAPIE, bonferroni_holm"]]
        rival.append([f"{name}, {percent(limit, 0)}", *shares])
    ours = people[people.rule == "route"]
    heads = [
        "data, limit", "votes: above the limit", "accepted", "has a rule",
        "hardened: above the limit", "accepted", "people who disagree",
    ]  # fmt: skip
    return f"""## Accepted rows

`benchmarks/routing.py` ([routing.csv](routing.csv)) finds the rule on {people.splits.max():,} random halves of real votes. The table shows how
often the risk of the rule in all rows exceeds the limit, and the mean share of rows accepted, which is 0 without a rule. All rows
include the half that the rule is from, so these shares are lower than they would be in new data. In the other half alone, which has
noise of its own, the rule of the votes exceeds the limit in at most {percent(ours.above_limit_in_other_half.max())} of the splits.

{table(heads, rows)}

Where hardened labels keep the limit, accepting everything does; the rule of the votes then accepts fewer rows than it could. Where the
sequence starts was chosen after a look at a few of these splits of MultiPICo. That concerns the share accepted there, not the promise.

On 0/1 labels, MAPIE's risk control makes the same promise as the precision of "the majority agrees". Shares accepted in
{cells[cells.labels == "majority"].splits.max()} splits:

{table(["0/1 labels: data, limit", "route", "MAPIE, from a tenth", "MAPIE, its candidates", "MAPIE, Holm"], rival)}

If its sequence starts with the surest tenth of the rows, MAPIE accepts about as much as `route`. MAPIE's own candidates go up to 0.99,
where MultiPICo has too few rows for a first test.
"""
