"""Format tables and shares for the page of simulations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOCS = Path(__file__).parents[2] / "docs"


def read(name: str) -> pd.DataFrame:
    """Read a table of docs; empty cells are missing."""
    return pd.read_csv(DOCS / f"{name}.csv")


def percent(value: float, digits: int = 1) -> str:
    """Format a share."""
    return f"{100 * value:.{digits}f}%"


def lowest_mean(values: pd.Series[float], digits: int = 1) -> str:
    """Format the lowest and the mean share of several cells."""
    return f"{percent(values.min(), digits)} / {percent(values.mean(), digits)}"


def range_mean(values: pd.Series[float]) -> str:
    """Format the range and the mean share of several cells."""
    return f"{percent(values.min())} to {percent(values.max())} / {percent(values.mean())}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """Return a Markdown table whose first columns are aligned to the left."""
    ends = "|".join("---" if k < left else "---:" for k in range(len(heads)))
    lines = [" | ".join(str(cell) for cell in row) for row in rows]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{ends}|", *(f"| {line} |" for line in lines)])
