"""The paper's tables, recomputed, compared with the printed digits, and written to a folder."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._io import written_whole
from softcal.paper.experiments import (
    METRICS,
    PAIRS,
    SIZES,
    STEEPNESSES,
    Dimensions,
    Outcomes,
    PairAccuracy,
    Ranking,
    Spread,
    Sweep,
    VoteScores,
    experiment_1,
    experiment_2,
    experiment_3,
    experiment_4,
    experiment_5,
    experiment_6,
    experiment_7,
    ranked_right,
    silent,
)
from softcal.paper.model import HALF_WIDTH, MODELS, SEED, limit_ece, limit_smece, predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from softcal._validation.inputs import FloatArray

TOTAL_ROWS = 5000 * (1 + len(STEEPNESSES)) + 1000 * 1000 * len(STEEPNESSES) + 500 * sum(SIZES)
"""Rows all four experiments draw, for a progress bar."""

TABLES = {
    "experiment_1": "Experiment 1: k = 2, n = 5,000",
    "experiment_2": "Experiment 2: over k, n = 5,000",
    "experiment_3": "Experiment 3: ranking accuracy, 1,000 replications, n = 1,000",
    "experiment_3_pairs": "Experiment 3: accuracy of each pair at k = 2",
    "experiment_4": "Experiment 4: over n, k = 2, 500 replications",
}


@dataclass(frozen=True)
class Cell:
    """One printed figure and ours: as the paper bins, with the last bin closed, in the limit.

    `row` and `column` name its place in the table; `limit` is None for a standard deviation.
    """

    table: str
    row: str
    column: str
    printed: float
    open: float
    closed: float
    limit: float | None
    decimals: int

    @property
    def name(self) -> str:
        """The cell as one would say it."""
        return f"{self.row}, {self.column}"

    @property
    def reproduced(self) -> bool:
        """Whether ours, binned as the paper does, prints as the same digits."""
        return self.shown(self.open) == self.shown(self.printed)

    @property
    def changed_by_closing(self) -> bool:
        """Whether closing the last bin changes a printed digit."""
        return self.shown(self.open) != self.shown(self.closed)

    def shown(self, value: float) -> str:
        """Print a value with as many decimals as the paper does."""
        return f"{value:.{self.decimals}f}"


@dataclass(frozen=True)
class Experiments:
    """The results of the paper's four experiments, in one stream of draws."""

    one: Ranking
    two: Sweep
    three: PairAccuracy
    four: Spread


def run_all(step: Callable[[int], object] = silent) -> Experiments:
    """Run the four experiments with the paper's draws; about a second."""
    rng = np.random.default_rng(SEED)
    return Experiments(
        experiment_1(rng, step=step),
        experiment_2(rng, step=step),
        experiment_3(rng, step=step),
        experiment_4(rng, step=step),
    )


def printed_tables() -> dict[str, Any]:
    """Load the figures the paper prints."""
    text = (files("softcal.paper") / "printed_tables.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def compare(results: Experiments) -> list[Cell]:
    """Set every printed figure beside ours."""
    printed = printed_tables()
    return [
        *_cells_1(results.one, printed["experiment_1"]["rows"]),
        *_cells_2(results.two, printed["experiment_2"]),
        *_cells_3(results.three, printed["experiment_3"]),
        *_cells_4(results.four, printed["experiment_4"]),
    ]


def limits(k: float, *, last_bin_closed: bool = True) -> FloatArray:
    """Return the limits of both metrics for the five models, shape (2, 5)."""
    return np.array(
        [
            [limit(model, k, last_bin_closed=last_bin_closed) for model in MODELS]
            for limit in (limit_smece, limit_ece)
        ]
    )


def limit_accuracy(k: float) -> FloatArray:
    """Return, for both metrics, whether each pair is ranked as claimed when n is without bound."""
    value = limits(k)[None, :, :, None]
    accuracy: FloatArray = ranked_right(value)[0]
    return accuracy


def _cell(
    place: tuple[str, str, str],
    printed: float,
    ours: FloatArray,
    limit: float | None,
    decimals: int,
) -> Cell:
    """Make a cell of ours under both readings of the last bin, in the order of `READINGS`."""
    literal, closed = (float(value) for value in ours)
    return Cell(*place, printed, literal, closed, limit, decimals)


def _cells_1(result: Ranking, printed: dict[str, Any]) -> Iterator[Cell]:
    limit = Ranking(result.k, 0, np.stack([limits(result.k)] * 2))
    for m, metric in enumerate(METRICS):
        name = metric.upper()
        for j, model in enumerate(MODELS):
            value, rank = float(limit.value[1, m, j]), float(limit.rank[1, m, j])
            figures = printed[model]
            place = ("experiment_1", model, name)
            yield _cell(place, figures[metric], result.value[:, m, j], value, 4)
            place = ("experiment_1", model, f"{name} rank")
            yield _cell(place, figures[f"{metric}_rank"], result.rank[:, m, j], rank, 0)


def _cells_2(result: Sweep, printed: dict[str, Any]) -> Iterator[Cell]:
    for i, k in enumerate(result.k):
        limit = limits(k)
        for m, metric in enumerate(METRICS):
            for j, model in enumerate(MODELS):
                place = ("experiment_2", f"{metric.upper()} {model}", f"k={k:g}")
                figure = printed[metric][model][i]
                yield _cell(place, figure, result.value[:, m, j, i], float(limit[m, j]), 4)


def _cells_3(result: PairAccuracy, printed: dict[str, Any]) -> Iterator[Cell]:
    for i, k in enumerate(result.k):
        limit = limit_accuracy(k).mean(axis=-1)
        for m, metric in enumerate(METRICS):
            place = ("experiment_3", metric.upper(), f"k={k:g}")
            figure = printed["overall_accuracy"][metric][i]
            yield _cell(place, figure, result.overall[:, m, i], float(limit[m]), 3)
    at_2 = result.k.index(2.0)
    limit = limit_accuracy(2.0)
    for q, pair in enumerate(PAIRS):
        for m, metric in enumerate(METRICS):
            place = ("experiment_3_pairs", pair, metric.upper())
            figure = printed["pair_accuracy_at_k_2"][pair][metric]
            yield _cell(place, figure, result.value[:, m, q, at_2], float(limit[m, q]), 3)


def _cells_4(result: Spread, printed: dict[str, Any]) -> Iterator[Cell]:
    limit = limits(result.k)
    for i, n in enumerate(result.n):
        for m, metric in enumerate(METRICS):
            for j, model in enumerate(MODELS):
                mean, std = printed[f"{metric}_mean_std"][model][i]
                row = f"{metric.upper()} {model}"
                place = ("experiment_4", row, f"n={n} mean")
                yield _cell(place, mean, result.mean[:, m, j, i], float(limit[m, j]), 4)
                place = ("experiment_4", row, f"n={n} std")
                yield _cell(place, std, result.std[:, m, j, i], None, 4)


def errata(results: Experiments, cells: list[Cell], outcomes: Outcomes) -> list[dict[str, Any]]:
    """List the errors: a title, what the paper says, what we find, and the numbers behind it."""
    return [
        _dropped_ones(results, cells),
        _pair_c_e(cells),
        _ratio(cells),
        _uncertain_range(results.one.k),
        _pair_c_d(results, cells),
        _floor(outcomes),
    ]


def _entry(title: str, claim: str, finding: str, /, **numbers: Any) -> dict[str, Any]:
    return {"title": title, "paper": claim, "ours": finding, "numbers": numbers}


def _find(cells: list[Cell], table: str, row: str, column: str) -> Cell:
    return next(c for c in cells if (c.table, c.row, c.column) == (table, row, column))


def _dropped_ones(results: Experiments, cells: list[Cell]) -> dict[str, Any]:
    k, n = results.one.k, results.one.n
    x = np.random.default_rng(SEED).uniform(-HALF_WIDTH, HALF_WIDTH, n)  # experiment 1's draws
    dropped = int((predictions(k, x, x)["D"] == 1).sum())
    changed = [c for c in cells if c.changed_by_closing]
    closed, literal = limit_smece("D", k), limit_smece("D", k, last_bin_closed=False)
    return _entry(
        "Predictions of exactly 1 are in no bin",
        "Bins [(b-1)/B, b/B): p = 1 belongs to none of them, yet counts in n.",
        f"Model D predicts exactly 1 for {dropped:,} of {n:,} rows of experiment 1 "
        f"({dropped / n:.1%}). Closing the last bin changes {len(changed)} printed figures; "
        f"SMECE of D tends to {closed:.4f}, not {literal:.4f}.",
        dropped=dropped,
        rows=n,
        changed=[f"{c.table}: {c.name}: {c.shown(c.open)} -> {c.shown(c.closed)}" for c in changed],
        limit_closed=closed,
        limit_open=literal,
    )


def _pair_c_e(cells: list[Cell]) -> dict[str, Any]:
    pairs = [c for c in cells if c.table == "experiment_3_pairs" and c.column == "ECE"]
    wrong = _find(cells, "experiment_3_pairs", "C-E", "ECE")
    overall = _find(cells, "experiment_3", "ECE", "k=2")
    ours = float(np.mean([c.open for c in pairs]))
    printed = float(np.mean([c.printed for c in pairs]))
    return _entry(
        "Pair C-E under ECE at k = 2",
        f"Accuracy {wrong.printed:.3f}.",
        f"It is {wrong.open:.3f}. The paper's overall accuracy, {overall.printed:.3f}, is the mean "
        f"of the ten pairs with ours ({ours:.4f}), not with the printed one ({printed:.4f}).",
        printed=wrong.printed,
        ours=wrong.open,
        overall_printed=overall.printed,
        mean_of_ours=ours,
        mean_of_printed=printed,
    )


def _ratio(cells: list[Cell]) -> dict[str, Any]:
    a, b = (_find(cells, "experiment_1", model, "ECE").printed for model in "AB")
    return _entry(
        "How much larger the ECE of A is than that of B",
        "29 times.",
        f"{a} / {b} is {a / b:.1f} times.",
        ratio=a / b,
    )


def _uncertain_range(k: float) -> dict[str, Any]:
    share = math.log(9) / k / HALF_WIDTH  # sigmoid(kx) is 0.9 at x = log(9)/k
    return _entry(
        "Share of the inputs with a posterior between 0.1 and 0.9",
        "Approximately 60 %.",
        f"log(9)/6 = {share:.1%}.",
        share=share,
    )


def _pair_c_d(results: Experiments, cells: list[Cell]) -> dict[str, Any]:
    k = results.one.k
    c, d = limit_smece("C", k), limit_smece("D", k)
    pair = _find(cells, "experiment_3_pairs", "C-D", "SMECE")
    return _entry(
        "Pair C-D at k = 2",
        "Accuracy 0.000: an ambiguity of scalar summaries at this sample size.",
        f"Not noise: in the limit SMECE is {c:.4f} for C and {d:.4f} for D, so D is the better "
        f"calibrated, and accuracy stays {pair.limit:.0f} at any n. The claimed order is wrong.",
        limit_c=c,
        limit_d=d,
    )


def _floor(outcomes: Outcomes) -> dict[str, Any]:
    first, last = outcomes.n[0], outcomes.n[-1]
    return _entry(
        "Whether ECE of the perfect model has a floor",
        "A structural gap whenever the label is a probability and the outcome a realisation of it.",
        f"Only for thresholded labels. Against outcomes drawn with the posterior probability its "
        f"ECE falls from {outcomes.drawn[0]:.4f} at n = {first:,} to {outcomes.drawn[-1]:.4f} at "
        f"n = {last:,}, like n^{outcomes.slope:.2f} (thresholded: {outcomes.thresholded[0]:.4f} to "
        f"{outcomes.thresholded[-1]:.4f}). What soft labels buy there is variance.",
        n=list(outcomes.n),
        ece_drawn=outcomes.drawn.tolist(),
        ece_thresholded=outcomes.thresholded.tolist(),
        slope=outcomes.slope,
    )


@dataclass(frozen=True)
class Report:
    """The paper's experiments, the three it lacks, the comparison and the errata."""

    results: Experiments
    outcomes: Outcomes
    votes: VoteScores
    dimensions: Dimensions
    cells: list[Cell]
    errata: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain data, for `softcal paper --format json`."""
        return {
            "printed": len(self.cells),
            "reproduced": sum(cell.reproduced for cell in self.cells),
            "mismatches": [
                {
                    "table": cell.table,
                    "cell": cell.name,
                    "printed": cell.printed,
                    "ours": round(cell.open, cell.decimals),
                    "why": "the paper's own overall accuracy is the mean of its ten pairs only "
                    "with our figure: see the errata",
                }
                for cell in self.cells
                if not cell.reproduced
            ],
            "tables": {
                table: [
                    {key: value for key, value in asdict(cell).items() if key != "table"}
                    for cell in self.cells
                    if cell.table == table
                ]
                for table in TABLES
            },
            "errata": self.errata,
            "further": {
                "experiment_5": _plain(self.outcomes),
                "experiment_6": _plain(self.votes),
                "experiment_7": _plain(self.dimensions),
            },
        }

    def write(self, folder: Path) -> None:
        """Write each table as CSV and each figure as PNG and PDF."""
        from softcal.paper import figures

        for table in TABLES:
            with (
                written_whole(folder / f"{table}.csv") as path,
                path.open("w", newline="", encoding="utf-8") as lines,
            ):
                _write_csv(lines, [cell for cell in self.cells if cell.table == table])
        for name, figure in {
            "reliability": figures.reliability_diagrams(),
            "over_k": figures.over_steepness(self.results.two),
            "ranking": figures.ranking_accuracy(self.results.three),
            "over_n": figures.confidently_wrong(self.results.four, self.outcomes),
        }.items():
            for kind in ("png", "pdf"):
                with written_whole(folder / f"{name}.{kind}") as path:
                    figure.savefig(path, format=kind, dpi=200)


def reproduce(step: Callable[[int], object] = silent) -> Report:
    """Run everything; about two seconds. `step` is told of rows done, for a progress bar."""
    results = run_all(step)
    cells = compare(results)
    outcomes = experiment_5(np.random.default_rng(5))
    return Report(
        results,
        outcomes,
        experiment_6(np.random.default_rng(6)),
        experiment_7(np.random.default_rng(7)),
        cells,
        errata(results, cells, outcomes),
    )


def _write_csv(lines: Any, cells: list[Cell]) -> None:
    writer = csv.writer(lines)
    writer.writerow(
        ["row", "column", "printed", "ours_as_the_paper_bins", "ours_last_bin_closed", "limit"]
    )
    for cell in cells:
        shown = (cell.printed, cell.open, cell.closed)
        limit = "" if cell.limit is None else cell.limit
        writer.writerow([cell.row, cell.column, *shown, limit])


def _plain(result: Outcomes | VoteScores | Dimensions) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(result).items()
    }
