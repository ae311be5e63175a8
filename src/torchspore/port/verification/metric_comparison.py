"""The metrics of a script in torch beside the originals: results for the same batches of outputs and labels."""
from __future__ import annotations

import ast
from typing import Any

import numpy as np
import torch

from torchspore.mindspore.common.tensor import Tensor
from torchspore.port.analysis.definitions import File
from torchspore.port.analysis.source import Source
from torchspore.port.rules.rule import ANY, literal
from torchspore.port.verification.comparison import Verdict, _difference
from torchspore.port.verification.results import tensors_of_result


def compare_metrics(original: str, ported: str, names: list[str]) -> list[Verdict]:
    """Return the verdicts of the metrics of these names."""
    return [_compared(original, ported, name) for name in names]


def _compared(original: str, ported: str, name: str) -> Verdict:
    arguments = _arguments(original, name)
    if arguments is None:
        return Verdict(name, reason="the script does not show the arguments of the metric")
    reason = "the metric takes other values than outputs and labels"
    for outputs, labels in _batches():
        try:
            expected = _result(original, name, arguments, [(Tensor(outputs[i]), Tensor(labels[i])) for i in range(2)])
        except Exception as error:
            reason = f"the original ends with {type(error).__name__}: {error}".splitlines()[0]
            continue
        try:
            actual = _result(ported, name, arguments, [(torch.from_numpy(outputs[i]), torch.from_numpy(labels[i])) for i in range(2)])
        except Exception as error:
            return Verdict(name, reason=f"the port ends with {type(error).__name__}: {error}".splitlines()[0])
        if not expected or all(_is_empty(value) for value in expected):
            reason = "the metric's result is not a number"
            continue
        return Verdict(name, _difference(expected, actual), 0.0)
    return Verdict(name, reason=reason)


def _is_empty(value: torch.Tensor) -> bool:
    return value.numel() == 0 or bool(value.isnan().all())


def _batches() -> list[tuple[Any, Any]]:
    """Return two batches of outputs and labels in the forms that metrics take: classes, one-hot labels, values, pictures."""
    random = np.random.RandomState(0)
    scores = random.rand(2, 8, 5).astype(np.float32)
    scores /= scores.sum(2, keepdims=True)
    pictures = random.rand(2, 2, 3, 16, 16).astype(np.float32)
    masks = (random.rand(2, 2, 1, 8, 8) > 0.5).astype(np.float32)
    return [
        (scores, random.randint(0, 5, (2, 8)).astype(np.int32)), (scores, np.eye(5, dtype=np.float32)[random.randint(0, 5, (2, 8))]),
        (random.randn(2, 8).astype(np.float32), random.randn(2, 8).astype(np.float32)),
        (random.randn(2, 8, 1).astype(np.float32), random.randn(2, 8, 1).astype(np.float32)),
        (random.rand(2, 8).astype(np.float32), random.randint(0, 2, (2, 8)).astype(np.int32)),
        (pictures, random.rand(*pictures.shape).astype(np.float32)), (random.rand(*masks.shape).astype(np.float32), masks),
    ]


def _arguments(text: str, name: str) -> str | None:
    """Return the arguments of the script's first call of the class whose arguments are literals; None if there is none."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            words = [*node.args, *(keyword.value for keyword in node.keywords)]
            if all(literal(word) is not ANY for word in words):
                return ast.unparse(ast.Call(node.func, node.args, node.keywords)).removeprefix(name)
    return None


def _result(text: str, name: str, arguments: str, batches: list[tuple[Any, Any]]) -> list[torch.Tensor]:
    """Return the result of a metric after these batches."""
    file = File(Source(text))
    needed = file.closure([name])
    imports = [node for node in file.source.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    definitions = [node for node in file.source.tree.body if any(node in file.defining[each] for each in needed)]
    namespace: dict[str, Any] = {"__name__": "metric"}
    module = ast.Module([*dict.fromkeys([*imports, *definitions])], type_ignores=[])
    exec(compile(module, "<metric>", "exec", dont_inherit=True), namespace)
    metric = eval(f"{name}{arguments}", namespace)
    metric.clear()
    for outputs, labels in batches:
        metric.update(outputs, labels)
    result = metric.eval()
    return [value.double() for value in tensors_of_result(result)] if result is not None else []
