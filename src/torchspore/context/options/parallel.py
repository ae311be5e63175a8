"""Options of parallel execution: `set_auto_parallel_context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context import prepare
from torchspore.context.kinds import INT32, Bool, Choice, DatasetStrategy, Int, Members, Path, Str
from torchspore.context.option import Alias, Option
from torchspore.errors import OptionTypeError

API = "auto_parallel"

device_num = Option(
    read_by="distributed.data_parallel.settings",
    kind=Int(1, 4096), default=1, example="set_auto_parallel_context(device_num=8)",
    since="0.1",
    doc="The number of devices that take part. The default is the size of the group of processes.",
)
global_rank = Option(
    read_by="distributed.data_parallel.settings",
    kind=Int(0, 4095), default=0, example="set_auto_parallel_context(global_rank=0)",
    since="0.1",
    doc="The rank of this process.",
)
parallel_mode = Option(
    read_by="distributed.data_parallel.settings",
    fixed_outcomes={"stand_alone": "this process trains alone"},
    kind=Choice("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel", none=OptionTypeError),
    default="stand_alone", example="set_auto_parallel_context(parallel_mode='data_parallel')",
    since="0.1",
    doc="The way in which work is split: not at all, by the batch, by hand, by strategies of single operators, or by strategies from a "
        "search.",
)
gradients_mean = Option(
    read_by="distributed.data_parallel.settings",
    kind=Bool(none=False), default=False, example="set_auto_parallel_context(gradients_mean=True)",
    since="1.0",
    doc="Divides the summed gradients by the number of processes.",
)
mirror_mean = Alias(of="auto_parallel.gradients_mean", since="0.1", until="0.7", doc="The earlier name of `gradients_mean`.")
gradient_fp32_sync = Option(
    read_by="distributed.data_parallel.settings",
    kind=Bool(none=False), default=True, example="set_auto_parallel_context(gradient_fp32_sync=True)",
    since="1.0",
    doc="Sums gradients in float32, also those of float16.",
)
cast_before_mirror = Alias(of="auto_parallel.gradient_fp32_sync", since="0.1", until="0.7", doc="The earlier name of `gradient_fp32_sync`.")
loss_repeated_mean = Option(
    idle="results that several devices repeat count once: gradients are those of one device, regardless of repetition",
    kind=Bool(), default=True, example="set_auto_parallel_context(loss_repeated_mean=True)",
    since="0.3",
    doc="Computes the mean in the backward pass of a computation that several devices repeat.",
)
parameter_broadcast = Option(
    read_by="distributed.data_parallel.parameter_broadcast",
    kind=Bool(none=False), default=False, example="set_auto_parallel_context(parameter_broadcast=True)",
    since="0.1",
    doc="Sends the parameters of process 0 to all other processes before training begins.",
)
search_mode = Option(
    read_by="distributed.shard.search.comparison",
    kind=Choice("recursive_programming", "dynamic_programming", "sharding_propagation", none=OptionTypeError),
    default="recursive_programming", example="set_auto_parallel_context(search_mode='recursive_programming')",
    since="1.6",
    doc="The search for strategies: fast by a formula (recursive_programming), slower by costs (dynamic_programming), or by propagating "
        "the strategies that the program sets (sharding_propagation).",
)
auto_parallel_search_mode = Alias(of="auto_parallel.search_mode", since="0.5", until=None, doc="The earlier name of `search_mode`.")
sharding_propagation = Option(
    read_by="distributed.shard.search.comparison",
    kind=Bool(), default=False, instead="search_mode='sharding_propagation'",
    example="set_auto_parallel_context(sharding_propagation=True)",
    since="1.4",
    doc="Propagates the few strategies that the program sets to all operators.",
)
strategy_ckpt_config = Option(
    kind=Members(merges=True), default={"load_file": "", "save_file": "", "only_trainable_params": True},
    example="set_auto_parallel_context(strategy_ckpt_config={'save_file': 'strategy.json'})",
    since="2.0",
    doc="The files for reading and writing strategies. A file with the suffix .json contains JSON, every other file protobuf.",
)
load_file = Option(
    member_of="strategy_ckpt_config", top_level=False, kind=Path(), default="", read_by="distributed.shard.strategy_io",
    example="set_auto_parallel_context(strategy_ckpt_config={'load_file': 'strategy.json'})",
    doc="The file from which strategies are read.",
)
save_file = Option(
    member_of="strategy_ckpt_config", top_level=False, kind=Path(), default="", prepare=prepare.parent,
    read_by="distributed.shard.strategy_io",
    example="set_auto_parallel_context(strategy_ckpt_config={'save_file': 'strategy.json'})",
    doc="The file to which strategies are written. Its directory is created when the option is set.",
)
only_trainable_params = Option(
    member_of="strategy_ckpt_config", top_level=False, kind=Bool(), default=True, read_by="distributed.shard.strategy_io",
    example="set_auto_parallel_context(strategy_ckpt_config={'only_trainable_params': False})",
    doc="Omits parameters that are not trained.",
)
strategy_ckpt_load_file = Alias(
    of="auto_parallel.strategy_ckpt_config.load_file", since="0.3", until=None, doc="The member `load_file` of `strategy_ckpt_config`.",
)
strategy_ckpt_save_file = Alias(
    of="auto_parallel.strategy_ckpt_config.save_file", since="0.3", until=None, doc="The member `save_file` of `strategy_ckpt_config`.",
)
group_ckpt_save_file = Option(
    kind=Path(), default="", prepare=prepare.parent, example="set_auto_parallel_context(group_ckpt_save_file='groups.pb')",
    read_by="distributed.shard.strategy_io",
    since="1.2",
    doc="The file to which the groups of processes are written. Its directory is created when the option is set.",
)


def _imply_dataset_strategy(full: bool, is_set: Callable[[str], bool]) -> dict[str, Any]:
    return {"auto_parallel.dataset_strategy": "full_batch" if full else "data_parallel", "auto_parallel.full_batch_is_set": True}


def _imply_full_batch(strategy: Any, is_set: Callable[[str], bool]) -> dict[str, Any]:
    if not isinstance(strategy, str):
        return {}  # as measured: a tuple leaves `full_batch` as it is
    return {"auto_parallel.full_batch": strategy == "full_batch", "auto_parallel.full_batch_is_set": True}


full_batch = Option(
    read_by="distributed.shard.outcomes",
    kind=Bool(none=False), default=False, implies=_imply_dataset_strategy, instead="dataset_strategy",
    example="set_auto_parallel_context(full_batch=True)",
    since="0.5",
    doc="Lets every process read the full batch and use its part of it.",
)
full_batch_is_set = Option(
    idle="it shows whether full_batch was set, and controls nothing",
    kind=Bool(), default=False, settable=False, doc="True if `full_batch` has been set. The option can only be read.",
)
dataset_strategy = Option(
    read_by="distributed.shard.outcomes",
    kind=DatasetStrategy(), default="data_parallel", implies=_imply_full_batch,
    example="set_auto_parallel_context(dataset_strategy=((8, 1), (8, 1)))",
    since="1.4",
    doc="The split of the dataset's outputs across the devices: by the batch, not at all, or axis by axis.",
)
enable_alltoall = Option(
    read_by="distributed.shard.outcomes",
    kind=Bool(), default=False, example="set_auto_parallel_context(enable_alltoall=True)",
    since="1.4",
    doc="Uses all-to-all to change one layout into another where this is possible. Otherwise values are gathered and sliced.",
)
communi_parallel_mode = Option(
    effect="distributed.speed_up_options:serializes", process_wide=True,
    kind=Choice("all_group_parallel", "same_server_group_parallel", "no_group_parallel", none=OptionTypeError),
    default="all_group_parallel", example="set_auto_parallel_context(communi_parallel_mode='all_group_parallel')",
    since="1.2",
    doc="The groups of processes that may exchange at the same time. all_group_parallel: all groups. no_group_parallel: an exchange begins "
        "after those of the other groups have ended. same_server_group_parallel: the same, but only for groups with processes on several "
        "machines. Messages between two processes (Send, Receive) never wait.",
)
force_fp32_communication = Option(
    read_by="distributed.shard.outcomes",
    kind=Bool(), default=False, example="set_auto_parallel_context(force_fp32_communication=True)",
    since="2.3",
    doc="Computes sums of collectives in float32.",
)
dump_local_norm = Option(
    read_by="distributed.shard.gradient_norms",
    kind=Bool(none=False, ints=True), default=False, example="set_auto_parallel_context(dump_local_norm=True)",
    since="2.4",
    doc="Writes the norm of each parameter's local gradient before the gradients are summed.",
)
dump_local_norm_path = Option(
    read_by="distributed.shard.gradient_norms",
    kind=Str("the path of a directory"), default="", example="set_auto_parallel_context(dump_local_norm_path='norms')",
    since="2.5",
    doc="The directory for the files of `dump_local_norm`.",
)
dump_device_local_norm = Option(
    read_by="distributed.shard.gradient_norms",
    kind=Bool(none=False, ints=True), default=False, example="set_auto_parallel_context(dump_device_local_norm=True)",
    since="2.5",
    doc="Writes the norm of all gradients of this device before they are summed.",
)
auto_parallel_new_interface = Option(
    idle="MindSpore's AutoParallel sets it for itself; the features that it controls there work here without it",
    kind=Bool(none=False, ints=True), default=False, since="2.6", doc="An internal option of MindSpore's AutoParallel class.",
)
init_param_in_compile = Option(
    read_by="mindspore.common.deferred_init", fixed_outcomes={False: "Parameters have their values as soon as they are created"},
    kind=Bool(none=False, ints=True), default=True, example="set_auto_parallel_context(init_param_in_compile=True)",
    since="2.6",
    doc="Initializes Parameters while the graph is compiled. Each device draws its part, with the same values as without the option. It "
        "takes effect if the program sets it after `init()`, in the modes that split operators. Initializers that need all values at once "
        "(Orthogonal, Sparse, Dirac, Identity, and the program's initializers) are not delayed.",
)
grad_accumulation_step = Option(
    read_by="distributed.data_parallel.settings", fixed_outcomes={1: "each step applies its own gradients"},
    kind=Int(1, INT32), default=1, example="set_auto_parallel_context(grad_accumulation_step=4)",
    since="1.2",
    doc="The number of steps after which the summed gradients are applied.",
)
