"""Records the strategies that primitives of real MindSpore 2.10 accept, and the layouts of their inputs and outputs.

    tools/record.py strategies --python .oracle/bin/python --plugin shared/clients/parallel_oracle.py [NAME ...]

The plugin lets MindSpore compile for N devices without any. Each primitive of tests/parity/strategies/grid.py is compiled with each
strategy of its grid, in a net whose inputs are all Parameters: MindSpore's strategy file has the layouts of the inputs, its log that of the
output. Writes tests/parity/strategies/records/NAME.json; a refused strategy is recorded as null and its reason is printed; a group without
an accepted strategy is left out.
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
            answers = asked_apart(group, log)
            for strategy, answer in answers.items():
                if isinstance(answer, str):
                    print(group.primitive, group.inputs, strategy, answer, sep="\t", flush=True)
            if all(isinstance(answer, str) for answer in answers.values()):
                continue
            taken = {strategy: None if isinstance(answer, str) else answer for strategy, answer in answers.items()}
            groups.append({**group.facts(), "answers": taken})
        (folder / f"{name}.json").write_text(written(groups))
        taken = [answer for group in groups for answer in group["answers"].values()]
        print("#", name, len(taken), "strategies,", sum(isinstance(one, dict) for one in taken), "taken", flush=True)
    return 0


def written(groups: list[dict]) -> str:
    """JSON with a line for each answer."""
    parts = []
    for group in groups:
        head = json.dumps({key: value for key, value in group.items() if key != "answers"})[:-1]
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in group["answers"].items())
        parts.append(f'{head}, "answers": {{\n{lines}\n}}}}')
    return "[\n" + ",\n".join(parts) + "\n]\n"


def ask(group, strategy: list, log: Path) -> dict | str:
    """MindSpore's answer to one strategy: layouts, or the reason of a refusal."""
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

    made = [
        ms.Parameter(ms.Tensor(np.ones(shape, getattr(np, dtype))), name=f"input{place}")
        for place, (shape, dtype) in enumerate(group.inputs)
    ]
    cuts = [part and made_of(part) for part in strategy]
    try:
        primitive = eval(group.primitive, {"P": ops.operations, "ops": ops, "ms": ms, "G": ops.auto_generate})
        primitive.shard(*cuts)
        net = net_class(group, log.parent)(primitive, made)
        net.set_train()
        _cell_graph_executor.compile(net)
    except Exception as error:
        found = REASON.findall(log.read_text(errors="replace"))
        reasons = [one for one in found if "init failed" not in one and "Init failed" not in one and "failed." not in one]
        return re.sub(r"\s+", " ", (reasons or found or [f"{type(error).__name__}: {error}"])[0])[:200]
    return found_layouts(saved, log, len(group.inputs))


def asked_apart(group, log: Path) -> dict:
    """The answers of a process of its own: some strategies end MindSpore by a signal."""
    left, answers = list(map(json.dumps, group.strategies())), {}
    while left:
        end, start = os.pipe()
        child = os.fork()
        if child == 0:
            with open(start, "w") as pipe:
                for strategy in left:
                    pipe.write(json.dumps([strategy, ask(group, json.loads(strategy), log)]) + "\n")
                    pipe.flush()
            os._exit(0)
        os.close(start)
        with open(end) as pipe:
            answers.update(map(json.loads, pipe))
        ended = os.waitpid(child, 0)[1]
        left = [one for one in left if one not in answers]
        if left:
            answers[left.pop(0)] = f"ended by {ended}"
    return answers


SOURCE = """
import mindspore as ms

class Net(ms.nn.Cell):
    def __init__(self, primitive, made):
        super().__init__()
        self.primitive = primitive
        {held}

    def construct(self):
        return self.primitive({given}){after}
"""


@functools.cache
def module_of(source: str, folder: Path):
    """The module with this source: MindSpore's parser wants a file."""
    name = f"net{abs(hash(source))}"
    (folder / f"{name}.py").write_text(source)
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def net_class(group, folder: Path):
    """The Cell that calls the primitive of this group."""
    held = "\n        ".join(f"self.input{place} = made[{place}]" for place in range(len(group.inputs)))
    given = group.call or ", ".join([*(f"self.input{place}" for place in range(len(group.inputs))), *group.constants])
    return module_of(SOURCE.format(held=held, given=given, after=group.after), folder).Net


def made_of(part):
    """The strategy that JSON wrote: a tuple of tuples, or of Layouts."""
    from mindspore import Layout

    if isinstance(part, dict):
        layout = Layout(tuple(part["devices"]), tuple(part["names"]))
        return tuple(layout(*map(tuplified, one)) for one in part["maps"])
    return tuplified(part)


def tuplified(part):
    return tuple(map(tuplified, part)) if isinstance(part, list) else part


def found_layouts(saved: Path, log: Path, count: int) -> dict:
    """The layouts of one compile, device axes of size one left out."""
    answer = {}
    if saved.exists():
        items = json.loads(saved.read_text())["parallel_layout_item"]
        answer["inputs"] = [
            [items[f"input{place}"]["dev_matrix"], items[f"input{place}"]["tensor_map"]] if f"input{place}" in items else None
            for place in range(count)
        ]
    found = LAYOUTS.findall(log.read_text(errors="replace"))
    if found:
        devices, places = ([int(one) for one in part.split(",") if one.strip()] for part in found[0])
        answer["output"] = [devices, places]
    return answer
