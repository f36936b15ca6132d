"""Save and load sets of tables: as JSON if small, as Parquet if there are many entries.

Everything read is validated, because files are not trusted. Files of softcal 0.1 can be read too.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal import _io
from softcal._optional import naming_the_extra
from softcal._validation.rules import LARGEST_VOTES
from softcal.bins import Bins
from softcal.exceptions import InputError, InputTypeError, SoftcalError
from softcal.table import serialize
from softcal.table.groups import refuse_many_group_bins
from softcal.table.kernel import HARDENED, SUM_NAMES, Sums
from softcal.table.raters import RATER_LOSSES, RATER_SUMS, VOTE_PRODUCTS
from softcal.table.reliability import Reliability
from softcal.table.scores import score_names
from softcal.table.tableset import (
    LABEL,
    LOSSES,
    TOP,
    Groups,
    Pairs,
    RaterTables,
    Sparse,
    TableSet,
    empty_sparse,
    thresholds,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from softcal.table.tableset import IntArray

FORMAT = "softcal.tables"
SCHEMA = 2
SCORES_FORMAT = "softcal.scores"  # written by `softcal score --save` in 0.1
MANY = 20_000
"""The number of entries from which a set is saved as Parquet."""

_TABLE_KEYS = ("model", "target", "cell", "bin")
_NEXT_KEYS = {
    "cross": ("first", "second", "target", "place", "pair_bin_a", "pair_bin_b"),
    "losses": ("first", "second", "target", "place"),
    "counts": ("model", "target", "segment"),
    "squares": ("model", "target", "segment", "bin_a", "bin_b"),
    "group_sums": ("model", "target", "cell", "group", "bin"),
    "scores": ("model", "cell"),
    "rater_sums": ("model", "target", "cell", "rater", "bin"),
    "vote_products": ("first", "second", "target", "cell", "pair_bin_a", "pair_bin_b"),
    "rater_losses": ("first", "second", "target", "cell", "rater"),
}
_NEXT_SUMS = {
    "cross": ("product",),
    "losses": LOSSES,
    "counts": ("count",),
    "squares": ("residual", "weight"),
    "group_sums": ("residual", "weight"),
    "rater_sums": RATER_SUMS,
    "vote_products": VOTE_PRODUCTS,
    "rater_losses": RATER_LOSSES,
}
_SIGNED = {
    "residual",
    "hard_residual",
    "product",
    "mixed",
    "mixed_a",
    "mixed_b",
    "ent_ce_signed",
    *(name for name in LOSSES if name[-5:] in ("total", "mixed")),
}
_COUNTS = ("count", "differing", "infinite_a", "infinite_b", "infinite", "rows")
_OF_SQUARES = ("product", "mixed", "mixed_a", "mixed_b", "square", "_sq")
_LARGEST_SCORE = 1e6  # of a row: a log loss is below 745, a distance below the number of classes
_OF_RATERS = ("rater_sums", "vote_products", "rater_losses")
_KEY = b"softcal"
_MOST_WORK = 1 << 30  # sums of groups or raters to validate, however few entries there are
_WORK_OF_ENTRY = 1 << 12
PARQUET = re.compile(rb"PAR1[\0-\x08\x0e-\x1f]")  # no header of a CSV file has such a byte
_NAMED = re.compile(rb'\s*\{\s*"format"\s*:\s*"softcal\.')


def save(tables: TableSet, path: str | os.PathLike[str]) -> None:
    """Write a set to one file, atomically."""
    path = Path(path)
    sizes = [tables.tables.keys.shape[1], *(e.keys.shape[1] for e in _tied(tables).values())]
    if sum(sizes) < MANY:
        _io.write_json(path, content(tables))
    else:
        _write_parquet(path, tables)


def load(path: str | os.PathLike[str]) -> TableSet:
    """Load a set that `TableSet.save` or `softcal scan` wrote.

    Files of softcal 0.1 can be loaded too: those of `softcal score --save`, and the JSON of
    `Reliability.to_dict`, which becomes a set of one model named "model".

    Parameters
    ----------
    path : str or path
        The file, with any name.

    Returns
    -------
    TableSet
        The set.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a saved set.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from softcal import reliability
    >>> path = Path(tempfile.mkdtemp()) / "table.json"
    >>> _ = path.write_text(json.dumps(reliability([0.5, 1.0], [0.25, 0.75]).to_dict()))
    >>> load(path)
    TableSet(n=2, models=['model'], bins=10)
    """
    path = Path(path)
    with _io.readable(path), path.open("rb") as file:
        start = file.read(4)
    try:
        if start == b"PAR1":
            return _read_parquet(path)
        return _from_json(_io.read_json(path, "`softcal scan` or `TableSet.save`"))
    except SoftcalError as error:
        if str(error).startswith(f"cannot read {path}"):
            raise
        message = f"cannot read {path}: {error}"
        raise InputError(message) from error


def is_saved(path: Path) -> bool:
    """Return whether a file is a saved set, by its content."""
    if not path.is_file():
        return False
    with _io.readable(path), path.open("rb") as file:
        start = file.read(4096)
    if not PARQUET.match(start):
        return is_start_of_saved(start)
    with naming_the_extra(), _io.readable(path):
        import pyarrow.parquet as pq

        return is_saved_schema(pq.read_schema(path))


def is_start_of_saved(start: bytes) -> bool:
    """Return whether a JSON file with this start is a saved set or table."""
    return _NAMED.match(start) is not None


def is_saved_schema(schema: Any) -> bool:
    """Return whether a Parquet file with this Arrow schema is a saved set."""
    return _KEY in (schema.metadata or {})


def _tied(tables: TableSet) -> dict[str, Sparse]:
    """Return the entries besides the tables, by name."""
    found: dict[str, Sparse] = {}
    if tables.pairs is not None:
        found |= {"cross": tables.pairs.cross, "losses": tables.pairs.losses}
    if tables.groups is not None:
        found |= {"counts": tables.groups.counts, "squares": tables.groups.squares}
        if tables.groups.sums is not None:
            found["group_sums"] = tables.groups.sums
    if tables.scores is not None:
        found["scores"] = tables.scores
    if tables.raters is not None:
        found |= dict(zip(_OF_RATERS, tables.raters[2:], strict=True))
    return found


def _about(tables: TableSet) -> dict[str, Any]:
    """Return everything except the entries."""
    groups = tables.groups
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "label": tables.label,
        "label_high": tables.label_high,
        "models": list(tables.models),
        "targets": list(tables.targets),
        "ordered": tables.ordered,
        "by": list(tables.by_names),
        "weight": tables.weight,
        "votes": tables.votes,
        "date": tables.date,
        "rows_without_weight": tables.rows_without_weight,
        "rows_dropped": tables.rows_dropped,
        "bins": _saved_bins(tables.bins),
        "grid": "standard" if tables.grid == Bins.grid() else _saved_bins(tables.grid),
        "pair_bins": None if tables.pairs is None else _saved_bins(tables.pairs.bins),
        "cells": [list(cell) for cell in tables.cells],
        "group": None if groups is None else groups.column,
        "segments": [] if groups is None else [dict(each) for each in groups.segments],
        "rater": None if tables.raters is None else tables.raters.column,
        "rater_names": [] if tables.raters is None else list(tables.raters.names),
    }


def _saved_bins(bins: Bins) -> int | list[float]:
    return len(bins) if bins.is_uniform else bins.edges.tolist()


def written(tables: TableSet) -> dict[str, Any]:
    """Return a set as plain numbers, lists, and names; sums that are all 0 are omitted."""
    saved = _about(tables) | {"tables": _listed(tables.tables, _TABLE_KEYS, SUM_NAMES)}
    for name, entries in _tied(tables).items():
        saved[name] = _listed(entries, _NEXT_KEYS[name], _next_sums(name, saved))
    return saved


def content(tables: TableSet) -> dict[str, Any]:
    """Return the content of a JSON file: `written` and its checksum."""
    return {**written(tables), _io.CHECKSUM: _checksum(tables)}


def _checksum(tables: TableSet) -> str:
    return _io.checksum(_about(tables), _arrays(tables.tables, _tied(tables)))


def _arrays(tables: Sparse, entries: Mapping[str, Sparse]) -> Iterator[Any]:
    """Yield the numbers of all entries for a checksum, the same in every format."""
    for name, (keys, values) in sorted({**entries, "tables": tables}.items()):
        if keys.size:
            yield f"{name} {keys.shape[1]}".encode()
            yield np.ascontiguousarray(keys, dtype="<i8")
            # One NaN, because there are many, and no -0, because sums that are all 0 are omitted.
            yield np.ascontiguousarray(
                np.where(np.isnan(values), np.inf, values) + 0.0, dtype="<f8"
            )


def _next_sums(name: str, about: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the sums beside the tables; ordered classes have more scores."""
    if name == "scores":
        return score_names(ordered=about.get("ordered") is True)
    return _NEXT_SUMS[name]


def _listed(entries: Sparse, keys: tuple[str, ...], sums: tuple[str, ...]) -> dict[str, list[Any]]:
    found = {name: row.tolist() for name, row in zip(keys, entries.keys, strict=True)}
    for name, row in zip(sums, entries.values, strict=True):
        if row.any():
            found[f"sum_{name}"] = [None if value != value else value for value in row.tolist()]
    return found


def _from_json(saved: Any) -> TableSet:
    format_ = saved.get("format") if isinstance(saved, dict) else None
    if format_ == serialize.FORMAT:
        return set_of({"model": Reliability.from_dict(saved)}, "label")
    if format_ == SCORES_FORMAT:
        return _of_scores(saved)
    _io.schema_of(saved, FORMAT, SCHEMA, "a saved set of tables")
    entries = {
        name: _read_listed(saved.get(name), _NEXT_KEYS[name], _next_sums(name, saved))
        for name in _NEXT_KEYS
        if name in saved
    }
    tables = _read_listed(saved.get("tables"), _TABLE_KEYS, SUM_NAMES)
    about = {key: value for key, value in saved.items() if key not in {"tables", *_NEXT_KEYS}}
    return _checked(about, tables, entries)


def _read_listed(saved: Any, keys: tuple[str, ...], sums: tuple[str, ...]) -> Sparse:
    """Validate and return entries that `_listed` wrote."""
    try:
        size = len(saved[keys[0]])
        numbers = [_whole_numbers(saved[name], size) for name in keys]
        values = [_numbers(saved.get(f"sum_{name}"), size) for name in sums]
        unknown = set(saved) - {*keys, *(f"sum_{name}" for name in sums)}
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        message = (
            f"a part of its entries is missing or invalid: {error!s:.60}. The file is damaged."
        )
        raise InputError(message) from error
    if unknown:
        message = f"its entries have an unknown part, {min(unknown)!r:.60}."
        raise InputError(message)
    return Sparse(np.array(numbers, dtype=np.int64).reshape(len(keys), size), np.array(values))


def _whole_numbers(values: Any, size: int) -> IntArray:
    if len(values) != size or not all(type(value) is int for value in values):
        message = "keys must be whole numbers, one per entry"
        raise ValueError(message)
    return np.array(values, dtype=np.int64)


def _numbers(values: Any, size: int) -> Any:
    if values is None:
        return np.zeros(size)
    if len(values) != size or not all(
        value is None or type(value) in (int, float) for value in values
    ):
        message = "sums must be numbers, one per entry"
        raise ValueError(message)
    found = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if np.isinf(found).any():
        message = "sums must be finite"
        raise ValueError(message)
    return found


def _checked(saved: Mapping[str, Any], tables: Sparse, entries: dict[str, Sparse]) -> TableSet:
    """Return the set of the parts read; refuse values that no rows could have given."""
    _io.refuse_other_checksum(saved, _arrays(tables, entries))
    try:
        names = {key: _texts(saved[key]) for key in ("models", "targets", "by")}
        about = {key: _maybe_text(saved[key]) for key in ("weight", "votes", "date", "group")}
        label = _text(saved["label"])
        label_high = _maybe_text(saved.get("label_high"))  # absent from earlier files
        ordered = saved.get("ordered", False)  # absent from earlier files
        _require(type(ordered) is bool, "ordered")
        if ordered:
            own = names["targets"][1 : len(names["targets"]) // 2 + 1]
            _require(names["targets"] == (TOP, *own, *thresholds(own)), "targets")
        rater = _maybe_text(saved.get("rater"))
        raters = _texts(saved.get("rater_names", []))
        bins = Bins.of(saved["bins"])
        grid = Bins.grid() if saved["grid"] == "standard" else Bins.of(saved["grid"])
        cells = tuple(tuple(map(_maybe_text, cell)) for cell in saved["cells"])
        segments = tuple(
            {_text(name): _maybe_text(value) for name, value in each.items()}
            for each in saved["segments"]
        )
        weightless = saved["rows_without_weight"]
        _require(weightless is None or type(weightless) is int, "rows_without_weight")
        dropped = saved.get("rows_dropped")  # absent from earlier files
        _require(dropped is None or type(dropped) is int, "rows_dropped")
        _require(all(len(cell) == len(names["by"]) for cell in cells), "cells")
        _require(len(set(cells)) == len(cells), "cells")
        _require(np.isin(bins.edges, grid.edges).all(), "bins")
        pair_bins = grid if saved["pair_bins"] is None else Bins.of(saved["pair_bins"])
    except (KeyError, TypeError, AttributeError, InputError, InputTypeError) as error:
        message = f"a part is missing or invalid: {error!s:.100}. The file is damaged."
        raise InputError(message) from error
    size = {
        "model": len(names["models"]), "target": len(names["targets"]), "cell": len(cells),
        "bin": len(grid), "first": len(names["models"]), "second": len(names["models"]),
        "bin_a": len(grid), "bin_b": len(grid), "pair_bin_a": len(pair_bins),
        "pair_bin_b": len(pair_bins), "segment": len(segments),
        "place": len(cells) if about["group"] is None else len(segments), "rater": len(raters),
        "group": entries["group_sums"].keys.shape[1] if "group_sums" in entries else 0,
    }  # fmt: skip
    _refuse_work(size, cells, about["group"], rater, [tables, *entries.values()])
    _refuse_keys(tables, _TABLE_KEYS, size)
    _refuse_tables(tables, grid)
    for name, each in entries.items():
        _refuse_keys(each, _NEXT_KEYS[name], size)
        _refuse_impossible(each, name, _next_sums(name, saved), tables)
    tables = Sparse.of(*tables)  # sort, because another program may have written the file
    pairs = groups = None
    if "cross" in entries and "losses" in entries:
        pairs = Pairs(entries["cross"], entries["losses"], pair_bins)
    if about["group"] is not None:
        _require({} in segments, "segments")
        groups = Groups(
            about["group"], segments,
            entries.get("counts", empty_sparse(3, 1)), entries.get("squares", empty_sparse(5, 2)),
            sums=entries.get("group_sums"),  # absent from earlier files
        )  # fmt: skip
    found = TableSet(
        label, names["models"], bins, grid, tables, names["targets"], names["by"], cells,
        about["weight"], about["votes"], about["date"], weightless, label_high, pairs, groups,
        entries.get("scores"), _read_raters(rater, raters, entries), dropped, ordered,
    )  # fmt: skip
    _refuse_groups(found)
    _refuse_raters(found)
    return found


def _refuse_work(
    size: Mapping[str, int],
    cells: Sequence[Sequence[str | None]],
    group: str | None,
    rater: str | None,
    entries: list[Sparse],
) -> None:
    """Refuse a small file with so many bins, models, and segments that validation takes hours."""
    if group is not None:
        refuse_many_group_bins(size["bin"])
    segments = 1 + sum(len({*values}) for values in zip(*cells, strict=True))
    work = 0 if group is rater is None else size["bin"] if group is None else size["bin"] ** 2
    work *= size["model"] * size["target"] * segments
    saved = sum(each.keys.shape[1] for each in entries)
    if work > max(_MOST_WORK, _WORK_OF_ENTRY * saved):
        message = (
            f"its {saved:,} entries are too few for {size['model']:,} models, {size['target']:,} "
            f"targets, {segments:,} segments, and {size['bin']:,} bins. The file is damaged."
        )
        raise InputError(message)


def _read_raters(
    column: str | None, names: tuple[str, ...], entries: dict[str, Sparse]
) -> RaterTables | None:
    if column is None:
        return None
    parts = (
        Sparse.of(*entries[name])
        if name in entries
        else empty_sparse(len(_NEXT_KEYS[name]), len(_NEXT_SUMS[name]))
        for name in _OF_RATERS
    )
    return RaterTables(column, names, *parts)


def _refuse_raters(tables: TableSet) -> None:
    """Refuse sums of raters that contradict the tables."""
    if tables.raters is None:
        return
    for model, target in product(tables.models, tables.targets):
        rel = tables[model, target]
        assert rel.raters is not None  # noqa: S101 - the set has raters
        serialize.refuse_other_raters(rel.raters, rel.sums)


def _refuse_groups(tables: TableSet) -> None:
    """Refuse sums of groups that contradict the tables, of all rows and of each segment."""
    if tables.groups is None:
        return
    parts = [tables, *(part for name in tables.by_names for part in tables.by(name).values())]
    if tables.groups.sums is not None:  # their products are saved too
        _refuse_groups(replace(tables, groups=tables.groups._replace(sums=None)))
    for part in parts:
        _require(part.groups is not None and {} in part.groups.segments, "segments")
        for model, target in product(part.models, part.targets):
            rel = part[model, target]
            assert rel.clusters is not None  # noqa: S101 - the set has groups
            serialize.refuse_other_groups(rel.clusters, rel.sums)


def _require(holds: Any, part: str) -> None:
    if not holds:
        message = f"{part!r} is invalid"
        raise InputError(message)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"{value!r:.40} is not text"
        raise InputTypeError(message)
    return value


def _maybe_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(values: Any) -> tuple[str, ...]:
    found = tuple(map(_text, values))
    _require(len(set(found)) == len(found), "names")
    return found


def _refuse_keys(entries: Sparse, names: tuple[str, ...], size: Mapping[str, int]) -> None:
    """Refuse keys out of range, and duplicate keys."""
    for name, row in zip(names, entries.keys, strict=True):
        if row.size and not (row.min() >= 0 and row.max() < size[name]):
            message = f"an entry has a {name} that does not exist. The file is damaged."
            raise InputError(message)
    if Sparse.of(*entries).keys.shape != entries.keys.shape:
        message = "two entries have the same key. The file is damaged."
        raise InputError(message)


def _refuse_impossible(entries: Sparse, kind: str, sums: tuple[str, ...], tables: Sparse) -> None:
    """Refuse sums that no rows of these tables can have; NaN is allowed where it means unknown."""
    rows, weight = (float(row.sum()) for row in tables.values[:2])  # of all tables, so not exact
    for name, row in zip(sums, entries.values, strict=True):
        known = row[~np.isnan(row)] if kind == "scores" and name != "weight" else row
        squared = kind == "squares" or name.endswith(_OF_SQUARES)
        most = rows if name in _COUNTS else (_LARGEST_SCORE * weight) ** (1 + squared)
        if not (np.abs(known) <= most).all() or (name not in _SIGNED and (row < 0).any()):
            message = f"the sum {name} has a value that no rows can have. The file is damaged."
            raise InputError(message)


def _refuse_tables(tables: Sparse, grid: Bins) -> None:
    values = dict(zip(SUM_NAMES, tables.values, strict=True))
    count = values["count"]
    known = [row for name, row in values.items() if name not in HARDENED]
    if (
        np.isnan(known).any()
        or not ((count >= 1) & (count <= LARGEST_VOTES)).all()  # a float64 cannot count further
        or (count != np.floor(count)).any()
        or any((row < 0).any() for name, row in values.items() if name not in _SIGNED)
    ):
        message = "its sums have values that no rows can have. The file is damaged."
        raise InputError(message)
    at = tables.keys[3]
    sums = Sums(**{**values, "count": count.astype(np.int64)})
    serialize.refuse_impossible(sums, grid.edges[:-1][at], grid.edges[1:][at])


@naming_the_extra()
def _write_parquet(path: Path, tables: TableSet) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    model, target, cell, at = tables.tables.keys
    columns: dict[str, Any] = {
        "kind": pa.array(["table"] * model.size),
        "model": pa.array(np.array(tables.models, dtype=object)[model], pa.string()),
        "target": pa.array(np.array(tables.targets, dtype=object)[target], pa.string()),
    }
    for k, name in enumerate(tables.by_names):
        values = np.array([values[k] for values in tables.cells], dtype=object)
        columns[f"by_{name}"] = pa.array(values[cell], pa.string())
    columns |= {
        "low": pa.array(tables.grid.edges[:-1][at]),
        "high": pa.array(tables.grid.edges[1:][at]),
    }
    for name, row in zip(SUM_NAMES, tables.tables.values, strict=True):
        columns[name] = pa.array(row)
    columns["keys"] = pa.array(tables.tables.keys.T.tolist(), pa.list_(pa.int64()))
    columns["values"] = pa.nulls(model.size, pa.list_(pa.float64()))
    batches = [pa.table(columns)]
    for name, entries in _tied(tables).items():
        size = entries.keys.shape[1]
        rest = {
            "kind": pa.array([name] * size),
            "keys": pa.array(entries.keys.T.tolist(), pa.list_(pa.int64())),
            "values": pa.array(entries.values.T.tolist(), pa.list_(pa.float64())),
        }
        batches.append(pa.table(rest))
    whole = pa.concat_tables(batches, promote_options="default")
    about = _about(tables) | {_io.CHECKSUM: _checksum(tables)}
    named = json.dumps(about, allow_nan=False).encode()
    with _io.written_whole(path) as beside:
        pq.write_table(whole.replace_schema_metadata({_KEY: named}), beside)


@naming_the_extra()
def _read_parquet(path: Path) -> TableSet:
    import pyarrow.parquet as pq

    with _io.readable(path):
        whole = pq.read_table(path)
    about = (whole.schema.metadata or {}).get(_KEY)
    if about is None:
        message = "it is a Parquet file of rows, not a saved set. Read it with softcal.scan."
        raise InputError(message)
    try:
        saved = json.loads(about)
        _io.schema_of(saved, FORMAT, SCHEMA, "a saved set of tables")
        kind = np.array(whole.column("kind").to_pylist(), dtype=object)
        keys = whole.column("keys").to_pylist()

        def of(name: str, width: int) -> tuple[Any, IntArray]:
            chosen = np.flatnonzero(kind == name)
            found = np.array([keys[k] for k in chosen], dtype=np.int64)
            return chosen, found.reshape(chosen.size, width).T

        chosen, numbers = of("table", len(_TABLE_KEYS))
        values = [whole.column(name).to_numpy()[chosen] for name in SUM_NAMES]
        tables = Sparse(numbers, np.array(values, dtype=np.float64))
        entries = {}
        of_others = whole.column("values").to_pylist()
        for name in {*kind} - {"table"}:
            chosen, numbers = of(name, len(_NEXT_KEYS[name]))
            sums = np.array([of_others[k] for k in chosen], dtype=np.float64)
            width = len(_next_sums(name, saved))
            entries[name] = Sparse(numbers, sums.reshape(chosen.size, width).T)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        message = (
            f"a part of its entries is missing or invalid: {error!s:.60}. The file is damaged."
        )
        raise InputError(message) from error
    return _checked(saved, tables, entries)


def set_of(
    models: Mapping[str, Reliability],
    label: str,
    by: str | None = None,
    slices: Mapping[str, Mapping[str, Reliability]] | None = None,
    *,
    target: str = LABEL,
    group: str = "groups",
    **about: Any,
) -> TableSet:
    """Return the set of dense tables, as files of 0.1 contain them, on the bins of the tables."""
    first = next(iter(models.values()))
    cells: dict[str, int] = {}
    parts, counts, squares = [], [empty_sparse(3, 1)], [empty_sparse(5, 2)]
    for m, (model, rel) in enumerate(models.items()):
        if rel.bins != first.bins:
            message = "its tables have different bins. The file is damaged."
            raise InputError(message)
        each = {"": rel} if slices is None else slices[model]
        for value, table in each.items():
            cell = cells.setdefault(value, len(cells))
            parts.append(entries_of(table, (m, 0, cell)))
        if rel.clusters is not None:
            groups = rel.clusters
            filled = np.argwhere(groups.weight != 0).T
            values = np.array([square[*filled] for square in (groups.residual, groups.weight)])
            keys = np.concatenate((np.broadcast_to([[m], [0], [0]], (3, filled.shape[1])), filled))
            squares.append(Sparse(keys.astype(np.int64), values))
            counts.append(Sparse(np.array([[m], [0], [0]]), np.array([[float(groups.count)]])))
    tied = None
    if first.clusters is not None:
        tied = Groups(group, ({},), Sparse.added(counts), Sparse.added(squares))
        own = first.clusters.sums
        if own is not None and len(models) == 1:
            keys = np.array([*np.zeros((3, own.group.size)), own.group, own.place], dtype=np.int64)
            tied = tied._replace(sums=Sparse(keys, own.values))
    return TableSet(
        label, tuple(models), first.bins, first.bins, Sparse.added(parts), (target,),
        () if by is None else (by,), tuple((value,) if by else () for value in cells),
        groups=tied, **about,
    )  # fmt: skip


def entries_of(rel: Reliability, key: tuple[int, int, int]) -> Sparse:
    """Return the filled bins of a table, with the numbers of a model, target, and cell."""
    values = np.array(list(rel.sums), dtype=np.float64)
    filled = np.flatnonzero(rel.count)
    above = np.broadcast_to(np.array(key)[:, None], (3, filled.size))
    return Sparse(np.concatenate((above, filled[None])).astype(np.int64), values[:, filled])


def _of_scores(saved: dict[str, Any]) -> TableSet:
    """Read a file of `softcal score --save` of 0.1: a table and a hardened one per model."""
    _io.schema_of(saved, SCORES_FORMAT, 1, "saved scores")
    try:
        by = _maybe_text(saved["by"])
        models = {_text(one["pred"]): one for one in saved["models"]}
        whole = {pred: _with_hardened(one) for pred, one in models.items()}
        slices = None
        if by is not None:
            slices = {
                pred: {str(each["value"]): _with_hardened(each) for each in one["slices"]}
                for pred, one in models.items()
            }
        weightless = saved.get("rows_without_weight")  # absent from the first files of 0.1
        about: dict[str, Any] = {
            "weight": _maybe_text(saved["weight"]),
            "votes": _maybe_text(saved["votes"]),
            "rows_without_weight": weightless if isinstance(weightless, int) else None,
        }
        label = _text(saved["label"])
    except (KeyError, TypeError, AttributeError) as error:
        message = f"a part of the saved scores is missing or invalid: {error}. The file is damaged."
        raise InputError(message) from error
    if not whole:
        message = "saved scores must have at least one model: the file is damaged."
        raise InputError(message)
    if slices is not None and not all(slices.values()):
        message = (
            f"saved scores by {by!r:.60} must have segments of every model: the file is damaged."
        )
        raise InputError(message)
    return set_of(whole, label, by, slices, **about)


def _with_hardened(saved: Any) -> Reliability:
    """Combine the table of 0.1 with the sums of its hardened table."""
    soft = Reliability.from_dict(saved["table"])
    if saved["hardened"] is None:
        return soft
    hard = Reliability.from_dict(saved["hardened"]).sums
    sums = vars(soft.sums) | {
        "hard_residual": hard.residual,
        "hard_residual_sq": hard.residual_sq,
        "hard_residual_var": hard.residual_var,
    }
    return Reliability(soft.bins, Sums(**sums), soft.clusters)
