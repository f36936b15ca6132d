"""Hostile names of columns and segments, which must be treated as text."""

from __future__ import annotations

NAMES = (
    "<script>document.title='run'</script><img src=x onerror=alert(1)>",
    "\"'`;&amp;</title>",
    "two\nlines\r\tand a tab\u2028",
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "nul\0inside",
    "nul at the end\0",
    "m" * 300,
    "👩\u200d🔬 turned \u202earound",
    "[bold]x[/bold]",
    "[/]",
    "--help",
    "=cmd|' /C calc'!A0",
    "$x^2",
    "$\\frac",
    "{{ 7 * 7 }}{% raw %}",
    "%s {0} \\",
    "p",
    "count",
    "model",
    "__index__",
    "__proto__",
    "\0slices",
    "",
)
