"""The reproduction of the SMECE paper: its printed numbers beside ours, and its errata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal import __version__
from softcal.cards.card import Card, Column, Grid, Numbered, Said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part

TABLES = {
    "experiment_1": "Experiment 1: k = 2, n = 5,000",
    "experiment_2": "Experiment 2: over k, n = 5,000",
    "experiment_3": "Experiment 3: ranking accuracy, 1,000 replications, n = 1,000",
    "experiment_3_pairs": "Experiment 3: accuracy of each pair at k = 2",
    "experiment_4": "Experiment 4: over n, k = 2, 500 replications",
}
_HOW_TO_READ = (
    "The SMECE paper, reproduced. 'printed = ours': the paper's number equals ours to the last "
    "digit, with the paper's binning. 'ours': our number where it differs. 'closed': the number "
    "with p = 1 in the last bin, where that changes a digit. 'exact limit': the value for "
    "unlimited n, with p = 1 in the last bin."
)


@dataclass(frozen=True)
class Cell:
    """One printed number, and ours: with the paper's bins, with the last bin closed, and the limit.

    `row` and `column` are its position in the table. `limit` is None for a standard deviation.
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
        """The name of the cell: its row and column."""
        return f"{self.row}, {self.column}"

    @property
    def reproduced(self) -> bool:
        """Whether our number, with the paper's bins, has the same printed digits."""
        return self.shown(self.open) == self.shown(self.printed)

    @property
    def changed_by_closing(self) -> bool:
        """Whether closing the last bin changes a printed digit."""
        return self.shown(self.open) != self.shown(self.closed)

    def shown(self, value: float) -> str:
        """Format a value with as many decimals as in the paper."""
        return f"{value:.{self.decimals}f}"


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A printed number that is not reproduced."""

    table: str
    cell: str
    printed: float
    ours: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """An error of the paper: its claim, our finding, and the numbers."""

    title: str
    paper: str
    ours: str
    numbers: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class DrawnOutcomes:
    """Experiment 5; see `softcal.paper.experiments.Outcomes`."""

    n: list[int]
    drawn: list[float]
    thresholded: list[float]
    slope: float
    worth: dict[str, float]
    worth_simulated: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ManyVotes:
    """Experiment 6; see `softcal.paper.experiments.VoteScores`."""

    votes: list[int]
    n: int
    ece_majority: list[float]
    smece_share: list[float]


@dataclass(frozen=True, kw_only=True)
class ManyDimensions:
    """Experiment 7; see `softcal.paper.experiments.Dimensions`."""

    d: list[int]
    n: int
    smece_true: list[float]
    ece_true: list[float]
    smece_linear: list[float]
    ece_linear: list[float]


@dataclass(frozen=True, kw_only=True)
class Further:
    """The experiments that the paper does not have."""

    experiment_5: DrawnOutcomes
    experiment_6: ManyVotes
    experiment_7: ManyDimensions


@dataclass(frozen=True, kw_only=True)
class PaperCard(Card):
    """The cells of each table of the paper, its errata, and further experiments."""

    printed: int
    reproduced: int
    mismatches: list[Mismatch]
    tables: dict[str, list[Cell]]
    errata: list[Erratum]
    further: Further
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    def parts(self) -> Iterator[Part]:
        """Yield the tables, the errata, and the further experiments."""
        yield Said(_HOW_TO_READ)
        for name, title in TABLES.items():
            for part, cells in _split(self.tables[name]).items():
                yield _grid(f"{title}{part}", cells)
        tally = f"{self.reproduced} of {self.printed} printed numbers reproduced digit for digit."
        yield Said(tally, "strong")
        for each in self.mismatches:
            where = f"{TABLES[each.table]}, {each.cell}"
            yield Said(f"Not reproduced: {where}: printed {each.printed:g}, ours {each.ours:g}.")
        yield Said("\nErrata, each recomputed here", "strong")
        for number, item in enumerate(self.errata, 1):
            yield Said(f"\n{number}. {item.title}", "strong")
            yield Said(f"The paper: {item.paper}", "quiet")
            yield Said(item.ours)
        yield from self._further()

    def _further(self) -> Iterator[Part]:
        five, six, seven = vars(self.further).values()
        yield _columns(
            "Experiment 5: ECE of the perfect model, k = 2",
            {"n": five.n, "drawn outcomes": five.drawn, "thresholded labels": five.thresholded},
        )
        worth = ", ".join(f"{value:.0f} for {model}" for model, value in five.worth.items())
        yield Said(
            f"Against drawn outcomes, the ECE decreases like n^{five.slope:.2f}. One soft label "
            f"scores a model as precisely as this many drawn outcomes: {worth}."
        )
        yield _columns(
            f"Experiment 6: the perfect model against K votes, n = {six.n:,}",
            {"votes K": six.votes, "ECE, majority": six.ece_majority,
             "SMECE, share": six.smece_share},
        )  # fmt: skip
        yield _columns(
            f"Experiment 7: d dimensions, unequal covariances, n = {seven.n:,}",
            {"dimensions": seven.d, "true: SMECE": seven.smece_true, "true: ECE": seven.ece_true,
             "linear: SMECE": seven.smece_linear, "linear: ECE": seven.ece_linear},
        )  # fmt: skip

    def rows(self) -> list[Cell]:
        """Return the cells of all tables."""
        return [cell for cells in self.tables.values() for cell in cells]


def _columns(title: str, columns: dict[str, list[Any]]) -> Grid:
    """Return a table of columns: whole numbers, then scores."""
    (first, _), *others = columns.items()
    layout = [Column(first, "{name:,}")]
    layout += [Column(head, f"{{m{k}:.4f}}") for k, (head, _) in enumerate(others)]
    lines = zip(*columns.values(), strict=True)
    return Grid(layout, [Numbered(name, values) for name, *values in lines], title)


def _split(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Split the fourth experiment into means and standard deviations."""
    kinds = {"mean": ", mean", "std": ", standard deviation"}
    parts: dict[str, list[Cell]] = {}
    for cell in cells:
        kind = kinds.get(cell.column.rpartition(" ")[2], "")
        parts.setdefault(kind, []).append(cell)
    return parts


def _grid(title: str, cells: Sequence[Cell]) -> Grid:
    by_row: dict[str, list[Cell]] = {}
    for cell in cells:
        by_row.setdefault(cell.row, []).append(cell)
    heads = dict.fromkeys(cell.column.removesuffix(" mean").removesuffix(" std") for cell in cells)
    columns = [Column("", "{name:name}"), Column("", "{m0:name}")]
    columns += [Column(head, f"{{m{k}}}") for k, head in enumerate(heads, 1)]
    return Grid(columns, [line for row in by_row.items() for line in _lines(*row)], title)


def _lines(row: str, cells: Sequence[Cell]) -> Iterator[Numbered]:
    """Yield the lines of a row: printed, ours if it differs, closed, and the limit."""
    good = all(cell.reproduced for cell in cells)
    printed = [cell.shown(cell.printed) for cell in cells]
    yield Numbered(row, ["printed = ours" if good else "printed", *printed])
    if not good:
        yield Numbered("", ["ours", *(cell.shown(cell.open) for cell in cells)])
    if any(cell.changed_by_closing for cell in cells):
        yield Numbered("", ["closed", *(cell.shown(cell.closed) for cell in cells)])
    if any(cell.limit is not None for cell in cells):
        limits = ["" if cell.limit is None else cell.shown(cell.limit) for cell in cells]
        yield Numbered("", ["exact limit", *limits])
