"""What the numbers of one model say, in plain words, and what a person should do next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcal.inference.chance import calibration_test
from softcal.inference.gaps import noise_floor
from softcal.inference.intervals import smece_interval

if TYPE_CHECKING:
    from softcal.inference.intervals import Interval
    from softcal.table.bins import Bins
    from softcal.table.reliability import Reliability

_TOO_SMALL_TO_MATTER = 0.02  # two points of a hundred
_TOO_LARGE_TO_LEAVE_OPEN = 0.1  # ten points
_ENOUGH_TO_TEST = 20  # rows; of a handful the test alone says more than they can bear


class Verdict(NamedTuple):
    """A model's result as a person would say it."""

    headline: str
    size: str
    sentences: list[str]
    next_step: str
    interval: Interval
    pvalue: float
    off: bool  # whether the data show that it is miscalibrated
    undecided: bool  # whether they leave open all from no error to a large one


class _Side(NamedTuple):
    """The rows predicted below one half, or from there on."""

    name: str
    share: float
    gap: float  # mean, above 0 where predictions are too high
    errors: float  # the same in standard errors


def verdict(
    fine: Reliability, hard: Reliability, bins: Bins, level: float, *, top_label: bool = False
) -> Verdict:
    """Say how well calibrated a model is, from its fine tables; `hard` has hardened labels.

    Of a predicted class's probability, too high is over-confident, on either side of one half.
    """
    soft, hard = fine.coarsen(bins), hard.coarsen(bins)
    interval = smece_interval(soft, level)
    pvalue = calibration_test(soft).pvalue
    off = interval.low > 0 or (pvalue < 1 - level and soft.n >= _ENOUGH_TO_TEST)
    sides = [side for side in _sides(fine) if side.share >= 0.005]
    size = f"SMECE {interval.value:.3f}, {_percent(level)} interval {_range(interval)}"
    undecided = not off and interval.high > _TOO_LARGE_TO_LEAVE_OPEN
    if undecided:
        headline = "too few rows to tell"
        sentences = [
            f"These data decide nothing: {size}. A perfect model would fit them, and so would one "
            f"that is {100 * interval.high:.0f} points of a hundred off."
        ]
    elif not off:
        headline = "no miscalibration shown"
        sentences = [
            f"These data show no miscalibration: {size}.",
            "That is not proof of calibration: with unlimited data the error could still be as "
            f"large as {interval.high:.3f}.",
        ]
    else:
        headline = _direction(fine, soft.smece)
        if top_label:
            headline = _OF_THE_PREDICTED_CLASS.get(headline, headline)
        sentences = [
            f"The predictions are {_SAID[headline]}: {size}.",
            " ".join(_side_text(side) for side in sides),
        ]
    hardened = "the majority class" if top_label else "the labels hardened to yes or no"
    contrast = _against_hard(soft, hard, hardened, off=off)
    if contrast and not undecided:
        sentences.append(contrast)
    if interval.note:
        sentences.append(interval.note)
    next_step = _next_step(interval, soft, off=off, undecided=undecided)
    return Verdict(headline, size, sentences, next_step, interval, pvalue, off, undecided)


_SAID = {
    "over-confident": "over-confident, surer than the labels warrant",
    "under-confident": "under-confident, less sure than the labels warrant",
    "too high": "too high",
    "too low": "too low",
    "off in places": "too high in places and too low in others",
}


_OF_THE_PREDICTED_CLASS = {"too high": "over-confident", "too low": "under-confident"}


def _direction(rel: Reliability, smece: float) -> str:
    """Name the shape of the error: by confidence or by level, whichever says more of it."""
    weight = float(rel.sums.weight.sum())
    sure = np.where(_predicts_yes(rel), 1.0, -1.0)
    bias = float(rel.sums.residual.sum()) / weight
    confidence = float((sure * rel.sums.residual).sum()) / weight
    if max(abs(bias), abs(confidence)) < 0.5 * smece:
        return "off in places"
    sides = [side.share for side in _sides(rel)]
    if abs(confidence) >= abs(bias) and min(sides) >= 0.1:
        return "over-confident" if confidence > 0 else "under-confident"
    return "too high" if bias > 0 else "too low"


def _predicts_yes(rel: Reliability) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    middle = (rel.bins.edges[:-1] + rel.bins.edges[1:]) / 2
    return np.asarray(middle >= 0.5)


def _sides(rel: Reliability) -> list[_Side]:
    total = float(rel.sums.weight.sum())
    yes = _predicts_yes(rel)
    variance = np.maximum(rel.sums.residual_var, noise_floor(rel.sums))
    sides = []
    for name, where in (("below 0.5", ~yes), ("above 0.5", yes)):
        weight = float(rel.sums.weight[where].sum())
        residual = float(rel.sums.residual[where].sum())
        error = math.sqrt(float(variance[where].sum()))
        gap = residual / weight if weight else 0.0
        sides.append(_Side(name, weight / total, gap, residual / error if error else 0.0))
    return sides


def _side_text(side: _Side) -> str:
    rows = f"Where it predicts {side.name} ({side.share:.0%} of the rows)"
    if abs(side.errors) < 2:
        return f"{rows} it is right on average, as far as these data can tell."
    return f"{rows} it is {_points(side.gap)} on average."


def _points(gap: float) -> str:
    return f"{abs(100 * gap):.1f} points too {'high' if gap > 0 else 'low'}"


def _against_hard(soft: Reliability, hard: Reliability, hardened: str, *, off: bool) -> str:
    if soft.has_hard_labels:
        return ""
    against = f"Against {hardened}, the usual ECE is {hard.smece:.3f}"
    if off and hard.smece < 0.5 * soft.smece:
        times = soft.smece / hard.smece if hard.smece else math.inf
        far = f"{times:.1f} times smaller" if math.isfinite(times) else "exactly 0"
        return f"{against}: {far}. Hardening would have hidden the problem."
    if hard.smece > 2 * soft.smece:
        return (
            (
                f"{against}: {hard.smece / soft.smece:.1f} times larger. Hardening would have "
                "blamed the model for the labels' own uncertainty."
            )
            if soft.smece
            else f"{against}; against the labels as they are there is no error."
        )
    return f"{against}."


def _next_step(interval: Interval, rel: Reliability, *, off: bool, undecided: bool) -> str:
    if not off and interval.high <= _TOO_SMALL_TO_MATTER:
        return "Use the probabilities as they are."
    if not off:
        factor = (interval.high / _TOO_SMALL_TO_MATTER) ** 2
        start = "Conclude nothing yet" if undecided else "Use the probabilities with care"
        return (
            f"{start}, and label more rows: to rule out an error above "
            f"{_TOO_SMALL_TO_MATTER} takes very roughly {_round_up(rel.n * factor):,} of them, "
            "if there is none."
        )
    if interval.high <= _TOO_SMALL_TO_MATTER:
        return (
            f"The error is real but small: at most {interval.high:.3f}. Repair it only if "
            "decisions hang on such differences."
        )
    return (
        "Do not take these probabilities at face value. Recalibrate the model on rows that were "
        "not used to train it, against the labels as they are, and judge the result on rows not "
        "used for that."
    )


def _round_up(number: float) -> int:
    """Keep one digit: a rough number should look like one."""
    unit: int = 10 ** int(math.log10(number))
    return math.ceil(number / unit) * unit


def _range(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def _percent(level: float) -> str:
    return f"{100 * level:g} %"
