"""A PostgreSQL server for tests, in a folder of its own and without a network."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pc

from softcal.scanning.query_result import SEGMENT, TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((each for each in folders if (each / "psql").exists()), None)


class Server(NamedTuple):
    """A running server."""

    folder: Path
    bin: Path

    def run(self, statement: str, rows: str = "") -> bytes:
        """Run a statement, which may read rows of CSV or return them."""
        line: list[Any] = [
            self.bin / "psql",
            "-h",
            self.folder,
            "-U",
            "postgres",
            "-X",
            "-q",
            "-c",
            statement,
        ]
        done = subprocess.run(line, input=rows.encode(), capture_output=True, check=False)  # noqa: S603
        if done.returncode:
            raise RuntimeError(done.stderr.decode()[:2000])
        return done.stdout

    def load(self, name: str, rows: pa.Table) -> None:
        """Create a table of these rows."""
        kinds = {pa.float64(): "DOUBLE PRECISION", pa.int64(): "INTEGER"}
        columns = ", ".join(f'"{each.name}" {kinds.get(each.type, "TEXT")}' for each in rows.schema)
        text = StringIO()
        values = [["\\N" if x is None else x for x in each.to_pylist()] for each in rows.columns]
        csv.writer(text).writerows(zip(*values, strict=True))
        self.run(f"DROP TABLE IF EXISTS {name}")
        self.run(f"CREATE TABLE {name} ({columns})")
        self.run(f"COPY {name} FROM STDIN WITH (FORMAT csv, NULL '\\N')", text.getvalue())

    def table(self, query: str) -> Any:
        """Return the result of a query as an Arrow table, with texts that are not guessed."""
        text = self.run(f"COPY ({query}) TO STDOUT WITH (FORMAT csv, HEADER)")
        names = text.decode().partition("\n")[0].split(",")
        texts = [name for name in names if name in TEXTS or name.startswith(SEGMENT)]
        how = pc.ConvertOptions(
            column_types=dict.fromkeys(texts, "string"), strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )  # fmt: skip
        return pc.read_csv(BytesIO(text), convert_options=how)


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Start a server with its files in a folder that others may enter: it refuses to run as root."""
    place = programs()
    assert place is not None
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    run: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": folder, **user}
    data, log = folder / "data", folder / "log"
    first: list[Any] = [place / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*first, "--no-sync"], check=True, **run)  # noqa: S603
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    control: list[Any] = [place / "pg_ctl", "-D", data, "-w", "-l", log]
    subprocess.run([*control, "-o", options, "start"], check=True, **run)  # noqa: S603
    try:
        yield Server(folder, place)
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, **run)  # noqa: S603
