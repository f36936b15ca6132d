"""Build `softcal._native`, the loops in C++ of the folder `native`, when a wheel is built.

Without a C++ compiler the wheel is pure Python, and softcal adds up with NumPy instead. An editable
install builds too; `make` installs again when a source file changes. For a checkout that is merely
on the path: `python hatch_build.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as Hook
except ImportError:  # built in place, by hand
    Hook = object

ROOT = Path(__file__).parent
ABI = "cp311-abi3"  # the stable ABI: one build for this Python and all later ones
# Fused products and sums would make digits depend on the instruction set.
COMPILE = ["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-g0"]
# Python's own flags contain -fwrapv, which hides overflow.
SANITIZE = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
SANITIZE += ["-fno-wrapv", "-g", "-O1"]


class NativeHook(Hook):  # type: ignore[misc]
    """Add the loops to a wheel if they can be built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the loops, and set the kind of the wheel."""
        built = build_in_place()
        if built is None:
            self.app.display_warning(
                "no working C++ compiler: softcal will use its slower NumPy loops"
            )
            return
        build_data["artifacts"].append(built.relative_to(ROOT).as_posix())
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"{ABI}-{platform}"


def build_in_place() -> Path | None:
    """Build the extension beside the Python files; None where that fails."""
    package = ROOT / "src" / "softcal"
    for old in package.glob("_native.*"):
        if old.suffix != ".pyi":
            old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        return None if built is None else Path(shutil.copy2(built, package))


def build(folder: Path, *, sanitize: bool = False) -> Path | None:
    """Build the extension in a folder; None where that fails."""
    from setuptools import Distribution, Extension

    windows = os.name == "nt"
    flags = ["/std:c++17", "/O2", "/EHsc"] if windows else COMPILE + SANITIZE * sanitize
    extension = Extension(
        "softcal._native",
        [f"native/{name}.cpp" for name in ("module", "portable", "baseline", "avx2")],
        language="c++",
        extra_compile_args=flags,
        extra_link_args=[] if windows else ["-pthread", *SANITIZE * sanitize],
        py_limited_api=True,
        optional=True,  # a failure is a warning
    )
    os.chdir(ROOT)
    distribution = Distribution({"name": "softcal", "ext_modules": [extension]})
    builder: Any = distribution.get_command_obj("build_ext")
    builder.build_temp = builder.build_lib = str(folder)
    builder.ensure_finalized()
    builder.run()
    built = Path(builder.get_ext_fullpath("softcal._native"))
    return built if built.exists() else None


if __name__ == "__main__":
    sys.exit(build_in_place() is None)
