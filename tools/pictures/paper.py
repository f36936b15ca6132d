"""The four figures of the paper, as `softcal paper` draws them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from softcal.paper import figures
from softcal.paper.reproduction import Report, reproduce

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@cache
def _report() -> Report:
    return reproduce()


def paper_models() -> Figure:
    """Draw the five models against soft and thresholded labels."""
    return figures.reliability_diagrams()


def paper_steepness() -> Figure:
    """Draw both metrics over the steepness k."""
    return figures.over_steepness(_report().results.two)


def paper_ranking() -> Figure:
    """Draw how often pairs of models are in the claimed order."""
    return figures.ranking_accuracy(_report().results.three)


def paper_sample_size() -> Figure:
    """Draw the perfect model's error over n."""
    return figures.confidently_wrong(_report().results.four, _report().outcomes)
