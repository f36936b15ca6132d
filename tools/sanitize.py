"""Fuzz the C++ loops with AddressSanitizer and UndefinedBehaviorSanitizer: `make sanitize`.

Each try calls an entry point with columns of random types, shapes, and strides, with valid and
invalid values, and sometimes with arguments that contradict each other. The sanitizers end the
process at the first access out of bounds and the first undefined operation. Valid calls must also
give the same bytes with every instruction set.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from hatch_build import build

KINDS = "?bBhHiIlLqQefd"
BAD = (np.nan, np.inf, -np.inf, -1.0, 2.0, 1e300, -5e-324, 1e-310)


def main() -> None:
    """Build with the sanitizers, and fuzz in a process that loads them first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        fuzz(_loaded(asked.inside), asked.seconds, np.random.default_rng(asked.seed))
        return
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder), sanitize=True)
        if built is None:
            sys.exit("sanitize: a C++ compiler with the sanitizers is needed")
        libraries = [_library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
        settings = {
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        }
        command = [sys.executable, __file__, "--inside", str(built)]
        command += ["--seconds", str(asked.seconds), "--seed", str(asked.seed)]
        sys.exit(subprocess.run(command, env=os.environ | settings, check=False).returncode)  # noqa: S603


def _library(name: str) -> str:
    command = ["g++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("softcal._native", path)
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    return native


def fuzz(native: Any, seconds: float, rng: np.random.Generator) -> None:
    """Call entry points for that many seconds."""
    tries, refused, invalid, end = 0, 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        make = (_sums, _sums, _lattice, _top, _limits)[int(rng.integers(5))]
        arguments, out = make(rng)
        cut = make is _sums and arguments[7] is not None  # bins must be searched for
        changed = int(rng.integers(len(arguments))) if rng.random() < 0.1 else -1
        if changed >= 0:
            arguments[changed] = _anything(rng)
        elif cut and rng.random() < 0.1:
            changed = 7
            _break(arguments[7:9], rng)
        found = set()
        for level in range(len(native.levels())):
            chosen = () if make is _limits else (level,)
            try:
                valid = getattr(native, make.__name__[1:])(*arguments, *chosen)
            except (TypeError, ValueError, OverflowError, BufferError, MemoryError):
                refused += 1
                break
            invalid += not valid
            found.add(b"".join(each.tobytes() for each in out) if valid else b"")
            for each in out:
                each[...] = 0
        if len(found) > 1 and not (cut and changed in range(5, 9)):
            sys.exit(f"sanitize: levels differ in {make.__name__[1:]}: {arguments}")
        tries += 1
    sys.stdout.write(f"{tries} tries, {refused} refused, {invalid} with bad values; no finding\n")


def _break(tables: list[Any], rng: np.random.Generator) -> None:
    """Change a number of the tables that locate bins; no address may be wrong then."""
    for table, values in zip(tables, ([-(1 << 40), -1, 1, 1 << 40], BAD), strict=True):
        if rng.random() < 0.7:
            table.flat[int(rng.integers(table.size))] = rng.choice(values)


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    rows = int(rng.choice([0, 1, 2, 3, 5, 63, 64, 65, 255, 257, 1030, 5000]))
    if rng.random() < 0.02:
        rows = 140_001  # more than one block, so that threads are used
    return (rows, int(rng.integers(1, 6))) if rng.random() < 0.3 else (rows,)


def _column(rng: np.random.Generator, shape: tuple[int, ...], low: float = 0) -> Any:
    """Return numbers of a random type and stride, perhaps unaligned or reversed."""
    kind = KINDS[int(rng.integers(len(KINDS)))] if rng.random() < 0.6 else "d"
    values = rng.random(shape) if kind in "efd" else rng.integers(0, 2, shape)
    values = (values + low * rng.integers(0, 4, shape)).astype(kind)
    if kind in "efd" and values.size and rng.random() < 0.2:
        with np.errstate(over="ignore"):
            values.flat[int(rng.integers(values.size))] = rng.choice(BAD)
    layout = int(rng.integers(6))
    if layout == 0:
        return np.repeat(values, 3, axis=0)[::3]
    if layout == 1:
        return values[::-1]
    if layout == 2 and len(shape) == 2:
        return np.asfortranarray(values)
    if layout == 3:
        unaligned = np.zeros(shape, dtype=[("x", "i1"), ("v", values.dtype)])
        unaligned["v"] = values
        return unaligned["v"]
    if layout == 4 and values.size and kind != "e":
        return _without_strides(values)
    return values


def _without_strides(values: Any) -> Any:
    """Return a ctypes array, whose buffer has no strides."""
    kind: Any = np.ctypeslib.as_ctypes_type(values.dtype)
    for size in values.shape[::-1]:
        kind *= size
    return kind.from_buffer_copy(values.tobytes())


def _anything(rng: np.random.Generator) -> Any:
    pool = (
        None,
        -1,
        0,
        7,
        1 << 62,
        1 << 63,
        "x",
        b"bytes",
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.array("a"),
        np.array(0.5),
        ctypes.c_double(0.5),
        (ctypes.c_double * 3)(),
        memoryview(bytearray(40)).cast("d")[::-1],
        np.broadcast_to(0.5, 1 << 59),
    )
    return pool[int(rng.integers(len(pool)))]


def _sums(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    shape = _shape(rng)
    row = shape[:1]
    equal, first, starts, upper = int(rng.choice([1, 2, 10, 33, 200, 3600])), 0, None, None
    n_bins = equal
    if rng.random() < 0.5:
        upper = np.append(np.sort(rng.random(n_bins - 1)), np.inf)
        if rng.random() < 0.5 and n_bins > 2:
            first, upper = 3, np.append(np.arange(1, n_bins) / n_bins, np.inf)
            upper = np.sort(np.append(upper, rng.random(3) / n_bins))
        else:
            equal = 0
        n_bins = upper.size
        starts = upper[:-1].searchsorted(np.arange(65) / 64, side="right")
        starts = np.append(starts, starts[-1]).astype(np.intp)
    tables = shape[1] if len(shape) == 2 else 1
    cell = None
    if len(shape) == 1 and rng.random() < 0.3:
        tables = int(rng.integers(1, 5))
        cell = rng.integers(0, tables, shape)
    lines = int(rng.choice([2, 18]))
    out = np.zeros((tables, lines, n_bins))
    w = _column(rng, row) if rng.random() < 0.4 else None
    m = _column(rng, row, 1) if rng.random() < 0.4 else None
    threads, tolerance = int(rng.integers(1, 4)), float(rng.choice([1e-3, np.inf]))
    arguments = [_column(rng, shape), _column(rng, shape), w, m, cell, equal, first, starts, upper]
    return [*arguments, tolerance, tables, lines, out, threads], [out]


def _lattice(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    row = _shape(rng)[:1]
    cells = int(rng.choice([1, 2, 64, 16_384]))
    nodes = np.zeros(cells + 6)
    w = _column(rng, row) if rng.random() < 0.4 else None
    return [_column(rng, row), _column(rng, row), w, cells, nodes, int(rng.integers(1, 4))], [nodes]


def _top(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    shape = _shape(rng)
    out = [np.zeros(shape[0]), np.zeros(shape[0])]
    columns = [_column(rng, shape), _column(rng, shape)]
    return [*columns, float(rng.choice([1e-3, np.inf])), *out, int(rng.integers(1, 4))], out


def _limits(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    n_bins = int(rng.choice([0, 1, 2, 10, 11, 300]))
    out = np.zeros(13)
    sums = [np.array(_column(rng, (n_bins,)), float)[:: rng.choice([-1, 1])] for _ in range(12)]
    ways = rng.choice([1.0, 2.0, 5.0, n_bins, n_bins + 1, np.nan], int(rng.integers(0, 8)))
    grid = np.sort(rng.random(int(rng.choice([0, 2, 4, 5, 64]))) * 3)
    return [*sums, int(rng.integers(0, 100)), ways, rng.random(7), grid, out], [out]


if __name__ == "__main__":
    main()
