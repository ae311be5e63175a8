"""The torch form of each name of MindSpore."""
from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import torch
from torch.nn import functional

from torchspore.port.rules import checks, functions, layers, methods, primitives, probability, training
from torchspore.port.rules.rule import Rule, table
from torchspore.port.rules.special import SPECIAL, of_one_tensor

_DTYPES = {
    **{name: name for name in "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 complex64 complex128 bool".split()},
    "bool_": "bool", "int_": "int64", "float_": "float32", "uint": "int64", "half": "float16", "double": "float64",
}
NAMES = {
    **{name: f"torch.{dtype}" for name, dtype in _DTYPES.items()},
    "Tensor": "torch.Tensor", "Parameter": "nn.Parameter", "nn.Cell": "nn.Module", "Cell": "nn.Module", "nn.SequentialCell": "nn.Sequential",
    "nn.CellList": "nn.ModuleList", "nn.LossBase": "@LossBase", "nn.CellDict": "nn.ModuleDict", "nn.LSTM": "@LSTM", "nn.GRU": "@GRU",
    "nn.RNN": "@RNN", "ops.relu": "torch.relu", "mint.nn.Linear": "nn.Linear", "ParameterTuple": "nn.ParameterList",
    "mnp.pi": "torch.pi", "nn.loss.LossBase": "@LossBase", "nn.LearningRateSchedule": "nn.Module",
    "GRAPH_MODE": "0", "PYNATIVE_MODE": "1", "context.GRAPH_MODE": "0", "context.PYNATIVE_MODE": "1",
    "nn.TrainOneStepCell": "@TrainOneStepCell", "init.Initializer": "@Initializer", "number": "torch.dtype", "nn.cell": "nn.Module",
    "ops.clip_by_value": "@clip_by_value", "ops.interpolate": "F.interpolate", "ops.split": "@split",
}
NAMES.update(checks.RELATIONS)
NAMES.update({f"{start}Callback": "object" for start in ("", "train.", "train.callback.", "train.callback._callback.")})
NAMES.update({f"{start}RunContext": "@RunContext" for start in ("", "train.", "train.callback.", "train.callback._callback.")})
METRIC = ("nn.Metric", "Metric", "train.Metric", "train.metrics.Metric", "train.metrics.metric.Metric")
NAMES.update(dict.fromkeys(METRIC, "@Metric"))
OPTIMIZER = ("nn.Optimizer", "Optimizer", "nn.optim.Optimizer", "nn.optim.optimizer.Optimizer")
NAMES.update(dict.fromkeys(OPTIMIZER, "@OptimizerBase"))
"""Names that are not called: dtypes, bases, classes that are handed on."""
WITH_SAME_ARGUMENTS = {
    "nn.BatchNorm1d": "BatchNorm1d", "nn.BatchNorm2d": "BatchNorm2d", "nn.SyncBatchNorm": "BatchNorm2d", "nn.LayerNorm": "LayerNorm",
    "nn.GroupNorm": "GroupNorm", "nn.Dropout": "Dropout", "nn.Conv2d": "Conv2d", "nn.Conv1d": "Conv1d", "nn.Conv3d": "Conv3d",
    "nn.Conv2dTranspose": "Conv2dTranspose", "nn.Conv3dTranspose": "Conv3dTranspose", "nn.BatchNorm3d": "BatchNorm3d",
    "nn.Dense": "Dense", "nn.GELU": "GELU",
}
"""Layers that the program hands on, derives from, or creates with `**arguments`: helpers that take MindSpore's arguments."""
NAMES.update({name: f"@{helper}" for name, helper in WITH_SAME_ARGUMENTS.items()})
CLASSES = {
    **{f"nn.{name}": f"nn.{name}" for name in (
        "Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm Embedding Dropout ReLU GELU Sigmoid Tanh LSTM GRU".split())},
    "nn.Dense": "nn.Linear", "nn.Conv2dTranspose": "nn.ConvTranspose2d", "nn.Conv1dTranspose": "nn.ConvTranspose1d",
    "nn.SequentialCell": "nn.Sequential", "nn.CellList": "nn.ModuleList", "nn.Cell": "nn.Module", "Parameter": "nn.Parameter",
}
"""Classes as `isinstance` asks for them."""
PARAMETER_NAMES = {
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var", "embedding_table": "weight",
}
PRIMITIVE_LAYERS = {
    "ops.ReLU": "nn.ReLU()", "ops.Sigmoid": "nn.Sigmoid()", "ops.Tanh": "nn.Tanh()", "ops.ReLU6": "nn.ReLU6()", "ops.Flatten": "nn.Flatten()",
    "ops.GeLU": "nn.GELU(approximate='tanh')", "ops.Softmax": "nn.Softmax(dim=-1)", "ops.Mish": "nn.Mish()",
}
"""Primitives that are handed on, and the layers that do the same."""
ATTRIBUTES = methods.ATTRIBUTES


def _with_code(rule: Rule) -> Rule:
    template = rule.template
    if isinstance(template, str) and template.startswith("@@"):
        return replace(rule, template=SPECIAL[template[2:]])
    if rule.name.startswith("mnp.") and template in functions.OF_ONE_TENSOR:
        return replace(rule, template=partial(of_one_tensor, template))
    return rule


@cache
def _all() -> dict[str, list[Rule]]:
    by_name: dict[str, list[Rule]] = {}
    for text in (checks.lines(), functions.lines(), _GATHER, primitives.TABLE, layers.lines(), methods.TABLE, training.TABLE, probability.TABLE):
        for rule in table(text):
            by_name.setdefault(rule.name, []).append(_with_code(rule))
    for rule in table("\n".join(f".{name}(*rest) = {{self.}}.{name}({{*rest}})" for name in methods.SAME.split())):
        by_name.setdefault(rule.name, []).append(rule)
    return by_name


_GATHER = """
ops.gather(x, index, axis, batch_dims=0) = @@take
"""


def find(name: str) -> list[Rule]:
    """Return the rules of a canonical name, in the order in which they are tried."""
    rules = _all().get(name, [])
    if not rules and name.startswith("mnp."):
        rules = _all().get("ops." + name.removeprefix("mnp."), [])
    if not rules and "." not in name:
        rules = _all().get("nn." + name, []) if name[:1].isupper() else _all().get("ops." + name, [])
    return rules


def name_in_torch(name: str) -> str | None:
    """Return what a name that is not called is in torch; `mint` has torch's names and arguments."""
    if name in NAMES:
        return NAMES[name]
    if name.endswith(".__init__"):
        home = name_in_torch(name.removesuffix(".__init__"))
        return home and f"{home}.__init__"
    if name.startswith("mnp.") and name.removeprefix("mnp.") in _DTYPES:
        return f"torch.{_DTYPES[name.removeprefix('mnp.')]}"
    if name.startswith("mint.nn.functional."):
        last = name.removeprefix("mint.nn.functional.")
        return f"F.{last}" if hasattr(functional, last) else None
    if name.startswith("mint.nn."):
        last = name.removeprefix("mint.nn.")
        return f"nn.{last}" if hasattr(torch.nn, last) else None
    if name.startswith("mint."):
        last = name.removeprefix("mint.")
        return f"torch.{last}" if hasattr(torch, last) else None
    return None


METHODS: dict[str, list[Rule]] = {name[1:]: rules for name, rules in _all().items() if name.startswith(".")}


def _cell_methods() -> dict[str, list[Rule]]:
    return {rule.name[1:]: [_with_code(rule)] for rule in table(methods.CELL_TABLE)}


CELL_METHODS = _cell_methods()
