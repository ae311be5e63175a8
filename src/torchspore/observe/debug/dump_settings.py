"""The settings of dumps: the JSON that MINDSPORE_DUMP_CONFIG names, with MindSpore's members, checked by name."""
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.base import json_text, operator_names
from torchspore.base.files import read_plain
from torchspore.base.suggest import closest
from torchspore.base.text import with_hint

VARIABLES = ("MINDSPORE_DUMP_CONFIG", "MINDSPORE_CONFIG_PATH")
"""The environment's names of the file, the second one of 1.x."""
CATEGORIES = {
    "max": "Max Value", "min": "Min Value", "avg": "Avg Value", "count": "Count", "negative zero count": "Negative Zero Count",
    "positive zero count": "Positive Zero Count", "nan count": "NaN Count", "negative inf count": "Negative Inf Count",
    "positive inf count": "Positive Inf Count", "zero count": "Zero Count", "md5": "MD5", "l2norm": "L2Norm Value",
}
"""The statistics by their names in `statistic_category`, with the titles of their columns."""
_LARGEST = 1 << 20
"""Bytes of the file at most."""


@dataclass(frozen=True)
class Settings:
    """The written files, operators and iterations."""

    path: str
    net_name: str = "Net"
    everything: bool = True
    """True if operators are written at all that neither fail nor overflow."""
    overflows: bool = False
    """Only operators whose results hold NaN or infinity (`op_debug_mode` 3)."""
    overflow_number: int = 0
    """After how many of them no more are written; 0 is any number."""
    failures: str = ""
    """The values of a failing operator that are written: 'inputs', or '' for nothing (`op_debug_mode` 4, `exception_dump`)."""
    iterations: tuple[tuple[int, int], ...] | None = None
    """The first and last iteration of each range; None means all."""
    tensors: bool = True
    statistics: bool = False
    inputs: bool = True
    outputs: bool = True
    kernels: tuple[str, ...] | None = None
    """The operators, as `dump_mode` 1 names them; None means all."""
    marked: bool = False
    """Only those of Cells and primitives that `set_dump` names (`dump_mode` 2)."""
    devices: tuple[int, ...] | None = None
    categories: tuple[str, ...] = ("max", "min", "l2norm")
    sample: int | None = None
    """The number of written elements of a tensor; None means all."""
    idle: tuple[str, ...] = field(default=(), compare=False)
    """Settings without an effect here, each with its reason."""

    def has(self, iteration: int) -> bool:
        """Return whether an iteration is dumped."""
        return self.iterations is None or any(first <= iteration <= last for first, last in self.iterations)

    def takes(self, name: str, operator: str) -> bool:
        """Return whether an operator of this full name is dumped."""
        return self.kernels is None or any(matches(kernel, name, operator) for kernel in self.kernels)


_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)


def matches(kernel: str, name: str, operator: str) -> bool:
    """Return whether an entry of `kernels` means the operator of this full name."""
    match = _REGEX.fullmatch(kernel)
    if match is not None:
        return re.fullmatch(match.group(1), name) is not None
    if "/" in kernel or re.search(r"-op\d+$", kernel):
        is_here = kernel in (name, name.rpartition("/")[2])
    else:
        is_here = kernel.lower() in name.rpartition("/")[2].lower() or kernel.lower() in operator.lower()
    return is_here or _is_mindspores(kernel, name, operator)


_OF_MINDSPORE = re.compile(r"(?:(?P<scope>.+)/)?(?P<kind>\w+?)(?:-op(?P<number>\d*))?")
_GRADIENT_OF = re.compile(r"/Grad_\w+$")


def _is_mindspores(kernel: str, name: str, operator: str) -> bool:
    """Return whether an entry of `kernels` names an operator of MindSpore's graph that this operator computes.

    `.../fc-Dense/MatMul-op0` is part of the Dense operator of that layer here, and `Gradients/.../Grad_MatMul/MatMul-op1` of its gradient.
    """
    parts = _OF_MINDSPORE.fullmatch(kernel)
    if parts is None:
        return False
    here, is_gradient = operator.lower(), name.startswith("Gradients/")
    kinds = operator_names.names_here(parts["kind"])
    is_kind = here in kinds
    if is_gradient:
        is_kind = is_kind or here.removesuffix("grad") in kinds or here in operator_names.names_here(f"{parts['kind']}Grad")
    if parts["scope"] is not None:
        layers = [_GRADIENT_OF.sub("", scope) for scope in (parts["scope"], name.rpartition("/")[0])]
        is_kind = is_kind and layers[0] == layers[1]
    if not parts["number"] or (is_gradient and parts["scope"] is not None):      # one gradient here is several operators there
        return is_kind
    return is_kind and name.endswith(f"-op{parts['number']}")


def from_environment() -> tuple[str, str] | None:
    """Return (the variable, its path), None if no variable is set."""
    return next(((name, os.environ[name]) for name in VARIABLES if os.environ.get(name)), None)


def read(path: str, warn: Callable[[str], None]) -> Settings:
    """Read the settings of a file. Raises ValueError that names the wrong member; `warn` receives unknown members by name."""
    try:
        if os.path.getsize(path) > _LARGEST:
            raise ValueError(f"{path}: expected a JSON file of dump settings, of less than {_LARGEST} bytes.")
        document = json_text.parse(read_plain(_path(path)))
    except OSError as error:
        raise ValueError(f"{path}: expected a JSON file of dump settings ({error.strerror or error}).") from None
    except (ValueError, RecursionError) as error:
        if str(error).startswith(path):
            raise
        raise ValueError(f"{path}: expected JSON ({error}).") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected one JSON object, got a {type(document).__name__}.")
    return _Reader(path, warn).settings(document)


def _path(path: str) -> Any:
    from pathlib import Path

    return Path(path)


def spans(text: str) -> tuple[tuple[int, int], ...] | None:
    """'0|5-8' as ((0, 0), (5, 8)); 'all' as None. Raises ValueError."""
    if text.strip() == "all":
        return None
    problems = []
    for part in text.split("|"):
        first, dash, last = (word.strip() for word in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise ValueError(part.strip())
        problems.append((int(first), int(last) if dash else int(first)))
    return tuple(problems)


class _Reader:
    """Reads the members of one file."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self._file, self._warn = path, warn
        self._idle: list[str] = []

    def settings(self, document: Mapping[str, Any]) -> Settings:
        """All that the file says."""
        sections = {"common_dump_settings": _COMMON, "e2e_dump_settings": _E2E, "async_dump_settings": ("enable", "op_debug_mode")}
        for name in document:
            if name not in sections:
                self._unknown(name, tuple(sections))
            elif not isinstance(document[name], dict):
                raise ValueError(f"{self._file}: {name}: expected an object, got a {type(document[name]).__name__}.")
            else:
                for member in document[name]:
                    if member not in sections[name]:
                        self._unknown(f"{name}.{member}", tuple(f"{name}.{known_member}" for known_member in sections[name]))
        common = document.get("common_dump_settings")
        if common is None:
            raise ValueError(f"{self._file}: expected a section common_dump_settings.")
        e2e = {**document.get("async_dump_settings", {}), **document.get("e2e_dump_settings", {})}
        return self._build({**e2e, **common}, e2e)

    def _build(self, common: Mapping[str, Any], e2e: Mapping[str, Any]) -> Settings:
        mode = self._choice(common, "op_debug_mode", (0, 1, 2, 3, 4), 0)
        dump_mode = self._choice(common, "dump_mode", (0, 1, 2), 0)
        saved = self._choice(common, "saved_data", ("tensor", "statistic", "full"), "tensor")
        sides = self._choice(common, "input_output", (0, 1, 2), 0)
        kernels = self._listed(common, "kernels", str)
        for kernel in kernels or ():
            self._check_regex(kernel)
        if dump_mode == 1 and not kernels:
            raise self._wrong("kernels", kernels or [], "at least one operator, as dump_mode is 1")
        if self._choice(e2e, "sample_mode", (0, 1), 0):
            sample: int | None = self._integer(e2e, "sample_num", 100)
        else:
            sample = None
        self._check_reported(common, e2e)
        return Settings(
            path=self._folder(common),
            net_name=self._text(common, "net_name", "Net").replace("/", "_") or "Net",
            everything=mode == 0,
            overflows=mode in (1, 2, 3),
            overflow_number=self._integer(common, "overflow_number", 0),
            failures="inputs" if mode == 4 else "",
            iterations=self._spans(common),
            tensors=saved != "statistic",
            statistics=saved != "tensor",
            inputs=sides != 2,
            outputs=sides != 1 and mode != 4,
            kernels=tuple(kernels) if dump_mode == 1 and kernels is not None else None,
            marked=dump_mode == 2,
            devices=_numbers(self._listed(common, "support_device", int)),
            categories=self._categories(common),
            sample=sample,
            idle=tuple(self._idle),
        )

    def _check_reported(self, common: Mapping[str, Any], e2e: Mapping[str, Any]) -> None:
        """Checks what means nothing here, and keeps why."""
        if self._choice(common, "file_format", ("npy", "bin"), "npy") == "bin":
            self._idle.append("file_format 'bin': npy is written, as bin is for tools of Ascend devices")
        for name, allowed, why in (
            ("trans_flag", (True, False), "tensors have the layout that the program gives them"),
            ("stat_calc_mode", ("host", "device"), "statistics are computed on the host"),
            ("device_stat_precision_mode", ("high", "low"), "statistics are computed on the host, in float64"),
            ("save_kernel_args", (False, True), "operators are functions here; the program's line, which is logged, shows their arguments"),
        ):
            if name in e2e and self._choice(e2e, name, allowed, None) != allowed[0]:
                self._idle.append(f"{name}: {why}")
        self._choice(e2e, "enable", (True, False), True)

    def _unknown(self, name: str, known_members: tuple[str, ...]) -> None:
        near = closest(name, known_members)
        self._warn(f"{self._file}: {name} is not a member of dump settings and is not used" + (f"; {near} is one." if near else "."))

    def _wrong(self, name: str, value: Any, expected: str, hint: str = "") -> ValueError:
        text = f"{self._file}: {name}={value!r:.60}: expected {expected}."
        return ValueError(with_hint(text, hint) if hint else text)

    def _choice(self, section: Mapping[str, Any], name: str, allowed: tuple[Any, ...], default: Any) -> Any:
        value = section.get(name, default)
        if name in section and not any(value == allowed_value and type(value) is type(allowed_value) for allowed_value in allowed):
            raise self._wrong(name, value, "one of " + ", ".join(json.dumps(allowed_value) for allowed_value in allowed))
        return value

    def _integer(self, section: Mapping[str, Any], name: str, default: int) -> int:
        value = section.get(name, default)
        if type(value) is not int or value < 0:
            raise self._wrong(name, value, "a whole number from 0 on")
        return value

    def _text(self, section: Mapping[str, Any], name: str, default: str) -> str:
        value = section.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return value

    def _listed(self, section: Mapping[str, Any], name: str, kind: type) -> list[Any] | None:
        value = section.get(name)
        if value is not None and (not isinstance(value, list) or not all(type(item) is kind for item in value)):
            raise self._wrong(name, value, "a list of " + ("texts" if kind is str else "whole numbers"))
        return value

    def _spans(self, common: Mapping[str, Any]) -> tuple[tuple[int, int], ...] | None:
        value = common.get("iteration", "all")
        try:
            return spans(str(value) if type(value) is int else value)
        except (ValueError, AttributeError):
            raise self._wrong("iteration", value, "'all', or numbers and spans such as '0|5-8|100-120'") from None

    def _categories(self, common: Mapping[str, Any]) -> tuple[str, ...]:
        categories = self._listed(common, "statistic_category", str)
        for name in categories or ():
            if name not in CATEGORIES:
                near = closest(name, tuple(CATEGORIES))
                raise self._wrong("statistic_category", name, "some of " + ", ".join(CATEGORIES), f"write {near!r}" if near else "")
        return Settings.categories if categories is None else tuple(categories)

    def _check_regex(self, kernel: str) -> None:
        match = _REGEX.fullmatch(kernel)
        if match is not None:
            try:
                re.compile(match.group(1))
            except re.error as error:
                raise self._wrong("kernels", kernel, f"a regular expression ({error})") from None

    def _folder(self, common: Mapping[str, Any]) -> str:
        path = self._text(common, "path", "")
        if not path:
            root = os.environ.get("MS_DIAGNOSTIC_DATA_PATH", "")
            if not root:
                raise self._wrong("path", path, "the absolute path of a folder", "write one, or set MS_DIAGNOSTIC_DATA_PATH")
            return os.path.join(root, "debug_dump")
        if not os.path.isabs(path):
            raise self._wrong("path", path, "an absolute path", f"write {os.path.abspath(path)!r}")
        return path


def _numbers(listed: list[Any] | None) -> tuple[int, ...] | None:
    return None if listed is None else tuple(listed)


_COMMON = (
    "op_debug_mode", "dump_mode", "path", "net_name", "iteration", "saved_data", "input_output", "kernels", "support_device",
    "statistic_category", "file_format", "overflow_number",
)
_E2E = ("enable", "trans_flag", "stat_calc_mode", "device_stat_precision_mode", "sample_mode", "sample_num", "save_kernel_args")
