"""Compute the sums of a plan on its engine, block by block, and add them to a set."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from softcal.scanning import sums
from softcal.scanning.checks import BROKEN, GONE
from softcal.scanning.source import batches, collected
from softcal.scanning.stream import Streamed, numbers
from softcal.table.blocks import BLOCKS, Sparse
from softcal.table.build import MAX_CELLS, Entries, refuse_many_cells
from softcal.table.kernel import SUM_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal.scanning.cells import Cells
    from softcal.scanning.plan import Plan
    from softcal.scanning.source import Frame
    from softcal.table.build import Builder

_ENTRIES_AT_ONCE = 1 << 18


def table_queries(
    plan: Plan, prepared: Callable[[nw.LazyFrame[Any]], nw.LazyFrame[Any]] = lambda rows: rows
) -> Iterator[tuple[int, int, nw.LazyFrame[Any]]]:
    """Yield the number of each model and target, and the query of its tables."""
    flags = {"weighted": plan.weighted, "voted": plan.voted}
    for k, t in product(range(len(plan.models)), range(len(plan.targets))):
        yield k, t, sums.tables(prepared(plan.part(k, t)), plan.by, plan.grid, **flags)


class Queries:
    """The queries of a plan, whose results are added to a set."""

    def __init__(self, plan: Plan, builder: Builder, cells: Cells) -> None:
        self._plan, self._builder, self._cells = plan, builder, cells

    def refuse_many_cells(self) -> None:
        """Raise if segments have too many combinations of values, before anything is computed."""
        plan = self._plan
        if plan.by:
            each = plan.part(0).select(*plan.by).unique().head(MAX_CELLS + 1)
            if collected(each).num_rows > MAX_CELLS:
                refuse_many_cells(plan.data.columns_of_segments)

    def tables(self) -> Streamed | None:
        """Add the tables of all models and targets; None if a value breaks a rule."""
        counted = Streamed(0, 0)
        for k, t, query in table_queries(self._plan):
            found = self._added_tables(collected(query), k, t, first=k == t == 0)
            if found is None:
                return None
            counted = found if k == t == 0 else counted
        return counted

    def _added_tables(self, table: Any, k: int, t: int, *, first: bool) -> Streamed | None:
        place = numbers(table["bin"]).astype(np.int64)
        rows = numbers(table["rows"])
        if (place == BROKEN).any():
            return None
        dropped = int(rows[place == GONE].sum())
        total = int(rows.sum())
        here = place >= 0
        flags = {"weighted": self._plan.weighted, "voted": self._plan.voted}
        values = np.zeros((len(SUM_NAMES), table.num_rows))
        for j, name in enumerate(SUM_NAMES):
            own = sums.source_of(name, **flags)
            if own is not None:
                values[j] = numbers(table[own])
        here &= values[SUM_NAMES.index("count")] > 0
        self._add(
            "tables", (k, t), table, [place], values, here, rows=total - dropped if first else 0
        )
        return Streamed(total, dropped)

    def _add(
        self, block: str, key: tuple[int, ...], table: Any, places: list[Any], values: Any,
        here: Any, *, rows: int = 0, owners: Any = None,
    ) -> None:  # fmt: skip
        """Add the rows of a result to a block of the set."""
        plan = self._plan
        names: Any = [()]
        cell = np.zeros(table.num_rows, dtype=np.int64)
        if plan.by and table.num_rows:
            own = table if isinstance(here, slice) else table.filter(here)  # dropped days are null
            weight = numbers(own["rows"]) if "rows" in own.column_names else None
            coded = self._cells.of_batch([own[name] for name in plan.by], weight)
            cell[here], names = coded.numbers, coded.names
        above = [cell] if owners is None else [cell, owners.numbers]
        keys = np.array([*above, *places], dtype=np.int64)[:, here]
        found = Sparse.of(keys, values[:, here]).under(*key)
        who = () if owners is None else owners.names
        if found.keys.shape[1] or rows:
            names, found = _present(names, found, len(key))
            self._builder.add(Entries(rows, names, {block: found}, who))

    def _values(self, table: Any, block: str) -> Any:
        return np.array([numbers(table[name]) for name in BLOCKS[block].sums], dtype=np.float64)

    def misses_groups(self) -> bool:
        """Return whether a row has no group, which the kernel does not see."""
        if self._plan.models[0].roles.plain is None:
            return False
        rows = self._plan.models[0].roles.rows.select("group")
        return bool(collected(rows.filter(nw.col("group").is_null()).head(1)).num_rows)

    def groups(self) -> None:
        """Add the sums of groups."""
        plan = self._plan
        for k in range(len(plan.models)):
            for t in range(len(plan.targets)):
                rows = _counting(plan.part(k, t))
                query = sums.groups(rows, plan.by, plan.grid, weighted=plan.weighted)
                self._owned("group_sums", (k, t), query, "group")

    def _owned(self, block: str, key: tuple[int, ...], query: Frame, owner: str) -> None:
        """Add the sums of owners, a bounded number of entries at a time."""
        axes = BLOCKS[block].axes
        for table in batches(query, _ENTRIES_AT_ONCE):
            if not table.num_rows:
                continue
            own = self._cells.groups(table[owner]) if owner == "group" else self._raters(table)
            places = [numbers(table["bin"])] if axes[-1] == "bin" else []
            values = self._values(table, block)
            here = (
                values[BLOCKS[block].sums.index("weight")] > 0
                if "weight" in BLOCKS[block].sums
                else slice(None)
            )
            self._add(block, key, table, places, values, here, owners=own)

    def _raters(self, table: Any) -> Any:
        from softcal.scanning.cells import coded

        return coded(table["rater"], str(self._plan.rater))

    def pairs(self) -> None:
        """Add the joint sums of each pair of models."""
        plan, grid = self._plan, self._plan.pair_grid
        assert grid is not None  # noqa: S101 - there are pairs
        for one, two in combinations(range(len(plan.models)), 2):
            key, rows = (one, two, 0), plan.pair(one, two)
            terms = sums.pair_terms(rows, weighted=plan.weighted)
            if plan.data.groups is not None:
                table = collected(sums.losses(terms, plan.by))
                self._owned("group_losses", key, sums.group_losses(terms, plan.by), "group")
            else:
                table = collected(sums.pairs(terms, plan.by, grid, weighted=plan.weighted))
                values = self._values(table, "cross")
                places = [numbers(table["bin_a"]), numbers(table["bin_b"])]
                self._add("cross", key, table, places, values, values[0] != 0)
            self._add("losses", key, table, [], self._values(table, "losses"), slice(None))

    def raters(self) -> None:
        """Add the sums of raters, and their joint sums of each pair of models."""
        plan = self._plan
        for k in range(len(plan.models)):
            query = sums.raters(self._votes(_counting(plan.part(k))), plan.by, plan.grid)
            self._owned("rater_sums", (k, 0), query, "rater")
        if plan.pair_grid is None:
            return
        for one, two in combinations(range(len(plan.models)), 2):
            key, rows = (one, two, 0), self._votes(plan.pair(one, two))
            table = collected(sums.vote_products(rows, plan.by, plan.pair_grid))
            places = [numbers(table["bin_a"]), numbers(table["bin_b"])]
            values = self._values(table, "vote_products")
            self._add("vote_products", key, table, places, values, slice(None))
            self._owned("rater_losses", key, sums.rater_losses(rows, plan.by), "rater")

    def _votes(self, rows: Frame) -> Frame:
        """Join single votes v to rows; u is their weight."""
        counted = self._plan.counted
        assert counted is not None  # noqa: S101 - there are raters
        assert counted.single is not None  # noqa: S101
        part = nw.col("n") / nw.col("m")
        u = nw.col("w") * part if self._plan.weighted else part
        found = counted.single.join(rows, on="item", how="inner").with_columns(u.alias("u"))
        return found.filter(nw.col("u") > 0)


def _counting(rows: Frame) -> Frame:
    return rows.filter(nw.col("status") == 0)


def _present(names: Any, found: Sparse, depth: int) -> tuple[Any, Sparse]:
    """Leave out segments without entries."""
    here = np.bincount(found.keys[depth], minlength=len(names)) > 0
    if here.all():
        return names, found
    keys = found.keys.copy()
    keys[depth] = (np.cumsum(here) - 1)[keys[depth]]
    return [names[k] for k in np.flatnonzero(here).tolist()], Sparse(keys, found.values)
