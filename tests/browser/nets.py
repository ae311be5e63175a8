"""Made-up compilations of any size: blocks of a net with their gradients, before and after a step."""
from __future__ import annotations

from torchspore.graph.save_graphs.ir_types import Value
from torchspore.graph.save_graphs.recording import Compilation, Stage
from torchspore.graph.save_graphs.snapshot import Call, Input, Reference, Snapshot

KIND = Value("Float32", (32, 64), bytes=32 * 64 * 4)
WEIGHT = Value("Float32", (64, 64), bytes=64 * 64 * 4)
_OPERATORS = (("mm", "MatMul", "dense-Dense"), ("add", "Add", "dense-Dense"), ("relu", "ReLU", "act-ReLU"), ("mul", "Mul", ""))
LINE = f"{__file__}:12"


def call(name: str, operator: str, called: str, reads: tuple[str, ...], scope: str, is_backward: bool = False) -> Call:
    """One operator."""
    arguments = tuple(map(Reference, reads))
    return Call(name, f"aten.{operator}", called, arguments, {}, reads, KIND, scope, (LINE,), (0, 6), is_backward)


def net(count: int, changes: bool = False) -> Snapshot:
    """A graph of about `count` operators, a half of them the gradient; with `changes` a step has put some in and taken some out."""
    blocks = max(1, count // 8)
    inputs = [Input("x", "x", KIND), *[Input(f"w{b}", f"blocks.{b}.weight", WEIGHT, f"blocks.{b}.weight") for b in range(blocks)]]
    calls, last = [], "x"
    for block in range(blocks):
        for operator, called, cell in _OPERATORS:
            scope = f"Default/net-Net/blocks-SequentialCell/{block}-Block" + (f"/{cell}" if cell else "")
            if changes and operator == "mul" and block % 10 == 0:
                continue
            name = f"{operator}_{block}"
            calls.append(call(name, operator, called, (last, f"w{block}") if operator == "mm" else (last,), scope))
            last = name
        if changes and block % 10 == 5:
            calls.append(call(f"cast_{block}", "_to_copy", "", (last,), f"Default/net-Net/blocks-SequentialCell/{block}-Block"))
            calls[-1].made_by, last = "precision", calls[-1].name
    for block in reversed(range(blocks)):
        for operator, called, cell in reversed(_OPERATORS):
            scope = f"Default/net-Net/blocks-SequentialCell/{block}-Block" + (f"/{cell}" if cell else "")
            name = f"{operator}_back_{block}"
            input_name = f"{operator}_{block}" if not (changes and operator == "mul" and block % 10 == 0) else last
            calls.append(call(name, f"{operator}_backward", called, (last, input_name), scope, True))
            last = name
    return Snapshot("Net", inputs, calls, (Reference(last),))


def compilation(count: int) -> Compilation:
    """A compilation of three stages: the net, the same, and the net after a step."""
    before, after = net(count), net(count, True)
    return Compilation("Net", LINE, {"jit_level": "O0"}, [
        Stage("00_bootstrap", "the trace", "00_bootstrap_0000.ir", before),
        Stage("01_type_inference", "with types", "01_type_inference_0001.ir", before, 0),
        Stage("04_optimize", "after the passes", "04_optimize_0002.ir", after),
    ], 0.5)
