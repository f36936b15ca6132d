"""SMECE and its sums in exact arithmetic, written from the formula, without importing softcal."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

Row = tuple[Fraction, Fraction, Fraction]


def exact_bins(n: int) -> list[Fraction]:
    """Return the edges k/n, each as the nearest double, because doubles are compared."""
    return [Fraction(k / n) for k in range(n + 1)]


def place(p: Fraction, edges: list[Fraction]) -> int:
    """Return the index of the bin of p: bin b is [e_b, e_{b+1}), and the last one is closed."""
    return max(b for b in range(len(edges) - 1) if p >= edges[b])


def rows(y: list[float], p: list[float], w: list[float] | None = None) -> list[Row]:
    weights = [1.0] * len(p) if w is None else w
    return [(Fraction(a), Fraction(b), Fraction(c)) for a, b, c in zip(y, p, weights, strict=True)]


def sums(data: list[Row], edges: list[Fraction]) -> dict[str, list[Fraction]]:
    """Return every sum of the table per bin, with weights."""
    zero = [Fraction(0)] * (len(edges) - 1)
    out: dict[str, list[Fraction]] = defaultdict(lambda: list(zero))
    for y, p, w in data:
        b, d = place(p, edges), p - y
        e = p - (y > Fraction(1, 2))  # the residual of the hardened label
        outcome = y in (0, 1)
        for name, term in {
            "count": Fraction(w > 0),
            "weight": w,
            "weight_sq": w**2,
            "label": w * y,
            "residual": w * d,
            "residual_sq": w * d**2,
            "residual_var": w**2 * d**2,
            "prob_var": w**2 * p * (1 - p),
            "label_var": w * y * (1 - y),
            "hard_residual": w * e,
            "hard_residual_sq": w * e**2,
            "hard_residual_var": w**2 * e**2,
            "outcome_prob_var": outcome * w**2 * p * (1 - p),
            "outcome_residual_var": outcome * w**2 * d**2,
        }.items():
            out[name][b] += term
    return dict(out)


def smece(data: list[Row], edges: list[Fraction]) -> Fraction:
    gaps = sum(map(abs, sums(data, edges)["residual"]), start=Fraction(0))
    return gaps / sum((w for _, _, w in data), start=Fraction(0))
