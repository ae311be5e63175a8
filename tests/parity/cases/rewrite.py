"""Statements of a network: what is found in them, and what a changed network gives."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.rewrite import Node, NodeType, ScopedValue, SymbolTree
from parity.case import case, raised


class Sub(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.dense = nn.Dense(4, 4, weight_init="ones", bias_init="zeros")

    def construct(self, x):
        x = self.relu(x)
        return self.dense(x)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, weight_init="ones")
        self.relu, self.pool, self.flat = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc = nn.Dense(8, 4, weight_init="ones", bias_init="zeros")
        self.sub = Sub()
        self.seq = nn.SequentialCell(nn.ReLU(), nn.Dense(4, 4, weight_init="ones", bias_init="zeros"))
        self.add, self.scale = ops.Add(), 2.0

    def construct(self, x, y=None):
        x = self.pool(self.relu(self.conv(x)))
        x = self.flat(x)
        x = self.fc(x)
        z = x * 2 + 1
        z = self.add(z, x)
        z = self.sub(z)
        z = self.seq(z)
        if self.scale > 1:
            z = z * self.scale
        w = -(z - x) / 100
        return z, w


X = Tensor(np.arange(16).reshape(1, 1, 4, 4).astype(np.float32))


def listed(tree):
    return [[
        node.get_name(), str(node.get_node_type()), [str(t) for t in node.get_targets()], [str(a) for a in node.get_args()],
        {k: str(v) for k, v in node.get_kwargs().items()}, node.get_instance_type().__name__,
        [source.get_name() for source in node.get_inputs()],
        [user.get_name() for user in node.get_users()],
    ] for node in tree.nodes() if node.get_node_type() != NodeType.Output]


def result(tree):
    return {str(i): t.asnumpy() for i, t in enumerate(tree.get_network()(X))}


@case()
def what_is_found():
    tree = SymbolTree.create(Net())
    return {"nodes": listed(tree), "sub": listed(tree.get_node("sub").get_sub_tree()), "there": tree.get_node("nope") is None,
            "tree": tree.get_node("conv").get_symbol_tree() is not None, "name": [tree.unique_name("x"), tree.unique_name("new")]}


def nothing(tree):
    return None


def erase(tree):
    tree.erase("seq")


def insert(tree):
    node = Node.create_call_cell(nn.Sigmoid(), targets=["x"], args=[ScopedValue.create_naming_value("x")], name="sigmoid")
    tree.insert(tree.after("fc"), node)


def insert_function(tree):
    node = Node.create_call_function(ops.abs, targets=["z"], args=[ScopedValue.create_naming_value("z")])
    tree.insert(tree.before("add"), node)


def replace(tree):
    old = tree.get_node("fc")
    cell = nn.Dense(8, 4, weight_init="zeros", bias_init="ones")
    tree.replace(old, [Node.create_call_cell(cell, old.get_targets(), old.get_args(), old.get_kwargs(), "other")])


def replace_by_two(tree):
    old = tree.get_node("relu")
    name = tree.unique_name("between")
    first = Node.create_call_cell(nn.Tanh(), [name], old.get_args(), name="first")
    second = Node.create_call_cell(nn.ReLU(), old.get_targets(), [ScopedValue.create_naming_value(name)], name="second")
    tree.replace(old, [first, second])


def other_argument(tree):
    tree.get_node("add").set_arg(0, "x")
    tree.get_node("seq").set_arg_by_node(0, tree.get_node("add"))


def in_a_cell(tree):
    sub = tree.get_node("sub").get_sub_tree()
    sub.insert(sub.after("relu"), Node.create_call_cell(nn.Sigmoid(), ["x"], [ScopedValue.create_naming_value("x")], name="sigmoid"))


CHANGES = (nothing, erase, insert, insert_function, replace, replace_by_two, other_argument, in_a_cell)


@case(over={change.__name__: change for change in CHANGES}, graph=True, rtol=1e-5)
def changed(change):
    tree = SymbolTree.create(Net())
    change(tree)
    return result(tree)



@case(over={
    "create": lambda tree: SymbolTree.create(3), "name": lambda tree: ScopedValue.create_naming_value(3),
    "names": lambda tree: ScopedValue.create_name_values("ab"), "lengths": lambda tree: ScopedValue.create_name_values(["a"], ["a", "b"]),
    "after": lambda tree: tree.after(3), "insert": lambda tree: tree.insert(3, tree.get_node("fc")),
    "nodes": lambda tree: list(tree.nodes("x")), "cell": lambda tree: Node.create_call_cell(3, ["x"]),
    "targets": lambda tree: Node.create_call_cell(nn.ReLU(), 3), "index": lambda tree: tree.get_node("add").set_arg("a", "b"),
    "far": lambda tree: tree.get_node("add").set_arg(9, "b"), "sub": lambda tree: tree.get_node("add").get_sub_tree(),
    "unique": lambda tree: tree.unique_name(3), "replace": lambda tree: tree.replace("relu", []), "node": lambda tree: tree.get_node(3),
    "erase": lambda tree: tree.erase(3), "gone": lambda tree: tree.erase("nope"),
    "function": lambda tree: Node.create_call_function(3, ["x"]),
    "none": lambda tree: ms.rewrite.Node.create_call_cell(nn.ReLU(), ["x"]).get_sub_tree(),
})
def refused(call):
    return {"raised": raised(lambda: call(SymbolTree.create(Net())))}


@case(over={"int": 1, "float": 1.5, "text": "a", "none": None, "bool": True})
def values(value):
    scoped_value = ScopedValue.create_variable_value(value)
    return {"text": str(scoped_value), "type": str(scoped_value.type), "value": scoped_value.value, "scope": scoped_value.scope,
            "names": [str(entry) for entry in ScopedValue.create_name_values(["a", "b"], ["self", ""])],
            "equal": ScopedValue.create_naming_value("a", "self") == ScopedValue.create_naming_value("a", "self")}
