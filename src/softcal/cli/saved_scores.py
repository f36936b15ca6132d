"""What `softcal score --save` keeps: the tables of several models, whole and by slice. They add."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal import _io
from softcal.exceptions import InputError, InputTypeError
from softcal.table.reliability import Reliability
from softcal.table.serialize import FORMAT as TABLE_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from softcal.sources.collect import Key, Tables
    from softcal.sources.columns import Roles

FORMAT = "softcal.scores"
SCHEMA = 1


class Scored(NamedTuple):
    """The table of a model against the labels as they are and, if known, the hardened ones."""

    soft: Reliability
    hard: Reliability | None = None

    def plus(self, other: Scored) -> Scored:
        """Give the tables of the rows of both."""
        if self.hard is None or other.hard is None:
            return Scored(self.soft + other.soft)
        return Scored(self.soft + other.soft, self.hard + other.hard)


@dataclass(frozen=True)
class Scores:
    """What `softcal score --save` keeps: enough to print the score again, and to add to others.

    Attributes
    ----------
    label, weight, votes, by
        Names of the columns, None where there is none.
    models : dict of str to Scored
        The tables of all rows, for each model.
    slices : dict of str to dict of value to Scored
        The tables of each value of `by`, for each model.
    without_weight : int or None
        How many rows more have weight 0; None where nobody counted them.
    """

    label: str
    weight: str | None
    votes: str | None
    by: str | None
    models: dict[str, Scored]
    slices: dict[str, dict[Any, Scored]] = field(default_factory=dict)
    without_weight: int | None = None

    @staticmethod
    def named(roles: Roles, models: dict[str, Scored], rows: int) -> Scores:
        """Say whose scores these are, of so many rows with weight or without."""
        votes = roles.n_votes if isinstance(roles.n_votes, str) else None
        weightless = rows - next(iter(models.values())).soft.n
        return Scores(
            roles.y_true, roles.sample_weight, votes, roles.by, models, without_weight=weightless
        )

    @staticmethod
    def of(tables: Tables, roles: Roles, rows: int) -> Scores:
        """Arrange the tables of one pass over so many rows, with hardened labels."""
        found: dict[str, dict[Any, Scored]] = {pred: {} for pred in roles.y_prob}
        for key in sorted((key for key in tables if not key.hardened), key=_by_number_or_name):
            scored = Scored(tables[key], tables[key._replace(hardened=True)])
            # As text, so that a day from a CSV file and one from Parquet have the same slices.
            of_model, value = found[key.y_prob], str(key.value)
            of_model[value] = of_model[value].plus(scored) if value in of_model else scored
        whole = {pred: _sum(scored.values()) for pred, scored in found.items()}
        named = Scores.named(roles, whole, rows)
        return named if roles.by is None else replace(named, slices=found)

    def plus(self, other: Scores) -> Scores:
        """Add the scores of other rows; a slice that only one of them has stays as it is.

        Raises
        ------
        InputError
            If the two are not of the same columns and models.
        BinMismatchError
            If the bins differ.
        """
        for what in ("label", "weight", "votes", "by"):
            _refuse_other(what, getattr(self, what), getattr(other, what))
        _refuse_other("models", sorted(self.models), sorted(other.models))
        models = {pred: one.plus(other.models[pred]) for pred, one in self.models.items()}
        slices = {pred: _union(one, other.slices[pred]) for pred, one in self.slices.items()}
        weightless = None
        if self.without_weight is not None and other.without_weight is not None:
            weightless = self.without_weight + other.without_weight
        return replace(self, models=models, slices=slices, without_weight=weightless)

    def to_dict(self) -> dict[str, Any]:
        """Give plain numbers, lists and names, to be saved as JSON."""
        return {
            "format": FORMAT,
            "schema": SCHEMA,
            "label": self.label,
            "weight": self.weight,
            "votes": self.votes,
            "by": self.by,
            "rows_without_weight": self.without_weight,
            "models": [
                {"pred": pred, **_saved(scored), "slices": _saved_slices(self.slices.get(pred))}
                for pred, scored in self.models.items()
            ],
        }

    @staticmethod
    def from_dict(saved: dict[str, Any]) -> Scores:
        """Read back what `to_dict` gave, trusting nothing."""
        _io.schema_of(saved, FORMAT, SCHEMA, "saved scores")
        try:
            models = {str(one["pred"]): one for one in saved["models"]}
            whole = {pred: _read(one) for pred, one in models.items()}
            by = _name(saved["by"])
            slices = {
                pred: {each["value"]: _read(each) for each in one["slices"]}
                for pred, one in models.items()
                if by is not None
            }
            label, weight, votes = (
                str(saved["label"]),
                _name(saved["weight"]),
                _name(saved["votes"]),
            )
            weightless = saved.get(
                "rows_without_weight"
            )  # which the first files of this schema lack
            weightless = weightless if isinstance(weightless, int) else None
        except (KeyError, TypeError, AttributeError) as error:
            message = f"saved scores lack a part or have a wrong one: {error}. The file is damaged."
            raise InputError(message) from error
        if not whole:
            message = "saved scores must have at least one model: the file is damaged."
            raise InputError(message)
        return Scores(label, weight, votes, by, whole, slices, weightless)


def _name(value: Any) -> str | None:
    return None if value is None else str(value)


def _read(saved: Any) -> Scored:
    hard = saved["hardened"]
    return Scored(
        Reliability.from_dict(saved["table"]), None if hard is None else Reliability.from_dict(hard)
    )


def _saved(scored: Scored) -> dict[str, Any]:
    hard = scored.hard
    return {"table": scored.soft.to_dict(), "hardened": None if hard is None else hard.to_dict()}


def _saved_slices(slices: dict[Any, Scored] | None) -> list[dict[str, Any]]:
    return [{"value": plain(value), **_saved(one)} for value, one in (slices or {}).items()]


def plain(value: Any) -> str | int | float | bool:
    """Give the value of a slice as JSON has it: a date becomes its text."""
    return value if isinstance(value, str | int | float | bool) else str(value)


def _by_number_or_name(key: Key) -> tuple[str, float, str]:
    """Sort 9 before 10, and numbers before names."""
    try:
        number = float(key.value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isnan(number):  # a name, after all; and nothing can be sorted beside it
        number = math.inf
    return key.y_prob, number, str(key.value)


def _sum(parts: Iterable[Scored]) -> Scored:
    first, *rest = parts
    for part in rest:
        first = first.plus(part)
    return first


def _union(left: dict[Any, Scored], right: dict[Any, Scored]) -> dict[Any, Scored]:
    joined = dict(left)
    for value, scored in right.items():
        joined[value] = joined[value].plus(scored) if value in joined else scored
    return joined


def _refuse_other(what: str, left: object, right: object) -> None:
    if left != right:
        message = (
            f"cannot merge scores of different {what}: one has {left!r}, another {right!r}. Merge "
            "files that `softcal score --save` made with the same columns."
        )
        raise InputError(message)


def read_saved(path: Path) -> Scores:
    """Read saved scores from a JSON file; one saved table counts as that of one nameless model.

    Raises
    ------
    InputError
        If the file cannot be read or holds neither.
    """
    saved = _io.read_json(path, "`softcal score --save` or `Reliability.to_dict`")
    try:
        if isinstance(saved, dict) and saved.get("format") == FORMAT:
            return Scores.from_dict(saved)
        if isinstance(saved, dict) and saved.get("format") == TABLE_FORMAT:
            table = Reliability.from_dict(saved)
            return Scores("label", None, None, None, {"model": Scored(table)})
    except (InputError, InputTypeError) as error:
        message = f"cannot read {path}: {error}"
        raise InputError(message) from error
    message = f"cannot read {path}: its 'format' must be {FORMAT!r} or {TABLE_FORMAT!r}."
    raise InputError(message)
