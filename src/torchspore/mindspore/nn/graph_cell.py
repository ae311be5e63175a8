"""`nn.GraphCell`: a graph from `load`, as a Cell."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell


class GraphCell(Cell):
    """Runs a loaded graph; its parameters are the Cell's, by their names in the file.

    `params_init` replaces some of them by Parameters or Tensors of the same shape and dtype. A graph takes as many inputs as it
    was exported with, of these shapes and dtypes. Raises TypeError and ValueError for arguments that do not fit.
    """

    def __init__(self, graph: Any, params_init: dict[str, Any] | None = None, obf_random_seed: int | None = None) -> None:
        super().__init__(auto_prefix=False)
        from torchspore.export import execution
        from torchspore.export.loaded_graph import LoadedGraph

        if not isinstance(graph, LoadedGraph):
            hint = "graph = ms.load('net.mindir')"
            raise TypeError(message(f"GraphCell({short(graph)})", f"the result of load, got {type(graph).__name__}", hint=hint))
        if obf_random_seed is not None:
            raise ValueError(message(f"GraphCell(obf_random_seed={short(obf_random_seed)})", "None: obfuscated files cannot be read"))
        custom_parameters = self._custom_parameters_(params_init, graph.model)
        for name, t in graph.model.parameters.items():
            value = custom_parameters[name] if name in custom_parameters else Parameter(execution.tensor(t), name=name)
            self.insert_param_to_cell(name, value, check_name_contain_dot=False)
        self.graph = execution.Runner(graph.model)
        self._order = tuple(graph.model.parameters)

    @staticmethod
    def _custom_parameters_(params_init: Any, model: Any) -> dict[str, Parameter]:
        if params_init is None:
            return {}
        if not isinstance(params_init, dict):
            raise TypeError(message(f"GraphCell(params_init={short(params_init)})", f"a dict, got {type(params_init).__name__}"))
        parameters = {}
        for name, value in params_init.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise TypeError(message(f"GraphCell(params_init={{{short(name)}: {short(value)}}})", "names with Parameters or Tensors"))
            if name not in model.parameters:
                continue
            model_parameter = model.parameters[name]
            if tuple(value.shape) != tuple(model_parameter.shape):
                wrote = f"GraphCell(params_init={{{name!r}: ...}}) of shape {value.shape}"
                raise ValueError(message(wrote, f"the shape {tuple(model_parameter.shape)}"))
            parameters[name] = value if isinstance(value, Parameter) else Parameter(value, name=name)
        return parameters

    def construct(self, *inputs: Any) -> Any:
        """Return the results of the graph."""
        return self.graph(inputs, [self._params[name] for name in self._order])


class GraphKernel(Cell):
    """A Cell whose operators MindSpore 1.x compiled into one kernel with `enable_graph_kernel`; graphs here fuse operators anywhere."""
