"""What softcal saves is JSON that says what it is, and of which schema. Reading checks both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from softcal.errors import InputError
from softcal.reading import readable
from softcal.writing import written_whole

if TYPE_CHECKING:
    from pathlib import Path


def refuse_other(saved: object, format_: str, schema: int, name: str) -> None:
    """Refuse what is not saved in this format, or in a schema this softcal does not know."""
    if not isinstance(saved, dict) or saved.get("format") != format_:
        message = f"not {name}: its 'format' must be {format_!r}."
        raise InputError(message)
    found = saved.get("schema")
    if type(found) is not int or not 1 <= found <= schema:
        known = "1" if schema == 1 else f"1 to {schema}"
        message = (
            f"cannot read {name} of schema {found!r:.20}: this softcal reads schema {known}. "
            "Upgrade softcal."
        )
        raise InputError(message)


def write_json(path: Path, saved: dict[str, Any]) -> None:
    """Write a file of JSON, whole or not at all."""
    with written_whole(path) as beside:
        beside.write_text(json.dumps(saved, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path, made_by: str) -> Any:
    """Read a file of JSON, or say that it is none and what would have made one."""
    with readable(path):
        content = path.read_bytes()
    try:
        return json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        message = f"cannot read {path}: it is not JSON, as {made_by} makes it."
        raise InputError(message) from error
