"""`nn.GraphCell`: a graph that `load` has read, as a Cell."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell


class GraphCell(Cell):
    """Runs a loaded graph; its parameters are the Cell's, by the names that they had when they were written.

    `params_init` gives Parameters or Tensors of its own to some of them, of the same shape and dtype. A graph takes as many inputs as it
    was exported with, of these shapes and dtypes. Raises TypeError and ValueError for what does not fit.
    """

    def __init__(self, graph: Any, params_init: dict[str, Any] | None = None, obf_random_seed: int | None = None) -> None:
        super().__init__(auto_prefix=False)
        from torchspore.export import execution
        from torchspore.mindspore.train.export import LoadedGraph

        if not isinstance(graph, LoadedGraph):
            hint = "graph = ms.load('net.mindir')"
            raise TypeError(message(f"GraphCell({short(graph)})", f"what load gives, got {type(graph).__name__}", hint=hint))
        if obf_random_seed is not None:
            raise ValueError(message(f"GraphCell(obf_random_seed={short(obf_random_seed)})", "None: obfuscated files can't be read"))
        own = self._given_(params_init, graph.model)
        for name, t in graph.model.parameters.items():
            value = own[name] if name in own else Parameter(execution.tensor(t), name=name)
            self.insert_param_to_cell(name, value, check_name_contain_dot=False)
        self.graph = execution.Runner(graph.model)
        self._order = tuple(graph.model.parameters)

    @staticmethod
    def _given_(params_init: Any, model: Any) -> dict[str, Parameter]:
        if params_init is None:
            return {}
        if not isinstance(params_init, dict):
            raise TypeError(message(f"GraphCell(params_init={short(params_init)})", f"a dict, got {type(params_init).__name__}"))
        found = {}
        for name, value in params_init.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise TypeError(message(f"GraphCell(params_init={{{short(name)}: {short(value)}}})", "names with Parameters or Tensors"))
            if name not in model.parameters:
                continue
            there = model.parameters[name]
            if tuple(value.shape) != tuple(there.shape):
                wrote = f"GraphCell(params_init={{{name!r}: ...}}) of shape {value.shape}"
                raise ValueError(message(wrote, f"the shape {tuple(there.shape)}"))
            found[name] = value if isinstance(value, Parameter) else Parameter(value, name=name)
        return found

    def construct(self, *inputs: Any) -> Any:
        """What the graph gives."""
        return self.graph(inputs, [self._params[name] for name in self._order])


class GraphKernel(Cell):
    """A Cell whose operators MindSpore 1.x compiled into one kernel with `enable_graph_kernel`; graphs join them wherever they stand."""
