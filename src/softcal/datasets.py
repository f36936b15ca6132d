"""The data that comes with softcal."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from softcal._validation.arrays import Column


def lidc_malignancy() -> dict[str, Column]:
    """Load 1,377 lung nodules, rated by three or four radiologists each, with two models.

    The label is `soft_malignant`, the share of radiologists who think the nodule malignant; the
    models are `prob_lr_geometry` and `prob_rf_all`. `softcal/data/lidc_malignancy/README.md`
    has the other columns, where they come from, the licence and what to cite.

    Returns
    -------
    dict of str to ndarray
        One array per column.

    Examples
    --------
    >>> nodules = lidc_malignancy()
    >>> nodules["soft_malignant"][:3]
    array([0.5 , 0.5 , 0.75])
    """
    source = files("softcal") / "data" / "lidc_malignancy" / "items.csv"
    header, *rows = csv.reader(source.read_text(encoding="utf-8").splitlines())
    columns = zip(header, zip(*rows, strict=True), strict=True)
    return {name: _parsed(name, values) for name, values in columns}


def _parsed(name: str, values: tuple[str, ...]) -> Column:
    if name == "patient":
        return np.array(values)
    kind = np.float64 if name.startswith(("soft_", "prob_")) else np.int64
    return np.array(values, dtype=kind)
