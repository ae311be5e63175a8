"""Programs in the ways that people write them for pipelines: each trains a few steps and gives its numbers.

`CASES[name](stages)` builds nets whose Cells lie in so many stages; on one device the stages mean nothing, so that the same call says what
numbers are right.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.ops import composite as C
from mindspore.ops import functional as F
from mindspore.ops import operations as P

VOCAB, WIDTH, LENGTH, HEADS, ROWS = 32, 16, 8, 2, 8


def stage_of(at: int, count: int, stages: int) -> int:
    """Layers shared out evenly."""
    return at * stages // count


class Attention(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Dense(WIDTH, WIDTH) for _ in range(4))
        self.reshape, self.transpose, self.softmax = P.Reshape(), P.Transpose(), P.Softmax()
        self.scores, self.mix = P.BatchMatMul(transpose_b=True), P.BatchMatMul()

    def heads(self, x: Any) -> Any:
        return self.transpose(self.reshape(x, (-1, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def construct(self, x: Any, other: Any, mask: Any) -> Any:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(other)), self.heads(self.v(other))
        scores = self.scores(q, k) * 0.35 + (1.0 - F.cast(mask, x.dtype)) * -1e4
        result = self.transpose(self.mix(self.softmax(scores), v), (0, 2, 1, 3))
        return self.out(self.reshape(result, (-1, LENGTH, WIDTH)))


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,)), Attention()
        self.up, self.down = nn.Dense(WIDTH, 2 * WIDTH, activation="gelu"), nn.Dense(2 * WIDTH, WIDTH)

    def construct(self, x: Any, mask: Any) -> Any:
        y = self.first(x)
        x = x + self.attention(y, y, mask)
        return x + self.down(self.up(self.second(x)))


class Embedding(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.table = Parameter(initializer(Normal(0.1), (VOCAB, WIDTH)), name="embedding_table")
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.gather = P.Gather()

    def construct(self, ids: Any, positions: Any) -> Any:
        return self.gather(self.table, ids, 0) + self.places(positions), self.table


class Backbone(nn.Cell):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding, self.norm = Embedding(), nn.LayerNorm((WIDTH,))
        self.blocks = nn.CellList([Block() for _ in range(layers)])

    def construct(self, ids: Any, positions: Any, mask: Any) -> Any:
        x, table = self.embedding(ids, positions)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x), table


class Head(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.matmul = P.MatMul(transpose_b=True)

    def construct(self, x: Any, table: Any) -> Any:
        return self.matmul(x.reshape(-1, WIDTH), F.cast(table, x.dtype))


class Gpt(nn.Cell):
    """Tied tables, a mask that all layers read, stages set from outside in a loop."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        layers = max(2, stages)
        self.backbone, self.head = Backbone(layers), Head()
        for at in range(layers):
            self.backbone.blocks[at].pipeline_stage = stage_of(at, layers, stages)
        self.backbone.embedding.pipeline_stage = 0
        self.backbone.norm.pipeline_stage = self.head.pipeline_stage = stages - 1

    def construct(self, ids: Any, positions: Any, mask: Any) -> Any:
        x, table = self.backbone(ids, positions, mask)
        return self.head(x, table)


class Loss(nn.Cell):
    """Cross entropy by hand with weights for padding, as the zoo has it; the sum of weights is needed with the labels alone."""

    def __init__(self) -> None:
        super().__init__()
        self.sum, self.log_softmax, self.onehot = P.ReduceSum(), P.LogSoftmax(), P.OneHot()
        self.on, self.off = Tensor(1.0, ms.float32), Tensor(0.0, ms.float32)

    def construct(self, logits: Any, labels: Any, mask: Any) -> Any:
        log_probabilities = self.log_softmax(F.cast(logits, ms.float32))
        expected = self.onehot(labels.reshape(-1), VOCAB, self.on, self.off)
        mask = mask.reshape(-1)
        return self.sum(-self.sum(log_probabilities * expected, (-1,)) * mask) / (self.sum(mask) + 1e-5)


class GptWithLoss(nn.Cell):
    def __init__(self, network: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.loss = network, Loss()
        self.slice, self.not_equal = P.StridedSlice(), P.NotEqual()

    def construct(self, ids: Any, positions: Any, mask: Any) -> Any:
        tokens = self.slice(ids, (0, 0), (ids.shape[0], LENGTH), (1, 1))
        labels = self.slice(ids, (0, 1), (ids.shape[0], LENGTH + 1), (1, 1))
        weights = F.cast(self.not_equal(tokens, 0), ms.float32)
        logits = self.network(tokens, positions, mask)
        return self.loss(logits, labels, weights)


def words(steps: int, rows: int = ROWS, seed: int = 0) -> list[tuple[Any, ...]]:
    """Batches of ids, positions, and a causal mask for each row."""
    source = np.random.default_rng(seed)
    positions = np.tile(np.arange(LENGTH, dtype=np.int32), (rows, 1))
    mask = np.tile(np.tril(np.ones((1, LENGTH, LENGTH), np.float32)), (rows, 1, 1, 1))
    return [(Tensor(source.integers(0, VOCAB, (rows, LENGTH + 1)).astype(np.int32)), Tensor(positions), Tensor(mask)) for _ in range(steps)]


grad_scale = C.MultitypeFuncGraph("grad_scale")


@grad_scale.register("Tensor", "Tensor")
def _scaled(scale: Any, gradient: Any) -> Any:
    return gradient * F.cast(P.Reciprocal()(scale), gradient.dtype)


class PanguStep(nn.Cell):
    """A step of one's own: scaled loss, gradients unscaled, clipped by their global norm, skipped on overflow."""

    def __init__(self, network: nn.Cell, optimizer: Any, scale: float, micro: int) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer, self.micro = network, optimizer, micro
        self.weights = optimizer.parameters
        self.grad = C.GradOperation(get_by_list=True, sens_param=True)
        self.network.add_flags(defer_inline=True)
        self.hyper_map = C.HyperMap()
        self.scale = Parameter(Tensor(scale, ms.float32), name="scale_sense")
        self.manager = nn.DynamicLossScaleUpdateCell(scale, 2, 2)
        self.finite = P.IsFinite()

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        scale = self.scale * 1.0
        grads = self.grad(self.network, self.weights)(*inputs, F.fill(loss.dtype, loss.shape, 1.0) * F.cast(scale, loss.dtype) / self.micro)
        grads = self.hyper_map(F.partial(grad_scale, scale), grads)
        overflow = F.logical_not(ms.amp.all_finite(grads))
        grads = ops.clip_by_global_norm(grads, 0.5)
        overflow = self.manager(self.scale, overflow)
        if not overflow:
            self.optimizer(grads)
        return loss, overflow, scale


def losses(step: Any, batches: Any) -> list[float]:
    results = []
    for batch in batches:
        value = step(*batch)
        results.append(float((value[0] if isinstance(value, tuple) else value).asnumpy()))
    return results


def pangu(stages: int) -> list[float]:
    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-3)
    return losses(PanguStep(net, optimizer, 1024.0, 2).set_train(), words(4))


def interleaved_parts(stages: int) -> list[float]:
    net = nn.PipelineCell(nn.MicroBatchInterleaved(GptWithLoss(Gpt(stages)), 2), 2)
    return losses(nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train(), words(3))


def accumulated(stages: int) -> list[float]:
    net = nn.GradAccumulationCell(GptWithLoss(Gpt(stages)), 2)
    return losses(nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 1e-2, 0.9)).set_train(), words(3))


def with_loss_scale(stages: int) -> list[float]:
    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    optimizer = nn.Lamb(net.trainable_params(), 1e-3)
    step = nn.TrainOneStepWithLossScaleCell(net, optimizer, nn.DynamicLossScaleUpdateCell(2.0 ** 30, 2, 2))
    return losses(step.set_train(), words(5))


def rates(stages: int) -> list[float]:
    """A rate that warms up and decays, weight decay for matrices alone."""
    class Rate(nn.learning_rate_schedule.LearningRateSchedule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.warm, self.decay = nn.WarmUpLR(1e-2, 2), nn.PolynomialDecayLR(1e-2, 1e-4, 6, 1.0)

        def construct(self, at: Any) -> Any:
            is_warm = F.cast(at < 2, ms.float32)
            return is_warm * self.warm(at) + (1 - is_warm) * self.decay(at)

    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    flat = [p for p in net.trainable_params() if p.ndim < 2]
    wide = [p for p in net.trainable_params() if p.ndim > 1]
    groups = [{"params": wide, "weight_decay": 0.1}, {"params": flat, "weight_decay": 0.0}, {"order_params": net.trainable_params()}]
    return losses(nn.TrainOneStepCell(net, nn.AdamWeightDecay(groups, Rate())).set_train(), words(5))


def rate_list(stages: int) -> list[float]:
    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    return losses(nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), [0.1, 0.05, 0.01, 0.001], 0.9)).set_train(), words(4))


def recomputed(stages: int) -> list[float]:
    gpt = Gpt(stages)
    for block in gpt.backbone.blocks:
        block.recompute()
    net = nn.PipelineCell(GptWithLoss(gpt), 2)
    return losses(nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train(), words(3))


def half(stages: int) -> list[float]:
    """Blocks in half precision: what passes between stages is half as long."""
    gpt = Gpt(stages)
    for block in gpt.backbone.blocks:
        block.to_float(ms.float16)
    net = nn.PipelineCell(GptWithLoss(gpt), 2)
    return losses(nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1e-2)).set_train(), words(3))




def amp_o2(stages: int) -> list[float]:
    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    optimizer = nn.Momentum(net.trainable_params(), 1e-2, 0.9)
    return losses(ms.amp.build_train_network(net, optimizer, level="O2", loss_scale_manager=ms.FixedLossScaleManager(128.0)), words(3))


def averaged(stages: int) -> list[float]:
    """A moving average of all weights, made in the step."""
    class Step(nn.TrainOneStepCell):
        def __init__(self, network: nn.Cell, optimizer: Any) -> None:
            super().__init__(network, optimizer)
            self.means = self.weights.clone("ema", "same")
            self.map = C.Map()

        def construct(self, *inputs: Any) -> Any:
            loss = super().construct(*inputs)
            for mean, weight in zip(self.means, self.weights):
                loss = F.depend(loss, F.assign(mean, mean * 0.9 + weight * 0.1))
            return loss

    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    step = Step(net, nn.Adam(net.trainable_params(), 1e-2)).set_train()
    return losses(step, words(3))


def frozen(stages: int) -> list[float]:
    """The first stage is not trained."""
    gpt = Gpt(stages)
    for cell in (gpt.backbone.embedding, gpt.backbone.blocks[0]):
        for parameter in cell.get_parameters():
            parameter.requires_grad = False
    net = nn.PipelineCell(GptWithLoss(gpt), 2)
    return losses(nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train(), words(3))


def frozen_last(stages: int) -> list[float]:
    """The last block is not trained: gradients only pass through it."""
    gpt = Gpt(stages)
    for parameter in gpt.backbone.blocks[-1].get_parameters():
        parameter.requires_grad = False
    net = nn.PipelineCell(GptWithLoss(gpt), 2)
    return losses(nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train(), words(3))


class Odd(nn.Cell):
    """A stage without Parameters, one without Cells, a Parameter that nobody reads, tuples and a dict between stages."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.first, self.relu, self.last = nn.Dense(WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, 4)
        self.unread = Parameter(Tensor(np.ones((3, 3), np.float32)), name="unread")
        self.first.pipeline_stage, self.relu.pipeline_stage, self.last.pipeline_stage = 0, max(0, stages - 2), stages - 1

    def construct(self, x: Any) -> Any:
        y = self.first(x)
        pair = (self.relu(y), {"x": x, "sum": x.sum(1, keepdims=True)})
        return self.last(pair[0] + pair[1]["x"]) * pair[1]["sum"]


def odd(stages: int) -> list[float]:
    net = Odd(stages)
    step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2), nn.Adam(net.trainable_params(), 1e-2))
    source = np.random.default_rng(0)
    return losses(step.set_train(), [
        (Tensor(source.standard_normal((ROWS, WIDTH)).astype(np.float32)), Tensor(source.standard_normal((ROWS, 4)).astype(np.float32)))
        for _ in range(3)
    ])


def gap(stages: int) -> list[float]:
    """No Cell lies in a stage between the first and the last."""
    net = nn.SequentialCell([nn.Dense(WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, 4)])
    net[0].pipeline_stage, net[2].pipeline_stage = 0, stages - 1
    step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 4), nn.Adam(net.trainable_params(), 1e-2))
    x = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
    return losses(step.set_train(), [(Tensor(x), Tensor(x[:, :4].copy()))] * 3)


class Residual(nn.Cell):
    """A bottleneck of ResNet-50."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        inner = after // 4
        self.conv1, self.bn1 = nn.Conv2d(before, inner, 1), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, pad_mode="pad", padding=1), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, after, 1), nn.BatchNorm2d(after)
        self.relu = nn.Tanh()
        self.down = nn.SequentialCell([nn.Conv2d(before, after, 1, stride), nn.BatchNorm2d(after)]) if before != after else None

    def construct(self, x: Any) -> Any:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


class ResNet(nn.Cell):
    """Stages named in `__init__`."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Tanh()
        self.maxpool = nn.MaxPool2d(2, 2, pad_mode="same")
        self.layer1 = nn.SequentialCell([Residual(8, 16, 1), Residual(16, 16, 1)])
        self.layer2 = nn.SequentialCell([Residual(16, 32, 2), Residual(32, 32, 1)])
        self.layer3 = nn.SequentialCell([Residual(32, 32, 1)])
        self.mean, self.flatten, self.end_point = P.ReduceMean(keep_dims=True), nn.Flatten(), nn.Dense(32, 10)
        for at, cell in enumerate((self.conv1, self.bn1, self.relu, self.layer1, self.layer2, self.layer3, self.end_point)):
            cell.pipeline_stage = stage_of(max(0, at - 3), 4, stages)

    def construct(self, x: Any) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.end_point(self.flatten(self.mean(x, (2, 3))))


def resnet(stages: int) -> list[float]:
    net = ResNet(stages)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.PipelineCell(nn.WithLossCell(net, loss), 2), nn.Momentum(net.trainable_params(), 0.01, 0.9), sens=1.0)
    source = np.random.default_rng(0)
    result = losses(step.set_train(), [
        (Tensor(source.standard_normal((ROWS, 3, 16, 16)).astype(np.float32)), Tensor(source.integers(0, 10, ROWS).astype(np.int32)))
        for _ in range(3)
    ])
    net.set_train(False)
    evaluated = nn.WithLossCell(net, loss)
    evaluated.set_train(False)
    return [*result, float(evaluated(Tensor(source.standard_normal((ROWS, 3, 16, 16)).astype(np.float32)),
                                    Tensor(source.integers(0, 10, ROWS).astype(np.int32))).asnumpy())]


class Translator(nn.Cell):
    """Encoder and decoder: what the encoder gives goes to every decoder layer, with its mask."""

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.source, self.target = Embedding(), Embedding()
        self.encoder, self.decoder = nn.CellList([Block() for _ in range(2)]), nn.CellList([Block() for _ in range(2)])
        self.cross, self.norms = nn.CellList([Attention() for _ in range(2)]), nn.CellList([nn.LayerNorm((WIDTH,)) for _ in range(2)])
        self.head = nn.Dense(WIDTH, VOCAB)
        for at in range(2):
            self.encoder[at].pipeline_stage = stage_of(at, 4, stages)
            for cells in (self.decoder, self.cross, self.norms):
                cells[at].pipeline_stage = stage_of(2 + at, 4, stages)
        self.source.pipeline_stage, self.head.pipeline_stage = 0, stages - 1
        self.target.pipeline_stage = stage_of(2, 4, stages)

    def construct(self, ids: Any, positions: Any, causal: Any) -> Any:
        x, _ = self.source(ids, positions)
        y, _ = self.target(ids, positions)
        mask = ops.ones_like(causal)
        for layer in self.encoder:
            x = layer(x, mask)
        for layer, cross, norm in zip(self.decoder, self.cross, self.norms):
            y = layer(y, causal)
            y = y + cross(norm(y), x, mask)
        return self.head(y).reshape(-1, VOCAB)


def translator(stages: int) -> list[float]:
    net = nn.PipelineCell(GptWithLoss(Translator(stages)), 2)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 1e-3)).set_train()
    return losses(step, words(3))


def functional(stages: int) -> list[float]:
    """`value_and_grad` and an optimizer under one `jit`, gradients clipped between them."""
    net = nn.PipelineCell(GptWithLoss(Gpt(stages)), 2)
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradients = ms.value_and_grad(net, None, optimizer.parameters)

    @ms.jit
    def step(*batch: Any) -> Any:
        value, result = gradients(*batch)
        result = ops.clip_by_global_norm(result, 0.5)
        return F.depend(value, optimizer(result))

    return losses(step, words(3))


def fitted(stages: int) -> list[float]:
    """`Model.fit` with callbacks, a checkpoint that all write, `eval`."""
    import tempfile

    from mindspore.train import Callback, LossMonitor, Model, ModelCheckpoint, TimeMonitor
    from mindspore.train.callback import CheckpointConfig

    net = nn.SequentialCell([nn.Dense(WIDTH, 32, activation="tanh"), nn.Dense(32, 32, activation="tanh"), nn.Dense(32, 32)])
    for at, cell in enumerate(net):
        cell.pipeline_stage = stage_of(at, 3, stages)
    source = np.random.default_rng(0)
    rows = {"x": source.standard_normal((32, WIDTH)).astype(np.float32), "y": source.integers(0, 32, 32).astype(np.int32)}
    data = ms.dataset.NumpySlicesDataset(rows, shuffle=False).batch(8)
    loss = nn.CrossEntropyLoss()
    results: list[float] = []

    class Keep(Callback):  # type: ignore[misc]
        def on_train_step_end(self, run_context: Any) -> None:
            results.append(float(run_context.original_args().net_outputs.asnumpy()))

    parts = nn.PipelineCell(nn.WithLossCell(net, loss), 2)
    model = Model(parts, optimizer=nn.Adam(net.trainable_params(), 1e-2), loss_fn=None,
                  eval_network=nn.WithEvalCell(net, loss), metrics={"loss", "top_5_accuracy"}, eval_indexes=[0, 1, 2])
    with tempfile.TemporaryDirectory() as folder:
        saved = ModelCheckpoint("net", folder, CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=2))
        model.train(2, data, callbacks=[Keep(), LossMonitor(4), TimeMonitor(), saved], dataset_sink_mode=False)
        state = ms.load_checkpoint(f"{folder}/net-2_4.ckpt")
    results += [float(np.abs(value.asnumpy()).sum()) for name, value in sorted(state.items()) if name.endswith("weight")]
    return [*results, *(float(value) for _, value in sorted(model.eval(data, dataset_sink_mode=False).items()))]


CASES: dict[str, Callable[[int], list[float]]] = {
    program.__name__: program for program in (
        pangu, interleaved_parts, accumulated, with_loss_scale, rates, rate_list, recomputed, half, amp_o2, averaged, frozen, frozen_last,
        odd, gap, resnet, translator, functional, fitted,
    )
}


def run(name: str, stages: int, is_cut: bool, **more: Any) -> list[float]:
    """The numbers of a case; as a pipeline of so many stages, or on one device."""
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    if is_cut:
        inputs = {"parallel_mode": "semi_auto_parallel", "dataset_strategy": "full_batch", "pipeline_stages": stages, **more}
        ms.set_auto_parallel_context(**inputs)
    return CASES[name](stages)
