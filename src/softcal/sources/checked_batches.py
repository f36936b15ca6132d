"""Rows whose values keep the rules, for what needs more of them than one table: some, or all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NoReturn

from softcal.door.inputs import as_float64
from softcal.sources.batches import all_pieces, batches, files_of
from softcal.sources.census import Census, missing_values
from softcal.sources.files import joined
from softcal.sources.pieces import SLICES, rows_of
from softcal.sources.tally import refuse_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal.sources.batches import Paths, Progress
    from softcal.sources.pieces import Batch
    from softcal.sources.roles import Roles


def checked_batches(
    source: Paths, roles: Roles, progress: Progress | None = None
) -> Iterator[Batch]:
    """Walk through files in bounded memory; refuse where a value breaks a rule.

    The refusal counts the values of all files, and says in which file and row the first is. The
    column to slice by may have missing values.
    """
    rules = roles._replace(by=None).rules
    rows, some = 0, False
    for batch in batches(source, roles.wanted.numbers, by=roles.by, progress=progress):
        for name, of_column in rules:
            values = as_float64(batch[name])
            if any(rule.broken(values).any() for rule in of_column):
                _refuse(source, roles._replace(by=None))
        rows += rows_of(batch)
        some = some or has_weight(batch, roles)
        yield batch
    if not some:
        refuse_nothing({}, rows, roles)


def has_weight(batch: Batch, roles: Roles) -> bool:
    """Whether any of the rows counts: no table can be made of those that do not."""
    return roles.sample_weight is None or bool(batch[roles.sample_weight].any())


def checked_columns(source: Paths, roles: Roles, progress: Progress | None = None) -> Batch:
    """Read all rows at once, where none can be judged alone: those of a group, `roles.by`.

    Every row must have its group. The groups are under `SLICES`.
    """
    found = list(checked_batches(source, roles, progress))
    if roles.by is not None and any(missing_values(batch[SLICES]).any() for batch in found):
        _refuse(source, roles)
    return joined(found)


def _refuse(source: Paths, roles: Roles) -> NoReturn:
    census = Census(roles.rules, roles.by)
    rows: Counter[str] = Counter()  # of each file
    for piece in all_pieces(files_of(source), roles.wanted):
        census.add(piece, rows[piece.place])
        rows[piece.place] += sum(map(rows_of, piece.batches()))
    census.refuse(rows.total())
