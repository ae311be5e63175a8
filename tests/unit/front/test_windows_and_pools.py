"""Windows of images, pools by fractions, dilation and recurrent primitives, by definition: where MindSpore has no kernel or draws."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import _rl_inner_ops as inner
from mindspore.ops.operations import image_ops, math_ops, nn_ops


def of(*shape: int, start: float = 0.5) -> Tensor:
    count = int(np.prod(shape))
    return Tensor((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape).astype(np.float32))


def close(result: Tensor, expected: Tensor) -> None:
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


# ---- windows


def test_noise_outside_of_an_image() -> None:
    x, size, far = of(1, 4, 4, 1), Tensor(np.array([60, 60], np.int32)), Tensor(np.array([[900.0, 900.0]], np.float32))
    uniform = image_ops.ExtractGlimpse(False, False)(x, size, far).asnumpy()
    assert -1 <= uniform.min() < -0.9 and 0.9 < uniform.max() <= 1
    gaussian = image_ops.ExtractGlimpse(False, False, False, "gaussian")(x, size, far).asnumpy()
    assert gaussian.mean() == pytest.approx(10, abs=0.1) and gaussian.std() == pytest.approx(0.5, abs=0.05)


def test_what_glimpses_refuse() -> None:
    x, size, offsets = of(1, 4, 4, 1), Tensor(np.array([2, 2], np.int32)), Tensor(np.zeros((1, 2), np.float32))
    refused(lambda: image_ops.ExtractGlimpse(noise="gaussian")(x, size, offsets), ValueError,
            "noise='gaussian': expected 'uniform' if uniform_noise=True.")
    refused(lambda: image_ops.ExtractGlimpse(noise="loud")(x, size, offsets), ValueError,
            "(noise='loud'): expected 'uniform', 'gaussian' or 'zero'.")
    refused(lambda: image_ops.ExtractGlimpse()(x, Tensor([0, 2]), offsets), ValueError, "expected two numbers above 0 as size, got [0, 2].")
    refused(lambda: image_ops.ExtractGlimpse()(x, size, Tensor(np.zeros((2, 2), np.float32))), ValueError,
            "expected offsets of shape (1, 2), got (2, 2).")
    refused(lambda: image_ops.ExtractGlimpse()(x[0], size, offsets), ValueError, "expected images of shape (N, H, W, C), got (4, 4, 1).")


def test_what_moving_refuses() -> None:
    x, size, two = of(1, 4, 4, 1), Tensor(np.array([2, 2], np.int32)), Tensor(np.ones(2, np.float32))
    refused(lambda: image_ops.ScaleAndTranslate("round")(x, size, two, two), ValueError,
            "(kernel_type='round'): expected 'lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic' or "
            "'mitchellcubic'.")
    refused(lambda: image_ops.ScaleAndTranslate()(x, size, Tensor([1.0]), two), ValueError, "expected scale of shape (2,), got (1,).")


# ---- pools


@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("lengths", [(6, 7, 1.5, 1.4), (11, 5, 2.3, 1.0), (13, 9, 1.1, 4.0)])
def test_pools_take_what_their_windows_hold(pseudo: bool, overlapping: bool, lengths: tuple[int, int, float, float]) -> None:
    height, width, down, along = lengths
    x = of(1, height, width, 2)
    for _ in range(5):
        out, rows, columns = nn_ops.FractionalMaxPool([1.0, down, along, 1.0], pseudo, overlapping)(x)
        starts, ends = rows.asnumpy(), columns.asnumpy()
        assert starts[0] == ends[0] == 0 and starts[-1] == height and ends[-1] == width
        assert set(np.diff(starts)) <= {height // (len(starts) - 1), height // (len(starts) - 1) + 1}
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                window = x.asnumpy()[0, starts[i]:starts[i + 1] + overlapping, ends[j]:ends[j + 1] + overlapping]
                np.testing.assert_array_equal(out.asnumpy()[0, i, j], window.max((0, 1)))


def test_pools_by_fractions_have_gradients() -> None:
    x, sens = of(2, 6, 7, 2), of(2, 4, 5, 2, start=1.0)
    for cls, back in ((nn_ops.FractionalMaxPool, G.FractionalMaxPoolGrad), (nn_ops.FractionalAvgPool, G.FractionalAvgPoolGrad)):
        pool = cls([1.0, 1.5, 1.4, 1.0], True, True, True, 3, 4)
        out, rows, columns = pool(x)
        gradients = ms.grad(lambda x, pool=pool: (pool(x)[0] * sens).sum())(x)
        first = (x, out) if back is G.FractionalMaxPoolGrad else (Tensor([2, 6, 7, 2]),)
        close(back(True)(*first, sens, rows, columns), gradients)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_pools_draw_or_repeat_themselves(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self, **options: Any) -> None:
            super().__init__()
            self.pool = nn_ops.FractionalMaxPool([1.0, 1.6, 1.3, 1.0], **options)

        def construct(self, x: Tensor) -> Tensor:
            return self.pool(x)[1]

    ms.set_context(mode=mode)
    x, fixed, free = of(1, 30, 30, 1), Net(deterministic=True, seed=2, seed2=3), Net()
    assert len({str(fixed(x)) for _ in range(6)}) == 1 and len({str(free(x)) for _ in range(6)}) > 1


def test_what_pools_by_fractions_refuse() -> None:
    x = of(1, 6, 6, 1)
    of_ratio = nn_ops.FractionalMaxPool
    refused(lambda: of_ratio((1.0, 2.0, 2.0, 1.0))(x), TypeError, "pooling_ratio=(1.0, 2.0, 2.0, 1.0)): expected a list, got tuple.")
    refused(lambda: of_ratio([1.0, 0.5, 2.0, 1.0])(x), ValueError, "expected [1.0, rows, columns, 1.0] with ratios from 1.0 on.")
    refused(lambda: of_ratio([1.0, 9.0, 2.0, 1.0])(x), ValueError, "expected no more than the rows and columns of x, (6, 6).")
    refused(lambda: of_ratio([1.0, 2.0, 2.0, 1.0], seed=1)(x), ValueError,
            "seed=1, seed2=0: expected 0 for both if deterministic=False.")
    refused(lambda: of_ratio([1.0, 2.0, 2.0, 1.0])(x.astype(ms.float16)), TypeError,
            "expected x of float32, float64, int32 or int64, got Float16.")
    refused(lambda: of_ratio([1.0, 2.0, 2.0, 1.0])(x[0]), ValueError, "expected x of shape (N, H, W, C), got (6, 6, 1).")
    rows = Tensor([0, 3, 6])
    refused(lambda: G.FractionalAvgPoolGrad()(Tensor([1, 6, 6, 1]), of(1, 3, 2, 1), rows, rows), ValueError,
            "expected out_backprop of shape (1, 2, 2, 1), got (1, 3, 2, 1).")


# ---- dilation


@pytest.mark.parametrize("mode", ["same", "VALID"])
@pytest.mark.parametrize(("stride", "gap"), [(1, 1), (2, 1), ((1, 2), (2, 1)), ((1, 1, 2, 3), (1, 1, 1, 2))])
def test_dilation_is_the_largest_sum(mode: str, stride: Any, gap: Any) -> None:
    x, weight = of(2, 3, 7, 8), of(3, 2, 3, start=1.0)
    array = nn_ops.Dilation2D(stride, gap, mode)(x, weight).asnumpy()
    (down, along), (step, skip) = ((s, s) if isinstance(s, int) else s[-2:] for s in (stride, gap))
    reach = step + 1, 2 * skip + 1
    shape, before = [(7 - reach[0]) // down + 1, (8 - reach[1]) // along + 1], [0, 0]
    if mode == "same":
        shape = [-(-7 // down), -(-8 // along)]
        before = [max((n - 1) * s + r - length, 0) // 2 for n, s, r, length in zip(shape, (down, along), reach, (7, 8))]
    assert array.shape == (2, 3, *shape)
    for i, j in np.ndindex(*shape):
        sums = [
            x.asnumpy()[:, :, i * down - before[0] + k * step, j * along - before[1] + m * skip] + weight.asnumpy()[:, k, m]
            for k, m in np.ndindex(2, 3)
            if 0 <= i * down - before[0] + k * step < 7 and 0 <= j * along - before[1] + m * skip < 8
        ]
        np.testing.assert_allclose(array[:, :, i, j], np.max(sums, 0), rtol=1e-6)


def test_gradients_of_a_dilation() -> None:
    x, weight = of(1, 2, 5, 5), of(2, 2, 2, start=1.0)
    dilation = nn_ops.Dilation2D(1, 1, "SAME")
    sens = of(1, 2, 5, 5, start=2.0)
    by_x, by_filter = ms.grad(lambda x, w: (dilation(x, w) * sens).sum(), (0, 1))(x, weight)
    close(G.Dilation2DBackpropInput(1, 1)(x, weight, sens), by_x)
    close(G.Dilation2DBackpropFilter(1, 1)(x, weight, sens), by_filter)
    assert float(by_x.sum()) == pytest.approx(float(sens.sum()), rel=1e-4)


def test_what_dilation_refuses() -> None:
    x, weight = of(1, 2, 5, 5), of(2, 2, 2)
    refused(lambda: nn_ops.Dilation2D(1, 1, data_format="NHWC")(x, weight), ValueError, "data_format='NHWC': expected 'NCHW'.")
    refused(lambda: nn_ops.Dilation2D(1, 1, "full")(x, weight), ValueError, "(pad_mode='full'): expected 'same' or 'valid'.")
    refused(lambda: nn_ops.Dilation2D(0, 1)(x, weight), ValueError, "stride=0: expected ints above 0: one, two, or (1, 1, rows, columns).")
    refused(lambda: nn_ops.Dilation2D([1, 1], 1)(x, weight), TypeError, "stride=[1, 1]: expected an int, or a tuple of two or four.")
    refused(lambda: nn_ops.Dilation2D(1, 1)(x, of(3, 2, 2)), ValueError,
            "expected x of shape (N, C, H, W) and filter (C, rows, columns), got (1, 2, 5, 5) and (3, 2, 2).")
    refused(lambda: G.Dilation2DBackpropInput(1, 1)(x, weight, of(1, 2, 4, 4)), ValueError,
            "expected out_backprop of shape (1, 2, 5, 5), got (1, 2, 4, 4).")


# ---- recurrent primitives


def weights(count: int) -> Tensor:
    return Tensor(np.sin(np.arange(count) * 0.9).reshape(count, 1, 1).astype(np.float32))


@pytest.mark.parametrize("directions", [1, 2])
def test_sequences_end_where_their_lengths_say(directions: int) -> None:
    both, x, h = directions == 2, of(4, 2, 3), of(directions, 2, 2, start=1.0)
    count = 48 * directions
    long, short = (Tensor(np.array(lengths, np.int32)) for lengths in ([4, 4], [4, 2]))
    for cls, states in ((inner.GRUV2, (h,)), (inner.LSTMV2, (h, of(directions, 2, 2, start=2.0)))):
        rnn = cls(3, 2, 1, True, both, 0.0)
        out, *last = rnn(x, *states, weights(count), short)
        alone, *ends = rnn(x[:2, 1:], *[s[:, 1:] for s in states], weights(count), Tensor(np.array([2], np.int32)))
        full_output = rnn(x, *states, weights(count), long)[0]
        close(out[:, 0], full_output[:, 0])
        close(out[:2, 1], alone[:, 0])
        close(last[0][:, 1], ends[0][:, 0])
        assert not out[2:, 1].asnumpy().any()


def test_an_lstm_with_lengths_is_the_lstm() -> None:
    x, h, c, w = of(4, 2, 3), of(2, 2, 2), of(2, 2, 2, start=1.0), weights(200)
    plain = ops.LSTM(3, 2, 2, True, False, 0.0)(x, h, c, w)
    for plain_output, other in zip(plain[:3], inner.LSTMV2(3, 2, 2, True, False, 0.0)(x, h, c, w, Tensor(np.array([4, 4], np.int32)))):
        close(plain_output, other)


def test_what_recurrent_primitives_refuse() -> None:
    x, h, w = of(4, 2, 3), of(1, 2, 2), weights(48)
    refused(lambda: inner.GRUV2(3, 2, 1, True, False, 0.0)(x, h, w, Tensor([4])), ValueError,
            "expected seq_lengths of shape (2,), got (1,).")
    lengths = Tensor([4, 4])
    refused(lambda: G.GRUV2Grad(3, 2, 1, True, False, 0.5)(x, h, w, lengths, of(4, 2, 2), h, of(4, 2, 2), h, h), ValueError,
            "dropout=0.5: expected 0.0, because the forward pass does not store its dropout masks.\n\nhint: write ms.grad of the layer.")


# ---- the status of overflows, of eight int32


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_status_of_eight_ints_knows_of_what_it_depends_on(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.clear, self.get = math_ops.NPUClearFloatStatusV2(), math_ops.NPUGetFloatStatusV2()

        def construct(self, x: Tensor) -> Tensor:
            init = Tensor([0] * 8, ms.int32)
            x = ops.depend(x, self.clear(init))
            result = x - ops.neg(x)
            status = self.get(ops.depend(init, result))
            return ops.logical_not(ops.equal(Tensor([0], ms.int32), status).all())

    ms.set_context(mode=mode)
    assert [bool(Net()(Tensor(np.full((2, 3), value, np.float16)))) for value in (65504, 10)] == [True, False]


def test_what_a_status_of_eight_ints_refuses() -> None:
    get = math_ops.NPUGetFloatStatusV2()
    refused(lambda: get(Tensor(np.zeros(8, np.int32))), ValueError, "expected a status that depends on a value")
    refused(lambda: get(Tensor(np.zeros(8, np.float32))), TypeError, "expected a status of int32, got Float32.")
    refused(lambda: get(Tensor(np.zeros(4, np.int32))), ValueError, "expected a status of shape (8,), got (4,).")
