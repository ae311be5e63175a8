"""Convolutions by named algorithms, with a stand-in for cuDNN that notes each call and computes with torch: which functions are called
with what, and that values and gradients come out as they do without a name. Nothing here has run on a GPU."""
from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from support.fake_cudnn import FakeCudnn

from torchspore.base import once
from torchspore.context import effects
from torchspore.context.options import OPTIONS as CONTEXT
from torchspore.context.public import scope
from torchspore.engine.devices import device
from torchspore.engine.devices.gpu import convolution, cudnn
from torchspore.engine.devices.gpu import cudnn_calls as calls
from torchspore.errors import AlgorithmRefused, DeviceFailed

RNG = np.random.RandomState(3)
OPTIONS = ("conv_fprop_algo", "conv_dgrad_algo", "conv_wgrad_algo")


@pytest.fixture
def fake() -> Iterator[FakeCudnn]:
    fake_cudnn = FakeCudnn()
    with cudnn.run_by(cudnn.Runtime(lambda: fake_cudnn, lambda device: 77, "cpu")), effects.fresh():
        yield fake_cudnn
        convolution._plans.clear()


@contextlib.contextmanager
def gpu() -> Iterator[None]:
    """A block whose operators run on a GPU, as far as the context knows."""
    with effects.fresh(), device.on(device.Machine(lambda target: 1, lambda target: torch.device("cpu"))), scope(device_target="GPU"):
        yield


class by:
    """A block in which the three directions run by these algorithms, as on a GPU."""

    def __init__(self, forward: str = "normal", data: str = "normal", filter: str = "normal", **more: Any) -> None:
        self._scope = scope(gpu_config=dict(zip(OPTIONS, (forward, data, filter))) | more)

    def __enter__(self) -> None:
        self._scope.__enter__()
        convolution.ALGORITHMS.are_named = True

    def __exit__(self, *of: Any) -> None:
        convolution.ALGORITHMS.are_named = False
        self._scope.__exit__(*of)


def numbers(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(RNG.randn(*shape).astype(np.float32), ms.float32).astype(dtype)


CASES = {
    "plain": ((2, 3, 8, 8), (4, 3, 3, 3), {}),
    "stride and padding": ((2, 3, 9, 7), (4, 3, 3, 5), {"stride": (2, 1), "pad_mode": "pad", "padding": (1, 2)}),
    "same": ((2, 3, 8, 8), (4, 3, 2, 4), {"pad_mode": "same", "stride": 2}),
    "uneven": ((1, 2, 6, 6), (2, 2, 3, 3), {"pad_mode": "pad", "padding": (0, 1, 2, 1)}),
    "groups": ((2, 4, 6, 6), (6, 2, 3, 3), {"groups": 2}),
    "depthwise": ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4}),
    "dilation": ((1, 2, 9, 9), (3, 2, 3, 3), {"dilation": (2, 3)}),
}


def gradients(function: Any, *inputs: Tensor) -> list[np.ndarray]:
    grads = ops.grad(lambda *t: (function(*t) ** 2).sum(), tuple(range(len(inputs))))(*inputs)
    return [t.asnumpy() for t in grads]


def near(result: Any, expected: Any, rtol: float = 1e-5) -> None:
    for output, other in zip(result, expected, strict=True):
        assert output.dtype == other.dtype
        largest = max(1.0, float(np.abs(other).max()))              # what is left of a difference of large numbers is rounded as they are
        np.testing.assert_allclose(output.astype(np.float64), other.astype(np.float64), rtol, rtol * largest)


@pytest.mark.parametrize("mode", [1, 0])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_without_a_name(fake: FakeCudnn, case: str, mode: int) -> None:
    shape, kernel, how = CASES[case]
    x, w, b = numbers(*shape), numbers(*kernel), numbers(kernel[0])

    class Net(nn.Cell):
        def construct(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            return ops.conv2d(x, w, b, **how)

    expected = Net()(x, w, b).asnumpy(), gradients(Net(), x, w, b)
    assert not fake.calls
    with scope(mode=mode), by("winograd", "fft", "algo_3"):
        result = Net()(x, w, b).asnumpy(), gradients(Net(), x, w, b)
    near([result[0], *result[1]], [expected[0], *expected[1]])
    ran = {(name, arguments[7]) for name, arguments in fake.calls if name in {side.compute for side in calls.DIRECTIONS}}
    assert ran == {(calls.FORWARD.compute, 6), (calls.DATA.compute, 2), (calls.FILTER.compute, 3)}


@pytest.mark.parametrize(("shape", "kernel", "call"), [
    ((2, 3, 9), (4, 3, 3), ops.conv1d), ((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), ops.conv3d),
    ((2, 4, 5, 5), (4, 3, 3, 3), ops.conv_transpose2d),
])
def test_lines_volumes_and_transposed_ones(fake: FakeCudnn, shape: Any, kernel: Any, call: Any) -> None:
    x, w = numbers(*shape), numbers(*kernel)
    expected = [call(x, w).asnumpy(), *gradients(call, x, w)]
    with by("gemm", "algo_1", "algo_1"):
        near([call(x, w).asnumpy(), *gradients(call, x, w)], expected)
    assert {name for name in fake.names() if name in {side.compute for side in calls.DIRECTIONS}} == {
        side.compute for side in calls.DIRECTIONS}


def test_a_transposed_one_with_all_its_arguments(fake: FakeCudnn) -> None:
    x, w, b = numbers(2, 4, 5, 6), numbers(4, 3, 3, 2), numbers(6)

    def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return ops.conv_transpose2d(x, w, b, stride=(2, 3), padding=1, output_padding=(1, 2), groups=2, dilation=(1, 2))

    expected = [call(x, w, b).asnumpy(), *gradients(call, x, w, b)]
    with by("gemm", "algo_1", "algo_1"):
        near([call(x, w, b).asnumpy(), *gradients(call, x, w, b)], expected)
    assert calls.DATA.compute in fake.names()


def test_gradients_of_gradients(fake: FakeCudnn) -> None:
    x, w = numbers(1, 2, 5, 5), numbers(2, 2, 3, 3)

    def second(x: Tensor, w: Tensor) -> Tensor:
        return (ops.grad(lambda x, w: (ops.conv2d(x, w) ** 3).sum(), 0)(x, w) ** 2).sum()

    expected = [t.asnumpy() for t in ops.grad(second, (0, 1))(x, w)]
    with by("gemm", "algo_1", "algo_1"):
        arrays = [t.asnumpy() for t in ops.grad(second, (0, 1))(x, w)]
    near(arrays, expected, 1e-4)


@pytest.mark.parametrize(("call", "named"), [
    (lambda x, w: ops.jvp(ops.conv2d, (x, w), (ops.ones_like(x), ops.ones_like(w)))[1], False),
    (lambda x, w: ms.jacrev(lambda w: ops.conv2d(x, w).sum())(w), False),
    (lambda x, w: ms.jacfwd(lambda w: ops.conv2d(x, w).sum((1, 2, 3)))(w), False),
    (lambda x, w: ops.vmap(lambda a: ops.conv2d(a, w))(ops.stack((x, x * 2))), False),
    (lambda x, w: ops.vjp(lambda x: ops.conv2d(x, w), x)[1](ops.ones((2, 4, 4, 4)))[0], True),
])
def test_transforms_of_torch_func_have_torch_s_own(fake: FakeCudnn, call: Any, named: bool) -> None:
    x, w = numbers(2, 3, 6, 6), numbers(4, 3, 3, 3)
    expected = call(x, w).asnumpy()
    with by("gemm", "algo_1", "algo_1"):
        near([call(x, w).asnumpy()], [expected])
    assert bool(fake.calls) == named


def test_rows_of_gradients_one_by_one(fake: FakeCudnn) -> None:
    x, w = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3, requires_grad=True)
    with by("gemm", "algo_1", "algo_1"):
        out = convolution.convolve(x, w, None, [1, 1], [0, 0], [1, 1], 1)
        rows = torch.randn(3, *out.shape)
        (result,) = torch.autograd.grad(out, w, rows, is_grads_batched=True)
    (expected,) = torch.autograd.grad(torch.conv2d(x, w), w, rows, is_grads_batched=True)
    torch.testing.assert_close(result, expected)


def test_the_calls_of_a_convolution_in_order(fake: FakeCudnn) -> None:
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    with by("gemm"):
        ops.conv2d(x, w)
        first, fake.calls[:] = fake.names(), []
        ops.conv2d(x, w)
    assert first == [
        "cudnnCreateTensorDescriptor", "cudnnSetTensorNdDescriptor", "cudnnCreateTensorDescriptor", "cudnnSetTensorNdDescriptor",
        "cudnnCreateFilterDescriptor", "cudnnSetFilterNdDescriptor", "cudnnCreateConvolutionDescriptor",
        "cudnnSetConvolutionNdDescriptor", "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType",
        "cudnnCreate", "cudnnSetStream", "cudnnGetConvolutionForwardWorkspaceSize", "cudnnSetStream", "cudnnConvolutionForward",
    ]
    assert fake.names() == ["cudnnSetStream", "cudnnConvolutionForward"]        # the plan is kept
    assert {descriptor["stream"] for descriptor in fake.made.values() if descriptor["what"] == "handle"} == {77}
    assert fake.calls[1][1][7:10:2] == (2, 128)          # the algorithm, and its workspace


@pytest.mark.parametrize(("dtype", "rounds", "math", "summed"), [
    (ms.float32, True, calls.DEFAULT_MATH, torch.float32), (ms.float32, False, calls.FMA_MATH, torch.float32),
    (ms.float64, False, calls.DEFAULT_MATH, torch.float64), (ms.bfloat16, False, calls.TENSOR_OP_MATH, torch.float32),
    (ms.float16, True, calls.TENSOR_OP_MATH, torch.float32),
])
def test_the_units_for_each_dtype(fake: FakeCudnn, dtype: Any, rounds: bool, math: int, summed: Any) -> None:
    x, w = numbers(1, 2, 6, 6, dtype=dtype), numbers(2, 2, 3, 3, dtype=dtype)
    with by("gemm", conv_allow_tf32=rounds):
        out = ops.conv2d(x, w)
    assert out.dtype == dtype
    kernel = next(descriptor for descriptor in fake.made.values() if descriptor["what"] == "Convolution")
    assert (kernel["math"], kernel["summed"]) == (math, summed)


def test_float16_takes_mindspore_s_algorithms_whatever_is_named(fake: FakeCudnn) -> None:
    x, w = numbers(1, 2, 6, 6, dtype=ms.float16), numbers(2, 2, 3, 3, dtype=ms.float16)
    expected = gradients(ops.conv2d, x, w)
    with by("winograd", "performance", "fft"):
        near(gradients(ops.conv2d, x, w), expected, 2e-3)
    ran = {name: arguments[7] for name, arguments in fake.calls if name in {side.compute for side in calls.DIRECTIONS}}
    assert ran == {calls.FORWARD.compute: 1, calls.DATA.compute: 1, calls.FILTER.compute: 1}
    assert not any("Find" in name for name in fake.names())


def test_an_algorithm_that_can_t_do_a_shape_names_those_that_can(fake: FakeCudnn) -> None:
    fake.refuses = {(calls.FORWARD.workspace, n) for n in (3, 4, 5, 6, 7)}
    x, w = numbers(8, 3, 32, 32), numbers(16, 3, 5, 5)
    with by("winograd"), pytest.raises(AlgorithmRefused) as caught:
        ops.conv2d(x, w, stride=2)
    text = str(caught.value)
    assert text.startswith(f"{__file__}:") and "conv2d(" in text
    assert text.partition("): ")[2].partition("\n")[0].endswith(
        "gpu_config={'conv_fprop_algo': 'winograd'}: cuDNN can't do this convolution so: "
        "x 8x3x32x32, weight 16x3x5x5, float32, stride 2x2 (NOT_SUPPORTED_3002)."
    )
    assert text.endswith("\n\nhint: conv_fprop_algo may be 'implicit_gemm', 'precomp_gemm', 'gemm' or 'normal' here.")


def test_the_same_in_the_backward_pass(fake: FakeCudnn) -> None:
    fake.refuses = {(calls.FILTER.workspace, 5)}
    x, w = numbers(1, 2, 6, 6), numbers(2, 2, 3, 3)
    with by(filter="winograd_nonfused"), pytest.raises(AlgorithmRefused) as caught:
        gradients(ops.conv2d, x, w)
    assert "'conv_wgrad_algo': 'winograd_nonfused'" in str(caught.value) and "'fft_tiling' or 'normal' here" in str(caught.value)


def test_another_failure_is_reported_with_cudnn_s_word(fake: FakeCudnn) -> None:
    fake.fails = 5000
    with by("gemm"), pytest.raises(DeviceFailed, match=r"cuDNN: cudnnConvolutionForward by gemm .* ended with NOT_SUPPORTED_5000"):
        ops.conv2d(numbers(1, 2, 6, 6), numbers(2, 2, 3, 3))


def test_performance_tries_all_once_and_keeps_the_fastest(fake: FakeCudnn) -> None:
    fake.times, fake.workspaces = {7: 0.25, 4: 0.1}, {4: 3 << 20}
    fake.refuses = {(calls.FORWARD.workspace, 4)}
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    expected = ops.conv2d(x, w).asnumpy()
    with by("performance"):
        for _ in range(3):
            near([ops.conv2d(x, w).asnumpy()], [expected])
        ops.conv2d(numbers(5, 3, 8, 8), w)
    assert fake.names().count("cudnnFindConvolutionForwardAlgorithmEx") == 2        # once a shape
    assert {arguments[7] for name, arguments in fake.calls if name == calls.FORWARD.compute} == {7}
    lines = effects.notes()["convolutions"][0].splitlines()
    assert lines[0] == "conv_fprop_algo x 2x3x8x8, weight 4x3x3x3, float32: winograd_nonfused (the fastest)"
    assert lines[1].split() == ["winograd_nonfused", "default", "0.250", "ms", "0.0", "MB"]
    assert sum("fft " in line for line in lines) == 0 and len(lines) == 2 * 8


def test_performance_with_deterministic_takes_what_adds_in_order(fake: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    fake.times = {0: 0.1, 3: 0.2, 1: 0.3}
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    with by(filter="performance"):
        gradients(ops.conv2d, x, w)
    assert [arguments[7] for name, arguments in fake.calls if name == calls.FILTER.compute] == [1]
    fake.refuses = {(calls.FILTER.workspace, n) for n in (1, 2, 5, 6)}
    convolution._plans.clear()
    with by(filter="performance"), pytest.raises(AlgorithmRefused, match="no algorithm can do it with equal bits run for run"):
        gradients(ops.conv2d, x, w)


def test_a_named_algorithm_that_adds_in_any_order_is_reported_with_deterministic(fake: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    with once.anew(), by(data="algo_0"), pytest.warns(UserWarning, match="conv_dgrad_algo='algo_0' adds in any order") as seen:
        gradients(ops.conv2d, x, w)
        gradients(ops.conv2d, numbers(3, 3, 8, 8), w)
    assert len(seen) == 1 and "hint: write conv_dgrad_algo='algo_1'." in str(seen[0].message)


def test_a_search_takes_less_room_where_the_device_has_little(fake: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.workspaces = {7: 64 << 20, 1: 20 << 20}
    fake.times = {7: 0.1, 1: 0.2}
    empty = torch.empty

    def little(*sizes: Any, **how: Any) -> torch.Tensor:
        if how.get("dtype") is torch.uint8 and sizes[0] > 40 << 20:
            raise torch.OutOfMemoryError("full")
        return empty(*sizes, **how)

    monkeypatch.setattr(torch, "empty", little)
    x, w = numbers(2, 3, 8, 8), numbers(4, 3, 3, 3)
    with by("performance"):
        ops.conv2d(x, w)
    assert {arguments[7] for name, arguments in fake.calls if name == calls.FORWARD.compute} == {1}


def test_plans_are_bounded_and_give_their_descriptors_back(fake: FakeCudnn) -> None:
    w = numbers(2, 2, 3, 3)
    with cudnn.run_by(cudnn.Runtime(lambda: fake, lambda device: 77, "cpu", most_plans=3)), by("gemm"):
        for batch in range(1, 9):
            ops.conv2d(numbers(batch, 2, 6, 6), w)
    gc.collect()
    assert len(convolution._plans) <= 3 and len(fake.made) <= 1 + 3 * 4


def test_empty_tensors_and_integers_stay_with_torch(fake: FakeCudnn) -> None:
    with by("gemm"):
        assert ops.conv2d(numbers(0, 2, 6, 6), numbers(2, 2, 3, 3)).shape == (0, 2, 4, 4)
    assert not fake.calls


def test_without_a_gpu_there_is_no_effect() -> None:
    with scope(gpu_config={"conv_fprop_algo": "winograd", "conv_allow_tf32": False, "matmul_allow_tf32": True}):
        before = torch.backends.cudnn.conv.fp32_precision
        rows = {key: str(effects.outcome_of(CONTEXT[key], None)) for key in ("conv_fprop_algo", "conv_allow_tf32", "matmul_allow_tf32")}
        assert set(rows.values()) == {"no effect here: no GPU"} and not convolution.ALGORITHMS.are_named
        assert torch.backends.cudnn.conv.fp32_precision == before


def test_on_a_gpu_the_switches_reach_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.engine.devices.gpu import tf32

    precisions_before = [(where, where.fp32_precision) for where in (torch.backends.cudnn.conv, torch.backends.cuda.matmul)]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert str(tf32.conv(False)) == "no effect here: operators run on CPU"
    on_gpu = contextlib.ExitStack()
    on_gpu.enter_context(gpu())
    try:
        assert str(tf32.conv(False)) == "applied: convolutions of float32 keep all of their bits"
        assert str(tf32.matmul(True)) == "applied: matrix products of float32 round to TF32"
        assert (torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision) == ("ieee", "tf32")
        tf32.conv(True), tf32.matmul(False)
        assert (torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision) == ("tf32", "ieee")
        assert str(convolution.data("algo_0")) == "applied: cuDNN's algo_0 (experimental: not yet run on a GPU)"
        assert convolution.ALGORITHMS.are_named
        assert str(convolution.forward("performance")) == "applied: all are tried once a shape (experimental: not yet run on a GPU)"
        assert str(convolution.data("normal")) == "applied: torch chooses" and convolution.ALGORITHMS.are_named
        convolution.forward("normal")
        assert not convolution.ALGORITHMS.are_named
        monkeypatch.setattr(torch.version, "hip", "6.4")
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
        assert str(convolution.data("algo_0")) == "no effect here: MIOpen of ROCm has no algorithms of these names"
        assert str(convolution.data("performance")) == "applied: MIOpen tries its algorithms" and torch.backends.cudnn.benchmark
        assert str(convolution.data("normal")) == "applied: MIOpen chooses" and not torch.backends.cudnn.benchmark
        assert not convolution.ALGORITHMS.are_named
    finally:
        on_gpu.close()
        for where, value in precisions_before:
            where.fp32_precision = value


def test_a_call_that_is_refused_leaves_the_algorithms_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore

    from torchspore.context.store import STORE
    from torchspore.errors import EffectRefused

    def resolve_effect(name: str) -> effects.Effect:
        return effects.resolve(name) if name != "engine.devices.gpu.tf32:conv" else (
            lambda value: effects.Outcome.applied() if value else effects.Outcome.refused("no"))

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with gpu(), effects.fresh(find=resolve_effect), scope(gpu_config={"conv_dgrad_algo": "algo_1"}):
        assert convolution.ALGORITHMS.are_named
        with pytest.raises(EffectRefused):
            mindspore.set_context(gpu_config={"conv_dgrad_algo": "normal", "conv_allow_tf32": False})
        assert convolution.ALGORITHMS.are_named and STORE.get("conv_dgrad_algo") == "algo_1"
    assert not convolution.ALGORITHMS.are_named
