"""Draw the figures of the documentation whenever it is built.

One function per figure, one file per page; the name of the function is the name of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

from pictures import (
    bounds,
    classes,
    decisions,
    diagram,
    explained,
    monitoring,
    paper,
    recalibration,
    segments,
    training,
    uncertainty,
    votes,
    which_error,
    without_bins,
)
from pictures.style import LOOK, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure

PICTURES: tuple[Callable[[], Figure], ...] = (
    explained.how_to_read,
    explained.shapes_of_error,
    diagram.two_labels,
    diagram.diagram,
    diagram.diagram_band,
    diagram.gaps,
    diagram.number_of_bins,
    uncertainty.thirty_studies,
    uncertainty.coverage,
    uncertainty.how_many_items,
    without_bins.smooth_curve,
    without_bins.corp_curve,
    without_bins.cumulative_differences,
    which_error.which_error,
    bounds.label_intervals,
    recalibration.repaired,
    recalibration.methods_judged,
    decisions.decision_curve,
    decisions.risk_coverage,
    votes.vote_noise,
    classes.each_class,
    training.error_by_epoch,
    monitoring.days_add_up,
    monitoring.watch,
    segments.audited,
    paper.paper_models,
    paper.paper_steepness,
    paper.paper_ranking,
    paper.paper_sample_size,
)


def draw_all(folder: Path) -> None:
    """Draw every figure into a folder, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("agg")
    with mpl.rc_context(LOOK):
        for picture in PICTURES:
            save(picture(), folder / f"{picture.__name__}.svg")
