"""`torchspore plan`: show how a program would be split over N devices, operator by operator, without any of them."""
from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from torchspore.base.text import with_hint
from torchspore.cli import plan_alternatives, plan_changes, program
from torchspore.cli.grammar import USAGE_ERROR, Parser, number, output_file, positive, returns_exit_code, split_program, type_error
from torchspore.context import machines, plan_request
from torchspore.context.plan_request import Machine, Request
from torchspore.translations import translate

_SPEEDS = {
    "bandwidth": ("bandwidth", 1e9, "GB/s", "the bandwidth between devices"),
    "latency": ("latency", 1e-6, "US", "the latency of an exchange, in microseconds"),
    "tflops": ("operations", 1e12, "N", "the TFLOP/s of a device"),
    "memory": ("memory", 1e9, "GB/s", "the bandwidth of a device's memory"),
    "capacity": ("capacity", 1e9, "GB", "the size of a device's memory"),
}
"""For each option of a speed: the field of the machine, its unit, the metavar and the help text."""


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore plan", runs_program=True, usage="torchspore plan [options] script.py [arguments …]",
        description="Runs the program up to the first call that is split over N devices (semi_auto_parallel or auto_parallel), compiles "
                    "it for them and prints, instead of running it: for each operator how its result is sharded, what is sent, how many "
                    "bytes and how long that takes at these speeds, and the memory of one device. If the program only compiles "
                    "(`net.compile`), the last compiled graph is shown. For auto_parallel it also compares the plans of the search, and "
                    "if none fits into the memory of a device (--capacity) it looks for the number of devices that suffices. No device "
                    "is needed.",
        examples=["torchspore plan train.py", "torchspore plan --devices 64 --machine h100 --html plan.html train.py"],
        hints={"--devices": "write --devices 8", "--micro-batches": "write --micro-batches 4",
               "--stages": "write --stages 2", "--html": "write --html plan.html", "--strategies": "write --strategies plan.json",
               "--machine": "write --machine h100", **{f"--{name}": f"write --{name} 50" for name in _SPEEDS}},
    )
    command.add_argument("--devices", type=number(1, 4096), metavar="N", help="the number of devices")
    command.add_argument("--html", type=output_file, metavar="FILE", help="a page: the graph with its splits in colour")
    command.add_argument("--strategies", type=output_file, metavar="FILE.json",
                         help="writes the strategies to a file that semi_auto_parallel and MindSpore read")
    command.add_argument("--json", action="store_true", help="prints the predicted step as one JSON object in the last line")
    command.add_argument(plan_alternatives.RECOMPUTE, action="store_true",
                         help="plans as if the program called recompute() on the items of each SequentialCell or CellList with several "
                              "items of one class")
    command.add_argument(plan_alternatives.MICRO_BATCHES, type=number(1, 4096), metavar="N",
                         help="plans as if the batch were split into N micro batches: by the nn.PipelineCell, nn.GradAccumulationCell or "
                              "nn.MicroBatchInterleaved of the program, else in each nn.TrainOneStepCell")
    command.add_argument(plan_alternatives.STAGES, type=number(1, 4096), metavar="N",
                         help="plans with N pipeline stages, which divide the program's pipeline_stages; each stage runs the Cells of "
                              "several stages of the program")
    command.add_argument("--alternatives", action="store_true",
                         help="also plans with recomputed blocks, split optimizers (ZeRO), fewer pipeline stages and other numbers of "
                              "micro batches, each in a separate process, and compares step times and memory")
    command.add_argument("--machine", type=_machine, metavar="NAME",
                         help="the assumed speeds: h100, a100, ascend910, measured (by torchspore calibrate), or a JSON file")
    for name, (_, _, metavar, description) in _SPEEDS.items():
        command.add_argument(f"--{name}", type=positive, metavar=metavar, help=f"{description}; overrides that of --machine")
    return command


def _machine(text: str) -> Machine:
    """Convert the name of a machine, or the path of a JSON file."""
    try:
        return machines.machine_of(text)
    except ValueError:
        known = ", ".join((*machines.NAMED, machines.MEASURED))
        expected = translate("{names} (after torchspore calibrate), or a JSON file").format(names=known)
        raise type_error(f"{text:.200}", expected) from None


def _request(options: Namespace) -> Request:
    """Return the request that the options describe."""
    machine = options.machine or Machine()
    for name, (field, unit, _, _) in _SPEEDS.items():
        value = getattr(options, name)
        if value is not None:
            machine = replace(machine, **{field: value * unit})
    request = Request(machine)
    if options.devices is not None:
        request.devices = options.devices
    request.page, request.strategies = options.html or request.page, options.strategies or request.strategies
    request.is_json = options.json
    request.stages = options.stages or 0
    if options.recompute_blocks:
        request.before_capture.append(plan_changes.mark_repeated_blocks)
    if options.micro_batches is not None:
        request.before_capture.append(
            lambda: setattr(request, "expects_parts", plan_changes.set_micro_batches(options.micro_batches)))
    request.before_capture.append(lambda: setattr(request, "micro_batches", plan_changes.count_micro_batches()))
    return request


_OUTPUT_FLAGS = ("--alternatives", "--json", "--", plan_alternatives.RECOMPUTE)
_OUTPUT_FILES = ("--html", "--strategies")


def _words_of_alternatives(words: Sequence[str], program_words: Sequence[str]) -> list[str]:
    """Return the options of the command that change a plan: all but those of its output."""
    words_of_plan: list[str] = []
    words_before_program = iter(words[:len(words) - len(program_words)])
    for word in words_before_program:
        if word in _OUTPUT_FILES:
            next(words_before_program, None)
        elif word not in _OUTPUT_FLAGS and word.partition("=")[0] not in _OUTPUT_FILES:
            words_of_plan.append(word)
    return words_of_plan


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the program ended without a split call."""
    options, remaining = split_program(parser(), words)
    request = _request(options)
    if not remaining or not os.path.exists(remaining[0]):
        subject = " ".join(("torchspore plan", *remaining))
        text = translate("{command}: expected a program.").format(command=subject)
        print(with_hint(text, translate("write `{command}`").format(command="torchspore plan train.py")), file=sys.stderr)
        return USAGE_ERROR
    os.environ["TORCHSPORE_PLAN"] = str(request.devices)
    plan_request.pending = request
    try:
        code = program.execute(remaining[0], remaining[1:])
        if not code and not request.is_answered and request.compiled is not None:
            from torchspore.distributed.shard import plan_text

            plan_text.answer(request.compiled, request)
    finally:
        plan_request.pending = None
    if request.is_answered and not code and options.alternatives:
        sys.stdout.flush()
        return plan_alternatives.compare(_words_of_alternatives(words, remaining), remaining)
    if request.is_answered or code:
        return code
    print(with_hint(
        translate("The program ended, and no call of it was split."),
        translate("set_auto_parallel_context(parallel_mode='semi_auto_parallel') splits calls of Cells"),
    ), file=sys.stderr)
    return 1
