"""The whole reproduction in one object: computed, printed, and written to a folder."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._io import written_whole
from softcal.paper.experiments import (
    Dimensions,
    Outcomes,
    VoteScores,
    experiment_5,
    experiment_6,
    experiment_7,
    silent,
)
from softcal.paper.reproduction import (
    TABLES,
    Cell,
    Experiments,
    as_json,
    compare,
    errata,
    run_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console


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
        """Give everything as plain data."""
        return as_json(self.cells, self.errata) | {
            "further": {
                "experiment_5": _plain(self.outcomes),
                "experiment_6": _plain(self.votes),
                "experiment_7": _plain(self.dimensions),
            }
        }

    def show(self, console: Console) -> None:
        """Print everything."""
        from softcal.paper.figures import show, show_further

        show(console, self.cells, self.errata)
        show_further(console, self.outcomes, self.votes, self.dimensions)

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
