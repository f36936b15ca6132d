"""Where the report's rows come from: columns batch by batch, or the predicted class of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal import inputs, metrics
from softcal.class_inputs import class_rows
from softcal.errors import InputError
from softcal.inputs import Names
from softcal.multiclass import top_label_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from softcal.inputs import Rows

MAX_MODELS = 8


class Roles(NamedTuple):
    """Which column is what."""

    label: str
    preds: tuple[str, ...]
    weight: str | None = None
    votes: str | None = None
    by: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns needed, each once."""
        optional = (self.weight, self.votes, self.by)
        return list(dict.fromkeys([self.label, *self.preds, *filter(None, optional)]))


class Part(NamedTuple):
    """Some rows, for each model: with the labels as they are and hardened, and their slices."""

    soft: dict[str, Rows]
    hard: dict[str, Rows]
    by: npt.ArrayLike | None


def parts_of_columns(
    batches: Iterable[Mapping[str, npt.ArrayLike]], roles: Roles
) -> Iterator[Part]:
    """Take one probability per row and model; a label above 0.5 is hardened to 1."""
    _refuse_unclear(roles)
    for batch in batches:
        soft = {name: _rows(batch, roles, name) for name in roles.preds}
        hard = {
            name: rows._replace(y_true=metrics.harden(rows.y_true)) for name, rows in soft.items()
        }
        yield Part(soft, hard, None if roles.by is None else batch[roles.by])


def part_of_classes(
    y_true: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    sample_weight: npt.ArrayLike | None,
    by: npt.ArrayLike | None,
) -> Part:
    """Take each model's predicted class; the label is its share, or hardened the majority."""
    _refuse_many(len(predictions))
    soft, hard = {}, {}
    for name, y_prob in predictions.items():
        data = class_rows(y_true, y_prob, sample_weight)
        soft[name] = rows = top_label_rows(data)
        agree = data.y_true.argmax(axis=1) == data.y_prob.argmax(axis=1)
        hard[name] = rows._replace(y_true=agree.astype(np.float64))
    return Part(soft, hard, by)


def _rows(batch: Mapping[str, npt.ArrayLike], roles: Roles, pred: str) -> Rows:
    names = Names(roles.label, pred, roles.weight or "", roles.votes or "")
    return inputs.rows(
        batch[roles.label],
        batch[pred],
        None if roles.weight is None else batch[roles.weight],
        None if roles.votes is None else batch[roles.votes],
        names,
    )


def _refuse_unclear(roles: Roles) -> None:
    if len(set(roles.preds)) != len(roles.preds) or roles.label in roles.preds:
        message = (
            "label and predictions must be different columns: "
            f"got {', '.join([roles.label, *roles.preds])}."
        )
        raise InputError(message)
    _refuse_many(len(roles.preds))


def _refuse_many(models: int) -> None:
    if models > MAX_MODELS:
        message = (
            f"a report shows at most {MAX_MODELS} models: got {models}. "
            "Choose some, or use `softcal score`."
        )
        raise InputError(message)
