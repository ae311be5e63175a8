"""`--dump_as_text`: graph_kernel_dump/graph_kernel_cluster_<pid>.txt, which lists the operators of each kernel.

The format is that of MindSpore 2.10: a line `Source nodes of <name> = <node>`, one line ` <name> = <node>` for each operator, and a closing
line of `=`. A node is `@kernel_graph<number>:<name>{[0]: <operator>, [1]: <argument>, ..}`.
"""
from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.context import effects
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.backend.kernel_operators import is_work
from torchspore.graph.graph_kernels.kernel_build import Kernels, node_name
from torchspore.graph.report import outcomes
from torchspore.graph.settings import Flags

CLOSING = "=" * 23
_numbers = itertools.count()
_begun: set[Path] = set()
_failed: set[Path] = set()


def folder() -> Path:
    """Return the folder of the file."""
    return Path("graph_kernel_dump").absolute()


def write(kernels: Kernels, flags: Flags) -> None:
    """Append the kernels of a graph; the first write of this process replaces an older file with its number."""
    if not flags.dump:
        return
    path = folder() / f"graph_kernel_cluster_{os.getpid()}.txt"
    text = "".join(_describe(kernels, next(_numbers)))
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("a" if path in _begun else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        if path not in _failed:
            _failed.add(path)
            outcomes.warn(f"--dump_as_text: {path} can't be written ({error.strerror}); the program continues without it.")
        return
    _begun.add(path)
    effects.note("graph kernels", f"what became which kernel is written in {path}")


def _describe(kernels: Kernels, number: int) -> list[str]:
    names = _names(kernels)
    lines = []
    counts: dict[str, int] = {}
    for kernel, nodes in kernels.kernels:
        index = counts[kernel] = counts.get(kernel, -1) + 1
        read = dict.fromkeys(item for node in nodes for item in node.all_input_nodes if item not in nodes)
        inputs_text = ", ".join(f"[{at}]: {item.name}" for at, item in enumerate(read, 1))
        lines.append(f"Source nodes of Default/{kernel}-op{index} = @kernel_graph{number}:{kernel}_{index}"
                     f"{{[0]: ValueNode<FuncGraph> {kernel}{', ' if inputs_text else ''}{inputs_text}}}\n")
        lines += [f"  {names[node]} = @kernel_graph{number}:{node.name}{_shown(node)}\n" for node in nodes if is_work(node)]
        lines.append(CLOSING + "\n")
    return lines


def _names(kernels: Kernels) -> dict[Node, str]:
    """The full names: scope, operator, and how many of that name came before."""
    names: dict[Node, str] = {}
    counts: dict[str, int] = {}
    for _, nodes in kernels.kernels:
        for node in filter(is_work, nodes):
            scope = "Gradients/" * bool(node.meta.get(node_metadata.GRADIENT)) + str(node.meta.get(node_metadata.SCOPE) or "Default")
            name = f"{scope}/{node_name(node)}"
            index = counts[name] = counts.get(name, -1) + 1
            names[node] = f"{name}-op{index}"
    return names


def _shown(node: Node) -> str:
    arguments = [f"[{index}]: {_argument(value)}" for index, value in enumerate((*node.args, *node.kwargs.values()), 1)]
    return "{" + ", ".join([f"[0]: ValueNode<Primitive> PrimFunc_{node_name(node)}", *arguments]) + "}"


def _argument(value: Any) -> str:
    if isinstance(value, Node):
        return value.name
    if isinstance(value, bool):
        return f"ValueNode<BoolImm> {str(value).lower()}"
    if isinstance(value, int):
        return f"ValueNode<Int64Imm> {value}"
    if isinstance(value, float):
        return f"ValueNode<FP32Imm> {value:g}"
    if isinstance(value, (list, tuple)):
        return f"ValueNode<ValueTuple> ({', '.join(item.name if isinstance(item, Node) else str(item) for item in value)})"
    if value is None:
        return "ValueNode<None> None"
    return f"ValueNode<{'Number' if isinstance(value, torch.dtype) else 'StringImm'}> {str(value).removeprefix('torch.')}"
