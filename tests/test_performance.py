"""The performance page shows the saved results."""

from __future__ import annotations

from benchmarks import performance_page


def test_page_is_written_from_the_saved_results() -> None:
    shown = performance_page.PAGE.read_text(encoding="utf-8")
    assert shown == performance_page.text(performance_page.load()), (
        "run: python -m benchmarks.performance --page"
    )
