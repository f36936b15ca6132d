"""Rows that are streamed into the kernel: tables without keys, and all rows of many classes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from softcal import _parallel
from softcal._validation.inputs import Coded, Names, Rows, votes_fit
from softcal._validation.multiclass import ClassRows
from softcal.exceptions import InputError
from softcal.scanning.cells import coded_groups
from softcal.scanning.checks import BROKEN, GONE, refuse
from softcal.scanning.class_sums import ClassEntries, class_entries, one_hot
from softcal.scanning.source import Here, Table, batches
from softcal.table.build import DenseSums, entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from softcal.scanning.cells import Cells
    from softcal.scanning.plan import ModelRows, Plan
    from softcal.scanning.source import Frame
    from softcal.table.build import Builder

BATCH_VALUES = 1 << 20
"""How many numbers a batch has: enough to hide its cost, and few enough for the cache."""

Batch = dict[str, Any]


class Streamed(NamedTuple):
    """How many rows were read, and how many of them were dropped."""

    rows: int
    dropped: int


def numbers(column: Any) -> Any:
    """Return an Arrow column as a NumPy array; a missing value becomes NaN."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    floating = pa.types.is_floating(whole.type)
    if not floating and (whole.null_count or not pa.types.is_integer(whole.type)):
        whole = whole.cast(pa.float64())
    if whole.null_count:
        return whole.to_numpy(zero_copy_only=False)
    return np.from_dlpack(whole)  # `to_numpy` would import pandas, which takes half a second


def rows_of_model(batch: Batch, plan: Plan, model: ModelRows, target: int = 0) -> Rows:
    """Return the rows of a model in a batch."""
    return Rows(
        batch[model.y[target]],
        batch[model.p],
        batch.get("w"),
        None if model.m is None else batch[model.m],
        Names(plan.label, model.name, plan.data.sample_weight or "", plan.of_votes or ""),
    )


def stream_tables(plan: Plan, builder: Builder, models: Sequence[int]) -> Streamed | None:
    """Add up tables without keys, of models that share rows; None if a value breaks a rule."""
    own = [plan.models[k] for k in models]
    columns = sorted({own[0].p, *(m.p for m in own), *(y for m in own for y in m.y)})
    columns += sorted({m.m for m in own if m.m is not None}) + ["w"] * plan.weighted
    targets = range(len(plan.targets))

    def add_up(batch: Batch) -> Any:
        state = _counting(batch)
        if state is None:
            return None
        batch, rows, dropped = state
        found = {
            (k, t): rows_of_model(batch, plan, model, t)
            for k, model in zip(models, own, strict=True)
            for t in targets
        }
        if plan.of_votes is not None and not _fits(found, plan):
            return None
        return rows, dropped, entries(found, builder.grid) if rows > dropped else ()

    rows = dropped = 0
    for found in _parallel.in_order(add_up, plain_or_made(own[0], columns), ahead=8):
        if found is None or found[2] is None:
            return None
        rows, dropped = rows + found[0], dropped + found[1]
        if found[2]:  # rows of other frames are counted once, with the first model
            builder.add(found[2] if 0 in models else found[2]._replace(rows=0))
    return Streamed(rows, dropped)


def rows_in_batches(plan: Plan) -> Iterator[tuple[dict[str, Rows], Coded | None]]:
    """Yield the rows that count of models that share rows, and their groups."""
    columns = sorted({c for m in plan.models for c in (m.p, m.y[0], m.m) if c is not None})
    columns += ["w"] * plan.weighted + ["group"] * (plan.data.groups is not None)
    rows = _sorted(plan).select(*columns, "status")
    for batch in batches(rows, max(BATCH_VALUES // len(columns), 1)):
        if not batch.num_rows:
            continue
        own = dict(zip([*columns, "status"], batch.columns, strict=True))
        made = {name: each if name == "group" else numbers(each) for name, each in own.items()}
        state = _counting(made)
        if state is None:
            break
        if state[1] == state[2]:
            continue
        here = state[0]
        groups = coded_groups(here.pop("group"), str(plan.data.groups)) if "group" in here else None
        yield {m.name: rows_of_model(here, plan, m) for m in plan.models}, groups
    else:
        return
    roles = plan.models[0].roles  # logits may be infinite, where their probabilities are valid
    refuse(roles.source, roles.uses, roles.checks, drop=plan.data.drop_missing)


def _sorted(plan: Plan) -> Frame:
    """Return rows in an order that does not depend on how an engine joined them to votes."""
    rows = plan.models[0].roles.rows
    return rows if plan.counted is None else rows.sort("item")


class AllRows(NamedTuple):
    """All rows of one model, its columns of predictions, and how many rows were dropped."""

    rows: Rows | ClassRows
    groups: Any
    columns: tuple[str, ...]
    dropped: int


def all_rows(plan: Plan) -> AllRows:
    """Return all rows of the first model of a plan, whose values are valid."""
    found = plan.classes
    every: list[Batch] = []
    dropped = plan.unmatched
    if found is not None:
        for batch in class_batches(plan):
            state = _counting(batch)
            assert state is not None  # noqa: S101 - the values are valid
            every.append(state[0])
            dropped += state[2]
        whole = {name: _joined([each[name] for each in every]) for name in every[0]}
        models = class_rows(whole, plan)
        assert models is not None  # noqa: S101
        return AllRows(models[0], whole.get("group"), found.models[0], dropped)
    parts = list(rows_in_batches(plan))
    own = [next(iter(rows.values())) for rows, _ in parts]
    columns = [
        _joined([each[k] for each in own]) if own[0][k] is not None else None for k in range(4)
    ]
    groups = None
    if parts[0][1] is not None:
        groups = np.concatenate(
            [np.array([str(name) for name in coded.names], dtype=object)[coded.numbers]
             for _, coded in parts if coded is not None]
        )  # fmt: skip
    model = plan.models[0]
    rows = Rows._make([*columns, own[0].names])
    return AllRows(rows, groups, (model.name,), dropped)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return pa.chunked_array(parts).combine_chunks()


def _fits(found: Mapping[Any, Rows], plan: Plan) -> bool:
    """Return whether labels are whole numbers of the stated votes."""
    stated = plan.models[0].roles.plain is not None  # else the status of a row says it
    return not stated or all(votes_fit(each.y_true, each.n_votes) for each in found.values()
                             if each.n_votes is not None)  # fmt: skip


def _counting(batch: Batch) -> tuple[Batch, int, int] | None:
    """Return the rows that count, how many rows there are, and how many are dropped."""
    state = batch.pop("status", None)
    size = len(next(iter(batch.values())))
    if state is None:
        return batch, size, 0
    if (state == BROKEN).any():
        return None
    gone = state == GONE
    dropped = int(np.count_nonzero(gone))
    if dropped:
        kept = pa.array(~gone)
        batch = {
            name: each[~gone] if isinstance(each, np.ndarray) else each.filter(kept)
            for name, each in batch.items()
        }
    return batch, size, dropped


def plain_or_made(model: ModelRows, columns: Sequence[str]) -> Iterator[Batch]:
    """Yield batches of columns: those of the source itself if they need no work, or made ones."""
    roles = model.roles
    rows = max(BATCH_VALUES // max(len(columns), 1), 1)
    if roles.plain is not None:
        plain = [roles.plain[name] for name in columns]
        direct = plain_batches(roles.source, plain, rows)
        if direct is not None:
            for batch in direct:
                yield dict(zip(columns, map(numbers, batch.columns), strict=True))
            return
    names = [*columns, "status"]
    for batch in batches(roles.rows.select(names), rows):
        if batch.num_rows:
            yield dict(zip(names, map(numbers, batch.columns), strict=True))


def plain_batches(source: Any, columns: Sequence[str], rows: int) -> Iterator[Any] | None:
    """Return batches of a source's own columns of numbers; None if its engine must read them."""
    if not isinstance(source, Here) or any(
        source.kind(name) not in ("number", "list") for name in columns
    ):
        return None
    if isinstance(source, Table):
        table = source.columns(columns)
        return (batch for batch in table.to_batches(rows) if batch.num_rows)
    reader: Callable[..., Iterator[Any]] | None = source.plain
    return None if reader is None else reader(columns, rows)


def stream_classes(plan: Plan, builder: Builder, cells: Cells) -> Streamed | None:
    """Add up rows of many classes; None if a value breaks a rule."""
    dense = DenseSums()

    def add_up(batch: Batch) -> Any:
        state = _counting(batch)
        if state is None:
            return None
        batch, rows, dropped = state
        if rows == dropped:
            return rows, dropped, ()
        return rows, dropped, _class_sums(batch, plan, builder, cells)

    rows = dropped = 0
    for each in _parallel.in_order(add_up, class_batches(plan), ahead=1):
        if each is None or each[2] is None:
            return None
        rows, dropped = rows + each[0], dropped + each[1]
        if each[2]:
            builder.add(each[2].entries)
            dense.add(each[2].dense)
    builder.add_all(dense.entries())
    return Streamed(rows, dropped)


def _class_sums(batch: Batch, plan: Plan, builder: Builder, cells: Cells) -> ClassEntries | None:
    """Add up a batch; None if a value breaks a rule, which the census finds again."""
    models = class_rows(batch, plan)
    if models is None:
        return None
    at = cells.of_batch([batch[name] for name in plan.by]) if plan.by else None
    groups = cells.groups(batch["group"]) if "group" in batch else None
    try:
        return class_entries(models, builder, at, groups, ordered=plan.classes.ordered)  # type: ignore[union-attr]
    except InputError:
        return None


def class_batches(plan: Plan) -> Iterator[Batch]:
    """Yield batches with the matrices p0, p1, ..., and y or label."""
    roles, found = plan.models[0].roles, plan.classes
    assert found is not None  # noqa: S101 - there are many classes
    size, models = len(found.names), range(len(plan.models))
    others = [*plan.by, *(["group"] if plan.data.groups is not None else [])]
    rows = max(BATCH_VALUES // (size * (len(models) + 1)), 1)
    plain: Any = None if others else roles.plain
    direct = None
    if plain is not None:
        direct = plain_batches(roles.source, [c for spec in plain.values() for c in spec], rows)
    if direct is not None:
        for batch in direct:
            columns = iter(batch.columns)
            yield {
                role: _matrix(list(islice(columns, len(spec))), size if role[0] in "py" else 1)
                for role, spec in plain.items()
            }
        return
    names = [f"p{k}_{c}" for k in models for c in range(size)]
    names += ["label"] if found.named else [f"y_{c}" for c in range(size)]
    names += ["m"] * (found.votes is not None) + ["w"] * plan.weighted + others + ["status"]
    for batch in batches(_sorted(plan).select(names), rows):
        own = dict(zip(names, batch.columns, strict=True))
        made = {f"p{k}": _matrix([own[f"p{k}_{c}"] for c in range(size)], size) for k in models}
        if not found.named:
            made["y"] = _matrix([own[f"y_{c}"] for c in range(size)], size)
        made |= {name: numbers(own[name]) for name in ("m", "w", "status") if name in own}
        made |= {name: own[name] for name in ("label", *others) if name in own}
        if batch.num_rows:
            yield made


def _matrix(columns: Sequence[Any], size: int) -> Any:
    """Return one column per class, each contiguous, from columns or a column of lists."""
    if len(columns) > 1:
        return np.stack([numbers(each) for each in columns]).T
    (column,) = columns
    if size == 1:
        return numbers(column)
    from pyarrow import compute

    fits = compute.equal(compute.list_value_length(column), size)
    if column.null_count or not compute.all(fits).as_py():
        return np.full((len(column), size), np.nan)  # refused by the census
    return numbers(column.flatten()).reshape(-1, size)


def class_rows(batch: Batch, plan: Plan) -> list[ClassRows] | None:
    """Return the rows of each model; None if a label is unknown or votes do not fit."""
    found = plan.classes
    assert found is not None  # noqa: S101 - there are many classes
    label = batch.get("y")
    if label is None:
        coded = batch["label"].dictionary_encode(null_encoding="encode")
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        label = one_hot(coded.dictionary.to_pylist(), np.from_dlpack(coded.indices), found.names)
    if label is None:
        return None
    votes = batch.get("m")
    if votes is not None and plan.models[0].roles.plain is not None and not votes_fit(label, votes):
        return None
    return [
        ClassRows(
            label, batch[f"p{k}"], batch.get("w"), votes, found.names,
            Names(plan.label, model.name, plan.data.sample_weight or "", plan.of_votes or ""),
        )
        for k, model in enumerate(plan.models)
    ]  # fmt: skip
