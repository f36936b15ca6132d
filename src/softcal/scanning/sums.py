"""The sums of a set as group-bys, which every engine computes: one function per block.

Rows have the columns p and y (of pairs pa, ya, pb, yb), w, m, and the keys of segments. Except for
`tables`, they are rows that count: no value breaks a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw

from softcal.scanning.expressions import bin_of, when, where, with_log_loss
from softcal.table.blocks import BLOCKS, VOTE_PRODUCTS
from softcal.table.kernel import SUM_NAMES
from softcal.table.terms import terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from softcal.bins import Bins
    from softcal.scanning.source import Frame

# Sums of rows without weights or votes that equal another sum, which is computed once.
_EQUAL = {
    "count": "rows", "weight": "rows", "weight_sq": "rows", "residual_var": "residual_sq",
    "hard_residual_var": "hard_residual_sq",
}  # fmt: skip
_NONE = ("votes", "repeated", "vote_floor", "vote_noise")
_OF_OUTCOMES = ("outcome_prob_var", "outcome_residual_var")


def placed(rows: Frame, bins: Bins, **columns: str) -> Frame:
    """Add the bin of each column of predictions."""
    # A small key is an index of DuckDB's array of sums.
    kind = nw.Int8 if len(bins) < 128 else nw.Int16 if len(bins) < 1 << 15 else nw.Int32
    return rows.with_columns(
        bin_of(nw.col(p), bins).cast(kind).alias(name) for name, p in columns.items()
    )


def summed(rows: Frame, keys: Sequence[str], terms: Mapping[str, nw.Expr]) -> Frame:
    """Group by keys and add up terms."""
    rows = rows.select(*keys, *(term.alias(name) for name, term in terms.items()))
    added = [nw.col(name).sum() for name in terms]
    return rows.group_by(*keys).agg(*added) if keys else rows.select(*added)


def tables(rows: Frame, keys: Sequence[str], bins: Bins, *, weighted: bool, voted: bool) -> Frame:
    """Add up the sums of tables by keys and bin, and count the rows.

    Rows that do not count are in a bin of their status, below 0.
    """
    p, y = nw.col("p"), nw.col("y")
    w = nw.col("w") if weighted else nw.lit(1.0)
    found = terms(p, y, w, nw.col("m") if voted else None, where)
    wanted = {"rows": nw.lit(1.0)}
    wanted |= {name: found[name] for name in computed(weighted=weighted, voted=voted)}
    # Not of other numbers: Spark's FLOOR is an integer, which 1e300 would overflow.
    counts = nw.col("status") == 0
    rows = placed(rows.with_columns(when(counts, p, 0.0).alias("known")), bins, bin="known")
    rows = rows.with_columns(
        nw.when(counts).then(nw.col("bin")).otherwise(nw.col("status").cast(nw.Int16)).alias("bin")
    )
    return summed(rows, [*keys, "bin"], wanted)


def computed(*, weighted: bool, voted: bool) -> list[str]:
    """Return the sums that are neither 0 nor equal to another."""
    without = set() if weighted else set(_EQUAL)
    without |= set(_OF_OUTCOMES) if voted else set(_NONE)
    return [name for name in SUM_NAMES if name not in without]


def source_of(name: str, *, weighted: bool, voted: bool) -> str | None:
    """Return the computed sum that a sum equals; None if it is 0."""
    if name in (_OF_OUTCOMES if voted else _NONE):
        return None
    return name if weighted else _EQUAL.get(name, name)


def pair_terms(rows: Frame, *, weighted: bool) -> Frame:
    """Add what each row of two models adds to the sums of their losses, before squares."""
    pa, ya, pb, yb = (nw.col(name) for name in ("pa", "ya", "pb", "yb"))
    w = nw.col("w") if weighted else nw.lit(1.0)
    rows = with_log_loss(with_log_loss(rows, "pa", "ya", "loss_a"), "pb", "yb", "loss_b")
    a, b = nw.col("loss_a"), nw.col("loss_b")
    # p and y are subtracted separately, so that equal labels cancel exactly.
    brier = ((pa - pb) - (ya - yb)) * ((pa - ya) + (pb - yb))
    here = w > 0
    columns = {
        "weight": w,
        "differing": where(((pa != pb) | (ya != yb)) & here, 1.0),
        "brier_total": w * brier,
        "log_loss_total": where(~(a.is_null() | b.is_null()), w * (a - b)),
        "infinite_a": where(a.is_null() & here, 1.0),
        "infinite_b": where(b.is_null() & here, 1.0),
        "log_loss_a": where(~a.is_null(), w * a),
        "log_loss_b": where(~b.is_null(), w * b),
    }
    return rows.with_columns(value.alias(name) for name, value in columns.items())


def squared(names: Sequence[str]) -> dict[str, nw.Expr]:
    """Return sums of losses by name, with the squares of differences and their products with w."""
    found = {}
    for name in names:
        loss, _, part = name.rpartition("_")
        total = nw.col(f"{loss}_total")
        squares = {"mixed": nw.col("weight") * total, "square": total * total}
        found[name] = squares.get(part, nw.col(name))
    return found


def losses(rows: Frame, keys: Sequence[str]) -> Frame:
    """Add up the losses of rows with `pair_terms`."""
    return summed(rows, keys, squared(BLOCKS["losses"].sums))


def group_losses(rows: Frame, keys: Sequence[str]) -> Frame:
    """Add up the losses of each group of rows with `pair_terms`."""
    return summed(rows, [*keys, "group"], {k: nw.col(k) for k in BLOCKS["group_losses"].sums})


def pairs(rows: Frame, keys: Sequence[str], bins: Bins, *, weighted: bool) -> Frame:
    """Add up the products of two models' residuals, and their losses, by the bins of both.

    Rows have `pair_terms`.
    """
    product = (nw.col("pa") - nw.col("ya")) * (nw.col("pb") - nw.col("yb"))
    product = nw.col("w") * nw.col("w") * product if weighted else product
    rows = placed(rows, bins, bin_a="pa", bin_b="pb")
    terms = {"product": product, **squared(BLOCKS["losses"].sums)}
    return summed(rows, [*keys, "bin_a", "bin_b"], terms)


def groups(rows: Frame, keys: Sequence[str], bins: Bins, *, weighted: bool) -> Frame:
    """Add up the residuals and weights of each group and bin."""
    w = nw.col("w") if weighted else nw.lit(1.0)
    own = {"residual": w * (nw.col("p") - nw.col("y")), "weight": w}
    rows = rows.filter(nw.col("w") > 0) if weighted else rows
    return summed(placed(rows, bins, bin="p"), [*keys, "group", "bin"], own)


def vote_terms(rows: Frame, bins: Bins, **models: str) -> Frame:
    """Add the bin and the residual s = u (p - v) of votes, for each column of predictions."""
    rows = placed(rows, bins, **{f"bin{end}": p for end, p in models.items()})
    return rows.with_columns(
        (nw.col("u") * (nw.col(p) - nw.col("v"))).alias(f"s{end}") for end, p in models.items()
    )


def raters(rows: Frame, keys: Sequence[str], bins: Bins) -> Frame:
    """Add up the votes v, with weights u, of each rater and bin."""
    s, u = nw.col("s"), nw.col("u")
    own = dict(zip(BLOCKS["rater_sums"].sums, (s, u, s * s, s * u, u * u), strict=True))
    return summed(vote_terms(rows, bins, **{"": "p"}), [*keys, "rater", "bin"], own)


def vote_products(rows: Frame, keys: Sequence[str], bins: Bins) -> Frame:
    """Add up the products of the residuals of votes of two models, by the bins of both."""
    a, b, u = nw.col("s_a"), nw.col("s_b"), nw.col("u")
    own = dict(zip(VOTE_PRODUCTS, (a * b, a * u, b * u, u * u), strict=True))
    rows = vote_terms(rows, bins, _a="pa", _b="pb")
    return summed(rows, [*keys, "bin_a", "bin_b"], own)


def rater_losses(rows: Frame, keys: Sequence[str]) -> Frame:
    """Add up the differences of two models' losses on the votes of each rater.

    Rows in which the loss of a model on the label is infinite have no difference of log losses.
    """
    pa, pb, v, u = (nw.col(name) for name in ("pa", "pb", "v", "u"))
    for p, y, name in (("pa", "ya", "own_a"), ("pb", "yb", "own_b"), ("pa", "v", "loss_a"),
                       ("pb", "v", "loss_b")):  # fmt: skip
        rows = with_log_loss(rows, p, y, name)
    both = ~(nw.col("own_a").is_null() | nw.col("own_b").is_null())
    rows = rows.with_columns(
        (u * (pa - pb) * (pa + pb - 2.0 * v)).alias("brier_total"),
        when(both, u * (nw.col("loss_a") - nw.col("loss_b")), 0.0).alias("log_loss_total"),
        u.alias("weight"),
    )
    return summed(rows, [*keys, "rater"], squared(BLOCKS["rater_losses"].sums))
