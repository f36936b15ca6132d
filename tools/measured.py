"""Record with which code each published table was measured, so that no page cites an older one.

    python tools/measured.py            list the tables, and the modules that changed since
    python tools/measured.py run NAME   run the command of a table, and record the code

docs/measured.json has one entry per command: the files it writes, the commit, and a hash of each
module with statistics that the script uses, however indirectly. What a script only prints is
written into benchmarks/printed.
Sentences, docstrings, and annotations do not change a hash, because they change no number. Readers
and tables of sums are left out: their sums are exact, and the tests compare them with an oracle.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "docs" / "measured.json"
PRINTED = ROOT / "benchmarks" / "printed"
STATISTICS = {
    "_fitting", "calibrators", "crowd", "decision", "inference", "metrics", "planning", "votes",
}  # fmt: skip


def file_of(module: str) -> Path:
    """Return the file of a module of softcal or of the benchmarks, which may not exist."""
    top = ROOT / "src" if module.startswith("softcal") else ROOT
    path = top.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def module_of(name: str) -> str | None:
    """Return the module that defines a dotted name of ours, or None for names of others."""
    if name.split(".")[0] not in {"softcal", "benchmarks"}:
        return None
    if file_of(name).exists():
        return name
    package, _, attribute = name.rpartition(".")
    if package.startswith("benchmarks"):
        return package
    # Packages import lazily, so only the object itself knows its module.
    found = getattr(getattr(importlib.import_module(package), attribute), "__module__", package)
    return found if file_of(found).exists() else package


@functools.cache
def used_by(path: Path) -> frozenset[str]:
    """Return the modules of ours that a file imports, or takes a name from as in `sc.smece`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names = {alias.name for alias in imports}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {alias.asname or alias.name for alias in imports if alias.name == "softcal"}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names |= {f"softcal.{node.attr}"} if node.value.id in ours else set()
    found = {module for module in map(module_of, names) if module}
    return frozenset(found - {"softcal", "benchmarks"})


def modules_behind(script: str) -> list[str]:
    """Return the script and every module with statistics that it uses, however indirectly."""
    waiting, seen = {script}, set[str]()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting |= used_by(file_of(module)) - seen
    return sorted(
        module
        for module in seen
        if module.startswith("benchmarks.") or module.split(".")[1] in STATISTICS
    )


class _Arithmetic(ast.NodeTransformer):
    """Leaves only what can change a number."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        prose = isinstance(node.value, str) and " " in node.value
        return ast.copy_location(ast.Constant(""), node) if prose else node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def hash_of(source: str) -> str:
    """Return a hash of the code of a module, without sentences, docstrings, and annotations."""
    tree = _Arithmetic().visit(ast.parse(source))
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def code_of(command: str) -> dict[str, str]:
    """Return the hash of each module behind a command."""
    modules = modules_behind(script_of(command))
    return {module: hash_of(file_of(module).read_text(encoding="utf-8")) for module in modules}


def script_of(command: str) -> str:
    """Return the module that `python -m benchmarks.NAME ...` runs."""
    return shlex.split(command)[2]


def changed_since(entry: dict[str, Any]) -> list[str]:
    """Return the modules whose code changed since a table was measured."""
    now = code_of(entry["command"])
    return sorted(
        module for module in {*now, *entry["code"]} if now.get(module) != entry["code"].get(module)
    )


def read() -> dict[str, dict[str, Any]]:
    """Return the entries by name."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip()


def run(name: str) -> None:
    """Run the command of an entry, keep what it prints, and record the code."""
    entries = read()
    entry = entries[name]
    if _git("status", "--porcelain", "src", "benchmarks/*.py"):
        sys.exit("measured.py: commit the code first, so that the entry can name its commit")
    command = [sys.executable, *shlex.split(entry["command"])[1:]]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    print(done.stdout, end="")
    printed = PRINTED / f"{name}.txt"
    if str(printed.relative_to(ROOT)) in entry["writes"]:
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        printed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    record(entries, name)


def record(entries: dict[str, dict[str, Any]], name: str) -> None:
    """Write the commit and the code of an entry that was measured now."""
    code = code_of(entries[name]["command"])
    entries[name] |= {"commit": _git("rev-parse", "--short=7", "HEAD"), "code": code}
    RECORD.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """List the entries, or run one."""
    match sys.argv[1:]:
        case ["run", name]:
            run(name)
        case []:
            for name, entry in read().items():
                changed = ", ".join(changed_since(entry)) or "nothing"
                print(f"{name} ({entry['commit']}): changed since: {changed}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
