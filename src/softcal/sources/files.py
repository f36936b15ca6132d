"""Whole columns from files, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal.errors import InputError
from softcal.sources.batches import Paths, batches, files_of
from softcal.sources.pieces import SLICES, Batch

if TYPE_CHECKING:
    from collections.abc import Iterable


def read_columns(
    source: Paths, names: Iterable[str], may_be_text: str | None = None
) -> dict[str, Any]:
    """Read the named columns of files whole, for work that needs all rows at once.

    All must hold numbers, but for the one that may be text (names of groups).
    `softcal.sources.batches` reads the same files in bounded memory.

    Raises
    ------
    InputError
        If a file cannot be read, or has no such column; the message lists those it has.
    """
    wanted = [name for name in dict.fromkeys(names) if name != may_be_text]
    found = list(batches(source, wanted, by=may_be_text))
    if not found:
        message = "the source has no rows: there is nothing to measure."
        raise InputError(message)
    columns = joined(found)
    if may_be_text is not None:
        columns[may_be_text] = columns.pop(SLICES)
    return columns


def joined(batches: list[Batch]) -> Batch:
    """Put batches of the same columns below each other."""
    import numpy as np
    import pyarrow as pa

    columns: Batch = {
        name: np.concatenate([batch[name] for batch in batches])
        for name in batches[0]
        if name != SLICES
    }
    if SLICES in batches[0]:
        parts = [batch[SLICES] for batch in batches]
        if len({part.type for part in parts}) > 1:  # 4 from a CSV file is the 4 of a Parquet file
            parts = [part.cast(pa.string()) for part in parts]
        columns[SLICES] = pa.chunked_array(parts)
    return columns


def refuse_overwriting(output: Path, source: Paths) -> None:
    """Refuse to write over the data that is being read."""
    for path in files_of(source):
        if path.exists() and output.exists() and path.samefile(output):
            message = f"{output} is the data itself: give another name for what is written."
            raise InputError(message)
