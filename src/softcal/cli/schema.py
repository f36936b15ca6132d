"""`softcal schema`: the JSON Schema of each output and saved file."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softcal.cli.options import print_json
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


def schema(
    name: Annotated[
        str | None, typer.Argument(help="A command, or a kind of saved file.", metavar="NAME")
    ] = None,
) -> None:
    """Print the JSON Schema of a command's JSON or of a saved file.

    Without NAME, list all schemas.
    """
    if name is not None:
        print_json(schema_of(name))
        return
    for each in schema_names():
        sys.stdout.write(f"{each:<12} {_definitions()[each]['title']}\n")


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas."""
    return tuple(name for name, each in _definitions().items() if "title" in each)


def schema_of(name: str) -> dict[str, Any]:
    """Return one schema (draft 2020-12) with the definitions that it uses."""
    if name not in schema_names():
        message = f"no schema is named {name!r:.40}: choose one of {', '.join(schema_names())}."
        raise InputError(message)
    known = _definitions()
    used = {name: known[name]}
    todo = [known[name]]
    while todo:
        for each in _references(todo.pop()):
            if each not in used:
                used[each] = known[each]
                todo.append(known[each])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": f"#/$defs/{name}",
        "$defs": used,
    }


@cache
def _definitions() -> dict[str, Any]:
    """Return the definitions of all schemas. Those with a title are schemas of their own."""
    from softcal.calibrators.maps import schema as schema_of_calibrators
    from softcal.table.files import schema as schema_of_sets

    files = {"calibrator": schema_of_calibrators(), "tables": schema_of_sets()}
    return dict(sorted({**_of_cards(), **files}.items()))


def _of_cards() -> dict[str, Any]:
    """Return the schemas of the results of commands, and of their parts, from their types."""
    import msgspec

    commands = _cards()
    every = tuple(card for cards in commands.values() for card in cards)
    _, parts = msgspec.json.schema_components(every, ref_template="#/$defs/{name}")
    for part in parts.values():  # every field is always there, and no other
        del part["title"]
        part |= {"required": list(part["properties"]), "additionalProperties": False}
        for each in part["properties"].values():
            each.pop("default", None)
    found = {
        name: {"title": f"softcal {name} --format json",
               "anyOf": [{"$ref": f"#/$defs/{card.__name__}"} for card in cards]}
        for name, cards in commands.items()
    }  # fmt: skip
    return found | parts


def _cards() -> dict[str, tuple[type, ...]]:
    """Return the results that each command prints."""
    from softcal import cards
    from softcal.cards.audit import AuditCard
    from softcal.cards.check import CheckCard
    from softcal.cards.decide import DecisionCard
    from softcal.cards.inspect import InspectionCard
    from softcal.cards.paper import PaperCard
    from softcal.cards.plan import PlanCard
    from softcal.cards.recalibrate import AppliedCard, RecalibrationCard
    from softcal.cards.watch import WatchCard

    scores = (cards.ScoreCard, cards.RaterScoreCard, cards.ClassScoreCard, cards.BoundsCard)
    return {
        "apply": (AppliedCard,), "audit": (AuditCard,), "check": (CheckCard,),
        "compare": (cards.ComparisonCard, cards.ClassComparisonCard), "decide": (DecisionCard,),
        "inspect": (InspectionCard,), "merge": scores, "paper": (PaperCard,), "plan": (PlanCard,),
        "recalibrate": (RecalibrationCard,),
        "score": scores, "watch": (WatchCard,),
    }  # fmt: skip


def _references(part: Any) -> Iterator[str]:
    """Yield the names of the definitions that a part of a schema refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].removeprefix("#/$defs/")
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _references(each)
