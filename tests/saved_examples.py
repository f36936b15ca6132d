"""Valid examples of everything that softcal reads, and ways to corrupt them.

A fuzzer that starts from these gets past the first check of an entry point.
"""

from __future__ import annotations

import copy
import io
import json
import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import softcal as sc
from softcal.table.files import set_of, written

if TYPE_CHECKING:
    import random

LEAVES: tuple[Any, ...] = (
    0, 1, -1, 2, 0.5, -0.0, 1e-9, 5e-324, 1e100, 1e155, 1e300, -1e300, 1.7e308, math.nan, math.inf,
    -math.inf, 2**53, 2**62, 2**63, 2**64, -(2**63), 10**400, True, False, None, "", "x", "1", "\0",
    [], {}, [[]], [0], [[1], [1, 2]], {"count": 1}, [None],
)  # fmt: skip


@cache
def tables() -> tuple[dict[str, Any], ...]:
    """Return saved tables: with weights, votes, other bins, and without rows."""
    y, p = [0.0, 0.5, 1.0, 0.25, 0.75], [0.2, 0.4, 0.9, 0.9, 0.0]
    some = (
        sc.reliability(y, p, bins=3),
        sc.reliability(y, p, bins=[0, 0.3, 1], sample_weight=[1, 2, 0.5, 3, 0]),
        sc.reliability(y, p, bins=2, n_votes=[4, 4, 2, 4, 4]),
        sc.Reliability.empty(2),
    )
    return tuple(written(set_of(rel)) for rel in some)


@cache
def whole_sets() -> tuple[sc.TableSet, ...]:
    """Return sets with everything that a set may have: segments, weights, pairs, groups, classes..."""
    rows = pa.table({**_COLUMNS[1], "q": [0.25, 0.5, 0.75], "g": [1, 1, 2], "h": [1.0, 1.0, 1.0]})
    both, edges = ["p", "q"], [0, 0.5, 1]
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([1, 1, 1], (3, 9)).transpose(0, 2, 1).reshape(9, 9)
    of_classes = pa.table({
        **dict(zip("abcdefijk", shares, strict=True)), "s": list("xxyyyxyyx"),
        "g": [1, 1, 1, 2, 2, 3, 3, 3, 4],
    })  # fmt: skip
    models = {"m": ["a", "b", "c"], "n": ["d", "e", "f"]}
    label = sc.Classes(["i", "j", "k"], names=["1", "2", "3"])
    classes: dict[str, Any] = {"y_true": label, "y_prob": models, "bins": edges}
    ordered = classes | {"y_true": replace(label, ordered=True)}
    raw = sc.RawVotes("said", item="item", rater="who", positive=1, raters=True)
    voted = {
        "item": [1, 1, 2, 2, 3, 3], "p": [0.2, 0.2, 0.6, 0.6, 0.9, 0.9], "q": [0.5] * 6,
        "who": ["a", "b", "a", "c", "b", "c"], "said": [1, 0, 1, 1, 0, 1],
    }  # fmt: skip
    return (
        sc.scan(rows, y_true="y", y_prob=both, by=["s", "m"], sample_weight="w", bins=edges),
        sc.scan(rows, y_true="y", y_prob=both, by="s", groups="g", bins=edges),
        sc.scan(rows, y_true=sc.Shares("y", votes="m"), y_prob="p", date="2026-11-16"),
        sc.scan(of_classes, **classes, by="s"),
        sc.scan(of_classes, **ordered),
        sc.scan(of_classes, **ordered, groups="g"),
        sc.scan(pa.table(voted), y_true=raw, y_prob=both, bins=edges),
        sc.scan(rows, y_true=sc.Bounds("y", "h"), y_prob=both, by="s", bins=edges),
    )  # fmt: skip


@cache
def sets() -> tuple[dict[str, Any], ...]:
    """Return saved sets without a checksum, so that a spoiled one reaches the validation."""
    return tuple(written(each) for each in whole_sets())


@cache
def calibrators() -> tuple[dict[str, Any], ...]:
    """Return one saved calibrator of each method."""
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = np.clip(p**2 + 0.1 * rng.standard_normal(60), 0, 1)
    many = rng.dirichlet([1, 1, 1], 60)
    single = [
        sc.calibrators.TemperatureCalibrator(),
        sc.calibrators.PlattCalibrator(),
        sc.calibrators.BetaCalibrator(),
        sc.calibrators.IsotonicCalibrator(),
        sc.calibrators.HistogramCalibrator(3),
    ]
    of_classes = [
        sc.calibrators.TemperatureCalibrator(),
        sc.calibrators.VectorScalingCalibrator(),
        sc.calibrators.DirichletCalibrator(),
    ]
    found = [map_.fit(p, y).to_dict() for map_ in single]
    found += [
        map_.fit(many, many**2 / (many**2).sum(1, keepdims=True)).to_dict() for map_ in of_classes
    ]
    return tuple(found)


@cache
def files(suffix: str) -> tuple[bytes, ...]:
    """Return small files of rows in one format."""
    return tuple(_file(columns, suffix) for columns in _COLUMNS) + _ODD.get(suffix, ())


_COLUMNS: tuple[dict[str, list[Any]], ...] = (
    {"y": [0.5, 1.0, 0.0], "p": [0.25, 0.75, 0.125]},
    {"y": [0, 1, 1], "p": [0.5, 0.5, 1.0], "w": [1.0, 2.0, 0.0], "m": [3, 1, 2], "s": ["a", "b", "a"]},
    {"y": [True, False], "p": [0.1, 0.2], "s": [1, 2], "t": ['quo"te', "new\nline"]},
)  # fmt: skip

_ODD: dict[str, tuple[bytes, ...]] = {
    ".csv": (
        b"\xef\xbb\xbfy,p\r\n0.5,0.25\r\n",
        b"y,p,y\n1,0.2,3\n",
        b'y,"p",s\n1,0.2,"a,\nb"\n0,1,""\n',
        b"y,p\n,\nNA,nan\n1e-3,+.5\n",
        b"y,p\rtrue,1\rfalse,0\r",
    ),
    ".jsonl": (
        b'{"y": 1, "p": 0.5}\n{"p": 0.25, "y": null}\n',
        b'{"y": 0, "p": 1, "s": {"a": [1]}}\n\n{"y": 0.5, "p": 0}\n',
    ),
}


def _file(columns: dict[str, list[Any]], suffix: str) -> bytes:
    if suffix == ".jsonl":
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix in {".csv", ".tsv"}:
        mark = "," if suffix == ".csv" else "\t"
        rows_ = [list(columns), *map(list, zip(*columns.values(), strict=True))]
        return "".join(mark.join(map(_cell, row)) + "\n" for row in rows_).encode()
    table, sink = pa.table(columns), io.BytesIO()
    if suffix == ".parquet":
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def _cell(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",\n\t') else text


def as_bytes(saved: Any) -> bytes:
    """Return the bytes of a file with this content."""
    return json.dumps(saved).encode()


# Corruption


def spoiled(saved: Any, rng: random.Random) -> Any:
    """Change a saved object in a few places: replace, drop, move, or duplicate parts."""
    changed = copy.deepcopy(saved)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        places = list(_places(changed))
        if not places:
            return rng.choice(LEAVES)
        holder, key = rng.choice(places)
        _spoil(holder, key, rng, places)
    return changed


def _places(saved: Any) -> Any:
    """Yield everything that can be changed: its container, and its key or index."""
    keys = (
        saved.keys()
        if isinstance(saved, dict)
        else range(len(saved))
        if isinstance(saved, list)
        else ()
    )
    for key in keys:
        yield saved, key
        yield from _places(saved[key])


def _spoil(holder: Any, key: Any, rng: random.Random, places: list[Any]) -> None:
    if key not in (holder if isinstance(holder, dict) else range(len(holder))):
        return
    value, how = holder[key], rng.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif how == 2:
        other, place = rng.choice(places)
        if place in (other if isinstance(other, dict) else range(len(other))):
            holder[key] = copy.deepcopy(other[place])
    elif how == 3 and isinstance(holder, dict):
        holder[rng.choice(("count", "blocks", "x", key))] = holder.pop(key)
    elif how in (4, 5) and type(value) in (int, float):
        holder[key] = _nearby(value, rng)
    else:
        holder[key] = copy.deepcopy(rng.choice(LEAVES))


def _nearby(value: float, rng: random.Random) -> float:
    """Return a number that differs slightly or in size."""
    factor = rng.choice((1 + 1e-12, 1 - 1e-7, 0.9, -1, 2, 10, 1e10, 1e-10, 1e150, 1e-300))
    try:
        return value * factor
    except OverflowError:
        return math.inf
