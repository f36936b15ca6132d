"""How often the rows that an undecided check asks for decide.

Each case draws rows with a known SMECE. If the check is undecided and states a number, so many rows
are added and the check is repeated. Writes docs/check_advice.csv: a line is one number of rows and
one true SMECE as a multiple of the limit. At 1, no number of rows decides.

    python -m benchmarks.advice --cases 30
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np

import softcal as sc
from benchmarks.monitoring import write_csv

TIMES = (0, 0.5, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2)
LIMITS = (0.02, 0.05, 0.1)
KINDS = ("0/1", "votes", "soft")


def rows(rng: np.random.Generator, kind: str, smece: float, n: int, shape: int) -> dict[str, Any]:
    """Draw rows with gaps of one sign, of two signs, or in a quarter of the rows only."""
    p = rng.uniform(0.3, 0.7, size=n) if shape < 2 else rng.uniform(0.1, 0.9, size=n)
    sign = [np.ones(n), np.where(p < 0.5, -1, 1), np.where(p >= 0.7, 4, 0)][shape]
    mean = np.clip(p - smece * sign, 1e-9, 1 - 1e-9)
    share = rng.beta(8 * mean, 8 * (1 - mean))
    if kind == "soft":
        return {"y_true": share, "y_prob": p}
    votes = 5 if kind == "votes" else 1
    return {"y_true": rng.binomial(votes, share) / votes, "y_prob": p, "n_votes": np.full(n, votes)}


def advised(n: int, times: float, cases: int) -> list[bool | None]:
    """Return for each undecided check whether more rows decided; None if it has no number."""
    rng = np.random.default_rng([n, round(100 * times)])
    out: list[bool | None] = []
    for kind, limit, shape, _ in product(KINDS, LIMITS, range(3), range(cases)):
        shape = shape if times * limit <= 0.1 else 0  # noqa: PLW2901 - a quarter cannot be off by 1
        first = rows(rng, kind, times * limit, n, shape)
        found = sc.check(**first, max_smece=limit)
        if found.more_rows is not None:
            more = rows(rng, kind, times * limit, found.more_rows, shape)
            both: dict[str, Any] = {
                name: np.concatenate([first[name], more[name]]) for name in first
            }
            out.append(sc.check(**both, max_smece=limit).outcome != "undecided")
        elif found.outcome == "undecided":
            out.append(None)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="per kind, limit, and shape")
    cases = parser.parse_args().cases
    lines = []
    for n, times in product((3, 30, 300, 3000), TIMES):
        found = advised(n, times, cases)
        given = [decided for decided in found if decided is not None]
        numbers = {"undecided": len(found), "with_number": len(given), "decided": sum(given)}
        lines.append({"rows": n, "times_limit": times, **numbers})
        print(lines[-1], flush=True)
    write_csv("check_advice.csv", lines)


if __name__ == "__main__":
    main()
