"""Arguments that have nothing to do here are checked, and `explain` says so; others act."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import nn, ops

from torchspore.context import effects

X = ms.Tensor(np.ones(16, np.float32))


def rows() -> ds.NumpySlicesDataset:
    return ds.NumpySlicesDataset([1, 2, 3, 4], shuffle=False)


def identity(value: Any) -> Any:
    return value


def model(**arguments: Any) -> ms.Model:
    net = nn.Dense(2, 2)
    return ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), **arguments)


REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "boost": (lambda: model(boost_level="O1"), "training", "Model(boost_level='O1')"),
    "map processes": (lambda: rows().map(identity, num_parallel_workers=2, python_multiprocessing=True), "data",
                      "map(python_multiprocessing=True)"),
    "batch processes": (lambda: rows().batch(2, num_parallel_workers=2, python_multiprocessing=True), "data",
                        "batch(python_multiprocessing=True)"),
    "rows of map": (lambda: rows().map(identity, max_rowsize=6), "data", "map(max_rowsize=6)"),
    "rows of batch": (lambda: rows().batch(2, max_rowsize=[6, 7]), "data", "batch(max_rowsize=[6, 7])"),
    "offload": (lambda: rows().map(identity, offload=True), "data", "map(offload=True)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_means_nothing_here_is_reported(what: str) -> None:
    call, section, beginning = REFUSED[what]
    call()
    assert any(line.startswith(beginning + ": ") for line in effects.notes().get(section, []))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "seed": (lambda: ops.dropout(X, 0.5, True, -5), ValueError, "seed=-5: expected an int from 0 on."),
    "kind of seed": (lambda: ops.dropout(X, 0.5, True, "a"), TypeError, "seed='a': expected an int, got str."),
    "boost": (lambda: model(boost_level="O9"), ValueError, "Model(boost_level='O9'): expected"),
    "rows": (lambda: rows().map(identity, max_rowsize="a"), TypeError, "map(max_rowsize='a'): expected an int or a list"),
    "few rows": (lambda: rows().batch(2, max_rowsize=-5), ValueError, "batch(max_rowsize=-5): expected sizes in MB from -1 on"),
    "offload": (lambda: rows().map(identity, offload="a"), TypeError, "map(offload='a'): expected True, False or None, got str"),
    "device": (lambda: ms.Tensor([1.0], device="zzz"), ValueError, "Tensor(device='zzz'): expected 'CPU' or None."),
    "kind of device": (lambda: ms.Parameter(X, device=3), TypeError, "Parameter(device=3): expected 'CPU' or None, got int."),
    "initial": (lambda: ops.max(ops.ones((2, 2)), 1, initial="a"), TypeError, "initial='a': expected a number, got str."),
    "where": (lambda: ops.max(ops.ones((2, 2)), 1, where=ops.ones((2, 2)) > 0), ValueError, "where=...: expected initial too"),
    "kind of where": (lambda: ops.max(ops.ones((2, 2)), 1, initial=1, where="a"), TypeError, "where='a': expected a Tensor of truth"),
    "numbers as where": (lambda: ops.max(ops.ones((2, 2)), 1, initial=1, where=ops.ones((2, 2))), TypeError,
                         "expected a Tensor of truth values, got one of numbers."),
    "Conv2D": (lambda: ops.Conv2D(7, 3)(ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3))), ValueError,
               "out_channel=7, kernel_size=3: expected a weight of 7 kernels of (3, 3), got 2 of (3, 3)."),
    "mode": (lambda: ops.Conv2D(2, 3, mode=0)(ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3))), ValueError, "mode=0): expected 1."),
    "locking": (lambda: nn.FTRL(nn.Dense(2, 2).trainable_params(), use_locking=3), TypeError,
                "FTRL(use_locking=3): expected a bool, got int."),
    "slice": (lambda: ms.Parameter(X, name="p").set_data(X, slice_shape=1), TypeError, "set_data(slice_shape=1): expected a bool."),
    "decay": (lambda: setattr(nn.SGD([{"params": nn.Dense(2, 2).trainable_params(), "weight_decay": 0.1}], 0.1), "weight_decay", 0.2),
              TypeError, "SGD.weight_decay = 0.2: each group of Parameters has a separate one."),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_refused(what: str) -> None:
    call, kind, text = WRONG[what]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)


def test_an_offset_gives_another_permutation() -> None:
    values = [ops.randperm(50, seed=3, offset=offset).asnumpy().tolist() for offset in (0, 2, 0)]
    assert values[0] == values[2] != values[1]


def test_data_sink_compiles_as_the_config_says() -> None:
    def step(x: Any) -> Any:
        return x + 1

    sink = ms.data_sink(step, rows().batch(2), jit_config=ms.JitConfig(jit_syntax_level="STRICT"))
    assert sink().asnumpy().tolist() == [2, 3]


def test_another_shape_is_taken_as_in_mindspore() -> None:
    parameter = ms.Parameter(ms.Tensor([1.0, 2.0]), name="p")
    before, view = parameter.asnumpy(), parameter.data
    parameter.set_data(ms.Tensor([1.0, 2.0, 3.0]))
    assert parameter.shape == (3,) and before.tolist() == view.asnumpy().tolist() == [1.0, 2.0]
