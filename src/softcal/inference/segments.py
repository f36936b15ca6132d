"""Find the segments whose predictions are too high or too low, among thousands that overlap.

A segment is a conjunction of values, such as device = phone and country = DE. Its sums are sums of
cells. The p-values hold for all segments simultaneously: they compare each segment with the
largest deviation of any segment in simulated data of a calibrated model. The intervals invert the
same test. docs/segments.md has the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from softcal import _display
from softcal._validation.rules import generator, is_whole, refuse_bad_level
from softcal.bins import Bins
from softcal.exceptions import InputError
from softcal.inference.group_segments import GroupTest, group_test
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.reliability import refuse_no_rows
from softcal.table.tableset import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray
    from softcal.table.blocks import IntArray
    from softcal.table.tableset import TableSet

MOST_CELLS = 1_000_000
"""The largest number of cells, and of segments, that an audit accepts."""

_ALL_ROWS = 0.95  # of the rows: segments that have so many explain nothing
_TOP = 5  # segments whose share of the error is reported
_MANY_EVENTS = 25.0  # of a cell, from which on one binomial stands for all of its rows
_NUMBERS = 1 << 21  # drawn at a time
_ROUNDING = 1e-9  # residuals below this are labels equal to their predictions
_SYMMETRIC = 1e-6  # skewness below which a sum counts as symmetric
_MOST = 1_000_000_000  # draws, columns, and rows that a setting may ask for
_TIE = 1e-9  # numbers that differ by less, as a share or in standard errors, are equal
_CERTAIN = 1e-100  # p(1 - p) below this counts as 0, so that ratios stay finite
_MOST_TRIALS = 1e9  # of a binomial that stands for labels that hardly vary
_SHRINKAGE = 1.0  # degrees of freedom that the variance of all rows counts
_FEWEST = 2.0  # degrees of freedom of a segment
_MOST_EXPONENT = 50.0  # so that no power overflows


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
        The familywise p-value: how often any of the segments, in data of a calibrated model, would
        be at least this far off. It is at most 1 - level if and only if the interval excludes 0.
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
                f"Nothing found: chance explains {gaps} {tested} (simultaneous p-values, "
                f"level {level})."
            )
        are = "is" if len(self.found) == 1 else "are"
        text = f"{len(self.found):,} of {tested} {are} off by more than chance explains."
        if self.explained is not None and self.explained.rows < _ALL_ROWS:
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
        title = f"{_display.printable(self.model)}: {self.summary}"
        return title, header if rows else [], _display.shortened(rows)

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
    members, where, too_small = _segments(cells, columns, depth, min_rows)
    sums = _named(members @ cells.sums.T)
    whole = tables[model].sums
    if tables.about.group is None:
        tested = _judged(_row_test(whole, cells, members, draws, random), sums, level)
    else:
        of_cells = _group_sums(tables, tables.models.index(model), cells)
        of_groups = group_test(*of_cells, members, draws, random)
        of_rows = _row_test(whole, cells, members, draws, random, of_groups.squares[0])
        tested = _judged(of_groups, sums, level).and_(_judged(of_rows, sums, level))
    pvalue, low, high = tested.pvalue, tested.low, tested.high
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
    certain, size = (np.round(x, 9) for x in (nearest * found, np.abs(tested.score)))
    order = np.lexsort((-size, pvalue * ~found, -certain, ~found))
    order = order[order > 0]  # all rows are not a segment
    top = [k for k in order[:_TOP].tolist() if found[k]]
    return Audit(
        model, tuple(made[k] for k in order.tolist()), made[0],
        _explained(cells.sums, tested.cell_variance, members, top), columns, depth, level,
        min_rows, too_small, len(cells.values),
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
    old = tables.about.group is not None and "group_sums" not in tables.blocks
    if old or tables.about.rater is not None:
        what = "groups that softcal 0.2 saved" if old else "recurring raters"
        message = (
            f"an audit cannot take {what}: `softcal check --by` judges each segment with them."
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
    number: IntArray  # of each cell of the set; -1 without rows


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
    place_of = np.full(len(each), -1)
    place_of[filled] = np.arange(filled.size)
    sums = np.add.reduceat(units, starts, axis=1)
    return _Cells(kept, codes, sums, units, starts, place_of[number])


def _group_sums(tables: TableSet, model: int, cells: _Cells) -> tuple[csr_array, csr_array]:
    """Return the residual and the weight of each group in each cell, with a row for each cell."""
    (cell, owner, _), values = tables.blocks["group_sums"].beneath(model, 0)
    shape = (len(cells.values), len(tables.axes.owner))
    residual, weight = (
        csr_array((row, (cells.number[cell], owner)), shape=shape) for row in values
    )
    return residual, weight


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


def _share(whole: Sums) -> float:
    """Return how much labels vary, as a share of p(1 - p): 1 for 0/1 labels."""
    possible = float(whole.prob_var.sum())
    if not whole.label_var.any() or not possible:
        return 1.0
    return min(float(_centered(_named(np.array([list(whole)]).sum(axis=2)))[0]) / possible, 1.0)


def _centered(parts: Sums) -> FloatArray:
    """Return the variance of each sum of residuals around its mean, unbiased for equal weights."""
    mean_sq = parts.residual**2 * parts.weight_sq / parts.weight**2
    rows = parts.weight**2 / parts.weight_sq
    found: FloatArray = (parts.residual_var - mean_sq).clip(0) * rows / (rows - 1).clip(1.0)
    return found


def _variance(whole: Sums, parts: Sums, share: float) -> tuple[FloatArray, FloatArray]:
    """Return the variance of the residual of each part, and its degrees of freedom.

    For 0/1 labels it is p(1 - p). Other labels have their own variance, and at least its mean with
    that of the whole and the variance of their votes. No label varies more than an outcome.
    """
    rounding = _ROUNDING**2 * parts.weight_sq
    if not whole.label_var.any():
        return parts.prob_var + rounding, np.full(parts.weight.shape, math.inf)
    rows = parts.weight**2 / parts.weight_sq
    events = parts.prob_var * (whole.count.sum() / whole.weight_sq.sum()) * _trials(share)
    # A sum of squares is known as well as a chi-square variable of these degrees of freedom.
    degrees = 1 / (1 / rows + 0.5 / np.maximum(events, _CERTAIN))
    own = _centered(parts)
    shrunk = (degrees * own + _SHRINKAGE * share * parts.prob_var) / (degrees + _SHRINKAGE)
    found = np.maximum(np.maximum(own, shrunk), parts.vote_floor)
    found = np.where(parts.label_var > 0, np.minimum(found, parts.prob_var), parts.prob_var)
    return found + rounding, np.maximum(degrees, _FEWEST)


def _trials(share: Any) -> Any:
    """Return the trials whose mean has the variance and skewness of a label of a Beta distribution.

    Its variance is a share of p(1 - p).
    """
    least = np.maximum(share, 1 / _MOST_TRIALS)
    return (1 + least) ** 2 / (4 * least)


class _Shape(NamedTuple):
    """The standard error and skewness of the simulated residual of each segment."""

    error: FloatArray
    skewness: FloatArray

    def normal(self, residual: FloatArray) -> FloatArray:
        """Return normal scores of standardized residuals, by Wilson and Hilferty's cube root.

        The last axis is the segment.
        """
        skew = self._nonzero
        scores = 6 / skew * (np.cbrt(1 + skew * residual / 2) - 1) + skew / 6
        return np.where(self._symmetric, residual, scores)

    def residual(self, score: float | FloatArray) -> FloatArray:
        """Return the standardized residuals of a normal score."""
        skew = self._nonzero
        found = 2 / skew * (((score - skew / 6) * skew / 6 + 1) ** 3 - 1)
        return np.where(self._symmetric, score, found)

    @property
    def _symmetric(self) -> npt.NDArray[np.bool_]:
        return np.abs(self.skewness) < _SYMMETRIC

    @property
    def _nonzero(self) -> FloatArray:
        return np.where(self._symmetric, 1.0, self.skewness)


def _skewness(units: Sums, share: float) -> float:
    """Return the skewness of the residual of a row, pooled over all rows.

    The third central moment of rows is the covariance of their sum and their sum of squares. The
    squares are around the mean of the unit, except in units of one row, because gaps differ.
    """
    variance = share * units.prob_var
    squares = np.where(units.count > 1, _centered(units), units.residual_var)
    mean = units.residual.sum() / units.weight.sum()
    third = (units.residual - mean * units.weight) @ (squares - variance)
    rows = units.weight.sum() ** 2 / units.weight_sq.sum()
    found = third * math.sqrt(rows) / max(variance.sum(), _CERTAIN) ** 1.5
    return float(np.clip(found, -math.sqrt(rows), math.sqrt(rows)))  # as of any sample


class _Test(NamedTuple):
    """How residuals in standard errors become normal scores, and back.

    The shape of outcomes is known. The standard error of other labels is estimated: their score is
    that of Student's t distribution, in Wallace's approximation. Where labels are skewed, few large
    ones decide both the mean and the standard error. On the short side of the distribution, Hall's
    cubic (1992) corrects for it. The skewness may be smaller than simulated, so no score is
    enlarged.
    """

    shape: _Shape
    degrees: FloatArray  # infinite for outcomes
    skewness: FloatArray  # as observed

    def scores(self, residual: FloatArray) -> FloatArray:
        """Return normal scores of residuals in standard errors."""
        found = self.shape.normal(residual)
        if math.isinf(self.degrees[0]):
            return found
        sign, skew = self._short(residual)
        cubic = ((1 + skew * residual / 3) ** 3 - 1) / skew + skew / 6
        size = np.minimum(np.minimum(sign * found, sign * residual), sign * cubic)
        size = np.maximum(size, 0.0)
        size = np.sqrt(self.degrees * np.log1p(size**2 / self.degrees))
        return sign * self._wallace * size

    def residual(self, score: float) -> FloatArray:
        """Return the residual in standard errors that has a normal score."""
        if math.isinf(self.degrees[0]):
            return self.shape.residual(score)
        exponent = np.minimum((score / self._wallace) ** 2 / self.degrees, _MOST_EXPONENT)
        found = np.copysign(np.sqrt(self.degrees * np.expm1(exponent)), score)
        sign, skew = self._short(found)
        cubic = 3 / skew * (np.cbrt(1 + skew * (found - skew / 6)) - 1)
        size = np.maximum(sign * self.shape.residual(found), sign * cubic)
        out: FloatArray = sign * np.maximum(size, sign * found)
        return out

    @property
    def _wallace(self) -> FloatArray:
        return (8 * self.degrees + 1) / (8 * self.degrees + 3)

    def _short(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the signs of residuals, and a skewness that makes their side the short one."""
        sign = np.where(residual < 0, -1.0, 1.0)
        opposed = np.minimum(sign * self.shape.skewness, sign * self.skewness)
        return sign, sign * np.minimum(opposed, -_SYMMETRIC)


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
    def of(cells: _Cells, share: float) -> _Noise:
        """Return the binomials of labels that vary by a share of p(1 - p)."""
        units = _named(cells.units.T)
        variance = np.maximum(share * units.prob_var, units.vote_floor)
        prob = np.clip((units.label + units.residual) / units.weight, 0.0, 1.0)
        varies = _varies(units) & (prob > 0) & (prob < 1)
        most = np.where(varies, units.prob_var, 1.0)
        phi = np.clip(variance / most, 1 / _MOST_TRIALS, 1.0)
        rows = units.weight**2 / units.weight_sq
        trials = np.clip(_stable(rows * _trials(phi)), 1, _MOST_TRIALS).round()
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


def _largest(
    noise: _Noise,
    members: csr_array,
    shape: _Shape,
    draws: int,
    random: np.random.Generator,
) -> FloatArray:
    """Return the largest score of any segment in each set of simulated data, in order."""
    found = []
    size = max(_NUMBERS // max(noise.trials.size, members.shape[0]), 1)  # bounds the memory
    for start in range(0, draws, size):
        drawn = members @ noise.drawn(min(size, draws - start), random)
        found.append(np.abs(shape.normal(drawn.T / shape.error)).max(axis=1))
    return np.sort(np.concatenate(found))


def _familywise(score: FloatArray, largest: FloatArray, level: float) -> tuple[FloatArray, float]:
    """Return Westfall and Young's max-T p-values, and the score above which they reject.

    Ties count as at least as extreme, whatever the order of summation made of them.
    """
    draws = largest.size
    seen = np.abs(score)
    exceeded = draws - largest.searchsorted(seen - _TIE * np.maximum(seen, 1.0))
    possible = np.arange(1, draws + 1) / (1 + draws)
    rejecting = int((possible <= 1 - level).sum())
    reach = float(largest[draws - rejecting]) if rejecting else math.inf
    return (1 + exceeded) / (1 + draws), reach


class _RowTest(NamedTuple):
    """The scores of segments of independent rows, and the largest one in each simulation."""

    score: FloatArray
    largest: FloatArray
    cell_variance: FloatArray
    variance: FloatArray
    test: _Test

    def limits(
        self, sums: Sums, reach: float, found: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the interval of each gap, which excludes 0 if and only if the segment was found.

        The test of a gap g uses the variance of a calibrated model at g = 0. At the observed gap it
        uses the labels' own variance, if that is larger, and between them a linear interpolation.
        The end nearer to 0 solves a quadratic equation.
        """
        prob = (sums.label + sums.residual) / sums.weight
        if math.isinf(reach):  # no number of draws so small can find anything
            return prob - 1, prob
        variance = self.variance
        gap = sums.residual / sums.weight
        sign = np.where(gap < 0, -1.0, 1.0)
        size = np.abs(sums.residual)
        ends = self.test.residual(reach), -self.test.residual(-reach)
        near, far = np.where(gap < 0, ends[::-1], ends)
        most = np.maximum(variance, _centered(sums))
        slope = near**2 * (most - variance) / np.where(size > 0, size, 1.0) / 2 + size
        beyond = size**2 - near**2 * variance
        root = np.sqrt(np.maximum(slope**2 - beyond, 0.0))
        outside = np.minimum(size - np.maximum(near, reach) * np.sqrt(most), 0.0)
        inner = np.where(found, beyond / np.maximum(slope + root, _CERTAIN), outside)
        outer = size + np.maximum(far, reach) * np.sqrt(most)
        low, high = np.sort(sign * np.array([inner, outer]) / sums.weight, axis=0)
        return np.clip(low, prob - 1, gap), np.clip(high, gap, prob)


def _row_test(
    whole: Sums,
    cells: _Cells,
    members: csr_array,
    draws: int,
    random: np.random.Generator,
    floor: FloatArray | float = 0.0,
) -> _RowTest:
    """Test segments of independent rows against simulated labels of a calibrated model.

    The variance of a segment's residual is at least `floor`.
    """
    sums = _named(members @ cells.sums.T)
    share = _share(whole)
    noise = _Noise.of(cells, share)
    shape = noise.shape(members)
    variance, degrees = _variance(whole, sums, share)
    variance = np.maximum(variance, floor)
    rows = sums.weight**2 / sums.weight_sq
    test = _Test(shape, degrees, _skewness(_named(cells.units.T), share) / np.sqrt(rows))
    score = test.scores(sums.residual / np.sqrt(variance))
    largest = _largest(noise, members, shape, draws, random)
    return _RowTest(score, largest, noise.variance, variance, test)


class _Judged(NamedTuple):
    """The scores of segments, simultaneous p-values and limits of gaps, and variances of cells."""

    score: FloatArray
    pvalue: FloatArray
    low: FloatArray
    high: FloatArray
    cell_variance: FloatArray

    def and_(self, other: _Judged) -> _Judged:
        """Return what both tests say: the larger p-values, and limits that hold both."""
        return self._replace(
            pvalue=np.maximum(self.pvalue, other.pvalue),
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
        )


def _judged(test: _RowTest | GroupTest, sums: Sums, level: float) -> _Judged:
    pvalue, reach = _familywise(test.score, test.largest, level)
    low, high = test.limits(sums, reach, pvalue <= 1 - level)
    return _Judged(test.score, pvalue, low, high, test.cell_variance)


def _explained(
    sums: FloatArray, variance: FloatArray, members: csr_array, top: list[int]
) -> Explained | None:
    """Return the share of the cells' squared error, and of the rows, in the first segments."""
    cells = _named(sums.T)
    error = (cells.residual**2 - variance) / cells.weight
    if not top or error.sum() <= 0:
        return None
    inside = np.asarray(members[top].sum(axis=0)).ravel() > 0
    share = min(max(float(error[inside].sum() / error.sum()), 0.0), 1.0)
    return Explained(len(top), share, float(cells.weight[inside].sum() / cells.weight.sum()))
