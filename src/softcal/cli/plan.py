"""`softcal plan`: plan how many items and votes to collect."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

import typer

from softcal.cli.describe import BOUNDS, IN_ROWS, Described, describes
from softcal.cli.options import (
    Format,
    Level,
    Output,
    Pilot,
    print_card,
    source_name,
)
from softcal.cli.tables import load_tables
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from softcal.planning.forecast import Assumptions
    from softcal.planning.plans import DifferencePlan, Plan
    from softcal.table.tableset import TableSet


@describes(without=("by", "group", "weight", "by_rater", "ordered", *BOUNDS, *IN_ROWS))
def plan(
    data: Pilot = None,
    smece: Annotated[
        float | None, typer.Option(help="Without a pilot: the expected SMECE.", metavar="X")
    ] = None,
    label_spread: Annotated[
        float | None,
        typer.Option(
            help="Without a pilot: standard deviation of the true labels in a bin.", metavar="X"
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Number of equal-width bins. Default: 10, or as in a saved pilot.", metavar="N"
        ),
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(help="Goal: an interval of SMECE with this half-width.", metavar="X"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Goal: the narrowest interval for this total cost.", metavar="X"),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(help="Goal: detect this difference between two models.", metavar="X"),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            help="For a difference: correlation of residuals, from `softcal compare`.",
            metavar="R",
        ),
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(
            hidden=True, help="For a difference: power of the test. Default: 0.8.", metavar="X"
        ),
    ] = None,
    votes_per_item: Annotated[
        int | None, typer.Option(help="Votes per item. Default: the best number.", metavar="N")
    ] = None,
    n_raters: Annotated[
        int | None,
        typer.Option(
            hidden=True,
            help="With --half-width: number of raters, for an interval that holds for new raters.",
            metavar="N",
        ),
    ] = None,
    rater_spread: Annotated[
        float | None,
        typer.Option(
            hidden=True,
            help="For --n-raters without a pilot: standard deviation of the raters' mean votes.",
            metavar="X",
        ),
    ] = None,
    item_cost: Annotated[
        float, typer.Option(hidden=True, help="Cost per item.", metavar="X")
    ] = 0.0,
    vote_cost: Annotated[
        float, typer.Option(hidden=True, help="Cost per vote.", metavar="X")
    ] = 1.0,
    level: Level = 0.95,
    format_: Output = Format.TABLE,
    *,
    how: Described,
) -> None:
    """Plan how many items to collect, and how many votes per item.

    Example: softcal plan pilot.csv --label y --pred p --half-width 0.02
    """
    from softcal.cards.plan import PlanCard
    from softcal.planning.plans import plan as plan_width
    from softcal.planning.plans import plan_budget, plan_difference

    goals = (half_width, budget, difference)
    if sum(goal is not None for goal in goals) != 1:
        message = "pass one goal: --half-width, --budget, or --difference."
        raise InputError(message)
    others = {"--correlation": correlation, "--power": power, "--n-raters": n_raters}
    _refuse_other_goals(others, half_width, difference)
    stated = _Stated(smece, label_spread, rater_spread)
    first = _pilot(data, how, stated, bins, n_raters)
    a = first.assumptions
    costs = _Costs(level=level, votes=votes_per_item, item_cost=item_cost, vote_cost=vote_cost)
    found: Plan | DifferencePlan
    with _naming_options():
        if half_width is not None:
            found = plan_width(a, half_width=half_width, raters=n_raters, **costs)
        elif budget is not None:
            found = plan_budget(a, budget=budget, **costs)
        elif difference is not None and correlation is not None:
            often = 0.8 if power is None else power
            found = plan_difference(
                a, difference=difference, correlation=correlation, power=often, **costs
            )
        else:
            message = "--difference needs --correlation: `softcal compare` prints it for a pilot."
            raise InputError(message)
    card = PlanCard.of(
        found, a.smece, raters=n_raters, of_pilot=bool(data), hard_labels=first.hard_labels,
        rows_dropped=first.dropped,
    )  # fmt: skip
    print_card(card, format_)


@contextmanager
def _naming_options() -> Iterator[None]:
    """Replace the parameter at the start of an error message by its option: `--half-width`."""
    try:
        yield
    except InputError as error:
        text = re.sub(r"^(\w+)(?= must be )", _option, str(error))
        raise InputError(re.sub(r"^(\w+) =", _option, text)) from error


def _option(parameter: re.Match[str]) -> str:
    name = {"raters": "n_raters", "votes": "votes_per_item"}.get(parameter[1], parameter[1])
    return f"--{name.replace('_', '-')}"


def _refuse_other_goals(
    given: Mapping[str, object], half_width: float | None, difference: float | None
) -> None:
    """Raise if an option belongs to another goal."""
    for name, value in given.items():
        needed = "--half-width" if name == "--n-raters" else "--difference"
        if (half_width if name == "--n-raters" else difference) is None:
            _refuse_without(needed, {name: value})


def _refuse_without(needed: str, options: Mapping[str, object]) -> None:
    """Raise if an option is given that has no effect without another one."""
    for name, value in options.items():
        if value is not None:
            message = f"{name} has no effect without {needed}: leave it out, or pass {needed}."
            if name == "--votes":
                message += " The number of votes per item is --votes-per-item."
            raise InputError(message)


class _Costs(TypedDict):
    """The options that every plan takes."""

    level: float
    votes: int | None
    item_cost: float
    vote_cost: float


class _First(NamedTuple):
    """What is known before a study, and of a pilot, its labels and how many rows were dropped."""

    assumptions: Assumptions
    hard_labels: bool = False
    dropped: int | None = None


class _Stated(NamedTuple):
    """What is stated instead of a pilot."""

    smece: float | None
    label_spread: float | None
    rater_spread: float | None


def _pilot(
    data: list[str] | None,
    how: Described,
    stated: _Stated,
    bins: int | None,
    raters: int | None,
) -> _First:
    """Return the assumptions from a pilot or from the stated values, whichever was given."""
    if raters is None:
        given = {"--rater-spread": stated.rater_spread, "--raters": how.raters or None}
        _refuse_without("--n-raters", given)
    if data:
        found = _piloted(data, how, stated, bins)
        unknown = found.assumptions.rater_cov is None
    else:
        found, unknown = _stated(how, stated, bins), stated.rater_spread is None
    if raters is not None and unknown:
        message = (
            "--n-raters needs to know how raters differ: pass --raters with a pilot of votes whose "
            "raters recur, or --rater-spread X without a pilot."
        )
        raise InputError(message)
    return found


def _piloted(data: list[str], how: Described, stated: _Stated, bins: int | None) -> _First:
    from softcal.planning.forecast import Assumptions

    if stated.smece is not None or stated.label_spread is not None:
        message = "pass DATA, or --smece and --label-spread, not both."
        raise InputError(message)
    if stated.rater_spread is not None:
        message = "pass DATA, or --rater-spread, not both."
        raise InputError(message)
    tables = _pilot_tables(data, how, bins)
    assumed = Assumptions.from_pilot(tables[tables.models[0]])
    return _First(assumed, tables.has_hard_labels, tables.about.rows_dropped)


def _stated(how: Described, stated: _Stated, bins: int | None) -> _First:
    from softcal.planning.forecast import Assumptions

    _refuse_without("DATA", how.given)
    if stated.smece is None or stated.label_spread is None:
        message = "pass DATA, or both --smece X and --label-spread X."
        raise InputError(message)
    with _naming_options():
        found = Assumptions.stated(
            smece=stated.smece, label_spread=stated.label_spread,
            rater_spread=stated.rater_spread or 0.0, bins=10 if bins is None else bins,
        )  # fmt: skip
    return _First(found)


def _pilot_tables(data: list[str], how: Described, bins: int | None) -> TableSet:
    """Return the table of one model of a pilot; for many classes, of the predicted class."""
    from softcal.table.tableset import BOUNDS

    tables = load_tables(data, how, bins=bins)
    if tables.targets == BOUNDS:
        message = (
            f"a plan needs labels, but those of {source_name(data)} are known only as intervals: "
            "more rows do not narrow the bounds of SMECE, more precise labels do."
        )
        raise InputError(message)
    if len(tables) > 1:
        message = (
            f"{source_name(data)} has several models, {', '.join(map(repr, tables))}: choose one "
            "with --pred."
        )
        raise InputError(message)
    return tables
