"""Figures: soft reliability diagrams, gaps, decision curves, and trends. They need matplotlib."""

from softcal.plot.diagram import ReliabilityDisplay
from softcal.plot.figures import draw_bins, draw_decision, draw_gaps, draw_reliability, draw_routes
from softcal.plot.trend import draw_watch

__all__ = [
    "ReliabilityDisplay", "draw_bins", "draw_decision", "draw_gaps", "draw_reliability",
    "draw_routes", "draw_watch",
]  # fmt: skip
