"""`softcal schema`: the JSON Schema of each output and saved file."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from softcal.cli.options import print_json
from softcal.exceptions import InputError


def schema(
    name: Annotated[
        str | None, typer.Argument(help="A command, or a kind of saved file.", metavar="NAME")
    ] = None,
) -> None:
    """Print the JSON Schema of a command's JSON or of a saved file.

    Without NAME, list all schemas.

    Example: softcal schema score
    """
    if name is not None:
        print_json(schema_of(name))
        return
    for each in schema_names():
        found = schema_of(each)
        sys.stdout.write(f"{each:<12} {found['$defs'][each]['title']}\n")


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas."""
    return tuple(sorted((*_cards(), *_files())))


def schema_of(name: str) -> dict[str, Any]:
    """Return one schema (draft 2020-12) with the definitions that it uses."""
    if name not in schema_names():
        message = f"no schema is named {name!r:.40}: choose one of {', '.join(schema_names())}."
        raise InputError(message)
    files = _files()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": f"#/$defs/{name}",
        "$defs": {name: files[name]} if name in files else _of_cards(name),
    }


def _files() -> dict[str, Any]:
    """Return the schemas of saved files."""
    from softcal.calibrators.maps import schema as schema_of_calibrators
    from softcal.table.files import schema as schema_of_sets

    return {"calibrator": schema_of_calibrators(), "tables": schema_of_sets()}


def _of_cards(name: str) -> dict[str, Any]:
    """Return the schema of the results of a command, and those of their parts, from their types."""
    import msgspec

    cards = _cards()[name]
    _, parts = msgspec.json.schema_components(cards, ref_template="#/$defs/{name}")
    for part in parts.values():  # every field is always there, and no other
        del part["title"]
        part |= {"required": list(part["properties"]), "additionalProperties": False}
        for each in part["properties"].values():
            each.pop("default", None)
    whole = {
        "title": f"softcal {name} --format json",
        "anyOf": [{"$ref": f"#/$defs/{card.__name__}"} for card in cards],
    }
    return {name: whole} | parts


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
    from softcal.cards.route import RouteCard
    from softcal.cards.watch import WatchCard

    scores = (cards.ScoreCard, cards.RaterScoreCard, cards.ClassScoreCard, cards.BoundsCard)
    return {
        "apply": (AppliedCard,), "audit": (AuditCard,), "check": (CheckCard,),
        "compare": (cards.ComparisonCard, cards.ClassComparisonCard), "decide": (DecisionCard,),
        "inspect": (InspectionCard,), "merge": scores, "paper": (PaperCard,), "plan": (PlanCard,),
        "recalibrate": (RecalibrationCard,), "route": (RouteCard,),
        "score": scores, "watch": (WatchCard,),
    }  # fmt: skip
