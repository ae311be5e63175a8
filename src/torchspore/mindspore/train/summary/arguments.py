"""Checks of the arguments of SummaryRecord and SummaryCollector, with MindSpore's texts."""
from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

from torchspore.translations import translate

EXPORT_OPTIONS: dict[str, set[str | None]] = {"tensor_format": {"npy", None}}
"""The values of each of `export_options`."""
LANDSCAPE = {
    "landscape_size": 40, "unit": "step", "num_samples": 2048, "create_landscape": {"train": True, "result": True},
    "intervals": [[1, 2, 3, 4, 5, 6, 7, 8, 9], [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]],
}
SPECIFIED: dict[str, Any] = {
    "collect_metric": True, "collect_graph": True, "collect_train_lineage": True, "collect_eval_lineage": True, "collect_input_data": True,
    "collect_dataset_graph": True, "histogram_regular": None, "collect_landscape": LANDSCAPE,
}
"""`collect_specified_data` without one of the program."""
_SIZES = range(4, 256)


def _explained(kind: type[Exception], text: str) -> Exception:
    """Return an error whose text stays as it is, without the line and the name of the call."""
    error = kind(text)
    error.explained = True  # type: ignore[attr-defined]
    return error


def check_kind(name: str, value: Any, *kinds: type) -> None:
    """Raises TypeError for a value of another type; a bool is not an int."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        shown = [kind.__name__ for kind in kinds]
        text = translate("For `{name}` the type should be a valid type of {types}, but got {kind}.")
        raise _explained(TypeError, text.format(name=name, types=shown, kind=type(value).__name__))


def _check_keys(name: str, quote: str, present: Collection[Any], offered: Collection[str]) -> None:
    unknown = set(present) - set(offered)
    if unknown:
        text = translate('For "{owner}", the keys {keys} of {name} are unsupported, expect the follow keys: {offered}')
        owner = "SummaryRecord" if quote == '"' else "SummaryCollector"
        raise _explained(ValueError, text.format(owner=owner, keys=unknown, name=f"{quote}{name}{quote}", offered=list(offered)))


def check_folder(name: str, folder: Any) -> None:
    """Raises TypeError, ValueError or NotADirectoryError for an argument that cannot be a folder."""
    if not isinstance(folder, str):
        raise _explained(TypeError, translate("The {name} is invalid, the type should be string.").format(name=name))
    if not folder.strip():
        raise _explained(ValueError, translate("The {name} is invalid, it should be non-blank.").format(name=name))
    if os.path.isfile(folder):
        text = translate("The path({path}) is a file path, it should be a directory path.")
        raise _explained(NotADirectoryError, text.format(path=os.path.realpath(folder)))


def check_export_options(options: Any) -> None:
    """Raises TypeError and ValueError for other `export_options` than {'tensor_format': 'npy'} and None."""
    check_kind("export_options", options, dict, type(None))
    _check_keys("export_options", '"', options or {}, EXPORT_OPTIONS)
    for name, value in (options or {}).items():
        check_kind("export_format", value, str, type(None))
        if value not in EXPORT_OPTIONS[name]:
            text = translate(
                'For "SummaryRecord", the export_format {value} of "export_options" are unsupported for {name}, expect the follow values: '
                "{offered}"
            )
            raise _explained(ValueError, text.format(value={value}, name=name, offered=list(EXPORT_OPTIONS[name])))


def check_count(name: str, count: Any, is_optional: bool = False) -> None:
    """Raises TypeError and ValueError for other values than an int from 1 on; None may be allowed."""
    if is_optional and count is None:
        return
    check_kind(name, count, int)
    if count < 1:
        text = translate('For "SummaryCollector", the value of `{name}` should be greater than 0, but got `{count}`.')
        raise _explained(ValueError, text.format(name=name, count=count))


def check_lineage(data: Any) -> None:
    """Raises TypeError for other `custom_lineage_data` than numbers and texts by name, or None."""
    check_kind("custom_lineage_data", data, dict, type(None))
    for name, value in (data or {}).items():
        check_kind(f"custom_lineage_data -> {name}", name, str)
        check_kind(f"the value of custom_lineage_data -> {name}", value, int, str, float)


def check_specified(specified: Any, keeps_default: Any) -> dict[str, Any]:
    """Return `collect_specified_data` as a dict. Raises TypeError and ValueError for invalid values."""
    check_kind("collect_specified_data", specified, dict, type(None))
    check_kind("keep_default_action", keeps_default, bool)
    specified = dict(specified or {})
    for name in specified:
        check_kind(name, name, str)
    _check_keys("collect_specified_data", "`", specified, SPECIFIED)
    for name, value in specified.items():
        if name == "histogram_regular":
            _check_pattern(value)
        elif name == "collect_landscape":
            _check_landscape(value)
        else:
            check_kind(name, value, bool)
    return specified


def _check_pattern(pattern: Any) -> None:
    check_kind("histogram_regular", pattern, str, type(None))
    try:
        re.compile(pattern or "")
    except re.error as error:
        text = translate(
            "For `collect_specified_data`, the value of `histogram_regular` is not a valid regular expression. Detail: {error}."
        )
        raise _explained(ValueError, text.format(error=error)) from error


def _check_landscape(landscape: Any) -> None:
    check_kind("collect_landscape", landscape, dict, type(None))
    _check_keys("collect_landscape", "`", landscape or {}, LANDSCAPE)
    for name, value in (landscape or {}).items():
        check_kind(name, value, type(LANDSCAPE[name]))
        if name == "landscape_size" and value not in _SIZES:
            text = translate(
                'For "SummaryCollector", the "landscape_size" in collect_specified_data should be less than 256 and more than 3, but got '
                "the: {value}"
            )
            raise _explained(ValueError, text.format(value=value))
        if name == "unit" and value not in ("step", "epoch"):
            text = translate('For "SummaryCollector", unit in collect_specified_data should be step or epoch, but got the: {value}.')
            raise _explained(ValueError, text.format(value=value))
        if name == "create_landscape":
            for key, is_created in value.items():
                if key not in ("train", "result"):
                    text = translate(
                        'For "SummaryCollector", the key to create landscape should be in ["train", "result"], but got the: {key}.'
                    )
                    raise _explained(ValueError, text.format(key=key))
                check_kind(key, is_created, bool)
        for interval in value if name == "intervals" else ():
            check_kind("each interval in intervals", interval, list)
