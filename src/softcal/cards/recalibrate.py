"""Calibrators that were fitted, with their evaluation on held-out rows, and applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softcal import __version__
from softcal._display import counted, printable
from softcal.calibrators.base import Data
from softcal.calibrators.maps import MAPS
from softcal.cards.card import Card, Column, Grid, OfTables, Said, provenance
from softcal.cards.scores import SmeceOf, smece_of
from softcal.table.reliability import reliability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal.bins import Bins
    from softcal.calibrators.base import CalibrationMap
    from softcal.calibrators.preview import RepairPreview
    from softcal.cards.card import Part
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet

_HOW_TO_READ = (
    "All scores are on held-out rows: each row is mapped by a calibrator fitted on the other "
    "folds. The Brier score decides: it stays finite where a method predicts exactly 0 or 1."
)


def with_beta_map(fine: Reliability, bins: Bins) -> Reliability:
    """Return the table after a beta map that is fitted to it, without a valid variance.

    A bin stands for its rows with its mean prediction. The map has three parameters only, because
    the same rows fit it and evaluate it.
    """
    filled = fine.count > 0
    p, y, weight = fine.mean_prob[filled], fine.mean_label[filled], fine.sums.weight[filled]
    q = MAPS["beta"].fit(Data(p, y, weight)).apply(p)
    return reliability(y, q, bins=bins, sample_weight=weight)


@dataclass(frozen=True, kw_only=True)
class OfMethod:
    """A method and its losses; none is the predictions as they are."""

    method: str
    brier: float
    log_loss: float | None


@dataclass(frozen=True, kw_only=True)
class HeldOut(SmeceOf, OfMethod):
    """A method on held-out rows."""

    chosen: bool

    @property
    def name(self) -> str:
        """The method, marked if it is chosen."""
        return f"{self.method}{' *' * self.chosen}"

    @property
    def shown_log_loss(self) -> str:
        """The log loss as text."""
        return "inf" if self.log_loss is None else f"{self.log_loss:.4f}"


@dataclass(frozen=True, kw_only=True)
class RecalibrationCard(OfTables):
    """A calibrator, and how each method does on held-out rows."""

    pred: str
    columns: tuple[str, ...] | None
    classes: tuple[str, ...] | None
    folds: int
    method: str
    helps: bool
    verdict: str
    held_out: list[HeldOut]
    calibrator: dict[str, Any]
    takes_logits: bool
    output: str

    @staticmethod
    def of(
        tables: TableSet, found: RepairPreview, map_: CalibrationMap, *, source: str, pred: str,
        output: str,
    ) -> RecalibrationCard:  # fmt: skip
        """Return the evaluation and the calibrator."""
        held_out = [
            HeldOut(
                method="none" if trial is found.before else trial.method, brier=trial.brier,
                log_loss=trial.log_loss if trial.log_loss < float("inf") else None,
                chosen=trial is not found.before and trial.method == found.best,
                **smece_of(trial.smece),
            )
            for trial in (found.before, *found.after)
        ]  # fmt: skip
        own = provenance(tables, source) | {
            "n": found.before.table.n, "bins": len(found.before.table.bins), "notes": found.notes,
        }  # fmt: skip
        return RecalibrationCard(
            **own, pred=pred, columns=map_.columns, classes=map_.classes, folds=found.folds,
            method=found.best, helps=found.helps, verdict=found.verdict, held_out=held_out,
            calibrator=map_.to_dict(), takes_logits=map_.takes_logits, output=output,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the methods, which one is chosen, and what it takes."""
        error = self.error if self.classes is None else f"top-label\n{self.error}"
        columns = (
            Column("method", "{name}"), Column("Brier", "{brier:.5f}"),
            Column("log loss", "{shown_log_loss}"), Column(error, "{smece:.4f}"),
            Column("{level:%} interval", "{low:.3f} to {high:.3f}"),
        )  # fmt: skip
        yield Grid(columns, self.held_out, self.heading(self.pred, counted(self.folds, "fold")))
        yield Said(_HOW_TO_READ, "quiet")
        if len(self.held_out) > 2 or not self.helps:
            yield Said(f"{self.verdict}.")
        for note in self.notes:
            yield Said(f"Note: {note}")
        which = "" if self.helps else " (*) in case you need one"
        yield Said(printable(f"Saved {self.method}{which}, fitted on all rows, to {self.output}"))
        if self.takes_logits:
            yield Said("`softcal apply` also takes logits, and writes probabilities.")
        if self.classes is not None:
            named = ", ".join(self.classes)
            yield Said(printable(f"`softcal apply` matches columns by class: {named}"))

    def rows(self) -> list[HeldOut]:
        """Return the methods."""
        return self.held_out


@dataclass(frozen=True, kw_only=True)
class AppliedCard(Card):
    """The file that recalibrated predictions were written to."""

    n: int
    rows_dropped: int | None
    rows_missing: int | None
    method: str
    takes_logits: bool
    columns: list[str]
    output: str
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    def parts(self) -> Iterator[Part]:
        """Yield one line."""
        rows = counted(self.n, "row")
        dropped = f"{self.rows_dropped:,} dropped" if self.rows_dropped is not None else ""
        missing = f"{self.rows_missing:,} without a prediction" if self.rows_missing else ""
        said = "; ".join(filter(None, (dropped, missing)))
        method = f"{self.method}, from logits" if self.takes_logits else self.method
        yield Said(
            printable(
                f"{rows}{f' ({said})' if said else ''}, {', '.join(self.columns)} by {method}. "
                f"Saved: {self.output}"
            )
        )
