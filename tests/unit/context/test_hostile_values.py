"""Every option with every odd value: it takes it, or says in the house form what it wants; nothing else is raised."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest

from torchspore.context.options import OPTIONS
from torchspore.context.public import scope
from torchspore.errors import OptionValueError, TorchsporeError


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Incomparable:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")


def nested() -> Any:
    result: Any = 0
    for _ in range(3000):
        result = [result]
    return result


# Python 3.14 shows it: there the depth that is available depends on the size of the stack.
NESTED = "<list that can't be shown>" if sys.version_info < (3, 14) else f"{'[' * 28} .. {']' * 28}"


def endless() -> list[Any]:
    results: list[Any] = []
    results.append(results)
    return results


VALUES: dict[str, Any] = {
    "large int": 10**400, "larger int": -(10**5000), "nan": float("nan"), "endless": endless(), "endless dict": {"a": endless()}, "nested": nested(),  # noqa: E501
    "int64": np.int64(1), "float32": np.float32(1.5), "bool_": np.bool_(True), "array": np.zeros(3), "0-d array": np.array(1),
    "array in a dict": {"a": np.zeros(2)}, "no repr": Unshowable(), "no eq": Incomparable(), "bytes": b"x", "complex": 1j, "set": {1}, "type": int,  # noqa: E501
    "many GB": "1" * 5000 + "GB", "half a pair": "/\ud800", "zero byte": "a\0b",
}


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("print_file_path", "device_target", "graph_kernel_flags", "save_graphs_path")])  # noqa: E501
def test_a_value_that_does_not_fit_is_reported_in_the_usual_form(name: str) -> None:
    for value in VALUES.values():
        try:
            with scope(**{name: value}):
                pass
        except TorchsporeError as error:
            assert isinstance(error, (TypeError, ValueError, OSError)) and len(str(error)) < 3000 and len(str(error).splitlines()) <= 12


@pytest.mark.parametrize(("value", "shown"), [(10**400, "1000000000000000000000000000 .. 0000000000000000000000000000"),
                                             (-(10**5000), "an int of 16610 bits"), (nested(), NESTED)],
                         ids=["large", "larger", "nested"])
def test_the_message(value: object, shown: str) -> None:
    with pytest.raises(TypeError) as caught:
        ms.set_context(max_device_memory=value)
    assert str(caught.value).startswith(f"set_context(max_device_memory={shown}): expected a size such as '3.5GB'.")


def test_a_file_of_options_that_is_none_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("[" * 200_000)
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "twice").write_text('{"enable_task_opt": true, "enable_task_opt": false}')
    endless = dict.fromkeys(("fifo", "/dev/zero"), "no plain file")
    expected_texts = {"deep": "nested too deeply", "huge": "more than 16 MiB", "twice": "'enable_task_opt' appears twice", **endless}
    for name, why in expected_texts.items():
        with pytest.raises(OptionValueError, match=why):
            ms.set_context(ascend_config={"parallel_speed_up_json_path": str(tmp_path / name)})
        with pytest.warns(UserWarning, match=why):
            ms.set_context(graph_kernel_flags=f"--path={tmp_path / name}")
