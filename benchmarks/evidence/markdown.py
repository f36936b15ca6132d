"""Tables and blocks of code, as the site's Markdown has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int = 99) -> str:
    """Lay out a table; columns from `numbers_from` on are set to the right."""
    rule = ["---:" if i >= numbers_from else "---" for i in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def session(source: str, shown: str = "", result: str = "") -> str:
    """Write code as typed at a prompt, so that the tests run it; then, perhaps, a result."""
    lines = [f"{'...' if line.startswith(' ') else '>>>'} {line}" for line in source.splitlines()]
    if shown:
        lines += [f">>> {shown}", result]
    return "\n".join(["```python", *lines, "", "```"])


def code(text: str) -> str:
    """Set a call in the type of code."""
    return f"`{text}`"
