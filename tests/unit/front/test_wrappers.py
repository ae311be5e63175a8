"""Cells around networks where MindSpore has no kernel on the CPU: what is passed on, counted, and refused."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.nn.wrap.cell_wrapper import _BroadCastCell, _VirtualDatasetCell
from mindspore.nn.wrap.loss_scale import _grad_overflow, shard_grad_scale


class Three(nn.Cell):
    def construct(self, a, b, c):
        return a + b * c


def test_virtual_datasets_pass_on(mode: int) -> None:
    first, two, three = (Tensor(float(n)) for n in (1, 2, 3))
    assert float(nn.VirtualDatasetCellTriple(Three())(first, two, three)) == 7.0
    assert float(_VirtualDatasetCell(Three())(first, two, three)) == 7.0


def test_reducers_of_one_process(mode: int) -> None:
    net = nn.Dense(2, 1)
    weights = ms.ParameterTuple(net.trainable_params())
    gradients = (Tensor([[2.0, 4.0]]), Tensor([8.0]))
    reduced = nn.DistributedGradReducer(weights)(gradients)
    assert [g.asnumpy().tolist() for g in reduced] == [[[2.0, 4.0]], [8.0]]
    halved = nn.DistributedGradReducer(weights, True, 2)(gradients)
    assert [g.asnumpy().tolist() for g in halved] == [[[1.0, 2.0]], [4.0]]
    assert nn.PipelineGradReducer(weights, 2.0)(gradients)[1].asnumpy().tolist() == [4.0]
    assert _BroadCastCell(weights)()[1] is weights[1]


def test_a_program_reduces_before_it_updates(mode: int) -> None:
    """As the model zoo's training cells do."""

    class Step(nn.TrainOneStepWithLossScaleCell):
        def __init__(self, network, optimizer, scale):
            super().__init__(network, optimizer, scale)
            self.reducer = nn.DistributedGradReducer(optimizer.parameters, False, 1)

        def construct(self, *inputs):
            loss = self.network(*inputs)
            gradients = self.grad(self.network, self.weights)(*inputs, self.scale_sense)
            gradients = self.hyper_map(ops.partial(lambda scale, g: g / scale, self.scale_sense), gradients)
            self.optimizer(self.reducer(gradients))
            return loss

    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1), Tensor(1024.0))
    step(Tensor([[1.0, 1.0]]), Tensor([[0.0]]))
    np.testing.assert_allclose(net.weight.asnumpy(), [[0.6, 0.6]], rtol=1e-6)


class Reducing(nn.TrainOneStepCell):
    """Sets its reducer again, as the steps of 1.x do."""

    def __init__(self, network, optimizer, reducer):
        super().__init__(network, optimizer)
        self.grad_reducer = ops.identity
        if reducer is not None:
            self.grad_reducer = reducer

    def construct(self, x):
        loss = self.network(x)
        grads = self.grad_reducer(self.grad(self.network, self.weights)(x, ops.ones_like(loss)))
        return ops.depend(loss, self.optimizer(grads))


def test_a_step_may_set_its_reducer_again(mode: int) -> None:
    for reducer in (None, lambda grads: grads, nn.DistributedGradReducer):
        net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
        weights = net.trainable_params()
        reducer_object = reducer(weights) if reducer is nn.DistributedGradReducer else reducer
        step = Reducing(net, nn.SGD(weights, 0.5), reducer_object)
        assert step(Tensor([[2.0]])).asnumpy().tolist() == [[2.0]]
        assert weights[0].asnumpy().tolist() == [[0.0]]
        assert "grad_reducer" not in nn.TrainOneStepCell(net, nn.SGD(weights, 0.5)).name_cells()


def test_shared_gradients_are_scaled() -> None:
    assert float(_grad_overflow(Tensor([1.0, np.inf]))) == 1.0 and float(_grad_overflow(Tensor([1.0]))) == 0.0
    store = ms.Parameter(Tensor([4.0]), name="store")
    assert shard_grad_scale(Tensor(2.0), Tensor([1.0]), store).asnumpy().tolist() == [2.0] and float(store) == 0.0


def test_pipeline_keeps_its_stages() -> None:
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    nn.PipelineCell(net, 2, stage_config={"0": 0, "1": 1})
    assert [net[0].pipeline_stage, net[1].pipeline_stage] == [0, 1]
    with pytest.raises(KeyError, match="'2' of the configuration: expected the name of a Cell inside the network"):
        nn.PipelineCell(net, 2, stage_config={"2": 0})


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda net: nn.DistributedGradReducer([], degree=0), ValueError, "DistributedGradReducer(degree=0): expected an int above 0."),
    (lambda net: nn.PipelineCell(net, 0), ValueError, "PipelineCell(micro_size=0): expected an int from 1 on."),
    (lambda net: nn.MicroBatchInterleaved(1), TypeError, "MicroBatchInterleaved(network=1): expected a Cell, got int."),
    (lambda net: nn.WithGradCell(net, None, "a"), TypeError, "WithGradCell(sens='a'): expected None, a Tensor, a number or a tuple."),
    (lambda net: nn.PipelineGradReducer([], opt_shard=True), ValueError,
     "PipelineGradReducer(opt_shard=True): expected None or False: a single process cannot share its state."),
    (lambda net: nn.SyncBatchNorm(2, process_groups=[[0, 1]]), ValueError,
     "SyncBatchNorm(process_groups=[[0, 1]]): expected rank 0, the only process."),
])
def test_messages(call, kind, text: str) -> None:
    with pytest.raises(kind) as caught:
        call(nn.ReLU())
    assert str(caught.value) == text


def test_parameters_without_initial_values() -> None:
    with nn.no_init_parameters():
        net = nn.Dense(3, 4)
    assert not net.weight.asnumpy().any()
    assert nn.Dense(3, 4).weight.asnumpy().any()
