"""Records the strategies that primitives of real MindSpore 2.10 accept, and the layouts of their inputs and outputs.

    tools/record.py strategies --python .oracle/bin/python --plugin shared/clients/parallel_oracle.py [NAME ...]

The plugin lets MindSpore compile for N devices without any. Each primitive of tests/parity/strategies/grid.py is compiled with each
strategy of its grid, in a net whose inputs are all Parameters: MindSpore's strategy file has the layouts of the inputs, its log that of the
output. Writes tests/parity/strategies/records/NAME.json; a refused strategy is recorded as null and its reason is printed; a group without
an accepted strategy is omitted.
"""
from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from parity.strategies.grid import GRID

from recorders import oracle

LAYOUTS = re.compile(r"dev matrix shape is \[([\d, -]*)\], the output tensor map is \[([\d, -]*)\]")
REASON = re.compile(r"^\[ERROR\] PARALLEL.*?\] \w+\] (.*)$", re.M)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--plugin", required=True, help="a Python file that lets MindSpore compile without devices")
    parser.add_argument("names", nargs="*", help="groups of tests/parity/strategies/grid.py; all by default")


def record_inside(arguments: argparse.Namespace) -> int:
    """Write the record of each group."""
    os.environ.update(GLOG_v="1", MS_SUBMODULE_LOG_v="{PARALLEL:1}")     # before MindSpore is imported
    log = Path(tempfile.mkdtemp()) / "log"
    os.dup2(os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND), 2)
    spec = importlib.util.spec_from_file_location("parallel_oracle", arguments.plugin)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    folder = oracle.ROOT / "tests" / "parity" / "strategies" / "records"
    folder.mkdir(exist_ok=True)
    for name in arguments.names or GRID:
        groups = []
        for group in GRID[name]:
            answers = ask_in_children(group, log)
            for strategy, answer in answers.items():
                if isinstance(answer, str):
                    print(group.primitive, group.inputs, strategy, answer, sep="\t", flush=True)
            if all(isinstance(answer, str) for answer in answers.values()):
                continue
            taken = {strategy: None if isinstance(answer, str) else answer for strategy, answer in answers.items()}
            groups.append({**group.facts(), "answers": taken})
        (folder / f"{name}.json").write_text(json_text(groups))
        taken = [answer for group in groups for answer in group["answers"].values()]
        print("#", name, len(taken), "strategies,", sum(isinstance(answer, dict) for answer in taken), "taken", flush=True)
    return 0


def json_text(groups: list[dict]) -> str:
    """Return the record as JSON with a line for each answer."""
    parts = []
    for group in groups:
        head = json.dumps({key: value for key, value in group.items() if key != "answers"})[:-1]
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in group["answers"].items())
        parts.append(f'{head}, "answers": {{\n{lines}\n}}}}')
    return "[\n" + ",\n".join(parts) + "\n]\n"


def ask(group, strategy: list, log: Path) -> dict | str:
    """Return MindSpore's answer to one strategy: the layouts, or the reason of the refusal."""
    import mindspore as ms
    import numpy as np
    from mindspore import context, ops
    from mindspore.common.api import _cell_graph_executor

    context.reset_auto_parallel_context()
    context.set_context(mode=0)
    saved = log.with_name("strategy.json")
    saved.unlink(missing_ok=True)
    context.set_auto_parallel_context(
        device_num=group.devices, global_rank=0, parallel_mode="semi_auto_parallel", full_batch=True, strategy_ckpt_save_file=str(saved),
    )
    with open(log, "r+") as file:
        file.truncate(0)

    parameters = [
        ms.Parameter(ms.Tensor(np.ones(shape, getattr(np, dtype))), name=f"input{index}")
        for index, (shape, dtype) in enumerate(group.inputs)
    ]
    cuts = [part and strategy_from_json(part) for part in strategy]
    try:
        primitive = eval(group.primitive, {"P": ops.operations, "ops": ops, "ms": ms, "G": ops.auto_generate})
        primitive.shard(*cuts)
        net = net_class(group, log.parent)(primitive, parameters)
        net.set_train()
        _cell_graph_executor.compile(net)
    except Exception as error:
        messages = REASON.findall(log.read_text(errors="replace"))
        reasons = [text for text in messages if "init failed" not in text and "Init failed" not in text and "failed." not in text]
        return re.sub(r"\s+", " ", (reasons or messages or [f"{type(error).__name__}: {error}"])[0])[:200]
    return read_layouts(saved, log, len(group.inputs))


def ask_in_children(group, log: Path) -> dict:
    """Return the answer to each strategy, computed in child processes: some strategies end MindSpore by a signal."""
    remaining, answers = list(map(json.dumps, group.strategies())), {}
    while remaining:
        end, start = os.pipe()
        child = os.fork()
        if child == 0:
            with open(start, "w") as pipe:
                for strategy in remaining:
                    pipe.write(json.dumps([strategy, ask(group, json.loads(strategy), log)]) + "\n")
                    pipe.flush()
            os._exit(0)
        os.close(start)
        with open(end) as pipe:
            answers.update(map(json.loads, pipe))
        status = os.waitpid(child, 0)[1]
        remaining = [strategy for strategy in remaining if strategy not in answers]
        if remaining:
            answers[remaining.pop(0)] = f"ended by {status}"
    return answers


SOURCE = """
import mindspore as ms

class Net(ms.nn.Cell):
    def __init__(self, primitive, parameters):
        super().__init__()
        self.primitive = primitive
        {assignments}

    def construct(self):
        return self.primitive({arguments}){after}
"""


@functools.cache
def import_source(source: str, folder: Path):
    """Import a module with this source from a file: MindSpore's parser reads the file."""
    name = f"net{abs(hash(source))}"
    (folder / f"{name}.py").write_text(source)
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def net_class(group, folder: Path):
    """Return the class of the Cell that calls the primitive of this group."""
    assignments = "\n        ".join(f"self.input{index} = parameters[{index}]" for index in range(len(group.inputs)))
    arguments = group.call or ", ".join([*(f"self.input{index}" for index in range(len(group.inputs))), *group.constants])
    return import_source(SOURCE.format(assignments=assignments, arguments=arguments, after=group.after), folder).Net


def strategy_from_json(part):
    """Return the strategy of an input that was stored as JSON: a tuple, or a tuple of Layouts."""
    from mindspore import Layout

    if isinstance(part, dict):
        layout = Layout(tuple(part["devices"]), tuple(part["names"]))
        return tuple(layout(*map(tuplified, names)) for names in part["maps"])
    return tuplified(part)


def tuplified(part):
    return tuple(map(tuplified, part)) if isinstance(part, list) else part


def read_layouts(saved: Path, log: Path, count: int) -> dict:
    """Return the layouts of the last compilation: the device matrix and tensor map of each input and of the output."""
    answer = {}
    if saved.exists():
        items = json.loads(saved.read_text())["parallel_layout_item"]
        answer["inputs"] = [
            [items[f"input{index}"]["dev_matrix"], items[f"input{index}"]["tensor_map"]] if f"input{index}" in items else None
            for index in range(count)
        ]
    matches = LAYOUTS.findall(log.read_text(errors="replace"))
    if matches:
        devices, tensor_map = ([int(number) for number in part.split(",") if number.strip()] for part in matches[0])
        answer["output"] = [devices, tensor_map]
    return answer
