"""Scores by the votes of each kind of rater, and whether the kinds differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from softcal import terminal
from softcal._display import percent, printable
from softcal.cli.display import numbers_of
from softcal.cli.options import chance
from softcal.inference.comparison import holm
from softcal.inference.raters import rater_difference, reliability_by_rater

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from softcal._validation.inputs import FloatArray
    from softcal.bins import Bins
    from softcal.cli.describe import Described
    from softcal.votes import Votes

_HOW_TO_READ = (
    "Each kind is scored by its own votes, on the items it rated, for new items and new raters of "
    "the kind. A difference is the bias by one kind's votes minus the bias by the others'. Its "
    "p-value is how often kinds that do not differ would show differences at least this extreme, "
    "overall or in a bin. Kinds that rated different items may differ because the items do."
)
_HOLM = "Holm's correction is for testing several kinds."


def kinds_card(data: list[str], how: Described, bins: Bins, level: float) -> dict[str, Any]:
    """Score each model by the votes of each kind of rater, as plain numbers ready for JSON."""
    from softcal.cli.tables import described
    from softcal.scanning.ballots import rated
    from softcal.scanning.scan import planned_and

    votes, kinds, predictions = planned_and(described(data, how), rated)
    models = [
        {"pred": name, **_of_model(votes, p, kinds, bins, level)}
        for name, p in zip(how.name or predictions, predictions.values(), strict=True)
    ]
    return {"column": how.by_rater, "level": level, "models": models}


def _of_model(
    votes: Votes, p: FloatArray, of_worker: Sequence[str], bins: Bins, level: float
) -> dict[str, Any]:
    """Return the scores by each kind, and the differences between kinds that can be tested."""
    kinds, raters = [], {}
    for kind, rel in reliability_by_rater(votes, p, by=of_worker, bins=bins).items():
        assert rel.raters is not None  # noqa: S101 - it was built with raters
        raters[kind] = rel.raters.count
        about = {"value": kind, "n": rel.n, "raters": rel.raters.count}
        kinds.append({**about, "votes": int(rel.sums.votes.sum()), **numbers_of(rel, level)})
    differences = []
    for a, b in [tuple(raters)] if len(raters) == 2 else [(kind, None) for kind in raters]:
        if min(raters[a], sum(raters.values()) - raters[a]) < 2:  # too few
            continue
        by = [kind == a for kind in of_worker]
        found = rater_difference(votes, p, by=by, kinds=(True, False), bins=bins, level=level)
        differences.append(
            {"a": a, "b": b, "difference": found.difference, "low": found.low, "high": found.high,
             "pvalue": found.pvalue}
        )  # fmt: skip
    if len(differences) > 1:
        corrected = holm([one["pvalue"] for one in differences])
        for one, pvalue in zip(differences, corrected, strict=True):
            one["pvalue_holm"] = pvalue
    return {"kinds": kinds, "differences": differences}


def show_kinds(console: Console, card: dict[str, Any]) -> None:
    """Print one table of scores and one of differences per model."""
    notes = [_HOW_TO_READ]
    console.print()
    for model in card["models"]:
        title = f"{model['pred']}, by {card['column']} of the raters"
        terminal.print_titled(console, title, _scores(model, card["level"]))
        if model["differences"]:
            terminal.print_table(console, _differences(model, card["level"]))
            notes += [_HOLM] * ("pvalue_holm" in model["differences"][0])
        notes += _cautions(model)
    console.print(" ".join(dict.fromkeys(notes)), style="dim", markup=False)


def _scores(model: dict[str, Any], level: float) -> Table:
    table = terminal.table(
        "", "raters", "rows", "votes", "SMECE", f"{percent(level)}\ninterval", "p-value", "bias",
        "Brier",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.no_wrap = True  # wrap a long name, never a number
    for one in model["kinds"]:
        table.add_row(
            Text(printable(one["value"])), *(f"{one[what]:,}" for what in ("raters", "n", "votes")),
            f"{one['smece']:.4f}", f"{one['low']:.3f} to {one['high']:.3f}", chance(one["pvalue"]),
            f"{one['bias']:+z.3f}", f"{one['brier']:.3f}",
        )  # fmt: skip
    return table


def _differences(model: dict[str, Any], level: float) -> Table:
    several = "pvalue_holm" in model["differences"][0]
    table = terminal.table(
        "", "difference\nin bias", f"{percent(level)}\ninterval", "p-value",
        *(["p-value\n(Holm)"] * several),
    )  # fmt: skip
    for one in model["differences"]:
        others = "all others" if one["b"] is None else one["b"]
        table.add_row(
            Text(printable(f"{one['a']} minus {others}")), f"{one['difference']:+z.3f}",
            f"{one['low']:+z.3f} to {one['high']:+z.3f}", chance(one["pvalue"]),
            *([chance(one["pvalue_holm"])] if several else []),
        )  # fmt: skip
    return table


def _cautions(model: dict[str, Any]) -> list[str]:
    """Return the notes of the kinds' intervals, and why some kinds are not compared."""
    of_note: dict[str, list[str]] = {}
    for one in model["kinds"]:
        of_note.setdefault(one["note"], []).append(printable(one["value"]))
    found = [f"{', '.join(kinds)}: {note}" for note, kinds in of_note.items() if note]
    if len(model["differences"]) < (1 if len(model["kinds"]) == 2 else len(model["kinds"])):
        found.append("A kind with one rater, or with one other rater, is not compared.")
    return found
