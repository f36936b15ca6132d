"""Find the segments whose predictions are too high or too low, among thousands that overlap.

A segment is a conjunction of values, such as device = phone and country = DE. Its sums are sums of
cells. The p-values hold for all segments simultaneously: they compare each segment with the
largest deviation of any segment in simulated data of a calibrated model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from softcal import _display
from softcal._validation.rules import generator, is_whole, refuse_bad_level
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.inference.tests import SHRINKAGE, calibrated_variance
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.reliability import refuse_no_rows
from softcal.table.tableset import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.table.blocks import IntArray
    from softcal.table.tableset import TableSet

MOST_CELLS = 1_000_000
"""The largest number of cells, and of segments, that an audit accepts."""

_TOP = 5  # segments whose share of the error is reported
_MANY_EVENTS = 25.0  # of a cell, from which on one binomial stands for all of its rows
_NUMBERS = 1 << 21  # drawn at a time
_ROUNDING = 1e-9  # residuals below this are labels equal to their predictions
_SYMMETRIC = 1e-6  # skewness below which a sum counts as symmetric
_MOST = 1_000_000_000  # draws, columns, and rows that a setting may ask for
_TIE = 1e-9  # numbers that differ by less, as a share or in standard errors, are equal
_CERTAIN = 1e-100  # p(1 - p) below this counts as 0, so that ratios stay finite
_MOST_TRIALS = 1e9  # of a binomial that stands for labels that hardly vary


@dataclass(frozen=True)
class Segment:
    """A segment of the rows, and how far its predictions are off.

    Attributes
    ----------
    where : dict
        The value of each column that defines the segment; None for rows without a value.
    n : int
        The number of rows.
    gap : float
        The mean prediction minus the mean label. A positive gap is a prediction that is too high.
    low, high : float
        The interval of the gap. The intervals of all segments hold simultaneously.
    pvalue : float
        The familywise p-value: how often any of the segments that remain, in data of a calibrated
        model, would be at least this far off.
    """

    where: dict[str, str | None]
    n: int
    gap: float
    low: float
    high: float
    pvalue: float

    @property
    def name(self) -> str:
        """The conditions of the segment in words."""
        return " and ".join(_condition(*each) for each in self.where.items()) or "all rows"

    @property
    def direction(self) -> str:
        """Whether predictions are "too high" or "too low"."""
        return "too high" if self.gap > 0 else "too low"

    @property
    def sentence(self) -> str:
        """The segment, the size and direction of its gap, and its rows, as a sentence."""
        rows = _display.counted(self.n, "row")
        if self.gap == 0:
            return f"{self.name}: no gap, {rows}"
        return f"{self.name}: {_points(self.gap)} percentage points {self.direction}, {rows}"


def _condition(column: str, value: str | None) -> str:
    """Return a condition in words.

    >>> _condition("age", "40 to 60"), _condition("age", "below 40"), _condition("device", "phone")
    ('age 40 to 60', 'age below 40', 'device = phone')
    """
    if value is None:
        return f"{column} missing"
    found = _display.RANGE.fullmatch(value)
    is_range = found is not None and (found["below"] or found["end"])
    return f"{column} {value}" if is_range else f"{column} = {value}"


class Explained(NamedTuple):
    """How much of the error the first segments explain.

    The error is the sum over cells of the squared gap times the rows, corrected for noise.
    """

    segments: int  # how many of the first ones
    error: float  #  their share of the error
    rows: float  #   their share of the rows, by weight


@dataclass(frozen=True, repr=False)
class Audit(_display.Printed):
    """The result of `audit`.

    Attributes
    ----------
    model : str
        The column of predictions.
    segments : tuple of Segment
        All segments that were tested, worst first: those found, by the smallest gap that their
        interval allows, then the others by their p-value.
    overall : Segment
        All rows, tested with the segments.
    found : tuple of Segment
        The segments whose p-value is at most 1 - `level`.
    explained : Explained or None
        How much of the error the first segments of `found` explain, at most 5. None if nothing was
        found, or if the cells show no error beyond noise.
    by : tuple of str
        The columns.
    depth, level, min_rows : int, float, int
        As given.
    too_small : int
        How many segments have fewer than `min_rows` rows and were not tested.
    cells : int
        How many combinations of values of all columns the rows have.
    """

    model: str
    segments: tuple[Segment, ...]
    overall: Segment
    explained: Explained | None
    by: tuple[str, ...]
    depth: int
    level: float
    min_rows: int
    too_small: int
    cells: int
    found: tuple[Segment, ...] = field(init=False)

    def __post_init__(self) -> None:
        found = tuple(each for each in self.segments if each.pvalue <= 1 - self.level)
        object.__setattr__(self, "found", found)

    def __repr__(self) -> str:
        return f"Audit(segments={len(self.segments)}, found={len(self.found)})"

    @property
    def summary(self) -> str:
        """What was found, in one or two sentences."""
        tested = _display.counted(len(self.segments), "segment")
        level = _display.percent(self.level)
        if not self.segments:
            if self.too_small:
                return f"Nothing to compare: no segment has {self.min_rows} rows or more."
            return f"Nothing to compare: all rows have the same value of {' and '.join(self.by)}."
        if not self.found:
            gaps = "the gap of the" if len(self.segments) == 1 else "the gaps of all"
            return (
                f"Nothing found: chance explains {gaps} {tested} (p-values over all segments "
                f"together, level {level})."
            )
        are = "is" if len(self.found) == 1 else "are"
        text = f"{len(self.found):,} of {tested} {are} off by more than chance explains."
        if self.explained is not None:
            k, error, rows = self.explained
            which = "The worst one explains" if k == 1 else f"The worst {k} explain"
            text += f" {which} {100 * error:.0f}% of the error with {100 * rows:.0f}% of the rows."
        return text

    @property
    def note(self) -> str:
        """What was not tested."""
        small = ""
        if self.too_small:
            one = self.too_small == 1
            segments = _display.counted(self.too_small, "segment")
            small = (
                f" {segments} of fewer than {self.min_rows} rows {'was' if one else 'were'} not "
                "tested."
            )
        return (
            "The audit finds segments whose predictions are too high or too low on average. Errors "
            f"that cancel within a segment are not tested.{small}"
        )

    def _shown(self) -> _display.Shown:
        header = ["segment", "rows", "gap", f"{_display.percent(self.level)} interval", "p-value"]
        rows = [
            [
                _display.printable(each.name), f"{each.n:,}", f"{each.gap:+.4f}",
                f"{each.low:+.3f} to {each.high:+.3f}", f"{each.pvalue:.3g}",
            ]
            for each in self.found
        ]  # fmt: skip
        first, left_out, last = _display.ends(rows)
        between = [[f"... {left_out:,} more", "", "", "", ""]] if left_out else []
        title = f"{_display.printable(self.model)}: {self.summary}"
        return title, header if rows else [], [*first, *between, *last]

    def _note(self) -> str:
        return self.note


def _points(gap: float) -> str:
    """Write a gap in percentage points, never as 0."""
    points = 100 * abs(gap)
    return f"{points:.1f}" if points >= 0.05 else f"{points:.1g}"


def audit_tables(
    tables: TableSet,
    *,
    model: str | None = None,
    by: Sequence[str] | None = None,
    depth: int = 2,
    level: float = 0.95,
    min_rows: int = 30,
    draws: int = 2000,
    rng: np.random.Generator | int = 0,
) -> Audit:
    """Audit the segments of a set of tables, as `softcal.audit` describes."""
    model, columns = _checked(tables, model, by, depth=depth, min_rows=min_rows, draws=draws)
    refuse_bad_level(level)
    random = generator(rng)
    cells = _cells(tables, tables.models.index(model), columns)
    if len(cells.values) > MOST_CELLS:
        message = (
            f"an audit takes at most {MOST_CELLS:,} cells: the columns {', '.join(columns)} have "
            f"{len(cells.values):,} combinations of values. Name fewer columns in by= (--by), or "
            "columns with fewer values."
        )
        raise InputError(message)
    whole = tables[model].sums
    members, where, too_small = _segments(cells, columns, depth, min_rows)
    sums = _named(members @ cells.sums.T)
    single = members[[k for k, each in enumerate(where) if len(each) < 2]]
    pooled = _shares(whole, cells.sums, single) * cells.sums[SUM_NAMES.index("prob_var")]
    noise = _Noise.of(whole, cells, pooled)
    variance = _variance(whole, sums, members @ pooled) + _ROUNDING**2 * sums.weight_sq
    shape = noise.shape(members)
    score = _scores(sums.residual / np.sqrt(variance), shape, outcomes=not whole.label_var.any())
    pvalue, reach = _familywise(score, noise, members, shape, draws, random, level)
    low, high = _limits(sums, variance, shape, reach, level, pvalue)
    gap = sums.residual / sums.weight
    made = [
        Segment(*each)
        for each in zip(
            where, sums.count.tolist(), gap.tolist(), low.tolist(), high.tolist(), pvalue.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    nearest = np.maximum(np.maximum(low, -high), 0.0)
    found = pvalue <= 1 - level
    certain, size = (np.round(x, 9) for x in (nearest * found, np.abs(score)))
    order = np.lexsort((-size, pvalue * ~found, -certain, ~found))
    order = order[order > 0]  # all rows are not a segment
    top = [k for k in order[:_TOP].tolist() if found[k]]
    return Audit(
        model, tuple(made[k] for k in order.tolist()), made[0],
        _explained(cells.sums, noise, members, top), columns, depth, level, min_rows, too_small,
        len(cells.values),
    )  # fmt: skip


def _checked(
    tables: TableSet,
    model: str | None,
    by: Sequence[str] | None,
    *,
    depth: int,
    min_rows: int,
    draws: int,
) -> tuple[str, tuple[str, ...]]:
    """Return the model and the columns; raise if the set cannot be audited."""
    _refuse_other_sets(tables)
    if model is None and len(tables) > 1:
        message = (
            f"an audit is of one model: pass model=, one of {', '.join(map(repr, tables.models))}."
        )
        raise InputError(message)
    columns = tables.by_names if by is None else tuple(by)
    for column in columns:
        tables.by(column)  # raises if there is no such column
        if columns.count(column) > 1:
            message = f"each column of by= must be named once: {column!r} is named twice."
            raise InputError(message)
    if not columns:
        message = "an audit needs segments: pass by= (--by), the columns whose values define them."
        raise InputError(message)
    for name, value in (("depth", depth), ("min_rows", min_rows), ("draws", draws)):
        if not is_whole(value) or not 1 <= value <= _MOST:
            message = f"{name} must be a whole number from 1 to {_MOST:,}: got {value!r:.60}."
            raise InputError(message)
    chosen = tables.models[0] if model is None else model
    refuse_no_rows(tables[chosen])
    return chosen, columns


def _refuse_other_sets(tables: TableSet) -> None:
    """Raise if the set has labels or ties between rows that an audit cannot take."""
    if tables.targets == BOUNDS:
        message = (
            "an audit needs labels that are known: these are intervals. `softcal score --by` "
            "prints the bounds of each segment."
        )
        raise InputError(message)
    if tables.has_owners:
        what = "groups of rows" if tables.about.group is not None else "recurring raters"
        message = (
            f"an audit treats rows as independent, so it cannot take {what}: `softcal check --by` "
            "judges each segment with them."
        )
        raise InputError(message)


def unit_bins() -> Bins:
    """Return the bins of predictions that one binomial of a cell may stand for.

    Their edges are those of the grid of tables whose logits are closest to whole numbers. A set on
    the grid and a set with these bins therefore have the same audit.
    """
    edges = Bins.grid().edges
    logits = np.log(edges[1:-1] / (1 - edges[1:-1]))
    whole = np.arange(math.ceil(logits[0]), math.floor(logits[-1]) + 1)
    nearest = edges[1:-1][np.abs(logits[:, None] - whole).argmin(axis=0)]
    return Bins(np.unique([0.0, *nearest, 1.0]))


class _Cells(NamedTuple):
    """The sums of each cell, and of its rows with predictions of about the same size."""

    values: list[tuple[str | None, ...]]
    codes: IntArray  #  (columns, cells), the number of each value
    sums: FloatArray  # (sums, cells)
    units: FloatArray  # (sums, units): a cell's rows in one of `unit_bins`
    starts: IntArray  # the first unit of each cell


def _cells(tables: TableSet, model: int, columns: Sequence[str]) -> _Cells:
    keys, values = tables.blocks["tables"].beneath(model, 0)
    place = [tables.by_names.index(column) for column in columns]
    cells = [tuple(cell[k] for k in place) for cell in tables.axes.cell]
    # In one order for every source, so that each draws the same numbers.
    each = sorted(set(cells), key=lambda cell: [_sortable(value) for value in cell])
    known = {cell: k for k, cell in enumerate(each)}
    number = np.array([known[cell] for cell in cells], dtype=np.int64)
    names = dict(zip(SUM_NAMES, values, strict=True))
    edges = tables.grid.edges[keys[1]]
    size = unit_bins().edges[1:-1].searchsorted(edges, side="right")
    cell = number[keys[0]]
    events = names["prob_var"] * (names["count"].sum() / names["weight_sq"].sum())
    size[np.bincount(cell, weights=events)[cell] >= _MANY_EVENTS * (1 - _TIE)] = 0  # one unit
    order = np.lexsort((size, cell))
    cell, size = cell[order], size[order]
    new = np.append(True, (cell[1:] != cell[:-1]) | (size[1:] != size[:-1]))
    units = np.add.reduceat(values[:, order], np.flatnonzero(new), axis=1)
    starts = np.flatnonzero(np.append(True, np.diff(cell[new]) > 0))
    filled = cell[new][starts]
    kept = [each[k] for k in filled.tolist()]
    codes = np.array(
        [
            np.unique([_sortable(value) for value in column], return_inverse=True)[1]
            for column in zip(*kept, strict=True)
        ]
    )
    return _Cells(kept, codes, np.add.reduceat(units, starts, axis=1), units, starts)


def _sortable(value: str | None) -> str:
    """Return a text for each value, different ones for different values."""
    return "" if value is None else f"={value}"


def _segments(
    cells: _Cells, columns: Sequence[str], depth: int, min_rows: int
) -> tuple[csr_array, list[dict[str, str | None]], int]:
    """Return which cells each segment has, its values, and how many segments are too small.

    The first one is all rows. A conjunction with the same rows as a shorter one is left out.
    """
    count = cells.sums[0]
    cell = np.arange(count.size)
    of_cell: dict[tuple[int, ...], IntArray] = {(): np.zeros(count.size, dtype=np.int64)}
    rows: dict[tuple[int, ...], FloatArray] = {(): np.array([count.sum()])}
    segment, member = [of_cell[()]], [cell]
    where: list[dict[str, str | None]] = [{}]
    too_small = 0
    for k in range(1, min(depth, len(columns)) + 1):
        for chosen in combinations(range(len(columns)), k):
            last = cells.codes[chosen[-1]]
            number = of_cell[chosen[:-1]] * (last.max() + 1) + last
            _, first, mine = np.unique(number, return_index=True, return_inverse=True)
            n: FloatArray = np.bincount(mine, weights=count).astype(np.float64)
            of_cell[chosen], rows[chosen] = mine, n
            new = np.ones(n.size, dtype=bool)
            for shorter in combinations(chosen, k - 1):
                new &= rows[shorter][of_cell[shorter][first]] > n
            too_small += int((new & (n < min_rows)).sum())
            new &= n >= min_rows
            numbers = np.cumsum(new) - 1 + len(where)
            kept = new[mine]
            segment.append(numbers[mine[kept]])
            member.append(cell[kept])
            where += [
                {columns[c]: cells.values[at][c] for c in chosen} for at in first[new].tolist()
            ]
            if len(where) > MOST_CELLS:
                message = (
                    f"an audit takes at most {MOST_CELLS:,} segments: the columns have more. Name "
                    "fewer columns in by= (--by), or lower depth= (--depth)."
                )
                raise InputError(message)
    at = (np.concatenate(segment), np.concatenate(member))
    members = csr_array((np.ones(at[0].size), at), shape=(len(where), count.size))
    return members, where, too_small


def _named(columns: FloatArray) -> Sums:
    """Return sums by name, from an array of shape (parts, sums)."""
    named = dict(zip(SUM_NAMES, columns.T, strict=True))
    return Sums(np.rint(named.pop("count")).astype(np.int64), **named)


def _varies(parts: Sums) -> npt.NDArray[np.bool_]:
    """Return whether outcomes of a calibrated model would vary in each part."""
    varies: npt.NDArray[np.bool_] = parts.prob_var > _CERTAIN * parts.weight_sq
    return varies


def _shares(whole: Sums, cells: FloatArray, single: csr_array) -> FloatArray:
    """Return how much the labels of each cell vary, as a share of p(1 - p).

    It is 1 for 0/1 labels. Otherwise it is the largest share among all rows and the rows with one
    of the cell's values. A cell of few events may have no variance: all its labels may be 0.
    """
    if not whole.label_var.any():
        return np.ones(cells.shape[1])
    parts = _named(single @ cells.T)
    varies = _varies(parts)
    pooled = parts.residual_var[0] / (parts.prob_var[0] if varies[0] else 1.0) * parts.prob_var
    own = _shrunk(whole, parts, pooled) / np.where(varies, parts.prob_var, 1.0)
    found = np.zeros(cells.shape[1])
    np.maximum.at(found, single.indices, np.repeat(own, np.diff(single.indptr)))
    return np.minimum(found, 1.0)


def _shrunk(whole: Sums, parts: Sums, pooled: FloatArray) -> FloatArray:
    """Return the parts' own variances, shrunk toward the pooled ones where events are few."""
    events = parts.prob_var * (whole.count.sum() / whole.weight_sq.sum())
    found: FloatArray = (events * parts.residual_var + SHRINKAGE * pooled) / (events + SHRINKAGE)
    return found


def _least_variance(whole: Sums, parts: Sums, pooled: FloatArray) -> FloatArray:
    """Return the lowest variance of the residual of each part that a calibrated model may have.

    For 0/1 labels it is p(1 - p). Other labels vary at least as much as the pooled ones and as
    their votes. Where labels are 0 or 1, they vary as outcomes do, and never more than these.
    """
    if not whole.label_var.any():
        return parts.prob_var
    known = np.maximum(calibrated_variance(whole, parts), parts.vote_floor)
    found: FloatArray = np.minimum(np.maximum(known, pooled), parts.prob_var)
    return found


def _variance(whole: Sums, parts: Sums, pooled: FloatArray) -> FloatArray:
    """Return the variance of the residual of each part: its own, shrunk, or the lowest."""
    own = np.minimum(_shrunk(whole, parts, pooled), parts.prob_var)
    found: FloatArray = np.maximum(own, _least_variance(whole, parts, pooled))
    return found


class _Shape(NamedTuple):
    """The standard error and skewness of the simulated residual of each segment."""

    error: FloatArray
    skewness: FloatArray

    def normal(self, residual: FloatArray) -> FloatArray:
        """Return normal scores of standardized residuals, by Wilson and Hilferty's cube root."""
        skew = self._nonzero(residual.ndim)
        scores = 6 / skew * (np.cbrt(1 + skew * residual / 2) - 1) + skew / 6
        return np.where(self._symmetric(residual.ndim), residual, scores)

    def residual(self, score: float) -> FloatArray:
        """Return the standardized residuals of a normal score."""
        skew = self._nonzero(1)
        found = 2 / skew * (((score - skew / 6) * skew / 6 + 1) ** 3 - 1)
        return np.where(self._symmetric(1), score, found)

    def _symmetric(self, ndim: int) -> npt.NDArray[np.bool_]:
        found = np.abs(self.skewness) < _SYMMETRIC
        return found if ndim == 1 else found[:, None]

    def _nonzero(self, ndim: int) -> FloatArray:
        found = np.where(self._symmetric(1), 1.0, self.skewness)
        return found if ndim == 1 else found[:, None]


def _scores(residual: FloatArray, shape: _Shape, *, outcomes: bool) -> FloatArray:
    """Return normal scores of the standardized residuals that were observed.

    The skewness of outcomes is known. That of other labels may be smaller than simulated, so their
    scores are not enlarged on the short side of the distribution.
    """
    scores = shape.normal(residual)
    if outcomes:
        return scores
    short = residual * shape.skewness < 0
    return np.where(short, residual, scores)


class _Noise(NamedTuple):
    """Binomials that stand for the labels of a calibrated model, one for each unit of a cell.

    For 0/1 labels they are the outcomes. Other labels have a variance of phi p(1 - p): they are
    binomials of more trials, times a factor below 1, with the skewness of beta distributions.
    """

    trials: IntArray
    prob: FloatArray
    factor: FloatArray
    starts: IntArray  # the first unit of each cell

    @staticmethod
    def of(whole: Sums, cells: _Cells, pooled: FloatArray) -> _Noise:
        """Return the binomials, given the pooled variance of each cell."""
        units = _named(cells.units.T)
        possible = np.add.reduceat(units.prob_var, cells.starts)
        of_cells = np.add.reduceat(units.weight_sq, cells.starts)
        share = pooled / np.where(possible > _CERTAIN * of_cells, possible, 1.0)
        of_unit = np.repeat(share, np.diff([*cells.starts, units.count.size]))
        variance = _least_variance(whole, units, of_unit * units.prob_var)
        prob = np.clip((units.label + units.residual) / units.weight, 0.0, 1.0)
        varies = _varies(units) & (prob > 0) & (prob < 1)
        most = np.where(varies, units.prob_var, 1.0)
        phi = np.clip(variance / most, 1 / _MOST_TRIALS, 1.0)
        rows = units.weight**2 / units.weight_sq
        trials = np.clip(_stable(rows * (1 + phi) ** 2 / (4 * phi)), 1, _MOST_TRIALS).round()
        spread = trials * prob * (1 - prob)
        factor = np.sqrt(phi * most / np.where(varies, spread, 1.0)) * varies
        return _Noise(trials.astype(np.int64), prob, factor, cells.starts)

    @property
    def variance(self) -> FloatArray:
        """The variance of each cell's residual."""
        return self._added(self.factor**2 * self.trials * self.prob * (1 - self.prob))

    def shape(self, members: csr_array) -> _Shape:
        """Return the standard error and skewness of the residuals of segments."""
        variance = members @ self.variance
        spread = self.factor**3 * self.trials * self.prob * (1 - self.prob)
        third = members @ self._added(spread * (2 * self.prob - 1))
        some = np.where(variance > 0, variance, 1.0)
        error = np.sqrt(some)
        return _Shape(error, third / some / error)

    def drawn(self, draws: int, random: np.random.Generator) -> FloatArray:
        """Return residuals of cells, of shape (cells, draws)."""
        # In this order, numpy prepares the distribution of a unit once for all of its draws.
        shape = (self.trials.size, draws)
        events = random.binomial(self.trials[:, None], _stable(self.prob)[:, None], size=shape)
        expected = (self.trials * self.prob)[:, None]
        return self._added((expected - events) * self.factor[:, None])

    def _added(self, of_units: FloatArray) -> FloatArray:
        added: FloatArray = np.add.reduceat(of_units, self.starts, axis=0)
        return added


def _stable(values: FloatArray) -> FloatArray:
    """Round to 12 digits, so that the order of summation does not decide what is drawn."""
    mantissa, exponent = np.frexp(values)
    out: FloatArray = np.ldexp(np.round(mantissa, 12), exponent)
    return out


def _familywise(
    score: FloatArray,
    noise: _Noise,
    members: csr_array,
    shape: _Shape,
    draws: int,
    random: np.random.Generator,
    level: float,
) -> tuple[FloatArray, float]:
    """Return Westfall and Young's step-down p-values, and the score that bounds all segments.

    Ties count as at least as extreme, whatever the order of summation made of them.
    """
    order = np.argsort(-np.abs(score), kind="stable")
    seen = np.abs(score)[order]
    at_least = seen - _TIE * np.maximum(seen, 1.0)
    exceeded = np.zeros(score.size)
    largest = []
    for size in _parts(draws, max(noise.trials.size, score.size)):
        scores = shape.normal(members @ noise.drawn(size, random) / shape.error[:, None])
        # Of each segment and all with a smaller score, the largest.
        most = np.maximum.accumulate(np.abs(scores)[order[::-1]])[::-1]
        exceeded += (most >= at_least[:, None]).sum(axis=1)
        largest.append(most[0])
    pvalue = np.empty(score.size)
    pvalue[order] = np.maximum.accumulate((1 + exceeded) / (1 + draws))
    rank = min(math.ceil((draws + 1) * level), draws)
    return pvalue, float(np.sort(np.concatenate(largest))[rank - 1])


def _parts(draws: int, width: int) -> Iterator[int]:
    """Split a number of draws into parts of bounded memory."""
    size = max(_NUMBERS // width, 1)
    for start in range(0, draws, size):
        yield min(size, draws - start)


def _limits(
    sums: Sums,
    variance: FloatArray,
    shape: _Shape,
    reach: float,
    level: float,
    pvalue: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each gap. 0 is inside it if and only if nothing was found."""
    mean_sq = sums.residual**2 * sums.weight_sq / sums.weight**2
    error = np.sqrt(np.maximum(variance, sums.residual_var - mean_sq))
    prob = (sums.label + sums.residual) / sums.weight
    gap = sums.residual / sums.weight
    low = (sums.residual - np.maximum(shape.residual(reach), reach) * error) / sums.weight
    high = (sums.residual - np.minimum(shape.residual(-reach), -reach) * error) / sums.weight
    found = pvalue <= 1 - level
    low = np.where(found & (gap > 0), np.maximum(low, 0.0), low)
    high = np.where(found & (gap < 0), np.minimum(high, 0.0), high)
    low, high = (
        np.where(found, low, np.minimum(low, 0.0)),
        np.where(found, high, np.maximum(high, 0.0)),
    )
    return np.clip(low, prob - 1, gap), np.clip(high, gap, prob)


def _explained(
    sums: FloatArray, noise: _Noise, members: csr_array, top: list[int]
) -> Explained | None:
    """Return the share of the cells' squared error, and of the rows, in the first segments."""
    cells: Mapping[str, FloatArray] = dict(zip(SUM_NAMES, sums, strict=True))
    error = (cells["residual"] ** 2 - noise.variance) / cells["weight"]
    if not top or error.sum() <= 0:
        return None
    inside = np.asarray(members[top].sum(axis=0)).ravel() > 0
    share = min(max(float(error[inside].sum() / error.sum()), 0.0), 1.0)
    return Explained(len(top), share, float(cells["weight"][inside].sum() / cells["weight"].sum()))
