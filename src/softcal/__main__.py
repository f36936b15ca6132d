"""Start the command line, or print what it needs. `python -m softcal` is the same as `softcal`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from softcal._io import remove_unfinished
from softcal._optional import MissingExtraError, naming_the_extra

if TYPE_CHECKING:
    from types import FrameType

_STOPPING = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
]


def main() -> None:
    """Run the command line. The exit code is the command's, 2 after an error, or 128 + a signal."""
    gc.set_threshold(100_000)  # imports make many objects and hardly any garbage
    signals = [number for number in _STOPPING if signal.getsignal(number) != signal.SIG_IGN]
    for number in signals:
        signal.signal(number, _stop)
    _open_streams()
    try:
        with naming_the_extra():
            from softcal.cli import run

            code = run(sys.argv[1:])
    except MissingExtraError as error:
        sys.stderr.write(f"softcal: error: {error}\n")
        code = 2
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # Python would exit with 1, which means an alarm
        code = _reported(error)
    for number in signals:  # the work is done, and Python is about to remove the handler
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def _reported(error: Exception) -> int:
    """Print an error that softcal did not expect; return its exit code."""
    import traceback  # here, because it is rarely needed

    try:
        traceback.print_exception(error)
        sys.stderr.write("softcal: error: unexpected. Please report it with the lines above.\n")
    except OSError:  # stderr is closed or full, and Python would try to flush it at exit
        sys.stderr = None
    return 2


def _open_streams() -> None:
    """Make printing safe for any stream.

    A stream that the caller closed, as `>&-` does, is replaced before an opened file gets its
    number. Characters that the terminal's encoding lacks are escaped.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """Stop at once, without unfinished files.

    An exception would not stop Python everywhere: in the callbacks of an import, Python prints it
    and continues. It would also wait for running threads.
    """
    remove_unfinished()
    with suppress(OSError):  # the reader may have closed the stream
        terminal = os.dup(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the thread that draws the bar still runs
        if os.isatty(terminal):
            os.write(terminal, b"\r\x1b[K\x1b[?25h")  # the bar's line, and the cursor it hid
        os.write(terminal, f"softcal: stopped by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
