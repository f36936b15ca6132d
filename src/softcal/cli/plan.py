"""`softcal plan`: plan how many items and votes to collect."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from softcal._display import option_of
from softcal.cli import options as opt
from softcal.cli.describe import BOUNDS, IN_ROWS, Described, describes
from softcal.cli.tables import load_tables, refuse_bounds
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from softcal.planning.forecast import Assumptions
    from softcal.planning.plans import DifferencePlan, Plan
    from softcal.table.tableset import TableSet

Number = float | None


@describes(without=("by", "group", "weight", "by_rater", "ordered", *BOUNDS, *IN_ROWS))
def plan(
    data: opt.Pilot = None,
    smece: Annotated[Number, opt.asks("Without a pilot: the expected SMECE.", "X")] = None,
    label_spread: Annotated[
        Number, opt.asks("Without a pilot: standard deviation of true labels in a bin.", "X")
    ] = None,
    bins: opt.MaybeBins = None,
    half_width: Annotated[Number, opt.asks("Goal: an interval of this half-width.", "X")] = None,
    budget: Annotated[Number, opt.asks("Goal: the best interval for this cost.", "X")] = None,
    difference: Annotated[Number, opt.asks("Goal: detect this difference.", "X")] = None,
    correlation: Annotated[
        Number,
        opt.asks("For a difference: correlation of residuals, from `softcal compare`.", "R"),
    ] = None,
    power: Annotated[
        Number, opt.asks("For a difference: power of the test. Default: 0.8.", "X", rare=True)
    ] = None,
    votes_per_item: Annotated[
        int | None, opt.asks("Votes per item; default the best number.", "N")
    ] = None,
    n_raters: Annotated[
        int | None,
        opt.asks("With --half-width: for an interval that holds for new raters.", "N", rare=True),
    ] = None,
    rater_spread: Annotated[
        Number,
        opt.asks(
            "For --n-raters without a pilot: standard deviation of the raters' mean votes.", "X",
            rare=True,
        ),
    ] = None,
    item_cost: Annotated[float, opt.asks("Cost per item.", "X", rare=True)] = 0.0,
    vote_cost: Annotated[float, opt.asks("Cost per vote.", "X", rare=True)] = 1.0,
    level: opt.Level = opt.DEFAULT_LEVEL,
    format_: opt.Output = opt.Format.TABLE,
    *,
    how: Described,
) -> None:  # fmt: skip
    """Plan how many items to collect, and how many votes per item.

    Example: softcal plan pilot.csv --label y --pred p --half-width 0.02
    """
    from softcal.cards.plan import PlanCard
    from softcal.planning.plans import plan as plan_width
    from softcal.planning.plans import plan_budget, plan_difference

    if sum(goal is not None for goal in (half_width, budget, difference)) != 1:
        message = "pass one goal: --half-width, --budget, or --difference."
        raise InputError(message)
    _refuse_without("--difference", difference, {"--correlation": correlation, "--power": power})
    _refuse_without("--half-width", half_width, {"--n-raters": n_raters})
    of_raters = {"--rater-spread": rater_spread, "--raters": how.raters or None}
    _refuse_without("--n-raters", n_raters, of_raters)
    stated = {"smece": smece, "label_spread": label_spread, "rater_spread": rater_spread}
    tables = _pilot(data, how, stated, bins) if data else None
    if tables is None:
        _refuse_without("DATA", None, how.given)
    with _naming_options():
        a = _assumed(tables, stated, bins)
        if n_raters is not None and (rater_spread if tables is None else a.rater_cov) is None:
            message = (
                "--n-raters needs to know how raters differ: pass --raters with a pilot of votes "
                "whose raters recur, or --rater-spread X without a pilot."
            )
            raise InputError(message)
        costs: dict[str, Any] = {
            "level": level, "votes": votes_per_item, "item_cost": item_cost, "vote_cost": vote_cost,
        }  # fmt: skip
        found: Plan | DifferencePlan
        if half_width is not None:
            found = plan_width(a, half_width=half_width, raters=n_raters, **costs)
        elif budget is not None:
            found = plan_budget(a, budget=budget, **costs)
        elif difference is not None:
            missing = "--difference needs --correlation: `softcal compare` prints it for a pilot."
            found = plan_difference(
                a, difference=difference, correlation=opt.given(correlation, missing),
                power=0.8 if power is None else power, **costs,
            )  # fmt: skip
    card = PlanCard.of(
        found, a.smece, raters=n_raters, of_pilot=tables is not None,
        hard_labels=tables is not None and tables.has_hard_labels,
        rows_dropped=None if tables is None else tables.about.rows_dropped,
    )  # fmt: skip
    opt.print_card(card, format_)


@contextmanager
def _naming_options() -> Iterator[None]:
    """Replace the parameter at the start of an error message by its option: `--half-width`."""
    names = {"raters": "n_raters", "votes": "votes_per_item"}
    try:
        yield
    except InputError as error:
        word = re.match(r"(\w+)(?: =|(?= must be ))", str(error))
        if word is None:
            raise
        name = option_of(names.get(word[1], word[1]))
        raise InputError(name + str(error)[word.end() :]) from error


def _refuse_without(needed: str, there: object, options: dict[str, Any]) -> None:
    """Raise if an option is given that has no effect without another one."""
    for name, value in options.items():
        if value is not None and there is None:
            message = f"{name} has no effect without {needed}: leave it out, or pass {needed}."
            if name == "--votes":
                message += " The number of votes per item is --votes-per-item."
            raise InputError(message)


def _pilot(data: list[str], how: Described, stated: dict[str, Any], bins: int | None) -> TableSet:
    """Return the table of one model of a pilot; for many classes, of the predicted class."""
    for field, value in stated.items():
        if value is not None:
            message = f"pass DATA, or {option_of(field)}, not both."
            raise InputError(message)
    tables = load_tables(data, how, bins=bins)
    refuse_bounds(tables, "a plan")
    if len(tables) > 1:
        message = (
            f"{opt.source_name(data)} has several models, {', '.join(map(repr, tables))}: choose "
            "one with --pred."
        )
        raise InputError(message)
    return tables


def _assumed(tables: TableSet | None, stated: dict[str, Any], bins: int | None) -> Assumptions:
    """Return what a plan assumes: what a pilot shows, or what is stated."""
    from softcal.planning.forecast import Assumptions

    if tables is not None:
        return Assumptions.from_pilot(tables[tables.models[0]])
    if stated["smece"] is None or stated["label_spread"] is None:
        message = "pass DATA, or both --smece X and --label-spread X."
        raise InputError(message)
    stated = stated | {"rater_spread": stated["rater_spread"] or 0.0}
    return Assumptions.stated(**stated, bins=10 if bins is None else bins)
