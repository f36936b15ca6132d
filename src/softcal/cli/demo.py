"""`softcal demo`: score two models of lung nodules against radiologists' ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from softcal import terminal
from softcal._display import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from softcal._validation.arrays import Column
    from softcal.table.reliability import Reliability

MODELS = {"prob_rf_all": "random forest", "prob_lr_geometry": "logistic regression"}


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write the report to.", metavar="DIR")
    ] = Path("softcal-demo"),
) -> None:
    """Score two models of lung nodules against radiologists."""
    show(terminal.console(), output)


def show(console: Console, folder: Path) -> None:
    """Print the scores against the radiologists and their majority; write the report."""
    import numpy as np

    from softcal.datasets import lidc_malignancy
    from softcal.metrics.binned import harden
    from softcal.table.reliability import reliability

    nodules = lidc_malignancy()
    share = nodules["soft_malignant"]
    against_majority = {m: reliability(harden(share), nodules[m]) for m in MODELS}
    against_readers = {m: reliability(share, nodules[m]) for m in MODELS}

    readers = nodules["n_readers"]
    split = float(np.mean((share > 0) & (share < 1)))
    console.print(
        f"[bold]{share.size:,} lung nodules[/bold], each rated by {readers.min()} or "
        f"{readers.max()} radiologists. The label is the share who rate it malignant. They "
        f"disagree on {split:.0%} of the nodules, and a yes/no label hides that. The majority "
        f"label is yes if more than half rate it malignant; the {np.mean(share == 0.5):.0%} exact "
        "ties count as no, as in the training of both models.\n"
    )
    terminal.print_titled(
        console, "Calibration error of both models", _scores(against_majority, against_readers)
    )
    usual, soft = against_majority["prob_rf_all"], against_readers["prob_rf_all"]
    terminal.print_titled(console, "The random forest by bin", _bin_by_bin(usual, soft))

    worst = int(np.abs(soft.sums.residual).argmax())
    console.print(
        "Against the majority label, the forest looks calibrated: its ECE is "
        f"{usual.smece:.3f}. Against the radiologists, its error is "
        f"[bold]{soft.smece:.3f}[/bold], {soft.smece / usual.smece:.1f} times as large. Most of "
        f"the error is in the {soft.count[worst]} nodules with the lowest predictions, "
        f"{soft.mean_prob[worst]:.0%} on average. The majority label agrees "
        f"({usual.mean_label[worst]:.0%}), but {soft.mean_label[worst]:.0%} of the radiologists "
        "rate these nodules malignant.\n"
    )
    console.print(Text(_report(folder, nodules)))
    console.print("With your own data:")
    console.print("  softcal score FILE --label COL --pred COL")
    console.print("  softcal report FILE --label COL --pred COL -o report.html")


def write_nodule_report(path: Path, nodules: dict[str, Column]) -> None:
    """Write the report on both models, with segments by the number of radiologists."""
    from softcal.report import write_report

    readers = nodules["n_readers"]
    write_report(
        path,
        nodules["soft_malignant"],
        {name: nodules[column] for column, name in MODELS.items()},
        n_votes=readers,
        by={"number of radiologists": readers},
        title="Two models of lung nodules, compared with radiologists",
        label="the share of radiologists who rate the nodule malignant",
    )


def _report(folder: Path, nodules: dict[str, Column]) -> str:
    """Write the report if its extra is installed, and return where it is."""
    path = folder / "report.html"
    try:
        write_nodule_report(path, nodules)
    except ModuleNotFoundError as error:
        return f"The HTML report was not written: {error}\n"
    return f"The full report is in {printable(str(path))}: open it in a browser.\n"


def _scores(majority: dict[str, Reliability], readers: dict[str, Reliability]) -> Table:
    table = terminal.table(
        "model",
        "against the majority\n(ECE)",
        "against the radiologists\n(SMECE)",
    )
    for column, name in MODELS.items():
        table.add_row(name, f"{majority[column].smece:.4f}", f"{readers[column].smece:.4f}")
    return table


def _bin_by_bin(usual: Reliability, soft: Reliability) -> Table:
    table = terminal.table(
        "nodules", "mean\nprediction", "majority\nlabel", "share of\nradiologists", "gap"
    )
    hard = usual.mean_label.tolist()
    for (_, _, count, p, share, gap), majority in zip(soft.per_bin(), hard, strict=True):
        table.add_row(
            f"{count}", f"{p:.0%}", f"{majority:.0%}", f"{share:.0%}", f"{100 * gap:+.0f} pts"
        )
    return table
