"""Votes listed one a row: which item, whose vote, for which class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal.door import arrays
from softcal.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ballots(NamedTuple):
    """The votes one by one, by numbers, and the names these stand for.

    The names of workers are empty where nobody says whose the votes are.
    """

    item: npt.NDArray[np.intp]
    label: npt.NDArray[np.intp]
    worker: npt.NDArray[np.intp]
    items: tuple[Any, ...]
    classes: tuple[Any, ...]
    workers: tuple[Any, ...]


def read_ballots(
    frame: Any,
    *,
    item: str,
    label: str,
    worker: str | None,
    classes: Sequence[Any] | None,
    allow_repeated: bool,
) -> Ballots:
    """Read the columns of a table of votes; see `Votes.from_long`."""
    names = [item, label] if worker is None else [item, label, worker]
    columns = {name: arrays.numbered(_taken(frame, name), name) for name in names}
    _refuse_other_lengths({name: numbers.size for name, (_, numbers) in columns.items()})
    items, item_number = columns[item]
    own, label_number = _in_order(*columns[label], classes, label)
    if len(own) < 2:
        message = (
            f"{label} must have two or more classes: every vote is for {own[0]!r:.60}. "
            "Give all of them with classes=."
        )
        raise InputError(message)
    workers: list[Any] = []
    worker_number = np.zeros_like(item_number)
    if worker is not None:
        workers, worker_number = columns[worker]
        if not allow_repeated:
            _refuse_second_votes(item_number, items, worker_number, workers)
    return Ballots(item_number, label_number, worker_number, tuple(items), own, tuple(workers))


def _taken(frame: Any, name: str) -> Any:
    # What can be collected holds no columns yet, and asking for their names may cost much.
    names = None if hasattr(frame, "collect") else arrays.column_names(frame)
    if names is None:
        message = (
            "frame must be a pandas, Polars or Arrow table or a dict of columns: got "
            f"{type(frame).__name__}. Collect or load it first."
        )
        raise InputTypeError(message)
    if name not in names:
        message = f"frame has no column {name!r:.60}. Its columns are: {arrays.listed(names)}."
        raise InputError(message)
    return frame[name]


def _refuse_other_lengths(sizes: dict[str, int]) -> None:
    (first, n), *others = sizes.items()
    for name, size in others:
        if size != n:
            message = (
                f"{first} and {name} must have the same length: {first} has {n} rows, {name} has "
                f"{size}. Pass one value of each per vote."
            )
            raise InputError(message)


def _in_order(
    found: list[Any], numbers: npt.NDArray[np.intp], classes: Sequence[Any] | None, name: str
) -> tuple[tuple[Any, ...], npt.NDArray[np.intp]]:
    """Give the classes in the caller's order, and the rows' numbers in it."""
    if classes is None:
        return tuple(found), numbers
    wanted = arrays.different_names(classes, len(classes), "classes")
    place = {key: k for k, key in enumerate(wanted)}
    unknown = [key for key in found if key not in place]
    if unknown:
        message = (
            f"{name} must be one of classes: {len(unknown)} names are not, the first is "
            f"{unknown[0]!r:.60}. The classes are {arrays.listed(wanted)}."
        )
        raise InputError(message)
    return wanted, np.array([place[key] for key in found], dtype=np.intp)[numbers]


def _refuse_second_votes(
    item: npt.NDArray[np.intp],
    items: list[Any],
    worker: npt.NDArray[np.intp],
    workers: list[Any],
) -> None:
    pair = item * len(workers) + worker
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    again = count > 1
    if again.any():
        row = int(first[again].min())
        message = (
            f"a worker must have one vote on an item: {again.sum()} pairs have more, the first is "
            f"worker {workers[worker[row]]!r:.60} on item {items[item[row]]!r:.60}. Drop the "
            "repeats, or pass allow_repeated=True to count each as a vote."
        )
        raise InputError(message)
