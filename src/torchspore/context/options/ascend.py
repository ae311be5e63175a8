"""Options of Ascend devices."""

from __future__ import annotations

from torchspore.context.kinds import Among, Bool, Choice, DictOf, ExistingFile, Int, Members, SpeedUpFile, Str
from torchspore.context.option import On, Option
from torchspore.context.options.speedup import from_file
from torchspore.errors import OptionTypeError, OptionValueError


def _digit(value: bool) -> str:
    return "1" if value else "0"


_COUNTERS = "mindspore.train.callback._checkpoint_counters"

ascend_config = Option(
    kind=Members(adds=True), default={}, in_graph_key=True,
    example="set_context(ascend_config={'precision_mode': 'must_keep_origin_dtype'})", since="2.0", doc="Settings of Ascend devices.",
)
precision_mode = Option(
    member_of="ascend_config", settable=False, default="", effect="engine.execution.precision:follow_mode",
    read_by="graph.settings",
    fixed_outcomes={"must_keep_origin_dtype": "operators compute in the dtypes of the program"},
    kind=Choice("force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "must_keep_origin_dtype", "force_fp32", "allow_fp32_to_bf16",
                "allow_mix_precision_fp16", "allow_mix_precision_bf16", no_str=OptionValueError),
    example="set_context(ascend_config={'precision_mode': 'must_keep_origin_dtype'})",
    since="2.0",
    doc="The operators that compute in another dtype than the program's, in both modes and on every device. force_fp16: all operators that "
        "support float16. allow_fp32_to_fp16 and allow_fp32_to_bf16: matrix products and convolutions, whose results are cast back. "
        "allow_mix_precision, allow_mix_precision_fp16 and allow_mix_precision_bf16: the operators of lists. force_fp32: 16-bit products "
        "and convolutions, in float32. must_keep_origin_dtype: none. The dtypes of Parameters and of the state of optimizers do not "
        "change.",
)
jit_compile = Option(
    member_of="ascend_config", settable=False, kind=Among(True, False, give=_digit), default="",
    effect="engine.devices.npu.options:jit_compile", read_by="graph.settings", graph_only=True, in_graph_key=True,
    example="set_context(ascend_config={'jit_compile': False})",
    since="2.0",
    doc="Allows the levels O1 and O2 to generate and compile kernels, on every device. If False, they use existing kernels and compile "
        "nothing.",
)
atomic_clean_policy = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, kind=Among(0, 1, give=str), default="",
    example="set_context(ascend_config={'atomic_clean_policy': 1})",
    effect="engine.devices.npu.options:of_graph_engine", read_by="engine.devices.npu.graph_engine", graph_only=True,
    since="2.1",
    doc="Clears the memory of operators that accumulate in place for all of them at once (0) or separately (1).",
)
matmul_allow_hf32 = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, kind=Among(True, False, give=_digit), default="",
    example="set_context(ascend_config={'matmul_allow_hf32': True})",
    effect="engine.devices.npu.options:matmul_hf32",
    since="2.1",
    doc="Allows HF32 for matrix products of float32. HF32 is faster and less precise.",
)
conv_allow_hf32 = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, kind=Among(True, False, give=_digit), default="",
    example="set_context(ascend_config={'conv_allow_hf32': False})",
    effect="engine.devices.npu.options:conv_hf32",
    since="2.1",
    doc="Allows HF32 for convolutions of float32.",
)
exception_dump = Option(
    member_of="ascend_config", settable=False, kind=Choice("0", "1", "2"), default="2", effect="observe.debug.dump:on_exception",
    example="set_context(ascend_config={'exception_dump': '1'})",
    since="2.3", until="2.5",
    doc="The values that are written to `save_dump_path` when an operator fails, on every device: '0' none, '1' its inputs and outputs, "
        "'2' its inputs. Operators are recorded only if the option is set; otherwise nothing is written.",
)
op_precision_mode = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, kind=ExistingFile("an .ini file"), default="",
    example="set_context(ascend_config={'op_precision_mode': 'precision.ini'})",
    effect="engine.devices.npu.options:of_graph_engine", read_by="engine.devices.npu.graph_engine", graph_only=True,
    since="2.1",
    doc="A file that sets the precision of single operators.",
)
op_debug_option = Option(
    member_of="ascend_config",
    settable=False,
    kind=Choice("oom", none=OptionTypeError),
    default="",
    effect="engine.execution.memory_bounds:check",
    process_wide=True,
    example="set_context(ascend_config={'op_debug_option': 'oom'})",
    since="2.3",
    doc="'oom' checks that operators access only their memory. CPU and GPU kernels always check each index.",
)
ge_options = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, default="",
    kind=DictOf(DictOf(Str()), ("global", "session"), as_text=True),
    example="set_context(ascend_config={'ge_options': {'global': {'ge.opSelectImplmode': 'high_precision'}}})",
    effect="engine.devices.npu.options:of_graph_engine", read_by="engine.devices.npu.graph_engine", graph_only=True,
    since="2.3",
    doc="Options that are passed unchanged to the graph engine of the device.",
)
parallel_speed_up_json_path = Option(
    member_of="ascend_config", top_level=False, on=On.ASCEND, kind=SpeedUpFile(), default="", implies=from_file,
    effect="distributed.speed_up_options:file",
    example="set_context(ascend_config={'parallel_speed_up_json_path': 'parallel_speed_up.json'})",
    doc="A JSON file with switches for parallel training; each switch is a separate option. '' and None mean no file.",
)
host_scheduling_max_threshold = Option(
    member_of="ascend_config", settable=False, on=On.ASCEND, kind=Int(0, give=str, gives="str"), default="",
    example="set_context(ascend_config={'host_scheduling_max_threshold': 0})",
    effect="engine.devices.npu.options:of_graph_engine", read_by="engine.devices.npu.graph_engine", graph_only=True,
    since="2.3",
    doc="The number of kernels up to which the kernels of a static graph are launched one by one.",
)
hccl_watchdog = Option(
    member_of="ascend_config", on=On.ASCEND, kind=Bool(), default=True, example="set_context(ascend_config={'hccl_watchdog': True})",
    effect="engine.devices.npu.options:hccl_watchdog",
    since="2.4",
    doc="Starts a thread that monitors collectives and ends the program when one has failed.",
)
topo_order = Option(
    member_of="ascend_config", on=On.ASCEND, kind=DictOf(Choice("bfs", "dfs", "rdfs"), as_text=True), default="",
    example="set_context(ascend_config={'topo_order': {'graph': 'dfs'}})",
    effect="engine.devices.npu.options:of_graph_engine", read_by="engine.devices.npu.graph_engine", graph_only=True,
    since="2.3",
    doc="The order in which the operators of each graph run, by the graph's name. The getter returns JSON text.",
)
cur_step_num = Option(
    member_of="ascend_config", kind=Int(0), default=0, example="set_context(ascend_config={'cur_step_num': 1})",
    read_by=_COUNTERS, is_counter=True,
    since="2.3",
    doc="The number of the current training step, which ModelCheckpoint compares with `last_triggered_step`. `Model.train` sets it before "
        "each step; a callback may change it for the current step. Names of files do not depend on it.",
)
save_checkpoint_steps = Option(
    member_of="ascend_config", kind=Int(0), default=0, example="set_context(ascend_config={'save_checkpoint_steps': 100})",
    read_by=_COUNTERS, is_counter=True,
    since="2.3",
    doc="The number of steps after which ModelCheckpoint saves. The training sets it from CheckpointConfig (1 if CheckpointConfig saves by "
        "time). If a callback changes it, ModelCheckpoint uses the new value.",
)
last_triggered_step = Option(
    member_of="ascend_config", kind=Int(0), default=0, example="set_context(ascend_config={'last_triggered_step': 100})",
    read_by=_COUNTERS, is_counter=True,
    since="2.3",
    doc="The step after which ModelCheckpoint last saved. The training sets it. If a callback changes it, ModelCheckpoint saves "
        "`save_checkpoint_steps` steps after the new value.",
)
need_ckpt = Option(
    member_of="ascend_config", kind=Bool(), default=False, example="set_context(ascend_config={'need_ckpt': True})",
    read_by=_COUNTERS, is_counter=True,
    since="2.3",
    doc="True if the current training writes checkpoints: from its first step to its last, if it has a ModelCheckpoint. While a callback "
        "sets it to False, ModelCheckpoint saves only the last step.",
)
