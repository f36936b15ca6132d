"""Write docs/performance.md from the saved results of `benchmarks.performance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.evidence.markdown import table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "performance.json"
KINDS = ("plain", "by", "groups", "two models", "votes", "raters", "classes")
TIMES = "\N{MULTIPLICATION SIGN}"


def json_of(text: str) -> Any:
    return json.loads(text)


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Return the saved results."""
    results: dict[str, Any] = json_of(path.read_text(encoding="utf-8"))
    return results


def save(results: dict[str, Any], path: Path = RESULTS) -> None:
    """Save the results, one part per line, with five digits."""
    lines = [json.dumps({name: _short(part)})[1:-1] for name, part in results.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def seconds(value: float) -> str:
    """Return a time with three digits and its unit."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1 or unit == "µs":
            return f"{digits(value * factor)} {unit}"
    raise AssertionError


def digits(value: float) -> str:
    """Return a number with three digits, without an exponent."""
    for most, form in ((10, ".2f"), (100, ".1f")):
        if value < most:
            return f"{value:{form}}"
    return f"{value:,.0f}"


def text(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = (_summary, _arrays, _files, _frames, _csv, _spark, _training, _start, _slower, _memory)
    sections = [section for part in parts if (section := part(results))]
    return "\n\n".join(["# Performance", *sections, _METHOD]) + "\n"


def _summary(results: dict[str, Any]) -> str:
    facts, arrays, growth = results["facts"], results["arrays"], results["parquet"]["growth"]
    n, rows = list(arrays)[-1], list(growth)[-1]
    call, scan = arrays[n]["float64"], growth[rows]
    versions = ", ".join(
        f"{name} {facts[name]}"
        for name in ("Python", "numpy", "duckdb", "polars", "pyarrow", "pandas", "pyspark", "torch",
                     "torchmetrics")
        if facts.get(name)
    )  # fmt: skip
    return "\n".join([
        f"softcal computes the SMECE of {int(n):,} rows in {seconds(call['all'])} on "
        f"{facts['cores']} cores, {digits(call['all'] / call['sums'])} times the time of "
        f"`p.sum() + y.sum()`. A call with 1,000 rows takes "
        f"{digits(results['small']['`smece`'])} µs. `scan` reads {int(rows):,} rows of Parquet in "
        f"{seconds(scan['seconds'])} with {scan['mb']:.0f} MB of memory.\n",
        f"Measured by `benchmarks/performance.py` (`make performance`) in one run on "
        f"{facts['date']}, softcal {facts['softcal']} at commit {facts['commit']}, "
        f"{facts['cores']} cores ({facts['processor']}), {facts['memory']} of memory. {versions}. "
        "Times are the lowest of several runs that take turns. Compare ratios: seconds depend on "
        "the machine.",
    ])  # fmt: skip


def _arrays(results: dict[str, Any]) -> str:
    head = ("rows", "`p.sum() + y.sum()`", "float64, one core", "all cores", "float32, one core",
            "all cores")  # fmt: skip
    sizes = [
        [f"{int(n):,}", seconds(found["float64"]["sums"]),
         *(digits(found[kind][cores] / found[kind]["sums"])
           for kind in ("float64", "float32") for cores in ("one", "all"))]
        for n, found in results["arrays"].items()
    ]  # fmt: skip
    rows = results["sizes"]["kinds"]
    kinds = [
        [name, *(f"{each[cores] / rows * 1e9:.2f}" for cores in ("one", "all")),
         *(digits(each[cores] / each["sums"]) for cores in ("one", "all"))]
        for name, each in results["kinds"].items()
    ]  # fmt: skip
    return "\n".join([
        "## Arrays\n",
        "The time of `smece` with 10 bins and 0/1 labels, relative to the yardstick "
        "`p.sum() + y.sum()` on the same arrays. The yardstick only reads the rows, on one core. "
        "softcal also validates every value. From 200,000 rows on, it uses all cores.\n",
        table(head, sizes, numbers_from=0),
        f"\nOther calls, {rows:,} rows of float64, 10 bins unless stated. The yardstick is the sum "
        "of every array that the call reads.\n",
        table(("call", "ns per row, one core", "all cores", f"{TIMES} yardstick, one core",
               "all cores"), kinds, numbers_from=1),
        "\nCalls with 1,000 rows:\n",
        table(("call", "µs"), [[name, digits(each)] for name, each in results["small"].items()],
              numbers_from=1),
    ])  # fmt: skip


_KIND_NAMES = {
    "plain": "one table",
    "by": '`by="country"`, 20 values',
    "groups": "`groups=`, 100 rows per group",
    "two models": "two models, compared",
    "votes": "`Counts`, five votes per row",
    "raters": "`RawVotes(raters=True)`, one vote per row, 1,000 raters",
    "classes": "10 classes",
}


def _files(results: dict[str, Any]) -> str:
    found, parquet = results["parquet"], results["sizes"]["parquet"]
    growth = [
        [f"{int(n):,}", seconds(each["seconds"]), f"{each['seconds'] / int(n) * 1e9:.1f}",
         f"{each['mb']:.0f}"]
        for n, each in found["growth"].items()
    ]  # fmt: skip
    ours = found["queries"]["softcal"]
    names = {"softcal": "softcal `scan`, 648 bins", "DuckDB": "DuckDB query, 10 bins",
             "Polars": "Polars streaming query, 10 bins"}  # fmt: skip
    queries = [
        [names[name], seconds(each["seconds"]), digits(each["seconds"] / ours["seconds"]),
         seconds(each["cpu"]), digits(each["cpu"] / ours["cpu"]), f"{each['mb']:.0f}"]
        for name, each in found["queries"].items()
    ]  # fmt: skip
    kinds = [[_KIND_NAMES[kind], *_beside(found["kinds"][kind], found["large"].get(kind))]
             for kind in KINDS]  # fmt: skip
    return "\n".join([
        "## Parquet files\n",
        "`scan` of a label and a prediction, float64, from files as PyArrow writes them, in the "
        "page cache:\n",
        table(("rows", "time", "ns per row", "peak MB"), growth, numbers_from=0),
        f"\nThe same {parquet[-1]:,} rows with a group-by written for each engine. The queries "
        "validate no values:\n",
        table(("", "time", "relative", "CPU time", "relative", "peak MB"), queries, numbers_from=1),
        f"\nOther tables, {parquet[-2]:,} rows, beside a DuckDB query written for each. \"Ratio\" "
        "is softcal's time relative to the query. softcal computes 648 bins (60 for two models, "
        "groups, and raters), 18 sums, and validates all values. The queries compute 10 bins (60 "
        "for two models, groups, and raters) and the main sums. The last two columns are the "
        f"first call of a process on {parquet[-1]:,} rows (for one table, a later one).\n",
        table(("", "softcal", "DuckDB", "ratio", "softcal, peak MB", "DuckDB, peak MB",
               f"{parquet[-1]:,} rows", "peak MB"), kinds, numbers_from=1),
    ])  # fmt: skip


def _beside(found: dict[str, Any], large: dict[str, float] | None) -> list[str]:
    ours, theirs = found["softcal"], found["DuckDB"]
    more = ["", ""] if large is None else [seconds(large["seconds"]), f"{large['mb']:.0f}"]
    return [seconds(ours["seconds"]), seconds(theirs["seconds"]), digits(_ratio(found)),
            f"{ours['mb']:.0f}", f"{theirs['mb']:.0f}", *more]  # fmt: skip


def _ratio(found: dict[str, Any]) -> float:
    return float(found["softcal"]["seconds"] / found["DuckDB"]["seconds"])


def _frames(results: dict[str, Any]) -> str:
    arrays = results["frames"]["arrays"]["seconds"]
    bins = {"arrays": "`reliability` of arrays, 10 bins"}
    rows = [
        [bins.get(name, f"`scan`, {name}, 648 bins"), seconds(each["seconds"]),
         digits(each["seconds"] / arrays)]
        for name, each in results["frames"].items()
    ]  # fmt: skip
    return "\n".join(
        [
            "## Frames in memory\n",
            f"{results['sizes']['memory']:,} rows, a soft label and a prediction:\n",
            table(("", "time", "relative"), rows, numbers_from=1),
        ]
    )


def _csv(results: dict[str, Any]) -> str:
    found = results["csv"]
    first = found["DuckDB query"]
    rows = [
        [name, seconds(each["seconds"]), digits(each["seconds"] / first["seconds"]),
         seconds(each["cpu"]), digits(each["cpu"] / first["cpu"])]
        for name, each in found.items()
    ]  # fmt: skip
    return "\n".join(
        [
            "## CSV files, as whole processes\n",
            f"{results['sizes']['csv']:,} rows of four columns, 29 bytes per row, with the start "
            "of each process. `report` also evaluates calibrators and draws the page.\n",
            table(("process", "time", "relative", "CPU time", "relative"), rows, numbers_from=1),
        ]
    )


def _spark(results: dict[str, Any]) -> str:
    if not results["spark"]:
        return ""
    rows = [
        [_KIND_NAMES[kind], seconds(each["softcal"]), seconds(each["query"]),
         digits(each["softcal"] / each["query"])]
        for kind, each in results["spark"].items()
    ]  # fmt: skip
    return "\n".join(
        [
            "## Spark\n",
            f"{results['sizes']['spark']:,} rows of Parquet, two workers with one core each on the "
            "same machine. `scan` runs SQL on the workers. The queries by hand are those of DuckDB "
            "above.\n",
            table(("", "softcal", "query by hand", "ratio"), rows, numbers_from=1),
        ]
    )


def _training(results: dict[str, Any]) -> str:
    found = results["training"]
    rows = []
    for n in found["update"]:
        cells = [f"{int(n):,}"]
        for call in ("update", "forward"):
            times = found[call][n]
            ours = times["softcal"]
            others = (times["torchmetrics"], times["torchmetrics, no checks"])
            cells += [seconds(ours), *(digits(each / ours) for each in others)]
        rows.append(cells)
    names = [name for name in next(iter(found["step"].values())) if name != "step"]
    steps = [
        [f"`{name}`" if "," not in name else f"`{name.split(',')[0]}`,{name.split(',')[1]}",
         *(f"{100 * each[name] / each['step']:.1f}%" for each in found["step"].values())]
        for name in names
    ]  # fmt: skip
    growth = found["growth"]
    return "\n".join([
        "## Training\n",
        "The time per batch of `SoftCalibrationError` and, relative to it, of torchmetrics' "
        "`BinaryCalibrationError` with its checks (the default) and without. softcal's checks "
        "cannot be switched off. float32 on the CPU, 0/1 labels, 10 bins. `update` is a tenth of "
        "ten batches and one `compute`; `forward` also returns the value of each batch.\n",
        table(("rows per batch", "`update`", "torchmetrics", "without checks", "`forward`",
               "torchmetrics", "without checks"), rows, numbers_from=0),
        "\n`update` relative to one training step of a small network (two hidden layers of 256 "
        "units, 128 inputs, Adam), 10 classes for the last two metrics of softcal:\n",
        table(("metric", *(f"{int(n):,} rows per batch" for n in found["step"])), steps,
              numbers_from=1),
        f"\nOver {found['growth_rows']:,} rows, the process grew by {growth['softcal']:.1f} MB "
        f"with softcal and by {growth['torchmetrics']:.1f} MB with torchmetrics, which "
        "keeps every row.",
    ])  # fmt: skip


def _start(results: dict[str, Any]) -> str:
    found = results["start"]
    bare = found["`python -c pass`"]["seconds"]
    rows = [[name, seconds(each["seconds"]), digits(each["seconds"] / bare)]
            for name, each in found.items()]  # fmt: skip
    return "\n".join(
        [
            "## Start of a process\n",
            "Whole processes, with compiled bytecode as an installed package has it:\n",
            table(("process", "time", "relative"), rows, numbers_from=1),
        ]
    )


def _slower(results: dict[str, Any]) -> str:
    kinds, rows = results["kinds"], results["sizes"]["wide"][0]
    per_row = {name: each["one"] / results["sizes"]["kinds"] * 1e9 for name, each in kinds.items()}
    plain = per_row["`reliability`, soft labels"]
    queries = {_KIND_NAMES[kind]: _ratio(results["parquet"]["kinds"][kind]) for kind in KINDS}
    spark = {
        _KIND_NAMES[kind]: each["softcal"] / each["query"]
        for kind, each in results["spark"].items()
    }
    start = results["csv"]["`softcal score`"]["seconds"], results["csv"]["DuckDB query"]["seconds"]
    numpy = kinds["`smece`, 0/1 labels, without a C++ compiler (NumPy)"]["all"]
    votes = per_row["`reliability`, vote shares, numbers of votes, weights"]
    ends = per_row["the same, all predictions within 1/600 of 0 or 1"]
    grid = next(each for name, each in per_row.items() if "bins of a set" in name)
    lines = [
        _more_than_one("a DuckDB query by hand", queries,
                       "softcal computes more bins, more sums, and validates all values."),
        _more_than_one("a Spark query by hand", spark,
                       "Each call also plans and compiles its queries."),
        f"- **`softcal score` of a CSV file** takes {digits(start[0] / start[1])} times the time "
        "of a process with a DuckDB query. Imports of SciPy, typer, and pydantic are a large part."
        if start[0] > start[1] else "",
        _small_batches(results["training"]),
        f"- **Weights and votes** take {digits(votes)} ns per row on one core, and "
        f"{digits(plain)} ns without them: there are 16 sums, and each label must be a whole "
        "number of votes.",
        f"- **Predictions near 0 or 1 on the grid of a set** take {digits(ends)} ns per row, and "
        f"others {digits(grid)} ns, because the ends of the grid need a search.",
        f"- **Many classes**: {results['sizes']['many']:,} classes in {rows:,} rows take "
        f"{_first_wide(results, 'classes')} as columns and {_first_wide(results, 'lists')} as "
        "lists, because the query has several expressions per class.",
        f"- **Without a C++ compiler**, `smece` takes "
        f"{digits(numpy / kinds['`smece`, 0/1 labels']['all'])} times as long.",
    ]  # fmt: skip
    return "\n".join(["## Where softcal is slower\n", *(line for line in lines if line)])


def _first_wide(results: dict[str, Any], kind: str) -> str:
    return seconds(next(iter(results["parquet"]["wide"][kind].values()))["seconds"])


def _more_than_one(than: str, ratios: dict[str, float], why: str) -> str:
    slower = [f"{name} ({digits(each)} times)" for name, each in ratios.items() if each > 1]
    return f"- **Than {than}**: {'; '.join(slower)}. {why}" if slower else ""


def _small_batches(found: dict[str, Any]) -> str:
    slower = [
        f"{int(n):,} rows with `{call}` ({digits(times['softcal'] / times[name])} times the time "
        f"of {name})"
        for call in ("update", "forward")
        for n, times in found[call].items()
        for name in ("torchmetrics", "torchmetrics, no checks")
        if times[name] < times["softcal"]
    ]
    return f"- **Small batches in training**: {'; '.join(slower)}." if slower else ""


_SUMS = ("`smece`", "`reliability`", "`smooth_ece`")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def _most_extra(extra: dict[str, float], names: tuple[str, ...]) -> str:
    return f"{max(extra[name] for name in names):.1f}"


def _memory(results: dict[str, Any]) -> str:
    extra = {name: mb or 0.0 for name, mb in results["extra"].items()}
    found, sizes = results["parquet"], results["sizes"]
    most = max(each["mb"] for each in found["growth"].values())
    large = {_KIND_NAMES[kind]: each["mb"] for kind, each in found["large"].items()}
    keyed = ", ".join(f"{name}: {mb:.0f} MB" for name, mb in large.items() if name != "one table")
    wide = [
        [{"lists": "one column of lists", "classes": "one Parquet column per class"}[kind],
         *(f"{each['mb']:.0f} MB, {seconds(each['seconds'])}" for each in by_rows.values())]
        for kind, by_rows in found["wide"].items()
    ]  # fmt: skip
    raters = found["kinds"]["raters"]["softcal"]["mb"]
    return "\n".join([
        "## Memory: what is bounded and what is not\n",
        "Peak memory of a whole process, with Python and all imports.\n",
        "Bounded, for any number of rows:\n",
        f"- **Tables without keys** of Parquet, CSV, and JSON-lines files, and of DuckDB and lazy "
        f"Polars frames, are streamed: at most {most:.0f} MB up to {sizes['parquet'][-1]:,} rows.",
        "- **Segments, groups, raw votes, raters, and pairs of models** are group-bys in DuckDB, "
        "which may use 800 MB and then spills to a temporary folder. With "
        f"{sizes['parquet'][-1]:,} rows: {keyed}. With one vote per row, {sizes['parquet'][-2]:,} "
        f"votes and `raters=True`: {raters:.0f} MB.",
        "- **Functions of arrays that need only sums**, such as "
        f"{_listed(_SUMS)}, add at most {_most_extra(extra, _SUMS)} MB to arrays of "
        f"{sizes['arrays'][-1]:,} rows. Other types than float64 and float32 are converted.",
        "- **A metric in training** without groups, and `Watch`, have a state of constant size.\n",
        "Not bounded:\n",
        "- **`softcal recalibrate`, and calibrators in Python**, hold all rows in memory. "
        "`softcal apply` reads them in batches, except JSON and Excel files.",
        "- **Functions of arrays that sort the rows** make copies. With the same arrays: "
        f"{', '.join(f'{name} {extra[name]:.0f} MB' for name in extra if name not in _SUMS)}.",
        "- **Arrow files** are mapped into memory. A compressed or a remote one is decoded whole, "
        "and so is a stream.",
        "- **`aggregate=\"dawid-skene\"`** holds all votes as Python objects and as a matrix.",
        "- **Frames in memory** of pandas, Polars, or Arrow are the caller's; a column of another "
        "type than float64 is converted.",
        "- **A metric in training with groups** grows with the number of groups times their filled "
        "bins.",
        "- **Many classes** need one table per class and thread, and a Parquet reader holds one "
        "page of every column. Small row groups need less. With "
        f"{sizes['many']:,} classes:\n",
        table(("", *(f"{n:,} rows" for n in sizes["wide"])), wide, numbers_from=1),
    ])  # fmt: skip


_METHOD = """## How the loop works

One pass in C++ validates and adds up the values.

- Cores share blocks of 16,384 rows, or more if there are many bins. A block is processed in
  chunks of 256 rows: first the bins of a chunk, then its sums. The processor can then overlap the
  rows of each step.
- The bin of a row is the integer nearest to p times the number of bins, minus 1 if p is below
  that edge. This rule is exact. Bins of unequal width use a table of 2^k cells and a search
  inside a cell.
- The sums of a bin are adjacent, so one vector instruction adds to four of them. If all labels
  are 0 or 1, one instruction adds all. `smece` and `classwise_smece` need only the residuals and
  the counts, so without weights they add nothing else. Their digits equal those of the table.
- A class matrix is read row by row, in the order of memory. The sums of each class are a table of
  their own.
- Tables of up to 128 bins have four copies of their sums, so rows of the same bin do not wait for
  each other.
- Every processor adds two rows at a time, and processors with AVX2 add four. Both add in the same
  order, so all digits are the same.
- DuckDB relations without keys are streamed into this loop. Sums are float64, added up in short
  runs, and counts are integers."""
