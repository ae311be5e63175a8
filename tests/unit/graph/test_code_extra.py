"""What `get_code_extra` says of graphs, and the decorator below `jit(capture_mode='bytecode')`."""
from __future__ import annotations

from mindspore import Tensor, jit, nn
from mindspore._c_expression import get_code_extra
from mindspore.common._pijit_context import PIJitCaptureContext


def test_graphs_are_counted() -> None:
    @jit(capture_mode="bytecode")
    def double(x: Tensor) -> Tensor:
        return x * 2

    assert get_code_extra(double.__wrapped__) is None and get_code_extra(len) is None
    for rows in (2, 2, 3):
        double(Tensor([1.0] * rows))
    result = get_code_extra(double.__wrapped__)
    assert result is not None and result["break_count_"] == 0 and result["compile_count_"] == 2 and result["stat"] == "GRAPH_CALLABLE"
    assert result["code"]["call_count_"] == 3 and result["code"]["phase_"]


def test_a_method_and_a_call_that_is_no_graph() -> None:
    class Net(nn.Cell):
        @jit
        def construct(self, x: Tensor) -> Tensor:
            return x + 1

    net = Net()
    net(Tensor([1.0]))
    result = get_code_extra(Net.construct.__wrapped__)
    assert result is not None and result["compile_count_"] == 1 and result["break_count_"] == 0

    @PIJitCaptureContext()
    def shown(x: Tensor) -> Tensor:
        y = x * 3
        print(float(y.asnumpy().sum()))
        return y + 1

    assert shown(Tensor([1.0])).asnumpy().tolist() == [4.0]
    result = get_code_extra(shown.__wrapped__)
    assert result is not None and result["break_count_"] > 0


def test_what_is_decorated() -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x + 1

    capture = PIJitCaptureContext(fullgraph=True)
    assert float(capture(Net())(Tensor(1.0))) == 2 and float(capture(Net)()(Tensor(1.0))) == 2 and capture(3) == 3
