"""The commands that a report shows, from the options that a set was made with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal._display import quoted
from softcal.table.tableset import TOP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from softcal.table.tableset import About, TableSet

_NOT_OF_RECALIBRATE = {
    "--pred", "--pred-columns", "--by", "--ordered", "--raters", "--by-rater", "--name",
}  # fmt: skip
_NOT_OF_ROUTE = {"--pred", "--pred-columns", "--by", "--by-rater", "--name"}
_IN_ROWS = {"--model", "--model-per-file"}
_OF_APPLY = {"--sep", "--decimal", "--encoding", "--input-format"}
_NOT_OF_APPLY = {"--pred-scale", "--drop-missing", "--sheet", "--pred-columns"}


class Commands(NamedTuple):
    """The commands that recalibrate each model, those that apply the result, and that of rules.

    They may be empty.
    """

    recalibrate: tuple[str, ...] = ()
    apply: tuple[str, ...] = ()
    route: str = ""


def commands_of(tables: TableSet) -> Commands:
    """Return the commands for the rows of a set, or none if the set does not say enough.

    Sets that the command line made store their options. Others store columns. From these, only
    the commands for a column of labels follow, on a file named `ROWS`.
    """
    given = _given(tables.about) or _columns(tables)
    models = _models(given, tables.models)
    if not given or models is None or _IN_ROWS & {*given}:
        return Commands()
    data = quoted(tables.about.source or "ROWS")
    pred = "--pred-columns" if tables.targets[0] == TOP else "--pred"
    label = _words({k: v for k, v in given.items() if k not in _NOT_OF_RECALIBRATE})
    reading = _words({k: v for k, v in given.items() if k in _OF_APPLY})
    numbers = [f"_{k}" for k in range(1, len(models) + 1)] if len(models) > 1 else [""]
    both = [
        (
            [*label, pred, quoted(model), "-o", f"calibrator{k}.json"],
            [data, *reading, "--pred", quoted(model), "-o", f"recalibrated{k}.csv"],
        )
        for model, k in zip(models, numbers, strict=True)
    ]
    raters = {"--raters": True} if "--by-rater" in given else {}
    kept = {k: v for k, v in given.items() if k not in _NOT_OF_ROUTE} | raters | {pred: models}
    applicable = tables.about.options is not None and not _NOT_OF_APPLY & {*given}
    return Commands(
        tuple(f"softcal recalibrate {data} {' '.join(own)}" for own, _ in both),
        tuple(f"softcal apply {own[-1]} {' '.join(rest)}" for own, rest in both)
        if applicable
        else (),
        f"softcal route {data} {' '.join(_words(kept))}",
    )


def _words(given: Mapping[str, Any]) -> list[str]:
    """Return options as words of a shell command."""
    return [
        word
        for option, value in given.items()
        for each in (value if isinstance(value, list) else [value])
        for word in ([option] if each is True else [option, quoted(str(each))])
    ]


def _given(about: About) -> dict[str, Any] | None:
    """Return the options that a set stores; None if there are none, or not as we write them."""
    try:
        given = json.loads(about.options or "null")
    except ValueError:
        return None
    return (
        given
        if isinstance(given, dict) and all(_is_option(*each) for each in given.items())
        else None
    )


def _is_option(name: str, value: Any) -> bool:
    texts: Iterable[Any] = value if isinstance(value, list) else [value]
    return name.startswith("--") and (value is True or all(isinstance(each, str) for each in texts))


def _columns(tables: TableSet) -> dict[str, Any]:
    """Return the options that follow from the columns of a set; none for classes and votes."""
    about = tables.about
    if tables.targets[0] == TOP or about.votes == about.label:
        return {}
    named = {"--label": about.label, "--weight": about.weight, "--group": about.group}
    return {option: column for option, column in named.items() if column is not None}


def _models(given: Mapping[str, Any], names: Sequence[str]) -> list[str] | None:
    """Return the columns of the models; None if they are not known."""
    columns = given.get("--pred-columns") or given.get("--pred") or list(names)
    column_of = dict(zip(given.get("--name") or columns, columns, strict=False))
    return [column_of[name] for name in names] if {*names} <= {*column_of} else None
