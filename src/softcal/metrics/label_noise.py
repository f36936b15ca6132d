"""What the sums of a table show about the noise of labels other than outcomes."""

from __future__ import annotations

import math

_CHOSEN = (1.0, 2.0)  # standard errors; above this range, labels of 0 and 1 are not outcomes
_TINY = 1e-300  # instead of 0 in ratios of two zeros


def skewed(own: float, most: float, unsure: float) -> float:
    r"""Return the variance of soft labels of a calibrated model, relative to their squares.

    The sums are \(Q = \sum (p - y)^2\), \(H = \sum p(1 - p)\), and \(\sum y(1 - y)\). Skewed
    labels with few events have too small a Q exactly if they show too few events, which is if
    \(S = \sum (1 - 2p)(p - y) = H - Q - \sum y(1 - y)\) is above 0. A Beta distribution of
    variance \(V = \varphi H\) has the third cumulant \((1 - 2p) \frac{2\varphi}{1 + \varphi} V\).
    Given S, the mean of Q is therefore \(V - 2 S V / (H + V)\). One Newton step from \(V = Q\)
    gives \(V = Q / (1 - x)\) with \(x = 2S/(H + Q)\). For \(x > 0\), its series to the second
    order keeps power against precise labels that really are too low.
    """
    x = min(2 * (most - own - unsure) / max(most + own, _TINY), 2.0)
    return 1 / (1 - x) if x < 0 else 1 + x + x * x


def unanimous_votes(expected: float, seen: float, fewer: float, own: float, worth: float) -> float:
    """Return the certainty, from 0 to 1, that labels of 0 and 1 are shares of unanimous votes.

    Unanimous votes agree with their predictions more than outcomes do. The remaining labels then
    agree less than labels of a calibrated model do. Agreement is the sum of (1 - 2p)(p - y), which
    is expected - seen for outcomes, and `fewer` for the others.
    """
    contrast = (expected - seen) / math.sqrt(expected) - fewer / math.sqrt(own + expected / 4)
    start, end = _CHOSEN
    u = min(max((contrast * math.sqrt(worth / 2) - start) / (end - start), 0.0), 1.0)
    return u * u * (3 - 2 * u)
