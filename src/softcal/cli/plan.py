"""`softcal plan`: how much to collect."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from softcal import terminal
from softcal.cli.options import Format, Level, Output, print_json
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from softcal.planning import Assumptions, DifferencePlan, Plan
    from softcal.table.reliability import Reliability


def plan(
    pilot: Annotated[
        Path | None,
        typer.Option(help="What `softcal score --save` kept of a first sample.", metavar="FILE"),
    ] = None,
    pred: Annotated[
        str | None, typer.Option(help="With a pilot of several models: which.", metavar="COL")
    ] = None,
    smece: Annotated[
        float | None, typer.Option(help="Without a pilot: the SMECE you expect.", metavar="X")
    ] = None,
    label_spread: Annotated[
        float | None,
        typer.Option(help="Without a pilot: SD of the items' true labels in a bin.", metavar="X"),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(help="Without a pilot: number of equal-width bins (10).", metavar="N"),
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Aim: measure SMECE to +- this.", metavar="X")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Aim: the narrowest interval for this.", metavar="X")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(help="Aim: see a difference this large.", metavar="X")
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            help="For a difference: of the residuals, as `softcal compare` prints it.", metavar="R"
        ),
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(help="For a difference: how often to see it (0.8).", metavar="X"),
    ] = None,
    votes: Annotated[
        int | None, typer.Option(help="Votes per item; the best number if absent.", metavar="N")
    ] = None,
    item_cost: Annotated[float, typer.Option(help="Cost of an item.", metavar="X")] = 0.0,
    vote_cost: Annotated[float, typer.Option(help="Cost of a vote.", metavar="X")] = 1.0,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
) -> None:
    """Plan how many items to collect, and how many votes on each."""
    from softcal.planning.plans import plan as plan_width
    from softcal.planning.plans import plan_budget, plan_difference

    aims = (half_width, budget, difference)
    if sum(aim is not None for aim in aims) != 1:
        message = "give one aim: --half-width, --budget or --difference."
        raise InputError(message)
    if difference is None:
        _refuse_without("--difference", {"--correlation": correlation, "--power": power})
    if pilot is None:
        _refuse_without("--pilot", {"--pred": pred})
    a = _assumptions(pilot, pred, smece, label_spread, bins)
    costs = _Costs(level=level, votes=votes, item_cost=item_cost, vote_cost=vote_cost)
    found: Plan | DifferencePlan
    if half_width is not None:
        found = plan_width(a, half_width=half_width, **costs)
    elif budget is not None:
        found = plan_budget(a, budget=budget, **costs)
    elif difference is not None and correlation is not None:
        often = 0.8 if power is None else power
        found = plan_difference(
            a, difference=difference, correlation=correlation, power=often, **costs
        )
    else:
        message = "--difference needs --correlation: `softcal compare` on a first sample prints it."
        raise InputError(message)
    if format_ is Format.JSON:
        print_json({**asdict(found), "assumed_smece": a.smece})
    else:
        terminal.console().print(plan_text(found, a.smece, of_pilot=pilot is not None))


def _refuse_without(needed: str, options: dict[str, object]) -> None:
    """Refuse options that would change nothing without another one."""
    for name, value in options.items():
        if value is not None:
            message = f"{name} goes with {needed} only: leave it out, or give {needed}."
            raise InputError(message)


class _Costs(TypedDict):
    """What all aims of a plan have in common."""

    level: float
    votes: int | None
    item_cost: float
    vote_cost: float


def _assumptions(
    pilot: Path | None,
    pred: str | None,
    smece: float | None,
    label_spread: float | None,
    bins: int | None,
) -> Assumptions:
    """Read a pilot or take what was stated, whichever was given."""
    from softcal.planning import Assumptions

    if pilot is not None:
        if not smece is label_spread is bins is None:
            message = "give --pilot, or --smece, --label-spread and --bins, not both."
            raise InputError(message)
        return Assumptions.from_pilot(_read_table(pilot, pred))
    if smece is None or label_spread is None:
        message = "say what to expect: --pilot FILE, or --smece X and --label-spread X."
        raise InputError(message)
    return Assumptions.stated(
        smece=smece, label_spread=label_spread, bins=10 if bins is None else bins
    )


def _read_table(path: Path, pred: str | None) -> Reliability:
    """Read the table of one model from what was saved."""
    from softcal.cli.saved_scores import read_saved

    models = read_saved(path).models
    name = next(iter(models)) if pred is None and len(models) == 1 else pred
    if name not in models:
        message = (
            f"say with --pred which model of {path.name} to plan for: it has "
            f"{', '.join(map(repr, models))}."
        )
        raise InputError(message)
    return models[name].soft


def plan_text(found: Plan | DifferencePlan, smece: float, *, of_pilot: bool) -> str:
    """Say a plan in plain words."""
    from softcal.planning.plans import Plan

    labels = "labelled as in the pilot" if found.votes == 0 else "with one vote each"
    if found.votes > 1:
        labels = f"with {found.votes:,} votes each, {found.items * found.votes:,} in all"
    collect = f"Collect {found.items:,} items {labels}. Cost: {found.cost:,.10g}."
    level = f"{100 * found.level:.4g} %"
    supposed = f"{smece:.4f} (the pilot's without noise)" if of_pilot else f"{smece:.4f}"
    if isinstance(found, Plan):
        return (
            f"{collect}\nSMECE, supposed to be {supposed}, will be known to about\n"
            f"±{found.half_width:.4f} (half the mean width of its {level} interval)."
        )
    worse = smece + found.difference
    return (
        f"{collect}\nA SMECE of {worse:.4f} will be told from one of {supposed}\n"
        f"in {found.power:.0%} of such samples (the {level} interval of the difference excludes 0)."
    )
