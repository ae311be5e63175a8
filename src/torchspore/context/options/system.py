"""Options of the device, its memory, and the threads of the host."""

from __future__ import annotations

from torchspore.base import cores
from torchspore.context.kinds import UINT32, Choice, Int, Size
from torchspore.context.option import On, Option, When
from torchspore.errors import LateDeviceChange, OptionValueError

device_target = Option(
    kind=Choice("CPU", "GPU", "Ascend", also={"Davinci": "Ascend"}), default="CPU", effect="engine.execution.device_selection:select",
    runs_again=False, when=When.BEFORE_DEVICE_USE, in_graph_key=True, example="set_context(device_target='CPU')",
    since="0.1",
    doc="The device that stores Tensors and runs operators. It is applied before every other option of the same call. The default is the "
        "available accelerator, or the CPU if there is none. `TORCHSPORE_DEVICE` sets the device of a program and overrides this option.",
)
device_id = Option(
    kind=Int(0, 4095), default=0, effect="engine.execution.device_selection:select_index", when=When.BEFORE_DEVICE_USE,
    late_error=LateDeviceChange, runs_again=False, in_graph_key=True, environment=("DEVICE_ID",), example="set_context(device_id=0)",
    since="0.1",
    doc="The index of the accelerator that this process uses. On the CPU the value is stored and has no effect. The device is checked when "
        "it is first used; reading the option does not fix its value.",
)
max_device_memory = Option(
    kind=Size(), default=1024.0, when=When.BEFORE_OPERATORS, effect="engine.memory.limit:set_device_limit", process_wide=True,
    example="set_context(max_device_memory='3.5GB')",
    since="0.5",
    doc="The maximum memory for Tensors on the device, in GB of 2**30 bytes. If a program exceeds it, an error names the largest values. "
        "The free memory of the device is a second limit. On the CPU memory is counted only after the option is set.",
)
variable_memory_max_size = Option(
    kind=Size(high=31, is_integral=True, give=lambda size: f"{int(size)} * 1024 * 1024 * 1024", gives="str"), default="0",
    when=When.BEFORE_OPERATORS, instead="max_device_memory", example="set_context(variable_memory_max_size='6GB')",
    effect="engine.memory.limit:set_variable_limit", process_wide=True,
    since="0.1",
    doc="An older form of `max_device_memory`, in an integral number of GB. It is used if `max_device_memory` is not set. The getter "
        "returns a product as text, such as '6 * 1024 * 1024 * 1024'.",
)
mempool_block_size = Option(
    kind=Size(low=1), default=1.0, on=On.GPU | On.ASCEND, when=When.BEFORE_OPERATORS, effect="engine.memory.limit:grow_by",
    process_wide=True, example="set_context(mempool_block_size='1GB')",
    since="1.6",
    doc="The step size by which the pool of device memory grows, in PyNative mode and at the jit levels O0 and O1. The pool never exceeds "
        "`max_device_memory`. The CPU has no pool: the C library allocates memory for each value.",
)
op_timeout = Option(
    kind=Int(0, UINT32, unit="of seconds"), default=900, process_wide=True, effect="observe.debug.recorder:limit",
    example="set_context(op_timeout=900)", since="1.9",
    doc="The maximum time that one operator, or one step of a data pipeline, may run. After this time torchspore prints the operator and "
        "the stacks of all threads, ends the child processes, and exits with code 124. The limit applies only if the program sets it. With "
        "0 the device decides.",
)
runtime_num_threads = Option(
    kind=Int(0), default=lambda device: min(30, cores.usable()), effect="engine.devices.threads:set_limit", process_wide=True,
    in_graph_key=True, example="set_context(runtime_num_threads=4)",
    since="1.7",
    doc="The number of threads that CPU kernels may use, at most one per core. With 0 torch decides.",
)
inter_op_parallel_num = Option(
    kind=Int(0), default=0, example="set_context(inter_op_parallel_num=4)", read_by="graph.settings", graph_only=True,
    fixed_outcomes={
        0: "operators of a graph run one after the other; jit_level O2 also tries lanes",
        1: "operators of a graph run one after the other",
    },
    since="2.0",
    doc="The number of operators of a graph that may run at the same time on CPU threads, where this is faster. 0 means 1; at jit_level O2 "
        "it means the number of threads.",
)
memory_optimize_level = Option(
    kind=Choice("O0", "O1", reads={"O0": 0, "O1": 1}, no_str=OptionValueError),
    default=lambda device: 1 if device == "Ascend" else 0,
    in_graph_key=True, read_by="graph.settings", graph_only=True,
    fixed_outcomes={0: "values of a graph are freed after their last use"},
    example="set_context(memory_optimize_level='O1')",
    since="2.0",
    doc="Optimizes graphs for speed (O0) or memory (O1). With O1, an optimizer's steps run as soon as their gradients are ready, and the "
        "backward pass recomputes forward values that are cheap for their size. The numbers stay the same. The getter returns 0 or 1.",
)
memory_offload = Option(
    kind=Choice("ON", "OFF", reads={"ON": True, "OFF": False}, no_str=OptionValueError), default=False,
    effect="engine.memory.offload:set_memory_offload", in_graph_key=True, example="set_context(memory_offload='ON')",
    since="2.0", until="2.6",
    doc="Moves idle data out of the device's memory until it is needed: to host memory, and on the CPU to disk. `set_offload_context` sets "
        "the destination and the amount. `memory_optimize_level` O1 disables this option. The getter returns a bool.",
)
