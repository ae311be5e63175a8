"""The state_dict of a Cell's Module in torch's names and shapes, in the same memory."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.mindspore.train import torch_layers


def use_torch_names(module: Any, cell: Any) -> None:
    """Make state_dict and load_state_dict of a Cell's Module use torch's names. Raises ValueError for layers that torch does not have."""
    plan = torch_layers.plan(cell)
    renamed, omitted = {}, set()
    for path, parameter in cell.parameters_and_names():
        converted = plan.parameters.get(parameter.name)
        if converted is None:
            omitted.add(path)
        else:
            renamed[path] = converted

    def to_torch(_: Any, state: dict[str, Any], prefix: str, __: Any) -> None:
        values = [(key, state.pop(key)) for key in list(state) if key.startswith(prefix)]
        for key, value in values:
            path = key.removeprefix(prefix)
            if path in renamed:
                state[prefix + renamed[path].name] = value.reshape(renamed[path].shape)
            elif path not in omitted:
                state[key] = value

    def to_mindspore(_: Any, state: dict[str, Any], prefix: str, *__: Any) -> None:
        for key in [key for key in state if key.startswith(prefix) and key.endswith("num_batches_tracked")]:
            del state[key]
        shapes = {path: parameter.shape for path, parameter in cell.parameters_and_names()}
        values = {path: state.pop(prefix + converted.name) for path, converted in renamed.items() if prefix + converted.name in state}
        for path, value in values.items():
            is_same = isinstance(value, torch.Tensor) and tuple(value.shape) == renamed[path].shape
            state[prefix + path] = value.reshape(shapes[path]) if is_same else value
        present = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        for path in omitted:
            state[prefix + path] = present[path].detach()

    module.register_state_dict_post_hook(to_torch)
    module.register_load_state_dict_pre_hook(to_mindspore)
