"""The C++ short paths of operators: their results are those of Python bit for bit, and they leave to Python what they do not support."""
from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Parameter, Tensor, ops
from torch.overrides import TorchFunctionMode

from torchspore.engine.native import operators
from torchspore.engine.native.native_build import Source
from torchspore.engine.tensors.tensor import TensorBase

pytestmark = pytest.mark.skipif(not operators.is_loaded(), reason="`torchspore doctor --build` builds the short paths")

rng = np.random.default_rng(5)
X = rng.standard_normal((2, 3, 4)).astype(np.float32)


def convolve(x: Any, *how: Any, channels: int = 2, bias: Any = None) -> Any:
    """A convolution of an image and weights from the elements of `x`, (2, 3, 4)."""
    return ops.conv2d(x.reshape(1, 2, 3, 4), x.reshape(-1)[:8 * channels].reshape(2, channels, 2, 2), bias, *how)


def normalize(x: Any, training: Any, momentum: Any = 0.1, epsilon: Any = 1e-5) -> Any:
    """x, normalized along its axis 1 by values from its elements."""
    return ops.batch_norm(x, x[0, :, 0] * 1, ops.abs(x[0, :, 1]), x[0, :, 2], x[0, :, 3], training, momentum, epsilon)


CALLS: dict[str, Callable[[Any], Any]] = {
    "conv2d": lambda x: convolve(x, (1, 1), "valid", 0, (1, 1), 1), "conv2d, padded": lambda x: convolve(x, (2, 1), "pad", 1, (1, 2), 1),
    "conv2d, padded by side": lambda x: convolve(x, (1, 1), "pad", (1, 1, 2, 2), (1, 1), 1),
    "conv2d, padded unequally": lambda x: convolve(x, (1, 1), "pad", (1, 0, 2, 1), (1, 1), 1),
    "conv2d, padded by axis": lambda x: convolve(x, (1, 1), "pad", (1, 2), (1, 1), 1),
    "conv2d, same": lambda x: convolve(x, (1, 1), "same", 0, (1, 1), 1), "conv2d, same, apart": lambda x: convolve(x, 2, "same", 0, 2, 1),
    "conv2d, same, even": lambda x: convolve(x, (1, 1), "same", (0, 0, 0, 0), (2, 2), 1),
    "conv2d, named": lambda x: convolve(x, 1, "VALID"),
    "conv2d in groups": lambda x: convolve(x, (1, 1), "valid", 0, (1, 1), 2, channels=1),
    "conv2d with a bias": lambda x: convolve(x, 1, "valid", 0, 1, 1, bias=x[0, 0, :2]),
    "batch_norm": lambda x: normalize(x, False), "batch_norm in training": lambda x: normalize(x, True),
    "batch_norm with ints": lambda x: normalize(x, False, 1, 1), "batch_norm with keywords": lambda x: ops.batch_norm(
        x, x[0, :, 0], ops.abs(x[0, :, 1]), x[0, :, 2], x[0, :, 3], eps=1e-3),
    "add": lambda x: x + x, "add a row": lambda x: x + x[0, 0], "add an int": lambda x: x + 2, "add a float": lambda x: x + 0.1,
    "radd": lambda x: 2 + x, "sub": lambda x: x - x * 0.5, "sub a number": lambda x: x - 3, "rsub": lambda x: 2.5 - x,
    "rdiv": lambda x: 0.1 / x, "rdiv of an int": lambda x: 3 / x,
    "mul": lambda x: x * x, "rmul": lambda x: 3 * x, "div": lambda x: x / (x + 9), "div by a number": lambda x: x / 3,
    "huge int": lambda x: x + 2**70, "an int of 60 bits": lambda x: x * (2**60 + 1), "nan": lambda x: x * float("nan"),
    "maximum": lambda x: ops.maximum(x, x * x), "minimum": lambda x: ops.minimum(x, x * x), "eq": lambda x: x == x,
    "ne": lambda x: x != 0, "lt": lambda x: x < 0.25, "le": lambda x: x <= x, "gt": lambda x: x > -1,
    "ge": lambda x: ops.greater_equal(x, 0), "a bool": lambda x: x + True, "matmul": lambda x: x @ ops.transpose(x, (0, 2, 1)),
    "relu": ops.relu, "exp": ops.exp, "log": lambda x: ops.log(x * x), "sqrt": lambda x: (x * x).sqrt(),
    "rsqrt": lambda x: ops.rsqrt(x * x), "square": ops.square, "abs": abs, "neg": lambda x: -x, "tanh": ops.tanh, "sigmoid": ops.sigmoid,
    "sin": ops.sin, "cos": ops.cos, "erf": ops.erf, "floor": ops.floor, "reshape": lambda x: x.reshape(6, 4),
    "reshape -1": lambda x: x.reshape((-1, 2)), "ops.reshape": lambda x: ops.reshape(x, (4, 6)),
    "reshape to a list": lambda x: x.reshape([24]), "view": lambda x: x.view(3, -1), "a scalar": lambda x: x[0, 0, 0].reshape(()),
    "permute": lambda x: x.permute(2, 0, 1), "ops.permute": lambda x: ops.permute(x, (2, 0, 1)),
    "transpose of two": lambda x: x.transpose(0, 2), "transpose of all": lambda x: x.transpose(2, 0, 1),
    "transpose with a tuple": lambda x: x.transpose((1, 2, 0)), "T": lambda x: x.T, "T of a number": lambda x: x[0, 0, 0].T,
    "swapaxes": lambda x: ops.swapaxes(x, 0, -1),
    "squeeze": lambda x: x[:1].squeeze(0), "squeeze a longer axis": lambda x: x.squeeze(0), "squeeze all": lambda x: x[:1].squeeze(),
    "expand_dims": lambda x: x.expand_dims(-1), "unsqueeze": lambda x: ops.unsqueeze(x, 1), "sum": lambda x: x.sum(),
    "sum of an axis": lambda x: x.sum(1), "sum of axes": lambda x: x.sum((0, -1)), "sum of no axes": lambda x: x.sum(()),
    "ops.sum": lambda x: ops.sum(x, 2), "sum with keepdims": lambda x: x.sum(1, keepdims=True), "mean": lambda x: x.mean(),
    "mean of an axis": lambda x: x.mean(-1), "ops.mean": lambda x: ops.mean(x, (0, 1)), "max": lambda x: x.max(),
    "min": lambda x: x.min(), "max of an axis": lambda x: x.max(axis=1), "zeros_like": ops.zeros_like, "ones_like": ops.ones_like,
    "softmax": ops.softmax, "softmax of an axis": lambda x: ops.softmax(x, 0), "Tensor.softmax": lambda x: x.softmax(1),
    "cat": lambda x: ops.cat((x, x)), "cat a list": lambda x: ops.cat([x, x * 2], 2), "concat": lambda x: ops.concat((x, x), -1),
    "stack": lambda x: ops.stack((x, x)), "stack a list": lambda x: ops.stack([x, x, x], 1), "an int": lambda x: x[1],
    "a negative int": lambda x: x[-1], "a slice": lambda x: x[0:1], "an open slice": lambda x: x[1:], "a slice beyond": lambda x: x[-9:9],
    "a slice with a step": lambda x: x[::2], "ints": lambda x: x[1, 2, 3], "a column": lambda x: x[:, 1],
    "parts": lambda x: x[0:2, None, 1:, ...], "an ellipsis": lambda x: x[..., 0], "None": lambda x: x[None],
    "an empty tuple": lambda x: x[()], "a mask": lambda x: x[x > 0], "a Tensor": lambda x: x[Tensor([1, 0])],
    "a list": lambda x: x[[1, 0]], "True": lambda x: x[True], "an empty slice": lambda x: x[2:1],
    "dense": lambda x: ops.dense(x, x[0]), "dense with a bias": lambda x: ops.dense(x, x[0], x[0, :, 0]),
    "layer_norm": lambda x: ops.layer_norm(x, (4,), x[0, 0], x[0, 1], 1e-5), "layer_norm of numbers": lambda x: ops.layer_norm(x, [3, 4]),
    "layer_norm without a weight": lambda x: ops.layer_norm(x, (3, 4), None, None, 1e-5),
}
WRONG: dict[str, Callable[[Any], Any]] = {
    "shapes": lambda x: x + Tensor(np.ones(5, np.float32)), "text": lambda x: x + "a", "None": lambda x: x * None,
    "object": lambda x: x - object(), "matmul": lambda x: x @ x, "reshape": lambda x: x.reshape(5, 5),
    "permute": lambda x: x.permute(0, 0, 1), "ops.permute of ints": lambda x: ops.transpose(x, 0, 2, 1),
    "squeeze of two ints": lambda x: ops.squeeze(x, 0, 1), "swapaxes of a tuple": lambda x: ops.swapaxes(x, (0, 1)),
    "transpose": lambda x: x.transpose(0, 5), "axis": lambda x: ops.softmax(x, 7), "sum": lambda x: x.sum(8),
    "mean": lambda x: x.mean((0, 0)), "cat": lambda x: ops.cat((x, x[0])), "cat nothing": lambda x: ops.cat(()),
    "stack": lambda x: ops.stack((x, x[0])), "index": lambda x: x[9], "too many": lambda x: x[0, 0, 0, 0],
    "maximum": lambda x: ops.maximum(x, "a"), "unsqueeze": lambda x: ops.unsqueeze(x, 9), "empty max": lambda x: x[2:].max(),
    "two arguments": lambda x: ops.relu(x, 1, 2), "a float axis": lambda x: x.sum(1.0), "keyword": lambda x: ops.exp(y=x),
    "dense": lambda x: ops.dense(x, x), "layer_norm": lambda x: ops.layer_norm(x, (9,), None, None, 1e-5),
    "dense of None": lambda x: ops.dense(x, None), "conv2d, no stride": lambda x: convolve(x, 0, "valid", 0, 1, 1),
    "conv2d, negative padding": lambda x: convolve(x, 1, "pad", -1, 1, 1), "conv2d, no groups": lambda x: convolve(x, 1, "valid", 0, 1, 0),
    "conv2d, wrong mode": lambda x: convolve(x, 1, "full", 0, 1, 1), "conv2d, padding": lambda x: convolve(x, 1, "same", 1, 1, 1),
    "conv2d, channels": lambda x: convolve(x, 1, "valid", 0, 1, 1, channels=1), "batch_norm, momentum": lambda x: normalize(x, False, 2.0),
    "batch_norm, epsilon": lambda x: normalize(x, False, 0.1, -1.0),
}
DTYPES = [
    ms.float32, ms.float64, ms.float16, ms.bfloat16, ms.int32, ms.int64, ms.bool_, ms.int8, ms.uint8, ms.uint16, ms.uint32, ms.complex64,
]


class InPython(TorchFunctionMode):
    """Makes every operator run in Python: a short path never runs inside a mode that may change torch's functions."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


def outcome(call: Callable[[Any], Any], x: Any) -> tuple[Any, ...]:
    """Return everything that a program can see of a result: class, dtype, shape, strides, bits; or the error."""
    try:
        out = call(x)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(out, TensorBase):
        return type(out), repr(out)
    t = out._t
    return type(out), t.dtype, tuple(t.shape), t.stride(), t.is_contiguous(), t.contiguous().reshape(-1).view(torch.uint8).tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_python(name: str, dtype: Any) -> None:
    x = Tensor(X).astype(dtype)
    with InPython():
        expected = outcome(CALLS[name], x)
    assert outcome(CALLS[name], x) == expected


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_python(name: str) -> None:
    with InPython():
        expected = outcome(WRONG[name], Tensor(X))
    assert outcome(WRONG[name], Tensor(X)) == expected and issubclass(expected[0], Exception)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_python(name: str) -> None:
    def loss(x: Any) -> Any:
        out = CALLS[name](x * 1.5)
        return (out.astype(ms.float32) * 0.5).sum()

    x = Parameter(Tensor(X), name="x")
    gradient = ms.value_and_grad(loss)
    with InPython():
        expected = outcome(lambda x: gradient(x)[1], x), outcome(lambda x: gradient(x)[0], x)
    assert (outcome(lambda x: gradient(x)[1], x), outcome(lambda x: gradient(x)[0], x)) == expected


@pytest.mark.parametrize("name", ["reshape", "view", "transpose"])
def test_errors_of_wrong_calls_name_the_method(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^Tensor\.{name}\(\) got an unexpected keyword argument 'unknown'$"):
        getattr(Tensor(X), name)(2, unknown=1)


PAIRS = (
    "add", "sub", "mul", "div", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
)
UNARY = (
    "relu", "exp", "log", "sqrt", "rsqrt", "square", "abs", "neg", "tanh", "sigmoid", "sin", "cos", "erf", "floor", "x.T", "x.max", "x.min",
    "zeros_like", "ones_like", "sum", "mean", "softmax",
)
TAKEN: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(PAIRS, (Tensor(X), Tensor(X))), **dict.fromkeys(UNARY, (Tensor(X),)),
    "rsub": (Tensor(X), 2), "rdiv": (Tensor(X), 2), "matmul": (Tensor(X), Tensor(X.transpose(0, 2, 1).copy())),
    "x.reshape": (Tensor(X), 24), "reshape": (Tensor(X), (24,)), "x.permute": (Tensor(X), 2, 0, 1), "permute": (Tensor(X), (2, 0, 1)),
    "x.transpose": (Tensor(X), 0, 1), "squeeze": (Tensor(X), 0), "swapaxes": (Tensor(X), 0, 1), "expand_dims": (Tensor(X), 0),
    "dense": (Tensor(X), Tensor(X[0]), None), "layer_norm": (Tensor(X), (4,), Tensor(X[0, 0]), Tensor(X[0, 0]), 1e-5),
    "conv2d": (Tensor(X[None]), Tensor(X[None]), None, 1, "valid", 0, 1, 1),
    "batch_norm": (Tensor(X), *[Tensor(abs(X[0, :, 0].copy()))] * 4, False, 0.1, 1e-5),
    "cat": ((Tensor(X), Tensor(X)),), "stack": ([Tensor(X), Tensor(X)], 1), "x[]": (Tensor(X), (0, slice(1, None))),
}


def test_every_short_path_runs() -> None:
    names = {name for name in dir(operators._library) if not name.startswith("_")} - {
        "configure", "intercept", "argument_form", "graph_inputs", "graph_result", "new_leaves", "leaf_gradients",
        "new_program", "run_program", "register_convolutions"}
    assert names == set(TAKEN)
    Tensor(X) + 1                                             # the first operator of a process reports itself and takes the long path
    assert [name for name, arguments in TAKEN.items() if operators.short_path(name)(*arguments) is None] == []      # type: ignore[misc]


def test_leaves_of_weights() -> None:
    new_leaves = operators.short_path("new_leaves")
    weights = [Parameter(Tensor(X), name="w"), Parameter(Tensor(X[0]), name="b")]
    leaves = new_leaves(tuple(weights))                       # type: ignore[misc]
    assert list(leaves) == [id(weight) for weight in weights]
    for weight, leaf in zip(weights, leaves.values()):
        assert leaf.is_leaf and leaf.requires_grad and leaf.data_ptr() == weight._t.data_ptr() and not weight._t.requires_grad
    frozen = Parameter(Tensor(X), name="f", requires_grad=False)
    others = (frozen, Parameter(Tensor([1, 2]), name="i"), Tensor(torch.ones(2)), 1, None, torch.ones(2))
    assert [new_leaves([weights[0], other]) is None for other in others] == [True, True, False, True, True, True]   # type: ignore[misc]
    assert new_leaves(iter(weights)) is None and new_leaves() is None                                               # type: ignore[misc]
    with InPython():
        assert new_leaves(weights) is None                    # type: ignore[misc]


def test_calls_from_c_need_no_frame_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls operators such as `x + y` from C: the short path runs first, and the form in Python for other operands."""
    def in_python(*arguments: Any) -> Any:
        return "in Python"

    x = Tensor(X)
    calls: list[tuple[Any, Callable[[], Any], Callable[[], Any]]] = [
        (Tensor.__add__, lambda: x + x, lambda: x + "a"), (Tensor.__matmul__, lambda: x[:, 0] @ x[0, 0], lambda: x @ 2),
        (Tensor.__getitem__, lambda: x[0], lambda: x[x > 0]),
        (ops.relu, lambda: next(map(ops.relu, [x])), lambda: next(map(ops.relu, [1]))),
    ]
    for operator, with_short_path, without in calls:
        assert inspect.isfunction(operator) and inspect.signature(operator) == inspect.signature(operator.in_python)    # type: ignore[attr-defined]
        expected = outcome(lambda x, call=with_short_path: call(), x)           # type: ignore[misc]
        with monkeypatch.context() as patch:
            patch.setattr(operator, "in_python", in_python)
            assert outcome(lambda x, call=with_short_path: call(), x) == expected                       # type: ignore[misc]
            assert without() == "in Python"
    assert type(ops.relu(input=x)) is Tensor


def test_what_is_left_to_python() -> None:
    from torch._subclasses import FakeTensorMode

    from torchspore.engine.tensors.number import Number
    from torchspore.engine.tensors.tensor import wrap

    add, item, x = operators.short_path("add"), operators.short_path("x[]"), Tensor(X)
    assert add is not None and item is not None
    with FakeTensorMode() as mode:
        fake = wrap(mode.from_tensor(torch.ones(2)))
    others = (Tensor(X, ms.uint16), Tensor(X, ms.complex64), Number(torch.tensor(1)), fake, wrap(torch.ones(2).to_sparse()))
    for other in others:
        assert add(other, other) is None
    for other in (*others, True, np.float32(1), 2**64, "1", None, [1], torch.ones(2), TensorBase()):
        assert add(x, other) is None
    for index in (True, np.int64(0), slice(0, 2, 2), slice(True, None), [0], (0, [1]), x > 0, 7, (), 1.0):
        assert item(x, index) is None
    assert add(x) is None and add() is None and add(x, x, x) is None
    for block in (InPython(), FakeTensorMode(), torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)):
        with block:
            assert add(x, x) is None
    assert add(x, x) is not None


def test_tensors_in_a_capture_and_in_another_thread() -> None:
    """While a thread captures a graph, another one computes with real tensors; the captured operators reach the graph."""
    x, results, stop = Tensor(X), [], threading.Event()
    expected = (X + X).tobytes()

    def compute() -> None:
        while not stop.is_set():
            results.append((x + x).asnumpy().tobytes() == expected)

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        for number in range(5):
            graph = ms.jit(lambda x, number=number: (x + x).reshape(6, 4)[number] * number)
            assert np.array_equal(graph(x).asnumpy(), (X + X).reshape(6, 4)[number] * number)
    finally:
        stop.set()
        thread.join()
    assert results and all(results)


def test_errors_and_results_free_their_memory() -> None:
    import gc

    x = Tensor(np.ones(64, np.float32))
    for call in (lambda: x + x, lambda: x[0:4], lambda: ops.cat((x, x)), lambda: outcome(lambda x: x.reshape(5), x)):
        call()
        gc.collect()
        before = sum(type(value) is torch.Tensor for value in gc.get_objects())
        references = sys.getrefcount(x)
        for _ in range(200):
            call()
        gc.collect()
        assert sum(type(value) is torch.Tensor for value in gc.get_objects()) <= before
        assert sys.getrefcount(x) == references


@pytest.mark.parametrize("call", [lambda a, b: a + b, lambda a, b: a @ b, lambda a, b: ops.dense(a, b.T)], ids=["add", "matmul", "dense"])
def test_large_results_of_small_operands_release_the_lock(call: Callable[[Any, Any], Any]) -> None:
    a, b = Tensor(np.ones((4096, 1), np.float32)), Tensor(np.ones((1, 4096), np.float32))
    count, has_ended, counted = 0, False, []

    def run_beside() -> None:
        nonlocal count
        while not has_ended:
            count += 1

    thread = threading.Thread(target=run_beside)
    thread.start()
    try:
        for _ in range(5):
            before = count
            call(a, b)
            counted.append(count - before)
    finally:
        has_ended = True
        thread.join()
    assert sorted(counted)[2] > 0


PROGRAM = """
import sys, time
sys.path.insert(0, {source!r})
import torchspore
torchspore.install()
from pathlib import Path
from torchspore.engine.native import bundled_libraries
bundled_libraries.FOLDER = Path("/nowhere")
import mindspore as ms
from torchspore.engine.native import operators
operators._SECONDS = {seconds}
print(operators.is_loaded(), (ms.Tensor([1.0]) + 1).asnumpy().tolist())
"""


def run_program(folder: Path, seconds: float = 0.0, **environment: str) -> str:
    source = str(Path(operators.__file__).parents[3])
    code = PROGRAM.format(source=source, seconds=seconds)
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder), operators.BUILDS_AT_END: "1", **environment}
    ran = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """A compiler that copies the library of this process."""
    script = tmp_path / "g++"
    script.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp {operators._library.__file__} "$2"\n')
    script.chmod(0o755)
    assert operators.is_bundled() or operators._SOURCE.built_library().name == Path(operators._library.__file__).name
    return str(script)


def wait_for(folder: Path, seconds: float = 20.0) -> list[Path]:
    end = time.monotonic() + seconds
    while not (libraries := list((folder / "torchspore" / "native").glob("operators_*.so"))) and time.monotonic() < end:
        time.sleep(0.05)
    return libraries


def test_a_program_builds_them_at_its_end(tmp_path: Path, compiler: str) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    assert run_program(folder, 60, CXX=compiler) == "False [2.0]"              # too short a program
    assert run_program(folder, CXX=compiler, TORCHSPORE_BUILD="0") == "False [2.0]"
    assert run_program(folder, CXX=compiler, TORCHSPORE_NO_NATIVE="1") == "False [2.0]"
    assert wait_for(folder, 0.5) == []
    assert run_program(folder, CXX=compiler) == "False [2.0]"
    (library,) = wait_for(folder)
    assert run_program(folder, 60, CXX="/nowhere/g++") == "True [2.0]"
    assert run_program(folder, TORCHSPORE_NO_NATIVE="1") == "False [2.0]"
    library.write_bytes(b"no library")
    assert run_program(folder) == "False [2.0]"


def test_the_output_of_a_program_ends_before_the_build(tmp_path: Path) -> None:
    compiler, stop = tmp_path / "g++", tmp_path / "stop"
    compiler.write_text(f"#!/bin/sh\nwhile [ ! -e {stop} ]; do sleep 0.1; done\n")
    compiler.chmod(0o755)
    try:
        assert run_program(tmp_path, CXX=str(compiler)) == "False [2.0]"      # reads the output until all processes have closed it
    finally:
        stop.touch()


def test_old_files_are_removed(tmp_path: Path) -> None:
    source = Source(tmp_path / "operators.cpp")
    unfinished, another = tmp_path / ".operators_0.so.1.tmp", tmp_path / "allocator_0.so"
    libraries = [tmp_path / f"operators_{number}.so" for number in range(10)]
    for number, path in enumerate((unfinished, another, *libraries)):
        path.touch()
        os.utime(path, (number * 1000, number * 1000))
    recent = tmp_path / ".operators_0.so.2.tmp"
    recent.touch()
    source._remove_old_files(tmp_path)
    assert set(tmp_path.iterdir()) == {another, recent, *libraries[2:]}


def test_doctor_replaces_a_damaged_library(tmp_path: Path, compiler: str) -> None:
    assert run_program(tmp_path, CXX=compiler) == "False [2.0]"
    (library,) = wait_for(tmp_path)
    library.write_bytes(b"no library")
    code = """
from pathlib import Path
from torchspore.engine.native import bundled_libraries
bundled_libraries.FOLDER = Path("/nowhere")
from torchspore.engine.native import operators
print(operators.missing())
operators.build()
print(operators.missing())
"""
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CXX": compiler, "PYTHONPATH": str(Path(operators.__file__).parents[3])}
    ran = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.splitlines() == [operators.NOT_LOADED, ""]
    assert library.stat().st_size > 1000


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, compiler: str) -> None:
    assert run_program(tmp_path, CXX=compiler) == "False [2.0]"
    (library,) = wait_for(tmp_path)
    library.parent.chmod(0o777)
    assert run_program(tmp_path) == "False [2.0]"
    library.parent.chmod(0o700)
    assert run_program(tmp_path) == "True [2.0]"
