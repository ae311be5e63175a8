"""`mindspore.parallel.strategy`: what real MindSpore 2.10 tells of the same network for eight devices."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.ops import operations as P
from mindspore.parallel import strategy

EIGHT = list(range(8))


class Net(nn.Cell):
    """Two products, cut by columns and by rows, and a frozen bias between them."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.v = (Parameter(Tensor(np.ones(s, np.float32)), name=n) for s, n in (((16, 32), "w"), ((32, 8), "v")))
        self.b = Parameter(Tensor(np.ones(32, np.float16)), name="b", requires_grad=False)
        self.first, self.second = P.MatMul().shard(((2, 1), (1, 4))), P.MatMul().shard(((2, 4), (4, 1)))
        self.add = P.Add().shard(((2, 4), (4,)))

    def construct(self, x: Any, y: Any) -> Any:
        return self.second(self.add(self.first(x, self.w), P.Cast()(self.b, ms.float32)), self.v) + y


@pytest.mark.parametrize(("shares", "expected"), [
    (False, {"w": (-1, 0), "v": (0, -1)}),
    (True, {"w": (1, 0), "v": ((0, 1), -1)}),
])
def test_layouts_are_those_of_mindspore(shares: bool, expected: dict[str, Any], graph_mode: None) -> None:
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", device_num=8, global_rank=3, dataset_strategy="full_batch", enable_parallel_optimizer=shares,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    net = Net()
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9)).set_train()
    strategy.enable_save_strategy_online()
    assert strategy.get_strategy_metadata(step) is None
    step.compile(Tensor(np.ones((8, 16), np.float32)), Tensor(np.ones((8, 8), np.float32)))
    result = strategy.get_strategy_metadata(net)
    assert result is not None and list(result) == EIGHT
    assert list(strategy.get_strategy_metadata(step, 5) or ()) == [5] and list(strategy.get_current_strategy_metadata(step) or ()) == [0]
    for of_rank in result.values():
        assert sorted(of_rank) == ["moments.v", "moments.w", "v", "w"]
        for name, (layout, dtype, shape) in of_rank.items():
            assert layout.to_dict() == {
                "device_matrix": (2, 4), "tensor_map": expected[name[-1]], "interleaved_parallel": False, "alias_name": ("a", "b"),
                "rank_list": EIGHT,
            }
            assert (dtype, shape) == ("float32", [16, 32] if name[-1] == "w" else [32, 8])
    with pytest.raises(KeyError, match=r"rank_id=9.*expected a rank from 0 to 7"):
        strategy.get_strategy_metadata(step, 9)
    strategy.clear_strategy_metadata()
    assert strategy.get_strategy_metadata(step) is None
