"""The loops in C++, built from `native/`. `softcal.table.numpy_kernel` implements the same.

`limits` is in `softcal.inference.intervals` instead, with arrays.
"""

from softcal._validation.arrays import Column
from softcal._validation.inputs import FloatArray

def sums(
    p: Column,
    y: Column,
    w: Column | None,
    m: Column | None,
    cell: Column | None,
    equal: int,
    first: int,
    starts: Column | None,
    upper: FloatArray | None,
    tolerance: float,
    tables: int,
    lines: int,
    out: FloatArray,
    threads: int,
    level: int = ...,
    /,
) -> bool: ...
def lattice(
    p: Column,
    y: Column,
    w: Column | None,
    cells: int,
    nodes: FloatArray,
    threads: int,
    level: int = ...,
    /,
) -> bool: ...
def top(
    p: Column,
    y: Column,
    tolerance: float,
    best: FloatArray,
    mass: FloatArray,
    threads: int,
    level: int = ...,
    /,
) -> bool: ...
def limits(
    weight: FloatArray,
    weight_sq: FloatArray,
    label: FloatArray,
    residual: FloatArray,
    residual_var: FloatArray,
    prob_var: FloatArray,
    label_var: FloatArray,
    votes: FloatArray,
    repeated: FloatArray,
    vote_floor: FloatArray,
    outcome_prob_var: FloatArray,
    outcome_residual_var: FloatArray,
    rows: int,
    ways: FloatArray,
    method: FloatArray,
    grid: FloatArray,
    out: FloatArray,
    /,
) -> bool: ...
def levels() -> list[str]: ...
