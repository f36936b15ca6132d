"""Real votes: the reference values of shared/data/README.md, to four digits."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import softcal as sc

FOLDER = Path(os.environ.get("SOFTCAL_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the real votes are not here; SOFTCAL_SHARED_DATA says where their folder is",
)


def table(name: str) -> Any:
    return pq.read_table(FOLDER / name)


def test_cifar10h_reference_values() -> None:
    data = table("cifar10h_vgg16/items.parquet")
    columns = [name for name in data.column_names if name.startswith("votes_")]
    votes = sc.Votes(data.select(columns), classes=[name[6:] for name in columns])
    probs = data.select([f"prob_{name}" for name in votes.classes])
    majority = np.eye(10)[votes.majority()]
    assert sc.top_label_smece(votes, probs) == pytest.approx(0.0720, abs=5e-5)
    assert sc.top_label_smece(majority, probs) == pytest.approx(0.0418, abs=5e-5)
    cat = votes.classes.index("cat")
    assert sc.smece(votes.binary("cat"), data["prob_cat"]) == pytest.approx(0.0266, abs=5e-5)
    assert sc.ece(votes.majority() == cat, data["prob_cat"]) == pytest.approx(0.0184, abs=5e-5)
    interval = sc.smece_interval(sc.top_label_reliability(votes, probs))
    assert 0.0418 < interval.low < 0.0720 < interval.high
    # Far above what the noise of about fifty votes explains.
    assert sc.dist_ce(votes, probs) > 5 * sc.vote_noise_floor(votes, votes.shares, metric="dist_ce")


@pytest.mark.parametrize(
    ("model", "soft", "hard"), [("lr", 0.0418, 0.0110), ("nb", 0.1120, 0.0880)]
)
def test_davidson_reference_values(model: str, soft: float, hard: float) -> None:
    data = table("davidson_hate/items.parquet")
    classes = ["hate", "offensive", "neither"]
    votes = sc.Votes(data.select([f"votes_{name}" for name in classes]), classes=classes)
    hate = data[f"prob_hate_{model}"]
    assert sc.smece(votes.binary("hate"), hate) == pytest.approx(soft, abs=5e-5)
    assert sc.ece(votes.majority() == 0, hate) == pytest.approx(hard, abs=5e-5)
    probs = data.select([f"prob_{name}_{model}" for name in classes])
    tables = sc.classwise_reliability(votes, probs)
    assert tables["hate"] == sc.reliability(votes.binary("hate"), hate)


def test_multipico_reference_values() -> None:
    items, raw = table("multipico/items.parquet"), table("multipico/votes.parquet")
    votes = sc.Votes.from_long(raw, item="item", worker="annotator", label="vote")
    assert (votes.n_items, len(votes.ballots.workers)) == (3756, 506)  # type: ignore[union-attr]
    beside = votes.for_items(items["item"])
    assert beside.totals.tolist() == items["n_votes"].to_pylist()
    assert beside.counts[:, 1].tolist() == items["votes_ironic"].to_pylist()
    prob = items["prob_ironic_lr"]
    assert sc.smece(beside, prob) == pytest.approx(0.1246, abs=5e-5)
    assert sc.ece(beside, prob, threshold=0.5) == pytest.approx(0.0650, abs=5e-5)


def test_dawid_skene_on_multipico_equals_crowd_kit() -> None:
    reference = json.loads((Path(__file__).parent / "reference" / "dawid_skene.json").read_text())
    votes = sc.Votes.from_long(
        table("multipico/votes.parquet"), item="item", worker="annotator", label="vote"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = sc.dawid_skene(votes, tolerance=0, max_iterations=reference["iterations"])
    ironic, expected = found.posterior[:, 1], reference["multipico"]
    assert ironic.mean() == pytest.approx(expected["mean"], abs=1e-9)
    assert (ironic**2).mean() == pytest.approx(expected["mean_square"], abs=1e-9)
    assert (ironic > 0.5).sum() == expected["above_half"]
    assert sc.dawid_skene(votes).converged
