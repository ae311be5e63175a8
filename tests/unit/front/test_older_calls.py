"""Calls in the spelling of older MindSpore releases: the table, its renamed keywords, and calls whose meaning changed."""
from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.public_names import older_calls
from torchspore.public_names.older_calls import OlderCall

VALUES: dict[str, Any] = {
    "dim": 0, "axis": 0, "axes": 0, "dims": (0,), "keepdim": True, "keep_dims": True, "keepdims": True, "ord": 2, "min": 0.2, "max": 0.7,
    "dtype": ms.float32, "axis0": 0, "axis1": 1, "dim0": 0, "dim1": 1, "shape": (3, 3), "k": 1, "n": 1, "shifts": 1,
    "offset": 0, "index": 0,
    "indices": Tensor([0, 1], ms.int32), "tensors": (Tensor(np.eye(3, dtype=np.float32)),) * 2, "padding": (1, 1), "p": 0.0, "eps": 1e-5,
    "repeats": 2, "size": (3, 3), "condition": Tensor(np.eye(3) > 0), "alpha": 1.0, "num_classes": 3, "reduction": "mean",
}


def _resolve(name: str) -> Any:
    parts = ["mindspore", *name.split(".")] if not name.startswith("mindspore.") else name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise LookupError(name)


def _value(parameter: str) -> Any:
    matrix = np.arange(9, dtype=np.float32).reshape(3, 3) / 10 + 0.05
    return VALUES.get(parameter, Tensor(matrix))


def _as_numpy(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_as_numpy(item) for item in value]
    return value.asnumpy() if isinstance(value, Tensor) else value


RENAMED = [
    row for rows in older_calls.table().values() for row in rows if row.renamed and row.name.startswith(("ops.", "mindspore.Tensor."))
]


def _results(row: OlderCall) -> tuple[Any, Any] | None:
    """Return the results in the older and in today's spelling; None if the generated values do not suit the function."""
    function, is_method = _resolve(row.name), ".Tensor." in row.name
    if isinstance(function, type):
        return None
    parameters = list(inspect.signature(function).parameters.values())[is_method:]
    needed = {p.name: _value(p.name) for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL}
    today = needed | {new: _value(new) for new in row.renamed.values()}
    back = {new: old for old, new in row.renamed.items()}
    older = {back.get(name, name): value for name, value in today.items()}
    call = getattr(_value("self"), row.name.rpartition(".")[2]) if is_method else function
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ms.set_seed(1)
            expected = call(**today)
    except Exception:
        return None
    ms.set_seed(1)
    return call(**older), expected


def test_each_renamed_keyword_gives_the_result_of_todays() -> None:
    compared, wrong = [], []
    for row in RENAMED:
        if row.name in older_calls.UNWRAPPED:
            continue
        try:
            results = _results(row)
        except Exception as error:
            wrong.append(f"{row.name} {dict(row.renamed)}: {error}")
            continue
        if results is not None:
            np.testing.assert_equal(_as_numpy(results[0]), _as_numpy(results[1]), row.name)
            compared.append(row.name)
    assert not wrong, "\n".join(wrong)
    assert len(set(compared)) >= 120, sorted(set(compared))


X = Tensor(np.arange(8).reshape(2, 4).astype(np.float32))


@pytest.mark.parametrize("older, today", [
    (lambda: X.split(axis=1, output_num=2), lambda: X.split(2, axis=1)),
    (lambda: ops.split(X, axis=1, output_num=2), lambda: ops.split(X, 2, axis=1)),
    (lambda: X.clip(xmin=1, xmax=5), lambda: X.clip(1, 5)),
    (lambda: ops.norm(X, axis=1), lambda: ops.norm(X, dim=1)),
    (lambda: ops.ones(shape=(2,), type=ms.float32), lambda: ops.ones((2,), ms.float32)),
    (lambda: X.swapaxes(axis1=0, axis2=1), lambda: X.swapaxes(0, 1)),
    (lambda: X.item((0, 1)), lambda: X[0, 1].item()),
    (lambda: X.item(5), lambda: X[1, 1].item()),
    (lambda: ops.matmul(x1=X, x2=X.T), lambda: ops.matmul(X, X.T)),
    (lambda: ops.select(cond=X > 1, x=X, y=X), lambda: ops.select(X > 1, X, X)),
    (lambda: ops.concat(input_x=(X, X)), lambda: ops.concat((X, X))),
    (lambda: ops.cast(input_x=X, dtype=ms.int32), lambda: ops.cast(X, ms.int32)),
    (lambda: X.expand_as(x=X), lambda: X.expand_as(X)),
    (lambda: X.isclose(x2=X), lambda: X.isclose(X)),
    (lambda: X.matmul(tensor2=X.T), lambda: X.matmul(X.T)),
    (lambda: X.index_add(indices=Tensor([0], ms.int32), y=X[:1], axis=0), lambda: X.index_add(0, Tensor([0], ms.int32), X[:1])),
    (lambda: ops.logsumexp(X, axis=1, keep_dims=True), lambda: ops.logsumexp(X, 1, True)),
    (lambda: ops.flip(X, axis=(0,)), lambda: ops.flip(X, (0,))),
    (lambda: ops.roll(X, shifts=1, axis=1), lambda: ops.roll(X, 1, 1)),
])
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_older_spelling(older: Any, today: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    try:
        np.testing.assert_equal(_as_numpy(ms.jit(older)() if mode == ms.GRAPH_MODE else older()), _as_numpy(today()))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_positional_split_that_1_x_read_otherwise_warns() -> None:
    x = Tensor(np.zeros((2, 4, 2), np.float32))
    text = (r"split\(1, 2\) means split_size_or_sections=1, axis=2; MindSpore 1.8 to 1.9 read it as axis=1, output_num=2.\n\n"
            r"hint: write split\(1, axis=2\), or split\(2, axis=1\) for the older meaning.")
    for split in (x.split, lambda *args: ops.split(x, *args)):
        with pytest.warns(UserWarning, match=text):
            assert [part.shape for part in split(1, 2)] == [(2, 4, 1)] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.split(1, axis=2)
        x.split(2, 1)


def test_split_into_a_number_of_parts_that_does_not_divide_the_length() -> None:
    with pytest.raises(ValueError, match=r"split\(axis=1, output_num=3\): expected a number of equal parts of the length 4."):
        X.split(axis=1, output_num=3)
    with pytest.raises(TypeError, match=r"split\(output_num=...\): expected split\(axis=0, output_num=1\), the form of MindSpore 1.x."):
        X.split(axis=1, output_num=3, parts=1)


@pytest.mark.parametrize("call, hint", [
    (lambda: ops.dropout(X, p=0.5, seed0=1), "`seed0` is an argument of MindSpore 1.9 to 1.10; write seed="),
    (lambda: X.clip(xmin=1, xmax=2, dtype=ms.int32), "`dtype` is an argument of MindSpore 1.3 to 1.10; call .astype(dtype) on the result"),
    (lambda: ops.argmax(X, output_type=ms.int32), "call .astype(output_type) on the result"),
])
def test_a_dropped_argument_names_its_release(call: Any, hint: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert hint in str(caught.value)


def test_an_older_keyword_with_todays_is_refused() -> None:
    with pytest.raises(TypeError):
        ops.logsumexp(X, dim=1, axis=1)
    with pytest.raises(TypeError):
        ops.matmul(X, X.T, x2=X)


def test_no_function_reads_the_table_for_a_call_in_todays_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(older_calls, "table", lambda: pytest.fail("the table was read"))
    monkeypatch.setattr(older_calls, "_by_short_name", lambda: pytest.fail("the table was read"))
    ops.logsumexp(X, dim=1)
    X.split(2, axis=1)
    nn.Dense(4, 2)(X)
