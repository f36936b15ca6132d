"""Start the command line, or say what it needs. `python -m softcal` is the same as `softcal`."""

from __future__ import annotations

import sys

from softcal.extras import MissingExtraError, naming_the_extra


def main() -> None:
    """Run the command line; exit code 0 when it worked, 2 when it was refused."""
    for stream in (sys.stdout, sys.stderr):
        # A name the terminal's encoding lacks is shown escaped, not refused.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with naming_the_extra():
            from softcal.cli import run

            code = run(sys.argv[1:])
    except MissingExtraError as error:
        sys.stderr.write(f"softcal: error: {error}\n")
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
