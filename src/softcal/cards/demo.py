"""An example: two models of lung nodules, scored against radiologists and their majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softcal.cards.card import Card, Column, Grid, Said
from softcal.metrics.binned import harden
from softcal.table.reliability import reliability

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from softcal._validation.arrays import Column as Values
    from softcal.cards.card import Part

MODELS = {"prob_rf_all": "random forest", "prob_lr_geometry": "logistic regression"}


@dataclass(frozen=True, kw_only=True)
class DemoModel:
    """The error of a model against the majority, and against the radiologists."""

    name: str
    ece: float
    smece: float


@dataclass(frozen=True, kw_only=True)
class DemoBin:
    """A bin of the first model; the gap is in percentage points."""

    count: int
    mean_prob: float
    majority: float
    share: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class DemoCard(Card):
    """The errors of both models, and the bins of the first."""

    n: int
    readers: tuple[int, int]
    split: float
    ties: float
    models: list[DemoModel]
    bins: list[DemoBin]

    @staticmethod
    def of(nodules: Mapping[str, Values]) -> DemoCard:
        """Score both models of `lidc_malignancy`."""
        share, readers = nodules["soft_malignant"], nodules["n_readers"]
        majority = {each: reliability(harden(share), nodules[each]) for each in MODELS}
        soft = {each: reliability(share, nodules[each]) for each in MODELS}
        first = next(iter(MODELS))
        bins = zip(soft[first].per_bin(), majority[first].mean_label.tolist(), strict=True)
        return DemoCard(
            n=share.size, readers=(int(readers.min()), int(readers.max())),
            split=float(np.mean((share > 0) & (share < 1))), ties=float(np.mean(share == 0.5)),
            models=[
                DemoModel(name=name, ece=majority[each].smece, smece=soft[each].smece)
                for each, name in MODELS.items()
            ],
            bins=[
                DemoBin(count=count, mean_prob=p, majority=hard, share=y, gap=100 * gap)
                for (_, _, count, p, y, gap), hard in bins
            ],
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield what the data are, the errors of both models, and the bins of the first."""
        few, many = self.readers
        yield Said(
            f"{self.n:,} lung nodules, each rated by {few} or {many} radiologists. The label is "
            f"the share who rate it malignant. They disagree on {self.split:.0%} of the nodules, "
            "and a yes/no label hides that. The majority label is yes if more than half rate it "
            f"malignant; the {self.ties:.0%} exact ties count as no, as in the training of both "
            "models."
        )
        of_models = (
            Column("model", "{name:name}"), Column("against the majority\n(ECE)", "{ece:.4f}"),
            Column("against the radiologists\n(SMECE)", "{smece:.4f}"),
        )  # fmt: skip
        yield Grid(of_models, self.models, "Calibration error of both models")
        of_bins = (
            Column("nodules", "{count}"), Column("mean\nprediction", "{mean_prob:.0%}"),
            Column("majority\nlabel", "{majority:.0%}"),
            Column("share of\nradiologists", "{share:.0%}"), Column("gap", "{gap:+.0f} pts"),
        )  # fmt: skip
        yield Grid(of_bins, self.bins, f"The {self.models[0].name} by bin")
        ece, smece = self.models[0].ece, self.models[0].smece
        worst = max(self.bins, key=lambda each: each.count * abs(each.gap))
        yield Said(
            f"Against the majority label, the forest looks calibrated: its ECE is {ece:.3f}. "
            f"Against the radiologists, its error is {smece:.3f}, {smece / ece:.1f} times as "
            f"large. Most of the error is in the {worst.count} nodules with the lowest "
            f"predictions, {worst.mean_prob:.0%} on average. The majority label agrees "
            f"({worst.majority:.0%}), but {worst.share:.0%} of the radiologists rate these nodules "
            "malignant.\n"
        )
