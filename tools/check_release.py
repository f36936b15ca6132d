"""Check a release as users install it: `make release-check`, after `make dist`.

The wheel must be for the stable ABI and need only libraries that every such system has. It is
installed into an empty environment without a compiler and tried from another folder. So is the
source archive, which builds a wheel without C++ there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = {"softcal", "numpy", "scipy", "lazy-loader", "packaging"}
LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0"}
COMMANDS = (
    "scan",
    "score",
    "merge",
    "compare",
    "report",
    "plan",
    "recalibrate",
    "apply",
    "demo",
    "paper",
)
INSTALLED = (
    "import json; from importlib.metadata import distributions; "
    "print(json.dumps([d.name for d in distributions()]))"
)


def check(dist: Path) -> None:
    """Run all checks; stop at the first that fails."""
    (wheel,) = dist.glob("*.whl")
    (archive,) = dist.glob("*.tar.gz")
    _run([sys.executable, "-m", "twine", "check", "--strict", wheel, archive], os.environ)
    refuse_if("-cp311-abi3-" not in wheel.name, f"{wheel.name} is not for the stable ABI")
    _check_contents(wheel)
    if sys.platform == "linux":
        _check_libraries(wheel)
    for archive_or_wheel, loops in ((wheel, "C++"), (archive, "NumPy")):
        with tempfile.TemporaryDirectory() as folder:
            _check_installed(archive_or_wheel, Path(folder), loops)
    sys.stdout.write(f"{wheel.name}: complete, and works with {', '.join(sorted(CORE))} alone\n")


def refuse_if(wrong: bool, message: str) -> None:  # noqa: FBT001 - it reads as the sentence it is
    """Stop with a message if something is wrong."""
    if wrong:
        sys.exit(f"release-check: {message}")


def _check_contents(wheel: Path) -> None:
    """Check that every file is in the wheel and that its description has no relative links."""
    source = ROOT / "src"
    ours = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        shown = packed.read(metadata).decode()
    refuse_if(bool(ours - set(names)), f"not in the wheel: {sorted(ours - set(names))}")
    faults = faults_on_an_index(shown)
    refuse_if(bool(faults), f"these break on an index: {faults}")


def faults_on_an_index(text: str) -> list[str]:
    """Return relative links and images, marks of parts to leave out, and words of a clone."""
    return re.findall(r"\]\((?!https?:)[^)]*\)|<img[^>]*>|<!--.*?-->|\bclone\b", text)


def _check_libraries(wheel: Path) -> None:
    """Refuse an extension that needs libraries some systems do not have."""
    with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory() as folder:
        (name,) = (name for name in packed.namelist() if name.endswith(".abi3.so"))
        extension = packed.extract(name, folder)
        shown = _run(["readelf", "--dynamic", "--wide", extension], os.environ)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown))
    system = {name for name in needed if name in LIBRARIES or name.startswith("ld-linux")}
    refuse_if(needed != system or not needed, f"{name} needs {sorted(needed - system)}")


def _check_installed(source: Path, folder: Path, loops: str) -> None:
    empty = folder / "no-compiler-here"
    empty.mkdir()
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    bare |= {"PATH": str(empty), "CC": "no-compiler", "CXX": "no-compiler"}
    refuse_if(any(shutil.which(cc, path=bare["PATH"]) for cc in ("cc", "gcc", "cl")), "a compiler")
    venv.create(folder / "env", with_pip=True)
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    binaries = ["--only-binary", ":all:", "--no-binary", "softcal"]
    _run([python, "-m", "pip", "install", "--quiet", *binaries, source], bare)
    found = set(json.loads(_run([python, "-c", INSTALLED], bare, cwd=empty)))
    found -= {"pip", "setuptools"}
    refuse_if(found != CORE, f"installed {sorted(found)}, not {sorted(CORE)}")
    _run([python, ROOT / "tools" / "try_core.py", loops], bare, cwd=empty)
    for command in ("--help", *COMMANDS):
        said = _run([scripts / "softcal", command], bare, cwd=empty, code=2)
        refuse_if("pip install typer" not in said, f"softcal {command} said: {said}")


def _run(
    command: list[str | Path], environment: dict[str, str] | os._Environ[str], *,
    cwd: Path | None = None, code: int = 0,
) -> str:  # fmt: skip
    done = subprocess.run(  # noqa: S603
        command,
        env=environment,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    words = " ".join(map(str, command))
    refuse_if(done.returncode != code, f"{words} gave {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    check(ROOT / "dist")
