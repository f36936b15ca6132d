"""Fill the template of a page, and write it as one HTML file that needs no network."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from softcal._display import counted, printable
from softcal._io import written_whole
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from markupsafe import Markup

    from softcal._validation.inputs import FloatArray


def own_text(name: str) -> Markup:
    """Return a file of this package, which is not escaped because it is ours."""
    from markupsafe import Markup

    return Markup((files("softcal.report") / name).read_text(encoding="utf-8"))  # noqa: S704


def refuse_other_suffix(path: Path) -> None:
    """Raise if the name of a page does not end in .html."""
    if path.suffix.lower() not in (".html", ".htm"):
        message = f"the name of the page must end in .html: got {path.name}."
        raise InputError(message)


def write_html(
    path: Path, name: str, said: Mapping[str, Any], filters: Mapping[str, Any], error: str = "SMECE"
) -> None:
    """Fill the template of a name, and write the page; `error` is what it calls the error."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    environment.filters |= {"counted": counted, **filters}
    source = str(own_text(f"{name}.html.jinja")).replace("SMECE", error)
    page = environment.from_string(source).render(css=own_text("page.css"), **said)
    with written_whole(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="backslashreplace")


def _shown(value: object) -> object:
    """Escape control and bidirectional characters in text; `Markup` is ours and stays as it is."""
    return printable(value) if type(value) is str else value


def six_digits(values: FloatArray) -> list[float]:
    """Return numbers for the script with six digits, because the page shows four."""
    return [float(f"{x:.6g}") for x in values.tolist()]
