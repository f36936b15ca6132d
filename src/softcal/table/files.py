"""Save and load sets of tables: as JSON if small, as Parquet if there are many entries.

Everything read is validated, because files are not trusted. Files of softcal 0.2 can be read too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from softcal import _io
from softcal._optional import naming_the_extra
from softcal._validation.rules import LARGEST_VOTES, LARGEST_WEIGHT, SMALLEST_WEIGHT
from softcal.bins import Bins
from softcal.exceptions import InputError, SoftcalError
from softcal.table.blocks import BLOCKS, Block, Sparse
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.owners import MAX_GROUPS, anonymous, refuse_many_group_bins
from softcal.table.tableset import TOP, About, Axes, TableSet, thresholds

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from softcal._validation.inputs import FloatArray
    from softcal.table.reliability import Reliability

FORMAT = "softcal.tables"
SCHEMA = 3
MANY = 20_000
"""The number of entries from which a set is saved as Parquet."""

PARQUET = re.compile(rb"PAR1[\0-\x08\x0e-\x1f]")  # no header of a CSV file has such a byte
_KEY = b"softcal"
_NAMED = re.compile(rb'\s*\{\s*"format"\s*:\s*"softcal\.')
_LARGEST_COUNT = 2**53  # over all bins, so that the sum of a thousand such tables fits an int64
_LARGEST_SCORE = 1e6  # of a row: a log loss is below 745, a distance below the number of classes
_MORE = 1 + 1e-9  # tolerance for rounding in valid sums
_SIGNED = re.compile(
    r"(hard_)?residual|product|mixed(_[ab])?|ent_ce_signed|(brier|log_loss)_(total|mixed)"
)
_COUNTS = ("count", "differing", "infinite_a", "infinite_b", "infinite", "rows")
_OF_SQUARES = ("product", "mixed", "mixed_a", "mixed_b", "square", "_sq")
_DAMAGES = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip

# What softcal 0.2 named differently: parts of keys, and the blocks of a set with groups.
_KEYS_OF_0_2 = {"first": "model_a", "second": "model_b", "place": "cell", "rater": "owner"}
_BLOCKS_OF_0_2 = {"cross": "segment_cross", "losses": "segment_losses"}


def save(tables: TableSet, path: str | os.PathLike[str]) -> None:
    """Write a set to one file, atomically."""
    path = Path(path)
    if sum(each.keys.shape[1] for each in tables.blocks.values()) < MANY:
        _io.write_json(path, content(tables))
    else:
        _write_parquet(path, tables)


def load(path: str | os.PathLike[str]) -> TableSet:
    """Load a set that `TableSet.save`, `Reliability.save`, or `softcal scan` wrote.

    Parameters
    ----------
    path : str or path
        The file, with any name.

    Returns
    -------
    TableSet
        The set. A table that `Reliability.save` wrote is a set of one model named "model".

    Raises
    ------
    InputError
        If the file cannot be read, or is not a saved set.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from softcal import reliability
    >>> path = Path(tempfile.mkdtemp()) / "table.softcal"
    >>> reliability([0.5, 1.0], [0.25, 0.75]).save(path)
    >>> load(path)["model"]
    Reliability(n=2, bins=10)
    """
    path = Path(path)
    with _io.readable(path), path.open("rb") as file:
        start = file.read(4)
    try:
        if start == b"PAR1":
            return _read_parquet(path)
        return _from_json(_io.read_json(path, "`softcal scan` or `TableSet.save`"))
    except (SoftcalError, *_DAMAGES) as error:
        if str(error).startswith(f"cannot read {path}"):
            raise
        damage = f"a part is missing or invalid: {error!s:.60}. The file is damaged."
        message = f"cannot read {path}: {error if isinstance(error, SoftcalError) else damage}"
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
    """Return whether a JSON file with this start is a saved set."""
    return _NAMED.match(start) is not None


def is_saved_schema(schema: Any) -> bool:
    """Return whether a Parquet file with this Arrow schema is a saved set."""
    return _KEY in (schema.metadata or {})


def set_of(rel: Reliability) -> TableSet:
    """Return the set of one table, without groups and raters, of a model named "model"."""
    filled = np.flatnonzero(rel.count)
    values = np.array(list(rel.sums), dtype=np.float64)[:, filled]
    entries = Sparse(filled[None], values).under(0, 0, 0)
    return TableSet(About("label"), Axes(("model",), rel.bins), {"tables": entries}, rel.bins)


# Writing


def _about(tables: TableSet) -> dict[str, Any]:
    """Return everything except the entries. The names of groups are not saved."""
    axes = tables.axes
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        **tables.about._asdict(),
        "models": list(axes.model),
        "targets": list(axes.target),
        "by": list(axes.by),
        "cells": [list(cell) for cell in axes.cell],
        "owners": len(axes.owner) if tables.about.rater is None else list(axes.owner),
        "segments": [dict(each) for each in axes.segment],
        "bins": _saved_bins(tables.bins),
        "grid": "standard" if axes.bin == Bins.grid() else _saved_bins(axes.bin),
        "pair_bins": None if axes.pair_bin is None else _saved_bins(axes.pair_bin),
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a saved set, from the declarations of what a set can store."""
    kinds: dict[Any, Any] = {
        str: {"type": "string"},
        str | None: {"type": ["string", "null"]},
        int | None: {"type": ["integer", "null"], "minimum": 0},
        bool: {"type": "boolean"},
    }
    text, maybe_text, count = kinds[str], kinds[str | None], {"type": "integer", "minimum": 0}
    bins = {"anyOf": [{"type": "integer", "minimum": 1}, list_of({"type": "number"}, 2)]}
    of_axes = {
        "models": list_of(text, 1),
        "targets": list_of(text, 1),
        "by": list_of(text),
        "cells": list_of(list_of(maybe_text)),
        "owners": {"description": "The number of groups, or the names of raters.",
                   "anyOf": [count, list_of(text)]},
        "segments": list_of({"type": "object", "additionalProperties": maybe_text}),
        "bins": bins,
        "grid": {"anyOf": [{"const": "standard"}, bins]},
        "pair_bins": {"anyOf": [{"type": "null"}, bins]},
    }  # fmt: skip
    blocks = {}
    for name, block in BLOCKS.items():
        keys = dict.fromkeys(key_names(block), list_of(count))
        sums = {f"sum_{each}": list_of({"type": ["number", "null"]}) for each in block.sums}
        blocks[name] = object_of(keys | sums, keys)
    parts = {
        "format": {"const": FORMAT},
        "schema": {"const": SCHEMA},
        **{key: kinds[kind] for key, kind in get_type_hints(About).items()},
        **of_axes,
        "blocks": object_of(blocks, ["tables"]),
    }
    return {
        "title": "A saved set of tables, as softcal scan writes it",
        "description": "Entries are lists of equal length. Keys count from 0. A sum that is 0 in "
        f"all entries is omitted. A set of {MANY:,} entries or more is a Parquet file.",
        **object_of(parts | {_io.CHECKSUM: text}, parts),
    }


def list_of(items: dict[str, Any], fewest: int = 0) -> dict[str, Any]:
    """Return the schema of a list."""
    return {"type": "array", "items": items} | ({"minItems": fewest} if fewest else {})


def object_of(properties: dict[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """Return the schema of an object without further properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _saved_bins(bins: Bins) -> int | list[float]:
    return len(bins) if bins.is_uniform else bins.edges.tolist()


def written(tables: TableSet) -> dict[str, Any]:
    """Return a set as plain numbers, lists, and names; sums that are all 0 are omitted."""
    blocks = {name: _listed(BLOCKS[name], each) for name, each in _in_order(tables.blocks).items()}
    return _about(tables) | {"blocks": blocks}


def _in_order(blocks: Mapping[str, Sparse]) -> dict[str, Sparse]:
    """Return blocks in the order of their declarations, so that equal sets give equal files."""
    return {name: blocks[name] for name in BLOCKS if name in blocks}


def content(tables: TableSet) -> dict[str, Any]:
    """Return the content of a JSON file: `written` and its checksum."""
    return {**written(tables), _io.CHECKSUM: _checksum(tables)}


def _checksum(tables: TableSet) -> str:
    return _io.checksum(_about(tables), _arrays(tables.blocks))


def _arrays(blocks: Mapping[str, Sparse]) -> Iterator[Any]:
    """Yield the numbers of all entries for a checksum, the same in every format."""
    for name, (keys, values) in sorted(blocks.items()):
        if keys.size:
            yield f"{name} {keys.shape[1]}".encode()
            yield np.ascontiguousarray(keys, dtype="<i8")
            # One NaN, because there are many, and no -0, because sums that are all 0 are omitted.
            known = np.where(np.isnan(values), np.inf, values) + 0.0
            yield np.ascontiguousarray(known, dtype="<f8")


def key_names(block: Block) -> tuple[str, ...]:
    """Return the names of the parts of a key; those of the same axis end in "_a" and "_b"."""
    twice = {axis for axis in block.axes if block.axes.count(axis) > 1}
    return tuple(
        f"{axis}_{'ba'[axis in block.axes[k + 1 :]]}" if axis in twice else axis
        for k, axis in enumerate(block.axes)
    )


def _listed(block: Block, entries: Sparse) -> dict[str, list[Any]]:
    found = {name: row.tolist() for name, row in zip(key_names(block), entries.keys, strict=True)}
    for name, row in zip(block.sums, entries.values, strict=True):
        if row.any():
            found[f"sum_{name}"] = [None if value != value else value for value in row.tolist()]
    return found


@naming_the_extra()
def _write_parquet(path: Path, tables: TableSet) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    axes, entries = tables.axes, tables.blocks["tables"]
    model, target, cell, at = entries.keys
    columns: dict[str, Any] = {
        "kind": pa.array(["table"] * model.size),
        "model": pa.array(np.array(axes.model, dtype=object)[model], pa.string()),
        "target": pa.array(np.array(axes.target, dtype=object)[target], pa.string()),
    }
    for k, name in enumerate(axes.by):
        values = np.array([values[k] for values in axes.cell], dtype=object)
        columns[f"by_{name}"] = pa.array(values[cell], pa.string())
    columns |= {"low": axes.bin.edges[at], "high": axes.bin.edges[at + 1]}
    columns |= dict(zip(SUM_NAMES, entries.values, strict=True))
    columns["keys"] = _lists(pa, entries.keys)
    columns["values"] = pa.nulls(model.size, pa.list_(pa.float64()))
    blocks = _in_order(tables.blocks)
    batches = [pa.table(columns)]
    for name, each in blocks.items():
        if name != "tables":
            kind = pa.array([name] * each.keys.shape[1], pa.string())
            rest = {"kind": kind, "keys": _lists(pa, each.keys), "values": _lists(pa, each.values)}
            batches.append(pa.table(rest))
    whole = pa.concat_tables(batches, promote_options="default")
    about = _about(tables) | {"blocks": list(blocks), _io.CHECKSUM: _checksum(tables)}
    named = json.dumps(about, allow_nan=False).encode()
    with _io.written_whole(path) as beside:
        pq.write_table(whole.replace_schema_metadata({_KEY: named}), beside)


def _lists(pa: Any, rows: Any) -> Any:
    """Return the columns of a matrix as lists."""
    width, size = rows.shape
    flat = pa.array(np.ascontiguousarray(rows.T).ravel())
    return pa.ListArray.from_arrays(pa.array(np.arange(size + 1, dtype=np.int32) * width), flat)


# Reading


def _from_json(saved: Any) -> TableSet:
    schema = _io.schema_of(saved, FORMAT, SCHEMA, "a saved set of tables")
    if schema < 3:  # blocks were not in an object of their own
        of_0_2 = {name: each for name, each in saved.items() if isinstance(each, dict)}
        saved = {name: saved[name] for name in saved if name not in of_0_2} | {"blocks": of_0_2}
    about = {name: each for name, each in saved.items() if name != "blocks"}
    listed = saved["blocks"].items()
    return _checked(about, {name: _read_block(_block(name, about), each) for name, each in listed})


def _block(name: str, about: Mapping[str, Any]) -> Block:
    """Return a declaration; in 0.2, one block had all scores of ordered classes."""
    _require(name in BLOCKS, f"the kind {name!r:.40}")
    block = BLOCKS[name]
    if name == "scores" and about["schema"] < 3 and about.get("ordered") is True:
        return block._replace(sums=(*block.sums, *BLOCKS["ordered_scores"].sums))
    return block


def _read_block(block: Block, saved: Mapping[str, Any]) -> Sparse:
    """Return the entries that `_listed` wrote."""
    columns = {_KEYS_OF_0_2.get(name, name): each for name, each in saved.items()}
    keys = [columns.pop(name) for name in key_names(block)]
    nothing = [0.0] * len(keys[0])
    values = [columns.pop(f"sum_{name}", nothing) for name in block.sums]
    _require(not columns, f"{min(columns, default='')!r:.40} is unknown")
    _require({*map(len, keys + values)} == {len(nothing)}, "keys and sums, one per entry")
    _require({type(each) for row in keys for each in row} <= {int}, "keys")
    kinds = {type(each) for row in values for each in row}
    _require(kinds <= {int, float, type(None)}, "sums")
    return Sparse(np.array(keys, dtype=np.int64), np.array(values, dtype=np.float64))


@naming_the_extra()
def _read_parquet(path: Path) -> TableSet:
    import pyarrow.parquet as pq

    with _io.readable(path):
        whole = pq.read_table(path)
    if not is_saved_schema(whole.schema):
        message = "it is a Parquet file of rows, not a saved set. Read it with softcal.scan."
        raise InputError(message)
    saved = json.loads(whole.schema.metadata[_KEY])
    _io.schema_of(saved, FORMAT, SCHEMA, "a saved set of tables")
    kind = np.array(whole.column("kind").to_pylist(), dtype=object)
    kind[kind == "table"] = "tables"
    keys, values = (whole.column(name).combine_chunks() for name in ("keys", "values"))
    blocks = {}
    for name in {*kind, "tables", *saved.pop("blocks", ())}:
        block, chosen = _block(name, saved), np.flatnonzero(kind == name)
        numbers = np.array(keys.take(chosen).to_pylist(), dtype=np.int64)
        if name == "tables":
            sums = np.array([whole.column(each).to_numpy()[chosen] for each in SUM_NAMES])
        else:
            listed = np.array(values.take(chosen).to_pylist(), dtype=np.float64)
            sums = listed.reshape(chosen.size, len(block.sums)).T
        blocks[name] = Sparse(
            numbers.reshape(chosen.size, len(block.axes)).T,
            np.ascontiguousarray(sums, dtype=np.float64),  # sums of sums depend on it
        )
    return _checked(saved, blocks)


def _checked(saved: dict[str, Any], blocks: dict[str, Sparse]) -> TableSet:
    """Return the set of the parts read; refuse values that no rows could have given."""
    _io.refuse_other_checksum(saved, _arrays(blocks))
    if saved["schema"] < 3:
        saved, blocks = _of_0_2(saved, blocks)
    about = About._make(saved.get(name) for name in About._fields)
    for name, kind in get_type_hints(About).items():
        _require(type(getattr(about, name)) in (get_args(kind) or (kind,)), name)
    axes, bins = _axes(saved, about), Bins.of(saved["bins"])
    _require(np.isin(bins.edges, axes.bin.edges).all(), "bins")
    _require(np.isin((axes.pair_bin or axes.bin).edges, axes.bin.edges).all(), "pair_bins")
    _require(about.group is None or {"squares", "group_sums"} & {*blocks}, "blocks")
    _require((about.rater is None) == ("rater_sums" not in blocks), "blocks")
    _require(frozenset() in axes.segment or not (axes.segment or "squares" in blocks), "segments")
    if about.group is not None:
        refuse_many_group_bins(len(axes.bin))
    return TableSet(about, axes, checked_blocks(axes, blocks), bins)


def checked_blocks(axes: Axes, blocks: Mapping[str, Sparse]) -> dict[str, Sparse]:
    """Return blocks in order; refuse keys that cannot be, and sums that no rows could have."""
    blocks = {name: _sorted(name, each, axes) for name, each in _in_order(blocks).items()}
    tables = blocks["tables"]
    for name, each in blocks.items():
        _refuse_sums(each, name, tables)
    at = tables.keys[-1]
    _refuse_impossible(Sums(*tables.values), axes.bin.edges[at], axes.bin.edges[at + 1])
    for name in {"group_sums", "rater_sums"} & {*blocks}:
        _refuse_owners(blocks[name], tables)
    return blocks


def _axes(saved: Mapping[str, Any], about: About) -> Axes:
    targets, by, owners = _names(saved["targets"]), _names(saved["by"]), saved["owners"]
    own = targets[1 : len(targets) // 2 + 1]
    _require(not about.ordered or targets == (TOP, *own, *thresholds(own)), "targets")
    cells = _names(map(tuple, saved["cells"]), tuple)
    _require(all(len(cell) == len(by) for cell in cells), "cells")
    segments = _names((frozenset(each.items()) for each in saved["segments"]), frozenset)
    values = [*(value for cell in cells for value in cell), *(v for s in segments for _, v in s)]
    _require(all(value is None or type(value) is str for value in values), "cells")
    if about.rater is None:
        _require(type(owners) is int and 0 <= owners <= MAX_GROUPS, "owners")
    return Axes(
        _names(saved["models"]),
        Bins.grid() if saved["grid"] == "standard" else Bins.of(saved["grid"]),
        targets,
        by,
        cells,
        None if saved["pair_bins"] is None else Bins.of(saved["pair_bins"]),
        anonymous(owners) if about.rater is None else _names(owners),
        segments,
    )


def _names(values: Iterable[Any], kind: type = str) -> tuple[Any, ...]:
    """Return names, which must be different and of one kind."""
    found = tuple(values)
    _require({*map(type, found)} <= {kind} and len({*found}) == len(found), "names")
    return found


def _of_0_2(
    saved: dict[str, Any], blocks: dict[str, Sparse]
) -> tuple[dict[str, Any], dict[str, Sparse]]:
    """Return the content of a file of softcal 0.2, which omitted empty blocks, as it is now."""
    raters = saved.get("rater") is not None
    filled: tuple[str, ...] = ()
    if saved.get("group") is not None:
        blocks = {_BLOCKS_OF_0_2.get(name, name): each for name, each in blocks.items()}
        filled = ("counts", "squares")
    elif raters:
        filled = ("rater_sums", *(("vote_products", "rater_losses") if "losses" in blocks else ()))
    blocks = {name: BLOCKS[name].empty() for name in filled} | blocks
    keys, values = blocks.get("scores", BLOCKS["scores"].empty())
    width = len(BLOCKS["scores"].sums)
    if len(values) > width:
        blocks["scores"] = Sparse(keys, values[:width])
        blocks["ordered_scores"] = Sparse(keys, values[width:])
    owners = saved.get("rater_names", []) if raters else 0
    return {"ordered": False, **saved, "owners": owners}, blocks


def _require(holds: object, part: str) -> None:
    if not holds:
        raise ValueError(part)


# Validation of sums


def _sorted(name: str, entries: Sparse, axes: Axes) -> Sparse:
    """Sort entries, which another program may have written; refuse keys that cannot be."""
    for axis, row in zip(BLOCKS[name].axes, entries.keys, strict=True):
        size = len(getattr(axes, axis) or ())
        inside = not row.size or (row.min() >= 0 and row.max() < size)
        _require(inside, f"an entry has a {axis} that does not exist")
    found = Sparse.of(*entries)
    falling = BLOCKS[name].is_of_pairs and (entries.keys[0] >= entries.keys[1]).any()
    if falling or found.keys.shape != entries.keys.shape:
        message = "two entries have the same key, or a pair of models is not in order. The file "
        raise InputError(message + "is damaged.")
    return found


@np.errstate(over="ignore", invalid="ignore")  # a value that overflows is too large anyway
def _refuse_sums(entries: Sparse, kind: str, tables: Sparse) -> None:
    """Refuse sums that no rows of these tables can have; NaN is allowed where it means unknown."""
    rows, weight = tables.values[:2].sum(axis=1)  # of all tables, so not exact
    for name, row in zip(BLOCKS[kind].sums, entries.values, strict=True):
        unknown = kind.endswith("scores") and name != "weight"
        known = row[~np.isnan(row)] if unknown else row
        squared = kind == "squares" or name.endswith(_OF_SQUARES) or name.endswith("_var")
        most = rows if name in _COUNTS else (_LARGEST_SCORE * max(weight, 1)) ** (1 + squared)
        if name == "votes":
            most = rows * LARGEST_VOTES
        signed = _SIGNED.fullmatch(name) is not None
        if not (np.abs(known) <= most).all() or (not signed and (row < 0).any()):
            message = f"the sum {name} has a value that no rows can have. The file is damaged."
            raise InputError(message)


@np.errstate(over="ignore", invalid="ignore")
def _refuse_owners(owners: Sparse, tables: Sparse) -> None:
    """Refuse sums of owners that do not add up to those of the tables."""
    whole = Sparse.of(np.delete(owners.keys, 3, axis=0), owners.values)
    residual, weight = (tables.values[SUM_NAMES.index(name)] for name in ("residual", "weight"))
    s, u, *more = owners.values
    fits = np.array_equal(whole.keys, tables.keys) and bool((abs(s) <= u * _MORE).all())
    for mine, theirs in zip(whole.values, (residual, weight), strict=False):
        fits = fits and bool((abs(mine - theirs) <= 1e-9 * weight).all())
    if fits and more:
        s_sq, mixed, u_sq = more
        # The square of a tiny residual is 0, but its product with a weight may not be.
        in_order = [
            (s_sq, u_sq), (abs(mixed), np.sqrt(s_sq * u_sq) + 1e-150 * u_sq), (u_sq, u**2)
        ]  # fmt: skip
        fits = all((low <= high * _MORE).all() for low, high in in_order)
    if not fits:
        message = (
            "the sums of its groups or raters contradict its tables: no rows can have these. The "
            "file is damaged, or was written by another program."
        )
        raise InputError(message)


@np.errstate(over="ignore", invalid="ignore")  # a value that overflows is too large anyway
def _refuse_impossible(sums: Sums, lows: FloatArray, highs: FloatArray) -> None:
    """Refuse saved sums that no rows in bins with these edges could have given."""
    # Unknown sums are NaN, for which every comparison is false.
    possible = ~np.logical_or.reduce(
        [low > high * _MORE for low, high in _rising(sums, lows, highs)]
    )
    possible &= (sums.count > 0) == (sums.weight > 0)
    possible &= sums.count == np.floor(sums.count)
    if not possible.all() or sum(sums.count.tolist()) > _LARGEST_COUNT:
        message = (
            f"a saved table's sums contradict each other: {(~possible).sum()} of {lows.size} bins "
            "have sums no rows can have. The file is damaged, or was written by another program."
        )
        raise InputError(message)


def _rising(s: Sums, lows: FloatArray, highs: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return pairs (a, b) with a <= b for any valid predictions, labels, and weights."""
    count = s.count.astype(np.float64)
    prob = s.label + s.residual
    rounding = s.weight * 1e-9
    return [
        (count * SMALLEST_WEIGHT, s.weight),
        (s.weight, count * LARGEST_WEIGHT),
        (s.weight**2, count * s.weight_sq),
        (s.weight_sq, s.weight**2),
        (s.label, s.weight),
        (s.residual_sq, s.weight),
        (abs(s.residual), np.sqrt(s.weight * s.residual_sq) + rounding),
        (abs(s.residual), np.sqrt(count * s.residual_var) + rounding),
        (s.residual_var, s.weight_sq),
        (s.prob_var, s.weight_sq / 4),
        (s.label_var, s.weight / 4),
        (s.repeated, count),
        (2 * s.repeated, s.votes),
        (s.votes, count * LARGEST_VOTES),
        (s.vote_floor, s.prob_var),
        (s.vote_noise, s.label_var),
        (s.hard_residual_sq, s.weight),
        (abs(s.hard_residual), np.sqrt(s.weight * s.hard_residual_sq) + rounding),
        (s.hard_residual_var, s.weight_sq),
        (s.outcome_prob_var, s.prob_var + rounding),
        (s.outcome_residual_var, s.residual_var + rounding),
        (lows * s.weight, prob + rounding),
        (prob, highs * s.weight + rounding),
    ]
