"""Write tables, code, and folded details in the Markdown of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int = 99) -> str:
    """Return a table; columns from `numbers_from` on are aligned right."""
    rule = ["---:" if i >= numbers_from else "---" for i in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def session(source: str, shown: str = "", result: str = "") -> str:
    """Return code as an interactive session, which the tests run, with an optional result."""
    lines = [f"{'...' if line.startswith(' ') else '>>>'} {line}" for line in source.splitlines()]
    if shown:
        lines += [f">>> {shown}", result]
    return "\n".join(["```python", *lines, "", "```"])


def code(text: str) -> str:
    """Return a call, formatted as code."""
    return f"`{text}`"


def folded(title: str, text: str) -> str:
    """Return text that opens on a click on its title."""
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text}\n\n</details>'
