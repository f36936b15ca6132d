"""Every entry point returns a correct result or raises `SoftcalError`: see `entry_points`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import entry_points
import frame_entry_points
import pytest
import saved_examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32)
AGAIN = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(max_examples=1000)
@given(SEEDS)
def test_columns(seed: int) -> None:
    entry_points.call_any(entry_points.OF_COLUMNS, seed)


@settings(max_examples=300)
@given(SEEDS)
def test_classes(seed: int) -> None:
    entry_points.call_any(entry_points.OF_CLASSES, seed, of_classes=True)


@settings(max_examples=500)
@given(SEEDS)
def test_inference(seed: int) -> None:
    entry_points.call_any(entry_points.OF_INFERENCE, seed)


@settings(max_examples=20)
@given(SEEDS)
def test_plans(seed: int) -> None:
    entry_points.call_any(entry_points.OF_PLANS, seed)


@settings(max_examples=200)
@given(SEEDS)
def test_tensors(seed: int) -> None:
    entry_points.call_any(entry_points.OF_TENSORS, seed)
    entry_points.call_any(entry_points.OF_CLASS_TENSORS, seed, of_classes=True)


@settings(max_examples=200)
@given(SEEDS)
def test_frames(seed: int) -> None:
    frame_entry_points.framed(seed)


@settings(max_examples=200)
@given(SEEDS)
def test_ordinal_decisions_and_checks(seed: int) -> None:
    entry_points.call_any(entry_points.OF_ORDINAL, seed, of_classes=True)
    entry_points.call_any(entry_points.OF_DECISIONS, seed)
    entry_points.call_any(entry_points.OF_CHECKS, seed)


@settings(max_examples=100)
@given(SEEDS)
def test_votes(seed: int) -> None:
    frame_entry_points.raters(seed)
    frame_entry_points.raw_votes(seed)


@settings(max_examples=60)
@given(SEEDS)
def test_audits_and_alarms(seed: int) -> None:
    frame_entry_points.audited(seed)
    frame_entry_points.watched(seed)


@settings(max_examples=20)
@given(SEEDS)
def test_queries(seed: int) -> None:
    frame_entry_points.queried(seed)


def test_shares_of_a_tiny_residual_are_finite() -> None:
    for seed in (2413, 24460, 38723, 56429):  # found by `make fuzz`
        frame_entry_points.queried(seed)


@settings(AGAIN, max_examples=50)
@given(seed=SEEDS)
def test_options(seed: int, tmp_path: Path) -> None:
    entry_points.options(seed, tmp_path)


def spoiled_bytes(good: bytes, seed: int) -> bytes:
    """Change, delete, duplicate, or move a few bytes."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    data = bytearray(good)
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 4, 20)))
        odd = rng.choice(
            (b"", b"\xff", b"\0", b'"', b"\n", b"\r", b",", b"nan", b"1e999", b"null", b"-")
        )
        data[start:end] = rng.choice((odd, odd, bytes(data[start:end]) * 2, data[:3]))
    return bytes(data)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
@AGAIN
@given(seed=SEEDS)
def test_files(suffix: str, seed: int, tmp_path: Path) -> None:
    good = saved_examples.files(suffix)
    entry_points.rows_file(spoiled_bytes(good[seed % len(good)], seed), suffix, tmp_path)


@settings(AGAIN, max_examples=15)
@given(seed=SEEDS)
def test_commands(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)  # noqa: S311 - nobody's secret
    data = spoiled_bytes(rng.choice(saved_examples.files(".csv")), seed)
    entry_points.scored_file(data, ".csv", tmp_path)
    entry_points.applied_file(data, saved_examples.calibrators()[0], ".csv", tmp_path)
    saved = saved_examples.spoiled(rng.choice(saved_examples.sets()), rng)
    entry_points.merged_file(saved_examples.as_bytes(saved), tmp_path)
    map_ = saved_examples.spoiled(rng.choice(saved_examples.calibrators()), rng)
    entry_points.applied_calibrator(saved_examples.as_bytes(map_), tmp_path)


@settings(AGAIN, max_examples=400)
@given(seed=SEEDS)
def test_saved_sets(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)  # noqa: S311 - nobody's secret
    good = rng.choice((*saved_examples.sets(), *saved_examples.tables()))
    spoiled = saved_examples.spoiled(good, rng)
    entry_points.saved_set(saved_examples.as_bytes(spoiled), tmp_path)


@settings(max_examples=1000)
@given(SEEDS)
def test_saved_calibrators(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - nobody's secret
    entry_points.saved_calibrator(
        saved_examples.spoiled(rng.choice(saved_examples.calibrators()), rng)
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".arrow"])
def test_valid_examples_are_accepted(suffix: str, tmp_path: Path) -> None:
    """Else a fuzzer that starts from them would never get past the first check."""
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(saved_examples.files(suffix)[0])
    assert entry_points.command(["score", str(path), "--label", "y", "--pred", "p"]) is not None


def test_saved_examples_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    for saved in (*saved_examples.sets(), *saved_examples.tables()[:-1]):  # the last is empty
        path.write_bytes(saved_examples.as_bytes(saved))
        assert entry_points.command(["merge", str(path)]) is not None
    source = tmp_path / "rows.csv"
    source.write_bytes(saved_examples.files(".csv")[0])
    for saved in saved_examples.calibrators()[:6]:
        path.write_bytes(saved_examples.as_bytes(saved))
        to = ["-o", str(tmp_path / "out.csv")]
        assert (
            entry_points.command(["apply", str(path), str(source), "--pred", "p", *to]) is not None
        )
