"""The SMECE paper (Leznik, March 2026), to the printed digit, and what it needs and lacks.

`model` is the paper's model of the data, its five predictors, and what the metrics tend to, in
closed form; `experiments` the paper's four and three it lacks; `reproduction` sets ours beside the
printed figures; `figures` draws them.
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
