"""Names that older releases of MindSpore had, and what they do: initial values, messages of files, profiles that are read later."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.common.api import flops_collection
from mindspore.common.initializer import initializer, random_normal
from mindspore.profiler.profiler import analyse
from mindspore.train.node_strategy_pb2 import ParallelStrategyMap
from mindspore.train.print_pb2 import Print
from mindspore.train.serialization import Checkpoint


def test_random_normal_fills_a_tensor() -> None:
    filled = [Tensor(np.zeros((40, 50), np.float32)) for _ in range(3)]
    assert all(random_normal((40, 50), seed, 1, tensor) for seed, tensor in zip((7, 7, 8), filled))
    first, second, other = (tensor.asnumpy() for tensor in filled)
    assert (first == second).all() and (first != other).mean() > 0.99
    assert abs(first.mean()) < 0.1 and abs(first.std() - 1) < 0.05
    with pytest.raises(ValueError, match=r"^random_normal\(\[2\], output_tensor of shape \[40, 50\]\): expected one shape\.$"):
        random_normal((2,), 1, 1, filled[0])


def test_to_tensor_is_init_data() -> None:
    assert initializer("ones", (2,), ms.float32).to_tensor().asnumpy().tolist() == [1.0, 1.0]


def test_messages_are_read_and_written() -> None:
    checkpoint = Checkpoint()
    value = checkpoint.value.add()
    value.tag, value.tensor.tensor_type, value.tensor.tensor_content = "w", "Float32", np.float32([1, 2]).tobytes()
    value.tensor.dims.append(2)
    assert checkpoint.SerializeToString() == b'\n\x1a\n\x01w\x12\x15\x08\x02\x12\x07Float32\x1a\x08\x00\x00\x80?\x00\x00\x00@'
    read = ParallelStrategyMap.FromString(b"\x08\x02\x12\x11\n\x05block\x12\x08\x08\x01\x12\x04\x08\x04\x08\x01")
    item = read.parallel_strategy_item[0]
    assert (read.current_stage, item.node_name, item.parallel_strategys.stage) == (2, "block", 1)
    assert list(item.parallel_strategys.parallel_strategy[0].dim) == [4, 1]
    printed = Print()
    printed.value.add().desc = "here"
    assert Print.FromString(printed.SerializeToString()).value[0].desc == "here"


def test_analyse_wants_a_profile(tmp_path) -> None:
    with pytest.raises(ValueError, match="expected a folder with a profile"):
        analyse(str(tmp_path))
    with pytest.raises(TypeError, match=r"^analyse\(max_process_number='2'\): expected an int from 1 on\.$"):
        analyse(str(tmp_path), max_process_number="2")


def test_flops_collection_counts_a_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 64, 5))
    images, labels = Tensor(np.ones((2, 3, 8, 8), np.float32)), Tensor(np.zeros(2, np.int32))
    with pytest.raises(AttributeError, match="'SequentialCell' object has no attribute 'current_phase'"):
        net.current_phase  # noqa: B018
    net(images)
    assert flops_collection(net.current_phase) == (32768.0, 32768.0, 32768.0, 32768.0, False)      # MindSpore's numbers, here and below
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.SGD(net.trainable_params(), 0.1)).set_train()
    step(images, labels)
    assert flops_collection(step.current_phase) == (70656.0, 70656.0, 70656.0, 70656.0, False)
    with pytest.raises(RuntimeError, match=r"^flops_collection\('train'\): expected the current_phase of a Cell that ran as a graph\."):
        flops_collection()
