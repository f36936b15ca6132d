"""Start the command line, or say what it needs. `python -m softcal` is the same as `softcal`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; exit code 0 when it worked, 2 when it was refused."""
    try:
        from softcal.cli import run

        code = run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in {"typer", "rich", "pyarrow"}:
            raise
        sys.stderr.write(
            "softcal: error: the command line needs the 'cli' extra: pip install 'softcal[cli]'\n"
        )
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
