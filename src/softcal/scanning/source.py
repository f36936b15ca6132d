"""Open any source as rows: files and frames in memory in DuckDB, and engines where they are.

A source gives columns by name. Each is used as numbers or as values. The frame of a source has the
columns c0, c1, ... in the order of their uses. Beside a number that is stored as text, t0, t1, ...
says whether the text is no number.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import narwhals.stable.v2 as nw

from softcal._display import did_you_mean, keyword
from softcal.exceptions import InputError, InputTypeError
from softcal.scanning.data import Files, are_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Frame: TypeAlias = "nw.LazyFrame[Any]"
"""Rows of any engine."""

Kind: TypeAlias = Literal["number", "text", "list", "value"]
"""What a column holds: numbers or Booleans, text, lists, or other single values."""

Answer = TypeVar("Answer")

AT, RAW = "at", "x"
"""In numbered rows: the file and the row of each, in one number; and the start of texts' names."""

ROW_BITS = 40
MISSING_WORDS = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "NULL", "null", "NaN", "nan", "-NaN", "-nan", "<NA>",
    "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip
"""The texts that stand for a missing number."""

_MOST_COLUMNS = 1 << 16


class Use(NamedTuple):
    """How a column is used: as numbers, as numbers that may have a percent sign, or as values."""

    name: str
    as_: Literal["number", "percent", "value"]


class Part(NamedTuple):
    """Rows of one place: a relation of DuckDB, and its column of each name."""

    relation: Callable[[], Any]
    own: Mapping[str, str]  # an expression of SQL for each name
    place: str = ""  # of a file; empty for a frame


class Source:
    """Rows in DuckDB, or in another engine."""

    con: Any  # of DuckDB, for rows in it
    names: list[str]
    place: str

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        raise NotImplementedError

    def frame(self, uses: Sequence[Use]) -> Frame:
        """Return the rows."""
        raise NotImplementedError

    def list_length(self, name: str) -> int:
        """Return the length of the first list of a column; 0 if there is none."""
        raise NotImplementedError

    @property
    def is_here(self) -> bool:
        """Whether rows are cheap to stream into this process."""
        return True

    @property
    def files(self) -> list[str]:
        """The files, in order; empty for a frame."""
        return []

    def is_time(self, name: str) -> bool:
        """Return whether a column holds times."""
        raise NotImplementedError

    def parsed(self, name: str) -> bool:
        """Return whether numbers of a column are parsed from text."""
        del name
        return False

    def given(self, table: Any, con: Any) -> Frame:
        """Give an Arrow table to the engine of the rows, so that both can be joined."""
        return lazy(con.from_arrow(table))

    def fetched(self, query: Frame, con: Any) -> Any:
        """Return a query of the rows as a relation of our DuckDB, which can be read once."""
        del con
        return query.to_native()

    def refuse_unknown(self, name: str) -> None:
        """Raise if no column has a name, or several."""
        number = self.names.count(name)
        if number == 1:
            return
        problem = f"more than one column {name!r}" if number else f"no column {name!r}"
        hint = ""
        if "*" in name:
            hint = (
                " A pattern stands for the columns of many classes: pass it as "
                f"y_prob={{'model': {name!r}}} (--pred-columns)."
            )
        asked = " Rename one." if number else did_you_mean(name, self.names)
        known = f"{', '.join(map(repr, self.names)):.5000}"
        message = f"{self.place} has {problem}.{asked} Its columns are: {known}.{hint}{self.hint}"
        raise InputError(message)

    @property
    def hint(self) -> str:
        """Why a column may be missing."""
        return ""

    def explain(self, error: Exception) -> None:
        """Raise a better error for one of DuckDB about a file, if there is one."""

    def refuse_changed(self) -> None:
        """Raise if a file has changed since it was opened."""


class Here(Source):
    """Rows that DuckDB reads: of files, or of a frame in memory."""

    def __init__(self, con: Any, parts: Sequence[Part], names: Sequence[str], place: str) -> None:
        self.con, self._parts, self.names, self.place = con, list(parts), list(names), place
        self.decimal = "."
        self.plain: Callable[..., Iterator[Any]] | None = None  # reads numbers without DuckDB
        refuse_wide(len(self.names))

    @property
    def files(self) -> list[str]:
        """The files, in order; empty for a frame."""
        return [part.place for part in self._parts if part.place]

    @cached_property
    def _types(self) -> dict[str, Any]:
        first = self._parts[0]
        asked = [f"{sql} AS c{k}" for k, sql in enumerate(first.own.values())]
        relation = first.relation().project(", ".join(asked))
        return dict(zip(first.own, relation.types, strict=True))

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        found = str(self._types[name])
        if found.endswith("]"):
            self._refuse_other_lists(name, found)
            return "list"
        if found.startswith(("VARCHAR", "ENUM")):
            return "text"
        is_number = re.match(
            r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|REAL|DEC|BOOL", found
        )
        if found.startswith(("STRUCT", "MAP", "UNION")):
            message = f"{name} must hold single values: in {self.place} it holds {found:.100}."
            raise InputTypeError(message)
        return "number" if is_number or found == '"NULL"' else "value"

    def _refuse_other_lists(self, name: str, found: str) -> None:
        if found.startswith(("VARCHAR", "STRUCT", "DATE", "TIME")) or found.count("[") > 1:
            message = (
                f"{name} must hold single values, or lists of numbers, one per class: in "
                f"{self.place} it holds {found:.60}."
            )
            raise InputTypeError(message)

    def is_time(self, name: str) -> bool:
        """Return whether a column holds times."""
        self.kind(name)
        return str(self._types[name]).startswith("TIMESTAMP")

    def has_integers(self, name: str) -> bool:
        """Return whether a column holds integers."""
        self.kind(name)
        return bool(re.fullmatch(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", str(self._types[name])))

    def parsed(self, name: str) -> bool:
        """Return whether numbers of a column are parsed from text."""
        return self.kind(name) == "text"

    def list_length(self, name: str) -> int:
        """Return the length of the first list of a column; 0 if there is none."""
        for part in self._parts:
            own = self._own(part, name, "value")
            lists = part.relation().project(f"len({own}) AS n").filter("n IS NOT NULL")
            found = lists.limit(1).fetchall()
            if found:
                return int(found[0][0])
        return 0

    def frame(self, uses: Sequence[Use]) -> Frame:
        """Return the rows."""
        return lazy(self._union(uses, numbered=False))

    def numbered(self, uses: Sequence[Use]) -> Frame:
        """Return the rows with their files and numbers, and with the texts of numbers."""
        return lazy(self._union(uses, numbered=True))

    def whole(self) -> Any:
        """Return all columns as an Arrow table."""
        found = self._union([Use(name, "value") for name in self.names], numbered=False)
        return found.to_arrow_table().rename_columns(self.names)

    def refuse_damaged(self) -> None:
        """Raise if a file cannot be read to its end."""

        def count() -> None:
            for part in self._parts:
                part.relation().aggregate("count(*)").fetchall()

        answered(self.con, count)

    def _union(self, uses: Sequence[Use], *, numbered: bool) -> Any:
        parts = [
            part.relation().project(", ".join(self._columns(part, uses, k if numbered else None)))
            for k, part in enumerate(self._parts_to_read(numbered=numbered))
        ]
        while len(parts) > 1:  # in pairs, because a plan must not be as deep as there are files
            parts = [
                one.union(*two) if two else one
                for one, *two in (parts[k : k + 2] for k in range(0, len(parts), 2))
            ]
        return parts[0]

    def _parts_to_read(self, *, numbered: bool) -> Sequence[Part]:
        """Return the parts; files may be read together, unless their rows are numbered."""
        del numbered
        return self._parts

    def _own(self, part: Part, name: str, as_: str) -> str:
        """Return a column of a part in SQL, for a use."""
        del as_
        return part.own[name]

    def _columns(self, part: Part, uses: Sequence[Use], number: int | None) -> Iterator[str]:
        yield from ("1 AS one",) if not uses else ()
        for k, (name, as_) in enumerate(uses):
            own = self._own(part, name, as_)
            if as_ == "value" or not self.parsed(name):
                yield f"{own} AS c{k}"
                continue
            text = self._number(own, percent=as_ == "percent")
            words = ", ".join(map(quoted_text, MISSING_WORDS))
            parsed = (
                f"coalesce(TRY_CAST({text} AS DOUBLE), CASE lower({own}) WHEN 'true' THEN 1.0 "
                "WHEN 'false' THEN 0.0 END)"
            )
            yield f"{parsed} AS c{k}"
            yield (  # CASE, because AND would compare every text with every word
                f"CASE WHEN {parsed} IS NULL OR contains({own}, '_') THEN ({own}) IS NOT NULL AND "
                f"({own}) NOT IN ({words}) AND trim({own}) <> '' ELSE false END AS t{k}"
            )
            if number is not None:
                yield f"{own} AS {RAW}{k}"
        if number is not None:
            yield f"{self._at(part, number)} AS {AT}"

    def _at(self, part: Part, number: int) -> str:
        """Return the number of the file and the row of each row in SQL."""
        del part
        return f"({number}::BIGINT << {ROW_BITS}) + row_number() OVER ()"

    def _number(self, own: str, *, percent: bool) -> str:
        if percent:
            own = rf"regexp_replace({own}, '\s*%\s*$', '')"
        return own if self.decimal == "." else f"replace(replace({own}, '.', '?'), ',', '.')"


class Table(Here):
    """A frame in memory. Its columns become Arrow arrays when they are used."""

    def __init__(self, con: Any, frame: nw.DataFrame[Any]) -> None:
        self._frame = frame
        self._arrow: dict[str, Any] = {}
        super().__init__(con, [Part(lambda: None, {})], frame.columns, "the frame")

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        self._use(name)
        return super().kind(name)

    def list_length(self, name: str) -> int:
        """Return the length of the first list of a column; 0 if there is none."""
        self._use(name)
        return super().list_length(name)

    def columns(self, names: Sequence[str]) -> Any:
        """Return columns as an Arrow table."""
        import pyarrow as pa

        for name in names:
            self._use(name)
        return pa.table([self._arrow[name] for name in names], [f"c{k}" for k in range(len(names))])

    def _union(self, uses: Sequence[Use], *, numbered: bool) -> Any:
        for name, _ in uses:
            self._use(name)
        return super()._union(uses, numbered=numbered)

    def _use(self, name: str) -> None:
        """Convert a column to Arrow, and let DuckDB know it."""
        import pyarrow as pa

        if name in self._arrow:
            return
        self._arrow[name] = _arrow(self._frame, name)
        names = list(self._arrow)
        table = pa.table(list(self._arrow.values()), [f"c{k}" for k in range(len(names))])
        own = {each: f"c{k}" for k, each in enumerate(names)}
        self._parts = [Part(lambda: self.con.from_arrow(table), own)]
        self.__dict__.pop("_types", None)


def _arrow(frame: nw.DataFrame[Any], name: str) -> Any:
    """Return a column of a frame as Arrow; categories become their values."""
    import pyarrow as pa

    try:
        if frame.implementation.is_pandas():
            found = pa.Array.from_pandas(frame.to_native()[name])
        else:
            found = frame.select(name).to_arrow().column(0)
    except (pa.ArrowException, TypeError) as error:
        message = f"{name} must hold values of one simple type: {error}."
        raise InputTypeError(message) from error
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_float16(found.type):
        found = found.cast(pa.float32())
    if isinstance(found.type, pa.BaseExtensionType):
        message = f"{name} must hold single values: it holds {found.type}."
        raise InputTypeError(message)
    return found


class Engine(Source):
    """Rows of another engine, which stay there: a lazy frame."""

    con = None

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()
        self.names, self.place = list(self._schema.names()), "the frame"
        refuse_wide(len(self.names))

    @property
    def implementation(self) -> Any:
        """The engine."""
        return self._frame.implementation

    @property
    def is_here(self) -> bool:
        """Whether rows are cheap to stream into this process."""
        return bool(self.implementation.is_duckdb() or self.implementation.is_polars())

    def given(self, table: Any, _con: Any) -> Frame:
        """Give an Arrow table to the engine, so that both can be joined."""
        return uploaded(table, self._frame)

    def fetched(self, query: Frame, con: Any) -> Any:
        """Return a query of the rows as a relation of our DuckDB, which can be read once."""
        import pyarrow as pa

        parts = batches(query, 1 << 17)
        first = next(parts, None)
        if first is None:
            return con.from_arrow(collected(query))
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], parts))
        return con.from_arrow(reader)

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        found = self._schema[name]
        if isinstance(found, nw.List | nw.Array):
            return "list"
        if found == nw.String or found in (nw.Categorical, nw.Enum):
            return "text"
        if found.is_nested() or found == nw.Object:
            message = f"{name} must hold single values: it holds {found}."
            raise InputTypeError(message)
        return "number" if found.is_numeric() or found == nw.Boolean else "value"

    def is_time(self, name: str) -> bool:
        """Return whether a column holds times."""
        return self._schema[name] == nw.Datetime

    def list_length(self, name: str) -> int:
        """Return the length of the first list of a column; 0 if there is none."""
        first = self.frame([Use(name, "value")]).drop_nulls().head(1).collect().to_arrow().column(0)
        return len(first[0]) if len(first) else 0

    def frame(self, uses: Sequence[Use]) -> Frame:
        """Return the rows. In Spark, names are quoted, because a dot in them has a meaning."""
        if is_spark(self._frame):
            quoted = [f"`{use.name.replace('`', '``')}`" for use in uses]
            chosen = self._frame.to_native().select(*quoted)
            return lazy(chosen.toDF(*(f"c{k}" for k in range(len(uses)))))
        return self._frame.select(nw.col(use.name).alias(f"c{k}") for k, use in enumerate(uses))


def lazy(native: Any) -> Frame:
    """Return rows of an engine as a lazy frame."""
    found: Frame = nw.from_native(native)
    return found


def is_spark(frame: Frame) -> bool:
    """Return whether Spark has the rows."""
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect())


def opened(source: Any, con: Session) -> Source:
    """Open a source."""
    if isinstance(source, Source):
        return source
    if are_paths(source):
        source = Files(source)
    if isinstance(source, Files):
        from softcal.scanning.files import opened_files

        key = repr(source)  # the same files may be opened again, after a copy has replaced one
        if key not in con.opened:
            con.opened[key] = opened_files(source, con)
        return con.opened[key]
    frame = _frame(_table_of(source) if isinstance(source, Mapping) else source)
    if isinstance(frame, nw.LazyFrame):
        return Engine(frame)
    if isinstance(frame, nw.DataFrame):
        return Table(con, frame)
    return _stream(source, con)


def _frame(source: Any) -> Any:
    """Return a frame that narwhals knows; other sources unchanged."""
    try:
        frame = nw.from_native(source, pass_through=True)
        if isinstance(frame, nw.DataFrame | nw.LazyFrame):
            frame.collect_schema()
    except nw.exceptions.DuplicateError as error:
        message = f"the column names of the frame must differ: {' '.join(str(error).split())}"
        raise InputError(message) from error
    return frame


def opened_to_join(source: Any, con: Any) -> Source:
    """Open a source whose rows are joined to others: a relation of another DuckDB is copied."""
    found = opened(source, con)
    if isinstance(found, Engine) and found.implementation.is_duckdb():
        relation = nw.to_native(source, pass_through=True)
        # Read only when it is copied, because a connection has one open result at a time.
        return _Once(con, relation.to_arrow_reader, relation.columns)
    return found


def _table_of(columns: Mapping[str, Any]) -> Any:
    """Return the Arrow table of columns in memory, each a list or an array."""
    import pyarrow as pa

    try:
        return pa.table(dict(columns))
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = (
            "a dict of columns must map names to lists or one-dimensional arrays of the same "
            f"length: {' '.join(str(error).split())}."
        )
        raise InputError(message) from error


def _stream(source: Any, con: Any) -> Source:
    """Open an Arrow dataset, a stream of Arrow batches, or an iterator of frames."""
    import pyarrow as pa

    if hasattr(source, "scanner"):
        place = Part(lambda: con.from_arrow(source), _own(source.schema.names))
        return Here(con, [place], source.schema.names, "the frame")
    if isinstance(source, Iterator) and not hasattr(source, "__arrow_c_stream__"):
        source = _reader(source)
    # A column also has the Arrow interface, but it has a dtype.
    if not hasattr(source, "__arrow_c_stream__") or hasattr(source, "dtype"):
        message = (
            f"cannot scan a {type(source).__name__}: pass a path, a dict of columns, an iterator "
            "of frames, or a pandas, Polars, PyArrow, DuckDB, Dask, Spark, or Ibis frame."
        )
        raise InputTypeError(message)
    reader = pa.RecordBatchReader.from_stream(source)
    names = reader.schema.names
    return _Once(con, lambda: reader, names)


class _Once(Here):
    """A stream, which is copied to DuckDB, because it can be read once."""

    def __init__(self, con: Any, reader: Callable[[], Any], names: Sequence[str]) -> None:
        self._reader: Callable[[], Any] | None = reader
        self._name = f"stream_{next(_numbers)}"
        super().__init__(con, [Part(self._copied, _own(names))], names, "the frame")

    def _copied(self) -> Any:
        if self._reader is not None:
            reader, self._reader = self._reader, None
            self.con.from_arrow(reader()).create(self._name)
        return self.con.table(self._name)


_numbers = count()


def kept(rows: Frame, con: Any) -> Frame:
    """Compute rows of DuckDB once: a temporary table, which may spill to disk."""
    return lazy(con.table(created(rows.to_native())))


def created(relation: Any) -> str:
    """Write a relation of DuckDB to a temporary table, and return its name."""
    name = f"kept_{next(_numbers)}"
    relation.create(name)
    return name


def _reader(batches: Iterator[Any]) -> Any:
    """Return frames that an iterator yields as a stream of Arrow batches."""
    import pyarrow as pa

    def tables() -> Iterator[Any]:
        for each in batches:
            yield (
                _table_of(each)
                if isinstance(each, Mapping)
                else nw.from_native(each, eager_only=True).to_arrow()
            )

    parts = tables()
    first = next(parts, None)
    if first is None:
        message = "the iterator yields no rows, so there is nothing to measure."
        raise InputError(message)

    def chunks() -> Iterator[Any]:
        yield from first.to_batches()
        for part in parts:
            yield from part.cast(first.schema).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, chunks())


def _own(names: Sequence[str]) -> dict[str, str]:
    return {name: quoted_name(name) for name in names}


class Session:
    """A private DuckDB, and the files that are open in it.

    It loads nothing from the network, and spills to a folder of its own.
    """

    def __init__(self) -> None:
        import duckdb

        self.opened: dict[str, Source] = {}
        folder = tempfile.mkdtemp(prefix="softcal-duckdb-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        whole: dict[str, Any] = {
            "autoinstall_known_extensions": False, "temp_directory": folder,
            "memory_limit": "800MB",
        }  # fmt: skip
        own = ("streaming_buffer_size = '32MB'", "perfect_ht_threshold = 17",
               "python_enable_replacements = false", "enable_progress_bar = false")  # fmt: skip
        self._con = duckdb.connect(config=whole)
        for setting in own:
            self._con.execute(f"SET {setting}").fetchall()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)


def refuse_wide(columns: int) -> None:
    """Raise if a source has too many columns."""
    if columns > _MOST_COLUMNS:
        message = (
            f"there can be at most {_MOST_COLUMNS:,} columns: got {columns:,}. Leave out columns, "
            "or store many classes as lists."
        )
        raise InputError(message)


def quoted_name(name: str) -> str:
    """Return a name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: object) -> str:
    """Return a text in SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def uploaded(table: Any, like: Frame) -> Frame:
    """Give an Arrow table to the engine of a frame, so that both can be joined."""
    kind = like.implementation
    if kind.is_polars():
        import polars as pl

        return lazy(pl.from_arrow(table).lazy())  # type: ignore[union-attr]
    if kind.is_dask():
        import dask.dataframe as dd

        return lazy(dd.from_pandas(table.to_pandas(), npartitions=1))  # type: ignore[no-untyped-call]
    if kind.is_ibis():
        import ibis  # type: ignore[import-untyped]

        return lazy(ibis.memtable(table))
    return lazy(like.to_native().sparkSession.createDataFrame(table))


def collected(frame: Frame) -> Any:
    """Bring the result of a query here, as an Arrow table."""
    native = frame.to_native()
    if hasattr(native, "toArrow"):  # Spark
        return native.toArrow()
    if hasattr(native, "to_arrow_table"):  # DuckDB
        return native.to_arrow_table()
    return frame.collect().to_arrow()


def batches(frame: Frame, rows: int) -> Iterator[Any]:
    """Stream the rows of an engine as Arrow batches."""
    import pyarrow as pa

    native = frame.to_native()
    if frame.implementation.is_polars():
        for part in native.collect_batches(chunk_size=rows, engine="streaming"):
            yield from part.to_arrow().to_batches()
    elif frame.implementation.is_duckdb():
        yield from native.to_arrow_reader(rows)
    elif frame.implementation.is_dask():
        for part in native.partitions:
            whole = pa.Table.from_pandas(part.compute(), preserve_index=False)
            yield from whole.to_batches(rows)
    else:
        yield from collected(frame).to_batches(rows)


class ReadAgainError(Exception):
    """Raised if a query fails, and would succeed now: a copy replaces a file DuckDB refuses."""


def answered(con: Session, ask: Callable[[], Answer]) -> Answer:
    """Return the answer of a function that opens sources and queries them.

    It is called again if a copy has replaced a file.
    """
    while True:
        with suppress(ReadAgainError), explaining(con):
            return ask()


@contextmanager
def explaining(con: Session) -> Iterator[None]:
    """Raise errors about files as ours, and `ReadAgainError`; see `answered`."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # streams raise errors of Arrow
        for source in con.opened.values():
            source.explain(error)
        place = " and ".join(source.place for source in con.opened.values()) or "the source"
        text = " ".join(str(error).split())
        message = f"cannot read {place}: {text:.300}"
        raise InputError(message) from error
    for source in con.opened.values():
        source.refuse_changed()


def text_hint() -> str:
    """Return the hint how to read a column of text that is not known further."""
    scales = keyword("pred_scale", "percent"), keyword("label_scale", "percent")
    return f" For text such as 50%, pass {scales[0]} or {scales[1]}.{words_hint('yes')}"


def words_hint(word: str) -> str:
    """Return a hint on how to read labels in words."""
    return f" If labels are words, name the one that counts as 1: {keyword('word:positive', word)}."
