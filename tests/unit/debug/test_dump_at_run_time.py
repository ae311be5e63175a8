"""A dump begins and ends with its variable while the program runs, and its files exist after each call."""
from __future__ import annotations

import json
from pathlib import Path

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops


class Sum(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.add = ops.Add()

    def construct(self, x, y):
        return self.add(x, y)


def test_the_variable_acts_from_the_next_graph_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    x = Tensor([1.0, 2.0])
    Sum()(x, x)
    settings = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": False},
    }
    (tmp_path / "dump.json").write_text(json.dumps(settings))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
    Sum()(x, x)
    files = sorted(path.name for path in (tmp_path / "dump").rglob("*.npy"))
    assert len(files) == 3 and all(name.startswith("Add.Default_Add-op0") for name in files)
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG")
    Sum()(x, x)
    assert len(list((tmp_path / "dump").rglob("*.npy"))) == 3
