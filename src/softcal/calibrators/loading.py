"""Maps read back from JSON, trusting nothing: the file may be anybody's."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from softcal import _io
from softcal.calibrators.base import FORMAT, SCHEMA
from softcal.calibrators.binning import HistogramMap, IsotonicMap
from softcal.calibrators.logits import Clipped
from softcal.calibrators.multiclass import DirichletMap, VectorScalingMap
from softcal.calibrators.scaling import BetaMap, PlattMap, TemperatureMap
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from softcal.calibrators.base import CalibrationMap

MAPS: dict[str, type[CalibrationMap]] = {
    map_.method: map_
    for map_ in (
        TemperatureMap,
        PlattMap,
        BetaMap,
        HistogramMap,
        IsotonicMap,
        VectorScalingMap,
        DirichletMap,
    )
}

_OLD_HIGH = 1 - 2.0**-24  # for classes, where nothing depends on it, 0.1 saved no upper end


def load_calibrator(saved: dict[str, Any]) -> CalibrationMap:
    """Read any calibrator back from what `to_dict` gave. Needs no scikit-learn.

    Parameters
    ----------
    saved : dict
        For instance `json.load` of a file `softcal recalibrate` wrote.

    Returns
    -------
    CalibrationMap
        With `predict(y_prob)`, `method`, `to_dict()`, and its numbers as attributes.

    Raises
    ------
    InputError
        If this is not such a calibrator, or one of a newer softcal.

    Examples
    --------
    >>> saved = {
    ...     "format": "softcal.calibrator", "schema": 2,
    ...     "method": "temperature",
    ...     "parameters": {"temperature": 2.0, "input": {"kind": "logits"}},
    ... }
    >>> load_calibrator(saved).predict([-2.0, 0.0, 2.0]).round(3)
    array([0.269, 0.5  , 0.731])
    """
    if not isinstance(saved, dict):
        message = (
            f"load_calibrator takes what was saved, as a dict: got {type(saved).__name__}. Read a "
            "file with json.load first."
        )
        raise InputTypeError(message)
    _io.schema_of(saved, FORMAT, SCHEMA, "a saved calibrator")
    method, parameters = saved.get("method"), saved.get("parameters")
    if not isinstance(method, str) or method not in MAPS:
        message = (
            f"a saved calibrator's 'method' must be one of {', '.join(MAPS)}: got {method!r:.60}."
        )
        raise InputError(message)
    map_ = MAPS[method]
    names = {field.name for field in fields(map_)}  # type: ignore[arg-type]
    old_ends: set[str] = set()
    if saved["schema"] == 1 and "input" in names:
        old_ends = {"low", "high"} if 1 in map_.dimensions else {"low"}
        names = names - {"input"} | old_ends
    if not isinstance(parameters, dict) or set(parameters) != names:
        message = f"the 'parameters' of a saved {method} must be {', '.join(sorted(names))}."
        raise InputError(message)
    if old_ends:
        clipped = {"kind": Clipped.kind, "high": _OLD_HIGH}
        clipped.update((name, parameters[name]) for name in old_ends)
        parameters = {**parameters, "input": clipped}
    return map_.read(parameters)
