"""relplot: the binned ECE."""

from __future__ import annotations

from relplot.metrics import binnedECE

NAME = "relplot"
BASIS = "code: the bin is floor(p / width), that is [low, high)"
CONVENTIONS = {"equal-width": "left-closed"}
METRICS = {"ece": lambda data: binnedECE(data.p, data.y, data.n)}
SOFT = {"ece"}
