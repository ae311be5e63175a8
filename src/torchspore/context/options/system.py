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
    doc="The device on which Tensors are placed and operators run. It is applied before every other option of the same call. "
        "By default the available accelerator, otherwise the CPU; `TORCHSPORE_DEVICE` forces it for a whole program.",
)
device_id = Option(
    kind=Int(0, 4095), default=0, effect="engine.execution.device_selection:select_index", when=When.BEFORE_DEVICE_USE,
    late_error=LateDeviceChange, runs_again=False, in_graph_key=True, environment=("DEVICE_ID",), example="set_context(device_id=0)",
    since="0.1",
    doc="Which of the host's accelerators this process uses. On the CPU it is stored and changes nothing. "
        "The device is checked when it is first used, and reading the option does not freeze it.",
)
max_device_memory = Option(
    kind=Size(), default=1024.0, when=When.BEFORE_OPERATORS, effect="engine.memory.limit:set_device_limit", process_wide=True,
    example="set_context(max_device_memory='3.5GB')",
    since="0.5",
    doc="The most memory that Tensors may use on the device, in GB of 2**30 bytes; exceeding it is an error that names the largest "
        "values. The free memory of the device is a second limit. On the CPU memory is counted only after the option is set.",
)
variable_memory_max_size = Option(
    kind=Size(high=31, is_integral=True, give=lambda size: f"{int(size)} * 1024 * 1024 * 1024", gives="str"), default="0",
    when=When.BEFORE_OPERATORS, instead="max_device_memory", example="set_context(variable_memory_max_size='6GB')",
    effect="engine.memory.limit:set_variable_limit", process_wide=True,
    since="0.1",
    doc="An older spelling of `max_device_memory`, in whole GB, used if that is not set. The getter returns a product of bytes.",
)
mempool_block_size = Option(
    kind=Size(low=1), default=1.0, on=On.GPU | On.ASCEND, when=When.BEFORE_OPERATORS, effect="engine.memory.limit:grow_by",
    process_wide=True, example="set_context(mempool_block_size='1GB')",
    since="1.6",
    doc="The step size by which the pool of device memory grows, in PyNative mode and at the jit levels O0 and O1; never more than "
        "`max_device_memory`. The CPU has no pool: the C library allocates memory for each value.",
)
op_timeout = Option(
    kind=Int(0, UINT32, unit="of seconds"), default=900, process_wide=True, effect="observe.debug.recorder:limit",
    example="set_context(op_timeout=900)", since="1.9",
    doc="The longest that one operator, or one step of a data pipeline, may run before the program is ended: what hangs is named, all "
        "threads are written down, the children are ended, and the exit code is 124. The limit applies if the program sets it; 0 leaves "
        "it to the device.",
)
runtime_num_threads = Option(
    kind=Int(0), default=lambda device: min(30, cores.usable()), effect="engine.devices.threads:set_limit", process_wide=True,
    in_graph_key=True, example="set_context(runtime_num_threads=4)",
    since="1.7",
    doc="The number of threads that CPU kernels may use. At most one per core is used; 0 leaves the number to torch.",
)
inter_op_parallel_num = Option(
    kind=Int(0), default=0, example="set_context(inter_op_parallel_num=4)", read_by="graph.settings", graph_only=True,
    fixed_outcomes={0: "operators of a graph run one after the other", 1: "operators of a graph run one after the other"}, since="2.0",
    doc="How many operators of a graph may run at the same time, on CPU threads, where that is faster. 0 lets the engine choose: one.",
)
memory_optimize_level = Option(
    kind=Choice("O0", "O1", reads={"O0": 0, "O1": 1}, no_str=OptionValueError),
    default=lambda device: 1 if device == "Ascend" else 0,
    in_graph_key=True, read_by="graph.settings", graph_only=True,
    fixed_outcomes={0: "values of a graph are freed after their last use"},
    example="set_context(memory_optimize_level='O1')",
    since="2.0",
    doc="O0 optimises speed, O1 memory: an optimizer's steps run as soon as their gradients are ready, and forward values that are cheap "
        "for their size are recomputed for the backward pass. The numbers stay the same. The getter returns 0 or 1.",
)
memory_offload = Option(
    kind=Choice("ON", "OFF", reads={"ON": True, "OFF": False}, no_str=OptionValueError), default=False,
    effect="engine.memory.offload:set_memory_offload", in_graph_key=True, example="set_context(memory_offload='ON')",
    since="2.0", until="2.6",
    doc="Whether idle data moves out of the device's memory until it is needed: to the host's memory, on the CPU to disk. "
        "`set_offload_context` sets where, and how much. `memory_optimize_level` O1 disables it. The getter returns a bool.",
)
