"""`softcal demo`: what softcal is for."""

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
        Path, typer.Option("-o", "--output", help="Folder for the report.", metavar="DIR")
    ] = Path("softcal-demo"),
) -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    show(terminal.console(), output)


def show(console: Console, folder: Path) -> None:
    """Score two models of lung nodules against the radiologists, and against their majority.

    The report on the same goes into the folder.
    """
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
        f"[bold]{share.size:,} lung nodules[/bold], each judged by {readers.min()} or "
        f"{readers.max()} radiologists. The label is the share of them who think it malignant. "
        f"On {split:.0%} of the nodules they disagree, so a yes/no label would hide what they "
        f"know. Here 'majority' is more than half of them; the {np.mean(share == 0.5):.0%} exact "
        "ties count as no, as they did when the two models were trained.\n"
    )
    terminal.print_titled(
        console, "How far off are the predictions?", _scores(against_majority, against_readers)
    )
    usual, soft = against_majority["prob_rf_all"], against_readers["prob_rf_all"]
    terminal.print_titled(console, "The random forest, bin by bin", _bin_by_bin(usual, soft))

    worst = int(np.abs(soft.sums.residual).argmax())
    console.print(
        f"Against the majority label the forest looks calibrated: {usual.smece:.3f}. Against the "
        f"radiologists it is not: [bold]{soft.smece:.3f}[/bold], {soft.smece / usual.smece:.1f} "
        f"times as far off. Most of it comes from the {soft.count[worst]} nodules it gives "
        f"{soft.mean_prob[worst]:.0%} on average: the majority label agrees "
        f"({usual.mean_label[worst]:.0%}), but on average {soft.mean_label[worst]:.0%} of the "
        "radiologists call these nodules malignant.\n"
    )
    console.print(Text(_report(folder, nodules)))
    console.print("Your own data:  softcal score  FILE --label COL --pred COL")
    console.print("                softcal report FILE --label COL --pred COL -o report.html")


def write_nodule_report(path: Path, nodules: dict[str, Column]) -> None:
    """Write the report on both models, by the number of radiologists."""
    from softcal.report import write_report

    readers = nodules["n_readers"]
    write_report(
        path,
        nodules["soft_malignant"],
        {name: nodules[column] for column, name in MODELS.items()},
        n_votes=readers,
        by=[f"{count} radiologists" for count in readers],
        title="Two models of lung nodules, against their radiologists",
        label="the share of radiologists who call the nodule malignant",
    )


def _report(folder: Path, nodules: dict[str, Column]) -> str:
    """Write the report where its extra is installed, and say where it is."""
    path = folder / "report.html"
    try:
        write_nodule_report(path, nodules)
    except ModuleNotFoundError as error:
        return f"A report to click through needs {error.name}: pip install 'softcal[report]'\n"
    return f"The whole story, to click through: open {printable(str(path))} in a browser.\n"


def _scores(majority: dict[str, Reliability], readers: dict[str, Reliability]) -> Table:
    table = terminal.table(
        "model",
        "from the majority label\n(ECE, the usual number)",
        "from the radiologists\n(SMECE)",
    )
    for column, name in MODELS.items():
        table.add_row(name, f"{majority[column].smece:.4f}", f"{readers[column].smece:.4f}")
    return table


def _bin_by_bin(usual: Reliability, soft: Reliability) -> Table:
    table = terminal.table("nodules", "forest says", "majority label", "radiologists say", "gap")
    hard = usual.mean_label.tolist()
    for (_, _, count, says, share, gap), majority in zip(soft.per_bin(), hard, strict=True):
        table.add_row(
            f"{count}", f"{says:.0%}", f"{majority:.0%}", f"{share:.0%}", f"{100 * gap:+.0f} pts"
        )
    return table
