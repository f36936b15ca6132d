"""Rows that are streamed into the kernel: tables without keys, and all rows of many classes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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
from softcal.table.build import entries

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from softcal.scanning.cells import Cells
    from softcal.scanning.plan import ModelRows, Plan
    from softcal.scanning.rows import Roles
    from softcal.table.build import Builder, Entries

BATCH_VALUES = 1 << 20
"""How many numbers a batch has: enough to hide its cost, and few enough for the cache."""

Batch = dict[str, Any]
Found = TypeVar("Found")


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

    def add_up(batch: Batch) -> Entries | None:
        found = {
            (k, t): rows_of_model(batch, plan, model, t)
            for k, model in zip(models, own, strict=True)
            for t in range(len(plan.targets))
        }
        if plan.of_votes is not None and not _fits(found, plan):
            return None
        return entries(found, builder.grid)

    def add(found: Entries) -> None:  # rows of other frames are counted once, with the first model
        builder.add(found if 0 in models else found._replace(rows=0))

    return _streamed(batches_of(own[0].roles, _columns(plan, own)), add_up, add, ahead=8)


def stream_classes(plan: Plan, builder: Builder, cells: Cells) -> Streamed | None:
    """Add up rows of many classes; None if a value breaks a rule."""

    def add_up(batch: Batch) -> ClassEntries | None:
        return _class_sums(batch, plan, builder, cells)

    def add(found: ClassEntries) -> None:
        builder.add(found.entries, found.dense)

    return _streamed(class_batches(plan), add_up, add, ahead=1)


def _streamed(
    every: Iterator[Batch],
    add_up: Callable[[Batch], Found | None],
    add: Callable[[Found], None],
    ahead: int,
) -> Streamed | None:
    """Add up batches in several threads, in order; None if a value breaks a rule."""

    def of_batch(batch: Batch) -> tuple[int, int, Found | None] | None:
        state = _counting(batch)
        if state is None:
            return None
        counting, rows, dropped = state
        found = add_up(counting) if rows > dropped else None
        return None if found is None and rows > dropped else (rows, dropped, found)

    rows = dropped = 0
    for each in _parallel.in_order(of_batch, every, ahead=ahead):
        if each is None:
            return None
        rows, dropped = rows + each[0], dropped + each[1]
        if each[2] is not None:
            add(each[2])
    return Streamed(rows, dropped)


def _columns(plan: Plan, models: Sequence[ModelRows]) -> dict[str, list[str]]:
    """Return the columns of each role of models with one prediction per row."""
    own = {c for m in models for c in (m.p, *m.y, m.m) if c is not None}
    return {name: [name] for name in [*sorted(own), *["w"] * plan.weighted]}


def rows_in_batches(plan: Plan) -> Iterator[tuple[dict[str, Rows], Coded | None]]:
    """Yield the rows that count of models that share rows, and their groups."""
    for batch in _batches_that_count(plan):
        yield {m.name: rows_of_model(batch, plan, m) for m in plan.models}, _groups(batch, plan)


def _batches_that_count(plan: Plan) -> Iterator[Batch]:
    """Yield the rows that count of models that share rows, with their groups."""
    roles = _in_order(plan)
    if plan.classes is not None:
        every = class_batches(plan)
    else:
        others = ["group"] * (plan.data.groups is not None)
        every = batches_of(roles._replace(plain=None), _columns(plan, plan.models), others)
    for batch in every:
        state = _counting(batch)
        if state is None:  # logits may be infinite, where their probabilities are valid
            every.close()  # because a connection has one open result at a time
            refuse(roles.source, roles.uses, roles.checks, drop=plan.data.drop_missing)
        if state[1] > state[2]:
            yield state[0]


def _groups(batch: Batch, plan: Plan) -> Coded | None:
    return coded_groups(batch["group"], str(plan.data.groups)) if "group" in batch else None


def _in_order(plan: Plan) -> Roles:
    """Return rows in an order that does not depend on how an engine joined them to votes."""
    roles = plan.models[0].roles
    return roles if plan.joined is None else roles._replace(rows=roles.rows.sort("item"))


class AllRows(NamedTuple):
    """All rows of one model, their groups, and the columns of predictions."""

    rows: Rows | ClassRows
    groups: Any
    columns: tuple[str, ...]


def all_rows(plan: Plan) -> AllRows:
    """Return all rows of the first model of a plan, whose values are valid."""
    parts = list(_batches_that_count(plan))
    whole = {name: _joined([each[name] for each in parts]) for name in parts[0]}
    found, groups = _groups(whole, plan), None
    if found is not None:
        groups = np.array([str(name) for name in found.names], dtype=object)[found.numbers]
    if plan.classes is None:
        model = plan.models[0]
        return AllRows(rows_of_model(whole, plan, model), groups, (model.name,))
    models = class_rows(whole, plan)
    assert models is not None  # noqa: S101 - the values are valid
    return AllRows(models[0], groups, plan.classes.models[0])


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


def batches_of(
    roles: Roles, columns: Mapping[str, Sequence[str]], others: Sequence[str] = ()
) -> Generator[Batch, None, None]:
    """Yield batches of the numbers of each role, a matrix if it has several columns, and of others.

    They are the columns of the source itself, if these need no work.
    """
    names = [name for each in columns.values() for name in each]
    rows = max(BATCH_VALUES // len(names), 1)
    if roles.plain is not None and not others:
        plain = [roles.plain[role] for role in columns]
        direct = plain_batches(roles.source, [name for each in plain for name in each], rows)
        if direct is not None:
            for batch in direct:
                own = iter(batch.columns)
                yield {
                    role: _matrix(list(islice(own, len(each))), len(made))
                    for (role, made), each in zip(columns.items(), plain, strict=True)
                }
            return
    names += [*others, "status"]
    for batch in batches(roles.rows.select(names), rows):
        if batch.num_rows:
            found = dict(zip(names, batch.columns, strict=True))
            yield {
                **{
                    role: _matrix([found[c] for c in own], len(own))
                    for role, own in columns.items()
                },
                **{name: found[name] for name in others},
                "status": numbers(found["status"]),
            }


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


def class_batches(plan: Plan) -> Generator[Batch, None, None]:
    """Yield batches with the matrices p0, p1, ..., and y0, or with the names of classes, y0_0."""
    assert plan.classes is not None  # noqa: S101 - there are many classes
    first, size = plan.models[0], range(len(plan.classes.names))
    columns = {m.p: [f"{m.p}_{c}" for c in size] for m in plan.models}
    others = [*plan.by, *["group"] * (plan.data.groups is not None)]
    if plan.classes.named:
        others += first.y
    else:
        columns["y0"] = list(first.y)
    single = [*([first.m] if first.m else []), *["w"] * plan.weighted]
    return batches_of(_in_order(plan), columns | {name: [name] for name in single}, others)


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
    label = batch.get("y0")
    if label is None:
        coded = batch["y0_0"].dictionary_encode(null_encoding="encode")
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        label = one_hot(coded.dictionary.to_pylist(), np.from_dlpack(coded.indices), found.names)
    if label is None:
        return None
    votes = batch.get("m0")
    if votes is not None and plan.models[0].roles.plain is not None and not votes_fit(label, votes):
        return None
    return [
        ClassRows(
            label, batch[f"p{k}"], batch.get("w"), votes, found.names,
            Names(plan.label, model.name, plan.data.sample_weight or "", plan.of_votes or ""),
        )
        for k, model in enumerate(plan.models)
    ]  # fmt: skip
