"""Level O0: the captured graph as straight-line calls of ATen's kernels, in one Python function.

Where torch has a Python function for an ATen operator, that is called: the same kernel, 0.3 us faster than through the operator object."""
from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import current_operator, determinism
from torchspore.engine.formulas import recurrent
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals import node_metadata, torch_private
from torchspore.engine.torch_internals.no_grad import NoGrad
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.backend import programs
from torchspore.graph.fx import exchanges
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.passes import with_fewest_calls
from torchspore.graph.report import peak_memory, stages

_aten = torch.ops.aten

DIRECT: dict[Any, Callable[..., Any]] = {
    _aten.mm.default: torch.mm, _aten.bmm.default: torch.bmm, _aten.addmm.default: torch.addmm, _aten.relu.default: torch.relu,
    _aten.relu_.default: torch.relu_, _aten.t.default: torch.t, _aten.view.default: torch.Tensor.view,
    _aten._unsafe_view.default: torch.Tensor.view,
    _aten.permute.default: torch.permute, _aten.transpose.int: torch.transpose, _aten.unsqueeze.default: torch.unsqueeze,
    _aten.expand.default: torch.Tensor.expand, _aten.sum.dim_IntList: torch.sum, _aten.add.Tensor: torch.add,
    _aten.add_.Tensor: torch.Tensor.add_,
    _aten.sub.Tensor: torch.sub, _aten.mul.Tensor: torch.mul, _aten.div.Tensor: torch.div, _aten.convolution.default: torch.convolution,
    _aten._softmax.default: torch_private.softmax, _aten._log_softmax.default: torch_private.log_softmax, _aten.tanh.default: torch.tanh,
    _aten.sigmoid.default: torch.sigmoid, _aten.copy_.default: torch.Tensor.copy_, _aten.clone.default: torch.clone,
    _aten.native_layer_norm.default: torch.native_layer_norm, _aten.gelu.default: torch_private.gelu, _aten.rsqrt.default: torch.rsqrt,
    _aten.exp.default: torch.exp, _aten.log.default: torch.log, _aten.sqrt.default: torch.sqrt, _aten.neg.default: torch.neg,
    _aten.linear.default: torch.nn.functional.linear, _aten.matmul.default: torch.matmul, _aten.layer_norm.default: torch.layer_norm,
    _aten.sym_size.int: torch.Tensor.size, _aten.cat.default: torch.cat, **recurrent.KEEPING,
}
"""Operators whose Python function takes the same arguments in the same order."""


def function(target: Any) -> Callable[..., Any]:
    """Return the function to call for a node's target."""
    direct = DIRECT.get(target)
    if direct is not None:
        return direct
    if is_operator(target) and target.namespace == "_c10d_functional":
        return exchanges.tracked_collectives.get(target._opname) or torch_private.kernel_of(target)
    return torch_private.kernel_of(target)


Code = Callable[..., list[Any]]


def compile(module: torch.fx.GraphModule, inner: bool = False) -> Code:
    """Return a function (inputs) -> outputs that runs the nodes in order and frees each value after its last use.

    With `inner` it is called by the code of an enclosing graph, in which no gradients are recorded.
    """
    text, bound = source(module, inner)
    exec(builtins.compile(text, current_operator.GRAPH, "exec"), bound)
    run = peak_memory.in_phases(bound["run"]) if "phase" in bound else bound["run"]
    return run if inner else stages.shown(run, module)


def source(module: torch.fx.GraphModule, inner: bool = False) -> tuple[str, dict[str, Any]]:
    """The Python text of the function, and the operators and constants that it names."""
    nodes = list(module.graph.nodes)
    names = {node: f"v{i}" for i, node in enumerate(nodes)}
    bound: dict[str, Any] = {"__name__": __name__, "no_grad": NoGrad}
    last = _last_uses(nodes)
    lines: list[str] = []
    of_lines: list[Node | None] = [None, None, None]         # counted from 1, after two lines of the head
    phase = None
    for part in programs.split(nodes, _is_replaced):
        node = part.nodes[0] if isinstance(part, programs.Program) else part
        if isinstance(part, programs.Program):
            node_lines = _program_lines(module, part, names, bound, last)
        else:
            node_lines = lines_of(module, part, names, bound, last.get(part, []))
        if peak_memory.RECORDING.is_on and node.op == "call_function" and (now := peak_memory.phase_of(node.meta)) != phase:
            phase = now
            bound["phase"] = allocator.phase
            node_lines.insert(0, f"phase({phase})")
        lines += node_lines
        of_lines += [node] * len(node_lines)
    if current_operator.followers or any(node.meta.get(node_metadata.LINE) for node in nodes):
        bound["places"] = current_operator.positions_of(of_lines)
    arguments = [names[node] for node in nodes if node.op == "placeholder"]
    head = f"def run({', '.join(arguments)}):\n    {'if True' if inner else 'with no_grad()'}:\n        "
    return head + "\n        ".join(lines) + "\n", bound


def lines_of(module: torch.fx.GraphModule, node: Node, names: dict[Node, str], bound: dict[str, Any], gone: list[Node]) -> list[str]:
    """Return the lines of one node: its computation, and the values that are freed after it."""
    if node.op == "placeholder":
        return []
    if node.op == "output":
        return [f"return {_text(node.args[0], names, bound)}"]
    if node.op == "get_attr":
        bound[names[node] + "_"] = _attribute(module, str(node.target))
        line = f"{names[node]} = {names[node]}_"
    elif node.op == "call_function":
        line = f"{names[node]} = {_call(node, names, bound)}"
    else:
        raise NotImplementedError(f"node {node.op} in a captured graph")
    lines = [line]
    uncounted = [names[item] for item in writes(node)] if _is_uncounted(node) else []
    if uncounted:
        bound["written"] = torch_private.increment
        lines.append(f"written([{', '.join(uncounted)}])")
    return [*lines, f"{' = '.join(names[other] for other in gone)} = None"] if gone else lines


def _is_replaced(target: Any) -> bool:
    """Return whether a graph calls another function than the kernel of an operator."""
    return target in recurrent.KEEPING or determinism.in_graph(target, function) is not function


def _program_lines(
    module: torch.fx.GraphModule, part: programs.Program, names: dict[Node, str], bound: dict[str, Any], last: dict[Node, list[Node]],
) -> list[str]:
    """Return the line that runs a program, and the line that frees values which nothing needs after it."""
    code: Code | None = None

    def in_python(*inputs: torch.Tensor) -> Any:
        nonlocal code
        if code is None:
            code = _in_python(module, part, names, bound)
        return code(*inputs)

    program, fallback, name = f"program_{len(bound)}", f"in_python_{len(bound)}", "run_program"
    bound[program], bound[fallback], bound[name] = part.compiled, in_python, programs.run_program
    outputs, inputs = (", ".join(names[node] for node in some) for some in (part.outputs, part.inputs))
    lines = [f"{outputs} = {name}({program}, {fallback}, {inputs})"]
    inside = set(part.nodes)
    gone = [names[other] for node in part.nodes for other in last.get(node, []) if other not in inside]
    return [*lines, f"{' = '.join(gone)} = None"] if gone else lines


def _in_python(module: torch.fx.GraphModule, part: programs.Program, names: dict[Node, str], bound: dict[str, Any]) -> Code:
    """Return a function of Python that computes what a program computes."""
    names_here, lines = dict(bound), list[str]()
    of_lines: list[Node | None] = [None, None, None]
    for node in part.nodes:
        lines += lines_of(module, node, names, names_here, [])
        of_lines.append(node)
    names_here["places"] = current_operator.positions_of(of_lines)
    lines.append("return " + ", ".join(names[node] for node in part.outputs))
    head = f"def run({', '.join(names[node] for node in part.inputs)}):\n    if True:\n        "
    exec(builtins.compile(head + "\n        ".join(lines) + "\n", current_operator.GRAPH, "exec"), names_here)
    run: Code = names_here["run"]
    return run


def _is_uncounted(node: Node) -> bool:
    """Return whether the operator writes and torch does not count it in the tensors' `_version`, which packed weights go by."""
    name = getattr(node.target, "_opname", "")
    return name.startswith("_fused_") or name == "native_batch_norm"


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Return for each node the values that no later node needs; inputs belong to the caller."""
    seen: set[Node] = set()
    last_uses: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        node_lines = [] if node.users or node.op != "call_function" else [node]
        for other in node.all_input_nodes:
            if other not in seen:
                seen.add(other)
                if other.op != "placeholder":
                    node_lines.append(other)
        if node_lines:
            last_uses[node] = node_lines
    return last_uses


def _call(node: Node, names: dict[Node, str], bound: dict[str, Any]) -> str:
    target = node.target
    if getattr(target, "__name__", "") == "getitem" and not is_operator(target):
        return f"{names[node.args[0]]}[{node.args[1]}]"  # type: ignore[index]
    shown = target.name() if is_operator(target) else f"{getattr(target, '__name__', 'call')}_{id(target)}"
    name = "f_" + "".join(c if c.isalnum() else "_" for c in shown)
    bound[name] = determinism.in_graph(target, function(target))
    arguments = [_text(a, names, bound) for a in node.args] + [f"{k}={_text(v, names, bound)}" for k, v in node.kwargs.items()]
    return f"{name}({', '.join(arguments)})"


def _text(value: Any, names: dict[Node, str], bound: dict[str, Any]) -> str:
    """Python's text for an argument; objects without one are bound to a name."""
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        items = ", ".join(_text(item, names, bound) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items},)" if value else "()"
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and value == value and abs(value) != float("inf")):
        return repr(value)
    name = f"c{len(bound)}"
    bound[name] = compile(with_fewest_calls(value), True) if isinstance(value, torch.fx.GraphModule) else value
    return name


def _attribute(module: torch.nn.Module, target: str) -> Any:
    value: Any = module
    for part in target.split("."):
        value = getattr(value, part)
    return value
