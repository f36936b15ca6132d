"""`softcal demo`: score two models of lung nodules against radiologists' ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from softcal import terminal
from softcal._display import printable
from softcal.cli.options import asks

if TYPE_CHECKING:
    from softcal._validation.arrays import Column


def demo(
    output: Annotated[Path, asks("Folder to write the report to.", "DIR", "-o", "--output")] = Path(
        "softcal-demo"
    ),
) -> None:
    """Score two models of lung nodules against radiologists.

    Example: softcal demo --output nodules
    """
    from softcal.cards.demo import DemoCard
    from softcal.datasets import lidc_malignancy

    nodules = lidc_malignancy()
    terminal.show(DemoCard.of(nodules))
    path = output / "report.html"
    try:
        write_nodule_report(path, nodules)
        where = f"The full report is in {printable(str(path))}: open it in a browser."
    except ModuleNotFoundError as error:
        where = f"The HTML report was not written: {error}"
    terminal.console().print(
        Text(
            f"{where}\n\nWith your own data:\n  softcal score FILE --label COL --pred COL\n"
            "  softcal report FILE --label COL --pred COL -o report.html"
        )
    )


def write_nodule_report(path: Path, nodules: dict[str, Column]) -> None:
    """Write the report on both models, with segments by the number of radiologists."""
    from softcal.cards.demo import MODELS
    from softcal.report import write_report

    readers = nodules["n_readers"]
    write_report(
        path, nodules["soft_malignant"],
        {name: nodules[column] for column, name in MODELS.items()}, n_votes=readers,
        by={"number of radiologists": readers},
        title="Two models of lung nodules, compared with radiologists",
        label="the share of radiologists who rate the nodule malignant",
    )  # fmt: skip
