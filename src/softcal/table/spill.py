"""Store entries of groups until all rows are read: in memory, or in a temporary file if many.

A group's sums can be multiplied only when they are complete. Until then, entries are stored in runs
sorted by a hash of their group. The entries of all runs with hashes in one range form a part. A
part contains whole groups, and fits in memory for any number of rows.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal.exceptions import InputError
from softcal.table.tableset import Sparse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from softcal._validation.inputs import FloatArray
    from softcal.table.tableset import IntArray

IN_MEMORY = 1 << 21
"""The number of entries kept in memory before any is written to disk."""

_RUN = 1 << 19  # entries in a run, and about as many in a part
_HASHES = 1 << 12
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads consecutive numbers
_SHIFT = np.uint64(52)


class Gathered(NamedTuple):
    """Entries of some groups; several may have the same key."""

    group: IntArray
    place: IntArray  #     the rest of the key, packed into one integer
    values: FloatArray  # (sums, entries)


class _Run:
    """Entries sorted by hash, in memory or in a file."""

    def __init__(self, hashes: npt.NDArray[np.uint16], entries: Gathered) -> None:
        order = hashes.argsort(kind="stable")  # a radix sort
        group, place, values = entries
        self._entries = Gathered(group[order], place[order], values[:, order])
        self._starts = np.zeros(_HASHES + 1, dtype=np.int64)
        np.bincount(hashes, minlength=_HASHES).cumsum(out=self._starts[1:])
        self._sums = len(values)
        self._file: IO[bytes] | None = None
        self._at = 0

    def move(self, file: IO[bytes]) -> None:
        """Append the entries to a file, and free their memory."""
        group, place, values = self._entries
        self._file, self._at = file, file.seek(0, os.SEEK_END)
        for row in (group, place, *values):
            file.write(row.tobytes())
        self._entries = Gathered(group[:0].copy(), place[:0].copy(), values[:, :0].copy())

    def between(self, low: int, high: int) -> Gathered:
        """Return the entries with hashes from low to high, excluding high."""
        first, last, size = (int(self._starts[k]) for k in (low, high, -1))
        if self._file is None:
            group, place, values = self._entries
            return Gathered(group[first:last], place[first:last], values[:, first:last])
        rows = []
        for k in range(2 + self._sums):
            self._file.seek(self._at + 8 * (k * size + first))
            rows.append(self._file.read(8 * (last - first)))
        group, place = (np.frombuffer(row, dtype=np.int64) for row in rows[:2])
        values = np.array([np.frombuffer(row, dtype=np.float64) for row in rows[2:]])
        return Gathered(group, place, values)


class Spill:
    """Store entries of groups, and return them in parts that contain whole groups."""

    def __init__(self) -> None:
        self._waiting: list[Gathered] = []
        self._runs: list[_Run] = []
        self._size = self._waits = self._moved = 0
        self._file: IO[bytes] | None = None

    def add(self, entries: Gathered) -> None:
        """Add entries, in any order."""
        self._waiting.append(entries)
        self._size += entries.group.size
        self._waits += entries.group.size
        if self._waits >= _RUN:
            self._end_run()

    def _end_run(self) -> None:
        if not self._waiting:
            return
        entries = _joined(self._waiting)
        self._waiting, self._waits = [], 0
        hashes = (entries.group.astype(np.uint64) * _MIX >> _SHIFT).astype(np.uint16)
        self._runs.append(_Run(hashes, entries))
        if self._size > IN_MEMORY:
            self._move_all()

    def _move_all(self) -> None:
        try:
            if self._file is None:
                # It has no name, or is removed when closed, even after an error or Ctrl-C.
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
            while self._moved < len(self._runs):
                self._runs[self._moved].move(self._file)
                self._moved += 1
        except OSError as error:
            message = (
                f"the sums of groups do not fit in the temporary folder {tempfile.gettempdir()}: "
                f"{error.strerror}. Free space there, or set TMPDIR to a folder with more."
            )
            raise InputError(message) from error

    def parts(self) -> Iterator[tuple[float, Gathered]]:
        """Yield all entries in parts of whole groups, each with the share done before it."""
        self._end_run()
        number = min(-(-self._size // _RUN), _HASHES)
        for k in range(number):
            low, high = k * _HASHES // number, (k + 1) * _HASHES // number
            part = self._part(low, high)
            if part.group.size:
                yield k / number, part

    def _part(self, low: int, high: int) -> Gathered:
        """Join the entries of a range of hashes; add up equal keys if there are very many."""
        found: list[Gathered] = []
        size, most = 0, 4 * _RUN
        for run in self._runs:
            found.append(run.between(low, high))
            size += found[-1].group.size
            if size > most:
                found = [_summed(_joined(found))]
                size = found[0].group.size
                most = max(most, 2 * size)
        return _joined(found)

    def close(self) -> None:
        """Discard all entries, and remove the temporary file."""
        self._runs, self._waiting = [], []
        if self._file is not None:
            self._file.close()


def _joined(parts: Sequence[Gathered]) -> Gathered:
    group, place = (np.concatenate([each[k] for each in parts]) for k in (0, 1))
    return Gathered(group, place, np.concatenate([each.values for each in parts], axis=1))


def _summed(entries: Gathered) -> Gathered:
    """Add up entries of the same key."""
    groups, group = numbered(entries.group)
    places, place = numbered(entries.place)
    (group, place), values = Sparse.of(np.array([group, place]), entries.values)
    return Gathered(groups[group], places[place], values)


def numbered(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct values in increasing order, and the index of each value."""
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * values.size:  # the range is small enough to mark the values present
        present = np.zeros(high - low + 1, dtype=np.bool_)
        present[values - low] = True
        different = np.flatnonzero(present)
        numbers = np.empty(present.size, dtype=np.int64)
        numbers[different] = np.arange(different.size)
        return different + low, numbers[values - low]
    different, numbers = np.unique(values, return_inverse=True)
    return different, numbers
