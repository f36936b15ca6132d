"""Try an installed softcal that has no extras: the example of every public name, and a large array.

`tools/check_release.py` runs this in its own environment. It needs only the core. Its argument
states which loops must be in use: C++ or NumPy.
"""

from __future__ import annotations

import doctest
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import softcal as sc
from softcal._optional import MissingExtraError
from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Examples(doctest.DocTestRunner):
    """Run examples, and list those that need an extra separately."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.FAIL_FAST)
        self.failed: set[str] = set()
        self.need_more: set[str] = set()

    def report_failure(self, out: Any, test: doctest.DocTest, *rest: Any) -> None:
        """Show and record an example with another result."""
        self.failed.add(test.name)
        super().report_failure(out, test, *rest)

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: Any, exc_info: Any
    ) -> None:
        """Show and record an example that raised, unless it needs an extra."""
        imports = example.source.startswith("import ")
        if issubclass(exc_info[0], ModuleNotFoundError if imports else MissingExtraError):
            self.need_more.add(test.name)
        else:
            self.failed.add(test.name)
            super().report_unexpected_exception(out, test, example, exc_info)


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """List the public names of a module and its submodules; print what needs an extra."""
    for name in getattr(module, "__all__", ()):
        try:
            thing = getattr(module, name)
            if isinstance(thing, ModuleType):
                yield from public_names(thing)
            else:
                yield name, thing
        except MissingExtraError as error:
            sys.stdout.write(f"{name}: {error}\n")


def try_examples() -> None:
    """Run the example of every public name of the core."""
    examples, finder, tried = Examples(), doctest.DocTestFinder(recurse=False), 0
    for name, thing in public_names(sc):
        for test in finder.find(thing, name, globs={"sc": sc, "np": np}):
            test.globs.update(vars(sys.modules[thing.__module__]))
            examples.run(test)
            tried += bool(test.examples)
    sys.stdout.write(f"{tried} examples; with an extra only: {sorted(examples.need_more)}\n")
    if examples.failed or tried < len(sc.__all__) // 2:
        sys.exit(f"failed: {sorted(examples.failed)}")


def try_large(loops: str) -> None:
    """Check which loops add up a large array, and that they agree with a few lines of NumPy."""
    rng = np.random.default_rng(0)
    y, p = rng.random(300_000), rng.random(300_000)
    gaps = np.bincount((p * 10).astype(int), weights=p - y)
    np.testing.assert_allclose(sc.smece(y, p), np.abs(gaps).sum() / p.size, rtol=1e-9)
    if ("softcal._native" in sys.modules) != (loops == "C++"):
        sys.exit(f"the loops in use are not in {loops}")


if __name__ == "__main__":
    try_large(sys.argv[1])
    try_examples()
    if len(lidc_malignancy()["soft_malignant"]) != 1377:
        sys.exit("the bundled data is incomplete")
