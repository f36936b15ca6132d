"""Files are written completely or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import softcal as sc
from softcal._io import written_whole

if TYPE_CHECKING:
    from pathlib import Path


def test_writes_are_atomic(tmp_path: Path) -> None:
    path = tmp_path / "new" / "table.csv"
    with written_whole(path) as beside:
        beside.write_text("whole")
        assert not path.exists()
        assert beside.suffix == ".csv"
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["table.csv"]  # noqa: PTH208


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("broken")])
def test_interrupt_keeps_the_existing_file(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")

    def write_half() -> None:
        with written_whole(path) as beside:
            beside.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write_half()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["table.csv"]  # noqa: PTH208


def test_full_disk_raises_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with pytest.raises(sc.InputError, match=r"cannot write .*: No space left"), written_whole(path):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    path, usual = tmp_path / "ours", tmp_path / "usual"
    usual.write_text("")
    with written_whole(path) as beside:
        beside.write_text("")
    assert path.stat().st_mode == usual.stat().st_mode
