from __future__ import annotations

import numpy as np

import softcal as sc
from softcal.datasets import lidc_malignancy


def test_lidc_dataset_is_complete() -> None:
    nodules = lidc_malignancy()
    assert {column.size for column in nodules.values()} == {1377}
    ratings = np.stack([nodules[f"readers_rating_{k}"] for k in range(1, 6)])
    np.testing.assert_array_equal(ratings.sum(axis=0), nodules["n_readers"])
    assert set(nodules["n_readers"].tolist()) == {3, 4}


def test_the_label_is_the_share_of_readers_who_rate_4_or_5() -> None:
    nodules = lidc_malignancy()
    share = (nodules["readers_rating_4"] + nodules["readers_rating_5"]) / nodules["n_readers"]
    np.testing.assert_allclose(nodules["soft_malignant"], share, rtol=1e-15)


def test_lidc_reference_values() -> None:
    nodules = lidc_malignancy()
    y = nodules["soft_malignant"]
    for column, soft, hard in (
        ("prob_rf_all", 0.0952, 0.0222),
        ("prob_lr_geometry", 0.1067, 0.0328),
    ):
        assert round(sc.smece(y, nodules[column]), 4) == soft
        assert round(sc.ece(y, nodules[column], threshold=0.5), 4) == hard
