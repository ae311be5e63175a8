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

from torchspore.distributed.shard import strategies
from torchspore.distributed.shard.strategies import TensorLayout
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
    found = []
    for file in sorted(RECORDS.glob("*.json")):
        for number, group in enumerate(json.loads(file.read_text())):
            found.append(pytest.param(group, id=f"{file.stem}-{number}-{group['primitive']}"))
    return found


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
        found = eval(constant, {"ms": ms})
        attributes[name] = found.asnumpy().tolist() if isinstance(found, ms.Tensor) else found
    return primitive.name, {**attributes, **group["arguments"]}


def _strategy(written: Any) -> Any:
    if isinstance(written, dict):
        layout = ms.Layout(tuple(written["devices"]), tuple(written["names"]))
        return tuple(layout(*[tuple(one) if isinstance(one, list) else one for one in part]) for part in written["maps"])
    return tuple(map(tuple, written))


def held(layout: TensorLayout) -> list[int]:
    """For each device which part of the Tensor it holds, numbered over all axes."""
    found = []
    for rank in range(prod(layout.device_matrix)):
        number = 0
        for part, cut in zip(layout.coordinates(rank), layout.cuts()):
            number = number * cut + part
        found.append(number)
    return found


def _same(ours: TensorLayout, theirs: list[list[int]]) -> bool:
    """Whether every device holds the same; MindSpore's files write an axis that several names cut as several."""
    return held(ours) == held(TensorLayout(tuple(theirs[0]), tuple(theirs[1])))


@pytest.mark.parametrize("group", _groups())
def test_the_table_answers_as_mindspore_does(group: dict[str, Any]) -> None:
    name, attributes = described(group)
    shapes = [shape for shape, _ in group["inputs"]] + [eval(c, {"ms": ms}).shape for c in group["constants"] if c.startswith("ms.Tensor")]
    if _looks_at_no_strategy(group):
        assert not strategies.has_rules(name) or name in OURS
        return
    wrong = []
    for written, answer in group["answers"].items():
        given = [_strategy(part) for part in json.loads(written)]
        if (group["primitive"], written) in DIFFERENT or (group["primitive"] == "P.CumSum()" and "maps" in written):
            continue
        try:
            found = strategies.layouts_of(name, attributes, shapes, *given, devices=group["devices"])
        except ValueError as error:
            if answer is not None:
                wrong.append(f"{written}: taken by MindSpore: {answer}\n{error}")
            continue
        if answer is None:
            wrong.append(f"{written}: refused by MindSpore")
            continue
        for at, (ours, theirs) in enumerate(zip(found.inputs, answer.get("inputs", ()))):
            if theirs and not _same(ours, theirs):
                wrong.append(f"{written}: input {at}: {ours}, MindSpore {theirs}")
        alike = [one for one in found.outputs if "output" in answer and len(one.tensor_map) == len(answer["output"][1])]
        if alike and not _same(alike[0], answer["output"]):
            wrong.append(f"{written}: output: {found.outputs[0]}, MindSpore {answer['output']}")
    assert not wrong, f"{len(wrong)} of {len(group['answers'])}:\n" + "\n".join(wrong[:12])
