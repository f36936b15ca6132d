"""Figure of decision curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import softcal as sc
from pictures.style import nodules
from softcal.plot import draw_decision, draw_routes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def decision_curve() -> Figure:
    """Draw the net benefit of two models over the threshold, and what miscalibration costs."""
    at = np.arange(301) / 600
    models = {"forest": "prob_rf_all", "regression": "prob_lr_geometry"}
    curves = {
        name: sc.net_benefit(nodules()["soft_malignant"], nodules()[column], at)
        for name, column in models.items()
    }
    return draw_decision(curves, marked=[0.05, 0.2])


def risk_coverage() -> Figure:
    """Draw how many readers disagree with the surest predictions of two models."""
    models = {"forest": "prob_rf_all", "regression": "prob_lr_geometry"}
    routes = {
        name: sc.route(nodules()["soft_malignant"], nodules()[column], max_disagreement=0.2)
        for name, column in models.items()
    }
    return draw_routes(routes)
