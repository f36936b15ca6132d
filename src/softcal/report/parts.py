"""Where the report's rows come from: columns batch by batch, or the predicted class of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal._validation.multiclass import class_rows
from softcal.exceptions import InputError
from softcal.metrics import binned
from softcal.sources.columns import SLICES
from softcal.table.kernel import top_label_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy.typing as npt

    from softcal._validation.inputs import Rows
    from softcal.sources.columns import Roles

MAX_MODELS = 8


class Part(NamedTuple):
    """Some rows, for each model: with the labels as they are and hardened, and their slices."""

    soft: dict[str, Rows]
    hard: dict[str, Rows]
    by: npt.ArrayLike | None


def parts_of_columns(
    batches: Iterable[Mapping[str, npt.ArrayLike]], roles: Roles
) -> Iterator[Part]:
    """Take one probability per row and model; a label above 0.5 is hardened to 1.

    The values of slices, where there are some, are under `SLICES`.
    """
    roles.refuse_impossible()
    _refuse_many(len(roles.y_prob))
    for batch in batches:
        soft = {name: roles.rows(batch, name) for name in roles.y_prob}
        hard = {
            name: rows._replace(y_true=binned.harden(rows.y_true)) for name, rows in soft.items()
        }
        yield Part(soft, hard, batch.get(SLICES))


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


def _refuse_many(models: int) -> None:
    if models > MAX_MODELS:
        message = (
            f"a report shows at most {MAX_MODELS} models: got {models}. "
            "Choose some, or use `softcal score`."
        )
        raise InputError(message)
