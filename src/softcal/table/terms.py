"""What one row adds to each sum of a table, for any kind of numbers.

NumPy, torch, SQL, and data frames share this list. The loop in C++ has the same order, and tests
compare both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def terms(p: Any, y: Any, w: Any, m: Any, where: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """Return the terms of `softcal.table.kernel.Sums`, by name and in order.

    Parameters
    ----------
    p, y, w, m : array, tensor, or expression
        Predictions, labels, weights, and numbers of votes; m is None if these are not given.
    where : callable
        Takes a condition and a value. Returns the value where the condition holds, else 0.
    """
    d, e = p - y, p - where(y > 0.5, 1.0)
    ww, p_var, y_var = w * w, w * w * p * (1 - p), w * y * (1 - y)
    found = {
        "count": where(w > 0, 1.0),
        "weight": w,
        "weight_sq": ww,
        "label": w * y,
        "residual": w * d,
        "residual_sq": w * d * d,
        "residual_var": ww * d * d,
        "prob_var": p_var,
        "label_var": y_var,
    }
    if m is None:
        nothing = where(w < 0, 1.0)
        found |= dict.fromkeys(("votes", "repeated", "vote_floor", "vote_noise"), nothing)
    else:
        nothing = where(m < 0, 1.0)
        found |= {
            "votes": where(w > 0, m),
            "repeated": where((w > 0) & (m >= 2), 1.0),
            "vote_floor": where(m >= 1, p_var / m),
            "vote_noise": where(m >= 2, y_var / (m - 1)),
        }
    found |= {
        "hard_residual": w * e,
        "hard_residual_sq": w * e * e,
        "hard_residual_var": ww * e * e,
    }
    outcome = (y == 0) | (y == 1)
    found["outcome_prob_var"] = where(outcome, p_var) if m is None else nothing
    found["outcome_residual_var"] = where(outcome, ww * d * d) if m is None else nothing
    return found
