"""`softcal demo`: what softcal is for."""

from __future__ import annotations

from softcal import terminal


def demo() -> None:
    """Show what softcal is for, on the radiologists' data that comes with it."""
    from softcal.demo import show

    show(terminal.console())
