"""The user's callbacks, schedules and metrics: which of them a script can have in torch."""
from __future__ import annotations

import ast

from torchspore.port.analysis.definitions import File
from torchspore.port.analysis.source import Problem
from torchspore.port.analysis.spans import is_self_attribute

CALLBACK = frozenset(("Callback",))
OPTIMIZER = frozenset("Optimizer nn.Optimizer".split())
METRIC = frozenset("Metric nn.Metric".split())
SCHEDULE = frozenset("LearningRateSchedule nn.LearningRateSchedule".split())
HOOKS = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
"""The methods of callbacks; `on_train_...` calls the method without this prefix, unless it is overridden."""
_STATE = frozenset(
    "network train_network optimizer loss_fn train_dataset epoch_num batch_num cur_epoch_num cur_step_num net_outputs mode".split()
)
_OF_NETWORK = frozenset("set_train trainable_params get_parameters parameters_and_names".split())


def is_callback(file: File, node: ast.ClassDef) -> bool:
    """Return whether a class derives from MindSpore's Callback."""
    return file.is_kind(node, CALLBACK)


def is_schedule(file: File, node: ast.ClassDef) -> bool:
    """Return whether a class derives from MindSpore's LearningRateSchedule."""
    return file.is_kind(node, SCHEDULE)


def is_optimizer(file: File, node: ast.ClassDef) -> bool:
    """Return whether a class derives from MindSpore's Optimizer."""
    return file.is_kind(node, OPTIMIZER)


def decays(file: File, node: ast.ClassDef) -> bool:
    """Return whether an optimizer of the program passes a weight decay to its base."""
    calls = [part for ancestor in file.ancestors(node) for part in ast.walk(ancestor)
             if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "__init__"]
    return any(len(call.args) > 2 or any(keyword.arg == "weight_decay" for keyword in call.keywords) for call in calls)


_OF_TORCH_OPTIMIZERS = frozenset(
    "step zero_grad state defaults param_groups add_param_group state_dict load_state_dict register_step_post_hook".split())
_OF_MINDSPORE_OPTIMIZERS = frozenset(
    "parameters _parameters learning_rate global_step global_step_increase_tensor assignadd get_lr decay_weight scale_grad weight_decay "
    "get_weight_decay decay_flags optim_filter hyper_map map_ flatten_gradients gradients_centralization loss_scale need_scale "
    "reciprocal_scale dynamic_lr dynamic_weight_decay exec_weight_decay is_group is_group_lr use_parallel broadcast_params cls_name "
    "_is_dynamic_lr_or_weight_decay param_length construct".split())
"""The attributes of MindSpore's Optimizer that the port's base has."""


def _obstacle_of_optimizer(file: File, node: ast.ClassDef) -> Problem | None:
    """Return why an optimizer can't be ported: it uses a name of torch's optimizers, or more of its base than the port has."""
    family = file.ancestors(node)
    names = {item.name for ancestor in family for item in ancestor.body if isinstance(item, ast.FunctionDef)}
    parts = [part for ancestor in family for part in ast.walk(ancestor) if is_self_attribute(part)]
    names |= {part.attr for part in parts if isinstance(part.ctx, ast.Store)}  # type: ignore[attr-defined]
    if hidden := sorted(names & _OF_TORCH_OPTIMIZERS):
        return Problem(node.lineno, f"{node.name} defines {hidden[0]}, which torch's optimizers use: rename it")
    known = names | _OF_MINDSPORE_OPTIMIZERS | {"__class__", "__dict__"}
    for part in parts:
        if part.attr not in known:  # type: ignore[attr-defined]
            return Problem(part.lineno, f"the optimizer {node.name} uses {part.attr} of its base")  # type: ignore[attr-defined]
    return None


def is_metric(file: File, node: ast.ClassDef) -> bool:
    """Return whether a class derives from MindSpore's Metric."""
    return file.is_kind(node, METRIC)


def takes_arrays(file: File) -> bool:
    """Return whether a script updates metrics by arrays."""
    calls = [part for part in file.source.nodes if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    inside = {id(part) for node in file.classes.values() for part in ast.walk(node)}
    updates = [call for call in calls if call.func.attr == "update" and id(call) not in inside]  # type: ignore[attr-defined]
    return any(isinstance(part, ast.Attribute) and part.attr == "asnumpy" for call in updates for part in ast.walk(call))


def _obstacle_of_metric(file: File, node: ast.ClassDef) -> Problem | None:
    """Return why a metric can't be ported: it uses more of its base than the port has."""
    family = file.ancestors(node)
    parts = [part for ancestor in family for part in ast.walk(ancestor)]
    names = {item.name for ancestor in family for item in ancestor.body if isinstance(item, ast.FunctionDef)}
    names |= {part.attr for part in parts if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)}
    names |= {target.id for part in parts if isinstance(part, ast.Assign) for target in part.targets if isinstance(target, ast.Name)}
    for part in ast.walk(node):
        if is_self_attribute(part) and part.attr not in (*names, "_convert_data", "__class__", "__dict__"):  # type: ignore[attr-defined]
            return Problem(part.lineno, f"the metric {node.name} uses {part.attr} of its base")  # type: ignore[attr-defined]
        if (file.source.mindspore_name(part) or "").endswith("rearrange_inputs"):
            return Problem(node.lineno, f"the metric {node.name} uses rearrange_inputs: the port passes outputs and labels")
    return None


def obstacle(file: File, node: ast.ClassDef) -> Problem | None:
    """Return why a callback, a schedule, a metric or an optimizer can't be ported; None if it can."""
    if is_metric(file, node):
        return _obstacle_of_metric(file, node)
    if is_optimizer(file, node):
        return _obstacle_of_optimizer(file, node)
    if not is_callback(file, node):
        return None
    for part in ast.walk(node):
        text = _missing(part, _names_of_state(node))
        if text:
            return Problem(part.lineno, f"the callback {node.name} uses {text}")  # type: ignore[attr-defined]
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and (item.name.startswith("on_eval_") or item.name in ("__enter__", "__exit__")):
            return Problem(item.lineno, f"the callback {node.name} defines {item.name}, which the loop does not call")
    return None


def _names_of_state(node: ast.ClassDef) -> set[str]:
    """Return the names that are assigned `run_context.original_args()`."""
    return {
        target.id for part in ast.walk(node) if isinstance(part, ast.Assign) and _is_state(part.value, set())
        for target in part.targets if isinstance(target, ast.Name)
    }


def _is_state(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression is the state of the training."""
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "original_args"


def _missing(node: ast.AST, names: set[str]) -> str:
    """Return what a node reads that the port's state of the training does not have; "" if nothing."""
    if isinstance(node, ast.Subscript) and _is_state(node.value, names):
        return f"{ast.unparse(node)}: write it as an attribute"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        if isinstance(node.func.value.func, ast.Name) and node.func.value.func.id == "super" and node.func.attr != "__init__":
            return f"{ast.unparse(node.func)}: the port has no base class"
    if not isinstance(node, ast.Attribute):
        return ""
    if _is_state(node.value, names) and node.attr not in _STATE:
        return f"{node.attr} of the training"
    inner = node.value
    if isinstance(inner, ast.Attribute) and _is_state(inner.value, names):
        allowed = _OF_NETWORK if inner.attr in ("network", "train_network") else ()
        if inner.attr in ("network", "train_network", "optimizer", "loss_fn", "train_dataset") and node.attr not in allowed:
            return f"{inner.attr}.{node.attr}"
    return ""


def hooks(file: File, node: ast.ClassDef) -> dict[str, str]:
    """Return the methods that the loop calls, by the place in the loop."""
    defined = {
        item.name for ancestor in file.ancestors(node) for item in ancestor.body if isinstance(item, ast.FunctionDef)
    }
    result = {}
    for place in HOOKS:
        names = [name for name in (f"on_train_{place}", place) if name in defined]
        if names:
            result[place] = names[0]
    return result


def can_stop(file: File, node: ast.ClassDef) -> bool:
    """Return whether a callback may end the training."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "request_stop" for ancestor in file.ancestors(node) for part in ast.walk(ancestor)
    )
