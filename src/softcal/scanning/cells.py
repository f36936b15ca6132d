"""Names of segments and groups: values of any engine as texts, and their numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.inputs import Coded
from softcal.exceptions import InputError
from softcal.scanning.data import Cut, Days
from softcal.scanning.days import refuse_unclear, text_of_day
from softcal.scanning.texts import text_of
from softcal.table.owners import places_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softcal.scanning.plan import Plan

_WHOLE = re.compile("-?[0-9]+")


def coded(values: Any, name: str, text: Any = text_of) -> Coded:
    """Encode an Arrow column as numbers and different texts; a missing value is None."""
    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    found = plain.dictionary_encode(null_encoding="encode")
    try:
        texts = [text(value) for value in found.dictionary.to_pylist()]
    except (OverflowError, ValueError) as error:
        message = f"{name} must hold values that Python can hold: {error}."
        raise InputError(message) from error
    different = in_order(texts)
    renumbered = np.array([different[each] for each in texts], dtype=np.int64)
    return Coded(renumbered[np.from_dlpack(found.indices)], list(different))


def in_order(texts: Iterable[str | None]) -> dict[str | None, int]:
    """Return the number of each text in their order, because engines return them in any."""
    different = sorted(dict.fromkeys(texts), key=lambda text: (text is not None, text or ""))
    return {each: k for k, each in enumerate(different)}


def coded_groups(values: Any, name: str) -> Coded:
    """Encode an Arrow column without missing values as numbers and different names.

    The names are a NumPy array if they are integers or the text of integers, else an Arrow array
    of text. As Python objects, the names of several batches would take too much memory.
    """
    import pyarrow as pa

    plain = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    is_text = pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type)
    if not len(plain) or (not is_text and not pa.types.is_integer(plain.type)):
        return coded(values, name)
    found = plain.dictionary_encode()
    names: Any = found.dictionary
    if not is_text or _WHOLE.fullmatch(str(names[0])):  # then the others may be integers too
        try:
            whole = names.cast(pa.int64())
        except pa.ArrowInvalid:
            whole = pa.nulls(len(names), pa.int64())
        if whole.cast(names.type).equals(names):  # not so for "007", a different group from "7"
            names = np.from_dlpack(whole)
        elif not is_text:
            return coded(values, name)
    return Coded(np.from_dlpack(found.indices).astype(np.int64), names)


class Cells:
    """The names of the segments of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def of_batch(self, columns: Sequence[Any]) -> Coded:
        """Return the combination of values of each row, as numbers, and the combinations."""
        each = [self._coded(*both) for both in zip(self._plan.data.by, columns, strict=True)]
        if len(each) == 1:
            return Coded(each[0].numbers, [(name,) for name in each[0].names])
        whole = np.zeros(len(columns[0]), dtype=np.int64)
        for one in each:
            whole = whole * max(len(one.names), 1) + one.numbers
        different, numbers = np.unique(whole, return_inverse=True)
        cells = []
        for code in different.tolist():
            cell: list[str | None] = []
            for one in reversed(each):
                code, k = divmod(code, len(one.names))  # noqa: PLW2901
                cell.insert(0, one.names[k])
            cells.append(tuple(cell))
        return Coded(numbers.astype(np.int64), cells)

    def _coded(self, segment: Any, values: Any) -> Coded:
        if isinstance(segment, Cut):
            own = next(one for one in self._plan.ranges if one.column == segment.column)
            return coded(values, segment.column, own.label)
        if isinstance(segment, Days):
            found = coded(values, segment.column)
            days = [text_of_day(segment, name) for name in found.names]
            unclear = [name for name, day in zip(found.names, days, strict=True) if day is None]
            if unclear:
                refuse_unclear(segment, unclear, self._plan.models[0].roles.source)
            different = in_order(days)
            renumbered = np.array([different[day] for day in days], dtype=np.int64)
            return Coded(renumbered[found.numbers], list(different))
        return coded(values, str(segment))

    def groups(self, values: Any) -> Coded:
        """Return the groups of rows."""
        return coded_groups(values, str(self._plan.data.groups))

    def places(self, groups: Any) -> Any:
        """Return a batch of groups with the place that each shares with others."""
        import pyarrow as pa

        found = self.groups(groups["group"])
        place = places_of(found.names)[found.numbers].astype(np.int16)
        names = ["group", "place"]
        return pa.record_batch([groups["group"], pa.array(place)], names)
