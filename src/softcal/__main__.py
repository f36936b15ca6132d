"""Start the command line, or say what it needs. `python -m softcal` is the same as `softcal`."""

from __future__ import annotations

import sys

EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "pyarrow": "cli",
    "matplotlib": "plot",
    "altair": "report",
    "jinja2": "report",
    "vl_convert": "report",
    "sklearn": "sklearn",
    "torch": "torch",
    "torchmetrics": "torch",
    "narwhals": "frames",
}


def main() -> None:
    """Run the command line; exit code 0 when it worked, 2 when it was refused."""
    for stream in (sys.stdout, sys.stderr):
        # A name the terminal's encoding lacks is shown escaped, not refused.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        from softcal.cli import run

        code = run(sys.argv[1:])
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(str(error.name).partition(".")[0])
        if extra is None:
            raise
        sys.stderr.write(
            f"softcal: error: this needs the {extra!r} extra: pip install 'softcal[{extra}]'\n"
        )
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
