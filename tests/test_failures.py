"""Failures: full disks, corrupted files, concurrent writers; remaining files and messages."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import csv

import softcal as sc
from softcal import cli
from softcal._io import written_whole
from softcal.scanning import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Refused = Callable[..., str]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX files, pipes and permissions")

COLUMNS = ("--label", "y", "--pred", "p")
EVERY_COMMAND = [
    ("score", "DATA", *COLUMNS),
    ("score", "DATA", "--label-low", "y", "--label-high", "y", "--pred", "p"),
    ("score", "DATA", "--label-columns", "y,q", "--pred-columns", "p,r"),
    ("compare", "DATA", *COLUMNS, "--pred", "q"),
    ("report", "DATA", *COLUMNS, "-o", "FOLDER/report.html"),
    ("recalibrate", "DATA", *COLUMNS, "-o", "FOLDER/calibrator.json"),
    ("apply", "CALIBRATOR", "DATA", "--pred", "p", "-o", "FOLDER/out.SUFFIX"),
    ("apply", "CALIBRATOR", "DATA", "--pred", "p", "-o", "FOLDER/out.tsv"),
]
THAT_WRITE = [
    ("score", "DATA", *COLUMNS, "--bins", "2000", "--save", "FOLDER/old"),
    ("merge", "SAVED", "-o", "FOLDER/old"),
    ("report", "DATA", *COLUMNS, "-o", "FOLDER/old"),
    ("recalibrate", "DATA", *COLUMNS, "--method", "isotonic", "-o", "FOLDER/old"),
    ("apply", "CALIBRATOR", "DATA", "--pred", "p", "-o", "FOLDER/old.csv"),
    ("apply", "CALIBRATOR", "DATA", "--pred", "p", "-o", "FOLDER/old.parquet"),
]
OLD = ("old", "old.csv", "old.parquet")


class Bench:
    """Input files, an output folder, and commands that use them."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        p = rng.random(3000)
        self.table = pa.table(
            {"y": np.minimum(p, 1 - p), "q": 1 - np.minimum(p, 1 - p), "p": p, "r": 1 - p}
        )
        self.folder = folder / "out"
        self.folder.mkdir()
        self.data = folder / "data.parquet"
        pq.write_table(self.table, self.data, row_group_size=500)
        self.calibrator = folder / "calibrator.json"
        map_ = sc.calibrators.PlattCalibrator().fit(p, p)
        self.calibrator.write_text(json.dumps(map_.to_dict()), encoding="utf-8")
        self.saved = folder / "saved.json"
        self.run("score", self.data, *COLUMNS, "--bins", "2000", "--save", self.saved)

    def run(self, *arguments: object, data: Path | None = None) -> int:
        """Run a command in this folder; words in capitals stand for files."""
        return cli.run(self.filled(*arguments, data=data))

    def filled(
        self, *arguments: object, data: Path | None = None, folder: Path | None = None
    ) -> list[str]:
        path = data or self.data
        words = {
            "DATA": str(path),
            "SUFFIX": path.suffix[1:],
            "FOLDER": str(folder or self.folder),
            "CALIBRATOR": str(self.calibrator),
            "SAVED": str(self.saved),
        }
        out = []
        for argument in map(str, arguments):
            for word, meaning in words.items():
                argument = argument.replace(word, meaning)  # noqa: PLW2901
            out.append(argument)
        return out


def let_anybody_reach(folder: Path) -> None:
    """Make a temporary folder and its parents accessible."""
    for reached in (folder, *folder.parents):
        if reached == folder or reached.name.startswith(("pytest-", "popen-")):
            reached.chmod(0o755)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("bench")
    let_anybody_reach(folder)
    return Bench(folder)


@pytest.fixture
def bench(prepared: Bench, capsys: pytest.CaptureFixture[str]) -> Iterator[Bench]:
    capsys.readouterr()
    yield prepared
    for path in prepared.folder.iterdir():
        path.unlink()


@pytest.fixture
def refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must fail with a one-line message and leave no file."""

    def run(*arguments: object, data: Path | None = None) -> str:
        assert bench.run(*arguments, data=data) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("softcal: error: ")
        assert shown.err.count("\n") == 1
        assert list(bench.folder.iterdir()) == []
        return shown.err

    return run


# Reading


def spoilt(table: pa.Table, folder: Path) -> dict[str, Path]:
    """Write files that are corrupted in different ways."""
    paths = {name: folder / f"{name}.parquet" for name in ("cut", "torn", "empty")}
    pq.write_table(table, paths["cut"])
    whole = paths["cut"].read_bytes()
    paths["cut"].write_bytes(whole[: len(whole) // 2])
    pq.write_table(table, paths["torn"], compression="snappy", write_page_checksum=True)
    torn = bytearray(paths["torn"].read_bytes())
    for start in pq.ParquetFile(paths["torn"]).metadata.row_group(0).to_dict()["columns"]:
        place = start["data_page_offset"]
        torn[place + 40 : place + 400] = bytes(360)
    paths["torn"].write_bytes(torn)
    paths["empty"].write_bytes(b"")
    lines = ["y,q,p,r", *(",".join(map(repr, row.values())) for row in table.to_pylist())]
    paths["row cut"] = folder / "row cut.csv"
    paths["row cut"].write_text("\n".join(lines)[:-30], encoding="utf-8")
    paths["no header"] = folder / "no header.csv"
    paths["no header"].write_bytes(b"")
    paths["fifo"] = folder / "fifo.csv"
    os.mkfifo(paths["fifo"])
    paths["device"] = folder / "device.csv"
    paths["device"].symlink_to("/dev/zero")
    paths["absent"] = folder / "absent.csv"
    paths["folder"] = folder / "folder.parquet"
    paths["folder"].mkdir()
    return paths


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=lambda c: f"{c[0]} {c[-1][-5:]}")
def test_a_broken_file_is_named_and_nothing_is_written(
    bench: Bench, refused: Refused, tmp_path: Path, command: tuple[str, ...]
) -> None:
    for path in spoilt(bench.table, tmp_path).values():
        said = refused(*command, data=path)
        assert path.stem in said, said
        assert len(said) < 500


def test_a_broken_saved_table_or_calibrator_is_named(
    bench: Bench, refused: Refused, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for path, whole in ((bench.saved, "merge"), (bench.calibrator, "apply")):
        cut = tmp_path / f"cut {path.name}"
        cut.write_bytes(path.read_bytes()[:-40])
        for broken in (cut, tmp_path / "absent.json", tmp_path, pipe):
            arguments = [whole, broken]
            if whole == "apply":
                arguments += ["DATA", "--pred", "p"]
            assert str(broken) in refused(*arguments, "-o", "FOLDER/out.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["grows", "vanishes", "is replaced", "is written in place"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, suffix: str, how: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"data.{suffix}"
    y = rng.random(400_000)
    columns = pa.table({"y": y, "p": y})
    if suffix == "parquet":
        pq.write_table(columns, path, row_group_size=10_000)
    else:
        csv.write_csv(columns, path)

    def change() -> None:
        if how == "grows":
            with path.open("ab") as more:
                more.write(b"0.5,0.5\n")
        elif how == "vanishes":
            path.unlink()
        elif how == "is written in place":
            time.sleep(0.5)  # until the threads that read ahead wait
            before = path.stat()
            path.write_bytes(path.read_bytes())
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            path.with_suffix(".new").write_bytes(path.read_bytes())
            path.with_suffix(".new").replace(path)

    counting, changes = stream._counting, [change]

    def changing(batch: Any) -> Any:
        if changes:
            changes.pop()()
        return counting(batch)

    monkeypatch.setattr(stream, "_counting", changing)
    with pytest.raises(sc.InputError, match=r"changed while it was being read|no such file"):
        sc.scan(path, y_true="y", y_prob="p")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop the privileges of root temporarily."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """Return a folder that every user can access."""
    let_anybody_reach(tmp_path)
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=lambda c: f"{c[0]} {c[-1][-5:]}")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_unreadable_file_is_named(
    bench: Bench, open_folder: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...],
    suffix: str,
) -> None:  # fmt: skip
    path = open_folder / f"secret.{suffix}"
    if suffix == "csv":
        csv.write_csv(bench.table, path)
    else:
        pq.write_table(bench.table, path)
    arguments = bench.filled(*command, data=path, folder=open_folder)
    assert cli.run(arguments) == 0  # import everything before privileges are dropped
    for written in set(open_folder.iterdir()) - {path}:
        written.unlink()
    path.chmod(0)
    capsys.readouterr()
    with as_nobody():
        assert cli.run(arguments) == 2
    said = capsys.readouterr().err
    assert f"cannot read {path}: " in said
    assert "Permission denied" in said
    assert list(open_folder.iterdir()) == [path]


# Writing


def listing(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, including hidden files."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["full", "read-only", "forbidden"])
def bad_folder(request: pytest.FixtureRequest, open_folder: Path) -> Iterator[Path]:
    """Return a folder with existing files to which nothing can be written."""
    folder = open_folder / request.param
    folder.mkdir()
    mounted = request.param != "forbidden"
    if mounted:
        mount = ["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603
            pytest.skip("needs the right to mount a file system")
    try:
        for name in OLD:
            (folder / name).write_bytes(b"old")
        if request.param == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)  # noqa: S603, S607
        if not mounted:
            folder.chmod(0o555)
        with nullcontext() if mounted else as_nobody():
            yield folder
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("command", THAT_WRITE, ids=lambda c: f"{c[0]} {c[-1][7:]}")
def test_failed_write_keeps_the_existing_file(
    bench: Bench, bad_folder: Path, capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:  # fmt: skip
    before = listing(bad_folder)
    assert len(before) == len(OLD)
    capsys.readouterr()
    assert cli.run(bench.filled(*command, folder=bad_folder)) == 2
    said = capsys.readouterr().err
    assert f"cannot write {bad_folder}" in said
    assert re.search("No space left|it is write-protected|Permission denied", said)
    assert said.count("\n") == 1
    assert listing(bad_folder) == before


@pytest.mark.parametrize("bad_folder", ["full"], indirect=True)
@pytest.mark.parametrize("command", ["paper", "demo"])
def test_failure_among_several_outputs_leaves_only_complete_files(
    bad_folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    before = listing(bad_folder)
    assert cli.run([command, "-o", str(bad_folder)]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert said.count("\n") == 1
    after = listing(bad_folder)
    assert {name: after.pop(name) for name in before} == before
    assert [Path(name).name for name in after] == (
        ["experiment_1.csv"] if command == "paper" else []
    )
    assert all(text.endswith(b"\n") for text in after.values())


@pytest.fixture(scope="module")
def warm(prepared: Bench, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run every command once, to import everything before privileges are dropped."""
    folder = tmp_path_factory.mktemp("warm")
    for command in THAT_WRITE:
        assert cli.run(prepared.filled(*command, folder=folder)) == 0


def test_output_that_is_not_a_regular_file_is_refused(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Above all a device: a program run by root could replace /dev/null."""
    folder, pipe = bench.folder / "folder", bench.folder / "pipe"
    device = bench.folder / "null"
    for path in (folder, pipe, device):
        if path is folder:
            path.mkdir()
        elif path is pipe:
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/null")
        kind = stat.S_IFMT(path.stat().st_mode)
        assert bench.run("score", "DATA", *COLUMNS, "--save", path) == 2
        assert "it is not a file" in capsys.readouterr().err
        assert stat.S_IFMT(path.stat().st_mode) == kind
        assert os.listdir(bench.folder) == [path.name]  # noqa: PTH208
        path.rmdir() if path is folder else path.unlink()


VOTES = ("--votes-file", "VOTES", "--item", "i", "--vote", "v", "--positive", "yes", "--pred", "p")
WRITERS = [
    ("scan", "-o", *VOTES),
    ("score", "--save", *VOTES),
    ("report", "-o", *VOTES),
    ("plot", "-o", *VOTES),
    ("watch", "-o", *VOTES, "--day", "day"),
    ("watch", "--plot", *VOTES, "--day", "day"),
    ("decide", "--plot", *VOTES, "--threshold", "0.5"),
    ("route", "--plot", *VOTES, "--max-disagreement", "0.5"),
    ("audit", "-o", *VOTES, "--by", "day"),
    ("recalibrate", "-o", *VOTES, "--method", "platt"),
]


@pytest.mark.parametrize("command", WRITERS, ids=lambda words: " ".join(words[:2]))
def test_no_command_writes_over_a_file_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    name, option, *others = command
    # The formats of figures and pages are recognized by name, those of rows by content.
    suffix = ".svg" if "plot" in f"{name} {option}" else ".html"
    votes, rows = (tmp_path / f"{which}{suffix}" for which in ("votes", "rows"))
    votes.write_text("i,v\n" + "".join(f"{k // 2},{'no' if k % 3 else 'yes'}\n" for k in range(60)))
    rows.write_text(
        "i,p,day\n" + "".join(f"{k},0.{k % 9},2026-01-0{1 + k % 3}\n" for k in range(30))
    )
    (tmp_path / "other").mkdir()
    linked, hard, new = (tmp_path / "other" / f"{which}{suffix}" for which in ("a", "b", "new"))
    linked.symlink_to(votes)
    hard.hardlink_to(rows)
    before = votes.read_bytes(), rows.read_bytes()
    data = f"{tmp_path}/row*{suffix}"
    line = [name, data, *(str(votes) if word == "VOTES" else word for word in others), option]
    for output in (votes, linked, tmp_path / "other" / ".." / votes.name, rows, hard):
        assert cli.run([*line, str(output)]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "must not be a file that the command reads" in shown.err
        assert (votes.read_bytes(), rows.read_bytes()) == before
    new.write_text("it is replaced, because it is not read")
    assert cli.run([*line, str(new)]) in (0, 1)


def test_every_output_option_is_tested_for_overwriting() -> None:
    app = typer.main.get_command(cli.app_of())
    found = {
        (name, option)
        for name, command in app.commands.items()  # type: ignore[attr-defined]
        for param in command.params
        for option in param.opts
        if option in ("-o", "--save", "--plot")
    }
    elsewhere = {("merge", "-o"), ("apply", "-o"), ("inspect", "-o")}  # tested below
    without_input = {("demo", "-o"), ("paper", "-o")}
    assert found == {words[:2] for words in WRITERS} | elsewhere | without_input


def test_an_output_that_is_an_input_is_refused(bench: Bench, refused: Refused) -> None:
    before = bench.data.read_bytes()
    linked = bench.data.with_name("linked.parquet")
    linked.symlink_to(bench.data)
    for name in (bench.data, linked):
        for command in EVERY_COMMAND[-3:]:
            said = refused(*command[:-1], name)
            assert f"{name} must not be a file that the command reads: it is {bench.data}" in said
        assert "must not be a file that the command reads" in refused("inspect", "DATA", "-o", name)
    linked.unlink()
    folder = bench.data.with_name("folder.parquet")
    folder.mkdir()
    member = folder / "part-0.parquet"
    member.hardlink_to(bench.data)
    assert f"it is {member}" in refused("scan", folder, *COLUMNS, "-o", member)
    member.unlink()
    folder.rmdir()
    saved = (bench.calibrator.read_bytes(), bench.saved.read_bytes())
    csv_ = bench.calibrator.with_name("calibrator.csv")
    csv_.write_bytes(saved[0])
    said = refused("apply", csv_, "DATA", "--pred", "p", "-o", csv_)
    assert "must not be a file that the command reads" in said
    for command in (("merge", "SAVED", "-o"), ("score", "SAVED", "--save")):
        assert "must not be a file that the command reads" in refused(*command, bench.saved)
    assert csv_.read_bytes() == saved[0]
    csv_.unlink()
    assert (bench.calibrator.read_bytes(), bench.saved.read_bytes()) == saved
    assert bench.data.read_bytes() == before


def test_missing_input_is_reported_before_an_existing_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.softcal"
    out.write_text("old")
    for data, said in (("none.csv", "no such file"), ("none*.csv", "no data in"), ("", "no data")):
        line = ["scan", str(tmp_path / data), *COLUMNS, "-o", str(out)]
        assert cli.run(line) == 2
        assert said in capsys.readouterr().err
    assert out.read_text() == "old"


def test_redirected_standard_input_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n" + "0.5,0.4\n" * 20)
    before = path.read_bytes()
    command = [sys.executable, "-m", "softcal", "scan", "-", *COLUMNS, "-o", str(path)]
    with path.open() as file:
        found = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == 2
    assert "must not be a file that the command reads: it is standard input" in found.stderr
    assert path.read_bytes() == before


def test_symlink_output_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in ("created", "replaced"):  # at first the link is dangling
        with written_whole(link) as beside:
            beside.write_text(text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["link", "target", "there"]


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o640)
    with written_whole(path) as beside:
        assert (
            stat.S_IMODE(beside.stat().st_mode) & 0o007 == 0
        )  # not readable by others while it is written
        beside.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o640)


def test_a_protected_file_is_not_replaced(open_folder: Path) -> None:
    path = open_folder / "protected"
    path.write_text("old")
    path.chmod(0o444)
    with as_nobody(), pytest.raises(sc.InputError, match="write-protected"):  # noqa: SIM117
        with written_whole(path) as beside:
            beside.write_text("new")
    assert path.read_text() == "old"


def test_longest_possible_file_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".csv")
    with written_whole(path) as beside:
        beside.write_text("whole")
    assert path.read_text() == "whole"


def test_concurrent_writers_both_succeed(bench: Bench, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    other = tmp_path / "other.parquet"
    pq.write_table(bench.table.slice(0, 2000), other, row_group_size=100)
    command = [sys.executable, "-m", "softcal"]
    started = [
        subprocess.Popen(  # noqa: S603
            [*command, *bench.filled("apply", "CALIBRATOR", data, "--pred", "p", "-o", output)]
        )
        for data in (bench.data, other) * 2
    ]
    assert [process.wait(timeout=300) for process in started] == [0] * 4
    assert pq.read_table(output).num_rows in (2000, 3000)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out.parquet", "other.parquet"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "DATA", *COLUMNS, "--format", "json"),
        ("score", "DATA", *COLUMNS, "--bins", "2000"),
        ("score", "--help"),
        ("--version",),  # so short that it is written at exit
    ],
)
def test_broken_pipe_exits_quietly(bench: Bench, arguments: tuple[str, ...]) -> None:
    words = [str(bench.data) if word == "DATA" else word for word in arguments]
    command = [sys.executable, "-m", "softcal", *words]
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141  # 128 + SIGPIPE, as for other programs; 1 would be an alarm


def test_broken_pipe_of_watch_is_not_an_alarm(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("y,p,day\n" + "".join(f"1,0.5,{k}\n" for k in range(9)))
    command = [sys.executable, "-m", "softcal", "watch", str(tmp_path / "d.csv"), "--day", "day"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--label", "y", "--pred", "p"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 141


@pytest.mark.parametrize("error", ["RuntimeError", "MemoryError", "RecursionError", "OSError"])
def test_unexpected_error_exits_with_2(error: str) -> None:
    """1 is the exit code of an alarm and of a failed check."""
    code = (
        "import sys\nfrom softcal import cli\nfrom softcal.__main__ import main\n"
        f"def fails(*_, **__): raise {error}('odd')\n"
        "cli.app_of = lambda names: fails\nsys.argv = ['softcal', 'watch']\nmain()\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    if error != "OSError":  # as for a file that cannot be read
        assert done.stderr.startswith("Traceback")
        assert f"{error}: odd\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("softcal: error: ")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_exits_with_2_after_an_error(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong in (["--none"], ["none.csv", "none.csv", "none.csv", "--label"], ["-o"]):
        assert cli.run([command, *wrong]) == 2
    assert capsys.readouterr().err.count("softcal: error: ") == 3


@pytest.mark.parametrize("to", ["/dev/full", "closed"])
def test_error_that_cannot_be_printed_exits_with_2(to: str) -> None:
    command = [sys.executable, "-m", "softcal", "score", "none.csv", "--label", "y", "--pred", "p"]
    read, write = os.pipe()
    os.close(read)
    stream = write if to == "closed" else os.open(to, os.O_WRONLY)
    assert subprocess.run(command, stderr=stream, check=False).returncode == 2  # noqa: S603
    os.close(stream)
