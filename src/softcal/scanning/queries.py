"""Compute the sums of a plan on its engine, block by block, and add them to a set."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from softcal._validation.inputs import Coded
from softcal.scanning import sums
from softcal.scanning.checks import BROKEN, GONE
from softcal.scanning.source import Engine, Here, batches, collected, kept
from softcal.scanning.stream import Streamed, numbers
from softcal.table.blocks import BLOCKS, Sparse
from softcal.table.build import MAX_CELLS, Entries, refuse_many_cells
from softcal.table.kernel import SUM_NAMES
from softcal.table.owners import MAX_GROUPS, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from softcal.scanning.cells import Cells
    from softcal.scanning.plan import Plan
    from softcal.scanning.source import Frame
    from softcal.table.build import Builder

_ENTRIES_AT_ONCE = 1 << 18
_FIRST_ROWS = 10 * MAX_CELLS


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
        self._places: tuple[Place, ...] | None = None

    def refuse_many_cells(self) -> None:
        """Raise if the first rows have too many combinations of values, before all are read.

        The set refuses those of later rows, when it gets them.
        """
        plan = self._plan
        if plan.by:
            each = plan.part(0).select(*plan.by).head(_FIRST_ROWS).unique()
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
        place, rows = numbers(table["bin"]), numbers(table["rows"])
        if (place == BROKEN).any():
            return None
        total, dropped = int(rows.sum()), int(rows[place == GONE].sum())
        flags = {"weighted": self._plan.weighted, "voted": self._plan.voted}
        here = (place >= 0) & (numbers(table[sums.source_of("count", **flags)]) > 0)
        table = table if here.all() else table.filter(here)
        sources = [sums.source_of(name, **flags) for name in SUM_NAMES]
        found = {own: numbers(table[own]) for own in dict.fromkeys(sources) if own is not None}
        values = [None if own is None else found[own] for own in sources]
        counted = total - dropped if first else 0
        self._add("tables", (k, t), table, ["bin"], values, rows=counted)
        return Streamed(total, dropped)

    def _add(
        self, block: str, key: tuple[int, ...], table: Any, places: list[str], values: Any,
        *, rows: int = 0, owners: Any = None,
    ) -> None:  # fmt: skip
        """Add the rows of a result to a block of the set."""
        plan = self._plan
        names: Any = [] if plan.by else [()]
        cell = np.zeros(table.num_rows, dtype=np.int64)
        if plan.by and table.num_rows:
            cell, names = self._cells.of_batch([table[name] for name in plan.by])
        above = [cell] if owners is None else [cell, owners.numbers]
        keys = np.array([*above, *(numbers(table[name]) for name in places)], dtype=np.int64)
        found = Sparse.of_result(keys, values).under(*key)
        if table.num_rows or rows:
            who = () if owners is None else owners.names
            self._builder.add(Entries(rows, names, {block: found}, who))

    def _values(self, table: Any, block: str) -> list[Any]:
        return [numbers(table[name]) for name in BLOCKS[block].sums]

    def misses_groups(self) -> bool:
        """Return whether a row has no group, which the kernel does not see."""
        if self._plan.models[0].roles.plain is None:
            return False
        rows = self._plan.models[0].roles.rows.select("group")
        return bool(collected(rows.filter(nw.col("group").is_null()).head(1)).num_rows)

    def share_places(self) -> None:
        """Let groups share places before they are counted, if there are more than a set keeps."""
        plan = self._plan
        source = plan.models[0].roles.source
        if isinstance(source, Engine) and source.implementation.is_duckdb():
            return  # of a connection of the caller, to which nothing can be given
        shared = [each.select("group") for each in {id(m.roles): _counting(m.roles.rows)
                                                    for m in plan.models}.values()]  # fmt: skip
        every = nw.concat(shared).unique()
        if isinstance(source, Here):
            every = kept(every, plan.con)
        if collected(every.select(nw.len().alias("n")))["n"][0].as_py() <= MAX_GROUPS:
            return
        found = [self._cells.places(each) for each in batches(every, _ENTRIES_AT_ONCE)]
        places = source.given(pa.Table.from_batches(found), plan.con)
        self._plan = plan.with_rows(
            lambda roles: roles.rows.join(places, on="group", how="inner")
            .drop("group").rename({"place": "group"})
        )  # fmt: skip
        self._places = tuple(map(Place, range(MAX_GROUPS)))

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
        places = ["bin"] if BLOCKS[block].axes[-1] == "bin" else []
        for table in batches(query, _ENTRIES_AT_ONCE):
            if "weight" in table.column_names:
                table = table.filter(numbers(table["weight"]) > 0)  # noqa: PLW2901
            if table.num_rows:
                own = self._groups(table) if owner == "group" else self._raters(table)
                self._add(block, key, table, places, self._values(table, block), owners=own)

    def _groups(self, table: Any) -> Coded:
        if self._places is not None:
            return Coded(numbers(table["group"]).astype(np.int64), self._places)
        return self._cells.groups(table["group"])

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
                related = table.filter(numbers(table["product"]) != 0)
                places = ["bin_a", "bin_b"]
                self._add("cross", key, related, places, self._values(related, "cross"))
            self._add("losses", key, table, [], self._values(table, "losses"))

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
            values = self._values(table, "vote_products")
            self._add("vote_products", key, table, ["bin_a", "bin_b"], values)
            self._owned("rater_losses", key, sums.rater_losses(rows, plan.by), "rater")

    def _votes(self, rows: Frame) -> Frame:
        """Join single votes v to rows; u is their weight."""
        joined = self._plan.joined
        assert joined is not None  # noqa: S101 - there are raters
        assert joined.single is not None  # noqa: S101
        part = nw.col("n") / nw.col("m")
        u = nw.col("w") * part if self._plan.weighted else part
        found = joined.single.join(rows, on="item", how="inner").with_columns(u.alias("u"))
        return found.filter(nw.col("u") > 0)


def _counting(rows: Frame) -> Frame:
    return rows.filter(nw.col("status") == 0)
