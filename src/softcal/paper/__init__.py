"""The SMECE paper (Leznik, March 2026), to the printed digit, and what it needs and lacks.

`generative` is the paper's model of the data and its five predictors, `limits` what the metrics
tend to, in closed form, `experiments` the paper's four, `further` the three it lacks, and
`reproduction` sets ours beside the printed figures.
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
