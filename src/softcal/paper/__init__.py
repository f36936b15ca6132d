"""Reproduction of the SMECE paper (Leznik, March 2026), to the printed digit.

`model` has the paper's generative model, its five predictors, and the limits of the metrics in
closed form. `experiments` has the paper's four experiments and three more. `reproduction` compares
our results with the printed numbers. `figures` draws the figures.
"""

from softcal.paper.experiments import (
    experiment_1,
    experiment_2,
    experiment_3,
    experiment_4,
    experiment_5,
    experiment_6,
    experiment_7,
)
from softcal.paper.model import MODELS, Gaussians, Mixture, limit_ece, limit_smece, predictions

__all__ = [
    "MODELS",
    "Gaussians",
    "Mixture",
    "experiment_1",
    "experiment_2",
    "experiment_3",
    "experiment_4",
    "experiment_5",
    "experiment_6",
    "experiment_7",
    "limit_ece",
    "limit_smece",
    "predictions",
]
