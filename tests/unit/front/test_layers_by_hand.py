"""Layers and operators that MindSpore 2.10 has no kernel for on the CPU, against NumPy and by hand."""
from __future__ import annotations

import re

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P

RANDOM = np.random.RandomState(4)
IMAGE = RANDOM.randn(2, 3, 6, 5).astype(np.float32)
BOX = RANDOM.randn(2, 3, 4, 3, 5).astype(np.float32)
ROWS = RANDOM.randn(4, 6).astype(np.float32)


def near(result, expected, rtol=1e-5, atol=1e-5) -> None:
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=rtol, atol=atol)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("kind", "array"), [
    (nn.InstanceNorm1d, IMAGE[:, :, :, 0]), (nn.InstanceNorm2d, IMAGE), (nn.InstanceNorm3d, BOX),
])
def test_instance_norm(mode: int, kind, array) -> None:
    layer = kind(3, gamma_init=Tensor([1.0, 2.0, 0.5]), beta_init=Tensor([0.0, 1.0, -1.0]))
    axes, shape = tuple(range(2, array.ndim)), (3,) + (1,) * (array.ndim - 2)
    normal = (array - array.mean(axes, keepdims=True)) / np.sqrt(array.var(axes, keepdims=True) + 1e-5)
    near(layer(Tensor(array.copy())), normal * np.reshape([1.0, 2.0, 0.5], shape) + np.reshape([0.0, 1.0, -1.0], shape), 1e-4)
    assert [parameter.name for parameter in layer.get_parameters()] == ["mean", "variance", "gamma", "beta"]


def test_the_primitive_instance_norm_keeps_running_values(mode: int) -> None:
    mean, variance = ms.Parameter(ops.zeros((3,)), name="m"), ms.Parameter(ops.ones((3,)), name="v")
    out, means, variances = ops.operations.InstanceNorm(1e-5, 0.1)(Tensor(IMAGE), ops.ones((3,)), ops.zeros((3,)), mean, variance)
    near(means, IMAGE.mean((2, 3)).reshape(-1), 1e-4)
    near(variances, IMAGE.var((2, 3)).reshape(-1), 1e-4)
    near(mean, 0.1 * IMAGE.mean((0, 2, 3)), 1e-4)
    near(out, nn.InstanceNorm2d(3)(Tensor(IMAGE)).asnumpy(), 1e-4)


def windows(image, size, step, rate, pad):
    """The patches of (N, C, H, W) as MindSpore lays them: (N, KH * KW * C, rows, columns)."""
    image = np.pad(image, ((0, 0), (0, 0), *pad))
    rows = (image.shape[2] - (size[0] - 1) * rate[0] - 1) // step[0] + 1
    columns = (image.shape[3] - (size[1] - 1) * rate[1] - 1) // step[1] + 1
    result = np.zeros((image.shape[0], size[0] * size[1] * image.shape[1], rows, columns), np.float32)
    for i in range(rows):
        for j in range(columns):
            top, left = i * step[0], j * step[1]
            patch = image[:, :, top:top + size[0] * rate[0]:rate[0], left:left + size[1] * rate[1]:rate[1]]
            result[:, :, i, j] = patch[:, :, :size[0], :size[1]].transpose(0, 2, 3, 1).reshape(image.shape[0], -1)
    return result


def test_unfold(mode: int) -> None:
    near(nn.Unfold([1, 2, 3, 1], [1, 2, 1, 1], [1, 2, 1, 1])(Tensor(IMAGE)), windows(IMAGE, (2, 3), (2, 1), (2, 1), ((0, 0), (0, 0))))
    result = P.ExtractImagePatches([1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "same")(Tensor(IMAGE))
    near(result, windows(IMAGE, (3, 3), (2, 2), (1, 1), ((0, 1), (1, 1))))


def test_matrices(mode: int) -> None:
    a = np.array([[[4.0, 1.0], [1.0, 3.0]]], np.float32)
    near(nn.MatInverse()(Tensor(a)), np.linalg.inv(a))
    near(nn.MatDet()(Tensor(a)), np.linalg.det(a))
    near(nn.MatrixDiag()(Tensor([1.0, 2.0])), np.diag([1.0, 2.0]))
    near(nn.MatrixDiagPart()(Tensor(a)), [[4.0, 3.0]])
    near(nn.MatrixSetDiag()(Tensor(a), Tensor([[7.0, 8.0]])), [[[7.0, 1.0], [1.0, 8.0]]])
    near(nn.Roll((1, -1), (0, 1))(Tensor(ROWS)), np.roll(ROWS, (1, -1), (0, 1)))


def ssim(first, second, size, sigma, top=1.0, k1=0.01, k2=0.03):
    at = np.arange(size) - (size - 1) / 2
    line = np.exp(-at * at / (2 * sigma**2))
    window = np.outer(line, line) / np.outer(line, line).sum()

    def mean(x):
        rows, columns = x.shape[2] - size + 1, x.shape[3] - size + 1
        return sum(window[i, j] * x[:, :, i:i + rows, j:j + columns] for i in range(size) for j in range(size))

    a, b, c1, c2 = mean(first), mean(second), (k1 * top) ** 2, (k2 * top) ** 2
    structure = (2 * (mean(first * second) - a * b) + c2) / (mean(first**2) - a * a + mean(second**2) - b * b + c2)
    light = (2 * a * b + c1) / (a * a + b * b + c1)
    return (light * structure).mean((1, 2, 3)), structure.mean((1, 2, 3))


def test_likeness_of_pictures(mode: int) -> None:
    first = RANDOM.rand(2, 3, 16, 14).astype(np.float32)
    second = np.clip(first + 0.1 * RANDOM.randn(*first.shape), 0, 1).astype(np.float32)
    near(nn.SSIM()(Tensor(first), Tensor(second)), ssim(first, second, 11, 1.5)[0], 1e-3)
    near(nn.SSIM(255.0, 5, 1.0, 0.02, 0.05)(Tensor(first), Tensor(second)), ssim(first, second, 5, 1.0, 255.0, 0.02, 0.05)[0], 1e-3)
    near(nn.PSNR(2.0)(Tensor(first), Tensor(second)), 10 * np.log10(4 / ((first - second) ** 2).mean((1, 2, 3))), 1e-4)

    def half(x):
        return x.reshape(*x.shape[:2], x.shape[2] // 2, 2, x.shape[3] // 2, 2).mean((3, 5))

    expected = ssim(first, second, 3, 1.5)[1] ** 0.4 * ssim(half(first), half(second), 3, 1.5)[0] ** 0.6
    near(nn.MSSSIM(power_factors=(0.4, 0.6), filter_size=3)(Tensor(first), Tensor(second)), expected, 1e-3)


def test_resize_bilinear_of_one_x(mode: int) -> None:
    line = Tensor(np.array([[[[0.0, 2.0]]]], np.float32))
    layer = nn.ResizeBilinear()
    assert layer(line, size=(1, 4)).asnumpy().reshape(-1).tolist() == [0, 1, 2, 2]
    assert layer(line, size=(1, 3), align_corners=True).asnumpy().reshape(-1).tolist() == [0, 1, 2]
    assert layer(line, scale_factor=2).asnumpy().tolist() == [[[[0, 1, 2, 2], [0, 1, 2, 2]]]]
    assert nn.ResizeBilinear(half_pixel_centers=True)(line, size=(1, 4)).asnumpy().reshape(-1).tolist() == [0, 0.5, 1.5, 2]
    with pytest.raises(ValueError, match="expected one of them"):
        layer(line)


def test_dynamic_rnn(mode: int) -> None:
    x, w, b = (RANDOM.randn(*shape).astype(np.float32) * 0.5 for shape in ((3, 2, 4), (9, 20), (20,)))
    result = P.DynamicRNN(forget_bias=1.0)(Tensor(x.astype(np.float16)), Tensor(w), Tensor(b))
    h = c = np.zeros((2, 5))
    for step in range(3):
        i, j, f, o = np.split(np.concatenate([x[step].astype(np.float16), h], 1) @ w + b, 4, 1)
        c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
        h = sigmoid(o) * np.tanh(c)
        near(result[0][step], h, 1e-3, 1e-3)
        near(result[2][step], c, 1e-3, 1e-3)
    assert [output.dtype for output in result[:3]] == [ms.float32, ms.float16, ms.float32] and len(result) == 8


@pytest.mark.parametrize("order", ["rzh", "zrh"])
def test_dynamic_gru(mode: int, order: str) -> None:
    x, w, u, b, d = (RANDOM.randn(*shape).astype(np.float32) * 0.5 for shape in ((3, 2, 4), (4, 15), (5, 15), (15,), (15,)))
    result = P.DynamicGRUV2(gate_order=order)(*map(Tensor, (x, w, u, b, d)), None, Tensor(np.ones((2, 5), np.float32)))
    h = np.ones((2, 5))
    for step in range(3):
        input_parts, past = np.split(x[step] @ w + b, 3, 1), np.split(h @ u + d, 3, 1)
        r, z = (0, 1) if order == "rzh" else (1, 0)
        reset, update = sigmoid(input_parts[r] + past[r]), sigmoid(input_parts[z] + past[z])
        new = np.tanh(input_parts[2] + reset * past[2])
        h = (1 - update) * new + update * h
        for part, value in zip(result, (h, h, update, reset, new, past[2])):
            near(part[step], value, 1e-4)


def test_recurrent_primitives_refuse_what_mindspore_refuses() -> None:
    x = Tensor(np.zeros((1, 1, 2), np.float32))
    with pytest.raises(ValueError, match=r"direction='BIDIRECTIONAL': expected 'UNIDIRECTIONAL'"):
        P.DynamicRNN(direction="BIDIRECTIONAL")(x, Tensor(np.zeros((3, 4), np.float32)), Tensor(np.zeros(4, np.float32)))
    with pytest.raises(ValueError, match=r"gate_order='abc': expected 'rzh' or 'zrh'"):
        P.DynamicGRUV2(gate_order="abc")(x, Tensor(np.zeros((2, 3), np.float32)), Tensor(np.zeros((1, 3), np.float32)))


def test_basic_lstm_cell(mode: int) -> None:
    x, h, c, w, b = (RANDOM.randn(*shape).astype(np.float32) * 0.5 for shape in ((2, 4), (2, 5), (2, 5), (20, 9, 1, 1), (20, 1, 1, 1)))
    result = P.BasicLSTMCell()(*map(Tensor, (x, h, c, w, b)))
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ w[:, :, 0, 0].T + b[:, 0, 0, 0], 4, 1)
    expected = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    near(result[0], expected)
    near(result[1], sigmoid(o) * np.tanh(expected))


def test_dropout_masks(mode: int) -> None:
    mask = P.DropoutGenMask()((40, 50), Tensor(0.25))
    assert mask.dtype == ms.uint8 and mask.shape == (256,)
    out = P.DropoutDoMask()(ops.ones((40, 50)), mask, Tensor(0.25)).asnumpy()
    assert set(np.unique(out)) == {0.0, 4.0} and abs((out > 0).mean() - 0.25) < 0.05


def test_norms_and_activations(mode: int) -> None:
    x = ROWS.astype(np.float64)
    share = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    for normed in (ops.rms_norm(Tensor(ROWS), Tensor(ROWS[0])), P.RmsNorm()(Tensor(ROWS), Tensor(ROWS[0]))):
        near(normed[0], x * share * x[0])
        near(normed[1], share)
    near(ops.swiglu(Tensor(ROWS)), x[:, :3] * sigmoid(x[:, :3]) * x[:, 3:])
    soft = x - np.log(np.exp(x).sum(1, keepdims=True))
    near(nn.LogSoftmaxExt()(Tensor(ROWS)), soft)
    near(P.LogSoftmaxExt()(Tensor(ROWS), 1), soft)
    near(nn.PReLUExt(init=0.5)(Tensor(ROWS)), np.where(x > 0, x, 0.5 * x))
    near(nn.LayerNormExt(6)(Tensor(ROWS)), (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), 1e-4)
    slopes = nn.RReLU(0.2, 0.3)(Tensor(ROWS)).asnumpy()[ROWS < 0] / ROWS[ROWS < 0]
    assert (slopes > 0.2 - 1e-6).all() and (slopes < 0.3 + 1e-6).all()


def test_layers_with_torchs_defaults(mode: int) -> None:
    image = Tensor(IMAGE)
    near(nn.AvgPool2dExt(2)(image), ops.avg_pool2d(image, 2, 2).asnumpy())
    near(nn.AvgPool2dExt(2, 1, 1, divisor_override=3)(image), ops.avg_pool2d(image, 2, 1, 1, divisor_override=3).asnumpy())
    near(nn.AvgPool1dExt(2)(image[:, :, :, 0]), ops.avg_pool1d(image[:, :, :, 0], 2, 2).asnumpy())
    near(nn.AvgPool3dExt(2, 1)(Tensor(BOX)), ops.avg_pool3d(Tensor(BOX), 2, 1).asnumpy())
    near(nn.MaxPool2dExt(2)(image), ops.max_pool2d(image, 2, 2).asnumpy())
    near(nn.L1LossExt()(image, image * 2), np.abs(IMAGE).mean())
    for layer in (nn.DropoutExt(0.5), nn.Dropout2dExt(0.5, inplace=True)):
        assert set(np.unique(layer.set_train()(Tensor(np.ones((8, 8, 2, 2), np.float32))).asnumpy())) == {0.0, 2.0}


def test_embedding_ext(mode: int) -> None:
    layer = nn.EmbeddingExt(4, 3, padding_idx=1, _weight=Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)))
    ids = Tensor([[0, 1], [3, 3]])
    near(layer(ids), np.arange(12).reshape(4, 3)[[[0, 1], [3, 3]]])
    near(ops.embedding(ids, layer.weight), np.arange(12).reshape(4, 3)[[[0, 1], [3, 3]]])
    gradient = ms.grad(lambda i: layer(i).sum(), None, layer.trainable_params())(ids)[0].asnumpy()
    assert gradient.tolist() == [[1.0] * 3, [0.0] * 3, [0.0] * 3, [2.0] * 3]
    with pytest.raises(ValueError, match=r"^EmbeddingExt\(sparse=True\): expected False"):
        nn.EmbeddingExt(4, 3, sparse=True)


@pytest.mark.parametrize(("operator", "expected"), [
    ("SUM", [[[0.0, 1.0], [2 * 2 + 4 * 0.5, 2 * 3 + 5 * 0.5]]]),
    ("MEAN", [[[0.0, 1.0], [(2 * 2 + 4 * 0.5) / 2.5, (2 * 3 + 5 * 0.5) / 2.5]]]),
    ("MAX", [[[0.0, 1.0], [4.0, 6.0]]]),
])
def test_embeddings_of_fields(mode: int, operator: str, expected) -> None:
    layer = nn.MultiFieldEmbeddingLookup(4, 2, 2, Tensor(np.arange(8, dtype=np.float32).reshape(4, 2)), "DEVICE", operator=operator)
    ids, fields = Tensor([[0, 1, 2, 3]], ms.int32), Tensor([[0, 1, 1, 0]], ms.int32)
    near(layer(ids, Tensor([[1.0, 2.0, 0.5, 0.0]]), fields), expected)


def test_losses(mode: int) -> None:
    target = Tensor([[0, 2, -1], [1, -1, 0]], ms.int32)
    x = np.array([[0.5, 0.1, 0.9], [0.3, 0.8, 0.2]], np.float32)
    rows = [sum(max(0, 1 - (x[0, r] - x[0, 1])) for r in (0, 2)) / 3, sum(max(0, 1 - (x[1, 1] - x[1, w])) for w in (0, 2)) / 3]
    near(nn.MultilabelMarginLoss("none")(Tensor(x), target), rows)
    near(ops.multilabel_margin_loss(Tensor(x), target, "sum"), sum(rows))
    loss, right = P.MultilabelMarginLoss()(Tensor(x), target)
    assert right.asnumpy().tolist() == [[1, 0, 1], [0, 1, 0]] and abs(float(loss) - np.mean(rows)) < 1e-5
    signs = np.sign(ROWS)
    expected = np.log1p(np.exp(-signs * ROWS * 2))
    for value in (nn.SoftMarginLoss("none"), P.SoftMarginLoss("none"), lambda a, b: ops.soft_margin_loss(a, b, "none")):
        near(value(Tensor(ROWS * 2), Tensor(signs)), expected)
    a, b, c = ROWS[:2], ROWS[1:3], ROWS[2:]
    triple = np.maximum(np.linalg.norm(a - b + 1e-6, axis=1) - np.linalg.norm(a - c + 1e-6, axis=1) + 0.5, 0)
    near(nn.TripletMarginLoss(reduction="none", margin=0.5)(*map(Tensor, (a, b, c))), triple, 1e-4)
    near(P.TripletMarginLoss(reduction="none")(*map(Tensor, (a, b, c)), Tensor(0.5)), triple, 1e-4)
    near(ops.triplet_margin_loss(*map(Tensor, (a, b, c)), margin=0.5, reduction="none"), triple, 1e-4)


def test_infinite_losses_of_ctc_become_zero(mode: int) -> None:
    chances = ops.log_softmax(Tensor(RANDOM.randn(3, 1, 4).astype(np.float32)), 2)
    lengths = Tensor([3], ms.int32), Tensor([3], ms.int32)
    labels = Tensor([[1, 1, 2]], ms.int32)
    assert np.isinf(nn.CTCLoss(reduction="none")(chances, labels, *lengths).asnumpy()).all()
    assert nn.CTCLoss(reduction="none", zero_infinity=True)(chances, labels, *lengths).asnumpy().tolist() == [0.0]
    assert P.CTCLossV2(zero_infinity=True)(chances, labels, *lengths)[0].asnumpy().tolist() == [0.0]


@pytest.mark.parametrize(
    ("labels", "times", "lengths", "message"),
    [
        ([[1, 2, 2], [3, -(2**31), 0]], [6, 4], [3, 2], "expected classes from 0 to 4, got -2147483648."),
        ([[1, 2, 2], [3, 5, 0]], [6, 4], [3, 2], "expected classes from 0 to 4, got 5."),
        ([[1, 2, 2], [3, 1, 0]], [7, 4], [3, 2], "input_lengths: expected numbers from 0 to 6, got 7."),
        ([[1, 2, 2], [3, 1, 0]], [6, 4], [-1, 2], "target_lengths: expected numbers from 0 to 3, got -1."),
    ],
)
def test_ctc_reads_no_classes_that_are_not_there(
    labels: list[list[int]], times: list[int], lengths: list[int], message: str, mode: int,
) -> None:
    chances = ops.log_softmax(Tensor(RANDOM.randn(6, 2, 5).astype(np.float32)), 2)
    with pytest.raises(ValueError, match=re.escape(message)):
        ops.ctc_loss(chances, *(Tensor(numbers, ms.int32) for numbers in (labels, times, lengths)))


def test_log_alpha_of_ctc_is_minus_infinity_beyond_the_lengths(mode: int) -> None:
    chances = ops.log_softmax(Tensor(RANDOM.randn(6, 2, 5).astype(np.float32)), 2)
    labels = [Tensor(numbers, ms.int32) for numbers in ([[1, 2, -1], [3, 7, 0]], [6, 4], [2, 1])]   # after the lengths anything may stand
    alphas = ops.ctc_loss(chances, *labels)[1].asnumpy()
    assert alphas.shape == (2, 6, 7)
    assert np.isinf(alphas[:, :, 5:]).all() and np.isinf(alphas[1, :, 3:]).all() and np.isinf(alphas[1, 4:]).all()
    assert np.isfinite(alphas[0, -1, :5]).all()


def test_a_graph_holds_the_losses_of_ctc_unbroken() -> None:
    x, labels = Tensor(RANDOM.randn(5, 2, 4).astype(np.float32)), Tensor([0, 2, 1], ms.int32)
    indices, times = Tensor([[0, 0], [0, 1], [1, 0]], ms.int64), Tensor([5, 4], ms.int32)
    rows, lengths = Tensor([[1, 3], [2, 1]], ms.int32), Tensor([2, 1], ms.int32)

    def losses(x):
        loss_values = P.CTCLoss()(x, indices, labels, times)[0]
        return loss_values.sum() * 2 + nn.CTCLoss()(ops.log_softmax(x, 2), rows, times, lengths)

    both = ms.value_and_grad(losses)
    compiled = ms.jit(both, fullgraph=True)                       # raises where a part would run outside of the graph
    for result, expected in zip(compiled(x), both(x)):
        near(result, expected.asnumpy(), 1e-5)


def test_sampled_softmax(mode: int) -> None:
    weights, biases, logits = RANDOM.randn(7, 3), RANDOM.randn(7), RANDOM.randn(2, 3)
    values = Tensor([5, 2, 6]), Tensor([[0.5], [0.25]]), Tensor([0.1, 0.2, 0.3])
    loss = nn.SampledSoftmaxLoss(3, 7, sampled_values=values)
    result = loss(*(Tensor(v.astype(np.float32)) for v in (weights, biases)), Tensor([[1], [2]]), Tensor(logits.astype(np.float32)))
    for row, label, logit in ((0, 1, 0.5), (1, 2, 0.25)):
        shown = [logits[row] @ weights[label] + biases[label] - np.log(logit)] + [
            logits[row] @ weights[k] + biases[k] - np.log(e) for k, e in ((5, 0.1), (2, 0.2), (6, 0.3)) if k != label
        ]
        assert abs(float(result[row]) - (np.log(np.sum(np.exp(shown))) - shown[0])) < 1e-4
    drawn = nn.SampledSoftmaxLoss(4, 6, seed=3)
    equal = drawn(ops.ones((6, 3)), ops.zeros((6,)), Tensor([[0], [1]]), ops.ones((2, 3)))
    near(equal, [np.log(5)] * 2)
    too_few = nn.SampledSoftmaxLoss(4, 5, seed=3)                 # draws 0, 3, 4 and 2, of which 0 is the class of the first row
    equal = too_few(ops.ones((5, 3)), ops.zeros((5,)), Tensor([[0], [1]]), ops.ones((2, 3)))
    near(equal, [np.log(4), np.log(5)])


def test_depthwise(mode: int) -> None:
    weight = RANDOM.randn(2, 3, 2, 2).astype(np.float32)
    array = P.DepthwiseConv2dNative(2, 2)(Tensor(IMAGE), Tensor(weight)).asnumpy()
    for channel in range(3):
        for k in range(2):
            window_sum = sum(weight[k, channel, i, j] * IMAGE[:, channel, i:i + 5, j:j + 4] for i in range(2) for j in range(2))
            np.testing.assert_allclose(array[:, 2 * channel + k], window_sum, rtol=1e-4, atol=1e-5)


def test_conv3d_transpose_is_the_primitive(mode: int) -> None:
    weight = Tensor(RANDOM.randn(3, 2, 2, 2, 2).astype(np.float32))
    near(ops.conv3d_transpose(Tensor(BOX), weight, stride=2), P.Conv3DTranspose(3, 2, 2, stride=2)(Tensor(BOX), weight).asnumpy())


def test_cut_borders(mode: int) -> None:
    near(nn.ZeroPad2d((1, -1, 0, 0))(Tensor(IMAGE)), np.pad(IMAGE[..., :-1], ((0, 0), (0, 0), (0, 0), (1, 0))))
    moved = np.pad(IMAGE[:, :, :-2], ((0, 0), (0, 0), (2, 0), (0, 0)), constant_values=0.5)
    near(nn.ConstantPad2d((0, 0, 2, -2), 0.5)(Tensor(IMAGE)), moved)
    near(P.ChannelShuffle(3)(Tensor(IMAGE)), IMAGE)


def test_dropout_between_recurrent_layers(mode: int) -> None:
    """While training, what the first layer gives is dropped before the second, and elsewhere nothing is."""
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        net = kind(3, 4, 2, True, False, 0.5)
        x = Tensor(RANDOM.randn(5, 2, 3).astype(np.float32))
        still = net.set_train(False)(x)[0].asnumpy()
        np.testing.assert_array_equal(net(x)[0].asnumpy(), still)
        assert not np.allclose(net.set_train(True)(x)[0].asnumpy(), still)


def test_helpers_of_one_x() -> None:
    from mindspore.nn.layer.basic import check_dense_input_shape
    from mindspore.nn.layer.conv import _check_input_3d
    from mindspore.nn.metrics.metric import Metric, rearrange_inputs

    assert Metric is ms.train.Metric and callable(rearrange_inputs)
    check_dense_input_shape((2, 3))
    with pytest.raises(ValueError, match=r"^Dense: expected an input of at least two axes, got shape \(3,\)\.$"):
        check_dense_input_shape((3,))
    with pytest.raises(ValueError, match=r"^Conv1d: expected an input of three axes, got shape \(3,\)\.$"):
        _check_input_3d((3,), "Conv1d")


class Standardised(nn.Conv2d):
    """As programs write it: the convolution of the base, with a weight of one's own."""

    def construct(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keep_dims=True)
        return self.bias_add(self.conv2d(x, weight), self.bias)


class FullDense(nn.Dense):
    def __init__(self) -> None:
        super().__init__(6, 3)
        self.reshape = nn.Identity()             # a Cell under the name of a part

    def construct(self, x):
        return self.reshape(self.bias_add(self.matmul(x, self.weight), self.bias))


class CustomLoss(nn.LossBase):
    def construct(self, logits, labels):
        return self.reduce_mean(self.cast(self.mul(logits, labels), ms.float32), self.get_axis(logits)) + self.reduce_sum(labels)


def test_subclasses_call_the_operators_of_layers(mode: int) -> None:
    layer = Standardised(3, 4, 3, pad_mode="pad", padding=1, has_bias=True)
    weight = layer.weight.asnumpy() - layer.weight.asnumpy().mean((1, 2, 3), keepdims=True)
    expected = ops.conv2d(Tensor(IMAGE), Tensor(weight), layer.bias, 1, "pad", 1)
    for _ in range(2):
        near(layer(Tensor(IMAGE)), expected.asnumpy(), 1e-4)
    assert layer.conv2d is layer.conv2d
    dense = FullDense()
    near(dense(Tensor(ROWS)), ROWS @ dense.weight.asnumpy().T + dense.bias.asnumpy())
    near(CustomLoss()(Tensor(ROWS), Tensor(ROWS)), (ROWS * ROWS).mean() + ROWS.sum(), 1e-4)
    line = nn.Conv1d(3, 2, 3, pad_mode="pad", padding=1)
    x = Tensor(IMAGE[:, :, 0])
    near(line.squeeze(line.conv2d(line.expand_dims(x, 2), line.weight)), line(x).asnumpy(), 1e-4)
    volume = nn.Conv3d(3, 2, 2)
    near(volume.conv3d(Tensor(BOX), volume.weight), volume(Tensor(BOX)).asnumpy(), 1e-4)
    back = nn.Conv2dTranspose(3, 2, 3)
    near(back.conv2d_transpose(Tensor(IMAGE), back.weight, (2, 2, 6, 5)), back(Tensor(IMAGE)).asnumpy(), 1e-4)
    norm = nn.LayerNorm((6,))
    near(norm.layer_norm(Tensor(ROWS), norm.gamma, norm.beta)[0], norm(Tensor(ROWS)).asnumpy(), 1e-4)
    net = nn.LSTM(3, 4, 2)
    assert [parameter.name for parameter in net.w_ih_list] == ["weight_ih_l0", "weight_ih_l1"] and len(net.b_hh_list) == 2


def test_pad_takes_pairs_as_in_1_x(mode: int) -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3))
    np.testing.assert_array_equal(ops.pad(x, ((0, 0), (1, 0), (0, 2))).asnumpy(), np.pad(x.asnumpy(), ((0, 0), (1, 0), (0, 2))))


def test_clip_by_norm_along_an_axis(mode: int) -> None:
    x = np.array([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]], np.float32)
    for axis in (0, 1):
        norm = np.sqrt((x * x).sum(axis, keepdims=True))
        near(nn.ClipByNorm(axis=axis)(Tensor(x), Tensor([5.0])), x * np.minimum(1.0, 5.0 / norm), 1e-5)


def test_the_text_of_a_cell_with_options_and_cells() -> None:
    text = "Dense(\n  input_channels=2, output_channels=3, has_bias=True, activation=ReLU()\n  (activation): ReLU()\n)"
    assert repr(nn.Dense(2, 3, activation="relu")) == text
    assert repr(nn.SequentialCell(nn.ReLU())) == "SequentialCell(\n  (0): ReLU()\n)"


@pytest.mark.parametrize("pad_mode", ["same", "valid"])
def test_rows_of_zeros_want_paddings_of_ones_own(pad_mode: str) -> None:
    message = f"Conv2dTranspose(output_padding=1, pad_mode='{pad_mode}'): expected output_padding=0 or pad_mode='pad'."
    with pytest.raises(ValueError, match=re.escape(message)):
        nn.Conv2dTranspose(1, 1, 3, 2, pad_mode, output_padding=1)
