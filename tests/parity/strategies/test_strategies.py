"""Our table of split rules beside MindSpore's answers; `tools/record.py strategies` asked for them."""
from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
from mindspore.ops import auto_generate as G
from mindspore.ops import operations as P

from torchspore.distributed.shard import strategy_validation
from torchspore.distributed.shard.strategy_validation import TensorLayout
from torchspore.errors import NotOffered

RECORDS = Path(__file__).parent / "records"


DIFFERENT = {
    ("P.SparseSoftmaxCrossEntropyWithLogits()", "[[[1, 8], [1]]]"),      # MindSpore takes this cut of the classes and cuts nothing
    ("P.SparseSoftmaxCrossEntropyWithLogits()", "[[[2, 1], [2]]]"),      # MindSpore wants the batch cut by all devices
    ("P.SparseSoftmaxCrossEntropyWithLogits()", "[[[4, 1], [4]]]"),
}
"""Where the table differs on purpose; so it does for Layouts of CumSum, whose axis MindSpore lets be cut, with wrong sums."""


OURS = set("HSwish Digamma IsNan IsInf Dense Unstack Pad Flatten".split())
"""Primitives that have a rule here, while MindSpore looks at no strategy of theirs and cuts the batch, or nothing."""


def _looks_at_no_strategy(group: dict[str, Any]) -> bool:
    """Whether each strategy has the same answer."""
    return len({json.dumps(answer) for answer in group["answers"].values()}) == 1


def _groups() -> list[Any]:
    results = []
    for file in sorted(RECORDS.glob("*.json")):
        for number, group in enumerate(json.loads(file.read_text())):
            results.append(pytest.param(group, id=f"{file.stem}-{number}-{group['primitive']}"))
    return results


def described(group: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The primitive's name, and the arguments of its constructor and its call."""
    try:
        primitive = eval(group["primitive"], {"P": P, "G": G, "ms": ms})
    except NotOffered:
        return group["primitive"][2:].partition("(")[0], {}
    attributes = dict(primitive.attrs)
    called = list(getattr(type(primitive), "_called", ()))
    rest = called[len(group["inputs"]):] if called[:1] != ["tensors"] else called[1:]
    for name, constant in zip(rest, group["constants"]):
        result = eval(constant, {"ms": ms})
        attributes[name] = result.asnumpy().tolist() if isinstance(result, ms.Tensor) else result
    return primitive.name, {**attributes, **group["arguments"]}


def _strategy(strategy: Any) -> Any:
    if isinstance(strategy, dict):
        layout = ms.Layout(tuple(strategy["devices"]), tuple(strategy["names"]))
        return tuple(layout(*[tuple(cuts) if isinstance(cuts, list) else cuts for cuts in part]) for part in strategy["maps"])
    return tuple(map(tuple, strategy))


def device_parts(layout: TensorLayout) -> list[int]:
    """For each device which part of the Tensor it holds, numbered over all axes."""
    results = []
    for rank in range(prod(layout.device_matrix)):
        number = 0
        for part, cut in zip(layout.coordinates(rank), layout.cuts()):
            number = number * cut + part
        results.append(number)
    return results


def _is_same_layout(ours: TensorLayout, theirs: list[list[int]]) -> bool:
    """Whether every device holds the same; MindSpore's files write an axis that several names cut as several."""
    return device_parts(ours) == device_parts(TensorLayout(tuple(theirs[0]), tuple(theirs[1])))


@pytest.mark.parametrize("group", _groups())
def test_the_table_answers_as_mindspore_does(group: dict[str, Any]) -> None:
    name, attributes = described(group)
    shapes = [shape for shape, _ in group["inputs"]] + [eval(c, {"ms": ms}).shape for c in group["constants"] if c.startswith("ms.Tensor")]
    if _looks_at_no_strategy(group):
        assert not strategy_validation.has_rules(name) or name in OURS
        return
    wrong = []
    for strategy_text, answer in group["answers"].items():
        strategies_read = [_strategy(part) for part in json.loads(strategy_text)]
        if (group["primitive"], strategy_text) in DIFFERENT or (group["primitive"] == "P.CumSum()" and "maps" in strategy_text):
            continue
        try:
            result = strategy_validation.layouts_of(name, attributes, shapes, *strategies_read, devices=group["devices"])
        except ValueError as error:
            if answer is not None:
                wrong.append(f"{strategy_text}: taken by MindSpore: {answer}\n{error}")
            continue
        if answer is None:
            wrong.append(f"{strategy_text}: refused by MindSpore")
            continue
        for at, (ours, theirs) in enumerate(zip(result.inputs, answer.get("inputs", ()))):
            if theirs and not _is_same_layout(ours, theirs):
                wrong.append(f"{strategy_text}: input {at}: {ours}, MindSpore {theirs}")
        alike = [layout for layout in result.outputs if "output" in answer and len(layout.tensor_map) == len(answer["output"][1])]
        if alike and not _is_same_layout(alike[0], answer["output"]):
            wrong.append(f"{strategy_text}: output: {result.outputs[0]}, MindSpore {answer['output']}")
    assert not wrong, f"{len(wrong)} of {len(group['answers'])}:\n" + "\n".join(wrong[:12])
