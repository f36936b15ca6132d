"""Which column of a source is the label, which are predictions, weights, votes and slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from softcal.door import inputs
from softcal.door.inputs import Names
from softcal.door.rules import LABEL, LARGEST_VOTES, MISSING, UNIT, VOTES, WEIGHT, Rule
from softcal.errors import InputError
from softcal.sources.pieces import Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from softcal.door.inputs import Rows


class Roles(NamedTuple):
    """Which column plays which part."""

    y_true: str
    y_prob: tuple[str, ...]
    sample_weight: str | None = None
    n_votes: str | int | None = None
    by: str | None = None

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        optional = (self.sample_weight, self.n_votes)
        named = [name for name in optional if isinstance(name, str)]
        return Wanted((self.y_true, *self.y_prob, *named), self.by)

    @property
    def rules(self) -> list[tuple[str, tuple[Rule, ...]]]:
        """What the values of each column must be, in the order in which they are looked at."""
        found: list[tuple[str, tuple[Rule, ...]]] = [
            (self.y_true, LABEL),
            *((name, UNIT) for name in self.y_prob),
        ]
        if self.sample_weight is not None:
            found.append((self.sample_weight, WEIGHT))
        if isinstance(self.n_votes, str):
            found.append((self.n_votes, VOTES))
        return found if self.by is None else [(self.by, (MISSING,)), *found]

    def rows(self, columns: Mapping[str, npt.ArrayLike], pred: str) -> Rows:
        """Bring the columns of one prediction through the door, by the names they have there."""
        w, m = self.sample_weight, self.n_votes
        return inputs.rows(
            columns[self.y_true],
            columns[pred],
            None if w is None else columns[w],
            columns[m] if isinstance(m, str) else m,
            Names(self.y_true, pred, w or "", str(m)),
        )

    def refuse_impossible(self) -> None:
        """Refuse parts no column can play: both label and prediction, or one model twice."""
        if not self.y_prob:
            message = "y_prob must name at least one column."
            raise InputError(message)
        for pred in self.y_prob:
            if pred == self.y_true:
                message = f"label and prediction must be different columns: both are {pred!r}."
                raise InputError(message)
            if self.y_prob.count(pred) > 1:
                message = f"each prediction must be named once: {pred!r} is named more often."
                raise InputError(message)
        if isinstance(self.n_votes, int) and not 1 <= self.n_votes < LARGEST_VOTES:
            message = f"n_votes must be 1 or more: got {self.n_votes}."
            raise InputError(message)
