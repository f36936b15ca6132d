"""Recompute the tables of the paper, compare them with the printed digits, and write them."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._io import written_whole
from softcal.cards.card import plain
from softcal.cards.paper import (
    TABLES,
    Cell,
    DrawnOutcomes,
    Erratum,
    Further,
    ManyDimensions,
    ManyVotes,
    Mismatch,
    PaperCard,
)
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
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from softcal._validation.inputs import FloatArray

TOTAL_ROWS = 5000 * (1 + len(STEEPNESSES)) + 1000 * 1000 * len(STEEPNESSES) + 500 * sum(SIZES)
"""The number of rows that the four experiments draw, for a progress bar."""


@dataclass(frozen=True)
class Experiments:
    """The results of the paper's four experiments, from one stream of draws."""

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
    """Load the numbers printed in the paper."""
    text = (files("softcal.paper") / "printed_tables.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def compare(results: Experiments) -> list[Cell]:
    """Compare every printed number with ours."""
    printed = printed_tables()
    return [
        *_cells_1(results.one, printed["experiment_1"]["rows"]),
        *_cells_2(results.two, printed["experiment_2"]),
        *_cells_3(results.three, printed["experiment_3"]),
        *_cells_4(results.four, printed["experiment_4"]),
    ]


def limits(k: float) -> FloatArray:
    """Return the limits of both metrics for the five models, shape (2, 5)."""
    return np.array([[limit(model, k) for model in MODELS] for limit in (limit_smece, limit_ece)])


def limit_accuracy(k: float) -> FloatArray:
    """Return, for both metrics, whether each pair is ranked as claimed in the limit of large n."""
    value = limits(k)[None, :, :, None]
    accuracy: FloatArray = ranked_right(value)[0]
    return accuracy


def _scores() -> Iterator[tuple[int, str, int, str]]:
    """Yield the number and name of each metric, with those of each model."""
    for (m, metric), (j, model) in product(enumerate(METRICS), enumerate(MODELS)):
        yield m, metric, j, model


def _cells_1(result: Ranking, printed: dict[str, Any]) -> Iterator[Cell]:
    exact = Ranking(result.k, 0, limits(result.k))
    for m, metric, j, model in _scores():
        name, figures = metric.upper(), printed[model]
        ours, closed = result.value[:, m, j].tolist()
        limit = float(exact.value[m, j])
        yield Cell("experiment_1", model, name, figures[metric], ours, closed, limit, 4)
        ours, closed = result.rank[:, m, j].tolist()
        name, figure, limit = f"{name} rank", figures[f"{metric}_rank"], float(exact.rank[m, j])
        yield Cell("experiment_1", model, name, figure, ours, closed, limit, 0)


def _cells_2(result: Sweep, printed: dict[str, Any]) -> Iterator[Cell]:
    for i, k in enumerate(result.k):
        limit = limits(k).tolist()
        for m, metric, j, model in _scores():
            row, figure = f"{metric.upper()} {model}", printed[metric][model][i]
            ours, closed = result.value[:, m, j, i].tolist()
            yield Cell("experiment_2", row, f"k={k:g}", figure, ours, closed, limit[m][j], 4)


def _cells_3(result: PairAccuracy, printed: dict[str, Any]) -> Iterator[Cell]:
    for i, k in enumerate(result.k):
        limit = limit_accuracy(k).mean(axis=-1).tolist()
        for m, metric in enumerate(METRICS):
            row, figure = metric.upper(), printed["overall_accuracy"][metric][i]
            ours, closed = result.overall[:, m, i].tolist()
            yield Cell("experiment_3", row, f"k={k:g}", figure, ours, closed, limit[m], 3)
    at_2, limit = result.k.index(2.0), limit_accuracy(2.0).tolist()
    for (q, pair), (m, metric) in product(enumerate(PAIRS), enumerate(METRICS)):
        column, figure = metric.upper(), printed["pair_accuracy_at_k_2"][pair][metric]
        ours, closed = result.value[:, m, q, at_2].tolist()
        yield Cell("experiment_3_pairs", pair, column, figure, ours, closed, limit[m][q], 3)


def _cells_4(result: Spread, printed: dict[str, Any]) -> Iterator[Cell]:
    limit = limits(result.k).tolist()
    for i, n in enumerate(result.n):
        for m, metric, j, model in _scores():
            row, (mean, std) = f"{metric.upper()} {model}", printed[f"{metric}_mean_std"][model][i]
            ours, closed = result.mean[:, m, j, i].tolist()
            column = f"n={n} mean"
            yield Cell("experiment_4", row, column, mean, ours, closed, limit[m][j], 4)
            ours, closed = result.std[:, m, j, i].tolist()
            yield Cell("experiment_4", row, f"n={n} std", std, ours, closed, None, 4)


def errata(results: Experiments, cells: list[Cell], outcomes: Outcomes) -> list[dict[str, Any]]:
    """Return the errata: for each a title, the claim, our finding, and the numbers."""
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
        "Bins [(b-1)/B, b/B): p = 1 belongs to none of them, but counts in n.",
        f"Model D predicts exactly 1 for {dropped:,} of {n:,} rows of experiment 1 "
        f"({dropped / n:.1%}). Closing the last bin changes {len(changed)} printed numbers. "
        f"The limit of SMECE of D is {closed:.4f}, not {literal:.4f}.",
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
        f"of the ten pairs with our number ({ours:.4f}), not with the printed one ({printed:.4f}).",
        printed=wrong.printed,
        ours=wrong.open,
        overall_printed=overall.printed,
        mean_of_ours=ours,
        mean_of_printed=printed,
    )


def _ratio(cells: list[Cell]) -> dict[str, Any]:
    a, b = (_find(cells, "experiment_1", model, "ECE").printed for model in "AB")
    return _entry(
        "Ratio of the ECE of A to that of B",
        "29 times.",
        f"{a} / {b} = {a / b:.1f} times.",
        ratio=a / b,
    )


def _uncertain_range(k: float) -> dict[str, Any]:
    share = math.log(9) / k / HALF_WIDTH  # sigmoid(kx) is 0.9 at x = log(9)/k
    return _entry(
        "Share of the inputs with a posterior between 0.1 and 0.9",
        "Approximately 60%.",
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
        f"The claimed order is wrong. In the limit SMECE is {c:.4f} for C and {d:.4f} for D, so D "
        f"is better calibrated, and the accuracy stays {pair.limit:.0f} for any n.",
        limit_c=c,
        limit_d=d,
    )


def _floor(outcomes: Outcomes) -> dict[str, Any]:
    first, last = outcomes.n[0], outcomes.n[-1]
    return _entry(
        "Whether ECE of the perfect model has a floor",
        "A structural gap whenever the label is a probability and the outcome a realization of it.",
        f"Only for thresholded labels. Against outcomes drawn with the posterior probability, the "
        f"ECE decreases from {outcomes.drawn[0]:.4f} at n = {first:,} to {outcomes.drawn[-1]:.4f} "
        f"at n = {last:,}, like n^{outcomes.slope:.2f} (thresholded: "
        f"{outcomes.thresholded[0]:.4f} to {outcomes.thresholded[-1]:.4f}). Soft labels reduce the "
        "variance.",
        n=list(outcomes.n),
        ece_drawn=outcomes.drawn.tolist(),
        ece_thresholded=outcomes.thresholded.tolist(),
        slope=outcomes.slope,
    )


@dataclass(frozen=True)
class Report:
    """The results of the seven experiments, the comparison with the paper, and the errata."""

    results: Experiments
    outcomes: Outcomes
    votes: VoteScores
    dimensions: Dimensions
    cells: list[Cell]
    errata: list[dict[str, Any]]

    def card(self) -> PaperCard:
        """Return everything as `softcal paper` prints it."""
        return PaperCard(
            printed=len(self.cells), reproduced=sum(cell.reproduced for cell in self.cells),
            mismatches=[
                Mismatch(
                    table=cell.table, cell=cell.name, printed=cell.printed,
                    ours=round(cell.open, cell.decimals),
                    why="the paper's own overall accuracy is the mean of its ten pairs only with "
                    "our number: see the errata",
                )
                for cell in self.cells
                if not cell.reproduced
            ],
            tables={
                table: [cell for cell in self.cells if cell.table == table] for table in TABLES
            },
            errata=[Erratum(**each) for each in self.errata],
            further=Further(
                experiment_5=DrawnOutcomes(**_plain(self.outcomes)),
                experiment_6=ManyVotes(**_plain(self.votes)),
                experiment_7=ManyDimensions(**_plain(self.dimensions)),
            ),
        )  # fmt: skip

    def csv_tables(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """Return the rows of the CSV file of each table, including experiments 5 to 7."""
        found = {
            table: tuple(_as_row(cell) for cell in self.cells if cell.table == table)
            for table in TABLES
        }
        outcomes = self.outcomes
        return found | {
            "experiment_5": _rows(
                n=outcomes.n, ece_drawn=outcomes.drawn, ece_thresholded=outcomes.thresholded
            ),
            "experiment_5_worth": _rows(
                model=outcomes.worth,
                worth=outcomes.worth.values(),
                worth_simulated=outcomes.worth_simulated.values(),
            ),
            "experiment_6": _rows(**_columns(self.votes)),
            "experiment_7": _rows(**_columns(self.dimensions)),
        }

    def write(self, folder: Path) -> None:
        """Write the tables of all experiments as CSV, and each figure as PNG and PDF."""
        from softcal.paper import figures

        for table, rows in self.csv_tables().items():
            with (
                written_whole(folder / f"{table}.csv") as path,
                path.open("w", newline="", encoding="utf-8") as lines,
            ):
                writer = csv.DictWriter(lines, rows[0])
                writer.writeheader()
                writer.writerows(rows)
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
    """Run all experiments, in about two seconds; `step` is called with the rows done."""
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


def _as_row(cell: Cell) -> dict[str, Any]:
    """Return a cell as a row of its CSV file; a limit of None is an empty field."""
    return {
        "row": cell.row,
        "column": cell.column,
        "printed": cell.printed,
        "ours_as_the_paper_bins": cell.open,
        "ours_last_bin_closed": cell.closed,
        "limit": cell.limit,
    }


def _rows(**columns: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Return the rows of a table, given its columns by name."""
    return tuple(
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    )


def _columns(result: VoteScores | Dimensions) -> dict[str, Any]:
    return {name: value for name, value in vars(result).items() if name != "n"}


def _plain(result: Outcomes | VoteScores | Dimensions) -> dict[str, Any]:
    found: dict[str, Any] = plain(vars(result))
    return found
