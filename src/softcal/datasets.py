"""The data set included with softcal."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from softcal._validation.arrays import Column


def lidc_malignancy() -> dict[str, Column]:
    """Load 1,377 lung nodules with the ratings of three or four radiologists and two models.

    The label is `soft_malignant`, the share of radiologists who rated the nodule malignant. The
    models are `prob_lr_geometry` and `prob_rf_all`. `softcal/data/lidc_malignancy/README.md`
    describes the other columns, the source, the license, and the citation.

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
