"""Certify the conformance cases in exact arithmetic, without NumPy and without any library.

    python conformance/exact.py           compare the committed values with certified ones
    python conformance/exact.py --write   compute them and write them into the case files

A float64 is a fraction, so every mean, difference, and comparison here is exact. Only logarithms
and square roots are irrational. They are enclosed between two decimals of 30 digits.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

CASES = Path(__file__).parent / "cases"
DIGITS = 30


class Row(NamedTuple):
    """One prediction, its label, its weight, and how many equal rows it stands for."""

    p: Fraction
    y: Fraction
    w: Fraction = Fraction(1)
    repeat: int = 1


class Enclosure(NamedTuple):
    """A real number known to lie between two fractions."""

    low: Fraction
    high: Fraction


Bins = list[list[Row]]
Data = dict[str, Any]
Metric = dict[str, Any]

# Rows


def rows_of(data: Data) -> list[Row]:
    """Read rows of one probability each; k of m votes are the label k/m."""
    if "k" in data:
        y = [Fraction(k, m) for k, m in zip(data["k"], data["m"], strict=True)]
    else:
        y = [Fraction(label) for label in data["y"]]
    p = [Fraction(prediction) for prediction in data["p"]]
    w = [Fraction(weight) for weight in data.get("w", [1] * len(p))]
    repeat = data.get("repeat", [1] * len(p))
    return [Row(*row) for row in zip(p, y, w, repeat, strict=True)]


def shares(data: Data) -> list[list[Fraction]]:
    """Return the label of each item as one share per class."""
    classes = range(len(data["p"][0]))
    if "votes" in data:
        return [[Fraction(v, sum(votes)) for v in votes] for votes in data["votes"]]
    if isinstance(data["y"][0], int):
        return [[Fraction(y == c) for c in classes] for y in data["y"]]
    return [[Fraction(share) for share in y] for y in data["y"]]


def class_rows(data: Data, c: int) -> list[Row]:
    """Return the rows of class c against the rest."""
    column = {**data, "p": [p[c] for p in data["p"]], "y": [y[c] for y in shares(data)]}
    return rows_of(column)


def top_label_rows(data: Data) -> list[Row]:
    """Return the rows of the predicted class: the first one with the highest probability."""
    top = [p.index(max(p)) for p in data["p"]]
    label = [y[c] for y, c in zip(shares(data), top, strict=True)]
    return rows_of({**data, "p": [max(p) for p in data["p"]], "y": label})


# Bins


def left_closed(rows: list[Row], n: int) -> Bins:
    """Bin b is [b/n, (b+1)/n), and the last one also contains 1."""
    edges = [Fraction(b / n) for b in range(n)]  # the float64 nearest to b/n
    return split(rows, lambda row: sum(row.p >= edge for edge in edges))


def right_closed(rows: list[Row], n: int) -> Bins:
    """Bin b is (b/n, (b+1)/n], and the first one also contains 0."""
    edges = [Fraction(b / n) for b in range(1, n)]
    return split(rows, lambda row: sum(row.p > edge for edge in edges))


def rank_cut(rows: list[Row], n: int) -> Bins:
    """Cut before the prediction of rank floor(k N / n), or after all those equal to the lowest."""
    ranked = sorted(row.p for row in rows)
    second = min((p for p in ranked if p > ranked[0]), default=Fraction(2))
    edges = {max(ranked[k * len(ranked) // n], second) for k in range(1, n)}
    return split(rows, lambda row: sum(row.p >= edge for edge in edges))


def linear_quantiles(rows: list[Row], n: int) -> list[Fraction]:
    """Return the quantiles 1/n, 2/n, ..., interpolated linearly between ranks."""
    ranked = sorted(row.p for row in rows)
    edges = []
    for k in range(1, n):
        rank, part = divmod(Fraction(k * (len(ranked) - 1), n), 1)
        here, following = ranked[rank], ranked[min(rank + 1, len(ranked) - 1)]
        edges.append(here + part * (following - here))
    return edges


def linear_quantile_left(rows: list[Row], n: int) -> Bins:
    """Cut at interpolated quantiles; a prediction equal to one belongs to the bin above."""
    edges = linear_quantiles(rows, n)
    return split(rows, lambda row: sum(row.p >= edge for edge in edges))


def linear_quantile_right(rows: list[Row], n: int) -> Bins:
    """Cut at interpolated quantiles; a prediction equal to one belongs to the bin below."""
    edges = linear_quantiles(rows, n)
    return split(rows, lambda row: sum(row.p > edge for edge in edges))


def sorted_split(rows: list[Row], n: int) -> Bins:
    """Sort stably and cut into n runs, of which the first N mod n have one row more."""
    ranked = sorted(rows, key=lambda row: row.p)
    size, more = divmod(len(ranked), n)
    ends = [b * size + min(b, more) for b in range(n + 1)]
    return [run for a, b in pairwise(ends) if (run := ranked[a:b])]


def split(rows: list[Row], key: Callable[[Row], int]) -> Bins:
    """Return the rows of each bin that is not empty; a row of weight 0 counts as absent."""
    bins: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row.w:
            bins[key(row)].append(row)
    return [bins[b] for b in sorted(bins)]


# Sums of a bin


def weight(rows: list[Row]) -> Fraction:
    """Return the total weight."""
    return sum((row.w * row.repeat for row in rows), Fraction(0))


def mean_prediction(rows: list[Row]) -> Fraction:
    """Return the weighted mean prediction."""
    return sum((row.w * row.repeat * row.p for row in rows), Fraction(0)) / weight(rows)


def mean_label(rows: list[Row]) -> Fraction:
    """Return the weighted mean label."""
    return sum((row.w * row.repeat * row.y for row in rows), Fraction(0)) / weight(rows)


def gap(rows: list[Row]) -> Fraction:
    """Return the mean prediction minus the mean label."""
    return mean_prediction(rows) - mean_label(rows)


def mean_over_bins(bins: Bins, of: Callable[[list[Row]], Fraction]) -> Fraction:
    """Return the mean of a quantity over bins, weighted by their total weights."""
    return sum((weight(rows) * of(rows) for rows in bins), Fraction(0)) / sum(map(weight, bins))


# Metrics of bins


def ece(bins: Bins) -> Fraction:
    """Return the mean absolute gap (L1 norm); with soft labels this is SMECE."""
    return mean_over_bins(bins, lambda rows: abs(gap(rows)))


def mce(bins: Bins) -> Fraction:
    """Return the largest absolute gap (max norm)."""
    return max(abs(gap(rows)) for rows in bins)


def rms_ce(bins: Bins) -> Fraction | Enclosure:
    """Return the root of the mean squared gap (L2 norm)."""
    return root(mean_over_bins(bins, lambda rows: gap(rows) ** 2))


def curve(bins: Bins) -> list[Fraction]:
    """Return mean prediction and mean label of every bin with rows, one after the other."""
    return [mean for rows in bins for mean in (mean_prediction(rows), mean_label(rows))]


def squared_gap_pairs(bins: Bins) -> Fraction:
    """Return the mean squared gap from products of two different rows; 0 for a bin of one row."""

    def of_pairs(rows: list[Row]) -> Fraction:
        every = [row for row in rows for _ in range(row.repeat)]
        pairs = sum(row.w for row in every) ** 2 - sum(row.w**2 for row in every)
        if not pairs:
            return Fraction(0)
        terms = [row.w * (row.p - row.y) for row in every]
        return (sum(terms) ** 2 - sum(term**2 for term in terms)) / Fraction(pairs)

    return mean_over_bins(bins, of_pairs)


def squared_gap_outcomes(bins: Bins) -> Fraction:
    """Return the mean squared gap, each minus y(1 - y)/(n - 1) of its bin (Kumar et al. 2019)."""

    def corrected(rows: list[Row]) -> Fraction:
        y, n = mean_label(rows), sum(row.repeat for row in rows)
        return gap(rows) ** 2 - y * (1 - y) / (n - 1)

    return mean_over_bins(bins, corrected)


# Metrics of rows


def bias(rows: list[Row]) -> Fraction:
    """Return the mean prediction minus the mean label of all rows."""
    return gap(rows)


def brier(rows: list[Row]) -> Fraction:
    """Return the mean squared difference between prediction and label."""
    squares = sum((row.w * row.repeat * (row.p - row.y) ** 2 for row in rows), Fraction(0))
    return squares / weight(rows)


def log_loss(rows: list[Row]) -> Enclosure | float:
    """Return the mean of -y log p - (1 - y) log(1 - p); 0 log 0 is 0, and nothing is clipped."""
    rows = [row for row in rows if row.w]
    if any((row.p == 0 and row.y) or (row.p == 1 and row.y != 1) for row in rows):
        return math.inf
    terms = [(row.w * row.repeat * row.y, row.p) for row in rows]
    terms += [(row.w * row.repeat * (1 - row.y), 1 - row.p) for row in rows]
    return mean_minus_log(terms, weight(rows))


def log_loss_clipped(rows: list[Row]) -> Enclosure | float:
    """Return the log loss of predictions clipped to [2^-52, 1 - 2^-52]."""
    least = Fraction(1, 2**52)
    return log_loss([row._replace(p=min(max(row.p, least), 1 - least)) for row in rows])


def kl_divergence(rows: list[Row]) -> Enclosure | float:
    """Return the log loss minus that of predictions equal to the labels."""
    loss = log_loss(rows)
    least = log_loss([row._replace(p=row.y) for row in rows])
    if isinstance(loss, float) or isinstance(least, float):
        return math.inf
    return Enclosure(loss.low - least.high, loss.high - least.low)


# Metrics of classes


def top_label_ece(data: Data, bin_rows: Callable[[list[Row]], Bins]) -> Fraction:
    """Return the ECE of the predicted class."""
    return ece(bin_rows(top_label_rows(data)))


def top_label_mce(data: Data, bin_rows: Callable[[list[Row]], Bins]) -> Fraction:
    """Return the largest gap of the predicted class."""
    return mce(bin_rows(top_label_rows(data)))


def top_label_rms_ce(data: Data, bin_rows: Callable[[list[Row]], Bins]) -> Fraction | Enclosure:
    """Return the root mean squared gap of the predicted class."""
    return rms_ce(bin_rows(top_label_rows(data)))


def classwise_ece(data: Data, bin_rows: Callable[[list[Row]], Bins]) -> Fraction:
    """Return the mean over classes of the ECE of each class against the rest."""
    classes = range(len(data["p"][0]))
    return sum((ece(bin_rows(class_rows(data, c))) for c in classes), Fraction(0)) / len(classes)


def class_brier(data: Data) -> Fraction:
    """Return the mean over items of the squared differences, summed over classes (0 to 2)."""
    return sum((brier(class_rows(data, c)) for c in range(len(data["p"][0]))), Fraction(0))


def half_class_brier(data: Data) -> Fraction:
    """Return half of that, which is the score of one column if there are two classes."""
    return class_brier(data) / 2


def class_log_loss(data: Data) -> Enclosure | float:
    """Return the mean of -sum over classes of y log p."""
    rows = [row for c in range(len(data["p"][0])) for row in class_rows(data, c) if row.w]
    if any(row.p == 0 and row.y for row in rows):
        return math.inf
    terms = [(row.w * row.repeat * row.y, row.p) for row in rows]
    return mean_minus_log(terms, weight(class_rows(data, 0)))


# Metrics of votes


def brier_of_rates(data: Data) -> Fraction:
    """Return the mean of (p - k/m)^2 - (k/m)(1 - k/m)/(m - 1), unbiased for the true rates."""
    rows = rows_of(data)
    noise = [row.y * (1 - row.y) / (m - 1) for row, m in zip(rows, data["m"], strict=True)]
    excess = sum((row.w * row.repeat * x for row, x in zip(rows, noise, strict=True)), Fraction(0))
    return brier(rows) - excess / weight(rows)


# Irrational numbers


def root(square: Fraction) -> Fraction | Enclosure:
    """Return the square root: exact if rational, otherwise enclosed."""
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return Fraction(top, bottom)
    scale = 10 ** (3 * DIGITS)
    floor = math.isqrt(square.numerator * scale**2 // square.denominator)
    return Enclosure(Fraction(floor, scale), Fraction(floor + 1, scale))


def log(x: Fraction) -> Enclosure:
    """Return the natural logarithm of a positive fraction; `Decimal.ln` rounds correctly."""
    context = Context(prec=4 * DIGITS)

    def whole(n: int) -> Enclosure:
        if n == 1:
            return Enclosure(Fraction(0), Fraction(0))
        near = context.ln(Decimal(n))
        return Enclosure(Fraction(context.next_minus(near)), Fraction(context.next_plus(near)))

    top, bottom = whole(x.numerator), whole(x.denominator)
    return Enclosure(top.low - bottom.high, top.high - bottom.low)


def mean_minus_log(terms: list[tuple[Fraction, Fraction]], total: Fraction) -> Enclosure:
    """Return the sum of -a log x over terms (a, x) with a > 0, divided by the total weight."""
    logs = [(a, log(x)) for a, x in terms if a]
    low = -sum((a * found.high for a, found in logs), Fraction(0)) / total
    high = -sum((a * found.low for a, found in logs), Fraction(0)) / total
    return Enclosure(low, high)


# Conventions

WIDTH = {"left-closed": left_closed, "right-closed": right_closed}
MASS = {
    "rank-cut": rank_cut,
    "linear-quantile-left": linear_quantile_left,
    "linear-quantile-right": linear_quantile_right,
    "sorted-split": sorted_split,
}
OF_BINS = {
    "ece": ece,
    "mce": mce,
    "rms_ce": rms_ce,
    "curve": curve,
    "squared_gap_pairs": squared_gap_pairs,
    "squared_gap_outcomes": squared_gap_outcomes,
}
OF_ROWS: dict[str, dict[str, Callable[[list[Row]], Any]]] = {
    "bias": {"any": bias},
    "brier": {"any": brier},
    "log_loss": {"exact": log_loss, "clipped": log_loss_clipped},
    "kl_divergence": {"any": kl_divergence},
}
OF_CLASS_BINS = {
    "top_label_ece": top_label_ece,
    "top_label_mce": top_label_mce,
    "top_label_rms_ce": top_label_rms_ce,
    "classwise_ece": classwise_ece,
}
OF_DATA: dict[str, dict[str, Callable[[Data], Any]]] = {
    "class_brier": {"sum": class_brier, "half": half_class_brier},
    "class_log_loss": {"any": class_log_loss},
    "brier_of_rates": {"any": brier_of_rates},
}


def values(metric: Metric, data: Data) -> dict[str, Any]:
    """Return the value of a metric under every convention."""
    name = metric["name"]
    if name in OF_ROWS:
        return {word: of(rows_of(data)) for word, of in OF_ROWS[name].items()}
    if name in OF_DATA:
        return {word: of(data) for word, of in OF_DATA[name].items()}
    found = {}
    for word, rule in (WIDTH if metric["bins"] == "equal-width" else MASS).items():

        def bin_rows(rows: list[Row], rule: Any = rule) -> Bins:
            found: Bins = rule(rows, metric["n"])
            return found

        if name in OF_BINS:
            found[word] = OF_BINS[name](bin_rows(rows_of(data)))
        else:
            found[word] = OF_CLASS_BINS[name](data, bin_rows)
    return found


# Case files


def certified(case: dict[str, Any]) -> dict[str, Any]:
    """Return the `expected` of a case: one value per convention, or `any` if all are equal."""
    if "must_refuse" in case:
        return {"any": {"error": case["must_refuse"]}}
    found = {word: written(value) for word, value in values(case["metric"], case["data"]).items()}
    first = next(iter(found.values()))
    return {"any": first} if all(value == first for value in found.values()) else found


def written(value: Any) -> dict[str, Any]:
    """Return a value as text that loses nothing, and as the nearest float64."""
    if isinstance(value, list):
        return {"fractions": list(map(str, value)), "floats": list(map(float, value))}
    if isinstance(value, Fraction):
        return {"fraction": str(value), "float": float(value)}
    if isinstance(value, float):
        return {"float": str(value)}
    low, high = (
        Context(prec=DIGITS, rounding=mode).divide(Decimal(end.numerator), Decimal(end.denominator))
        for end, mode in ((value.low, ROUND_FLOOR), (value.high, ROUND_CEILING))
    )
    if float(value.low) != float(value.high):
        message = f"{low} to {high} does not determine a float64"
        raise ArithmeticError(message)
    return {"low": str(low), "high": str(high), "float": float(value.low)}


def dumped(topic: dict[str, Any]) -> str:
    """Return a case file as text: one line per field of a case."""

    def line(key: str, value: Any) -> str:
        return f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"

    head = [line(key, value) for key, value in topic.items() if key != "cases"]
    cases = [
        "{\n" + ",\n".join(f"  {line(key, value)}" for key, value in case.items()) + "\n}"
        for case in topic["cases"]
    ]
    return "{\n" + ",\n".join([*head, '"cases": [\n' + ",\n".join(cases) + "\n]"]) + "\n}\n"


def main() -> int:
    """Compare or write every case file."""
    wrong = 0
    for path in sorted(CASES.glob("*.json")):
        topic = json.loads(path.read_text(encoding="utf-8"))
        for case in topic["cases"]:
            expected = certified(case)
            wrong += case.get("expected") != expected
            case["expected"] = expected
        if "--write" in sys.argv:
            path.write_text(dumped(topic), encoding="utf-8")
    sys.stdout.write(f"{wrong} cases differ from the certified values\n")
    return int(wrong > 0 and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
