"""Rewriting networks: what records of 2.10 do not hold."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.rewrite import Node, NodeType, ScopedValue, SymbolTree, ValueType
from mindspore.rewrite.common import namespace
from mindspore.rewrite.parsers import AssignParser, ClassDefParser
from mindspore.rewrite.symbol_tree.symbol_tree_builder import SymbolTreeBuilder

FACTOR = 3.0
X = Tensor(np.arange(6).reshape(2, 3).astype(np.float32))


class Inner(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x + 1


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.relu, self.inner, self.weight = nn.ReLU(), Inner(), ms.Parameter(Tensor(2.0), name="weight")

    def construct(self, x: Any, *others: Any, scale: float = 1.0) -> Any:
        """Says nothing."""
        total = x
        for other in others:
            total += ops.abs(other) * FACTOR
        while scale > 10:
            scale = scale - 1
        if total.shape[0] > 5 and scale:
            return total
        picked = [total, *others][0]
        first, second = picked, self.inner(picked)
        assert first is not None
        return self.relu(first * self.weight), second.reshape((-1,)).sum()


def test_a_tree_without_changes_computes_the_same(mode: int) -> None:
    net = Net()
    tree = SymbolTree.create(net)
    network = tree.get_network()
    assert isinstance(network, Net) and type(network).__name__ == "NetOpt" and tree.get_origin_network() is net
    for arguments in ((X,), (X, X - 2)):
        for result, expected in zip(network(*arguments), net(*arguments)):
            np.testing.assert_array_equal(result.asnumpy(), expected.asnumpy())
    assert network.weight is net.weight and [p.name for p in network.trainable_params()] == ["weight"]


def test_a_changed_network_trains(mode: int) -> None:
    tree = SymbolTree.create(Net())
    tree.replace(tree.get_node("relu"), [Node.create_call_cell(nn.Tanh(), ["relu_out"], tree.get_node("relu").get_args(), name="tanh")])
    list(tree.nodes())[-1].get_inputs()[0].set_arg(0, "relu_out")
    network = tree.get_network()
    np.testing.assert_allclose(network(X)[0].asnumpy(), np.tanh(2 * X.asnumpy()), rtol=1e-5)
    gradient = ms.grad(lambda x: network(x)[0].sum(), None, network.trainable_params())(X)
    np.testing.assert_allclose(gradient[0].asnumpy(), (X.asnumpy() / np.cosh(2 * X.asnumpy()) ** 2).sum(), rtol=1e-4)


def test_source_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    tree = SymbolTree.create(Net())
    tree.get_node("inner").get_sub_tree()
    assert tree.get_code().startswith("class InnerOpt(Inner):\n\n    def construct(self, x: Any) -> Any:\n        add_var = x + 1\n")
    assert "\n\n\nclass NetOpt(Net):" in tree.get_code() and "for other in others:" in tree.get_code()
    tree.print_node_tabulate(True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "node type" and any("inner_var = self.inner(picked)" in line for line in lines)
    assert len(list(tree.nodes())) < len(list(tree.all_nodes(False))) < len(list(tree.all_nodes()))
    assert [node.get_name() for node in tree.get_inputs()] == ["input_x", "input_others", "input_scale"]


def test_where_values_go() -> None:
    tree = SymbolTree.create(Net())
    inner = tree.get_node("inner")
    assert inner.get_handler() is inner and inner.get_instance_type() is Inner and isinstance(inner.get_instance(), Inner)
    assert inner.get_node_type() is NodeType.Tree and tree.get_handler() is tree
    assert [name.get_name() for name in inner.get_users()] == ["tuple"]
    assert [node.get_name() for node, _ in inner.get_target_users(0)] == ["tuple"] and list(inner.get_arg_providers()) == [0]
    inner.set_attribute("kept", 3)
    assert inner.get_attribute("kept") == 3 and inner.get_attributes() == {"kept": 3} and inner.get_attribute("other") is None
    graph_node = Node.create_input("y", ScopedValue.create_variable_value((1, 2)))
    assert graph_node.get_node_type() is NodeType.Input and str(graph_node.get_args()[0]) == "(1, 2)"
    assert ScopedValue.create_variable_value(nn.ReLU()).type is ValueType.CustomObjValue


def test_another_output() -> None:
    tree = SymbolTree.create(Net())
    tree.set_output(1, "total")
    np.testing.assert_array_equal(tree.get_network()(X)[1].asnumpy(), X.asnumpy())


def test_what_does_not_fit() -> None:
    tree, other = SymbolTree.create(Net()), SymbolTree.create(Net())
    node = Node.create_call_cell(nn.ReLU(), ["x"], ["x"])
    with pytest.raises(ValueError, match="before or after of this one"):
        tree.insert(other.after("inner"), node)
    with pytest.raises(RuntimeError, match="a node of this tree"):
        tree.erase(node)
    with pytest.raises(TypeError, match="a list of Nodes"):
        tree.replace(tree.get_node("inner"), [])
    with pytest.raises(ValueError, match="one of the 1 values"):
        tree.get_node("relu").set_arg_by_node(0, "inner", 1)
    bare = Node.create_call_function(len, ["n"], [ScopedValue.create_variable_value(nn.ReLU())])
    tree.insert(tree.after("inner"), bare)
    with pytest.raises(ValueError, match="a name, a number, a text"):
        tree.get_network()
    cell = type("Made", (nn.Cell,), {"construct": eval("lambda self, x: x")})()
    with pytest.raises(ValueError, match=r"written with def|in a file"):
        SymbolTree.create(cell)


class Base(nn.Cell):
    """A package's class of Cells, whose subclasses define `forward`."""

    def construct(self, *inputs: Any) -> Any:
        return self.forward(*inputs)

    def forward(self, *inputs: Any) -> Any:
        raise NotImplementedError


class Forward(Base):
    def __init__(self) -> None:
        super().__init__()
        self.chain, self.inner = Chain(nn.ReLU()), Inner()

    def forward(self, x: Any) -> Any:
        return self.inner(self.chain(x))


class Chain(nn.Cell):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def construct(self, x: Any) -> Any:
        return self.layer(x)


def test_the_settings_of_packages(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Forward()
    assert [node.get_name() for node in SymbolTree.create(net).nodes()][1] == "forward"
    monkeypatch.setattr(ClassDefParser, "entry_functions", ["construct", "forward"])
    monkeypatch.setattr(ClassDefParser, "final_networks", [nn.Cell, Base])
    monkeypatch.setattr(AssignParser, "types_for_cell_container", [nn.SequentialCell, Chain])
    tree = SymbolTreeBuilder(net).build()
    types = {node.get_name(): node.get_node_type() for node in tree.nodes()}
    assert types["chain"] is NodeType.CellContainer and types["inner"] is NodeType.Tree
    np.testing.assert_array_equal(tree.get_network()(X - 2).asnumpy(), net(X - 2).asnumpy())
    monkeypatch.setattr(namespace, "_subtree_black_list", [*namespace._subtree_black_list, Inner])
    assert SymbolTree.create(net).get_node("inner").get_node_type() is NodeType.CallCell
    assert not namespace.is_subtree(nn.ReLU()) and namespace.is_subtree(net)
    monkeypatch.setattr(namespace, "_ms_cells_to_subtree", True)
    assert namespace.is_subtree(nn.ReLU())
